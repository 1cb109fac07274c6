# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a job for real kernels: four hosts in a row, the scheduler under test between the second and the third.

::

    sender ---- router ==== relay ---- receiver
      s0        r0  r1      y0  y1        d0
                    |           |          |
             link and policy    loss     return delay

The link is `labline` (lab/line), which paces and delays packets as the simulator's does, by lists of its capacity and
delay over time that are computed here. The policy is its only child. A size table makes the kernel count the scenario's
bytes (`link.overhead`) and not Ethernet's 14. With `link.follow` the policy learns the capacity as in the simulator.

Neighbours are static, segments are not merged, there is no IPv6: nothing is on the wire but the flows. TCP connections
start at random within 100 ms after their time, drawn from the seed (`staggered` has the simulator do so); datagrams at
the simulator's times, with random numbers of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkweir.deploy.copies import copies, each_copy
from linkweir.deploy.policy import ETHERNET_BYTES, kind_of, policy_lines
from linkweir.fault import unfit
from linkweir.lab.arrivals import arrivals, check_sizes
from linkweir.lab.line import Line
from linkweir.lab.signal import Signal
from linkweir.scenarios.declared import refuse_scheduler, table_of, told, traffic_kinds
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Flow as FlowNumbers

ZERO_NS = 5_000_000_000
"""Uptime at which the experiment begins; all preparation is done by then."""
CHANGE_S = 0.05
"""A smooth loss changes so often, and over gateways a smooth capacity."""
STAGGER_S = 0.1
"""TCP connections start within this time."""
RECEIVER = "10.0.3.2"
ECN_RECEIVER = "10.0.3.3"
"""The receiver's address for flows with `ecn`: the sender's route to it asks for marks."""
KERNEL_CC = {"cubic": "cubic", "reno": "reno", "newreno": "reno", "bbr": "bbr"}
"""Congestion controls of a scenario that every kernel of the laboratory has, and what it calls them."""
COUNTING_CC = {"dctcp": "dctcp"}
"""Those that count marks, which only some kernels have. They ask for accurate ECN (RFC 9768), as in the simulator."""
ACCESS_HANDLE = 0xA0
"""Of the queueing discipline at the sender that delays flows; a flow's packets name their band of it."""
MOST_ACCESS_DELAYS = 15
MARKS = 63
"""Code points that tell packets apart; 0 is that of all others."""
FIRST_LOCAL_PORT = 20000
"""A TCP flow's local port, less its number; as in workload.c."""

DUE = np.dtype([("at_ns", "<u8"), ("flow", "<u4"), ("bytes", "<u4")])


@dataclass(frozen=True)
class Flow:
    """A source and its receiver; its keys are as they are written and, in `numbers`, as numbers with units."""

    name: str
    kind: str
    of_class: int
    start_s: float
    stop_s: float
    keys: Mapping[str, Any]
    numbers: FlowNumbers

    @property
    def access_delay_ns(self) -> int:
        """Between the source and the queue."""
        return round(1e9 * self.numbers["access_delay_s"])


@dataclass(frozen=True)
class World:
    """A scenario made ready for the laboratory.

    Attributes:
        scenario: what is run.
        classes: names, in the order of the queues.
        flows: copies counted.
        handles: the handle of each class, as tc shows it.
        capacity: of the link, bit/s; None for a network, whose links have theirs.
        overhead_bytes: bytes on the wire beyond each packet's own.
        delay_s: propagation; at the start if it changes.
        bins: of `scenario.interval_s`, the last one may be shorter.
        job: the files the kernel runs.
        lossy: packets are lost behind the queue.
        line: the link, where it takes packets off the queue and sends each when its time is over.
        links: of a network, each alone, with its name; flows are then those of the network, and classes are the first
            ones on their ways.
        marks: code points of each class's packets; None if those of class n, from 1, carry n.
        crossings: flows that cross the link of a network.
        noted: the link notes each packet that leaves the queue, up to so many; 0 if it notes none.
        commands: of tc that put the queues below the link, and how often they change.
    """

    scenario: Scenario
    classes: tuple[str, ...]
    flows: tuple[Flow, ...]
    handles: tuple[str, ...]
    capacity: Signal | Line | None
    overhead_bytes: int
    delay_s: float
    bins: tuple[float, ...]
    job: Mapping[str, bytes]
    lossy: bool = False
    line: Line | None = None
    links: Mapping[str, World] = field(default_factory=dict)
    marks: tuple[tuple[int, ...], ...] | None = None
    crossings: tuple[Crossing, ...] = ()
    noted: int = 0
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Crossing:
    """A flow at a link that it crosses.

    Attributes:
        flow: its name.
        hop: place of the link on the way, from 1.
        back: the way is that of acknowledgements.
        of_class: class on this link.
        mark: code point of the flow's packets.
    """

    flow: str
    hop: int
    back: bool
    of_class: int
    mark: int


@dataclass(frozen=True)
class Queues:
    """What queues packets at the link.

    Attributes:
        commands: of tc, which put it below `SHAPED` of the device r1.
        handles: of the classes, as tc shows them; empty where `labline` counts each class's packets.
        marks: code point of each class's packets.
        changes: commands of tc and their times in ns.
    """

    commands: Sequence[str]
    handles: tuple[str, ...]
    marks: tuple[int, ...]
    changes: Sequence[tuple[int, str]] = ()


def world(
    scenario: Scenario,
    kinds: frozenset[str],
    *,
    stagger_s: float = STAGGER_S,
    every_packet: bool = False,
    controls: Collection[str] = KERNEL_CC,
) -> World:
    """Makes a scenario ready.

    Args:
        scenario: what is run.
        kinds: policies that are queueing disciplines of linkweir.
        stagger_s: TCP connections start at random within this after their time.
        every_packet: the link notes how long each packet waited.
        controls: congestion controls of the kernel.

    Raises:
        ScenarioError: something in it cannot run on a real kernel.
    """
    check(scenario, controls)
    tables = scenario.native.tables()
    entries = each_copy(tables["classes"])
    marks = tuple(range(1, len(entries) + 1))
    sorter = Marked("r1", tuple((mark,) for mark in marks))
    nominal_bps = tables["link"]["nominal_bps"]
    policy, handles = policy_lines(tables["scheduler"], entries, nominal_bps, "r1", sorter, kinds=kinds)
    changes = capacity_reports(line_of(scenario), scenario, scenario.native.written(), kinds, "r1")
    return below_the_link(
        scenario, Queues(policy, handles, marks, changes), stagger_s=stagger_s, every_packet=every_packet
    )


def below_the_link(
    scenario: Scenario, queues: Queues, *, stagger_s: float = STAGGER_S, every_packet: bool = False
) -> World:
    """Makes a scenario ready, in which these queues feed the link; other arguments are those of `world`."""
    tables = scenario.native.tables()
    flows = flows_of(scenario)
    line = line_of(scenario)
    overhead = tables["link"]["overhead_bytes"]
    bins = bins_of(scenario)
    labels = [replace(label, mark=queues.marks[label.mark - 1]) for label in _labels(flows)]
    run = workloads(flows, scenario, RECEIVER, "/job", "/out", stagger_s=stagger_s, labels=labels)
    datagrams = due(flows, scenario)
    most = _most_packets(line, scenario, len(datagrams)) if every_packet else 0
    hosts = [*_access(flows), *_accurate_ecn(flows)]
    script = _script(queues.commands, hosts, run, overhead, line, tables["link"]["return_delay_s"])
    if every_packet:
        script += "cat /proc/labline/r1 >/out/departures\n"
    job = {
        "run": script.encode(),
        "due": datagrams.tobytes(),
        "line": line.content(ZERO_NS, most),
        "changes": tc_schedule(bins, queues.changes, "r1", whole=every_packet).encode(),
        "losses": _loss_schedule(line).encode(),
    }
    names = tuple(name for entry in scenario.native.written()["class"] for name in copies(entry))
    lossy = bool(line.loss.values.max() > 0)
    delay_s = float(line.delay.values[0])
    marks = tuple((mark,) for mark in queues.marks)
    commands = (*queues.commands, *_described(queues.changes))
    return World(
        scenario,
        names,
        flows,
        queues.handles,
        line,
        overhead,
        delay_s,
        bins,
        job,
        lossy,
        line,
        marks=marks,
        noted=most,
        commands=commands,
    )


def _described(changes: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The commands at the first change, and how many changes there are."""
    times = sorted({at_ns for at_ns, _ in changes})
    if times:
        yield f"# after {times[0] / 1e9:g} s, the first of {len(times)} {'change' if len(times) == 1 else 'changes'}:"
        yield from (text for at_ns, text in changes if at_ns == times[0])


def line_of(scenario: Scenario) -> Line:
    """The link of a scenario."""
    link = scenario.native.written()["link"]
    return Line.of(scenario, isinstance(link.get("rate"), dict) and "steps" not in link["rate"], CHANGE_S)


_MEAN_BYTES = 600
"""Packets of TCP are longer than this in the mean."""


_MOST_NOTED = 4_000_000
"""Notes of packets that fit into the guest's memory (`host.MEMORY`), 24 bytes each."""


def _most_packets(line: Line, scenario: Scenario, datagrams: int) -> int:
    """More than the packets that can pass a link.

    Raises:
        ScenarioError: the guest cannot note so many.
    """
    found = datagrams + int(line.mean(0.0, scenario.duration_s) * scenario.duration_s / 8 / _MEAN_BYTES) + 1000
    if found > _MOST_NOTED:
        message = (
            f"up to {found:,} packets pass, of which the laboratory can note {_MOST_NOTED:,}; "
            f"use at most {scenario.duration_s * _MOST_NOTED / found:.2g} s, or a lower rate"
        )
        raise unfit("duration", f"{scenario.duration_s:g} s", message)
    return found


def bins_of(scenario: Scenario) -> tuple[float, ...]:
    """Ends of the bins of a scenario's series; the first is 0."""
    duration_ns, interval_ns = round(scenario.duration_s * 1e9), round(scenario.interval_s * 1e9)
    return (*(n / 1e9 for n in range(0, duration_ns, interval_ns)), scenario.duration_s)


# --- Reading --------------------------------------------------------------------------------------------------------


def check(scenario: Scenario, controls: Collection[str] = KERNEL_CC) -> None:
    """Refuses a scenario of which something runs only in the simulator, whatever queues there."""
    keys = scenario.native.written()
    check_link(keys["link"])
    check_flows(keys, flows_of(scenario), controls)


def check_link(link: Mapping[str, Any], place: str = "link") -> None:
    """Refuses links that only the simulator supports; `place` is where their keys are."""
    for key, words in told("link", "laboratory", link, "refused"):
        raise unfit(f"{place}.{key}", "..." if isinstance(link[key], Mapping) else link[key], words)


def check_flows(keys: Mapping[str, Any], flows: tuple[Flow, ...], controls: Collection[str] = KERNEL_CC) -> None:
    """Refuses flows that only the simulator supports."""
    if len(flows) > 1024:
        raise unfit("flow", len(flows), "must be 1 .. 1024 flows in the laboratory")
    classes = sum(entry["count"] for entry in keys["class"])
    if classes > MARKS:
        message = f"must be at most {MARKS} classes: the laboratory marks each with a DSCP of its own"
        raise unfit("class", classes, message)
    refuse_scheduler("laboratory", keys["scheduler"])
    check_classes(keys["class"])
    check_sources(keys["flow"], controls)


def check_classes(entries: Sequence[Mapping[str, Any]], place: str = "class") -> None:
    """Refuses classes that only the simulator supports; `place` is where their keys are."""
    for number, entry in enumerate(entries):
        for key, words in told("class", "laboratory", entry, "refused"):
            raise unfit(f"{place}[{number}].{key}", entry[key], words)


def check_sources(entries: Sequence[Mapping[str, Any]], controls: Collection[str] = KERNEL_CC) -> None:
    """Refuses kinds of traffic and keys of flows that only the simulator supports."""
    for number, flow in enumerate(entries):
        words_of_kind = traffic_kinds()[flow["kind"]]["laboratory"].words
        if words_of_kind is not None:
            raise unfit(f"flow[{number}].kind", flow["kind"], words_of_kind)
        for key, words in told(table_of(flow["kind"]), "laboratory", flow, "refused"):
            raise unfit(f"flow[{number}].{key}", flow[key], words)
        if flow.get("cc", "cubic") not in controls:
            words = f"must be one of {', '.join(controls)} in the laboratory, whose kernel is built without the others"
            if flow["cc"] == "dctcp":
                words += "; compare and yardstick have it with --kernel newest"
            raise unfit(f"flow[{number}].cc", flow["cc"], words)


def left_out(keys: Mapping[str, Any]) -> Iterator[str]:
    """What of a resolved scenario the laboratory goes on without, a line each."""
    for key, words in told("", "laboratory", keys, "left_out"):
        yield words.format(key=key, value=keys[key])
    for number, flow in enumerate(keys["flow"]):
        for key, words in told("flow", "laboratory", flow, "left_out"):
            yield words.format(key=f"flow[{number}].{key}")


def flows_of(scenario: Scenario) -> tuple[Flow, ...]:
    """The sources of a scenario."""
    keys = scenario.native.written()
    places: dict[str, list[int]] = {}
    number = 0
    for entry in keys["class"]:
        mine = list(range(number, number + entry["count"]))
        number += entry["count"]
        places |= {name: [at] for name, at in zip(copies(entry), mine, strict=True)}
        places[entry["name"]] = mine
    found = []
    for entry, numbers in zip(keys["flow"], scenario.native.tables()["flows"], strict=True):
        for n, name in enumerate(copies(entry)):
            mine = places[entry["class"]]
            start = numbers["start_s"] + n * numbers["stagger_s"]
            stop = min(numbers["stop_s"], scenario.duration_s)
            found.append(Flow(name, entry["kind"], mine[n % len(mine)], start, stop, entry, numbers))
    return tuple(found)


# --- The scheduler --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Marked:
    """Packets of each class carry one of these code points."""

    device: str
    marks: tuple[tuple[int, ...], ...]

    def words(self) -> list[str]:
        """Words for a queueing discipline of linkweir."""
        return ["dscp", ",".join(f"{mark}={n}" for n, marks in enumerate(self.marks, 1) for mark in marks)]

    def lines(self, parent: str, places: Mapping[int, str]) -> list[str]:
        """Commands of tc for the classes that are at these places, by their numbers."""
        match = f"filter add dev {self.device} parent {parent} protocol ip prio 1 u32 match ip dsfield"
        return [f"{match} {mark << 2:#x} 0xfc flowid {place}" for n, place in places.items() for mark in self.marks[n]]


# --- The job --------------------------------------------------------------------------------------------------------


def _script(policy: Sequence[str], hosts: list[str], run: list[str], overhead: int, line: Line, back_s: float) -> str:
    tc = [f"tc -n router {text}" for text in (f"qdisc add dev r1 root handle 1: {stab(overhead)}labline", *policy)]
    tc += [*_paths(line, back_s), *hosts]
    run.insert(2, 'workload say /job/changes | tc -n router -s -batch - >/out/counters & jobs="$jobs $!"')
    if not line.loss.constant:
        run.insert(2, 'workload say /job/losses | tc -n relay -batch - & jobs="$jobs $!"')
    return "\n".join(
        [". /guest/hosts.sh", *tc, f"export ZERO_NS={ZERO_NS}", *run, "for job in $jobs; do wait $job; done", ""]
    )


NETEM = "netem limit 10000000"
"""Words of tc for a queue that only delays."""


def netem_delay(wait_s: float) -> str:
    """Words of netem for a delay."""
    return f"delay {1e6 * wait_s:.3f}us"


def _impairments(line: Line, loss: float) -> str:
    """Netem's words for loss and reordering; with `gap 1` it holds back all but the part that `reorder` names."""
    words = NETEM
    if line.reorder is not None:
        probability, held_s = line.reorder
        words += f" {netem_delay(held_s)}" + (
            f" reorder {100 * (1 - probability):.7f}% gap 1" if probability < 1 else ""
        )
    return f"{words} loss random {100 * loss:.7f}%"


def _paths(line: Line, back_s: float) -> list[str]:
    """Lines that delay acknowledgements, and lose and hold back packets where the link does not know which."""
    lines = []
    if line.fates is None:
        lines.append(f"tc -n relay qdisc add dev y1 root {_impairments(line, line.loss.values[0])}")
    if back_s:
        lines.append(f"tc -n receiver qdisc add dev d0 root {NETEM} {netem_delay(back_s)}")
    return lines


def _loss_schedule(line: Line) -> str:
    """Commands for tc and their times: the steps of the loss."""
    steps = list(zip(line.loss.at_ns, line.loss.values, strict=True))[1:]
    return "".join(f"{at_ns} qdisc change dev y1 root {_impairments(line, loss)}\n" for at_ns, loss in steps)


def bands(flows: tuple[Flow, ...]) -> dict[int, int]:
    """The band of each access delay in ns, from 2 on; the first is for flows without one."""
    found = sorted({flow.access_delay_ns for flow in flows} - {0})
    if len(found) > MOST_ACCESS_DELAYS:
        message = f"must have at most {MOST_ACCESS_DELAYS} different values in the laboratory"
        raise unfit("flow.access_delay", len(found), message)
    return {delay_ns: band for band, delay_ns in enumerate(found, 2)}


def _access(flows: tuple[Flow, ...]) -> list[str]:
    """Lines that delay flows before the queue and their acknowledgements behind the link.

    The sender's packets name their band; acknowledgements are known by their port.
    """
    known = bands(flows)
    if not known:
        return []
    lines = []
    for end in ("sender qdisc add dev s0", "router qdisc add dev r0"):
        lines.append(f"tc -n {end} root handle {ACCESS_HANDLE:x}: prio bands {len(known) + 1} priomap" + 16 * " 0")
        for delay_ns, band in known.items():
            lines.append(f"tc -n {end} parent {ACCESS_HANDLE:x}:{band:x} {NETEM} {netem_delay(delay_ns / 1e9)}")
    first = 0
    while first < len(flows):
        last = first
        while last + 1 < len(flows) and flows[last + 1].access_delay_ns == flows[first].access_delay_ns:
            last += 1
        if flows[first].access_delay_ns:
            band = known[flows[first].access_delay_ns]
            ports = "-".join(str(FIRST_LOCAL_PORT + n) for n in sorted({first, last}))
            match = f"flower ip_proto tcp dst_port {ports} classid {ACCESS_HANDLE:x}:{band:x}"
            lines.append(
                f"tc -n router filter add dev r0 parent {ACCESS_HANDLE:x}: protocol ip prio {first + 1} {match}"
            )
        first = last + 1
    return lines


def _accurate_ecn(flows: tuple[Flow, ...]) -> list[str]:
    """The line that lets the receiver grant accurate ECN to flows that ask for it; the sender asks flow by flow."""
    counting = any(flow.keys.get("cc") in COUNTING_CC for flow in flows)
    return ["in_ receiver sh -c 'echo 3 >/proc/sys/net/ipv4/tcp_ecn'"] if counting else []


def starts_ns(flows: tuple[Flow, ...], seed: int, stagger_s: float) -> list[int]:
    """When each TCP connection starts, drawn from the seed."""
    random = np.random.default_rng([seed, 0x7C9])
    return [round(1e9 * (flow.start_s + stagger_s * random.random())) for flow in flows]


def staggered(scenario: Scenario, *, stagger_s: float = STAGGER_S) -> dict[str, Any]:
    """The same scenario for the simulator, with the starts of TCP flows that the laboratory draws.

    Args:
        scenario: what is run in both.
        stagger_s: of the laboratory, as in `world`.
    """
    keys = scenario.native.written()
    classes = [name for entry in keys["class"] for name in copies(entry)]
    flows = flows_of(scenario)
    entries = []
    for flow, start_ns in zip(flows, starts_ns(flows, scenario.seed, stagger_s), strict=True):
        start = f"{start_ns if flow.kind == 'tcp' else round(1e9 * flow.start_s)}ns"
        own = {"name": flow.name, "class": classes[flow.of_class], "start": start, "count": 1, "stagger": "0s"}
        entries.append({**flow.keys, **own})
    return {**keys, "flow": entries}


@dataclass(frozen=True)
class Label:
    """How a flow's packets are sent: code point, band at the sender, and where to if not to the receiver's address."""

    mark: int
    priority: int = 0
    to: str = ""

    @property
    def datagrams(self) -> str:
        """As the traffic tool reads it for datagrams."""
        return f"{self.mark}:{self.priority}" + (f":{self.to}" if self.to else "")


def _labels(flows: tuple[Flow, ...]) -> list[Label]:
    """Those of flows that share the way from the sender to the receiver."""
    known = bands(flows)
    priorities = [(ACCESS_HANDLE << 16 | known[flow.access_delay_ns]) if flow.access_delay_ns else 0 for flow in flows]
    to = [ECN_RECEIVER if flow.keys.get("ecn") else "" for flow in flows]
    found = zip(flows, priorities, to, strict=True)
    return [Label(flow.of_class + 1, priority, receiver) for flow, priority, receiver in found]


def workloads(
    flows: tuple[Flow, ...],
    scenario: Scenario,
    receiver: str,
    job: str,
    out: str,
    *,
    stagger_s: float = STAGGER_S,
    labels: Sequence[Label] | None = None,
) -> list[str]:
    """Lines that start the traffic between the hosts `sender` and `receiver`, whose address this is."""
    interval_ns, end_ns = round(scenario.interval_s * 1e9), round(scenario.duration_s * 1e9)
    labels = _labels(flows) if labels is None else labels
    datagrams = " ".join(label.datagrams for label in labels)
    streams = []
    for number, (flow, start_ns) in enumerate(zip(flows, starts_ns(flows, scenario.seed, stagger_s), strict=True)):
        if flow.numbers["kind"] == "tcp" and start_ns < end_ns:
            size = flow.numbers["bytes"] or 0
            stop_ns = round(1e9 * flow.stop_s)
            cc = (KERNEL_CC | COUNTING_CC)[flow.numbers["cc"]]
            label = labels[number]
            words = (number, label.mark, label.priority, start_ns, stop_ns, size, cc)
            streams.append(":".join(map(str, words)) + (f":{label.to}" if label.to else ""))
    run = [
        f"in_ receiver workload receive {interval_ns} {end_ns} {out}/datagrams {out}/received & jobs=$!",
        f'in_ sender workload datagrams {receiver} {job}/due {datagrams} & jobs="$jobs $!"',
    ]
    if streams:
        run.append(
            f"in_ sender workload streams {receiver} {interval_ns} {end_ns} {out}/senders {' '.join(streams)} "
            '& jobs="$jobs $!"'
        )
    return run


def stab(overhead: int) -> str:
    """Words of tc by which the kernel counts a packet with this overhead and not with Ethernet's."""
    more = overhead - ETHERNET_BYTES
    return f"stab overhead {more} linklayer ethernet " if more else ""


def due(flows: tuple[Flow, ...], scenario: Scenario) -> Any:
    """The packets of the datagram flows, in order of time."""
    parts = []
    for number, flow in enumerate(flows):
        source = flow.numbers
        if source["kind"] == "tcp" or flow.stop_s <= flow.start_s:
            continue
        if not (source["kind"] == "cbr" or source["kind"] == "poisson"):
            raise ValueError(f"flow {flow.name}: the laboratory does not send {source['kind']}")
        random = np.random.default_rng([scenario.seed, number])
        check_sizes(source, f"flow {flow.name}: packet", flow.keys["packet"])
        at_ns, sizes = arrivals(source, flow.start_s, flow.stop_s, random)
        part = np.zeros(len(at_ns), DUE)
        part["at_ns"], part["flow"], part["bytes"] = at_ns, number, sizes
        parts.append(part)
    whole = np.concatenate(parts) if parts else np.zeros(0, DUE)
    return whole[np.argsort(whole["at_ns"], kind="stable")]


def capacity_reports(
    line: Line, scenario: Scenario, keys: Mapping[str, Any], kinds: frozenset[str], device: str
) -> list[tuple[int, str]]:
    """Commands that report the capacity to a policy that follows it, with their times."""
    policy = keys["scheduler"]["policy"]
    if not keys["link"]["follow"] or policy not in kinds:
        return []
    change = f"qdisc change dev {device} parent 1:1 handle 10: {kind_of(policy)} link"
    return [(at_ns, f"{change} {bps}bit") for at_ns, bps in line.reports(round(1e9 * scenario.duration_s))]


def tc_schedule(
    bins: tuple[float, ...], changes: Sequence[tuple[int, str]], device: str, *, whole: bool = False
) -> str:
    """Commands for tc and their times: read the counters at the ends of the bins, and make the changes.

    Args:
        bins: their ends.
        changes: further commands, with their times in ns.
        device: whose counters are read.
        whole: at the end those of queueing disciplines are read, too.
    """
    ends_ns = [round(1e9 * t_s) for t_s in bins]
    lines = [(at_ns, 0, f"class show dev {device}") for at_ns in ends_ns]
    lines += [(at_ns, 1, text) for at_ns, text in changes]
    lines += [(ends_ns[-1], 2, f"qdisc show dev {device}")] if whole else []
    return "".join(f"{at_ns} {text}\n" for at_ns, _, text in sorted(lines, key=lambda line: line[:2]))
