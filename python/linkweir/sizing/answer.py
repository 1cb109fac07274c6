# SPDX-License-Identifier: BSD-3-Clause
"""The answer of `linkweir plan`: parameters, expected rates, warnings and a piece of a scenario, ready for JSON."""

from __future__ import annotations

import math
from typing import Any

from linkweir.scenarios import quantity
from linkweir.sizing import pss, theory
from linkweir.sizing.in_use import commands_and_tables
from linkweir.sizing.requirements import Requirements, Span


def answer(required: Requirements) -> dict[str, Any]:
    """Parameters of every queue, rates by theory for the loads asked for, and warnings.

    Raises:
        OptionError: the requirements cannot be met.
    """
    queues, spans = _queues(required)
    pss.check_together(queues)
    warnings: list[str] = []
    for queue, span in zip(queues, spans, strict=True):
        warnings += pss.warnings_about([queue], 0.0, span.needed_s)
    warnings += [text for text in pss.warnings_about(queues, required.ef_expected_bps) if text not in warnings]
    reserved_bps = sum(queue.reserved_bps for queue in queues)
    targets = [queue.target_bps for queue in queues]
    trace = required.memory.trace
    tables = _toml(required, queues)
    commands, gateway = commands_and_tables(tables, quantity.rate_text(required.link_bps))
    return {
        "link_bps": required.link_bps,
        "ef_expected_bps": required.ef_expected_bps,
        "mean_trace_bps": None if trace is None else trace.mean_bps(),
        "queues": [
            _queue_answer(queue, required.ef_expected_bps, reserved_bps, span)
            for queue, span in zip(queues, spans, strict=True)
        ],
        "published_map": _published(required),
        "rates": [
            _rates_answer(load, required.link_bps, targets, required.k_af)
            for load in sorted({0.0, required.ef_expected_bps, *required.loads})
        ],
        "warnings": warnings,
        "toml": tables,
        "tc": commands,
        "gateway": gateway,
    }


def _queues(required: Requirements) -> tuple[list[pss.Queue], list[Span]]:
    bounds = {"other_mtu_bytes": required.other_mtu_bytes, "burst_above_bytes": required.burst_above_bytes}
    targets, burst_pkts = required.targets, required.burst_pkts
    if (w := required.weights) is not None:
        targets = (theory.reserved_bps(required.link_bps, required.ef_expected_bps, w.k_af),)
        burst_pkts = max(w.af, 2)
    queues: list[pss.Queue] = []
    spans: list[Span] = []
    for i, target_bps in enumerate(targets):
        name = "af" if len(targets) == 1 else f"af{i + 1}"
        span = required.memory.of(name, target_bps, required.ef_expected_bps + sum(targets[:i]), required.link_bps)
        spans.append(span)
        if w is not None and required.resume_bits is None and required.maximum_bits is None:
            queue = pss.from_weights(
                required.link_bps,
                required.ef_expected_bps,
                w.af,
                w.cs0,
                af_bytes=w.af_bytes,
                cs0_bytes=w.cs0_bytes,
                mtu_bytes=required.mtu_bytes,
                memory_s=span.memory_s,
                sat=required.sat,
                **bounds,
            )
        else:
            queue = pss.from_target(
                name,
                required.link_bps,
                target_bps,
                burst_pkts=burst_pkts,
                mtu_bytes=required.mtu_bytes,
                memory_s=span.memory_s,
                ef_expected_bps=required.ef_expected_bps,
                sat=required.sat,
                resume_bits=required.resume_bits,
                maximum_bits=required.maximum_bits,
                **bounds,
            )
        queues.append(queue)
    return queues, spans


def _published(required: Requirements) -> dict[str, float] | None:
    w = required.weights
    if w is None or w.af < 2 or w.cs0 < 2:
        return None
    printed = pss.published_map(required.link_bps, required.ef_expected_bps, w.af, w.cs0, w.af_bytes, w.cs0_bytes)
    return {"k_af": printed.k_af, "b": printed.b, "bw": printed.bw, "lr_bits": 0.0, "lm_bits": printed.maximum_bits}


def _queue_answer(queue: pss.Queue, expected_bps: float, reserved_bps: float, span: Span) -> dict[str, Any]:
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
        "longest_shortage_s": span.shortage_s,
        "memory_needed_s": span.needed_s,
        "margin": span.margin,
        "longest_hold_s": span.hold_s,
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


def _toml(required: Requirements, queues: list[pss.Queue]) -> str:
    explicit_lr = any(
        x is not None for x in (required.resume_bits, required.other_mtu_bytes, required.burst_above_bytes)
    )
    explicit_lm = required.maximum_bits is not None or required.weights is not None
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
        if explicit_lr:
            lines.append(f'lr = "{quantity.rate_text(q.resume_bits)}"')
        else:
            lines.append(f'memory = "{quantity.time_text(q.memory_s)}"')
        if explicit_lm:
            lines.append(f'lm = "{quantity.rate_text(q.maximum_bits)}"')
    lines += ["", "[[class]]", 'name = "cs0"', f"level = {2 + len(queues)}"]
    return "\n".join(lines) + "\n"
