# SPDX-License-Identifier: BSD-3-Clause
"""The command ``linkweir``.

Exit codes: 0 done, 1 failed (interrupted runs and differing reruns among it), 2 bad input. What is wrong goes to stderr
in one line; a trace of Python calls would be a defect.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

import linkweir
from linkweir import _native
from linkweir.fault import DirectoryError, ExecutorError, Interrupted, PlanError
from linkweir.policies import IN_SIMULATOR

FAILED = 1
BAD_INPUT = 2

_PACKAGES = {
    "reproduce": ("linkweir.reproduce", "Make the figures of the papers again and compare them."),
    "plan": ("linkweir.plan", "Parameters of a scheduler from what it is to reach."),
    "sweep": ("linkweir.sweep.command", "Run a grid or list over the keys of a scenario into one data set."),
    "lab": ("linkweir.lab.command", "Run scenarios on real kernels and gateways."),
}
"""Commands with packages of their own, imported only when they are asked for."""


class _Group(TyperGroup):
    """The commands of this module and, on demand, those of the packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_PACKAGES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _PACKAGES:
            return super().get_command(ctx, cmd_name)
        package, help_text = _PACKAGES[cmd_name]
        if cmd_name not in sys.argv:
            return TyperGroup(name=cmd_name, help=help_text)  # for the list of commands this is enough
        command = typer.main.get_command(importlib.import_module(package).app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Group,
    help="Simulate packet schedulers on links whose capacity changes.",
    no_args_is_help=True,
    add_completion=False,
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
    typer.Option("--mos", metavar="CODEC", help=f"How on/off flows would sound: {', '.join(linkweir.quality.CODECS)}."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]


def _say(text: str) -> None:
    """To stderr, as it is: no markup, no wrapping."""
    print(text, file=sys.stderr)


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
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} s simulated"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(re.sub(r"[\[\]]", "", name), total=duration_s)
        yield lambda simulated_s: bar.update(task, completed=simulated_s)


def _emit(text: str) -> None:
    """To stdout; a reader that has gone away is no failure of ours."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _emit_json(value: object) -> None:
    _emit(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print_table(table: Table) -> None:
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False).print(table)


_VOICE_COLUMNS = (
    ("delay mean (ms)", "delay_s", 1e3, 2),
    ("jitter mean (ms)", "jitter_s", 1e3, 2),
    ("loss (%)", "loss", 100.0, 2),
    ("rating R", "rating", 1.0, 1),
    ("MOS", "mos", 1.0, 2),
)
_MOST_ROWS = 50


def _show(result: linkweir.Result, *, as_json: bool, codec: str | None = None) -> None:
    from linkweir.directory import REPORT
    from linkweir.report import CLASS_COLUMNS

    directory = result.directory
    assert directory is not None
    voice = None if codec is None else linkweir.quality.voice(result, codec).to_pylist()
    if as_json:
        heard = {} if voice is None else {"voice": voice}
        _emit_json({**result.summary, **heard, "directory": str(directory)})
        return
    _show_rows(result.classes.slice(0, _MOST_ROWS).to_pylist(), result.classes.num_rows, "class", CLASS_COLUMNS)
    if voice is not None:
        _show_rows(voice[:_MOST_ROWS], len(voice), "flow", _VOICE_COLUMNS)
    for note in result.scenario.notes:
        _emit(f"note: {note}\n")
    for finding in result.warnings:
        _emit(f"warning: {finding}\n")
    _emit(f"report: {directory / REPORT}\n")


def _show_rows(
    rows: list[dict[str, Any]], count: int, first: str, columns: tuple[tuple[str, str, float, int], ...]
) -> None:
    from linkweir.report import number

    table = Table(title=None, box=None, pad_edge=False)
    table.add_column(first)
    for title, *_ in columns:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(str(row[first]), *(number(row[key], scale, digits) for _, key, scale, digits in columns))
    _print_table(table)
    if count > len(rows):
        _emit(f"and {count - len(rows)} more\n")


def _simulate(
    scenario: linkweir.Scenario, out: Path, *, force: bool, as_json: bool, codec: str | None = None
) -> linkweir.Result:
    try:
        with _progress(scenario.name, scenario.duration_s) as progress:
            return linkweir.run(scenario, out=out, force=force, progress=progress)
    except Interrupted as interrupted:
        _show(interrupted.result, as_json=as_json, codec=codec)
        _say(f"linkweir: {interrupted}; what was recorded is in {interrupted.result.directory}")
        raise typer.Exit(FAILED) from interrupted


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
) -> None:
    if version:
        _emit(f"linkweir {_native.__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        _emit(context.get_help() + "\n")
        raise typer.Exit


@app.command("run")
def _run(
    scenario: _ScenarioFile,
    trace: _Trace = None,
    seed: _Seed = None,
    out: _Out = None,
    force: _Force = False,
    mos: _Mos = None,
    as_json: _Json = False,
) -> None:
    """Simulate a scenario and write a run directory with tables, figures and a report."""
    from linkweir.directory import free_directory

    if mos is not None and mos not in linkweir.quality.CODECS:
        codecs = ", ".join(linkweir.quality.CODECS)
        raise typer.BadParameter(f"no codec is called {mos}; there are {codecs}", param_hint="--mos")
    sound = linkweir.Scenario.load(scenario, seed=seed, trace=trace)
    directory = free_directory(scenario.stem) if out is None else out
    _show(_simulate(sound, directory, force=force, as_json=as_json, codec=mos), as_json=as_json, codec=mos)


@app.command("check")
def _check(
    scenario: _ScenarioFile,
    trace: _Trace = None,
    seed: _Seed = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Print it as a run directory holds it, with every default.")
    ] = False,
) -> None:
    """Check a scenario and the files it names without running it."""
    sound = linkweir.Scenario.load(scenario, seed=seed, trace=trace)
    if resolved:
        _emit(sound.resolved)
        return
    counts = f"{len(sound.classes)} classes, {len(sound.flows)} flows, {sound.duration_s:g} s, policy {sound.policy}"
    _emit(f"{scenario}: sound: {counts}\n")


@app.command("policies")
def _policies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, with its parameters.")] = None,
    as_json: _Json = False,
) -> None:
    """List the scheduling policies and their parameters."""
    found = linkweir.policies()
    if name is not None:
        names = [policy.name for policy in found]
        found = [policy for policy in found if policy.name == name]
        if name in IN_SIMULATOR:
            raise typer.BadParameter(f"{name} is in the simulator only; see docs/scenarios.md", param_hint="NAME")
        if not found:
            raise typer.BadParameter(f"no policy is called {name}; there are {', '.join(names)}", param_hint="NAME")
    if as_json:
        _emit_json([policy.to_dict() for policy in found])
        return
    if name is None:
        for policy in found:
            _emit(f"{policy.name:<9} {policy.help}\n")
        _emit("\nlinkweir policies NAME shows the parameters of one.\n")
        return
    policy = found[0]
    _emit(f"{policy.name}: {policy.help}\n")
    for title, params in (("[scheduler]", policy.params), ("[[class]]", policy.class_params)):
        if params:
            _emit(f"\n{title}\n")
            table = Table(box=None, pad_edge=False)
            for heading in ("key", "default", "allowed", "meaning"):
                table.add_column(heading, no_wrap=heading != "meaning")
            for param in params:
                table.add_row(param.name, param.default or "-", param.range, param.help)
            _print_table(table)
    if policy.stats:
        _emit("\ncolumns of the table levels\n")
        for stat in policy.stats:
            _emit(f"{stat.column:<16}{stat.help}\n")


_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]


@app.command("report")
def _report(directory: _Directory, as_json: _Json = False) -> None:
    """Draw figures and report of a run again."""
    from linkweir.directory import writing
    from linkweir.report import write_report

    result = linkweir.Result.load(directory)
    with writing(directory):
        write_report(result, directory)
    _show(result, as_json=as_json)


@app.command("rerun")
def _rerun(
    directory: _Directory,
    out: _Out = None,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Repeat a run in a new directory, DIR-rerun unless --out names one, and compare all result files byte by byte."""
    from linkweir.directory import SCENARIO, compare, read_provenance

    provenance = read_provenance(directory)
    resolved = directory.resolve()
    target = resolved.with_name(f"{resolved.name}-rerun") if out is None else out
    if target.resolve() == resolved:
        raise DirectoryError(f"{target}: is the run itself; choose another --out")
    scenario = linkweir.Scenario.load(directory / SCENARIO)
    if "where" in provenance:
        from linkweir.lab.command import experiments

        kernels = experiments(provenance.get("on", "qdisc"), provenance["where"])
        result = kernels.run(scenario, out=target, force=force)
    else:
        result = _simulate(scenario, target, force=force, as_json=as_json)
    verdicts = compare(directory, target)
    same = all(verdict == "identical" for _, verdict in verdicts)
    if as_json:
        files = [{"file": name, "verdict": verdict} for name, verdict in verdicts]
        _emit_json({"directory": str(result.directory), "identical": same, "files": files})
    else:
        for name, verdict in verdicts:
            _emit(f"{verdict:<12}{name}\n")
        _emit(f"{'identical' if same else 'different'}: {directory} and {target}\n")
    if not same:
        for reason in _reasons(provenance, read_provenance(target)):
            _say(f"linkweir: {reason}")
        raise typer.Exit(FAILED)


def _reasons(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What may explain a difference."""
    if before["status"] != "complete":
        yield f"the first run has status {before['status']}, so its files hold less"
    for key in ("linkweir", "commit", "sources_sha256", "pyarrow", "machine", "guest"):
        if before.get(key) != after.get(key):
            yield f"{key} was {before.get(key)} and is {after.get(key)}"


def main() -> int:
    """Runs the command; every way it can end becomes the exit code returned and at most one line on stderr."""
    try:
        app(prog_name="linkweir")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else FAILED
        if code in (0, FAILED, BAD_INPUT):
            return code
        _say("linkweir: interrupted")  # typer says 130 for Ctrl-C
    except KeyboardInterrupt:
        _say("linkweir: interrupted")
    except (_native.ScenarioError, DirectoryError, PlanError) as fault:
        _say(f"linkweir: {fault}")
        return BAD_INPUT
    except ExecutorError as fault:
        _say(f"linkweir: {fault}")
    except _native.RunError as fault:
        _say(f"linkweir: the run failed: {fault}")
    except OSError as fault:
        where = f"{fault.filename}: " if fault.filename else ""
        _say(f"linkweir: {where}{fault.strerror or fault}")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
