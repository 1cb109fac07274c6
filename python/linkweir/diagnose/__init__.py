# SPDX-License-Identifier: BSD-3-Clause
"""The warnings a run ends with: what its user should know before trusting it.

Each rule is a function of the resolved scenario and the run's tables. docs/reference/diagnosis.md explains rules and
thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linkweir.diagnose.delays import long_delays
from linkweir.diagnose.finding import Finding
from linkweir.diagnose.in_step import flows_in_step
from linkweir.diagnose.reservations import missed_reservations
from linkweir.diagnose.rules import offered_above_capacity, refused_transfers, short_trace, small_mtu
from linkweir.fault import DirectoryError
from linkweir.scenarios.resolved import ResolvedScenario

if TYPE_CHECKING:
    from linkweir.tables.run_tables import RunTables

__all__ = ["Finding", "findings"]

RULES = (
    missed_reservations,
    offered_above_capacity,
    flows_in_step,
    small_mtu,
    short_trace,
    refused_transfers,
    long_delays,
)


def findings(run: RunTables) -> list[Finding]:
    """The warnings about a run, in the order of `RULES`.

    A rule that fails does not fail the run: its failure becomes a warning of kind ``unjudged``.
    """
    resolved = ResolvedScenario(run.scenario)
    return [finding for rule in RULES for finding in _judged(rule, run, resolved)]


def _judged(
    rule: Callable[[RunTables, ResolvedScenario], list[Finding]], run: RunTables, resolved: ResolvedScenario
) -> list[Finding]:
    try:
        return rule(run, resolved)
    except DirectoryError:  # a damaged table is no fault of the rule
        raise
    except Exception as error:
        what = f"the rule {rule.__name__} failed with {type(error).__name__}: {error}"
        return [Finding("unjudged", "run", what, "The results are whole; please report this fault of Linkweir", {})]
