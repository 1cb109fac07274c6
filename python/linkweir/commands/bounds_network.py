# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir bounds` of a network: worst delays of flows from end to end, and of classes at each link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from linkweir.bounds.attack_network import Network, attack_network, write_attacks
from linkweir.bounds.network import WayBound, network_bounds, network_json
from linkweir.bounds.page import WAY_HEADINGS, page
from linkweir.commands.bounds import refuse_broken, show
from linkweir.directories.provenance import write_whole
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario


class OfNetwork:
    """The bounds of a scenario with several links."""

    of = "flow"

    def __init__(self, scenario: Scenario, envelopes: list[str], worst: str | None) -> None:
        if worst is not None:
            raise OptionError(
                "--worst", worst, "is for one link; give the links of a network their worst rate in steps"
            )
        self.scenario = scenario
        self.envelopes = envelopes
        self.found = network_bounds(scenario, envelopes=envelopes)
        self.plain = network_json(self.found, scenario)

    def show(self) -> None:
        """Prints a table of flows, one of the classes that they pass, and why these have no bound."""
        table = Table(box=None, pad_edge=False)
        for heading in WAY_HEADINGS:
            table.add_column(heading, justify="right" if heading in RIGHT else "left")
        for way in self.found.ways:
            table.add_row(*_row(way))
        console = Console()
        console.print(table)
        console.print()
        show([hop.bound for hop in self.found.queues if hop.passed])

    def write_page(self, path: Path) -> None:
        """Writes the page with the curves of all classes that flows pass."""
        queues = [hop.bound for hop in self.found.queues if hop.passed]
        write_whole(path, page(self.scenario, queues, [_row(way) for way in self.found.ways]))

    def attack(self, runs: int, out: Path) -> list[dict[str, Any]]:
        """The worst cases that a search finds, for each flow."""
        attacks, broken = attack_network(self.scenario, self.found, self.envelopes, runs)
        refuse_broken(broken)
        network = Network(self.scenario, self.found.ways, self.envelopes)
        return write_attacks(network, attacks, out)


RIGHT = ("worst delay", "of it propagation")


def _row(way: WayBound) -> list[str]:
    return [
        way.flow if way.copies == 1 else f"{way.flow} (each of {way.copies})",
        ", ".join(f"{hop.link}.{hop.queue}" for hop in way.hops),
        "-" if way.delay_s is None else f"{float(way.delay_s) * 1e3:.3f} ms",
        f"{float(way.propagation_s) * 1e3:.3f} ms",
        way.method or "-",
    ]
