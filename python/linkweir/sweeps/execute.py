# SPDX-License-Identifier: BSD-3-Clause
"""Runs a plan: an executor does the runs that are missing, and the data set is made of all runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from linkweir.fault import ExecutorError
from linkweir.sweeps.data import assembled, assembled_delays
from linkweir.sweeps.directory import SweepDirectory
from linkweir.sweeps.job import Answer, Job, KeptRun, read_run
from linkweir.sweeps.local import LocalProcesses
from linkweir.sweeps.outcome import Failure, Sweep, SweepInterrupted
from linkweir.sweeps.plan import Plan, Run

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client


class Executor(Protocol):
    """Does runs: on this machine, on a cluster, or in a test."""

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        """Does the runs and hands over an answer for each, in any order, from the calling thread."""


class Written(Protocol):
    """What is read out of a sweep, and kept beside it."""

    def write(self) -> None:
        """Writes it into the directory of the sweep."""


Kind = TypeVar("Kind", bound=Written)


def of_client(client: Client | None, jobs: int | None) -> Executor:
    """The executor that is named by one of the two.

    Args:
        client: a client of `dask.distributed`.
        jobs: processes of this machine; as many as there are processors when both are None.

    Raises:
        ValueError: both were given.
    """
    if client is None:
        return LocalProcesses(jobs)
    if jobs is not None:
        raise ValueError("give jobs or client, not both")
    from linkweir.sweeps.cluster import DaskCluster

    return DaskCluster(client)


@contextlib.contextmanager
def executor(jobs: int | None = None, address: str | None = None) -> Iterator[Executor]:
    """An executor for as long as the context lasts.

    Args:
        jobs: processes of this machine; as many as there are processors when None.
        address: scheduler of a Dask cluster that does the runs instead.

    Raises:
        ValueError: the address is none.
        ExecutorError: nothing answers there, or Dask is not installed.
    """
    if address is None:
        yield LocalProcesses(jobs)
        return
    from linkweir.sweeps.cluster import connected

    with connected(address) as cluster:
        yield cluster


class _Memory:
    """Keeps rows where there is no directory."""

    def __init__(self) -> None:
        self._runs: dict[int, KeptRun] = {}

    def add(self, run: Run, rows: bytes) -> None:
        self._runs[run.number] = read_run(rows)

    def read(self, run: Run) -> KeptRun | None:
        return self._runs.get(run.number)


def run_plan(
    plan: Plan,
    executor: Executor | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Runs a plan.

    Args:
        plan: what to run.
        executor: does the runs: `LocalProcesses` (as many as there are processors, when None) or `DaskCluster`.
        out: directory for the data set, made by the sweep. A sweep of the same plan that is there is resumed: only
            what is missing is run. Without it everything stays in memory.
        force: `out` may be a sweep of another plan, which is overwritten.
        progress: called after each run with how many are done, how many there are, and how many failed.

    Returns:
        The sweep. Runs that failed are in `Sweep.failures`; the others are in the data set. The same call repeats the
        failed ones.

    Raises:
        DirectoryError: `out` cannot be written, or holds something else; nothing was run.
        ExecutorError: the executor has no workers, or lost them; what was done is kept.
        SweepInterrupted: Ctrl-C; its `sweep` holds what was done.
    """
    if out is None:
        return _in_memory(plan, executor or LocalProcesses(), progress)
    directory = SweepDirectory(Path(out), plan, force=force)
    try:
        return _on_disk(plan, executor or LocalProcesses(), directory, progress)
    finally:
        directory.release()


def run_and_write(
    plan: Plan,
    executor: Executor,
    of: Callable[[Sweep], Kind],
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Kind:
    """Runs a plan and makes something of its sweep, which is written if there is a directory, also after Ctrl-C.

    Args:
        of: makes it.
        plan, executor, out, force, progress: as for `run_plan`, which also says what is raised.
    """
    try:
        found = of(run_plan(plan, executor, out=out, force=force, progress=progress))
    except SweepInterrupted as interrupted:
        if out is not None:
            of(interrupted.sweep).write()
        raise
    if out is not None:
        found.write()
    return found


class _Tally:
    """Runs done and failed; every run counts once, even if it is answered twice."""

    def __init__(
        self,
        plan: Plan,
        found: set[int],
        keep: Callable[[Run, bytes], None],
        progress: Callable[[int, int, int], None] | None,
    ) -> None:
        self.missing = [run for run in plan.runs if run.number not in found]
        self.runs_now = 0
        self._plan, self._found, self._keep, self._progress = plan, len(found), keep, progress
        self._open = {run.number: run for run in self.missing}
        self._failed: dict[int, Failure] = {}

    @property
    def failures(self) -> tuple[Failure, ...]:
        """In the order of the plan."""
        return tuple(failure for _, failure in sorted(self._failed.items()))

    def run_all(self, executor: Executor) -> None:
        """Runs everything that is missing."""
        self._report()
        if self.missing:
            executor.run((run.job for run in self.missing), self._take)
        # An executor that lost a job says nothing about it: what is still open now has failed.
        for run in self._open.values():
            self._fail(run, "the executor gave no answer")
        self._open.clear()

    def _take(self, answer: Answer) -> None:
        run = self._open.get(answer.number)
        if run is None:
            return  # a second answer: a cluster may repeat a run whose worker it had given up
        if answer.rows is None or answer.fault:
            self._fail(run, answer.fault)
        else:
            self._keep(run, answer.rows)
            self.runs_now += 1
        del self._open[run.number]
        self._report()

    def _fail(self, run: Run, error: str) -> None:
        self._failed[run.number] = Failure(run.number, run.case.number, run.seed, str(run), error)

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._found + self.runs_now, len(self._plan.runs), len(self._failed))


def _in_memory(plan: Plan, executor: Executor, progress: Callable[[int, int, int], None] | None) -> Sweep:
    memory = _Memory()
    tally = _Tally(plan, set(), memory.add, progress)
    interrupted = False
    try:
        tally.run_all(executor)
    except KeyboardInterrupt:
        interrupted = True
    tables = list(assembled(plan, memory.read))
    delays = list(assembled_delays(plan, memory.read))
    status = "interrupted" if interrupted else "failed" if tally.failures else "complete"
    sweep = Sweep(
        plan.name,
        status,
        len(plan.runs),
        len(tables),
        tally.runs_now,
        tally.failures,
        None,
        partial(_joined, tables),
        partial(_joined, delays),
    )
    if interrupted:
        raise SweepInterrupted(sweep)
    return sweep


def _joined(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables).combine_chunks() if tables else pa.table({})


def _on_disk(
    plan: Plan, executor: Executor, directory: SweepDirectory, progress: Callable[[int, int, int], None] | None
) -> Sweep:
    if directory.complete:
        return directory.opened()
    tally = _Tally(plan, directory.found(), directory.add, progress)
    try:
        directory.begin(executor=type(executor).__name__, runs_found=len(plan.runs) - len(tally.missing))
        tally.run_all(executor)
    except KeyboardInterrupt as error:
        raise SweepInterrupted(directory.finish("interrupted", tally.failures, tally.runs_now)) from error
    except ExecutorError:
        directory.finish("interrupted", tally.failures, tally.runs_now)
        raise
    except BaseException as error:
        directory.fail(error)
        raise
    try:
        return directory.finish("failed" if tally.failures else "complete", tally.failures, tally.runs_now)
    except BaseException as error:
        directory.fail(error)
        raise


def sweep(
    plan: Plan | Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Sweep:
    """Runs every case and seed of a plan and puts their totals into one data set.

    Args:
        plan: a `linkweir.sweeps.Plan`, a dict with the keys of the TOML form, or the path of a TOML file.
        out: as for `run_plan`.
        client: a client of `dask.distributed`, whose cluster does the runs in place of processes of this machine.
        jobs: processes of this machine; as many as there are processors when None.
        force: as for `run_plan`.
        progress: as for `run_plan`.

    Returns:
        The sweep; `Sweep.table` is the data set, the same bytes on every executor.

    Raises:
        PlanError: the plan is wrong; nothing was run.
        ScenarioError: its scenario is wrong; nothing was run.
        DirectoryError, ExecutorError, SweepInterrupted: as for `run_plan`.
    """
    executor = of_client(client, jobs)
    if not isinstance(plan, Plan):
        plan = Plan.from_dict(plan) if isinstance(plan, Mapping) else Plan.load(plan)
    return run_plan(plan, executor, out=out, force=force, progress=progress)
