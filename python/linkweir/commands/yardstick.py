# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir yardstick`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.compare import laboratory_of
from linkweir.commands.executor import executor_of
from linkweir.commands.present import emit, emit_json, say
from linkweir.commands.progress import bar, warnings_in_a_line
from linkweir.commands.terminal import print_table
from linkweir.directories.provenance import REPORT
from linkweir.sweeps.outcome import SweepInterrupted
from linkweir.yardstick.cases import CASES
from linkweir.yardstick.execute import run_yardstick
from linkweir.yardstick.figures import FIGURES
from linkweir.yardstick.outcome import Yardstick
from linkweir.yardstick.page import cost_sentence, faults, place_name, promise_sentences
from linkweir.yardstick.plan import MOST_SEEDS, SEEDS, prepare

app = typer.Typer(add_completion=False)

_MOST_ROWS = 100


@app.command()
def yardstick(
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="FILE|NAME",
            help="A policy, or your own: mine.c, mine.py or mine.py:CLASS; repeat. Files join the usual policies.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases, with one load each.")] = False,
    cases: Annotated[
        list[str] | None, typer.Option("--case", metavar="NAME", help="Only this case; repeat. --list names them.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Runs of each (default: {SEEDS}).", min=1, max=MOST_SEEDS),
    ] = None,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions per packet of each policy (needs valgrind).")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the cases and what each leaves out.")] = False,
    where: Annotated[
        str, typer.Option(help="simulator; or virtual: a kernel's queues and TCP in virtual time, for named cases.")
    ] = "simulator",
    kernel: Annotated[
        str, typer.Option("--kernel", help="With --where virtual: 6.12, or newest, that of Debian's backports.")
    ] = "6.12",
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per processor).", min=1)] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Directory (default: runs/yardstick, with -quick or -virtual)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start over: overwrite what is there.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, also those that do not fit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Measure policies on a fixed set of links and loads, after RFC 7928, 8867 and 8869 and of our field.

    The same command resumes what was interrupted. docs/reference/yardstick.md describes cases and figures.
    """
    if listed:
        _list(as_json=as_json, wide=wide)
        return
    laboratory = laboratory_of(where, kernel, jobs, dask)
    plan, facts = prepare(
        policies or (),
        cases or (),
        seeds=seeds,
        quick=quick,
        instructions=instructions,
        jobs=jobs,
        laboratory=laboratory,
    )
    usual = "yardstick-virtual" if laboratory else "yardstick-quick" if quick else "yardstick"
    directory = Path("runs") / usual if out is None else out
    try:
        with executor_of(jobs, dask) as executor, warnings_in_a_line(), bar() as progress:
            found = run_yardstick(plan, facts, laboratory or executor, out=directory, force=force, progress=progress)
    except SweepInterrupted as interrupted:
        show_yardstick(Yardstick(facts, interrupted.sweep), directory, as_json=as_json, wide=wide)
        say(f"linkweir: {interrupted}; the same command resumes it")
        raise typer.Exit(1) from interrupted
    show_yardstick(found, directory, as_json=as_json, wide=wide)
    if found.sweep.failures:
        raise typer.Exit(1)


def _list(*, as_json: bool, wide: bool) -> None:
    if as_json:
        keys = ("name", "title", "source", "left_out", "loads", "duration_s")
        emit_json({"cases": [{key: getattr(case, key) for key in keys} for case in CASES.values()]})
        return
    rows = [[case.name, case.title, case.source, case.left_out] for case in CASES.values()]
    print_table(["case", "what", "source", "left out or changed"], rows, wide=wide, left=4)


def show_yardstick(found: Yardstick, directory: Path, *, as_json: bool, wide: bool) -> None:
    """Prints the rows, the promises, what breaks the contract and where the report is."""
    if as_json:
        emit_json({**found.summary, "directory": str(directory)})
    else:
        rows = []
        for row in found.rows:
            cells = [row.found.shown(key) for key in FIGURES]
            dominated = ", ".join(row.dominated_by) or "-"
            rows.append([place_name(row.entry.case, row.entry.load), row.entry.policy, row.verdict, *cells, dominated])
        headings = [about.heading.removesuffix(" ()") for about in FIGURES.values()]
        left_out = print_table(
            ["case", "policy", "promise", *headings, "dominated by"], rows[:_MOST_ROWS], wide=wide, left=3
        )
        if len(rows) > _MOST_ROWS:
            emit(f"and {len(rows) - _MOST_ROWS} more rows, all in the report\n")
        if left_out:
            emit(f"not shown: {', '.join(left_out)}; the report has all, and --wide\n")
        emit("\n")
        for line in (*promise_sentences(found), cost_sentence(found)):
            emit(f"{line}\n" if line else "")
        sweep = found.sweep
        emit(
            f"{sweep.runs_done} of {sweep.runs_planned} runs done: {sweep.runs_now} now, "
            f"{sweep.runs_done - sweep.runs_now} before\nreport: {directory / REPORT}\n"
        )
    for line in faults(found):
        say(f"linkweir: {line}")
