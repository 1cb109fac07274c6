# SPDX-License-Identifier: BSD-3-Clause
"""Runs a reproduction that the user asked for, shows it and writes its directory."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from linkweir.commands.executor import executor_of
from linkweir.commands.terminal import print_table
from linkweir.commands.trace_keys import trace_keys
from linkweir.directories.provenance import free_directory, write_whole
from linkweir.reproduce import native, page
from linkweir.reproduce.compact import compact
from linkweir.reproduce.directory import ReproductionDirectory, figure_key, write_picture
from linkweir.reproduce.execute import distinct
from linkweir.reproduce.own_link import OwnLink
from linkweir.reproduce.reproduction import Reproduction
from linkweir.scenarios import quantity

TITLES = {
    "pss": "PSS compared with DWRR, reproduced",
    "pds": "WTP and PLR, reproduced",
    "codes": "CoDeS and PF over a fading satellite link, reproduced",
}


def refuse(paper: str, *messages: str) -> NoReturn:
    """Ends the command because of options that cannot be used, a message for each."""
    for message in messages:
        typer.echo(f"linkweir reproduce {paper}: {message}", err=True)
    raise typer.Exit(2)


@dataclass(frozen=True)
class Request:
    """The options of every reproduction, as they were typed.

    Attributes:
        paper: a key of `TITLES`.
        seed: first seed of random numbers.
        jobs: simulations at a time; one per processor when None.
        dask: scheduler of a Dask cluster that does them instead.
        as_json: rows are printed, as JSON.
        markdown: tables are printed as Markdown.
        into: a document whose marked tables and pictures are replaced.
        out: directory to make; a new one below `runs` when None.
        force: an earlier reproduction is overwritten.
        wide: tables have all columns, however wide the terminal is.
        quick: fewer points and channels, and shorter runs.
        duration: of every run, as typed; as long as the figure says when None.
        link, delay, trace, esn0: of the reader's own link, as typed; the paper's when None.
        trace_key: describe the trace, ``KEY=VALUE`` each.
    """

    paper: str
    _: KW_ONLY
    seed: int
    jobs: int | None = None
    dask: str | None = None
    as_json: bool
    markdown: bool
    into: Path | None
    out: Path | None
    force: bool
    wide: bool = False
    quick: bool = False
    duration: str | None = None
    link: str | None = None
    delay: str | None = None
    trace: Path | None = None
    trace_key: Sequence[str] | None = None
    esn0: int | None = None

    @property
    def own(self) -> OwnLink:
        """The reader's link."""
        return OwnLink(self.link, self.delay, self.trace, self.esn0, self.trace_keys)

    @property
    def trace_keys(self) -> dict[str, Any] | None:
        """Keys of ``[link]`` that describe the trace."""
        return trace_keys(self.trace_key, self.trace)

    def faults(self) -> list[str]:
        """A message for each option that cannot be used."""
        messages = []
        if self.as_json and self.markdown:
            messages.append("give --json or --markdown, not both")
        if self.into is not None and not self.into.is_file():
            messages.append(f'--into = "{self.into}": there is no such file')
        if self.into is not None and self.own.given:
            messages.append(f'--into = "{self.into}": keeps tables of the paper\'s link; leave out {self.own.words}')
        try:
            _ = self.duration_s
        except quantity.OptionError as fault:
            messages.append(str(fault))
        return messages

    @property
    def duration_s(self) -> float | None:
        """The time of every run, s.

        Raises:
            OptionError: it cannot be used.
        """
        if self.duration is None:
            return None
        value = quantity.time_s("--duration", self.duration)
        if value < 1 or value != int(value):
            raise quantity.OptionError("--duration", self.duration, "must be whole seconds, at least 1s")
        return value


def reproduce(request: Request, name: str, suffix: str, work: Reproduction) -> None:
    """Runs figures, shows them and writes the directory of the reproduction.

    Args:
        request: what is wanted.
        name: which part of the paper it is, for the name of a new directory.
        suffix: tells it apart, there and in a document, from the same figures run in another way.
        work: the figures.
    """
    path = request.out or free_directory(f"reproduce-{request.paper}-{name}{suffix}")
    planned = len(distinct(work.figures))
    facts: dict[str, Any] = {"seed": request.seed, "where": work.where, "runs_planned": planned}
    command = shlex.join(["linkweir", *sys.argv[1:]])
    with executor_of(request.jobs, request.dask) as executor:
        directory = ReproductionDirectory(path, facts, work.figures, force=request.force)
        try:
            with _bar(work.runs) as advance:
                outcome, shown = work.run(native.on(executor, directory.parts), path, advance)
            facts["runs"] = len(outcome.results)
            report = directory.write(TITLES[request.paper], command, facts, shown, complete=outcome.complete)
        except BaseException as error:
            directory.fail(error)
            raise
        finally:
            directory.release()

    _print(request, shown)
    typer.echo(f"report: {report}", err=request.as_json or request.markdown)
    if not outcome.complete:
        typer.echo(
            f"linkweir reproduce {request.paper}: interrupted after {len(outcome.results)} of {planned} runs; "
            f"{path} holds the runs that are done; the same command with --out {shlex.quote(str(path))} resumes it"
            + (f"; {request.into} was not changed" if request.into is not None else ""),
            err=True,
        )
        raise typer.Exit(1)
    if request.into is not None:
        _replace_tables(request.into, request.paper, suffix, shown)


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


def _print(request: Request, figures: Sequence[page.FigureResult]) -> None:
    if request.as_json:
        answers = [{"figure": figure_key(s.figure.name), "rows": s.rows} for s in figures]
        typer.echo(json.dumps(answers[0] if len(answers) == 1 else answers, indent=1, allow_nan=False))
    elif request.markdown:
        for s in figures:
            typer.echo(f"### {s.figure.heading}\n\n{page.markdown(s)}")
    else:
        console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
        for s in figures:
            for item in page.terminal(s):
                if isinstance(item, str):
                    console.print(item, markup=False)
                    continue
                title, (columns, lines) = item
                console.print(title, markup=False)
                left_out = print_table(columns, lines, wide=request.wide, left=0)
                if left_out:
                    console.print(f"not shown: {', '.join(left_out)}; --wide and the report have all", markup=False)


def _replace_tables(path: Path, paper: str, suffix: str, figures: Sequence[page.FigureResult]) -> None:
    """Puts new tables between `<!-- table NAME -->` and `<!-- end -->` of a document; names those without.

    Pictures that the document shows as `images/NAME.svg` are drawn again there.
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
            write_picture(path.parent / "images" / f"{name}.svg", compact(s.picture))
    if missing:
        typer.echo(
            f'linkweir reproduce {paper}: --into = "{path}": no place for {", ".join(missing)}; one is two lines, '
            f"<!-- table {missing[0]} --> and <!-- end -->",
            err=True,
        )
    if len(missing) == len(figures):
        raise typer.Exit(1)
    write_whole(path, text)
