# SPDX-License-Identifier: BSD-3-Clause
"""The link of a scenario, capacity and delay over time, as the list that the queueing discipline `labline` reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkweir.scenarios.scenario import Scenario

DEPARTURE = np.dtype([("at_ns", "<u8"), ("waited_ns", "<u8"), ("bytes", "<u4"), ("mark", "<u4")])
"""A packet as it leaves the queue: the kernel's time, how long it waited, bytes as the link counts them, code point."""
Ns = NDArray[np.int64]
Values = NDArray[np.float64]

_MOST_STEPS = 1_000_000
_FINEST_S = 1e-3
_RATES, _OPPORTUNITIES = 0, 1
_REPORT_NS = 10_000_000
_WINDOW = 10
_LEAST_BITS = 8 * 40
"""No packet is shorter."""


@dataclass(frozen=True)
class Steps:
    """Values over time; each lasts until the next one, the last one for ever."""

    at_ns: Ns
    values: Values

    @classmethod
    def of(cls, scenario: Scenario, quantity: str, finest_s: float) -> Steps:
        """The capacity (rate), delay or loss of a link; smooth changes become steps of at least `finest_s`."""
        at_ns, values = scenario.native.link_steps(quantity, max(finest_s, scenario.duration_s / _MOST_STEPS))
        return cls(np.array(at_ns, np.int64), np.array(values, float))

    @property
    def constant(self) -> bool:
        """Whether it never changes."""
        return len(self.values) == 1

    def at(self, times_ns: Ns) -> Values:
        """Values at these times."""
        found: Values = self.values[np.searchsorted(self.at_ns, times_ns, side="right") - 1]
        return found

    def sum(self, times_ns: Ns) -> Values:
        """The integral from 0 to each of these times, value times s."""
        before = np.concatenate([[0.0], np.cumsum(np.diff(self.at_ns) * self.values[:-1] / 1e9)])
        at = np.searchsorted(self.at_ns, times_ns, side="right") - 1
        found: Values = before[at] + (times_ns - self.at_ns[at]) / 1e9 * self.values[at]
        return found


@dataclass(frozen=True)
class Line:
    """A link from the scheduler to the receivers.

    Attributes:
        rate: capacity in bit/s; None where there are opportunities.
        smooth: the capacity changes all the time; its steps are an approximation.
        opportunities_ns: instants at which bytes may leave.
        opportunity_bytes: how many at each.
        delay: propagation in s.
        loss: probability.
        reorder: part of the packets that is held back, and for how long in s; None if packets keep their order.
        fates: of each packet, as the simulator draws them: 0 travels, 1 is lost, 2 is held back. Empty if none is lost
            or held back; None where the loss changes over time, which netem then draws.
    """

    rate: Steps | None
    smooth: bool
    opportunities_ns: Ns
    opportunity_bytes: int
    delay: Steps
    loss: Steps
    reorder: tuple[float, float] | None = None
    fates: bytes | None = b""

    @classmethod
    def of(cls, scenario: Scenario, smooth: bool, loss_every_s: float) -> Line:
        """The link of a scenario; its capacity is a cosine or lines if `smooth`; loss has steps of `loss_every_s`."""
        at_ns, size = scenario.native.opportunities()
        rate = None if size else Steps.of(scenario, "rate", _FINEST_S)
        delay, loss = (Steps.of(scenario, *want) for want in (("delay", _FINEST_S), ("loss", loss_every_s)))
        reorder = scenario.native.reorder
        made = cls(rate, smooth, np.array(at_ns, np.int64), size, delay, loss, reorder)
        if loss.values.max() == 0 and reorder is None:
            return made
        bits = made.mean(0.0, scenario.duration_s) * scenario.duration_s
        return replace(made, fates=scenario.native.fates(math.ceil(bits / _LEAST_BITS) + 1000))

    def content(self, zero_ns: int, departures: int = 0) -> bytes:
        """The list for `labline`.

        Args:
            zero_ns: the clock's time at which the experiment begins.
            departures: how many packets are noted as they leave the queue.
        """
        if self.rate is None:
            capacities = (zero_ns + self.opportunities_ns).astype("<u8").tobytes()
            capacity = (_OPPORTUNITIES, self.opportunity_bytes, len(self.opportunities_ns))
        else:
            capacities = _list(zero_ns, self.rate.at_ns, self.rate.values)
            capacity = (_RATES, 0, len(self.rate.at_ns))
        fates = self.fates or b""
        held_ns = round(1e9 * self.reorder[1]) if self.reorder is not None else 0
        header = np.array((*capacity, len(self.delay.at_ns), len(fates), held_ns, departures), "<u8")
        delays = _list(zero_ns, self.delay.at_ns, 1e9 * self.delay.values)
        return header.tobytes() + capacities + delays + fates

    def mean(self, from_s: float, to_s: float) -> float:
        """Mean capacity over a stretch of time, bit/s."""
        ends = np.round(1e9 * np.array([from_s, to_s])).astype(np.int64)
        if self.rate is not None:
            sums = self.rate.sum(ends)
        else:
            sums = np.searchsorted(self.opportunities_ns, ends).astype(float) * 8 * self.opportunity_bytes
        return float((sums[1] - sums[0]) / (to_s - from_s))

    def left(self, came_ns: Ns) -> Ns:
        """When packets left the link that came at these times; they did not overtake each other."""
        lags = np.round(1e9 * self.delay.values).astype(np.int64)
        # Packets of a step come later by its delay, and after those of the steps before it.
        ends = np.append(self.delay.at_ns[1:], np.iinfo(np.int64).max // 2)
        behind = np.maximum.accumulate(ends + lags)
        at = np.minimum(np.searchsorted(behind, came_ns, side="right"), len(lags) - 1)
        found: Ns = np.minimum(came_ns - lags[at], ends[at])
        return found

    def began(self, left_ns: Ns, bits: Values) -> Ns:
        """When packets of so many bits began that left at these times; with opportunities, when they left."""
        if self.rate is None:
            return left_ns
        if self.rate.constant:
            constant: Ns = left_ns - np.round(1e9 * bits / self.rate.values[0]).astype(np.int64)
            return constant
        end_ns = max(int(left_ns.max(initial=0)), int(self.rate.at_ns[-1])) + 1
        times = np.append(self.rate.at_ns, end_ns)
        began = np.interp(self.rate.sum(left_ns) - bits, self.rate.sum(times), times)
        found: Ns = np.minimum(np.round(began).astype(np.int64), left_ns)
        return found

    def reports(self, end_ns: int) -> list[tuple[int, int]]:
        """The capacity as the simulator reports it to a scheduler that follows it: times in ns, and 1 bit/s or more."""
        if self.rate is not None:
            times = np.arange(0, end_ns, _REPORT_NS) if self.smooth else self.rate.at_ns
            rates = self.rate.at(times)
        else:
            times = np.arange(_WINDOW, end_ns // _REPORT_NS + 1) * _REPORT_NS
            offered = np.searchsorted(self.opportunities_ns, np.stack([times - _WINDOW * _REPORT_NS, times]))
            rates = 8e9 * self.opportunity_bytes * (offered[1] - offered[0]) / (_WINDOW * _REPORT_NS)
        whole = np.maximum(np.round(rates), 1).astype(np.int64)
        changed = np.append(True, np.diff(whole) != 0) if len(whole) else np.zeros(0, bool)
        return [(int(t), int(bps)) for t, bps in zip(times[changed], whole[changed], strict=True) if 0 < t < end_ns]


def _list(zero_ns: int, at_ns: Ns, values: Values) -> bytes:
    return np.stack([zero_ns + at_ns, np.round(values).astype(np.int64)], axis=1).astype("<u8").tobytes()
