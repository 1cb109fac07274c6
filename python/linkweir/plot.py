# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run: rates with the capacity, delays, drops, and what the policy shows, over time."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkweir import delays
from linkweir.policy import Statistic, policies
from linkweir.tables import RunTables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkweir.outline import Outline, Values

_MOST_CLASSES = 12
_MOST_LETTERS = 24
STYLE: dict[Any, Any] = {
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
"""The look of every figure; with it the same values give the same bytes."""


@dataclass(frozen=True)
class Chart:
    """One picture: its file name, its title and what draws it."""

    name: str
    title: str
    draw: Callable[[Axes], None]
    from_zero: bool = True
    """The horizontal axis begins at 0, as time does."""


class _Classes:
    """The series of a table that are drawn, by class; classes beyond the twelfth are left out."""

    def __init__(self, run: RunTables, table: str, columns: Sequence[str]) -> None:
        self.classes = run.scenario.classes[:_MOST_CLASSES]
        self.left_out = len(run.scenario.classes) - len(self.classes)
        self._outline = _outline(run, table, columns, self.classes)

    def get(self, name: str, column: str) -> Values:
        return self._outline.get(column, name)

    def times(self, name: str) -> Values:
        return self._outline.get("t_s", name)

    @property
    def any(self) -> bool:
        return self._outline.any


def _outline(run: RunTables, table: str, columns: Sequence[str], classes: Sequence[str] = ()) -> Outline:
    from linkweir.outline import MOST_POINTS, Outline

    bins = math.ceil(run.simulated_s / run.scenario.interval_s)
    read = [*(["class"] if classes else []), "t_s", *columns]
    return Outline(run.batches(table, read), columns, classes, max(1, math.ceil(bins / MOST_POINTS)))


def _steps(times: Values, values: Values, end_s: float) -> tuple[Values, Values]:
    """The points of a step curve whose last value lasts until `end_s`."""
    import numpy as np

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


def charts(run: RunTables) -> list[Chart]:
    """The charts of a run; those without data are left out."""
    import numpy as np

    series = _Classes(run, "series", ["sent_bps", "delay_mean_s", *_GONE])
    found: list[Chart] = []
    if series.any:
        found += [
            Chart("rates", "Rate of each class and capacity of the link", lambda axes: _rates(axes, run, series)),
            Chart("delays", "Mean queueing delay of the packets sent", lambda axes: _delays(axes, series)),
            Chart("drops", "Packets dropped and lost", lambda axes: _drops(axes, run, series)),
        ]
    found += _beam_charts(run)
    stats = [stat for policy in policies() if policy.name == run.scenario.policy for stat in policy.stats]
    levels = _Classes(run, "levels", [stat.column for stat in stats])
    if levels.any:
        shown = {
            stat.column: stat
            for stat in stats
            if any(np.any(levels.get(of, stat.column) != 0) for of in levels.classes)
        }
        found += [
            Chart(f"levels-{column}", stat.help[:1].upper() + stat.help[1:], _level_drawer(levels, stat))
            for column, stat in shown.items()
        ]
    return found


def delay_charts(run: RunTables) -> list[Chart]:
    """The distributions of delays of a run; none if it has no packets."""
    titles = {"queueing": "Distribution of the queueing delay", "one-way": "Distribution of the one-way delay"}
    found = {kind: list(delays.distributions(run.table("delays"), kind)) for kind in titles}
    return [
        Chart(f"distribution-{kind}", title, _distribution_drawer(found[kind]), from_zero=False)
        for kind, title in titles.items()
        if found[kind]
    ]


_SHORTEST_MS = 0.01
"""Delays below are drawn here, as a logarithmic axis has no 0."""


def _distribution_drawer(shown: Sequence[delays.Distribution]) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        import numpy as np

        left_out = len(shown) - _MOST_CLASSES
        least, most = math.inf, 0.0
        for one in shown[:_MOST_CLASSES]:
            delay_ms = np.maximum(one.upper_s * 1e3, _SHORTEST_MS)
            axes.plot(delay_ms, one.cdf() * 100, drawstyle="steps-post", label=_label(one.name))
            least, most = min(least, float(delay_ms[0])), max(most, float(delay_ms[-1]))
        if most > 10 * least:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(xlabel="delay (ms)", ylabel="packets with at most this delay (%)")
        axes.set_ylim(0, 101)
        _legend(axes, left_out)

    return draw


def _beam_charts(run: RunTables) -> list[Chart]:
    """The charts of a beam; none without one."""
    channel = _Classes(run, "channel", ["rate_bps"])
    if not channel.any:
        return []
    return [
        Chart("channel", "Rate that its channel gives each terminal", lambda axes: _channel(axes, run, channel)),
        Chart("carrier", "Time the carrier sends, and terminals in outage", lambda axes: _carrier(axes, run)),
        Chart("terminals", "What each terminal got of the rate its channel gave", lambda axes: _terminals(axes, run)),
    ]


def _channel(axes: Axes, run: RunTables, channel: _Classes) -> None:
    for name in channel.classes:
        rate = channel.get(name, "rate_bps") / 1e6
        axes.plot(*_steps(channel.times(name), rate, run.simulated_s), drawstyle="steps-post", label=_label(name))
    axes.set(xlabel="time (s)", ylabel="rate (Mbit/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, channel.left_out)


def _carrier(axes: Axes, run: RunTables) -> None:
    shown = {"occupancy": "carrier sends", "outage": "terminals in outage"}
    carrier = _outline(run, "carrier", list(shown))
    for column, label in shown.items():
        part = carrier.get(column) * 100
        axes.plot(*_steps(carrier.get("t_s"), part, run.simulated_s), drawstyle="steps-post", label=label)
    axes.set(xlabel="time (s)", ylabel="share (%)")
    axes.set_ylim(0, 105)
    _legend(axes, 0)


def _terminals(axes: Axes, run: RunTables) -> None:
    import numpy as np

    if "terminals" in run.tables and "classes" in run.tables:
        given = run.table("terminals")["channel_rate_bps"].to_numpy().astype(float) / 1e6
        got = run.table("classes")["rate_bps"].to_numpy().astype(float) / 1e6
        airtime = run.table("terminals")["airtime"].to_numpy().astype(float)
        axes.plot(given, got, "o", markersize=3, label="rate")
        # On this line each terminal would get the same time.
        ends = np.array([0.0, float(np.nanmax(given))])
        axes.plot(ends, ends * np.nanmean(airtime), color="0.6", linewidth=1, label="equal time")
    axes.set(xlabel="rate its channel gives, alone (Mbit/s)", ylabel="rate (Mbit/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, 0)


def _rates(axes: Axes, run: RunTables, series: _Classes) -> None:
    if "link" in run.tables:
        link = _outline(run, "link", ["capacity_bps"])
        steps = _steps(link.get("t_s"), link.get("capacity_bps") / 1e6, run.simulated_s)
        axes.fill_between(*steps, step="post", color="0.9", label="capacity", linewidth=0)
    for name in series.classes:
        rate = series.get(name, "sent_bps") / 1e6
        axes.plot(*_steps(series.times(name), rate, run.simulated_s), drawstyle="steps-post", label=_label(name))
    axes.set(xlabel="time (s)", ylabel="rate (Mbit/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


def _delays(axes: Axes, series: _Classes) -> None:
    for name in series.classes:
        axes.plot(series.times(name), series.get(name, "delay_mean_s") * 1e3, label=_label(name))
    axes.set(xlabel="time (s)", ylabel="delay (ms)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


def _drops(axes: Axes, run: RunTables, series: _Classes) -> None:
    import numpy as np

    interval_s = run.scenario.interval_s
    for name in series.classes:
        gone = np.sum([series.get(name, column) for column in _GONE], axis=0) / interval_s
        axes.plot(*_steps(series.times(name), gone, run.simulated_s), drawstyle="steps-post", label=_label(name))
    axes.set(xlabel="time (s)", ylabel="drops and losses (packets/s)")
    axes.set_ylim(bottom=0)
    _legend(axes, series.left_out)


_GONE = ("dropped_limit_pkts", "dropped_policy_pkts", "lost_link_pkts")


def _level_drawer(levels: _Classes, stat: Statistic) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        import numpy as np
        from matplotlib.ticker import EngFormatter, MaxNLocator

        for name in levels.classes:
            values = levels.get(name, stat.column)
            if np.any(values != 0):
                axes.plot(levels.times(name), values, drawstyle="steps-post", label=_label(name))
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


def overview(run: RunTables) -> Figure:
    """All figures of a run below each other."""
    return _figure([*charts(run), *delay_charts(run)])


def _figure(shown: Sequence[Chart]) -> Figure:
    from matplotlib import rc_context

    from linkweir.picture import Picture

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
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name may use any script
        figure = _figure([chart])
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
