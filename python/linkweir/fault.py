# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong besides `ScenarioError` and `RunError` of the native module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkweir.result import Result


class DirectoryError(Exception):
    """A run directory cannot be made or is not what it should be; the message says why and what to do."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run early.

    Attributes:
        result: what was recorded until then, with ``status == "interrupted"``.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted at {result.simulated_s:g} s of {result.scenario.duration_s:g} s")
        self.result = result
