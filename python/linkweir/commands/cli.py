# SPDX-License-Identifier: BSD-3-Clause
"""The command ``linkweir``.

Exit codes: 0 done, 1 failed (interrupted runs and differing reruns among it), 2 bad input; ``emulate`` has that of the
command that it runs. What is wrong goes to stderr
in one line; a trace of Python calls would be a defect.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import linkweir
from linkweir import _native
from linkweir.commands.ended import CommandEnded
from linkweir.commands.present import emit, emit_json, say, show_readings, show_result, show_told, usable_streams
from linkweir.commands.trace_keys import TraceKeys, trace_keys
from linkweir.fault import DirectoryError, PlanError
from linkweir.runs.result import Interrupted
from linkweir.scenarios.policy import IN_SIMULATOR, Parameter

FAILED = 1
BAD_INPUT = 2

_PACKAGES = {
    "reproduce": ("linkweir.commands.reproduce", "Reproduce the figures and tables of three papers."),
    "plan": ("linkweir.commands.plan", "Compute the parameters of a policy from the rates that you want."),
    "compare": ("linkweir.commands.compare", "Compare policies: who keeps which promise, and what each class gets."),
    "yardstick": (
        "linkweir.commands.yardstick",
        "Measure policies, also your own, on RFCs' cases and links of our field.",
    ),
    "replay": ("linkweir.commands.replay", "Simulate what a gateway recorded, with another policy or another link."),
    "sweep": ("linkweir.commands.sweep", "Run many variants of a scenario and write one data set."),
    "view": ("linkweir.commands.view", "Open the report of a run, a sweep or a comparison in the browser."),
    "log": ("linkweir.commands.log", "Count the steps in a log of packets, or write it for Wireshark."),
    "export": (
        "linkweir.commands.export",
        "Put a scenario's scheduler to use: a script for tc, a configuration of the gateway, or a program for ns-3.",
    ),
    "trace": (
        "linkweir.commands.trace",
        "Show what a trace is taken for, or write it as steps for other programs.",
    ),
    "import": ("linkweir.commands.import_", "Make a scenario of a gateway's configuration, or of what tc shows."),
    "emulate": ("linkweir.commands.emulate", "Run a command behind an emulated link, on this machine's kernel."),
    "lab": ("linkweir.commands.lab", "Run scenarios on real kernels and gateways."),
}
"""Commands with packages of their own, imported only when they are asked for."""


def _words() -> list[str]:
    """Words of the command line, or of one that a shell asks to complete (bash; zsh and fish)."""
    return [*sys.argv, *(word for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS") for word in _environment_words(name))]


def _environment_words(name: str) -> list[str]:
    return os.environ.get(name, "").split()


class _Group(TyperGroup):
    """The commands of this module and, on demand, those of the packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_PACKAGES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _PACKAGES:
            return super().get_command(ctx, cmd_name)
        package, help_text = _PACKAGES[cmd_name]
        if cmd_name not in _words():
            return TyperGroup(name=cmd_name, help=help_text)  # for the list of commands this is enough
        command = typer.main.get_command(importlib.import_module(package).app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Group,
    help="Simulate packet schedulers on links whose capacity changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")]
_Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Capacity trace in place of the scenario's rate.")
]
_Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed in place of the scenario's.")]
_Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run directory to make.")]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite an earlier run directory.")]
_Mos = Annotated[
    str | None,
    typer.Option(
        "--mos",
        metavar="CODEC",
        help=f"Codec of flows with playout, in place of theirs: {', '.join(linkweir.quality.CODECS)}.",
    ),
]
_Figures = Annotated[
    str,
    typer.Option(
        "--figures", metavar="FORMATS", help="Also write the charts as files for papers: svg, pdf or svg,pdf."
    ),
]
_Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, also those that do not fit.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]


@contextlib.contextmanager
def _progress(name: str, duration_s: float) -> Iterator[Callable[[float], None] | None]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:.0f}/{task.total:.0f} s simulated"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        shown = textwrap.shorten(re.sub(r"[\[\]]", "", name), max(console.width // 3, 10), placeholder="...")
        task = bar.add_task(shown, total=duration_s)
        yield lambda simulated_s: bar.update(task, completed=simulated_s)


def _formats(figures: str) -> list[str]:
    """The formats that the option --figures names."""
    from linkweir.panels.plot import FORMATS

    found = [word.strip() for word in figures.split(",")] if figures else []
    for form in found:
        if form not in FORMATS:
            message = f"{form or repr(figures)}: is no format of figures; give svg, pdf or svg,pdf"
            raise typer.BadParameter(message, param_hint="--figures")
    return found


def _simulate(
    scenario: linkweir.Scenario,
    out: Path,
    *,
    force: bool,
    as_json: bool,
    figures: Sequence[str] = (),
    watch: bool = False,
    codec: str | None = None,
    wide: bool = False,
    threads: int = 1,
) -> linkweir.Result:
    try:
        if watch:
            from linkweir.commands.watch import watching

            with watching(scenario) as watcher:
                return linkweir.run(scenario, out=out, force=force, figures=figures, watch=watcher, threads=threads)
        with _progress(scenario.name, scenario.duration_s) as progress:
            return linkweir.run(scenario, out=out, force=force, figures=figures, progress=progress, threads=threads)
    except Interrupted as interrupted:
        show_result(interrupted.result, as_json=as_json, codec=codec, wide=wide)
        say(f"linkweir: {interrupted}; the results until then are in {interrupted.result.directory}")
        raise typer.Exit(FAILED) from interrupted


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
) -> None:
    if version:
        commit, dash, changed = _native.commit.partition("-")
        built = f" (commit {commit[:12]}{dash}{changed})" if commit else ""
        emit(f"linkweir {_native.__version__}{built}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        emit(context.get_help() + "\n")
        raise typer.Exit


@app.command("run")
def _run(
    scenario: _ScenarioFile,
    trace: _Trace = None,
    trace_key: TraceKeys = None,
    seed: _Seed = None,
    out: _Out = None,
    force: _Force = False,
    mos: _Mos = None,
    figures: _Figures = "",
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the time left and the rates so far while it runs.")
    ] = False,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            max=256,
            help="Processors for a network of several links; results are equal.",
        ),
    ] = 1,
    wide: _Wide = False,
    as_json: _Json = False,
) -> None:
    """Simulate a scenario and write a run directory with tables and a report."""
    from linkweir.directories.provenance import free_directory

    formats = _formats(figures)
    if mos is not None and mos not in linkweir.quality.CODECS:
        codecs = ", ".join(linkweir.quality.CODECS)
        raise typer.BadParameter(f"no codec is called {mos}; there are {codecs}", param_hint="--mos")
    sound = linkweir.Scenario.load(scenario, seed=seed, trace=trace, trace_keys=trace_keys(trace_key, trace))
    if mos is not None and not any(flow["playout"] for flow in sound.native.tables()["flows"]):
        message = (
            f'{mos}: {scenario} has no flow with a play-out buffer; add playout = "60ms" to one or leave --mos out'
        )
        raise typer.BadParameter(message, param_hint="--mos")
    directory = free_directory(scenario.stem) if out is None else out
    if not as_json:
        show_readings(sound)
    result = _simulate(
        sound,
        directory,
        force=force,
        as_json=as_json,
        figures=formats,
        watch=watch,
        codec=mos,
        wide=wide,
        threads=threads,
    )
    show_result(result, as_json=as_json, codec=mos, wide=wide)


@app.command("check")
def _check(
    scenario: _ScenarioFile,
    trace: _Trace = None,
    trace_key: TraceKeys = None,
    seed: _Seed = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Print the scenario with every default, as run directories keep it.")
    ] = False,
) -> None:
    """Check a scenario and the files it names without running it."""
    sound = linkweir.Scenario.load(scenario, seed=seed, trace=trace, trace_keys=trace_keys(trace_key, trace))
    if resolved:
        emit(sound.resolved)
        return
    links = f"{len(sound.links)} links, " if sound.is_network else ""
    counts = (
        f"{links}{len(sound.classes)} classes, {len(sound.flows)} flows, {sound.duration_s:g} s, policy {sound.policy}"
    )
    emit(f"{scenario}: valid: {counts}\n")
    show_told([(sound.readings, sound.notes)])


@app.command("bounds")
def _bounds(
    scenario: _ScenarioFile,
    envelope: Annotated[
        list[str] | None,
        typer.Option(
            "--envelope",
            metavar="CLASS=BURST:RATE",
            help="What a class sends at most, a burst and a rate, such as ef=15kB:2Mbit; repeat. With several links, "
            "name a flow, LINK.CLASS or BOND.CLASS.",
        ),
    ] = None,
    worst: Annotated[
        str | None,
        typer.Option(
            "--worst", metavar="PART/WINDOW", help="What the link carries at least in any window, such as 60%/10s."
        ),
    ] = None,
    attack: Annotated[
        int,
        typer.Option(
            "--attack",
            metavar="N",
            min=0,
            max=1000000,
            help="Search the worst case in N simulations for each class, or each flow over several links.",
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the worst cases that --attack finds.")
    ] = Path("worst-cases"),
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page with all curves, such as bounds.html."),
    ] = None,
    trace: _Trace = None,
    trace_key: TraceKeys = None,
    as_json: _Json = False,
) -> None:
    """Compute the worst delay and backlog of each class, or say why there is none.

    With several links, of each flow from end to end; of a bond, also without each of its links.
    """
    from linkweir.commands.bounds import OfOneLink, show_attacks
    from linkweir.commands.bounds_bond import OfBonds
    from linkweir.commands.bounds_network import OfNetwork
    from linkweir.scenarios.quantity import OptionError

    sound = linkweir.Scenario.load(scenario, trace=trace, trace_keys=trace_keys(trace_key, trace))
    try:
        of_several = OfBonds if "bond" in sound.native.written() else OfNetwork
        found = (of_several if sound.is_network else OfOneLink)(sound, envelope or [], worst)
    except OptionError as fault:
        typer.echo(f"linkweir bounds: {fault}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    attacks = found.attack(attack, out) if attack else []
    if report is not None:
        found.write_page(report)
    if as_json:
        emit_json({**found.plain, "attacks": attacks} if attack else found.plain)
        return
    show_told([(sound.readings, sound.notes)])
    found.show()
    if attack:
        show_attacks(attacks, found.of)


@app.command("init")
def _init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write into.")] = Path("scenarios"),
) -> None:
    """Write a folder with scenarios and a notebook to begin with, and a page that explains them."""
    from linkweir.commands.init import init

    emit(init(folder))


@app.command("schema")
def _schema(
    kind: Annotated[str, typer.Argument(metavar="[scenario|gateway]", help="Of what kind of file.")] = "scenario",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to a file.")] = None,
) -> None:
    """Print the JSON Schema of scenarios or of the gateway's files, for editors."""
    from linkweir.commands.schema import schema

    emit(schema(kind, out))


@app.command("policies")
def _policies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A policy; its parameters are shown.")] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new", metavar="FILE", help="Write a policy of your own to begin with: FILE.c or FILE.py."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """List the scheduling policies and their parameters."""
    if new is not None:
        from linkweir.commands.new_policy import new_policy

        emit(new_policy(new))
        return
    found = linkweir.policies()
    if name is not None:
        names = [policy.name for policy in found]
        found = [policy for policy in found if policy.name == name]
        if name in IN_SIMULATOR:
            raise typer.BadParameter(
                f"{name} is in the simulator only; see docs/reference/scenarios.md", param_hint="NAME"
            )
        if not found:
            raise typer.BadParameter(f"no policy is called {name}; there are {', '.join(names)}", param_hint="NAME")
    if as_json:
        emit_json([policy.to_dict() for policy in found])
        return
    if name is None:
        for policy in found:
            emit(f"{policy.name:<9} {policy.help}\n")
        emit("\nlinkweir policies NAME shows the parameters of one.\n")
        return
    policy = found[0]
    emit(f"{policy.name}: {policy.help}; at most {policy.max_classes} classes\n")
    for title, params in (("[scheduler]", policy.params), ("[[class]]", policy.class_params)):
        if params:
            emit(f"\n{title}\n")
            _print_parameters(params)
    if policy.stats:
        emit("\ncolumns of the table levels\n")
        width = max(14, *(len(stat.column) for stat in policy.stats))
        for stat in policy.stats:
            emit(f"{stat.column:<{width}}  {stat.help}\n")


def _print_parameters(params: Sequence[Parameter]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("key", "default", "allowed", "meaning"):
        table.add_column(heading, no_wrap=heading in ("key", "default"))
    for param in params:
        table.add_row(*map(Text, (param.name, param.default or "-", param.range, param.help)))
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]
_AnyDirectory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a run, a sweep or a comparison.")]


@app.command("report")
def _report(
    directory: _AnyDirectory,
    figures: _Figures = "",
    knobs: Annotated[
        bool, typer.Option("--knobs", help="With sliders that run the scenario again in the reader's browser.")
    ] = False,
    wide: _Wide = False,
    as_json: _Json = False,
) -> None:
    """Write the report of a run, a sweep or a comparison again."""
    from linkweir.directories.provenance import kind_of, writing
    from linkweir.report import write_figures, write_report, write_report_with_knobs

    formats = _formats(figures)
    if kind_of(directory) == "sweep":
        from linkweir.commands.redraw import redraw

        if formats:
            raise typer.BadParameter("are those of a run; this directory holds several", param_hint="--figures")
        if knobs:
            raise typer.BadParameter("are those of a run; this directory holds several", param_hint="--knobs")
        redraw(directory, wide=wide, as_json=as_json)
        return
    result = linkweir.Result.load(directory)
    with writing(directory):
        write = write_report_with_knobs if knobs else write_report
        write(result, result.warnings, directory)
        write_figures(result, formats, directory)
    show_result(result, as_json=as_json, wide=wide)


@app.command("rerun")
def _rerun(
    directory: _Directory,
    out: _Out = None,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Repeat a run in a new directory, DIR-rerun unless --out names one, and compare all results.

    Tables are compared by their values: another version of pyarrow writes the same values as other bytes.
    """
    from linkweir.directories.provenance import SCENARIO, read_provenance
    from linkweir.runs.directory import IDENTICAL, SAME, compare

    provenance = read_provenance(directory)
    resolved = directory.resolve()
    target = resolved.with_name(f"{resolved.name}-rerun") if out is None else out
    if target.resolve() == resolved:
        raise DirectoryError(f"{target}: is the run itself; choose another --out")
    scenario = linkweir.Scenario.load(directory / SCENARIO)
    if "where" in provenance:
        from linkweir.lab.choice import experiments

        kernels = experiments(
            provenance.get("on", "qdisc"), provenance["where"], say=lambda text: say(f"linkweir lab: {text}")
        )
        result = kernels.run(scenario, out=target, force=force)
    else:
        result = _simulate(scenario, target, force=force, as_json=as_json)
    verdicts = compare(directory, target)
    identical = all(verdict == IDENTICAL for _, verdict in verdicts)
    same = all(verdict in (IDENTICAL, SAME) for _, verdict in verdicts)
    repeated = read_provenance(target)
    if as_json:
        files = [{"file": name, "verdict": verdict} for name, verdict in verdicts]
        emit_json({"directory": str(result.directory), "identical": identical, "same": same, "files": files})
    else:
        for name, verdict in verdicts:
            emit(f"{verdict:<12}{name}\n")
        how = "identical" if identical else "same results" if same else "different"
        emit(f"{how}: {directory} and {target}\n")
    if same and not identical:
        writers = f"pyarrow {provenance.get('pyarrow')} and {repeated.get('pyarrow')}"
        say(f"linkweir: the same results, which {writers} wrote as different bytes")
    if not same:
        for reason in _reasons(provenance, repeated):
            say(f"linkweir: {reason}")
        raise typer.Exit(FAILED)


def _reasons(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Possible reasons for a difference."""
    if before["status"] != "complete":
        yield f"the first run has status {before['status']}, so its files hold less"
    for key in ("linkweir", "commit", "sources_sha256", "pyarrow", "machine", "guest"):
        if before.get(key) != after.get(key):
            yield f"{key} was {before.get(key)} and is {after.get(key)}"


def main() -> int:
    """Runs the command; every way it can end becomes the exit code returned and at most one line on stderr."""
    usable_streams()
    try:
        app(prog_name="linkweir")
    except CommandEnded as end:
        return end.code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else FAILED
        if code in (0, FAILED, BAD_INPUT):
            return code
        say("linkweir: interrupted")  # typer says 130 for Ctrl-C
    except KeyboardInterrupt:
        say("linkweir: interrupted")
    except (_native.ScenarioError, DirectoryError, PlanError) as fault:
        say(f"linkweir: {fault}")
        return BAD_INPUT
    except _native.RunError as fault:
        say(f"linkweir: the run failed: {fault}")
    except UnicodeEncodeError as fault:
        say(f"linkweir: {fault.object!r}: is a name that is not UTF-8, which files of results cannot have; rename it")
        return BAD_INPUT
    except OSError as fault:
        where = f"{fault.filename}: " if fault.filename else ""
        say(f"linkweir: {where}{fault.strerror or fault}")
    except linkweir.Error as fault:
        say(f"linkweir: {fault}")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
