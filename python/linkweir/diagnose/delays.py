# SPDX-License-Identifier: BSD-3-Clause
"""Finds classes in which packets wait for long, the cause, and a change that is sure to end it.

A limit is proposed only if it suffices: a packet waits for no longer than `HORIZON_S` if the service of its class in
that time before it is sent is at least the class's limit. The service is what the run shows, and what the link had
left. If no limit suffices, packets that are too old must be dropped (`max_age`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkweir.columns import floats
from linkweir.diagnose.finding import Advice, Finding, key_of, megabits, merged
from linkweir.scenarios.kinds import OPEN_LOOP
from linkweir.scenarios.resolved import Entry, ResolvedScenario

if TYPE_CHECKING:
    from linkweir.columns import Values
    from linkweir.tables.run_tables import RunTables

LONG_DELAY_S = 1.0
"""A class is reported if more than one packet in twenty waited for longer."""
HORIZON_S = 0.9
"""A limit is proposed that packets pass in this time: less than `LONG_DELAY_S`, as service varies inside bins."""
LATE = 0.04
"""Part of the packets that may need longer: less than one in twenty."""
_MOST_COPIES = 8
"""Copies of a class that are looked at, those with the longest delays."""
_ONE_QUEUE = ("fifo", "codel")
"""Policies that send the packets of all classes in the order in which they came."""
_DOWN = 1e-3
"""A capacity below this part of the mean counts as an outage."""


def long_delays(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Classes in which packets wait for long."""
    if not {"classes", "series", "link"} <= set(run.tables):
        return []
    rows = run.rows("classes")
    delays_s = [row["delay_p95_s"] or 0.0 for row in rows]
    late = {
        entry.numbers.start: [
            n for n in sorted(entry.numbers, key=lambda n: -delays_s[n]) if delays_s[n] > LONG_DELAY_S
        ]
        for entry in resolved.entries
    }
    looked_at = [n for numbers in late.values() for n in numbers[:_MOST_COPIES]]
    if not looked_at:
        return []
    histories = _histories(run, resolved, looked_at)
    found = []
    for entry in resolved.entries:
        numbers = late[entry.numbers.start]
        if numbers:
            mine = [histories[n] for n in numbers[:_MOST_COPIES]]
            advice, cure = _advice(entry, mine, resolved)
            same = [_finding(entry, n, rows[n], mine[0], cure, advice) for n in numbers]
            found += merged(same, "delay_p95_s")
    return found


@dataclass
class History:
    """What happened to a class in each bin; packets are those of its mean size."""

    starts_s: Values
    ends_s: Values
    in_totals: Values
    """Part of each bin in the time that totals cover."""
    arrived_pkts: Values
    sent_pkts: Values
    delay_s: Values
    """Mean of the packets sent."""
    longest_s: Values
    backlog_pkts: Values
    service_pkts: Values
    """What was sent, and what could have been sent of this class in the time that the link was idle."""
    sent_bps: Values
    others_bps: Values
    capacity_bps: Values


_COLUMNS = ("arrived_pkts", "sent_pkts", "sent_bytes", "delay_mean_s", "delay_max_s", "backlog_pkts")


def _histories(run: RunTables, resolved: ResolvedScenario, numbers: list[int]) -> dict[int, History]:
    """The histories of some classes."""
    classes = len(run.scenario.classes)
    kept: list[Values] = []
    all_bytes: list[Values] = []
    rest: Values = np.empty((0, len(_COLUMNS)))
    for batch in run.batches("series", _COLUMNS):
        columns = [floats(batch.column(name)) for name in _COLUMNS]
        rest = np.vstack([rest, np.nan_to_num(np.column_stack(columns))])
        whole = len(rest) // classes * classes
        block = rest[:whole].reshape(-1, classes, len(_COLUMNS))
        rest = rest[whole:]
        kept.append(block[:, numbers])
        all_bytes.append(resolved.wire_bytes(block[:, :, 2], block[:, :, 1]).sum(axis=1))
    series, total_bytes = np.concatenate(kept), np.concatenate(all_bytes)
    link = [np.column_stack([floats(batch.column(name)) for name in _LINK]) for batch in run.batches("link", _LINK)]
    starts_s, capacity_bps, used_bps = np.concatenate(link).T
    ends_s = np.minimum(starts_s + run.scenario.interval_s, run.simulated_s)
    lasts_s = np.maximum(ends_s - starts_s, 1e-9)
    in_totals = np.clip((ends_s - np.maximum(starts_s, run.scenario.warmup_s)) / lasts_s, 0.0, 1.0)
    idle_bps = np.maximum(capacity_bps - used_bps, 0.0)
    sent_bps = 8 * total_bytes / lasts_s
    # A satellite sends more bits than packets have, and a beam other rates to other terminals.
    parts = np.divide(sent_bps, used_bps, out=np.ones_like(used_bps), where=used_bps > 0)
    idle_bytes = idle_bps * parts * lasts_s / 8
    found = {}
    for at, n in enumerate(numbers):
        arrived, sent, sent_bytes, delay_s, longest_s, backlog = series[:, at].T
        mine_bytes = resolved.wire_bytes(sent_bytes, sent)
        packet_bytes = max(mine_bytes.sum() / max(sent.sum(), 1.0), 1.0)
        found[n] = History(
            starts_s,
            ends_s,
            in_totals,
            arrived,
            sent,
            delay_s,
            longest_s,
            backlog,
            service_pkts=sent + idle_bytes / packet_bytes,
            sent_bps=8 * mine_bytes / lasts_s,
            others_bps=8 * (total_bytes - mine_bytes) / lasts_s,
            capacity_bps=resolved.carried_bps(capacity_bps, used_bps, sent_bps),
        )
    return found


_LINK = ("t_s", "capacity_bps", "used_bps")


def late_part(history: History, limit_pkts: float, *, adaptive: bool) -> float:
    """The part of the packets that would wait for longer than `HORIZON_S` if the queue always held `limit_pkts`.

    A packet that is sent at t is late if the service from t - `HORIZON_S` to t is below the limit.
    """
    edges_s = np.append(history.starts_s, history.ends_s[-1])
    served = np.concatenate([[0.0], np.cumsum(history.service_pkts)])
    t_s = np.unique(np.concatenate([edges_s, edges_s + HORIZON_S]))
    t_s = t_s[t_s <= edges_s[-1]]
    before = t_s - HORIZON_S
    window = np.interp(t_s, edges_s, served) - np.interp(before, edges_s, served)
    low, high = np.minimum(window[:-1], window[1:]), np.maximum(window[:-1], window[1:])
    below = np.where(
        high > low, np.clip((limit_pkts - low) / np.maximum(high - low, 1e-12), 0.0, 1.0), low < limit_pkts
    )
    # Until HORIZON_S no packet has waited for so long.
    below = np.where(before[:-1] < -1e-9, 0.0, below)
    served_at = np.interp(t_s, edges_s, served)
    bins = np.searchsorted(edges_s, t_s[:-1], side="right") - 1
    late_pkts = np.bincount(bins, weights=below * np.diff(served_at), minlength=len(history.sent_pkts))
    late = float(np.dot(np.minimum(late_pkts, history.sent_pkts), history.in_totals))
    sent = float(np.dot(history.sent_pkts, history.in_totals))
    if not adaptive:  # what comes in an outage is dropped if the queue is short, so fewer are sent than in this run
        at_once = np.minimum(history.arrived_pkts, history.service_pkts)
        sent = min(sent, float(np.dot(at_once, history.in_totals)) + late)
    return late / max(sent, 1.0)


def _limit_pkts(entry: Entry, histories: list[History]) -> int | None:
    """The largest limit with which no more than `LATE` of the packets wait for long; None if there is none."""
    adaptive = any(flow["kind"] not in OPEN_LOOP for flow in entry.flows)
    given_pkts = entry.keys["limit_pkts"]
    present = math.inf if given_pkts is None else given_pkts
    rate_pps = max(float(history.service_pkts.max() / _bin_s(history)) for history in histories)

    def suffices(limit_pkts: int) -> bool:
        return all(late_part(history, limit_pkts, adaptive=adaptive) <= LATE for history in histories)

    low, high = 0, int(min(present, rate_pps * HORIZON_S + 2, 1e8))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if suffices(middle) else (low, middle - 1)
    if entry.keys["flows"] is not None:  # a packet may wait for others that came later
        low = low * 2 // 3
    # A limit that is there already did not suffice, whatever this model says.
    return low if 2 <= low < present else None


def _bin_s(history: History) -> float:
    return float(history.ends_s[0] - history.starts_s[0])


def _advice(entry: Entry, histories: list[History], resolved: ResolvedScenario) -> tuple[tuple[Advice, ...], str]:
    """What to change in a class, as keys and values and in words."""
    name = entry.keys["name"]
    shared = resolved.scheduler["policy"] in _ONE_QUEUE and len(resolved.flows) > len(entry.flows)
    known = not shared and _bin_s(histories[0]) <= LONG_DELAY_S
    limit_pkts = _limit_pkts(entry, histories) if known else None
    if limit_pkts is None:
        why = "Its packets wait behind those of other classes" if shared else "A shorter queue does not end this"
        cure = f'{why}. Set max_age = "{LONG_DELAY_S:g}s": packets that waited longer are '
        return ({key_of("class", name, "max_age"): f"{LONG_DELAY_S:g}s"},), f"{cure}then dropped, not sent"
    advice: Advice = {key_of("class", name, "limit"): f"{limit_pkts}p"}
    also = []
    for flow in entry.flows:
        if flow["kind"] == "greedy" and flow["backlog_pkts"] > limit_pkts:
            advice[key_of("flow", flow["name"], "backlog")] = f"{limit_pkts}p"
            also.append(flow["name"])
    of_flows = f", and backlog of {', '.join(also)} likewise" if also else ""
    cure = f'Set limit = "{limit_pkts}p"{of_flows}: so many packets are sent within 1 s, except for one in twenty'
    return (advice,), cure


def _finding(
    entry: Entry, n: int, row: dict[str, Any], history: History, cure: str, advice: tuple[Advice, ...]
) -> Finding:
    cause, figures = _cause(history)
    figures = {
        "delay_p95_s": row["delay_p95_s"],
        "sent_pps": float(np.dot(history.sent_pkts, history.in_totals)) / _covered_s(history),
        **figures,
    }
    what = f"more than one packet in twenty waited for {row['delay_p95_s']:.3g} s or longer{cause}"
    return Finding("delay", entry.where(n), what, cure, figures, advice)


def _covered_s(history: History) -> float:
    return float(np.dot(history.ends_s - history.starts_s, history.in_totals))


def _cause(history: History) -> tuple[str, dict[str, float]]:
    """Why packets waited: what the link carried while they did, and for whom."""
    lasts_s = history.ends_s - history.starts_s
    late = (history.delay_s > LONG_DELAY_S) & (history.in_totals > 0)
    if not late.any():
        return "", {}
    # The bins in which the packets of late bins waited.
    first = np.searchsorted(history.starts_s, history.starts_s[late] - history.longest_s[late], "right")
    marks = np.zeros(len(late) + 1)
    np.add.at(marks, np.maximum(first - 1, 0), 1)
    np.add.at(marks, np.nonzero(late)[0] + 1, -1)
    waited = np.cumsum(marks[:-1]) > 0
    waited_s = float(lasts_s[waited].sum())

    def mean(values: Values) -> float:
        return float(np.dot(values[waited], lasts_s[waited])) / waited_s

    capacity_bps, sent_bps, others_bps = (
        mean(values) for values in (history.capacity_bps, history.sent_bps, history.others_bps)
    )
    usual_bps = float(np.dot(history.capacity_bps, lasts_s)) / float(lasts_s.sum())
    down_s = float(lasts_s[waited & (history.capacity_bps < _DOWN * usual_bps)].sum())
    held_pkts = float(np.dot(history.backlog_pkts[waited], lasts_s[waited])) / waited_s
    figures = {
        "waited_s": waited_s,
        "down_s": down_s,
        "capacity_bps": capacity_bps,
        "class_bps": sent_bps,
        "others_bps": others_bps,
        "held_pkts": held_pkts,
    }
    when = f" (in {waited_s:.4g} s of the run"
    if down_s >= waited_s / 2:
        return f"{when}, of which the link was down for {down_s:.4g} s)", figures
    if others_bps > max(sent_bps, capacity_bps / 2):
        return f"{when}, in which other classes got {megabits(others_bps)} of {megabits(capacity_bps)})", figures
    if capacity_bps < usual_bps / 2:
        return f"{when}, in which the link carried {megabits(capacity_bps)}, not {megabits(usual_bps)})", figures
    rate_pps = mean(history.sent_pkts / np.maximum(lasts_s, 1e-9))
    return f"{when}, in which {held_pkts:.4g} packets were queued and {rate_pps:.4g}/s sent)", figures
