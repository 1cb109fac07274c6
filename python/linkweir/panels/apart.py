# SPDX-License-Identifier: BSD-3-Clause
"""Finds lines of a panel that run on top of each other, so that they can be drawn in turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkweir.panels.panel import Line, Panel

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

_NEAR = 0.005
"""Lines are equal if they differ by no more than this part of the panel's height, about a pixel."""
_MOST_NAMES = 4


def told_apart(panel: Panel) -> Panel:
    """The panel with equal lines marked: each is drawn with gaps in which those below it show."""
    heights = {at: height for at, height in enumerate(_heights(panel)) if height is not None}
    groups: list[list[int]] = []
    for at, height in heights.items():
        for group in groups:
            if _equal(heights[group[0]], height):
                group.append(at)
                break
        else:
            groups.append([at])
    equal = [group for group in groups if len(group) > 1]
    if not equal:
        return panel
    lines = list(panel.lines)
    for group in equal:
        for place, at in enumerate(group):
            lines[at] = replace(lines[at], turn=(place, len(group)))
    said = "; ".join(_names([panel.lines[at] for at in group]) for group in equal)
    note = f"{panel.note} Equal lines are drawn in turns: {said}.".strip()
    return replace(panel, lines=lines, note=note)


def _names(lines: list[Line]) -> str:
    names = [line.label for line in lines]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _heights(panel: Panel) -> list[Values | None]:
    """Where each line is between the bottom of the panel, 0, and its top, 1; None for bounds and areas."""
    import numpy as np

    drawn = [line.y for line in panel.lines if line.look == "line"]
    values = np.concatenate(drawn) if drawn else np.empty(0)
    values = values[np.isfinite(values)]
    if panel.log_y:
        values = values[values > 0]
    if not len(values):
        return []
    scale = np.log if panel.log_y else np.asarray
    low, high = float(scale(values.min())), float(scale(values.max()))
    if not panel.log_y and panel.from_zero:
        low = min(low, 0.0)
    range_ = max(high - low, 1e-12)
    found: list[Values | None] = []
    for line in panel.lines:
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append((scale(np.asarray(line.y, dtype=float)) - low) / range_ if line.look == "line" else None)
    return found


def _equal(one: Values, other: Values) -> bool:
    import numpy as np

    known = np.isfinite(one)
    if one.shape != other.shape or not known.any() or not np.array_equal(known, np.isfinite(other)):
        return False
    return bool(np.abs(one[known] - other[known]).max() <= _NEAR)
