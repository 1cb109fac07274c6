# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a reproduction produced: rows as JSON and Parquet, pictures, the runs' scenarios, a report, a summary.

::

    rows.json              the rows of every figure
    figure-NAME.parquet    those of one
    figure-NAME.svg
    scenarios.json.gz      what was run for each: {"figures": {NAME: [KEY, ...]}, "scenarios": {KEY: scenario}}
    report.html            figures and tables in one file
    summary.json           what was made, and whether all runs finished
    provenance.json        what ran, when and where, and how it ended, as in a run directory
    runs/                  run directories of those over real gateways
    parts/                 the results of the runs that are done, until all are
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linkweir.directories.build import build
from linkweir.directories.parts import PARTS
from linkweir.directories.provenance import REPORT, SUMMARY, dump, write_whole, writing
from linkweir.directories.resumed import ResumedDirectory
from linkweir.reproduce import page
from linkweir.reproduce.figure import Figure, Row

ROWS = "rows.json"
RUNS = "runs"
SCENARIOS = "scenarios.json.gz"


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; columns without any value are numbers."""
    table = pa.Table.from_pylist(list(rows))
    fields = [field.with_type(pa.float64()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def write_picture(path: Path, picture: str) -> None:
    """Writes a picture as an SVG document."""
    write_whole(path, f'<?xml version="1.0" encoding="utf-8"?>\n{picture}')


def figure_key(name: str) -> int | str:
    """A figure's number, or the name of a table."""
    return int(name) if name.isdigit() else name


class ReproductionDirectory(ResumedDirectory):
    """The directory of a reproduction, held by one process at a time.

    An unfinished one of the same figures and the same version of Linkweir is resumed.

    Args:
        path: where.
        facts: what its provenance says of the reproduction.
        figures: what is reproduced.
        force: an earlier reproduction is overwritten.

    Raises:
        DirectoryError: it cannot be made or written, holds something else, or another process is writing it.
    """

    KIND = "reproduction"
    OURS = (ROWS, SCENARIOS, SUMMARY, REPORT, PARTS, RUNS, "figure-*")

    def __init__(self, path: Path, facts: dict[str, Any], figures: Sequence[Figure], *, force: bool) -> None:
        super().__init__(path, facts | {"figures_sha256": _sha256(figures)}, force=force)

    def _resumes(self, path: Path, earlier: dict[str, Any], facts: dict[str, Any]) -> bool:  # noqa: ARG002
        same = facts | build()
        return earlier["status"] != "complete" and all(earlier.get(key) == value for key, value in same.items())

    def _prepare(self) -> None:
        self._provenance.pop("error", None)
        self._note(status="running")
        self.parts.make()
        self.parts.tidy()

    def write(
        self, title: str, command: str, facts: dict[str, Any], figures: Sequence[page.FigureResult], *, complete: bool
    ) -> Path:
        """Writes everything and returns the path of the report."""
        with writing(self.path):
            write_whole(self.path / ROWS, dump([_rows(shown) for shown in figures]))
            for shown in figures:
                self._write_figure(shown)
            self._write_scenarios([shown.figure for shown in figures])
            known = {key: self._provenance[key] for key in ("linkweir", "commit", "platform")}
            report = page.report(title, command, known | facts, figures, complete=complete)
            write_whole(self.path / REPORT, report)
            made = {"title": title, "command": command, **facts, "figures": [s.figure.name for s in figures]}
            write_whole(self.path / SUMMARY, dump(made | {"complete": complete}))
            # The parts go last: until the status is written, an interrupted write is resumed from them.
            self._note(status="complete" if complete else "interrupted", wall_s=self._wall_s())
            if complete:
                self.parts.remove()
        return self.path / REPORT

    def _write_scenarios(self, figures: Sequence[Figure]) -> None:
        """Each scenario once, even if several figures share its run; they are similar, so they compress well."""
        keys = {figure.name: [case.key for case in figure.cases] for figure in figures}
        scenarios = {case.key: case.scenario for figure in figures for case in figure.cases}
        text = json.dumps({"figures": keys, "scenarios": scenarios}, allow_nan=False)
        write_whole(self.path / SCENARIOS, gzip.compress(text.encode(), mtime=0))

    def _write_figure(self, shown: page.FigureResult) -> None:
        stem = f"figure-{shown.figure.name}"
        if shown.rows:
            part = self.path / f".{stem}.parquet.part"
            pq.write_table(arrow(shown.rows), part)
            part.replace(self.path / f"{stem}.parquet")
        if shown.picture:
            write_picture(self.path / f"{stem}.svg", shown.picture)


def _sha256(figures: Sequence[Figure]) -> str:
    """SHA-256 of the runs of these figures."""
    digest = hashlib.sha256()
    for figure in figures:
        digest.update(f"{figure.name}\n".encode())
        for case in figure.cases:
            digest.update(f"{case.key}\n".encode())
    return digest.hexdigest()


def _rows(shown: page.FigureResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "figure": figure_key(shown.figure.name),
        "title": shown.figure.title,
        "rows": shown.rows,
    }
    if shown.other:
        found |= {"other_rows": shown.other, "other_title": shown.figure.other_title}
    if shown.details:
        found["details"] = shown.details
    if shown.figure.printed is not None:
        found["published"] = [
            {
                "what": one.number.what,
                "value": one.number.value,
                "upper": float(one.number.upper) if one.number.upper else None,
                "unit": one.number.unit,
                "how": one.number.how,
                "source": one.number.source,
                "ours": one.ours,
                "difference": one.difference,
            }
            for one in shown.compared
        ]
    return found
