# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the worst delays of flows over bonds in the simulator, as `attack_network.py` does over a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from linkweir.bounds.attack_network import Case, Network, NetworkAttack, attack_each
from linkweir.bounds.bonds import BoundsOfBond, bounds_of_bonds
from linkweir.bounds.network import WayBound
from linkweir.scenarios.scenario import Scenario

_NEVER = "1000000s"
"""Behind the end of all runs: a rate must be above 0 at some time."""


def of_flows(scenario: Scenario, found: Sequence[BoundsOfBond]) -> list[WayBound]:
    """The bounds of flows that pass a bond and nothing else: those of their classes."""
    bounds = {(bond.name, bound.name): bound for bond in found for bound in bond.classes}
    ways = {flow: there for flow, there, _ in scenario.native.ways()}
    names = [flow["name"] for flow in scenario.native.tables()["flows"]]
    alone = {name: ways[name][0] for name in names if name in ways and len(ways[name]) == 1}
    return [
        WayBound(name, 1, (), Fraction(0), bounds[at].delay_s, (), None, bounds[at].why_none)
        for name, at in alone.items()
        if at in bounds
    ]


def while_down(scenario: Scenario, link: str) -> Scenario:
    """The scenario with a link of a bond that is down from beginning to end. Its files are left behind."""
    keys = scenario.native.written()
    for one in keys["link"]:
        if one["name"] == link:
            one["rate"] = {"steps": [["0s", "0bit"], [_NEVER, "1kbit"]]}
    return Scenario.from_dict(keys)


def left_out(scenario: Scenario, link: str) -> Scenario:
    """The scenario without a link of a bond, and without flows that may use no other. Its files are left behind."""
    keys = scenario.native.written()
    keys["link"] = [one for one in keys["link"] if one["name"] != link]
    for bond in keys["bond"]:
        bond["links"] = [name for name in bond["links"] if name != link]
        for one in bond["class"]:
            if isinstance(one.get("paths"), list):
                one["paths"] = [name for name in one["paths"] if name != link]
        lost = {one["name"] for one in bond["class"] if one.get("paths") == []}
        bond["class"] = [one for one in bond["class"] if one["name"] not in lost]
        keys["flow"] = [flow for flow in keys["flow"] if bond["name"] not in flow["path"] or flow["class"] not in lost]
    return Scenario.from_dict(keys)


class Bonds(Network):
    """Bonds whose bounds are attacked."""

    def __init__(self, scenario: Scenario, found: Sequence[BoundsOfBond], envelopes: Sequence[str]) -> None:
        super().__init__(scenario, of_flows(scenario, found), envelopes)

    def first_cases(self, target: str) -> list[Case]:
        """Also: one of the other flows a nanosecond earlier, so that its packets are on the transmitters."""
        together, *further = super().first_cases(target)
        others = [name for name in self.names if name != target]
        early = [{**together, name: replace(together[name], start_ns=together[name].start_ns - 1)} for name in others]
        return [together, *further, *early]


def attack_bonds(
    scenario: Scenario, found: Sequence[BoundsOfBond], envelopes: Sequence[str], runs: int, *, seed: int = 1
) -> tuple[list[NetworkAttack], list[str]]:
    """The worst case of each flow that has a bound, searched in processes in parallel, and sentences about defects.

    Args:
        scenario: the scenario.
        found: its bounds.
        envelopes: those with which they were computed.
        runs: simulations for each flow.
        seed: of the search.
    """
    targets = [one.flow for one in of_flows(scenario, found) if one.delay_s]
    return attack_each(_bonds, scenario, envelopes, targets, runs, seed)


def _bonds(scenario: Scenario, envelopes: Sequence[str]) -> Bonds:
    return Bonds(scenario, bounds_of_bonds(scenario, envelopes=envelopes), envelopes)
