# SPDX-License-Identifier: BSD-3-Clause
"""Shows the result of a run on a terminal, in a pipe or as JSON."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from linkweir.commands.terminal import print_table
from linkweir.directories.provenance import REPORT
from linkweir.report import (
    CLASS_COLUMNS,
    COMPLETION_COLUMNS,
    LINK_COLUMNS,
    VIDEO_COLUMNS,
    VOICE_COLUMNS,
    class_rows,
    link_rows,
    number,
    voice_rows,
)
from linkweir.runs.result import Result
from linkweir.scenarios.scenario import Scenario

_MOST_ROWS = 50
_MOST_TOLD = 20
_IMPORTANT = (
    "rate_bps",
    "loss",
    "delay_mean_s",
    "delay_p99_s",
    "sent_pkts",
    "backlog_mean_pkts",
    "jitter_mad_s",
    "delay_max_s",
    "mos",
    "worst_mos",
    "worst_t_s",
)
"""Columns that a narrow terminal keeps longest."""


def usable_streams() -> None:
    """Makes stdout and stderr take any text: letters that their encoding lacks become question marks.

    A file name that is not UTF-8 has such letters, and so have signs like ±, and names of classes in a terminal without
    UTF-8. A stream that is closed, as by ``>&-``, takes everything and shows nothing.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def shown_stem(path: Path) -> str:
    """A file's name without its end, for a directory of results: letters that are not UTF-8 become question marks."""
    return path.stem.encode(errors="replace").decode()


def say(text: str) -> None:
    """To stderr, as it is: no markup, no wrapping."""
    print(text, file=sys.stderr)


def emit(text: str) -> None:
    """To stdout, at once, so that a closed pipe is noticed here."""
    sys.stdout.write(text)
    sys.stdout.flush()


def emit_json(value: object) -> None:
    """JSON as people read it, to stdout."""
    emit(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def show_result(result: Result, *, as_json: bool, codec: str | None = None, wide: bool = False) -> None:
    """Prints the classes and calls of a run that has a directory, and its warnings."""
    directory = result.directory
    assert directory is not None
    voice = voice_rows(result, codec) if "voice" in result.tables else None
    if as_json:
        calls = {} if voice is None else {"voice": voice}
        emit_json({**result.summary, **calls, "directory": str(directory)})
        return
    if result.scenario.is_network:
        rows = link_rows(result, _MOST_ROWS)
        _print_rows(rows, len(result.scenario.links), "link", LINK_COLUMNS, wide=wide)
        emit("\n")
    classes = result.classes
    left_out = _print_rows(class_rows(result, _MOST_ROWS), classes.num_rows, "class", CLASS_COLUMNS, wide=wide)
    if left_out:
        again = shlex.join(["linkweir", "report", str(directory), "--wide"])
        emit(f"not shown: {', '.join(left_out)}; the report has all, and {again}\n")
    for name, columns in (("completions", COMPLETION_COLUMNS), ("video", VIDEO_COLUMNS)):
        if name in result.tables:
            table = result.tables[name]
            _print_rows(table.slice(0, _MOST_ROWS).to_pylist(), table.num_rows, "flow", columns, wide=wide)
    if voice is not None:
        left_out = _print_rows(voice[:_MOST_ROWS], len(voice), "call", VOICE_COLUMNS, wide=wide)
        if left_out:
            emit(f"not shown: {', '.join(left_out)}; --wide shows all\n")
    _print_told("note", result.notes)
    for finding in result.warnings:
        emit(f"warning: {finding}\n")
    emit(f"report: {directory / REPORT}\n")


def show_readings(scenario: Scenario) -> None:
    """Prints what the measured series of a scenario were taken for."""
    for line in scenario.readings:
        emit(f"read: {line}\n")


def show_told(scenarios: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Prints the readings and notes of several scenarios, each once; of many the first, and how many more there are."""
    readings: dict[str, None] = {}
    notes: dict[str, None] = {}
    for own_readings, own_notes in scenarios:
        readings.update(dict.fromkeys(own_readings))
        notes.update(dict.fromkeys(own_notes))
    _print_told("read", list(readings))
    _print_told("note", list(notes))


def _print_told(word: str, lines: Sequence[str]) -> None:
    """Prints the first lines of many, and how many more there are."""
    for line in lines[:_MOST_TOLD]:
        emit(f"{word}: {line}\n")
    if len(lines) > _MOST_TOLD:
        emit(f"{word}: and {len(lines) - _MOST_TOLD} more\n")


def _print_rows(
    rows: list[dict[str, Any]], count: int, first: str, columns: tuple[tuple[str, str, float, int], ...], *, wide: bool
) -> list[str]:
    """Prints a table; returns the headings of columns for which the terminal is too narrow."""
    keys = [key for _, key, _, _ in columns]
    important = [1 + keys.index(key) for key in _IMPORTANT if key in keys]
    importance = [*important, *(i for i in range(1, len(keys) + 1) if i not in important)]
    cells = [[str(row[first]), *(number(row[key], scale, digits) for _, key, scale, digits in columns)] for row in rows]
    left_out = print_table([first, *(title for title, *_ in columns)], cells, wide=wide, importance=importance)
    if count > len(rows):
        emit(f"and {count - len(rows)} more\n")
    return left_out
