# SPDX-License-Identifier: BSD-3-Clause
"""Rates with the capacity, queueing delays, and packets dropped and lost, over time."""

from __future__ import annotations

from linkweir.panels.panel import SHORTEST_MS, Line, Panel, held, largest, logarithmic, prefixed, to_end
from linkweir.panels.reservation import reserved_bps
from linkweir.panels.selection import SHOWN, ClassColumns, Selection, columns_of
from linkweir.tables.run_tables import LinkTables, RunTables

_FLAT = 0.25
"""Rates below this part of the capacity cannot be told apart under it."""
_GONE = ("dropped_limit_pkts", "dropped_policy_pkts", "lost_link_pkts")
_PROMISED = "Dotted: the rate that a class reserves, of which the link's overhead is a part."
_TOO_OLD = "dropped_age_pkts"
"""Of runs with a max_age; the results of older versions have no such column."""
_ABSENT = "absent_pkts"
"""Of links of a constellation; the laboratory's networks have no such column."""


def series(run: RunTables, selection: Selection) -> list[Panel]:
    """The panels that every run has."""
    gone = _gone(run)
    found = ClassColumns(run, "series", ["sent_bps", "delay_mean_s", *gone], selection)
    return [_rates(run, found, selection), _delays(run, found), _drops(run, found)] if found.any else []


def _gone(run: RunTables) -> list[str]:
    """The columns of packets that did not arrive."""
    columns = [*_GONE]
    if "\nmax_age = " in run.scenario.resolved:
        columns.append(_TOO_OLD)
    if isinstance(run, LinkTables) and run.comes_and_goes:
        columns.append(_ABSENT)
    return columns


def _rates(run: RunTables, found: ClassColumns, selection: Selection) -> Panel:
    rates = {name: found.get(name, "sent_bps") for name in found.classes}
    capacity, note = None, ""
    if "link" in run.tables:
        capacity = columns_of(run, "link", ["capacity_bps"], selection).get("capacity_bps")
    scale, unit = prefixed(largest([*rates.values(), *([] if capacity is None else [capacity])]), "bit/s")
    lines = [Line(name, held(rate * scale), name) for name, rate in rates.items()]
    promised = reserved_bps(run.scenario, found.times)
    lines += [
        Line(f"{name}, promised", held(promised[name] * scale), name, look="lower")
        for name in rates
        if name in promised
    ]
    if promised:
        note = f"{_PROMISED} "
    if capacity is not None and len(capacity) == len(found.times):
        shown = [rates[name] for name in found.classes[:SHOWN]]
        flat = largest(shown) < _FLAT * largest([capacity])
        lines.insert(0, Line("capacity", held(capacity * scale), look="area", off=flat))
        if flat:
            note += "The capacity is hidden, as these rates would be flat under it; its key shows it."
    title = "Rate of each class and capacity of the link"
    x = to_end(found.times, run.simulated_s)
    return Panel("rates", title, x, "time (s)", f"rate ({unit})", lines, note=note.strip())


def _delays(run: RunTables, found: ClassColumns) -> Panel:
    delays = {name: found.get(name, "delay_mean_s") * 1e3 for name in found.classes}
    lines = [Line(name, held(logarithmic(delay_ms)), name) for name, delay_ms in delays.items()]
    below = any((delay_ms < SHORTEST_MS).any() for delay_ms in delays.values())
    note = f"Delays below {SHORTEST_MS:g} ms are drawn at {SHORTEST_MS:g} ms." if below else ""
    title = "Mean queueing delay of the packets sent"
    x = to_end(found.times, run.simulated_s)
    return Panel("delays", title, x, "time (s)", "delay (ms)", lines, log_y=True, note=note)


def _drops(run: RunTables, found: ClassColumns) -> Panel:
    interval_s = run.scenario.interval_s
    lines = []
    for name in found.classes:
        first, *others = _gone(run)
        gone = sum((found.get(name, column) for column in others), found.get(name, first))
        lines.append(Line(name, held(gone / interval_s), name))
    x = to_end(found.times, run.simulated_s)
    return Panel("drops", "Packets dropped and lost", x, "time (s)", "rate (packets/s)", lines)
