# SPDX-License-Identifier: BSD-3-Clause
"""The page and the picture of the agreement: how far each place is from the simulator, and the bound that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log10
from pathlib import Path

from figures import Group

from linkweir.directories.provenance import write_whole
from linkweir.panels.picture import Picture
from linkweir.panels.plot import MARKS, svg_element
from linkweir.reproduce.compact import compact
from linkweir.reproduce.directory import write_picture
from linkweir.reproduce.orders import Cell
from linkweir.reproduce.plot import COLOURS

SIMULATOR, THEORY = "simulator", "theory"
BACKLOGGED = "simulator, always backlogged"
"""What ns-3 is compared with where the other places have TCP."""
QDISC, VIRTUAL, REAL, NS3, NS3_TCP = "qdisc", "gateway", "gateway in real time", "ns-3", "ns-3 and its TCP"
BPF = "bpf"
"""Only its decisions are compared."""
PLACES = (NS3, NS3_TCP, QDISC, VIRTUAL, REAL)
"""Those that are compared with the simulator, in the order in which they run: real time last."""
COLUMNS = (THEORY, SIMULATOR, QDISC, VIRTUAL, REAL, NS3, NS3_TCP)
PICTURE = "agreement"
MANY = 3
"""If more points of a place are above the bound, one sentence counts them."""
BEGIN, END = "<!-- agreement -->", "<!-- end of agreement -->"


@dataclass(frozen=True)
class Line:
    """A point and what it has in each place.

    Attributes:
        name: the point.
        real: it is run in real time, too, and shown in a table.
        places: where it ought to run.
        cells: values by place, with their distance from the simulator.
    """

    name: str
    real: bool
    places: frozenset[str]
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Table:
    """The points of a group."""

    group: Group
    lines: Sequence[Line]

    def worst(self, place: str) -> tuple[Cell, Line] | None:
        """The cell of a place that is furthest from the simulator, and its line; None if there is none."""
        mine = [(line.cells[place], line) for line in self.lines if place in line.cells]
        return max(mine, key=lambda pair: pair[0].off) if mine else None

    def count(self, place: str) -> int:
        """How many points a place has."""
        return sum(place in line.cells for line in self.lines)

    def expected(self, place: str) -> int:
        """How many points it should have."""
        return sum(place in line.places for line in self.lines)


def six(group: Group) -> Group:
    """The points of a group that are also run in real time."""
    return replace(group, points=tuple(point for point in group.points if point.real))


def percent(part: float) -> str:
    """A distance as it is shown.

    >>> percent(0.0123), percent(0.00004), percent(0.0)
    ('1.2 %', '0.00 %', '0.00 %')
    """
    return f"{100 * part:.{2 if part < 0.00995 else 1}f} %"


# --- Text -----------------------------------------------------------------------------------------------------------


def summary(tables: Sequence[Table]) -> str:
    """A line for each group: the largest distance of each place, in bold where it is above its bound."""
    columns = [place for place in COLUMNS if place != SIMULATOR]
    lines = ["| figure | " + " | ".join(columns) + " | bound |", "|" + "---|" * (len(columns) + 2)]
    for table in tables:
        cells = [_worst(table, place) for place in columns]
        lines.append(f"| {table.group.name} | " + " | ".join(cells) + f" | {_bounds(table.group)} |")
    return "\n".join(lines)


def _worst(table: Table, place: str) -> str:
    found = table.worst(place)
    if found is None:
        return "not run" if table.expected(place) else "none"
    shown = percent(found[0].off)
    number, all_ = table.count(place), table.expected(place)
    points = f"{number} of {all_} points" if number != all_ else f"{number} point{'s' if number > 1 else ''}"
    return f"{shown if found[0].kept else f'**{shown}**'}, {points}"


def _bounds(group: Group) -> str:
    words = [f"{100 * group.bounds['']:g} %"]
    words += [f"{place} {100 * bound:g} %" for place, bound in group.bounds.items() if place]
    return ", ".join(words) + (f" or {group.bounds[''] * group.floor:g} {group.unit}" if group.floor else "")


def outside(table: Table) -> list[str]:
    """A sentence for each cell above its bound, or for all of a place where they are many."""
    sentences = []
    for place in COLUMNS:
        found = [(line, line.cells[place]) for line in table.lines if place in line.cells]
        above = [(line, one) for line, one in found if not one.kept]
        said = [f"{line.name}, {place}: {percent(one.off)} from the simulator" for line, one in above]
        if len(above) > MANY:
            line, one = max(above, key=lambda pair: pair[1].off)
            said = [
                f"{place}: {len(above)} of {len(found)} points, at most {percent(one.off)} from the simulator "
                f"({line.name})"
            ]
        sentences += [f"{table.group.name}, {what}, above {percent(above[0][1].bound)}" for what in said]
    return sentences


def details(table: Table) -> str:
    """The points that are also run in real time: their values in each place and, in brackets, the distance."""
    group = table.group
    shown = [line for line in table.lines if line.real and line.cells]
    values = f"{', '.join(group.columns)}: {group.unit}."
    head = ["point", *COLUMNS]
    lines = [
        f"### {group.name}: {group.title}",
        "",
        values,
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    lines += ["| " + " | ".join([line.name, *(_shown(line, place) for place in COLUMNS)]) + " |" for line in shown]
    return "\n".join(lines)


def _shown(line: Line, place: str) -> str:
    found = line.cells.get(place)
    if found is None:
        return ""
    values = ", ".join(f"{value:.2f}" for value in found.values)
    if place == SIMULATOR:
        return values
    return f"{values} ({percent(found.off)})" if found.kept else f"**{values} ({percent(found.off)})**"


def write_into(path: Path, tables: Sequence[Table], origin: str) -> None:
    """Replaces the marked part of a page, and its picture."""
    page = path.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    sentences = [text for table in tables for text in outside(table)]
    above = "\n".join(f"* {text}" for text in sentences) or "None."
    parts = [
        origin,
        f"![How far each place is from the simulator](images/{PICTURE}.svg)",
        summary(tables),
        f"Above their bounds:\n\n{above}",
        *(details(table) for table in tables),
    ]
    write_whole(path, f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}")
    (path.parent / "images").mkdir(exist_ok=True)
    write_picture(path.parent / "images" / f"{PICTURE}.svg", compact(picture(tables)))


# --- Picture --------------------------------------------------------------------------------------------------------

LEAST_PART = 1e-5
"""Smaller distances are drawn here."""


def picture(tables: Sequence[Table]) -> str:
    """The distances of all points from the simulator, for each figure and place, as SVG."""
    return svg_element(lambda: canvas(tables))


def canvas(tables: Sequence[Table]) -> Picture:
    """The distances as matplotlib's figure."""
    places = [place for place in COLUMNS if place not in (SIMULATOR, THEORY)]
    drawn = Picture(figsize=(9.5, 3.6), layout="constrained")
    axes = drawn.add_subplot()
    for number, place in enumerate(places):
        # points of which one would hide the other are drawn once
        found = sorted(
            {
                (at + 0.16 * (number - (len(places) - 1) / 2), 10 ** round(log10(off), 1))
                for at, table in enumerate(tables)
                for off in (max(line.cells[place].off, LEAST_PART) for line in table.lines if place in line.cells)
            }
        )
        if found:
            look = (COLOURS[number], MARKS[number])
            axes.plot(*zip(*found, strict=True), linestyle="", label=place, color=look[0], marker=look[1], alpha=0.6)
    for at, table in enumerate(tables):
        axes.hlines(table.group.bounds[""], at - 0.4, at + 0.4, color="#000000", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda part, _position: f"{100 * part:g} %")
    axes.set_xticks(range(len(tables)), [table.group.name for table in tables])
    axes.set_ylabel("largest distance of a class\nfrom the simulator")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=len(places))
    return drawn
