# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.present import emit, say
from linkweir.deploy.imported import FILE, imported
from linkweir.directories.provenance import write_whole
from linkweir.fault import PlanError, ScenarioError
from linkweir.replays.recording import ENDING, Recording
from linkweir.replays.replay import prepare
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

app = typer.Typer(add_completion=False)


@app.command()
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A configuration of the gateway, or what tc -j shows; - for stdin.")
    ],
    other: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="SCENARIO",
            help="A scenario, or a gateway's recording: has what the file does not, flows, duration and seed.",
        ),
    ] = None,
    tunnel_counted: Annotated[
        bool, typer.Option("--tunnel-counted", help="Count the tunnel's headers in link.overhead.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the scenario there.")] = None,
) -> None:
    """Make a scenario of a gateway's configuration, or of what tc shows.

    For tc, give the output of tc -d -j qdisc show, tc -d class show and tc -j filter show one after the other.
    """
    with_flows = None if other is None else _other(other)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        found = imported(text, with_flows, tunnel_counted=tunnel_counted, folder=file.parent)
    except UnicodeDecodeError as fault:
        raise PlanError(f"{file}: is no text; give a gateway's configuration, or what tc -j prints") from fault
    except ScenarioError as fault:
        if fault.key.startswith("--"):
            raise
        raise PlanError(f"{file}: {fault.message if fault.key == FILE else fault}") from fault
    for note in found.notes:
        say(f"linkweir import: {note}")
    if out is None:
        emit(found.text)
    else:
        write_whole(out, found.text)
        emit(f"{out}\n")


def _other(path: Path) -> Scenario:
    """The scenario of a file: itself, or of a recording, whose flows send the recorded packets."""
    if path.suffix != ENDING:
        return Scenario.load(path)
    with scratch() as folder:
        part = Recording.load([path]).part()
        # The link is that of the imported file; this rate counts only where that has none.
        most_bps = max((bps for _, bps in part.capacity), default=0) or 10**9
        keys = prepare(part, folder, rate=f"{most_bps}bit").keys
    flows = [{**flow, "file": str(path.resolve())} for flow in keys["flow"]]
    return Scenario.from_dict({**keys, "flow": flows})
