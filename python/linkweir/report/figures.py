# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a run as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkweir.directories.provenance import FIGURES, write_whole
from linkweir.panels.plot import charts, delay_charts, drawn
from linkweir.tables.run_tables import RunTables


def write_figures(run: RunTables, formats: Sequence[str], directory: Path) -> None:
    """Draws the figures of a run into its directory.

    Args:
        run: the run.
        formats: some of `linkweir.panels.plot.FORMATS`; nothing is drawn for none.
        directory: the run directory.
    """
    if not formats:
        return
    (directory / FIGURES).mkdir(exist_ok=True)
    for chart in (*charts(run), *delay_charts(run)):
        for form in formats:
            write_whole(directory / FIGURES / f"{chart.name}.{form}", drawn(chart, form))
