#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Exports the scenarios of exports.py and compares what the classes get with their simulation.

    python lab/exported/compare.py [--only TEXT] [--on qdisc|gateway] [--into docs/records/deploy.md]

Each scenario runs three times: in the simulator, with the packets that the laboratory sends; and twice in the
laboratory, in virtual time, set up by the script of `linkweir export tc` and by the configuration of `linkweir export
gateway`. Runs are stored by scenario and by what ran them, so an interrupted comparison continues where it was. Exit
code 0: every rate is within its bound, or 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import exports

import linkweir
from linkweir import _native
from linkweir.lab import LaboratoryError
from linkweir.lab.experiment import Experiments, Laboratory
from linkweir.lab.exported import marked
from linkweir.lab.gateways import VirtualGateways
from linkweir.lab.world import staggered
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ("qdisc", "gateway")
MARKS = ("<!-- exports -->", "<!-- end of exports -->")

Rates = Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """A class of a scenario: its rate in the simulator and in the hosts, bit/s, and by how much these may differ."""

    scenario: str
    name: str
    simulated_bps: float
    allowed_bps: float
    found_bps: Mapping[str, float]

    def distance(self, host: str) -> float:
        """How far a host's rate is from the simulated one, as part of it."""
        return self.found_bps[host] / self.simulated_bps - 1 if self.simulated_bps else 0.0

    def within(self, host: str) -> bool:
        """Whether that is allowed."""
        return abs(self.found_bps[host] - self.simulated_bps) <= self.allowed_bps


def chosen(only: Sequence[str]) -> list[Scenario]:
    """The scenarios whose names contain one of these texts, or all of them."""
    every = [exports.scenario(policy, number) for policy in exports.POLICIES for number in exports.NUMBERS]
    every.append(Scenario.from_dict({**exports.TCP, "name": "pss with TCP"}))
    return [one for one in every if not only or any(text in one.name for text in only)]


def is_tcp(scenario: Scenario) -> bool:
    """Whether it is the one with TCP."""
    return "TCP" in scenario.name


def simulated(scenario: Scenario, folder: Path) -> Rates:
    """What the simulator gives the classes, for the packets that the laboratory sends."""
    if is_tcp(scenario):
        return exports.rates(linkweir.run(Scenario.from_dict(staggered(Scenario.from_dict(marked(scenario))))))
    return exports.rates(linkweir.run(exports.recorded(scenario, folder)))


def stored(folder: Path, scenario: Scenario, identity: str, make: Callable[[], Rates]) -> Rates:
    """The rates of a run that was made before, or those of a new one."""
    key = hashlib.sha256(f"{scenario.resolved}\n{identity}".encode()).hexdigest()[:24]
    path = folder / f"{key}.json"
    if path.exists():
        found: Rates = json.loads(path.read_text())
        return found
    made = make()
    part = path.with_suffix(".part")
    part.write_text(json.dumps(made))
    part.replace(path)
    return made


def compared(
    scenarios: Sequence[Scenario], hosts: Mapping[str, Experiments], store: Path, say: Callable[[str], None]
) -> list[Line]:
    """Runs what is not stored, and the lines of all classes."""
    store.mkdir(parents=True, exist_ok=True)
    lines = []
    for scenario in scenarios:
        began = time.monotonic()
        with scratch() as folder:
            wanted = simulated(scenario, folder)
        found = {
            name: stored(
                store,
                scenario,
                f"{name} {host.identity}",
                lambda host=host, scenario=scenario: exports.rates(host.run(Scenario.from_dict(marked(scenario)))),
            )
            for name, host in hosts.items()
        }
        for name, bps in wanted.items():
            allowed = exports.TCP_BOUND * bps if is_tcp(scenario) else exports.allowed_bps(scenario, bps)
            rates = {host: of[name] for host, of in found.items()}
            lines.append(Line(scenario.name, name, bps, allowed, rates))
        mine = [line for line in lines if line.scenario == scenario.name]
        worst = {host: max(abs(line.distance(host)) for line in mine) for host in hosts}
        shown = ", ".join(f"{host} {100 * distance:.2f} %" for host, distance in worst.items())
        say(f"{scenario.name} after {time.monotonic() - began:.0f} s: {shown}")
    return lines


def table(lines: Sequence[Line], hosts: Sequence[str]) -> str:
    """A Markdown table; values outside their bounds are bold."""
    head = ["scenario", "class", "simulation, Mbit/s"]
    for host in hosts:
        head += [f"{host}, Mbit/s", "distance"]
    rows = [head, ["---"] * len(head)]
    for line in lines:
        cells = [line.scenario, line.name, f"{line.simulated_bps / 1e6:.4f}"]
        for host in hosts:
            mark = "" if line.within(host) else "**"
            cells += [f"{line.found_bps[host] / 1e6:.4f}", f"{mark}{100 * line.distance(host):+.2f} %{mark}"]
        rows.append(cells)
    text = "".join("| " + " | ".join(row) + " |\n" for row in rows).replace("| --- | --- |", "|---|---|", 1)
    return text + "\n" + " ".join(summary(lines, hosts)) + "\n"


def summary(lines: Sequence[Line], hosts: Sequence[str]) -> list[str]:
    """How many rates are within their bounds, in sentences."""
    return [
        f"{host}: {sum(line.within(host) for line in lines)} of {len(lines)} rates are within their bounds, "
        f"the largest distance is {100 * max(abs(line.distance(host)) for line in lines):.2f} %."
        for host in hosts
    ]


def write_into(path: Path, made: str, origin: str) -> None:
    """Replaces the marked table of a page."""
    before, rest = path.read_text().split(MARKS[0])
    _, after = rest.split(MARKS[1])
    path.write_text(f"{before}{MARKS[0]}\n\n{origin}\n\n{made}\n{MARKS[1]}{after}")


def main() -> int:
    """Runs, compares and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="scenarios whose names contain it")
    parser.add_argument("--on", choices=HOSTS, action="append", help="where they run; by default in both")
    parser.add_argument("--store", type=Path, default=ROOT / "runs/exported", metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked table of this page")
    options = parser.parse_args()
    if options.into and (options.only or options.on):
        parser.error("--into replaces the whole table: it cannot be given with --only or --on")
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    makers: dict[str, Callable[[], Experiments]] = {
        "qdisc": lambda: Laboratory(exported_script=True, say=say),
        "gateway": lambda: VirtualGateways(exported=True, say=say),
    }
    names = [name for name in HOSTS if not options.on or name in options.on]
    scenarios = chosen(options.only)
    if not scenarios:
        parser.error(f"--only {' '.join(options.only)}: no scenario has this name")
    try:
        lines = compared(scenarios, {name: makers[name]() for name in names}, options.store, say)
    except LaboratoryError as error:
        say(str(error))
        return 2
    made = table(lines, names)
    print(made, end="")
    if options.into:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        command = f"python lab/exported/compare.py --into {options.into}"
        write_into(options.into, made, f"Measured on {today} by `{command}`: commit {_native.commit}.")
    return int(not all(line.within(host) for line in lines for host in names))


if __name__ == "__main__":
    sys.exit(main())
