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

from linkweir.columns import floats
from linkweir.diagnose.finding import Advice, Finding, key_of, megabits, merged
from linkweir.diagnose.rules import EXCESS, spans_in_window_s
from linkweir.scenarios.resolved import Entry, ResolvedScenario, packet_bytes

if TYPE_CHECKING:
    from linkweir.columns import Values
    from linkweir.tables.run_tables import RunTables

_BINS = 4096
"""Bins in memory at a time."""


def missed_reservations(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Reservations of which more was lost than one turn of the class (`burst` packets), and more than 1 %."""
    reserved = [entry for entry in resolved.entries if "low_level" in entry.params]
    if not reserved or not {"levels", "series", "link"} <= set(run.tables):
        return []
    accounts = [Account(entry, n, resolved) for entry in reserved for n in entry.numbers]
    for bins in _bins(run, resolved):
        for account in accounts:
            account.add(bins)
    found: list[Finding] = []
    for entry in reserved:
        mine = [account.finding(run, resolved) for account in accounts if account.entry is entry]
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
        rows = [floats(batch.column(name)) for name in columns]
        waiting = np.vstack([waiting, np.column_stack(rows)])
        while len(waiting) >= size:
            yield waiting[:size].reshape(-1, rows_per_bin, len(columns))
            waiting = waiting[size:]
    if len(waiting):
        yield waiting.reshape(-1, rows_per_bin, len(columns))


def _filled_s(entry: Entry, n: int) -> Iterator[tuple[float, float]]:
    """Times in which greedy flows keep the queue of a class filled: they replace each packet that leaves at once."""
    for flow in entry.flows:
        # Copies of a flow join the copies of a class in turn.
        joins = flow["class"] == entry.names[n - entry.numbers.start] or flow["count"] >= len(entry.numbers)
        if flow["kind"] == "greedy" and joins and not flow["access_delay_s"]:
            yield flow["start_s"] + flow["stagger_s"] * (flow["count"] - 1), flow["stop_s"]


class Account:
    """The reservation of one class, and the part of it that was lost."""

    def __init__(self, entry: Entry, n: int, resolved: ResolvedScenario) -> None:
        self.entry = entry
        self._n = n
        self._above = [
            (other, m) for other in resolved.entries for m in other.numbers if other.level(m) < entry.level(n)
        ]
        self._rate_bps = float(entry.params["rate"])
        self._packet_bits = 8 * resolved.packet_wire_bytes(entry.largest_bytes())
        above_bytes = max((other.largest_bytes() for other, _ in self._above), default=0.0)
        self._edge_bits = self._packet_bits + 8 * resolved.packet_wire_bytes(above_bytes)
        self._share = float(entry.params["share"])
        self._nominal_bps = resolved.link["nominal_bps"]
        self._follow = resolved.link["follow"]
        self._filled_s = list(_filled_s(entry, n))
        self._window_s = self._reserved_bits = self._capacity_bits = self._left_bits = 0.0
        self._lost_bits = self._used_up_s = self._used_up_reserved_bits = 0.0
        self._first_s = math.inf
        self._run_s = self._longest_s = 0.0

    def _reserved_bps(self, capacity_bps: Values) -> Values:
        if self._rate_bps:
            return np.full(len(capacity_bps), self._rate_bps)
        return self._share * (capacity_bps if self._follow else np.full(len(capacity_bps), self._nominal_bps))

    def _left_bps(self, bins: Bins) -> Values:
        above = [m for _, m in self._above]
        left: Values = np.clip(bins.capacity_bps - bins.sent_bps[:, above].sum(axis=1), 0.0, None)
        return left

    def offered(self, bins: Bins) -> tuple[Values, Values, Values, Values]:
        """What `Left` consists of."""
        lasts_s = bins.ends_s - bins.starts_s
        reserved_bps = self._reserved_bps(bins.capacity_bps)
        return reserved_bps * lasts_s, self._left_bps(bins) * lasts_s, bins.capacity_bps * lasts_s, lasts_s

    def add(self, bins: Bins) -> None:
        """Counts some bins."""
        n, spans_s = self._n, bins.spans_s
        reserved_bps = self._reserved_bps(bins.capacity_bps)
        left_bps = self._left_bps(bins)
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

    def finding(self, run: RunTables, resolved: ResolvedScenario) -> Finding | None:
        """The warning, if there is one to give."""
        turn_bits = 8 * self.entry.params["burst"] * self.entry.params["mtu"]
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
        kind, why = self._reason(figures)
        advice, cures = self._advice(run, kind, Left.of(self, _bins(run, resolved)))
        cure = ", or ".join(cures) or "Reserve less, or let more urgent classes send less"
        cure = f"{cure[:1].upper()}{cure[1:]}"
        return Finding(f"reservation_{kind}", self.entry.where(self._n), f"{what}: {why}", cure, figures, advice)

    def _reason(self, figures: dict[str, float]) -> tuple[str, str]:
        reserved_bps, capacity_bps, left_bps = (figures[key] for key in ("reserved_bps", "capacity_bps", "left_bps"))
        if left_bps >= reserved_bps:
            return "memory", (
                f"{megabits(left_bps)} were left for it on average, but not then, "
                f"and its memory of {self._memory_s(reserved_bps):.3g} s was used up"
            )
        if capacity_bps < reserved_bps:
            return "link", f"the link carries {megabits(capacity_bps)} on average"
        above = ", ".join(dict.fromkeys(other.keys["name"] for other, _ in self._above))
        return "starved", f"more urgent classes ({above}) leave {megabits(left_bps)} of {megabits(capacity_bps)}"

    def _advice(self, run: RunTables, kind: str, left: Left) -> tuple[tuple[Advice, ...], list[str]]:
        """Changes that end the loss, as keys and values and in words."""
        name = self.entry.keys["name"]
        advice: list[Advice] = []
        cures = []
        reserved_bps = self._reserved_bits / self._window_s
        if kind == "memory":
            needed_s = max(left.owed_bits(1.0) / reserved_bps, self._memory_s(reserved_bps) + self._longest_s)
            memory_s = math.ceil(_SPARE * needed_s)
            if "lr" in self.entry.params:
                more_bits = math.ceil(memory_s * reserved_bps) - round(self.entry.params["lr"])
                advice.append(
                    self._larger("lr", more_bits) | (self._larger("lm", more_bits) if "lm" in self.entry.params else {})
                )
                cures.append(f"set {', '.join(f'{key} = {value}' for key, value in advice[-1].items())}")
            elif memory_s <= _LONGEST_S:
                held = self._held(run, left)
                advice.append({key_of("class", name, "memory"): f"{memory_s}s"} | held)
                longer = "".join(
                    f', and limit = "{limit}" so that its packets are still there' for limit in held.values()
                )
                cures.append(f'set memory = "{memory_s}s" so that it is made up for later{longer}')
            return tuple(advice), cures
        part = left.part(self._memory_s(reserved_bps), self._edge_bits)
        if part * reserved_bps >= 1:
            key = "rate" if self._rate_bps else "share"
            value = f"{math.floor(part * self._rate_bps)}bit" if self._rate_bps else f"{100 * part * self._share:.6g}%"
            advice.append({key_of("class", name, key): value})
            cures.append(f'set {key} = "{value}", as little is left for it')
        first = min(
            (other for other, _ in self._above), key=lambda other: other.level(other.numbers.start), default=None
        )
        if kind == "starved" and first is not None and len(self.entry.numbers) == len(first.numbers) == 1:
            level, other_level = self.entry.level(self._n), first.level(first.numbers.start)
            fits = "low_level" not in first.params
            memory_bits = self._memory_s(reserved_bps) * reserved_bps
            if fits and left.owed_bits(1.0, alone=True) <= memory_bits + self._edge_bits:
                other = first.keys["name"]
                advice.append({key_of("class", name, "level"): other_level, key_of("class", other, "level"): level})
                cures.append(f"swap its level with that of {other} (level = {other_level} and {level})")
        return tuple(advice), cures

    def _held(self, run: RunTables, left: Left) -> Advice:
        """The limit that holds what is owed, if packets were dropped that could have been sent later."""
        limit_pkts = self.entry.keys["limit_pkts"]
        greedy = all(
            flow["kind"] == "greedy" for flow in self.entry.flows
        )  # sends new packets instead of those dropped
        if greedy or limit_pkts is None or not run.rows("classes")[self._n]["dropped_limit_pkts"]:
            return {}
        sizes = [resolved_bytes for flow in self.entry.flows if (resolved_bytes := packet_bytes(flow)[0])]
        owed_pkts = math.ceil(_SPARE * left.owed_bits(1.0) / (8 * min(sizes, default=self._packet_bits / 8)))
        return {key_of("class", self.entry.keys["name"], "limit"): f"{owed_pkts + limit_pkts}p"}

    def _larger(self, key: str, more_bits: int) -> Advice:
        bits = round(self.entry.params[key]) + more_bits
        return {key_of("class", self.entry.keys["name"], key): f"{bits}bit"}

    def _memory_s(self, reserved_bps: float) -> float:
        if "lr" in self.entry.params:
            return float(self.entry.params["lr"]) / reserved_bps
        return float(self.entry.params["memory"])


_SPARE = 1.05
"""A memory is proposed that is larger than needed by this factor, as bins show means."""
_LONGEST_S = 604_800.0


@dataclass
class Left:
    """What the link and more urgent classes left for a class in each bin, in bits, and what was reserved."""

    reserved_bits: Values
    left_bits: Values
    capacity_bits: Values
    lasts_s: Values

    @classmethod
    def of(cls, account: Account, blocks: Iterator[Bins]) -> Left:
        """Of a class, from the bins of its run."""
        return cls(*(np.concatenate(part) for part in zip(*(account.offered(bins) for bins in blocks), strict=True)))

    def owed_bits(self, part: float, *, alone: bool = False) -> float:
        """The most that is owed at any time to a class that always has packets and reserves this part.

        With `alone` it is the most urgent class.
        """
        short = np.cumsum(part * self.reserved_bits - (self.capacity_bits if alone else self.left_bits))
        least = np.minimum.accumulate(np.minimum(short, 0.0))
        return float((short - least).max())

    def part(self, memory_s: float, slack_bits: float) -> float:
        """The part of the reservation that can be kept with a memory so long; bins vary by `slack_bits` by chance."""
        memory_bits = memory_s * float(self.reserved_bits.sum() / self.lasts_s.sum())
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            kept = self.owed_bits(middle) <= middle * memory_bits + slack_bits
            low, high = (middle, high) if kept else (low, middle)
        return low / _SPARE
