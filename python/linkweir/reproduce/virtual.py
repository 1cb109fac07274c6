# SPDX-License-Identifier: BSD-3-Clause
"""Figures with real kernels: the same scenarios in the laboratory, compared with simulation and theory.

A scenario runs on Linux's own queues and TCP in virtual time (`linkweir.lab`) and in the simulator, with TCP flows that
start at the same random times in both. Rows gain a column `where`, and pictures both. Rows of several seeds are
averaged, unless a figure adds its seeds up itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from linkweir.reproduce import native
from linkweir.reproduce.execute import Outcome, Runner, distinct, execute, show
from linkweir.reproduce.figure import Figure, FigureCase, Grid, Panel, Row, Scenario, Tables, identity
from linkweir.reproduce.page import SIMULATION, FigureResult, table_without_runs
from linkweir.sweeps.job import read_tables, write_tables

if TYPE_CHECKING:
    from linkweir.directories.parts import Parts
    from linkweir.lab import Laboratory
    from linkweir.runs.result import Result

KERNEL = "kernel"


def laboratory(say: Callable[[str], None]) -> Laboratory:
    """The laboratory, made ready.

    Raises:
        LaboratoryError: there can be no laboratory here.
    """
    from linkweir.lab import Laboratory

    return Laboratory(say=say)


def runner(laboratory: Laboratory, jobs: int | None, parts: Parts) -> Runner:
    """Runs scenarios in the laboratory, `jobs` at a time.

    Args:
        laboratory: from `laboratory`.
        jobs: as many as there are processors when None.
        parts: where the results of single runs are kept; what the same guest did already is not run again.
    """

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        missing: list[tuple[int, str]] = []
        for number, scenario in enumerate(scenarios):
            name = _name(laboratory, scenario)
            found = parts.read(name, read_tables)
            if found is None:
                missing.append((number, name))
            else:
                take(number, native.PackedTables(found))

        def keep(which: int, result: Result) -> None:
            number, name = missing[which]
            parts.add(name, write_tables(result.tables))
            take(number, result)

        laboratory.run_many([scenarios[number] for number, _ in missing], jobs=jobs, on_result=keep)

    return run


def _name(laboratory: Laboratory, scenario: Scenario) -> str:
    """The name of a run in this guest: another guest, or the simulator, gives another name."""
    return hashlib.sha256(f"{laboratory.guest.identity} {identity(scenario)}".encode()).hexdigest()


def possible(figure: Figure) -> Figure | None:
    """The part of a figure that real kernels can run; None if that is nothing."""
    cases = tuple(case for case in figure.cases if case.scenario["link"].get("ring", 1) == 1)
    return replace(figure, cases=cases) if cases else None


def run_all(
    sets: Sequence[Sequence[Figure]],
    kernels: Runner,
    simulator: Runner,
    on_done: Callable[[], None],
    name: str = KERNEL,
) -> tuple[Outcome, list[FigureResult]]:
    """Runs figures in the simulator and in the kernel.

    Args:
        sets: the figures, once for every seed.
        kernels: from `runner`.
        simulator: runs scenarios in the simulator.
        on_done: called after each run.
        name: what rows of the kernel are called.

    Returns:
        What ran in the kernel, and the figures with rows of both.
    """
    scenarios = planned(sets)
    # The simulator first: it takes a twentieth of the time, and Ctrl-C in it leaves the kernels unstarted.
    simulated = execute(scenarios, _staggered(simulator), on_done)
    outcome = execute(scenarios, kernels, on_done) if simulated.complete else Outcome()
    return outcome, [_overlay(figures, outcome, simulated, name) for figures in zip(*sets, strict=True)]


def _staggered(simulator: Runner) -> Runner:
    """Simulates TCP flows from the times at which the kernel's start."""
    from linkweir.lab.world import staggered
    from linkweir.scenarios.scenario import Scenario as Whole

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        simulator([staggered(Whole.from_dict(scenario)) for scenario in scenarios], take)

    return run


def planned(sets: Sequence[Sequence[Figure]]) -> list[Scenario]:
    """Every distinct scenario of all figures and seeds."""
    return distinct(figure for figures in sets for figure in figures)


# --- One figure -----------------------------------------------------------------------------------------------------


def _overlay(figures: Sequence[Figure], outcome: Outcome, simulated: Outcome, name: str) -> FigureResult:
    figure = figures[0]
    ours = _mean([show(replace(one, panels=()), outcome).rows for one in figures])
    theirs = _mean([show(replace(one, panels=()), simulated).rows for one in figures])
    rows = [*_marked(ours, name, figure), *_marked(theirs, SIMULATION, figure)]
    reference = figure.reference
    drawn = replace(
        figure,
        cases=tuple(case for one in figures for case in one.cases),
        panels=tuple(_both(panel) for panel in figure.panels),
        columns=("where", *figure.columns),
        reference=None
        if reference is None
        else lambda: [row for where in (name, SIMULATION) for row in _marked(reference(), where, figure)],
        summary=None if figure.summary is None else _both_grids(figure.summary, name),
        details=None,
        other_rows=None,
    )
    details = [] if figure.details is None else figure.details(_pairs(figure, outcome))
    if figure.details is not None and figure.notable is None:
        both = ((name, details), (SIMULATION, figure.details(_pairs(figure, simulated))))
        details = [{"where": where, **row} for where, rows in both for row in rows]
    from linkweir.reproduce.plot import svg

    picture = svg(drawn, rows) if drawn.panels and rows else ""
    return FigureResult(replace(drawn, details=figure.details), rows, details, [], picture)


def _pairs(figure: Figure, outcome: Outcome) -> list[tuple[FigureCase, Tables]]:
    keyed = [(case, outcome.results.get(case.key)) for case in figure.cases]
    return [(case, tables) for case, tables in keyed if tables is not None]


def _measured(column: str) -> bool:
    return column.endswith(("_mbps", "_ms")) or column == "level"


def _mean(sets: Sequence[list[Row]]) -> list[Row]:
    """The mean of all rows that agree in everything that was not measured."""
    if len(sets) == 1:
        return sets[0]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in (row for rows in sets for row in rows):
        key = tuple(value for column, value in row.items() if not _measured(column))
        groups.setdefault(key, []).append(row)
    return [
        {
            column: _mean_of([row[column] for row in rows]) if _measured(column) else rows[0][column]
            for column in rows[0]
        }
        for rows in groups.values()
    ]


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _marked(rows: Sequence[Row], where: str, figure: Figure) -> list[Row]:
    """Rows that say where they come from, and in `run` also what first sets curves of this figure apart."""
    by = {panel.by[0] for panel in figure.panels if len(panel.by) > 1}
    first = by.pop() if len(by) == 1 else None
    return [{"where": where, "run": f"{where} {_word(first, row)}".strip(), **row} for row in rows]


def _word(column: str | None, row: Row) -> str:
    if column is None:
        return ""
    value = row.get(column)
    if column == "memory_s":
        return "without memory" if value is None else f"with {value:g} s of memory"
    return str(value)


def _both(panel: Panel) -> Panel:
    """With the kernel's curve and the simulation's."""
    return replace(panel, by=("run", *panel.by[1:]) if len(panel.by) > 1 else ("where", *panel.by))


def _both_grids(summary: Callable[[list[Row]], Grid], measured: str) -> Callable[[list[Row]], Grid]:
    """Lines of the kernel, each with the simulation's below; what was wanted is the same for both and is given once.

    Where one side lacks a line nothing says which belong together, and the simulation's come after the kernel's.
    """

    def grid(rows: list[Row]) -> Grid:
        columns, lines = summary([row for row in rows if row["where"] == measured])
        _, others = summary([row for row in rows if row["where"] == SIMULATION])
        where = next((n for n, title in enumerate(columns) if title == "run"), 0)

        def named(line: list[str], name: str) -> list[str]:
            return [*line[:where], f"{line[where]}, {name}", *line[where + 1 :]]

        if len(lines) != len(others):
            return columns, [*(named(line, measured) for line in lines), *(named(line, SIMULATION) for line in others)]
        merged: list[list[str]] = []
        for ours, theirs in zip(lines, others, strict=True):
            if ours != theirs:
                merged += [named(ours, measured), named(theirs, SIMULATION)]
            elif ours[where] in ("theory", "nominal"):
                merged.append(ours)
            else:
                merged.append(named(ours, f"{measured} and {SIMULATION}"))
        return columns, merged

    return grid


# --- How far apart they are -----------------------------------------------------------------------------------------

LEAST_MBPS = 2.0
"""Rates below are not judged: there a few packets more or less of TCP are a large part."""
LOADED = ((4.0, 9.0), (1.0, 9.0))
"""Phases of WTP and PLR in which the limit is never left: the report's traffic, and constant loads."""


def distances(shown: Sequence[FigureResult], measured: str = KERNEL) -> list[FigureResult]:
    """The distance of the kernel from theory and simulation, in percent, for each figure that has both."""
    found = [(one.figure.name, _rate_distances(one, measured) or _ratio_distances(one, measured)) for one in shown]
    return [_distances(name, rows, measured) for name, rows in found if rows]


def _distances(name: str, rows: list[Row], measured: str) -> FigureResult:
    return table_without_runs(
        f"{name}-distances",
        f"Distance of the {measured} from theory and simulation, percent, Figure {name}",
        f"The same scheduler behaves the same way in the {measured} and in the simulator.",
        rows,
    )


def _key(row: Row, columns: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[column] for column in columns)


def _percent(value: float | None, wanted: float | None) -> float | None:
    return None if value is None or not wanted else round(100 * abs(value / wanted - 1), 3)


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _rate_distances(one: FigureResult, name: str) -> list[Row]:
    if "af_theory_mbps" not in one.figure.columns or "k_af" not in one.figure.columns:
        return []
    columns = ("scheduler", "memory_s", "ef_share", "k_af")
    simulated = {_key(row, columns): row for row in one.rows if row["where"] == SIMULATION}
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in one.rows:
        if row["where"] == name and row["af_theory_mbps"] >= LEAST_MBPS:
            groups.setdefault(_key(row, columns[:2]), []).append(row)
    made: list[Row] = []
    for (scheduler, memory_s), rows in groups.items():
        off = [(_percent(row["af_mbps"], row["af_theory_mbps"]) or 0.0, row) for row in rows]
        worst_pc, worst = max(off, key=lambda pair: pair[0])
        theirs = [simulated[_key(row, columns)] for row in rows if _key(row, columns) in simulated]
        made.append(
            {
                "figure": one.figure.name,
                "scheduler": scheduler,
                "memory_s": memory_s,
                "points": len(rows),
                f"{name}_from_theory": worst_pc,
                "at": f"EF {worst['ef_share']:g}, K_AF {worst['k_af']:g}",
                "simulation_from_theory": _largest([_percent(r["af_mbps"], r["af_theory_mbps"]) for r in theirs]),
            }
        )
    return made


def _ratio_distances(one: FigureResult, measured: str) -> list[Row]:
    if "delay_ratio" not in one.figure.columns:
        return []
    columns = ("figure", "history", "limit", "t_from_s", "t_to_s")
    groups: dict[tuple[object, ...], dict[tuple[str, int], Row]] = {}
    for row in one.rows:
        if (row["t_from_s"], row["t_to_s"]) in LOADED:
            groups.setdefault(_key(row, columns), {})[row["where"], row["class"]] = row
    made: list[Row] = []
    for key, rows in groups.items():
        pairs = [(row, rows.get((SIMULATION, number))) for (where, number), row in rows.items() if where == measured]
        off = {
            name: _largest([_percent(ours[name], theirs[name]) for ours, theirs in pairs if theirs is not None])
            for name in ("delay_ms", "delay_ratio", "loss_ratio")
        }
        if any(value is not None for value in off.values()):
            made.append({**dict(zip(columns, key, strict=True)), **{f"{name}_off": off[name] for name in off}})
    return made
