# SPDX-License-Identifier: BSD-3-Clause
"""A deliberately naive model of packets over several links, in exact fractions; it shares no code with the package.

Each link sends one packet at a time. A packet arrives at the next link when its last bit has left, after the link's
delay. All that arrives at an instant is in the queues before anything begins at that instant.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush


@dataclass
class Packet:
    flow: int
    bits: int
    created: Fraction
    place: int = 0
    """How many links it has passed."""


@dataclass
class Station:
    """A link: `policy` is fifo, strict, rr or drr; `quanta` count for drr."""

    policy: str
    rate: int
    delay: Fraction
    queues: int
    quanta: list[int]
    waiting: list[deque[tuple[int, Packet]]] = field(default_factory=list)
    sending: Packet | None = None
    ends: Fraction = Fraction(0)
    turn: int = 0
    deficits: list[int] = field(default_factory=list)
    fresh: bool = True
    joined: int = 0
    """How many packets have joined a queue: their order for fifo."""
    arrived: dict[int, list[tuple[Fraction, int]]] = field(default_factory=dict)
    worst_bits: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = [deque() for _ in range(self.queues)]
        self.deficits = [0] * self.queues
        self.arrived = {queue: [] for queue in range(self.queues)}
        self.worst_bits = dict.fromkeys(range(self.queues), 0)

    def join(self, now: Fraction, queue: int, packet: Packet) -> None:
        self.joined += 1
        self.waiting[queue].append((self.joined, packet))
        self.arrived[queue].append((now, packet.bits))
        self.worst_bits[queue] = max(self.worst_bits[queue], sum(p.bits for _, p in self.waiting[queue]))

    def choose(self) -> Packet:
        """The next packet; some queue has one."""
        if self.policy == "fifo":
            queue = min((q for q in range(self.queues) if self.waiting[q]), key=lambda q: self.waiting[q][0][0])
            return self.waiting[queue].popleft()[1]
        if self.policy == "strict":
            queue = next(q for q in range(self.queues) if self.waiting[q])
            return self.waiting[queue].popleft()[1]
        while True:
            queue = self.turn
            if not self.waiting[queue]:
                self.deficits[queue] = 0
                self.advance()
                continue
            if self.policy == "rr":
                self.advance()
                return self.waiting[queue].popleft()[1]
            if self.fresh:
                self.deficits[queue] += self.quanta[queue]
                self.fresh = False
            if self.waiting[queue][0][1].bits <= self.deficits[queue]:
                packet = self.waiting[queue].popleft()[1]
                self.deficits[queue] -= packet.bits
                return packet
            self.advance()

    def advance(self) -> None:
        self.turn = (self.turn + 1) % self.queues
        self.fresh = True


def play(stations: list[Station], ways: list[list[tuple[int, int]]], packets: list[Packet]) -> list[Fraction]:
    """The longest delay of each flow, from its source to the receiver. `ways` have (link, queue) pairs."""
    worst = [Fraction(0)] * len(ways)
    coming = [(p.created, i, p) for i, p in enumerate(packets)]
    heapify(coming)
    number = len(coming)
    while coming or any(s.sending for s in stations):
        instants = [s.ends for s in stations if s.sending]
        now = min(instants + ([coming[0][0]] if coming else []))
        for station in stations:
            packet = station.sending
            if packet is not None and station.ends == now:
                station.sending = None
                packet.place += 1
                number += 1
                heappush(coming, (now + station.delay, number, packet))
        while coming and coming[0][0] == now:
            _, _, packet = heappop(coming)
            if packet.place == len(ways[packet.flow]):
                worst[packet.flow] = max(worst[packet.flow], now - packet.created)
                continue
            link, queue = ways[packet.flow][packet.place]
            stations[link].join(now, queue, packet)
        for station in stations:
            if station.sending is None and any(station.waiting):
                station.sending = station.choose()
                station.ends = now + Fraction(station.sending.bits, station.rate)
    return worst
