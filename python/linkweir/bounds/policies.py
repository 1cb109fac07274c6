# SPDX-License-Identifier: BSD-3-Clause
"""What each policy leaves to each class: service curves, or the reason why none is known.

A class gets several curves, each of which bounds its service; delays and backlogs are the least of all. The last is
that of blind multiplexing (Le Boudec and Thiran 2001, theorem 6.2.1): in any work-conserving policy a class gets at
least what all others leave.

The device takes a ring of r packets at once. When a class becomes backlogged, the packets in the ring go first:
with r = 1 one packet that is less urgent, otherwise r packets of any class. docs/explanation/guarantees.md derives
the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

from linkweir.bounds.arrivals import Envelope, exact
from linkweir.bounds.curve import (
    Curve,
    Number,
    add,
    horizontal,
    horizontal_at,
    rate_latency,
    residual,
    token_bucket,
    value_at,
    vertical,
)

MOST_VISITS = 256
"""Visits of a round robin that are counted one by one; after them a straight line below the steps follows."""
MOST_OUTPUTS = 4
"""Rivals of a round robin whose arrival curves count; every choice among them gives a service curve."""


@dataclass(frozen=True)
class Queue:
    """A class and what it may send."""

    name: str
    params: Mapping[str, Any]
    """The policy's parameters of the class, in base units."""
    envelope: Envelope
    entry: str = ""
    """The name of the entry of `[[class]]` that it is a copy of."""
    copies: int = 1
    """How many copies this entry has."""


@dataclass(frozen=True)
class Setting:
    """A scheduler, its link and its classes."""

    policy: str
    params: Mapping[str, Any]
    capacity: Curve
    ring: int
    nominal_bps: Fraction
    reported_bps: tuple[Fraction, Fraction]
    """The smallest and the largest capacity that the scheduler is told."""
    queues: Sequence[Queue]
    visits: int = MOST_VISITS
    """Visits of a round robin that are counted one by one."""


@dataclass
class Service:
    """What a class gets: curves, or why there are none, and PSS's memory that loses nothing, s."""

    curves: list[Curve] = field(default_factory=list)
    ends: list[Curve] = field(default_factory=list)
    """Further curves, which hold at the ends of the class' packets only."""
    fifo: Curve | None = None
    """With one queue for all arrivals: their sum, whose delay is that of each."""
    why_none: str = ""
    memory_s: Fraction | None = None

    def delay_s(self, arrivals: Curve, packets_bits: tuple[int, int]) -> Fraction | None:
        """The worst delay with this arrival curve and these smallest and largest packets; None without bound."""
        least, most = packets_bits
        found = []
        for curve in [*self.curves, *self.ends]:
            if self.fifo is not None:
                found.append(horizontal(self.fifo, curve))
            elif least == most:
                found.append(horizontal_at(arrivals, curve, most))
            else:
                found.append(horizontal(arrivals, curve))
        return min((delay for delay in found if delay is not None), default=None)


def services(setting: Setting) -> list[Service]:
    """The service of each class, in the scenario's order."""
    rules = {
        "fifo": _fifo,
        "strict": _strict,
        "drr": _round_robin,
        "wrr": _round_robin,
        "rr": _round_robin,
        "pss": _pss,
    }
    blind_only = ("pds",)
    if setting.policy not in rules and setting.policy not in blind_only:
        return [Service(why_none=f"no bound is known for the policy {setting.policy}") for _ in setting.queues]
    found = rules[setting.policy](setting) if setting.policy in rules else [Service() for _ in setting.queues]
    if setting.policy == "fifo":
        return found
    for index, service in enumerate(found):
        if blind := _blind(setting, index):
            service.curves += blind
            service.why_none = ""
        elif not service.curves and not service.why_none:
            _, why = _sum([q for i, q in enumerate(setting.queues) if i != index])
            service.why_none = f"no bound: {why}"
    return found


def _sum(queues: Sequence[Queue]) -> tuple[Curve | None, str]:
    for queue in queues:
        if queue.envelope.curve is None:
            return None, f"class {queue.name} may take everything, because {queue.envelope.why_none}"
    return add([token_bucket(0, 0), *(q.envelope.curve for q in queues if q.envelope.curve is not None)]), ""


def _blocking(setting: Setting, less_urgent: Sequence[Queue]) -> int:
    """Bits that may be in the ring when a class becomes backlogged."""
    if setting.ring == 1:
        return max((q.envelope.most_bits for q in less_urgent), default=0)
    return setting.ring * max(q.envelope.most_bits for q in setting.queues)


def _fifo(setting: Setting) -> list[Service]:
    taken, why = _sum(setting.queues)
    if taken is None:
        return [Service(why_none=f"no bound: {why}") for _ in setting.queues]
    return [Service(curves=[setting.capacity], fifo=taken) for _ in setting.queues]


def _level(queue: Queue, index: int) -> int:
    return int(queue.params.get("level", index))


def _strict(setting: Setting) -> list[Service]:
    levels = [_level(q, i) for i, q in enumerate(setting.queues)]
    found = []
    for level in levels:
        above, why = _sum([q for q, at in zip(setting.queues, levels, strict=True) if at < level])
        below = [q for q, at in zip(setting.queues, levels, strict=True) if at > level]
        if above is None:
            found.append(Service(why_none=f"no bound: {why}"))
        else:
            found.append(Service([residual(setting.capacity, [above], _blocking(setting, below))]))
    return found


# --- round robins -----------------------------------------------------------------------------------------------------


def _round_robin(setting: Setting) -> list[Service]:
    levels = [int(q.params.get("level", 0)) if setting.policy != "rr" else 0 for q in setting.queues]
    found = []
    places: list[_Place | None] = []
    for index, queue in enumerate(setting.queues):
        above, why = _sum([q for q, at in zip(setting.queues, levels, strict=True) if at < levels[index]])
        if above is None:
            found.append(Service(why_none=f"no bound: {why}"))
            places.append(None)
            continue
        same = [i for i, at in enumerate(levels) if i != index and at == levels[index]]
        rivals = [setting.queues[i] for i in same]
        below = [q for q, at in zip(setting.queues, levels, strict=True) if at > levels[index]]
        left = residual(setting.capacity, [above], _in_the_device(setting, queue, rivals, below))
        place = _Place(queue, left, same)
        places.append(place)
        found.append(_against(setting, place, same, []))
    for place, service, output in _outputs(setting, places, found):
        for chosen in (c for size in range(1, len(output) + 1) for c in combinations(sorted(output), size)):
            rest = [i for i in place.rivals if i not in chosen]
            further = _against(setting, place, rest, [output[i] for i in chosen])
            service.curves += further.curves
            service.ends += further.ends
    return found


@dataclass(frozen=True)
class _Place:
    """A class of a round robin: what its level receives, and its rivals there by number."""

    queue: Queue
    left: Curve
    rivals: Sequence[int]


def _against(setting: Setting, place: _Place, rivals: Sequence[int], sent: Sequence[Curve]) -> Service:
    """Service of a class when these rivals send as their visits allow, and the others what is given."""
    visit, lost, first, each = _visit(setting, place.queue, [setting.queues[i] for i in rivals])
    left = residual(place.left, sent) if sent else place.left
    service = Service([_turns(left, visit, lost, first, each, setting.visits)])
    if setting.policy == "wrr" and setting.params.get("mode") == "smooth" and _weight(place.queue) <= MOST_VISITS:
        weights = [(_weight(q), q.envelope.most_bits) for q in (setting.queues[i] for i in rivals)]
        turns = smooth(_weight(place.queue), place.queue.envelope.least_bits, weights, setting.visits)
        service.curves = [compose(turns, left)]
    if lost > 0 and rivals:
        # what is left of a deficit is less than the next packet, so k visits end before x > k quanta when it has left
        service.ends.append(_turns(left, visit, 0, first, each, setting.visits))
    return service


@lru_cache(maxsize=64)
def _turns(left: Curve, visit: int, lost: int, first: int, each: int, visits: int) -> Curve:
    """The part of `left` that a class receives; classes with the same keys share the result."""
    return compose(shared(visit, lost, first, each, visits), left)


def _outputs(
    setting: Setting, places: Sequence[_Place | None], found: Sequence[Service]
) -> Iterator[tuple[_Place, Service, dict[int, Curve]]]:
    """Of each class, what rivals with an arrival curve send at most in any interval, whenever it begins.

    With a concave arrival curve a and a backlog of at most v, that is a(t) + v - a(0) (Le Boudec and Thiran 2001,
    theorem 1.4.3). At most `MOST_OUTPUTS` rivals count, those that send least.
    """
    sent: dict[int, Curve] = {}
    for index, (queue, service) in enumerate(zip(setting.queues, found, strict=True)):
        arrivals = queue.envelope.curve
        if arrivals is None:
            continue
        curves = [*service.curves, *_blind(setting, index)]
        backlogs = [v for v in (vertical(arrivals, curve) for curve in curves) if v is not None]
        if backlogs:
            sent[index] = add([arrivals, token_bucket(max(min(backlogs) - arrivals(0), Fraction(0)), 0)])
    for place, service in zip(places, found, strict=True):
        if place is not None:
            known = sorted((i for i in place.rivals if i in sent), key=lambda i: (sent[i].rate, i))[:MOST_OUTPUTS]
            yield place, service, {i: sent[i] for i in known}


def _blind(setting: Setting, index: int) -> list[Curve]:
    """What all other classes leave, if all have arrival curves."""
    taken, _ = _sum([q for i, q in enumerate(setting.queues) if i != index])
    return [] if taken is None else [residual(setting.capacity, [taken])]


def _in_the_device(setting: Setting, queue: Queue, rivals: Sequence[Queue], below: Sequence[Queue]) -> int:
    """Bits in the device when a class becomes backlogged that are not counted with its rivals' visits."""
    if setting.ring == 1 and setting.policy == "drr":
        # a rival's packet counts with its visit; if the rival has left since, it returns with no deficit
        return max(_blocking(setting, [queue, *below]), *(_grain(q) for q in rivals), 0)
    return setting.ring * max(q.envelope.most_bits for q in setting.queues)


def _grain(queue: Queue) -> int:
    """Of drr: what divides every deficit, bits. At the end of a visit the deficit is at most a packet minus this."""
    least, most = queue.envelope.least_bits, queue.envelope.most_bits
    return math.gcd(8 * _bytes(queue, "quantum"), most) if least == most else 8


def _visit(setting: Setting, queue: Queue, rivals: Sequence[Queue]) -> tuple[int, int, int, int]:
    """What visits send, in bits: k visits of the class at least k times the first minus the second, its rivals at most
    the third in the first round and the fourth in each further one.
    """
    if setting.policy == "drr":
        quanta = [8 * _bytes(q, "quantum") for q in rivals]
        lost = queue.envelope.most_bits - _grain(queue)
        return (
            8 * _bytes(queue, "quantum"),
            lost,
            sum(quanta) + sum(q.envelope.most_bits - _grain(q) for q in rivals),
            sum(quanta),
        )
    weights = [_weight(q) if setting.policy == "wrr" else 1 for q in rivals]
    own = _weight(queue) if setting.policy == "wrr" else 1
    each = sum(w * q.envelope.most_bits for w, q in zip(weights, rivals, strict=True))
    # In smooth mode a rival may have been early in one cycle and late in the next.
    twice = 2 if setting.policy == "wrr" and setting.params.get("mode") == "smooth" else 1
    return own * queue.envelope.least_bits, 0, twice * each, each


def _weight(queue: Queue) -> int:
    return int(queue.params["weight"])


def _bytes(queue: Queue, key: str) -> int:
    return int(queue.params[key])


def shared(visit: Number, lost: Number, first: Number, each: Number, visits: int = MOST_VISITS) -> Curve:
    """Bits of a class of a round robin, against the bits of all classes of its level.

    While the class is backlogged and has sent x bits, at most floor((x + lost) / visit) of its visits are complete, so
    the rivals have sent at most first + each * that number. The curve is the inverse of x plus this.

    >>> shared(10, 0, 20, 20)(30), shared(10, 0, 20, 20)(50)
    (Fraction(10, 1), Fraction(10, 1))
    """
    visit, lost, first, each = Fraction(visit), Fraction(lost), Fraction(first), Fraction(each)
    if first == 0 and each == 0:
        return rate_latency(1, 0)
    done = lost // visit
    x, total = Fraction(0), first + each * done
    segments = [(Fraction(0), Fraction(0), Fraction(0))] if total > 0 else []
    for _ in range(visits):
        segments.append((total, x, Fraction(1)))
        following = (done + 1) * visit - lost
        total += following - x
        x, done = following, done + 1
        segments.append((total, x, Fraction(0)))
        total += each
    segments.append((total, x, visit / (visit + each)))
    return Curve.of(segments)


def smooth(weight: int, packet_bits: int, rivals: Sequence[tuple[int, int]], visits: int = MOST_VISITS) -> Curve:
    """As `shared`, for wrr's mode smooth: `rivals` have weights and largest packets.

    When the class sends the i-th packet of its cycle k + 1, a rival of weight w has been served at most k + 1 times w,
    and in this cycle min(i, w) times.

    >>> smooth(5, 10, [(3, 10)])(50), smooth(5, 10, [(3, 10)])(60), smooth(5, 10, [(3, 10)])(110)
    (Fraction(10, 1), Fraction(10, 1), Fraction(50, 1))
    """
    each = sum(w * bits for w, bits in rivals)
    if each == 0:
        return rate_latency(1, 0)
    gaps = [sum(bits for w, bits in rivals if w >= i) for i in range(1, min(weight, max(w for w, _ in rivals)) + 1)]
    total, sent = each, 0  # in the cycle in which the class became backlogged, rivals may all be served
    segments = [(0, 0, 0)]
    for _ in range(max(1, visits // len(gaps))):
        for i, gap in enumerate(gaps, start=1):
            total += gap
            run = packet_bits if i < len(gaps) else (weight - i + 1) * packet_bits
            segments += [(total, sent, 1), (total + run, sent + run, 0)]
            total, sent = total + run, sent + run
        total += each - sum(gaps)
    # from here on, as if rivals came before the class in each cycle
    total += each
    visit = weight * packet_bits
    return Curve.of([*segments, (total, sent, Fraction(visit, visit + each))])


def compose(outer: Curve, inner: Curve) -> Curve:
    """outer(inner(t)); inner is continuous."""
    starts = set(inner.starts)
    for level in outer.starts:
        t = inner.first(level)
        if t is not None:
            starts.add(t)
    segments = []
    i = o = 0  # both advance only, because inner never falls
    for t in sorted(starts):
        while i + 1 < len(inner.segments) and inner.segments[i + 1][0] <= t:
            i += 1
        bits, slope = value_at(inner.segments[i], t), inner.segments[i][2]
        while o + 1 < len(outer.segments) and outer.segments[o + 1][0] <= bits:
            o += 1
        rise = outer.segments[o][2]
        segments.append((t, value_at(outer.segments[o], bits), slope * rise if slope and rise else Fraction(0)))
    return Curve.of(segments)


# --- PSS --------------------------------------------------------------------------------------------------------------


def _pss(setting: Setting) -> list[Service]:
    why = _pss_uncovered(setting)
    controlled = [i for i, q in enumerate(setting.queues) if "low_level" in q.params]
    if why:
        return [Service(why_none=f"no bound: {why}") for _ in setting.queues]
    if not controlled:
        return _strict(setting)
    index = controlled[0]
    reserved = setting.queues[index]
    high, low = _level(reserved, index), int(reserved.params["low_level"])
    rho, resume, full = levels(reserved.params, max(setting.reported_bps[1], setting.nominal_bps))
    # A faster report widens the gap between LR and LM, so it is narrowest at the first one, which is the nominal rate.
    _, first_resume, first_full = levels(reserved.params, setting.nominal_bps)
    room = min(full - resume, first_full - first_resume)
    largest = max(q.envelope.most_bits for q in setting.queues)
    packet = reserved.envelope.most_bits
    slowest = min(setting.reported_bps[0], setting.nominal_bps)
    # A ring, or a link that is faster than the scheduler is told, lets a packet leave before its nominal end.
    most = full + packet + rho * packet / slowest
    above = [q for i, q in enumerate(setting.queues) if i != index and _level(q, i) < high]
    taken, reason = _sum(above)
    blocking = setting.ring * largest
    ahead = None if taken is None else residual(setting.capacity, [taken], blocking)
    deficit = None if ahead is None else missed(rho, ahead)
    found = []
    for i, queue in enumerate(setting.queues):
        level = _level(queue, i)
        if i == index:
            service = _reserved(rho, resume, most, deficit, reason)
            slack = rho * packet / slowest
            if service.curves and taken is not None and _always_high(reserved.envelope, rho, room - slack):
                below = [q for j, q in enumerate(setting.queues) if j != index and _level(q, j) > high]
                service.curves.append(residual(setting.capacity, [taken], _blocking(setting, below)))
            found.append(service)
        elif level < high:
            higher, wrong = _sum([q for j, q in enumerate(setting.queues) if j != index and _level(q, j) < level])
            below = [q for j, q in enumerate(setting.queues) if j == index or _level(q, j) > level]
            if higher is None:
                found.append(Service(why_none=f"no bound: {wrong}"))
            else:
                found.append(Service([residual(setting.capacity, [higher], _blocking(setting, below))]))
        elif level < low:
            higher, wrong = _sum([q for j, q in enumerate(setting.queues) if j != index and _level(q, j) < level])
            if higher is None:
                found.append(Service(why_none=f"no bound: {wrong}"))
                continue
            kept = setting.params.get("on_empty") == "reset" and deficit is not None
            least = max(resume - deficit, Fraction(0)) if kept and deficit is not None else Fraction(0)
            bucket = token_bucket(most - least, rho)
            found.append(Service([residual(setting.capacity, [higher, bucket], blocking)]))
        else:
            found.append(Service(why_none=f"no bound: class {reserved.name} goes first at its low level too"))
    return found


def _pss_uncovered(setting: Setting) -> str:
    params = setting.params
    if params.get("sat", "exact") == "paper":
        return "sat = paper cuts the credit at LM, so the class does not receive its rate exactly; use sat = exact"
    if params.get("early", "charge") == "ignore":
        return "early = ignore gives the class more than its rate on a link faster than reported; use early = charge"
    controlled = [q for q in setting.queues if "low_level" in q.params]
    if len(controlled) > 1:
        names = " and ".join(q.name for q in controlled)
        return f"{names} are several controlled classes; the bounds cover one"
    for queue in controlled:
        if exact(queue.params.get("share", 0)) > 0:
            return f"class {queue.name} reserves a share, which moves with the capacity; the bounds cover rate"
        if "credit" in queue.params:
            return f"class {queue.name} starts with a credit of its own; the bounds assume LR"
    return ""


def levels(params: Mapping[str, Any], best_bps: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """The reservation in bit/s, LR and LM in bits, as the core derives them (core/src/pss_reserve.h)."""
    rho = exact(params["rate"])
    mtu = 8 * exact(params["mtu"])
    link = int(best_bps)
    resume = exact(params["lr"]) if "lr" in params else None
    if resume is None:
        memory = rho * exact(params["memory"])
        resume = Fraction(max(int(memory), int(rho * 2 * mtu / link)))
    full = exact(params["lm"]) if "lm" in params else None
    if full is None:
        burst = (exact(params["burst"]) - 1) * mtu
        full = resume + int(burst * max(link - rho, Fraction(0)) / link)
    return rho, resume, full


def missed(rho_bps: Fraction, service: Curve) -> Fraction | None:
    """D: the most that a service falls behind a rate, bits; None if it never catches up.

    >>> missed(Fraction(3), rate_latency(7, 2))
    Fraction(6, 1)
    """
    if service.rate < rho_bps:
        return None
    return max((rho_bps * t - service.before(t) for t in service.starts), default=Fraction(0))


def _always_high(envelope: Envelope, rho: Fraction, room: Fraction) -> bool:
    """Whether a class that keeps its arrival curve never reaches LM, and so never leaves its high level.

    Its credit is at most LR plus the most by which its arrivals exceed rho; docs/explanation/guarantees.md says why.
    `room` is the least distance from LR to LM.
    """
    curve = envelope.curve
    if curve is None or curve.rate > rho:
        return False
    return max(curve(t) - rho * t for t in curve.starts) < room


def _reserved(rho: Fraction, resume: Fraction, most: Fraction, deficit: Fraction | None, reason: str) -> Service:
    if reason:
        return Service(why_none=f"no bound: {reason}")
    if deficit is None:
        rate = f"{float(rho / 10**6):g} Mbit/s"
        return Service(why_none=f"no bound: what more urgent classes leave is less than the reserved {rate}")
    memory_s = deficit / rho
    if resume < deficit:
        text = f"LR is {int(resume)} bit, but up to {-int(-deficit // 1)} bit may be owed"
        return Service(why_none=f"no bound: {text}; memory = {float(memory_s):.6g}s loses nothing", memory_s=memory_s)
    return Service([rate_latency(rho, (most - resume + deficit) / rho)], memory_s=memory_s)
