# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir reproduce pss`, `pds` and `codes`."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from linkweir.directory import free_directory, write_whole
from linkweir.reproduce import codes, codes_tcp, keep, native, page, pds, pss, virtual
from linkweir.reproduce.execute import Outcome, Runner, distinct, execute, show
from linkweir.reproduce.figure import Figure, Scenario
from linkweir.sweep.command import executor_of
from linkweir.sweep.parts import Parts

TITLES = {
    "pss": "PSS against DWRR, reproduced",
    "pds": "WTP and PLR, reproduced",
    "codes": "CoDeS and PF over a fading satellite link, reproduced",
}

app = typer.Typer(help="Run the figures of the papers again.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer points and channels, and shorter runs.")]
Duration = Annotated[str | None, typer.Option(help="Simulated time of every run, such as 100s.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time (default: one per processor).", min=1)]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")]
Seed = Annotated[int, typer.Option(help="First seed of random numbers.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]
Into = Annotated[Path | None, typer.Option(help="Replace the marked tables and the pictures of a Markdown file.")]
Out = Annotated[Path | None, typer.Option(help="Directory of results to make (default: runs/reproduce-...).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an earlier reproduction.")]
Where = Annotated[
    str, typer.Option(help="sim: the simulator; virtual: the kernel's queues and TCP in virtual time, beside it.")
]


@dataclass(frozen=True)
class OnKernels:
    """Figures that run on real kernels beside the simulator.

    Attributes:
        sets: the figures, once for every seed.
        runner: makes what runs them, told the directory of the reproduction.
        name: what their rows are called.
        where: how the directory calls it.
        delays: tables of EF's delays.
    """

    sets: Sequence[Sequence[Figure]]
    runner: Callable[[Path], Runner]
    name: str = virtual.KERNEL
    where: str = "virtual"
    delays: Callable[[Sequence[Sequence[Figure]], Outcome], list[page.Shown]] = virtual.ef_delays


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
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """PSS against DWRR: Figures 5 to 13 of Finzi, Perrier, Frances and Lochin 2023."""
    _check_where("pss", where, dask, seeds)
    traffic = traffic or ("tcp" if where == "virtual" else "backlogged")
    if traffic not in ("backlogged", "tcp"):
        _refuse("pss", f'--traffic = "{traffic}": must be backlogged or tcp')
    if where == "virtual" and traffic != "tcp":
        _refuse("pss", f'--traffic = "{traffic}": must be tcp in the kernel')
    lasts_s = duration_s("pss", duration)
    chosen = _chosen("pss", figure, table, pss.FIGURES, {} if where == "virtual" else pss.TABLES)
    if where == "virtual":
        n = seeds or (1 if quick else VIRTUAL_SEEDS)
        each = [pss.Settings("tcp", quick, lasts_s, seed + k, VIRTUAL_TENTHS) for k in range(n)]
        kernels = _in_laboratory([[make(settings) for make in chosen] for settings in each], jobs)
        carry_out("pss", figure, table, "-virtual", [], jobs, dask, seed, as_json, markdown, into, out, force, kernels)
        return
    figures = [make(pss.Settings(traffic, quick, lasts_s, seed)) for make in chosen]
    carry_out("pss", figure, table, f"-{traffic}", figures, jobs, dask, seed, as_json, markdown, into, out, force)


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
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """WTP and PLR: Figures 4 to 11 of Gaidioz, Goutelle and Primet 2002, and decayed history and early loss beyond
    them.
    """
    _check_where("pds", where, dask)
    if where == "virtual" and seeds is None and not quick:
        seeds = VIRTUAL_SEEDS
    settings = pds.Settings(quick, duration_s("pds", duration), seed, seeds)
    figures = [make(settings) for make in _chosen("pds", figure, None, pds.FIGURES, {})]
    if where == "virtual":
        kernels = _in_laboratory([figures], jobs)
        carry_out("pds", figure, None, "-virtual", [], jobs, dask, seed, as_json, markdown, into, out, force, kernels)
        return
    carry_out("pds", figure, None, "", figures, jobs, dask, seed, as_json, markdown, into, out, force)


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
    as_json: Json = False,
    markdown: Markdown = False,
    into: Into = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Voice and TCP over a constellation, as published and corrected: Tauran et al. 2018 and its journal version."""
    if paper not in codes.PAPERS:
        _refuse("codes", f'--paper = "{paper}": must be one of {", ".join(codes.PAPERS)}')
    if mode not in (*codes.MODES, "both"):
        _refuse("codes", f'--mode = "{mode}": must be one of {", ".join(codes.MODES)}, both')
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
                _refuse("codes", f'--mode = "{mode}": --table {table} is published only')
        wanted = _chosen("codes", figure, table, figures, offered)
        chosen += [make(codes.Settings(quick, lasts_s, seed, one)) for make in wanted]
    least_s = codes.least_duration_s(chosen)
    if lasts_s is not None and lasts_s < least_s:
        _refuse("codes", f'--duration = "{duration}": must be at least {least_s}s, when the last user has started')
    what = f"{paper}-{figure or table or 'all'}" + ("" if mode == "published" else f"-{mode}")
    carry_out("codes", None, what, "", chosen, jobs, dask, seed, as_json, markdown, into, out, force)


def _refuse(paper: str, message: str) -> None:
    typer.echo(f"linkweir reproduce {paper}: {message}", err=True)
    raise typer.Exit(2)


def _check_where(paper: str, where: str, dask: str | None, seeds: int | None = None) -> None:
    if where not in ("sim", "virtual"):
        _refuse(paper, f'--where = "{where}": must be sim or virtual')
    if where == "sim" and seeds is not None:
        _refuse(paper, f"--seeds = {seeds}: is for --where virtual")
    if where == "virtual" and dask is not None:
        _refuse(paper, f'--dask = "{dask}": is for --where sim; the laboratory runs its kernels on this machine')


def duration_s(paper: str, text: str | None) -> float | None:
    """The time of every run, s; leaves with exit code 2 and a message when it is none."""
    if text is None:
        return None
    from linkweir.plan import quantity
    from linkweir.plan.fault import Fault

    try:
        value = quantity.time_s("--duration", text)
    except Fault as fault:
        _refuse(paper, str(fault))
        raise AssertionError from None
    if value < 1 or value != int(value):
        _refuse(paper, f'--duration = "{text}": must be whole seconds, at least 1s')
    return value


def _chosen(
    paper: str,
    figure: str | None,
    table: str | None,
    figures: Mapping[str, Callable[..., Figure]],
    tables: Mapping[str, Callable[..., Figure]],
) -> list[Callable[..., Figure]]:
    if figure is not None and table is not None:
        _refuse(paper, "give --figure or --table, not both")
    if table is not None:
        if table not in tables:
            _refuse(paper, f'--table = "{table}": must be one of {", ".join(_in_order(tables))}')
        return [tables[table]]
    if figure is None or figure == "all":
        return [*figures.values(), *tables.values()]
    if figure not in figures:
        _refuse(paper, f'--figure = "{figure}": must be one of {", ".join(_in_order(figures))}, or all')
    return [figures[figure]]


def _in_order(names: Iterable[str]) -> list[str]:
    """Numbers by size, then words."""
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0))


def carry_out(
    paper: str,
    figure: str | None,
    table: str | None,
    suffix: str,
    figures: Sequence[Figure],
    jobs: int | None,
    dask: str | None,
    seed: int,
    as_json: bool,
    markdown: bool,
    into: Path | None,
    out: Path | None,
    force: bool,
    kernels: OnKernels | None = None,
) -> None:
    """Runs what figures need, shows them and writes the directory of the reproduction."""
    if as_json and markdown:
        _refuse(paper, "give --json or --markdown, not both")
    what = f"figure{figure}" if figure and figure != "all" else table or "all"
    path = out or free_directory(f"reproduce-{paper}-{what}{suffix}")
    if into is not None and not into.is_file():
        _refuse(paper, f'--into = "{into}": there is no such file')
    if kernels is not None:
        figures = [one for figures_of_seed in kernels.sets for one in figures_of_seed]
    scenarios = distinct(figures)
    where = "sim" if kernels is None else kernels.where
    facts: dict[str, Any] = {"seed": seed, "where": where, "runs_planned": len(scenarios)}
    title = TITLES[paper]
    command = shlex.join(["linkweir", *sys.argv[1:]])
    runner = None if kernels is None else kernels.runner(path)
    with executor_of(jobs, dask) as executor:
        directory = keep.ReproductionDirectory(path, facts, figures, force=force)
        try:
            simulator = native.on(executor, directory.parts)
            if kernels is None or runner is None:
                outcome = _run(scenarios, simulator)
                shown = [show(f, outcome) for f in figures]
            else:
                outcome, shown = _run_both(kernels, runner, simulator)
            facts["runs"] = len(outcome.results)
            report = directory.write(title, command, facts, shown, complete=outcome.complete)
        except BaseException as error:
            directory.fail(error)
            raise
        finally:
            directory.release()

    if as_json:
        answers = [{"figure": keep.figure_key(s.figure.name), "rows": s.rows} for s in shown]
        typer.echo(json.dumps(answers[0] if len(answers) == 1 else answers, indent=1, allow_nan=False))
    elif markdown:
        for s in shown:
            typer.echo(f"### {s.figure.heading}\n\n{page.markdown(s)}")
    else:
        console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
        for s in shown:
            for item in page.terminal(s):
                console.print(item)
    typer.echo(f"report: {report}", err=as_json or markdown)
    if into is not None and outcome.complete:
        _replace_tables(into, paper, suffix, shown)
    if not outcome.complete:
        typer.echo(
            f"linkweir reproduce {paper}: interrupted after {len(outcome.results)} of {len(scenarios)} runs; "
            f"{path} holds those and says so; the same command with --out {shlex.quote(str(path))} goes on from there"
            + (f"; {into} is as it was" if into is not None else ""),
            err=True,
        )
        raise typer.Exit(1)


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal and nothing in a pipe; called after each run."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("runs", total=total)
        yield lambda: progress.advance(task)


def _run(scenarios: Sequence[Scenario], runner: Runner) -> Outcome:
    with _bar(len(scenarios)) as advance:
        return execute(scenarios, runner, advance)


def _run_both(kernels: OnKernels, runner: Runner, simulator: Runner) -> tuple[Outcome, list[page.Shown]]:
    with _bar(2 * len(virtual.planned(kernels.sets))) as advance:
        outcome, shown = virtual.carry_out(kernels.sets, runner, simulator, advance, kernels.name)
    return outcome, [*shown, *virtual.distances(shown, kernels.name), *kernels.delays(kernels.sets, outcome)]


def _in_laboratory(sets: Sequence[Sequence[Figure]], jobs: int | None) -> OnKernels:
    """What the laboratory's kernels can run of the figures."""
    return OnKernels(
        [[part for part in map(virtual.possible, figures) if part is not None] for figures in sets],
        lambda folder: virtual.runner(virtual.laboratory(_say), jobs, Parts(folder)),
    )


def _say(text: str) -> None:
    typer.echo(f"linkweir reproduce: {text}", err=True)


def _replace_tables(path: Path, paper: str, suffix: str, figures: Sequence[page.Shown]) -> None:
    """Puts new tables between `<!-- table NAME -->` and `<!-- end -->` of a document; names those without.

    Pictures that the document shows as `images/NAME.svg` are drawn anew beside it.
    """
    text = path.read_text(encoding="utf-8")
    missing = []
    for s in figures:
        name = f"{paper}-{s.figure.name}{suffix}"
        body = page.markdown(s).replace("\\", "\\\\")
        marks = rf"(<!-- table {re.escape(name)} -->\n).*?(<!-- end -->)"
        text, found = re.subn(marks, rf"\1\n{body}\n\2", text, flags=re.DOTALL)
        if not found:
            missing.append(name)
        if s.picture and f"(images/{name}.svg)" in text:
            (path.parent / "images").mkdir(exist_ok=True)
            keep.write_picture(path.parent / "images" / f"{name}.svg", s.picture)
    if missing:
        typer.echo(
            f'linkweir reproduce {paper}: --into = "{path}": no place for {", ".join(missing)}; one is two lines, '
            f"<!-- table {missing[0]} --> and <!-- end -->",
            err=True,
        )
    if len(missing) == len(figures):
        raise typer.Exit(1)
    write_whole(path, text)
