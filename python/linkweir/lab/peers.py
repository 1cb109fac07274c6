# SPDX-License-Identifier: BSD-3-Clause
"""Peers: the kernel's own queueing disciplines, set up for a scenario's link as a competent operator would do it.

`PEERS` declares each: what it needs of the kernel, and its commands of tc. What an operator knows of a scenario is a
`Task`: the capacity and the round trip of the link, and of each class whether it is urgent, has a reserved rate, or
takes the rest. Packets carry code points that say the same (RFC 4594), and the peers classify by them.

A peer is the only child of the link, which takes a packet when the one before it has left. So nothing waits below the
peer, and it may be told the whole capacity. Peers with a shaper are told each change of the capacity at once, which no
operator could do: they cannot lose because of a late estimate. Zero is no rate for them; below `LEAST_BPS` the rate
stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linkweir.deploy.copies import each_copy
from linkweir.deploy.matching import CODE_POINTS, number_of, values
from linkweir.deploy.policy import exact
from linkweir.fault import unfit
from linkweir.lab import kernel
from linkweir.lab.fault import LaboratoryError
from linkweir.lab.line import Line
from linkweir.lab.world import (
    COUNTING_CC,
    KERNEL_CC,
    STAGGER_S,
    Marked,
    Queues,
    World,
    below_the_link,
    check,
    due,
    flows_of,
    line_of,
)
from linkweir.scenarios.policy import policies
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Class

LEAST_BPS = 64_000
"""No capacity that a peer is told is lower; a class of it may be guaranteed an eighth of this."""
URGENT, RESERVED, REST = "urgent", "reserved", "rest"
_MARKS = {
    URGENT: ("EF", "VOICE-ADMIT", "CS5", "CS4", "CS6", "CS7"),
    RESERVED: ("AF41", "AF42", "AF43", "AF31", "AF32", "AF33", "CS3", "AF21", "AF22", "AF23", "CS2"),
    REST: ("DF", "AF11", "AF12", "AF13", "CS1", "LE"),
}
"""Code points of the classes of a part, for those without `match`; cake's diffserv4 has a tin for each part."""
_HEADROOM = 1.25
"""HTB guarantees an urgent class its mean load times this."""
_MTU_BYTES = 1514
_MOST_BANDS = 16
_MOST_QUANTUM_BYTES = 60_000
_LEAST_ROUND_TRIP_S = 0.1
"""What cake and fq_codel assume by themselves; a longer one is told to them."""


@dataclass(frozen=True)
class OperatorClass:
    """What an operator knows of a class.

    Attributes:
        part: urgent, reserved or rest.
        rank: 0 for the most urgent classes.
        offered_bps: mean load of its datagrams.
        reserved_bps: what it was promised; 0 if nothing.
        weight: its part of what its equals share.
        mark: code point of its packets.
        l4s: its senders count marks.
    """

    part: str
    rank: int
    offered_bps: float
    reserved_bps: float
    weight: float
    mark: int
    l4s: bool


@dataclass(frozen=True)
class Task:
    """What an operator knows.

    Attributes:
        capacity_bps: of the link, at the start.
        round_trip_s: without queues.
        classes: in the order of the scenario.
    """

    capacity_bps: float
    round_trip_s: float
    classes: tuple[OperatorClass, ...]

    @property
    def sorter(self) -> Marked:
        """Tells the classes apart."""
        return Marked("r1", tuple((one.mark,) for one in self.classes))

    def guaranteed_bps(self, capacity_bps: float, headroom: float) -> list[float]:
        """Rates, to the kbit/s, that add up to the capacity: urgent load first, then reservations, the rest by weight.

        Args:
            capacity_bps: what is divided.
            headroom: an urgent class gets its mean load times this.
        """
        left = capacity_bps
        rates = [0.0] * len(self.classes)
        for part in (URGENT, RESERVED):
            for n, one in enumerate(self.classes):
                if one.part == part:
                    wanted = headroom * one.offered_bps if part == URGENT else one.reserved_bps
                    rates[n] = min(wanted, left)
                    left -= rates[n]
        sharing = [n for n, rate in enumerate(rates) if not rate]
        weights = sum(self.classes[n].weight for n in sharing)
        for n in sharing:
            rates[n] = left * self.classes[n].weight / weights
        return [max(1e3 * round(rate / 1e3), LEAST_BPS / 8) for rate in rates]


@dataclass(frozen=True)
class Peer:
    """One of the kernel's own ways to schedule a link.

    Attributes:
        needs: queueing disciplines of the kernel.
        words: what an operator gets with it, a sentence without a full stop.
        commands: of tc, for a task.
        changes: of tc, for a task when the capacity is another one; None if nothing depends on it.
    """

    needs: tuple[str, ...]
    words: str
    commands: Callable[[Task], list[str]]
    changes: Callable[[Task, float], list[str]] | None = None


_BELOW = "dev r1 parent 1:1 handle 10:"
_ROOT = "10:ff"


def _rate(bps: float) -> str:
    return exact(round(bps), "rate")


def _cake(task: Task) -> list[str]:
    rtt = f"rtt {1e3 * max(_LEAST_ROUND_TRIP_S, task.round_trip_s):.0f}ms"
    return [f"qdisc add {_BELOW} cake bandwidth {_rate(task.capacity_bps)} diffserv4 {rtt}"]


def _cake_rate(_task: Task, capacity_bps: float) -> list[str]:
    return [f"qdisc change {_BELOW} cake bandwidth {_rate(capacity_bps)}"]


def _codel(task: Task) -> str:
    """fq_codel for this round trip: its interval covers it, its target is a twentieth of that (RFC 8289, section 4)."""
    interval_s = max(_LEAST_ROUND_TRIP_S, task.round_trip_s)
    return f"fq_codel interval {1e3 * interval_s:.0f}ms target {50 * interval_s:.0f}ms"


def _htb_classes(task: Task, verb: str, capacity_bps: float) -> list[str]:
    lines = [
        f"class {verb} dev r1 parent 10: classid {_ROOT} htb rate {_rate(capacity_bps)} ceil {_rate(capacity_bps)}"
    ]
    for n, rate_bps in enumerate(task.guaranteed_bps(capacity_bps, _HEADROOM)):
        quantum = round(min(max(rate_bps / 80, _MTU_BYTES), _MOST_QUANTUM_BYTES))
        words = (
            f"rate {_rate(rate_bps)} ceil {_rate(capacity_bps)} prio {min(task.classes[n].rank, 7)} quantum {quantum}"
        )
        lines.append(f"class {verb} dev r1 parent {_ROOT} classid 10:{n + 1:x} htb {words}")
    return lines


def _leaves(task: Task) -> list[str]:
    return [
        f"qdisc add dev r1 parent 10:{n:x} handle {0x100 + n:x}: {_codel(task)}"
        for n in range(1, len(task.classes) + 1)
    ]


def _filters(task: Task) -> list[str]:
    return task.sorter.lines("10:", {n: f"10:{n + 1:x}" for n in range(len(task.classes))})


def _htb(task: Task) -> list[str]:
    add = f"qdisc add {_BELOW} htb default {len(task.classes):x}"
    return [add, *_htb_classes(task, "add", task.capacity_bps), *_leaves(task), *_filters(task)]


def _htb_rate(task: Task, capacity_bps: float) -> list[str]:
    return _htb_classes(task, "change", capacity_bps)


def _ets_bands(task: Task) -> list[int]:
    """The classes in the order of their bands: urgent ones first."""
    urgent = [n for n, one in enumerate(task.classes) if one.part == URGENT]
    return [
        *sorted(urgent, key=lambda n: task.classes[n].rank),
        *(n for n in range(len(task.classes)) if n not in urgent),
    ]


def _ets_words(task: Task, capacity_bps: float) -> str:
    """Strict bands for urgent classes, quanta in proportion to the rates of the others."""
    if len(task.classes) > _MOST_BANDS:
        raise unfit("class", len(task.classes), f"must be at most {_MOST_BANDS} classes: ets has so many bands")
    strict = sum(one.part == URGENT for one in task.classes)
    parts = task.guaranteed_bps(capacity_bps, 1.0)
    others = [parts[n] for n in _ets_bands(task)[strict:]]
    # A class for which nothing is left gets a small share, so that no turn of another keeps the link for long.
    least_bps = max(min(others, default=0.0), max(others, default=0.0) * _MTU_BYTES / _MOST_QUANTUM_BYTES)
    quanta = "".join(f" {round(_MTU_BYTES * max(part, least_bps) / least_bps)}" for part in others)
    last = " ".join([str(len(task.classes) - 1)] * 16)
    words = f"bands {len(task.classes)} strict {strict}" + (f" quanta{quanta}" if others else "")
    return f"ets {words} priomap {last}"


def _ets_rate(task: Task, capacity_bps: float) -> list[str]:
    return [f"qdisc change {_BELOW} {_ets_words(task, capacity_bps)}"]


def _ets(task: Task) -> list[str]:
    band = {n: at for at, n in enumerate(_ets_bands(task), 1)}
    lines = [f"qdisc add {_BELOW} {_ets_words(task, task.capacity_bps)}"]
    lines += [f"qdisc add dev r1 parent 10:{band[n]:x} handle {0x101 + n:x}: {_codel(task)}" for n in sorted(band)]
    return [*lines, *task.sorter.lines("10:", {n: f"10:{at:x}" for n, at in sorted(band.items())})]


def _fq_pie(_task: Task) -> list[str]:
    return [f"qdisc add {_BELOW} fq_pie ecn"]


_L4S, _LOW_LATENCY = "10:1", "10:2"
"""Classes of dualpi2 whose packets go to the L queue: one marks them, the other neither marks nor drops them."""


def _dualpi2(task: Task) -> list[str]:
    """Defaults of RFC 9332, as Debian's tc knows no options; urgent classes are in the L queue (RFC 9331, 5.4.1.1).

    Those whose senders count marks are there, too, by their code points: DCTCP's packets carry ECT(0), as CUBIC's do.
    """
    places = {n: _L4S for n, one in enumerate(task.classes) if one.l4s}
    places |= {n: _LOW_LATENCY for n, one in enumerate(task.classes) if one.part == URGENT}
    return [f"qdisc add {_BELOW} dualpi2", *task.sorter.lines("10:", places)]


PEERS: Mapping[str, Peer] = {
    "cake": Peer(
        ("cake",),
        "a tin for each part of the traffic (diffserv4), a queue for each flow, told the capacity at once",
        _cake,
        _cake_rate,
    ),
    "htb+fq_codel": Peer(
        ("htb", "fq_codel"),
        "guaranteed rates, borrowing in order of urgency, fq_codel in each class, told the capacity at once",
        _htb,
        _htb_rate,
    ),
    "ets": Peer(
        ("ets", "fq_codel"),
        "strict bands for urgent classes, quanta in proportion to rates for the others, which follow the capacity, "
        "fq_codel in each band",
        _ets,
        _ets_rate,
    ),
    "fq_pie": Peer(("fq_pie",), "a queue for each flow, no classes, no rate", _fq_pie),
    "dualpi2": Peer(
        ("dualpi2",),
        "urgent classes, and those of senders that count marks, in the L queue, all others in the classic one, no rate",
        _dualpi2,
    ),
}
"""What `linkweir compare --where virtual` may compare besides policies."""


def check_kernel(peer: str, folder: Path) -> None:
    """Refuses a peer that a kernel lacks.

    Args:
        peer: a name in `PEERS`.
        folder: the kernel's, from `kernel.build`.

    Raises:
        LaboratoryError: it lacks it.
    """
    there = kernel.options(folder)
    missing = [name for name in PEERS[peer].needs if f"NET_SCH_{name.upper()}" not in there]
    if missing:
        raise LaboratoryError(
            f"policies: {peer}: Linux {kernel.release(folder)} in the laboratory has no sch_{missing[0]}; "
            "add --kernel newest"
        )


def task_of(scenario: Scenario) -> Task:
    """What an operator would know of a scenario."""
    tables = scenario.native.tables()
    entries = each_copy(tables["classes"])
    levels = _levels(tables["scheduler"]["policy"], entries)
    nominal_bps = tables["link"]["nominal_bps"]
    reserved = [
        float(params.get("rate") or 0.0) or float(params.get("share") or 0.0) * nominal_bps
        if params.get("low_level") is not None
        else 0.0
        for params in (one["params"] for one in entries)
    ]
    first = min((level for level, bps in zip(levels, reserved, strict=True) if bps), default=None)
    bound = first if first is not None else min(levels) + 1 if len(set(levels)) > 1 else min(levels)
    parts = [
        RESERVED if bps else URGENT if level < bound else REST for level, bps in zip(levels, reserved, strict=True)
    ]
    offered = _offered_bps(scenario, len(entries))
    ranks = {level: rank for rank, level in enumerate(sorted(set(levels)))}
    weights = [float(one["params"].get("quantum") or one["params"].get("weight") or 1.0) for one in entries]
    marks = _marks(scenario, parts)
    line = line_of(scenario)
    flows = flows_of(scenario)
    access_s = max((flow.access_delay_ns / 1e9 for flow in flows), default=0.0)
    round_trip_s = float(line.delay.values.max()) + tables["link"]["return_delay_s"] + 2 * access_s
    counting = {flow.of_class for flow in flows if flow.keys.get("cc") in COUNTING_CC}
    l4s = [one["params"].get("l4s") == "yes" or n in counting for n, one in enumerate(entries)]
    columns = zip(parts, [ranks[level] for level in levels], offered, reserved, weights, marks, l4s, strict=True)
    classes = tuple(OperatorClass(*column) for column in columns)
    return Task(_first_bps(line, nominal_bps), round_trip_s, classes)


def _levels(policy: object, entries: Sequence[Class]) -> list[int]:
    """The level of each class, by default its number if the policy orders classes; without levels all are equals."""
    ordered = any(param.name == "level" for one in policies() if one.name == policy for param in one.class_params)
    return [int(one["params"].get("level", n if ordered else 0)) for n, one in enumerate(entries)]


def _offered_bps(scenario: Scenario, classes: int) -> list[float]:
    flows = flows_of(scenario)
    packets = due(flows, scenario)
    of_class = np.array([flow.of_class for flow in flows], np.int64)
    bits = np.bincount(of_class[packets["flow"]], 8.0 * packets["bytes"], classes)
    return [float(found) / scenario.duration_s for found in bits]


def _first_bps(line: Line, nominal_bps: float) -> float:
    found = float(line.rate.values[0]) if line.rate is not None else nominal_bps
    return found if found >= LEAST_BPS else nominal_bps


def _marks(scenario: Scenario, parts: Sequence[str]) -> list[int]:
    """The code point in `match` if a class has one, else a usual one for its part; no two classes have the same."""
    entries = each_copy(scenario.native.written()["class"])
    given = [
        next((number_of(point) for rule in entry.get("match") or () for point in values(rule, "dscp")), None)
        for entry in entries
    ]
    found: list[int] = []
    for own, part in zip(given, parts, strict=True):
        taken = {*found, *given}
        usual = [CODE_POINTS[word] for word in _MARKS[part]]
        spare = [mark for mark in range(64) if mark not in CODE_POINTS.values()]
        mark = own if own is not None and own not in found else next(m for m in [*usual, *spare] if m not in taken)
        found.append(mark)
    return found


def queues(scenario: Scenario, peer: str) -> Queues:
    """What queues packets at the link of a scenario under a peer.

    Raises:
        ScenarioError: the peer cannot have so many classes.
    """
    spec, task = PEERS[peer], task_of(scenario)
    changes: list[tuple[int, str]] = []
    told_bps = task.capacity_bps
    for at_ns, bps in line_of(scenario).reports(round(1e9 * scenario.duration_s)):
        if spec.changes is not None and bps >= LEAST_BPS and bps != told_bps:
            told_bps = bps
            changes += [(at_ns, line) for line in spec.changes(task, bps)]
    return Queues(spec.commands(task), ("",) * len(task.classes), tuple(one.mark for one in task.classes), changes)


def under_peer(
    scenario: Scenario,
    peer: str,
    *,
    stagger_s: float = STAGGER_S,
    every_packet: bool = False,
    controls: Collection[str] = KERNEL_CC,
) -> World:
    """Makes a scenario ready in which a peer takes the place of its policy; other arguments are those of `world`.

    Raises:
        ScenarioError: something in it cannot run on a real kernel.
    """
    check(scenario, controls)
    return below_the_link(scenario, queues(scenario, peer), stagger_s=stagger_s, every_packet=every_packet)
