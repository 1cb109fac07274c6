# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run for papers and notebooks, drawn by matplotlib from the panels that the report shows, too."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkweir.panels import Line, Panel, Panels
from linkweir.tables.links import busiest
from linkweir.tables.run_tables import LinkTables, RunTables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkweir.panels.picture import Picture

_MOST_CLASSES = 12
_MOST_LINKS = 12
_MOST_POINTS = 5_000
_MOST_LETTERS = 24
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#8C3B6E")
"""Those of report.css on white: blue, vermilion and green of Okabe and Ito, and their purple, darker."""
EIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito 2008: they can be told apart by readers who see few colours."""
DASHES = ("-", "--", ":", "-.")
"""Styles of the lines 1 to 4, 5 to 8, and so on."""
MARKS = ("o", "s", "^", "D", "v", "P")
FORMATS = ("svg", "pdf")
STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "savefig.bbox": None,  # a user's own settings may be `tight`
    "pdf.fonttype": 42,  # letters stay letters: journals refuse fonts of type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "linkweir",
    "text.parse_math": False,  # a name may hold a dollar sign
}
"""The look of every figure; with it the same values give the same bytes."""


@dataclass(frozen=True)
class Chart:
    """One picture: its file name, its title and what draws it."""

    name: str
    title: str
    draw: Callable[[Axes], None]
    from_zero: bool = True
    """The horizontal axis begins at 0, as time does."""


def charts(run: RunTables) -> list[Chart]:
    """The charts of a run over time, and those of a beam; those without data are left out."""
    return [chart for of_link in _links(run) for chart in _over_time(of_link)]


def delay_charts(run: RunTables) -> list[Chart]:
    """The distributions of delays of a run; none if it has no packets."""
    return [chart for of_link in _links(run) for chart in _distributions(of_link)]


def _links(run: RunTables) -> list[RunTables]:
    """The links of a network that are drawn; of one link the run itself."""
    return [run.of_link(link) for link in busiest(run, _MOST_LINKS)] if run.scenario.is_network else [run]


def _over_time(run: RunTables) -> list[Chart]:
    drawn = Panels(run, _MOST_CLASSES, _MOST_POINTS)
    return [_chart(run, panel, drawn.left_out) for panel in drawn.over_time]


def _distributions(run: RunTables) -> list[Chart]:
    drawn = Panels(run, _MOST_CLASSES, _MOST_POINTS)
    return [_chart(run, panel, drawn.left_out) for panel in drawn.distributions]


def _chart(run: RunTables, panel: Panel, classes_left_out: int) -> Chart:
    def draw(axes: Axes) -> None:
        _draw(axes, panel, classes_left_out)
        if panel.over_time and 0 < run.scenario.warmup_s < run.simulated_s:
            axes.axvspan(0, run.scenario.warmup_s, color="black", alpha=0.07, linewidth=0)

    if not isinstance(run, LinkTables):
        return Chart(panel.name, panel.title, draw, from_zero=not panel.log_x)
    place = run.place
    return Chart(f"link-{place}-{panel.name}", f"{run.link}: {panel.title}", draw, from_zero=not panel.log_x)


def _draw(axes: Axes, panel: Panel, classes_left_out: int) -> None:
    own = [line.label for line in panel.lines if line.of is None and line.look == "line"][:_MOST_CLASSES]
    for line in panel.lines:
        if line.off:
            continue
        if line.of is not None:
            _line(axes, panel, line, line.of)
        elif line.look != "line":
            _line(axes, panel, line, 0)
        elif line.label in own:
            _line(axes, panel, line, own.index(line.label))
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log_x and panel.x[-1] > 10 * panel.x[0]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda _, __: "")
    elif panel.y_range is not None:
        low, high = panel.y_range
        axes.set_ylim(low, high + (high - low) * 0.01)
    elif panel.from_zero:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _below_zero(panel) else 0.0)
    of_classes = any(line.of is not None and line.look == "line" for line in panel.lines)
    legend_beside(axes, classes_left_out if of_classes else 0)


def legend_beside(axes: Axes, left_out: int, what: str = "") -> None:
    """A legend right of the axes, which says how many lines are not drawn, and of what."""
    title = f"and {left_out} more{what}" if left_out > 0 else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title)


def _below_zero(panel: Panel) -> bool:
    return any((line.y < 0).any() for line in panel.lines)


_TURN = 6
"""Length of a line's part where equal lines are drawn in turns."""
_BOUNDS = {"upper": (0, (6, 3)), "lower": (0, (1, 2))}


def _line(axes: Axes, panel: Panel, line: Line, number: int) -> None:
    style: dict[str, Any] = {"drawstyle": "steps-post"} if panel.steps else {}
    colour = COLOURS[number % len(COLOURS)]
    if line.look == "area":
        axes.fill_between(panel.x, line.y, step="post", color="0.88", label=line.label, linewidth=0)
    elif line.look == "points":
        axes.plot(panel.x, line.y, "o", markersize=3, color=colour, label=line.label)
    elif line.look == "guide":
        axes.plot(panel.x, line.y, color="0.6", linewidth=1, label=line.label)
    elif line.look in _BOUNDS:
        axes.plot(panel.x, line.y, color=colour, linewidth=0.8, linestyle=_BOUNDS[line.look], label=_label(line.label))
    else:
        dashes: Any = DASHES[number // len(COLOURS) % len(DASHES)]
        if line.turn is not None:
            place, count = line.turn
            dashes = "-" if place == 0 else (0, (_TURN * (count - place), _TURN * place))
        axes.plot(panel.x, line.y, color=colour, linestyle=dashes, label=_label(line.label), **style)


def _label(name: str) -> str:
    """A name for the legend: one short line, and not one that begins like matplotlib's hidden labels."""
    line = shortened(name, _MOST_LETTERS)
    return f" {line}" if line.startswith("_") else line or "?"


def shortened(name: str, letters: int) -> str:
    """A name in one line of at most so many letters."""
    line = " ".join(name.split())
    return line if len(line) <= letters else f"{line[: letters - 1]}\N{HORIZONTAL ELLIPSIS}"


def overview(run: RunTables) -> Figure:
    """All figures of a run below each other."""
    return _figure([*charts(run), *delay_charts(run)])


def _figure(shown: Sequence[Chart]) -> Picture:
    from matplotlib import rc_context

    from linkweir.panels.picture import Picture

    with rc_context(STYLE):
        figure = Picture(figsize=(8.0, 2.6 * max(len(shown), 1)), layout="constrained")
        grid = figure.subplots(max(len(shown), 1), 1, squeeze=False)
        for axes, chart in zip(grid[:, 0], shown, strict=False):
            axes.set_title(chart.title, loc="left")
            chart.draw(axes)
            if chart.from_zero:
                axes.set_xlim(left=0)
    return figure


def svg(chart: Chart) -> str:
    """A chart as an SVG document, the same bytes for the same values."""
    return drawn(chart, "svg").decode()


def drawn(chart: Chart, form: str) -> bytes:
    """A chart as a document of one of `FORMATS`, the same bytes for the same values."""
    return document(lambda: _figure([chart]), form)


def svg_element(draw: Callable[[], Picture]) -> str:
    """What is drawn as the element of an SVG document, without what precedes it."""
    text = document(draw).decode()
    return text[text.index("<svg") :]


def document(draw: Callable[[], Picture], form: str = "svg") -> bytes:
    """What is drawn as a document of one of `FORMATS`, the same bytes for the same values."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    dates = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "Creator": None}}
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name may use any script
        figure = draw()
        figure.laid_out_alone = True
        figure.savefig(buffer, format=form, metadata=dates[form])
    return buffer.getvalue()
