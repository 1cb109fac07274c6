# SPDX-License-Identifier: BSD-3-Clause
"""What a class is promised, and whether a policy kept it.

A promise is a bound on one measure of a class. A scenario states some itself: the reservations of `pss` and the delay
targets of `mlwdf` and its like. Others are given with the comparison, as ``CLASS.MEASURE=VALUE``.

A promise is about the mean of a measure over all seeds that there could be. It is kept if this mean is certainly on
the right side of the bound, judged by `linkweir.sweeps.confidence.limits`, missed if it is certainly on the wrong side,
and otherwise unclear; then `Promise.seeds_needed` says how many seeds would decide. A single seed has no limits: its
value alone is compared with the bound, and `marked` adds that it is one run. A rate that is 1 % below its bound still
counts as kept, because packets at the edges of the time vary. Where nothing was measured, there is no data to judge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir import _native
from linkweir.fault import PlanError
from linkweir.scenarios.typed import Class
from linkweir.sweeps.confidence import Estimate, limits, runs_to_decide
from linkweir.sweeps.measures import MEASURES

KEPT = "kept"
MISSED = "missed"
UNCLEAR = "unclear"
UNKNOWN = "no data"
VERDICTS = (KEPT, MISSED, UNCLEAR, UNKNOWN)
SINGLE = "What is kept or missed is so in the results of a single run; more seeds would give intervals."
"""Said where there is one seed."""
MOST_SEEDS = 100_000
"""Each is a run of every policy on every link."""
_SLACK = 0.01
_TARGETED = ("mlwdf", "exp_rule", "exp_pf")
_QUANTILES = {0.05: "delay_p95", 0.01: "delay_p99", 0.5: "delay_p50"}


@dataclass(frozen=True)
class Promise:
    """A bound on a measure of a class.

    Attributes:
        name: name of the class.
        measure: a key of `MEASURES`.
        bound: in the measure's base unit. A rate should be at least this, anything else at most.
        source: the keys of the scenario it comes from, or empty if it was given with the comparison.
    """

    name: str
    measure: str
    bound: float
    source: str = ""

    @property
    def text(self) -> str:
        """The promise in words."""
        measure = MEASURES[self.measure]
        bound = f"{self.bound * measure.scale:.6g} {measure.unit}"
        return f"{self.name}: {measure.words} {'at least' if measure.more_is_better else 'at most'} {bound}"

    def holds(self, value: float) -> bool:
        """Whether a value, of one run or of a mean, is on the right side of the bound."""
        return value >= self._edge if MEASURES[self.measure].more_is_better else value <= self._edge

    def verdict(self, values: Sequence[float], highest: float = math.inf) -> str:
        """Whether the mean over all seeds keeps the bound, as far as these runs can tell.

        Args:
            values: of the measure, one per run with another seed.
            highest: value that the measure cannot exceed; the lowest is 0.

        >>> Promise("ef", "loss", 0.01).verdict([0.002, 0.0021, 0.0018, 0.0019, 0.002], highest=1.0)
        'kept'
        >>> Promise("ef", "loss", 0.01).verdict([0.0] * 10, highest=1.0)  # a run in ten may lose a tenth
        'unclear'
        """
        if not values:
            return UNKNOWN
        if len(values) == 1:
            return KEPT if self.holds(values[0]) else MISSED
        found = limits(values, lowest=0.0, highest=highest, grain=self._grain(values))
        here = self.holds(found.low), self.holds(found.high)
        return KEPT if all(here) else UNCLEAR if any(here) else MISSED

    def seeds_needed(self, values: Sequence[float], highest: float = math.inf) -> int | None:
        """How many seeds would decide if further ones gave the same mean and spread; None if `MOST_SEEDS` would not.

        >>> Promise("ef", "loss", 0.01).seeds_needed([0.0] * 10, highest=1.0)
        368
        """
        grain = self._grain(values)
        return runs_to_decide(values, self._edge, lowest=0.0, highest=highest, grain=grain, most=MOST_SEEDS)

    @property
    def _edge(self) -> float:
        return self.bound * (1 - _SLACK) if MEASURES[self.measure].more_is_better else self.bound

    def _grain(self, values: Sequence[float]) -> float:
        return MEASURES[self.measure].resolution * abs(math.fsum(values) / len(values))


def marked(text: str, found: Estimate) -> str:
    """A verdict, or the policy it is about, with a mark where it comes from a single run.

    >>> marked("kept", Estimate(1.0, None, 1)), marked("kept", Estimate(1.0, 0.1, 2))
    ('kept (1 seed)', 'kept')
    """
    return f"{text} (1 seed)" if found.count == 1 else text


def given_promise(text: str, names: Sequence[str], with_tcp: Sequence[str]) -> Promise:
    """Reads ``CLASS.MEASURE=VALUE``.

    Args:
        text: the promise.
        names: the classes there are.
        with_tcp: those of them that have a goodput.

    Raises:
        PlanError: it is none, or names a class or a measure that there is not.
    """
    found = re.fullmatch(r"(?P<name>.+)\.(?P<measure>\w+)\s*=\s*(?P<value>.+)", text)
    cure = "write one like af.rate=1.5Mbit, ef.delay_p99=50ms or ef.loss=1%"
    if found is None:
        raise PlanError(f"promise {text or chr(34) * 2}: is not CLASS.MEASURE=VALUE; {cure}")
    name, key, value = found["name"].strip(), found["measure"], found["value"].strip()
    if name not in names:
        raise PlanError(f"promise {text}: there is no class named {name}; there are {', '.join(names)}")
    if key not in MEASURES:
        raise PlanError(f"promise {text}: there is no measure {key}; there are {', '.join(MEASURES)}")
    try:
        bound = _native.quantity(value, MEASURES[key].quantity)
    except ValueError as error:
        raise PlanError(f"promise {text}: {error}; {cure}") from error
    if key == "goodput" and name not in with_tcp:
        raise PlanError(f"promise {text}: class {name} has no TCP flows, and so no goodput; promise its rate")
    if MEASURES[key].quantity == "fraction" and bound > 1:
        raise PlanError(f"promise {text}: is more than everything; for a part of a hundred write {value}%")
    return Promise(name, key, bound)


def promises_of(scenario: Mapping[str, Any], classes: Sequence[Class], nominal_bps: float) -> Iterator[Promise]:
    """The promises that a scenario states itself: reservations, and delay targets.

    Args:
        scenario: as it is written, because defaults promise nothing.
        classes: its classes, checked.
        nominal_bps: the link's nominal rate.
    """
    policy = scenario.get("scheduler", {}).get("policy")
    for entry, checked in zip(scenario.get("class", []), classes, strict=True):
        name, params = checked["name"], checked["params"]
        if policy == "pss" and "low_level" in entry:
            if "rate" in entry:
                yield Promise(name, "rate", params["rate"], "rate")
            elif "share" in entry:
                yield Promise(name, "rate", params["share"] * nominal_bps, "share")
        if policy in _TARGETED and "target" in entry:
            yield from _target(name, params["target"], params["delta"])


def _target(name: str, bound: float, part: float) -> Iterator[Promise]:
    if bound and part in _QUANTILES:
        yield Promise(name, _QUANTILES[part], bound, "target and delta")
