# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run: rates with the capacity, delays, drops, and what the policy shows, over time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkweir.policies import Statistic, policies
from linkweir.result import Result

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_CLASSES = 12
_MOST_POINTS = 5_000
_MOST_LETTERS = 24
_STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.fonttype": "path",
    "svg.hashsalt": "linkweir",
    "text.parse_math": False,  # a name may hold a dollar sign
}


@dataclass(frozen=True)
class Panel:
    """One picture: its file name, its title and what draws it."""

    name: str
    title: str
    draw: Callable[[Axes], None]


class _Columns:
    """Columns of a table by class, as arrays with NaN for null; classes beyond the twelfth are left out."""

    def __init__(self, result: Result, table: str) -> None:
        import pyarrow.compute as pc

        self.classes = result.scenario.classes[:_MOST_CLASSES]
        self.left_out = len(result.scenario.classes) - len(self.classes)
        rows = result.tables.get(table)
        self._parts: dict[str, Any] = {}
        if rows is not None and rows.num_rows:
            self._parts = {name: rows.filter(pc.equal(rows["class"], name)) for name in self.classes}

    def get(self, name: str, column: str) -> np.ndarray[Any, Any]:
        import numpy as np

        values = self._parts[name][column].to_numpy()
        return np.asarray(values, dtype=float)

    def times(self, name: str) -> np.ndarray[Any, Any]:
        return self.get(name, "t_s")

    @property
    def any(self) -> bool:
        return bool(self._parts)


def _thin(times: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Means over so many rows that at most `_MOST_POINTS` are left."""
    import numpy as np

    step = -(-len(times) // _MOST_POINTS)
    if step <= 1:
        return times, values
    whole = len(times) // step * step
    blocks = values[:whole].reshape(-1, step)
    known = ~np.isnan(blocks)
    count = known.sum(axis=1)
    sums = np.where(known, blocks, 0.0).sum(axis=1)
    means = np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
    return times[:whole:step], means


def _steps(times: np.ndarray[Any, Any], values: np.ndarray[Any, Any], end_s: float) -> tuple[Any, Any]:
    """As `_thin`, with the last value lasting until `end_s`; to be drawn as steps."""
    import numpy as np

    times, values = _thin(times, values)
    if not len(times) or times[-1] >= end_s:
        return times, values
    return np.append(times, end_s), np.append(values, values[-1])


def _legend(axes: Axes, left_out: int) -> None:
    title = f"and {left_out} more" if left_out > 0 else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title)


def _label(name: str) -> str:
    """A name for the legend: one short line, and not one that begins like matplotlib's hidden labels."""
    line = " ".join(name.split())
    line = line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f" {line}" if line.startswith("_") else line or "?"


def panels(result: Result) -> list[Panel]:
    """The figures there is something to draw for."""
    import numpy as np

    series = _Columns(result, "series")
    found: list[Panel] = []
    if series.any:
        found += [
            Panel("rates", "Rate of each class and capacity of the link", lambda axes: _rates(axes, result, series)),
            Panel("delays", "Mean queueing delay of the packets sent", lambda axes: _delays(axes, series)),
            Panel("drops", "Packets dropped and lost", lambda axes: _drops(axes, result, series)),
        ]
    levels = _Columns(result, "levels")
    if levels.any:
        shown = {
            stat.column: stat
            for policy in policies()
            if policy.name == result.scenario.policy
            for stat in policy.stats
            if any(np.any(levels.get(of, stat.column) != 0) for of in levels.classes)
        }
        found += [
            Panel(f"levels-{column}", stat.help[:1].upper() + stat.help[1:], _level_drawer(levels, stat))
            for column, stat in shown.items()
        ]
    return found


def _rates(axes: Axes, result: Result, series: _Columns) -> None:
    if "link" in result.tables:
        link = result.tables["link"]
        times = link["t_s"].to_numpy().astype(float)
        capacity = link["capacity_bps"].to_numpy().astype(float) / 1e6
        axes.fill_between(
            *_steps(times, capacity, result.simulated_s), step="post", color="0.9", label="capacity", linewidth=0
        )
    for name in series.classes:
        rate = series.get(name, "sent_bps") / 1e6
        axes.plot(*_steps(series.times(name), rate, result.simulated_s), drawstyle="steps-post", label=_label(name))
    axes.set(xlabel="time (s)", ylabel="rate (Mbit/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


def _delays(axes: Axes, series: _Columns) -> None:
    for name in series.classes:
        axes.plot(*_thin(series.times(name), series.get(name, "delay_mean_s") * 1e3), label=_label(name))
    axes.set(xlabel="time (s)", ylabel="delay (ms)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


def _drops(axes: Axes, result: Result, series: _Columns) -> None:
    import numpy as np

    interval_s = result.scenario.interval_s
    for name in series.classes:
        gone = np.sum([series.get(name, column) for column in _GONE], axis=0) / interval_s
        axes.plot(*_steps(series.times(name), gone, result.simulated_s), drawstyle="steps-post", label=_label(name))
    axes.set(xlabel="time (s)", ylabel="drops and losses (packets/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


_GONE = ("dropped_limit_pkts", "dropped_policy_pkts", "lost_link_pkts")


def _level_drawer(levels: _Columns, stat: Statistic) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        import numpy as np
        from matplotlib.ticker import EngFormatter, MaxNLocator

        for name in levels.classes:
            values = levels.get(name, stat.column)
            if np.any(values != 0):
                axes.plot(*_thin(levels.times(name), values), drawstyle="steps-post", label=_label(name))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set(xlabel="time (s)", ylabel=_quantity(stat))
        _legend(axes, levels.left_out)

    return draw


def _quantity(stat: Statistic) -> str:
    """The label of an axis: the name of what is shown in words, and its unit.

    >>> _quantity(Statistic("credit_bits", "bits sent ahead", "bits")), _quantity(Statistic("low", "1 or 0", "number"))
    ('credit (bits)', 'low')
    """
    words = stat.column.split("_")
    if len(words) > 1 and words[-1] in _UNITS:
        return f"{' '.join(words[:-1])} ({_UNITS[words[-1]]})"
    return " ".join(words)


_UNITS = {"bits": "bits", "bytes": "bytes", "pkts": "packets", "bps": "bit/s", "s": "s", "ns": "ns"}
"""Units by the suffix of a column."""


def overview(result: Result) -> Figure:
    """All figures of a run below each other."""
    shown = panels(result)
    return _figure(shown)


def _figure(shown: Sequence[Panel]) -> Figure:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 2.6 * max(len(shown), 1)), layout="constrained")
        grid = figure.subplots(max(len(shown), 1), 1, squeeze=False)
        for axes, panel in zip(grid[:, 0], shown, strict=False):
            axes.set_title(panel.title, loc="left")
            panel.draw(axes)
            axes.set_xlim(left=0)
    return figure


def svg(panel: Panel) -> str:
    """A panel as an SVG document, the same bytes for the same values."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name may use any script
        figure = _figure([panel])
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
