# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of delays: the part of the packets with at most each delay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from linkweir import delays
from linkweir.panels.panel import SHORTEST_MS, Line, Panel
from linkweir.panels.selection import Selection
from linkweir.tables.run_tables import RunTables

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

_TITLES = {"queueing": "Distribution of the queueing delay", "one-way": "Distribution of the one-way delay"}
_MOST_DELAYS = 400
_MOST_FLOWS = 40
_LEFT = 1.05
"""The axis begins by this factor before the first packets, so that the first rise is seen."""


def distributions(run: RunTables, selection: Selection) -> list[Panel]:
    """A panel for each kind of delay of which the run has distributions."""
    found = []
    for kind, title in _TITLES.items():
        shown = _shown(delays.distributions(run.table("delays"), kind), selection)
        if shown:
            found.append(_panel(f"distribution-{kind}", title, shown))
    return found


def _shown(found: Iterable[delays.Distribution], selection: Selection) -> list[delays.Distribution]:
    classes: dict[str, delays.Distribution] = {}
    flows: list[delays.Distribution] = []
    for one in found:
        if one.flow:
            flows.append(one)
        else:
            classes[one.of] = one
    return [*(classes[name] for name in selection.classes if name in classes), *flows[:_MOST_FLOWS]]


def _panel(name: str, title: str, shown: list[delays.Distribution]) -> Panel:
    import numpy as np

    bounds = np.unique(np.concatenate([one.upper_s for one in shown]))
    if len(bounds) > _MOST_DELAYS:
        bounds = bounds[np.unique(np.linspace(0, len(bounds) - 1, _MOST_DELAYS).astype(int))]
    bounds = np.append(max(bounds[0] / _LEFT, SHORTEST_MS / 1e3), bounds[bounds * 1e3 > SHORTEST_MS])
    lines = [Line(one.name, 100 * _below(one, bounds), None if one.flow else one.of) for one in shown]
    return Panel(
        name,
        title,
        bounds * 1e3,
        "delay (ms)",
        "packets (%)",
        lines,
        over_time=False,
        log_x=True,
        y_range=(0.0, 100.0),
        note="The part of the packets with at most each delay.",
    )


def _below(one: delays.Distribution, bounds: Values) -> Values:
    """The part of the packets up to each bound: exact, as bounds of all histograms are the same."""
    import numpy as np

    places = np.searchsorted(one.upper_s, bounds, side="right")
    below: Values = np.append(0.0, one.cdf())[places]
    return below
