# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a reproduction produced: rows as JSON and Parquet, pictures, the runs' scenarios, a report, a summary.

::

    rows.json              the rows of every figure
    figure-NAME.parquet    those of one
    figure-NAME.svg
    scenarios.json         what was run for each
    report.html            figures and tables in one file
    summary.json           what was made, and whether all runs finished
    provenance.json        what ran, when and where, and how it ended, as in a run directory
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linkweir.directory import REPORT, SUMMARY, OwnDirectory, dump, write_whole, writing
from linkweir.reproduce import page
from linkweir.reproduce.figure import Row

ROWS = "rows.json"
SCENARIOS = "scenarios.json"


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; columns without any value are numbers."""
    table = pa.Table.from_pylist(list(rows))
    fields = [field.with_type(pa.float64()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def figure_key(name: str) -> int | str:
    """A figure's number, or the name of a table."""
    return int(name) if name.isdigit() else name


class ReproductionDirectory(OwnDirectory):
    """The directory of a reproduction."""

    KIND = "reproduction"
    OURS = (ROWS, SCENARIOS, SUMMARY, REPORT, "figure-*")

    def write(
        self, title: str, command: str, facts: dict[str, Any], figures: Sequence[page.Shown], *, complete: bool
    ) -> Path:
        """Writes everything and returns the path of the report."""
        with writing(self.path):
            write_whole(self.path / ROWS, dump([_rows(shown) for shown in figures]))
            for shown in figures:
                self._write_figure(shown)
            scenarios = {s.figure.name: [case.scenario for case in s.figure.cases] for s in figures}
            write_whole(self.path / SCENARIOS, dump(scenarios))
            known = {key: self._provenance[key] for key in ("linkweir", "commit", "platform")}
            report = page.report(title, command, known | facts, figures, complete=complete)
            write_whole(self.path / REPORT, report)
            made = {"title": title, "command": command, **facts, "figures": [s.figure.name for s in figures]}
            write_whole(self.path / SUMMARY, dump(made | {"complete": complete}))
            self._note(status="complete" if complete else "interrupted", wall_s=self._wall_s())
        return self.path / REPORT

    def _write_figure(self, shown: page.Shown) -> None:
        stem = f"figure-{shown.figure.name}"
        if shown.rows:
            part = self.path / f".{stem}.parquet.part"
            pq.write_table(arrow(shown.rows), part)
            part.replace(self.path / f"{stem}.parquet")
        if shown.picture:
            write_whole(self.path / f"{stem}.svg", f'<?xml version="1.0" encoding="utf-8"?>\n{shown.picture}')


def _rows(shown: page.Shown) -> dict[str, Any]:
    found: dict[str, Any] = {
        "figure": figure_key(shown.figure.name),
        "title": shown.figure.title,
        "rows": shown.rows,
    }
    if shown.other:
        found |= {"other_rows": shown.other, "other_title": shown.figure.other_title}
    if shown.details:
        found["details"] = shown.details
    return found
