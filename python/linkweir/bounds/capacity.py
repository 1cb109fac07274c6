# SPDX-License-Identifier: BSD-3-Clause
"""The least that a link can send in any interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from linkweir.bounds.arrivals import exact
from linkweir.bounds.curve import Curve, rate_latency
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.typed import Cosine, Lines, Steps

FINEST_NS = 1_000_000
"""Shortest step of a smooth capacity."""
REPORT_NS = 10_000_000
"""From one report of a smooth or recorded capacity to the next; crates/linkweir-sim/src/engine/reported.rs."""
REPORTED_NS = 10 * REPORT_NS
"""The time over which opportunities become a reported rate."""
Floats = np.ndarray[Any, np.dtype[np.float64]]

MOST_BINS = 1000
"""More bins than this are joined, on the safe side."""


def worst_case(text: str, rate_bps: Fraction) -> Curve:
    """At least a part of the rate in any window, such as ``60%/10s``; the rest of the window may be without capacity.

    >>> worst_case("60%/10s", Fraction(1000)).first(1000)
    Fraction(5, 1)
    """
    part, window = part_and_window(text)
    outage = window * (1 - part)
    if outage == 0:
        return rate_latency(rate_bps, 0)
    segments: list[tuple[Fraction, Fraction, Fraction]] = []
    for k in range(64):
        segments += [(k * window, k * part * window * rate_bps, Fraction(0))]
        segments += [(k * window + outage, k * part * window * rate_bps, rate_bps)]
    # Afterwards the straight line below the steps.
    start = 64 * window
    segments += [(start, 64 * part * window * rate_bps, Fraction(0))]
    segments += [(start + outage, 64 * part * window * rate_bps, part * rate_bps)]
    return Curve.of(segments)


def part_and_window(text: str) -> tuple[Fraction, Fraction]:
    """What PART/WINDOW means: a part of 1, and seconds."""
    from linkweir import _native

    try:
        part_text, window_text = text.split("/")
        part = Fraction(str(_native.quantity(part_text, "fraction")))
        window = Fraction(str(_native.quantity(window_text, "time")))
    except ValueError:
        raise OptionError("--worst", text, "write it as PART/WINDOW, such as 60%/10s") from None
    if not 0 < part <= 1 or window <= 0:
        raise OptionError("--worst", text, "the part is above 0% up to 100%, the window above 0s")
    return part, window


def of_steps(starts_ns: Sequence[int], rates_bps: Sequence[float], end_ns: int) -> Curve:
    """The least capacity of any window of a rate in steps that repeats after `end_ns`.

    Exact at multiples of the greatest common divisor of the steps' lengths, and below the true value between them by
    linear interpolation: between two multiples the minimum over windows is concave. With more than `MOST_BINS` bins,
    bins are joined; a window then counts only the joined bins that it contains.
    """
    if len(rates_bps) == 1:
        return rate_latency(Fraction(rates_bps[0]), 0)
    width = math.gcd(*starts_ns, end_ns)
    joined = -(-end_ns // (width * MOST_BINS))
    width *= joined
    bins = -(-end_ns // width)
    edges = np.arange(bins + 1, dtype=np.int64) * width
    return _windows(_cumulative(starts_ns, rates_bps, end_ns, edges), width, exact=joined == 1)


@dataclass(frozen=True)
class Smooth:
    """A rate of straight lines between points, or a cosine: times in ns, rates in bit/s."""

    lines: tuple[tuple[float, float], ...] = ()
    mean: float = 0.0
    amplitude: float = 0.0
    period_ns: float = 1.0
    phase: float = 0.0

    @staticmethod
    def of(rate: float | Cosine | Steps | Lines | None) -> Smooth | None:
        """The rate of a checked scenario, if it is smooth."""
        if rate is None or isinstance(rate, float) or "steps" in rate:
            return None
        if "lines" in rate:
            return Smooth(lines=tuple((float(exact(at) * 10**9), bps) for at, bps in rate["lines"]))
        period_ns = float(exact(rate["period_s"]) * 10**9)
        return Smooth(mean=rate["mean"], amplitude=rate["amplitude"], period_ns=period_ns, phase=rate["phase"])

    def at(self, times_ns: Floats) -> Floats:
        """The rate at these times."""
        if self.lines:
            return np.interp(times_ns, [t for t, _ in self.lines], [v for _, v in self.lines])
        angles = 2 * math.pi * times_ns / self.period_ns + self.phase
        return self.mean * (1 + self.amplitude * np.cos(angles))

    def most(self) -> float:
        """The highest rate."""
        return max(rate for _, rate in self.lines) if self.lines else self.mean * (1 + abs(self.amplitude))

    def least_steps(self, end_ns: int) -> tuple[list[int], list[float]]:
        """Steps that lie nowhere above the rate: each has the least rate of its time, rounded down to a whole bit/s."""
        width_ns = max(FINEST_NS, -(-end_ns // MOST_BINS))
        edges = np.arange(-(-end_ns // width_ns) + 1, dtype=np.float64) * width_ns
        times = np.unique(np.concatenate([edges, self._lowest(edges[-1])]))
        values = self.at(times)
        first = np.searchsorted(times, edges)
        least = np.minimum(np.minimum.reduceat(values, first[:-1]), values[first[1:]])
        starts = [int(at) for at in edges[:-1]]
        return starts, [max(float(math.floor(rate)), 0.0) for rate in least]

    def _lowest(self, end_ns: float) -> list[float]:
        """Times at which the rate may be lower than before and after."""
        if self.lines:
            return [at for at, _ in self.lines if at <= end_ns]
        trough = (math.pi - self.phase) / (2 * math.pi) % 1 * self.period_ns
        return [trough + turn * self.period_ns for turn in range(int((end_ns - trough) // self.period_ns) + 1)]

    def reports(self, end_ns: int) -> list[float]:
        """What a scheduler that follows the capacity is told."""
        return [float(rate) for rate in self.at(np.arange(0, max(end_ns, 1), REPORT_NS, dtype=np.float64))]


def reports_of_opportunities(at_ns: Sequence[int], bytes_each: int, end_ns: int) -> list[float]:
    """What a scheduler that follows the capacity may be told: the means over the last 100 ms, with and without an
    opportunity at their very edges.
    """
    at = np.asarray(at_ns, dtype=np.int64)
    ends = np.arange(REPORTED_NS, max(end_ns, REPORTED_NS) + 1, REPORT_NS, dtype=np.int64)
    most = np.searchsorted(at, ends, side="right") - np.searchsorted(at, ends - REPORTED_NS, side="left")
    least = np.searchsorted(at, ends, side="left") - np.searchsorted(at, ends - REPORTED_NS, side="right")
    rate_each = 8e9 * bytes_each / REPORTED_NS
    return [float(n) * rate_each for n in {*most.tolist(), *least.tolist()}]


def of_opportunities(at_ns: Sequence[int], bytes_each: int, end_ns: int) -> Curve:
    """The least capacity of any window of opportunities that repeat after `end_ns`."""
    width = max(1_000_000, -(-end_ns // MOST_BINS))
    bins = -(-end_ns // width)
    edges = np.arange(bins + 1, dtype=np.int64) * width
    counts = np.searchsorted(np.asarray(at_ns, dtype=np.int64), np.minimum(edges, end_ns), side="right")
    bits = [Fraction(8 * bytes_each * int(n)) for n in counts]
    return _windows(bits, width, exact=False)


def _cumulative(
    starts_ns: Sequence[int], rates: Sequence[float], end_ns: int, edges: np.ndarray[Any, np.dtype[np.int64]]
) -> list[Fraction]:
    sums: list[Fraction] = []
    total, index = Fraction(0), 0
    ends = [*starts_ns[1:], end_ns]
    at = 0
    for edge in edges:
        until = min(int(edge), end_ns)
        while at < until:
            step = min(ends[index], until)
            total += Fraction(rates[index]) * (step - at) / 10**9
            at = step
            if at >= ends[index] and index + 1 < len(rates):
                index += 1
        sums.append(total)
    return sums


def _windows(sums: list[Fraction], width_ns: int, *, exact: bool) -> Curve:
    bins = len(sums) - 1
    whole = [int(s) for s in sums]  # rounded down by less than a bit; a difference errs by less than one bit
    slack = 0 if all(Fraction(w) == s for w, s in zip(whole, sums, strict=True)) else 1
    around = np.array(whole + [whole[-1] + w for w in whole[1:]], dtype=np.int64)
    least = [0]
    for lag in range(1, bins + 1):
        least.append(max(int((around[lag : lag + bins] - around[:bins]).min()) - slack, least[-1]))
    width = Fraction(width_ns, 10**9)
    delay = Fraction(0) if exact else width
    points = [(k * width + delay, Fraction(v)) for k, v in enumerate(least)]
    if exact:
        segments = [(a[0], a[1], (b[1] - a[1]) / width) for a, b in pairwise(points)]
    else:  # a window of k + 1 bins may contain k whole ones only
        segments = [(Fraction(0), Fraction(0), Fraction(0)), *((t, v, Fraction(0)) for t, v in points[1:])]
        segments = _continuous(segments)
    # Windows longer than a period: the curve plus whole periods lies below; a line below that follows.
    period = bins * width
    mean = Fraction(least[-1]) / period
    below = min(v - mean * (t if exact else t + width) for t, v in points)
    below = min(below, -mean * delay)
    last = points[-1][0]
    value = max(points[-1][1], Fraction(0))
    # flat until the line through the lowest point catches up
    meets = (value - below) / mean if mean > 0 else None
    if meets is None:
        return Curve.of([*segments, (last, value, 0)])
    meets = max(meets, last)
    return Curve.of(
        [*segments, (last, value, 0), (meets, value, mean)] if meets > last else [*segments, (last, value, mean)]
    )


def _continuous(steps: list[tuple[Fraction, Fraction, Fraction]]) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Straight lines below steps, through the lower corners: one step later."""
    segments: list[tuple[Fraction, Fraction, Fraction]] = []
    for here, following in pairwise(steps):
        before = segments[-1] if segments else (Fraction(0), Fraction(0), Fraction(0))
        value = before[1] + before[2] * (here[0] - before[0])
        segments.append((here[0], value, (here[1] - value) / (following[0] - here[0])))
    return segments
