# SPDX-License-Identifier: BSD-3-Clause
"""Tables that fit a terminal: headings break only between words, values never; columns that do not fit are left out.

>>> fitting([6, 30, 10], 50), fitting([6, 30, 10], 40), fitting([6, 30, 10], 40, importance=[2, 1])
([0, 1, 2], [0, 1], [0, 2])
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 2
_LEAST_FIRST = 12


def one_line(text: str) -> str:
    r"""A name of a user's on one line, without letters that would control the terminal.

    >>> one_line("two\nlines"), one_line("\x1b[2J")
    ('two lines', '�[2J')
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))


def room() -> int | None:
    """Width of the terminal; None where there is none, so that lines may have any length."""
    return Console().width if sys.stdout.isatty() else None


def fitting(widths: Sequence[int], most: int, importance: Sequence[int] | None = None) -> list[int]:
    """The columns that fit into `most`, in their order: the first always, the others the most important first."""
    kept, used = [0], widths[0]
    for column in importance if importance is not None else range(1, len(widths)):
        if used + _GAP + widths[column] <= most:
            kept.append(column)
            used += _GAP + widths[column]
    return sorted(kept)


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    wide: bool = False,
    importance: Sequence[int] | None = None,
    left: int = 1,
) -> list[str]:
    """Prints a table without the columns that do not fit.

    Args:
        headings: of the columns; the first column is always there.
        rows: cells as they are shown, without markup.
        wide: all columns, however wide the terminal is.
        importance: indices of the columns but the first, the most important first; by their order when None.
        left: columns that are text; the others are numbers.

    Returns:
        The headings left out.
    """
    most = None if wide else room()
    kept = _print(headings, rows, most, lambda widths: fitting(widths, most or 0, importance), left)
    return [heading for i, heading in enumerate(headings) if i not in kept]


def print_all(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Prints a table; columns that do not fit follow in further tables with the first column again.

    Each table has one further column at least, so that a terminal too narrow for two breaks their lines.
    """
    most = room()
    rest = list(range(1, len(headings)))
    while True:
        shown = [0, *rest]
        cells = [[row[i] for i in shown] for row in rows]
        kept = _print([headings[i] for i in shown], cells, most, lambda widths: _two_or_more(widths, most or 0), left)
        rest = [column for i, column in enumerate(shown) if i not in kept]
        if not rest:
            return
        print()


def _two_or_more(widths: Sequence[int], most: int) -> list[int]:
    kept = fitting(widths, most)
    return kept if len(kept) > 1 else [0, 1]


def _print(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int | None,
    choose: Callable[[Sequence[int]], list[int]],
    left: int,
) -> list[int]:
    """Prints a table and returns which columns it has: all if they fit into `most`, else those that `choose` names."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    content = [max((cell_len(row[i]) for row in cells), default=0) for i in range(len(headings))]
    whole = [max(width, cell_len(heading)) for width, heading in zip(content, headings, strict=True)]
    if most is None or sum(whole) + _GAP * (len(whole) - 1) <= most:
        kept, widths = list(range(len(headings))), whole
    else:
        broken = [max(map(cell_len, heading.split()), default=0) for heading in headings]
        widths = [max(pair) for pair in zip(content, broken, strict=True)]
        widths[0] = max(min(widths[0], most // 3), broken[0], min(_LEAST_FIRST, widths[0]))
        kept = choose(widths)
    table = Table(box=None, pad_edge=False)
    for i in kept:
        table.add_column(Text(headings[i]), width=widths[i], justify="left" if i < left else "right", overflow="fold")
    for row in cells:
        table.add_row(*(Text(row[i]) for i in kept))
    total = sum(widths[i] for i in kept) + _GAP * (len(kept) - 1)
    Console(width=max(total, most or 0), highlight=False).print(table)
    return kept
