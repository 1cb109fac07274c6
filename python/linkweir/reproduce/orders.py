# SPDX-License-Identifier: BSD-3-Clause
"""The orders in which the same packets leave a scheduler in two places, compared position by position.

Each place records the calls of its policy as a vector (vectors/README.md). A packet is its class and its number among
the arrivals of its class. Both orders begin at the first packet that both hold. A stretch where they differ ends where
both have sent the same packets again. Everything that differs in it is put down to one cause:

* `equal times`: a packet arrived at the time of a decision, in either place, so that which comes first is arbitrary;
* `ring`: a packet arrived before the decision in one place and after it in the other, within the time of the driver's
  ring;
* `jiffies`: the same, within the tick in which the place counts time;
* `waits`: both packets waited in both places, but for other times, and the policy goes by waits: in each place the more
  urgent packet left;
* `times`: both packets waited in both places, and the policy remembers when packets left. These times differ a little
  between places, and decide where two claims are nearly equal;
* `only in one`: one place sent a packet that the other did not send, so that positions shift;
* `unexplained`: none of these.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from linkweir.fault import Error

CAUSES = ("equal times", "ring", "jiffies", "waits", "times", "only in one", "unexplained")

Urgency = Callable[[int, int], float]
"""Of a packet of a class that has waited for so long, ns; the policy sends the most urgent one."""


class Departure(NamedTuple):
    """A packet that left: its class, its number among the class's arrivals, when it came and left, ns."""

    queue: int
    number: int
    arrived_ns: int
    left_ns: int

    @property
    def packet(self) -> tuple[int, int]:
        """What it is in every place."""
        return self.queue, self.number


class CallsError(Error, ValueError):
    """A recording of calls that is incomplete or contradicts itself."""


def departures(lines: Iterable[str]) -> list[Departure]:
    """The departures of a recording, in order.

    Raises:
        CallsError: a packet leaves an empty queue.
    """
    waiting: dict[int, deque[tuple[int, int]]] = {}
    arrived: Counter[int] = Counter()
    picked = -1
    found: list[Departure] = []

    def take(queue: int, *, head: bool, line: str) -> tuple[int, int]:
        if not waiting.get(queue):
            raise CallsError(f'"{line.strip()}": queue {queue} is empty')
        return waiting[queue].popleft() if head else waiting[queue].pop()

    for line in lines:  # of millions, few have a comment
        words = (line.split("#")[0] if "#" in line else line).split()
        if len(words) < 3 or words[0] != "at":
            continue
        at_ns, what, rest = int(words[1]), words[2], words[3:]
        if what == "enqueue":
            queue = int(rest[0])
            waiting.setdefault(queue, deque()).append((arrived[queue], at_ns))
            arrived[queue] += 1
            for victim in rest[3:]:
                take(int(victim.removeprefix("h")), head=victim.startswith("h"), line=line)
        elif what == "pick":
            picked = -1 if rest[0] == "none" else int(rest[0])
        elif what == "send":
            queue = int(rest[0]) if rest else picked
            number, arrived_ns = take(queue, head=True, line=line)
            found.append(Departure(queue, number, arrived_ns, at_ns))
        elif what == "drop":
            take(int(rest[0]), head=False, line=line)
        elif what == "verdict" and rest[0] == "drop":
            take(picked, head=True, line=line)
        elif what == "expired" and rest[1] == "yes":
            take(int(rest[0]), head=True, line=line)
    return found


def read_departures(path: Path) -> list[Departure]:
    """The departures of a recorded file.

    Raises:
        CallsError: it is no recording, or contradicts itself; names the file.
    """
    with path.open() as file:
        try:
            if not file.readline().startswith("linkweir-vectors 1"):
                raise CallsError('the first line is not "linkweir-vectors 1"')
            return departures(file)
        except CallsError as error:
            raise CallsError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Timing:
    """What of a place can change an order.

    Attributes:
        ring_ns: how long before its transmission begins a packet is picked, at most: the driver's ring.
        tick_ns: the granularity of the place's time, such as a jiffy; 0: 1 ns.
    """

    ring_ns: int = 0
    tick_ns: int = 0


@dataclass
class Agreement:
    """How far two orders agree.

    Attributes:
        positions: compared.
        skipped: departures of the reference and of the place before the first common packet: the start offset.
        differing: positions at which the packets are not the same, by cause.
    """

    positions: int = 0
    skipped: tuple[int, int] = (0, 0)
    differing: Counter[str] = field(default_factory=Counter)

    @property
    def part(self) -> float:
        """The part of the positions that agree, 0 to 1; 0 where nothing could be compared."""
        return 1 - self.differing.total() / self.positions if self.positions else 0.0


def compare_orders(
    reference: Sequence[Departure],
    place: Sequence[Departure],
    timing: Timing,
    urgency: Urgency | None = None,
    *,
    remembers: bool = False,
) -> Agreement:
    """Compares a place's order with the reference's, from the first packet that both sent to the end of the shorter.

    Args:
        reference: departures of the simulator.
        place: departures of the place.
        timing: what of the place can change an order.
        urgency: by which the policy goes, if it goes by waits.
        remembers: the policy remembers when packets left. Replay its calls to see that it decides alike at equal times.
    """
    start = _start(reference, place)
    if start is None:
        return Agreement()
    ours, theirs = reference[start[0] :], place[start[1] :]
    length = min(len(ours), len(theirs))
    result = Agreement(length, start)
    at = 0
    while at < length:
        if ours[at].packet == theirs[at].packet:
            at += 1
            continue
        end = _together_again(ours, theirs, at, length)
        differing = sum(ours[i].packet != theirs[i].packet for i in range(at, end))
        result.differing[_cause(ours[at:end], theirs[at:end], timing, urgency, remembers)] += differing
        at = end
    return result


def later_ns(reference: Sequence[Departure], place: Sequence[Departure]) -> int:
    """How much later packets arrive in a place than in the reference, ns, counted from the first common departure.

    It is the median of all packets that both sent, 0 if there is none.
    """
    start = _start(reference, place)
    if start is None:
        return 0
    ours_ns, theirs_ns = reference[start[0]].left_ns, place[start[1]].left_ns
    arrived_ns = {one.packet: one.arrived_ns - theirs_ns for one in place}
    both = (one for one in reference if one.packet in arrived_ns)
    return round(median(arrived_ns[one.packet] - one.arrived_ns + ours_ns for one in both))


def _start(reference: Sequence[Departure], place: Sequence[Departure]) -> tuple[int, int] | None:
    """Where the orders begin: at the first common packet, with the fewest departures skipped in both."""
    if not reference or not place:
        return None
    if reference[0].packet == place[0].packet:
        return 0, 0
    where = {departure.packet: index for index, departure in reversed(list(enumerate(place)))}
    both = ((i, where[one.packet]) for i, one in enumerate(reference) if one.packet in where)
    least: tuple[int, int] | None = None
    for i, j in both:
        if least is None or i + j < sum(least):
            least = i, j
        if i >= sum(least):
            break
    # Packets that only swapped places at the very beginning are a difference, not an offset.
    if least and {d.packet for d in reference[: sum(least) + 1]} == {d.packet for d in place[: sum(least) + 1]}:
        return 0, 0
    return least


def _together_again(ours: Sequence[Departure], theirs: Sequence[Departure], begin: int, length: int) -> int:
    """The position from which both have sent the same packets since `begin`, or the end."""
    surplus: dict[tuple[int, int], int] = {}
    for at in range(begin, length):
        for packet, step in ((ours[at].packet, 1), (theirs[at].packet, -1)):
            count = surplus.get(packet, 0) + step
            if count:
                surplus[packet] = count
            else:
                surplus.pop(packet, None)
        if not surplus:
            return at + 1
    return length


def _cause(
    ours: Sequence[Departure], theirs: Sequence[Departure], timing: Timing, urgency: Urgency | None, remembers: bool
) -> str:
    """Why a stretch differs."""
    mine, other = ({one.packet: one for one in stretch} for stretch in (ours, theirs))
    if mine.keys() != other.keys():
        return "only in one"
    first, chosen = mine[ours[0].packet], mine[theirs[0].packet]
    # How long before the decision each of the two packets had arrived, in both places; below 0: it had not.
    leads = (
        *(ours[0].left_ns - one.arrived_ns for one in (first, chosen)),
        *(theirs[0].left_ns - other[one.packet].arrived_ns for one in (first, chosen)),
    )
    if 0 in leads:
        return "equal times"
    waited = [all(lead > 0 for lead in pair) for pair in (leads[:2], leads[2:])]
    if all(waited):
        if urgency is not None:
            queues = (first.queue, chosen.queue)
            here, there = (
                [urgency(queue, wait_ns) for queue, wait_ns in zip(queues, pair, strict=True)]
                for pair in (leads[:2], leads[2:])
            )
            if here[0] >= here[1] and there[1] >= there[0]:
                return "waits"
        return "times" if remembers else "unexplained"  # both packets were there in both places: another decision
    nearest_ns = min(abs(lead) for lead in leads)
    if nearest_ns <= timing.ring_ns:
        return "ring"
    return "jiffies" if nearest_ns <= timing.tick_ns else "unexplained"


@dataclass(frozen=True)
class Cell:
    """The values of a place at a point of a figure, and how far they are from the simulator's.

    Attributes:
        values: rates (Mbit/s) or delays (ms), by class.
        off: the largest distance of a class from the simulator, as a part.
        bound: the largest distance that is allowed.
    """

    values: tuple[float, ...]
    off: float
    bound: float

    @property
    def kept(self) -> bool:
        """Whether the bound is kept."""
        return self.off <= self.bound


def cell(values: Sequence[float], simulated: Sequence[float], bound: float, floor: float = 0.0) -> Cell:
    """Compares the values of a place with the simulator's.

    Args:
        values: of the place, by class.
        simulated: of the simulator, by class.
        bound: the largest distance that is allowed, as a part.
        floor: differences are a part of the simulator's value, or of this where that is smaller: of a class that gets
            nearly nothing, a few packets more or less are a large part.

    Raises:
        ValueError: there are not as many values in both.

    >>> cell([4.0, 11.1], [4.0, 11.0], 0.02).kept
    True
    >>> round(cell([4.0, 12.1], [4.0, 11.0], 0.02).off, 3)
    0.1
    """
    if len(values) != len(simulated):
        raise ValueError(
            f"{len(values)} values of a place, {len(simulated)} of the simulator: compare the same classes"
        )
    off = 0.0
    for value, wanted in zip(values, simulated, strict=True):
        difference, of = abs(value - wanted), max(abs(wanted), floor)
        if difference:
            off = max(off, difference / of if of else float("inf"))
    return Cell(tuple(values), off, bound)
