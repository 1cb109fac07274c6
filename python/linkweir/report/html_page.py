# SPDX-License-Identifier: BSD-3-Clause
"""The one writer of HTML reports: pages that need no other file, with tables and pictures in them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fff; --ink: #1c1c1c; --faint: #555; --line: #ddd; --raised: #f5f5f5; --link: #0b62c4;
  --good: #e3f1e3; --bad: #f8dedb; --open: #fbf1d0; --warning: #fff3cd; --edge: #d39e00;
}
@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) {
  --ground: #14171a; --ink: #e6e9ec; --faint: #a9b1b9; --line: #363c43; --raised: #20252a; --link: #7db7ff;
  --good: #1d3a24; --bad: #51261f; --open: #463a12; --warning: #3a3212; --edge: #d39e00;
} }
:root[data-theme="light"] { color-scheme: light; }
@media print { :root { color-scheme: light; } }
body {
  font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--ground); color: var(--ink); overflow-wrap: break-word;
}
a { color: var(--link); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .45rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; position: sticky; top: 0; background: var(--raised); }
th:first-child, td:first-child { text-align: left; }
.wide td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; } ul { padding-left: 1.2rem; } table { font-size: .8rem; } th, td { padding: .2rem .35rem; }
  .wide td:first-child, .wide th:first-child {
    position: sticky; left: 0; background: var(--ground); white-space: normal; min-width: 5.5rem; max-width: 8rem;
    overflow-wrap: anywhere;
  }
  .wide .group td:first-child { max-width: none; }
}
.wide { overflow: auto; max-height: 90vh; }
@media print { .wide { overflow: visible; max-height: none; } th { position: static; } table { font-size: .7rem; }
  th, td { padding: .1rem .25rem; white-space: normal; }
  tr, figure { break-inside: avoid; } h2 { break-after: avoid; }
}
table + .below, .wide + .below, .below { color: var(--faint); font-size: .9rem; margin-top: .3rem; }
.group td { background: var(--raised); font-weight: 600; }
.best { font-weight: 600; }
.good, .bad, .open { white-space: pre; }
.good { background: var(--good); } .bad { background: var(--bad); } .open { background: var(--open); }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { max-width: 100%; min-width: 34rem; height: auto; }
figure > svg { background: #fff; }
.warning { background: var(--warning); border-left: 4px solid var(--edge); padding: .5rem 1rem; }
summary { cursor: pointer; }
pre { background: var(--raised); padding: .7rem 1rem; overflow-x: auto; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_FOLDED = 20
"""Tables with more rows than these may be folded."""


@dataclass(frozen=True)
class Cell:
    """A cell with a look of its own.

    Attributes:
        text: plain text.
        mark: ``good``, ``bad``, ``open`` or ``best``.
    """

    text: str
    mark: str


@dataclass(frozen=True)
class Group:
    """A line across the table that says what the lines below it are about."""

    text: str


def document(title: str, body: str, head: str = "") -> str:
    """A page.

    Args:
        title: its title and first heading, as plain text.
        body: what follows the heading, as HTML.
        head: what else its head holds, as HTML.
    """
    shown = html.escape(title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{shown}</title><style>{_STYLE}</style>{head}</head><body>
<h1>{shown}</h1>
{body}
</body></html>
"""


def table(headings: Sequence[str], lines: Iterable[Sequence[str | Cell] | Group]) -> str:
    """A table of plain texts, which scrolls where it is larger than the window and keeps its headings in sight.

    Args:
        headings: of the columns; empty for a table without them.
        lines: the cells, or a `Group`.
    """
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    rows = "".join(_line(line, len(headings)) for line in lines)
    if not headings:
        return f'<table class="facts">{rows}</table>'
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def folded(headings: Sequence[str], lines: Sequence[Sequence[str | Cell]]) -> str:
    """A table that a click unfolds if it is long: more than 20 rows."""
    shown = table(headings, lines)
    if len(lines) <= _FOLDED:
        return shown
    return f"<details><summary>Table of {len(lines):,} rows</summary>{shown}</details>"


def _line(line: Sequence[str | Cell] | Group, columns: int) -> str:
    if isinstance(line, Group):
        return f'<tr class="group"><td colspan="{columns}">{html.escape(line.text)}</td></tr>'
    return "<tr>" + "".join(map(_cell, line)) + "</tr>"


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{html.escape(cell)}</td>"
    return f'<td class="{cell.mark}">{html.escape(cell.text)}</td>'


def facts(about: Mapping[str, Any], names: Mapping[str, str]) -> list[list[str]]:
    """Lines of a table of facts.

    Args:
        about: facts by key, as in provenance.json.
        names: which keys are shown, and as what; those without a value are left out.
    """
    known = ((name, about[key]) for key, name in names.items() if about.get(key))
    return [[name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)] for name, value in known]


def warning(text: str) -> str:
    """A sentence that the reader must not miss."""
    return f'<p class="warning">{html.escape(text)}</p>'


def figure(name: str, title: str, picture: str) -> str:
    """An SVG document in the page.

    Args:
        name: unique on the page; it keeps the identifiers inside the pictures apart.
        title: what the picture shows, for readers who do not see it.
        picture: the document.
    """
    label = html.escape(title, quote=True)
    return f'<figure role="img" aria-label="{label}">{_inline(picture, name)}</figure>'


def _inline(picture: str, prefix: str) -> str:
    """An SVG document inside an HTML one: no prologue, and identifiers of its own."""
    body = picture[picture.index("<svg") :]
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}-\2"', body)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
