# SPDX-License-Identifier: BSD-3-Clause
"""Twenty scenarios of constant and Poisson traffic, and one with TCP, which are exported and run elsewhere."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from linkweir import Result
from linkweir.lab.exported import marked
from linkweir.lab.world import due, flows_of
from linkweir.scenarios.scenario import Scenario

POLICIES = ("pss", "pds", "drr", "strict")
"""Five scenarios have each."""
NUMBERS = range(5)
BOUND = 0.01
"""By which part of the simulated rate a class may differ."""
TCP_BOUND = 0.05
"""The same with TCP: docs/records/transport.md has it for goodput."""
LARGEST_BYTES = 1428
"""Of a packet, with the link's overhead."""

TCP = {
    "duration": "60s",
    "warmup": "10s",
    "interval": "1s",
    "seed": 1,
    "link": {"rate": "10Mbit", "overhead": "28B", "delay": "30ms", "return_delay": "30ms"},
    "scheduler": {"policy": "pss"},
    "class": [
        {"name": "ef", "level": 0},
        {"name": "af", "level": 1, "low_level": 3, "rate": "3Mbit", "limit": "100p"},
        {"name": "rest", "level": 2, "limit": "100p"},
    ],
    "flow": [
        {"class": "ef", "kind": "cbr", "rate": "1Mbit", "packet": "200B"},
        {"class": "af", "kind": "tcp", "count": 3},
        {"class": "rest", "kind": "tcp", "count": 4},
    ],
}
"""Seven connections and a constant flow; its bounds are those of TCP."""


def scenario(policy: str, number: int, *, duration: str = "20s") -> Scenario:
    """One of the scenarios: a link of 2 to 12 Mbit/s, three to five classes that offer more than it carries."""
    draw = random.Random(f"{policy}-{number}")
    classes = draw.randint(3, 5)
    rate_kbit = draw.randrange(2000, 12_000, 500)
    flows = []
    for at in range(classes):
        share = draw.uniform(0.3, 0.5) if at else draw.uniform(0.05, 0.2)
        flows.append(
            {
                "class": f"c{at}",
                "kind": draw.choice(["cbr", "poisson"]),
                "rate": f"{round(share * rate_kbit)}kbit",
                "packet": f"{draw.randrange(100, 1400, 20)}B",
            }
        )
    return Scenario.from_dict(
        {
            "name": f"{policy} {number}",
            "duration": duration,
            "warmup": "5s",
            "seed": number + 1,
            "link": {"rate": f"{rate_kbit}kbit", "overhead": "28B", "delay": "15ms", "return_delay": "15ms"},
            "scheduler": {"policy": policy},
            "class": [
                {"name": f"c{at}", "limit": f"{draw.randrange(20, 200)}p", **_parameters(policy, at, rate_kbit, draw)}
                for at in range(classes)
            ],
            "flow": flows,
        }
    )


def _parameters(policy: str, at: int, rate_kbit: int, draw: random.Random) -> dict[str, Any]:
    if policy == "pss" and at == 1:
        reserved = {"rate": f"{round(rate_kbit * draw.uniform(0.1, 0.4))}kbit", "memory": "2s"}
        return {"level": 10, "low_level": 95, **reserved}
    if policy == "pss":
        return {"level": 10 * at + 5 * (at == 0)}
    if policy == "pds":
        return {"delay": draw.randint(1, 8), "loss": draw.randint(1, 8)}
    if policy == "drr":
        return {"level": min(at, 1), **({"quantum": f"{draw.randrange(1500, 6000, 100)}B"} if at else {})}
    return {"level": at}


def recorded(made: Scenario, folder: Path) -> Scenario:
    """The same scenario with the packets that the laboratory sends, as the laboratory has its own random numbers."""
    keys = marked(made)
    packets = due(flows_of(made), made)
    for number, flow in enumerate(keys["flow"]):
        mine = packets[packets["flow"] == number]
        path = folder / f"{made.name}-{number}.csv"
        rows = np.column_stack([mine["at_ns"] / 1e9, mine["bytes"]])
        np.savetxt(path, rows, fmt=("%.9f", "%d"), delimiter=",", header="t_s,bytes", comments="")
        keys["flow"][number] = {"name": flow["name"], "class": flow["class"], "kind": "replay", "file": str(path)}
    return Scenario.from_dict(keys)


def rates(result: Result) -> dict[str, float]:
    """The rate of each class, bit/s."""
    return {row["class"]: row["rate_bps"] for row in result.rows("classes")}


def allowed_bps(scenario: Scenario, simulated_bps: float) -> float:
    """By how much the rate of a class may differ from the simulated one, bit/s.

    Of a class that gets nothing, a packet may leave while the queues of others fill.
    """
    packet_bps = 8 * LARGEST_BYTES / (scenario.duration_s - scenario.warmup_s)
    return max(BOUND * simulated_bps, packet_bps)
