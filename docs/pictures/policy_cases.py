# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of the policies' pages, as data: what is run, varied and measured, and what the page says of it.

`make pictures` measures and draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import measure

Scenario = dict[str, Any]


@dataclass(frozen=True)
class Plot:
    """A curve: a number of each of several runs, by what is varied; or, with x None, the points of one run."""

    label: str
    points: Sequence[tuple[float | str | None, Scenario]]
    measure: Callable[[Any], Any]
    quiet: bool = False


@dataclass(frozen=True)
class Sketch:
    """One pair of axes; `look` are further keys of `draw.Panel`."""

    title: str
    x_label: str
    y_label: str
    plots: Sequence[Plot]
    look: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Values:
    """The measured curves of a case, by panel."""

    panels: list[list[dict[str, Any]]]

    def y(self, label: str, panel: int = 0) -> list[float]:
        """The values of a curve."""
        return list(self._curve(label, panel)["y"])

    def at(self, label: str, x: float | str, panel: int = 0) -> float:
        """The value of a curve at x."""
        curve = self._curve(label, panel)
        return float(curve["y"][curve["x"].index(x)])

    def falls_to(self, label: str, y: float, panel: int = 0) -> float:
        """The first x at which a falling curve is at most y."""
        curve = self._curve(label, panel)
        return next(float(x) for x, value in zip(curve["x"], curve["y"], strict=True) if value <= y)

    def rises_to(self, label: str, y: float, panel: int = 0) -> float:
        """The first x at which a rising curve is at least y."""
        curve = self._curve(label, panel)
        return next(float(x) for x, value in zip(curve["x"], curve["y"], strict=True) if value >= y)

    def from_x(self, label: str, x: float, panel: int = 0) -> float:
        """The value at the first point that is not before x."""
        curve = self._curve(label, panel)
        return next(float(value) for found, value in zip(curve["x"], curve["y"], strict=True) if found >= x)

    def _curve(self, label: str, panel: int) -> dict[str, Any]:
        return next(curve for curve in self.panels[panel] if curve["label"] == label)


@dataclass(frozen=True)
class Case:
    """The picture of one policy. `says` is the sentence of the page; its names are those of `facts`."""

    policy: str
    alt: str
    says: str
    facts: Mapping[str, Callable[[Values], float]]
    panels: Sequence[Sketch]
    size: tuple[float, float] | None = None


def scenario(
    policy: str | dict[str, Any],
    link: dict[str, Any],
    classes: list[dict[str, Any]],
    flows: list[dict[str, Any]],
    duration_s: float = 30,
    warmup_s: float = 5,
    **more: Any,
) -> Scenario:
    """A scenario; `policy` may have parameters."""
    scheduler = {"policy": policy} if isinstance(policy, str) else policy
    times = {"duration": f"{duration_s}s", "warmup": f"{warmup_s}s", **more}
    return {**times, "link": link, "scheduler": scheduler, "class": classes, "flow": flows}


def rate_mbps(name: str) -> Callable[[Any], float]:
    """The rate of a class, Mbit/s."""
    return partial(_scaled, "classes", name, "rate_bps", 1e-6)


def _scaled(table: str, name: str, column: str, scale: float, result: Any) -> float:
    return measure.total(result, table, name, column) * scale


def _part(table: str, name: str, column: str, result: Any) -> float:
    """The part of a class in the sum over all classes, %."""
    everything = sum(row[column] for row in result.table(table).to_pylist())
    return 100 * measure.total(result, table, name, column) / everything


def _ratio(name: str, other: str, column: str, result: Any) -> float:
    return measure.mean(result, "classes", name, column) / measure.mean(result, "classes", other, column)


def total_mbps(result: Any) -> float:
    """What all flows together got to their receivers, Mbit/s."""
    return float(sum(row["goodput_bps"] for row in result.flows.to_pylist())) / 1e6


def _of_flows(name: str, result: Any) -> float:
    return measure.total(result, "flows", name, "goodput_bps") / 1e6


def quantile_ms(name: str, q: float) -> Callable[[Any], float]:
    """A quantile of the queueing delay of a class, ms."""
    return partial(_quantile_ms, name, q)


def _quantile_ms(name: str, q: float, result: Any) -> float:
    return measure.quantile_ms(result, name, q)


def _by_user(column: str, scale: float, result: Any) -> measure.Points:
    """A column of the classes, the best first."""
    found = sorted(row[column] * scale for row in result.classes.to_pylist())
    return [float(place) for place in range(1, len(found) + 1)], found


def over(measured: Callable[..., measure.Points], *arguments: Any) -> Callable[[Any], measure.Points]:
    """The points of one run."""
    return partial(_over, measured, arguments)


def _over(measured: Callable[..., measure.Points], arguments: tuple[Any, ...], result: Any) -> measure.Points:
    return measured(result, *arguments)


def sweep(
    label: str, xs: Sequence[Any], make: Callable[[Any], Scenario], what: Callable[[Any], Any], quiet: bool = False
) -> Plot:
    """A curve over what `make` varies."""
    return Plot(label, [(x, make(x)) for x in xs], what, quiet)


def _late_or_lost(limit_s: float, result: Any) -> float:
    """Packets of all classes that were dropped or lost or came later than a limit, in % of those that arrived."""
    import numpy as np

    from linkweir import delays

    sent = sum(row["arrived_pkts"] for row in result.classes.to_pylist())
    in_time = 0.0
    for one in delays.distributions(result.delays, "one-way"):
        if not one.flow:
            in_time += float(one.packets[: np.searchsorted(one.upper_s, limit_s, side="right")].sum())
    return 100.0 * max(0.0, 1.0 - in_time / sent)


# ---- shares and priorities -----------------------------------------------------------------------------------------

EF_RATES = [1, 4, 7, 10, 13, 16, 18]


def three_classes(policy: str, ef_mbps: float) -> Scenario:
    """20 Mbit/s; EF goes first. AF and CS0 want all: AF is promised 5 Mbit/s, or has a quantum equal to CS0's."""
    keys: list[dict[str, Any]] = {
        "pss": [{"level": 0}, {"level": 1, "low_level": 3, "rate": "5Mbit", "memory": "1s"}, {"level": 2}],
        "drr": [{"level": 0}, {"level": 1, "quantum": "1500B"}, {"level": 1, "quantum": "1500B"}],
        "strict": [{"level": 0}, {"level": 1}, {"level": 2}],
    }[policy]
    classes = [{"name": name, **own} for name, own in zip(("ef", "af", "cs0"), keys, strict=True)]
    ef = {"class": "ef", "kind": "cbr", "rate": f"{ef_mbps}Mbit", "packet": "1500B", "jitter": 0.3}
    greedy = [{"class": name, "kind": "greedy"} for name in ("af", "cs0")]
    return scenario(policy, {"rate": "20Mbit"}, classes, [ef, *greedy], 20, 2)


def fade(memory: str) -> Scenario:
    """A link that falls to 3 Mbit/s for 10 s, below what AF was promised."""
    classes: list[dict[str, Any]] = [
        {"name": "ef", "level": 0},
        {"name": "af", "level": 1, "low_level": 3, "rate": "5Mbit", "memory": memory},
        {"name": "cs0", "level": 2},
    ]
    ef = {"class": "ef", "kind": "cbr", "rate": "1Mbit", "packet": "500B"}
    greedy = [{"class": name, "kind": "greedy"} for name in ("af", "cs0")]
    rate = {"steps": [["0s", "20Mbit"], ["10s", "3Mbit"], ["20s", "20Mbit"]]}
    return scenario("pss", {"rate": rate, "nominal": "20Mbit"}, classes, [ef, *greedy], 30, 0, interval="500ms")


PSS = Case(
    "pss",
    "Left: the rate of AF against the load of EF; PSS keeps it, DRR does not. Right: AF during and after a fade of the link.",
    "AF is promised 5 Mbit/s of 20. While EF grows from 1 to 13 Mbit/s, PSS keeps AF between {low:.2f} and {high:.2f} "
    "Mbit/s; with DRR, AF falls from {first:.2f} to {last:.2f} Mbit/s. A fade leaves AF {faded:.1f} Mbit/s. When the fade "
    "ends, a memory of 10 s gives AF {after:.1f} Mbit/s until AF has received what it missed; without memory AF gets {none:.1f}.",
    {
        "low": lambda v: min(v.y("PSS")[:5]),
        "high": lambda v: max(v.y("PSS")[:5]),
        "first": lambda v: v.at("DRR", 1),
        "last": lambda v: v.at("DRR", 13),
        "faded": lambda v: v.at("memory 10 s", 15, 1),
        "after": lambda v: v.at("memory 10 s", 20.5, 1),
        "none": lambda v: v.at("no memory", 20.5, 1),
    },
    [
        Sketch(
            "AF when EF grows",
            "EF (Mbit/s)",
            "AF (Mbit/s)",
            [
                sweep("PSS", EF_RATES, partial(three_classes, "pss"), rate_mbps("af")),
                sweep("DRR", EF_RATES, partial(three_classes, "drr"), rate_mbps("af")),
            ],
        ),
        Sketch(
            "AF in a fade to 3 Mbit/s",
            "time (s)",
            "AF (Mbit/s)",
            [
                Plot("memory 10 s", [(None, fade("10s"))], over(measure.over_time, "af", "sent_bps", 1e-6)),
                Plot("no memory", [(None, fade("0s"))], over(measure.over_time, "af", "sent_bps", 1e-6)),
            ],
            {"kind": "steps", "shaded": [(10, 20)]},
        ),
    ],
)


def one_level(policy: str, ef_mbps: float) -> Scenario:
    """The three classes without priorities."""
    classes = [{"name": name} for name in ("ef", "af", "cs0")]
    ef = {"class": "ef", "kind": "cbr", "rate": f"{ef_mbps}Mbit", "packet": "1500B", "jitter": 0.3}
    greedy = [{"class": name, "kind": "greedy"} for name in ("af", "cs0")]
    return scenario(policy, {"rate": "20Mbit"}, classes, [ef, *greedy], 20, 2)


STRICT = Case(
    "strict",
    "The rates of three classes against the load of the most urgent one: it gets what it sends, the last class gets nothing.",
    "EF gets all that it sends, up to {ef:.1f} of 20 Mbit/s. AF takes all that is left, so CS0 gets {cs0:.0f} at any load: "
    "strict priority bounds no class.",
    {"ef": lambda v: v.y("EF")[-1], "cs0": lambda v: max(v.y("CS0"))},
    [
        Sketch(
            "Three classes when EF grows",
            "EF's load (Mbit/s)",
            "rate (Mbit/s)",
            [
                sweep(name.upper(), EF_RATES, partial(three_classes, "strict"), rate_mbps(name))
                for name in ("ef", "af", "cs0")
            ],
        ),
        Sketch(
            "Delay of EF beside full queues",
            "EF's load (Mbit/s)",
            "99th percentile (ms)",
            [
                sweep("strict", EF_RATES, partial(three_classes, "strict"), quantile_ms("ef", 0.99)),
                sweep("DRR, one level", EF_RATES, lambda ef: one_level("drr", ef), quantile_ms("ef", 0.99)),
            ],
            {"log_y": True},
        ),
    ],
)


def voice_and_data(policy: str, load: float) -> Scenario:
    """A call and data in bursts, which offer a part of 10 Mbit/s; no parameter: voice is the first class."""
    data = {
        "class": "data",
        "kind": "onoff",
        "rate": "3Mbit",
        "on": "50ms",
        "off": f"{50 * (6 / load - 1):.1f}ms",
        "count": 20,
    }
    voice = {"class": "voice", "kind": "cbr", "rate": "64kbit", "packet": "200B"}
    return scenario(policy, {"rate": "10Mbit"}, [{"name": "voice"}, {"name": "data"}], [voice, data], 60, 5)


LOADS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
FIFO = Case(
    "fifo",
    "99th percentile of the delay of a call against the load of the link: with fifo the call waits as long as the bursts of "
    "data, with strict priority it hardly waits.",
    "Bursts of data load the link to 80 %. With fifo 1 % of the call's packets wait for {fifo:.0f} ms or more, as do the data "
    "({data:.0f} ms); with strict priority it is {strict:.1f} ms.",
    {
        "fifo": lambda v: v.at("call, fifo", 80),
        "data": lambda v: v.at("data, fifo", 80),
        "strict": lambda v: v.at("call, strict", 80),
    },
    [
        Sketch(
            "A call beside bursts of data",
            "load of the link (%)",
            "delay, 99th percentile (ms)",
            [
                Plot("call, fifo", [(100 * x, voice_and_data("fifo", x)) for x in LOADS], quantile_ms("voice", 0.99)),
                Plot("data, fifo", [(100 * x, voice_and_data("fifo", x)) for x in LOADS], quantile_ms("data", 0.99)),
                Plot(
                    "call, strict", [(100 * x, voice_and_data("strict", x)) for x in LOADS], quantile_ms("voice", 0.99)
                ),
            ],
            {"log_y": True},
        ),
    ],
)

# ---- rounds --------------------------------------------------------------------------------------------------------

SIZES = [64, 200, 400, 600, 900, 1200, 1500]


def two_sizes(
    policy: str, size: float, first: dict[str, Any] | None = None, other: dict[str, Any] | None = None
) -> Scenario:
    """Two classes that want all of 10 Mbit/s: one with packets of 1500 bytes, the other with packets of `size`."""
    classes = [{"name": "large", **(first or {})}, {"name": "other", **(other or {})}]
    flows = [
        {"class": "large", "kind": "greedy", "packet": "1500B"},
        {"class": "other", "kind": "greedy", "packet": f"{size}B"},
    ]
    return scenario(policy, {"rate": "10Mbit"}, classes, flows, 10, 1)


def shares_of_the_large(policy: str, first: dict[str, Any], other: dict[str, Any], label: str) -> Plot:
    """The share of the class with large packets."""
    make = lambda size: two_sizes(policy, size, first, other)  # noqa: E731
    return sweep(label, SIZES, make, partial(_part, "classes", "large", "sent_bytes"))


def three_sizes(policy: str) -> Scenario:
    """Three classes that want all of 10 Mbit/s, each with packets of a size."""
    names = ["300 B", "600 B", "1500 B"]
    flows = [{"class": name, "kind": "greedy", "packet": name.replace(" ", "")} for name in names]
    return scenario(policy, {"rate": "10Mbit"}, [{"name": name} for name in names], flows, 10, 1)


def _shares(result: Any) -> tuple[list[str], list[float]]:
    """The part of each class in what was sent, %."""
    found = result.classes.to_pylist()
    everything = sum(row["sent_bytes"] for row in found)
    return [row["class"] for row in found], [100 * row["sent_bytes"] / everything for row in found]


RR = Case(
    "rr",
    "Share of the link of three classes whose packets have 300, 600 and 1500 bytes: unequal under round robin, equal "
    "under deficit round robin.",
    "Three classes always have packets, of 300, 600 and 1500 bytes. Round robin sends equally many packets of each, so they "
    "get {small:.3g}, {middle:.3g} and {large:.3g} % of the link; deficit round robin counts bytes and gives {drr:.0f} % to "
    "each.",
    {
        "small": lambda v: v.at("rr", "300 B"),
        "middle": lambda v: v.at("rr", "600 B"),
        "large": lambda v: v.at("rr", "1500 B"),
        "drr": lambda v: v.at("drr", "600 B"),
    },
    [
        Sketch(
            "Three packet sizes on one link",
            "packets of the class",
            "share of the link (%)",
            [Plot(policy, [(None, three_sizes(policy))], _shares) for policy in ("rr", "drr")],
            {"kind": "bars", "top": 75},
        ),
    ],
)

WRR = Case(
    "wrr",
    "Share of a class of weight 3 against the packet size of a class of weight 1: 75 % only where both sizes are equal.",
    "A class of weight 3 with packets of 1500 bytes gets {same:.0f} % of the link where the other class, of weight 1, "
    "sends packets of 1500 bytes too. With packets of 200 bytes there it gets {small:.0f} %: weights count packets. "
    "Deficit round robin with quanta three to one gives {drr:.0f} %.",
    {
        "same": lambda v: v.at("wrr", 1500),
        "small": lambda v: v.at("wrr", 200),
        "drr": lambda v: v.at("drr", 200),
    },
    [
        Sketch(
            "Three to one, with packets of other sizes",
            "packets of the other class (bytes)",
            "share of the first (%)",
            [
                shares_of_the_large("wrr", {"weight": "3p"}, {"weight": "1p"}, "wrr"),
                shares_of_the_large("drr", {"quantum": "4500B"}, {"quantum": "1500B"}, "drr"),
            ],
            {"top": 105},
        ),
    ],
)

DRR = Case(
    "drr",
    "Share of one of two classes against the packet size of the other: deficit round robin keeps half, round robin does not.",
    "Two classes with equal quanta get {low:.1f} % of the link each, whatever the size of their packets. "
    "Round robin gives {rr:.0f} % to the class whose packets have 1500 bytes when the other sends 64 bytes.",
    {
        "low": lambda v: min(v.y("drr")),
        "rr": lambda v: v.at("rr", 64),
    },
    [
        Sketch(
            "Equal shares, with packets of other sizes",
            "packets of the other class (bytes)",
            "share of the first (%)",
            [
                shares_of_the_large("drr", {"quantum": "1500B"}, {"quantum": "1500B"}, "drr"),
                shares_of_the_large("rr", {}, {}, "rr"),
            ],
            {"top": 105},
        ),
    ],
)

# ---- delays in proportion ------------------------------------------------------------------------------------------

PDS_LOADS = [80, 90, 95, 100, 105, 110, 120, 140]


def ratios(load: float) -> Scenario:
    """Three classes that wait in ratios 4 to 2 to 1 and lose in ratios 1 to 2 to 4."""
    classes = [
        {"name": "gold", "delay": 4, "loss": 4},
        {"name": "silver", "delay": 2, "loss": 2},
        {"name": "bronze", "delay": 1, "loss": 1},
    ]
    flows = [
        {
            "class": name,
            "kind": "onoff",
            "rate": "2Mbit",
            "on": "200ms",
            "off": f"{200 * (400 / load - 1):.1f}ms",
            "count": 40,
            "packet": "600B",
        }
        for name in ("gold", "silver", "bronze")
    ]
    return scenario({"policy": "pds", "limit": "400p"}, {"rate": "60Mbit"}, classes, flows, 40, 5)


PDS = Case(
    "pds",
    "Delays of two classes as multiples of the best class's delay, against the load: near 2 and 4 at full load and above.",
    "Silver should wait twice as long as gold, and bronze four times as long. At loads of 105 % and more they wait {silver_low:.2f} to "
    "{silver_high:.2f} and {bronze_low:.2f} to {bronze_high:.2f} times as long; at 80 %, where queues are short, delays are closer "
    "together ({silver:.2f} and {bronze:.2f}).",
    {
        "silver_low": lambda v: min(v.y("silver / gold")[4:]),
        "silver_high": lambda v: max(v.y("silver / gold")[4:]),
        "bronze_low": lambda v: min(v.y("bronze / gold")[4:]),
        "bronze_high": lambda v: max(v.y("bronze / gold")[4:]),
        "silver": lambda v: v.at("silver / gold", 80),
        "bronze": lambda v: v.at("bronze / gold", 80),
    },
    [
        Sketch(
            "Delays in fixed ratios",
            "load of the link (%)",
            "mean delay, times gold's",
            [
                sweep(f"{name} / gold", PDS_LOADS, ratios, partial(_ratio, name, "gold", "delay_mean_s"))
                for name in ("silver", "bronze")
            ],
            {"top": 5},
        ),
        Sketch(
            "Losses in fixed ratios",
            "load of the link (%)",
            "loss, times gold's",
            [
                sweep(f"{name} / gold", PDS_LOADS[4:], ratios, partial(_ratio, name, "gold", "loss"))
                for name in ("silver", "bronze")
            ],
            {"top": 5},
        ),
    ],
)

# ---- fading channels -----------------------------------------------------------------------------------------------

VOICE = {"kind": "onoff", "rate": "64kbit", "packet": "210B", "on": "500ms", "off": "50ms", "stagger": "20ms"}


def satellite(packet: str) -> dict[str, Any]:
    """A link to vehicles, each with fading of its own."""
    return {"rate": "10Mbit", "delay": "8ms", "satellite": {"packet": packet, "esn0_db": 10, "ground_delay": "1ms"}}


def downloads(policy: str, users: float) -> Scenario:
    """Vehicles that always have packets waiting for them."""
    classes = [{"name": "car", "count": users}]
    return scenario(
        policy,
        satellite("1115B"),
        classes,
        [{"class": "car", "kind": "greedy", "packet": "1115B", "count": users}],
        300,
        10,
    )


def calls(policy: str, users: float, own: dict[str, Any] | None = None, **parameters: Any) -> Scenario:
    """Calls to vehicles."""
    classes = [{"name": "car", "count": users, **(own or {})}]
    flows = [{"class": "car", "count": users, **VOICE}]
    return scenario({"policy": policy, **parameters}, satellite("210B"), classes, flows, 60, 10)


def calls_and_bulk(policy: str, users: float, own: dict[str, Any] | None = None, **parameters: Any) -> Scenario:
    """Calls to vehicles, and four that download."""
    elastic = {"target": "0s"} if own else {}
    classes = [{"name": "call", "count": users, **(own or {})}, {"name": "bulk", "count": 4, **elastic}]
    flows = [
        {"class": "call", "name": "call", "count": users, **VOICE},
        {"class": "bulk", "name": "bulk", "count": 4, "kind": "greedy", "packet": "210B"},
    ]
    return scenario({"policy": policy, **parameters}, satellite("210B"), classes, flows, 60, 10)


USERS = [2, 3, 5, 8, 12, 16, 20]
PF = Case(
    "pf",
    "Total throughput of all vehicles against their number: proportional fairness carries more than round robin.",
    "Each vehicle is served while its own channel is good: with 20 vehicles the link carries {pf:.2f} Mbit/s, "
    "{gain:.0f} % more than with round robin ({rr:.2f} Mbit/s).",
    {
        "pf": lambda v: v.at("pf", 20),
        "rr": lambda v: v.at("rr", 20),
        "gain": lambda v: 100 * (v.at("pf", 20) / v.at("rr", 20) - 1),
    },
    [
        Sketch(
            "All vehicles together",
            "vehicles",
            "throughput (Mbit/s)",
            [sweep(policy, USERS, partial(downloads, policy), total_mbps) for policy in ("pf", "rr")],
            {"top": 6},
        ),
    ],
)

CALLS = [60, 66, 72, 78, 84, 90]
CODES = Case(
    "codes",
    "Calls' packets that are lost or come too late, against the number of calls: CoDeS keeps them few where pf and rr lose "
    "most of the calls.",
    "A packet that takes longer than 150 ms is useless to a call. With 84 calls, more than the link carries, {codes:.0f} % of the packets are lost or "
    "late under CoDeS, {pf:.0f} % under pf and {rr:.0f} % under rr, which also send packets that are already too late.",
    {name: (lambda v, name=name: v.at(name, 84)) for name in ("codes", "pf", "rr")},
    [
        Sketch(
            "Calls to vehicles on a fading link",
            "calls",
            "late or lost (%)",
            [
                sweep(
                    policy,
                    CALLS,
                    partial(calls, policy, own={"timeout": "100ms"} if policy == "codes" else None),
                    partial(_late_or_lost, 0.15),
                )
                for policy in ("codes", "pf", "rr")
            ],
            {"top": 105},
        ),
    ],
)

TARGET = {"target": "100ms"}
TAIL = {"log_y": True, "labels": "ends"}


def tail(label: str, run: Scenario, quiet: bool = False) -> Plot:
    """The part of the calls' packets that is later than a delay."""
    return Plot(label, [(None, run)], over(measure.later_than, "call"), quiet)


MLWDF = Case(
    "mlwdf",
    "Fraction of the calls' packets that wait longer than a given time: under M-LWDF few wait for more than the target of 100 ms.",
    "70 calls and 4 downloads fill a fading link. The target is that at most 5 % of the calls' packets wait for more than 100 ms: under "
    "M-LWDF {mlwdf:.1f} % do, under pf {pf:.1f} % and under rr {rr:.1f} %.",
    {name: (lambda v, name=name: v.from_x(name, 100.0)) for name in ("mlwdf", "pf", "rr")},
    [
        Sketch(
            "Calls beside downloads on a fading link",
            "delay in the queue (ms)",
            "packets that wait longer (%)",
            [
                tail("mlwdf", calls_and_bulk("mlwdf", 70, TARGET)),
                tail("pf", calls_and_bulk("pf", 70)),
                tail("rr", calls_and_bulk("rr", 70)),
            ],
            TAIL,
        ),
    ],
)

EXP_RULE = Case(
    "exp_rule",
    "Left: fraction of the calls' packets that wait longer than a given time, under the exponential rule and M-LWDF. Right: the 99th "
    "percentile of each of 80 vehicles when the link is overloaded; the exponential rule keeps them closest together.",
    "With 70 calls and four downloads, 1 % of the calls' packets wait for more than {exp_rule:.0f} ms ({mlwdf:.0f} ms under M-LWDF). "
    "With 80 calls, more than the link carries, the worst vehicle's 99th percentile is {spread:.2f} times the best one's under "
    "exp_rule, {spread_mlwdf:.1f} times under mlwdf and {spread_pf:.0f} times under pf.",
    {
        "exp_rule": lambda v: v.falls_to("exp_rule", 1.0),
        "mlwdf": lambda v: v.falls_to("mlwdf", 1.0),
        "spread": lambda v: v.y("exp_rule", 1)[-1] / v.y("exp_rule", 1)[0],
        "spread_mlwdf": lambda v: v.y("mlwdf", 1)[-1] / v.y("mlwdf", 1)[0],
        "spread_pf": lambda v: v.y("pf", 1)[-1] / v.y("pf", 1)[0],
    },
    [
        Sketch(
            "Calls beside downloads",
            "delay in the queue (ms)",
            "packets that wait longer (%)",
            [
                tail("exp_rule", calls_and_bulk("exp_rule", 70, TARGET)),
                tail("mlwdf", calls_and_bulk("mlwdf", 70, TARGET)),
            ],
            TAIL,
        ),
        Sketch(
            "80 calls, more than the link carries",
            "vehicle, the best first",
            "99th percentile (ms)",
            [
                Plot(policy, [(None, calls(policy, 80, own))], partial(_by_user, "delay_p99_s", 1e3))
                for policy, own in (("exp_rule", TARGET), ("mlwdf", TARGET), ("pf", None))
            ],
            {"log_y": True},
        ),
    ],
)

MIXED = [20, 30, 40, 50, 60, 70]
EXP_PF = Case(
    "exp_pf",
    "Left: 99th percentile of the calls' delay against the number of calls; right: throughput of the downloads. exp_pf keeps the calls "
    "below their target and gives the downloads as much as pf.",
    "With up to 70 calls, the 99th percentile of their delay is at most {exp_pf:.0f} ms under exp_pf, within the target of 100 ms, and {pf:.0f} ms or "
    "more under pf. With 20 calls the downloads get {bulk:.2f} Mbit/s, as under pf ({bulk_pf:.2f}); rr leaves them {bulk_rr:.2f}.",
    {
        "exp_pf": lambda v: max(v.y("exp_pf")),
        "pf": lambda v: min(v.y("pf")),
        "bulk": lambda v: v.at("exp_pf", 20, 1),
        "bulk_pf": lambda v: v.at("pf", 20, 1),
        "bulk_rr": lambda v: v.at("rr", 20, 1),
    },
    [
        Sketch(
            "Calls",
            "calls",
            "delay, 99th percentile (ms)",
            [
                sweep(policy, MIXED, partial(calls_and_bulk, policy, own=own), quantile_ms("call", 0.99))
                for policy, own in (("exp_pf", TARGET), ("pf", None), ("rr", None))
            ],
        ),
        Sketch(
            "Four downloads beside them",
            "calls",
            "throughput (Mbit/s)",
            [
                sweep(policy, MIXED, partial(calls_and_bulk, policy, own=own), partial(_of_flows, "bulk"))
                for policy, own in (("exp_pf", TARGET), ("pf", None), ("rr", None))
            ],
        ),
    ],
)

# ---- only in the simulator -----------------------------------------------------------------------------------------


def late_calls(*policies: str) -> Sketch:
    """Packets of calls that are lost or late, over the number of calls."""
    return Sketch(
        "Calls to vehicles on a fading link",
        "calls",
        "late or lost (%)",
        [
            sweep(
                policy,
                CALLS,
                partial(calls, policy, own={"timeout": "100ms"} if policy == "codes" else None),
                partial(_late_or_lost, 0.15),
            )
            for policy in policies
        ],
        {"top": 105},
    )


TAURAN_PF = Case(
    "tauran_pf",
    "Total throughput of all vehicles against their number: it grows under tauran_pf, which knows each channel without delay.",
    "With 20 vehicles tauran_pf carries {paper:.2f} Mbit/s and pf {pf:.2f}: tauran_pf mostly serves the best channel, which "
    "it knows at the instant of sending.",
    {"paper": lambda v: v.at("tauran_pf", 20), "pf": lambda v: v.at("pf", 20)},
    [
        Sketch(
            "All vehicles together",
            "vehicles",
            "throughput (Mbit/s)",
            [sweep(policy, USERS, partial(downloads, policy), total_mbps) for policy in ("tauran_pf", "pf", "rr")],
        ),
    ],
)

TAURAN_CODES = Case(
    "tauran_codes",
    "Calls' packets that are lost or come too late, against the number of calls: tauran_codes drops those that would come too late.",
    "A packet that takes longer than 150 ms is useless to a call. With 90 calls {paper:.0f} % of the packets are lost or late under tauran_codes, {without:.0f} % under "
    "tauran_pf, which drops none, and {codes:.0f} % under codes.",
    {
        "paper": lambda v: v.at("tauran_codes", 90),
        "without": lambda v: v.at("tauran_pf", 90),
        "codes": lambda v: v.at("codes", 90),
    },
    [late_calls("tauran_codes", "tauran_pf", "codes")],
)

UBMT_LIKE = Case(
    "ubmt_like",
    "Calls' packets that are lost or come too late, against the number of calls: few under ubmt_like, as under codes, many under pf.",
    "A packet that takes longer than 150 ms is useless to a call. With 84 calls {ubmt:.1f} % of the packets are lost or late under ubmt_like, {codes:.1f} % under codes and "
    "{pf:.0f} % under pf.",
    {
        "ubmt": lambda v: v.at("ubmt_like", 84),
        **{name: (lambda v, name=name: v.at(name, 84)) for name in ("codes", "pf")},
    },
    [late_calls("ubmt_like", "codes", "pf")],
)

BBS_LIKE = Case(
    "bbs_like",
    "Calls' packets that are lost or come too late, against the number of calls, under bbs_like, bps_like and rr.",
    "A packet that takes longer than 150 ms is useless to a call. With 78 calls {best:.0f} % of the packets are late under bbs_like, {packet:.0f} % under bps_like and {rr:.0f} % "
    "under rr. With 84 calls, more than the link carries, nearly all are late, because these policies drop no packets.",
    {
        "best": lambda v: v.at("bbs_like", 78),
        "packet": lambda v: v.at("bps_like", 78),
        "rr": lambda v: v.at("rr", 78),
    },
    [late_calls("bbs_like", "bps_like", "rr")],
)

BPS_LIKE = Case(
    "bps_like",
    "Total throughput of all vehicles against their number: more under bps_like than under bbs_like.",
    "With 20 vehicles that always have packets bps_like carries {packet:.2f} Mbit/s, bbs_like {best:.2f} and pf {pf:.2f}.",
    {
        "packet": lambda v: v.at("bps_like", 20),
        "best": lambda v: v.at("bbs_like", 20),
        "pf": lambda v: v.at("pf", 20),
    },
    [
        Sketch(
            "All vehicles together",
            "vehicles",
            "throughput (Mbit/s)",
            [sweep(policy, USERS, partial(downloads, policy), total_mbps) for policy in ("bps_like", "bbs_like", "pf")],
            {"top": 6},
        ),
    ],
)

# ---- queue management ----------------------------------------------------------------------------------------------


def rate_drop(policy: str) -> Scenario:
    """Four downloads when the link falls from 20 to 4 Mbit/s for 20 s."""
    rate = {"steps": [["0s", "20Mbit"], ["15s", "4Mbit"], ["35s", "20Mbit"]]}
    flows = [{"class": "all", "kind": "tcp", "cc": "cubic", "count": 4, "stagger": "100ms"}]
    return scenario(policy, {"rate": rate, "delay": "20ms"}, [{"name": "all"}], flows, 50, 5, interval="500ms")


CODEL = Case(
    "codel",
    "Delay in the queue over time: when the link's rate falls, fifo keeps a standing queue, codel drains it.",
    "Four downloads share a link that falls from 20 to 4 Mbit/s for 20 s. Ten seconds later packets still wait for {fifo:.0f} ms "
    "in a fifo of 1000 packets; under codel they wait for {codel:.0f} ms.",
    {name: (lambda v, name=name: v.at(name, 25)) for name in ("fifo", "codel")},
    [
        Sketch(
            "The link falls from 20 to 4 Mbit/s",
            "time (s)",
            "mean delay in the queue (ms)",
            [
                Plot(policy, [(None, rate_drop(policy))], over(measure.over_time, "all", "delay_mean_s", 1e3))
                for policy in ("codel", "fifo")
            ],
            {"log_y": True, "shaded": [(15, 35)]},
        ),
    ],
)


def home(policy: str) -> Scenario:
    """A call beside four downloads, each in a queue of its own, on 10 Mbit/s."""
    classes = [{"name": "call", "limit": "1000p"}, {"name": "bulk", "count": 4, "limit": "250p"}]
    flows = [
        {"class": "call", "kind": "voice", "codec": "g711"},
        {"class": "bulk", "name": "bulk", "kind": "tcp", "cc": "cubic", "count": 4, "stagger": "100ms"},
    ]
    return scenario(policy, {"rate": "10Mbit", "delay": "20ms"}, classes, flows, 60, 5)


FQ_CODEL = Case(
    "fq_codel",
    "Cumulative distribution of the delays of a call's packets while four downloads share the link: shortest under fq_codel.",
    "A call shares 10 Mbit/s with four downloads. Half of its packets wait for {fq_codel:.1f} ms or less under fq_codel, "
    "{codel:.0f} ms under codel and {fifo:.0f} ms under fifo.",
    {name: (lambda v, name=name: v.rises_to(name, 50.0)) for name in ("fq_codel", "codel", "fifo")},
    [
        Sketch(
            "A call beside four downloads",
            "delay in the queue (ms)",
            "packets with at most this (%)",
            [
                Plot(policy, [(None, home(policy))], over(measure.cumulative, "call"))
                for policy in ("fq_codel", "codel", "fifo")
            ],
            {"log_x": True, "kind": "steps", "labels": "middle"},
        ),
    ],
)


def dual(rate_mbps: int) -> Scenario:
    """A stream of L4S packets at a tenth of the link beside four downloads with classic ECN."""
    classes = [{"name": "classic"}, {"name": "l4s", "l4s": "yes"}]
    flows = [
        {"class": "classic", "kind": "tcp", "cc": "cubic", "ecn": True, "count": 4, "stagger": "100ms"},
        {"class": "l4s", "kind": "poisson", "rate": f"{rate_mbps / 10}Mbit", "packet": "1200B"},
    ]
    return scenario("dualpi2", {"rate": f"{rate_mbps}Mbit", "delay": "10ms"}, classes, flows, 60, 10)


DUALPI2 = Case(
    "dualpi2",
    "Cumulative distributions of the delays of L4S and of classic packets at 20 and at 100 Mbit/s: the L4S packets hardly wait.",
    "A stream of L4S packets has a tenth of the link beside four downloads. At 20 Mbit/s 99 % of the L4S packets wait for "
    "{l4s_20:.1f} ms or less, 99 % of the classic ones for {classic_20:.0f} ms; at 100 Mbit/s it is {l4s_100:.1f} and {classic_100:.0f} ms.",
    {
        f"{name}_{rate}": (lambda v, name=name, panel=panel: v.rises_to(name, 99.0, panel))
        for panel, rate in enumerate((20, 100))
        for name in ("l4s", "classic")
    },
    [
        Sketch(
            f"{rate} Mbit/s",
            "delay in the queue (ms)",
            "packets with at most this (%)",
            [Plot(name, [(None, dual(rate))], over(measure.cumulative, name)) for name in ("l4s", "classic")],
            {"log_x": True, "kind": "steps", "labels": "middle"},
        )
        for rate in (20, 100)
    ],
)

CASES = [
    *(PSS, STRICT, FIFO, RR, WRR, DRR, PDS, PF, CODES, MLWDF, EXP_RULE, EXP_PF, CODEL, FQ_CODEL, DUALPI2),
    *(TAURAN_PF, TAURAN_CODES, UBMT_LIKE, BBS_LIKE, BPS_LIKE),
]
