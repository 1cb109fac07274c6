# SPDX-License-Identifier: BSD-3-Clause
"""What networks and constellations differ in: where keys of a link are, and which hosts refuse which of the two."""

from __future__ import annotations

import re

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


def key_of_link(scenario: Scenario, link: str) -> tuple[str, str]:
    """The first words of the keys of a link; in a constellation those of its kind, as links have no keys of their own.

    Args:
        scenario: a network.
        link: the name of one of its links.
    """
    if "constellation" not in scenario.native.written():
        return "link", link
    return "constellation", "isl" if re.fullmatch(r"s\d+-s\d+", link) else "ground"
