# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the PSS paper over real gateways: which points, and what runs them.

A point is a run of its own, in a run directory like a simulation's below `runs/` of the reproduction. Those that are
there already, whole and of the same scenario and program, are not run again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from linkweir.directories.provenance import read_provenance
from linkweir.fault import DirectoryError
from linkweir.lab.gateways import OverGateways
from linkweir.reproduce.directory import RUNS
from linkweir.reproduce.execute import Runner
from linkweir.reproduce.figure import Figure, FigureCase, Scenario, Tables
from linkweir.runs.result import Result, open_result
from linkweir.scenarios.scenario import as_scenario

GATEWAY = "gateway"

Chosen = tuple[float, float]
"""EF's share of the link, and K_AF."""


def points(text: str) -> list[Chosen]:
    """Points as the command line writes them.

    Raises:
        ValueError: what is wrong, and how to write it.

    >>> points("0.25:0.5,0.5:0.81")
    [(0.25, 0.5), (0.5, 0.81)]
    >>> points("0.25")
    Traceback (most recent call last):
    ...
    ValueError: "0.25": write EF's share and K_AF, such as 0.25:0.5
    """
    found = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(0?\.\d+):(0?\.\d+)\s*", word)
        if match is None:
            raise ValueError(f'"{word}": write EF\'s share and K_AF, such as 0.25:0.5')
        found.append((float(match[1]), float(match[2])))
    return found


def part(figure: Figure, wanted: Sequence[Chosen] | None, schedulers: Sequence[str] | None) -> Figure:
    """The cases of a figure at these points and with these schedulers, all when None."""

    def chosen(case: FigureCase) -> bool:
        point = case.labels["point"]
        at = (round(point.ef_share, 6), round(point.k_af, 6))
        return (wanted is None or at in wanted) and (schedulers is None or point.scheduler in schedulers)

    return replace(figure, cases=tuple(case for case in figure.cases if chosen(case)))


def runner(gateways: OverGateways, folder: Path, at_once: int, say: Callable[[str], None]) -> Runner:
    """Runs scenarios over gateways, some at a time, into run directories."""

    def one(scenario: Scenario) -> Result:
        sound = as_scenario(scenario)
        name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{sound.name} seed {sound.seed}").strip("-").lower()
        path = folder / RUNS / _with_memory(name, scenario)
        with contextlib.suppress(DirectoryError):
            earlier = open_result(path)
            if earlier.scenario.resolved == sound.resolved and read_provenance(path).get("guest") == gateways.identity:
                return earlier
        result = gateways.run(sound, out=path, force=True)
        say(f"{path.name}: done")
        return result

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        (folder / RUNS).mkdir(exist_ok=True)
        with ThreadPoolExecutor(at_once) as pool:
            waiting = {pool.submit(one, scenario): number for number, scenario in enumerate(scenarios)}
            try:
                for done in as_completed(waiting):
                    take(waiting[done], done.result())
            except BaseException:
                # First those that wait, or they would begin when the running ones are stopped.
                for later in waiting:
                    later.cancel()
                gateways.stop()
                raise

    return run


def _with_memory(name: str, scenario: Scenario) -> str:
    """Figure 7 has two runs of one name."""
    return name + ("-without-memory" if any("lr" in entry for entry in scenario["class"]) else "")
