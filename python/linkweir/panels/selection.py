# SPDX-License-Identifier: BSD-3-Clause
"""Which classes are drawn, in which order, and with how many points: a run may have thousands of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkweir.tables.run_tables import RunTables

if TYPE_CHECKING:
    from linkweir.tables.outline import Outline, Values

SHOWN = 8
"""Classes that are visible at first: colours and line styles still tell so many apart."""


@dataclass(frozen=True)
class Selection:
    """What is drawn of a run.

    Attributes:
        classes: the classes, in the order of the legend: that of the scenario, or the busiest first if there are many.
        left_out: how many other classes the run has.
        points: points that a line has at most.
    """

    classes: tuple[str, ...]
    left_out: int
    points: int

    def step(self, run: RunTables) -> int:
        """How many intervals of the run become one point."""
        intervals = math.ceil(run.simulated_s / run.scenario.interval_s)
        return max(1, math.ceil(intervals / self.points))


def select(run: RunTables, most_classes: int, most_points: int) -> Selection:
    """The classes with most traffic, all in the scenario's order if they are few."""
    classes: Sequence[str] = run.scenario.classes
    if len(classes) > SHOWN and "classes" in run.tables:
        totals = run.table("classes")
        sent = dict(zip(totals["class"].to_pylist(), totals["sent_bytes"].to_pylist(), strict=True))
        classes = sorted(classes, key=lambda name: -(sent.get(name) or 0))
    kept = tuple(classes[:most_classes])
    return Selection(kept, len(classes) - len(kept), most_points)


class ClassColumns:
    """Columns of a table with rows for each class, thinned, of the classes that are drawn."""

    def __init__(self, run: RunTables, table: str, columns: Sequence[str], selection: Selection) -> None:
        from linkweir.tables.outline import Outline

        batches = run.batches(table, ["class", "t_s", *columns])
        self._outline = Outline(batches, columns, selection.classes, selection.step(run))
        self.classes = [name for name in selection.classes if self._outline.has(name)]

    def get(self, name: str, column: str) -> Values:
        """A column of a class."""
        return self._outline.get(column, name)

    @property
    def times(self) -> Values:
        """Where the intervals begin, the same for all classes."""
        return self._outline.get("t_s", self.classes[0])

    @property
    def any(self) -> bool:
        """Whether there are rows."""
        return bool(self.classes)


def columns_of(run: RunTables, table: str, columns: Sequence[str], selection: Selection) -> Outline:
    """Columns of a table without classes, thinned."""
    from linkweir.tables.outline import Outline

    return Outline(run.batches(table, ["t_s", *columns]), columns, (), selection.step(run))
