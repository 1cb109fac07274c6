# SPDX-License-Identifier: BSD-3-Clause
"""A scenario with several links as a job for the laboratory's kernel: two routers for each link, and a wire between the
routers of links that follow each other on a way.

::

    sender --- entry1 ==== exit1 --- entry2 ==== exit2 --- receiver
       |              q1                    q2                |
       +---------- exit3 ========================= entry3 ----+
                                 q3

The device `q` of a link's entry has its queue: `labline` with the link's own list of capacities and delays, and the
policy below it, as with one link (world.py). A packet that has passed a link is at once at the queue of the next one.

Each flow has an address of its own at the sender and at the receiver, and the routers know the way to it. Each flow
has a code point, too, which the receiver's acknowledgements repeat. By it each queue knows the class of a packet, and
the kernel counts a flow's packets at each link. The acknowledgements of flows without a way back take a wire from the
receiver to the sender, where netem delays them by the return delays of the flow's links. `access_delay` is a netem
before the first queue, and behind the last one back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from linkweir.deploy.copies import copies, each_copy
from linkweir.deploy.policy import policy_lines
from linkweir.fault import unfit
from linkweir.lab.line import Line
from linkweir.lab.world import (
    ACCESS_HANDLE,
    CHANGE_S,
    MARKS,
    MOST_ACCESS_DELAYS,
    NETEM,
    STAGGER_S,
    ZERO_NS,
    Crossing,
    Flow,
    Label,
    Marked,
    World,
    bins_of,
    capacity_reports,
    check_classes,
    check_link,
    check_sources,
    due,
    netem_delay,
    stab,
    starts_ns,
    tc_schedule,
    workloads,
)
from linkweir.scenarios.declared import refuse_scheduler
from linkweir.scenarios.scenario import Scenario

MOST_LINKS = 32
_MOST_WIRES = 254
"""Each has a number of its own in addresses."""
_LINK_NS = 500_000_000
"""Time to set up a link and its two routers."""

Packets = NDArray[Any]
Way = Sequence[tuple[str, str]]
"""Links in turn, each with the class of the flow's packets there."""


@dataclass(frozen=True)
class Routed:
    """A flow with its ways and addresses.

    Attributes:
        flow: it.
        there, back: its ways; no link back: acknowledgements wait in no queue.
        number: its place among the flows, from 1; the code point of its packets.
        return_delay_ns: that of its acknowledgements if no link is on their way.
    """

    flow: Flow
    there: Way
    back: Way
    number: int
    return_delay_ns: int

    @property
    def source(self) -> str:
        """Address at the sender."""
        return f"10.8.0.{self.number}"

    @property
    def sink(self) -> str:
        """Address at the receiver."""
        return f"10.9.0.{self.number}"

    @property
    def crossings(self) -> Iterator[tuple[str, str, Crossing]]:
        """Link, class there, and the crossing without the class's number."""
        for back, way in ((False, self.there), (True, self.back)):
            for hop, (link, of_class) in enumerate(way, 1):
                yield link, of_class, Crossing(self.flow.name, hop, back, 0, self.number)


def network(
    scenario: Scenario,
    kinds: frozenset[str],
    *,
    stagger_s: float = STAGGER_S,
    packets: Packets | None = None,
) -> World:
    """Makes a scenario with several links ready.

    Args:
        scenario: what is run.
        kinds: policies that are queueing disciplines of linkweir.
        stagger_s: TCP connections start at random within this after their time.
        packets: the datagrams (dtype `DUE`) in place of those that the flows draw. The job then also leaves the order
            in which they left the queue of each link: for link N, from 1, a file ``departures-N`` (dtype `DEPARTURE`,
            whose marks are the numbers of flows from 1).

    Raises:
        ScenarioError: something in it cannot run on a real kernel.
    """
    routed = routed_flows(scenario)
    check_network(scenario, routed)
    zero_ns = ZERO_NS + _LINK_NS * len(scenario.links)
    flows = tuple(one.flow for one in routed)
    noted = 0 if packets is None else len(packets)
    packets = due(flows, scenario) if packets is None else packets
    links: dict[str, World] = {}
    job: dict[str, bytes] = {"due": packets.tobytes()}
    commands: list[str] = []
    readers: list[str] = []
    for number, name in enumerate(scenario.links, 1):
        made, policy = _link(scenario, name, number, routed, kinds)
        assert made.line is not None
        links[name] = made
        job[f"line-{number}"] = made.line.content(zero_ns, noted)
        keys = made.scenario.native.written()
        reports = capacity_reports(made.line, scenario, keys, kinds, f"q{number}")
        job[f"changes-{number}"] = tc_schedule(made.bins, reports, f"q{number}").encode()
        add = f"qdisc add dev q{number} root handle 1: {stab(made.overhead_bytes)}labline"
        commands += [f"cp /job/line-{number} /job/line", *(f"tc -n entry{number} {text}" for text in (add, *policy))]
        say = f"workload say /job/changes-{number} | tc -n entry{number} -s -batch - >/out/counters-{number}"
        readers.append(f'{say} & jobs="$jobs $!"')
    labels = [Label(one.number, 0, one.sink) for one in routed]
    run = workloads(flows, scenario, "10.9.0.1", "/job", "/out", stagger_s=stagger_s, labels=labels)
    wires = Wires(scenario.links, routed)
    shown = [f"cat /proc/labline/q{n} >/out/departures-{n}" for n in range(1, len(links) + 1) if noted]
    ends = ["for job in $jobs; do wait $job; done", *shown, ""]
    lines = [". /guest/wires.sh", *wires.lines(), *commands, f"export ZERO_NS={zero_ns}", *run[:2], *readers, *run[2:]]
    job["run"] = "\n".join([*lines, *ends]).encode()
    first = tuple(one.there[0][1] for one in routed)
    return World(scenario, first, flows, (), None, 0, 0.0, bins_of(scenario), job, links=links)


# --- Reading --------------------------------------------------------------------------------------------------------


def routed_flows(scenario: Scenario) -> list[Routed]:
    """The flows of a network."""
    links = {name: scenario.of_link(name).native.tables()["link"] for name in scenario.links}
    returns_ns = {name: round(1e9 * link["return_delay_s"]) for name, link in links.items()}
    found: list[Routed] = []
    native = scenario.native
    for entry, numbers in zip(native.written()["flow"], native.tables()["flows"], strict=True):
        for n, name in enumerate(copies(entry)):
            there, back = scenario.ways[name]
            start_s = numbers["start_s"] + n * numbers["stagger_s"]
            stop_s = min(numbers["stop_s"], scenario.duration_s)
            flow = Flow(name, entry["kind"], len(found), start_s, stop_s, entry, numbers)
            return_ns = 0 if back else sum(returns_ns[link] for link, _ in there)
            found.append(Routed(flow, there, back, len(found) + 1, return_ns))
    return found


def check_network(scenario: Scenario, routed: Sequence[Routed]) -> None:
    """Refuses networks that only the simulator supports."""
    if len(scenario.links) > MOST_LINKS:
        raise unfit("link", len(scenario.links), f"must be at most {MOST_LINKS} links in the laboratory")
    if len(routed) > MARKS:
        message = f"must be at most {MARKS} flows in a network: the laboratory marks each with a DSCP of its own"
        raise unfit("flow", len(routed), message)
    for name in scenario.links:
        keys = scenario.of_link(name).native.written()
        check_link(keys["link"], f"link.{name}")
        refuse_scheduler("laboratory", keys["scheduler"], f"link.{name}.scheduler")
        check_classes(keys["class"], f"link.{name}.class")
        for key in ("loss", "reorder"):
            if keys["link"].get(key):
                value = "..." if isinstance(keys["link"][key], Mapping) else keys["link"][key]
                message = "is there in the laboratory with one [link] only; leave it out, or run this in the simulator"
                raise unfit(f"link.{name}.{key}", value, message)
    check_sources(scenario.native.written()["flow"])
    for one in routed:
        both = {link for link, _ in one.there} & {link for link, _ in one.back}
        if both:
            message = "must not have a link of the flow's path in the laboratory, which counts packets by flow and link"
            raise unfit(f"flow.{one.flow.name}.back", ", ".join(sorted(both)), message)


def _link(
    scenario: Scenario, name: str, number: int, routed: Sequence[Routed], kinds: frozenset[str]
) -> tuple[World, list[str]]:
    """A link alone, and the lines of tc that set up its policy."""
    alone = scenario.of_link(name)
    keys = alone.native.written()
    classes = [(name, entry) for entry in keys["class"] for name in copies(entry)]
    names = tuple(of_class for of_class, _ in classes)
    crossings = tuple(
        Crossing(one.flow, one.hop, one.back, names.index(of_class), one.mark)
        for flow in routed
        for link, of_class, one in flow.crossings
        if link == name
    )
    marks = tuple(tuple(one.mark for one in crossings if one.of_class == at) for at in range(len(names)))
    rate = keys["link"].get("rate")
    line = Line.of(alone, isinstance(rate, dict) and "steps" not in rate, CHANGE_S)
    tables = alone.native.tables()
    numbers, entries = tables["link"], each_copy(tables["classes"])
    sorter = Marked(f"q{number}", marks)
    policy, handles = policy_lines(
        tables["scheduler"], entries, numbers["nominal_bps"], f"q{number}", sorter, kinds=kinds
    )
    delay_s = float(line.delay.values[0])
    bins = bins_of(scenario)
    overhead = numbers["overhead_bytes"]
    made = World(
        alone, names, (), handles, line, overhead, delay_s, bins, {}, line=line, marks=marks, crossings=crossings
    )
    return made, policy


# --- Hosts ----------------------------------------------------------------------------------------------------------


class Wires:
    """The hosts, the wires between them, and the routes.

    Args:
        links: names of the links.
        routed: the flows.
    """

    def __init__(self, links: Sequence[str], routed: Sequence[Routed]) -> None:
        self._number = {name: n for n, name in enumerate(links, 1)}
        self._routed = routed
        self._wires: dict[tuple[str, str], int] = {}
        for n in self._number.values():
            self._wire(f"entry{n}", f"exit{n}")
        self._routes: list[str] = []
        self._delays: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for one in routed:
            self._route(one)
        if len(self._wires) > _MOST_WIRES:
            message = f"must need at most {_MOST_WIRES} wires between hosts in the laboratory; use fewer different ways"
            raise unfit("flow.path", len(self._wires), message)

    def lines(self) -> list[str]:
        """Lines of the job."""
        hosts = ["sender", "receiver", *(f"{end}{n}" for n in self._number.values() for end in ("entry", "exit"))]
        routers = " ".join(hosts[2:])
        lines = [
            f"for host in {' '.join(hosts)}; do ip netns add $host; done",
            *(f"wire {a} {self._device(a, b)} {b} {self._device(b, a)} 10.0.{n} {n:02x}" for (a, b), n in self._all()),
            f"forward {routers}",
            "windows sender receiver",
            "in_ receiver sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_reflect_tos'",
            *(f"ip -n {host} link set lo up" for host in hosts[:2]),
        ]
        for one in self._routed:
            lines += [f"ip -n sender addr add {one.source}/32 dev lo", f"ip -n receiver addr add {one.sink}/32 dev lo"]
        return [*lines, *self._routes, *self._delayed()]

    def _all(self) -> list[tuple[tuple[str, str], int]]:
        return list(self._wires.items())

    def _wire(self, a: str, b: str) -> int:
        """The number of the wire from a to b."""
        return self._wires.setdefault((a, b), len(self._wires) + 1)

    def _device(self, at: str, towards: str) -> str:
        """The device of a host on the wire to another one; that of a link's entry has its queue."""
        number = self._wires.get((at, towards))
        if number is None:
            return f"p{self._wires[towards, at]}"
        return f"q{number}"

    def _hops(self, way: Way, first: str, last: str) -> list[tuple[str, str]]:
        """The wires of a way."""
        hosts = [first]
        for link, _ in way:
            hosts += [f"entry{self._number[link]}", f"exit{self._number[link]}"]
        return list(zip(hosts, [*hosts[1:], last], strict=True))

    def _route(self, one: Routed) -> None:
        """Adds a flow: its wires, routes, and delays."""
        ecn = " features ecn" if one.flow.keys.get("ecn") else ""
        there = self._hops(one.there, "sender", "receiver")
        back = self._hops(one.back, "receiver", "sender")
        self._add(there, one.sink, f" src {one.source}{ecn}")
        self._add(back, one.source, "")
        access_ns = one.flow.access_delay_ns
        for wire, address, delay_ns in (
            (there[0], one.sink, access_ns),
            (back[-1], one.source, access_ns + one.return_delay_ns),
        ):
            if delay_ns:
                self._delays.setdefault(wire, []).append((address, delay_ns))

    def _add(self, way: Sequence[tuple[str, str]], address: str, words: str) -> None:
        for number, (a, b) in enumerate(way):
            wire = self._wire(a, b)
            route = f"ip -n {a} route add {address}/32 via 10.0.{wire}.2 dev {self._device(a, b)}"
            self._routes.append(route + (words if number == 0 else ""))

    def _delayed(self) -> Iterator[str]:
        """Lines that delay flows on wires without a queue."""
        for (a, b), flows in self._delays.items():
            device = self._device(a, b)
            values = sorted({delay_ns for _, delay_ns in flows})
            if len(values) > MOST_ACCESS_DELAYS:
                message = f"must have at most {MOST_ACCESS_DELAYS} different values at a link in the laboratory"
                raise unfit("flow.access_delay", len(values), message)
            root = f"tc -n {a} qdisc add dev {device}"
            yield f"{root} root handle {ACCESS_HANDLE:x}: prio bands {len(values) + 1} priomap" + 16 * " 0"
            for band, delay_ns in enumerate(values, 2):
                yield f"{root} parent {ACCESS_HANDLE:x}:{band:x} {NETEM} {netem_delay(delay_ns / 1e9)}"
            for address, delay_ns in flows:
                match = f"flower dst_ip {address} classid {ACCESS_HANDLE:x}:{values.index(delay_ns) + 2:x}"
                yield f"tc -n {a} filter add dev {device} parent {ACCESS_HANDLE:x}: protocol ip prio 1 {match}"


# --- The same in the simulator --------------------------------------------------------------------------------------


def staggered(scenario: Scenario, *, stagger_s: float = STAGGER_S) -> dict[str, Any]:
    """The same network for the simulator, with the starts of TCP flows that the laboratory draws.

    Args:
        scenario: what is run in both.
        stagger_s: of the laboratory, as in `network`.
    """
    routed = routed_flows(scenario)
    flows = tuple(one.flow for one in routed)
    entries = []
    for one, start_ns in zip(routed, starts_ns(flows, scenario.seed, stagger_s), strict=True):
        start = f"{start_ns if one.flow.kind == 'tcp' else round(1e9 * one.flow.start_s)}ns"
        classes = dict([*one.there, *one.back])
        own = {"name": one.flow.name, "class": classes, "start": start, "count": 1, "stagger": "0s"}
        kept = {key: value for key, value in one.flow.keys.items() if key != "dscp"}
        entries.append({**kept, **own})
    return {**scenario.native.written(), "flow": entries}
