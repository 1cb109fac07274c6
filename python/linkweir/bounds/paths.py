# SPDX-License-Identifier: BSD-3-Clause
"""Worst delays over the links of a network.

Every link is analysed as a single one is, with the arrival curves that its traffic has there:

* **Output.** What has met delays of d to D since a point with arrival curve a(t) has the curve a(t + D - d) (Le Boudec
  and Thiran 2001, section 1.4: arrivals in an interval come from one that is longer by D - d). Where the queue's
  service has a convex curve, the deconvolution counts too (theorem 1.4.3).
* **Line.** What leaves a link of C bit/s is at most one packet and C t; this holds for any part of it (grouping:
  Grieu 2004; Mifdaoui and Leydier 2017).
* **A flow's own service.** In a FIFO queue with a service curve b for all and an arrival curve a for the others, a flow
  has b(t) - a(t - d) from d on, for every d (Cruz 1998; Le Boudec and Thiran 2001, proposition 6.4.1). Services of the
  class at a link are minimum service curves, which is all that this needs; none need be strict.
* **Bursts are paid once.** Services of links in series are convolved (theorem 1.4.6). A packet arrives at a link when
  its last bit has left the one before, so all but the last service count whole packets (section 1.7). The links
  between must keep the order of packets.
* A way is cut into stretches. The flows of a stretch are those that pass all of it in the same queues: FIFO delays all
  of them alike. The least sum over all cuts is the bound; links one by one are among the cuts.
* **Rings.** Where links depend on each other in a ring, delays of links are assumed and the analysis repeated with
  them. If no delay comes out longer than assumed, the assumption holds: otherwise let a packet be the first to
  exceed it; until then all arrivals kept their curves, and what arrives later changes nothing about it (stopped time,
  Cruz 1991; Bouillard, Boyer and Le Corronc 2018, chapter 12).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise

from linkweir.bounds.arrivals import NANOSECOND, Envelope, Framing
from linkweir.bounds.convex import (
    advanced,
    convex,
    convolution,
    deconvolution,
    left_over,
    lowered,
    rounded_up,
    scaled,
    tidied,
)
from linkweir.bounds.curve import ZERO, Curve, add, horizontal, minimum, token_bucket, vertical
from linkweir.bounds.policies import Queue, Service, Setting, services

CLOCK_S = 2 * NANOSECOND
"""Departures and arrivals of the simulator are whole nanoseconds; intervals between them err by less."""
VISITS = 12
"""Visits of a round robin that are counted one by one; a network has many queues."""
MOST_JUMPS = 6
"""Links of a stretch with jumps in their service, of which every subset counts."""
ROUNDS = 200
"""Repetitions for a ring before it counts as one without a bound."""
LONGEST_S = 3600
"""A delay in a ring that has grown to this counts as one without a bound."""
MARGIN = Fraction(1, 1000)
"""How much longer than the last repetition's the delays of a ring are assumed."""


@dataclass(frozen=True)
class Stop:
    """A queue on a way: a link and one of its classes, by number."""

    link: int
    queue: int


@dataclass(frozen=True)
class Link:
    """A link of a network. The setting's queues have names and keys; their envelopes count for nothing here."""

    name: str
    setting: Setting
    framing: Framing
    delay_s: tuple[Fraction, Fraction]
    """The least and the greatest propagation delay."""
    in_order: bool
    """Whether packets never overtake each other behind the queue."""
    peak_bps: Fraction | None
    """The greatest capacity at any time; None if bits may leave at one instant."""
    given: Mapping[int, Curve]
    """Arrival curves of queues that hold whatever arrives there."""
    why_none: str = ""
    """Why no bound is known for this link."""


@dataclass(frozen=True)
class Traffic:
    """Flows with one way, as they arrive at its first link."""

    name: str
    way: tuple[Stop, ...]
    envelope: Callable[[Framing], Envelope]
    """Arrivals as a link with this framing counts them."""


@dataclass(frozen=True)
class Stretch:
    """Links of a way whose delays are bounded together."""

    stops: tuple[Stop, ...]
    delay_s: Fraction
    """From the arrival at the first queue to the end of the last transmission."""


@dataclass(frozen=True)
class At:
    """One queue: what arrives and waits there at most. Bits and seconds; None with the reason in `why_none`."""

    arrivals: Curve | None
    service: Service
    delay_s: Fraction | None
    """To the end of the transmission."""
    backlog_bits: Fraction | None
    why_none: str

    @cached_property
    def convex(self) -> list[Curve]:
        """Convex curves below those of the service, without those that are nowhere above another one."""
        kept: list[Curve] = []
        for curve in sorted((convex(c) for c in self.service.curves), key=lambda c: (-c.rate, c.segments)):
            if not any(_below(curve, other) for other in kept):
                kept.append(curve)
        return kept


class Analysis:
    """The worst delays of a network."""

    def __init__(self, links: Sequence[Link], traffic: Sequence[Traffic]) -> None:
        self.links = links
        self.traffic = traffic
        self._passing: dict[Stop, list[tuple[int, int]]] = defaultdict(list)
        for number, one in enumerate(traffic):
            for place, stop in enumerate(one.way):
                self._passing[stop].append((number, place))
        self.at: dict[Stop, At] = {}
        self._assumed: dict[Stop, Fraction | None] = {}  # delays of the links of a ring, while it is analysed
        self._prefix: dict[tuple[int, int], list[Stretch] | None] = {}
        self._stretches: dict[tuple[Stop, ...], Fraction | None] = {}
        self._cross: dict[tuple[Stop, frozenset[int]], Curve | None] = {}
        self._arrivals: dict[tuple[int, int], Curve | None] = {}
        self._envelopes: dict[tuple[int, Framing], Envelope] = {}
        self._found: dict[Stop, At] = {}  # of the last round
        for ring in self.order:
            self._analyse(ring)

    # --- order -------------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> list[list[int]]:
        """The links, those in front first; those that depend on each other in one list."""
        following: dict[int, set[int]] = {number: set() for number in range(len(self.links))}
        for one in self.traffic:
            for here, there in pairwise(one.way):
                following[here.link].add(there.link)
        return _components(following)

    def _analyse(self, ring: list[int]) -> None:
        if len(ring) == 1:
            for queue, at in self._queues(ring[0]).items():
                self.at[Stop(ring[0], queue)] = at
            return
        stops = [stop for stop in self._passing if stop.link in ring]
        assumed: dict[Stop, Fraction | None] = dict.fromkeys(stops, Fraction(0))
        for _ in range(ROUNDS):
            found = self._round(ring, assumed)
            if all(_within(found[stop], assumed[stop]) for stop in stops):
                self._keep()
                return
            assumed = _longer(found, assumed)
            if any(delay_s is not None and delay_s > LONGEST_S for delay_s in assumed.values()):
                break
        self._assumed = {}
        names = ", ".join(self.links[number].name for number in ring)
        why = f"no bound: the links {names} depend on each other in a ring, in which delays may grow without end"
        for number in ring:
            for queue in range(len(self.links[number].setting.queues)):
                self.at[Stop(number, queue)] = At(None, Service(why_none=why), None, None, why)

    def _round(self, ring: list[int], assumed: Mapping[Stop, Fraction | None]) -> dict[Stop, Fraction | None]:
        """The delays that follow from assumed ones; None has no bound."""
        self._assumed = dict(assumed)
        for stop in assumed:
            self._forget(stop)
        self._found = {Stop(number, queue): at for number in ring for queue, at in self._queues(number).items()}
        return {stop: self._found[stop].delay_s for stop in assumed}

    def _keep(self) -> None:
        """Keeps what the last round found: its assumptions hold, and so do the arrivals that follow from them."""
        self.at.update(self._found)
        self._assumed = {}

    def _forget(self, stop: Stop) -> None:
        for number, place in self._passing[stop]:
            self._arrivals.pop((number, place), None)
            for later in range(place, len(self.traffic[number].way)):
                self._prefix.pop((number, later), None)
                self._arrivals.pop((number, later), None)
        self._stretches.clear()
        self._cross.clear()

    def delay_s(self, number: int) -> Fraction | None:
        """The worst delay of a flow from the arrival at its first queue to the arrival at the receiver."""
        return self._so_far(number, len(self.traffic[number].way))

    def passes(self, stop: Stop) -> bool:
        """Whether any flow joins a queue."""
        return bool(self._passing.get(stop))

    def least_bits(self, stop: Stop) -> int:
        """The smallest packet of a queue, as its link counts it."""
        framing = self.links[stop.link].framing
        return min((self._own(number, framing).least_bits for number, _ in self._passing[stop]), default=8)

    # --- one link ----------------------------------------------------------------------------------------------------

    def _queues(self, number: int) -> dict[int, At]:
        """All queues of a link, with the arrivals that have been found for it."""
        link = self.links[number]
        if link.why_none:
            nothing = At(None, Service(why_none=link.why_none), None, None, link.why_none)
            return dict.fromkeys(range(len(link.setting.queues)), nothing)
        queues = []
        for index, queue in enumerate(link.setting.queues):
            queues.append(replace(queue, envelope=self._envelope(Stop(number, index))))
        setting = replace(link.setting, queues=queues, visits=VISITS)
        return {i: _at(q, s, link.name) for i, (q, s) in enumerate(zip(queues, services(setting), strict=True))}

    def _envelope(self, stop: Stop) -> Envelope:
        """All arrivals at a queue."""
        framing = self.links[stop.link].framing
        passing = self._passing[stop]
        each = [self._own(number, framing) for number, _ in passing]
        least = min((one.least_bits for one in each), default=8)
        most = max((one.most_bits for one in each), default=8)
        curve = self.arrivals(stop, [number for number, _ in passing])
        why = ""
        if curve is None:
            why = next((self._why(*which) for which in passing if self._arrival(*which) is None), "")
        return Envelope(curve, why, least, most)

    def _why(self, number: int, place: int) -> str:
        """Why a flow has no arrival curve at a place of its way."""
        own = self._own(number, self.links[self.traffic[number].way[0].link].framing)
        if own.curve is None and place == 0:
            return own.why_none
        for before in self.traffic[number].way[:place]:
            at = self.at.get(before)
            if at is not None and at.delay_s is None:
                link = self.links[before.link]
                name = link.setting.queues[before.queue].name
                why = at.why_none.removeprefix("no bound: ")
                return f"flow {self.traffic[number].name} has no bound in class {name} of link {link.name}: {why}"
        return own.why_none

    # --- arrivals ----------------------------------------------------------------------------------------------------

    def _own(self, number: int, framing: Framing) -> Envelope:
        """A flow's arrivals at its first link, as a link with this framing would count them."""
        key = (number, framing)
        if key not in self._envelopes:
            self._envelopes[key] = self.traffic[number].envelope(framing)
        return self._envelopes[key]

    def arrivals(self, stop: Stop, numbers: Sequence[int], *, all_queues: bool = False) -> Curve | None:
        """What these flows together send into a queue at most, or into all queues of its link; None without bound."""
        groups: dict[Stop | None, list[tuple[int, int]]] = defaultdict(list)
        chosen = set(numbers)
        for number, place in self._at_link(stop, all_queues=all_queues):
            if number in chosen:
                before = self.traffic[number].way[place - 1] if place else None
                groups[before].append((number, place))
        lines: dict[int | None, list[Curve]] = defaultdict(list)
        found: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
        missing = False
        for before, group in groups.items():
            curve = self._group(before, group, stop)
            if curve is None:
                missing = True
                continue
            link = None if before is None else before.link
            lines[link].append(curve)
            found[link] += group
        parts = []
        for link, curves in lines.items():
            total = add(curves)
            line = None if link is None else self._line(link, found[link], stop)
            parts.append(total if line is None else minimum(total, line))
        given = self.links[stop.link].given.get(stop.queue) if not all_queues else None
        together = None if missing else parts[0] if len(parts) == 1 else tidied(add([ZERO, *parts]))
        if given is None or together is None:
            return given if together is None else together
        return minimum(given, together)

    def _at_link(self, stop: Stop, *, all_queues: bool) -> list[tuple[int, int]]:
        if not all_queues:
            return self._passing[stop]
        queues = range(len(self.links[stop.link].setting.queues))
        return [one for queue in queues for one in self._passing[Stop(stop.link, queue)]]

    def _group(self, before: Stop | None, group: Sequence[tuple[int, int]], stop: Stop) -> Curve | None:
        """Flows that come from one queue, or from their sources."""
        each = [self._arrival(number, place) for number, place in group]
        curves = [curve for curve in each if curve is not None]
        together = add([ZERO, *curves]) if len(curves) == len(each) else None
        if before is None:
            return together
        bounds = [together] if together is not None else []
        whole = self._whole_output(before, group, stop)
        if whole is not None:
            bounds.append(whole)
        return None if not bounds else bounds[0] if len(bounds) == 1 else minimum(*bounds)

    def _whole_output(self, before: Stop, group: Sequence[tuple[int, int]], stop: Stop) -> Curve | None:
        """What leaves a queue altogether, counted as the next link does."""
        at = self.at.get(before)
        if at is None or at.arrivals is None or at.delay_s is None:
            return None
        factor = self._factor(before.link, stop.link, [number for number, _ in group])
        return scaled(advanced(at.arrivals, self._jitter(before, at.delay_s)), factor)

    def _jitter(self, stop: Stop, delay_s: Fraction) -> Fraction:
        """How much the time from the arrival at a queue to that at the next one varies."""
        link = self.links[stop.link]
        return rounded_up(delay_s - self._fastest(stop) + link.delay_s[1] - link.delay_s[0] + CLOCK_S)

    def _fastest(self, stop: Stop) -> Fraction:
        """The shortest time that a packet of a queue takes for its transmission."""
        link = self.links[stop.link]
        if link.peak_bps is None or link.peak_bps <= 0:
            return Fraction(0)
        return min(self._own(n, link.framing).least_bits for n, _ in self._passing[stop]) / link.peak_bps

    def _line(self, number: int, group: Sequence[tuple[int, int]], stop: Stop) -> Curve | None:
        """The most that these flows may send out of a link: one packet, and as fast as the link is."""
        link = self.links[number]
        if link.peak_bps is None:
            return None
        most = max(self._own(n, link.framing).most_bits for n, _ in group)
        jitter = link.delay_s[1] - link.delay_s[0] + CLOCK_S
        factor = self._factor(number, stop.link, [n for n, _ in group])
        return scaled(token_bucket(most + link.peak_bps * jitter, link.peak_bps), factor)

    def _factor(self, first: int, second: int, numbers: Sequence[int]) -> Fraction:
        """The most that a packet has on the second link for each bit on the first."""
        return factor(self.links[first].framing, self.links[second].framing, self._sizes_bytes(numbers))

    def _sizes_bytes(self, numbers: Sequence[int]) -> tuple[int, int]:
        plain = [self._own(number, Framing(0, 0)) for number in numbers]
        return min(p.least_bits for p in plain) // 8, max(p.most_bits for p in plain) // 8

    def _arrival(self, number: int, place: int) -> Curve | None:
        """A flow's arrivals at a place of its way."""
        key = (number, place)
        if key not in self._arrivals:
            found = self._found_arrival(number, place)
            self._arrivals[key] = found if found is None or place == 0 else tidied(found)
        return self._arrivals[key]

    def _found_arrival(self, number: int, place: int) -> Curve | None:
        way = self.traffic[number].way
        own = self._own(number, self.links[way[place].link].framing).curve
        if place == 0:
            return own
        bounds = []
        if own is not None and (delay_s := self._so_far(number, place)) is not None:
            least_s = sum((self._fastest(s) + self.links[s.link].delay_s[0] for s in way[:place]), Fraction(0))
            bounds.append(advanced(own, rounded_up(delay_s - least_s + place * CLOCK_S)))
        before = way[place - 1]
        if before not in self._assumed and (output := self._served(number, place - 1)) is not None:
            bounds.append(scaled(output, self._factor(before.link, way[place].link, [number])))
        return None if not bounds else bounds[0] if len(bounds) == 1 else minimum(*bounds)

    def _so_far(self, number: int, place: int) -> Fraction | None:
        """The longest time from the source to the arrival at a place of the way."""
        way = self.traffic[number].way
        passed, total = way[:place], Fraction(0)
        if not any(stop in self._assumed for stop in passed):
            stretches = self.stretches(number, place - 1)
            if stretches is None:
                return None
            total = sum((one.delay_s for one in stretches), Fraction(0))
            ends = {one.stops[-1] for one in stretches}
            return total + sum((self.links[s.link].delay_s[1] for s in passed if s in ends), Fraction(0))
        for stop in passed:
            at = self.at.get(stop)
            delay_s = self._assumed.get(stop, None if at is None else at.delay_s)
            if delay_s is None:
                return None
            total += delay_s + self.links[stop.link].delay_s[1] + CLOCK_S
        return total

    def _served(self, number: int, place: int) -> Curve | None:
        """What a flow sends out of a queue, by the service that it has for itself there."""
        stop = self.traffic[number].way[place]
        arrivals, at = self._arrival(number, place), self.at.get(stop)
        link = self.links[stop.link]
        if at is None or arrivals is None:
            return None
        own = self._own(number, link.framing)
        found = None
        for service in at.convex:
            part = self._part(stop, service, frozenset({number}), Fraction(0))
            if part is None:
                continue
            delay_s, curve = part
            whole = lowered(_delayed(curve, delay_s), own.most_bits)
            output = deconvolution(arrivals, whole)
            if output is not None:
                output = advanced(output, rounded_up(link.delay_s[1] - link.delay_s[0] + CLOCK_S))
                found = output if found is None else minimum(found, output)
        return found

    # --- stretches ---------------------------------------------------------------------------------------------------

    def stretches(self, number: int, place: int | None = None) -> list[Stretch] | None:
        """The cut of a flow's way, up to a place of it, with the least sum of delays; None without a bound."""
        way = self.traffic[number].way
        place = len(way) - 1 if place is None else place
        key = (number, place)
        if key not in self._prefix:
            self._prefix[key] = self._cut(number, place)
        return self._prefix[key]

    def _cut(self, number: int, place: int) -> list[Stretch] | None:
        way = self.traffic[number].way
        best: list[Stretch] | None = None
        least: Fraction | None = None
        for first in range(place, -1, -1):
            stops = way[first : place + 1]
            before = [] if first == 0 else self.stretches(number, first - 1)
            delay_s = self._stretch(stops)
            if before is None or delay_s is None:
                continue
            total = sum((one.delay_s for one in before), delay_s) + self._between(before, first)
            if least is None or total < least:
                best, least = [*before, Stretch(stops, delay_s)], total
        return best

    def _between(self, before: Sequence[Stretch], first: int) -> Fraction:
        """Delays of the links on which stretches end."""
        return sum((self.links[one.stops[-1].link].delay_s[1] for one in before), Fraction(0)) if first else Fraction(0)

    def _stretch(self, stops: tuple[Stop, ...]) -> Fraction | None:
        if stops not in self._stretches:
            at = self.at.get(stops[0])
            if len(stops) == 1:
                self._stretches[stops] = None if at is None else at.delay_s
            else:
                self._stretches[stops] = self._together(stops)
        return self._stretches[stops]

    def _together(self, stops: tuple[Stop, ...]) -> Fraction | None:
        """The delay over several links at once, of the flows that pass all of them."""
        inner = [self.links[stop.link] for stop in stops[:-1]]
        if not all(link.in_order for link in inner):
            return None
        flows = self._all_along(stops)
        arrivals = self.arrivals(stops[0], sorted(flows))
        if arrivals is None:
            return None
        propagation_s = sum((link.delay_s[1] + CLOCK_S for link in inner), Fraction(0))
        found = []
        for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)):
            if part and len(stops) > MOST_JUMPS:
                break
            jumps = part * arrivals(0)
            delay_s = self._in_series(stops, flows, arrivals, jumps)
            if delay_s is not None:
                found.append(delay_s + propagation_s)
        return min(found, default=None)

    def _all_along(self, stops: tuple[Stop, ...]) -> frozenset[int]:
        """The flows that pass all these queues one after the other."""
        flows = set()
        for number, place in self._passing[stops[0]]:
            if self.traffic[number].way[place : place + len(stops)] == stops:
                flows.add(number)
        return frozenset(flows)

    def _in_series(
        self, stops: tuple[Stop, ...], flows: frozenset[int], arrivals: Curve, jump_bits: Fraction
    ) -> Fraction | None:
        """The delay with services that jump by so many bits when they begin, counted as on the first link."""
        first = stops[0].link
        packet = max(self._own(number, self.links[first].framing).most_bits for number in flows)
        total_s, parts = Fraction(0), []
        for place, stop in enumerate(stops):
            factor = self._factor(first, stop.link, sorted(flows))
            whole = packet if place < len(stops) - 1 else 0
            best = self._best_part(stop, flows, arrivals, (factor, jump_bits + whole))
            if best is None:
                return None
            delay_s, curve = best
            total_s += delay_s
            parts.append(lowered(curve, whole))
        return _behind(total_s, arrivals, parts)

    def _best_part(
        self, stop: Stop, flows: frozenset[int], arrivals: Curve, units: tuple[Fraction, Fraction]
    ) -> tuple[Fraction, Curve] | None:
        """Of the services of a queue, the one with which these arrivals would wait least there."""
        factor, jump_bits = units
        at = self.at.get(stop)
        best, least = None, None
        for service in at.convex if at is not None else ():
            part = self._part(stop, scaled(service, 1 / factor), flows, jump_bits, 1 / factor)
            if part is None:
                continue
            waits = horizontal(arrivals, part[1])
            if waits is not None and (least is None or part[0] + waits < least):
                best, least = part, part[0] + waits
        return best

    def _part(
        self, stop: Stop, service: Curve, flows: frozenset[int], jump_bits: Fraction, unit: Fraction = Fraction(1)
    ) -> tuple[Fraction, Curve] | None:
        """The least delay after which flows have so many bits of a queue's service for themselves, and that service."""
        key = (stop, flows)
        if key not in self._cross:
            fifo = self.at[stop].service.fifo is not None
            others = [n for n, _ in self._at_link(stop, all_queues=fifo) if n not in flows]
            self._cross[key] = self.arrivals(stop, others, all_queues=fifo)
        cross = self._cross[key]
        if cross is None:
            return None
        cross = scaled(cross, unit)
        delay_s = horizontal(add([cross, token_bucket(jump_bits, 0)]), service)
        return None if delay_s is None else (delay_s, left_over(service, cross, delay_s))


def _at(queue: Queue, service: Service, link: str) -> At:
    arrivals = queue.envelope.curve

    def none(why: str) -> At:
        return At(arrivals, service, None, None, why)

    if arrivals is None:
        return none(f"no bound: {queue.envelope.why_none}")
    if not service.curves:
        return none(service.why_none)
    together = service.fifo or arrivals
    delay_s = service.delay_s(arrivals, (queue.envelope.least_bits, queue.envelope.most_bits))
    backlogs = [b for b in (vertical(together, curve) for curve in service.curves) if b is not None]
    if delay_s is None or not backlogs:
        rate = float(together.rate / 10**6)
        left = float(max(curve.rate for curve in service.curves) / 10**6)
        return none(f"no bound: up to {rate:g} Mbit/s arrive at link {link}, and {left:g} Mbit/s are certain")
    return At(arrivals, service, delay_s, min(backlogs), "")


def _below(one: Curve, other: Curve) -> bool:
    """Whether a curve is nowhere above another."""
    return one.rate <= other.rate and all(one(t) <= other(t) for t in {*one.starts, *other.starts})


def _within(found: Fraction | None, assumed: Fraction | None) -> bool:
    return assumed is None or (found is not None and found <= assumed)


def _longer(
    found: Mapping[Stop, Fraction | None], assumed: Mapping[Stop, Fraction | None]
) -> dict[Stop, Fraction | None]:
    """What to assume next: the delays found, and a little more once they hardly change. None remains."""
    both = [(f, a) for f, a in zip(found.values(), assumed.values(), strict=True) if f is not None and a is not None]
    near = all(f - a <= MARGIN * f for f, a in both)
    following: dict[Stop, Fraction | None] = {}
    for stop, delay_s in found.items():
        if delay_s is None or assumed[stop] is None:
            following[stop] = None
        else:
            following[stop] = rounded_up(delay_s * (1 + MARGIN) if near else delay_s)
    return following


def _delayed(curve: Curve, by_s: Fraction) -> Curve:
    """The curve later, 0 before."""
    if by_s == 0:
        return curve
    return Curve.of([(0, 0, 0), *((t + by_s, v, r) for t, v, r in curve.segments)])


def _behind(total_s: Fraction, arrivals: Curve, parts: Sequence[Curve]) -> Fraction | None:
    """The delay in systems in series: each serves `part` from its own delay on, `total_s` is the sum of those.

    A part that begins with a jump is 0 at 0. So the convolution is the least over all choices of systems that are
    passed in more than no time: the sum of their jumps, and the convolution of what follows.
    """
    jumps = [part(0) for part in parts]
    rest = [Curve.of((t, v - jump, r) for t, v, r in part.segments) for part, jump in zip(parts, jumps, strict=True)]
    worst = Fraction(0)
    sizes = range(1, len(parts) + 1) if any(jumps) else [len(parts)]
    for size in sizes:
        for chosen in combinations(range(len(parts)), size):
            curve = convolution([rest[i] for i in chosen])
            jump = sum((jumps[i] for i in chosen), Fraction(0))
            served = Curve.of((t, v + jump, r) for t, v, r in curve.segments)
            delay_s = horizontal(arrivals, served)
            if delay_s is None:
                return None
            worst = max(worst, delay_s)
    return total_s + worst


def factor(first: Framing, second: Framing, sizes_bytes: tuple[int, int]) -> Fraction:
    """The most that a packet of these smallest and largest sizes has on one link for each bit on another.

    >>> factor(Framing(0, 0), Framing(20, 0), (100, 1500))
    Fraction(6, 5)
    >>> factor(Framing(0, 0), Framing(0, 84), (40, 1500))
    Fraction(21, 10)
    """
    if first == second:
        return Fraction(1)
    least, most = sizes_bytes
    corners = {least, most}
    for framing in (first, second):  # where a packet stops to be filled up
        corner = framing.mpu_bytes - framing.overhead_bytes
        corners |= {size for size in (corner, corner + 1) if least <= size <= most}
    return max(Fraction(second.bits(size), first.bits(size)) for size in corners)


def _components(following: Mapping[int, set[int]]) -> list[list[int]]:
    """Nodes in an order in which none is behind a later one, and those of a circle together (Tarjan 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in following:
        if root in index:
            continue
        work = [(root, iter(sorted(following[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(following[other]))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    del stack[at:]
    return found[::-1]
