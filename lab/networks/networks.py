#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares networks in the simulator with the same in the laboratory's kernel.

    python lab/networks/networks.py [--only TEXT] [--seeds N]

Of open sources, the order in which packets leave each link must be the same. Of transfers, the mean goodput over the
seeds must differ by at most 2 %. Exit code 0: both hold, or 3.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import order
from cases import CASES, OPEN
from stored import OUTSIDE

import linkweir
from linkweir.lab.experiment import Laboratory
from linkweir.lab.network import staggered
from linkweir.scenarios.scenario import Scenario

MOST_DIFFERENCE = 0.02


def orders(laboratory: Laboratory, name: str, keys: dict[str, Any]) -> bool:
    """Prints how the orders of open sources compare at each link; whether they are the same."""
    scenario = Scenario.from_dict(keys)
    with tempfile.TemporaryDirectory() as folder:
        packets, ours = order.spaced(scenario, Path(folder))
    theirs = order.kernels(laboratory, scenario, packets)
    same = True
    for link, departures in ours.items():
        found = order.compared(departures, theirs[link])
        print(
            f"{name}, {link}: {found.same} of {found.departures[0]} / {found.departures[1]} positions the same, ",
            end="",
        )
        print(f"times at most {found.latest_ns / 1e3:.1f} us apart", flush=True)
        same = same and found.equal
    return same


def transfers(laboratory: Laboratory, name: str, keys: dict[str, Any], seeds: int) -> bool:
    """Prints the mean goodput of each group of flows in both; whether all are within the bound."""
    scenarios = [Scenario.from_dict(keys, seed=seed) for seed in range(1, seeds + 1)]
    ours = [linkweir.run(staggered(scenario)) for scenario in scenarios]
    theirs = laboratory.run_many(scenarios, jobs=len(os.sched_getaffinity(0)))
    inside = True
    for flow in keys["flow"]:
        if flow["kind"] != "tcp":
            continue
        means = []
        for results in (ours, theirs):
            rows = [row for result in results for row in result.rows("flows")]
            mine = [row["goodput_bps"] for row in rows if row["flow"].rsplit("-", 1)[0] == flow["name"]]
            means.append((statistics.mean(mine), len(mine), statistics.stdev(mine) / len(mine) ** 0.5))
        (a, n, error_a), (b, _, error_b) = means
        print(
            f"{name}, {flow['name']}: {a / 1e6:.4f} +- {error_a / 1e6:.4f} / {b / 1e6:.4f} +- {error_b / 1e6:.4f} ",
            end="",
        )
        print(f"Mbit/s, {a / b - 1:+.2%}, {n} flows", flush=True)
        inside = inside and abs(a / b - 1) <= MOST_DIFFERENCE
    return inside


def main() -> int:
    """Runs and compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names contain it")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="of transfers: 1 .. N (default: 10)")
    options = parser.parse_args()
    laboratory = Laboratory(say=lambda text: print(text, file=sys.stderr))
    held = [orders(laboratory, name, keys) for name, keys in OPEN.items() if options.only in name]
    held += [transfers(laboratory, name, keys, options.seeds) for name, keys in CASES.items() if options.only in name]
    return 0 if all(held) else OUTSIDE


if __name__ == "__main__":
    sys.exit(main())
