# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of a comparison say: means with intervals, promises kept or missed, remarks."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import delays
from linkweir.columns import reals, strings, wholes
from linkweir.comparison.plan import Facts
from linkweir.comparison.promises import UNCLEAR, UNKNOWN, Promise, marked
from linkweir.sweeps.confidence import Estimate, estimate, exceeds
from linkweir.sweeps.means import INTERVAL, grouped_means, seeds_are_equal
from linkweir.sweeps.measures import MEASURES, Measure
from linkweir.sweeps.outcome import KIND, Sweep
from linkweir.sweeps.page import SEEDS_ARE_EQUAL

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Verdict:
    """Whether a policy kept a promise on a link.

    Attributes:
        promise: which.
        trace: label of the link.
        policy: label of the policy.
        found: the measure over the seeds.
        verdict: ``kept``, ``missed``, ``unclear`` (these seeds cannot tell), or ``no data`` (nothing was measured).
        held: in how many of the runs the bound was kept.
        seeds_needed: of an unclear verdict the seeds that would decide if further ones are like these; None if not even
            100000 would.
    """

    promise: Promise
    trace: str
    policy: str
    found: Estimate
    verdict: str
    held: int = 0
    seeds_needed: int | None = None

    @property
    def text(self) -> str:
        """The verdict as tables show it: ``kept (1 seed)`` where there is only one run."""
        return marked(self.verdict, self.found)

    @property
    def runs(self) -> str:
        """In how many runs the bound was kept, and of an unclear verdict how many seeds would decide."""
        text = f"{self.held} of {self.found.count} runs"
        if self.verdict != UNCLEAR:
            return text
        return f"{text}; {'no number of' if self.seeds_needed is None else self.seeds_needed} seeds would decide"


@dataclass(frozen=True)
class Results:
    """The runs of a comparison as its tables, figures and report need them.

    Attributes:
        facts: what was compared.
        sweep: the runs: their data set, and which of them failed.
    """

    facts: Facts
    sweep: Sweep

    @property
    def status(self) -> str:
        """``complete``, ``failed`` or ``interrupted``, as of a sweep."""
        return self.sweep.status

    @property
    def sweep_kind(self) -> str:
        """Kind of its directory, for `linkweir.directories.provenance`."""
        return KIND

    @property
    def directory(self) -> Path | None:
        """Where it was written, if it was."""
        return self.sweep.directory

    @property
    def notes(self) -> list[str]:
        """What was left out of the scenario or derived for a policy, and what is remarkable: a sentence each."""
        of_policies = [f"{one.label}: {note}" for one in self.facts.variants for note in one.notes]
        return [*of_policies, *self.remarks]

    @property
    def remarks(self) -> list[str]:
        """The notes that are about several policies or links."""
        equal = [SEEDS_ARE_EQUAL] if self._deterministic else []
        return [*self.facts.notes, *equal, *self._same()]

    @cached_property
    def _classes(self) -> pa.Table:
        """A row per run and class: the table of classes, the TCP goodput of its flows, and the load offered."""
        import pyarrow.compute as pc

        data = self.sweep.table
        if "scope" not in data.column_names:
            return data
        rows = self._of_the_link(data.filter(pc.equal(data["scope"], "class")))
        classes = rows.drop_columns(["goodput_bps"]) if "goodput_bps" in rows.column_names else rows
        goodput: dict[tuple[int, str], float] = {}
        flows = data.filter(pc.equal(data["scope"], "flow"))
        if {"transmitted_pkts", "goodput_bps"} <= set(data.column_names):
            flows = flows.filter(pc.is_valid(flows["transmitted_pkts"]))  # only TCP transmits segments
            for run, flow, of_flow, value in zip(
                *(flows[key].to_pylist() for key in ("run", "flow", "class", "goodput_bps")), strict=True
            ):
                name = self.facts.flow_classes.get(flow, of_flow if not self.facts.link else "")
                goodput[run, name] = goodput.get((run, name), 0.0) + (value or 0.0)
        pairs = list(zip(classes["run"].to_pylist(), classes["class"].to_pylist(), strict=True))
        classes = classes.append_column("goodput_bps", reals([goodput.get(pair) for pair in pairs]))
        return self._without_copies(classes)

    def _of_the_link(self, rows: pa.Table) -> pa.Table:
        """Of a network only the classes of the link that is judged."""
        import pyarrow.compute as pc

        if "link" not in rows.column_names:
            return rows
        return rows.filter(pc.equal(rows["link"], self.facts.link)).drop_columns(["link"])

    def _without_copies(self, classes: pa.Table) -> pa.Table:
        """One row for all copies of a class: the means over them."""
        if not self._entry_of:
            return classes
        named = self._renamed(classes)
        kept = ("run", "case", "seed", "trace", "policy", "class")
        texts = (*kept, "scope", "flow", "kind")
        there = [name for name in named.column_names if named[name].null_count < named.num_rows]
        numbers = [name for name in there if name not in texts]
        return grouped_means(named, ("run", "class"), kept, numbers)

    @cached_property
    def _entry_of(self) -> dict[str, str]:
        """The class of each copy."""
        return {
            f"{name}-{number}": name
            for name, count in self.facts.copies.items()
            for number in range(1, count + 1)
            if count > 1
        }

    def _renamed(self, table: pa.Table) -> pa.Table:
        """A table with the names of classes in place of those of their copies."""
        names = [self._entry_of.get(name, name) for name in table["class"].to_pylist()]
        place = table.column_names.index("class")
        return table.set_column(place, "class", strings(names))

    @cached_property
    def table(self) -> pa.Table:
        """One row per link (``trace``), ``policy`` and ``class``: means over the seeds, with intervals.

        ``runs`` is how many seeds there are. Each measure has its mean and, in the column with ``_ci95`` behind its
        name, half the width of its 95 % confidence interval (Student's t): ``rate_bps``, ``goodput_bps`` (the sum of
        the TCP flows of the class; null without any), ``loss``, ``delay_mean_s``, ``delay_p50_s``, ``delay_p95_s`` and
        ``delay_p99_s`` (queueing delay; means over the seeds of each seed's percentile; half an interval is at least
        1/128 of the mean, the width of a bucket of the histograms), ``jitter_mad_s``.
        """
        import pyarrow as pa

        rows = self._classes
        columns = [*(measure.column for measure in MEASURES.values()), "jitter_mad_s"]
        keys = ("trace", "policy", "class")
        if "class" not in rows.column_names:
            return pa.table({name: pa.nulls(0, pa.string()) for name in keys})
        found = grouped_means(rows, keys, keys, [name for name in columns if name in rows.column_names])
        order = {
            name: [one.label for one in ones]
            for name, ones in (("trace", self.facts.links), ("policy", self.facts.variants))
        }
        ranked = sorted(
            range(found.num_rows),
            key=lambda row: (
                order["trace"].index(found["trace"][row].as_py()),
                self.facts.classes.index(found["class"][row].as_py()),
                order["policy"].index(found["policy"][row].as_py()),
            ),
        )
        return found.take(wholes(ranked))

    def estimate(self, trace: str, policy: str, name: str, measure: str) -> Estimate:
        """The mean of a measure of a class, with its interval."""
        column = MEASURES[measure].column
        row = self._by_place.get((trace, policy, name), {})
        count = self._counts(column).get((trace, policy, name), 0)
        return Estimate(row.get(column), row.get(f"{column}{INTERVAL}"), count)

    def values(self, trace: str, policy: str, name: str, measure: str) -> dict[int, float]:
        """A measure of a class in each run that has it, by seed."""
        return self._values.get((trace, policy, name, measure), {})

    @cached_property
    def _values(self) -> dict[tuple[str, str, str, str], dict[int, float]]:
        found: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for row in self._classes.to_pylist():
            for measure, about in MEASURES.items():
                value = row.get(about.column)
                if value is not None and not math.isnan(value):
                    place = row["trace"], row["policy"], row["class"], measure
                    found.setdefault(place, {})[row["seed"]] = value
        return found

    def best(self, trace: str, name: str, measure: str) -> list[str]:
        """The policies that are best for a class by a measure: the one with the best mean, and those as good as that.

        A policy is worse if the mean of the differences between runs with the same seed certainly is, as
        `linkweir.sweeps.confidence.limits` judge it. With a single seed the figures as they are shown decide.
        """
        about = MEASURES[measure]
        mine = {one.label: self.values(trace, one.label, name, measure) for one in self.facts.variants}
        means = {label: math.fsum(values.values()) / len(values) for label, values in mine.items() if values}
        if not means:
            return []
        sign = 1.0 if about.more_is_better else -1.0
        first = max(means, key=lambda label: sign * means[label])

        def worse(label: str) -> bool:
            if about.shown(means[label]) == about.shown(means[first]):
                return False
            common = sorted(set(mine[label]) & set(mine[first]))
            if len(common) < 2 or self._deterministic:
                return len(self.facts.seeds) == 1 or self._deterministic
            best, other = ([sign * mine[one][seed] for seed in common] for one in (first, label))
            return exceeds(best, other, grain=about.resolution * max(abs(means[label]), abs(means[first])))

        return [label for label in means if not worse(label)]

    @cached_property
    def _deterministic(self) -> bool:
        return seeds_are_equal(self.sweep.table)

    def _counts(self, column: str) -> Counter[tuple[str, str, str]]:
        """How many runs have a value in a column of the classes."""
        if column not in self._counted:
            rows = self._classes
            there = column in rows.column_names
            keys = zip(*(rows[key].to_pylist() for key in ("trace", "policy", "class")), strict=True) if there else ()
            values = rows[column].to_pylist() if there else ()
            self._counted[column] = Counter(
                key for key, value in zip(keys, values, strict=True) if value is not None and not math.isnan(value)
            )
        return self._counted[column]

    @cached_property
    def _counted(self) -> dict[str, Counter[tuple[str, str, str]]]:
        return {}

    def link_estimate(self, trace: str, policy: str, measure: Measure) -> Estimate:
        """The mean of a measure of the link, with its interval."""
        return estimate(row.get(measure.column) for row in self._links.get((trace, policy), []))

    @cached_property
    def _links(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        import pyarrow.compute as pc

        data = self.sweep.table
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        if "scope" not in data.column_names:
            return found
        rows = data.filter(pc.equal(data["scope"], "link")).select(["trace", "policy", "capacity_bps", "used_bps"])
        for row in rows.to_pylist():
            row["used"] = row["used_bps"] / row["capacity_bps"] if row["capacity_bps"] else None
            found.setdefault((row["trace"], row["policy"]), []).append(row)
        return found

    def distribution(self, trace: str, policy: str, name: str) -> delays.Distribution | None:
        """The distribution of the queueing delay of a class, all seeds together; None if no packet was sent."""
        return self._distributions.get((trace, policy, name))

    @cached_property
    def _distributions(self) -> dict[tuple[str, str, str], delays.Distribution]:
        import pyarrow.compute as pc

        table = self.sweep.delays
        found = {}
        for trace, policy in itertools.product(self.facts.links, self.facts.variants):
            if "trace" not in table.column_names:
                break
            here = pc.and_(pc.equal(table["trace"], trace.label), pc.equal(table["policy"], policy.label))
            rows = table.filter(here)
            if self._entry_of and rows.num_rows:
                rows = delays.merge([self._renamed(rows)])
            for one in delays.distributions(rows, "queueing"):
                if not one.flow:
                    found[trace.label, policy.label, one.of] = one
        return found

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {(row["trace"], row["policy"], row["class"]): row for row in self.table.to_pylist()}

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """For each promise, link and policy whether it was kept.

        A class whose flows send less than it is promised need only be sent what they offer. If they offer nothing,
        there is no data to judge.
        """
        found = []
        for promise in self.facts.promises:
            for link in self.facts.links:
                for one in self.facts.variants:
                    seen = self.estimate(link.label, one.label, promise.name, promise.measure)
                    judged = self._judged(promise, link.label, one.label)
                    highest = self._highest(promise, link.label, one.label)
                    verdict = promise.verdict(judged[:1] if self._deterministic else judged, highest)
                    known = Estimate(None, None, 0) if verdict == UNKNOWN else seen
                    held = sum(promise.holds(value) for value in judged)
                    needed = promise.seeds_needed(judged, highest) if verdict == UNCLEAR else None
                    found.append(Verdict(promise, link.label, one.label, known, verdict, held, needed))
        return found

    def _judged(self, promise: Promise, trace: str, policy: str) -> list[float]:
        """What is compared with a promise, one value per run that has it.

        Of a rate promised to a class whose flows send at rates of their own it is the rate as a part of what was both
        promised and offered, times the bound.
        """
        if promise.measure != "rate" or promise.name not in self.facts.fixed_load:
            return list(self.values(trace, policy, promise.name, promise.measure).values())
        window_s = self.facts.duration_s - self.facts.warmup_s
        names = ("trace", "policy", "class", "rate_bps", "arrived_bytes")
        values: list[float] = []
        for row in self._classes.select(names).to_pylist():
            if (row["trace"], row["policy"], row["class"]) == (trace, policy, promise.name):
                wanted = min(promise.bound, 8.0 * row["arrived_bytes"] / window_s)
                if wanted:
                    values.append(row["rate_bps"] * promise.bound / wanted)
        return values

    def _highest(self, promise: Promise, trace: str, policy: str) -> float:
        """What a measure cannot exceed: a loss all, a rate the link's capacity, a delay the time simulated."""
        if promise.measure == "loss":
            return 1.0
        if MEASURES[promise.measure].quantity == "rate":
            capacities: list[float] = [row["capacity_bps"] for row in self._links.get((trace, policy), [])]
            return max([promise.bound, *capacities])
        return self.facts.duration_s

    def _same(self) -> list[str]:
        """Policies whose runs do not differ."""
        rows = self._classes
        if "class" not in rows.column_names:
            return []
        values: dict[str, list[tuple[Any, ...]]] = {}
        plain = [name for name in rows.column_names if name not in ("run", "case", "policy")]
        policies = rows["policy"].to_pylist()
        for policy, row in zip(policies, rows.select(plain).to_pylist(), strict=True):
            values.setdefault(policy, []).append(tuple(row.values()))
        groups: dict[int, list[str]] = {}
        labels = [one.label for one in self.facts.variants if one.label in values]
        for label in labels:
            first = next(other for other in labels if values[other] == values[label])
            groups.setdefault(labels.index(first), []).append(label)
        return [
            f"{' and '.join(group)}: every run gave the same results; with these settings they schedule in the same way"
            for group in groups.values()
            if len(group) > 1
        ]

    @property
    def summary(self) -> dict[str, Any]:
        """The comparison for JSON: what was compared, the table, the verdicts and the notes."""
        return {
            **self.sweep.summary,
            "name": self.facts.name,
            "policies": [one.label for one in self.facts.variants],
            "traces": [link.label for link in self.facts.links],
            "seeds": list(self.facts.seeds),
            "table": self.table.to_pylist(),
            "promises": [
                {
                    "promise": verdict.promise.text,
                    "trace": verdict.trace,
                    "policy": verdict.policy,
                    "verdict": verdict.verdict,
                    "shown": verdict.text,
                    "held": verdict.held,
                    "seeds_needed": verdict.seeds_needed,
                    **asdict(verdict.found),
                }
                for verdict in self.verdicts
            ],
            "notes": self.notes,
        }
