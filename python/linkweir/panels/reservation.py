# SPDX-License-Identifier: BSD-3-Clause
"""LR and LM of the controlled classes of `pss` over time, by the rules of core/src/pss_reserve.h."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Link

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
    tables = scenario.native.tables()
    known_bps = _known_bps(scenario, tables["link"], times_s)
    best_bps = np.maximum.accumulate(known_bps)
    found: dict[str, tuple[Values, Values]] = {}
    first = 0
    for entry in tables["classes"]:
        if "low_level" in entry["params"]:
            bounds = _bounds_bits(entry["params"], known_bps, best_bps)
            found |= dict.fromkeys(scenario.classes[first : first + entry["count"]], bounds)
        first += entry["count"]
    return found


def reserved_bps(scenario: Scenario, times_s: Values) -> dict[str, Values]:
    """The rate that each class with a reservation was promised at some instants; empty unless the policy is `pss`."""
    if scenario.policy != "pss":
        return {}
    tables = scenario.native.tables()
    known_bps = _known_bps(scenario, tables["link"], times_s)
    found: dict[str, Values] = {}
    first = 0
    for entry in tables["classes"]:
        if "low_level" in entry["params"]:
            rates = _reserved_bps(entry["params"], known_bps)
            found |= dict.fromkeys(scenario.classes[first : first + entry["count"]], rates)
        first += entry["count"]
    return found


def _reserved_bps(params: dict[str, Any], known_bps: Values) -> Values:
    import numpy as np

    share, rate_bps = params["share"], params["rate"]
    reserved: Values = np.maximum(known_bps * share if share else np.full(len(known_bps), rate_bps), _LEAST_BPS)
    return reserved


def _known_bps(scenario: Scenario, link: Link, times_s: Values) -> Values:
    """The capacity that the scheduler knows at each instant: the nominal one, or what was reported last."""
    import numpy as np

    nominal_bps = np.full(len(times_s), link["nominal_bps"])
    if not link["follow"]:
        return nominal_bps
    starts_ns, rates_bps = scenario.native.link_steps("rate", scenario.interval_s / 10)
    places = np.searchsorted(np.asarray(starts_ns, dtype=float) / 1e9, times_s, side="right") - 1
    reported = np.asarray(rates_bps, dtype=float)[np.maximum(places, 0)]
    known: Values = np.where((places >= 0) & (reported > 0), reported, nominal_bps)
    return known


def _bounds_bits(params: dict[str, Any], known_bps: Values, best_bps: Values) -> tuple[Values, Values]:
    import numpy as np

    link_bps = known_bps if params["share"] else best_bps
    reserved_bps = _reserved_bps(params, known_bps)
    mtu_bits = 8 * params["mtu"]
    if "lr" in params:
        lower = np.full(len(known_bps), params["lr"])
    else:
        memory_bits = reserved_bps * params["memory"]
        lower = np.maximum(memory_bits, 2 * mtu_bits * reserved_bps / link_bps)
    if "lm" in params:
        return lower, np.full(len(known_bps), params["lm"])
    burst_bits = (params["burst"] - 1) * mtu_bits
    return lower, lower + burst_bits * (1 - reserved_bps / link_bps)
