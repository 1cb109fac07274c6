# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with one link refuse a network, and most refuse a constellation, with the words declared beside its keys."""

from __future__ import annotations

from linkweir.fault import unfit
from linkweir.scenarios.declared import told
from linkweir.scenarios.scenario import Scenario


def refuse_constellation(scenario: Scenario, host: str) -> None:
    """Refuses links that are computed from where satellites are.

    Args:
        scenario: what the host is asked to do.
        host: as the declarations call it, such as ``tc`` or ``bounds``.

    Raises:
        ScenarioError: the scenario has ``[constellation]``, and the host refuses it.
    """
    for key, words in told("", host, scenario.native.written(), "refused"):
        raise unfit(key, "...", words)


def refuse_network(scenario: Scenario, host: str) -> None:
    """Refuses a scenario with several links where a host has one.

    Args:
        scenario: what the host is asked to do.
        host: as the declarations call it, such as ``gateway`` or ``ns3``.

    Raises:
        ScenarioError: the scenario has ``[[link]]`` or ``[constellation]``, and the host refuses them.
    """
    refuse_constellation(scenario, host)
    for name in scenario.links:
        for key, words in told("links", host, {"name": name}, "refused"):
            raise unfit(f"link.{key}", name, words)
