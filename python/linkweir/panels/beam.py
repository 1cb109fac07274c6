# SPDX-License-Identifier: BSD-3-Clause
"""The panels of a beam: the channels of its terminals, and what each terminal got."""

from __future__ import annotations

from linkweir.columns import floats
from linkweir.panels.panel import Line, Panel, held, largest, prefixed, to_end
from linkweir.panels.selection import ClassColumns, Selection, columns_of
from linkweir.tables.run_tables import RunTables


def beam(run: RunTables, selection: Selection) -> list[Panel]:
    """Three panels; none without a beam."""
    channel = ClassColumns(run, "channel", ["rate_bps"], selection)
    if not channel.any:
        return []
    found = [_channel(run, channel), _carrier(run, selection)]
    if "terminals" in run.tables and "classes" in run.tables:
        found.append(_terminals(run))
    return found


def _channel(run: RunTables, channel: ClassColumns) -> Panel:
    rates = {name: channel.get(name, "rate_bps") for name in channel.classes}
    scale, unit = prefixed(largest(list(rates.values())), "bit/s")
    lines = [Line(name, held(rate * scale), name) for name, rate in rates.items()]
    x = to_end(channel.times, run.simulated_s)
    return Panel("channel", "Rate that its channel gives each terminal", x, "time (s)", f"rate ({unit})", lines)


def _carrier(run: RunTables, selection: Selection) -> Panel:
    shown = {"occupancy": "carrier sends", "outage": "terminals in outage"}
    carrier = columns_of(run, "carrier", list(shown), selection)
    lines = [Line(label, held(carrier.get(column) * 100)) for column, label in shown.items()]
    x = to_end(carrier.get("t_s"), run.simulated_s)
    title = "Time the carrier sends, and terminals in outage"
    return Panel("carrier", title, x, "time (s)", "part (%)", lines, y_range=(0.0, 100.0))


def _terminals(run: RunTables) -> Panel:
    """The rate of each terminal over that of its channel, with the line on which all would get the same time."""
    import numpy as np

    given_bps = floats(run.table("terminals")["channel_rate_bps"])
    got_bps = floats(run.table("classes")["rate_bps"])
    airtime = floats(run.table("terminals")["airtime"])
    scale, unit = prefixed(largest([given_bps, got_bps]), "bit/s")
    order = np.argsort(given_bps, kind="stable")
    x = np.append(0.0, given_bps[order] * scale)
    lines = [
        Line("rate of a terminal", np.append(np.nan, got_bps[order] * scale), look="points"),
        Line("equal time", x * float(np.nanmean(airtime)), look="guide"),
    ]
    return Panel(
        "terminals",
        "What each terminal got of the rate its channel gave",
        x,
        f"rate its channel gives, alone ({unit})",
        f"rate ({unit})",
        lines,
        over_time=False,
        steps=False,
    )
