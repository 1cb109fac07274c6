#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries to exceed the bounds of random networks, and says how near the search comes.

    bench/bounds_network.py --networks 10000 --attack 6 --out bounds-network.jsonl

Each network is a chain, a tree or a ring of 2 to 5 links with random policies, rates, delays and overheads; its flows
have random ways, bursts and sizes of packets. In each, one flow that passes several links is the target of a search;
every run checks the bounds of all flows. In the table, a ring whose links depend on each other is a cycle. A line of
the file is one network; those that the file has already are left out, so the command may be interrupted and called
again. Exit code 1 if a bound was exceeded.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from linkweir.bounds.attack_network import Network, climb_network
from linkweir.bounds.network import network_bounds
from linkweir.scenarios.scenario import Scenario

POLICIES = ("strict", "fifo", "drr", "wrr", "rr", "pss")
CLASSES = ("ef", "af", "cs0")


def draw(rng: random.Random) -> tuple[Scenario, list[str]]:
    """A network and the envelopes of its flows."""
    kind = rng.choice(("chain", "chain", "tree", "ring"))
    count = rng.randint(2, 5)
    names = [f"l{number}" for number in range(count)]
    rates = [rng.choice((5, 10, 20, 50)) for _ in names]
    policy = rng.choice((*POLICIES, None))  # one for all links, or one for each
    links = [_link(rng, name, rate, policy or rng.choice(POLICIES)) for name, rate in zip(names, rates, strict=True)]
    flows: list[dict[str, Any]] = []
    envelopes = []
    load = dict.fromkeys(names, 0.0)
    for number in range(rng.randint(2, 6)):
        path = _path(rng, kind, names)
        size = rng.choice((200, 600, 1500))
        least = rng.choice((size, size, 64))
        room = min((0.9 - load[name]) * rate for name, rate in zip(names, rates, strict=True) if name in path)
        rate = rng.uniform(0.02, 0.25) * room
        if rate < 0.02:
            continue
        for name in path:
            load[name] += rate / rates[names.index(name)] * (1.4 if size < 1500 or least < size else 1.05)
        flow = f"f{number}"
        packet = {"sizes": [f"{least}B", f"{size}B"], "weights": [1, 1]}
        flows.append(
            {"name": flow, "class": rng.choice(CLASSES), "kind": "cbr", "rate": "1Mbit", "packet": packet, "path": path}
        )
        envelopes.append(f"{flow}={size * rng.randint(1, 10)}B:{rate:.4f}Mbit")
    keys = {"name": kind, "duration": "100ms", "interval": "100ms", "link": links, "flow": flows}
    return Scenario.from_dict(keys), envelopes


def _link(rng: random.Random, name: str, rate: int, policy: str) -> dict[str, Any]:
    classes = []
    for index, queue in enumerate(CLASSES):
        keys: dict[str, Any] = {"name": queue}
        if policy in ("strict", "pss"):
            keys["level"] = index
        if policy == "drr":
            keys["quantum"] = f"{rng.choice((500, 1500, 3000))}B"
        if policy == "wrr":
            keys["weight"] = f"{rng.choice((1, 2, 5))}p"
        if policy == "pss" and queue == "af":
            keys |= {"low_level": 3, "rate": f"{rate * rng.uniform(0.2, 0.6):.3f}Mbit", "memory": "500ms"}
        classes.append(keys)
    scheduler: dict[str, Any] = {"policy": policy}
    if policy == "wrr":
        scheduler["mode"] = rng.choice(("burst", "smooth"))
    if policy == "pss":
        scheduler["on_empty"] = rng.choice(("keep", "reset"))
    return {
        "name": name,
        "rate": f"{rate}Mbit" if rng.random() < 0.85 else _steps(rate),
        "nominal": f"{rate}Mbit",
        "delay": rng.choice(("0s", "0s", "1ms", "7.3ms")),
        "ring": rng.choice((1, 1, 1, 4)),
        "overhead": rng.choice(("0B", "0B", "24B")),
        "scheduler": scheduler,
        "class": classes,
    }


def _steps(rate: int) -> dict[str, Any]:
    """Half the rate for a quarter of the time."""
    steps = [["0s", f"{rate}Mbit"], ["15ms", f"{rate / 2}Mbit"]]
    return {"steps": steps, "end": "loop", "period": "20ms"}


def _path(rng: random.Random, kind: str, names: list[str]) -> list[str]:
    """A way: a stretch of a chain, from any link of a tree to its root, or an arc of a ring."""
    if kind == "tree":  # link i leads to (i - 1) / 2
        at, path = rng.randrange(len(names)), []
        while True:
            path.append(names[at])
            if at == 0 or rng.random() < 0.1:
                return path
            at = (at - 1) // 2
    first = rng.randrange(len(names))
    length = rng.randint(1, len(names))
    if kind == "ring":
        return [names[(first + i) % len(names)] for i in range(length)]
    return names[first : first + length]


def attacked(seed: int, runs: int) -> dict[str, Any]:
    """What the search found in the network of this seed."""
    rng = random.Random(seed)
    scenario, envelopes = draw(rng)
    found = network_bounds(scenario, envelopes=envelopes)
    bounded = [way for way in found.ways if way.delay_s is not None]
    kind = "cycle" if found.rings else scenario.name
    row: dict[str, Any] = {"seed": seed, "kind": kind, "flows": len(found.ways), "bounded": len(bounded)}
    if not bounded:
        return {**row, "runs": 0, "broken": []}
    target = rng.choice([way for way in bounded if len(way.hops) > 1] or bounded)
    worst, broken = climb_network(Network(scenario, found.ways, envelopes), target.flow, runs, seed)
    assert target.one_by_one_s is not None
    assert target.delay_s is not None
    return {
        **row,
        "runs": runs,
        "hops": len(target.hops),
        "tightness": worst.tightness,
        "together": any(len(stretch.stops) > 1 for stretch in target.stretches),
        "of_sum": float(target.delay_s / target.one_by_one_s),
        "broken": broken[:1],
    }


def campaign(
    description: str | None,
    things: str,
    attack: int,
    attacked: Callable[[int, int], dict[str, Any]],
    show: Callable[[list[dict[str, Any]]], int],
) -> int:
    """Attacks the random things of a kind that the file does not have, and shows all rows.

    Args:
        description: of the command.
        things: their name, such as networks.
        attack: runs for each of them, unless the user says otherwise.
        attacked: makes the row of a seed with so many runs.
        show: prints the rows; returns the exit code.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{things}", type=int, default=200, dest="count")
    parser.add_argument("--attack", type=int, default=attack, help="runs for each")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path(f"bounds-{things.removesuffix('s')}.jsonl"))
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {line["seed"] for line in lines}
    seeds = [s for s in range(options.first, options.first + options.count) if s not in done]
    with ProcessPoolExecutor(options.workers) as pool, options.out.open("a") as file:
        for row in pool.map(attacked, seeds, [options.attack] * len(seeds), chunksize=4):
            file.write(json.dumps(row) + "\n")
            file.flush()
            lines.append(row)
    return show(lines)


def show(lines: list[dict[str, Any]]) -> int:
    """Prints the tightness by kind of network and number of links."""
    groups = collections.defaultdict(list)
    for line in lines:
        if line["runs"]:
            groups[line["kind"], line["hops"]].append(line)
    print(f"{'network':9}{'links':>6}{'networks':>10}{'median':>8}{'most':>8}{'together':>10}{'of the sum':>12}")
    for (kind, hops), rows in sorted(groups.items()):
        tight = [row["tightness"] for row in rows]
        together = sum(row["together"] for row in rows) / len(rows)
        of_sum = statistics.median(row["of_sum"] for row in rows)
        print(
            f"{kind:9}{hops:6}{len(rows):10}{statistics.median(tight):8.3f}{max(tight):8.3f}{together:10.0%}{of_sum:12.3f}"
        )
    return summary(lines, "networks", "kind")


def summary(lines: list[dict[str, Any]], things: str, kind: str) -> int:
    """Prints sums over all rows, and each bound that was exceeded; returns the exit code. `kind` is a row's key."""
    tight = [line["tightness"] for line in lines if line["runs"]]
    print(f"all: {len(tight)} {things}, median {statistics.median(tight):.3f}, most {max(tight):.3f}")
    without = sum(line["flows"] - line["bounded"] for line in lines)
    print(f"{without} of {sum(line['flows'] for line in lines)} flows without a bound")
    broken = [line for line in lines if line["broken"]]
    print(f"{sum(line['runs'] for line in lines)} runs, {len(broken)} {things} in which a bound was exceeded")
    for line in broken:
        print(f"seed {line['seed']}, {line[kind]}: {line['broken'][0]}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(campaign(__doc__, "networks", 6, attacked, show))
