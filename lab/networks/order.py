# SPDX-License-Identifier: BSD-3-Clause
"""The order in which the packets of open sources leave each link of a network, in the simulator and in the kernel.

Both get the same packets. Where two packets meet at a queue in less time than the kernel takes to send one (about a
microsecond), either may be first. So packets are moved until none arrives within `GUARD_NS` of another one, or of an
instant at which the queue is asked for one. Then nothing is arbitrary, and the orders must be the same.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkweir
from linkweir.lab import host
from linkweir.lab.experiment import Laboratory
from linkweir.lab.line import DEPARTURE
from linkweir.lab.network import network, routed_flows
from linkweir.lab.world import due
from linkweir.scenarios.scenario import Scenario

GUARD_NS = 4_000
_MOST_ROUNDS = 50
LOG_ROWS = 10_000_000

Packets = NDArray[Any]
Ns = NDArray[np.int64]


@dataclass(frozen=True)
class Departures:
    """Packets that left a link's queue, in order: number of the flow, bytes, and time in ns."""

    flow: Ns
    bytes: Ns
    at_ns: Ns


def replayed(scenario: Scenario, packets: Packets, folder: Path) -> Scenario:
    """The same network, with these packets in place of what its sources draw; files are written into a folder."""
    entries = []
    for one in routed_flows(scenario):
        name = one.flow.name
        mine = packets[packets["flow"] == one.number - 1]
        path = folder / f"{one.number}.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["t_s", "bytes"])
            rows.writerows((f"{at_ns / 1e9:.9f}", size) for at_ns, _, size in mine.tolist())
        classes = dict(one.there)
        way = [link for link, _ in one.there]
        access = one.flow.keys["access_delay"]
        keys = {
            "name": name,
            "kind": "replay",
            "file": str(path),
            "class": classes,
            "path": way,
            "access_delay": access,
        }
        entries.append(keys)
    keys = {**scenario.native.written(), "flow": entries, "log": "packets", "log_rows": LOG_ROWS}
    return Scenario.from_dict(keys)


def drawn(scenario: Scenario) -> Packets:
    """The packets that the flows of a network draw in the laboratory."""
    packets: Packets = due(tuple(one.flow for one in routed_flows(scenario)), scenario)
    return packets


def spaced(scenario: Scenario, folder: Path) -> tuple[Packets, Mapping[str, Departures]]:
    """The packets of a network, moved so that none meet, and how they leave its links in the simulator.

    Raises:
        RuntimeError: some still meet after many rounds.
    """
    packets = drawn(scenario)
    random = np.random.default_rng([scenario.seed, 0x5ACE])
    for number in range(1, _MOST_ROUNDS + 1):
        log = _Log(scenario, packets, folder)
        moved = log.meeting()
        if not len(moved):
            return packets, log.departures()
        # Further with each round: those that come back to back from another link meet again after a small step.
        packets = packets.copy()
        packets["at_ns"][moved] += random.integers(2 * GUARD_NS, 50 * number * GUARD_NS, len(moved)).astype(np.uint64)
        packets = packets[np.argsort(packets["at_ns"], kind="stable")]
    raise RuntimeError(f"{scenario.name}: {len(moved)} packets still meet after {_MOST_ROUNDS} rounds")


class _Log:
    """The log of a simulation of these packets."""

    def __init__(self, scenario: Scenario, packets: Packets, folder: Path) -> None:
        table = linkweir.run(replayed(scenario, packets, folder)).tables["packets"]
        self.links = scenario.links
        self._packets = packets
        numbers = {name: n for n, name in enumerate(scenario.flows)}
        self._column = {name: table[name].to_numpy() for name in ("t_ns", "number", "size_bytes")}
        self._flow = np.array([numbers[name] for name in table["flow"].to_pylist()])
        self._link = np.array(table["link"].to_pylist())
        self._event = np.array(table["event"].to_pylist())

    def _rows(self, link: str, event: str) -> tuple[Ns, Ns, Ns, Ns]:
        """Times, flows, numbers and bytes of an event at a link."""
        here = (self._link == link) & (self._event == event)
        t_ns, number, size = (self._column[name][here].astype(np.int64) for name in ("t_ns", "number", "size_bytes"))
        return t_ns, self._flow[here], number, size

    def departures(self) -> dict[str, Departures]:
        """How the packets leave each link."""
        found = {}
        for link in self.links:
            t_ns, flow, _, size = self._rows(link, "sent")
            found[link] = Departures(flow, size, t_ns)
        return found

    def meeting(self) -> Ns:
        """Places of the packets that arrive at a queue too close to another one, or to a departure of another one."""
        late: set[tuple[int, int]] = set()
        for link in self.links:
            came_ns, flow, number, _ = self._rows(link, "enqueued")
            left_ns, left_flow, left_number, _ = self._rows(link, "sent")
            late |= _close(came_ns, flow, number, came_ns, flow, number)
            late |= _close(came_ns, flow, number, left_ns, left_flow, left_number)
        places = []
        for n in {flow for flow, _ in late}:
            mine = np.flatnonzero(self._packets["flow"] == n)
            places += [int(mine[number]) for flow, number in late if flow == n]
        return np.array(sorted(places), np.int64)


def _close(came_ns: Ns, flow: Ns, number: Ns, other_ns: Ns, other_flow: Ns, other_number: Ns) -> set[tuple[int, int]]:
    """The packets that came within the guard before or after an event of another packet, of two the later one."""
    order = np.argsort(other_ns, kind="stable")
    sorted_ns = other_ns[order]
    first = np.searchsorted(sorted_ns, came_ns - GUARD_NS, side="left")
    last = np.searchsorted(sorted_ns, came_ns + GUARD_NS, side="right")
    found = set()
    for at in np.flatnonzero(last > first):
        for k in order[first[at] : last[at]]:
            if (other_flow[k], other_number[k]) != (flow[at], number[at]):
                found.add((int(flow[at]), int(number[at])))
    return found


def kernels(laboratory: Laboratory, scenario: Scenario, packets: Packets) -> dict[str, Departures]:
    """How these packets leave the links of a network in the laboratory."""
    made = network(scenario, laboratory.guest.kinds, packets=packets)
    files = host.start(laboratory.guest, made.job, scenario.seed)
    zero_ns = int(made.job["run"].split(b"ZERO_NS=")[1].split()[0])
    found = {}
    for number, (name, link) in enumerate(made.links.items(), 1):
        rows = np.frombuffer(files[f"departures-{number}"], DEPARTURE)
        size = rows["bytes"].astype(np.int64) - link.overhead_bytes
        found[name] = Departures(rows["mark"].astype(np.int64) - 1, size, rows["at_ns"].astype(np.int64) - zero_ns)
    return found


@dataclass(frozen=True)
class Compared:
    """Two orders of departures.

    Attributes:
        departures: of the simulator, of the kernel.
        same: positions with the same flow and bytes.
        latest_ns: largest difference between the times of a position.
    """

    departures: tuple[int, int]
    same: int
    latest_ns: int

    @property
    def equal(self) -> bool:
        """Whether the orders are the same."""
        return self.departures == (self.same, self.same)


def compared(ours: Departures, theirs: Departures) -> Compared:
    """Compares two orders, position by position."""
    n = min(len(ours.flow), len(theirs.flow))
    same = (ours.flow[:n] == theirs.flow[:n]) & (ours.bytes[:n] == theirs.bytes[:n])
    apart = np.abs(ours.at_ns[:n] - theirs.at_ns[:n])
    return Compared((len(ours.flow), len(theirs.flow)), int(same.sum()), int(apart.max(initial=0)))
