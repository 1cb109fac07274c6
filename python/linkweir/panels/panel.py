# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a panel: lines over one horizontal axis, with units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

SHORTEST_MS = 0.001
"""Delays below are drawn here, as a logarithmic axis has no 0."""


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Attributes:
        label: what it shows.
        y: a value for each place of the panel's `x`; NaN where there is none.
        of: the class whose colour it has, and with which it is shown and hidden; None for none.
        look: ``line``, ``area`` (filled down to 0), ``points``, ``guide`` (thin and grey), or ``upper`` or ``lower``, a
            thin bound of the line of the same class.
        off: whether it is hidden at first, as it would make the other lines flat.
        turn: its place among lines that are equal to it and how many these are; None for a line that is alone. The
            first is drawn whole, the others with gaps, so that all are seen in turns.
    """

    label: str
    y: Values
    of: str | None = None
    look: str = "line"
    off: bool = False
    turn: tuple[int, int] | None = None


@dataclass(frozen=True)
class Panel:
    """Lines in one pair of axes.

    Attributes:
        name: the name of its file, unique in a run.
        title: what it shows.
        x: places on the horizontal axis, rising.
        x_label: the horizontal axis, with its unit.
        y_label: the vertical axis, with its unit.
        lines: the lines.
        over_time: the horizontal axis is the time of the run.
        steps: each value lasts until the next place.
        log_x: the horizontal axis is logarithmic.
        log_y: the vertical axis is logarithmic.
        y_range: ends of the vertical axis; None where the values decide.
        from_zero: the vertical axis begins at 0, unless it is logarithmic.
        note: how to read it, in sentences.
    """

    name: str
    title: str
    x: Values
    x_label: str
    y_label: str
    lines: list[Line] = field(default_factory=list)
    over_time: bool = True
    steps: bool = True
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    from_zero: bool = True
    note: str = ""


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def prefixed(most: float, unit: str) -> tuple[float, str]:
    """The factor and the unit with which values up to `most` are read easily.

    >>> prefixed(20e6, "bit/s"), prefixed(12.0, "bit/s")
    ((1e-06, 'Mbit/s'), (1.0, 'bit/s'))
    """
    for size, prefix in _PREFIXES:
        if most >= size:
            return 1 / size, f"{prefix}{unit}"
    return 1.0, unit


def largest(columns: list[Values]) -> float:
    """The largest value of several columns; 0 if there is none."""
    import numpy as np

    known = [column[np.isfinite(column)] for column in columns]
    return max((float(np.abs(column).max()) for column in known if len(column)), default=0.0)


def to_end(times: Values, end_s: float) -> Values:
    """The starts of intervals, and the end of the run, at which the last one ends: all panels over time end there."""
    import numpy as np

    return np.append(times, max(end_s, times[-1]))


def held(values: Values) -> Values:
    """The values of intervals, the last one again at the end of the run."""
    import numpy as np

    return np.append(values, values[-1])


def logarithmic(values: Values) -> Values:
    """Delays in ms that a logarithmic axis can show."""
    import numpy as np

    return np.maximum(values, SHORTEST_MS)
