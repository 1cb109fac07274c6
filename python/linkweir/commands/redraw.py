# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir report` for sweeps, comparisons and yardsticks, which have a report of their own."""

from __future__ import annotations

from pathlib import Path

from linkweir.commands.compare import show
from linkweir.commands.sweep import show_sweep
from linkweir.commands.yardstick import show_yardstick
from linkweir.comparison.outcome import Comparison
from linkweir.directories.provenance import REPORT
from linkweir.sweeps.directory import COMPARISON, YARDSTICK
from linkweir.sweeps.outcome import Sweep
from linkweir.yardstick.outcome import Yardstick


def redraw(directory: Path, *, wide: bool, as_json: bool) -> None:
    """Writes the report of a sweep, a comparison or a yardstick again, from its data set."""
    if (directory / COMPARISON).exists():
        comparison = Comparison.load(directory)
        comparison.write()
        show(comparison, as_json=as_json, wide=wide)
        return
    if (directory / YARDSTICK).exists():
        yardstick = Yardstick.load(directory)
        yardstick.write()
        show_yardstick(yardstick, directory, as_json=as_json, wide=wide)
        return
    sweep = Sweep.load(directory)
    if sweep.runs_done:
        sweep.report(directory / REPORT)
    show_sweep(sweep, as_json=as_json)
