# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir replay`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir import _native
from linkweir.commands.present import emit, emit_json, say, show_result
from linkweir.commands.terminal import print_table
from linkweir.commands.trace_keys import TraceKeys, show_trace, trace_keys
from linkweir.directories.provenance import free_directory
from linkweir.replays.paths import PathAgreement, compare_paths
from linkweir.replays.recording import Recording
from linkweir.replays.replay import Agreement, Replay, compare, prepare
from linkweir.runs.result import Interrupted
from linkweir.runs.simulate import run
from linkweir.scratch import scratch
from linkweir.sweeps.keys import Key, KeyPathError, split

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

app = typer.Typer(add_completion=False)

_LONGEST_S = 7200
"""Longest round trip: a link's delay each way is an hour at most."""


@app.command()
def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Recordings of a gateway, or folders with recordings.")
    ],
    policy: Annotated[str | None, typer.Option(metavar="NAME", help="Another policy.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Another value of a key, like class.af.memory=15s or scheduler.KEY=unset; repeat.",
        ),
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="Another capacity, like 10Mbit.")] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="A trace with another capacity.")] = None,
    trace_key: TraceKeys = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Leave out one of the paths to the peer; repeat."),
    ] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="Put TCP sources of the recorded volume in the place of recorded TCP.")
    ] = False,
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Round trip of these sources without queues.")] = "50ms",
    peer: Annotated[str | None, typer.Option(metavar="NAME", help="The peer, if there are several.")] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Begin then: 10min after the first packet, or 2026-01-31T02:00."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", metavar="TIME", help="End then.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run directory to make.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier run directory.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, also those that do not fit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Simulate what a gateway recorded, with another policy or another link.

    Packets come when they came (open-loop); with --closed, TCP reacts. The scenario in the run directory can be
    compared and swept like any other.
    """
    if rate is not None and trace is not None:
        raise typer.BadParameter("and --trace exclude each other; leave one out", param_hint="--rate")
    if _checked("--rate", rate, "rate") == 0:
        raise typer.BadParameter(f"{rate}: must be above 0", param_hint="--rate")
    if not 0 <= _checked("--rtt", rtt, "time") <= _LONGEST_S:
        raise typer.BadParameter(f"{rtt}: must be 0s .. {_LONGEST_S}s", param_hint="--rtt")
    described = trace_keys(trace_key, trace)
    recording = Recording.load(files)
    if recording.damage:
        say(f"linkweir: {recording.name}: {recording.damage}")  # they are of less time than the file
    part = recording.part(peer, start, stop)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"replay-{part.peer}")
    directory = free_directory(name) if out is None else out
    with scratch() as folder:
        made = prepare(
            part,
            folder,
            policy=policy,
            changes=_changes(changes or []),
            rate=rate,
            trace=trace,
            trace_keys=described,
            without=without or (),
            closed=closed,
            rtt=rtt,
        )
    if not as_json:
        show_trace(trace, described)
    try:
        result = run(made.scenario, out=directory, force=force)
    except Interrupted as interrupted:
        show_result(interrupted.result, as_json=as_json, wide=wide)
        say(f"linkweir: {interrupted}; the results until then are in {interrupted.result.directory}")
        raise typer.Exit(1) from interrupted
    agreements = compare(made, result)
    of_paths = compare_paths(part, result) if made.bond else []
    if as_json:
        found: dict[str, Any] = {"recorded": [asdict(one) for one in agreements], "replay_notes": list(made.notes)}
        if made.bond:
            found["recorded_paths"] = [asdict(one) for one in of_paths]
        emit_json({**result.summary, **found, "directory": str(result.directory)})
        return
    show_result(result, as_json=False, wide=wide)
    _show(made, agreements, of_paths, wide=wide)


def _checked(option: str, text: str | None, kind: str) -> float:
    """An option's value in base units; 1 if it is not given."""
    if text is None:
        return 1.0
    try:
        return _native.quantity(text, kind)
    except ValueError as fault:
        raise typer.BadParameter(f"{text}: {fault}", param_hint=option) from fault


def _changes(texts: Sequence[str]) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for text in texts:
        path, equals, written = text.partition("=")
        if not equals:
            raise typer.BadParameter(f'"{text}": write KEY=VALUE, like class.af.memory=15s', param_hint="--set")
        try:
            key = split(path.strip())
        except KeyPathError as fault:
            raise typer.BadParameter(f'"{path}": {fault}', param_hint="--set") from fault
        if key in found:
            raise typer.BadParameter(f"{text}: {path} is given twice; leave one out", param_hint="--set")
        found[key] = _value(written.strip())
    return found


def _value(text: str) -> Any:
    """A value as TOML has it; what TOML does not know is text, and the word unset is None."""
    if text == "unset":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _show(replay: Replay, agreements: Sequence[Agreement], of_paths: Sequence[PathAgreement], *, wide: bool) -> None:
    """What was recorded, next to what the replay gave, and the notes."""
    part = replay.part
    emit(f"\nrecorded towards {part.peer} from {part.began:%Y-%m-%d %H:%M:%S} UTC, {part.duration_s:.6g} s\n")
    rows = [
        [
            one.name,
            _mbit(one.recorded_bps),
            _mbit(one.replayed_bps),
            _percent(one.recorded_loss),
            _percent(one.replayed_loss),
            f"{one.within} of {one.intervals}",
            _percent(one.worst),
        ]
        for one in agreements
    ]
    interval = _native.show(replay.scenario.interval_s, "time")
    headings = [
        "class",
        "recorded Mbit/s",
        "replayed Mbit/s",
        "recorded loss",
        "replayed loss",
        f"{interval} within 1 %",
        "largest difference",
    ]
    print_table(headings, rows, wide=wide)
    if of_paths:
        emit("\n")
        rows = [
            [one.path, one.name, _megabytes(one.recorded_bytes), _megabytes(one.replayed_bytes)] for one in of_paths
        ]
        print_table(["path", "class", "recorded MB", "replayed MB"], rows, wide=wide)
    for note in replay.notes:
        emit(f"note: {note}\n")


def _mbit(bps: float) -> str:
    return f"{bps / 1e6:.4g}"


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:.4g}"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.3g}%"
