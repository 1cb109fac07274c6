# SPDX-License-Identifier: BSD-3-Clause
"""Finds reservations that `pss` missed.

The policy remembers what it owes a class as credit below LR, down to 0: LR is what its `memory` holds. If a class
waits throughout a bin, has a credit of at most one packet (what the last one left) when it begins, and is sent less
than its reservation, the difference is lost for good. Where a bin does not show whether the class waited throughout,
the difference counts only if less than the reservation was left for it: otherwise the class may have offered less.
With more credit the class loses at least the part of the difference that exceeds the credit, as credit does not fall
below 0; this reveals fades within a bin. Service that is late but remembered is made up for and not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkweir import _native
from linkweir.diagnose.finding import Finding, megabits, merged
from linkweir.diagnose.resolved import Entry, ResolvedScenario, size_bytes
from linkweir.diagnose.rules import EXCESS, spans_in_window_s

if TYPE_CHECKING:
    from linkweir.outline import Values
    from linkweir.tables import RunTables

_BINS = 4096
"""Bins in memory at a time."""


def missed_reservations(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Reservations of which more was lost than one turn of the class (`burst` packets), and more than 1 %."""
    reserved = [entry for entry in resolved.entries if "low_level" in entry.keys]
    if not reserved or not {"levels", "series", "link"} <= set(run.tables):
        return []
    accounts = [Account(entry, n, resolved) for entry in reserved for n in entry.numbers]
    for bins in _bins(run, resolved):
        for account in accounts:
            account.add(bins)
    found: list[Finding] = []
    for entry in reserved:
        mine = [account.finding() for account in accounts if account.entry is entry]
        found += merged([finding for finding in mine if finding is not None], "lost_bits")
    return found


@dataclass
class Bins:
    """Consecutive bins. First axis: the bin; second, where there is one: the class."""

    starts_s: Values
    ends_s: Values
    spans_s: Values
    """The part of each in the time that totals cover."""
    capacity_bps: Values
    sent_bps: Values
    """On the wire."""
    sent_bytes: Values
    waiting_before_bytes: Values
    waiting_after_bytes: Values
    waiting_mean_pkts: Values
    credit_before_bits: Values


def _bins(run: RunTables, resolved: ResolvedScenario) -> Iterator[Bins]:
    classes = len(run.scenario.classes)
    interval_s = run.scenario.interval_s
    columns = ("sent_bytes", "sent_pkts", "backlog_bytes", "delay_mean_s")
    before_bytes = np.zeros((1, classes))
    series = _blocks(run, "series", columns, classes)
    link = _blocks(run, "link", ("t_s", "capacity_bps", "used_bps"), 1)
    levels = _blocks(run, "levels", ("credit_bits",), classes)
    # levels are of the instants between bins, one more than there are bins
    for moved, carried, credit in zip(series, link, levels, strict=False):
        sent_bytes, sent_pkts, after_bytes, delay_s = np.moveaxis(moved, 2, 0)
        starts_s, capacity_bps, used_bps = carried[:, 0, :].T
        ends_s = np.minimum(starts_s + interval_s, run.simulated_s)
        lasts_s = (ends_s - starts_s)[:, None]
        sent_bps = 8.0 * resolved.wire_bytes(sent_bytes, sent_pkts) / lasts_s
        yield Bins(
            starts_s=starts_s,
            ends_s=ends_s,
            spans_s=spans_in_window_s(starts_s, run),
            capacity_bps=resolved.carried_bps(capacity_bps, used_bps, sent_bps.sum(axis=1)),
            sent_bps=sent_bps,
            sent_bytes=sent_bytes,
            waiting_before_bytes=np.vstack([before_bytes, after_bytes[:-1]]),
            waiting_after_bytes=after_bytes,
            waiting_mean_pkts=sent_pkts * np.nan_to_num(delay_s) / lasts_s,  # Little's law
            credit_before_bits=credit[: len(moved), :, 0],
        )
        before_bytes = after_bytes[-1:]


def _blocks(run: RunTables, table: str, columns: Sequence[str], rows_per_bin: int) -> Iterator[Values]:
    """A table by bins, `_BINS` at a time: bin x row of the bin x column."""
    waiting: Values = np.empty((0, len(columns)))
    size = _BINS * rows_per_bin
    for batch in run.batches(table, columns):
        rows = [batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in columns]
        waiting = np.vstack([waiting, np.column_stack(rows)])
        while len(waiting) >= size:
            yield waiting[:size].reshape(-1, rows_per_bin, len(columns))
            waiting = waiting[size:]
    if len(waiting):
        yield waiting.reshape(-1, rows_per_bin, len(columns))


def _filled_s(entry: Entry, n: int) -> Iterator[tuple[float, float]]:
    """Times in which greedy flows keep the queue of a class filled: they replace each packet that leaves at once."""
    for flow in entry.flows:
        start_s, stop_s, delay_s, stagger_s = (
            _native.quantity(flow[key], "time") for key in ("start", "stop", "access_delay", "stagger")
        )
        # Copies of a flow join the copies of a class in turn.
        joins = flow["class"] == entry.names[n - entry.numbers.start] or flow["count"] >= len(entry.numbers)
        if flow["kind"] == "greedy" and joins and not delay_s:
            yield start_s + stagger_s * (flow["count"] - 1), stop_s


class Account:
    """The reservation of one class, and the part of it that was lost."""

    def __init__(self, entry: Entry, n: int, resolved: ResolvedScenario) -> None:
        self.entry = entry
        self._n = n
        self._above = [
            (other, m) for other in resolved.entries for m in other.numbers if other.level(m) < entry.level(n)
        ]
        self._rate_bps = _native.quantity(entry.keys["rate"], "rate")
        self._packet_bits = 8 * resolved.packet_wire_bytes(entry.largest_bytes())
        above_bytes = max((other.largest_bytes() for other, _ in self._above), default=0.0)
        self._edge_bits = self._packet_bits + 8 * resolved.packet_wire_bytes(above_bytes)
        self._share = _native.quantity(entry.keys["share"], "fraction")
        self._nominal_bps = _native.quantity(resolved.link["nominal"], "rate")
        self._follow = bool(resolved.link.get("follow", False))
        self._filled_s = list(_filled_s(entry, n))
        self._window_s = self._reserved_bits = self._capacity_bits = self._left_bits = 0.0
        self._lost_bits = self._used_up_s = self._used_up_reserved_bits = 0.0
        self._first_s = math.inf
        self._run_s = self._longest_s = 0.0

    def _reserved_bps(self, capacity_bps: Values) -> Values:
        if self._rate_bps:
            return np.full(len(capacity_bps), self._rate_bps)
        return self._share * (capacity_bps if self._follow else np.full(len(capacity_bps), self._nominal_bps))

    def add(self, bins: Bins) -> None:
        """Counts some bins."""
        n, spans_s = self._n, bins.spans_s
        reserved_bps = self._reserved_bps(bins.capacity_bps)
        left_bps = np.clip(bins.capacity_bps - bins.sent_bps[:, [m for _, m in self._above]].sum(axis=1), 0.0, None)
        self._window_s += float(spans_s.sum())
        self._reserved_bits += float(np.dot(reserved_bps, spans_s))
        self._capacity_bits += float(np.dot(bins.capacity_bps, spans_s))
        self._left_bits += float(np.dot(left_bps, spans_s))

        before, after = bins.waiting_before_bytes[:, n], bins.waiting_after_bytes[:, n]
        surely = bins.sent_bytes[:, n] < before
        for start_s, stop_s in self._filled_s:
            surely |= (start_s <= bins.starts_s) & (bins.ends_s <= stop_s)
        waits = (before > 0) & (after > 0) & (spans_s > 0)
        credit_bits = bins.credit_before_bits[:, n]
        short_bits = (reserved_bps - bins.sent_bps[:, n]) * spans_s
        no_credit = credit_bits <= self._packet_bits
        # A packet of each side falls into a bin or the next by chance.
        too_little_left = (reserved_bps - left_bps) * spans_s > self._edge_bits
        used_up = waits & (surely | (too_little_left & (bins.waiting_mean_pkts[:, n] >= 1))) & no_credit
        # Credit is that of the bin's beginning, so it says nothing about a bin that the warm-up cuts.
        whole = np.isclose(spans_s, bins.ends_s - bins.starts_s, rtol=1e-6)
        exceeded = waits & surely & whole & ~no_credit & (short_bits > credit_bits + self._packet_bits)
        short_bits[exceeded] -= credit_bits[exceeded] + self._packet_bits
        used_up |= exceeded
        # One packet more or less falls into a bin by chance. More than that in a bin does not bring back what was lost.
        self._lost_bits += float(np.maximum(short_bits[used_up], -self._packet_bits).sum())
        self._used_up_s += float(spans_s[used_up].sum())
        self._used_up_reserved_bits += float(np.dot(reserved_bps[used_up], spans_s[used_up]))
        lost = used_up & (short_bits > 0)
        if lost.any():
            self._first_s = min(self._first_s, float(bins.starts_s[lost][0]))
        for losing, span_s in zip(lost, spans_s, strict=True):
            self._run_s = self._run_s + float(span_s) if losing else 0.0
            self._longest_s = max(self._longest_s, self._run_s)

    def finding(self) -> Finding | None:
        """The warning, if there is one to give."""
        turn_bits = 8 * _native.quantity(self.entry.keys["burst"], "packets") * size_bytes(self.entry.keys["mtu"])
        if self._lost_bits <= max(turn_bits, EXCESS * self._used_up_reserved_bits):
            return None
        reserved_bps = self._reserved_bits / self._window_s
        figures = {
            "reserved_bps": reserved_bps,
            "sent_bps": (self._used_up_reserved_bits - self._lost_bits) / self._used_up_s,
            "lost_bits": self._lost_bits,
            "used_up_s": self._used_up_s,
            "lost_first_s": self._first_s,
            "lost_longest_s": self._longest_s,
            "capacity_bps": self._capacity_bits / self._window_s,
            "left_bps": self._left_bits / self._window_s,
        }
        what = (
            f"reserves {megabits(reserved_bps)} but got {megabits(figures['sent_bps'])} for {self._used_up_s:.4g} s, "
            f"from {self._first_s:.4g} s on, while its packets waited"
        )
        kind, why, cure = self._reason(figures)
        return Finding(f"reservation_{kind}", self.entry.where(self._n), f"{what}: {why}", cure, figures)

    def _reason(self, figures: dict[str, float]) -> tuple[str, str, str]:
        reserved_bps, capacity_bps, left_bps = (figures[key] for key in ("reserved_bps", "capacity_bps", "left_bps"))
        if left_bps >= reserved_bps:
            memory_s = self._memory_s(reserved_bps)
            why = (
                f"{megabits(left_bps)} were left for it on average, but not then, "
                f"and its memory of {memory_s:.3g} s was used up"
            )
            return (
                "memory",
                why,
                f'Set memory = "{math.ceil(memory_s + self._longest_s)}s" so that it is made up for later',
            )
        if capacity_bps < reserved_bps:
            why = f"the link carries {megabits(capacity_bps)} on average"
            return "link", why, "Reserve less than the link carries"
        above = ", ".join(dict.fromkeys(other.keys["name"] for other, _ in self._above))
        why = f"more urgent classes ({above}) leave {megabits(left_bps)} of {megabits(capacity_bps)}"
        return "starved", why, f"Lower the rates of {above}, or make the level of {self.entry.keys['name']} more urgent"

    def _memory_s(self, reserved_bps: float) -> float:
        if "lr" in self.entry.keys:
            return _native.quantity(self.entry.keys["lr"], "bits") / reserved_bps
        return _native.quantity(self.entry.keys["memory"], "time")
