# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios in which the simulator's TCP is compared with the kernel's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SEGMENT_BYTES = 1500
STAGGER_S = 0.1
"""Each flow starts at a random time within this, the same in simulator and laboratory."""


KERNEL_TICK = "10ms"
"""The laboratory's kernel counts 100 Hz (CONFIG_HZ); its timers and CUBIC do too."""


@dataclass(frozen=True, eq=False)
class Case:
    """A scenario for any seed.

    Attributes:
        name: what it varies.
        rtt: in milliseconds, without queues.
        mbit: rate of the link.
        cc: congestion control of all flows.
        flows: their number, in each class.
        queue: of the link, in bandwidth times RTT; of each class, if there are several.
        seconds: duration.
        link: further keys of the link.
        scheduler: policy and its parameters.
        classes: keys of the classes, if there are several, or of the only one.
        tcp: further keys of the flows.
        silent: classes, counted from 1, without TCP.
        other: flows that are not TCP.
    """

    name: str
    rtt: float
    mbit: float = 10.0
    cc: str = "cubic"
    flows: int = 1
    queue: float = 1.0
    seconds: float = 60.0
    link: Mapping[str, Any] = field(default_factory=dict)
    scheduler: Mapping[str, Any] = field(default_factory=lambda: {"policy": "fifo"})
    classes: tuple[Mapping[str, Any], ...] = ({},)
    tcp: Mapping[str, Any] = field(default_factory=dict)
    silent: tuple[int, ...] = ()
    other: tuple[Mapping[str, Any], ...] = ()

    @property
    def queue_pkts(self) -> int:
        """Length of the queue in packets."""
        return max(round(self.queue * self.mbit * 1e6 * self.rtt / 1e3 / (8 * SEGMENT_BYTES)), 2)

    def scenario(self, seed: int) -> dict[str, Any]:
        """The scenario; the seed also draws when each flow starts."""
        random = np.random.default_rng([seed, 0x7C9])
        rate = {} if "trace" in self.link else {"rate": f"{self.mbit}Mbit"}
        way = f"{1e3 * self.rtt / 2:.0f}us"
        flows: list[Mapping[str, Any]] = []
        classes = []
        for n, keys in enumerate(self.classes, 1):
            # Equal classes have equal names but for a number.
            first = self.classes.index(keys) + 1
            name = f"class{first}" + (f"-{n}" if self.classes.count(keys) > 1 else "")
            classes.append({"name": name, "limit": f"{self.queue_pkts}p", **keys})
            for k in range(1, 1 + (0 if n in self.silent else self.flows)):
                start = f"{1e6 * STAGGER_S * random.random():.0f}us"
                tcp = {"name": f"{name}-tcp{k}", "class": name, "kind": "tcp", "cc": self.cc, "start": start}
                flows.append({**tcp, "tick": KERNEL_TICK, **self.tcp})
        return {
            "name": self.name,
            "duration": f"{self.seconds}s",
            "interval": f"{self.seconds}s",
            "seed": seed,
            "link": {**rate, "delay": way, "return_delay": way, **self.link},
            "scheduler": dict(self.scheduler),
            "class": classes,
            "flow": [*flows, *self.other],
        }


def _lossy() -> Iterator[Case]:
    """Random loss and round-trip times."""
    losses: dict[str, dict[int, tuple[float, ...]]] = {
        "cubic": {1: (0, 1), 10: (0, 0.1, 3), 50: (0, 0.1, 1, 3), 200: (0, 0.1, 1, 3), 500: (0, 0.1, 1), 1000: (0, 1)},
        "reno": {10: (1,), 50: (0, 0.1, 1), 200: (0, 1, 3), 500: (0.1,), 1000: (0,)},
        "bbr": {10: (0,), 50: (0, 1, 3), 200: (0, 1), 500: (1,), 1000: (0,)},
    }
    seconds = {1000: 120.0, 2000: 180.0}
    for cc, by_rtt in losses.items():
        for rtt, percents in by_rtt.items():
            for percent in percents:
                name = f"{cc}, RTT {rtt} ms, loss {percent} %"
                link = {"loss": percent / 100} if percent else {}
                yield Case(name, rtt, cc=cc, link=link, seconds=seconds.get(rtt, 60.0))
    for percent in (0, 0.1):
        link = {"loss": percent / 100} if percent else {}
        yield Case(f"cubic, RTT 2000 ms, loss {percent} %", 2000, mbit=5.0, link=link, seconds=seconds[2000])


def _bursts() -> Iterator[Case]:
    """Losses in bursts, and reordering."""
    for rtt, percent, burst, cc in (
        (50, 0.1, 5, "cubic"),
        (50, 1, 4, "cubic"),
        (200, 1, 8, "cubic"),
        (500, 0.1, 10, "cubic"),
        (50, 1, 3, "reno"),
        (200, 3, 5, "bbr"),
    ):
        name = f"{cc}, RTT {rtt} ms, loss {percent} % in bursts of {burst}"
        yield Case(name, rtt, cc=cc, link={"loss": {"mean": percent / 100, "burst": f"{burst}p"}})
    for rtt, percent, held_ms, cc in (
        (50, 1, 5, "cubic"),
        (50, 1, 30, "cubic"),
        (50, 10, 3, "cubic"),
        (200, 0.5, 80, "reno"),
        (200, 5, 10, "bbr"),
    ):
        name = f"{cc}, RTT {rtt} ms, {percent} % of packets {held_ms} ms late"
        yield Case(name, rtt, cc=cc, link={"reorder": {"probability": percent / 100, "delay": f"{held_ms}ms"}})


def _outages() -> Iterator[Case]:
    """Times without capacity, in the middle of a run."""
    for off_s, rtt, cc, flows in (
        (0.2, 100, "cubic", 1),
        (1, 100, "cubic", 1),
        (2, 100, "cubic", 1),
        (5, 100, "cubic", 4),
        (10, 100, "cubic", 1),
        (2, 500, "reno", 2),
        (1, 50, "reno", 10),
        (10, 200, "bbr", 1),
    ):
        seconds = 90.0 if off_s >= 5 else 60.0
        steps = [["0s", "10Mbit"], ["20.3s", "0bit"], [f"{20.3 + off_s:g}s", "10Mbit"]]
        name = f"{cc}, RTT {rtt} ms, outage {off_s} s, {flows} flow{'s'[: flows > 1]}"
        yield Case(name, rtt, cc=cc, flows=flows, seconds=seconds, link={"rate": {"steps": steps}})


def _queues() -> Iterator[Case]:
    """Lengths of the queue and numbers of flows."""
    for queue, rtt, flows, cc, mbit in (
        (0.1, 100, 1, "cubic", 20.0),
        (0.1, 100, 10, "cubic", 10.0),
        (0.25, 100, 1, "reno", 10.0),
        (0.5, 50, 10, "reno", 10.0),
        (0.5, 100, 1, "bbr", 10.0),
        (2, 50, 1, "cubic", 5.0),
        (2, 50, 10, "cubic", 10.0),
        (2, 200, 10, "bbr", 10.0),
        (1, 100, 10, "bbr", 20.0),
        (1, 100, 100, "cubic", 20.0),
        (1, 200, 100, "reno", 20.0),
        (0.5, 500, 100, "cubic", 20.0),
    ):
        name = f"{cc}, RTT {rtt} ms, queue {queue} BDP, {flows} flow{'s'[: flows > 1]}"
        yield Case(name, rtt, cc=cc, mbit=mbit, flows=flows, queue=queue)
    for mbit, percent, cc in ((2.0, 0, "cubic"), (2.0, 1, "bbr")):
        link = {"loss": percent / 100} if percent else {}
        yield Case(f"{cc}, RTT 100 ms, {mbit:g} Mbit/s, loss {percent} %", 100, mbit=mbit, cc=cc, link=link)
    for rtt, share, cc in ((100, 1, "cubic"), (500, 1, "cubic"), (50, 0.1, "reno")):
        name = f"{cc}, RTT {rtt} ms, loss {share} %, 10 flows"
        yield Case(name, rtt, cc=cc, flows=10, link={"loss": share / 100})


def _policies() -> Iterator[Case]:
    """Policies; the second class of the last ones is starved by the first."""
    room = {"limit": "10240p"}
    for ecn in (False, True):
        for classes, flows, rtt, cc in (
            (1, 1, 50, "cubic"),
            (1, 10, 50, "reno"),
            (10, 1, 50, "cubic"),
            (10, 10, 100, "cubic"),
            (1, 10, 200, "cubic"),
            (1, 1, 100, "bbr"),
        ):
            queues = f"{classes} queue{'s'[: classes > 1]} of {flows} flow{'s'[: flows > 1]}"
            yield Case(
                f"{cc}, RTT {rtt} ms, fq_codel {'with' if ecn else 'without'} ECN, {queues}",
                rtt,
                cc=cc,
                flows=flows,
                scheduler={"policy": "fq_codel", "ecn": "yes" if ecn else "no"},
                classes=(room,) * classes,
                tcp={"ecn": ecn},
            )
    for rtt, cc, ef in ((100, "cubic", 8.5), (500, "cubic", 8.5), (100, "cubic", 9.4), (200, "reno", 9.4)):
        af = {"limit": "833p", "level": 2, "low_level": 4, "rate": "1Mbit"}
        yield Case(
            f"{cc}, RTT {rtt} ms, pss with EF of {ef} and AF's reservation of 1 of 10 Mbit/s, 4 flows per class",
            rtt,
            cc=cc,
            flows=4,
            scheduler={"policy": "pss"},
            classes=({"limit": "500p", "level": 1}, af, {"limit": "833p", "level": 3}),
            silent=(1,),
            other=({"class": "class1", "kind": "cbr", "rate": f"{ef}Mbit"},),
        )
    for rtt, cc in ((50, "cubic"), (200, "reno")):
        drr = tuple({"limit": "200p", "level": 1, "quantum": f"{n * 1500}B"} for n in (1, 15))
        yield Case(
            f"{cc}, RTT {rtt} ms, drr 1:15, 4 flows per class",
            rtt,
            cc=cc,
            flows=4,
            scheduler={"policy": "drr"},
            classes=drr,
        )


def _changing() -> Iterator[Case]:
    """Capacity and delay that change."""
    for name in ("lte-drive", "starlink"):
        link = {"trace": f"scenarios/traces/{name}.csv"}
        yield Case(f"cubic, RTT 80 ms, trace {name}", 80, link=link, queue=2)
    cosine = {"mean": "10Mbit", "amplitude": 0.5, "period": "10s", "phase": 0.0}
    yield Case("cubic, RTT 200 ms, capacity a cosine of 10 s", 200, link={"rate": cosine})
    steps = [["0s", "20ms"], ["5s", "35ms"], ["9s", "12ms"]]
    yield Case(
        "cubic, delay of 12 to 35 ms in steps", 40, link={"delay": {"steps": steps, "end": "loop", "period": "15s"}}
    )


def cases() -> list[Case]:
    """All of them."""
    return [case for part in (_lossy, _bursts, _outages, _queues, _policies, _changing) for case in part()]
