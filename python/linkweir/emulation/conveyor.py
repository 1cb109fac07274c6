# SPDX-License-Identifier: BSD-3-Clause
"""One direction of the emulated link: the simulator's link, driven by a clock, and what it did with packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from linkweir import _native
from linkweir.emulation.settings import Way
from linkweir.emulation.sorter import Sorter, ecn, marked

Clock = Callable[[], int]


class Delays:
    """A distribution of times, each kept with an error below 1/128, in little memory."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, time_ns: int) -> None:
        """Counts a time, ns."""
        shift = max(time_ns.bit_length() - 8, 0)
        self._counts[time_ns >> shift << shift] += 1

    @classmethod
    def merged(cls, several: Iterable[Delays]) -> Delays:
        """One distribution of several."""
        whole = cls()
        for one in several:
            whole._counts.update(one._counts)
        return whole

    def quantile_s(self, part: float) -> float | None:
        """The time that this part of all does not exceed, s; None without any."""
        left = part * self._counts.total()
        for time_ns, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return time_ns / 1e9
        return None


class Conveyor:
    """A direction.

    Args:
        way: what it is.
        clock: gives the time, ns, from 0.
        hand_on: takes a packet at the other end.
    """

    def __init__(self, way: Way, clock: Clock, hand_on: Callable[[bytes], None]) -> None:
        self._link = _native.Link(way.native)
        self._sorter = Sorter(way.sorting, way.l4s)
        self._clock = clock
        self._hand_on = hand_on
        self._names: Sequence[str] = self._link.classes
        self._delays = [Delays() for _ in self._names]
        self._dropped: list[Counter[str]] = [Counter() for _ in self._names]
        self._bytes = [0] * len(self._names)
        self.end_ns = self._link.end_ns
        self.late = Delays()
        self.next_ns: int | None = None

    def arrive(self, packet: bytes) -> None:
        """Takes a packet; after the link's end it is lost."""
        class_, flow = self._sorter.place(packet)
        now_ns = self._clock()
        if now_ns < self.end_ns:
            codepoint = ecn(packet)
            self._link.send(now_ns, class_, len(packet), flow, (codepoint != 0, codepoint & 1 != 0), packet)

    def deliver(self) -> None:
        """Hands on what is due, and finds out when it must be called again."""
        link, clock = self._link, self._clock
        now_ns = clock()
        while (found := link.receive(now_ns)) is not None:
            packet, class_, length, sent_ns, _, arrived_ns, is_marked = found
            self._hand_on(marked(packet) if is_marked else packet)
            now_ns = clock()
            self._delays[class_].add(now_ns - sent_ns)
            self.late.add(now_ns - arrived_ns)
            self._bytes[class_] += length
        while (gone := link.dropped(now_ns)) is not None:
            self._dropped[gone[1]][gone[5]] += 1
        self.next_ns = link.next_ns()

    def figures(self) -> list[dict[str, Any]]:
        """What became of the packets, for each class."""
        rows = []
        for number, name in enumerate(self._names):
            sent, arrived, with_mark, dropped = self._link.counts(number) or (0, 0, 0, 0)
            delays = self._delays[number]
            rows.append(
                {
                    "class": name,
                    "sent_pkts": sent,
                    "arrived_pkts": arrived,
                    "arrived_bytes": self._bytes[number],
                    "marked_pkts": with_mark,
                    "dropped_pkts": dict(sorted(self._dropped[number].items())),
                    "left_pkts": sent - arrived - dropped,
                    "delay_p50_s": delays.quantile_s(0.5),
                    "delay_p99_s": delays.quantile_s(0.99),
                }
            )
        return rows
