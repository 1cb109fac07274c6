# SPDX-License-Identifier: BSD-3-Clause
"""Rules that compare totals of a run with its scenario."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from linkweir import _native, bins
from linkweir.diagnose.finding import Finding, megabits, merged
from linkweir.diagnose.setting import Entry, Setting, packet_bytes, size_bytes

if TYPE_CHECKING:
    from linkweir.outline import Values
    from linkweir.result import Result

LONG_DELAY_S = 1.0
"""A class is reported if more than one packet in twenty waited for longer."""
EXCESS = 0.01
"""Part of the capacity by which more has to be offered: windows cut packets, and random traffic varies."""
_FIXED_LOAD = ("cbr", "poisson", "onoff")
"""Flows that send whatever becomes of their packets."""


def offered_above_capacity(result: Result, setting: Setting) -> list[Finding]:
    """Flows that do not slow down send more than the link can carry."""
    if setting.beam or not {"flows", "link"} <= set(result.tables):
        return []
    capacity_bps = _capacity_bps(result)
    if capacity_bps is None:
        return []
    offered_bps = _offered_bps(result, setting)
    if offered_bps <= (1 + EXCESS) * capacity_bps:
        return []
    coded = "coded for the satellite " if setting.satellite else ""
    what = (
        f"flows that do not slow down send {megabits(offered_bps)} {coded}over {megabits(capacity_bps)}, "
        f"{megabits(offered_bps - capacity_bps)} more than it carries"
    )
    cure = "The excess is queued or dropped: lower the rates of cbr, poisson and onoff flows"
    return [Finding("offered", "link", what, cure, {"offered_bps": offered_bps, "capacity_bps": capacity_bps})]


def _offered_bps(result: Result, setting: Setting) -> float:
    """What flows of fixed load put on the wire, were all of it sent; from a satellite in coded bits."""
    window_s = result.simulated_s - result.scenario.warmup_s
    mean_bytes = np.repeat(
        [setting.packet_wire_bytes(packet_bytes(flow)[0]) for flow in setting.flows],
        [flow["count"] for flow in setting.flows],
    )
    bits = 8.0 * mean_bytes
    if "harq" in result.tables:
        attempts = result.tables["harq"].to_pydict()
        ended = sum(sum(attempts[key]) for key in attempts if re.fullmatch(r"decoded_\w+|given_up_pkts", key))
        bits = np.full(len(bits), sum(attempts["coded_bits"]) / ended if ended else 0.0)
    flows = result.flows.select(["kind", "arrived_pkts"]).to_pydict()
    offered = [count if kind in _FIXED_LOAD else 0 for kind, count in zip(*flows.values(), strict=True)]
    return float(np.dot(bits, offered)) / window_s


def _capacity_bps(result: Result) -> float | None:
    """Mean capacity over the time that totals cover; None if the run ended before it."""
    rows = result.batches("link", ("t_s", "capacity_bps"))
    return bins.means(rows, ("capacity_bps",), **_covered(result))["capacity_bps"]


def spans_in_window_s(starts_s: Values, result: Result) -> Values:
    """How much of each bin lies in the time that totals cover."""
    return 1e-9 * bins.spans_ns(starts_s, **_covered(result))


def _covered(result: Result) -> dict[str, float]:
    scenario = result.scenario
    return {"interval_s": scenario.interval_s, "from_s": scenario.warmup_s, "to_s": result.simulated_s}


def small_mtu(_: Result, setting: Setting) -> list[Finding]:
    """A parameter `mtu`, the largest packet, is below packets that are sent."""
    if "mtu" in setting.scheduler:
        largest = setting.packet_wire_bytes(max(entry.largest_bytes() for entry in setting.entries))
        effect = "packets are dropped although no other waits behind them"
        return _mtu("scheduler.mtu", setting.scheduler["mtu"], largest, effect)
    found = []
    for entry in setting.entries:
        if "mtu" in entry.keys and "low_level" in entry.keys and not {"lr", "lm"} <= set(entry.keys):
            largest = setting.packet_wire_bytes(entry.largest_bytes())
            effect = f'a turn is shorter than burst = "{entry.keys["burst"]}" says'
            found += _mtu(f"class {entry.keys['name']}", entry.keys["mtu"], largest, effect)
    return found


def _mtu(where: str, mtu: str, largest_bytes: float, effect: str) -> list[Finding]:
    mtu_bytes = size_bytes(mtu)
    if largest_bytes <= mtu_bytes:
        return []
    what = f'packets have up to {largest_bytes:.0f} bytes on the wire, but mtu = "{mtu}" is to be the largest: {effect}'
    figures = {"packet_bytes": largest_bytes, "mtu_bytes": mtu_bytes}
    return [Finding("mtu", where, what, f'Set mtu = "{math.ceil(largest_bytes)}B"', figures)]


def short_trace(result: Result, setting: Setting) -> list[Finding]:
    """The trace of the capacity ends before the run."""
    length_s = result.scenario.capacity_length_s
    if "trace" not in setting.link or length_s is None or length_s >= result.simulated_s:
        return []
    end = setting.link.get("end", "loop")
    after = {
        "loop": "then it began again",
        "hold": "then its last value stayed",
        "stop": "then the link carried nothing",
    }[end]
    what = f"it lasts {length_s:.6g} s and the run {result.simulated_s:.6g} s; {after}"
    figures = {"trace_s": length_s, "simulated_s": result.simulated_s}
    return [Finding("trace", "link.trace", what, f'Set duration = "{length_s:.6g}s" or give a longer trace', figures)]


def long_delays(result: Result, setting: Setting) -> list[Finding]:
    """Classes in which packets wait for long."""
    if "classes" not in result.tables:
        return []
    rows = result.rows("classes")
    window_s = result.simulated_s - result.scenario.warmup_s
    found = []
    for entry in setting.entries:
        late = [n for n in entry.numbers if (rows[n]["delay_p95_s"] or 0.0) > LONG_DELAY_S]
        found += merged([_long_delay(entry, n, rows[n], window_s) for n in late], "delay_p95_s")
    return found


def _long_delay(entry: Entry, n: int, row: dict[str, float], window_s: float) -> Finding:
    delay_s, sent_pps = row["delay_p95_s"], row["sent_pkts"] / window_s
    what = f"more than one packet in twenty waited for {delay_s:.3g} s or longer"
    limit = _native.quantity(entry.keys["limit"], "packets") if "limit" in entry.keys else math.inf
    second = max(1, math.floor(LONG_DELAY_S * sent_pps))
    if second < limit and limit >= sent_pps * delay_s / 2 and row["dropped_limit_pkts"]:
        cure = f'At {sent_pps:.4g} packets/s a queue with limit = "{second}p" holds 1 s of them'
    else:
        cure = "The link or its service pauses, which a smaller limit does not change: see the rates over time"
    figures = {"delay_p95_s": delay_s, "sent_pps": sent_pps}
    return Finding("delay", entry.where(n), what, cure, figures)
