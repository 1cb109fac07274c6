# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients of WTP for the ratios of mean waits that an operator wants, at a load.

Mean waits of Poisson traffic under time-dependent priorities: Kleinrock, Queueing Systems volume II, 1976, section 3.7.
The conservation law says which waits a scheduler can give: no group of classes waits less than if it were alone on the
link before all others. So the coefficients can be computed from the ratios, or there are none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linkweir.scenarios.quantity import OptionError

LARGEST = 65535
"""The largest coefficient that `pds` takes."""
EXACT = 1e-9
"""Relative error of the waits at which the search for coefficients ends."""
ROUNDS = 100_000
LEAST_BACKLOGS = 10
"""Limit, as a multiple of the mean backlog: of an exponential backlog 1 in 20,000 arrivals finds more."""
LEAST_LIMIT_PKTS = 100


@dataclass(frozen=True)
class DelayClass:
    """A class of Poisson traffic: packets of one size."""

    name: str
    rate_bps: float
    packet_bytes: int

    def load(self, link_bps: float) -> float:
        """Part of the link that it uses."""
        return self.rate_bps / link_bps

    def packet_s(self, link_bps: float) -> float:
        """Transmission time of a packet."""
        return 8 * self.packet_bytes / link_bps


def residual_s(classes: Sequence[DelayClass], link_bps: float) -> float:
    """Mean rest of the packet that an arrival finds on the wire, seconds."""
    return sum(c.load(link_bps) * c.packet_s(link_bps) / 2 for c in classes)


def waits_s(classes: Sequence[DelayClass], link_bps: float, coefficients: Sequence[float]) -> list[float]:
    """Mean waits before transmission under WTP with these coefficients, seconds.

    >>> two = [DelayClass("a", 4e6, 1250), DelayClass("b", 4e6, 1250)]
    >>> [round(wait * 1e3, 3) for wait in waits_s(two, 10e6, [1, 1])]
    [2.0, 2.0]
    >>> [round(wait * 1e3, 3) for wait in waits_s(two, 10e6, [1, 1e9])]
    [3.333, 0.667]
    """
    loads = [c.load(link_bps) for c in classes]
    first_come_s = residual_s(classes, link_bps) / (1 - sum(loads))
    order = sorted(range(len(classes)), key=lambda i: coefficients[i])
    waits = [0.0] * len(classes)
    for at, p in enumerate(order):
        below = sum(loads[i] * waits[i] * (1 - coefficients[i] / coefficients[p]) for i in order[:at])
        above = sum(loads[i] * (1 - coefficients[p] / coefficients[i]) for i in order[at + 1 :])
        waits[p] = (first_come_s - below) / (1 - above)
    return waits


def wanted_waits_s(classes: Sequence[DelayClass], link_bps: float, ratios: Sequence[float]) -> list[float]:
    """Mean waits in the wanted ratios that satisfy the conservation law, seconds."""
    loads = [c.load(link_bps) for c in classes]
    total = sum(loads) * residual_s(classes, link_bps) / (1 - sum(loads))
    unit = total / sum(load * ratio for load, ratio in zip(loads, ratios, strict=True))
    return [unit * ratio for ratio in ratios]


@dataclass(frozen=True)
class OutOfReach:
    """The classes that would have to wait less than they do with strict priority before all others."""

    names: tuple[str, ...]
    wanted_s: float
    least_s: float


def out_of_reach(classes: Sequence[DelayClass], link_bps: float, ratios: Sequence[float]) -> OutOfReach | None:
    """The first group of best classes whose mean wait, weighted by load, is below what is possible; None if none is."""
    waits = wanted_waits_s(classes, link_bps, ratios)
    rest_s = residual_s(classes, link_bps)
    order = sorted(range(len(classes)), key=lambda i: ratios[i])
    load = work = 0.0
    for at, i in enumerate(order[:-1]):
        load += classes[i].load(link_bps)
        work += classes[i].load(link_bps) * waits[i]
        least_s = rest_s / (1 - load)
        if ratios[order[at + 1]] > ratios[i] and work / load <= least_s * (1 + EXACT):
            return OutOfReach(tuple(classes[k].name for k in order[: at + 1]), work / load, least_s)
    return None


def least_load(classes: Sequence[DelayClass], link_bps: float, ratios: Sequence[float]) -> float:
    """The least load, with the classes in the given proportion, at which the ratios are in reach."""
    now = sum(c.load(link_bps) for c in classes)

    def reached(load: float) -> bool:
        scaled = [DelayClass(c.name, c.rate_bps * load / now, c.packet_bytes) for c in classes]
        return out_of_reach(scaled, link_bps, ratios) is None

    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def coefficients(classes: Sequence[DelayClass], link_bps: float, ratios: Sequence[float]) -> list[float]:
    """Coefficients with which the mean waits have the wanted ratios; the least is 1.

    Each pass solves Kleinrock's equation of every class for its own coefficient, with the wanted waits.

    Raises:
        OptionError: they are not found, because the ratios are too near to what is out of reach.
    """
    if max(ratios) == min(ratios):
        return [1.0] * len(classes)
    wanted = wanted_waits_s(classes, link_bps, ratios)
    loads = [c.load(link_bps) for c in classes]
    first_come_s = residual_s(classes, link_bps) / (1 - sum(loads))
    order = sorted(range(len(classes)), key=lambda i: -ratios[i])
    found = [max(ratios) / ratio for ratio in ratios]
    for _ in range(ROUNDS):
        for p in order:
            # A tie is on both sides at once: its terms vanish for equal coefficients.
            above = [i for i in order if ratios[i] < ratios[p]]
            below = [i for i in order if ratios[i] > ratios[p]]
            a = wanted[p] * sum(loads[i] / found[i] for i in above)
            b = sum(loads[i] * wanted[i] * found[i] for i in below)
            d = first_come_s - wanted[p] * (1 - sum(loads[i] for i in above))
            d -= sum(loads[i] * wanted[i] for i in below)
            if a > 0:
                found[p] = (d + math.sqrt(d * d + 4 * a * b)) / (2 * a)
            else:
                found[p] = -b / d
        found = [coefficient / min(found) for coefficient in found]
        got = waits_s(classes, link_bps, found)
        if all(abs(g - w) <= EXACT * w for g, w in zip(got, wanted, strict=True)):
            return found
    raise OptionError("--ratio", ":".join(f"{r:g}" for r in ratios), "is at the edge of what is possible: ask for less")


def whole(found: Sequence[float]) -> list[int]:
    """Coefficients as `pds` takes them: in the same ratios, the largest up to 65535.

    >>> whole([1.0, 3.5])
    [1000, 3500]
    """
    scale = min(1000.0, LARGEST / max(found))
    return [max(round(scale * coefficient), 1) for coefficient in found]


def limit_pkts(classes: Sequence[DelayClass], waits: Sequence[float]) -> int:
    """A shared limit that loses almost nothing: ten times the mean number of packets that wait."""
    waiting = sum(c.rate_bps / (8 * c.packet_bytes) * wait for c, wait in zip(classes, waits, strict=True))
    return max(math.ceil(LEAST_BACKLOGS * waiting), LEAST_LIMIT_PKTS)
