# SPDX-License-Identifier: BSD-3-Clause
"""How long a capacity trace leaves a reservation short."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from linkweir import _native, theory
from linkweir.plan.fault import Fault

BIN_S = 0.1
"""Over which opportunities are counted."""


@dataclass(frozen=True)
class Trace:
    """Capacity in steps: `rates[i]` bit/s from ``starts_s[i]`` on."""

    starts_s: list[float]
    rates: list[float]
    end_s: float
    loops: bool

    def shortage_s(self, wanted_bps: float, taken_bps: float) -> float:
        """Longest time in which less than `wanted_bps` is left after `taken_bps`, seconds."""
        return theory.longest_shortage_s(self.starts_s, self._left(taken_bps), self.end_s, wanted_bps, loops=self.loops)

    def needed_s(self, wanted_bps: float, taken_bps: float) -> float:
        """Memory with which nothing of the reservation is lost, seconds."""
        return theory.memory_needed_s(self.starts_s, self._left(taken_bps), self.end_s, wanted_bps, loops=self.loops)

    def mean_bps(self) -> float:
        """Time mean of the capacity."""
        ends_s = [*self.starts_s[1:], self.end_s]
        area = sum(r * (e - s) for s, e, r in zip(self.starts_s, ends_s, self.rates, strict=True))
        return area / (self.end_s - self.starts_s[0])

    def _left(self, taken_bps: float) -> list[float]:
        return [max(rate - taken_bps, 0.0) for rate in self.rates]


def read(path: Path) -> Trace:
    """Reads a trace as the scenario's reader does; opportunities are counted per 100 ms.

    Raises:
        ScenarioError: the file, or the first line of it that is wrong.
        Fault: it is too short to tell how long its last value lasts.
    """
    what, (starts_s, values, end_s, after) = _native.trace(path)
    if what == "opportunities":
        return _counted(starts_s, values)
    if end_s is None:
        if len(starts_s) < 2:
            raise Fault("--trace", path, "needs at least two entries, or # period_s=SECONDS and # end=loop or stop")
        end_s = 2 * starts_s[-1] - starts_s[-2]
    return Trace(starts_s, values, end_s, loops=after == "loop")


def _counted(times_s: list[float], sizes_bytes: list[float]) -> Trace:
    """Opportunities as rates; one at the end of a bin belongs to it."""
    end_s = times_s[-1]
    starts_s = [number * BIN_S for number in range(math.ceil(end_s / BIN_S - 1e-9))]
    bits = [0.0] * len(starts_s)
    for t_s, size_bytes in zip(times_s, sizes_bytes, strict=True):
        bits[max(math.ceil(t_s / BIN_S - 1e-9) - 1, 0)] += 8 * size_bytes
    ends_s = [*starts_s[1:], end_s]
    rates = [b / (end - start) for b, start, end in zip(bits, starts_s, ends_s, strict=True)]
    return Trace(starts_s, rates, end_s, loops=True)
