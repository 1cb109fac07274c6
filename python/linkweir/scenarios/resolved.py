# SPDX-License-Identifier: BSD-3-Clause
"""The facts of a scenario that the rules need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkweir import _native
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Class, Flow, Link, Scheduler

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Entry:
    """A `[[class]]` with its copies and the flows that send into them.

    Attributes:
        keys: its keys.
        numbers: which classes of the scenario it makes.
        names: what these are called.
        flows: the keys of its flows.
    """

    keys: Class
    numbers: range
    names: list[str]
    flows: tuple[Flow, ...]

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters of the policy, in base units."""
        return self.keys["params"]

    def where(self, n: int) -> str:
        """The name of one of the classes in a warning."""
        return f"class {self.names[n - self.numbers.start]}"

    def level(self, n: int) -> int:
        """Priority of one of the classes; unless given, its number."""
        return int(self.params.get("level", n))

    def largest_bytes(self) -> float:
        """The largest packet its flows send; 0 without flows."""
        return max((packet_bytes(flow)[1] for flow in self.flows), default=0.0)


class ResolvedScenario:
    """A resolved scenario.

    Attributes:
        link: keys of the link.
        scheduler: keys of the scheduler.
        entries: the classes.
        flows: keys of the flows.
    """

    def __init__(self, scenario: Scenario) -> None:
        tables = scenario.native.tables()
        self.flows: list[Flow] = tables["flows"]
        self.entries: list[Entry] = []
        if scenario.is_network:  # each link has its own; see `Scenario.of_link`
            return
        self.link: Link = tables["link"]
        self.scheduler: Scheduler = tables["scheduler"]
        senders: dict[str, list[Flow]] = {}
        for flow in self.flows:
            senders.setdefault(flow["class"], []).append(flow)
        first = 0
        for entry in tables["classes"]:
            numbers = range(first, first + entry["count"])
            names = scenario.classes[numbers.start : numbers.stop]
            called = dict.fromkeys([entry["name"], *names])
            flows = tuple(flow for name in called for flow in senders.get(name, ()))
            self.entries.append(Entry(entry, numbers, names, flows))
            first = numbers.stop

    @property
    def default_mtu_bytes(self) -> float:
        """The default of the policy's parameter `mtu`; 0 if it has none."""
        (policy,) = (policy for policy in _native.policies() if policy["name"] == self.scheduler["policy"])
        params = (*policy["params"], *policy["class_params"])
        return float(next((param["usual"] or 0 for param in params if param["name"] == "mtu"), 0))

    @property
    def beam(self) -> bool:
        """Whether the link is a beam, whose capacity depends on whom a packet is for."""
        return self.link["beam"] is not None

    @property
    def satellite(self) -> bool:
        """Whether the link comes from a satellite, which codes packets and repeats them."""
        return self.link["satellite"] is not None

    def wire_bytes(self, size: Values, packets: Values) -> Values:
        """Bytes on the wire of packets with so many bytes in all. A satellite's link has no overhead."""
        if self.satellite:
            return size
        overhead, least = self.link["overhead_bytes"], self.link["mpu_bytes"]
        counted: Values = np.maximum(size + overhead * packets, least * packets)
        return counted

    def packet_wire_bytes(self, size: float) -> float:
        """Bytes on the wire of one packet."""
        return float(self.wire_bytes(np.array(size), np.array(1.0)))

    def carried_bps(self, capacity_bps: Values, used_bps: Values, sent_bps: Values) -> Values:
        """The capacity in bits of packets, as the scheduler counts them, from what was sent in the same bins.

        A satellite's capacity is in coded bits. A beam's says nothing, as it depends on whose packet is sent.
        """
        if self.beam:
            return used_bps
        if not self.satellite:
            return capacity_bps
        parts: Values = np.divide(sent_bps, used_bps, out=np.ones_like(used_bps), where=used_bps > 0)
        return capacity_bps * parts


def size_text(size_bytes: int) -> str:
    """A size as the resolved scenario writes it: whole thousands of bytes in kB, others in bytes."""
    return f"{size_bytes}B" if size_bytes % 1000 else _native.show(size_bytes, "size")


def packet_bytes(flow: Flow) -> tuple[float, float]:
    """Mean and largest length of a flow's packets; of a replay 0."""
    if flow["kind"] == "replay":
        return 0.0, 0.0  # only the file says
    if flow["kind"] == "voice":
        (payload,) = (codec["payload_bytes"] for codec in _native.codecs() if codec["name"] == flow["codec"])
        return payload + flow["header_bytes"], payload + flow["header_bytes"]
    if flow["kind"] != "cbr" and flow["kind"] != "poisson" and flow["kind"] != "onoff" and flow["kind"] != "greedy":
        segment = flow["mss_bytes"] + flow["header_bytes"]
        return segment, segment
    packet = flow["packet_bytes"]
    if isinstance(packet, int):
        return packet, packet
    if "sizes" not in packet:
        return (packet["min"] + packet["max"]) / 2, packet["max"]
    return float(np.average(packet["sizes"], weights=packet["weights"])), max(packet["sizes"])
