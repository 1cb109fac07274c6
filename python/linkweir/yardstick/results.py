# SPDX-License-Identifier: BSD-3-Clause
"""What the runs say: a row of figures for each policy in each case, promises kept or broken, and faults of policies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from linkweir import delays
from linkweir.comparison.promises import UNKNOWN, Promise
from linkweir.sweeps.outcome import Sweep
from linkweir.yardstick.cases import CASES
from linkweir.yardstick.figures import FIGURES, Found, Promised, dominating, figures, reserved_row, wanted_bits
from linkweir.yardstick.plan import Entry, Facts
from linkweir.yardstick.traffic import RESERVED, lasting, promised_bps

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = (
    "case",
    "seed",
    "scope",
    "class",
    "flow",
    "kind",
    "arrived_bytes",
    "arrived_pkts",
    "sent_bytes",
    "delivered_pkts",
    "dropped_limit_pkts",
    "dropped_policy_pkts",
    "dropped_age_pkts",
    "goodput_bps",
    "delay_p99_s",
    "capacity_bps",
    "used_bps",
    "stalled_s",
)


@dataclass(frozen=True)
class Row:
    """A policy in a case with a load.

    Attributes:
        entry: which.
        found: its figures.
        promise: ``kept``, ``missed``, ``unclear`` or ``no data``, as comparisons judge it; ``no data`` if a run failed.
        runs: runs that ended.
        planned: runs of the plan.
        dominated_by: policies that dominate it here.
        faults: why runs failed, one sentence each.
    """

    entry: Entry
    found: Found
    promise: str
    runs: int
    planned: int
    dominated_by: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The promise as tables show it: with how many runs it was judged by, if these are not all."""
        return self.promise if self.runs == self.planned else f"{self.promise}, {self.runs} of {self.planned} runs"


@dataclass(frozen=True)
class Results:
    """The runs as tables, pictures and the page need them.

    Attributes:
        facts: what was measured.
        sweep: the runs.
    """

    facts: Facts
    sweep: Sweep

    @cached_property
    def rows(self) -> list[Row]:
        """One for each case, load and policy, in this order."""
        data = {number: part.to_pylist() for number, part in _parts(self.sweep.table, _COLUMNS)}
        spread = {number: list(delays.distributions(part)) for number, part in _parts(self.sweep.delays, None)}
        faults: dict[int, list[str]] = {}
        for failure in self.sweep.failures:
            faults.setdefault(failure.case, []).append(failure.error)
        found: dict[tuple[str, str], dict[str, Found]] = {}
        for number, entry in enumerate(self.facts.entries, 1):
            here = figures(data.get(number, []), spread.get(number, []), _promised(entry))
            found.setdefault((entry.case, entry.load), {})[entry.policy] = here
        dominated = {place: dominating(here) for place, here in self._judged(data, faults, found).items()}
        return [
            Row(
                entry,
                found[entry.case, entry.load][entry.policy],
                UNKNOWN if number in faults else _verdict(data.get(number, []), entry),
                _runs(data.get(number, [])),
                len(self.facts.seeds),
                tuple(dominated[entry.case, entry.load].get(entry.policy, ())),
                tuple(faults.get(number, ())),
            )
            for number, entry in enumerate(self.facts.entries, 1)
        ]

    def _judged(
        self,
        data: Mapping[int, Sequence[Mapping[str, Any]]],
        faults: Mapping[int, Sequence[str]],
        found: Mapping[tuple[str, str], Mapping[str, Found]],
    ) -> dict[tuple[str, str], dict[str, Found]]:
        """The figures that dominance compares: none of a policy of which a run failed. Runs that are still to be done
        say nothing, so a policy that has some is not compared.
        """
        judged: dict[tuple[str, str], dict[str, Found]] = {place: {} for place in found}
        for number, entry in enumerate(self.facts.entries, 1):
            failed = len(faults.get(number, ()))
            if _runs(data.get(number, [])) + failed == len(self.facts.seeds):
                place = entry.case, entry.load
                judged[place][entry.policy] = Found() if failed else found[place][entry.policy]
        return judged

    def row(self, case: str, load: str, policy: str) -> Row:
        """The row of a policy in a case with a load."""
        return self._by_place[case, load, policy]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Row]:
        return {(row.entry.case, row.entry.load, row.entry.policy): row for row in self.rows}

    def faults(self, policy: str) -> list[tuple[Row, str]]:
        """Every run of a policy that failed: its row, and why."""
        return [(row, fault) for row in self.rows if row.entry.policy == policy for fault in row.faults]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as plain dicts, for JSON; figures in base units."""
        return [self._record(row) for row in self.rows]

    def _record(self, row: Row) -> dict[str, Any]:
        entry = row.entry
        return {
            "case": entry.case,
            "load": entry.load,
            "policy": entry.policy,
            "source": CASES[entry.case].source,
            "promise": row.promise,
            **{about.column: row.found.values.get(key) for key, about in FIGURES.items()},
            "dominated_by": list(row.dominated_by),
            "runs": row.runs,
            "runs_planned": row.planned,
            "faults": list(row.faults),
            "trace_sha256": entry.trace_sha256,
            "commit": self.facts.commit,
            "kernel": self.facts.kernel or None,
            "instructions_per_packet": self.facts.instructions.get(entry.policy),
        }

    @property
    def summary(self) -> dict[str, Any]:
        """All for JSON."""
        return {
            **self.sweep.summary,
            "policies": list(self.facts.policies),
            "seeds": list(self.facts.seeds),
            "rows": self.records,
        }


def _runs(rows: Sequence[Mapping[str, Any]]) -> int:
    """How many runs these rows are of."""
    return len({row["seed"] for row in rows})


def _promised(entry: Entry) -> Promised:
    case = CASES[entry.case]
    return Promised(promised_bps(case), float(case.duration_s - case.warmup_s), lasting(case, entry.load))


def _verdict(rows: Sequence[dict[str, Any]], entry: Entry) -> str:
    """Whether the reserved class got what it was promised, judged over the seeds as comparisons judge it."""
    promised = _promised(entry)
    runs: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault(row["seed"], []).append(row)
    rates = []
    for run in runs.values():
        reserved = reserved_row(run)
        wanted = 0.0 if reserved is None else wanted_bits(reserved, promised)
        if reserved is not None and wanted:
            rates.append(promised.bps * 8.0 * reserved["sent_bytes"] / wanted)
    promise = Promise(RESERVED, "rate", promised.bps, "rate")
    highest = max(
        [promised.bps, *(row["capacity_bps"] for row in rows if row["capacity_bps"] is not None)], default=0.0
    )
    return promise.verdict(rates, max(highest, *rates)) if rates else UNKNOWN


def _parts(table: pa.Table, columns: Sequence[str] | None) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each case of the plan; those of a case are together."""
    import numpy as np
    import pyarrow as pa

    if not table.num_rows:
        return
    if columns is not None:
        for name in columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, pa.float64()))
        table = table.select(list(columns))
    cases = np.asarray(table["case"].to_pylist())
    starts = [0, *(np.flatnonzero(cases[1:] != cases[:-1]) + 1).tolist(), table.num_rows]
    for start, end in itertools.pairwise(starts):
        yield int(cases[start]), table.slice(start, end - start)
