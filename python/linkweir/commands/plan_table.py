# SPDX-License-Identifier: BSD-3-Clause
"""Prints the answer of `linkweir plan`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from linkweir.commands.terminal import print_all
from linkweir.scenarios import quantity


def _mbit(value_bps: float) -> str:
    return f"{value_bps / 1e6:.3f}"


def _multiple(queue: dict[str, Any]) -> str:
    return f"{queue['memory_s'] / queue['memory_needed_s']:.3g}" if queue["memory_needed_s"] else "-"


def _wished(wish: dict[str, Any]) -> str:
    if wish["within_s"] is not None:
        return f"{wish['name']} within {quantity.time_text(wish['within_s'])}"
    return f"{wish['name']} {quantity.rate_text(wish['rate_bps'])}"


def _at_most(time_s: float) -> str:
    return quantity.time_text(math.ceil(time_s * 1e6) / 1e6)


def _wish(wish: dict[str, Any]) -> list[str]:
    if wish["delay_s"] is not None:
        certain = f"within {_at_most(wish['delay_s'])}"
    elif wish["latency_s"] is not None:
        certain = f"{quantity.rate_text(wish['rate_bps'])}, late by at most {_at_most(wish['latency_s'])}"
    else:
        certain = "nothing"
    return [_wished(wish), certain, "yes" if wish["kept"] else "no"]


def show(answer: dict[str, Any]) -> None:
    """Prints parameters, rates, warnings and the piece of a scenario."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(
        f"PSS on {quantity.rate_text(answer['link_bps'])}, EF expected {_mbit(answer['ef_expected_bps'])} Mbit/s\n"
    )
    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("target Mbit/s", lambda q: _mbit(q["target_bps"])),
        ("reserved rate rho, Mbit/s", lambda q: _mbit(q["rate_bps"])),
        ("BW, part of the link", lambda q: f"{q['bw']:.4f}"),
        ("burst N, packets", lambda q: str(q["burst_pkts"])),
        ("memory, s", lambda q: f"{q['memory_s']:.9g}"),
        ("LR, kbit", lambda q: f"{q['lr_bits'] / 1e3:.3f}"),
        ("LM, kbit", lambda q: f"{q['lm_bits'] / 1e3:.3f}"),
        ("LR as time, s", lambda q: f"{q['tr_s']:.4f}"),
        ("LM as time, s", lambda q: f"{q['tm_s']:.4f}"),
        (
            "longest hold on CS0 after starvation, s",
            lambda q: "no end" if q["catch_up_s"] is None else f"{q['catch_up_s']:.3f}",
        ),
    ]
    if any(q["longest_shortage_s"] is not None for q in answer["queues"]):
        lines.append(("longest shortage, s", lambda q: f"{q['longest_shortage_s']:.3f}"))
        lines.append(("memory that loses nothing, s", lambda q: f"{q['memory_needed_s']:.3f}"))
        lines.append(("memory as a multiple of that", _multiple))
    if any(q["longest_hold_s"] is not None for q in answer["queues"]):
        lines.append(("longest hold on CS0 in the trace, s", lambda q: f"{q['longest_hold_s']:.3f}"))
    names = [queue["name"] for queue in answer["queues"]]
    print_all(["", *names], [[label, *(value(q) for q in answer["queues"])] for label, value in lines])

    if answer["published_map"]:
        p = answer["published_map"]
        console.print(
            f"For comparison, the published map (2)-(5): K_AF {p['k_af']:.4f}, B {p['b']:.4f}, BW {p['bw']:.4f}, "
            f"LR 0, LM {p['lm_bits'] / 1e3:.3f} kbit"
        )
    headings = ["EF", *(f"PSS {name}" for name in names), "PSS cs0"]
    single = "drr_af_bps" in answer["rates"][0]
    if single:
        headings += ["DRR af", "DRR cs0"]
    rows = []
    for row in answer["rates"]:
        cells = [row["ef_bps"], *row["pss_controlled_bps"], row["pss_cs0_bps"]]
        cells += [row["drr_af_bps"], row["drr_cs0_bps"]] if single else []
        rows.append([_mbit(cell) for cell in cells])
    console.print("\nRates with everything backlogged, Mbit/s\n")
    print_all(headings, rows, left=0)
    if "wishes" in answer:
        console.print("\nIn the worst case\n")
        print_all(["wish", "certain", "kept"], [_wish(wish) for wish in answer["wishes"]], left=3)
        for wish in answer["wishes"]:
            if not wish["kept"]:
                console.print(f"\n[red]not kept:[/red] {_wished(wish)}: {wish['why']}", soft_wrap=True)
    for text in answer["warnings"]:
        console.print(f"\n[yellow]warning:[/yellow] {text}", soft_wrap=True)
    for heading, text in (
        ("For a scenario:", answer["toml"]),
        ("For Linux, on eth0 (see linkweir export tc):", "\n".join(answer["tc"]) + "\n"),
        ("For the gateway (see linkweir export gateway):", answer["gateway"]),
    ):
        console.print(f"\n{heading}\n\n{text}", markup=False, highlight=False, soft_wrap=True)
