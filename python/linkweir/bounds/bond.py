# SPDX-License-Identifier: BSD-3-Clause
"""Worst delays over a bond: one scheduler in front of several links, each with a transmitter of its own.

A class is *sure* of a link if a packet of it that waits keeps this link busy: of all links with `stripe`, of those
that a list names, of the first one with `best` and `spill`. With `all`, each link serves every packet as if it were
alone, so such a class is looked at once for each link; its delay is the least of these.

docs/records/bounds.md proves what follows. Let S be the links that a class is sure of, and R this class with those
that the policy ranks above it and that are sure of all of S.

* **Busy.** Before a packet starts that has waited, there is an instant from which on all links of S are busy and begin
  only packets that rank above it or before it. Just before that instant no packet of R waits, and at least one link
  serves none of R.
* **Service.** Link i of capacity c(t) has B, one packet, on its transmitter at that instant. So R gets at least the sum
  of [c(t) - B]+ over S, B being on one link at most a packet of those outside R.
* **Other classes.** Of a class above that is not in R, what begins in an interval arrived in one that is longer by its
  own longest wait W: a(t + W) counts for it, on the links that both may use.
* **Wait and delay.** The wait is until a transmitter takes the packet: the longest horizontal distance, without the
  packet itself. Its transmission and the propagation of the slowest link that may take it follow. What is held until
  earlier packets have come is held no longer than that, as they have the same bound and came earlier.
* **Room.** With `best` and `spill`, a class that is not full for the first n links has at most the room times the rates
  of the first n - 1 waiting. From when on it is full for good, all n links are busy for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from linkweir.bounds.arrivals import NANOSECOND
from linkweir.bounds.convex import advanced
from linkweir.bounds.curve import (
    Curve,
    add,
    longest_wait,
    longest_wait_at,
    minimum,
    residual,
    vertical,
)
from linkweir.bounds.policies import Queue

MOST_COPIES = 64
"""Copies that wait for one link; crates/linkweir-core/src/bond.rs."""
MOST_HELD_PKTS = 8_192
"""Packets of a class that a gateway holds; the simulator's receiver holds more."""
MOST_HELD_BITS = 8 * 16_000_000
"""The same in bits, of all classes of a peer."""
BEFORE_S = 3 * NANOSECOND
"""How much longer than the greatest difference packets must be held: one is given up in the nanosecond in which its
time ends, and transmissions end in whole nanoseconds."""


@dataclass(frozen=True)
class Member:
    """A link of a bond."""

    name: str
    capacity: Curve
    """What it carries at least in any window."""
    least_bps: Fraction | None
    """The least rate at which a packet that gets through is sent; None if bits leave at opportunities."""
    peak_bps: Fraction | None
    """The greatest rate at any time; None if bits may leave at one instant."""
    reported_bps: Fraction
    """The greatest rate that the scheduler is told."""
    delay_s: tuple[Fraction, Fraction]
    """The least and the greatest propagation delay, and what packets are held back."""
    loses: bool
    """Whether it may lose packets."""
    dies: bool = False
    """Whether it is down at times."""
    held_s: Fraction = Fraction(0)
    """How long packets are held back that others overtake; part of the greatest delay."""
    cost: int = 0

    def sends_s(self, bits: int) -> Fraction | None:
        """The longest transmission of a packet that is not lost."""
        served_s = self.capacity.first(bits)
        if self.least_bps is None:
            return served_s
        slowest_s = bits / self.least_bps
        return slowest_s if served_s is None else min(slowest_s, served_s)

    def passes_s(self, bits: int) -> Fraction | None:
        """The longest time from the start of a transmission to the arrival."""
        sends_s = self.sends_s(bits)
        return None if sends_s is None else sends_s + self.delay_s[1]

    def at_least_s(self, bits: int) -> Fraction:
        """The shortest time from the start of a transmission to the arrival."""
        sent_s = bits / self.peak_bps if self.peak_bps else Fraction(0)
        return sent_s + self.delay_s[0]


@dataclass(frozen=True)
class Bonded:
    """A class of a bond."""

    queue: Queue
    paths: str
    """best, all, spill, or stripe for each of `links`."""
    links: frozenset[int]
    """The members that it may use, by number."""
    reorder_s: Fraction | None
    """How long the receiver holds a packet; None if it does not restore the order."""


@dataclass(frozen=True)
class Bond:
    """A scheduler and its links."""

    policy: str
    members: Sequence[Member]
    classes: Sequence[Bonded]
    room_s: Fraction
    copies_s: Fraction
    """How long a copy may wait for its link before it is dropped."""

    def without(self, gone: int) -> Bond:
        """The bond with one link less."""
        kept = [i for i in range(len(self.members)) if i != gone]
        numbers = {i: number for number, i in enumerate(kept)}
        classes = [replace(one, links=frozenset(numbers[i] for i in one.links if i != gone)) for one in self.classes]
        return replace(self, members=[self.members[i] for i in kept], classes=classes)

    def order(self, one: Bonded) -> list[int] | None:
        """The links of a class with `best` or `spill` in the order in which it prefers them; None if that changes."""
        if one.paths == "spill":
            return sorted(one.links, key=lambda i: (self.members[i].cost, i))
        if len(one.links) > 1 and any(self.members[i].delay_s[0] != self.members[i].delay_s[1] for i in one.links):
            return None
        return sorted(one.links, key=lambda i: (self.members[i].delay_s[0], i))


@dataclass(frozen=True)
class BondBound:
    """Of one class of a bond. Seconds and bits; None with the reason in `why_none`."""

    name: str
    arrivals: Curve | None
    service: Curve | None
    """What its links serve at least; of `all`, the link with the least delay."""
    received_s: Fraction | None
    """From the arrival at the queue to the arrival at the far end of a link."""
    delay_s: Fraction | None
    """The same until the receiver hands it on in order."""
    backlog_bits: Fraction | None
    limit_pkts: int | None
    """Packets that the queue must hold so that none is lost."""
    reorder_s: Fraction | None
    """The least `reorder` with which none comes too late; None also if the receiver could not hold so much."""
    arrives: bool = False
    """Whether each packet comes to the receiver."""
    drops_late_s: Fraction | None = None
    """The class's own `reorder`, if that is too short: then packets that come later are dropped."""
    why_none: str = ""

    @property
    def sure(self) -> bool:
        """Whether each packet is handed on: otherwise the delays are those of the packets that are."""
        return self.arrives and self.drops_late_s is None


@dataclass(frozen=True)
class _Line:
    """A class, or one of `all` on one link."""

    index: int
    """Of the class."""
    sure: frozenset[int]
    """Links that its packets keep busy while they wait."""
    may: frozenset[int]
    """Links that may carry its packets."""


@dataclass
class _Found:
    """The best that is known of a line."""

    wait_s: Fraction | None = None
    """Until a transmitter takes the packet."""
    backlog_bits: Fraction | None = None
    service: Curve | None = None
    why_none: str = ""


@dataclass(frozen=True)
class _View:
    """Lines whose packets may be begun before one of this line, in one way to look at the policy."""

    above: list[int]
    in_turn: bool = False
    """Nothing else is begun while one of them waits, unless it has two levels."""
    earlier_only: bool = False
    """Only packets that came before the line's own count."""


@dataclass(frozen=True)
class _Way:
    """Links that all serve a line while it waits and is full for all but the last of them."""

    links: frozenset[int]
    before_bps: Fraction | None = None
    """Rate of those that must be full; None if they serve it anyway."""


class _Analysis:
    """The lines of a bond, and the best that is known of each."""

    def __init__(self, bond: Bond) -> None:
        self.bond = bond
        self.lines: list[_Line] = []
        for index, one in enumerate(bond.classes):
            if one.paths == "all":
                self.lines += [_Line(index, frozenset({i}), frozenset({i})) for i in sorted(one.links)]
            elif one.paths == "stripe":
                self.lines.append(_Line(index, one.links, one.links))
            else:
                self.lines.append(_Line(index, frozenset((bond.order(one) or [])[:1]), one.links))
        self.found = [_Found() for _ in self.lines]
        for _ in self.lines:  # a bound may rest on that of a line that comes later
            before = [found.wait_s for found in self.found]
            for number in self._urgent_first():
                self._improve(number)
            if before == [found.wait_s for found in self.found]:
                break

    def of(self, index: int) -> list[int]:
        """The lines of a class."""
        return [number for number, line in enumerate(self.lines) if line.index == index]

    def queue(self, number: int) -> Queue:
        """The queue of a line."""
        return self.bond.classes[self.lines[number].index].queue

    # --- the policy --------------------------------------------------------------------------------------------------

    def _urgent_first(self) -> list[int]:
        return sorted(range(len(self.lines)), key=lambda n: (self._level(n), len(self.lines[n].sure), n))

    def _level(self, number: int, key: str = "level") -> int:
        params = self.queue(number).params
        return int(params.get(key, params.get("level", self.lines[number].index)))

    def _views(self, number: int) -> Iterator[_View]:
        others = [n for n in range(len(self.lines)) if n != number]
        if self.bond.policy in ("strict", "pss"):
            # a class of two levels waits at its lower one for all above that, and goes before others at its higher one
            level = self._level(number, "low_level")
            yield _View([n for n in others if self._level(n) < level], in_turn=True)
        yield _View(others, earlier_only=self.bond.policy == "fifo")

    # --- one line ----------------------------------------------------------------------------------------------------

    def _improve(self, number: int) -> None:
        """Bounds a line with what is known of the others; keeps what is better than before."""
        found, envelope = self.found[number], self.queue(number).envelope
        if envelope.curve is None:
            found.why_none = envelope.why_none
            return
        whys = [self._look(number, view, way) for view in self._views(number) for way in self._ways(self.lines[number])]
        found.why_none = "" if found.wait_s is not None else next(why for why in whys if why)

    def _ways(self, line: _Line) -> Iterator[_Way]:
        one = self.bond.classes[line.index]
        if one.paths in ("all", "stripe"):
            yield _Way(line.sure)
            return
        order = self.bond.order(one)
        rates = [self.bond.members[i].reported_bps for i in order or one.links]
        if order is None:
            yield _Way(one.links, sum(rates) - min(rates))
            return
        yield _Way(frozenset(order[:1]))
        for count in range(2, len(order) + 1):
            yield _Way(frozenset(order[:count]), sum(rates[: count - 1], Fraction(0)))

    def _look(self, number: int, view: _View, way: _Way) -> str:
        """Bounds a line by what some links carry; returns why that gives no bound."""
        found, envelope = self.found[number], self.queue(number).envelope
        assert envelope.curve is not None
        same, partial = self._parted(view, way)
        base, why = self._base([number, *same], partial, way)
        if base is None:
            return why
        goes_first = []
        for other in same:
            curve = self.queue(other).envelope.curve
            if curve is None:
                return self._takes_all(other)
            goes_first.append(curve)
        earlier, first = (goes_first, []) if view.earlier_only else ([], goes_first)
        service = residual(base, first)
        room_s = self.bond.room_s + NANOSECOND  # which the sender counts in whole nanoseconds
        room_bits = Fraction(0) if way.before_bps is None else room_s * way.before_bps
        arrivals = _raised(add([envelope.curve, *earlier]), room_bits)
        sizes = (envelope.least_bits, envelope.most_bits)
        wait_s = _wait_s(arrivals, service, sizes, alone=not earlier and way.before_bps is None)
        backlog_bits = vertical(arrivals, service)
        if way.before_bps is not None and wait_s is not None:
            late_s = longest_wait(Curve.of([(0, 0, way.before_bps), (room_s, room_bits, 0)]), service)
            wait_s = None if late_s is None else max(wait_s, room_s + late_s)
        if wait_s is None or backlog_bits is None:
            rate, left = float(arrivals.rate / 10**6), float(service.rate / 10**6)
            return f"up to {rate:g} Mbit/s arrive, and {left:g} Mbit/s are certain"
        if found.wait_s is None or wait_s < found.wait_s:
            found.wait_s, found.service = wait_s, service
        if found.backlog_bits is None or backlog_bits < found.backlog_bits:
            found.backlog_bits = backlog_bits
        return ""

    def _parted(self, view: _View, way: _Way) -> tuple[list[int], list[int]]:
        """The lines above that keep all these links busy while they wait, and others that may use one of them."""
        same, partial = [], []
        for other in view.above:
            in_turn = not view.in_turn or "low_level" not in self.queue(other).params
            if way.before_bps is None and in_turn and self.lines[other].sure >= way.links:
                same.append(other)
            elif self.lines[other].may & way.links:
                partial.append(other)
        return same, partial

    def _base(self, inside: Sequence[int], partial: Sequence[int], way: _Way) -> tuple[Curve | None, str]:
        """What links serve of the lines R (`inside`) at least, or why that is nothing."""
        taken: dict[int, list[Curve]] = {i: [] for i in way.links}
        shared, why = [], "its links may carry nothing"
        for other in partial:
            curve, wait_s = self.queue(other).envelope.curve, self.found[other].wait_s
            on = self.lines[other].may & way.links
            if curve is None or wait_s is None:  # it may take all of these links
                taken, why = {i: t for i, t in taken.items() if i not in on}, self._takes_all(other)
            elif len(on) == 1:
                for i in on & taken.keys():
                    taken[i].append(advanced(curve, wait_s))
            else:
                shared.append(advanced(curve, wait_s))
        if not taken:
            return None, why
        others = [n for n in range(len(self.lines)) if n not in inside]
        each = {i: self._left(i, taken[i], max(self._largest(i, inside), self._largest(i, others))) for i in taken}
        choices = [add(list(each.values()))]
        if way.before_bps is None and all(self._largest(i, inside) > self._largest(i, others) for i in way.links):
            # one of the links has a packet of others on its transmitter, or none
            choices = [
                add([self._left(i, taken[i], self._largest(i, others)) if i == free else each[i] for i in taken])
                for free in way.links
            ]
        return residual(reduce(minimum, choices), shared), ""

    def _left(self, link: int, taken: Sequence[Curve], blocking_bits: int) -> Curve:
        return residual(self.bond.members[link].capacity, taken, blocking_bits)

    def _largest(self, link: int, lines: Sequence[int]) -> int:
        return max((self.queue(n).envelope.most_bits for n in lines if link in self.lines[n].may), default=0)

    def _takes_all(self, number: int) -> str:
        queue = self.queue(number)
        if queue.envelope.curve is None:
            return f"class {queue.name} may take everything, because {queue.envelope.why_none}"
        why = "of which no wait is known, may use some of its links and others; give both the same paths"
        return f"class {queue.name}, {why}"


def _wait_s(arrivals: Curve, service: Curve, sizes: tuple[int, int], *, alone: bool) -> Fraction | None:
    """The longest wait of a packet of these smallest and largest sizes for those before it."""
    least, most = sizes
    if arrivals(0) < least:  # nothing is sent
        return Fraction(0)
    if alone and least == most:
        return longest_wait_at(arrivals, service, most)
    return longest_wait(_raised(arrivals, Fraction(-least)), service)


def _raised(curve: Curve, by_bits: Fraction) -> Curve:
    return Curve.of((t, v + by_bits, r) for t, v, r in curve.segments)


# --- answers ----------------------------------------------------------------------------------------------------------


def bond_bounds(bond: Bond) -> list[BondBound]:
    """The bounds of all classes of a bond.

    They hold for packets that arrive, while no queue is full and each class keeps its arrival curve.
    """
    if bond.policy not in ("fifo", "strict", "pss", "pds"):
        why = f"no bound is known for the policy {bond.policy}"
        return [_none(one, why) for one in bond.classes]
    analysis = _Analysis(bond)
    return [_bound(analysis, index) for index in range(len(bond.classes))]


def _none(one: Bonded, why: str) -> BondBound:
    return BondBound(one.queue.name, one.queue.envelope.curve, None, None, None, None, None, None, why_none=why)


def _bound(analysis: _Analysis, index: int) -> BondBound:
    bond, one = analysis.bond, analysis.bond.classes[index]
    envelope = one.queue.envelope
    if envelope.curve is None:
        return _none(one, f"no bound: {envelope.why_none}")
    if not one.links:
        return _none(one, "no bound: none of its links is there")
    lines = analysis.of(index)
    if one.paths == "all":
        received, why, is_sure = _of_copies(analysis, lines)
    else:
        received, why = _of_one(analysis, lines[0])
        is_sure = not any(bond.members[i].loses for i in one.links)
    if received is None:
        return _none(one, f"no bound: {why}")
    received_s, service = received
    backlogs = [b for n in lines if (b := analysis.found[n].backlog_bits) is not None]
    hold_s = Fraction(0) if is_sure or one.reorder_s is None else one.reorder_s
    needed_s = _reorder_s(bond, one, received_s)
    is_short = one.reorder_s is not None and (needed_s is None or one.reorder_s < needed_s)
    return BondBound(
        one.queue.name,
        envelope.curve,
        service,
        received_s,
        received_s + hold_s,
        min(backlogs),
        int(-(-min(backlogs) // envelope.least_bits)),
        needed_s,
        is_sure,
        one.reorder_s if is_short else None,
    )


def _of_one(analysis: _Analysis, number: int) -> tuple[tuple[Fraction, Curve] | None, str]:
    """The longest time to the far end of a link, of a class that sends each packet once."""
    found = analysis.found[number]
    if found.wait_s is None or found.service is None:
        return None, found.why_none
    slowest_s = Fraction(0)
    for i in analysis.lines[number].may:
        passes_s = analysis.bond.members[i].passes_s(analysis.queue(number).envelope.most_bits)
        if passes_s is None:
            return None, f"link {analysis.bond.members[i].name} may carry nothing"
        slowest_s = max(slowest_s, passes_s)
    return (found.wait_s + slowest_s, found.service), ""


def _of_copies(analysis: _Analysis, lines: Sequence[int]) -> tuple[tuple[Fraction, Curve] | None, str, bool]:
    """The longest time until the first copy is at the far end of its link, and whether one is sure to come.

    A copy that can be neither lost nor dropped comes in time. Where there is none, all that may arrive count: a copy is
    dropped when it has waited for too long since the first one left.
    """
    bond, found = analysis.bond, analysis.found
    sure = [one for n in lines if (one := _of_one(analysis, n)[0]) is not None and _is_sure(analysis, n)]
    if sure:
        return min(sure, key=lambda one: one[0]), "", True
    first = min((n for n in lines if found[n].wait_s is not None), key=lambda n: found[n].wait_s or 0, default=None)
    if first is None:
        return None, found[lines[0]].why_none, False
    leaves_s, service = found[first].wait_s, found[first].service
    assert leaves_s is not None
    assert service is not None
    latest_s = Fraction(0)
    for number in lines:
        (link,) = analysis.lines[number].may
        passes_s = bond.members[link].passes_s(analysis.queue(number).envelope.most_bits)
        if passes_s is None:
            return None, f"link {bond.members[link].name} may carry nothing", False
        wait_s, dropped_s = found[number].wait_s, leaves_s + bond.copies_s
        latest_s = max(latest_s, (dropped_s if wait_s is None else min(wait_s, dropped_s)) + passes_s)
    return (latest_s, service), "", False


def _is_sure(analysis: _Analysis, number: int) -> bool:
    """Whether a link neither loses nor drops the copies of a class."""
    bond = analysis.bond
    (link,) = analysis.lines[number].may
    if bond.members[link].loses:
        return False
    if len(bond.members) == 1:
        return True
    waiting = 0
    for other, line in enumerate(analysis.lines):
        if bond.classes[line.index].paths == "all" and link in line.may:
            bits = analysis.found[other].backlog_bits
            if bits is None:
                return False
            waiting += int(-(-bits // analysis.queue(other).envelope.least_bits))
    wait_s = analysis.found[number].wait_s
    return waiting <= MOST_COPIES and wait_s is not None and wait_s <= bond.copies_s


def _reorder_s(bond: Bond, one: Bonded, received_s: Fraction) -> Fraction | None:
    """How much later than a packet one before it may come."""
    least, most = one.queue.envelope.least_bits, one.queue.envelope.most_bits
    if one.paths == "all":
        first_s = min(bond.members[i].at_least_s(least) for i in one.links)
        later_s = received_s - first_s
    else:
        later_s = Fraction(0)
        for i in one.links:
            passes_s = bond.members[i].passes_s(most)
            if passes_s is None:
                return None
            for j in one.links:
                slow, fast = bond.members[i], bond.members[j]
                between_s = slow.delay_s[1] - slow.delay_s[0]
                if i != j:
                    between_s = passes_s - fast.at_least_s(least)
                later_s = max(later_s, between_s)
    if len(one.links) > 1 or later_s > 0:
        later_s += BEFORE_S
    curve = one.queue.envelope.curve
    held_bits = Fraction(0) if curve is None else curve(later_s + received_s)
    fits = held_bits <= MOST_HELD_BITS and held_bits <= MOST_HELD_PKTS * least
    return later_s if fits else None
