# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir export tc`, `linkweir export bpf`, `linkweir export gateway` and `linkweir export ns3`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.present import emit, say
from linkweir.deploy.bpf import bpf_settings
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.ns3 import ns3_program
from linkweir.deploy.script import Scripts, tc_scripts
from linkweir.directories.provenance import write_whole
from linkweir.fault import PlanError, ScenarioError, unfit
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.scenario import Scenario

app = typer.Typer(
    help="Put a scenario's scheduler to use: with tc, in BPF, in the gateway, or in ns-3.",
    no_args_is_help=True,
    add_completion=False,
)

_ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")]


@app.callback()
def export() -> None:
    """Put a scenario's scheduler to use: with tc, in BPF, in the gateway, or in ns-3."""


@app.command("tc")
def tc(
    scenario: _ScenarioFile,
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Network device where packets wait; of a network LINK=NAME, with commas between several.",
        ),
    ],
    ingress: Annotated[
        bool, typer.Option("--ingress", help="Schedule what the device receives, by an IFB, not what it sends.")
    ] = False,
    shaper: Annotated[
        str, typer.Option(metavar="htb|module", help="What shapes: HTB, or linkweir's queueing discipline itself.")
    ] = "htb",
    undo: Annotated[bool, typer.Option("--undo", help="Print the script that undoes it.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write both scripts there, up.sh and down.sh; of a network in DIR/LINK."),
    ] = None,
) -> None:
    """Print a shell script that sets up the scenario's scheduler with tc, below HTB or as its own shaper.

    What could not be carried over is said, a line each. With --undo the script takes it away again.
    """
    sound = Scenario.load(scenario)
    with _naming(scenario):
        refuse_constellation(sound, "tc")
    chosen = _devices(sound, device)
    if len(chosen) > 1 and out is None:
        raise unfit("--device", device, "gives a script for each link; add --out DIR, or give one LINK=NAME")
    for link, name in chosen.items():
        with _naming(scenario):
            found = tc_scripts(sound.of_link(link) if link else sound, name, ingress=ingress, shaper=shaper)
        place = f"link {link}: " if link else ""
        _say_notes(*(tuple(f"{place}{told}" for told in said) for said in (found.notes, found.warnings)))
        if out is None:
            emit(found.down if undo else found.up)
        else:
            _write_scripts(found, out / link if link else out)


def _devices(scenario: Scenario, text: str) -> dict[str, str]:
    """The device of each link that is exported; of a scenario with one ``[link]`` that of the link without a name."""
    if not scenario.is_network:
        return {"": text}
    found: dict[str, str] = {}
    for part in text.split(","):
        link, sign, device = (word.strip() for word in part.rpartition("="))
        if not sign or not link:
            first = scenario.links[0]
            raise unfit(
                "--device", part, f"must be LINK=NAME, as this scenario has several links, such as {first}=eth0"
            )
        if link not in scenario.links or "/" in link or link in (".", ".."):
            raise unfit("--device", part, f"names no link; there are {', '.join(scenario.links)}")
        if link in found or device in found.values():
            raise unfit("--device", text, f"has {link if link in found else device} twice; leave one out")
        found[link] = device
    return found


def _write_scripts(found: Scripts, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("up.sh", found.up), ("down.sh", found.down)):
        write_whole(folder / name, text)
        (folder / name).chmod(0o755)
        emit(f"{folder / name}\n")


@app.command("gateway")
def gateway(
    scenario: _ScenarioFile,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEYS",
            help="A peer: name=ship,endpoint=192.0.2.1:51820,public_key=...,allowed_ips=10.77.0.2/32+10.2.0.0/16.",
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="wireguard or cleartext.")] = "wireguard",
    tunnel_counted: Annotated[
        bool, typer.Option("--tunnel-counted", help="The scenario's link.overhead counts the tunnel's headers, too.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print a configuration of the gateway with the scenario's scheduler.

    Where no peer is given, placeholders stand in its place; linkweir-gateway check names them.
    """
    peers = [_peer(text) for text in peer or []]
    with _naming(scenario):
        found = gateway_configuration(Scenario.load(scenario), peers, mode=mode, tunnel_counted=tunnel_counted)
    _say_notes(found.notes, found.warnings)
    if out is None:
        emit(found.text)
    else:
        write_whole(out, found.text)
        emit(f"{out}\n")


@app.command("bpf")
def bpf(
    scenario: _ScenarioFile,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print settings with the scenario's scheduler for linkweir-bpf, which needs a kernel with BPF disciplines.

    What could not be carried over is said, a line each.
    """
    with _naming(scenario):
        found = bpf_settings(Scenario.load(scenario))
    _say_notes(found.notes, found.warnings)
    if out is None:
        emit(found.text)
    else:
        write_whole(out, found.text)
        emit(f"{out}\n")


@app.command("ns3")
def ns3(
    scenario: _ScenarioFile,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print a C++ program of the scenario for ns-3, with the module linkweir.

    What could not be carried over is said, a line each.
    """
    with _naming(scenario):
        found = ns3_program(Scenario.load(scenario))
    _say_notes(found.notes)
    if out is None:
        emit(found.text)
    else:
        write_whole(out, found.text)
        emit(f"{out}\n")


@contextmanager
def _naming(scenario: Path) -> Iterator[None]:
    """Names the scenario's file where one of its keys has no place on a machine."""
    try:
        yield
    except ScenarioError as fault:
        if fault.file is not None or not fault.key or fault.key.startswith("--"):
            raise
        raise PlanError(f"{scenario}: {fault}") from fault


def _say_notes(notes: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
    for note in notes:
        say(f"linkweir export: not as in the scenario: {note}")
    for warning in warnings:
        say(f"linkweir export: warning: {warning}")


def _peer(text: str) -> dict[str, str]:
    keys = {}
    for part in text.split(","):
        key, sign, value = part.partition("=")
        if not sign or not value:
            raise unfit("--peer", text, "must be KEY=VALUE, with a comma between two of these")
        if key.strip() in keys:
            cure = "several values of allowed_ips have + between them, and another peer a --peer of its own"
            raise unfit("--peer", text, f"has {key.strip()} twice; {cure}")
        keys[key.strip()] = value.strip()
    return keys
