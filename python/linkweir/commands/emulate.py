# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir emulate`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir.commands.ended import CommandEnded
from linkweir.commands.present import say
from linkweir.commands.terminal import one_line
from linkweir.commands.trace_keys import TraceKeys, trace_keys
from linkweir.directories.provenance import write_whole
from linkweir.emulation.emulate import Report, emulate
from linkweir.emulation.ends import FAR
from linkweir.emulation.settings import (
    USUAL_QUEUE,
    Front,
    Way,
    again,
    back,
    is_scenario,
    links_of,
    other_numbers,
    way_of,
)
from linkweir.fault import PlanError, ScenarioError

app = typer.Typer(add_completion=False)

_SAME = "same"
_MOST_CLASSES = 20


@app.command("emulate")
def emulate_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A scenario (.toml), or a trace that link.trace reads."),
    ],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="What to run; a shell if nothing is given.")
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help=f"Also run this at the far end, {FAR}, such as 'iperf3 -s'."),
    ] = None,
    uplink: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|LINK|same",
            help="The direction from COMMAND (default: no queue, and the return delay of the other direction).",
        ),
    ] = None,
    delay: Annotated[str | None, typer.Option(metavar="TIME", help="One-way delay of traces (default 0s).")] = None,
    loss: Annotated[str | None, typer.Option(metavar="PART", help="Losses of traces, such as 1%.")] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="LIMIT", help=f"Queue of traces (default {USUAL_QUEUE}).")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy of that queue, such as codel (default fifo).")
    ] = None,
    trace_key: TraceKeys = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", metavar="NAME", help="Class of all packets (default: as match in the scenario says)."),
    ] = None,
    link: Annotated[str | None, typer.Option(metavar="NAME", help="The link, of a scenario that has several.")] = None,
    flows: Annotated[bool, typer.Option("--flows", help="The scenario's flows are other traffic on the link.")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed in place of the scenario's.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write what the link did as JSON.")] = None,
) -> None:
    """Run a command behind an emulated link, on this machine's kernel.

    No IP packets leave the link's two ends, and names are not resolved. The command's exit code is passed on; what the
    link did is shown on stderr.
    """
    front = Front(delay, loss, queue, policy)
    keys = trace_keys(trace_key, file)
    with _naming(file):
        down = way_of(file, front, link=link, seed=seed, trace_keys=keys, class_name=class_, with_flows=flows)
    if report is not None:
        _check_writable(report)
    if uplink is None:
        with _naming(file):
            up = back(down, seed)
    elif uplink == _SAME:
        up = again(down)
    elif link is not None and (uplink in links_of(file) or not Path(uplink).exists()):
        with _naming(file):
            up = other_numbers(way_of(file, front, link=uplink, seed=seed))
    else:
        other = Path(uplink)
        with _naming(other):
            if is_scenario(other):
                up = other_numbers(way_of(other, Front(), seed=seed))
            else:
                up = other_numbers(way_of(other, front, seed=seed, trace_keys=keys))
    for way in (down, up):
        _say(way)
    found = emulate(down, up, command or [os.environ.get("SHELL", "/bin/sh")], serve=serve)
    _show(found)
    if report is not None:
        write_whole(report, json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False) + "\n")
    raise CommandEnded(found.code)


def _check_writable(report: Path) -> None:
    """Fails before the command runs, whose exit code would be lost after it."""
    if report.is_dir():
        raise PlanError(f"--report {report}: is a folder; give the name of a file in it")
    try:
        tempfile.TemporaryFile(dir=report.parent).close()
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, str(report)) from fault


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Names the file where one of its keys cannot be emulated."""
    try:
        yield
    except ScenarioError as fault:
        if fault.file is not None or not fault.key or fault.key.startswith("--"):
            raise
        raise PlanError(f"{file}: {fault}") from fault


def _say(way: Way) -> None:
    for line in way.readings:
        say(f"read: {line}")
    for line in way.notes:
        say(f"note: {line}")


def _show(found: Report) -> None:
    priority = "real-time" if found.realtime else "normal"
    late = "" if found.late_p99_s is None else f"; one packet of 100 later than set by {1e3 * found.late_p99_s:.2f} ms"
    say(f"linkweir emulate: {found.duration_s:.1f} s, {priority} priority{late}")
    for name, rows in found.ways.items():
        used = [row for row in rows if row["sent_pkts"]]
        for row in used[:_MOST_CLASSES]:
            say(f"{name}: {_sentence(row)}")
        if len(used) > _MOST_CLASSES:
            say(f"{name}: and {len(used) - _MOST_CLASSES} more classes; --report FILE has all")
        if not used:
            say(f"{name}: no packets")
    for fault in found.faults:
        say(f"not as set: {fault}")


def _sentence(row: Mapping[str, Any]) -> str:
    """What became of a class's packets.

    >>> _sentence({"class": "a", "sent_pkts": 9, "arrived_pkts": 7, "arrived_bytes": 700, "marked_pkts": 0,
    ...     "dropped_pkts": {"limit": 2}, "left_pkts": 0, "delay_p50_s": 0.02, "delay_p99_s": 0.0251})
    'a: 9 packets, 7 arrived (700 bytes), 2 dropped (limit 2); delay p50 20.0 ms, p99 25.1 ms'
    """
    dropped = row["dropped_pkts"]
    parts = [f"{row['sent_pkts']} packets", f"{row['arrived_pkts']} arrived ({row['arrived_bytes']} bytes)"]
    if row["marked_pkts"]:
        parts.append(f"{row['marked_pkts']} of these marked")
    if dropped:
        reasons = ", ".join(f"{reason} {count}" for reason, count in dropped.items())
        parts.append(f"{sum(dropped.values())} dropped ({reasons})")
    if row["left_pkts"]:
        parts.append(f"{row['left_pkts']} still on the link")
    text = f"{one_line(row['class'])}: {', '.join(parts)}"
    if row["delay_p50_s"] is not None:
        text += f"; delay p50 {1e3 * row['delay_p50_s']:.1f} ms, p99 {1e3 * row['delay_p99_s']:.1f} ms"
    return text
