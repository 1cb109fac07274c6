# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a policy in a case, and which policies dominate which.

Every figure has a direction in which it is better. There is no sum of them: a policy dominates another one in a case if
none of its figures is worse as shown and one is better, certainly so over the seeds. Percentiles are of packets that
left the queue. If more were dropped than a percentile leaves out, it is only a lower bound for all packets, and counts
as the worst; so does a figure that a policy lacks and others have in the same case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkweir import delays, quality
from linkweir.sweeps.confidence import estimate, exceeds
from linkweir.sweeps.measures import BUCKET, Measure
from linkweir.yardstick.traffic import CODEC, PROBE, RATED, RESERVED, URGENT

PLAYOUT_S = 0.06
"""Length of the play-out buffer behind which the call is rated."""

FIGURES = {
    "owed": Measure("owed_bits", "owed", "kbit", 1e-3, 0, "bits"),
    "urgent_lost": Measure("urgent_lost", "urgent lost", "%", 100.0, 1, "fraction"),
    "urgent_p99": Measure("urgent_p99_s", "urgent p99", "ms", 1e3, 1, "time", resolution=BUCKET),
    "urgent_p999": Measure("urgent_p999_s", "urgent p99.9", "ms", 1e3, 1, "time", resolution=BUCKET),
    "after_fade": Measure("after_fade_p99_s", "after fade p99", "ms", 1e3, 1, "time", resolution=BUCKET),
    "used": Measure("used", "used", "%", 100.0, 1, "fraction", more_is_better=True),
    "fairness": Measure("fairness", "fairness", "", 1.0, 2, "number", more_is_better=True),
    "mos": Measure("mos", "MOS", "", 1.0, 2, "number", more_is_better=True),
    "frozen": Measure("frozen_s", "film frozen", "s", 1.0, 1, "time"),
}
"""The figures in the order of the tables."""
_QUANTILES = {"urgent_p99": ("", 0.99), "urgent_p999": ("", 0.999), "after_fade": (PROBE, 0.99)}
"""Percentiles of the urgent class: the flow, if not of the class, and which."""


@dataclass(frozen=True)
class Found:
    """The figures of one policy in one case.

    Attributes:
        values: of all seeds together; a figure that the case does not have is missing.
        runs: of each seed, where a run alone has the figure.
        exceeded: percentiles that are higher over all packets, because more were dropped than they leave out.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    runs: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    exceeded: frozenset[str] = frozenset()

    def shown(self, key: str) -> str:
        """A figure as tables show it.

        >>> Found({"urgent_p99": 0.0043}, exceeded=frozenset({"urgent_p99"})).shown("urgent_p99")
        '> 4.3'
        """
        if key not in self.values:
            return "lost" if key in self.exceeded else "-"
        return f"{'> ' if key in self.exceeded else ''}{FIGURES[key].shown(self.values[key])}"

    def rank(self, key: str) -> float:
        """A figure as shown, to compare it with that of another policy; infinitely bad if it is missing or exceeded."""
        about = FIGURES[key]
        if key not in self.values or key in self.exceeded:
            return -math.inf if about.more_is_better else math.inf
        return round(self.values[key] * about.scale, about.digits)


def figures(rows: Sequence[Mapping[str, Any]], spread: Sequence[delays.Distribution], promised: Promised) -> Found:
    """The figures of an entry.

    Args:
        rows: of the data set of the sweep, of this entry.
        spread: its distributions of delays, all seeds together.
        promised: what the case promises.
    """
    by_seed: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_seed.setdefault(row["seed"], []).append(row)
    runs: dict[str, dict[int, float]] = {}
    for key, of_run in _OF_RUNS.items():
        found = {seed: of_run(run, promised) for seed, run in by_seed.items()}
        known = {seed: value for seed, value in found.items() if value is not None}
        if known:
            runs[key] = known
    values = {key: float(estimate(found.values()).mean or 0.0) for key, found in runs.items()}
    known_quantiles = _of_distributions({(one.of, one.flow, one.kind): one for one in spread})
    values |= known_quantiles
    for quantile in _QUANTILES.keys() - known_quantiles.keys():
        # The laboratory has no distribution for a flow, and its percentiles of one are of the whole way.
        values.pop(quantile, None)
        runs.pop(quantile, None)
    exceeded = frozenset(key for key, (flow, q) in _QUANTILES.items() if (_dropped(rows, flow) or 0.0) > 1.0 - q)
    call = _call(rows, spread)
    if call is not None:
        values["mos"] = call
    return Found({key: values[key] for key in FIGURES if key in values}, runs, exceeded)


@dataclass(frozen=True)
class Promised:
    """What a case promises: to the reserved class a rate, to TCP flows equal shares.

    Attributes:
        bps: rate of the reserved class.
        window_s: time that is counted.
        alike: flows that should get equal shares.
    """

    bps: float
    window_s: float
    alike: frozenset[str] = frozenset()


def wanted_bits(row: Mapping[str, Any], promised: Promised) -> float:
    """What the reserved class should have been sent: its promise, or all that arrived if that is less."""
    return float(min(promised.bps * promised.window_s, 8.0 * row["arrived_bytes"]))


def reserved_row(run: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The row of the reserved class of a run."""
    return next((row for row in run if row["scope"] == "class" and row["class"] == RESERVED), None)


def _owed(run: Sequence[Mapping[str, Any]], promised: Promised) -> float | None:
    row = reserved_row(run)
    return None if row is None else max(0.0, wanted_bits(row, promised) - 8.0 * row["sent_bytes"])


def _dropped(rows: Sequence[Mapping[str, Any]], flow: str) -> float | None:
    """The part of the packets of the urgent class, or of a flow of it, that was dropped from the queue; None without
    packets. Those that still wait at the end of a run are not counted.
    """
    scope = {"scope": "flow", "flow": flow} if flow else {"scope": "class", "class": URGENT}
    found = [row for row in rows if all(row[key] == value for key, value in scope.items())]
    if any(row["dropped_limit_pkts"] is None for row in found):
        return None  # of a flow, the laboratory does not know it
    arrived = sum(row["arrived_pkts"] for row in found)
    dropped = sum(row[f"dropped_{why}_pkts"] for row in found for why in ("limit", "policy", "age"))
    return min(dropped / arrived, 1.0) if arrived else None


def _urgent_lost(run: Sequence[Mapping[str, Any]], _: Promised) -> float | None:
    return _dropped(run, "")


def _urgent(run: Sequence[Mapping[str, Any]], _: Promised) -> float | None:
    return _first(run, "delay_p99_s", scope="class", **{"class": URGENT})


def _after_fade(run: Sequence[Mapping[str, Any]], _: Promised) -> float | None:
    return _first(run, "delay_p99_s", scope="flow", flow=PROBE)


def _used(run: Sequence[Mapping[str, Any]], _: Promised) -> float | None:
    used, capacity = (_first(run, key, scope="link") for key in ("used_bps", "capacity_bps"))
    return used / capacity if used is not None and capacity else None


def _fairness(run: Sequence[Mapping[str, Any]], promised: Promised) -> float | None:
    shares = [row["goodput_bps"] for row in run if row["scope"] == "flow" and row["flow"] in promised.alike]
    return quality.jain(shares) if len(shares) > 1 else None


def _frozen(run: Sequence[Mapping[str, Any]], _: Promised) -> float | None:
    times = [row["stalled_s"] for row in run if row.get("stalled_s") is not None]
    return math.fsum(times) if times else None


_OF_RUNS: dict[str, Callable[[Sequence[Mapping[str, Any]], Promised], float | None]] = {
    "owed": _owed,
    "urgent_lost": _urgent_lost,
    "urgent_p99": _urgent,
    "after_fade": _after_fade,
    "used": _used,
    "fairness": _fairness,
    "frozen": _frozen,
}


def _first(run: Sequence[Mapping[str, Any]], column: str, **where: str) -> float | None:
    for row in run:
        if all(row[key] == value for key, value in where.items()):
            value = row.get(column)
            return None if value is None or math.isnan(value) else float(value)
    return None


def _of_distributions(spread: Mapping[tuple[str, str, str], delays.Distribution]) -> dict[str, float]:
    """Percentiles of the queueing delay over the packets of all seeds that left."""
    known = {key: (spread.get((URGENT, flow, "queueing")), q) for key, (flow, q) in _QUANTILES.items()}
    return {key: found.quantile(q) for key, (found, q) in known.items() if found is not None}


def _call(rows: Sequence[Mapping[str, Any]], spread: Sequence[delays.Distribution]) -> float | None:
    """The mean opinion score of a call behind a fixed play-out buffer, over all seeds; None if it is not known."""
    flows = [row for row in rows if row["scope"] == "flow" and row["flow"] == RATED]
    sent = sum(row["arrived_pkts"] for row in flows)
    if not sent:
        return None
    heard = next((one for one in spread if one.flow == RATED and one.kind == "one-way"), None)
    if heard is None:
        # A kernel counts no drops of the limit, and its calls have no codec.
        of_a_kernel = any(row["dropped_limit_pkts"] is None for row in flows)
        return None if of_a_kernel or any(row["delivered_pkts"] for row in flows) else 1.0
    lost = min(max(0.0, 1.0 - sum(row["delivered_pkts"] for row in flows) / sent), 1.0)
    played = quality.fixed_buffer(heard.upper_s, PLAYOUT_S, counts=heard.packets, lost=lost)
    return quality.e_model(played.delay_s + quality.CODECS[CODEC].delay_s, played.loss, CODEC).mos


# --- Dominance ------------------------------------------------------------------------------------------------------


def dominating(found: Mapping[str, Found]) -> dict[str, list[str]]:
    """For each policy those that dominate it.

    Args:
        found: the figures of each policy in one case.
    """
    return {one: [other for other in found if other != one and _dominates(found[other], found[one])] for one in found}


def _dominates(one: Found, other: Found) -> bool:
    if not one.values:
        return False
    better = {key: _compared(key, one, other) for key in FIGURES if key in one.values or key in other.values}
    return min(better.values()) >= 0 and any(sign > 0 and _certain(key, one, other) for key, sign in better.items())


def _compared(key: str, one: Found, other: Found) -> int:
    """1 if the first is better as shown, -1 if it is worse."""
    mine, theirs = one.rank(key), other.rank(key)
    sign = 1 if FIGURES[key].more_is_better else -1
    return sign * ((mine > theirs) - (mine < theirs))


def _certain(key: str, one: Found, other: Found) -> bool:
    """Whether the first is better over all seeds that there could be; of a figure of all seeds together nothing is."""
    mine, theirs = one.runs.get(key, {}), other.runs.get(key, {})
    if not theirs and key not in other.values:
        return len(mine) > 1
    seeds = sorted(set(mine) & set(theirs))
    if len(seeds) < 2:
        return False
    about = FIGURES[key]
    sign = 1.0 if about.more_is_better else -1.0
    grain = about.resolution * max(abs(one.values[key]), abs(other.values[key]))
    return exceeds([sign * mine[seed] for seed in seeds], [sign * theirs[seed] for seed in seeds], grain=grain)
