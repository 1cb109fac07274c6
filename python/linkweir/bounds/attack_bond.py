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
