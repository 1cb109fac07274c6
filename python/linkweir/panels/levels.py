# SPDX-License-Identifier: BSD-3-Clause
"""What the policy shows of each class over time: credits with their bounds, and parts of the time in a state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from linkweir.panels.panel import Line, Panel, held, largest, prefixed, to_end
from linkweir.panels.reservation import bounds_bits
from linkweir.panels.selection import ClassColumns, Selection
from linkweir.scenarios.policy import Statistic, policies
from linkweir.tables.run_tables import RunTables

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

_STATE = "1 while "
"""The help of a column that is 1 in a state, and 0 otherwise, begins so."""
_LEAST_INSTANTS = 10
"""A part of the time comes from so many instants at least."""
_MOST_PARTS = 100
_UNITS = {"bits": "bit", "bytes": "B", "pkts": "packets", "bps": "bit/s", "s": "s", "ns": "ns"}
"""Units by the suffix of a column."""
_MEANS = {"bytes": "bit/s", "airtime": "ppm of the time", "packets": "packets per 1000 s"}
_SCALED = ("bit", "B", "bit/s")


def levels(run: RunTables, selection: Selection) -> list[Panel]:
    """A panel for each statistic of the policy that is ever other than 0."""
    stats = [stat for policy in policies() if policy.name == run.scenario.policy for stat in policy.stats]
    if not stats:
        return []
    found = ClassColumns(run, "levels", [stat.column for stat in stats], selection)
    panels = []
    for stat in stats:
        shown = [name for name in found.classes if (found.get(name, stat.column) != 0).any()]
        if shown:
            make = _part if stat.help.startswith(_STATE) else _level
            panels.append(make(run, found, stat, shown))
    return panels


def _level(run: RunTables, found: ClassColumns, stat: Statistic, shown: list[str]) -> Panel:
    values = {name: found.get(name, stat.column) for name in shown}
    bounds = bounds_bits(run.scenario, found.times) if stat.column == "credit_bits" else {}
    words, unit = _words(stat)
    if not unit:
        unit = _unit_of_mean(run)
    scale = 1.0
    if unit in _SCALED:
        known = [bound for name in shown for bound in bounds.get(name, ())]
        scale, unit = prefixed(largest([*values.values(), *known]), unit)
    lines = []
    note = ""
    for name, level in values.items():
        lines.append(Line(name, level * scale, name))
        if name in bounds:
            lower, upper = bounds[name]
            lines += [
                Line(f"{name}, LM", upper * scale, name, look="upper"),
                Line(f"{name}, LR", lower * scale, name, look="lower"),
            ]
            note = "Thin dashed line: LM, from which on the class is at its low level. Thin dotted line: LR, at which "
            note += "it is back at its high level."
    says = stat.help.split(":")[0].replace(" lr ", " LR ")
    title = says if says.startswith(words) else f"{words}: {says}"
    title = f"{title[:1].upper()}{title[1:]}"
    y_label = f"{words} ({unit})" if unit else words
    x = found.times
    if x[-1] < run.simulated_s:  # the last instant was thinned out
        x, lines = to_end(x, run.simulated_s), [replace(line, y=held(line.y)) for line in lines]
    return Panel(f"levels-{stat.column}", title, x, "time (s)", y_label, lines, from_zero=False, note=note)


def _part(run: RunTables, found: ClassColumns, stat: Statistic, shown: list[str]) -> Panel:
    """The part of the time in a state, from the instants at which the simulator looks."""
    times = found.times
    each = _instants_per_row(run, times)
    count = max(-(-_LEAST_INSTANTS // each), -(-len(times) // _MOST_PARTS))
    starts = times[: max(len(times) - 1, 1) : count]
    lines = [Line(name, held(_parts(found.get(name, stat.column), count, len(starts))), name) for name in shown]
    state = stat.help.removeprefix(_STATE).replace("the queue is", "the class is")
    note = (
        f"Each value is the part of {count * each:,} instants, {run.scenario.interval_s:g} s apart, in which {state}."
    )
    return Panel(
        f"levels-{stat.column}",
        f"Part of the time in which {state}",
        to_end(starts, run.simulated_s),
        "time (s)",
        "part of the time (%)",
        lines,
        y_range=(0.0, 100.0),
        note=note,
    )


def _instants_per_row(run: RunTables, times: Values) -> int:
    """How many instants one row of the thinned table stands for."""
    return 1 if len(times) < 2 else max(1, round((times[1] - times[0]) / run.scenario.interval_s))


def _parts(values: Values, count: int, parts: int) -> Values:
    import numpy as np

    return np.array([100 * float(values[part * count : (part + 1) * count].mean()) for part in range(parts)])


def _unit_of_mean(run: RunTables) -> str:
    """The unit of what policies that serve in proportion show, by their key ``unit``; empty for other policies."""
    scheduler = run.scenario.native.written()["scheduler"]
    return _MEANS.get(str(scheduler.get("unit")), "")


def _words(stat: Statistic) -> tuple[str, str]:
    """The name of a statistic in words, and its unit.

    >>> _words(Statistic("credit_bits", "bits sent ahead", "bits")), _words(Statistic("mean", "mean service", "number"))
    (('credit', 'bit'), ('mean', ''))
    """
    words = stat.column.split("_")
    if len(words) > 1 and words[-1] in _UNITS:
        return " ".join(words[:-1]), _UNITS[words[-1]]
    return " ".join(words), ""
