# SPDX-License-Identifier: BSD-3-Clause
"""Rules that compare totals of a run with its scenario."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from linkweir import _native
from linkweir.diagnose.finding import Advice, Finding, key_of, megabits, merged
from linkweir.scenarios.kinds import OPEN_LOOP
from linkweir.scenarios.resolved import ResolvedScenario, packet_bytes, size_text
from linkweir.scenarios.typed import Cosine, Flow, Lines, Steps
from linkweir.tables import bins
from linkweir.tables.run_tables import LinkTables

if TYPE_CHECKING:
    from linkweir.columns import Values
    from linkweir.tables.run_tables import RunTables

EXCESS = 0.01
"""Part by which more than the capacity must be offered, or a trace be shorter than its run: random traffic varies."""


def offered_above_capacity(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Flows that do not slow down send more than the link can carry."""
    if resolved.beam or not {"flows", "link"} <= set(run.tables):
        return []
    used_s = _used_s(run)
    capacity_bps = _capacity_bps(run, resolved, used_s)
    if capacity_bps is None or not used_s:
        return []
    offered_bps, edges_bps = _offered_bps(run, resolved, used_s)
    if offered_bps - capacity_bps <= max(EXCESS * capacity_bps, edges_bps):
        return []
    coded = "coded for the satellite " if resolved.satellite else ""
    what = (
        f"flows that do not slow down send {megabits(offered_bps)} {coded}over {megabits(capacity_bps)}, "
        f"{megabits(offered_bps - capacity_bps)} more than it carries"
    )
    advice, cures = _less_offered(resolved, offered_bps, capacity_bps)
    cure = f"The excess is queued or dropped{': ' if cures else ''}{', or '.join(cures)}"
    figures = {"offered_bps": offered_bps, "capacity_bps": capacity_bps}
    return [Finding("offered", "link", what, cure, figures, advice)]


_FILLED = 0.98
"""Part of the capacity that the load has after the advice: the capacity and random traffic vary."""


def _less_offered(
    resolved: ResolvedScenario, offered_bps: float, capacity_bps: float
) -> tuple[tuple[Advice, ...], list[str]]:
    """Lower rates of the flows, or a faster link, as keys and values and in words."""
    advice: list[Advice] = []
    cures = []
    factor = _FILLED * capacity_bps / offered_bps
    flows = [flow for flow in resolved.flows if flow["kind"] in OPEN_LOOP]
    changed = [_lower(flow, factor) for flow in flows]
    if all(changed) and factor > 0:
        advice.append({key: value for values in changed for key, value in values.items()})
        names = ", ".join(str(flow["name"]) for flow in flows)
        calls = " (of calls, their count)" if any(flow["kind"] == "voice" for flow in flows) else ""
        cures.append(f"multiply the rates of {names}{calls} by {math.floor(1000 * factor) / 1000:.3g}")
    rate_bps = resolved.link["rate_bps"]
    if rate_bps is not None:
        faster_bps = round(rate_bps / factor) if isinstance(rate_bps, float) and factor > 0 else None
        if faster_bps is not None and faster_bps <= _FASTEST_BPS:
            advice.append({"link.rate": f"{faster_bps}bit", "link.nominal": f"{faster_bps}bit"})
            cures.append(f"use a link of {megabits(faster_bps)}")
    return tuple(advice), cures


_FASTEST_BPS = 400e9


def _lower(flow: Flow, factor: float) -> Advice:
    """What makes a flow's load smaller by a factor or more; empty if nothing does."""
    name = flow["name"]
    if flow["kind"] == "cbr" or flow["kind"] == "poisson" or flow["kind"] == "onoff":
        return {key_of("flow", name, "rate"): _scaled(flow["rate_bps"], factor)}
    count = math.floor(flow["count"] * factor)
    return {key_of("flow", name, "count"): count} if count else {}


def _scaled(rate_bps: float | Cosine | Steps | Lines, factor: float) -> Any:
    """A rate, also one over time, times a factor, as it is written; in whole bit/s."""
    if isinstance(rate_bps, float):
        return f"{round(rate_bps * factor)}bit"
    if "mean" in rate_bps:
        return {
            "mean": _scaled(rate_bps["mean"], factor),
            "amplitude": rate_bps["amplitude"],
            "period": _native.show(rate_bps["period_s"], "time"),
            "phase": rate_bps["phase"],
        }
    if "lines" in rate_bps:
        return {"lines": _scaled_points(rate_bps["lines"], factor)}
    scaled: dict[str, Any] = {"steps": _scaled_points(rate_bps["steps"], factor), "end": rate_bps["end"]}
    if rate_bps["end"] == "loop":
        scaled["period"] = _native.show(rate_bps["period_s"], "time")
    if rate_bps["end"] == "stop":
        scaled["at"] = _native.show(rate_bps["at_s"], "time")
    return scaled


def _scaled_points(points: list[tuple[float, float]], factor: float) -> list[list[str]]:
    return [[_native.show(time_s, "time"), _scaled(value_bps, factor)] for time_s, value_bps in points]


_Spans = list[tuple[float, float]]


def _used_s(run: RunTables) -> _Spans:
    """The times that totals cover; of a link of a constellation, those in which flows with a fixed rate pass it."""
    whole = (run.scenario.warmup_s, run.simulated_s)
    if not (isinstance(run, LinkTables) and run.comes_and_goes):
        return [whole]
    flows = run.table("flows").select(["flow", "kind"]).to_pylist()
    return run.passed_s([flow["flow"] for flow in flows if flow["kind"] in OPEN_LOOP], *whole)


def _offered_bps(run: RunTables, resolved: ResolvedScenario, used_s: _Spans) -> tuple[float, float]:
    """The load of flows with a fixed rate, on the wire; of a satellite in coded bits.

    Also how much of it one packet per flow and time is, by which the edges of the times may change it.
    """
    window_s = math.fsum(to_s - from_s for from_s, to_s in used_s)
    mean_bytes = np.repeat(
        [resolved.packet_wire_bytes(packet_bytes(flow)[0]) for flow in resolved.flows],
        [flow["count"] for flow in resolved.flows],
    )
    bits = 8.0 * mean_bytes
    if "harq" in run.tables:
        attempts = run.tables["harq"].to_pydict()
        ended = sum(sum(attempts[key]) for key in attempts if re.fullmatch(r"decoded_\w+|given_up_pkts", key))
        bits = np.full(len(bits), sum(attempts["coded_bits"]) / ended if ended else 0.0)
    flows = run.table("flows").select(["kind", "arrived_pkts"]).to_pydict()
    fixed = [kind in OPEN_LOOP for kind in flows["kind"]]
    offered = np.dot(bits, np.where(fixed, flows["arrived_pkts"], 0))
    return float(offered) / window_s, len(used_s) * float(np.dot(bits, fixed)) / window_s


def _capacity_bps(run: RunTables, resolved: ResolvedScenario, used_s: _Spans) -> float | None:
    """Mean capacity over these times; None if it is not known, as the run ended before them."""
    rate_bps = resolved.link["rate_bps"]
    columns = ("t_s", "capacity_bps")
    if not _comes_and_goes(run):
        return bins.means(run.batches("link", columns), columns[1:], **_covered(run))["capacity_bps"]
    if isinstance(rate_bps, float):
        return rate_bps
    # A bin has the capacity that there was while the link existed, so only bins that the times cover are looked at.
    interval_s = run.scenario.interval_s
    found: list[float] = []
    for batch in run.batches("link", columns):
        for start_s, capacity_bps in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            if any(from_s <= start_s and start_s + interval_s <= to_s for from_s, to_s in used_s):
                found.append(capacity_bps)
    return math.fsum(found) / len(found) if found else None


def _comes_and_goes(run: RunTables) -> bool:
    return isinstance(run, LinkTables) and run.comes_and_goes


def spans_in_window_s(starts_s: Values, run: RunTables) -> Values:
    """The part of each bin in the time that totals cover."""
    return 1e-9 * bins.spans_ns(starts_s, **_covered(run))


def _covered(run: RunTables) -> dict[str, float]:
    scenario = run.scenario
    return {"interval_s": scenario.interval_s, "from_s": scenario.warmup_s, "to_s": run.simulated_s}


def small_mtu(_: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """A parameter `mtu`, the largest packet, is below packets that are sent."""
    params = resolved.scheduler["params"]
    if "mtu" in params:
        largest = max(entry.largest_bytes() for entry in resolved.entries)
        effect = "packets are dropped although only one packet waits behind them"
        return _mtu("scheduler.mtu", "scheduler.mtu", params["mtu"], largest, resolved, effect)
    found = []
    for entry in resolved.entries:
        own = entry.params
        if "mtu" in own and "low_level" in own and not {"lr", "lm"} <= set(own):
            effect = f'a turn is shorter than burst = "{own["burst"]}p" says'
            name = entry.keys["name"]
            key = key_of("class", name, "mtu")
            found += _mtu(f"class {name}", key, own["mtu"], entry.largest_bytes(), resolved, effect)
    return found


def _mtu(
    where: str, key: str, mtu_bytes: int, packet_bytes: float, resolved: ResolvedScenario, effect: str
) -> list[Finding]:
    largest_bytes = resolved.packet_wire_bytes(packet_bytes)
    # The default is Ethernet's largest packet without the line's overhead, and is meant for links that have it too.
    if (packet_bytes if mtu_bytes == resolved.default_mtu_bytes else largest_bytes) <= mtu_bytes:
        return []
    what = (
        f'packets have up to {largest_bytes:.0f} bytes on the wire, but mtu = "{size_text(mtu_bytes)}" is to be the '
        f"largest: {effect}"
    )
    figures = {"packet_bytes": largest_bytes, "mtu_bytes": mtu_bytes}
    needed = f"{math.ceil(largest_bytes)}B"
    return [Finding("mtu", where, what, f'Set mtu = "{needed}"', figures, ({key: needed},))]


def short_trace(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """The trace of the capacity ends before the run, by more than `EXCESS` of the run."""
    length_s = run.scenario.capacity_length_s
    if resolved.link["trace"] is None or length_s is None or length_s >= (1 - EXCESS) * run.simulated_s:
        return []
    end = resolved.link["end"] or "loop"
    after = {
        "loop": "then it began again",
        "hold": "then its last value stayed",
        "stop": "then the link carried nothing",
    }[end]
    what = f"it lasts {length_s:.6g} s and the run {run.simulated_s:.6g} s; {after}"
    figures = {"trace_s": length_s, "simulated_s": run.simulated_s}
    duration = f"{math.floor(1000 * length_s) / 1000:.12g}s"
    if math.floor(1000 * length_s) / 1000 <= run.scenario.warmup_s:
        return [Finding("trace", "link.trace", what, "Give a trace that is longer than the warm-up", figures)]
    interval_s = min(run.scenario.interval_s, math.floor(1000 * length_s) / 1000)
    advice: Advice = {"duration": duration}
    if interval_s < run.scenario.interval_s:
        advice["interval"] = duration
    return [
        Finding("trace", "link.trace", what, f'Set duration = "{duration}" or give a longer trace', figures, (advice,))
    ]


def refused_transfers(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Transfers were not begun because too many were there."""
    if "completions" not in run.tables:
        return []
    rows = {row["flow"]: row for row in run.rows("completions") if row["refused"]}
    found = []
    for flow in resolved.flows:
        if flow["kind"] != "transfers":
            continue
        name, copies = flow["name"], flow["count"]
        names = [name] if copies == 1 else [f"{name}-{copy + 1}" for copy in range(copies)]
        mine = [_refused(rows[copy], name, flow["concurrent"], run) for copy in names if copy in rows]
        found += merged(mine, "refused")
    return found


def _refused(row: dict[str, Any], name: str, concurrent: int, run: RunTables) -> Finding:
    refused, begun = row["refused"], row["begun"]
    what = (
        f"{refused} of {refused + begun} transfers were refused, as many were there as concurrent = {concurrent} allows"
    )
    cure = "Completion times are those of the others"
    # All that arrive during the whole run; those of the warm-up at the same rate.
    window_s = run.simulated_s - run.scenario.warmup_s
    needed = concurrent + math.ceil((refused + begun) * max(run.simulated_s / window_s, 1.0) * 1.1)
    figures = {"refused": float(refused), "begun": float(begun)}
    if needed > _MOST_CONCURRENT:
        cure += "; the load is too high for any value of concurrent"
        return Finding("refused", f"flow {row['flow']}", what, cure, figures)
    cure += f"; set concurrent = {needed}: then all begin, and complete the later the more there are"
    advice: Advice = {key_of("flow", name, "concurrent"): needed}
    return Finding("refused", f"flow {row['flow']}", what, cure, figures, (advice,))


_MOST_CONCURRENT = 100_000
