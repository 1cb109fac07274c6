# SPDX-License-Identifier: BSD-3-Clause
"""Runs the yardstick as a sweep, so that it is resumed, spread over processes or a cluster, and kept like one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from linkweir.comparison.execute import laboratory_at
from linkweir.sweeps.execute import Executor, of_client, run_and_write
from linkweir.sweeps.plan import Plan
from linkweir.yardstick.outcome import Yardstick
from linkweir.yardstick.plan import Facts, prepare

if TYPE_CHECKING:
    from distributed import Client


def measure(
    policies: Sequence[str] = (),
    *,
    cases: Sequence[str] = (),
    quick: bool = False,
    seeds: int | None = None,
    instructions: bool = False,
    out: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
    where: str = "simulator",
    kernel: str = "6.12",
) -> Yardstick:
    """Measures policies on the cases of the yardstick.

    Args:
        policies: names of policies, and files of users (``"mine.c"``, ``"mine.py"`` or ``"mine.py:Mine"``); files alone
            are measured beside the usual policies.
        cases: names of cases; all when empty.
        quick: few cases, with one load each.
        seeds: runs of each; 10 when None.
        instructions: those of each policy per packet are counted, by valgrind, which has to be installed.
        out: directory for the results and the page. An incomplete one that is there is resumed.
        client: a client of `dask.distributed`, whose cluster does the runs.
        jobs: processes of this machine; as many as there are processors when None.
        force: `out` may be another sweep, which is overwritten.
        progress: called after each run with how many are done, how many there are, and how many failed.
        where, kernel: as for `linkweir.compare`; with ``"virtual"``, `cases` names the cases.

    Raises:
        PlanError: a policy or a case is none, or a policy cannot run a case; nothing was run.
        ScenarioError: a file is no policy; nothing was run.
        DirectoryError, ExecutorError, SweepInterrupted: as for `linkweir.sweeps.run_plan`.

    >>> found = measure(["pss", "fifo"], cases=["media-long-tcp"], seeds=1, jobs=1)
    >>> pss, fifo = (found.row("media-long-tcp", "as written", policy) for policy in ("pss", "fifo"))
    >>> pss.found.values["urgent_p99"] < 0.02 < fifo.found.values["urgent_p99"]
    True
    """
    executor = of_client(client, jobs)
    laboratory = laboratory_at(where, kernel, client, jobs)
    plan, facts = prepare(
        policies, cases, seeds=seeds, quick=quick, instructions=instructions, jobs=jobs, laboratory=laboratory
    )
    return run_yardstick(plan, facts, laboratory or executor, out=out, force=force, progress=progress)


def run_yardstick(
    plan: Plan,
    facts: Facts,
    executor: Executor,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Yardstick:
    """Runs what was prepared; see `measure`."""
    return run_and_write(plan, executor, partial(Yardstick, facts), out=out, force=force, progress=progress)
