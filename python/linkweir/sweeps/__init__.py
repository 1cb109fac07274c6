# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: run many variants of a scenario, each with many seeds, here or on a cluster, and write one data set.

>>> import linkweir
>>> plan = {
...     "scenario": {
...         "duration": "1s",
...         "link": {"rate": "1Mbit"},
...         "scheduler": {"policy": "fifo"},
...         "class": [{"name": "all"}],
...         "flow": [{"name": "bulk", "class": "all", "kind": "greedy"}],
...     },
...     "grid": {"link.rate": ["1Mbit", "2Mbit"]},
... }
>>> data = linkweir.sweep(plan, jobs=1).table.to_pylist()
>>> [(row["link.rate_bps"], round(row["rate_bps"] / 1e6)) for row in data if row["scope"] == "class"]
[(1000000.0, 1), (2000000.0, 2)]
"""

from __future__ import annotations

from linkweir.sweeps.cluster import DaskCluster
from linkweir.sweeps.execute import Executor, run_plan, sweep
from linkweir.sweeps.job import Answer, Job, work
from linkweir.sweeps.local import LocalProcesses
from linkweir.sweeps.outcome import Failure, Sweep, SweepInterrupted
from linkweir.sweeps.plan import Case, Plan, Run

__all__ = [
    "Answer",
    "Case",
    "DaskCluster",
    "Executor",
    "Failure",
    "Job",
    "LocalProcesses",
    "Plan",
    "Run",
    "Sweep",
    "SweepInterrupted",
    "run_plan",
    "sweep",
    "work",
]
