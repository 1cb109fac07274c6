# SPDX-License-Identifier: BSD-3-Clause
"""The measures of a class that sweeps and comparisons show: column, words, unit, and which direction is better."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        column: of the table of a comparison.
        words: its name in sentences and headings.
        unit: the unit it is shown in.
        scale: from the base unit to the one shown.
        digits: after the point.
        quantity: how a bound is written, as `linkweir.scenarios.policy.Parameter.unit`.
        more_is_better: whether a promise is a lower bound.
        resolution: a value is known to this part of itself. If it is above 0, half an interval is rounded up, so that
            none is shown narrower.
    """

    column: str
    words: str
    unit: str
    scale: float
    digits: int
    quantity: str
    more_is_better: bool = False
    resolution: float = 0.0

    @property
    def heading(self) -> str:
        """Words and unit."""
        return f"{self.words} ({self.unit})"

    def shown(self, value: float | None, half: float | None = None) -> str:
        """A value as people read it, with half its interval if it has one.

        >>> MEASURES["rate"].shown(1_513_000.0, 21_000.0), MEASURES["loss"].shown(None)
        ('1.513 ± 0.021', '-')
        >>> MEASURES["delay_p99"].shown(0.0013, 0.00001), MEASURES["delay_mean"].shown(0.0013, 0.00001)
        ('1.3 ± 0.1', '1.3 ± 0.0')
        """
        if value is None:
            return "-"
        text = f"{value * self.scale:,.{self.digits}f}"
        if half is None:
            return text
        width = half * self.scale
        if self.resolution:
            step = 10**self.digits
            width = math.ceil(width * step - 1e-9) / step
        return f"{text} ± {width:,.{self.digits}f}"


BUCKET = 1 / 128
"""Width of a histogram's buckets, as a part of their bounds. Percentiles are bounds of buckets."""

MEASURES = {
    "rate": Measure("rate_bps", "rate", "Mbit/s", 1e-6, 3, "rate", more_is_better=True),
    "goodput": Measure("goodput_bps", "TCP goodput", "Mbit/s", 1e-6, 3, "rate", more_is_better=True),
    "loss": Measure("loss", "loss", "%", 100.0, 2, "fraction"),
    "delay_mean": Measure("delay_mean_s", "mean delay", "ms", 1e3, 1, "time"),
    "delay_p50": Measure("delay_p50_s", "delay p50", "ms", 1e3, 1, "time", resolution=BUCKET),
    "delay_p95": Measure("delay_p95_s", "delay p95", "ms", 1e3, 1, "time", resolution=BUCKET),
    "delay_p99": Measure("delay_p99_s", "delay p99", "ms", 1e3, 1, "time", resolution=BUCKET),
}
"""By the name that a promise uses. Delays of classes are queueing delays."""

SHOWN = ("rate", "goodput", "loss", "delay_p50", "delay_p99")
"""Measures of the table that is printed and of the report."""

CAPACITY = Measure("capacity_bps", "mean capacity", "Mbit/s", 1e-6, 3, "rate")
USED = Measure("used", "used", "%", 100.0, 1, "fraction")
"""Measures of a link."""
