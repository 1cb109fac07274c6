# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the pages of results, read back into rows of the figures that they are of."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from command import REPOSITORY

from linkweir.reproduce.figure import Figure, Row
from linkweir.reproduce.papers import codes, codes_tcp, pds, pss
from linkweir.reproduce.printed import HEADINGS

RESULTS = REPOSITORY / "docs" / "records"
PAGES = ("pss", "pds", "codes-journal", "codes-conference")
"""Pages of the simulator, which compare with the papers."""
MEASURED = ("pss-pds-kernel", "pss-gateways")
"""Pages of what real kernels did."""

Line = dict[str, str]


@dataclass(frozen=True)
class Block:
    """What is between the marks of a table.

    Attributes:
        name: the table's.
        text: everything between the marks.
        figure: what it is of.
    """

    name: str
    text: str
    figure: Figure

    @property
    def tables(self) -> list[list[Line]]:
        """Its tables, a dict for each line."""
        found = []
        for lines in re.findall(r"(?:^\|.*\n)+", self.text, re.MULTILINE):
            head, _, *rest = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines()]
            found.append([dict(zip(head, row, strict=True)) for row in rest])
        return found

    @property
    def published(self) -> list[Line]:
        """The lines on printed numbers."""
        return next((lines for lines in self.tables if list(lines[0]) == HEADINGS), [])

    @property
    def rows(self) -> list[Row]:
        """Rows as they would follow from the runs, as far as the table has them; where something real ran, its own."""
        return list(_rows(self.name, self.tables[0], self.figure)) if self.tables else []


@functools.cache
def figures() -> dict[str, Figure]:
    """All figures and tables by the names that marks begin with."""
    made = [("pss", make(pss.PssOptions())) for make in (*pss.FIGURES.values(), *pss.TABLES.values())]
    made += [("pds", make(pds.PdsOptions(nseeds=1))) for make in pds.FIGURES.values()]
    for makers in (codes.FIGURES, codes.TABLES, codes_tcp.FIGURES, codes_tcp.TABLES):
        made += [("codes", make(codes.CodesOptions())) for make in makers.values()]
    return {f"{paper}-{figure.name}": figure for paper, figure in made}


def blocks(page: str) -> list[Block]:
    """The marked tables of a page that are of figures and tables of the papers."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    found = []
    for name, body in re.findall(r"<!-- table (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        figure = figures().get(re.sub(r"-(backlogged|tcp|virtual|gateway|gateway-virtual)$", "", name))
        if figure is not None:
            found.append(Block(name, body, figure))
    return found


def number(cell: str) -> float:
    """The first number of a cell: without its interval, and of kernel and simulation the kernel's."""
    return float(cell.split()[0])


SPLIT = {
    "first, %": "tx0",
    "second, %": "tx1",
    "third, %": "tx2",
    "fourth attempt, %": "tx3",
    "given up, %": "drop",
    "loss, %": "loss",
}
SPREAD = {name: f"goodput_mbps_{name.lower()}" for name in ("min", "max", "mean", "SD")}
LOAD = {"coded, Mbit/s": "coded_mbps", "useful, Mbit/s": "useful_mbps"}
SERIES = {"EF, Mbit/s": "ef_mbps", "AF, Mbit/s": "af_mbps", "CS0, Mbit/s": "cs0_mbps"}
PHASES = {
    "delay, ms": ("delay_ms", 1.0),
    "delay ratio": ("delay_ratio", 1.0),
    "loss, %": ("loss", 0.01),
    "loss ratio": ("loss_ratio", 1.0),
}


def _rows(name: str, lines: list[Line], figure: Figure) -> Iterator[Row]:
    columns = set(lines[0])
    if "K_AF" in columns:
        yield from _rates(lines)
    elif "EF, Mbit/s" in columns:
        yield from _seconds(lines)
    elif "class 8" in columns:
        yield from _phases(lines)
    elif {"history", "phase"} <= columns:
        yield from _histories(lines)
    elif "least, Mbit/s" in columns:
        yield from _ends(lines, _constant(figure))
    elif columns >= set(SPLIT) or columns >= set(SPREAD) or columns >= set(LOAD):
        for line in lines:
            titles = {**SPLIT, **SPREAD, **LOAD}
            known: dict[str, Any] = {titles[title]: number(line[title]) for title in titles if title in line}
            yield {**_constant(figure), "policy": line["policy"], "users": int(line["users"]), **known}
    elif "users" in columns and "policy" not in columns and figure.panels and figure.panels[0].x == "users":
        panel = figure.panels[0]
        for line in lines:
            for title, cell in line.items():
                if title != "users" and cell and not panel.y.endswith("_ratio"):
                    curve = dict(zip(panel.by, title.split(", "), strict=False))
                    yield {**_constant(figure), "users": int(line["users"]), **curve, panel.y: number(cell)}


def _constant(figure: Figure) -> dict[str, Any]:
    """What all runs of the figure have in common."""
    found = {}
    for key in ("policy", "cc", "reordering"):
        values = {case.labels.get(key) for case in figure.cases}
        if len(values) == 1 and None not in values:
            found[key] = values.pop()
    return found


def _rates(lines: list[Line]) -> Iterator[Row]:
    for line in lines:
        for title, cell in line.items():
            match = re.fullmatch(r"(PSS|DWRR).* EF ([\d.]+)", title)
            if match and cell:
                af, cs0 = (number(part) for part in cell.split(", "))
                yield {
                    "scheduler": match[1].lower(),
                    "ef_share": float(match[2]),
                    "k_af": float(line["K_AF"]),
                    "af_mbps": af,
                    "cs0_mbps": cs0,
                }


def _simulated(run: str) -> bool:
    """Whether a line is of the simulation alone, next to one of the kernel."""
    return run.endswith(", simulation")


def _seconds(lines: list[Line]) -> Iterator[Row]:
    for line in lines:
        if line["run"] != "theory" and not _simulated(line["run"]):
            yield {"t_s": float(line["time (s)"]), **{key: number(line[title]) for title, key in SERIES.items()}}


def _phases(lines: list[Line]) -> Iterator[Row]:
    for line in lines:
        if line["run"] in ("theory", "nominal") or _simulated(line["run"]):
            continue
        figure, history, limit, *_ = line["run"].split(", ")
        begin, end = line["time (s)"].split(" to ")
        name, scale = PHASES[line[""]]
        for i in pds.CLASSES:
            if line[f"class {i}"] != "-":
                yield {
                    "figure": figure,
                    "history": history,
                    "limit": int(limit.removeprefix("limit ")),
                    "t_from_s": float(begin),
                    "t_to_s": float(end),
                    "class": i,
                    "delay_ms": None,
                    "delay_ratio": None,
                    name: scale * number(line[f"class {i}"]),
                }


def _histories(lines: list[Line]) -> Iterator[Row]:
    for line in lines:
        if line["phase"] == "loaded" and line.get("where") != "simulation":
            yield {
                "figure": line["figure"],
                "history": line["history"],
                "class": 1,
                "t_from_s": 4.0,
                "t_to_s": 9.0,
                "loss_ratio": float(line["ratio"]),
            }


def _ends(lines: list[Line], known: dict[str, Any]) -> Iterator[Row]:
    for line in lines:
        for title, part in {"least, Mbit/s": 1 / codes_tcp.CDF_USERS, "most": 1.0}.items():
            yield {
                **known,
                "policy": line["policy"],
                "users": codes_tcp.CDF_USERS,
                "cdf": part,
                "goodput_mbps": number(line[title]),
            }
