# SPDX-License-Identifier: BSD-3-Clause
"""Rules that compare totals of a run with its scenario."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from linkweir import _native, bins
from linkweir.diagnose.finding import Finding, megabits, merged
from linkweir.diagnose.resolved import Entry, ResolvedScenario, packet_bytes, size_bytes
from linkweir.kinds import OPEN_LOOP

if TYPE_CHECKING:
    from linkweir.outline import Values
    from linkweir.tables import RunTables

    Flags = np.ndarray[Any, np.dtype[np.bool_]]

LONG_DELAY_S = 1.0
"""A class is reported if more than one packet in twenty waited for longer."""
EXCESS = 0.01
"""Part by which more than the capacity must be offered, or a trace be shorter than its run: random traffic varies."""


def offered_above_capacity(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Flows that do not slow down send more than the link can carry."""
    if resolved.beam or not {"flows", "link"} <= set(run.tables):
        return []
    capacity_bps = _capacity_bps(run)
    if capacity_bps is None:
        return []
    offered_bps, edges_bps = _offered_bps(run, resolved)
    if offered_bps - capacity_bps <= max(EXCESS * capacity_bps, edges_bps):
        return []
    coded = "coded for the satellite " if resolved.satellite else ""
    what = (
        f"flows that do not slow down send {megabits(offered_bps)} {coded}over {megabits(capacity_bps)}, "
        f"{megabits(offered_bps - capacity_bps)} more than it carries"
    )
    cure = "The excess is queued or dropped: lower the rates of cbr, poisson, onoff and voice flows"
    return [Finding("offered", "link", what, cure, {"offered_bps": offered_bps, "capacity_bps": capacity_bps})]


def _offered_bps(run: RunTables, resolved: ResolvedScenario) -> tuple[float, float]:
    """The load of flows with a fixed rate, on the wire; of a satellite in coded bits.

    Also how much of it one packet per flow is, by which the edges of the time may change it.
    """
    window_s = run.simulated_s - run.scenario.warmup_s
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
    return float(offered) / window_s, float(np.dot(bits, fixed)) / window_s


def _capacity_bps(run: RunTables) -> float | None:
    """Mean capacity over the time that totals cover; None if the run ended before it."""
    rows = run.batches("link", ("t_s", "capacity_bps"))
    return bins.means(rows, ("capacity_bps",), **_covered(run))["capacity_bps"]


def spans_in_window_s(starts_s: Values, run: RunTables) -> Values:
    """The part of each bin in the time that totals cover."""
    return 1e-9 * bins.spans_ns(starts_s, **_covered(run))


def _covered(run: RunTables) -> dict[str, float]:
    scenario = run.scenario
    return {"interval_s": scenario.interval_s, "from_s": scenario.warmup_s, "to_s": run.simulated_s}


def small_mtu(_: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """A parameter `mtu`, the largest packet, is below packets that are sent."""
    if "mtu" in resolved.scheduler:
        largest = max(entry.largest_bytes() for entry in resolved.entries)
        effect = "packets are dropped although only one packet waits behind them"
        return _mtu("scheduler.mtu", resolved.scheduler["mtu"], largest, resolved, effect)
    found = []
    for entry in resolved.entries:
        if "mtu" in entry.keys and "low_level" in entry.keys and not {"lr", "lm"} <= set(entry.keys):
            effect = f'a turn is shorter than burst = "{entry.keys["burst"]}" says'
            found += _mtu(f"class {entry.keys['name']}", entry.keys["mtu"], entry.largest_bytes(), resolved, effect)
    return found


def _mtu(where: str, mtu: str, packet_bytes: float, resolved: ResolvedScenario, effect: str) -> list[Finding]:
    mtu_bytes, largest_bytes = size_bytes(mtu), resolved.packet_wire_bytes(packet_bytes)
    # The default is Ethernet's largest packet without the line's overhead, and is meant for links that have it too.
    if (packet_bytes if mtu_bytes == resolved.default_mtu_bytes else largest_bytes) <= mtu_bytes:
        return []
    what = f'packets have up to {largest_bytes:.0f} bytes on the wire, but mtu = "{mtu}" is to be the largest: {effect}'
    figures = {"packet_bytes": largest_bytes, "mtu_bytes": mtu_bytes}
    return [Finding("mtu", where, what, f'Set mtu = "{math.ceil(largest_bytes)}B"', figures)]


def short_trace(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """The trace of the capacity ends before the run, by more than `EXCESS` of the run."""
    length_s = run.scenario.capacity_length_s
    if "trace" not in resolved.link or length_s is None or length_s >= (1 - EXCESS) * run.simulated_s:
        return []
    end = resolved.link.get("end", "loop")
    after = {
        "loop": "then it began again",
        "hold": "then its last value stayed",
        "stop": "then the link carried nothing",
    }[end]
    what = f"it lasts {length_s:.6g} s and the run {run.simulated_s:.6g} s; {after}"
    figures = {"trace_s": length_s, "simulated_s": run.simulated_s}
    cure = f'Set duration = "{math.floor(1000 * length_s) / 1000:.12g}s" or give a longer trace'
    return [Finding("trace", "link.trace", what, cure, figures)]


def refused_transfers(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Transfers were not begun because too many were there."""
    if "completions" not in run.tables:
        return []
    rows = {row["flow"]: row for row in run.rows("completions") if row["refused"]}
    found = []
    for flow in resolved.flows:
        name, copies = flow["name"], flow["count"]
        names = [name] if copies == 1 else [f"{name}-{copy + 1}" for copy in range(copies)]
        mine = [_refused(rows[name], flow["concurrent"]) for name in names if name in rows]
        found += merged(mine, "refused")
    return found


def _refused(row: dict[str, Any], concurrent: int) -> Finding:
    refused, begun = row["refused"], row["begun"]
    what = (
        f"{refused} of {refused + begun} transfers were refused, as many were there as concurrent = {concurrent} allows"
    )
    cure = "Completion times are those of the others; raise concurrent, or let fewer or smaller transfers arrive"
    figures = {"refused": float(refused), "begun": float(begun)}
    return Finding("refused", f"flow {row['flow']}", what, cure, figures)


def long_delays(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Classes in which packets wait for long."""
    if "classes" not in run.tables:
        return []
    rows = run.rows("classes")
    window_s = run.simulated_s - run.scenario.warmup_s
    late = [(row["delay_p95_s"] or 0.0) > LONG_DELAY_S for row in rows]
    grows = _grows(run) if any(late) else np.zeros(len(rows), dtype=bool)
    found = []
    for entry in resolved.entries:
        mine = [_long_delay(entry, n, rows[n], window_s, grows=bool(grows[n])) for n in entry.numbers if late[n]]
        found += merged(mine, "delay_p95_s")
    return found


def _grows(run: RunTables) -> Flags:
    """Classes whose queue is longer throughout the last third of the time than ever in the first."""
    first_s, end_s = run.scenario.warmup_s, run.simulated_s
    third_s = (end_s - first_s) / 3
    classes, row = len(run.scenario.classes), 0
    early_bytes, late_bytes = np.full(classes, -np.inf), np.full(classes, np.inf)
    for batch in run.batches("series", ("t_s", "backlog_bytes")):
        t_s, backlog_bytes = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("t_s", "backlog_bytes"))
        n = np.arange(row, row + len(t_s)) % classes
        row += len(t_s)
        early, late = (t_s >= first_s) & (t_s < first_s + third_s), t_s >= end_s - third_s
        np.maximum.at(early_bytes, n[early], backlog_bytes[early])
        np.minimum.at(late_bytes, n[late], backlog_bytes[late])
    longer: Flags = (late_bytes > early_bytes) & np.isfinite(early_bytes) & np.isfinite(late_bytes)
    return longer


def _long_delay(entry: Entry, n: int, row: dict[str, float], window_s: float, *, grows: bool) -> Finding:
    delay_s, sent_pps = row["delay_p95_s"], row["sent_pkts"] / window_s
    what = f"more than one packet in twenty waited for {delay_s:.3g} s or longer"
    limit = math.inf
    if entry.keys.get("limit", "").endswith("p"):
        limit = _native.quantity(entry.keys["limit"], "packets")
    second = max(1, math.floor(LONG_DELAY_S * sent_pps))
    if second < limit and limit >= sent_pps * delay_s / 2 and row["dropped_limit_pkts"]:
        cure = f'At {sent_pps:.4g} packets/s a queue with limit = "{second}p" holds 1 s of them'
    elif second < limit and grows:
        cure = f'Packets queue up faster than they are sent: a queue with limit = "{second}p" holds 1 s of them'
    else:
        cure = "The link or its service pauses, which a smaller limit does not change: see the rates over time"
    figures = {"delay_p95_s": delay_s, "sent_pps": sent_pps}
    return Finding("delay", entry.where(n), what, cure, figures)
