# SPDX-License-Identifier: BSD-3-Clause
"""Means over independent runs with Student's 95 % confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

LEVEL = 0.95
"""Confidence of every interval that is shown."""


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
