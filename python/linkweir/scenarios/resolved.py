# SPDX-License-Identifier: BSD-3-Clause
"""The facts of a scenario that the rules need, read from its resolved form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkweir import _native
from linkweir.scenarios.scenario import Scenario

Keys = Mapping[str, Any]
"""A table of the resolved scenario."""

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

    keys: Keys
    numbers: range
    names: list[str]
    flows: tuple[Keys, ...]

    def where(self, n: int) -> str:
        """The name of one of the classes in a warning."""
        return f"class {self.names[n - self.numbers.start]}"

    def level(self, n: int) -> int:
        """Priority of one of the classes; unless given, its number."""
        return int(self.keys.get("level", n))

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
        keys = scenario.native.written()
        if scenario.is_network:  # each link has its own; see `Scenario.of_link`
            keys |= {"link": {}, "scheduler": {}, "class": []}
        self.link: Keys = keys["link"]
        self.scheduler: Keys = keys["scheduler"]
        self.flows: list[Keys] = keys.get("flow", [])  # a link of a network may have only acknowledgements
        self.entries: list[Entry] = []
        senders: dict[str, list[Keys]] = {}
        for flow in self.flows if self.scheduler else []:
            senders.setdefault(flow["class"], []).append(flow)
        first = 0
        for entry in keys["class"]:
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
        defaults = [
            param["default"] for param in (*policy["params"], *policy["class_params"]) if param["name"] == "mtu"
        ]
        return size_bytes(defaults[0] or "0B") if defaults else 0.0

    @property
    def beam(self) -> bool:
        """Whether the link is a beam, whose capacity depends on whom a packet is for."""
        return "beam" in self.link

    @property
    def satellite(self) -> bool:
        """Whether the link comes from a satellite, which codes packets and repeats them."""
        return "satellite" in self.link

    def wire_bytes(self, size: Values, packets: Values) -> Values:
        """Bytes on the wire of packets with so many bytes in all. A satellite's link has no overhead."""
        if self.satellite:
            return size
        overhead, least = size_bytes(self.link["overhead"]), size_bytes(self.link["mpu"])
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


def size_bytes(text: str) -> float:
    """A size as the scenario writes it."""
    return _native.quantity(text, "size")


def packet_bytes(flow: Keys) -> tuple[float, float]:
    """Mean and largest length of a flow's packets; of a replay 0."""
    if flow["kind"] == "replay":
        return 0.0, 0.0  # only the file says
    if flow["kind"] == "voice":
        (payload,) = (codec["payload_bytes"] for codec in _native.codecs() if codec["name"] == flow["codec"])
        return payload + size_bytes(flow["header"]), payload + size_bytes(flow["header"])
    if "mss" in flow:
        segment = size_bytes(flow["mss"]) + size_bytes(flow["header"])
        return segment, segment
    packet = flow["packet"]
    if isinstance(packet, str):
        return size_bytes(packet), size_bytes(packet)
    if "sizes" not in packet:
        least, most = size_bytes(packet["min"]), size_bytes(packet["max"])
        return (least + most) / 2, most
    sizes = [size_bytes(size) for size in packet["sizes"]]
    return float(np.average(sizes, weights=packet["weights"])), max(sizes)
