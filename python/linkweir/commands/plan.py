# SPDX-License-Identifier: BSD-3-Clause
"""The commands `linkweir plan pss` and `plan pds`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir import _native
from linkweir.bounds.answer import envelope
from linkweir.bounds.curve import Curve
from linkweir.bounds.wishes import Link, Wish, wishes
from linkweir.commands import plan_pds, plan_table
from linkweir.commands.trace_keys import TraceKeys, show_trace, trace_keys
from linkweir.scenarios import quantity
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import defaults, shortage
from linkweir.sizing.answer import answer
from linkweir.sizing.pss import ROUNDING
from linkweir.sizing.requirements import FADE_MARGIN, TRACE_MARGIN, Memory, Requirements, Weights

app = typer.Typer(
    help="Compute the parameters of a policy from the rates or delays that you want.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def plan() -> None:
    """Compute the parameters of a policy from the rates or delays that you want."""


app.command("pds")(plan_pds.pds)


@app.command("pss")
def pss(
    link: Annotated[str, typer.Option(help="Nominal (mean) rate of the link, as configured in the scheduler.")],
    rate: Annotated[list[str] | None, typer.Option(help="Rate to reserve; repeat, most urgent first.")] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="Part of the link to reserve, 0.25 or 25%; repeat, most urgent first.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="WRR weights AF:CS0 that PSS replaces, in packets per visit.")
    ] = None,
    sizes: Annotated[str, typer.Option(help="Mean packet sizes AF:CS0 for the weights.")] = "1500B:1500B",
    burst: Annotated[
        str | None,
        typer.Option(help=f"N: packets sent in a row before the priority drops (default: {defaults.BURST})."),
    ] = None,
    mtu: Annotated[str, typer.Option(help="Largest packet of the controlled queues.")] = defaults.MTU,
    other_mtu: Annotated[
        str | None, typer.Option(help="Largest packet of any other queue (default: as --mtu).")
    ] = None,
    burst_above: Annotated[
        str | None, typer.Option(help="Largest burst of more urgent queues (default: one packet).")
    ] = None,
    ef_expected: Annotated[
        str | None,
        typer.Option(
            help="Strict-priority load to expect: a rate or a part of the link (default: that of --envelope, or 0%)."
        ),
    ] = None,
    ef: Annotated[list[str] | None, typer.Option(help="Further loads to show the rates for; repeat.")] = None,
    memory: Annotated[
        str | None, typer.Option(help=f"How long a starvation is remembered (default: {defaults.MEMORY}).")
    ] = None,
    longest_fade: Annotated[
        str | None, typer.Option(help="Longest time with too little capacity; sets the memory.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Capacity trace; sets the memory to what loses nothing on it.")
    ] = None,
    trace_key: TraceKeys = None,
    envelopes: Annotated[
        list[str] | None,
        typer.Option(
            "--envelope",
            metavar="CLASS=BURST:RATE",
            help="The most that a class sends, or CLASS=COUNTxCODEC for calls, such as ef=20xg711; repeat.",
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=TIME", help="Worst delay that is wished of a class, such as ef=20ms; repeat."),
    ] = None,
    worst: Annotated[
        str | None,
        typer.Option(metavar="PART/WINDOW", help="The least that the link carries in any window, such as 60%/10s."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Memory as a multiple of what is needed (default: "
            f"{TRACE_MARGIN:g} of a --trace, {FADE_MARGIN:g} of a --longest-fade).",
            min=1.0,
            max=100.0,
        ),
    ] = None,
    sat: Annotated[
        str,
        typer.Option(help="Upper end of the credit: exact; or paper, as published, for which the rate is corrected."),
    ] = defaults.SAT,
    lr: Annotated[str | None, typer.Option(help="Resume level, instead of the memory.")] = None,
    lm: Annotated[str | None, typer.Option(help="Maximum level, instead of the burst.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the parameters of PSS, and show the rates to expect and warnings.

    Give --rate, --share or --weights. With --envelope, --within or --worst the worst case stands beside each wish, and
    the exit code is 1 if one cannot be kept.
    """
    try:
        _only_one({"--rate": rate, "--share": share, "--weights": weights}, least=1)
        _only_one({"--memory": memory, "--longest-fade": longest_fade, "--lr": lr})
        _only_one({"--longest-fade": longest_fade, "--trace": trace})
        for option, text in (("--memory", memory), ("--lr", lr)):
            if margin is not None and text is not None:
                raise OptionError(f"--margin {margin:g} {option} {text}", "", f"give only one of --margin, {option}")
        if margin is not None and longest_fade is None and trace is None:
            raise OptionError(
                "--margin", f"{margin:g}", "is a multiple of what --trace or --longest-fade needs; give one"
            )
        if weights and burst is not None:
            raise OptionError("--burst", burst, "follows from --weights; leave one of them out")
        if sat not in ("exact", "paper"):
            raise OptionError("--sat", sat, "must be exact or paper")
        if worst is not None and trace is not None:
            raise OptionError(f"--worst {worst} --trace", trace, "give only one of --worst, --trace")
        described = trace_keys(trace_key, trace)
        link_bps = quantity.rate_bps("--link", link)
        curves = dict(envelope(text) for text in envelopes or [])
        limits = dict(_limit(text) for text in within or [])
        wanted = Requirements(
            link_bps=link_bps,
            ef_expected_bps=_expected_bps(ef_expected, link_bps, curves),
            targets=_targets(link_bps, rate or [], share or []),
            weights=None if weights is None else _weights(weights, sizes),
            burst_pkts=quantity.count_pkts("--burst", burst or defaults.BURST, 2),
            mtu_bytes=quantity.size_bytes("--mtu", mtu, 64),
            other_mtu_bytes=None if other_mtu is None else quantity.size_bytes("--other-mtu", other_mtu),
            burst_above_bytes=None if burst_above is None else quantity.size_bytes("--burst-above", burst_above),
            memory=_memory(memory, longest_fade, trace, margin, described),
            sat=sat,
            resume_bits=None if lr is None else quantity.amount_bits("--lr", lr),
            maximum_bits=None if lm is None else quantity.amount_bits("--lm", lm),
            loads=tuple(quantity.rate_or_fraction_bps("--ef", text, link_bps) for text in ef or []),
        )
        found = answer(wanted)
        if envelopes or within or worst:
            found = _in_the_worst_case(wanted, found, Link(link_bps, trace, worst, described), curves, limits)
    except (OptionError, _native.ScenarioError) as fault:
        typer.echo(f"linkweir plan pss: {fault}", err=True)
        raise typer.Exit(2) from None
    if not as_json:
        show_trace(trace, described)
    if as_json:
        typer.echo(json.dumps(found, indent=2, allow_nan=False))
    else:
        plan_table.show(found)
    if any(not wish["kept"] for wish in found.get("wishes", [])):
        raise typer.Exit(1)


def _in_the_worst_case(
    wanted: Requirements, found: dict[str, Any], link: Link, curves: dict[str, Curve], limits: dict[str, Fraction]
) -> dict[str, Any]:
    """The answer with its wishes. A memory that was not asked for is raised to what loses nothing."""
    other_bytes = wanted.mtu_bytes if wanted.other_mtu_bytes is None else wanted.other_mtu_bytes
    sizes = {"ef": other_bytes, **{queue["name"]: wanted.mtu_bytes for queue in found["queues"]}, "cs0": other_bytes}
    for name, curve in curves.items():  # no packet is larger than what is sent at once
        if name in sizes:
            sizes[name] = max(min(sizes[name], int(curve(0) // 8)), 1)

    def judged(answered: dict[str, Any]) -> list[Wish]:
        return wishes(answered["toml"], link, envelopes=curves, within_s=limits, sizes_bytes=sizes)

    result = judged(found)
    needed_s = max((wish.memory_s for wish in result if wish.memory_s is not None), default=Fraction(0))
    free = wanted.memory.given_s is None and wanted.resume_bits is None
    if free and needed_s > max(queue["memory_s"] for queue in found["queues"]):
        memory = replace(wanted.memory, least_s=math.ceil(needed_s * 1000) / 1000)
        found = answer(replace(wanted, memory=memory))
        result = judged(found)
    return found | {"wishes": [_wish_answer(wish) for wish in result]}


def _wish_answer(wish: Wish) -> dict[str, Any]:
    def number(value: Fraction | None) -> float | None:
        return None if value is None else float(value)

    return {
        "name": wish.name,
        "rate_bps": number(wish.rate_bps),
        "within_s": number(wish.within_s),
        "latency_s": number(wish.latency_s),
        "delay_s": number(wish.delay_s),
        "memory_needed_s": number(wish.memory_s),
        "kept": wish.kept,
        "why": wish.why or None,
    }


def _limit(text: str) -> tuple[str, Fraction]:
    name, equals, time = text.partition("=")
    if not equals:
        raise OptionError("--within", text, "write it as CLASS=TIME, such as ef=20ms")
    return name, Fraction(str(quantity.time_s("--within", time)))


def _only_one(options: dict[str, object], least: int = 0) -> None:
    given = {option: value for option, value in options.items() if value}
    if least <= len(given) <= 1:
        return
    rule = f"give {'exactly' if least else 'only'} one of {', '.join(options)}"
    if not given:
        raise OptionError("", "", rule)
    raise OptionError(" ".join(_typed(option, value) for option, value in given.items()), "", rule)


def _typed(option: str, value: object) -> str:
    """An option as typed on the command line, as often as it is given."""
    return " ".join(f"{option} {text}" for text in (value if isinstance(value, list) else [value]))


def _expected_bps(text: str | None, link_bps: float, curves: dict[str, Curve]) -> float:
    key, expected_bps = "--ef-expected", 0.0
    if text is not None:
        expected_bps = quantity.rate_or_fraction_bps(key, text, link_bps)
    elif "ef" in curves:
        key, expected_bps = "--envelope ef", float(curves["ef"].rate)
    if expected_bps >= link_bps:
        raise OptionError(key, text or quantity.rate_text(expected_bps), "must leave something of the link")
    return expected_bps


def _memory(
    memory: str | None, longest_fade: str | None, trace: Path | None, margin: float | None, keys: dict[str, Any] | None
) -> Memory:
    return Memory(
        given_s=None if memory is None else quantity.time_s("--memory", memory),
        fade_s=None if longest_fade is None else quantity.time_s("--longest-fade", longest_fade),
        trace=None if trace is None else shortage.read(trace, keys),
        margin=margin,
    )


def _targets(link_bps: float, rates: list[str], shares: list[str]) -> tuple[float, ...]:
    wanted = [("--rate", text, quantity.rate_bps("--rate", text)) for text in rates]
    wanted += [("--share", text, quantity.fraction("--share", text) * link_bps) for text in shares]
    for key, text, target_bps in wanted:
        if not 10 <= target_bps < link_bps:
            raise OptionError(key, text, f"must be 10 bit/s up to below the link's {quantity.rate_text(link_bps)}")
    total_bps = sum(target_bps for _, _, target_bps in wanted)
    if total_bps > link_bps * (1 + ROUNDING):
        sums = f"are {quantity.rate_text(total_bps)} together, more than the link's {quantity.rate_text(link_bps)}"
        raise OptionError(" ".join(_typed(key, text) for key, text, _ in wanted), "", f"{sums}: reserve less")
    return tuple(target_bps for _, _, target_bps in wanted)


def _weights(text: str, sizes: str) -> Weights:
    af, cs0 = (_whole("--weights", text, part) for part in _pair("--weights", text))
    af_bytes, cs0_bytes = (quantity.size_bytes("--sizes", part) for part in _pair("--sizes", sizes))
    return Weights(af, cs0, af_bytes, cs0_bytes)


def _pair(key: str, text: str) -> list[str]:
    parts = text.split(":")
    if len(parts) != 2:
        raise OptionError(key, text, "write it as AF:CS0, such as 16:4 or 1500B:1500B")
    return parts


def _whole(key: str, given: str, text: str) -> int:
    if not text.strip().isdigit() or not 1 <= int(text) <= 65535:
        raise OptionError(key, given, "weights are whole numbers of packets, 1 .. 65535")
    return int(text)
