# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir trace export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkweir.present import emit
from linkweir.provenance import write_whole
from linkweir.traces import exported

app = typer.Typer(
    help="Write a capacity trace of any format as steps, for other programs.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def trace() -> None:
    """Write a capacity trace of any format as steps, for other programs."""


@app.command("export")
def export(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace of any format that link.trace reads.")],
    bin_ms: Annotated[
        float, typer.Option("--bin", metavar="MS", help="Width of the steps that opportunities to send become.")
    ] = 10.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print a trace as CSV with the columns t_s and capacity_bps, as the module for ns-3 reads it."""
    if not 0.001 <= bin_ms <= 60_000:
        raise typer.BadParameter("must be 0.001 .. 60000 ms", param_hint="--bin")
    text = exported(trace, bin_s=bin_ms / 1000.0)
    if out is None:
        emit(text)
    else:
        write_whole(out, text)
        emit(f"{out}\n")
