# SPDX-License-Identifier: BSD-3-Clause
"""Operations of network calculus on convex service curves and concave arrival curves, in exact fractions.

Both shapes make convolution and deconvolution a merge of straight pieces in the order of their slopes (Le Boudec and
Thiran 2001, chapter 3). Service curves of other shapes are replaced by their greatest convex
minorant, which lies below them and so is a service curve as well.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from linkweir.bounds.curve import Curve, Number, Point

PICOSECOND = Fraction(1, 10**12)
"""Times between hops are rounded up to this, or fractions would grow with every hop."""


def rounded_up(time_s: Fraction) -> Fraction:
    """The next whole picosecond."""
    return math.ceil(time_s / PICOSECOND) * PICOSECOND


def scaled(curve: Curve, factor: Number) -> Curve:
    """The curve with all its bits times a factor.

    >>> from linkweir.bounds.curve import token_bucket
    >>> scaled(token_bucket(10, 4), Fraction(3, 2))(2)
    Fraction(27, 1)
    """
    return curve if factor == 1 else Curve.of((t, v * factor, r * factor) for t, v, r in curve.segments)


def advanced(curve: Curve, by_s: Number) -> Curve:
    """The curve earlier: its value at t is that of the curve at t + by.

    >>> from linkweir.bounds.curve import token_bucket
    >>> advanced(token_bucket(10, 4), 2)(0)
    Fraction(18, 1)
    """
    by_s = Fraction(by_s)
    index = bisect_right(curve.segments, by_s, key=lambda s: s[0]) - 1
    rest = ((t - by_s, v, r) for t, v, r in curve.segments[index + 1 :])
    return Curve.of([(0, curve(by_s), curve.segments[index][2]), *rest])


def tidied(curve: Curve) -> Curve:
    """A concave curve above this one by less than a bit, whose lines have whole bits at 0: its fractions stay short.

    >>> from linkweir.bounds.curve import token_bucket
    >>> tidied(token_bucket(Fraction(100, 3), 4))(0)
    Fraction(34, 1)
    """
    kept: list[tuple[Fraction, int, Fraction]] = []  # from when on a line is the lowest, its bits at 0, its slope
    for start, value, slope in curve.segments:
        bits, begins = math.ceil(value - slope * start), Fraction(0)
        while kept:
            before, lower, steeper = kept[-1]
            begins = (bits - lower) / (steeper - slope) if steeper > slope else Fraction(0)
            if begins > before:
                break
            kept.pop()
            begins = Fraction(0)
        kept.append((begins, bits, slope))
    return Curve.of((t, bits + slope * t, slope) for t, bits, slope in kept)


def convex(curve: Curve) -> Curve:
    """The greatest convex curve below a curve that is 0 at 0.

    >>> convex(Curve.of([(0, 0, 0), (1, 0, 9), (2, 9, 0), (4, 9, 3)])).segments[1:]
    ((Fraction(1, 1), Fraction(0, 1), Fraction(3, 1)),)
    """
    corners = [(t, min(v, curve.before(t))) for t, v, _ in curve.segments]
    hull: list[tuple[Fraction, Fraction]] = []
    for corner in corners:
        while len(hull) >= 2 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], corner):
            hull.pop()
        hull.append(corner)
    # no chord may be steeper than the curve is in the end
    while len(hull) >= 2 and _slope(hull[-2], hull[-1]) >= curve.rate:
        hull.pop()
    segments: list[Point] = [(*a, _slope(a, b)) for a, b in pairwise(hull)]
    return Curve.of([*segments, (*hull[-1], curve.rate)])


def _slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])


def convolution(curves: Sequence[Curve]) -> Curve:
    """Service of systems in series: the convolution of convex curves that are 0 at 0.

    >>> from linkweir.bounds.curve import rate_latency
    >>> convolution([rate_latency(5, 1), rate_latency(3, 2)]).segments[1]
    (Fraction(3, 1), Fraction(0, 1), Fraction(3, 1))
    """
    least = min(curve.rate for curve in curves)
    pieces = [p for curve in curves for p in _pieces(curve) if p[0] < least]
    return _chain(Fraction(0), sorted(pieces), least)


def _pieces(curve: Curve) -> list[tuple[Fraction, Fraction]]:
    """Slopes and lengths of all pieces but the last, which does not end."""
    return [(a[2], b[0] - a[0]) for a, b in pairwise(curve.segments)]


def _chain(value: Fraction, pieces: Sequence[tuple[Fraction, Fraction]], rate: Fraction) -> Curve:
    segments: list[Point] = []
    t = Fraction(0)
    for slope, length in pieces:
        segments.append((t, value, slope))
        t, value = t + length, value + slope * length
    return Curve.of([*segments, (t, value, rate)])


def deconvolution(arrivals: Curve, service: Curve) -> Curve | None:
    """What leaves a system at most: the deconvolution of concave arrivals by a convex service; None without a bound.

    Le Boudec and Thiran 2001, theorem 1.4.3.

    >>> from linkweir.bounds.curve import rate_latency, token_bucket
    >>> deconvolution(token_bucket(10, 4), rate_latency(5, 2)).segments
    ((Fraction(0, 1), Fraction(18, 1), Fraction(4, 1)),)
    """
    if arrivals.rate > service.rate:
        return None
    # As u grows, arrivals(t + u) - service(u) rises while the slope of the arrivals is above that of the service.
    places = sorted({*arrivals.starts, *service.starts})
    last = next(u for u in places if arrivals._segment(u)[2] <= service._segment(u)[2])
    largest = arrivals(last) - service(last)
    pieces = [p for p in _ends(arrivals, last, after=True) if p[0] > arrivals.rate]
    pieces += [p for p in _ends(service, last, after=False) if p[0] > arrivals.rate]
    return _chain(largest, sorted(pieces, reverse=True), arrivals.rate)


def _ends(curve: Curve, at: Fraction, *, after: bool) -> list[tuple[Fraction, Fraction]]:
    """Slopes and lengths of a curve's pieces with an end that lie after an instant, or before it."""
    found = []
    for number, (start, _, slope) in enumerate(curve.segments):
        end = curve.segments[number + 1][0] if number + 1 < len(curve.segments) else (None if after else at)
        if end is None:
            continue
        begins, until = (max(start, at), end) if after else (start, min(end, at))
        if until > begins:
            found.append((slope, until - begins))
    return found


def lowered(curve: Curve, by_bits: Number) -> Curve:
    """The curve less a number of bits, at least 0: a service, counted when whole packets of that size have left.

    >>> from linkweir.bounds.curve import rate_latency
    >>> lowered(rate_latency(5, 1), 10).segments[1]
    (Fraction(3, 1), Fraction(0, 1), Fraction(5, 1))
    """
    return _positive([(t, v - by_bits, r) for t, v, r in curve.segments])


def _positive(segments: Sequence[Point]) -> Curve:
    """The larger of 0 and a convex function that does not fall once it is above 0."""
    found: list[tuple[Number, Number, Number]] = []
    for number, (t, v, r) in enumerate(segments):
        end = segments[number + 1][0] if number + 1 < len(segments) else None
        zero = t - v / r if v < 0 < r else None
        if v >= 0:
            found.append((t, v, max(r, Fraction(0))))
        else:
            found.append((t, 0, 0))
            if zero is not None and (end is None or zero < end):
                found.append((zero, 0, r))
    return Curve.of(found)


def left_over(service: Curve, cross: Curve, delay_s: Fraction) -> Curve:
    """The part of a FIFO service that a flow has for itself, from `delay_s` on: its value at u is that at delay_s + u.

    Cruz 1998; Le Boudec and Thiran 2001, proposition 6.4.1: with a minimum service curve b of all and an arrival curve
    a of the others, b(t) - a(t - d) from any d on. The difference is convex; where it falls, its later minimum counts.

    >>> from linkweir.bounds.curve import rate_latency, token_bucket
    >>> left_over(rate_latency(10, 1), token_bucket(20, 4), Fraction(3)).segments
    ((Fraction(0, 1), Fraction(0, 1), Fraction(6, 1)),)
    """
    ahead = advanced(service, delay_s)
    starts = sorted({*ahead.starts, *cross.starts})
    segments = [(t, ahead(t) - cross(t), ahead._segment(t)[2] - cross._segment(t)[2]) for t in starts]
    rising = next((i for i, s in enumerate(segments) if s[2] >= 0), None)
    if rising is None:  # the others take all in the long run
        return Curve.of([(0, 0, 0)])
    flat = (Fraction(0), segments[rising][1], Fraction(0))
    return _positive([flat, *segments[rising:]] if rising > 0 else segments)
