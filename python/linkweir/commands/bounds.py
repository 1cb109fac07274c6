# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir bounds`: worst delays and backlogs of a scenario's classes."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from linkweir.bounds.answer import Bound, as_json, bounds, envelope, framing_of
from linkweir.bounds.attack import attack, write
from linkweir.bounds.curve import Curve
from linkweir.directories.provenance import write_whole
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario


class OfOneLink:
    """The bounds of a scenario's classes."""

    of = "class"

    def __init__(self, scenario: Scenario, envelopes: list[str], worst: str | None) -> None:
        framing = framing_of(scenario.native.tables()["link"])
        curves: dict[str, Curve] = {}
        for text in envelopes:
            name, curve = envelope(text, framing)
            if name in curves:
                raise OptionError("--envelope", text, f"{name} has an envelope already; put commas between its pairs")
            curves[name] = curve
        self.scenario = scenario
        self.worst = worst
        self.found = bounds(scenario, envelopes=curves, worst=worst)
        self.plain = as_json(self.found, scenario)

    def show(self) -> None:
        """Prints a table."""
        show(self.found)

    def write_page(self, path: Path) -> None:
        """Writes the page with the curves."""
        from linkweir.bounds.page import page

        write_whole(path, page(self.scenario, self.found))

    def attack(self, runs: int, out: Path) -> list[dict[str, Any]]:
        """The worst cases that a search finds."""
        attacks, broken = attack(self.scenario, self.found, runs, worst=self.worst)
        refuse_broken(broken)
        return [
            {
                "name": a.name,
                "found_s": a.found_s,
                "tightness": a.tightness,
                "scenario": str(write(self.scenario, self.found, a, out, self.worst)),
            }
            for a in attacks
        ]


def refuse_broken(sentences: list[str]) -> None:
    """Ends the command if a bound was exceeded."""
    if sentences:
        raise RuntimeError(f"a bound was exceeded, which is a defect of Linkweir: {sentences[0]}")


def show(found: list[Bound]) -> None:
    """Prints a table, and below it why classes have no bound; neighbours with the same reason share a sentence."""
    table = Table(box=None, pad_edge=False)
    for heading in ("class", "worst delay", "worst backlog", "limit that loses nothing", "memory that loses nothing"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for b in found:
        table.add_row(
            b.name,
            "-" if b.delay_s is None else f"{float(b.delay_s) * 1e3:.3f} ms",
            "-" if b.backlog_bits is None else f"{-int(-b.backlog_bits // 8)} B",
            "-" if b.limit_pkts is None else f"{b.limit_pkts}p",
            "-" if b.memory_s is None else f"{float(b.memory_s):.6g} s",
        )
    console = Console()
    console.print(table)
    for why, same in groupby((b for b in found if b.why_none), key=lambda b: b.why_none):
        names = [b.name for b in same]
        who = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
        console.print(f"{who}: {why}", highlight=False, markup=False)


def show_attacks(rows: list[dict[str, Any]], of: str) -> None:
    """Prints the worst delay found of each class or flow, its part of the bound, and the scenario that shows it."""
    table = Table(box=None, pad_edge=False)
    for heading in (of, "worst delay found", "of the bound", "scenario"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row["name"], f"{row['found_s'] * 1e3:.3f} ms", f"{row['tightness']:.1%}", row["scenario"])
    Console().print(table)
