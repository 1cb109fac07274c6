# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a comparison: measures with their intervals, and distributions of delay, policies side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkweir.panels.plot import EIGHT_COLOURS, MARKS, document, shortened
from linkweir.sweeps.measures import MEASURES
from linkweir.sweeps.plot import cumulative, delay_axis, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkweir.comparison.results import Results
    from linkweir.panels.picture import Picture

_MARKS = (*MARKS, "X", "*")
_DASHES = ("-", "--", "-.", ":")
MOST_CLASSES = 12
_ACROSS = 3
_DOTS = ("rate", "loss", "delay_p99")


def measures(comparison: Results, trace: str) -> str:
    """Rate, loss and the 99th percentile of the delay of each class under each policy, as an SVG document."""
    names = comparison.facts.classes[:MOST_CLASSES]
    labels = [one.label for one in comparison.facts.variants]
    height = 0.9 + len(names) * (0.18 + 0.13 * len(labels))

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(_DOTS), sharey=True, squeeze=False)[0]
        for panel, measure in zip(axes, _DOTS, strict=True):
            _dots(panel, comparison, trace, names, labels, measure)
        axes[0].set_yticks(range(len(names)), [_short(name) for name in names])
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        _legend(figure, axes[0], len(labels))

    return _svg((8.6, height + 0.5), draw)


def _dots(
    axes: Axes, comparison: Results, trace: str, names: Sequence[str], labels: Sequence[str], measure: str
) -> None:
    shown = MEASURES[measure]
    step = 0.7 / max(len(labels), 1)
    seen = []
    for index, label in enumerate(labels):
        places, means, halves = [], [], []
        for row, name in enumerate(names):
            found = comparison.estimate(trace, label, name, measure)
            if found.mean is not None:
                places.append(row + (index - (len(labels) - 1) / 2) * step)
                means.append(found.mean * shown.scale)
                halves.append((found.half or 0.0) * shown.scale)
        seen += means
        axes.errorbar(
            means,
            places,
            xerr=halves,
            fmt=_MARKS[index % len(_MARKS)],
            color=_colour(index),
            markersize=4,
            linewidth=1,
            capsize=2,
            label=label,
        )
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="0.9", linewidth=0.8)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(shown.heading)
    if measure.startswith("delay") and seen and min(seen) > 0 and max(seen) > 20 * min(seen):
        logarithmic(axes)
    else:
        axes.set_xlim(left=0)


def delays(comparison: Results, trace: str) -> str:
    """The distribution of the queueing delay of each class under each policy, as an SVG document."""
    names = comparison.facts.classes[:MOST_CLASSES]
    labels = [one.label for one in comparison.facts.variants]
    across = min(_ACROSS, len(names))
    down = math.ceil(len(names) / across)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(down, across, sharey=True, sharex=True, squeeze=False)
        for number, panel in enumerate(grid.flat):
            if number >= len(names):
                panel.set_visible(False)
                continue
            _distribution(panel, comparison, trace, names[number], labels)
            panel.set_title(_short(names[number]), loc="left")
            if number % across == 0:
                panel.set_ylabel("packets (%)")
            if number + across >= len(names):
                panel.set_xlabel("queueing delay (ms)")
                panel.tick_params(labelbottom=True)
        _legend(figure, grid[0][0], len(labels))

    return _svg((8.6, 2.5 * down + 0.5), draw)


def _distribution(axes: Axes, comparison: Results, trace: str, name: str, labels: Sequence[str]) -> None:
    for index, label in enumerate(labels):
        found = comparison.distribution(trace, label, name)
        if found is not None:
            cumulative(axes, found, label, color=_colour(index), linestyle=_DASHES[index % len(_DASHES)])
    delay_axis(axes)


def _colour(index: int) -> str:
    return EIGHT_COLOURS[index % len(EIGHT_COLOURS)]


def _short(name: str) -> str:
    return shortened(name, 20)


def _legend(figure: Figure, axes: Axes, count: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=min(count, 8))


def _svg(size_inches: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    def drawn() -> Picture:
        from linkweir.panels.picture import Picture

        figure = Picture(figsize=size_inches, layout="constrained")
        draw(figure)
        return figure

    return document(drawn).decode()
