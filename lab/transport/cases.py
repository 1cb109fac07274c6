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


@dataclass(frozen=True, eq=False)
class Case:
    """A scenario for any seed.

    Attributes:
        name: what it varies.
        rtt: in milliseconds, without queues.
        mbit: rate of the link.
        cc: congestion control of all flows; or one for each class.
        flows: their number, in each class.
        queue: of the link, in bandwidth times RTT; of each class, if there are several.
        seconds: duration.
        link: further keys of the link.
        scheduler: policy and its parameters.
        classes: keys of the classes, if there are several, or of the only one.
        tcp: further keys of the flows.
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
            name = f"class{n}"
            classes.append({"name": name, "limit": f"{self.queue_pkts}p", **keys})
            for k in range(1, self.flows + 1):
                start = f"{1e6 * STAGGER_S * random.random():.0f}us"
                tcp = {"name": f"{name}-tcp{k}", "class": name, "kind": "tcp", "cc": self.cc, "start": start}
                flows.append({**tcp, **self.tcp})
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
    for rtt, percent, cc in ((100, 1, "cubic"), (500, 1, "cubic"), (50, 0.1, "reno")):
        name = f"{cc}, RTT {rtt} ms, loss {percent} %, 10 flows"
        yield Case(name, rtt, cc=cc, flows=10, link={"loss": percent / 100})


def _policies() -> Iterator[Case]:
    """Policies; the second class of the last ones is starved by the first."""
    room = {"limit": "10240p"}
    for flows, classes, rtt, cc in (
        (1, 1, 50, "cubic"),
        (1, 10, 50, "cubic"),
        (10, 1, 50, "reno"),
        (10, 10, 100, "cubic"),
    ):
        scheduler = {"policy": "fq_codel", "ecn": "no"}
        name = f"{cc}, RTT {rtt} ms, fq_codel without ECN, {classes} x {flows} flows"
        yield Case(name, rtt, cc=cc, flows=flows, scheduler=scheduler, classes=(room,) * classes)
    for rtt, cc in ((100, "cubic"), (500, "cubic")):
        af = {"limit": "833p", "level": 2, "low_level": 4, "rate": "1Mbit"}
        pss = ({"limit": "500p", "level": 1}, af, {"limit": "833p", "level": 3})
        ef = {"class": "class1", "kind": "cbr", "rate": "7Mbit"}
        yield Case(
            f"{cc}, RTT {rtt} ms, pss with 7 of 10 Mbit/s of EF, 2 flows per class",
            rtt,
            cc=cc,
            flows=2,
            scheduler={"policy": "pss"},
            classes=pss,
            other=(ef,),
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
    return [case for part in (_lossy, _outages, _queues, _policies, _changing) for case in part()]
