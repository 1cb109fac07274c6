# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir trace show` and `linkweir trace export`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.present import emit, emit_json
from linkweir.commands.trace_keys import TraceKeys, show_reading, trace_keys
from linkweir.directories.provenance import write_whole
from linkweir.traces import exported, reading

app = typer.Typer(
    help="Show what a trace is taken for, or write it as steps for other programs.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def trace() -> None:
    """Show what a trace is taken for, or write it as steps for other programs."""


_TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace of any format that link.trace reads.")]


@app.command("show")
def show(
    trace: _TraceFile,
    trace_key: TraceKeys = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Print what a trace is taken for: notation, columns, units, start, length, mean and gaps."""
    found = reading(trace, keys=trace_keys(trace_key, trace))
    if as_json:
        emit_json(dataclasses.asdict(found))
        return
    show_reading(found)


@app.command("export")
def export(
    trace: _TraceFile,
    trace_key: TraceKeys = None,
    bin_ms: Annotated[
        float, typer.Option("--bin", metavar="MS", help="Width of the steps that opportunities to send become.")
    ] = 10.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print a trace as CSV with the columns t_s and capacity_bps, as the module for ns-3 reads it."""
    if not 0.001 <= bin_ms <= 60_000:
        raise typer.BadParameter("must be 0.001 .. 60000 ms", param_hint="--bin")
    text = exported(trace, bin_s=bin_ms / 1000.0, keys=trace_keys(trace_key, trace))
    if out is None:
        emit(text)
    else:
        write_whole(out, text)
        emit(f"{out}\n")
