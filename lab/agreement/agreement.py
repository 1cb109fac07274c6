#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the places in which one scheduler runs: theory, simulator, qdisc, gateway, ns-3.

    python lab/agreement/agreement.py [--place NAME]... [--only TEXT]... [--into docs/results/agreement.md]

The points of figures.py run in every place. Each value is compared with the simulator's for the same duration, and the
largest difference with the bound of the place. Runs are stored, by everything that they depend on, so an interrupted
comparison continues where it was. A place that cannot be had here, or for which there was no time (--most-s), has
empty cells. Exit code 0: every value is within its bound, or 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (0, 1)]

import ns3_programs
import page
from figures import REAL_S, Group, Point, Reduced, groups, identity_of
from stored import Job, Store, run_all

import linkweir
from linkweir import _native
from linkweir.lab import LaboratoryError
from linkweir.lab.experiment import Experiments, Laboratory
from linkweir.lab.gateways import Gateways, VirtualGateways
from linkweir.lab.world import staggered
from linkweir.reproduce.orders import cell
from linkweir.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = page.SIMULATOR
AT_ONCE_REAL = 4
"""Runs in real time at a time; they sleep most of the time."""

Key = tuple[str, str, str, int, float]
"""Place, group, point, seed and duration in s of a run."""


@dataclass(frozen=True)
class Place:
    """Where scenarios run.

    Attributes:
        name: in tables.
        jobs: the runs of a point, by key.
        identity: of everything that the place is made of.
    """

    name: str
    run: Callable[[Group, Point, int, float, int], Reduced]
    identity: str


def durations(group: Group, point: Point, place: str) -> list[float]:
    """How long a point runs in a place; the simulator also as long as in real time, to compare with that."""
    real_s = min(group.duration_s, REAL_S)
    if place == page.REAL:
        return [real_s] if point.real else []
    if place == SIMULATOR and point.real and real_s != group.duration_s:
        return [group.duration_s, real_s]
    return [group.duration_s]


def simulated() -> Place:
    """The simulator, with TCP flows that start when the kernel's do."""

    def run(group: Group, point: Point, seed: int, duration_s: float, _processor: int) -> Reduced:
        whole = Scenario.from_dict(point.scenario(seed, duration_s))
        return group.reduce(linkweir.run(Scenario.from_dict(staggered(whole))))

    return Place(SIMULATOR, run, f"simulator {_native.sources}")


def on_kernels(name: str, experiments: Experiments) -> Place:
    """A place of the laboratory."""

    def run(group: Group, point: Point, seed: int, duration_s: float, processor: int) -> Reduced:
        whole = Scenario.from_dict(point.scenario(seed, duration_s))
        return group.reduce(experiments.run(whole, processor=processor))

    return Place(name, run, experiments.identity)


def in_ns3(wanted: Sequence[Group]) -> Place | None:
    """ns-3; None if it is not here."""
    exported = {
        f"exported-{group.name}": Scenario.from_dict(point.scenario(1, group.duration_s))
        for group in wanted
        for point in group.points
        if point.program is None
    }
    ns3 = ns3_programs.build(exported)
    if ns3 is None:
        return None

    def run(group: Group, point: Point, _seed: int, duration_s: float, _processor: int) -> Reduced:
        words = point.program(duration_s) if point.program else [f"exported-{group.name}"]
        return group.ns3(ns3.run(words))

    return Place(page.NS3, run, f"ns-3 {ns3.identity}")


def places(names: Sequence[str], wanted: Sequence[Group], say: Callable[[str], None]) -> Iterator[Place]:
    """The places of these names that can be had here, one after the other; others are said."""
    makers: Mapping[str, Callable[[], Place | None]] = {
        SIMULATOR: simulated,
        page.NS3: lambda: in_ns3(wanted),
        page.QDISC: lambda: on_kernels(page.QDISC, Laboratory(say=say)),
        page.VIRTUAL: lambda: on_kernels(page.VIRTUAL, VirtualGateways(say=say)),
        page.REAL: lambda: on_kernels(page.REAL, Gateways()),
    }
    for name in names:
        try:
            made = makers[name]()
        except LaboratoryError as error:
            say(f"{name}: NOT RUN: {error}")
            continue
        if made is None:
            say(f"{name}: NOT RUN: it is not here")
        else:
            yield made


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
    scenario = point.scenario(seed, duration_s)
    program = point.program(duration_s) if place.name == page.NS3 and point.program else []

    def run(processor: int) -> Reduced:
        return place.run(group, point, seed, duration_s, processor)

    name = "" if place.name == SIMULATOR else f"{place.name}, {group.name}: {point.name}, seed {seed}"
    return Job(name, [place.identity, program or identity_of(scenario), group.reduce.__name__], run)


def results(
    names: Sequence[str], wanted: Sequence[Group], store: Store, options: argparse.Namespace, say: Callable[[str], None]
) -> dict[Key, Reduced]:
    """Runs what is not stored and returns all results that there are."""
    found: dict[Key, Reduced] = {}
    for place in places(names, wanted, say):
        at_once = AT_ONCE_REAL if place.name == page.REAL else options.jobs
        jobs = jobs_of(place, wanted)
        began = time.monotonic()
        found |= run_all(jobs, store, at_once, say, options.most_s if place.name != SIMULATOR else float("inf"))
        there = sum(key[0] == place.name for key in found)
        say(f"{place.name}: {there} of {len(jobs)} runs are there, after {time.monotonic() - began:.0f} s")
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
            line = page.Line(point.name, point.real, {})
            for place in (SIMULATOR, page.THEORY, page.QDISC, page.VIRTUAL, page.REAL, page.NS3):
                for duration_s in durations(group, point, place if place == page.REAL else page.QDISC):
                    reference = values(found, SIMULATOR, group, point, duration_s)
                    mine = (
                        point.theory(duration_s) or []
                        if place == page.THEORY
                        else values(found, place, group, point, duration_s)
                    )
                    if reference and mine:
                        line.cells[place] = cell(mine, reference, group.bound(place), group.floor)
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
    parser.add_argument("--most-s", type=float, default=float("inf"), metavar="S", help="no run of a place begins later")
    parser.add_argument("--store", type=Path, default=ROOT / "runs/agreement", metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked part of this page")
    options = parser.parse_args()
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    wanted = [group for group in groups() if not options.only or any(text in group.name for text in options.only)]
    if options.six:
        wanted = [page.six(group) for group in wanted]
    names = [SIMULATOR, *(name for name in page.PLACES if not options.place or name in options.place)]
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
        page.write_into(options.into, tables, f"Measured on {today} by `make agreement`: commit {_native.commit}.")
        say(f"{options.into}: written after {took_s:.0f} s")
    return int(any(not cell.kept for table in tables for line in table.lines for cell in line.cells.values()))


if __name__ == "__main__":
    sys.exit(main())
