# SPDX-License-Identifier: BSD-3-Clause
"""What the user wants of PSS, in base units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from linkweir.scenarios import quantity
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import theory
from linkweir.sizing.defaults import MEMORY_S
from linkweir.sizing.shortage import CapacitySteps

TRACE_MARGIN = 1.0
"""Memory per memory needed on a trace: its shortages are known."""
FADE_MARGIN = 2.0
"""Memory per memory that a single fade needs: a second one may begin before the first is made up for."""
ROUNDING = 1e-6
"""What a product may be too large, in milliseconds."""


@dataclass(frozen=True)
class Weights:
    """WRR weights to replace: packets per visit, and the mean packet sizes."""

    af: int
    cs0: int
    af_bytes: int
    cs0_bytes: int

    @property
    def k_af(self) -> float:
        """AF's part of the residual capacity, equation (2)."""
        return theory.wrr_share(self.af, self.cs0, self.af_bytes, self.cs0_bytes)


class Span(NamedTuple):
    """The memory of a queue; its longest shortage, the memory that this needs, and the longest hold on CS0."""

    memory_s: float
    shortage_s: float | None = None
    needed_s: float | None = None
    margin: float | None = None
    hold_s: float | None = None


@dataclass(frozen=True)
class Memory:
    """The source of the memory: given, the longest fade, or a trace; `margin` is memory per memory needed.

    The memory is at least the default and at least `least_s`. A memory that is given beside a trace is not changed.
    """

    given_s: float | None = None
    fade_s: float | None = None
    trace: CapacitySteps | None = None
    margin: float | None = None
    least_s: float = 0.0

    def of(self, name: str, target_bps: float, ahead_bps: float, link_bps: float) -> Span:
        """Memory of a queue that wants `target_bps` of the link after `ahead_bps` of more urgent ones.

        Raises:
            OptionError: the trace does not carry that much in the long run, so no memory is enough.
        """
        if self.trace is None and self.given_s is not None:
            return Span(self.given_s)
        if self.fade_s is not None:
            shortage_s = self.fade_s
            if ahead_bps < link_bps:  # otherwise it starves, and `pss.warnings_about` warns
                shortage_s += self.fade_s * ahead_bps / (link_bps - ahead_bps)  # until what queued up ahead is sent
            return self._span(shortage_s, shortage_s, FADE_MARGIN)
        if self.trace is None:
            return Span(max(MEMORY_S, self.least_s))
        shortage_s = self.trace.shortage_s(target_bps, ahead_bps)
        needed_s = self.trace.needed_s(target_bps, ahead_bps)
        if math.isinf(shortage_s) or math.isinf(needed_s):
            wanted = quantity.rate_text(target_bps)
            raise OptionError("--trace", wanted, f"is more than the trace leaves {name} in the long run: reserve less")
        span = self._span(shortage_s, needed_s, TRACE_MARGIN)
        return span._replace(hold_s=self.trace.hold_s(target_bps, ahead_bps, span.memory_s))

    def _span(self, shortage_s: float, needed_s: float, usual: float) -> Span:
        margin = usual if self.margin is None else self.margin
        if self.given_s is not None:
            return Span(self.given_s, shortage_s, needed_s)
        wanted_s = math.ceil(margin * needed_s * 1000 - ROUNDING) / 1000  # never less than is needed
        return Span(max(MEMORY_S, self.least_s, wanted_s), shortage_s, needed_s, margin)


@dataclass(frozen=True)
class Requirements:
    """All that the user asked for; either `targets` or `weights`."""

    link_bps: float
    ef_expected_bps: float
    targets: tuple[float, ...]
    weights: Weights | None
    burst_pkts: int
    mtu_bytes: int
    other_mtu_bytes: int | None
    burst_above_bytes: int | None
    memory: Memory
    sat: str
    resume_bits: float | None
    maximum_bits: float | None
    loads: tuple[float, ...]

    @property
    def k_af(self) -> float:
        """Share of the expected residual capacity that the first queue wants."""
        if self.weights is not None:
            return self.weights.k_af
        return self.targets[0] / (self.link_bps - self.ef_expected_bps)
