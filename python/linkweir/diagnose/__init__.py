# SPDX-License-Identifier: BSD-3-Clause
"""The warnings a run ends with: what its user should know before trusting it.

Each rule is a function of the resolved scenario and the run's tables. docs/reference/diagnosis.md explains rules and
thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkweir.diagnose.delays import long_delays
from linkweir.diagnose.finding import Finding, merged
from linkweir.diagnose.in_step import flows_in_step
from linkweir.diagnose.reservations import missed_reservations
from linkweir.diagnose.rules import offered_above_capacity, refused_transfers, short_trace, small_mtu
from linkweir.fault import DirectoryError
from linkweir.scenarios.networks import key_of_link
from linkweir.scenarios.resolved import ResolvedScenario
from linkweir.tables.links import busiest

if TYPE_CHECKING:
    from linkweir.tables.run_tables import RunTables

    _Rule = Callable[[RunTables, ResolvedScenario], list[Finding]]

__all__ = ["Finding", "findings"]

OF_FLOWS = (refused_transfers,)
"""Rules about flows, wherever they send."""
RULES = (
    missed_reservations,
    offered_above_capacity,
    flows_in_step,
    small_mtu,
    short_trace,
    *OF_FLOWS,
    long_delays,
)


def findings(run: RunTables) -> list[Finding]:
    """The warnings about a run, in the order of `RULES`; of a network link by link.

    A rule that fails does not fail the run: its failure becomes a warning of kind ``unjudged``.
    """
    if not run.scenario.is_network:
        return _findings(RULES, run)
    rules = [rule for rule in RULES if rule not in OF_FLOWS]
    found = _findings(OF_FLOWS, run)
    of_kinds: dict[tuple[str, ...], list[Finding]] = {}
    for link in busiest(run, MOST_LINKS):
        key = key_of_link(run.scenario, link)
        for finding in _findings(rules, run.of_link(link)):
            placed = finding.on_link(link, key)
            if key[0] == "link" or finding.kind not in _WORST:
                found.append(placed)
            else:
                of_kinds.setdefault((*key, finding.kind, finding.where), []).append(placed)
    for (_, _, kind, _), same in of_kinds.items():
        found += merged(same, _WORST[kind], "of these links")
    return found


_WORST = {
    "reservation_starved": "lost_bits",
    "reservation_link": "lost_bits",
    "reservation_memory": "lost_bits",
    "offered": "offered_bps",
    "in_step": "loss_worst",
    "mtu": "packet_bytes",
    "trace": "simulated_s",
    "delay": "delay_p95_s",
}
"""The figure by which the worst of a constellation's links is found: links of a kind share their keys and a warning."""
MOST_LINKS = 64
"""Links of a network that are looked at, those that dropped and sent most."""


def _findings(rules: Sequence[_Rule], run: RunTables) -> list[Finding]:
    resolved = ResolvedScenario(run.scenario)
    return [finding for rule in rules for finding in _judged(rule, run, resolved)]


def _judged(rule: _Rule, run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    try:
        return rule(run, resolved)
    except DirectoryError:  # a damaged table is no fault of the rule
        raise
    except Exception as error:
        what = f"the rule {rule.__name__} failed with {type(error).__name__}: {error}"
        return [Finding("unjudged", "run", what, "The results are whole; please report this fault of Linkweir", {})]
