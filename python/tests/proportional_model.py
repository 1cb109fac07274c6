# SPDX-License-Identifier: BSD-3-Clause
"""A slow, plain model of a WTP and PLR link, written apart from the core and the simulator to compare them with.

One link, one limit, eight classes of equal Poisson load. Losses follow Dovrolis and Ramanathan 2000 (ring of
the last K arrivals, or counters halved every K arrivals); `peld` charges classes early, with debts for those with an
empty queue.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

CLASSES = 8


@dataclass
class Link:
    """The link, its queues and the loss history."""

    delay: Sequence[int]
    loss: Sequence[int]
    history: str = "ring"
    k: int = 1500
    limit: int = 80
    least: int = 20
    queues: list[deque[tuple[float, int]]] = field(default_factory=lambda: [deque() for _ in range(CLASSES)])
    received: list[float] = field(default_factory=lambda: [0.0] * CLASSES)
    lost: list[float] = field(default_factory=lambda: [0.0] * CLASSES)
    debt: list[int] = field(default_factory=lambda: [0] * CLASSES)
    ring: deque[list[int]] = field(default_factory=deque)
    arrivals: int = 0
    ramp: float = 0.0
    dropped: list[int] = field(default_factory=lambda: [0] * CLASSES)

    def waiting(self) -> int:
        """Packets in all queues."""
        return sum(map(len, self.queues))

    def next(self, now: float) -> int | None:
        """The class whose head has waited longest for its coefficient."""
        backlogged = [i for i in range(CLASSES) if self.queues[i]]
        return max(
            backlogged, key=lambda i: (self.delay[i] * (now - self.queues[i][0][0]), self.delay[i]), default=None
        )

    def rate(self, i: int) -> float:
        """Weighted loss rate of a class."""
        return self.loss[i] * (self.lost[i] + self.debt[i]) / self.received[i] if self.received[i] else 0.0

    def least_lossy(self, classes: Sequence[int]) -> int | None:
        """The class to charge."""
        return min(classes, key=lambda i: (self.rate(i), self.loss[i]), default=None)

    def drop_tail(self, i: int) -> None:
        """Drops a class's last packet and charges it."""
        _, arrival = self.queues[i].pop()
        self.dropped[i] += 1
        if self.history != "ring":
            self.lost[i] += 1
        elif self.arrivals - arrival <= self.k:
            self.ring[arrival - self.arrivals][1] = 1
            self.lost[i] += 1

    def record(self, i: int) -> None:
        """Counts an arrival."""
        self.arrivals += 1
        self.received[i] += 1
        if self.history == "ring":
            self.ring.append([i, 0])
            if len(self.ring) > self.k:
                old, was_lost = self.ring.popleft()
                self.received[old] -= 1
                self.lost[old] -= was_lost
        elif self.arrivals % self.k == 0:
            self.received = [x / 2 for x in self.received]
            self.lost = [x / 2 for x in self.lost]
            self.debt = [d if r >= 1 else 0 for d, r in zip(self.debt, self.received, strict=True)]

    def arrive(self, i: int, now: float) -> None:
        """Takes a packet in and drops what must go."""
        self.record(i)
        if self.debt[i]:
            self.debt[i] -= 1
            self.lost[i] += 1
            self.dropped[i] += 1
            return
        self.queues[i].append((now, self.arrivals - 1))
        if self.history == "peld":
            self.early()
        if self.waiting() > self.limit:
            backlogged = [j for j in range(CLASSES) if self.queues[j]]
            victim = self.least_lossy(backlogged)
            if self.history == "peld":
                chosen = self.chargeable()
                if chosen is not None and not self.queues[chosen]:
                    self.debt[chosen] += 1
                elif chosen is not None:
                    victim = chosen
            assert victim is not None
            self.drop_tail(victim)

    def chargeable(self) -> int | None:
        """The class to charge, backlogged or not, among those that can still lose something."""
        able = [j for j in range(CLASSES) if self.lost[j] + self.debt[j] + 1 <= self.received[j]]
        return self.least_lossy(able)

    def early(self) -> None:
        """Charges a class for a growing part of arrivals between the least backlog and the limit."""
        if self.waiting() > self.least:
            self.ramp += min(1.0, (self.waiting() - self.least) / (self.limit - self.least))
        if self.ramp >= 1.0:
            self.ramp -= 1.0
            chosen = self.chargeable()
            if chosen is not None and self.queues[chosen]:
                self.drop_tail(chosen)
            elif chosen is not None:
                self.debt[chosen] += 1


def losses(link: Link, pps: float, seed: int, *, warmup_s: float = 1.0, end_s: float = 9.0) -> list[float]:
    """Loss of each class between two times under Poisson arrivals, class i from (i - 1) * 0.1 s on."""
    numbers = random.Random(seed)
    packet_s = 8 * 1538 / 100e6
    arrivals = [(0.1 * i, i) for i in range(CLASSES)]
    free_s = 0.0
    seen = [0] * CLASSES
    before = [0] * CLASSES
    warm = False
    while True:
        now, i = heapq.heappop(arrivals)
        if now >= end_s:
            return [(d - b) / n for d, b, n in zip(link.dropped, before, seen, strict=True)]
        if now >= warmup_s and not warm:
            warm, before = True, list(link.dropped)
        heapq.heappush(arrivals, (now + numbers.expovariate(pps), i))
        while free_s <= now and (chosen := link.next(free_s)) is not None:
            link.queues[chosen].popleft()
            free_s += packet_s
        free_s = max(free_s, now) if link.waiting() == 0 else free_s
        link.arrive(i, now)
        if warm:
            seen[i] += 1
