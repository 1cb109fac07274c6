# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir reproduce pss`, `pds` and `codes`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir import _native
from linkweir.commands.reproduction import Request, refuse, reproduce
from linkweir.commands.trace_keys import TraceKeys, show_trace
from linkweir.directories.parts import Parts
from linkweir.lab.gateways import OverGateways
from linkweir.reproduce import ef_delay, virtual
from linkweir.reproduce import gateways as over
from linkweir.reproduce.figure import Figure
from linkweir.reproduce.own_link import on_link
from linkweir.reproduce.papers import codes, codes_age, codes_tcp, pds, pss
from linkweir.reproduce.reproduction import OnKernels, Simulated
from linkweir.scenarios.quantity import OptionError

app = typer.Typer(help="Reproduce the figures and tables of three papers.", no_args_is_help=True, add_completion=False)

Where = Annotated[
    str,
    typer.Option(help="sim: the simulator; virtual: the kernel's queues and TCP in virtual time, and the simulator."),
]

VIRTUAL_SEEDS = 3
"""Seeds in the kernel by default; with --quick 1, or 2 of WTP and PLR."""
VIRTUAL_TENTHS = (5, 9)
"""K_AF in tenths with --quick in the kernel, where a run takes twenty times as long as in the simulator."""


def _common(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and channels, and shorter runs.")] = False,
    duration: Annotated[str | None, typer.Option(help="Simulated time of every run, such as 100s.")] = None,
    link: Annotated[str | None, typer.Option(help="Rate of your own link, in place of the paper's.")] = None,
    delay: Annotated[str | None, typer.Option(help="One-way delay of your own link.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Capacity trace of your own link, in place of the rate.")] = None,
    trace_key: TraceKeys = None,
    esn0: Annotated[
        int | None, typer.Option(help="Es/N0 of your own satellite link without fading, dB; codes only.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time (default: one per processor).", min=1)] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")
    ] = None,
    seed: Annotated[int, typer.Option(help="First seed of random numbers.", min=0)] = 1,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, also those that do not fit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")] = False,
    into: Annotated[
        Path | None, typer.Option(help="Replace the marked tables and the pictures of a Markdown file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of results to make (default: runs/reproduce-...).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier reproduction.")] = False,
) -> None:
    """The options of every reproduction; only its signature is used."""


COMMON = tuple(inspect.signature(_common, eval_str=True).parameters.values())


def _command(paper: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command: its own options come first, then the common ones, which it gets as a `Request`."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        def command(**given: Any) -> None:
            common = {option.name: given.pop(option.name) for option in COMMON}
            request = Request(paper, **common)
            if faults := request.faults():
                refuse(paper, *faults)
            try:
                show_trace(request.trace, request.trace_keys, err=True)  # tables may be Markdown or JSON
            except _native.ScenarioError as fault:
                refuse(paper, str(fault))
            function(request, **given)

        # typer reads names, types and defaults of the options from here
        command.__signature__ = inspect.Signature([*own, *COMMON])  # type: ignore[attr-defined]
        command.__doc__ = function.__doc__
        return app.command(paper)(command)

    return register


@app.callback()
def _reproduce() -> None:
    """Reproduce the figures and tables of three papers."""


@_command("pss")
def reproduce_pss(
    request: Request,
    figure: Annotated[str | None, typer.Option(help="5 to 13, or all (default: all).")] = None,
    table: Annotated[str | None, typer.Option(help="Not in the paper: two-controlled, memory or ring.")] = None,
    traffic: Annotated[
        str | None,
        typer.Option(help="backlogged: always something to send; tcp: 10 + 10 CUBIC flows, as always in the kernel."),
    ] = None,
    where: Where = "sim",
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds for each row, in the kernel (default: 3).", min=1)
    ] = None,
) -> None:
    """PSS compared with DWRR: Figures 5 to 13 of Finzi, Perrier, Frances and Lochin 2023."""
    _check_where(request, where, seeds)
    traffic = traffic or ("tcp" if where == "virtual" else "backlogged")
    if traffic not in ("backlogged", "tcp"):
        refuse("pss", f'--traffic = "{traffic}": must be backlogged or tcp')
    if where == "virtual" and traffic != "tcp":
        refuse("pss", f'--traffic = "{traffic}": must be tcp in the kernel')
    lasts_s = request.duration_s
    chosen = _chosen("pss", figure, table, pss.FIGURES, {} if where == "virtual" else pss.TABLES)
    if where == "virtual":
        n = seeds or (1 if request.quick else VIRTUAL_SEEDS)
        each = [pss.PssOptions("tcp", request.quick, lasts_s, request.seed + k, VIRTUAL_TENTHS) for k in range(n)]
        sets = [[make(options) for make in chosen] for options in each]
        reproduce(request, _name(figure, table), "-virtual", _in_laboratory(sets, request.jobs))
    else:
        figures = [make(pss.PssOptions(traffic, request.quick, lasts_s, request.seed)) for make in chosen]
        figures = _on_link(request, figures, pss.LINK_BPS, scales=True)
        reproduce(request, _name(figure, table), f"-{traffic}{request.own.suffix}", Simulated(figures))


def figure_for_gateways(
    request: Request,
    figure: str,
    points: Sequence[over.Chosen] | None,
    schedulers: Sequence[str] | None,
    seeds: int,
) -> list[list[Figure]]:
    """A figure of the PSS paper at these points and with these schedulers, all when None, once for every seed."""
    make = pss.FIGURES[figure]
    each = [pss.PssOptions("tcp", False, request.duration_s, request.seed + n) for n in range(seeds)]
    return [[over.part(make(options), points, schedulers)] for options in each]


def reproduce_over_gateways(
    request: Request, sets: Sequence[Sequence[Figure]], gateways: OverGateways, at_once: int, say: Callable[[str], None]
) -> None:
    """Runs a figure over gateways, to compare with simulation and theory.

    Args:
        request: what every reproduction is asked.
        sets: from `figure_for_gateways`.
        gateways: what runs scenarios.
        at_once: runs at a time.
        say: called with the name of each run that is done.
    """
    kernels = OnKernels(
        sets,
        lambda folder: over.runner(gateways, folder, at_once, say),
        name=over.GATEWAY,
        where=gateways.where,
        delays=ef_delay.over_gateways,
    )
    suffix = "-gateway" if gateways.where == "real" else "-gateway-virtual"
    reproduce(request, f"figure{sets[0][0].name}", suffix, kernels)


@_command("pds")
def reproduce_pds(
    request: Request,
    figure: Annotated[str | None, typer.Option(help="4 to 11, or all (default: all).")] = None,
    where: Where = "sim",
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds for each row (default: 20, in the kernel 3).", min=1)
    ] = None,
) -> None:
    """WTP and PLR: Figures 4 to 11 of Gaidioz, Goutelle and Primet 2002; also decayed history and early drops, which
    are not in the paper.
    """
    _check_where(request, where)
    if request.own.given:
        refuse(
            "pds",
            f"{request.own.words}: these figures are about ratios at loads of the report's 100 Mbit/s link, and do "
            "not depend on it otherwise; linkweir plan pds computes for your own link",
        )
    if where == "virtual" and seeds is None and not request.quick:
        seeds = VIRTUAL_SEEDS
    options = pds.PdsOptions(request.quick, request.duration_s, request.seed, seeds)
    figures = [make(options) for make in _chosen("pds", figure, None, pds.FIGURES, {})]
    if where == "virtual":
        reproduce(request, _name(figure), "-virtual", _in_laboratory([figures], request.jobs))
    else:
        reproduce(request, _name(figure), "", Simulated(figures))


@_command("codes")
def reproduce_codes(
    request: Request,
    paper: Annotated[str, typer.Option(help="journal or conference.")] = "journal",
    mode: Annotated[
        str,
        typer.Option(
            help="published: with undocumented behaviour of the papers' simulator; corrected: without it; or both."
        ),
    ] = "published",
    csi_age: Annotated[
        str,
        typer.Option(
            help='Age of the channel that PF and CoDeS know when a packet meets it: "flight", as published, or a time '
            "such as 0s."
        ),
    ] = codes.FLIGHT,
    figure: Annotated[str | None, typer.Option(help="A figure of that paper, or all (default: all).")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="2: packets by attempts; 3, 4: goodput of TCP users; 5: policies ranked; not in the paper: timeouts, "
            "reordering, assumptions, age."
        ),
    ] = None,
) -> None:
    """Voice and TCP over a constellation, as published and corrected: Tauran et al. 2018 and its journal version."""
    if paper not in codes.PAPERS:
        refuse("codes", f'--paper = "{paper}": must be one of {", ".join(codes.PAPERS)}')
    if mode not in (*codes.MODES, "both"):
        refuse("codes", f'--mode = "{mode}": must be one of {", ".join(codes.MODES)}, both')
    if csi_age != codes.FLIGHT:
        try:
            csi_age = codes.age(csi_age)
        except OptionError as fault:
            refuse("codes", f'{fault}, or "{codes.FLIGHT}"')
    of = f"{paper}-"
    figures = {
        name.removeprefix(of): make for name, make in (codes.FIGURES | codes_tcp.FIGURES).items() if name.startswith(of)
    }
    tables = {
        name.removeprefix(of): make
        for name, make in (codes.TABLES | codes_tcp.TABLES | codes_age.TABLES).items()
        if name.startswith(of)
    }
    published_only = codes_tcp.PUBLISHED_ONLY + codes_age.PUBLISHED_ONLY
    lasts_s = request.duration_s
    chosen = []
    for one in codes.MODES if mode == "both" else (mode,):
        offered = tables
        if one == "corrected" or csi_age != codes.FLIGHT:
            offered = {name: make for name, make in tables.items() if f"{of}{name}" not in published_only}
            if table in tables and table not in offered:
                option = f'--mode = "{mode}"' if one == "corrected" else f'--csi-age = "{csi_age}"'
                refuse("codes", f"{option}: --table {table} is published only")
        wanted = _chosen("codes", figure, table, figures, offered)
        chosen += [make(codes.CodesOptions(request.quick, lasts_s, request.seed, one, csi_age)) for make in wanted]
    least_s = codes.least_duration_s(chosen)
    if lasts_s is not None and lasts_s < least_s:
        message = f'--duration = "{request.duration}": must be at least {least_s}s, when the last user has started'
        refuse("codes", message)
    name = f"{paper}-{figure or table or 'all'}" + ("" if mode == "published" else f"-{mode}")
    if csi_age != codes.FLIGHT:
        name += f"-age-{csi_age}"
    chosen = _on_link(request, chosen, codes.LINK_BPS, scales=False)
    reproduce(request, name, request.own.suffix, Simulated(chosen))


def _check_where(request: Request, where: str, seeds: int | None = None) -> None:
    if where not in ("sim", "virtual"):
        refuse(request.paper, f'--where = "{where}": must be sim or virtual')
    if where == "sim" and seeds is not None:
        refuse(request.paper, f"--seeds = {seeds}: is for --where virtual")
    if where == "virtual" and request.own.given:
        refuse(request.paper, f"{request.own.words}: is for --where sim")
    if where == "virtual" and request.dask is not None:
        refuse(
            request.paper,
            f'--dask = "{request.dask}": is for --where sim; the laboratory runs its kernels on this machine',
        )


def _on_link(request: Request, figures: list[Figure], paper_bps: float, *, scales: bool) -> list[Figure]:
    try:
        return on_link(figures, request.own, paper_bps, scales=scales)
    except (OptionError, _native.ScenarioError) as fault:
        refuse(request.paper, str(fault))


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
    """The part of a paper that is run, for the names of directories."""
    return f"figure{figure}" if figure and figure != "all" else table or "all"


def _in_laboratory(sets: Sequence[Sequence[Figure]], jobs: int | None) -> OnKernels:
    """The part of the figures that the laboratory's kernels can run.

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
