#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the places in which one scheduler runs: theory, simulator, qdisc, gateway, ns-3.

    python lab/agreement/agreement.py [--place NAME]... [--only TEXT]... [--into docs/records/agreement.md]

The points of figures.py run in every place. Each value is compared with the simulator's for the same duration, and the
largest difference with the bound of the place. Runs are stored, by everything that they depend on, so an interrupted
comparison continues where it was. A place that cannot be had here, or for which there was no time (--most-s), has
empty cells. Exit code 0: every value is within its bound, or 3.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import ns3_programs
import page
from figures import Group, Point, Reduced, groups, identity_of
from places import available
from stored import OUTSIDE, Job, Store, run_all

import linkweir
from linkweir import _native
from linkweir.lab import LaboratoryError
from linkweir.lab.experiment import Experiments, Laboratory
from linkweir.lab.gateways import Gateways, VirtualGateways
from linkweir.lab.world import staggered
from linkweir.reproduce.orders import cell
from linkweir.scenarios.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = page.SIMULATOR
SIMULATED = (SIMULATOR, page.BACKLOGGED)
NOT_OF_A_SCENARIO = ("--seeds", "--tcp")
"""Arguments of ns-3's programs that the scenario of a point does not tell; it tells all others, but for the figure."""

Key = tuple[str, str, str, int, float]
"""Place, group, point, seed and duration in s of a run."""


@dataclass(frozen=True)
class Place:
    """Where scenarios run.

    Attributes:
        name: in tables.
        jobs: the runs of a point, by key.
        identity: of everything that the place is made of.
        programs: the same of each program, where a run is one of several.
    """

    name: str
    run: Callable[[Group, Point, int, float, int], Reduced]
    identity: str
    programs: Mapping[str, str] = field(default_factory=dict)


def durations(group: Group, point: Point, place: str) -> list[float]:
    """How long a point runs in a place, s: the simulator as long as each of the others."""
    if place == SIMULATOR:
        others = {group.duration_of(other) for other in page.PLACES if durations(group, point, other)}
        return [group.duration_s[""], *sorted(others - {group.duration_s[""]}, reverse=True)]
    runs = {
        page.NS3: point.program is not None,
        page.NS3_TCP: point.backlogged is not None or point.program is None,
        page.BACKLOGGED: point.backlogged is not None,
        page.REAL: point.real,
    }
    as_long_as = page.NS3 if place == page.BACKLOGGED else place
    return [group.duration_of(as_long_as)] if runs.get(place, True) else []


def simulated() -> Place:
    """The simulator, with TCP flows that start when the kernel's do."""

    def run(group: Group, point: Point, seed: int, duration_s: float, _processor: int) -> Reduced:
        whole = Scenario.from_dict(point.scenario(seed, duration_s))
        return group.reduce(linkweir.run(Scenario.from_dict(staggered(whole))))

    return Place(SIMULATOR, run, f"simulator {_native.sources}")


def backlogged() -> Place:
    """The simulator, where ns-3 has no TCP."""

    def run(group: Group, point: Point, seed: int, duration_s: float, _processor: int) -> Reduced:
        assert point.backlogged is not None
        return group.reduce(linkweir.run(Scenario.from_dict(point.backlogged(seed, duration_s))))

    return Place(page.BACKLOGGED, run, f"simulator {_native.sources}")


def on_kernels(name: str, experiments: Experiments) -> Place:
    """A place of the laboratory."""

    def run(group: Group, point: Point, seed: int, duration_s: float, processor: int) -> Reduced:
        whole = Scenario.from_dict(point.scenario(seed, duration_s))
        return group.reduce(experiments.run(whole, processor=processor))

    return Place(name, run, experiments.identity)


def in_ns3(name: str, wanted: Sequence[Group]) -> Place | None:
    """ns-3, with its TCP or without; None if it is not here."""
    exported = {
        f"exported-{group.name}": Scenario.from_dict(point.scenario(1, group.duration_of(page.NS3_TCP)))
        for group in wanted
        for point in group.points
        if point.program is None
    }
    ns3 = ns3_programs.build(exported)
    if ns3 is None:
        return None

    def run(group: Group, point: Point, _seed: int, duration_s: float, _processor: int) -> Reduced:
        return group.ns3(ns3.run(words_of(name, group, point, duration_s)))

    return Place(name, run, "ns-3", ns3.identities)


def words_of(place: str, group: Group, point: Point, duration_s: float) -> list[str]:
    """A program for ns-3 and its arguments."""
    if point.program is None:
        return [f"exported-{group.name}"]
    return [*point.program(duration_s), *(point.tcp if place == page.NS3_TCP else ())]


def places(names: Sequence[str], wanted: Sequence[Group], say: Callable[[str], None]) -> Iterator[Place]:
    """The places of these names that can be had here, one after the other."""
    makers: Mapping[str, Callable[[], Place | None]] = {
        SIMULATOR: simulated,
        page.BACKLOGGED: backlogged,
        page.NS3: lambda: in_ns3(page.NS3, wanted),
        page.NS3_TCP: lambda: in_ns3(page.NS3_TCP, wanted),
        page.QDISC: lambda: on_kernels(page.QDISC, Laboratory(sent_when_due=True, say=say)),
        page.VIRTUAL: lambda: on_kernels(page.VIRTUAL, VirtualGateways(below=None, sent_when_due=True, say=say)),
        page.REAL: lambda: on_kernels(page.REAL, Gateways()),
    }
    return available({name: makers[name] for name in names}, say)


def jobs_of(place: Place, wanted: Sequence[Group]) -> dict[Key, Job]:
    """All runs of a place; points of one scenario and ns-3's program share a run."""
    jobs: dict[Key, Job] = {}
    for group in wanted:
        for point in group.points:
            for duration_s in durations(group, point, place.name):
                for seed in group.seeds_of(place.name):
                    key = (place.name, group.name, point.name, seed, duration_s)
                    jobs[key] = _job(place, group, point, seed, duration_s)
    return jobs


def _job(place: Place, group: Group, point: Point, seed: int, duration_s: float) -> Job:
    made = point.backlogged if place.name == page.BACKLOGGED else None
    scenario = (made or point.scenario)(seed, duration_s)
    program = words_of(place.name, group, point, duration_s) if place.name in (page.NS3, page.NS3_TCP) else []

    def run(processor: int) -> Reduced:
        return place.run(group, point, seed, duration_s, processor)

    name = "" if place.name in SIMULATED else f"{place.name}, {group.name}: {point.name}, seed {seed}"
    depends = [place.identity + place.programs.get(program[0] if program else "", ""), identity_of(scenario)]
    depends += [word for word in program if word.split("=")[0] in NOT_OF_A_SCENARIO]
    return Job(name, [*depends, group.reduce.__name__], run)


def parts_of(place: Place, wanted: Sequence[Group], jobs: int) -> list[tuple[int, list[Group]]]:
    """How many runs at a time, and the groups whose runs these are."""
    if place.name != page.REAL:
        return [(jobs, list(wanted))]
    # a run that fails ends its part, as in the other places
    at_once = dict.fromkeys(group.real_at_once for group in wanted)
    return [(number, [group for group in wanted if group.real_at_once == number]) for number in at_once]


def results(
    names: Sequence[str], wanted: Sequence[Group], store: Store, options: argparse.Namespace, say: Callable[[str], None]
) -> dict[Key, Reduced]:
    """Runs what is not stored and returns all results that there are."""
    found: dict[Key, Reduced] = {}
    for place in places(names, wanted, say):
        began = time.monotonic()
        jobs = 0
        for at_once, part in parts_of(place, wanted, options.jobs):
            here = jobs_of(place, part)
            jobs += len(here)
            left_s = options.most_s - (time.monotonic() - began) if place.name not in SIMULATED else float("inf")
            try:
                found |= run_all(here, store, at_once, say, left_s)
            except LaboratoryError as error:
                say(f"{place.name}: STOPPED: {error}")
                found |= run_all(here, store, at_once, say, -1.0)  # what is stored
        there = sum(key[0] == place.name for key in found)
        say(f"{place.name}: {there} of {jobs} runs are there, after {time.monotonic() - began:.0f} s")
    return found


def values(found: Mapping[Key, Reduced], place: str, group: Group, point: Point, duration_s: float) -> list[float]:
    """The values of a place; none if a run is missing."""
    keys = [(place, group.name, point.name, seed, duration_s) for seed in group.seeds_of(place)]
    runs = [found[key] for key in keys if key in found]
    return point.values(runs) if len(runs) == len(keys) else []


def compared(found: Mapping[Key, Reduced], wanted: Sequence[Group]) -> list[page.Table]:
    """The tables, with every value there is."""
    tables = []
    for group in wanted:
        lines = []
        for point in group.points:
            expected = point.theory(group.duration_s[""])
            run = {place for place in page.PLACES if durations(group, point, place)}
            line = page.Line(point.name, point.real, frozenset(run | ({page.THEORY} if expected else set())), {})
            for place in (SIMULATOR, *page.PLACES):
                for duration_s in durations(group, point, place)[:1]:
                    other = place == page.NS3 and point.backlogged is not None
                    reference = values(found, page.BACKLOGGED if other else SIMULATOR, group, point, duration_s)
                    mine = values(found, place, group, point, duration_s)
                    if reference and mine:
                        line.cells[place] = cell(mine, reference, group.bound(place), group.floor)
            simulated = line.cells.get(SIMULATOR)
            if simulated and expected:
                bound = group.bound(page.THEORY)
                line.cells[page.THEORY] = cell(expected, simulated.values, bound, group.floor)
            lines.append(line)
        tables.append(page.Table(group, lines))
    return tables


def main() -> int:
    """Runs, compares and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--place", action="append", choices=page.PLACES, help="runs only in these and the simulator")
    parser.add_argument("--only", action="append", metavar="TEXT", help="groups whose names contain it")
    parser.add_argument("--six", action="store_true", help="only the points that are also run in real time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="runs at a time")
    parser.add_argument(
        "--most-s", type=float, default=float("inf"), metavar="S", help="no run of a place begins later"
    )
    parser.add_argument("--store", type=Path, default=ROOT / "runs/agreement", metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked part of this page")
    options = parser.parse_args()
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    wanted = [group for group in groups() if not options.only or any(text in group.name for text in options.only)]
    if options.six:
        wanted = [page.six(group) for group in wanted]
    names = [*SIMULATED, *(name for name in page.PLACES if not options.place or name in options.place)]
    began = time.monotonic()
    found = results(list(dict.fromkeys(names)), wanted, Store(options.store), options, say)
    tables = compared(found, wanted)
    print(page.summary(tables))
    for table in tables:
        for text in page.outside(table):
            print(text)
    if options.into:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        took_s = time.monotonic() - began
        what = "the points that also run in real time" if options.six else "all points"
        origin = f"Measured on {today} by `lab/agreement/agreement.py`: commit {_native.commit}, {what}."
        page.write_into(options.into, tables, origin)
        say(f"{options.into}: written after {took_s:.0f} s")
    kept = all(cell.kept for table in tables for line in table.lines for cell in line.cells.values())
    return 0 if kept else OUTSIDE


if __name__ == "__main__":
    sys.exit(main())
