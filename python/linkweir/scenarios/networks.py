# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with one link refuse a network, with the words that are declared beside its keys."""

from __future__ import annotations

from linkweir.fault import unfit
from linkweir.scenarios.declared import told
from linkweir.scenarios.scenario import Scenario


def refuse_network(scenario: Scenario, host: str) -> None:
    """Refuses a scenario with several links where a host has one.

    Args:
        scenario: what the host is asked to do.
        host: as the declarations call it, such as ``gateway`` or ``ns3``.

    Raises:
        ScenarioError: the scenario has ``[[link]]``, and the host refuses them.
    """
    for name in scenario.links:
        for key, words in told("links", host, {"name": name}, "refused"):
            raise unfit(f"link.{key}", name, words)
