# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir plan pds`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from linkweir.commands.terminal import print_all
from linkweir.scenarios import quantity
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import pds as sizing
from linkweir.sizing.pds import DelayClass

MOST_CLASSES = 64
NEAR = 0.01
"""Relative error of a ratio from which whole coefficients get a warning."""


def pds(
    link: Annotated[str, typer.Option(help="Rate of the link.")],
    ratio: Annotated[str, typer.Option(help="Wanted ratios of the mean waits, class by class, such as 1:2:4:8.")],
    load: Annotated[
        str | None, typer.Option(help="Load of all classes together, 0.9 or 90%; each sends the same rate.")
    ] = None,
    rate: Annotated[list[str] | None, typer.Option(help="Rate of a class, instead of --load; repeat.")] = None,
    packet: Annotated[str, typer.Option(help="Packet size, of all classes or of each, such as 1500B:200B.")] = "1500B",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the delay coefficients of pds (WTP) for wanted ratios of the mean waits at a load.

    Waits are queueing times before transmission, of Poisson arrivals. The exit code is 1 if no scheduler can give these
    ratios at this load.
    """
    try:
        found = answer(link, ratio, load, rate or [], packet)
    except OptionError as fault:
        typer.echo(f"linkweir plan pds: {fault}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(found, indent=2, allow_nan=False))
    else:
        _show(found)
    if not found["possible"]:
        raise typer.Exit(1)


def answer(link: str, ratio: str, load: str | None, rates: list[str], packet: str) -> dict[str, Any]:
    """Coefficients and waits, or what is out of reach, ready for JSON.

    Raises:
        OptionError: an option, and what is allowed.
    """
    link_bps = quantity.rate_bps("--link", link)
    ratios = _ratios(ratio)
    classes = _classes(link_bps, len(ratios), load, rates, packet)
    total = sum(c.load(link_bps) for c in classes)
    common = {"link_bps": link_bps, "load": total, "least_load": sizing.least_load(classes, link_bps, ratios)}
    beyond = sizing.out_of_reach(classes, link_bps, ratios)
    wanted = sizing.wanted_waits_s(classes, link_bps, ratios)
    if beyond is not None:
        strict = sizing.waits_s(classes, link_bps, _steep(ratios))
        return common | {
            "possible": False,
            "out_of_reach": {
                "classes": list(beyond.names),
                "wanted_wait_s": beyond.wanted_s,
                "least_wait_s": beyond.least_s,
            },
            "classes": [
                {"name": c.name, "ratio": r, "wanted_wait_s": w, "strict_wait_s": s}
                for c, r, w, s in zip(classes, ratios, wanted, strict, strict=True)
            ],
        }
    exact = sizing.coefficients(classes, link_bps, ratios)
    delays = sizing.whole(exact)
    waits = sizing.waits_s(classes, link_bps, delays)
    unit = waits[ratios.index(min(ratios))] / min(ratios)
    limit = sizing.limit_pkts(classes, waits)
    worst = max(abs(w / unit / r - 1) for w, r in zip(waits, ratios, strict=True))
    return common | {
        "possible": True,
        "limit_pkts": limit,
        "classes": [
            {
                "name": c.name,
                "ratio": r,
                "rate_bps": c.rate_bps,
                "packet_bytes": c.packet_bytes,
                "coefficient": e,
                "delay": d,
                "wait_s": w,
                "expected_ratio": w / unit,
            }
            for c, r, e, d, w in zip(classes, ratios, exact, delays, waits, strict=True)
        ],
        "warnings": []
        if worst < NEAR
        else [
            f"coefficients of 1 .. {sizing.LARGEST} give the ratios only within {worst:.1%}: raise the load or ask for "
            "less"
        ],
        "toml": _toml(classes, delays, limit),
    }


def _ratios(text: str) -> list[float]:
    try:
        ratios = [float(part) for part in text.split(":")]
    except ValueError:
        ratios = []
    if not 2 <= len(ratios) <= MOST_CLASSES or not all(1e-3 <= r <= 1e6 for r in ratios):
        raise OptionError(
            "--ratio",
            text,
            f"write 2 .. {MOST_CLASSES} numbers of 0.001 .. 1000000, such as 1:2:4, with a colon between",
        )
    return ratios


def _classes(link_bps: float, number: int, load: str | None, rates: list[str], packet: str) -> list[DelayClass]:
    if (load is None) == (not rates):
        raise OptionError("", "", "give exactly one of --load, --rate")
    if load is not None:
        part = quantity.fraction("--load", load)
        if not 0 < part < 1:
            raise OptionError("--load", load, "must be above 0 and below 1: at full load waits grow without end")
        wanted = [part * link_bps / number] * number
    else:
        wanted = [quantity.rate_bps("--rate", text) for text in rates]
        if len(wanted) != number:
            raise OptionError(
                "--rate", " ".join(rates), f"are {len(wanted)} rates for {number} classes of --ratio: give one for each"
            )
        if min(wanted) <= 0 or sum(wanted) >= link_bps * (1 - 1e-9):
            most = quantity.rate_text(link_bps)
            raise OptionError("--rate", " ".join(rates), f"must be above 0 and together below the link's {most}")
    sizes = [quantity.size_bytes("--packet", part) for part in packet.split(":")]
    if len(sizes) not in (1, number):
        raise OptionError("--packet", packet, f"give one size, or one for each of {number} classes")
    sizes = sizes * number if len(sizes) == 1 else sizes
    return [DelayClass(f"c{i + 1}", wanted[i], sizes[i]) for i in range(number)]


def _steep(ratios: list[float]) -> list[float]:
    """Coefficients that come close to strict priority in the order of the ratios."""
    order = sorted(set(ratios), reverse=True)
    return [10.0 ** (3 * order.index(ratio)) for ratio in ratios]


def _toml(classes: list[DelayClass], delays: list[int], limit: int) -> str:
    lines = ["[scheduler]", 'policy = "pds"', f'limit = "{limit}p"']
    for c, delay in zip(classes, delays, strict=True):
        lines += ["", "[[class]]", f'name = "{c.name}"', f"delay = {delay}"]
    return "\n".join(lines) + "\n"


def _show(found: dict[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(f"WTP on {quantity.rate_text(found['link_bps'])} at a load of {found['load']:.4g}\n")

    def ms(value_s: float) -> str:
        return f"{value_s * 1e3:.4g}"

    if not found["possible"]:
        rows = [
            [c["name"], f"{c['ratio']:g}", ms(c["wanted_wait_s"]), ms(c["strict_wait_s"])] for c in found["classes"]
        ]
        print_all(["class", "wanted ratio", "wanted wait, ms", "wait under strict priority, ms"], rows)
        beyond = found["out_of_reach"]
        console.print(
            f"\n[red]out of reach:[/red] {', '.join(beyond['classes'])} would have to wait "
            f"{ms(beyond['wanted_wait_s'])} ms on average; "
            f"no scheduler gives less than {ms(beyond['least_wait_s'])} ms.\n"
            f"These ratios are in reach from a load of {found['least_load']:.3f} on.",
            soft_wrap=True,
        )
        return
    rows = [
        [
            c["name"],
            f"{c['ratio']:g}",
            f"{c['coefficient']:.4g}",
            str(c["delay"]),
            ms(c["wait_s"]),
            f"{c['expected_ratio']:.4g}",
        ]
        for c in found["classes"]
    ]
    print_all(["class", "wanted ratio", "coefficient", "delay", "mean wait, ms", "ratio"], rows)
    console.print(f"\nThese ratios are in reach from a load of {found['least_load']:.3f} on.", soft_wrap=True)
    for text in found["warnings"]:
        console.print(f"\n[yellow]warning:[/yellow] {text}", soft_wrap=True)
    console.print(f"\nFor a scenario:\n\n{found['toml']}", markup=False, highlight=False, soft_wrap=True)
