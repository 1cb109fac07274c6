# SPDX-License-Identifier: BSD-3-Clause
"""LR and LM of the controlled classes of `pss` over time, by the rules of core/src/pss_reserve.h."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

_LEAST_BPS = 10.0


def bounds_bits(scenario: Scenario, times_s: Values) -> dict[str, tuple[Values, Values]]:
    """LR and LM of each class with a reservation at some instants, in bits; empty unless the policy is `pss`.

    Unless they are given, they follow from the capacity that the scheduler knows: a `share` moves with it, and a `rate`
    takes the largest one so far.
    """
    import numpy as np

    if scenario.policy != "pss":
        return {}
    keys = tomllib.loads(scenario.resolved)
    known_bps = _known_bps(scenario, keys["link"], times_s)
    best_bps = np.maximum.accumulate(known_bps)
    found: dict[str, tuple[Values, Values]] = {}
    first = 0
    for entry in keys["class"]:
        if "low_level" in entry:
            bounds = _bounds_bits(entry, known_bps, best_bps)
            found |= dict.fromkeys(scenario.classes[first : first + entry["count"]], bounds)
        first += entry["count"]
    return found


def reserved_bps(scenario: Scenario, times_s: Values) -> dict[str, Values]:
    """The rate that each class with a reservation was promised at some instants; empty unless the policy is `pss`."""
    if scenario.policy != "pss":
        return {}
    keys = tomllib.loads(scenario.resolved)
    known_bps = _known_bps(scenario, keys["link"], times_s)
    found: dict[str, Values] = {}
    first = 0
    for entry in keys["class"]:
        if "low_level" in entry:
            rates = _reserved_bps(entry, known_bps)
            found |= dict.fromkeys(scenario.classes[first : first + entry["count"]], rates)
        first += entry["count"]
    return found


def _reserved_bps(entry: dict[str, Any], known_bps: Values) -> Values:
    import numpy as np

    share = _native.quantity(str(entry["share"]), "fraction")
    rate_bps = _native.quantity(entry["rate"], "rate")
    reserved: Values = np.maximum(known_bps * share if share else np.full(len(known_bps), rate_bps), _LEAST_BPS)
    return reserved


def _known_bps(scenario: Scenario, link: dict[str, Any], times_s: Values) -> Values:
    """The capacity that the scheduler knows at each instant: the nominal one, or what was reported last."""
    import numpy as np

    nominal_bps = np.full(len(times_s), _native.quantity(link["nominal"], "rate"))
    if not link.get("follow"):
        return nominal_bps
    starts_ns, rates_bps = scenario.native.link_steps("rate", scenario.interval_s / 10)
    places = np.searchsorted(np.asarray(starts_ns, dtype=float) / 1e9, times_s, side="right") - 1
    reported = np.asarray(rates_bps, dtype=float)[np.maximum(places, 0)]
    known: Values = np.where((places >= 0) & (reported > 0), reported, nominal_bps)
    return known


def _bounds_bits(entry: dict[str, Any], known_bps: Values, best_bps: Values) -> tuple[Values, Values]:
    import numpy as np

    share = _native.quantity(str(entry["share"]), "fraction")
    link_bps = known_bps if share else best_bps
    reserved_bps = _reserved_bps(entry, known_bps)
    mtu_bits = 8 * _native.quantity(entry["mtu"], "size")
    if "lr" in entry:
        lower = np.full(len(known_bps), _native.quantity(entry["lr"], "bits"))
    else:
        memory_bits = reserved_bps * _native.quantity(entry["memory"], "time")
        lower = np.maximum(memory_bits, 2 * mtu_bits * reserved_bps / link_bps)
    if "lm" in entry:
        return lower, np.full(len(known_bps), _native.quantity(entry["lm"], "bits"))
    burst_bits = (_native.quantity(str(entry["burst"]), "packets") - 1) * mtu_bits
    return lower, lower + burst_bits * (1 - reserved_bps / link_bps)
