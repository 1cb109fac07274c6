# SPDX-License-Identifier: BSD-3-Clause
"""What is run in every place: points of figures of two papers, a recorded LTE link, and an outage."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkweir.reproduce import virtual
from linkweir.reproduce.figure import FigureCase, Scenario, Tables
from linkweir.reproduce.papers import pds, pss

ROOT = Path(__file__).resolve().parents[2]
REAL_S = 30.0
"""Most time of a run in real time."""
_CONSTANT = {
    "": pss.SLOW_START_S + 20.0,
    "gateway": pss.SLOW_START_S + 10.0,
    "ns-3 and its TCP": pss.SLOW_START_S + 30.0,
}
"""Durations of the PSS paper's figures at a constant capacity, by place; with TCP the start is left out. ns-3's TCP
needs longer: over 20 s its rates differ by up to 7 %, over 30 s by 4 %.
"""
_CHANGING = {
    "": pss.SLOW_START_S + 4 * pss.PERIOD_S,
    "gateway": pss.SLOW_START_S + pss.PERIOD_S,
    "gateway in real time": REAL_S,
}
"""The same at a capacity that changes with this period."""
K_AF = 0.4
"""The points of the PSS paper's figures that are run in real time have this share of AF."""

Reduced = Mapping[str, Any]
"""What is kept of a run, as JSON has it."""


@dataclass(frozen=True)
class Point:
    """What one line of a table compares.

    Attributes:
        name: its name in the figure.
        scenario: of a seed and a duration in s.
        values: of the runs of all seeds and their duration, a value for each column.
        theory: the same by theory for a duration; None where there is no theory.
        real: it is run in real time, too.
        program: ns-3's program and its arguments for a duration; None where the scenario is exported to ns-3.
        tcp: arguments by which the program has ns-3's own TCP; without them all classes are always backlogged.
        backlogged: the scenario with all classes always backlogged, where the other has TCP.
    """

    name: str
    scenario: Callable[[int, float], Scenario]
    values: Callable[[Sequence[Reduced]], list[float]]
    theory: Callable[[float], list[float] | None]
    real: bool = True
    program: Callable[[float], list[str]] | None = None
    tcp: tuple[str, ...] = ()
    backlogged: Callable[[int, float], Scenario] | None = None


@dataclass(frozen=True)
class Group:
    """Points of one table.

    Attributes:
        name: short, as in `PSS 6`.
        title: what it shows.
        columns: names of the values.
        unit: of the values.
        points: its lines.
        reduce: what is kept of a run's tables.
        ns3: what is kept of the lines of CSV that ns-3's program prints.
        duration_s: of a run by place, "" for all others. Each is compared with a run of the simulator that is as long.
        bounds: the largest distance from the simulator that a place may have, as a part; of all others by the name ""
        floor: differences of smaller values are a part of this; in the unit.
        seeds: number of seeds by place, "" for all others.
        real_at_once: runs in real time at a time; they sleep most of the time, unless packets are many.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    unit: str
    points: tuple[Point, ...]
    reduce: Callable[[Tables], Reduced]
    ns3: Callable[[Sequence[Mapping[str, str]]], Reduced]
    duration_s: Mapping[str, float]
    bounds: Mapping[str, float] = field(default_factory=lambda: {"": 0.05})
    floor: float = virtual.LEAST_MBPS
    seeds: Mapping[str, int] = field(default_factory=lambda: {"": 1})
    real_at_once: int = 4

    def duration_of(self, place: str) -> float:
        """The duration of a place's runs, s."""
        return self.duration_s.get(place, self.duration_s[""])

    def bound(self, place: str) -> float:
        """The bound of a place."""
        return self.bounds.get(place, self.bounds[""])

    def seeds_of(self, place: str) -> range:
        """The seeds of a place's runs."""
        return range(1, 1 + self.seeds.get(place, self.seeds[""]))


# --- PSS ------------------------------------------------------------------------------------------------------------

CLASSES = ("ef", "af", "cs0")


def rates(tables: Tables) -> Reduced:
    """The mean rate of each class, Mbit/s."""
    return {row["class"]: row["rate_bps"] / 1e6 for row in tables.rows("classes")}


def _mean_rates(runs: Sequence[Reduced]) -> list[float]:
    return [sum(run[name] for run in runs) / len(runs) for name in CLASSES]


def _ns3_point(lines: Sequence[Mapping[str, str]]) -> Reduced:
    """Of the line that `linkweir-pss-figures` prints for a point."""
    return {name: float(lines[0][f"{name}_mbps"]) for name in CLASSES}


def _options(seed: int, duration_s: float, traffic: str = "tcp") -> pss.PssOptions:
    return pss.PssOptions(traffic, duration_s=duration_s, seed=seed)


def _pss_point(figure: str, point: pss.Point) -> Point:
    def theory(duration_s: float) -> list[float]:
        from_s = _options(1, duration_s).warmup_s(duration_s)
        expected = pss.expected_rates(point, from_s, duration_s)
        offered = pss.mean_ef_bps(point, from_s, duration_s)
        return [bps / 1e6 for bps in (offered, expected.af_bps, expected.cs0_bps)]

    def program(duration_s: float) -> list[str]:
        wanted = {"ef": point.ef_share, "kaf": point.k_af, "memory": point.memory_s or 0.0, "duration": duration_s}
        words = [f"--{name}={value:g}" for name, value in wanted.items()]
        return ["linkweir-pss-figures", f"--figure={figure}", f"--scheduler={point.scheduler}", *words]

    memory = f", memory {point.memory_s:g} s" if point.memory_s else ", no memory" if point.scheduler == "pss" else ""
    return Point(
        f"{point.scheduler.upper()}{memory}, EF {point.ef_share:g}, K_AF {point.k_af:g}",
        lambda seed, duration_s: pss.scenario(point, _options(seed, duration_s), duration_s),
        _mean_rates,
        theory,
        point.k_af == K_AF,
        program,
        ("--tcp=1",),
        lambda seed, duration_s: pss.scenario(point, _options(seed, duration_s, "backlogged"), duration_s),
    )


def pss_figure(figure: str) -> Group:
    """A figure of Finzi et al. 2023 with TCP in AF and CS0."""
    plot = pss.RATES[figure]
    return Group(
        f"PSS {figure}",
        plot.title,
        ("EF", "AF", "CS0"),
        "Mbit/s",
        tuple(_pss_point(figure, point) for point in plot.points),
        rates,
        _ns3_point,
        _CHANGING if plot.points[0].changing else _CONSTANT,
    )


# --- WTP and PLR ----------------------------------------------------------------------------------------------------

SPANS = ((0.9, 1.5), (4.0, 5.0), (8.0, 9.0))
"""Times in which all classes send at one rate and the limit is always reached, so that there is theory."""


def waits(tables: Tables) -> Reduced:
    """Packets that each class sent in each span and how long all of them waited together, s."""
    found = {}
    bins = pds.sums([tables])
    for from_s, to_s in SPANS:
        totals = pds.sums_over(bins, from_s, to_s)
        found[f"{from_s:g}"] = [[totals[i].sent, totals[i].waited_s] for i in pds.CLASSES]
    return found


def _ns3_waits(lines: Sequence[Mapping[str, str]]) -> Reduced:
    """Of the lines of `linkweir-pds-figures`, which adds all seeds up itself: one packet stands for a class's mean."""
    found: dict[str, list[list[float]]] = {}
    for line in lines:
        found.setdefault(f"{float(line['t_from_s']):g}", []).append([1, float(line["delay_ms"]) / 1e3])
        if (float(line["t_from_s"]), float(line["t_to_s"])) not in SPANS:
            found[f"{float(line['t_from_s']):g}"].pop()
    return found


def _ratios(span: pds.Span) -> Callable[[Sequence[Reduced]], list[float]]:
    def ratios(runs: Sequence[Reduced]) -> list[float]:
        per_class = list(zip(*(run[f"{span[0]:g}"] for run in runs), strict=True))
        delays = [sum(waited for _, waited in of) / sum(sent for sent, _ in of) for of in per_class]
        return [delay / delays[0] for delay in delays[1:]]

    return ratios


def _pds_point(variant: pds.Variant, span: pds.Span) -> Point:
    def theory(_duration_s: float) -> list[float] | None:
        if variant.history == "peld":
            return None  # drops early, so the limit is not always reached
        return pds.expected(variant, pds.MEAN_PPS[span])["delay_ratio"][1:]

    def program(duration_s: float) -> list[str]:
        words = (f"--figure={variant.figure}", f"--history={variant.history}", f"--seeds={pds.SEEDS}")
        return ["linkweir-pds-figures", *words, f"--duration={duration_s:g}"]

    return Point(
        f"{variant.history_name}, {span[0]:g} to {span[1]:g} s",
        lambda seed, duration_s: pds.scenario(variant, seed, duration_s),
        _ratios(span),
        theory,
        True,
        program,
    )


def pds_figure(figure: str) -> Group:
    """A figure of Gaidioz et al. 2002."""
    plot = pds.PLOTS[figure]
    return Group(
        f"PDS {figure}",
        plot.title,
        tuple(f"class {i}" for i in pds.CLASSES[1:]),
        "ratio of the mean delay to that of class 1",
        tuple(_pds_point(variant, span) for variant in plot.variants for span in SPANS),
        waits,
        _ns3_waits,
        {"": pds.DURATION_S},
        {"": 0.05, "ns-3": 0.01} if figure == "4" else {"": 0.05},
        0.0,
        {"": 3, "simulator": pds.SEEDS, "ns-3": 1},
        1,
    )


# --- A recorded link, and an outage ---------------------------------------------------------------------------------

LTE_TRACE = ROOT / "scenarios/traces/lte-drive.csv"
LTE_S = 60.0


def _lte_steps() -> list[list[str]]:
    """The first minute of the recorded capacity."""
    with LTE_TRACE.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        steps = [(float(row["t_s"]), round(float(row["capacity_bps"]))) for row in rows]
    return [[f"{round(1e9 * t_s)}ns", f"{bps}bit"] for t_s, bps in steps if t_s < LTE_S]


def _three_classes(name: str, link: Scenario, rate: str, ef_rate: str) -> Callable[[int, float], Scenario]:
    """EF at a constant rate, AF with a reserved rate and CS0, with four TCP connections each."""

    def scenario(seed: int, duration_s: float) -> Scenario:
        tcp = {"kind": "tcp", "cc": "cubic", "profile": "linux", "tick": pss.LABORATORY_TICK, "count": 4}
        return {
            "name": name,
            "duration": f"{duration_s:g}s",
            "warmup": "2s",
            "interval": "1s",
            "seed": seed,
            "link": {"delay": "25ms", "return_delay": "25ms", **link},
            "scheduler": {"policy": "pss"},
            "class": [
                {"name": "ef", "level": 0, "limit": "50p"},
                {"name": "af", "level": 1, "low_level": 3, "rate": rate, "memory": "10s", "limit": "200p"},
                {"name": "cs0", "level": 2, "limit": "200p"},
            ],
            "flow": [
                {"name": "ef", "class": "ef", "kind": "cbr", "rate": ef_rate, "packet": "1000B"},
                {"name": "af", "class": "af", **tcp},
                {"name": "cs0", "class": "cs0", **tcp},
            ],
        }

    return scenario


def ns3_classes(lines: Sequence[Mapping[str, str]]) -> Reduced:
    """Of the lines that an exported program prints, one for each class."""
    return {line["class"]: float(line["rate_mbps"]) for line in lines}


def _single(name: str, title: str, duration_s: float, scenario: Callable[[int, float], Scenario]) -> Group:
    point = Point(name, scenario, _mean_rates, lambda _duration_s: None)
    seeds = {"": 3, "gateway in real time": 1, "ns-3 and its TCP": 1}
    durations = {"": duration_s, "gateway": REAL_S, "gateway in real time": REAL_S}
    return Group(name, title, ("EF", "AF", "CS0"), "Mbit/s", (point,), rates, ns3_classes, durations, seeds=seeds)


def groups() -> list[Group]:
    """All of them."""
    lte = _three_classes("LTE", {"rate": {"steps": _lte_steps()}, "nominal": "5Mbit"}, "1500kbit", "640kbit")
    down = [["0s", "20Mbit"], ["10s", "0bit"], ["15s", "20Mbit"]]
    outage = _three_classes("outage", {"rate": {"steps": down}, "nominal": "20Mbit"}, "5Mbit", "2Mbit")
    return [
        *(pss_figure(figure) for figure in ("5", "6", "7", "12")),
        *(pds_figure(figure) for figure in ("4", "6")),
        _single("LTE", "PSS on the beginning of a recorded LTE link", LTE_S, lte),
        _single("outage", "PSS on a link that is down from 10 to 15 s", REAL_S, outage),
    ]


def identity_of(scenario: Scenario) -> str:
    """Of the scenario alone, without its name."""
    return FigureCase({}, scenario).key
