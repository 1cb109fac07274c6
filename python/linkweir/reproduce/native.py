# SPDX-License-Identifier: BSD-3-Clause
"""Where figures meet the simulator."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import Any

import linkweir
from linkweir import _native
from linkweir.reproduce.execute import Runner
from linkweir.reproduce.figure import Scenario, Tables


def runner(jobs: int | None) -> Runner:
    """Runs scenarios in parallel, `jobs` at a time."""

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        linkweir.run_many(scenarios, jobs=jobs, on_result=take)

    return run


def provenance() -> dict[str, Any]:
    """What ran, and where."""
    return {
        "linkweir": linkweir.__version__,
        "commit": _native.commit,
        "machine": f"{platform.system()} {platform.machine()}",
    }
