# SPDX-License-Identifier: BSD-3-Clause
"""How the calls of a run sound over time: MOS of flows with play-out buffers."""

from __future__ import annotations

from linkweir import quality
from linkweir.panels.panel import Line, Panel
from linkweir.tables.run_tables import RunTables

_MOST_CALLS = 40
_MOST_VALUES = 40_000


def calls(run: RunTables) -> list[Panel]:
    """One panel; none if no flow has a play-out buffer or no codec can be rated."""
    import numpy as np

    if "voice" not in run.tables:
        return []
    found: dict[str, dict[float, float]] = {}
    rated = quality.intervals(run)
    columns = (rated[name].to_pylist() for name in ("t_s", "flow", "buffer", "codec", "mos"))
    for t_s, flow, buffer, codec, mos in zip(*columns, strict=True):
        if mos is not None:
            found.setdefault(f"{flow}, {buffer}, {codec}", {})[t_s] = mos
    if not found:
        return []
    drawn = dict(list(found.items())[:_MOST_CALLS])
    starts = sorted({t_s for values in drawn.values() for t_s in values})
    step = max(1, -(-len(starts) * len(drawn) // _MOST_VALUES))
    lines = []
    for label, values in drawn.items():
        means = [
            _mean([values[t] for t in starts[at : at + step] if t in values]) for at in range(0, len(starts), step)
        ]
        lines.append(Line(label, np.array([*means, means[-1]])))
    left_out = len(found) - len(drawn)
    width_s = (starts[1] - starts[0]) * step if len(starts) > 1 else run.simulated_s - starts[0]
    note = f"Each value is the E-model's (ITU-T G.107) over {width_s:g} s; the table of calls says how it is made up."
    if left_out:
        note += f" {left_out:,} more calls are in the table only."
    x = np.append(starts[::step], max(run.simulated_s, starts[-1]))
    if x[0] > 0:  # as the other panels over time begin
        x = np.append(0.0, x)
        lines = [Line(line.label, np.append(np.nan, line.y)) for line in lines]
    return [Panel("mos", "How the calls sound", x, "time (s)", "MOS, 1 to 4.5", lines, y_range=(1.0, 4.5), note=note)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
