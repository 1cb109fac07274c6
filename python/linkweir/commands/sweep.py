# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir sweep`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.executor import executor_of
from linkweir.commands.present import show_told, shown_stem
from linkweir.commands.progress import bar, report_failures, warnings_in_a_line
from linkweir.commands.terminal import print_table
from linkweir.directories.provenance import REPORT
from linkweir.sweeps.execute import run_plan
from linkweir.sweeps.outcome import RUNS, Sweep, SweepInterrupted
from linkweir.sweeps.page import OF_CLASSES, remarks, table_of
from linkweir.sweeps.plan import Plan

app = typer.Typer(add_completion=False)

_MOST_ROWS = 40


@app.command()
def sweep(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan in TOML.")],
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per processor).", min=1)] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="First seed in place of the plan's.", min=0)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Directory of the sweep (default: runs/sweep-PLAN).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start over: overwrite the sweep that is there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Check the plan and list its runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Run many variants of a scenario, each with many seeds, and write one data set.

    The same command resumes a sweep that was interrupted: it runs only what is missing.
    """
    made = Plan.load(plan, seed=seed)
    if not as_json:
        show_told((case.readings, case.notes) for case in made.cases)
    if dry_run:
        _list(made, as_json=as_json)
        return
    directory = Path("runs") / f"sweep-{shown_stem(plan)}" if out is None else out
    try:
        with executor_of(jobs, dask) as executor, warnings_in_a_line(), bar() as progress:
            done = run_plan(made, executor, out=directory, force=force, progress=progress)
    except SweepInterrupted as interrupted:
        if interrupted.sweep.runs_done:
            interrupted.sweep.report(directory / REPORT)
        show_sweep(interrupted.sweep, as_json=as_json)
        print(f"linkweir: {interrupted}; the same command resumes it", file=sys.stderr)
        raise typer.Exit(1) from interrupted
    if done.runs_done:
        done.report(directory / REPORT)
    show_sweep(done, as_json=as_json)
    if done.failures:
        raise typer.Exit(1)


def _list(plan: Plan, *, as_json: bool) -> None:
    table = plan.columns(plan.runs)
    if as_json:
        print(json.dumps({"name": plan.name, "runs": table.to_pylist()}, indent=2, ensure_ascii=False, allow_nan=False))
        return
    for run in plan.runs:
        print(f"run {run.number}: {run}")


def show_sweep(sweep: Sweep, *, as_json: bool) -> None:
    """Prints the means of the classes, how many runs are done, and where their data are."""
    if as_json:
        shown = {**sweep.summary, "runs_now": sweep.runs_now, "directory": str(sweep.directory)}
        print(json.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _means(sweep)
        found = sweep.runs_done - sweep.runs_now
        print(f"{sweep.runs_done} of {sweep.runs_planned} runs done: {sweep.runs_now} now, {found} before")
        if sweep.runs_done:
            print(f"data set: {sweep.directory}/results/{RUNS}.parquet")
        if sweep.directory is not None and (sweep.directory / REPORT).exists():
            print(f"report: {sweep.directory / REPORT}")
    report_failures(sweep)


def _means(sweep: Sweep) -> None:
    """The means of classes over the seeds; the report has all of a long table."""
    if not sweep.runs_done:
        return
    headings, rows = table_of(sweep.means, "class", OF_CLASSES)
    left = headings.index("class") + 1
    importance = [left - 1, *range(left + 1, len(headings)), *range(1, left - 1), left]
    left_out = print_table(headings, rows[:_MOST_ROWS], left=left, importance=importance)
    if len(rows) > _MOST_ROWS:
        print(f"and {len(rows) - _MOST_ROWS} more rows, all in the report")
    if left_out:
        print(f"not shown: {', '.join(left_out)}; the report has all")
    for remark in remarks(sweep.table):
        print(remark)
