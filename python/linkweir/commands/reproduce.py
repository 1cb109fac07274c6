# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir reproduce pss`, `pds` and `codes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from linkweir import quantity
from linkweir.commands.reproduction import OnKernels, Request, Simulated, carry_out, refuse
from linkweir.reproduce import virtual
from linkweir.reproduce.figure import Figure
from linkweir.reproduce.papers import codes, codes_tcp, pds, pss
from linkweir.sweeps.parts import Parts

app = typer.Typer(help="Run the figures of the papers again.", no_args_is_help=True, add_completion=False)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer points and channels, and shorter runs.")]
Duration = Annotated[str | None, typer.Option(help="Simulated time of every run, such as 100s.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time (default: one per processor).", min=1)]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")]
Seed = Annotated[int, typer.Option(help="First seed of random numbers.", min=0)]
Wide = Annotated[bool, typer.Option("--wide", help="All columns of the tables, also those that do not fit.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]
Into = Annotated[Path | None, typer.Option(help="Replace the marked tables and the pictures of a Markdown file.")]
Out = Annotated[Path | None, typer.Option(help="Directory of results to make (default: runs/reproduce-...).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an earlier reproduction.")]
Where = Annotated[
    str, typer.Option(help="sim: the simulator; virtual: the kernel's queues and TCP in virtual time, beside it.")
]


VIRTUAL_SEEDS = 3
"""Seeds in the kernel, unless told otherwise; with --quick 1, or 2 of WTP and PLR."""
VIRTUAL_TENTHS = (5, 9)
"""K_AF in tenths with --quick in the kernel, where a run takes twenty times as long as in the simulator."""


@app.callback()
def reproduce() -> None:
    """Run the figures of the papers again."""


@app.command("pss")
def reproduce_pss(
    figure: Annotated[str | None, typer.Option(help="5 to 13, or all (default: all).")] = None,
    table: Annotated[str | None, typer.Option(help="Beyond the figures: two-controlled, memory or ring.")] = None,
    traffic: Annotated[
        str | None,
        typer.Option(help="backlogged: always something to send; tcp: 10 + 10 CUBIC flows, as always in the kernel."),
    ] = None,
    where: Where = "sim",
    quick: Quick = False,
    duration: Duration = None,
    jobs: Jobs = None,
    dask: Dask = None,
    seed: Seed = 1,
    seeds: Annotated[int | None, typer.Option(help="Seeds behind each row in the kernel (default: 3).", min=1)] = None,
    wide: Wide = False,
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """PSS against DWRR: Figures 5 to 13 of Finzi, Perrier, Frances and Lochin 2023."""
    request = Request(
        "pss",
        seed=seed,
        jobs=jobs,
        dask=dask,
        as_json=as_json,
        markdown=markdown,
        into=into,
        out=out,
        force=force,
        wide=wide,
    )
    _check_where("pss", where, dask, seeds)
    traffic = traffic or ("tcp" if where == "virtual" else "backlogged")
    if traffic not in ("backlogged", "tcp"):
        refuse("pss", f'--traffic = "{traffic}": must be backlogged or tcp')
    if where == "virtual" and traffic != "tcp":
        refuse("pss", f'--traffic = "{traffic}": must be tcp in the kernel')
    lasts_s = duration_s("pss", duration)
    chosen = _chosen("pss", figure, table, pss.FIGURES, {} if where == "virtual" else pss.TABLES)
    if where == "virtual":
        n = seeds or (1 if quick else VIRTUAL_SEEDS)
        each = [pss.Settings("tcp", quick, lasts_s, seed + k, VIRTUAL_TENTHS) for k in range(n)]
        sets = [[make(settings) for make in chosen] for settings in each]
        carry_out(request, _name(figure, table), "-virtual", _in_laboratory(sets, jobs))
    else:
        figures = [make(pss.Settings(traffic, quick, lasts_s, seed)) for make in chosen]
        carry_out(request, _name(figure, table), f"-{traffic}", Simulated(figures))


@app.command("pds")
def reproduce_pds(
    figure: Annotated[str | None, typer.Option(help="4 to 11, or all (default: all).")] = None,
    where: Where = "sim",
    quick: Quick = False,
    duration: Duration = None,
    jobs: Jobs = None,
    dask: Dask = None,
    seed: Seed = 1,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds behind each row (default: 20, in the kernel 3).", min=1)
    ] = None,
    wide: Wide = False,
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """WTP and PLR: Figures 4 to 11 of Gaidioz, Goutelle and Primet 2002, and decayed history and early loss beyond
    them.
    """
    request = Request(
        "pds",
        seed=seed,
        jobs=jobs,
        dask=dask,
        as_json=as_json,
        markdown=markdown,
        into=into,
        out=out,
        force=force,
        wide=wide,
    )
    _check_where("pds", where, dask)
    if where == "virtual" and seeds is None and not quick:
        seeds = VIRTUAL_SEEDS
    settings = pds.Settings(quick, duration_s("pds", duration), seed, seeds)
    figures = [make(settings) for make in _chosen("pds", figure, None, pds.FIGURES, {})]
    if where == "virtual":
        carry_out(request, _name(figure), "-virtual", _in_laboratory([figures], jobs))
    else:
        carry_out(request, _name(figure), "", Simulated(figures))


@app.command("codes")
def reproduce_codes(
    paper: Annotated[str, typer.Option(help="journal or conference.")] = "journal",
    mode: Annotated[
        str, typer.Option(help="published: with what the papers' simulation did; corrected: without; or both.")
    ] = "published",
    figure: Annotated[str | None, typer.Option(help="A figure of that paper, or all (default: all).")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="2: packets by attempts; 3, 4: goodput of TCP users; 5: policies ranked; beyond the paper timeouts, "
            "reordering, assumptions."
        ),
    ] = None,
    quick: Quick = False,
    duration: Duration = None,
    jobs: Jobs = None,
    dask: Dask = None,
    seed: Seed = 1,
    wide: Wide = False,
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Voice and TCP over a constellation, as published and corrected: Tauran et al. 2018 and its journal version."""
    request = Request(
        "codes",
        seed=seed,
        jobs=jobs,
        dask=dask,
        as_json=as_json,
        markdown=markdown,
        into=into,
        out=out,
        force=force,
        wide=wide,
    )
    if paper not in codes.PAPERS:
        refuse("codes", f'--paper = "{paper}": must be one of {", ".join(codes.PAPERS)}')
    if mode not in (*codes.MODES, "both"):
        refuse("codes", f'--mode = "{mode}": must be one of {", ".join(codes.MODES)}, both')
    of = f"{paper}-"
    figures = {
        name.removeprefix(of): make for name, make in (codes.FIGURES | codes_tcp.FIGURES).items() if name.startswith(of)
    }
    tables = {
        name.removeprefix(of): make for name, make in (codes.TABLES | codes_tcp.TABLES).items() if name.startswith(of)
    }
    lasts_s = duration_s("codes", duration)
    chosen = []
    for one in codes.MODES if mode == "both" else (mode,):
        offered = tables
        if one == "corrected":
            offered = {name: make for name, make in tables.items() if f"{of}{name}" not in codes_tcp.PUBLISHED_ONLY}
            if table in tables and table not in offered:
                refuse("codes", f'--mode = "{mode}": --table {table} is published only')
        wanted = _chosen("codes", figure, table, figures, offered)
        chosen += [make(codes.Settings(quick, lasts_s, seed, one)) for make in wanted]
    least_s = codes.least_duration_s(chosen)
    if lasts_s is not None and lasts_s < least_s:
        refuse("codes", f'--duration = "{duration}": must be at least {least_s}s, when the last user has started')
    name = f"{paper}-{figure or table or 'all'}" + ("" if mode == "published" else f"-{mode}")
    carry_out(request, name, "", Simulated(chosen))


def _check_where(paper: str, where: str, dask: str | None, seeds: int | None = None) -> None:
    if where not in ("sim", "virtual"):
        refuse(paper, f'--where = "{where}": must be sim or virtual')
    if where == "sim" and seeds is not None:
        refuse(paper, f"--seeds = {seeds}: is for --where virtual")
    if where == "virtual" and dask is not None:
        refuse(paper, f'--dask = "{dask}": is for --where sim; the laboratory runs its kernels on this machine')


def duration_s(paper: str, text: str | None) -> float | None:
    """The time of every run, s; leaves with exit code 2 and a message when it is none."""
    if text is None:
        return None
    try:
        value = quantity.time_s("--duration", text)
    except quantity.Fault as fault:
        refuse(paper, str(fault))
    if value < 1 or value != int(value):
        refuse(paper, f'--duration = "{text}": must be whole seconds, at least 1s')
    return value


def _chosen(
    paper: str,
    figure: str | None,
    table: str | None,
    figures: Mapping[str, Callable[..., Figure]],
    tables: Mapping[str, Callable[..., Figure]],
) -> list[Callable[..., Figure]]:
    if figure is not None and table is not None:
        refuse(paper, "give --figure or --table, not both")
    if table is not None:
        if table not in tables:
            refuse(paper, f'--table = "{table}": must be one of {", ".join(_in_order(tables))}')
        return [tables[table]]
    if figure is None or figure == "all":
        return [*figures.values(), *tables.values()]
    if figure not in figures:
        refuse(paper, f'--figure = "{figure}": must be one of {", ".join(_in_order(figures))}, or all')
    return [figures[figure]]


def _in_order(names: Iterable[str]) -> list[str]:
    """Numbers by size, then words."""
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0))


def _name(figure: str | None, table: str | None = None) -> str:
    """What of a paper this is, as directories are called."""
    return f"figure{figure}" if figure and figure != "all" else table or "all"


def _in_laboratory(sets: Sequence[Sequence[Figure]], jobs: int | None) -> OnKernels:
    """What the laboratory's kernels can run of the figures.

    Raises:
        LaboratoryError: there can be no laboratory here.
    """
    laboratory = virtual.laboratory(_say)
    return OnKernels(
        [[part for part in map(virtual.possible, figures) if part is not None] for figures in sets],
        lambda folder: virtual.runner(laboratory, jobs, Parts(folder)),
    )


def _say(text: str) -> None:
    typer.echo(f"linkweir reproduce: {text}", err=True)
