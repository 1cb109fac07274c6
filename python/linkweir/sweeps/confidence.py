# SPDX-License-Identifier: BSD-3-Clause
"""How well runs with different seeds know a mean: intervals to look at, and limits to judge by.

`estimate` gives Student's 95 % interval, which tables and figures show. It is exact for values that are about normal.
Losses and delays are not: they are skewed, and a loss may be 0 in all runs but a few. There Student's interval misses
the mean far more often than it says, and always to the same side.

So verdicts use `limits`. No method bounds the mean of any distribution whatever from a few runs (Bahadur and Savage
1956). These limits are Student's, widened by what a skewness costs, which falls with the root of the number of runs
(Johnson 1978): each is passed by the true mean in at most 2.5 % of blocks of runs if the values are as skewed as a
log-normal distribution whose logarithm has a standard deviation of 1.5 (its skewness is 33), and far more seldom if
they are about normal. Values that several runs share, such as a loss of 0, tell nothing of the spread of the others.
So the other runs alone decide how wide a limit is. If all runs share one value, the limit follows from the range of
the measure: runs with another value are at most 1 - 0.025^(1/n) of all, and these may have any value of the range.
`make coverage` measures how often the limits fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

LEVEL = 0.95
"""Confidence of every interval that is shown."""

ERROR = 0.025
"""How often a limit may be passed by the true mean, on either side."""

_SKEWED = 20.0
"""Widens Student's limits by this, divided by the root of the number of runs."""


@dataclass(frozen=True)
class Estimate:
    """A mean over runs.

    Attributes:
        mean: of the values; None if there is none.
        half: half the width of its confidence interval; None with fewer than two values.
        count: how many values there are.
    """

    mean: float | None
    half: float | None
    count: int

    @property
    def low(self) -> float | None:
        """Lower end of the interval; the mean itself where there is no interval."""
        return None if self.mean is None else self.mean - (self.half or 0.0)

    @property
    def high(self) -> float | None:
        """Upper end of the interval; the mean itself where there is no interval."""
        return None if self.mean is None else self.mean + (self.half or 0.0)


def estimate(values: Iterable[float | None], level: float = LEVEL) -> Estimate:
    """The mean of the values, and how well it is known if they are independent and about normal.

    Args:
        values: one per run; None and NaN, where a run has no such value, are left out.
        level: confidence.

    >>> estimate([1.0, 2.0, 3.0, None])
    Estimate(mean=2.0, half=2.484137..., count=3)
    """
    known = [float(value) for value in values if value is not None and not math.isnan(value)]
    count = len(known)
    if not count:
        return Estimate(None, None, 0)
    mean = math.fsum(known) / count
    if count == 1:
        return Estimate(mean, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (count - 1))
    return Estimate(mean, student_t(level, count - 1) * deviation / math.sqrt(count), count)


@dataclass(frozen=True)
class Limits:
    """Between which values a mean is, with an error of at most `ERROR` on either side.

    Attributes:
        low: the lower limit.
        high: the upper limit; infinite if nothing is known about it.
    """

    low: float
    high: float


def limits(
    values: Sequence[float], *, lowest: float = -math.inf, highest: float = math.inf, grain: float = 0.0
) -> Limits:
    """Cautious limits of the mean of skewed values, of which many may be equal; see the head of this module.

    Args:
        values: one per run, at least two.
        lowest, highest: the range of the measure.
        grain: width of the steps in which values are known, 0 if they are exact. No limit is closer to the mean.

    >>> limits([0.0342, 0.0340, 0.0345, 0.0343, 0.0341], lowest=0.0, highest=1.0)
    Limits(low=0.0318..., high=0.0365...)
    >>> limits([0.0] * 10, lowest=0.0, highest=1.0)
    Limits(low=0.0, high=0.308...)
    """
    low = -_upper_limit([-value for value in values], -lowest, grain)
    return Limits(low + 0.0, _upper_limit(values, highest, grain))  # 0.0, not -0.0


def exceeds(greater: Sequence[float], less: Sequence[float], *, grain: float = 0.0) -> bool:
    """Whether the mean of the first values is certainly above that of the second, pair by pair.

    >>> exceeds([5.1, 5.0, 5.2, 5.1, 5.0], [3.1, 3.0, 3.1, 3.2, 3.1])
    True
    >>> exceeds([5.1, 1.0, 5.2, 1.1, 5.0], [3.1, 3.0, 3.1, 3.2, 3.1])
    False
    """
    return limits([a - b for a, b in zip(greater, less, strict=True)], grain=grain).low > 0.0


def runs_to_decide(
    values: Sequence[float],
    bound: float,
    *,
    lowest: float = -math.inf,
    highest: float = math.inf,
    grain: float = 0.0,
    most: int,
) -> int | None:
    """How many runs would put the bound outside the limits, if mean, spread and ties stay as they are.

    Args:
        values: one per run, at least two.
        bound: what the mean is compared with.
        lowest, highest, grain: as for `limits`.
        most: more runs than this are not considered.

    Returns:
        The number of runs; None if it is above `most`, or if no number would do.

    >>> runs_to_decide([0.0] * 10, 0.01, lowest=0.0, highest=1.0, most=100_000)
    368
    """
    count, mean = len(values), math.fsum(values) / len(values)
    if mean > bound:
        return runs_to_decide([-value for value in values], -bound, highest=-lowest, grain=grain, most=most)

    def decided(runs: int) -> bool:
        return mean + _reach(values, mean, highest, grain, runs) <= bound

    low, high = count, most
    if not decided(most):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def _upper_limit(values: Sequence[float], highest: float, grain: float) -> float:
    mean = math.fsum(values) / len(values)
    return max(mean, min(highest, mean + _reach(values, mean, highest, grain, len(values))))


def _reach(values: Sequence[float], mean: float, highest: float, grain: float, runs: int) -> float:
    """How far above the mean the upper limit is, with `runs` runs like these."""
    count, least = len(values), min(values)
    shared = not grain or least == 0.0  # in steps, other equal values may still differ
    equal = sum(value == least for value in values) if shared else 1
    if equal == count:
        rare = -math.expm1(math.log(ERROR) / runs)
        return (highest - mean) * rare if highest > mean else 0.0
    apart = 1 + (count - equal) * runs // count if equal > 1 else runs
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return max(grain, _deviations(max(apart, 2)) * math.hypot(spread, grain / math.sqrt(12.0)))


def _deviations(runs: int) -> float:
    """How many standard deviations of the values a limit is away from the mean."""
    t = student_t(LEVEL, min(runs - 1, 1000))  # changes by 0.1 % beyond
    return t * (1.0 + _SKEWED / math.sqrt(runs)) / math.sqrt(runs)


@lru_cache(maxsize=256)
def student_t(level: float, degrees: int) -> float:
    """The t for which a value of Student's distribution lies within -t .. t with the probability `level`.

    Args:
        level: probability, above 0 and below 1.
        degrees: degrees of freedom, at least 1.

    Raises:
        ValueError: an argument outside its range.

    >>> [round(student_t(0.95, degrees), 3) for degrees in (1, 4, 9, 99)]
    [12.706, 2.776, 2.262, 1.984]
    """
    if not 0.0 < level < 1.0 or degrees < 1:
        raise ValueError(f"student_t({level!r}, {degrees!r}): needs 0 < level < 1 and degrees >= 1")
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """The probability of -t .. t (Abramowitz and Stegun 1964, equations 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    terms = []
    for n in range(odd, degrees - 1, 2):
        terms.append(term)
        term *= cosine * cosine * (n + 1) / (n + 2)
    total = sine * math.fsum(terms)
    return 2.0 / math.pi * (angle + total) if odd else total
