# SPDX-License-Identifier: BSD-3-Clause
"""The tables of keys in the reference pages."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Row:
    """A key: its values, default and meaning as the page has them."""

    key: str
    values: str
    default: str
    meaning: str

    @property
    def required(self) -> bool:
        """Whether it must be given, whatever else is."""
        return self.default == "required"


@functools.cache
def page(name: str) -> str:
    """A page of docs/reference."""
    return (resources.files("linkweir") / "templates" / "reference" / f"{name}.md").read_text(encoding="utf-8")


@functools.cache
def rows(name: str, heading: str, nth: int = 0) -> dict[str, Row]:
    """The rows of a table under a heading; a row that names several keys is there once for each."""
    text = re.split(rf"^#+ {re.escape(heading)}$", page(name), flags=re.MULTILINE)[1]
    body = re.split(r"^#", text, flags=re.MULTILINE)[0]
    tables = re.findall(r"(?:^\|.*\n)+", f"{body}\n", flags=re.MULTILINE)
    found = {}
    for line in tables[nth].splitlines():
        if line.startswith("| `"):
            keys, values, *rest = line.strip("| ").split(" | ")
            default, meaning = (rest[0], rest[-1]) if len(rest) > 1 else ("", "")
            for key in re.findall(r"`([^`]+)`", keys):
                found[key] = Row(key, values, default, meaning)
    return found


@functools.cache
def units(name: str = "scenarios") -> dict[str, list[str]]:
    """The units of each quantity."""
    lines = re.findall(r"^\| an? ([a-z ]+) \| ([^|]*) \|", page(name), flags=re.MULTILINE)
    return {noun: re.findall(r"`([^`]+)`", cell) for noun, cell in lines}


def plain(markdown: str) -> str:
    """Without links and quotes."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "")
