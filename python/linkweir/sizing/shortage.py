# SPDX-License-Identifier: BSD-3-Clause
"""The longest time for which a capacity trace leaves less than a reservation."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linkweir import _native, traces
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import theory

RATE_BIN_S = 0.1
"""Length of the bins over which opportunities are counted to find when the rate is too low."""
EXACT_BIN_S = 0.001
"""Length of the bins for what is missed: as exact as opportunities are written."""


@dataclass(frozen=True)
class CapacitySteps:
    """Capacity in steps: `rates[i]` bit/s from ``starts_s[i]`` on; of opportunities also the `exact` steps."""

    starts_s: list[float]
    rates: list[float]
    end_s: float
    loops: bool
    exact: CapacitySteps | None = None

    def shortage_s(self, wanted_bps: float, ahead_bps: float) -> float:
        """Longest time in which traffic of `ahead_bps` that goes first leaves less than `wanted_bps`, seconds."""
        starts_s, left = self._left(ahead_bps)
        return theory.longest_shortage_s(starts_s, left, self.end_s, wanted_bps, loops=self.loops)

    def needed_s(self, wanted_bps: float, ahead_bps: float) -> float:
        """Memory with which nothing of the reservation is lost, seconds."""
        if self.exact is not None:
            return self.exact.needed_s(wanted_bps, ahead_bps)
        starts_s, left = self._left(ahead_bps)
        return theory.memory_needed_s(starts_s, left, self.end_s, wanted_bps, loops=self.loops)

    def hold_s(self, wanted_bps: float, ahead_bps: float, memory_s: float) -> float:
        """Longest time for which a reservation with this memory takes all that is left, seconds."""
        if self.exact is not None:
            return self.exact.hold_s(wanted_bps, ahead_bps, memory_s)
        starts_s, left = self._left(ahead_bps)
        return theory.longest_hold_s(starts_s, left, self.end_s, wanted_bps, memory_s, loops=self.loops)

    def mean_bps(self) -> float:
        """Time mean of the capacity."""
        ends_s = [*self.starts_s[1:], self.end_s]
        area = sum(r * (e - s) for s, e, r in zip(self.starts_s, ends_s, self.rates, strict=True))
        return area / (self.end_s - self.starts_s[0])

    def _left(self, ahead_bps: float) -> tuple[list[float], list[float]]:
        return theory.left_after(self.starts_s, self.rates, self.end_s, ahead_bps, loops=self.loops)


def read(path: Path, keys: Mapping[str, Any] | None = None) -> CapacitySteps:
    """Reads a trace as the scenario's reader does.

    Raises:
        ScenarioError: the file, or the first line of it that is wrong.
        OptionError: it is too short to tell how long its last value lasts.
    """
    what, (starts_s, values, end_s, after) = _native.trace(path, traces.as_toml(keys))
    if what == "opportunities":
        return replace(_counted(starts_s, values, RATE_BIN_S), exact=_counted(starts_s, values, EXACT_BIN_S))
    if end_s is None:
        if len(starts_s) < 2:
            raise OptionError(
                "--trace", path, "needs at least two entries, or # period_s=SECONDS and # end=loop or stop"
            )
        end_s = 2 * starts_s[-1] - starts_s[-2]
    return CapacitySteps(starts_s, values, end_s, loops=after == "loop")


def _counted(times_s: list[float], sizes_bytes: list[float], bin_s: float) -> CapacitySteps:
    """Opportunities as rates over bins; one at the end of a bin belongs to it. Empty bins in a row are one step."""
    end_s = times_s[-1]
    bits: defaultdict[int, float] = defaultdict(float)
    for t_s, size_bytes in zip(times_s, sizes_bytes, strict=True):
        bits[max(math.ceil(t_s / bin_s - 1e-9) - 1, 0)] += 8 * size_bytes
    starts_s: list[float] = []
    rates: list[float] = []
    following = 0
    for number in sorted(bits):
        if number > following:
            starts_s.append(following * bin_s)
            rates.append(0.0)
        following = number + 1
        starts_s.append(number * bin_s)
        rates.append(bits[number] / (min(following * bin_s, end_s) - number * bin_s))
    return CapacitySteps(starts_s, rates, end_s, loops=True)
