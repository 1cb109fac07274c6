# SPDX-License-Identifier: BSD-3-Clause
"""What the pictures show of a run: one number, or the points of a curve. Runs of several scenarios use all cores."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import linkweir
from linkweir import Result, delays

Scenario = dict[str, Any]
SHORTEST_MS = 0.01
"""Delays below are drawn here, as a logarithmic axis has no 0."""
Points = tuple[list[float], list[float]]


def values(work: Sequence[tuple[Scenario, Sequence[Callable[[Result], Any]]]]) -> list[list[Any]]:
    """Runs every scenario and measures it, in parallel; measures are functions of this module with their arguments."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(_measured, work))


def _measured(work: tuple[Scenario, Sequence[Callable[[Result], Any]]]) -> list[Any]:
    scenario, measures = work
    result = linkweir.run(scenario)
    return [measure(result) for measure in measures]


def key(scenario: Scenario) -> str:
    """Scenarios with equal keys are run once."""
    return json.dumps(scenario, sort_keys=True)


def rows(result: Result, table: str, name: str) -> list[dict[str, Any]]:
    """The rows of a class or flow; copies that are numbered (`name-1` and so on) count as well.

    A class of a network has its link in front: `up: call`.
    """
    column = "flow" if table in ("flows", "flow_series", "completions", "video", "voice", "transfers") else "class"
    found = [row for row in all_rows(result, table) if is_copy(row[column], name)]
    if not found:
        raise KeyError(f"{table} has no row of {name}")
    return found


def all_rows(result: Result, table: str) -> list[dict[str, Any]]:
    """The rows of a table, with the link in front of each class of a network."""
    found = result.table(table).to_pylist()
    return [
        row | {"class": f"{row['link']}: {row['class']}"} if {"link", "class"} <= set(row) else row for row in found
    ]


def is_copy(found: str, name: str) -> bool:
    """Whether a class or flow is this one or a numbered copy of it."""
    head, _, number = found.rpartition("-")
    return found == name or (head == name and number.isdigit())


def total(result: Result, table: str, name: str, column: str) -> float:
    """The sum of a column over the copies of a class or flow."""
    return float(sum(row[column] or 0 for row in rows(result, table, name)))


def mean(result: Result, table: str, name: str, column: str) -> float:
    """The mean of a column over the copies of a class or flow."""
    found = [row[column] for row in rows(result, table, name) if row[column] is not None]
    return float(sum(found) / len(found))


def over_time(result: Result, name: str, column: str, scale: float = 1.0, table: str = "series") -> Points:
    """A column of a series, its copies added up."""
    sums: dict[float, float] = {}
    for row in rows(result, table, name):
        sums[row["t_s"]] = sums.get(row["t_s"], 0.0) + (row[column] or 0.0) * scale
    return list(sums), list(sums.values())


def capacity(result: Result, scale: float = 1e-6) -> Points:
    """The capacity of the link over time, Mbit/s."""
    return result.link["t_s"].to_pylist(), [value * scale for value in result.link["capacity_bps"].to_pylist()]


def distribution(result: Result, name: str, kind: str = "queueing") -> delays.Distribution:
    """The delays of all packets of a class and its copies."""
    table = result.delays
    merged: dict[float, float] = {}
    for one in delays.distributions(table, kind):
        if not one.flow and is_copy(one.of, name):
            for upper_s, packets in zip(one.upper_s.tolist(), one.packets.tolist(), strict=True):
                merged[upper_s] = merged.get(upper_s, 0.0) + packets
    import numpy as np

    uppers = sorted(merged)
    return delays.Distribution(name, "", kind, np.array(uppers), np.array([merged[upper] for upper in uppers]))


def quantile_ms(result: Result, name: str, q: float, kind: str = "queueing") -> float:
    """The delay that a part `q` of a class' packets does not exceed, ms."""
    return distribution(result, name, kind).quantile(q) * 1e3


def later_than(result: Result, name: str, kind: str = "queueing", points: int = 60) -> Points:
    """The part of the packets (%) that is later than a delay (ms); about `points` delays."""
    found = distribution(result, name, kind)
    later = (1.0 - found.cdf()) * 100
    every = max(1, len(later) // points)
    chosen = [place for place in range(0, len(later), every) if later[place] > 0]
    return [float(found.upper_s[place] * 1e3) for place in chosen], [float(later[place]) for place in chosen]


def cumulative(result: Result, name: str, kind: str = "queueing", points: int = 80) -> Points:
    """The part of the packets (%) with at most a delay (ms)."""
    found = distribution(result, name, kind)
    part = found.cdf() * 100
    every = max(1, len(part) // points)
    chosen = sorted({*range(0, len(part), every), len(part) - 1})
    return [max(SHORTEST_MS, float(found.upper_s[place] * 1e3)) for place in chosen], [
        float(part[place]) for place in chosen
    ]
