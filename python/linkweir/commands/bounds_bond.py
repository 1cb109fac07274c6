# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir bounds` of bonds: worst delays of classes, with all links and without each one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from linkweir.bounds.attack_bond import Bonds, attack_bonds
from linkweir.bounds.attack_network import write_attacks
from linkweir.bounds.bond import BondBound
from linkweir.bounds.bonds import BoundsOfBond, Promise, bonds_json, bounds_of_bonds
from linkweir.bounds.page import bond_page
from linkweir.commands.bounds import refuse_broken
from linkweir.directories.provenance import write_whole
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario

HEADINGS = ("class", "worst delay", "worst backlog", "limit that loses nothing", "reorder that loses nothing")


class OfBonds:
    """The bounds of a scenario's bonds."""

    of = "flow"

    def __init__(self, scenario: Scenario, envelopes: list[str], worst: str | None) -> None:
        if worst is not None:
            raise OptionError("--worst", worst, "is for one link; give the links of a bond their worst rate in steps")
        self.scenario = scenario
        self.envelopes = envelopes
        self.found = bounds_of_bonds(scenario, envelopes=envelopes)
        self.plain = bonds_json(self.found, scenario)

    def show(self) -> None:
        """Prints two tables for each bond: its classes, and what is left without each link."""
        console = Console()
        for number, bond in enumerate(self.found):
            if number:
                console.print()
            _show(console, bond, several=len(self.found) > 1)
        for sentence in outside(self.scenario):
            console.print(sentence, highlight=False, markup=False)

    def write_page(self, path: Path) -> None:
        """Writes the page with the same tables and the curves of all classes."""
        tables = [(bond, rows(bond), left(bond)) for bond in self.found]
        said = [sentence for bond in self.found for sentence in sentences(bond.classes)]
        write_whole(path, bond_page(self.scenario, HEADINGS, tables, [*said, *outside(self.scenario)]))

    def attack(self, runs: int, out: Path) -> list[dict[str, Any]]:
        """The worst cases that a search finds, for each flow."""
        attacks, broken = attack_bonds(self.scenario, self.found, self.envelopes, runs)
        refuse_broken(broken)
        network = Bonds(self.scenario, self.found, self.envelopes)
        return write_attacks(network, attacks, out)


def rows(bond: BoundsOfBond) -> list[list[str]]:
    """The bounds of each class with all links."""
    return [
        [
            bound.name,
            _ms(bound),
            "-" if bound.backlog_bits is None else f"{-int(-bound.backlog_bits // 8)} B",
            "-" if bound.limit_pkts is None else f"{bound.limit_pkts}p",
            "-" if bound.reorder_s is None else f"{float(bound.reorder_s) * 1e3:.3f} ms",
        ]
        for bound in bond.classes
    ]


def left(bond: BoundsOfBond) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: worst delays, and what is carried of reserved rates, with all links and without each one."""
    states = [(bond.classes, bond.promises), *((one.classes, one.promises) for one in bond.without)]
    headings = ["class", "with all links", *(f"without {one.link} (cost {one.cost})" for one in bond.without)]
    found = []
    for number, bound in enumerate(bond.classes):
        found.append([bound.name, *(_ms(classes[number]) for classes, _ in states)])
        kept = [next((p for p in promises if p.name == bound.name), None) for _, promises in states]
        if kept[0] is not None:
            found.append([f"  {_mbit(kept[0].promised_bps)} reserved", *(_kept(one) for one in kept)])
    return headings, found


def _kept(promise: Promise | None) -> str:
    if promise is None:
        return "-"
    if promise.kept_bps == promise.promised_bps:
        return "carried"
    return f"only {_mbit(promise.kept_bps)}"


def _mbit(bps: int) -> str:
    return f"{bps / 10**6:g} Mbit/s"


def _ms(bound: BondBound) -> str:
    return "-" if bound.delay_s is None else f"{float(bound.delay_s) * 1e3:.3f} ms"


def _show(console: Console, bond: BoundsOfBond, *, several: bool) -> None:
    if several:
        console.print(f"bond {bond.name}", highlight=False, markup=False)
    console.print(_table(HEADINGS, rows(bond)))
    for sentence in sentences(bond.classes):
        console.print(sentence, highlight=False, markup=False)
    if bond.without:
        console.print()
        headings, found = left(bond)
        console.print(_table(headings, found))


def outside(scenario: Scenario) -> list[str]:
    """A sentence about links of no bond, if there are any."""
    keys = scenario.native.written()
    members = {name for bond in keys["bond"] for name in bond["links"]}
    names = [one["name"] for one in keys["link"] if one["name"] not in members]
    what = (
        "is not bounded here, as it is in no bond"
        if len(names) == 1
        else "are not bounded here, as they are in no bond"
    )
    return [f"{', '.join(names)} {what}"] if names else []


def sentences(classes: Sequence[BondBound]) -> list[str]:
    """Why classes have no bound, or what it holds for; neighbours with the same sentence share it."""
    said = [(bound.name, bound.why_none or "; ".join(_unsure(bound))) for bound in classes]
    found = []
    for why, same in groupby((pair for pair in said if pair[1]), key=lambda pair: pair[1]):
        names = [name for name, _ in same]
        who = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
        found.append(f"{who}: {why}")
    return found


def _unsure(bound: BondBound) -> Iterator[str]:
    """Why not all packets arrive and are handed on."""
    if bound.drops_late_s is not None:
        needed = "what is needed" if bound.reorder_s is None else f"{float(bound.reorder_s) * 1e3:.3f} ms"
        yield f"reorder {float(bound.drops_late_s) * 1e3:g} ms is shorter than {needed}: late packets are dropped"
    if not bound.arrives:
        yield "a link may lose its packets; the delay is that of packets that arrive"


def _table(headings: Sequence[str], found: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for row in found:
        table.add_row(*row)
    return table
