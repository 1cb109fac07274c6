# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of keys into the reference pages, between comments that say which: `make keys`.

A comment names the table by its path, such as ``keys: link.beam``; of a gateway's file as ``keys: gateway/peer``. With
``own`` it leaves out what the table shares with others. Of several paths, the keys have their table's name in front.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from linkweir.scenarios.declared import Row, rows

REPOSITORY = Path(__file__).parents[2]
PAGES = tuple(REPOSITORY / "docs" / "reference" / f"{name}.md" for name in ("scenarios", "gateway"))
_BLOCK = re.compile(
    r"(?P<begin><!-- keys: (?P<paths>[^>]*?)(?P<own> own)? -->\n\n)(?P<head>\|.*\n\|[-|]+\n)(?P<rows>(?:\|.*\n)*)"
    r"(?P<end>\n<!-- end of keys -->)"
)


def filled(page: str) -> str:
    """A page with the rows that are declared."""
    return _BLOCK.sub(lambda found: found["begin"] + found["head"] + _rows(found) + found["end"], page)


def _rows(found: re.Match[str]) -> str:
    paths = found["paths"].split(", ")
    columns = found["head"].splitlines()[1].count("|") - 1
    lines = []
    for path in paths:
        file, _, name = path.rpartition("/")
        prefix = f"{name.rpartition('.')[2]}." if len(paths) > 1 else ""
        known = rows(name if name != "top" else "", file=file or "scenario", own=found["own"] is not None)
        cells = ((f"`{prefix}{row.key}`", _cells(row, columns)) for row in known.values())
        for shared, group in groupby(cells, key=lambda each: each[1]):
            lines.append([", ".join(key for key, _ in group), *shared])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(row: Row, columns: int) -> Sequence[str]:
    """All but the first cell of a row; keys in one row have the same cells."""
    if columns == 2:
        return (row.values,)
    second = (row.second_default or row.default,) if columns == 5 else ()
    return (row.values, row.default, *second, row.meaning)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
