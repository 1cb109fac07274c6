# SPDX-License-Identifier: BSD-3-Clause
"""A figure as data: the runs it needs, how rows follow from their results, and what is plotted.

A figure is not a program. The modules of `papers` list figures; `execute.py` runs what they ask for; `plot.py` and
`page.py` show all of them in the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from linkweir.reproduce.printed import Printed

Scenario = dict[str, Any]
Row = dict[str, Any]


class Tables(Protocol):
    """Results of a run as far as figures need them: rows of a table, by name."""

    def rows(self, table: str) -> list[Row]:
        """All rows of a result table."""


@dataclass(frozen=True)
class FigureCase:
    """One run and the point of the figure that it gives."""

    labels: Mapping[str, Any]
    scenario: Scenario

    @cached_property
    def key(self) -> str:
        """The identity of its run: cases of one key are one run."""
        return identity(self.scenario)


def identity(scenario: Scenario) -> str:
    """The identity of a figure's run: SHA-256 of everything in its scenario, as given, but the name.

    The runs of sweeps have another, which includes the files that a scenario names (`linkweir.sweeps.job.identity`).
    """
    text = json.dumps({key: value for key, value in scenario.items() if key != "name"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Panel:
    """One set of axes: y over x, one curve for each combination of the `by` columns, rows with `where` only."""

    title: str
    x: str
    y: str
    x_label: str
    y_label: str
    by: tuple[str, ...]
    theory: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    lines: bool = False
    log: bool = False
    top: float | None = None
    keep: Callable[[Row], bool] | None = None


Grid = tuple[list[str], list[list[str]]]
"""Column titles and lines of cells."""

Measure = Callable[[Sequence[tuple[FigureCase, Tables]]], list[Row]]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper, or one beyond it."""

    name: str
    title: str
    claim: str
    cases: tuple[FigureCase, ...]
    measure: Measure
    panels: tuple[Panel, ...]
    columns: tuple[str, ...]
    """Columns of the printed table; the rows themselves may hold more."""
    reference: Callable[[], list[Row]] | None = None
    """Rows of theory to draw with a series."""
    details: Measure | None = None
    """Further rows under the figure, with keys of their own."""
    details_title: str = ""
    notable: Callable[[Row], bool] | None = None
    """Selects the details that a terminal shows; all when absent."""
    other_rows: Measure | None = None
    """The same rows over another stretch of time, under `other_title`."""
    other_title: str = ""
    terminal_table: bool = True
    """Whether the rows go to a terminal; a series is better seen as a picture."""
    table_rows: Callable[[list[Row]], list[Row]] | None = None
    """Selects the rows of the report's table; all when absent."""
    summary: Callable[[list[Row]], Grid] | None = None
    """The values in a small grid, for a terminal and for Markdown."""
    titled: bool = False
    """Whether the title names figure and paper, so that the heading need not."""
    claimed: bool = True
    """Whether the claim is the paper's; it is a sentence of ours otherwise."""
    printed: Printed | None = None
    """What the paper's text prints of it; None for what the paper does not have."""

    @property
    def heading(self) -> str:
        """Number and title."""
        return (
            self.title if self.titled else f"{'Figure' if self.name.isdigit() else 'Table'} {self.name}: {self.title}"
        )
