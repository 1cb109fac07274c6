# SPDX-License-Identifier: BSD-3-Clause
"""The panels of a run, from its tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from linkweir import _native
from linkweir.columns import floats
from linkweir.panels.panel import Panel, panel_of
from linkweir.tables.run_tables import LinkTables, RunTables

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = _native.shown_classes
"""Classes that are visible at first: colours and line styles still tell so many apart."""


class Panels:
    """The panels of a run over one link, or of one link of a network. They are made when they are first asked for.

    Args:
        run: the run.
        most_classes: how many classes are drawn, of many the busiest.
        most_points: points of a line.
    """

    def __init__(self, run: RunTables, most_classes: int, most_points: int) -> None:
        sent = None
        if "classes" in run.tables:
            totals = run.table("classes")
            names, counts = totals["class"].to_pylist(), totals["sent_bytes"].to_pylist()
            sent = {name: float(count or 0) for name, count in zip(names, counts, strict=True)}
        comes_and_goes = isinstance(run, LinkTables) and run.comes_and_goes
        self._run = run
        self._native = _native.Panels(
            run.scenario.native, run.simulated_s, comes_and_goes, most_classes, most_points, sent
        )
        self.classes = self._native.classes
        self.left_out = self._native.left_out
        self.step = self._native.step

    @cached_property
    def over_time(self) -> list[Panel]:
        """The panels of the run over its time, and those of a beam; panels without data are left out."""
        self._take(distributions=False)
        return [panel_of(found) for found in self._native.over_time()]

    @cached_property
    def distributions(self) -> list[Panel]:
        """The distributions of delays."""
        self._take(distributions=True)
        return [panel_of(found) for found in self._native.distributions()]

    def _take(self, *, distributions: bool) -> None:
        for table, columns in self._native.wanted(distributions):
            if table in self._run.tables:
                for batch in self._run.batches(table, columns):
                    self._native.take(table, [_crossed(name, batch.column(name)) for name in columns])


def _crossed(name: str, column: pa.Array) -> tuple[str, bytes, list[str] | None]:
    """A column as the native module takes it: doubles, or numbers of words and the words."""
    import numpy as np
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return name, floats(column).tobytes(), None
    coded = column.cast(pa.string()).dictionary_encode()
    return name, floats(coded.indices).astype(np.uint32).tobytes(), coded.dictionary.to_pylist()
