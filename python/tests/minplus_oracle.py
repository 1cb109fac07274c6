# SPDX-License-Identifier: BSD-3-Clause
"""A slow second implementation of `linkweir.bounds.curve`, by enumeration of breakpoints; it shares no code with it.

A curve here is a list of corners (t, value, slope), and every operation evaluates definitions at all instants at which
an optimum may be.
"""

from __future__ import annotations

from fractions import Fraction

Corners = list[tuple[Fraction, Fraction, Fraction]]


def value(corners: Corners, t: Fraction) -> Fraction:
    """Right-continuous value."""
    result = Fraction(0)
    for start, level, slope in corners:
        if start <= t:
            result = level + slope * (t - start)
    return result


def left(corners: Corners, t: Fraction) -> Fraction:
    """Limit from the left; 0 at 0."""
    result = Fraction(0)
    for start, level, slope in corners:
        if start < t:
            result = level + slope * (t - start)
    return result


def rest(service: Corners, taken: list[Corners], blocking: Fraction, t: Fraction) -> Fraction:
    """sup over s <= t of service(s) - taken(s) - blocking, at least 0."""
    instants = {Fraction(0), t} | {c[0] for curve in [service, *taken] for c in curve if c[0] <= t}
    best = Fraction(0)
    for s in instants:
        best = max(best, value(service, s) - sum((value(x, s) for x in taken), Fraction(0)) - blocking)
        if s > 0:
            best = max(best, left(service, s) - sum((left(x, s) for x in taken), Fraction(0)) - blocking)
    return best


def reaches(curve: Corners, bits: Fraction) -> Fraction:
    """The first instant with at least so many bits: all candidates are tried."""
    candidates = [c[0] for c in curve]
    candidates += [start + (bits - level) / slope for start, level, slope in curve if slope > 0]
    return min(t for t in candidates if t >= 0 and value(curve, t) >= bits)


def delay(arrivals: Corners, service: Corners) -> Fraction:
    """Horizontal distance of continuous curves without jumps of the arrivals after 0."""
    levels = [value(service, c[0]) for c in service]
    instants = {c[0] for c in arrivals}
    for start, level, slope in arrivals:
        if slope > 0:
            instants |= {t for x in levels if (t := start + (x - level) / slope) >= 0}
    worst = Fraction(0)
    for t in instants:
        # just above: by a small step before which no corner of either curve lies
        step = Fraction(1, 10**12)
        for at in (t, t + step):
            worst = max(worst, reaches(service, value(arrivals, at)) - at)
    return worst


def backlog(arrivals: Corners, service: Corners) -> Fraction:
    """Vertical distance."""
    instants = {c[0] for c in arrivals} | {c[0] for c in service}
    return max(value(arrivals, t) - left(service, t) for t in instants)


def drr_needs(quantum: int, grain: int, packet: int, rivals: list[tuple[int, int, int]], bits: int) -> int:
    """What all classes of a level of drr have received at most when one of them has sent `bits`, by playing its visits.

    Between visits of the class, each rival (quantum, grain, packet) spends its whole deficit, and it had the largest
    rest at the start. The class' own rest is the largest after each visit, so its visits send as little as they may.
    """
    sent, credit, total = 0, 0, 0
    rests = [length - step for _, step, length in rivals]
    while True:
        for i, (each, _, _) in enumerate(rivals):
            total += each + rests[i]
            rests[i] = 0
        credit += quantum
        may = max(credit - (packet - grain), 0)  # in all its visits, when this one ends
        for _ in range(sent, may):
            sent += 1
            total += 1
            if sent == bits:
                return total


def smooth_needs(weight: int, packet: int, rivals: list[tuple[int, int]], number: int) -> int:
    """What all classes of a level of wrr in smooth mode have received at most when one has sent `number` packets.

    Rivals (weight, packet) are all served in the cycle in which the class comes, and before it in each round.
    """
    total = sum(w * size for w, size in rivals)
    sent = 0
    while True:
        for turn in range(1, max([weight, *(w for w, _ in rivals)]) + 1):
            total += sum(size for w, size in rivals if turn <= w)
            if turn <= weight:
                total, sent = total + packet, sent + 1
                if sent == number:
                    return total


def in_series(first: Corners, second: Corners, t: Fraction) -> Fraction:
    """Convolution of two continuous curves at t: the least over all splits of t at which it may be."""
    splits = {Fraction(0), t} | {c[0] for c in first if c[0] <= t} | {t - c[0] for c in second if c[0] <= t}
    return min(value(first, s) + value(second, t - s) for s in splits)


def output(arrivals: Corners, service: Corners, t: Fraction) -> Fraction:
    """Deconvolution at t, of curves whose difference falls in the end: the most over all places at which it may be."""
    places = {Fraction(0)} | {c[0] for c in service} | {c[0] - t for c in arrivals if c[0] >= t}
    return max(value(arrivals, t + u) - value(service, u) for u in places)
