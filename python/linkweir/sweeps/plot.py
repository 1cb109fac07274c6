# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a sweep: a measure of each class over a key of the plan, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linkweir.measures import MEASURES
from linkweir.plot import Chart, svg
from linkweir.sweeps.means import INTERVAL

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

_DRAWN = ("rate", "loss", "delay_p50", "delay_p99")
_MOST_LINES = 12
_MARKS = ("o", "s", "^", "D", "v", "P")
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


def charts(means: pa.Table) -> Iterator[tuple[Chart, str]]:
    """A chart of each measure, and its SVG document; none for a plan without keys or with one case.

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
            chart = Chart(key, title, _drawer(lines, across, key))
            yield chart, svg(chart)


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
        words = [str(row["class"]), *(f"{key}={row[key]}" for key in varying if across != "case")]
        found.setdefault(", ".join(words), []).append(row)
    return found


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
                marker=_MARKS[number % len(_MARKS)],
                markersize=4,
                linestyle="none" if across == "case" else "-",
                capsize=2,
                label=label,
            )
        axes.set(xlabel=label_across, ylabel=measure.heading)
        axes.set_ylim(bottom=0)
        more = len(lines) - _MOST_LINES
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=f"and {more} more" if more > 0 else None)

    return draw
