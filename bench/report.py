# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the benches: tables with verdicts, and the options for format and output file."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from pathlib import Path


def within(kind: type[int] | type[float], least: float, most: float) -> Callable[[str], float]:
    """The type of an option that is a number, `int` or `float`, from `least` to `most`."""

    def parse(text: str) -> float:
        try:
            value: float = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text}: must be {what} from {least} to {most}")
        return value

    return parse


def _new_file(text: str) -> Path:
    """Refuses a file that cannot be written before the measurement, which takes minutes to hours."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: must be a file in a directory that exists")
    return path


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of a bench with those that `write` needs."""
    parser.add_argument("--out", type=_new_file, metavar="FILE", help="write there instead of standard output")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def cell(value: object, digits: int = 3) -> str:
    """A value in a table, a fraction with so many digits; a dash where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def verdict(met: bool) -> str:
    """The word for a target that was met or not."""
    return "reached" if met else "missed"


def table(
    columns: Sequence[str], lines: Iterable[Sequence[str]], verdicts: Iterable[str] = (), *, markdown: bool
) -> str:
    """Lines of cells below their columns, and sentences below them; a line may end early, with a cell of any width."""
    whole = [columns, *lines]
    if markdown:
        filled = [[*line, *[""] * (len(columns) - len(line))] for line in whole]
        rows = ["| " + " | ".join(line) + " |" for line in filled]
        rows.insert(1, "|" + "---|" * len(columns))
    else:
        widths = [max(map(len, cells)) for cells in zip_longest(*(line[:-1] for line in whole), fillvalue="")]
        rows = ["  ".join([*map(str.ljust, line[:-1], widths), line[-1]]).rstrip() for line in whole]
    sentences = [f"* {sentence}" if markdown else sentence for sentence in verdicts]
    return "\n".join([*rows, *([""] if sentences else []), *sentences]) + "\n"


def write(options: argparse.Namespace, answer: object, render: Callable[[bool], str]) -> None:
    """Writes the results as JSON, or as `render` formats them (Markdown or plain), to the file of `options`."""
    text = json.dumps(answer, indent=1, allow_nan=False) + "\n" if options.json else render(options.markdown)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
