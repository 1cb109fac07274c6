# SPDX-License-Identifier: BSD-3-Clause
"""One-way delays of EF on real kernels and gateways, compared with what strict priority allows.

A packet of EF, which comes at a constant rate below the link's, waits for at most one of another class, the one that is
being sent when it comes, and is then sent itself. Anything above that is due to the machine. Of the papers only that on
PSS has this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkweir.reproduce.execute import Outcome
from linkweir.reproduce.figure import Figure, FigureCase, Row, Tables
from linkweir.reproduce.page import FigureResult, table_without_runs
from linkweir.reproduce.papers.pss import LINK_BPS, PACKET_BYTES

LINK_DELAY_S = 0.25
PACKET_TIME_S = 8 * PACKET_BYTES / LINK_BPS
KERNEL_ALLOWANCE_S = 1e-4
GATEWAY_ALLOWANCE_S = 2e-3


def in_kernel(sets: Sequence[Sequence[Figure]], outcome: Outcome) -> list[FigureResult]:
    """Delays from host to host at fixed capacity, for each figure; the time of two packets is allowed."""
    found: list[FigureResult] = []
    for figures in zip(*sets, strict=True):
        rows: list[Row] = []
        for case, tables in _runs(figures, outcome):
            if case.labels["point"].changing:
                continue
            flow = _of_ef(tables, "flows", "flow")
            rows.append(
                {
                    **_labels(case, "scheduler", "ef_share", "k_af"),
                    "ef_mean_ms": 1e3 * flow["delay_mean_s"],
                    "ef_max_ms": 1e3 * flow["delay_max_s"],
                    "bound_ms": 1e3 * (LINK_DELAY_S + 2 * PACKET_TIME_S + KERNEL_ALLOWANCE_S),
                }
            )
        if rows:
            name = figures[0].name
            title = f"One-way delay of EF in the kernel, Figure {name}"
            claim = "EF waits for one packet of the others at most."
            found.append(table_without_runs(f"{name}-ef-delay", title, claim, rows, table_rows=_extremes))
    return found


def over_gateways(sets: Sequence[Sequence[Figure]], outcome: Outcome) -> list[FigureResult]:
    """EF's losses between the hosts, and its delay without the emulated link's; p99 may be three packet times."""
    rows: list[Row] = []
    for case, tables in _runs((figure for figures in sets for figure in figures), outcome):
        of_class, of_flow = _of_ef(tables, "classes", "class"), _of_ef(tables, "flows", "flow")
        allowed_ms = 1e3 * (3 * PACKET_TIME_S + GATEWAY_ALLOWANCE_S)
        rows.append(
            {
                **_labels(case, "scheduler", "memory_s", "ef_share", "k_af"),
                "sent_pkts": of_flow["arrived_pkts"],
                "came_pkts": of_flow["delivered_pkts"],
                "dropped_pkts": of_class["dropped_limit_pkts"] + of_class["dropped_policy_pkts"],
                "p50_ms": _ms(of_class["delay_p50_s"]),
                "p99_ms": _ms(of_class["delay_p99_s"]),
                "max_ms": _ms(of_class["delay_max_s"]),
                "allowed_ms": None if case.labels["point"].changing else allowed_ms,
            }
        )
    if not rows:
        return []
    name = sets[0][0].name
    title = f"One-way queueing delay of EF from host to host, Figure {name}"
    claim = "EF loses nothing and waits for a packet of the others at most, and for the machine."
    return [table_without_runs(f"{name}-ef-queueing", title, claim, rows)]


def _runs(figures: Iterable[Figure], outcome: Outcome) -> list[tuple[FigureCase, Tables]]:
    """The runs of the PSS paper's points, each once."""
    found: dict[str, tuple[FigureCase, Tables]] = {}
    for case in (case for figure in figures for case in figure.cases):
        if "point" in case.labels and case.key in outcome.results:
            found.setdefault(case.key, (case, outcome.results[case.key]))
    return list(found.values())


def _labels(case: FigureCase, *columns: str) -> Row:
    return {**{column: getattr(case.labels["point"], column) for column in columns}, "seed": case.scenario["seed"]}


def _of_ef(tables: Tables, table: str, column: str) -> Row:
    return next(row for row in tables.rows(table) if row[column] == "ef")


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _extremes(rows: list[Row]) -> list[Row]:
    """For each scheduler and load, the run with the largest delay."""
    worst: dict[tuple[str, float], Row] = {}
    for row in rows:
        key = (row["scheduler"], row["ef_share"])
        if key not in worst or row["ef_max_ms"] > worst[key]["ef_max_ms"]:
            worst[key] = row
    return list(worst.values())
