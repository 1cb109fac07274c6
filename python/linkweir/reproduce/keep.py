# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a reproduction produced: rows as JSON and Parquet, pictures, the runs' scenarios, a report, and last a
summary.

`summary.json` is written after everything else and says whether all runs finished; a directory without it is not a
result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linkweir.fault import DirectoryError
from linkweir.reproduce import page
from linkweir.reproduce.figure import Row

SUMMARY = "summary.json"
ROWS = "rows.json"


def prepare(directory: Path, *, force: bool) -> None:
    """Makes the directory and takes away an older summary, so that nothing half-written passes for whole.

    Raises:
        DirectoryError: it cannot be written, or holds something; `force` overwrites an earlier reproduction, nothing
        else.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            if not (directory / ROWS).exists():
                raise DirectoryError(f"{directory}: holds other files; choose another --out")
            if not force:
                raise DirectoryError(f"{directory}: holds an earlier reproduction; choose another --out or add --force")
        probe = directory / ".writable"
        probe.touch()
        probe.unlink()
        (directory / SUMMARY).unlink(missing_ok=True)
        for stale in directory.glob("figure-*"):
            stale.unlink()
    except OSError as error:
        raise DirectoryError(
            f"{directory}: cannot be written: {error.strerror or error}; choose another --out"
        ) from None


def free_directory(name: str) -> Path:
    """`runs/NAME`, or with a number behind it the first that is not there."""
    number, path = 1, Path("runs") / name
    while path.exists():
        number += 1
        path = Path("runs") / f"{name}-{number}"
    return path


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; columns without any value are numbers."""
    table = pa.Table.from_pylist(list(rows))
    fields = [field.with_type(pa.float64()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def figure_key(name: str) -> int | str:
    """A figure's number, or the name of a table."""
    return int(name) if name.isdigit() else name


def write(
    directory: Path, title: str, command: str, facts: dict[str, Any], figures: Sequence[page.Shown], *, complete: bool
) -> Path:
    """Writes everything and returns the path of the report."""
    _json(
        directory / ROWS,
        [
            {"figure": figure_key(s.figure.name), "title": s.figure.title, "rows": s.rows}
            | ({"other_rows": s.other, "other_title": s.figure.other_title} if s.other else {})
            | ({"details": s.details} if s.details else {})
            for s in figures
        ],
    )
    for shown in figures:
        if shown.rows:
            pq.write_table(arrow(shown.rows), directory / f"figure-{shown.figure.name}.parquet")
        if shown.picture:
            (directory / f"figure-{shown.figure.name}.svg").write_text(
                '<?xml version="1.0" encoding="utf-8"?>\n' + shown.picture, encoding="utf-8"
            )
    _json(
        directory / "scenarios.json",
        {s.figure.name: [case.scenario for case in s.figure.cases] for s in figures},
    )
    report = directory / "report.html"
    report.write_text(page.report(title, command, facts, figures, complete=complete), encoding="utf-8")
    _json(
        directory / SUMMARY,
        {
            "title": title,
            "command": command,
            **facts,
            "figures": [s.figure.name for s in figures],
            "complete": complete,
        },
    )
    return report


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
