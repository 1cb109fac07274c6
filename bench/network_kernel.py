# SPDX-License-Identifier: BSD-3-Clause
"""Shares of transfers on a parking lot without delays in Linkweir, ns-3 and the kernel: whose TCP is right?

In each round every transfer starts at another time within the first second, the same for Linkweir, ns-3 and the kernel.
"""

import random
import statistics
import sys
import tempfile
from pathlib import Path

import namespaces
import report
from network_scenarios import recorded, scenario_of

COLUMNS = ["flow", "Linkweir, Mbit/s", "ns-3", "kernel"]


def scenario(seed, scratch):
    """The parking lot with packets of open sources in lists, and starts of transfers drawn from the seed."""
    found = recorded(scenario_of("queues", "cubic", seed), scratch)
    draw = random.Random(seed)
    for flow in found["flow"]:
        if flow["kind"] == "tcp":
            flow["start"] = f"{draw.randrange(1000)}ms"
    return found


def goodput_of(flows):
    return {name: flow["goodput_bps"] for name, flow in flows.items()}


def compare(rounds, run_linkweir, run_ns3):
    """Goodput of the copies of each entry together, bit/s: means over rounds."""
    runs = []
    for seed in range(1, rounds + 1):
        print(f"kernel: round {seed} of {rounds}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            one = scenario(seed, scratch)
            ours, theirs = run_linkweir(one, scratch)[0], run_ns3(one, scratch)[0]
            runs.append([goodput_of(ours), goodput_of(theirs), namespaces.run(one)])
    groups = {}
    for name in runs[0][2]:
        groups.setdefault(name.rpartition("-")[0], []).append(name)
    return [
        {
            "flow": group,
            "goodput_bps": [statistics.fmean(sum(run[who][n] for n in names) for run in runs) for who in range(3)],
        }
        for group, names in groups.items()
    ]


def render(rows, markdown):
    lines = ([row["flow"], *(f"{bps / 1e6:.2f}" for bps in row["goodput_bps"])] for row in rows)
    return report.table(COLUMNS, lines, markdown=markdown)
