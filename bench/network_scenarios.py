# SPDX-License-Identifier: BSD-3-Clause
"""The networks that bench/network.py compares: as scenarios, with the packets of open sources in lists, and as
files."""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path
from typing import Any

import ns3_network
from ns3_network import quantity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCENARIOS = Path(__file__).resolve().parent / "scenarios"
FORMS = ("open", "reno", "cubic")
CASES = {
    "parking": "three bottlenecks of 10 Mbit/s in a row, one FIFO each",
    "geo": "10 Mbit/s there, 1 Mbit/s back, 250 ms each, one FIFO each; acknowledgements wait",
    "tree": "a feeder of 15 Mbit/s, four beams of 1.5 and four of 4 Mbit/s; calls before transfers on each",
}
# Rates of the Poisson sources that take the place of transfers: some queues are overloaded, others are not.
OPEN_RATES = {
    "parking": {"long": "2.5Mbit", "cross1": "2Mbit", "cross2": "1.6Mbit", "cross3": "2.2Mbit"},
    "geo": {"download": "2.4Mbit"},
    "tree": {f"{beams}-{i}": rate for beams, rate in (("narrow", "700kbit"), ("wide", "1.1Mbit")) for i in range(1, 5)},
}
OPEN_PACKET = "1500B"


def scenario_of(case: str, form: str, seed: int) -> dict[str, Any]:
    """A network with its transfers under `form`, cubic or reno, or with Poisson sources in their place (open)."""
    scenario = tomllib.loads((SCENARIOS / f"network-{case}.toml").read_text(encoding="utf-8"))
    scenario["seed"] = seed
    for flow in scenario["flow"]:
        if flow["kind"] == "tcp":
            if form == "open":
                kept = {key: flow[key] for key in ("name", "class", "path", "count", "stagger") if key in flow}
                flow.clear()
                flow.update(kept, kind="poisson", rate=OPEN_RATES[case][kept["name"]], packet=OPEN_PACKET)
            else:
                flow["cc"] = form
    return scenario


def gap_ns(flow: dict[str, Any], mean_ns: float, draw: random.Random) -> float:
    if flow["kind"] == "poisson":
        return draw.expovariate(1 / mean_ns)
    return mean_ns * draw.uniform(1 - flow["jitter"], 1 + flow["jitter"])


def record(flow: dict[str, Any], start_ns: int, duration_ns: int, draw: random.Random, file: Path) -> None:
    """Writes the packets of an open source as a list."""
    size = quantity(flow["packet"])
    mean_ns = size * 8e9 / quantity(flow["rate"])
    at_ns = start_ns + gap_ns(flow, mean_ns, draw)
    with file.open("w", newline="", encoding="utf-8") as target:
        rows = csv.writer(target)
        rows.writerow(["t_s", "bytes"])
        while at_ns < duration_ns:
            rows.writerow([f"{round(at_ns) / 1e9:.9f}", size])
            at_ns += gap_ns(flow, mean_ns, draw)


def recorded(scenario: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """The scenario with every packet of its open sources in a list, so that both simulators send the same ones."""
    flows = []
    duration_ns = quantity(scenario["duration"])
    for flow in ns3_network.copies(scenario):
        start_ns = flow.pop("start_ns")
        for key in ("count", "stagger"):
            flow.pop(key, None)
        if flow["kind"] == "tcp":
            flows.append({**flow, "start": f"{start_ns}ns"})
            continue
        file = scratch / f"{flow['name']}.csv"
        record(flow, start_ns, duration_ns, random.Random(f"{scenario['seed']} {flow['name']}"), file)
        flows.append({key: flow[key] for key in ("name", "class", "path")} | {"kind": "replay", "file": str(file)})
    return {**scenario, "flow": flows}


def toml(value: object) -> str:
    """A value in TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def written(scenario: dict[str, Any]) -> str:
    """A scenario as a file."""
    return "".join(f"{key} = {toml(value)}\n" for key, value in scenario.items())
