# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the yardstick: for a group of cases, figures of each case with the policies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkweir.panels.plot import EIGHT_COLOURS, MARKS, document, shortened
from linkweir.sweeps.plot import logarithmic
from linkweir.yardstick.cases import AS_WRITTEN
from linkweir.yardstick.figures import FIGURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from linkweir.panels.picture import Picture
    from linkweir.yardstick.results import Results

_DRAWN = ("owed", "urgent_p999", "after_fade", "used")
_MARKS = (*MARKS, "X", "*")
_LEAST = {"owed": 1.0, "urgent_p999": 0.1, "after_fade": 0.1}
"""Smaller values are drawn here, as the axis is logarithmic."""


def picture(results: Results, places: Sequence[tuple[str, str]]) -> str:
    """The figures of these cases under each policy, as an SVG document."""

    def drawn() -> Picture:
        from linkweir.panels.picture import Picture

        figure = Picture(
            figsize=(8.6, 1.2 + len(places) * (0.2 + 0.04 * len(results.facts.policies))), layout="constrained"
        )
        grid = figure.subplots(1, len(_DRAWN), sharey=True, squeeze=False)[0]
        for axes, key in zip(grid, _DRAWN, strict=True):
            _dots(axes, results, places, key)
        names = [case if load == AS_WRITTEN else f"{case} ({load})" for case, load in places]
        grid[0].set_yticks(range(len(places)), [shortened(name, 24) for name in names])
        grid[0].set_ylim(len(places) - 0.5, -0.5)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=min(len(labels), 8))
        return figure

    return document(drawn).decode()


def _dots(axes: Axes, results: Results, places: Sequence[tuple[str, str]], key: str) -> None:
    about = FIGURES[key]
    policies = results.facts.policies
    step = 0.7 / len(policies)
    drawn = False
    for index, policy in enumerate(policies):
        at, values = [], []
        for place, (case, load) in enumerate(places):
            value = results.row(case, load, policy).found.values.get(key)
            if value is not None:
                at.append(place + (index - (len(policies) - 1) / 2) * step)
                values.append(max(value * about.scale, _LEAST.get(key, 0.0)))
        drawn |= bool(values)
        colour, mark = EIGHT_COLOURS[index % len(EIGHT_COLOURS)], _MARKS[index % len(_MARKS)]
        axes.plot(values, at, linestyle="none", markersize=3.5, label=policy, color=colour, marker=mark)
    for row in range(1, len(places)):
        axes.axhline(row - 0.5, color="0.9", linewidth=0.8)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(about.heading)
    if not drawn:
        axes.set_xticks([])  # no case has the figure: there is no scale
    elif key in _LEAST:
        logarithmic(axes)
    else:
        axes.set_xlim(right=101)
