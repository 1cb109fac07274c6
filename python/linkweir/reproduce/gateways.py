# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the PSS paper over real gateways: which points, who runs them, and what EF went through.

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

from linkweir.directory import open_result, read_provenance
from linkweir.fault import DirectoryError
from linkweir.lab.gateways import OverGateways
from linkweir.reproduce.execute import Outcome, Runner
from linkweir.reproduce.figure import Case, Figure, Row, Scenario, Tables
from linkweir.reproduce.keep import RUNS
from linkweir.reproduce.page import Shown
from linkweir.reproduce.pss import LINK_BPS, PACKET_BYTES
from linkweir.result import Result
from linkweir.scenario import as_scenario

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

    def chosen(case: Case) -> bool:
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
                for later in waiting:
                    later.cancel()
                gateways.stop()
                raise

    return run


def _with_memory(name: str, scenario: Scenario) -> str:
    """Figure 7 has two runs of one name."""
    return name + ("-without-memory" if any("lr" in entry for entry in scenario["class"]) else "")


ALLOWED_MS = 1e3 * 3 * 8 * PACKET_BYTES / LINK_BPS + 2
"""Three packet times and 2 ms."""


def ef_queueing(sets: Sequence[Sequence[Figure]], outcome: Outcome) -> list[Shown]:
    """What EF lost between the hosts, and how long it queued: one-way delay less that of the emulated link."""
    rows: list[Row] = []
    seen: set[str] = set()
    for case in (case for figures in sets for figure in figures for case in figure.cases):
        if case.key in seen or case.key not in outcome.results:
            continue
        seen.add(case.key)
        tables, point = outcome.results[case.key], case.labels["point"]
        of_class = next(row for row in tables.rows("classes") if row["class"] == "ef")
        of_flow = next(row for row in tables.rows("flows") if row["flow"] == "ef")
        rows.append(
            {
                "scheduler": point.scheduler,
                "memory_s": point.memory_s,
                "ef_share": point.ef_share,
                "k_af": point.k_af,
                "seed": case.scenario["seed"],
                "sent_pkts": of_flow["arrived_pkts"],
                "came_pkts": of_flow["delivered_pkts"],
                "dropped_pkts": of_class["dropped_limit_pkts"] + of_class["dropped_policy_pkts"],
                "p50_ms": _ms(of_class["delay_p50_s"]),
                "p99_ms": _ms(of_class["delay_p99_s"]),
                "max_ms": _ms(of_class["delay_max_s"]),
                "allowed_ms": ALLOWED_MS if not point.changing else None,
            }
        )
    if not rows:
        return []
    name = sets[0][0].name
    figure = Figure(
        f"{name}-ef-queueing",
        f"One-way queueing delay of EF from host to host, Figure {name}",
        "EF loses nothing and waits for a packet of the others at most, and for the machine.",
        (),
        lambda _: rows,
        (),
        tuple(rows[0]),
    )
    return [Shown(figure, rows)]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
