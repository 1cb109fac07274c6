# SPDX-License-Identifier: BSD-3-Clause
"""Schedules packets onto links whose capacity changes: simulate, sweep, reproduce, plan.

A scenario says what to simulate, as a TOML file or as a dict with the same keys; `run` simulates it and returns tables.

>>> import linkweir
>>> scenario = {
...     "duration": "10s",
...     "link": {"rate": "20Mbit"},
...     "scheduler": {"policy": "drr"},
...     "class": [{"name": "af", "quantum": "3000B"}, {"name": "cs0", "quantum": "1500B"}],
...     "flow": [{"class": "af", "kind": "greedy"}, {"class": "cs0", "kind": "greedy"}],
... }
>>> result = linkweir.run(scenario)
>>> [round(rate / 1e6, 2) for rate in result.classes["rate_bps"].to_pylist()]
[13.33, 6.67]

Tables are `pyarrow.Table`, so `result.series.to_pandas()` and `polars.from_arrow(result.series)` work as they are.
"""

from __future__ import annotations

import sys

from linkweir import quality, sweeps, traces
from linkweir._native import __version__
from linkweir.fault import (
    DirectoryError,
    Error,
    ExecutorError,
    PlanError,
    RunError,
    ScenarioError,
    TableError,
)
from linkweir.policy import Parameter, Policy, Statistic, policies
from linkweir.result import Interrupted, Result
from linkweir.scenario import Scenario
from linkweir.simulate import run, run_many
from linkweir.sweeps import SweepInterrupted, sweep

__all__ = [
    "DirectoryError",
    "Error",
    "ExecutorError",
    "Interrupted",
    "Parameter",
    "PlanError",
    "Policy",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Statistic",
    "SweepInterrupted",
    "TableError",
    "__version__",
    "policies",
    "quality",
    "run",
    "run_many",
    "sweep",
    "traces",
]

# Earlier versions had `linkweir.sweeps` under the name of the function; `from linkweir.sweep import Plan` still works.
sys.modules["linkweir.sweep"] = sweeps
