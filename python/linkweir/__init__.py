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

Running:

- `run`: simulates a scenario.
- `run_many`: simulates several at a time, results in memory.
- `compare`: runs a scenario under several policies, and says which kept which promise.
- `sweep`: runs many variants of a scenario, each with many seeds, and writes one data set.
- `Scenario`: what to simulate, read from a file, a text or a dict and checked.
- `Comparison`: what a comparison gave: a table with intervals, verdicts, a report.
- `Result`: what a run gave: tables, a summary, warnings, a figure.
- `Link`: a link for a program's own packets, without a clock.
- `Received`: a packet that has arrived over a `Link`.
- `Dropped`: a packet that a `Link` dropped or lost.

Models and lists:

- `policies`: all scheduling policies, each a `Policy`.
- `Policy`: name and meaning of a policy, its parameters and what it shows over time.
- `Parameter`: a key of ``[scheduler]`` or ``[[class]]``: unit, range, default.
- `Statistic`: a column that a policy adds to the table `levels`.
- `delays`: distributions of delays, merged over runs, and their quantiles (module).
- `quality`: how conversations sound and how fair shares are (module).
- `traces`: capacities over time, and generators of some (module).

Errors:

- `Error`: base of every error below.
- `ScenarioError`: a scenario, or a file it names, is wrong.
- `PlanError`: a plan of a sweep is wrong.
- `DirectoryError`: a directory of results cannot be made, or is not what it should be.
- `TableError`: there is no table of this name.
- `RunError`: a run failed although its scenario is valid.
- `ExecutorError`: a sweep's executor has no workers, or lost them.

Ctrl-C, which is no `Error`:

- `Interrupted`: ended a run; it holds what was recorded.
- `SweepInterrupted`: ended a sweep or a comparison; it holds what was done.

`linkweir.sweeps` has the parts of a sweep: plans, executors and outcomes. `__version__` is the version.
"""

from __future__ import annotations

import sys

from linkweir import delays, quality, sweeps, traces
from linkweir._native import __version__
from linkweir.comparison import Comparison, compare
from linkweir.fault import (
    DirectoryError,
    Error,
    ExecutorError,
    PlanError,
    RunError,
    ScenarioError,
    TableError,
)
from linkweir.links import Dropped, Link, Received
from linkweir.runs.result import Interrupted, Result
from linkweir.runs.simulate import run, run_many
from linkweir.scenarios.policy import Parameter, Policy, Statistic, policies
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps import SweepInterrupted, sweep

__all__ = [
    "Comparison",
    "DirectoryError",
    "Dropped",
    "Error",
    "ExecutorError",
    "Interrupted",
    "Link",
    "Parameter",
    "PlanError",
    "Policy",
    "Received",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Statistic",
    "SweepInterrupted",
    "TableError",
    "__version__",
    "compare",
    "delays",
    "policies",
    "quality",
    "run",
    "run_many",
    "sweep",
    "traces",
]

# Earlier versions had `linkweir.sweeps` under the name of the function. `from linkweir.sweep.plan import Plan` still
# works, with the same module: Python would load it again under the earlier name, with classes of its own.
sys.modules.update(
    {
        name.replace(sweeps.__name__, "linkweir.sweep", 1): module
        for name, module in sys.modules.items()
        if name == sweeps.__name__ or name.startswith(f"{sweeps.__name__}.")
    }
)
