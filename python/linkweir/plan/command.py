# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir plan pss`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from linkweir import theory
from linkweir.plan import quantity, shortage, sizing
from linkweir.plan.fault import Fault

app = typer.Typer(help="Parameters of a policy from what is wanted of it.", no_args_is_help=True)


@app.callback()
def plan() -> None:
    """Parameters of a policy from what is wanted of it."""


@app.command("pss")
def pss(
    link: Annotated[str, typer.Option(help="Nominal (mean) rate of the link, as the scheduler is told it.")],
    rate: Annotated[list[str] | None, typer.Option(help="Rate to reserve; repeat, most urgent first.")] = None,
    share: Annotated[list[str] | None, typer.Option(help="The same as a part of the link: 0.25 or 25%.")] = None,
    weights: Annotated[str | None, typer.Option(help="WRR weights AF:CS0 to stand in for, packets per visit.")] = None,
    sizes: Annotated[str, typer.Option(help="Mean packet sizes AF:CS0 behind the weights.")] = "1500B:1500B",
    burst: Annotated[str | None, typer.Option(help="N: packets sent in a row before the priority drops [20p].")] = None,
    mtu: Annotated[str, typer.Option(help="Largest packet of the controlled queues.")] = "1514B",
    other_mtu: Annotated[str | None, typer.Option(help="Largest packet of any other queue [as --mtu].")] = None,
    burst_above: Annotated[str | None, typer.Option(help="Largest burst of more urgent queues [one packet].")] = None,
    ef_expected: Annotated[
        str, typer.Option(help="Strict-priority load to expect: a rate or a part of the link.")
    ] = "0%",
    ef: Annotated[list[str] | None, typer.Option(help="Further loads to tell the rates for; repeat.")] = None,
    memory: Annotated[str | None, typer.Option(help="How long a starvation is remembered [100ms].")] = None,
    longest_fade: Annotated[str | None, typer.Option(help="Longest shortage; sets the memory.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Capacity trace in which to look for it.")] = None,
    margin: Annotated[float, typer.Option(help="Memory per longest fade.", min=1.0, max=100.0)] = 2.0,
    sat: Annotated[str, typer.Option(help="exact, or paper: as published; the rate is corrected.")] = "exact",
    lr: Annotated[str | None, typer.Option(help="Resume level itself, instead of the memory.")] = None,
    lm: Annotated[str | None, typer.Option(help="Maximum level itself, instead of the burst.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Parameters of PSS, the rates to expect, and what will not work as hoped.

    Give --rate, --share or --weights.
    """
    try:
        answer = _pss(
            link,
            rate or [],
            share or [],
            weights,
            sizes,
            burst,
            mtu,
            other_mtu,
            burst_above,
            ef_expected,
            ef or [],
            memory,
            longest_fade,
            trace,
            margin,
            sat,
            lr,
            lm,
        )
    except Fault as fault:
        typer.echo(f"linkweir plan pss: {fault}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        _show(answer)


def _pss(
    link: str,
    rates: list[str],
    shares: list[str],
    weights: str | None,
    sizes: str,
    burst: str | None,
    mtu: str,
    other_mtu: str | None,
    burst_above: str | None,
    ef_expected: str,
    efs: list[str],
    memory: str | None,
    longest_fade: str | None,
    trace_path: Path | None,
    margin: float,
    sat: str,
    lr: str | None,
    lm: str | None,
) -> dict[str, Any]:
    link_bps = quantity.rate_bps("--link", link)
    expected_bps = quantity.rate_or_fraction_bps("--ef-expected", ef_expected, link_bps)
    if expected_bps >= link_bps:
        raise Fault("--ef-expected", ef_expected, "must leave something of the link")
    if sat not in ("exact", "paper"):
        raise Fault("--sat", sat, "must be exact or paper")
    if bool(rates) + bool(shares) + bool(weights) != 1:
        raise Fault(
            "target",
            " ".join([*rates, *shares, weights or ""]).strip(),
            "give exactly one of --rate, --share, --weights",
        )
    if weights and burst is not None:
        raise Fault("--burst", burst, "follows from --weights; leave one of them out")
    if sum(x is not None for x in (memory, longest_fade, trace_path, lr)) > 1:
        raise Fault(
            "--memory", memory or longest_fade or "", "give only one of --memory, --longest-fade, --trace, --lr"
        )
    mtu_bytes = quantity.size_bytes("--mtu", mtu, 64)
    bounds = {
        "other_mtu_bytes": None if other_mtu is None else quantity.size_bytes("--other-mtu", other_mtu),
        "burst_above_bytes": None if burst_above is None else int(quantity.size_bytes("--burst-above", burst_above)),
    }
    trace = None if trace_path is None else shortage.read(trace_path)
    published = None
    shortest: dict[str, tuple[float, float]] = {}

    if weights:
        af_weight, cs0_weight = (_whole("--weights", weights, part) for part in _pair("--weights", weights))
        af_bytes, cs0_bytes = (quantity.size_bytes("--sizes", part) for part in _pair("--sizes", sizes))
        k_af = theory.wrr_share(af_weight, cs0_weight, af_bytes, cs0_bytes)
        targets = [theory.reserved_bps(link_bps, expected_bps, k_af)]
        if af_weight >= 2 and cs0_weight >= 2:
            published = sizing.published_map(link_bps, expected_bps, af_weight, cs0_weight, af_bytes, cs0_bytes)
    elif rates:
        targets = [quantity.rate_bps("--rate", text) for text in rates]
        k_af = targets[0] / (link_bps - expected_bps)
    else:
        targets = [quantity.fraction("--share", text) * link_bps for text in shares]
        k_af = targets[0] / (link_bps - expected_bps)
    if sum(targets) > link_bps:
        raise Fault("--rate", quantity.rate_text(sum(targets)), f"in all is more than the link, {link}: reserve less")

    queues = []
    ahead_bps = expected_bps
    for i, target_bps in enumerate(targets):
        name = "af" if len(targets) == 1 else f"af{i + 1}"
        if not 10 <= target_bps < link_bps:
            raise Fault(
                "--rate" if rates else "--share", quantity.rate_text(target_bps), f"must be 10 bit/s up to below {link}"
            )
        memory_s = 0.1
        if memory is not None:
            memory_s = quantity.time_s("--memory", memory)
        elif longest_fade is not None:
            shortage_s = quantity.time_s("--longest-fade", longest_fade)
            shortest[name] = (shortage_s, shortage_s)
            memory_s = max(0.1, margin * shortage_s)
        elif trace is not None:
            shortage_s, needed_s = trace.shortage_s(target_bps, ahead_bps), trace.needed_s(target_bps, ahead_bps)
            if math.isinf(shortage_s) or math.isinf(needed_s):
                raise Fault(
                    "--trace",
                    trace_path,
                    f"leaves less than {quantity.rate_text(target_bps)} to {name} in the long run: reserve less",
                )
            shortest[name] = (shortage_s, needed_s)
            memory_s = max(0.1, margin * shortage_s)
        resume_bits = None if lr is None else quantity.amount_bits("--lr", lr)
        maximum_bits = None if lm is None else quantity.amount_bits("--lm", lm)
        if weights and lr is None and lm is None:
            queue = sizing.from_weights(
                link_bps,
                expected_bps,
                af_weight,
                cs0_weight,
                af_bytes=af_bytes,
                cs0_bytes=cs0_bytes,
                mtu_bytes=mtu_bytes,
                memory_s=memory_s,
                sat=sat,
                **bounds,
            )
        else:
            burst_pkts = max(af_weight, 2) if weights else quantity.count_pkts("--burst", burst or "20p", 2)
            queue = sizing.from_target(
                name,
                link_bps,
                target_bps,
                burst_pkts=burst_pkts,
                mtu_bytes=mtu_bytes,
                memory_s=memory_s,
                ef_expected_bps=expected_bps,
                sat=sat,
                **bounds,
                resume_bits=resume_bits,
                maximum_bits=maximum_bits,
            )
        queues.append(queue)
        ahead_bps += target_bps
    sizing.check_together(queues)

    warnings = []
    for queue in queues:
        span = shortest.get(queue.name)
        warnings += sizing.doubts([queue], 0.0, *(span or (None, None)))
    warnings += [text for text in sizing.doubts(queues, expected_bps) if text not in warnings]
    reserved = [queue.reserved_bps for queue in queues]
    loads = sorted({0.0, expected_bps, *(quantity.rate_or_fraction_bps("--ef", text, link_bps) for text in efs)})
    return {
        "link_bps": link_bps,
        "ef_expected_bps": expected_bps,
        "mean_trace_bps": None if trace is None else trace.mean_bps(),
        "queues": [_queue_answer(queue, expected_bps, sum(reserved), shortest.get(queue.name)) for queue in queues],
        "published_map": None
        if published is None
        else {
            "k_af": published.k_af,
            "b": published.b,
            "bw": published.bw,
            "lr_bits": 0.0,
            "lm_bits": published.maximum_bits,
        },
        "rates": [_rates_answer(load, link_bps, [q.target_bps for q in queues], k_af) for load in loads],
        "warnings": warnings,
        "toml": _toml(queues, bounds, explicit_lr=lr is not None, explicit_lm=lm is not None or weights is not None),
    }


def _pair(key: str, text: str) -> list[str]:
    parts = text.split(":")
    if len(parts) != 2:
        raise Fault(key, text, "write it as AF:CS0, such as 16:4 or 1500B:1500B")
    return parts


def _whole(key: str, given: str, text: str) -> int:
    if not text.strip().isdigit() or not 1 <= int(text) <= 65535:
        raise Fault(key, given, "weights are whole numbers of packets, 1 .. 65535")
    return int(text)


def _queue_answer(
    queue: sizing.Queue, expected_bps: float, reserved_bps: float, span: tuple[float, float] | None
) -> dict[str, Any]:
    catch_up = theory.catch_up_s(queue.maximum_bits, queue.link_bps, expected_bps, reserved_bps)
    return {
        "name": queue.name,
        "target_bps": queue.target_bps,
        "rate_bps": queue.reserved_bps,
        "bw": queue.bw,
        "burst_pkts": queue.burst_pkts,
        "mtu_bytes": queue.mtu_bytes,
        "memory_s": queue.memory_s,
        "lr_bits": queue.resume_bits,
        "lm_bits": queue.maximum_bits,
        "tr_s": queue.resume_s,
        "tm_s": queue.maximum_s,
        "catch_up_s": None if math.isinf(catch_up) else catch_up,
        "longest_shortage_s": None if span is None else span[0],
        "memory_needed_s": None if span is None else span[1],
        "service_bound_1s_bits": theory.pss_service_bound_bits(
            1.0, queue.maximum_bits, queue.reserved_bps, queue.mtu_bytes
        ),
    }


def _rates_answer(ef_bps: float, link_bps: float, targets: list[float], k_af: float) -> dict[str, Any]:
    rates, rest = theory.controlled_rates(link_bps - ef_bps, targets)
    answer: dict[str, Any] = {"ef_bps": ef_bps, "pss_controlled_bps": rates, "pss_cs0_bps": rest}
    if len(targets) == 1:
        drr = theory.drr_rates(link_bps, ef_bps, min(k_af, 1.0))
        answer |= {"drr_af_bps": drr.af_bps, "drr_cs0_bps": drr.cs0_bps}
    return answer


def _toml(queues: list[sizing.Queue], bounds: dict[str, int | None], *, explicit_lr: bool, explicit_lm: bool) -> str:
    lines = ["[scheduler]", 'policy = "pss"', f'sat = "{queues[0].sat}"', "", "[[class]]", 'name = "ef"', "level = 1"]
    for i, q in enumerate(queues):
        lines += [
            "",
            "[[class]]",
            f'name = "{q.name}"',
            f"level = {2 + i}",
            f"low_level = {3 + len(queues) + i}",
            f'rate = "{quantity.rate_text(q.reserved_bps)}"',
            f'burst = "{q.burst_pkts}p"',
            f'mtu = "{q.mtu_bytes}B"',
        ]
        if explicit_lr or any(value is not None for value in bounds.values()):
            lines.append(f'lr = "{quantity.rate_text(q.resume_bits)}"')
        else:
            lines.append(f'memory = "{quantity.time_text(q.memory_s)}"')
        if explicit_lm:
            lines.append(f'lm = "{quantity.rate_text(q.maximum_bits)}"')
    lines += ["", "[[class]]", 'name = "cs0"', f"level = {2 + len(queues)}"]
    return "\n".join(lines) + "\n"


def _mbit(value_bps: float) -> str:
    return f"{value_bps / 1e6:.3f}"


def _show(answer: dict[str, Any]) -> None:
    console = Console()
    table = Table(
        title=f"PSS on {quantity.rate_text(answer['link_bps'])}, EF expected {_mbit(answer['ef_expected_bps'])} Mbit/s"
    )
    table.add_column("")
    for queue in answer["queues"]:
        table.add_column(queue["name"], justify="right")
    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("target Mbit/s", lambda q: _mbit(q["target_bps"])),
        ("reserved rate rho, Mbit/s", lambda q: _mbit(q["rate_bps"])),
        ("BW, part of the link", lambda q: f"{q['bw']:.4f}"),
        ("burst N, packets", lambda q: str(q["burst_pkts"])),
        ("memory, s", lambda q: f"{q['memory_s']:g}"),
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
    for label, value in lines:
        table.add_row(label, *(value(q) for q in answer["queues"]))
    console.print(table)

    if answer["published_map"]:
        p = answer["published_map"]
        console.print(
            f"For comparison, the published map (2)-(5): K_AF {p['k_af']:.4f}, B {p['b']:.4f}, BW {p['bw']:.4f}, "
            f"LR 0, LM {p['lm_bits'] / 1e3:.3f} kbit"
        )
    rates = Table(title="Rates with everything backlogged, Mbit/s")
    rates.add_column("EF", justify="right")
    for queue in answer["queues"]:
        rates.add_column(f"PSS {queue['name']}", justify="right")
    rates.add_column("PSS cs0", justify="right")
    single = "drr_af_bps" in answer["rates"][0]
    if single:
        rates.add_column("DRR af", justify="right")
        rates.add_column("DRR cs0", justify="right")
    for row in answer["rates"]:
        cells = [row["ef_bps"], *row["pss_controlled_bps"], row["pss_cs0_bps"]]
        cells += [row["drr_af_bps"], row["drr_cs0_bps"]] if single else []
        rates.add_row(*(_mbit(cell) for cell in cells))
    console.print(rates)
    for text in answer["warnings"]:
        console.print(f"[yellow]warning:[/yellow] {text}", soft_wrap=True)
    console.print("\n" + answer["toml"], markup=False, highlight=False)
