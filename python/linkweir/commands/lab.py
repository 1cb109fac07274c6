# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir lab build-kernel`, `run`, `pss` and `clean`."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.present import show_result, show_told
from linkweir.directories.provenance import free_directory
from linkweir.lab import choice, kernel
from linkweir.lab.exported import marked
from linkweir.lab.world import left_out
from linkweir.scenarios.scenario import Scenario

app = typer.Typer(help="Run scenarios on real kernels and gateways.", no_args_is_help=True, add_completion=False)

Gateway = Annotated[
    Path | None,
    typer.Option(metavar="PROGRAM", help="linkweir-gateway (default: as cargo built it, or as it is installed)."),
]


def _say(text: str) -> None:
    typer.echo(f"linkweir lab: {text}", err=True)


def _refuse(messages: Sequence[str]) -> None:
    """Ends the command if there are options that cannot be used, a message for each."""
    for message in messages:
        _say(message)
    if messages:
        raise typer.Exit(2)


def _faults(on: str, where: str) -> list[str]:
    """What is wrong with these two options, a message each."""
    messages = []
    if on not in ("qdisc", "gateway"):
        messages.append(f'--on = "{on}": must be qdisc or gateway')
    if where not in ("real", "virtual"):
        messages.append(f'--where = "{where}": must be real or virtual')
    if on == "qdisc" and where == "real":
        messages.append('--where = "real": is for --on gateway; queueing disciplines run in virtual time')
    return messages


@app.callback()
def lab() -> None:
    """Run scenarios on real kernels and gateways."""
    # SIGTERM ends a run as Ctrl-C does: kernels, namespaces and folders go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@app.command("build-kernel")
def build_kernel(
    debug: Annotated[
        bool, typer.Option("--debug", help="Build a kernel that checks memory accesses and locks.")
    ] = False,
    newest: Annotated[
        bool, typer.Option("--newest", help="Build the newest kernel of Debian's backports, which has dualpi2.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Compilers at a time (default: one per processor).", min=1)] = None,
) -> None:
    """Build the laboratory's kernel from Debian's linux-source, unless it is in the cache already; print its folder."""
    if debug and newest:
        _refuse(["--newest: there is no debug kernel of these sources; leave one of the two options out"])
    typer.echo(kernel.build("debug" if debug else "newest" if newest else "fast", jobs=jobs, say=_say))


@app.command("run")
def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")],
    on: Annotated[
        str, typer.Option(help="qdisc: queueing disciplines of the kernel; gateway: gateways and an emulated link.")
    ] = "qdisc",
    where: Annotated[
        str, typer.Option(help="virtual: in virtual time; real: in network namespaces of this machine, as root.")
    ] = "virtual",
    gateway: Gateway = None,
    exported: Annotated[
        bool, typer.Option("--exported", help="Run what linkweir export writes; traffic is marked for its class.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed in place of the scenario's.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run directory to make.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier run directory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Run a scenario with Linux's TCP over the kernel's queues or over gateways, and write a run directory with
    tables, figures and a report.
    """
    _refuse(_faults(on, where))
    directory = free_directory(f"{scenario.stem}-{where}") if out is None else out
    made = choice.experiments(on, where, gateway, exported=exported, say=_say)
    sound = Scenario.load(scenario, seed=seed)
    if not as_json:
        show_told([(sound.readings, [*sound.notes, *left_out(sound.native.written())])])
    wanted = marked(sound) if exported else scenario
    result = made.run(wanted, seed=seed, out=directory, force=force)
    show_result(result, as_json=as_json)


@app.command("pss")
def run_pss(
    figure: Annotated[str, typer.Option(help="5 to 12.")] = "6",
    points: Annotated[
        str | None,
        typer.Option(metavar="EF:K,...", help="Points by EF's share and K_AF, such as 0.25:0.5 (default: all)."),
    ] = None,
    schedulers: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="pss, dwrr, pss-early-ignored (default: all of the figure).")
    ] = None,
    where: Annotated[
        str, typer.Option(help="real: in network namespaces of this machine, as root; virtual: in virtual time.")
    ] = "real",
    duration: Annotated[str | None, typer.Option(help="Time of every run (default: 100s).")] = None,
    at_once: Annotated[int, typer.Option(help="Runs at a time; in real time they may disturb each other.", min=1)] = 1,
    gateway: Gateway = None,
    seed: Annotated[int, typer.Option(help="First seed of random numbers.", min=0)] = 1,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each row.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")] = False,
    into: Annotated[
        Path | None, typer.Option(help="Replace the marked tables and pictures of a Markdown file.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of results to make (default: runs/...).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier reproduction.")] = False,
) -> None:
    """Run a figure of the PSS paper over real gateways and an emulated link, compared with simulation and theory.

    Each point is a run with a CBR flow of datagrams as EF, and 10 CUBIC flows of the kernel in each of AF and CS0. The
    round trip is 500 ms, and a gateway paces packets at 20 Mbit/s. In real time, a run takes as long as its duration.
    """
    from linkweir.commands.reproduce import figure_for_gateways, reproduce_over_gateways
    from linkweir.commands.reproduction import Request
    from linkweir.reproduce import gateways as over
    from linkweir.reproduce.papers import pss

    request = Request(
        "pss", seed=seed, as_json=as_json, markdown=markdown, into=into, out=out, force=force, duration=duration
    )
    faults, wanted = _faults("gateway", where), None
    if figure not in pss.FIGURES or figure == "13":
        faults.append(f'--figure = "{figure}": must be one of 5 to 12')
    try:
        wanted = None if points is None else over.points(points)
    except ValueError as fault:
        faults.append(f"--points: {fault}")
    _refuse([*faults, *request.faults()])
    names = None if schedulers is None else schedulers.split(",")
    sets = figure_for_gateways(request, figure, wanted, names, seeds)
    if not sets[0][0].cases:
        _refuse([f"--points = {points}, --schedulers = {schedulers}: figure {figure} has no such run"])
    reproduce_over_gateways(request, sets, choice.gateways(where, gateway, say=_say), at_once, _say)


@app.command("clean")
def clean(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was removed as JSON.")] = False,
) -> None:
    """Remove the kernels and sources in the cache."""
    removed = [str(path) for path in kernel.clean()]
    typer.echo(json.dumps(removed) if as_json else "\n".join(removed) or f"nothing in {kernel.cache()}")
