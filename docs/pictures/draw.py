# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of the documentation: panels of curves, steps or bars, as data, on white, labels at the curves.

    write(Path("rates.svg"), [Panel("Rate of AF", "EF (Mbit/s)", "AF (Mbit/s)", [Curve("pss", [1, 2], [5, 5])])])

The same values give the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from linkweir.panels.plot import STYLE
from linkweir.reproduce.compact import compact

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07d00", "#56b4e9", "#000000")
"""Okabe and Ito's, which the colour-blind tell apart; yellow is darker here, so that its label can be read on white."""
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
GREY = "#767676"
LARGEST_BYTES = 60_000
LABEL_GAP = 0.075
"""Least distance of two labels at the right edge, as a part of the height of the axes."""


@dataclass(frozen=True)
class Curve:
    """Values and the label at their end. A quiet curve is grey: what the others are compared with."""

    label: str
    x: Sequence[float | str]
    y: Sequence[float]
    quiet: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes. Of `bars`, the x of every curve are the names of the groups."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    kind: Literal["lines", "steps", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False
    top: float | None = None
    shaded: Sequence[tuple[float, float]] = field(default_factory=tuple)
    """Parts of the horizontal axis that are grey: fades, outages."""
    labels: Literal["right", "ends", "middle"] = "right"
    """Where curves are named: at the right edge, at their last points, or about half-way up."""


def figure(panels: Sequence[Panel], size: tuple[float, float] | None = None, *, stacked: bool = False) -> Figure:
    """The panels side by side, or one above the other; `size` is in inches."""
    shape = (len(panels), 1) if stacked else (1, len(panels))
    with rc_context(STYLE):
        drawn = Figure(figsize=size or (4.6 * len(panels) + 0.6, 2.9), layout="constrained", facecolor="white")
        for axes, panel in zip(drawn.subplots(*shape, squeeze=False).flat, panels, strict=True):
            _draw(axes, panel)
    return drawn


def svg(panels: Sequence[Panel], size: tuple[float, float] | None = None, *, stacked: bool = False) -> str:
    """The panels as an SVG document."""
    out = io.StringIO()
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure(panels, size, stacked=stacked).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return compact(out.getvalue())


def write(
    path: Path, panels: Sequence[Panel], size: tuple[float, float] | None = None, *, stacked: bool = False
) -> None:
    """Writes the panels as SVG, with a limit for what is committed."""
    text = svg(panels, size, stacked=stacked)
    if len(text) > LARGEST_BYTES:
        raise ValueError(f"{path.name}: {len(text)} bytes; at most {LARGEST_BYTES} are allowed: draw fewer points")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontsize=9.5, fontweight="bold")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    for start, end in panel.shaded:
        axes.axvspan(start, end, color="0.9", linewidth=0)
    looks = _looks(panel.curves)
    if panel.kind == "bars":
        _bars(axes, panel.curves, looks)
    else:
        for curve, look in zip(panel.curves, looks, strict=True):
            stepped = {"drawstyle": "steps-post"} if panel.kind == "steps" else {}
            marked = {"marker": "o", "markersize": 3} if len(curve.x) <= 12 and not curve.quiet else {}
            axes.plot(curve.x, curve.y, **look, **stepped, **marked)
        axes.margins(x=0.01)
    if panel.kind != "bars" and all(float(x).is_integer() for curve in panel.curves for x in curve.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.log_x:
        axes.set_xscale("log")
        _logarithmic(axes.xaxis, axes.get_xlim())
    if panel.log_y:
        axes.set_yscale("log")
        _logarithmic(axes.yaxis, axes.get_ylim())
    elif axes.get_ylim()[1] >= 10_000:
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    if not panel.log_y:
        axes.set_ylim(0, panel.top)
    elif panel.top is not None:
        axes.set_ylim(top=panel.top)
    if panel.kind == "bars":
        return
    if panel.labels == "right":
        _labels(axes, panel.curves, looks)
        return
    for number, (curve, look) in enumerate(zip(panel.curves, looks, strict=True)):
        place = len(curve.x) - 1
        if panel.labels == "middle":
            part = 0.6 - 0.25 * number / max(1, len(looks) - 1)  # each lower than the one before, so that none overlap
            height = min(curve.y) + part * (max(curve.y) - min(curve.y))
            place = next(place for place, value in enumerate(curve.y) if value >= height)
        _name(axes, curve, look, (curve.x[place], curve.y[place]), "data")


def _logarithmic(scaled: Axis, limits: tuple[float, float]) -> None:
    """Numbers without powers; where the axis has less than two decades, also at 2 and 5."""
    narrow = limits[1] < 100 * limits[0]
    scaled.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    scaled.set_major_formatter(lambda value, _: f"{value:g}")
    scaled.set_minor_formatter(NullFormatter())


def _looks(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    loud = [curve for curve in curves if not curve.quiet]
    return [
        {"color": GREY, "linewidth": 1.0, "linestyle": (0, (2, 2))}
        if curve.quiet
        else {"color": COLOURS[loud.index(curve) % len(COLOURS)], "linestyle": DASHES[loud.index(curve) % len(DASHES)]}
        for curve in curves
    ]


def _bars(axes: Axes, curves: Sequence[Curve], looks: Sequence[dict[str, Any]]) -> None:
    width = 0.8 / len(curves)
    for place, (curve, look) in enumerate(zip(curves, looks, strict=True)):
        left = [group - 0.4 + width * (place + 0.5) for group in range(len(curve.x))]
        bars = axes.bar(left, curve.y, width * 0.94, color=look["color"], label=curve.label)
        axes.bar_label(bars, [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in curve.y], fontsize=7.5)
    axes.set_xticks(range(len(curves[0].x)), [str(name) for name in curves[0].x])
    axes.grid(visible=False, axis="x")
    if len(curves) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _labels(axes: Axes, curves: Sequence[Curve], looks: Sequence[dict[str, Any]]) -> None:
    """A label at the right end of each curve; labels that would overlap are moved apart."""
    to_axes = axes.transScale + axes.transLimits
    ends = [(float(to_axes.transform((curve.x[-1], curve.y[-1]))[1]), place) for place, curve in enumerate(curves)]
    ends.sort()
    heights = [min(max(height, 0.0), 1.0) for height, _ in ends]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + LABEL_GAP)
    over = max(0.0, heights[-1] - 1.0) if heights else 0.0
    heights = [height - over for height in heights]
    for place in range(len(heights) - 2, -1, -1):
        heights[place] = min(heights[place], heights[place + 1] - LABEL_GAP)
    for height, (_, place) in zip(heights, ends, strict=True):
        _name(axes, curves[place], looks[place], (1.0, height), "axes fraction")


def _name(axes: Axes, curve: Curve, look: dict[str, Any], place: tuple[Any, float], unit: str) -> None:
    style = {"va": "center", "color": look["color"], "fontsize": 8.5}
    axes.annotate(curve.label, place, xycoords=unit, xytext=(4, 0), textcoords="offset points", **style)
