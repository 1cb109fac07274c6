# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir lab build-kernel`, `run` and `clean`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from linkweir.directory import free_directory
from linkweir.lab import kernel
from linkweir.lab.experiment import Laboratory

app = typer.Typer(help="Run scenarios on a real kernel in virtual time.", no_args_is_help=True)


def _say(text: str) -> None:
    typer.echo(f"linkweir lab: {text}", err=True)


@app.callback()
def lab() -> None:
    """Run scenarios on a real kernel in virtual time."""


@app.command("build-kernel")
def build_kernel(
    debug: Annotated[bool, typer.Option("--debug", help="One that watches memory and locks.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Commands at a time (default: one per processor).", min=1)] = None,
) -> None:
    """Build the laboratory's kernel from Debian's linux-source, unless it is in the cache already; print its folder."""
    typer.echo(kernel.build("debug" if debug else "fast", jobs=jobs, say=_say))


@app.command("run")
def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")],
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed in place of the scenario's.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run directory to make.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier run directory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Run a scenario with the kernel's queues and TCP, and write a run directory with tables, figures and a report."""
    from linkweir.cli import _show

    directory = free_directory(f"{scenario.stem}-virtual") if out is None else out
    result = Laboratory(say=_say).run(scenario, seed=seed, out=directory, force=force)
    _show(result, as_json=as_json)


@app.command("clean")
def clean(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was removed as JSON.")] = False,
) -> None:
    """Remove the kernels and sources in the cache."""
    removed = [str(path) for path in kernel.clean()]
    typer.echo(json.dumps(removed) if as_json else "\n".join(removed) or f"nothing in {kernel.cache()}")
