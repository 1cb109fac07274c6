# SPDX-License-Identifier: BSD-3-Clause
"""Draws a figure's panels: ours as marks or steps, theory as lines in the same colour, printed numbers as large hollow
marks.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkweir.panels.plot import DASHES, EIGHT_COLOURS, MARKS, svg_element
from linkweir.reproduce.figure import Figure, Panel, Row
from linkweir.reproduce.printed import BOUNDS, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from linkweir.panels.picture import Picture

COLOURS = (*EIGHT_COLOURS, "#7f3c8d", "#b2df8a")
PRINTED_MARKS = {"at least": "^", "at most": "v"}
"""Marks of printed bounds; numbers are stars."""
PRINTED_SIZE = 11
NOTE_WIDTH = 85
"""Letters of the line below the panels, for each panel across."""
MARKED_POINTS = 20
"""Lines of at most so many points have marks; without a mark, a line of one point is invisible."""
NAMES = {
    "ef_share": "EF",
    "scheduler": "",
    "memory_s": "memory",
    "class": "class",
    "k_af": "K_AF",
    "figure": "",
    "history": "",
    "where": "",
    "run": "",
}


def svg(figure: Figure, rows: Sequence[Row]) -> str:
    """The figure as an SVG element; the same rows give the same bytes."""
    return svg_element(lambda: canvas(figure, rows))


def canvas(figure: Figure, rows: Sequence[Row]) -> Picture:
    """The figure as matplotlib's, two panels across."""
    from linkweir.panels.picture import Picture

    reference = figure.reference() if figure.reference is not None else None
    across = min(2, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    drawn = Picture(figsize=(5.2 * across, 3.2 * down), layout="constrained")
    numbers = figure.printed.numbers if figure.printed is not None else ()
    for number, panel in enumerate(figure.panels, 1):
        _draw(drawn.add_subplot(down, across, number), panel, rows, reference, numbers)
    if figure.printed is not None and figure.printed.sentence:
        note = textwrap.fill(figure.printed.sentence, NOTE_WIDTH * across)
        drawn.supxlabel(note, fontsize="x-small", color="#555555")
    return drawn


def _chosen(panel: Panel, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if all(row.get(key) == value for key, value in panel.where.items())]


def _label(panel: Panel, key: tuple[Any, ...]) -> str:
    words = []
    for name, value in zip(panel.by, key, strict=True):
        shown = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        if name.endswith("_s") and value is not None:
            shown += " s"
        words.append(f"{NAMES.get(name, name)} {shown}".strip())
    return ", ".join(words)


def _draw(
    axes: Axes,
    panel: Panel,
    rows: Sequence[Row],
    reference: Sequence[Row] | None,
    numbers: Sequence[Number] = (),
) -> None:
    from matplotlib.ticker import EngFormatter

    chosen = _chosen(panel, rows)
    if panel.keep is not None:
        chosen = [row for row in chosen if panel.keep(row)]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in chosen:
        groups.setdefault(tuple(row[name] for name in panel.by), []).append(row)
    firsts = list(dict.fromkeys(key[0] for key in groups))
    lasts = list(dict.fromkeys(key[-1] for key in groups))
    for key, mine in groups.items():
        colour = COLOURS[lasts.index(key[-1]) % len(COLOURS)]
        style = firsts.index(key[0]) if len(panel.by) > 1 else 0
        points = [(row[panel.x], row[panel.y]) for row in mine if row[panel.x] is not None and row[panel.y] is not None]
        look: dict[str, Any] = {"color": colour, "label": _label(panel, key)}
        if panel.lines:
            look |= {"linestyle": DASHES[style % len(DASHES)], "linewidth": 1.1}
            if len(points) <= MARKED_POINTS:
                mark = MARKS[lasts.index(key[-1]) % len(MARKS)]
                look |= {"marker": mark, "markersize": 4, "fillstyle": "none"}
        else:
            look |= {"linestyle": "none", "marker": MARKS[style % len(MARKS)], "markersize": 4, "fillstyle": "none"}
        axes.plot([x for x, _ in points], [y for _, y in points], **look)
        if panel.theory is None:
            continue
        source = (
            mine
            if reference is None
            else [row for row in _chosen(panel, reference) if tuple(row[name] for name in panel.by) == key]
        )
        line = [(row[panel.x], row[panel.theory]) for row in source if row.get(panel.theory) is not None]
        axes.plot(
            [x for x, _ in line],
            [y for _, y in line],
            color=colour,
            linewidth=0.7,
            alpha=0.7,
            linestyle=DASHES[(style + (1 if panel.lines else 0)) % len(DASHES)],
        )
    colours = {key: COLOURS[lasts.index(key[-1]) % len(COLOURS)] for key in groups}
    _draw_printed(axes, panel, numbers, colours)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, panel.top)
        if panel.y_label.endswith("(bit)"):
            axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    if groups:
        axes.legend(fontsize="x-small", ncols=2 if len(groups) > 4 else 1)


def _draw_printed(axes: Axes, panel: Panel, numbers: Sequence[Number], colours: dict[tuple[Any, ...], str]) -> None:
    """Printed numbers in the colours of their curves, and one entry of the legend for each source."""
    seen: dict[str, str] = {}
    for number in numbers:
        place = _place(panel, number)
        if place is None:
            continue
        colour = colours.get(tuple(number.where.get(name) for name in panel.by), "#000000")
        mark = PRINTED_MARKS.get(number.how, "*")
        seen.setdefault(_named(number), mark)
        axes.plot(*place, marker=mark, **_hollow(colour), zorder=5)
    for label, mark in seen.items():
        axes.plot([], [], marker=mark, label=label, **_hollow("#000000"))


def _hollow(colour: str) -> dict[str, Any]:
    return {"color": colour, "linestyle": "none", "markersize": PRINTED_SIZE, "fillstyle": "none"}


def _named(number: Number) -> str:
    """The entry of the legend.

    >>> _named(Number("loss", "20", "%", "Section V", how="at least"))
    'published (text, Sec. V; more than)'
    >>> _named(Number("loss", "20", "%", "Table II"))
    'published (Table II)'
    """
    where = number.source.replace("Sections ", "text, Sec. ").replace("Section ", "text, Sec. ")
    bound = {"at least": "; more than", "at most": "; at most"}.get(number.how, "")
    return f"published ({where}{bound})"


def _place(panel: Panel, number: Number) -> tuple[float, float] | None:
    """Where a printed number is on a panel; None if it is not of the panel's quantity or of no one point."""
    if number.measure is not None or (number.how in BOUNDS and number.how not in PRINTED_MARKS):
        return None
    if any(number.where.get(key, wanted) != wanted for key, wanted in panel.where.items()):
        return None
    value = number.value / number.scale
    if number.column == panel.y and panel.x in number.where:
        return number.where[panel.x], value
    if number.column == panel.x and panel.y in number.where:
        return value, number.where[panel.y]
    return None
