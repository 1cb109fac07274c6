# SPDX-License-Identifier: BSD-3-Clause
"""How much one run says: Linkweir's goodput over many runs whose transfers start up to 2 ms later than written.

Which packet a full queue drops depends on nanoseconds, so such runs differ as those of two simulators do that model the
same. The packets of open sources are the same in all.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import network_laboratory
import network_scenarios
import report
from linkweir import _native

LATEST_NS = 2_000_000
COLUMNS = ["flow", "seed", "as written, Mbit/s", "mean", "deviation %", "least", "most"]


def shifted(drawn: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """The scenario with its transfers a little later."""
    flows = []
    for flow in drawn["flow"]:
        if flow["kind"] == "tcp":
            start_ns = round(_native.quantity(flow.get("start", "0s"), "time") * 1e9)
            flows.append({**flow, "start": f"{start_ns + draw.randrange(LATEST_NS)}ns"})
        else:
            flows.append(flow)
    return {**drawn, "flow": flows}


def measure(case: str, form: str, seeds: int, runs: int, run_linkweir: Any, group_of: Any) -> list[dict[str, Any]]:
    """Goodput by group of flows and seed: as written, then with so many shifts; with the kernel's tick."""
    rows = []
    for seed in range(1, seeds + 1):
        print(f"{case}, {form}, shifted: seed {seed} of {seeds}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            scenario = network_scenarios.scenario_of(case, form, seed)
            drawn = network_laboratory.with_tick(network_scenarios.recorded(scenario, scratch))
            draws = [drawn, *(shifted(drawn, random.Random(number)) for number in range(runs))]
            found = [run_linkweir(one, scratch)[0] for one in draws]
        for group in dict.fromkeys(map(group_of, found[0])):
            goodput = [
                sum(row["goodput_bps"] for flow, row in flows.items() if group_of(flow) == group) for flows in found
            ]
            rows.append({"case": case, "form": form, "flow": group, "seed": seed, "goodput_bps": goodput})
    return rows


def cells_of(row: Mapping[str, Any]) -> list[str]:
    written, *others = (bps / 1e6 for bps in row["goodput_bps"])
    mean = statistics.fmean(others)
    values = [f"{value:.3f}" for value in (written, mean)]
    deviation = f"{statistics.stdev(others) / mean * 100:.1f}"
    return [row["flow"], str(row["seed"]), *values, deviation, f"{min(others):.3f}", f"{max(others):.3f}"]


def render(rows: Sequence[Mapping[str, Any]], markdown: bool) -> str:
    """A table for each network and form."""
    parts = []
    for case, form in dict.fromkeys((row["case"], row["form"]) for row in rows):
        mine = [row for row in rows if (row["case"], row["form"]) == (case, form)]
        title = f"{case}, {form}: {len(mine[0]['goodput_bps']) - 1} runs with shifted transfers"
        table = report.table(COLUMNS, map(cells_of, mine), markdown=markdown)
        parts.append((f"### {title}\n\n" if markdown else f"{title}\n") + table)
    return "\n".join(parts)
