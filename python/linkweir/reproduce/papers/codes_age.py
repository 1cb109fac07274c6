# SPDX-License-Identifier: BSD-3-Clause
"""Beyond Tauran et al. 2018: what PF and CoDeS gain over RR, by the age of their channel knowledge and by speed.

Everything but age and speed is the journal version's voice as published. A channel is sampled every ms, so ages below
1 ms hardly differ.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from linkweir.reproduce.figure import Figure, FigureCase, Grid, Panel, Row, Tables
from linkweir.reproduce.papers import codes
from linkweir.reproduce.papers.codes import CODES, JOURNAL, CodesOptions
from linkweir.reproduce.papers.spread import means, with_spread

USERS = 350
"""Beyond saturation under RR, so that the link carries more only by a better choice."""
AGES_MS = (0, 1, 2, 5, 7.7, 10, 20, 50, 100)
"""7.7 ms are what "flight" is here: 7.6 ms to the ground and 0.08 ms of transmission."""
QUICK_AGES_MS = (0, 7.7, 100)
SPEEDS_KMH = (3, 10, 30, 60, 120)
QUICK_SPEEDS_KMH = (3, 60)
SEEDS = 3
POLICIES = ("PF", CODES)


def _case(policy: str, age_ms: float | None, speed_kmh: int, seed: int, duration_s: float) -> FigureCase:
    age = codes.FLIGHT if age_ms is None else codes.age(f"{age_ms}ms")
    made = codes.scenario(JOURNAL, policy, USERS, seed, duration_s, csi_age=age)
    satellite = {**made["link"]["satellite"], "speed_kmh": speed_kmh}
    scenario = {
        **made,
        "name": f"{made['name']}, age {age}, {speed_kmh} km/h",
        "link": {**made["link"], "satellite": satellite},
    }
    labels = {
        "policy": policy,
        "age_ms": age_ms,
        "speed_kmh": speed_kmh,
        "seed": seed,
        "last_start_ms": codes.voice_starts_ms(USERS, "published")[-1],
    }
    return FigureCase(labels, scenario)


def gains(duration_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """A row for each policy, age and speed: throughput above that of RR over the same channel in per cent, and loss."""
    runs = [(case.labels, codes.measured(JOURNAL, tables, duration_s)) for case, tables in results]
    of_rr = {(at["speed_kmh"], at["seed"]): run for at, run in runs if at["policy"] == "RR"}
    groups: dict[tuple[str, float, int], list[dict[str, float]]] = {}
    for at, run in runs:
        base = of_rr.get((at["speed_kmh"], at["seed"]))
        if at["policy"] == "RR" or base is None:
            continue
        gain = 100 * (run["throughput_mbps"] / base["throughput_mbps"] - 1)
        values = {"gain": gain, "loss": run["loss"], "loss_rr": base["loss"], "tx0": run["tx0"]}
        groups.setdefault((at["policy"], at["age_ms"], at["speed_kmh"]), []).append(values)
    return [
        {"policy": policy, "age_ms": age_ms, "speed_kmh": speed_kmh, "runs": len(values), **means(values)}
        for (policy, age_ms, speed_kmh), values in groups.items()
    ]


def _by_age(made: list[Row]) -> Grid:
    """A line for each policy and age; in brackets the loss."""
    speeds = sorted({row["speed_kmh"] for row in made})
    lines = []
    for policy in dict.fromkeys(row["policy"] for row in made):
        for age_ms in sorted({row["age_ms"] for row in made}):
            of = {row["speed_kmh"]: row for row in made if (row["policy"], row["age_ms"]) == (policy, age_ms)}
            cells = (f"{with_spread(of[v], 'gain', 1)} ({of[v]['loss']:.1f})" if v in of else "" for v in speeds)
            lines.append([policy, f"{age_ms:g} ms", *cells])
    losses = (statistics.fmean(row["loss_rr"] for row in made if row["speed_kmh"] == v) for v in speeds)
    lines.append(["RR", "any", *(f"0 ({loss:.1f})" for loss in losses)])
    return ["policy", "age", *(f"{speed_kmh} km/h" for speed_kmh in speeds)], lines


def table_age(options: CodesOptions) -> Figure:
    """Gain over age and speed."""
    seeds = options.seeds[: 1 if options.quick else SEEDS]
    ages = QUICK_AGES_MS if options.quick else AGES_MS
    speeds = QUICK_SPEEDS_KMH if options.quick else SPEEDS_KMH
    lasts_s = options.voice_s
    cases = [_case("RR", None, speed, seed, lasts_s) for speed in speeds for seed in seeds]
    cases += [
        _case(policy, age_ms, speed, seed, lasts_s)
        for policy in POLICIES
        for age_ms in ages
        for speed in speeds
        for seed in seeds
    ]
    return Figure(
        "journal-age",
        f"Beyond the journal paper: throughput above that of RR and loss in brackets, %, {USERS} users, by the age of "
        "channel knowledge and the vehicle's speed",
        "The older the knowledge and the faster the vehicle, the less it helps.",
        tuple(cases),
        partial(gains, lasts_s),
        tuple(
            Panel(
                policy,
                "age_ms",
                "gain",
                "age (ms)",
                "throughput above RR (%)",
                ("speed_kmh",),
                where={"policy": policy},
                lines=True,
            )
            for policy in POLICIES
        ),
        ("policy", "age_ms", "speed_kmh", "gain", "gain_ci95", "loss", "loss_ci95"),
        titled=True,
        claimed=False,
        summary=_by_age,
    )


TABLES = {"journal-age": table_age}
PUBLISHED_ONLY = tuple(TABLES)
