#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries to exceed the bounds of random scenarios, and says how near the search comes.

    bench/bounds.py --scenarios 50 --attack 300 --out bounds.jsonl

Each scenario has three classes, a random policy among those with bounds, constant capacity, random bursts, rates and
sizes of packets. One line of the file is one class attacked; a scenario that the file has already is left out, so the
command may be interrupted and called again. Exit code 1 if a bound was exceeded.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linkweir.bounds.answer import bounds, envelope
from linkweir.bounds.attack import climb
from linkweir.bounds.curve import Curve
from linkweir.scenarios.scenario import Scenario

POLICIES = ("strict", "fifo", "drr", "wrr", "rr", "pss")


def draw(
    rng: random.Random, policies: Sequence[str] = POLICIES
) -> tuple[Scenario, dict[str, Curve], dict[str, tuple[int, int]]]:
    """A scenario, the arrival curves of its classes and the sizes of their packets."""
    policy, rate = rng.choice(policies), rng.choice((5, 10, 20, 50))
    classes: list[dict[str, Any]] = []
    flows: list[dict[str, Any]] = []
    curves: dict[str, Curve] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for index, name in enumerate(("ef", "af", "cs0")):
        size = rng.choice((200, 600, 1500))
        least = rng.choice((size, size, 64))
        sizes[name] = (least, size)
        keys: dict[str, Any] = {"name": name}
        share = rng.uniform(0.05, 0.3)
        if policy in ("strict", "pss"):
            keys["level"] = index
        if policy == "drr":
            keys["quantum"] = f"{rng.choice((500, 1500, 3000))}B"
        if policy == "wrr":
            keys["weight"] = f"{rng.choice((1, 2, 5))}p"
        if policy == "pss" and name == "af":
            reserved = rng.uniform(0.1, 0.5)
            share = min(share, reserved * 0.999)
            keys |= {"low_level": 3, "rate": f"{rate * reserved:.3f}Mbit", "memory": f"{rng.choice((100, 500))}ms"}
        classes.append(keys)
        curves[name] = envelope(f"{name}={size * rng.randint(1, 12)}B:{rate * share:.4f}Mbit")[1]
        flows.append(
            {
                "class": name,
                "kind": "cbr",
                "rate": "1Mbit",
                "packet": {"sizes": [f"{least}B", f"{size}B"], "weights": [1, 1]},
            }
        )
    link = {"rate": f"{rate}Mbit", "ring": rng.choice((1, 1, 1, 4))}
    scheduler: dict[str, Any] = {"policy": policy}
    if policy == "wrr":
        scheduler["mode"] = rng.choice(("burst", "smooth"))
    if policy == "pss":
        scheduler["on_empty"] = rng.choice(("keep", "reset"))
    keys = {
        "duration": "600ms",
        "interval": "100ms",
        "link": link,
        "scheduler": scheduler,
        "class": classes,
        "flow": flows,
    }
    return Scenario.from_dict(keys), curves, sizes


def main() -> int:
    """Runs the scenarios that the file does not have, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=50)
    parser.add_argument("--attack", type=int, default=300, help="runs for each class")
    parser.add_argument("--first", type=int, default=1, help="seed of the first scenario")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--out", type=Path, default=Path("bounds.jsonl"))
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {line["seed"] for line in lines}
    for seed in range(options.first, options.first + options.scenarios):
        if seed in done:
            continue
        scenario, curves, sizes = draw(random.Random(seed), options.policies)
        found = bounds(scenario, envelopes=curves)
        rows = []
        for bound in found:
            if bound.delay_s is None:
                continue
            worst, broken = climb(scenario, found, bound.name, options.attack, seed, sizes)
            row = {"seed": seed, "policy": scenario.policy, "class": bound.name, "tightness": worst.tightness}
            rows.append({**row, "runs": options.attack, "broken": broken[:1]})
        with options.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        lines += rows
    groups = collections.defaultdict(list)
    for line in lines:
        groups[line["policy"], line["class"]].append(line["tightness"])
    print(f"{'policy':8}{'class':6}{'attacks':>8}{'median':>8}{'least':>8}{'most':>8}")
    for (policy, name), values in sorted(groups.items()):
        median = statistics.median(values)
        print(f"{policy:8}{name:6}{len(values):8}{median:8.3f}{min(values):8.3f}{max(values):8.3f}")
    broken = [line for line in lines if line["broken"]]
    print(f"{sum(line['runs'] for line in lines)} runs, {len(broken)} attacks in which a bound was exceeded")
    for line in broken:
        print(f"seed {line['seed']}, {line['policy']}: {line['broken'][0]}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
