# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a sweep: a measure of each class over a key of the plan, with intervals, and distributions of delay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linkweir import delays
from linkweir.panels.plot import MARKS, Chart, legend_beside
from linkweir.sweeps.means import INTERVAL
from linkweir.sweeps.measures import MEASURES

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

    from linkweir.columns import Values

_DRAWN = ("rate", "loss", "delay_p50", "delay_p99")
_MOST_LINES = 12
_MOST_CLASSES = 6
_LEAST_MS = 0.1
_POINTS = 400
_SHOWN_UNITS = (
    ("_bps", "Mbit/s", 1e-6),
    ("_s", "s", 1.0),
    ("_bytes", "bytes", 1.0),
    ("_pkts", "packets", 1.0),
    ("_bits", "bits", 1.0),
    ("_fraction", "%", 100.0),
    ("_bd", "MBd", 1e-6),
)
_UNITS = tuple(suffix for suffix, _, _ in _SHOWN_UNITS)


def charts(means: pa.Table) -> Iterator[Chart]:
    """A chart of each measure; none for a plan without keys or with one case.

    Args:
        means: the means of a sweep.
    """
    rows = [row for row in means.to_pylist() if row.get("scope") == "class"] if "scope" in means.column_names else []
    if len({row["case"] for row in rows}) < 2:
        return
    names = means.column_names
    keys = [name for name in names[names.index("case") + 1 : names.index("scope")] if name != "label"]
    across = _across(rows, keys)
    lines = _lines(rows, keys, across)
    for key in _DRAWN:
        measure = MEASURES[key]
        if measure.column in names and any(row[measure.column] is not None for row in rows):
            title = f"{measure.words[:1].upper()}{measure.words[1:]} of each class"
            yield Chart(key, title, _drawer(lines, across, key))


def _across(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    """The key on the horizontal axis: the number that has most values, else the case."""
    numbers = {
        key: len({row[key] for row in rows})
        for key in keys
        if all(isinstance(row[key], (int, float)) and not isinstance(row[key], bool) for row in rows)
    }
    best = max(numbers, key=lambda key: numbers[key], default="case")
    return best if numbers.get(best, 0) > 1 else "case"


def _lines(rows: Sequence[dict[str, Any]], keys: Sequence[str], across: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of one line each, by what tells the line from the others."""
    written = [key for key in keys if not any(key == f"{other}{unit}" for other in keys for unit in _UNITS)]
    varying = [
        key
        for key in written
        if len({str(row[key]) for row in rows}) > 1 and not (across == key or across.startswith(f"{key}_"))
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        link = row.get("link")
        name = str(row["class"]) if link is None else f"{link}: {row['class']}"
        words = [name, *(_pair(key, row[key]) for key in varying if across != "case")]
        found.setdefault(", ".join(words), []).append(row)
    return found


def _pair(key: str, value: object) -> str:
    """A key and its value in a legend."""
    return f"{key} unset" if value is None else f"{key} = {value}"


def _axis(across: str) -> tuple[str, float]:
    """The label of the horizontal axis, and what its values are multiplied with.

    >>> _axis("link.rate_bps"), _axis("flow.web.count")
    (('link.rate (Mbit/s)', 1e-06), ('flow.web.count', 1.0))
    """
    for suffix, unit, scale in _SHOWN_UNITS:
        if across.endswith(suffix):
            return f"{across.removesuffix(suffix)} ({unit})", scale
    return across, 1.0


def _drawer(lines: dict[str, list[dict[str, Any]]], across: str, key: str) -> Callable[[Axes], None]:
    measure = MEASURES[key]
    label_across, scale = _axis(across)

    def draw(axes: Axes) -> None:
        for number, (label, rows) in enumerate(list(lines.items())[:_MOST_LINES]):
            ordered = sorted((row for row in rows if row[measure.column] is not None), key=lambda row: row[across])
            axes.errorbar(
                [row[across] * scale for row in ordered],
                [row[measure.column] * measure.scale for row in ordered],
                yerr=[(row[f"{measure.column}{INTERVAL}"] or 0.0) * measure.scale for row in ordered],
                marker=MARKS[number % len(MARKS)],
                markersize=4,
                linestyle="none" if across == "case" else "-",
                capsize=2,
                label=label,
            )
        axes.set(xlabel=label_across, ylabel=measure.heading)
        axes.set_ylim(bottom=0)
        legend_beside(axes, len(lines) - _MOST_LINES)

    return draw


# --- Distributions ----------------------------------------------------------------------------------------------------


def distributions(table: pa.Table, keys: Sequence[str]) -> Iterator[Chart]:
    """A chart of the queueing delay of each class with a line for each case.

    Args:
        table: the distributions of a sweep.
        keys: columns of the plan that tell its cases apart.
    """
    import pyarrow.compute as pc

    by_class: dict[str, dict[str, delays.Distribution]] = {}
    cases = table["case"].unique().to_pylist() if "case" in table.column_names else []
    for case in cases[:_MOST_LINES]:
        rows = table.filter(pc.equal(table["case"], case))
        label = ", ".join(_pair(key, rows[key][0].as_py()) for key in keys) or f"case {case}"
        for one in delays.distributions(rows, "queueing"):
            if not one.flow:
                by_class.setdefault(one.of, {})[label] = one
    for number, (name, found) in enumerate(list(by_class.items())[:_MOST_CLASSES]):
        title = f"Distribution of the queueing delay of class {' '.join(name.split())}"
        yield Chart(f"delay-{number}", title, _cumulative_drawer(found, len(cases) - _MOST_LINES), from_zero=False)


def _cumulative_drawer(found: dict[str, delays.Distribution], left_out: int) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for label, one in found.items():
            cumulative(axes, one, label)
        delay_axis(axes)
        axes.set(xlabel="queueing delay (ms)", ylabel="packets (%)")
        legend_beside(axes, left_out, " cases")

    return draw


def cumulative(axes: Axes, found: delays.Distribution, label: str, **look: Any) -> None:
    """Draws the part of the packets, %, up to each delay, ms.

    Delays below the first one of the axis are drawn at its edge: many packets do not wait at all.
    """
    import numpy as np

    delay_ms = np.maximum(found.upper_s * 1e3, _LEAST_MS)
    part = found.cdf() * 100
    kept = thinned(part, _POINTS)
    axes.plot(
        np.concatenate([[_LEAST_MS], delay_ms[kept]]),
        np.concatenate([[part[delay_ms <= _LEAST_MS].max(initial=0.0)], part[kept]]),
        linewidth=1.6,
        label=label,
        **look,
    )


def thinned(part: Values, points: int) -> Values:
    """Indices of a rising curve that are enough to draw it: one in each of so many steps, and the last.

    >>> import numpy as np
    >>> thinned(np.array([0.0, 0.1, 0.2, 50.0, 50.1, 100.0]), 10).tolist()
    [0, 3, 5]
    """
    import numpy as np

    steps = np.floor(part * points / 100.0)
    first = np.flatnonzero(np.diff(steps, prepend=-1.0))
    return np.unique(np.append(first, len(part) - 1))


def delay_axis(axes: Axes) -> None:
    """The axes of distributions of delays."""
    logarithmic(axes)
    axes.set_xlim(left=_LEAST_MS)
    axes.set_ylim(0, 101)


def logarithmic(axes: Axes) -> None:
    """Powers of ten as plain numbers: the style draws no formulas."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
