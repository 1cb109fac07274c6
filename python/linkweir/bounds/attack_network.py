# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the worst delays of flows over a network in the simulator, within the arrivals that their bounds assume.

Hill climbing, as `attack.py` does for one link: the first candidates let all flows send their bursts so that they meet
at one link of the target's way. Each further candidate changes how one flow sends. Those with a longer delay are kept.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from linkweir.bounds.attack import BEGIN_NS, MOST_PKTS, MOST_PKTS_LONG, Sender, packets, place_traces, step
from linkweir.bounds.curve import Curve
from linkweir.bounds.network import NetworkBounds, WayBound, network_bounds, source_curves
from linkweir.runs.simulate import run
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

CLOCK_S = 2e-9
"""How much a measured delay may exceed the bound for each link: instants of the simulator are whole nanoseconds."""

Case = Mapping[str, Sender]
"""What each flow does, by name."""


@dataclass(frozen=True)
class NetworkAttack:
    """The worst delay found for a flow, and the case that shows it. Seconds."""

    flow: str
    found_s: float
    bound_s: float
    case: Case

    @property
    def tightness(self) -> float:
        """Found over bound."""
        return self.found_s / self.bound_s


class Network:
    """A network whose bounds are attacked."""

    def __init__(self, scenario: Scenario, ways: Iterable[WayBound], envelopes: Sequence[str]) -> None:
        self.scenario = scenario
        self.bounds = {way.flow: way for way in ways}
        self.curves = source_curves(scenario, envelopes)
        self.names = [name for name, source in self.curves.items() if source.curve is not None]
        longest_s = max((way.delay_s for way in self.bounds.values() if way.delay_s is not None), default=Fraction(0))
        self.horizon_ns = BEGIN_NS + math.ceil(4 * longest_s * 10**9)

    def sizes(self, name: str) -> tuple[int, int]:
        """The smallest and the largest packet of a flow, bytes."""
        return self.curves[name].least_bits // 8, self.curves[name].most_bits // 8

    def candidate(self, case: Case, folder: Path) -> dict[str, Any]:
        """The scenario with these senders in place of its flows; lists of packets are written into the folder."""
        keys = self.scenario.native.written()
        place_traces(keys["link"], self.scenario, folder)
        flows = []
        for flow in keys["flow"]:
            curve = self.curves[flow["name"]].curve
            if curve is None:
                flows.append(flow)
                continue
            rows = self._packets(flow["name"], curve, case[flow["name"]])
            if not rows:  # it would begin behind the end
                continue
            path = folder / f"{flow['name']}.csv"
            path.write_text("t_s,bytes\n" + "".join(f"{t / 1e9:.9f},{size}\n" for t, size in rows))
            kept = {key: flow[key] for key in ("name", "class", "dscp", "path") if key in flow}
            if isinstance(
                kept.get("class"), dict
            ):  # recorded packets have no way back, whose links are named there, too
                kept["class"] = {link: name for link, name in kept["class"].items() if link in flow["path"]}
            flows.append({**kept, "kind": "replay", "file": str(path)})
        for link in [*keys["link"], *keys.get("bond", [])]:
            for entry in link.get("class", []):
                entry["limit"] = "100000p"
                entry.pop("limit_bytes", None)
        duration = f"{max(self.horizon_ns, round(self.scenario.duration_s * 1e9))}ns"
        return {**keys, "duration": duration, "interval": duration, "warmup": "0s", "flow": flows, "log": "none"}

    def _packets(self, name: str, curve: Curve, sender: Sender) -> list[tuple[int, int]]:
        longest_s = self.bounds[name].delay_s or Fraction(1)
        needed = math.ceil(curve(longest_s) / (8 * sender.size_bytes))
        return packets(curve, sender, self.horizon_ns, 0, min(max(needed, MOST_PKTS), MOST_PKTS_LONG))

    def measure(self, case: Case) -> dict[str, float]:
        """The longest delay of each flow, s, from the arrival at its first queue to the receiver."""
        with scratch() as folder:
            keys = self.candidate(case, folder)
            if not keys["flow"]:  # all would begin behind the end
                return {}
            rows = run(Scenario.from_dict(keys)).flows.to_pydict()
            return {name: delay or 0.0 for name, delay in zip(rows["flow"], rows["delay_max_s"], strict=True)}

    def exceeded(self, delays: Mapping[str, float]) -> list[str]:
        """Sentences about bounds that were exceeded."""
        found = []
        for name, delay_s in delays.items():
            way = self.bounds.get(name)
            if way is not None and way.delay_s is not None:
                most_s = float(way.delay_s) + CLOCK_S * max(len(way.hops), 1)
                if delay_s > most_s:
                    found.append(f"{name}: {delay_s} s exceeds {most_s} s")
        return found

    def first_cases(self, target: str) -> list[Case]:
        """All begin at once; or so that first packets meet at one link of the target's way, the target just behind."""
        sizes = {name: self.sizes(name) for name in self.names}
        together = {name: Sender(BEGIN_NS, sizes[name][1]) for name in self.names}
        cases: list[Case] = [together]
        early = {name: replace(s, start_ns=s.start_ns - (name != target)) for name, s in together.items()}
        cases.append(early)
        way = self.bounds[target]
        for number in range(1, len(way.hops)):
            meeting = BEGIN_NS + self._travel_ns(way, number, sizes[target][1])
            case = {}
            for name, sender in together.items():
                other = self.bounds[name]
                place = next((i for i, hop in enumerate(other.hops) if hop.link == way.hops[number].link), None)
                at_ns = meeting - self._travel_ns(other, place, sizes[name][1]) - 1 if place is not None else BEGIN_NS
                case[name] = replace(sender, start_ns=BEGIN_NS if name == target else max(at_ns, 0))
            cases.append(case)
        return cases

    def _travel_ns(self, way: WayBound, number: int, size_bytes: int) -> int:
        """How long a packet takes to a link of its way, if it waits nowhere."""
        return sum(hop.alone_ns(size_bytes) for hop in way.hops[:number])

    def mutated(self, rng: random.Random, case: Case) -> Case:
        """The case with one flow's sender changed."""
        name = rng.choice(self.names)
        s, (least, most) = case[name], self.sizes(name)
        kind = rng.randrange(6)
        if kind == 0:
            s = replace(s, start_ns=max(s.start_ns + step(rng), 0))
        elif kind == 1:
            s = replace(s, start_ns=case[rng.choice(self.names)].start_ns + rng.choice((0, 1)))
        elif kind == 2:
            light_ns = rng.choice((0, rng.randrange(1, 2 * self.horizon_ns // 4)))
            s = replace(s, light_ns=light_ns, gap_ns=round(10 ** rng.uniform(5, 7)))
        elif kind == 3:
            s = replace(s, start_ns=rng.randrange(self.horizon_ns // 4))
        elif kind == 4:
            s = replace(s, first_bytes=rng.choice((None, rng.randint(least, most))))
        else:
            s = replace(s, size_bytes=rng.choice((least, most, rng.randint(least, most))))
        return {**case, name: s}


def climb_network(network: Network, target: str, runs: int, seed: int) -> tuple[NetworkAttack, list[str]]:
    """The worst case of one flow after so many runs, and sentences about bounds that were exceeded."""
    rng = random.Random(seed)
    bound_s = network.bounds[target].delay_s
    assert bound_s is not None
    starts = network.first_cases(target)
    best, longest_s = starts[0], -1.0
    broken: list[str] = []
    for number in range(max(runs, 1)):
        tried = starts[number] if number < len(starts) else network.mutated(rng, best)
        delays = network.measure(tried)
        broken += [f"{sentence}: {tried}" for sentence in network.exceeded(delays)]
        if delays.get(target, 0.0) >= longest_s:
            best, longest_s = tried, delays.get(target, 0.0)
    return NetworkAttack(target, longest_s, float(bound_s), best), broken


def attack_network(
    scenario: Scenario, found: NetworkBounds, envelopes: Sequence[str], runs: int, *, seed: int = 1
) -> tuple[list[NetworkAttack], list[str]]:
    """The worst case of each flow that has a bound, searched in processes in parallel, and sentences about defects.

    Args:
        scenario: the scenario.
        found: its bounds.
        envelopes: those with which they were computed.
        runs: simulations for each flow.
        seed: of the search.
    """
    names = [flow["name"] for flow in scenario.native.tables()["flows"]]
    bounds = {way.flow: way for way in found.ways}
    targets = [name for name in names if name in bounds and bounds[name].delay_s]
    return attack_each(_network, scenario, envelopes, targets, runs, seed)


def attack_each(
    network: Callable[[Scenario, Sequence[str]], Network],
    scenario: Scenario,
    envelopes: Sequence[str],
    targets: Sequence[str],
    runs: int,
    seed: int,
) -> tuple[list[NetworkAttack], list[str]]:
    """As `attack_network`, of these flows; each process makes its own network, by a function of a module."""
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(_climb, network, scenario, list(envelopes), target, runs, seed + number)
            for number, target in enumerate(targets)
        ]
        pairs = [job.result() for job in jobs]
    return [attack for attack, _ in pairs], [sentence for _, broken in pairs for sentence in broken]


def _climb(
    network: Callable[[Scenario, Sequence[str]], Network],
    scenario: Scenario,
    envelopes: list[str],
    target: str,
    runs: int,
    seed: int,
) -> tuple[NetworkAttack, list[str]]:
    return climb_network(network(scenario, envelopes), target, runs, seed)


def _network(scenario: Scenario, envelopes: Sequence[str]) -> Network:
    return Network(scenario, network_bounds(scenario, envelopes=envelopes).ways, envelopes)


def write_attacks(network: Network, attacks: Iterable[NetworkAttack], folder: Path) -> list[dict[str, Any]]:
    """Writes each worst case, and says how long it is and where it stands."""
    return [
        {
            "name": attack.flow,
            "found_s": attack.found_s,
            "tightness": attack.tightness,
            "scenario": str(write_network(network, attack, folder)),
        }
        for attack in attacks
    ]


def write_network(network: Network, attack: NetworkAttack, folder: Path) -> Path:
    """Writes a worst case as a scenario with its lists of packets, in a folder named after the flow."""
    inside = folder / attack.flow
    lists = inside / "inputs"
    lists.mkdir(parents=True, exist_ok=True)
    keys = network.candidate(attack.case, lists)
    keys["name"] = f"Worst case found for {attack.flow}"
    path = inside / "scenario.toml"
    path.write_text(Scenario.from_dict(keys).resolved)  # names the lists inputs/NAME.csv
    Scenario.load(path)
    return path
