# SPDX-License-Identifier: BSD-3-Clause
"""The theory of the schedulers: closed forms and fluid models, independent of the simulator.

Pure functions of plain numbers; every name carries its unit. Rates are bit/s, levels bit, times seconds.

Sources: Finzi, Perrier, Frances and Lochin 2023 (PSS; its equation numbers are given), Shreedhar and Varghese 1996
(DRR), Dovrolis, Stiliadis and Ramanathan 1999 (WTP), Dovrolis and Ramanathan 2000 (PLR), Gaidioz, Goutelle and Primet
2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "Cosine",
    "Fluid",
    "Rates",
    "catch_up_s",
    "controlled_rates",
    "drr_rates",
    "fluid",
    "left_after",
    "longest_hold_s",
    "longest_shortage_s",
    "memory_needed_s",
    "plr_losses",
    "proportional_delays_s",
    "pss_rates",
    "pss_service_bound_bits",
    "reserved_bps",
    "wrr_share",
    "wtp_delays_s",
]


class Rates(NamedTuple):
    """Rates of the two elastic classes, bit/s."""

    af_bps: float
    cs0_bps: float


# --- PSS and DRR at a constant capacity -----------------------------------------------------------------------------


def wrr_share(af_weight: float, cs0_weight: float, af_bytes: float = 1.0, cs0_bytes: float = 1.0) -> float:
    """K_AF: the part of the residual capacity that WRR weights give to AF, equation (2).

    Weights are packets per visit, sizes the mean lengths of the packets.

    >>> wrr_share(16, 4)
    0.8
    >>> round(wrr_share(1, 1, af_bytes=1500, cs0_bytes=500), 3)
    0.75
    """
    return af_weight * af_bytes / (af_weight * af_bytes + cs0_weight * cs0_bytes)


def reserved_bps(link_bps: float, ef_expected_bps: float, k_af: float) -> float:
    """Rate that PSS reserves in place of a WRR share, equation (3) with the share K_AF.

    >>> reserved_bps(20e6, 10e6, 0.5)
    5000000.0
    """
    return k_af * (link_bps - ef_expected_bps)


def drr_rates(link_bps: float, ef_bps: float, k_af: float) -> Rates:
    """Rates under WRR or DRR behind a strict EF class, equations (1) and (6).

    >>> drr_rates(20e6, 5e6, 0.4)
    Rates(af_bps=6000000.0, cs0_bps=9000000.0)
    """
    residual_bps = max(link_bps - ef_bps, 0.0)
    af_bps = k_af * residual_bps
    return Rates(af_bps, residual_bps - af_bps)


def pss_rates(link_bps: float, ef_bps: float, af_reserved_bps: float) -> Rates:
    """Rates under PSS with AF and CS0 always backlogged, equations (7) and (8).

    >>> pss_rates(20e6, 15e6, 6e6)
    Rates(af_bps=5000000.0, cs0_bps=0.0)
    >>> pss_rates(20e6, 5e6, 6e6)
    Rates(af_bps=6000000.0, cs0_bps=9000000.0)
    """
    residual_bps = max(link_bps - ef_bps, 0.0)
    af_bps = min(af_reserved_bps, residual_bps)
    return Rates(af_bps, residual_bps - af_bps)


def controlled_rates(residual_bps: float, reserved: Sequence[float]) -> tuple[list[float], float]:
    """Rates of several PSS queues with reservations, most urgent first, and what is left for the rest.

    >>> controlled_rates(8e6, [6e6, 4e6])
    ([6000000.0, 2000000.0], 0.0)
    """
    rates = []
    left_bps = max(residual_bps, 0.0)
    for wanted_bps in reserved:
        rates.append(min(wanted_bps, left_bps))
        left_bps -= rates[-1]
    return rates, left_bps


def catch_up_s(maximum_bits: float, link_bps: float, ef_bps: float, reserved_rate_bps: float) -> float:
    """Longest time that a PSS queue holds the link before less urgent ones after a full starvation, seconds.

    Infinite when nothing is left beyond the reservation.

    >>> catch_up_s(75e6, 20e6, 10e6, 5e6)
    15.0
    """
    spare_bps = link_bps - ef_bps - reserved_rate_bps
    return maximum_bits / spare_bps if spare_bps > 0 else math.inf


def pss_service_bound_bits(
    interval_s: float, maximum_bits: float, reserved_rate_bps: float, largest_packet_bytes: int
) -> float:
    """Most bits a PSS queue can send at its high level in an interval: a leaky bucket (LM + Lmax, rho).

    >>> pss_service_bound_bits(1.0, 200e3, 8e6, 1500)
    8212000.0
    """
    return maximum_bits + 8 * largest_packet_bytes + reserved_rate_bps * interval_s


# --- PSS and DRR when capacity and EF change ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cosine:
    """``mean * (1 + amplitude * cos(2 pi t / period))``, the paper's form of C(t) and EF(t).

    >>> Cosine(20e6, 0.3, 15.0)(7.5)
    14000000.0
    """

    mean: float
    amplitude: float = 0.0
    period_s: float = 1.0

    def __call__(self, t_s: float) -> float:
        """Value at a time."""
        return self.mean * (1.0 + self.amplitude * math.cos(2.0 * math.pi * t_s / self.period_s))


@dataclass(frozen=True)
class Fluid:
    """Fluid rates at the middle of equal steps, bit/s, and the AF level at their end, bit."""

    step_s: float
    ef_bps: list[float]
    af_bps: list[float]
    cs0_bps: list[float]
    level_bits: list[float]

    def mean_bps(self, from_s: float = 0.0, to_s: float = math.inf) -> tuple[float, float, float]:
        """Mean rates of EF, AF and CS0 between two times, bit/s."""
        first = round(from_s / self.step_s)
        last = len(self.ef_bps) if math.isinf(to_s) else round(to_s / self.step_s)
        count = last - first
        return (
            sum(self.ef_bps[first:last]) / count,
            sum(self.af_bps[first:last]) / count,
            sum(self.cs0_bps[first:last]) / count,
        )


def fluid(
    capacity_bps: Callable[[float], float],
    ef_arrival_bps: Callable[[float], float],
    duration_s: float,
    *,
    reserved_rate_bps: float | None = None,
    memory_s: float = 0.0,
    share: float | None = None,
    ef_queue_bits: float = 500 * 12000.0,
    step_s: float = 0.01,
) -> Fluid:
    """EF first, then AF, then CS0, as fluids; AF and CS0 always have something to send.

    Give `reserved_rate_bps` for PSS: AF may make up for what it missed, up to `memory_s` of its rate. With enough
    memory its mean is min(rho, mean residual); with none it is the mean of min(rho, residual). Or give `share` for DRR,
    which splits the residual. EF keeps up to `ef_queue_bits` waiting and loses the rest.

    >>> flat = fluid(Cosine(20e6), Cosine(10e6), 10.0, reserved_rate_bps=6e6)
    >>> [round(x / 1e6, 3) for x in flat.mean_bps()]
    [10.0, 6.0, 4.0]
    """
    if (reserved_rate_bps is None) == (share is None):
        raise ValueError("give either reserved_rate_bps (PSS) or share (DRR)")
    rho_bps = reserved_rate_bps or 0.0
    resume_bits = rho_bps * memory_s
    result = Fluid(step_s, [], [], [], [])
    ef_waiting_bits = 0.0
    missed_bits = 0.0
    for i in range(round(duration_s / step_s)):
        t_s = (i + 0.5) * step_s
        offered_bits = capacity_bps(t_s) * step_s
        ef_waiting_bits += ef_arrival_bps(t_s) * step_s
        ef_bits = min(ef_waiting_bits, offered_bits)
        ef_waiting_bits = min(ef_waiting_bits - ef_bits, ef_queue_bits)
        residual_bits = offered_bits - ef_bits
        if share is None:
            af_bits = min(residual_bits, rho_bps * step_s + missed_bits)
            missed_bits = min(missed_bits + rho_bps * step_s - af_bits, resume_bits)
        else:
            af_bits = share * residual_bits
        result.ef_bps.append(ef_bits / step_s)
        result.af_bps.append(af_bits / step_s)
        result.cs0_bps.append((residual_bits - af_bits) / step_s)
        result.level_bits.append(resume_bits - missed_bits)
    return result


def left_after(
    starts_s: Sequence[float], rates: Sequence[float], end_s: float, taken_bps: float, *, loops: bool = False
) -> tuple[list[float], list[float]]:
    """The rest of a capacity given in steps, after traffic of a constant rate that is served first and may queue.

    After a shortage nothing is left until that queue is empty. In a record that loops, the queue left at its end is
    there when it starts again; one that grows with each round leaves nothing.

    Returns:
        Starts and rates of the steps of what is left; a step in which the queue empties becomes two.

    >>> left_after([0, 2], [0, 3], 10, 1)
    ([0, 2, 3.0], [0, 0, 2])
    """
    ends_s = [*starts_s[1:], end_s]
    waiting_bits: float = 0
    left_starts_s: list[float] = []
    left: list[float] = []
    for turn in range(2 if loops else 1):
        before = waiting_bits
        left_starts_s, left = [], []
        for start, end, rate in zip(starts_s, ends_s, rates, strict=True):
            spare_bps = rate - taken_bps
            spare_bits = spare_bps * (end - start)
            left_starts_s.append(start)
            # A queue that empties at the end of the step leaves nothing of it, not even a rounding error.
            if spare_bps < 0 or (waiting_bits > 0 and waiting_bits >= spare_bits * (1 - 1e-12)):
                waiting_bits = max(waiting_bits - spare_bits, 0)
                left.append(0)
                continue
            if waiting_bits > 0:
                left.append(0)
                left_starts_s.append(start + waiting_bits / spare_bps)
            left.append(spare_bps)
            waiting_bits = 0
        if turn == 1 and waiting_bits > before * (1 + 1e-9):
            return left_starts_s, [0] * len(left)
    return left_starts_s, left


def longest_shortage_s(
    starts_s: Sequence[float], rates: Sequence[float], end_s: float, wanted_bps: float, *, loops: bool = False
) -> float:
    """Longest time for which a rate given in steps stays below the wanted one, seconds.

    Step i lasts from ``starts_s[i]`` to the next start, the last one to `end_s`. With `loops` the record starts again
    at its end, so a shortage may reach across it; one that never ends is infinite.

    >>> longest_shortage_s([0, 1, 3, 4], [5, 2, 2, 5], 6, 4)
    3
    >>> longest_shortage_s([0, 1, 3], [2, 5, 2], 4, 4, loops=True)
    2
    """
    ends_s = [*starts_s[1:], end_s]
    if not any(rate >= wanted_bps for rate in rates):
        return math.inf if loops else end_s - starts_s[0]
    rounds = 2 if loops else 1
    longest: float = 0
    current: float = 0
    for _ in range(rounds):
        for start, end, rate in zip(starts_s, ends_s, rates, strict=True):
            current = current + (end - start) if rate < wanted_bps else 0
            longest = max(longest, current)
    return longest


def memory_needed_s(
    starts_s: Sequence[float], rates: Sequence[float], end_s: float, wanted_bps: float, *, loops: bool = False
) -> float:
    """Memory with which a reservation loses nothing although the rate left to it, given in steps, falls below it,
    seconds.

    That is the largest deficit divided by the reservation; infinite when a looping record never makes up for its
    shortages.

    >>> memory_needed_s([0, 1, 3, 4], [5, 2, 2, 8], 6, 4)
    1.5
    """
    missed = peak = 0.0
    ends_s = [*starts_s[1:], end_s]
    for turn in range(2 if loops else 1):
        before = missed
        for start, end, rate in zip(starts_s, ends_s, rates, strict=True):
            missed = max(missed + (wanted_bps - rate) * (end - start), 0.0)
            peak = max(peak, missed)
        if turn == 1 and missed > before * (1 + 1e-9):
            return math.inf
    return peak / wanted_bps


def longest_hold_s(
    starts_s: Sequence[float],
    rates: Sequence[float],
    end_s: float,
    wanted_bps: float,
    memory_s: float,
    *,
    loops: bool = False,
) -> float:
    """Longest time for which a reservation with this memory leaves nothing of a rate given in steps, seconds.

    It takes all from the start of a shortage until what it missed, at most `memory_s` of its rate, is made up for.

    >>> longest_hold_s([0, 1, 3, 4], [5, 2, 2, 8], 6, 4, 1.5)
    4.5
    >>> longest_hold_s([0, 1, 3, 4], [5, 2, 2, 8], 6, 4, 0.5)
    3.5
    """
    missed = held = longest = 0.0
    ends_s = [*starts_s[1:], end_s]
    for _ in range(2 if loops else 1):
        for start, end, rate in zip(starts_s, ends_s, rates, strict=True):
            lasts_s = end - start
            spare_bps = rate - wanted_bps
            if spare_bps >= 0 and missed <= spare_bps * lasts_s:
                longest = max(longest, held + (missed / spare_bps if missed > 0 else 0.0))
                missed = held = 0.0
                continue
            missed = min(missed - spare_bps * lasts_s, wanted_bps * memory_s)
            held += lasts_s
            longest = max(longest, held)
    return longest


# --- Proportional delay and loss ------------------------------------------------------------------------------------


def plr_losses(loss: float, coefficients: Sequence[float], arrivals: Sequence[float] | None = None) -> list[float]:
    """Loss rates inversely proportional to the coefficients when `loss` of all arrivals must go; none exceeds 1.

    A class that would have to lose more than it sends loses all of it, and the others share the remainder.

    >>> [round(x, 3) for x in plr_losses(0.3, [1, 2])]
    [0.4, 0.2]
    >>> [round(x, 3) for x in plr_losses(0.6, [1, 5])]
    [1.0, 0.2]
    """
    rates = list(arrivals) if arrivals is not None else [1.0] * len(coefficients)
    left = loss * sum(rates)
    open_classes = set(range(len(coefficients)))
    losses = [0.0] * len(coefficients)
    while open_classes:
        unit = left / sum(rates[i] / coefficients[i] for i in sorted(open_classes))
        full = [i for i in sorted(open_classes) if unit / coefficients[i] > 1.0]
        if not full:
            for i in open_classes:
                losses[i] = unit / coefficients[i]
            break
        for i in full:
            losses[i] = 1.0
            left -= rates[i]
            open_classes.discard(i)
    return losses


def proportional_delays_s(
    backlog_pkts: float, coefficients: Sequence[float], served_pps: Sequence[float]
) -> list[float]:
    """Mean waits inversely proportional to the coefficients that add up to the backlog by Little's law, seconds.

    `served_pps` are the packets per second of each class that are not dropped.

    >>> [round(x, 2) for x in proportional_delays_s(80, [2, 1], [10, 10])]
    [2.67, 5.33]
    """
    total = sum(rate / d for rate, d in zip(served_pps, coefficients, strict=True))
    return [backlog_pkts / d / total for d in coefficients]


def wtp_delays_s(
    backlog_pkts: float, coefficients: Sequence[float], served_pps: Sequence[float], packet_s: float, ring: int = 1
) -> list[float]:
    """Mean waits under WTP with its limited resolution: theta / d_i + r * tx / 2, seconds.

    A packet is sent whole and the driver takes `ring` of them at once, so every class waits half of that on average
    besides its proportional part; theta follows from the backlog.

    >>> waits = wtp_delays_s(80, [255, 11], [1000, 1000], 123e-6, ring=16)
    >>> round(waits[1] / waits[0], 1)
    18.0
    """
    grain_s = ring * packet_s / 2.0
    proportional = proportional_delays_s(max(backlog_pkts - grain_s * sum(served_pps), 0.0), coefficients, served_pps)
    return [wait + grain_s for wait in proportional]
