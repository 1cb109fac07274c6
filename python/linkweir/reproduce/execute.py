# SPDX-License-Identifier: BSD-3-Clause
"""Runs what figures ask for: every distinct scenario once, even if several figures share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from linkweir.reproduce.figure import Figure, FigureCase, Row, Scenario, Tables, identity
from linkweir.reproduce.page import FigureResult
from linkweir.reproduce.plot import svg

Runner = Callable[[Sequence[Scenario], Callable[[int, Tables], None]], None]
"""Runs scenarios in any order and hands over each result with its number."""


@dataclass
class Outcome:
    """Results so far."""

    results: dict[str, Tables] = field(default_factory=dict)
    complete: bool = False


def distinct(figures: Iterable[Figure]) -> list[Scenario]:
    """Scenarios of all figures, each once."""
    found: dict[str, Scenario] = {}
    for figure in figures:
        for case in figure.cases:
            found.setdefault(case.key, case.scenario)
    return list(found.values())


def execute(scenarios: Sequence[Scenario], runner: Runner, on_done: Callable[[], None]) -> Outcome:
    """Runs all scenarios; an interrupt leaves what had finished."""
    outcome = Outcome()

    def take(number: int, tables: Tables) -> None:
        outcome.results[identity(scenarios[number])] = tables
        on_done()

    try:
        runner(scenarios, take)
    except KeyboardInterrupt:
        return outcome
    outcome.complete = True
    return outcome


def show(figure: Figure, outcome: Outcome) -> FigureResult:
    """Rows, details and picture of a figure from the runs that finished."""
    pairs: list[tuple[FigureCase, Tables]] = [
        (case, outcome.results[case.key]) for case in figure.cases if case.key in outcome.results
    ]
    rows: list[Row] = figure.measure(pairs)
    return FigureResult(
        figure,
        rows,
        figure.details(pairs) if figure.details is not None else [],
        figure.other_rows(pairs) if figure.other_rows is not None else [],
        svg(figure, rows) if figure.panels and rows else "",
    )
