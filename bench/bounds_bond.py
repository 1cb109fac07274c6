#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries to exceed the bounds of random bonds, and says how near the search comes.

    bench/bounds_bond.py --bonds 2000 --attack 4 --out bounds-bond.jsonl

Each bond has 2 to 4 links with random rates, delays, losses and costs, and one to four classes that use them in
random ways. One flow is the target of a search; every run checks the bounds of all flows. Then the bounds without one
of the links are searched in the same way: it is down all the time, or left out. A line of the file is one bond. Bonds
that the file has already are left out, so the command may be interrupted and called again. Exit code 1 if a bound was
exceeded.
"""

from __future__ import annotations

import collections
import contextlib
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bounds_network import campaign, summary
from linkweir.bounds.attack_bond import Bonds, left_out, while_down
from linkweir.bounds.attack_network import climb_network
from linkweir.bounds.bonds import BoundsOfBond, bounds_of_bonds
from linkweir.fault import ScenarioError
from linkweir.scenarios.scenario import Scenario

POLICIES = ("strict", "strict", "fifo", "pss", "pds")
PATHS = ("stripe", "stripe", "all", "best", "spill", "named")


def draw(rng: random.Random) -> tuple[Scenario, list[str]]:
    """A bond and the envelopes of its flows."""
    names = [f"l{number}" for number in range(rng.randint(2, 4))]
    same = rng.random() < 0.3
    rates = [rng.choice((2, 5, 10, 20, 50)) for _ in names]
    if same:
        rates = rates[:1] * len(names)
    calm = rng.random() < 0.6
    links = [_link(rng, name, rate, calm=calm) for name, rate in zip(names, rates, strict=True)]
    policy = rng.choice(POLICIES)
    classes = [_class(rng, index, policy, names, rates) for index in range(rng.randint(1, 4))]
    flows: list[dict[str, Any]] = []
    envelopes = []
    load = rng.uniform(0.1, 0.8) / len(classes)
    for index, one in enumerate(classes):
        usable = [rate for name, rate in zip(names, rates, strict=True) if _uses(one, name)]
        most = min(usable) if one["paths"] == "all" else sum(usable)
        for copy in range(rng.randint(1, 2)):
            size = rng.choice((200, 600, 1500))
            least = rng.choice((size, size, 64))
            packet = {"sizes": [f"{least}B", f"{size}B"], "weights": [1, 1]}
            flow = f"f{index}{copy}"
            flows.append(
                {"name": flow, "class": one["name"], "kind": "cbr", "rate": "1Mbit", "packet": packet, "path": ["bond"]}
            )
            envelopes.append(f"{flow}={size * rng.choice((1, 2, 4, 12, 20))}B:{load * most / 2:.4f}Mbit")
    bond = {
        "name": "bond",
        "links": names,
        "room": rng.choice(("0s", "2ms", "20ms")),
        "scheduler": {"policy": policy},
        "class": classes,
    }
    keys = {"name": policy, "duration": "100ms", "interval": "100ms", "link": links, "bond": [bond], "flow": flows}
    return Scenario.from_dict(keys), envelopes


def _link(rng: random.Random, name: str, rate: int, *, calm: bool) -> dict[str, Any]:
    keys: dict[str, Any] = {
        "name": name,
        "rate": f"{rate}Mbit",
        "nominal": f"{rate}Mbit",
        "delay": rng.choice(("0s", "1ms", "7.3ms", "30ms")),
        "cost": rng.choice((0, 0, 1, 5)),
    }
    if calm:
        return keys
    kind = rng.randrange(5)
    if kind == 0:
        steps = [["0s", f"{rate}Mbit"], ["15ms", f"{rng.choice((0, rate / 2))}Mbit"]]
        keys["rate"] = {"steps": steps, "end": "loop", "period": "20ms"}
    elif kind == 1:
        keys["loss"] = rng.choice((0.02, 0.3))
    elif kind == 2:
        keys["delay"] = {"steps": [["0s", "1ms"], ["15ms", "9ms"]], "end": "loop", "period": "20ms"}
    elif kind == 3:
        keys["reorder"] = {"probability": 0.3, "delay": "3ms"}
    if kind != 0 and rng.random() < 0.3:
        keys["loss"] = {"steps": [["0s", 0.0], ["30ms", 1.0], ["50ms", 0.0]]}
    if kind == 0:
        keys["follow"] = rng.random() < 0.5
    return keys


def _class(rng: random.Random, index: int, policy: str, names: list[str], rates: list[int]) -> dict[str, Any]:
    paths = rng.choice(PATHS)
    named = rng.sample(names, rng.randint(1, len(names)))
    keys: dict[str, Any] = {"name": f"c{index}", "paths": named if paths == "named" else paths}
    keys["reorder"] = rng.choice(("none", "100ms", "3ms"))
    if policy == "pss" and index == 1:
        keys |= {"level": 1, "low_level": 7, "rate": f"{rng.uniform(0.1, 0.4) * sum(rates):.3f}Mbit", "memory": "1s"}
    elif policy in ("strict", "pss"):
        keys["level"] = index
    if policy == "pds":
        keys["delay"] = rng.choice((1, 2, 4))
    return keys


def _uses(one: dict[str, Any], name: str) -> bool:
    return isinstance(one["paths"], str) or name in one["paths"]


def attacked(seed: int, runs: int) -> dict[str, Any]:
    """What the search found over the bond of this seed, and over the same without one of its links."""
    rng = random.Random(seed)
    scenario, envelopes = draw(rng)
    (found,) = bounds_of_bonds(scenario, envelopes=envelopes)
    row = {"seed": seed, **_searched(scenario, found, envelopes, rng, (runs, seed))}
    if found.without:
        rng = random.Random(f"{seed} without a link")
        one = rng.choice(found.without)
        how, left = _without(scenario, one.link, rng)
        there = {flow["name"] for flow in left.native.tables()["flows"]}
        envelopes = [text for text in envelopes if text.split("=")[0] in there]
        found = replace(found, classes=one.classes, promises=one.promises, without=())
        row["without"] = {"seed": seed, "how": how, **_searched(left, found, envelopes, rng, (runs, seed))}
    return row


def _without(scenario: Scenario, link: str, rng: random.Random) -> tuple[str, Scenario]:
    """The scenario with a link that is down all the time, or without it if what is reserved fits."""
    if rng.random() < 0.5:
        with contextlib.suppress(ScenarioError):
            return "left out", left_out(scenario, link)
    return "down", while_down(scenario, link)


def _searched(
    scenario: Scenario, found: BoundsOfBond, envelopes: Sequence[str], rng: random.Random, search: tuple[int, int]
) -> dict[str, Any]:
    """What so many runs with this seed found."""
    runs, seed = search
    network = Bonds(scenario, [found], envelopes)
    bounded = sorted(name for name, way in network.bounds.items() if way.delay_s is not None)
    row: dict[str, Any] = {"policy": found.policy, "flows": len(network.bounds), "bounded": len(bounded)}
    if not bounded:
        return {**row, "runs": 0, "broken": []}
    target = rng.choice(bounded)
    worst, broken = climb_network(network, target, runs, seed)
    paths = next(
        one["paths"] for one in scenario.native.written()["bond"][0]["class"] if one["name"] == f"c{target[1]}"
    )
    return {
        **row,
        "runs": runs,
        "paths": paths if isinstance(paths, str) else "named",
        "links": len(scenario.native.written()["link"]),
        "tightness": worst.tightness,
        "broken": broken[:1],
    }


def show(lines: list[dict[str, Any]]) -> int:
    """Prints the tightness by policy and use of the links, with all links and without one."""
    code = _show(lines)
    left = [line["without"] for line in lines if "without" in line]
    if left:
        down = sum(line["how"] == "down" for line in left)
        print(f"\nwithout one link, which is down in {down} bonds and left out of {len(left) - down}:")
        code = max(code, _show(left))
    return code


def _show(lines: list[dict[str, Any]]) -> int:
    groups = collections.defaultdict(list)
    for line in lines:
        if line["runs"]:
            groups[line["policy"], line["paths"]].append(line["tightness"])
    print(f"{'policy':8}{'paths':8}{'bonds':>7}{'median':>8}{'most':>8}")
    for (policy, paths), tight in sorted(groups.items()):
        print(f"{policy:8}{paths:8}{len(tight):7}{statistics.median(tight):8.3f}{max(tight):8.3f}")
    return summary(lines, "bonds", "policy")


if __name__ == "__main__":
    raise SystemExit(campaign(__doc__, "bonds", 4, attacked, show))
