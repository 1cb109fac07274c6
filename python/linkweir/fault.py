# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong besides `ScenarioError` and `RunError` of the native module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkweir.result import Result
    from linkweir.sweep.outcome import Sweep


class DirectoryError(Exception):
    """A run directory cannot be made or is not what it should be; the message says why and what to do."""


class PlanError(ValueError):
    """A plan of a sweep is wrong; the message names file, key and value, and says why and what to do."""


class ExecutorError(Exception):
    """Whoever does the runs of a sweep is not there or went away; the message says why and what to do."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep early.

    Attributes:
        sweep: the runs done until then, with ``status == "interrupted"``.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(f"interrupted after {sweep.runs_done} of {sweep.runs_planned} runs")
        self.sweep = sweep


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run early.

    Attributes:
        result: what was recorded until then, with ``status == "interrupted"``.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted at {result.simulated_s:g} s of {result.scenario.duration_s:g} s")
        self.result = result
