# SPDX-License-Identifier: BSD-3-Clause
"""Twenty scenarios of constant and Poisson traffic, which tests export and run elsewhere."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from linkweir.lab.exported import marked
from linkweir.lab.world import due, flows_of
from linkweir.scenario import Scenario

POLICIES = ("pss", "pds", "drr", "strict")
"""Five scenarios have each."""


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
    flows = flows_of({**keys, "class": [{"count": 1, **entry} for entry in keys["class"]]}, made)
    packets = due(flows, made)
    for number, flow in enumerate(keys["flow"]):
        mine = packets[packets["flow"] == number]
        path = folder / f"{made.name}-{number}.csv"
        rows = np.column_stack([mine["at_ns"] / 1e9, mine["bytes"]])
        np.savetxt(path, rows, fmt=("%.9f", "%d"), delimiter=",", header="t_s,bytes", comments="")
        keys["flow"][number] = {"name": flow["name"], "class": flow["class"], "kind": "replay", "file": str(path)}
    return Scenario.from_dict(keys)
