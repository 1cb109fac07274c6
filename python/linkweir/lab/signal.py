# SPDX-License-Identifier: BSD-3-Clause
"""Values over time of a checked scenario, for those who need their integral outside the simulator."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkweir.scenarios.typed import Cosine, Lines, Steps

Values = NDArray[np.float64]

_FINEST_S = 1e-3


class Signal:
    """A constant, a cosine, steps or straight lines.

    Args:
        value: of the key.
        end_s: the last time at which a value is needed.
    """

    def __init__(self, value: float | Cosine | Steps | Lines, end_s: float) -> None:
        self._cosine: tuple[float, float, float, float] | None = None
        self._lines = False
        self._times: Values = np.array([0.0])
        if isinstance(value, float):
            self._values: Values = np.array([value])
        elif "mean" in value:
            self._cosine = (value["mean"], value["amplitude"], value["period_s"], value["phase"])
        elif "lines" in value:
            self._lines = True
            self._times, self._values = (np.array(each) for each in zip(*value["lines"], strict=True))
        else:
            times, values = [t for t, _ in value["steps"]], [v for _, v in value["steps"]]
            if value["end"] == "stop":
                times, values = [*times, value["at_s"]], [*values, 0.0]
            elif value["end"] == "loop":
                period_s = value["period_s"]
                rounds = math.ceil(end_s / period_s) + 1
                times = [n * period_s + t for n in range(rounds) for t in times]
                values = values * rounds
            self._times, self._values = np.array(times), np.array(values)

    @property
    def constant(self) -> bool:
        """Whether it never changes."""
        return self._cosine is None and len(self._times) == 1

    @property
    def jumps_s(self) -> list[float] | None:
        """The times of its steps; None if it changes smoothly."""
        return None if self._cosine is not None or self._lines else [float(t) for t in self._times]

    def integral(self, times_s: Values) -> Values:
        """From 0 to each time, value times s."""
        if self._cosine is not None:
            mean, amplitude, period_s, phase = self._cosine
            turn = 2 * math.pi / period_s
            swing: Values = np.sin(turn * times_s + phase) - math.sin(phase)
            return mean * (times_s + amplitude / turn * swing)
        times, values = self._times, self._values
        ends = values[1:] if self._lines else values[:-1]
        before = np.concatenate([[0.0], np.cumsum(np.diff(times) * (values[:-1] + ends) / 2)])
        at = np.clip(np.searchsorted(times, times_s, side="right") - 1, 0, None)
        since: Values = times_s - times[at]
        slopes = np.append(np.diff(values) / np.diff(times), 0.0) if self._lines else np.zeros(len(times))
        sums: Values = before[at] + since * (values[at] + slopes[at] * since / 2)
        return sums

    def mean(self, from_s: float, to_s: float) -> float:
        """Mean over a stretch of time."""
        ends = self.integral(np.array([from_s, to_s]))
        return float((ends[1] - ends[0]) / (to_s - from_s))

    def reaches(self, amounts: Values, from_s: float, to_s: float) -> Values:
        """When the integral since `from_s` reaches each of these amounts, which rise; those after `to_s` are left out.

        Between points 1 ms apart the value is taken for constant: 1e-7 of a millisecond off for the usual cosines.
        """
        even = np.arange(math.ceil((to_s - from_s) / _FINEST_S) + 1) * _FINEST_S + from_s
        inside = self._times[(self._times > from_s) & (self._times < to_s)]
        grid = np.union1d(np.minimum(even, to_s), inside)
        sums = self.integral(grid)
        sums -= sums[0]
        found: Values = np.interp(amounts[amounts < sums[-1]], sums, grid)
        return found
