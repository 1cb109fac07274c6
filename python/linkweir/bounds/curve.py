# SPDX-License-Identifier: BSD-3-Clause
"""Piecewise linear curves in exact fractions, and the operations of network calculus on them.

A curve gives bits against an interval's length in seconds. It never decreases; it may jump upwards. At a jump the curve
has the upper value: an arrival curve counts closed intervals, so its value at 0 is the burst. For a service curve the
lower value counts, which is the limit from the left; delays do not depend on the choice, and `vertical` uses the limit.

Le Boudec and Thiran 2001, chapters 1 and 3, define the operations.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

Number = Fraction | int
Point = tuple[Fraction, Fraction, Fraction]
"""Start of a segment in seconds, value there in bits, slope in bit/s."""


@dataclass(frozen=True)
class Curve:
    """Segments in order of their starts, the first at 0; the last one never ends."""

    segments: tuple[Point, ...]

    @staticmethod
    def of(segments: Iterable[tuple[Number, Number, Number]]) -> Curve:
        """A curve of segments (start, value, slope); segments that continue the one before are joined."""
        kept: list[Point] = []
        for start, value, slope in segments:
            point = (_exact(start), _exact(value), _exact(slope))
            if kept and point[2] == kept[-1][2] and point[1] == value_at(kept[-1], point[0]):
                continue
            kept.append(point)
        if not kept or kept[0][0] != 0:
            raise ValueError("a curve begins at 0")
        return Curve(tuple(kept))

    def __call__(self, t: Number) -> Fraction:
        """Value at t, after a jump there."""
        return value_at(self._segment(t), t)

    def before(self, t: Number) -> Fraction:
        """Limit from the left at t > 0; at 0 it is 0."""
        if t <= 0:
            return Fraction(0)
        index = bisect_right(self.segments, t, key=lambda s: s[0]) - 1
        if self.segments[index][0] == t:
            index -= 1
        return value_at(self.segments[index], t)

    @property
    def starts(self) -> list[Fraction]:
        """Starts of the segments."""
        return [start for start, _, _ in self.segments]

    @property
    def rate(self) -> Fraction:
        """Slope of the last segment, bit/s."""
        return self.segments[-1][2]

    def first(self, bits: Number) -> Fraction | None:
        """The first instant at which the curve reaches this many bits; None if it never does."""
        return self._reaches(bits, bisect_left(self.segments, bits, key=lambda s: s[1]))

    def _reaches(self, bits: Number, index: int) -> Fraction | None:
        """When it has this many bits: in the segment before `index`, or at the start of that."""
        if index > 0:
            last = self.segments[index - 1]
            if last[2].numerator > 0:
                t = _when(last, bits)
                if index == len(self.segments) or _less(t, self.segments[index][0]):
                    return t
        return self.segments[index][0] if index < len(self.segments) else None

    def _sides(self) -> Iterator[Fraction]:
        """The values before and at each start, which never fall."""
        last = None
        for segment in self.segments:
            yield Fraction(0) if last is None else value_at(last, segment[0])
            yield segment[1]
            last = segment

    def _segment(self, t: Number) -> Point:
        return self.segments[bisect_right(self.segments, t, key=lambda s: s[0]) - 1]


# Most of the time of a bound passes in the next four. Each makes one fraction, or none, from whole numbers.


def _exact(number: Number) -> Fraction:
    return number if type(number) is Fraction else Fraction(number)


def _less(one: Number, other: Number) -> bool:
    """Whether one is less than the other."""
    (a, b), (c, d) = one.as_integer_ratio(), other.as_integer_ratio()
    return a * d < c * b


def value_at(segment: Point, t: Number) -> Fraction:
    """The value of a segment: value + slope * (t - start)."""
    start, value, slope = segment
    if not slope:
        return value
    (a, b), (c, d) = t.as_integer_ratio(), start.as_integer_ratio()
    since = a * d - c * b
    if not since:
        return value
    (e, f), (g, h) = slope.as_integer_ratio(), value.as_integer_ratio()
    below = b * d * f
    return Fraction(g * below + e * since * h, h * below)


def _when(segment: Point, bits: Number) -> Fraction:
    """When a segment that rises has this value: start + (bits - value) / slope."""
    start, value, slope = segment
    (a, b), (c, d) = bits.as_integer_ratio(), value.as_integer_ratio()
    (e, f), (g, h) = slope.as_integer_ratio(), start.as_integer_ratio()
    below = b * d * e
    return Fraction(g * below + (a * d - c * b) * f * h, h * below)


def token_bucket(burst_bits: Number, rate_bps: Number) -> Curve:
    """At most `burst_bits` at once and `rate_bps` in the long run.

    >>> token_bucket(12000, 10**6)(Fraction(1, 1000))
    Fraction(13000, 1)
    """
    return Curve.of([(0, burst_bits, rate_bps)])


def rate_latency(rate_bps: Number, latency_s: Number) -> Curve:
    """Nothing for `latency_s`, then `rate_bps`.

    >>> rate_latency(10**6, Fraction(1, 100)).first(5000)
    Fraction(3, 200)
    """
    if latency_s <= 0:
        return Curve.of([(0, 0, rate_bps)])
    return Curve.of([(0, 0, 0), (latency_s, 0, rate_bps)])


ZERO = token_bucket(0, 0)


def add(curves: Sequence[Curve]) -> Curve:
    """Sum."""
    starts = sorted({start for curve in curves for start in curve.starts} | {Fraction(0)})
    return Curve.of(
        (t, sum((c(t) for c in curves), Fraction(0)), sum((c._segment(t)[2] for c in curves), Fraction(0)))
        for t in starts
    )


def minimum(one: Curve, other: Curve) -> Curve:
    """The lower of two curves at each point."""
    return _lowest(one, other, lambda a, b: a <= b)


def maximum(one: Curve, other: Curve) -> Curve:
    """The higher of two curves at each point."""
    return _lowest(one, other, lambda a, b: a >= b)


def _lowest(one: Curve, other: Curve, better: Callable[[Fraction, Fraction], bool]) -> Curve:
    starts = set(one.starts) | set(other.starts)
    ordered = sorted(starts)
    for t, until in zip(ordered, [*ordered[1:], None], strict=True):
        slope = one._segment(t)[2] - other._segment(t)[2]
        if slope != 0:
            crossing = t + (other(t) - one(t)) / slope
            if crossing > t and (until is None or crossing < until):
                starts.add(crossing)
    segments = []
    for t in sorted(starts):
        a, b = one._segment(t), other._segment(t)
        if value_at(a, t) == value_at(b, t):
            chosen = a if better(a[2], b[2]) else b
        else:
            chosen = a if better(value_at(a, t), value_at(b, t)) else b
        segments.append((t, value_at(chosen, t), chosen[2]))
    return Curve.of(segments)


def residual(service: Curve, taken: Sequence[Curve], blocking_bits: Number = 0) -> Curve:
    """What a service leaves after arrivals that go first and a blocking: the running maximum of the difference.

    `service` must be continuous.

    >>> residual(rate_latency(10, 0), [token_bucket(5, 4)], 1).segments[-1]
    (Fraction(1, 1), Fraction(0, 1), Fraction(6, 1))
    """
    minus = add([*taken, token_bucket(blocking_bits, 0)])
    starts = sorted(set(service.starts) | set(minus.starts))
    best = Fraction(0)
    segments: list[tuple[Fraction, Fraction, Fraction]] = []
    for t, until in zip(starts, [*starts[1:], None], strict=True):
        value = service(t) - minus(t)
        slope = service._segment(t)[2] - minus._segment(t)[2]
        if value >= best and slope > 0:
            segments.append((t, value, slope))
        else:
            segments.append((t, max(best, value), Fraction(0)))
            reached = t + (best - value) / slope if slope > 0 else None
            if reached is not None and (until is None or reached < until):
                segments.append((reached, best, slope))
        best = max(best, value)
        if until is not None and slope > 0:
            best = max(best, value + slope * (until - t))
    return Curve.of(segments)


def horizontal(arrivals: Curve, service: Curve) -> Fraction | None:
    """Longest horizontal distance from the arrivals to the service: the delay, seconds; None where it has no bound.

    >>> horizontal(token_bucket(12000, 10**6), rate_latency(2 * 10**6, Fraction(1, 100)))
    Fraction(2, 125)
    """
    if arrivals.rate > service.rate:
        return None
    reaches, leaves = _Forward(service), _Forward(service)
    worst = Fraction(0)
    for t, before, after, slope in _looked_at(arrivals, service):
        for bits in (after,) if after == before else (before, after):
            reached = reaches.first(bits)
            if reached is None:
                return None
            worst = max(worst, reached - t)
        # bits just above this level: the service may stay at the level for a while
        if slope.numerator > 0:
            left = leaves.leaves(after)
            if left is None:
                return None
            worst = max(worst, left - t)
    return worst


def _looked_at(arrivals: Curve, service: Curve) -> Iterator[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Where the delay may be longest: instants, the arrivals before and at each, and their slope from there."""
    reaches = _Forward(arrivals)
    firsts = [t for bits in service._sides() if (t := reaches.first(bits)) is not None]
    index = 0
    last = None
    for t in sorted(arrivals.starts + firsts):
        if t == last:
            continue
        last = t
        while index + 1 < len(arrivals.segments) and arrivals.segments[index + 1][0] <= t:
            index += 1
        segment = arrivals.segments[index]
        after = value_at(segment, t)
        if t == 0:
            yield t, Fraction(0), after, segment[2]
        elif segment[0] == t:
            yield t, value_at(arrivals.segments[index - 1], t), after, segment[2]
        else:
            yield t, after, after, segment[2]


class _Forward:
    """Answers about a curve for numbers of bits that never fall, so that no segment is looked at twice."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.index = 0

    def first(self, bits: Fraction) -> Fraction | None:
        """The first instant at which the curve reaches this many bits."""
        segments = self.curve.segments
        while self.index < len(segments) and _less(segments[self.index][1], bits):
            self.index += 1
        return self.curve._reaches(bits, self.index)

    def leaves(self, bits: Fraction) -> Fraction | None:
        """The last instant at which the curve is not above this many bits."""
        segments = self.curve.segments
        while self.index < len(segments) and not _less(bits, segments[self.index][1]):
            self.index += 1
        return self.curve._reaches(bits, self.index)


MOST_STEPS = 4096
"""Packets whose delay is looked at one by one."""


def horizontal_at(arrivals: Curve, service: Curve, step_bits: Number) -> Fraction | None:
    """As `horizontal`, but only where a whole number of packets of one size has arrived and been served.

    >>> pause = Curve.of([(0, 0, 10**6), (Fraction(3, 250), 12000, 0), (2, 12000, 10**6)])
    >>> horizontal(token_bucket(12000, 10**5), pause)
    Fraction(2, 1)
    >>> horizontal_at(token_bucket(12000, 10**5), pause, 12000)
    Fraction(473, 250)
    """
    if arrivals.rate > service.rate:
        return None
    last = max(arrivals.segments[-1][1], service.segments[-1][1])
    number = int(last // step_bits) + 2
    if number > MOST_STEPS:
        return horizontal(arrivals, service)
    worst = Fraction(0)
    for n in range(1, number + 1):  # beyond, both are straight lines
        t = arrivals.first(n * step_bits)
        if t is None:
            break
        reached = service.first(n * step_bits)
        if reached is None:
            return None
        worst = max(worst, reached - t)
    return worst


def longest_wait(ahead: Curve, service: Curve) -> Fraction | None:
    """The longest time until a service is above what has come before a packet, seconds; None without a bound.

    >>> longest_wait(token_bucket(0, 1), rate_latency(2, 3))
    Fraction(3, 1)
    """
    if ahead.rate > service.rate:
        return None
    leaves = _Forward(service)
    worst = Fraction(0)
    for t, before, after, _ in _looked_at(ahead, service):
        for bits in (after,) if after == before else (before, after):
            left = leaves.leaves(bits)
            if left is None:
                return None
            worst = max(worst, left - t)
    return worst


def longest_wait_at(arrivals: Curve, service: Curve, step_bits: Number) -> Fraction | None:
    """As `longest_wait`, of packets of one size: each has whole packets before it.

    >>> longest_wait_at(token_bucket(30, 1), rate_latency(5, 1), 10)
    Fraction(5, 1)
    """
    if arrivals.rate > service.rate:
        return None
    number = int(max(arrivals.segments[-1][1], service.segments[-1][1]) // step_bits) + 2
    if number > MOST_STEPS:
        return longest_wait(Curve.of((t, v - step_bits, r) for t, v, r in arrivals.segments), service)
    leaves = _Forward(service)
    worst = Fraction(0)
    for n in range(1, number + 1):  # beyond, both are straight lines
        t = arrivals.first(n * step_bits)
        if t is None:
            break
        left = leaves.leaves(Fraction((n - 1) * step_bits))
        if left is None:
            return None
        worst = max(worst, left - t)
    return worst


def vertical(arrivals: Curve, service: Curve) -> Fraction | None:
    """Longest vertical distance: the backlog in bits; None where it has no bound.

    >>> vertical(token_bucket(12000, 10**6), rate_latency(2 * 10**6, Fraction(1, 100)))
    Fraction(22000, 1)
    """
    if arrivals.rate > service.rate:
        return None
    worst = Fraction(0)
    arrived = served = 0  # both advance only
    for t in sorted({*arrivals.starts, *service.starts}):
        while arrived + 1 < len(arrivals.segments) and not _less(t, arrivals.segments[arrived + 1][0]):
            arrived += 1
        while served + 1 < len(service.segments) and _less(service.segments[served + 1][0], t):
            served += 1
        before = value_at(service.segments[served], t) if t > 0 else Fraction(0)
        worst = max(worst, value_at(arrivals.segments[arrived], t) - before)
    return worst
