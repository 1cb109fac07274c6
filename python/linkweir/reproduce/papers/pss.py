# SPDX-License-Identifier: BSD-3-Clause
"""Figures 5 to 13 of Finzi, Perrier, Frances and Lochin 2023: PSS and DWRR at fixed and changing capacity.

EF is one constant-rate flow, strictly first. AF and CS0 are always backlogged, or 10 CUBIC flows each over a round trip
of 500 ms. The link offers 20 Mbit/s, in Figures 7 to 12 swinging by 30 % with a period of 15 s while EF swings by 60 %
with 6.1 s.

The paper does not print packet sizes, N, memory or queue lengths. Ours: 1500 bytes; N = 20; memory 10 ms at fixed and
15 s (one period of the capacity) at changing capacity; an EF queue of 500 packets; AF and CS0 queues of one
bandwidth-delay product, 833 packets. DWRR is EF strictly before DRR(AF, CS0) with quanta K and 1-K of ceil(1500 /
min(K, 1-K)). Rates of TCP runs leave out the first 10 s: slow start overshoots, and until the losses are repaired one
class's queue is empty and the other takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from linkweir.reproduce.figure import Figure, FigureCase, Grid, Panel, Row, Scenario, Tables
from linkweir.reproduce.printed import Number, Printed
from linkweir.sizing import theory

LINK_BPS = 20e6
PACKET_BYTES = 1500
BURST_PKTS = 20
FIXED_MEMORY_S = 0.01
PERIOD_S = 15.0
CAPACITY = theory.Cosine(LINK_BPS, 0.3, PERIOD_S)
EF_SWING, EF_PERIOD_S = 0.6, 6.1
EF_QUEUE_PKTS = 500
BDP_PKTS = math.floor(LINK_BPS * 0.5 / (8 * PACKET_BYTES))
SHARES = (0.25, 0.5, 0.75)
TENTHS = tuple(k / 10 for k in range(1, 10))
PAPER_S = 100.0
BOTH_PERIODS_S = 915.0
SLOW_START_S = 10.0
LABORATORY_TICK = "10ms"
"""Length of a jiffy of the laboratory's kernel, 100 Hz; the simulator counts in the same, so that both compare."""

RATE_KEYS = (
    "scheduler",
    "traffic",
    "ef_share",
    "ef_expected_share",
    "k_af",
    "memory_s",
    "ef_mbps",
    "af_mbps",
    "cs0_mbps",
    "af_theory_mbps",
    "cs0_theory_mbps",
)
SERIES_KEYS = ("t_s", "ef_mbps", "af_mbps", "cs0_mbps", "level", "scheduler", "memory_s")


@dataclass(frozen=True)
class PssOptions:
    """The options of the command line that change the runs."""

    traffic: str = "backlogged"
    quick: bool = False
    duration_s: float | None = None
    seed: int = 1
    quick_tenths: tuple[int, ...] = (1, 3, 5, 7, 9)
    """K_AF in tenths, where `quick`."""

    def warmup_s(self, duration_s: float) -> float:
        """Start of the time that mean rates cover."""
        return SLOW_START_S if self.traffic == "tcp" and duration_s > SLOW_START_S else 0.0


@dataclass(frozen=True)
class Point:
    """One point of a figure: a scheduler with its parameters under a load."""

    scheduler: str
    ef_share: float
    expected_share: float
    k_af: float
    memory_s: float | None
    changing: bool

    @property
    def reserved_bps(self) -> float:
        """Rate that PSS reserves for AF, equation (3)."""
        return theory.reserved_bps(LINK_BPS, self.expected_share * LINK_BPS, self.k_af)


def scenario(point: Point, options: PssOptions, duration_s: float) -> Scenario:
    """The run behind a point."""
    tcp = options.traffic == "tcp"
    ef_bps = point.ef_share * LINK_BPS
    if point.changing:
        capacity: object = {"mean": _bit(LINK_BPS), "amplitude": CAPACITY.amplitude, "period": f"{PERIOD_S:g}s"}
        ef_rate: object = {"mean": _bit(ef_bps), "amplitude": EF_SWING, "period": f"{EF_PERIOD_S:g}s"}
    else:
        capacity, ef_rate = _bit(LINK_BPS), _bit(ef_bps)
    link: Scenario = {"rate": capacity, "nominal": _bit(LINK_BPS)}
    if tcp:
        link |= {"delay": "250ms", "return_delay": "250ms"}
    scheduler, classes = _dwrr(point) if point.scheduler == "dwrr" else _pss(point)
    for name in ("af", "cs0"):
        classes[name]["limit"] = f"{BDP_PKTS}p" if tcp else "1000p"
    return {
        "name": f"{point.scheduler} K_AF {point.k_af:g} EF {point.ef_share:g}",
        "duration": f"{duration_s:g}s",
        "warmup": f"{options.warmup_s(duration_s):g}s",
        "interval": "1s",
        "seed": options.seed,
        "link": link,
        "scheduler": scheduler,
        "class": [{"name": name, **keys} for name, keys in classes.items()],
        "flow": [
            {"name": "ef", "class": "ef", "kind": "cbr", "rate": ef_rate, "packet": f"{PACKET_BYTES}B"},
            *(_elastic(name, tcp=tcp) for name in ("af", "cs0")),
        ],
    }


def _bit(value_bps: float) -> str:
    return f"{round(value_bps)}bit"


def _elastic(name: str, *, tcp: bool) -> Scenario:
    if not tcp:
        return {"name": name, "class": name, "kind": "greedy", "packet": f"{PACKET_BYTES}B", "backlog": "20p"}
    keys = {"cc": "cubic", "profile": "linux", "tick": LABORATORY_TICK, "count": 10}
    return {"name": name, "class": name, "kind": "tcp", **keys}


def _pss(point: Point) -> tuple[Scenario, dict[str, Scenario]]:
    af: Scenario = {
        "level": 2,
        "low_level": 4,
        "rate": _bit(point.reserved_bps),
        "burst": f"{BURST_PKTS}p",
        "mtu": f"{PACKET_BYTES}B",
    }
    if point.memory_s is None:
        af["lr"] = _bit(8 * PACKET_BYTES * point.reserved_bps / LINK_BPS)
    else:
        af["memory"] = f"{point.memory_s:g}s"
    early = "ignore" if point.scheduler == "pss-early-ignored" else "charge"
    return (
        {"policy": "pss", "sat": "exact", "early": early},
        {"ef": {"level": 1, "limit": f"{EF_QUEUE_PKTS}p"}, "af": af, "cs0": {"level": 3}},
    )


def _dwrr(point: Point) -> tuple[Scenario, dict[str, Scenario]]:
    total_bytes = math.ceil(PACKET_BYTES / min(point.k_af, 1 - point.k_af) - 1e-9)
    af_bytes = round(point.k_af * total_bytes)
    return (
        {"policy": "drr"},
        {
            "ef": {"level": 0, "limit": f"{EF_QUEUE_PKTS}p"},
            "af": {"level": 1, "quantum": f"{af_bytes}B"},
            "cs0": {"level": 1, "quantum": f"{total_bytes - af_bytes}B"},
        },
    )


# --- Theory ---------------------------------------------------------------------------------------------------------


@cache
def expected_rates(point: Point, from_s: float, to_s: float) -> theory.Rates:
    """Rates of AF and CS0 by theory: closed form at fixed, the fluid over the same time at changing capacity."""
    ef_bps = point.ef_share * LINK_BPS
    if not point.changing:
        if point.scheduler == "dwrr":
            return theory.drr_rates(LINK_BPS, ef_bps, point.k_af)
        return theory.pss_rates(LINK_BPS, ef_bps, point.reserved_bps)
    return theory.Rates(*_fluid(point, to_s, 0.05).mean_bps(from_s, to_s)[1:])


def mean_ef_bps(point: Point, from_s: float, to_s: float) -> float:
    """What EF, which is served first, gets in the mean of a time, bit/s."""
    ef_bps = point.ef_share * LINK_BPS
    return _fluid(point, to_s, 0.05).mean_bps(from_s, to_s)[0] if point.changing else ef_bps


@cache
def _fluid(point: Point, duration_s: float, step_s: float) -> theory.Fluid:
    dwrr = point.scheduler == "dwrr"
    return theory.fluid(
        CAPACITY,
        theory.Cosine(point.ef_share * LINK_BPS, EF_SWING, EF_PERIOD_S),
        duration_s,
        reserved_rate_bps=None if dwrr else point.reserved_bps,
        memory_s=point.memory_s or 0.0,
        share=point.k_af if dwrr else None,
        ef_queue_bits=EF_QUEUE_PKTS * 8.0 * PACKET_BYTES,
        step_s=step_s,
    )


# --- From results to rows -------------------------------------------------------------------------------------------


def _rate_row(case: FigureCase, af_ef_cs0_bps: dict[str, float], expected: theory.Rates) -> Row:
    point: Point = case.labels["point"]
    return {
        "scheduler": point.scheduler,
        "traffic": case.labels["traffic"],
        "ef_share": point.ef_share,
        "ef_expected_share": point.expected_share,
        "k_af": point.k_af,
        "memory_s": point.memory_s,
        **{f"{name}_mbps": af_ef_cs0_bps[name] / 1e6 for name in ("ef", "af", "cs0")},
        "af_theory_mbps": expected.af_bps / 1e6,
        "cs0_theory_mbps": expected.cs0_bps / 1e6,
    }


def rate_rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """One row per run: mean rates and those of theory, over the whole run or, with TCP, without its slow start."""
    rows = []
    for case, tables in results:
        rates = {row["class"]: row["rate_bps"] for row in tables.rows("classes")}
        rows.append(_rate_row(case, rates, _expected(case)))
    return rows


def _expected(case: FigureCase) -> theory.Rates:
    return expected_rates(case.labels["point"], case.labels["from_s"], case.labels["to_s"])


def first_seconds_rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """Mean rates over the first 100 s: the paper's run length, slow start included."""
    rows = []
    for case, tables in results:
        sent = {"ef": 0.0, "af": 0.0, "cs0": 0.0}
        for row in tables.rows("series"):
            if row["t_s"] < PAPER_S - 1e-9:
                sent[row["class"]] += 8.0 * row["sent_bytes"]
        rates = {name: bits / PAPER_S for name, bits in sent.items()}
        rows.append(_rate_row(case, rates, expected_rates(case.labels["point"], 0.0, PAPER_S)))
    return rows


def series_rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """One row per second and run: rates in the second that starts at t_s, AF's level in bits at t_s."""
    rows = []
    for case, tables in results:
        point: Point = case.labels["point"]
        levels = {row["t_s"]: row["credit_bits"] for row in tables.rows("levels") if row["class"] == "af"}
        seconds: dict[float, dict[str, float]] = {}
        for row in tables.rows("series"):
            seconds.setdefault(row["t_s"], {})[row["class"]] = row["sent_bps"] / 1e6
        rows += [
            {
                "t_s": t_s,
                **{f"{name}_mbps": rates[name] for name in ("ef", "af", "cs0")},
                "level": levels.get(t_s),
                "scheduler": point.scheduler,
                "memory_s": point.memory_s,
            }
            for t_s, rates in seconds.items()
        ]
    return rows


def series_theory(points: Iterable[Point], duration_s: float) -> list[Row]:
    """The fluid's one-second rates, to draw with the run's."""
    rows = []
    for point in points:
        run = _fluid(point, duration_s, 0.01)
        per_second = round(1 / run.step_s)
        for t in range(math.floor(duration_s)):
            ef, af, cs0 = (x / 1e6 for x in run.mean_bps(t, t + 1))
            rows.append(
                {
                    "t_s": float(t),
                    "ef_mbps": ef,
                    "af_mbps": af,
                    "cs0_mbps": cs0,
                    "level": run.level_bits[t * per_second],
                    "scheduler": point.scheduler,
                    "memory_s": point.memory_s,
                }
            )
    return rows


REASON_TITLE = "Queues and windows of the TCP classes"


def reason_rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """Queue and windows of each TCP class: a class with an empty queue takes less than the scheduler would give.

    `cwnd_mean_pkts` is the sum over the class's flows; `queue_empty_share` the part of the seconds that end with
    nothing waiting.
    """
    rows = []
    for case, tables in results:
        if case.labels["traffic"] != "tcp":
            continue
        point: Point = case.labels["point"]
        expected = _expected(case)
        ends: dict[str, list[int]] = {}
        for row in tables.rows("series"):
            ends.setdefault(row["class"], []).append(row["backlog_pkts"])
        flows = tables.rows("flows")
        for row in tables.rows("classes"):
            name = row["class"]
            if name == "ef":
                continue
            mine = [flow for flow in flows if flow["class"] == name]
            rtts = [flow["srtt_mean_s"] for flow in mine if flow["srtt_mean_s"] is not None]
            rows.append(
                {
                    "scheduler": point.scheduler,
                    "ef_share": point.ef_share,
                    "k_af": point.k_af,
                    "memory_s": point.memory_s,
                    "class": name,
                    "rate_mbps": row["rate_bps"] / 1e6,
                    "theory_mbps": (expected.af_bps if name == "af" else expected.cs0_bps) / 1e6,
                    "backlog_mean_pkts": row["backlog_mean_pkts"],
                    "queue_empty_share": sum(x == 0 for x in ends[name]) / len(ends[name]),
                    "cwnd_mean_pkts": sum(flow["cwnd_mean_pkts"] or 0.0 for flow in mine),
                    "srtt_mean_s": sum(rtts) / len(rtts) if rtts else None,
                    "loss": row["loss"],
                    "retransmitted_pkts": sum(flow["retransmitted_pkts"] for flow in mine),
                    "timeouts": sum(flow["timeouts"] for flow in mine),
                }
            )
    return rows


def short_first(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """`reason_rows`, those furthest below theory first."""
    return sorted(reason_rows(results), key=lambda row: row["rate_mbps"] / max(row["theory_mbps"], 1e-9))


def falls_short(row: Row) -> bool:
    """Whether a TCP class stays more than 5 % below theory; under the older PSS that is expected."""
    return bool(row["scheduler"] != "pss-early-ignored" and row["rate_mbps"] < 0.95 * row["theory_mbps"])


# --- What the paper prints ------------------------------------------------------------------------------------------


def _left_by_ef(printed: str, ef_share: float) -> Number:
    def measure(rows: Sequence[Row]) -> float | None:
        mine = [row for row in rows if row["scheduler"] == "dwrr" and row["ef_share"] == ef_share]
        shares = [100e6 * (row["af_mbps"] + row["cs0_mbps"]) / LINK_BPS for row in mine]
        return sum(shares) / len(shares) if shares else None

    what = f"part of the link that DWRR shares out, EF {ef_share:g}"
    return Number(what, printed, "%", "Section 4.1.2", shown=".1f", measure=measure)


def _totals_mbps(rows: Sequence[Row]) -> dict[float, float]:
    """The rates of all classes together, by second."""
    return {row["t_s"]: row["ef_mbps"] + row["af_mbps"] + row["cs0_mbps"] for row in rows}


def _capacity(which: str, printed: str, part: float) -> Number:
    """Of Figures 7 to 12; it is told once, where it can be seen over time."""
    ours = part * LINK_BPS / 1e6
    return Number(
        f"capacity, {which}",
        printed,
        "Mbit/s",
        "Section 5",
        shown=".1f",
        measure=lambda rows: ours if rows else None,
        remark=f"but {ours:g} by the equation of section 4.2",
    )


def _above_nominal(t_s: float) -> Number:
    return Number(
        f"rate of all classes at {t_s:g} s",
        "20",
        "Mbit/s",
        "Section 4.2.2",
        how="at least",
        shown=".1f",
        measure=lambda rows: _totals_mbps(rows).get(t_s),
    )


_BY_EQUATIONS = "The text says that the measured rates are those of its equations, which the tables have as theory."
PRINTED = {
    "5": Printed(remark=_BY_EQUATIONS),
    "6": Printed((_left_by_ef("25", 0.75), _left_by_ef("50", 0.5), _left_by_ef("75", 0.25)), remark=_BY_EQUATIONS),
    "7": Printed(),
    "8": Printed(
        (
            _capacity("least", "15", 1 - CAPACITY.amplitude),
            _capacity("most", "25", 1 + CAPACITY.amplitude),
        )
    ),
    "9": Printed(),
    "10": Printed((_above_nominal(15.0), _above_nominal(30.0))),
    "11": Printed(),
    "12": Printed(),
    "13": Printed(remark="The paper draws its equations (1), (6), (7) and (8), as ours does."),
}
"""By figure. Settings, such as 20 Mbit/s or the share of 0.81 in Figures 8 and 10, are no results and left out."""


# --- The figures ----------------------------------------------------------------------------------------------------


FIXED = (("pss", FIXED_MEMORY_S), ("dwrr", None))
CHANGING = (("pss", PERIOD_S), ("dwrr", None))
WITH_81 = tuple(sorted((*TENTHS, 0.81)))


def _grid(
    schedulers: Sequence[tuple[str, float | None]],
    shares: Sequence[float],
    ks: Sequence[float],
    *,
    changing: bool,
    expected: float | None = None,
) -> tuple[Point, ...]:
    return tuple(
        Point(scheduler, ef, ef if expected is None else expected, k, memory_s, changing)
        for scheduler, memory_s in schedulers
        for ef in shares
        for k in ks
    )


@dataclass(frozen=True)
class Rates:
    """A figure of mean rates over K_AF.

    Attributes:
        title: what it compares.
        claim: what the paper says of it.
        points: what is run.
        long_s: how long, where AF and CS0 are always backlogged.
        curves: the columns that distinguish curves.
    """

    title: str
    claim: str
    points: tuple[Point, ...]
    long_s: float = BOTH_PERIODS_S
    curves: tuple[str, ...] = ("scheduler", "ef_share")


RATES = {
    "5": Rates(
        "PSS and DWRR when capacity and EF are as expected",
        "With EF known, the curves of PSS and DWRR coincide with (1) and (6).",
        _grid(FIXED, SHARES, TENTHS, changing=False),
        PAPER_S,
    ),
    "6": Rates(
        "PSS and DWRR when EF is expected at half the link",
        "Under PSS AF keeps its rate whatever EF does, (7), and CS0 takes the change, (8); under DWRR both change.",
        _grid(FIXED, SHARES, TENTHS, changing=False, expected=0.5),
        PAPER_S,
    ),
    "7": Rates(
        "PSS with and without memory, changing capacity and EF",
        "Without memory AF misses its target, the more the larger EF; with memory it keeps it.",
        _grid((("pss", PERIOD_S), ("pss", None)), SHARES, WITH_81, changing=True),
        curves=("memory_s", "ef_share"),
    ),
    "9": Rates(
        "PSS that ignores a capacity above nominal, and PSS that charges it",
        "Without the branch for packets that end early AF takes more than its target, at the expense of CS0.",
        _grid((("pss-early-ignored", PERIOD_S), ("pss", PERIOD_S)), SHARES, WITH_81, changing=True),
    ),
    "11": Rates(
        "PSS and DWRR, changing capacity and EF, mean EF half the link as expected",
        "With the averages known, PSS and DWRR give the same rates although both swing.",
        _grid(CHANGING, (0.5,), TENTHS, changing=True, expected=0.5),
    ),
    "12": Rates(
        "PSS and DWRR, changing capacity and EF, EF expected at half the link",
        "AF depends less on EF under PSS than under DWRR, also when capacity and EF swing.",
        _grid(CHANGING, SHARES, TENTHS, changing=True, expected=0.5),
    ),
}
MEMORY = Rates(
    "AF's rate over the length of the memory",
    "A memory of one period of the capacity is proposed; it is enough, not necessary.",
    tuple(
        Point("pss", ef, ef, k_af, float(memory_s), True)
        for ef, k_af, memories_s in (
            (0.75, 0.81, (0.1, 1, 2, 3, 4, 5, 6.1, 7.5, 15)),
            (0.5, 0.9, (1, 2, 3, 4, 15)),
            (0.25, 0.9, (1, 2, 15)),
        )
        for memory_s in memories_s
    ),
)


def _panels_of_rates(curves: tuple[str, ...]) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            title=f"{name.upper()} rate",
            x="k_af",
            y=f"{name}_mbps",
            x_label="K_AF",
            y_label=f"{name.upper()} (Mbit/s)",
            by=curves,
            theory=f"{name}_theory_mbps",
        )
        for name in ("af", "cs0")
    )


def _case(point: Point, options: PssOptions, duration_s: float) -> FigureCase:
    span = {"from_s": options.warmup_s(duration_s), "to_s": duration_s}
    return FigureCase({"point": point, "traffic": options.traffic, **span}, scenario(point, options, duration_s))


def _rates_figure(name: str, plot: Rates, options: PssOptions) -> Figure:
    tcp = options.traffic == "tcp"
    duration_s = options.duration_s or (PAPER_S if tcp else plot.long_s)
    if options.quick and options.duration_s is None:
        duration_s = PAPER_S if plot.long_s == BOTH_PERIODS_S or tcp else 30.0
    chosen = [p for p in plot.points if not options.quick or round(10 * p.k_af, 6) in options.quick_tenths]
    # A run of both periods, or without its slow start, is also shown over the time that the paper ran.
    shown_twice = duration_s >= PAPER_S and (tcp or plot.long_s == BOTH_PERIODS_S)
    return Figure(
        name=name,
        title=plot.title,
        claim=plot.claim,
        cases=tuple(_case(point, options, duration_s) for point in chosen),
        measure=rate_rows,
        panels=_panels_of_rates(plot.curves),
        columns=RATE_KEYS,
        details=short_first if tcp else None,
        details_title=REASON_TITLE,
        notable=falls_short,
        other_rows=first_seconds_rows if shown_twice else None,
        other_title="Over the first 100 s, the paper's run length" + (", slow start included" if tcp else ""),
        printed=PRINTED.get(name),
    )


SECONDS = (0, 5, 7, 9, 14, 15, 27, 30)
"""Seconds of the series that starvation, catching up and the capacity's peaks fall into."""


@dataclass(frozen=True)
class Series:
    """A figure of rates and AF's level over time; `curve` is the column that tells curves apart."""

    title: str
    claim: str
    points: tuple[Point, ...]
    curve: str


SERIES = {
    "8": Series(
        "Rates and level over time with and without memory, K_AF 0.81, EF 0.75",
        "With memory the level falls while AF starves, and AF catches up afterwards; without, CS0 takes part at once.",
        tuple(Point("pss", 0.75, 0.75, 0.81, memory_s, True) for memory_s in (None, PERIOD_S)),
        "memory_s",
    ),
    "10": Series(
        "Rates and level over time without and with charging packets that end early, K_AF 0.81, EF 0.25",
        "At 15 s and 30 s, when the link is faster than nominal, the older algorithm gives AF more than its target.",
        tuple(Point(scheduler, 0.25, 0.25, 0.81, PERIOD_S, True) for scheduler in ("pss-early-ignored", "pss")),
        "scheduler",
    ),
}
SERIES_PANELS = (
    ("ef_mbps", "EF", "rate (Mbit/s)"),
    ("af_mbps", "AF", "rate (Mbit/s)"),
    ("cs0_mbps", "CS0", "rate (Mbit/s)"),
    ("level", "AF's level", "level (bit)"),
)
"""Column, title and label of the axis."""


def _series_summary(points: Sequence[Point], duration_s: float) -> Callable[[list[Row]], Grid]:
    """A grid of a few seconds, ours above theory's."""

    def grid(rows: list[Row]) -> Grid:
        by_theory = {(r["t_s"], r["scheduler"], r["memory_s"]): r for r in series_theory(points, duration_s)}
        lines = []
        for row in sorted(rows, key=lambda r: r["t_s"]):
            key = (row["t_s"], row["scheduler"], row["memory_s"])
            if row["t_s"] not in SECONDS or row["level"] is None:
                continue
            memory = "no memory" if row["memory_s"] is None else f"memory {row['memory_s']:g} s"
            for label, values in (("", row), ("theory", by_theory[key])):
                rates = [f"{values[f'{name}_mbps']:.1f}" for name in ("ef", "af", "cs0")]
                lines.append(
                    [
                        f"{row['t_s']:g}",
                        label or f"{row['scheduler']}, {memory}",
                        *rates,
                        f"{values['level'] / 1e6:.1f}",
                    ]
                )
        return ["time (s)", "run", "EF, Mbit/s", "AF, Mbit/s", "CS0, Mbit/s", "AF's level, Mbit"], lines

    return grid


def _series_figure(name: str, plot: Series, options: PssOptions) -> Figure:
    duration_s = options.duration_s or (30.0 if options.quick else PAPER_S)
    return Figure(
        name,
        plot.title,
        plot.claim,
        tuple(_case(point, options, duration_s) for point in plot.points),
        series_rows,
        tuple(
            Panel(title, "t_s", column, "time (s)", label, (plot.curve,), theory=column, lines=True)
            for column, title, label in SERIES_PANELS
        ),
        SERIES_KEYS,
        terminal_table=False,
        reference=lambda: series_theory(plot.points, duration_s),
        summary=_series_summary(plot.points, duration_s),
        details=short_first if options.traffic == "tcp" else None,
        details_title=REASON_TITLE,
        notable=falls_short,
        printed=PRINTED[name],
    )


def figure_13(options: PssOptions) -> Figure:
    """Theory only: AF over EF."""
    del options

    def rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
        del results
        return [
            {
                "scheduler": scheduler,
                "traffic": "theory",
                "ef_share": ef,
                "ef_expected_share": 0.5,
                "k_af": k,
                "memory_s": None,
                "ef_mbps": ef * LINK_BPS / 1e6,
                "af_mbps": None,
                "cs0_mbps": None,
                "af_theory_mbps": rates.af_bps / 1e6,
                "cs0_theory_mbps": rates.cs0_bps / 1e6,
            }
            for scheduler in ("dwrr", "pss")
            for k in (0.2, 0.5, 0.8)
            for ef in (i / 20 for i in range(21))
            for rates in [expected_rates(Point(scheduler, ef, 0.5, k, None, False), 0.0, PAPER_S)]
        ]

    panels = tuple(
        Panel(
            f"{name.upper()} by theory",
            "ef_share",
            f"{name}_theory_mbps",
            "EF, part of the link",
            "rate (Mbit/s)",
            ("scheduler", "k_af"),
            lines=True,
        )
        for name in ("af", "cs0")
    )
    return Figure(
        "13",
        "What AF and CS0 can count on, theory",
        "AF's rate is predictable as long as EF leaves the reservation; CS0 bears the uncertainty.",
        (),
        rows,
        panels,
        RATE_KEYS,
        terminal_table=False,
        printed=PRINTED["13"],
    )


# --- Tables beyond the figures --------------------------------------------------------------------------------------


def table_two_controlled(options: PssOptions) -> Figure:
    """Two reservations that do not fit: the more urgent one is served first."""
    duration_s = options.duration_s or 30.0
    base = scenario(Point("pss", 0.6, 0.6, 0.5, 0.1, False), options, duration_s)
    flows = {flow["name"]: flow for flow in base["flow"]}
    common = {"burst": f"{BURST_PKTS}p", "mtu": f"{PACKET_BYTES}B", "memory": "100ms"}
    base |= {
        "name": "two controlled queues",
        "class": [
            {"name": "ef", "level": 1, "limit": f"{EF_QUEUE_PKTS}p"},
            {"name": "af1", "level": 2, "low_level": 5, "rate": "6Mbit", **common},
            {"name": "af2", "level": 3, "low_level": 6, "rate": "4Mbit", **common},
            {"name": "cs0", "level": 4},
        ],
        "flow": [flows["ef"], *({**flows["af"], "name": n, "class": n} for n in ("af1", "af2")), flows["cs0"]],
    }
    expected, rest = theory.controlled_rates(8e6, [6e6, 4e6])
    columns = ("scheduler", "traffic", "class", "rate_mbps", "theory_mbps")

    def rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
        wanted = dict(zip(("ef", "af1", "af2", "cs0"), (12e6, *expected, rest), strict=True))
        pairs = [(row["class"], row["rate_bps"]) for _, tables in results for row in tables.rows("classes")]
        return [
            dict(zip(columns, ("pss", options.traffic, name, bps / 1e6, wanted[name] / 1e6), strict=True))
            for name, bps in pairs
        ]

    case = FigureCase({"traffic": options.traffic}, base)
    return Figure(
        "two-controlled",
        "Two controlled queues, 6 and 4 Mbit/s reserved, EF leaves 8",
        "Residual capacity goes to the reservations in order of urgency, CS0 gets what is left.",
        (case,),
        rows,
        (),
        columns,
    )


def table_memory(options: PssOptions) -> Figure:
    """The memory that a swinging capacity needs."""
    figure = _rates_figure("memory", MEMORY, replace(options, quick=False))
    panel = Panel("AF rate", "memory_s", "af_mbps", "memory, s", "AF, Mbit/s", ("ef_share",), theory="af_theory_mbps")
    return Figure("memory", figure.title, figure.claim, figure.cases, rate_rows, (panel,), RATE_KEYS)


def table_ring(options: PssOptions) -> Figure:
    """A driver that pulls bursts, against both algorithms: 8 of 20 Mbit/s reserved, EF at 5."""
    duration_s = options.duration_s or 30.0
    columns = ("scheduler", "traffic", "ring_pkts", "af_mbps", "af_theory_mbps")
    cases = []
    for scheduler in ("pss-early-ignored", "pss"):
        for ring in (1, 2, 4, 8, 16):
            point = Point(scheduler, 0.25, 0.5, 0.8, FIXED_MEMORY_S, changing=False)
            run = scenario(point, options, duration_s)
            run["link"]["ring"] = ring
            cases.append(FigureCase({"scheduler": scheduler, "ring": ring, "traffic": options.traffic}, run))

    def rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
        made = []
        for case, tables in results:
            af_bps = next(row["rate_bps"] for row in tables.rows("classes") if row["class"] == "af")
            values = (*(case.labels[name] for name in ("scheduler", "traffic", "ring")), af_bps / 1e6, 8.0)
            made.append(dict(zip(columns, values, strict=True)))
        return made

    return Figure(
        "ring",
        "AF's rate when the driver pulls several packets at once",
        "Time gained on the nominal rate must be charged; the older algorithm did not.",
        tuple(cases),
        rows,
        (),
        columns,
    )


_MAKERS: dict[str, Callable[[PssOptions], Figure]] = {
    **{name: partial(_rates_figure, name, plot) for name, plot in RATES.items()},
    **{name: partial(_series_figure, name, plot) for name, plot in SERIES.items()},
    "13": figure_13,
}
FIGURES = {name: _MAKERS[name] for name in sorted(_MAKERS, key=int)}
TABLES: dict[str, Callable[[PssOptions], Figure]] = {
    "two-controlled": table_two_controlled,
    "memory": table_memory,
    "ring": table_ring,
}
