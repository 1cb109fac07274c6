# SPDX-License-Identifier: BSD-3-Clause
"""What the charts of a run show, as numbers: the report and the figures for papers draw the same panels."""

from __future__ import annotations

from linkweir.panels.apart import told_apart
from linkweir.panels.beam import beam
from linkweir.panels.calls import calls
from linkweir.panels.distribution import distributions as distributions_of
from linkweir.panels.levels import levels
from linkweir.panels.panel import Line, Panel
from linkweir.panels.selection import SHOWN, Selection, select
from linkweir.panels.series import series
from linkweir.tables.run_tables import RunTables

__all__ = ["SHOWN", "Line", "Panel", "Selection", "distributions", "over_time", "select"]


def over_time(run: RunTables, selection: Selection) -> list[Panel]:
    """The panels of a run over its time, and those of a beam; panels without data are left out."""
    found = [*series(run, selection), *beam(run, selection), *levels(run, selection), *calls(run)]
    return [told_apart(panel) for panel in found]


def distributions(run: RunTables, selection: Selection) -> list[Panel]:
    """The distributions of delays of a run."""
    return [told_apart(panel) for panel in distributions_of(run, selection)]
