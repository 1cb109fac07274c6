# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a panel: lines over one horizontal axis, with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkweir import _native

if TYPE_CHECKING:
    from linkweir.columns import Values


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Attributes:
        label: what it shows.
        y: a value for each place of the panel's `x`; NaN where there is none.
        of: number of the drawn class whose colour it has, and with which it is shown and hidden; None for none.
        look: ``line``, ``area`` (filled down to 0), ``points``, ``guide`` (thin and grey), or ``upper`` or ``lower``, a
            thin bound of the line of the same class.
        off: whether it is hidden at first, as it would make the other lines flat.
        turn: its place among lines that are equal to it and how many these are; None for a line that is alone. The
            first is drawn whole, the others with gaps, so that all are seen in turns.
    """

    label: str
    y: Values
    of: int | None
    look: str
    off: bool
    turn: tuple[int, int] | None


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
        json: the same for `report.js`, with as many digits as a chart can show.
    """

    name: str
    title: str
    x: Values
    x_label: str
    y_label: str
    lines: list[Line]
    over_time: bool
    steps: bool
    log_x: bool
    log_y: bool
    y_range: tuple[float, float] | None
    from_zero: bool
    note: str
    json: str


def panel_of(found: _native._Panel) -> Panel:
    """A panel as the native module describes it."""
    import numpy as np

    def line(label: str, y: bytes, of: int | None, look: str, off: bool, turn: tuple[int, int] | None) -> Line:
        return Line(label, np.frombuffer(y), of, look, off, turn)

    return Panel(
        name=found["name"],
        title=found["title"],
        x=np.frombuffer(found["x"]),
        x_label=found["x_label"],
        y_label=found["y_label"],
        lines=[line(*one) for one in found["lines"]],
        over_time=found["over_time"],
        steps=found["steps"],
        log_x=found["log_x"],
        log_y=found["log_y"],
        y_range=found["y_range"],
        from_zero=found["from_zero"],
        note=found["note"],
        json=found["json"],
    )
