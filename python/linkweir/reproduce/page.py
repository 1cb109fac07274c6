# SPDX-License-Identifier: BSD-3-Clause
"""Results as text: a table for the terminal, Markdown for the documentation, one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkweir.report import html_page
from linkweir.reproduce import printed
from linkweir.reproduce.figure import Figure, Grid, Row

TitledGrid = tuple[str, Grid]

SIMULATION = "simulation"
"""The value of `where` in rows of the simulator, where there are also rows of real kernels."""


@dataclass
class FigureResult:
    """A figure with the results of its runs."""

    figure: Figure
    rows: list[Row]
    details: list[Row] = field(default_factory=list)
    other: list[Row] = field(default_factory=list)
    picture: str = ""

    @property
    def notable(self) -> list[Row]:
        """The details that a terminal shows."""
        return [row for row in self.details if self.figure.notable is None or self.figure.notable(row)]

    @property
    def compared(self) -> list[printed.Comparison]:
        """The numbers that the paper prints, with ours: where something real ran, its own."""
        if self.figure.printed is None:
            return []
        real = [row for row in self.rows if row.get("where") != SIMULATION]
        return self.figure.printed.compare(real)

    @property
    def table(self) -> list[Row]:
        """The rows that a table shows."""
        return self.rows if self.figure.table_rows is None else self.figure.table_rows(self.rows)


def table_without_runs(
    name: str,
    title: str,
    claim: str,
    rows: list[Row],
    *,
    table_rows: Callable[[list[Row]], list[Row]] | None = None,
) -> FigureResult:
    """At least one row, as a table that has no runs of its own."""
    return FigureResult(Figure(name, title, claim, (), lambda _: rows, (), tuple(rows[0]), table_rows=table_rows), rows)


def cell(value: Any) -> str:
    """A value in a table: four digits, a dash for nothing.

    >>> cell(None), cell(0.123456), cell(15.0), cell("pss"), cell(12345.6)
    ('-', '0.1235', '15', 'pss', '12346')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def terminal(shown: FigureResult) -> list[TitledGrid | str]:
    """Tables and sentences for the terminal."""
    title = shown.figure.heading
    items: list[TitledGrid | str] = []
    if _is_grid(shown):
        items.append((f"{title}\nAF and CS0, Mbit/s", _pivot(shown.rows, with_theory=False)))
    elif shown.figure.summary is not None:
        items.append((title, shown.figure.summary(shown.rows)))
    elif shown.figure.terminal_table:
        items.append((title, _all_columns(shown.table, list(shown.figure.columns))))
    else:
        items.append(f"{title}: {len(shown.rows)} rows")
    items += [text for text in (deviation(shown.rows), _notable_sentence(shown)) if text]
    if shown.notable:
        title, rows = _first_notable(shown)
        items.append((title, _all_columns(rows, None)))
    said, compared = _published(shown)
    items += said
    if compared:
        items.append((PUBLISHED, printed.grid(compared)))
    return items


PUBLISHED = "Numbers that the paper prints, and ours"


def _published(shown: FigureResult) -> tuple[list[str], list[printed.Comparison]]:
    """What could be read of the paper's figure, and the numbers to list: none that the summary has in brackets."""
    of = shown.figure.printed
    if of is None:
        return [], []
    compared = shown.compared
    said = [text] if (text := of.said(compared)) else []
    if of.in_brackets and compared:
        said.append(_tallied([one for one in compared if one.number.column and one.number.measure is None]))
        compared = [one for one in compared if one.number.measure is not None]
    return said, compared


def _tallied(compared: Sequence[printed.Comparison]) -> str:
    """How many values in brackets agree, and the one that does least."""
    worst = printed.furthest(compared)
    if worst is None:
        return printed.tally(compared)
    number = worst.number
    known = f" ({number.remark})" if number.remark else ""
    return (
        f"{printed.tally(compared)} Largest difference: {number.what}, ours {format(worst.ours, number.shown)}, "
        f"the paper's {number.printed}{known}."
    )


MOST_NOTABLE = 8
"""Lines of chosen details a terminal or a document shows; the report has all."""


def _first_notable(shown: FigureResult) -> tuple[str, list[Row]]:
    title, rows = shown.figure.details_title, shown.notable
    if shown.figure.notable is None or len(rows) <= MOST_NOTABLE:
        return title, rows
    return f"{title}, the first {MOST_NOTABLE}", rows[:MOST_NOTABLE]


def _all_columns(rows: Sequence[Row], columns: list[str] | None) -> Grid:
    columns = list(rows[0]) if columns is None else columns
    return columns, [[cell(row[column]) for column in columns] for row in rows]


def _notable_sentence(shown: FigureResult) -> str:
    if shown.figure.notable is None or not shown.details:
        return ""
    return f"{len(shown.notable)} of {len(shown.details)} TCP classes stay more than 5 % below theory" + (
        ": their queues run empty, or losses keep their windows small." if shown.notable else "."
    )


def _is_grid(shown: FigureResult) -> bool:
    return bool(shown.rows and shown.figure.panels and shown.figure.panels[0].x == "k_af")


def deviation(rows: Sequence[Row]) -> str:
    """The largest distance of rates from theory, in words; empty when there is nothing to compare.

    The older PSS is left out: how far it is off is what its figure shows. Where something real ran, that alone counts.
    """
    parts = []
    for name in ("af", "cs0"):
        known = [
            (abs(row[f"{name}_mbps"] - row[f"{name}_theory_mbps"]), row)
            for row in rows
            if row.get(f"{name}_mbps") is not None
            and row.get(f"{name}_theory_mbps") is not None
            and row.get("scheduler") != "pss-early-ignored"
            and row.get("where") != SIMULATION
        ]
        if not known:
            return ""
        relative = max(
            (gap / row[f"{name}_theory_mbps"] for gap, row in known if row[f"{name}_theory_mbps"] >= 0.1), default=0.0
        )
        parts.append(f"{name.upper()} {100 * relative:.2f} % or {max(gap for gap, _ in known):.3f} Mbit/s")
    return "Largest distance from theory: " + ", ".join(parts) + " (relative where theory is at least 0.1 Mbit/s)."


def markdown(shown: FigureResult) -> str:
    """The values in Markdown, and the details that explain them."""
    parts = []
    if _is_grid(shown):
        sides = dict.fromkeys(row["where"] for row in shown.rows if "where" in row)
        parts.append(f"AF, CS0 in Mbit/s{': ' if sides else ''}{' / '.join(sides)}; theory in brackets.")
        parts.append(_markdown_table(*_pivot(shown.rows, with_theory=True)))
    elif shown.figure.summary is not None:
        parts.append(_markdown_table(*shown.figure.summary(shown.rows)))
    elif shown.table and shown.figure.terminal_table:
        parts.append(_markdown_table(*_all_columns(shown.table, list(shown.figure.columns))))
    parts += [text for text in (deviation(shown.rows), _notable_sentence(shown)) if text]
    if shown.notable:
        title, rows = _first_notable(shown)
        parts.append(title + ":")
        parts.append(_markdown_table(*_all_columns(rows, None)))
    parts += published(shown)
    return "\n\n".join(parts) + "\n"


def published(shown: FigureResult) -> list[str]:
    """The paragraphs of Markdown on what the paper prints."""
    said, compared = _published(shown)
    return [*said, *([_markdown_table(*printed.grid(compared))] if compared else [])]


def _pivot(rows: Sequence[Row], *, with_theory: bool) -> Grid:
    """Rows of rates as a grid: a line for each K_AF, a column for each scheduler and load.

    Where real ones are among them these are shown, with theory also the simulation's.
    """
    simulated = [row for row in rows if row.get("where") == SIMULATION]
    rows = [row for row in rows if row.get("where") != SIMULATION]
    memories = {row["memory_s"] for row in rows if row["scheduler"].startswith("pss")}

    def column(row: Row) -> str:
        words = [row["scheduler"].upper().replace("-EARLY-IGNORED", " older")]
        if len(memories) > 1 and row["scheduler"].startswith("pss"):
            words.append("no memory" if row["memory_s"] is None else f"{row['memory_s']:g} s")
        return " ".join([*words, f"EF {row['ef_share']:g}"])

    simulated_at = {(row["k_af"], column(row)): row for row in simulated} if with_theory else {}
    columns = list(dict.fromkeys(column(row) for row in rows))
    cells: dict[tuple[float, str], str] = {}
    for row in rows:
        pairs = []
        for name in ("af", "cs0"):
            ours, wanted = row[f"{name}_mbps"], row[f"{name}_theory_mbps"]
            other = simulated_at.get((row["k_af"], column(row)))
            shown = f"{ours:.2f}" if other is None else f"{ours:.2f} / {other[f'{name}_mbps']:.2f}"
            pairs.append(f"{shown} ({wanted:.2f})" if with_theory else shown)
        cells[row["k_af"], column(row)] = ", ".join(pairs) if with_theory else " ".join(pairs)
    lines = [[f"{k:g}", *(cells.get((k, name), "") for name in columns)] for k in sorted({row["k_af"] for row in rows})]
    return ["K_AF", *columns], lines


def _markdown_table(columns: list[str], lines: Sequence[Sequence[str]]) -> str:
    text = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return "\n".join(text + ["| " + " | ".join(line) + " |" for line in lines])


def report(title: str, command: str, facts: dict[str, Any], figures: Sequence[FigureResult], *, complete: bool) -> str:
    """One page that needs no other file."""
    parts = []
    if not complete:
        parts.append(html_page.warning("Interrupted: only the runs that had finished are shown."))
    parts.append(f"<p><code>{html.escape(command)}</code></p>")
    parts.append(
        "<p>" + ", ".join(f"{html.escape(key)} {html.escape(str(value))}" for key, value in facts.items()) + "</p>"
    )
    parts.append(
        "<p>Marks and thick lines are ours, thin lines theory. Large hollow stars and triangles are numbers and bounds "
        "that the paper prints.</p>"
    )
    for shown in figures:
        parts += _section(shown)
    return html_page.document(title, "\n".join(parts))


def _section(shown: FigureResult) -> list[str]:
    figure = shown.figure
    claim = f"Claimed: {figure.claim}" if figure.claimed else figure.claim
    parts = [f"<h2>{html.escape(figure.heading)}</h2><p>{html.escape(claim)}</p>"]
    if text := deviation(shown.rows):
        parts.append(f"<p>{html.escape(text)}</p>")
    if shown.picture:
        parts.append(html_page.figure(figure.name, figure.heading, shown.picture))
    parts += [f"<p>{html.escape(text)}</p>" for text in _published(shown)[0]]
    if compared := shown.compared:
        parts.append(_folded(PUBLISHED, *printed.grid(compared)))
    parts.append(_html_table("Values", shown.table, list(figure.columns)))
    if shown.other:
        parts.append(_html_table(figure.other_title, shown.other, list(figure.columns)))
    if shown.details:
        if text := _notable_sentence(shown):
            parts.append(f"<p>{html.escape(text)}</p>")
        parts.append(_html_table(figure.details_title, shown.details, list(shown.details[0])))
    return parts


def _html_table(title: str, rows: Sequence[Row], columns: list[str]) -> str:
    return _folded(title, *_all_columns(rows, columns))


def _folded(title: str, columns: list[str], lines: list[list[str]]) -> str:
    table = html_page.table(columns, lines)
    return f"<details open><summary>{html.escape(title)} ({len(lines)} rows)</summary>{table}</details>"
