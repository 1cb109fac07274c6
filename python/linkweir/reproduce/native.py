# SPDX-License-Identifier: BSD-3-Clause
"""Where figures meet the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import linkweir
from linkweir.reproduce.execute import Runner
from linkweir.reproduce.figure import Scenario, Tables


def runner(jobs: int | None) -> Runner:
    """Runs scenarios in parallel, `jobs` at a time."""

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        linkweir.run_many(scenarios, jobs=jobs, on_result=take)

    return run
