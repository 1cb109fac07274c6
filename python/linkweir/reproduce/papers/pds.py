# SPDX-License-Identifier: BSD-3-Clause
"""Figures 4 to 11 of Gaidioz, Goutelle and Primet 2002: WTP and PLR with eight classes on 100 Mbit/s, and what lies
beyond.

Traffic of the report's section 4.1: each class sends 1100 packets/s; class 8, 1 and 5 in turn dip to 400 for half a
second at 1.5, 2.5 and 3.5 s; from 4 to 9 s all rise to 1500. Sources are near-constant: each gap varies by 30 %, class
i starts at (i-1) * 0.1 s. The report leaves out the packet size; only 1500 bytes (1538 on the wire) fits everything it
says about load. Coefficients 157 ... 19, one limit of 80 packets for all queues, history 1500. Rows are means over 20
seeds, with packets and losses added up before dividing.

Where delay and loss are both differentiated, class 1 is fastest and loses most: the report's section 4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from linkweir.reproduce.figure import Figure, FigureCase, Grid, Panel, Row, Scenario, Tables
from linkweir.reproduce.printed import Number, Printed
from linkweir.sizing import theory

LINK_BPS = 100e6
PACKET_BYTES = 1500
OVERHEAD_BYTES = 38
LESS_OVERHEAD_BYTES = 28
CLASSES = tuple(range(1, 9))
USUAL = (157, 78, 52, 39, 31, 26, 22, 19)
EQUAL = (1,) * 8
LARGE = (*USUAL[:7], 5)
"""The report's larger differentiation: 5 for the slowest class."""
STEEP = (255, 63, 36, 25, 19, 16, 13, 11)
LIMIT_PKTS = 80
K = 1500
SEEDS = 20
DURATION_S = 9.0
BIN_S = 0.1
WINDOW_S = 0.2
PHASES = ((0.9, 1.5), (1.0, 4.0), (4.0, 5.0), (4.0, 9.0), (8.0, 9.0))

ROW_KEYS = (
    "figure",
    "t_from_s",
    "t_to_s",
    "class",
    "delay_ms",
    "delay_ratio",
    "loss",
    "loss_ratio",
    "history",
    "limit",
)


@dataclass(frozen=True)
class PdsOptions:
    """The options of the command line that change the runs."""

    quick: bool = False
    duration_s: float | None = None
    seed: int = 1
    nseeds: int | None = None

    @property
    def seeds(self) -> range:
        """Seeds of the runs behind each row."""
        return range(self.seed, self.seed + (self.nseeds or (2 if self.quick else SEEDS)))


@dataclass(frozen=True)
class Variant:
    """One setting of a figure; `figure` names its panel."""

    figure: str
    delay: tuple[int, ...] = EQUAL
    loss: tuple[int, ...] = EQUAL
    history: str = "ring"
    k: int | None = K
    limit_pkts: int = LIMIT_PKTS
    ring: int = 1
    pps: float | None = None
    """Constant load of every class, packets/s; None is the report's traffic."""
    kind: str = "cbr"
    dips: tuple[int, ...] = (8, 1, 5)
    ramp: bool = True
    overhead_bytes: int = OVERHEAD_BYTES

    @property
    def capacity_pps(self) -> float:
        """Packets/s that the link carries."""
        return LINK_BPS / (8 * (PACKET_BYTES + self.overhead_bytes))

    @property
    def history_name(self) -> str:
        """History as rows name it, such as `ring 1500`."""
        return self.history if self.k is None else f"{self.history} {self.k}"


def report_rate(class_number: int, variant: Variant) -> Scenario | str:
    """Rate of a class over time, as the report describes it."""
    if variant.pps is not None:
        return _bit(variant.pps)
    points = [(0.0, 1100.0)]
    if class_number in variant.dips:
        start_s = 1.5 + (8, 1, 5).index(class_number)
        points += [(start_s, 1100.0), (start_s + 0.25, 400.0), (start_s + 0.5, 1100.0)]
    if variant.ramp:
        points += [(4.0, 1100.0), (9.0, 1500.0)]
    return {"lines": [[f"{t_s:g}s", _bit(pps)] for t_s, pps in dict(points).items()]}


def _bit(pps: float) -> str:
    return f"{round(pps * 8 * PACKET_BYTES)}bit"


def scenario(variant: Variant, seed: int, duration_s: float) -> Scenario:
    """The run behind a variant and a seed."""
    scheduler: Scenario = {"policy": "pds", "limit": f"{variant.limit_pkts}p"}
    if variant.history == "peld":
        scheduler |= {"history": "decayed", "early": "peld", "qmin": "20p"}
    else:
        scheduler |= {"history": variant.history}
    if variant.k is not None:
        scheduler["k"] = f"{variant.k}p"
    jitter = {"jitter": 0.3} if variant.kind == "cbr" else {}
    return {
        "name": f"WTP and PLR, {variant.figure}, {variant.history_name}",
        "duration": f"{duration_s:g}s",
        "interval": f"{BIN_S:g}s",
        "seed": seed,
        "link": {"rate": _rate(LINK_BPS), "overhead": f"{variant.overhead_bytes}B", "ring": variant.ring},
        "scheduler": scheduler,
        "class": [
            {"name": f"class {i}", "delay": d, "loss": lo}
            for i, d, lo in zip(CLASSES, variant.delay, variant.loss, strict=True)
        ],
        "flow": [
            {
                "name": f"source {i}",
                "class": f"class {i}",
                "kind": variant.kind,
                "packet": f"{PACKET_BYTES}B",
                "rate": report_rate(i, variant),
                "start": f"{100 * (i - 1)}ms",
                **jitter,
            }
            for i in CLASSES
        ],
    }


def _rate(value_bps: float) -> str:
    return f"{round(value_bps)}bit"


# --- From results to rows -------------------------------------------------------------------------------------------


@dataclass
class Sum:
    """Packets of a class in a stretch of time, over all seeds."""

    arrived: int = 0
    dropped: int = 0
    sent: int = 0
    waited_s: float = 0.0

    @property
    def loss(self) -> float | None:
        """Drops over arrivals of that time, as the report counts them."""
        return self.dropped / self.arrived if self.arrived else None

    @property
    def delay_s(self) -> float | None:
        """Mean wait of what was sent."""
        return self.waited_s / self.sent if self.sent else None


Bins = dict[tuple[int, int], Sum]


def sums(results: Iterable[Tables]) -> Bins:
    """Sums by bin number and class."""
    bins: Bins = {}
    for tables in results:
        for row in tables.rows("series"):
            key = (round(row["t_s"] / BIN_S), int(row["class"].split()[1]))
            total = bins.setdefault(key, Sum())
            total.arrived += row["arrived_pkts"]
            total.dropped += row["dropped_policy_pkts"] + row["dropped_limit_pkts"]
            total.sent += row["sent_pkts"]
            total.waited_s += row["sent_pkts"] * (row["delay_mean_s"] or 0.0)
    return bins


def sums_over(bins: Bins, from_s: float, to_s: float) -> dict[int, Sum]:
    """Sums of a stretch of time by class."""
    totals = {i: Sum() for i in CLASSES}
    for number in range(round(from_s / BIN_S), round(to_s / BIN_S)):
        for i in CLASSES:
            part = bins.get((number, i), Sum())
            totals[i].arrived += part.arrived
            totals[i].dropped += part.dropped
            totals[i].sent += part.sent
            totals[i].waited_s += part.waited_s
    return totals


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _window_rows(variant: Variant, bins: Bins, from_s: float, to_s: float) -> list[Row]:
    totals = sums_over(bins, from_s, to_s)
    return [
        {
            "figure": variant.figure,
            "t_from_s": from_s,
            "t_to_s": to_s,
            "class": i,
            "delay_ms": None if total.delay_s is None else 1e3 * total.delay_s,
            "delay_ratio": _ratio(total.delay_s, totals[1].delay_s),
            "loss": total.loss,
            "loss_ratio": _ratio(total.loss, totals[8].loss),
            "history": variant.history_name,
            "limit": variant.limit_pkts,
        }
        for i, total in totals.items()
    ]


def _by_variant(results: Sequence[tuple[FigureCase, Tables]]) -> dict[Variant, list[tuple[FigureCase, Tables]]]:
    groups: dict[Variant, list[tuple[FigureCase, Tables]]] = {}
    for case, tables in results:
        groups.setdefault(case.labels["variant"], []).append((case, tables))
    return groups


def rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """Rows of every variant: the phases first, then windows of 0.2 s.

    Delays are relative to class 1, losses to class 8; `loss` is a part of the arrivals.
    """
    made: list[Row] = []
    for variant, runs in _by_variant(results).items():
        bins = sums(tables for _, tables in runs)
        end_s = runs[0][0].labels["duration_s"]
        phases = PHASES if variant.pps is None else ((1.0, end_s),)
        windows = [(n * WINDOW_S, (n + 1) * WINDOW_S) for n in range(round(end_s / WINDOW_S))]
        for from_s, to_s in [*(p for p in phases if p[1] <= end_s), *windows]:
            made += _window_rows(variant, bins, round(from_s, 3), round(to_s, 3))
    return made


def is_window(row: Row) -> bool:
    """Whether a row covers one of the report's windows of 0.2 s, not a phase."""
    return bool(row["t_to_s"] - row["t_from_s"] < 1.5 * WINDOW_S)


def phases_only(made: list[Row]) -> list[Row]:
    """The rows that are printed."""
    return [row for row in made if not is_window(row)]


def history_rows(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """The distance of the loss ratios from nominal: over a phase, and in single windows of 0.2 s.

    `error_in_windows` is the mean of |ratio / nominal - 1| over windows, seeds and all eight classes (class 8's is 0);
    windows in which class 8 lost nothing are left out.
    """
    made: list[Row] = []
    for variant, runs in _by_variant(results).items():
        nominal = [variant.loss[7] / lo for lo in variant.loss]
        for phase, from_s, to_s in (("light", 1.0, 4.0), ("loaded", 4.0, 9.0)):
            if to_s > runs[0][0].labels["duration_s"]:
                continue
            totals = sums_over(sums(tables for _, tables in runs), from_s, to_s)
            errors, firsts = [], []
            for _, tables in runs:
                bins = sums([tables])
                for n in range(round(from_s / WINDOW_S), round(to_s / WINDOW_S)):
                    window = sums_over(bins, n * WINDOW_S, (n + 1) * WINDOW_S)
                    ratios = [_ratio(window[i].loss, window[8].loss) for i in CLASSES]
                    errors += [abs(r / nominal[i] - 1) for i, r in enumerate(ratios) if r is not None]
                    firsts += [ratios[0]] if ratios[0] is not None else []
            made.append(
                {
                    "figure": variant.figure,
                    "history": variant.history_name,
                    "phase": phase,
                    "nominal_ratio": nominal[0],
                    "ratio": _ratio(totals[1].loss, totals[8].loss),
                    "ratio_in_windows": sum(firsts) / len(firsts) if firsts else None,
                    "error_in_windows": sum(errors) / len(errors) if errors else None,
                }
            )
    return made


# --- Comparison with theory -----------------------------------------------------------------------------------------


def expected(variant: Variant, pps: float) -> dict[str, list[float]]:
    """Theory of a full limit under this many packets per second of each class; keys as in rows."""
    losses = theory.plr_losses(max(1 - variant.capacity_pps / (8 * pps), 0.0), variant.loss)
    served = [pps * (1 - loss) for loss in losses]
    delays_s = theory.wtp_delays_s(variant.limit_pkts, variant.delay, served, 1 / variant.capacity_pps, variant.ring)
    return {
        "delay_ms": [1e3 * delay_s for delay_s in delays_s],
        "delay_ratio": [delay_s / delays_s[0] for delay_s in delays_s],
        "loss": losses,
        "loss_ratio": [loss / losses[7] for loss in losses],
    }


MEAN_PPS = {(0.9, 1.5): 1100.0, (4.0, 5.0): 1140.0, (8.0, 9.0): 1460.0, (1.2, 1.4): 1100.0}
"""Mean load of a class in spans of the report's traffic in which all classes send at the same rate."""

SHOWN = {
    "delay_ms": ("delay, ms", 1.0),
    "delay_ratio": ("delay ratio", 1.0),
    "loss": ("loss, %", 100.0),
    "loss_ratio": ("loss ratio", 1.0),
}
Span = tuple[float, float]


def _summary(variants: Sequence[Variant], what: Sequence[str], spans: Sequence[Span]) -> Callable[[list[Row]], Grid]:
    """A grid with a line for each span, quantity and variant, a column for each class, and what was wanted above."""

    def grid(made: list[Row]) -> Grid:
        found: dict[tuple[str, str, int, Span], list[Row]] = {}
        for row in made:
            key = (row["figure"], row["history"], row["limit"], (row["t_from_s"], row["t_to_s"]))
            found.setdefault(key, []).append(row)
        lines: list[list[str]] = []
        for span, name in ((span, name) for span in spans for name in what):
            above: list[list[str]] = []
            # Lines of theory are left out where the variant before had the same ones.
            for v in variants:
                mine = found.get((v.figure, v.history_name, v.limit_pkts, span))
                if mine is None:
                    continue
                wanted = _wanted(v, span, name)
                lines += [line for line in wanted if line not in above]
                above = wanted
                label = f"{v.figure}, {v.history_name}, limit {v.limit_pkts}"
                lines.append(_line(span, name, label, [row[name] for row in mine]))
        return ["time (s)", "", "run", *(f"class {i}" for i in CLASSES)], lines

    return grid


def _wanted(variant: Variant, span: Span, name: str) -> list[list[str]]:
    """Lines of the ratios that the coefficients ask for, where theory has others, and of theory."""
    lines = []
    pps = variant.pps or MEAN_PPS.get(span)
    if pps is not None and not (variant.history == "peld" and name.startswith("delay")):
        lines.append(_line(span, name, "theory", expected(variant, pps)[name]))
    if name in ("delay_ratio", "loss_ratio"):
        asked = _line(span, name, "nominal", [_nominal(variant, i)[name] for i in CLASSES])
        if not lines or lines[0][3:] != asked[3:]:
            lines.insert(0, asked)
    return lines


def _nominal(variant: Variant, number: int) -> dict[str, float]:
    """Ratios that the coefficients ask for in a class."""
    return {
        "delay_ratio": variant.delay[0] / variant.delay[number - 1],
        "loss_ratio": variant.loss[7] / variant.loss[number - 1],
    }


def _line(span: Span, name: str, label: str, values: Sequence[float | None]) -> list[str]:
    title, scale = SHOWN[name]
    cells = ["-" if value is None else f"{scale * value:.3g}" for value in values]
    return [f"{span[0]:g} to {span[1]:g}", title, label, *cells]


# --- What the report prints -----------------------------------------------------------------------------------------

EXPECTED = ("2.01", "3.01", "4.02", "5.06", "6.03", "7.13", "8.26")
"""Ratios of section 4.2 that the usual coefficients ask for, cut off after two digits; the eighth is 1."""
EXPECTED_STEEP = ("4.04", "7.08", "10.20", "13.42", "15.93", "19.61", "23.18")
"""The same of section 4.7.3."""
LATE_LOAD = {"t_from_s": 8.0, "t_to_s": 9.0}
RING = f"ring {K}"


def _ratios(
    column: str, figure: str, printed: Sequence[str], source: str, *, again: bool, **where: object
) -> list[Number]:
    """Ratios of delay to class 1, the fastest, or of loss to class 8, which loses least."""
    of = "delay to class 1" if column == "delay_ratio" else "loss to class 8"
    return [
        Number(
            f"ratio of class {i}'s {of}, 8 to 9 s",
            text,
            "ratio",
            source,
            column,
            {"figure": figure, "history": RING, **LATE_LOAD, "class": i, **where},
            how="expected",
            shown=".3g",
            again=again,
        )
        for i, text in zip(CLASSES[1:] if column == "delay_ratio" else CLASSES[-2::-1], printed, strict=True)
    ]


NEAR_NOMINAL = 0.1
"""The part by which a ratio may differ from what its coefficients ask for, where differentiation has begun."""


def _begins_s(rows: Sequence[Row]) -> float | None:
    """The start of the first window in which all delay ratios are near what is asked for."""
    far: dict[float, float] = {}
    for row in rows:
        if row["figure"] == "4" and is_window(row) and row["delay_ratio"] is not None:
            wanted = USUAL[0] / USUAL[row["class"] - 1]
            far[row["t_from_s"]] = max(far.get(row["t_from_s"], 0.0), abs(row["delay_ratio"] / wanted - 1))
    return min((from_s for from_s, off in far.items() if 0 < off <= NEAR_NOMINAL), default=None)


def _slower(rows: Sequence[Row]) -> float | None:
    """How much slower the larger coefficient makes class 8, compared with class 1."""
    found = {
        (row["figure"], row["class"]): row["delay_ms"]
        for row in rows
        if (row["t_from_s"], row["t_to_s"]) == (1.2, 1.4) and row["delay_ms"] is not None
    }
    keys = [(figure, i) for figure in ("7-large", "7-usual") for i in (8, 1)]
    if not all(key in found for key in keys):
        return None
    large_8, large_1, usual_8, usual_1 = (found[key] for key in keys)
    return float(large_8 / large_1 / (usual_8 / usual_1))


def _lost(name: str, text: str, how: str) -> Number:
    return Number(
        f"loss of class 1, {text}, 1500 packets/s",
        "100",
        "%",
        "Section 4.7.2",
        "loss",
        {"figure": f"8-{name}-1500", "history": RING, "class": 1},
        how,  # type: ignore[arg-type]
        scale=100.0,
        shown=".3g",
        again=how != "exactly",
    )


def _by_history(history: str, word: str) -> Number:
    return Number(
        f"ratio of class 1's loss to class 8, 4 to 9 s, {history}",
        EXPECTED[-1],
        "ratio",
        "Sections 4.2 and 4.7.4",
        "loss_ratio",
        {"figure": "11", "history": history, "class": 1, "t_from_s": 4.0, "t_to_s": 9.0},
        how="expected",
        shown=".4g",
        again=True,
        remark=word,
    )


PRINTED = {
    "4": Printed(
        (
            *_ratios("delay_ratio", "4", EXPECTED, "Section 4.2", again=False),
            Number(
                "start of the differentiation; ours in steps of 0.2 s",
                "0.7",
                "s",
                "Section 4.4",
                how="about",
                shown=".1f",
                measure=_begins_s,
            ),
        ),
    ),
    "5": Printed(tuple(_ratios("loss_ratio", "5", EXPECTED, "Section 4.2", again=True))),
    "6": Printed(
        (
            *_ratios("delay_ratio", "6", EXPECTED, "Section 4.2", again=True),
            *_ratios("loss_ratio", "6", EXPECTED, "Section 4.2", again=True),
        )
    ),
    "7": Printed(
        (
            Number(
                "class 8 slower with 5 than with 19, compared with class 1",
                "4",
                "ratio",
                "Section 4.7.1",
                how="about",
                measure=_slower,
            ),
        )
    ),
    "8": Printed(
        (
            _lost("none", "no delay differentiation", "exactly"),
            _lost("usual", "usual delay differentiation", "at most"),
            _lost("large", "large delay differentiation", "at most"),
        ),
        remark="The report does not print the load.",
    ),
    "9": Printed(
        tuple(
            replace(number, what=f"{number.what}, limit 320")
            for number in _ratios("delay_ratio", "9-ring2", EXPECTED_STEEP, "Section 4.7.3", again=False, limit=320)
        ),
        remark="The report's driver took two packets at a time.",
    ),
    "10": Printed(),
    "11": Printed(
        (
            _by_history("ring 1500", '"pretty fine"'),
            _by_history("ring 5000", '"good", oscillating'),
            _by_history("ring 10000", '"good", oscillating'),
        )
    ),
}
"""By figure. Expected ratios are those that the report wants and says it finds; it prints no measured ones."""


# --- The figures ----------------------------------------------------------------------------------------------------


def _nominal_rows(variant: Variant, duration_s: float) -> list[Row]:
    """Flat lines at the ratios the coefficients ask for."""
    return [
        {
            "figure": variant.figure,
            "history": variant.history_name,
            "limit": variant.limit_pkts,
            "class": i,
            "t_from_s": t_s,
            "t_to_s": t_s + WINDOW_S,
            **_nominal(variant, i),
        }
        for i in CLASSES
        for t_s in (0.0, duration_s)
    ]


def _time_panel(title: str, y: str, y_label: str, top: float | None = None, **where: object) -> Panel:
    return Panel(
        title,
        "t_from_s",
        y,
        "time (s)",
        y_label,
        ("class",),
        theory=y if y.endswith("ratio") else None,
        where=where,
        lines=True,
        top=top,
        keep=is_window,
    )


DELAY, DELAY_RATIO = ("delay_ms", "delay (ms)"), ("delay_ratio", "ratio to class 1")
LOSS, LOSS_RATIO = ("loss", "part of the arrivals"), ("loss_ratio", "ratio to class 8")
TOPS = {"delay_ratio": 12.0, "loss_ratio": 14.0}


SPANS: tuple[Span, ...] = ((0.9, 1.5), (4.0, 5.0), (8.0, 9.0))


@dataclass(frozen=True)
class Plot:
    """A figure of the report.

    Attributes:
        title: what it shows.
        claim: what the report says of it.
        variants: what is run.
        panels: what is drawn.
        what: quantities of its summary; it has none without.
        spans: times of its summary.
        details: whether the error of the loss ratios is worked out.
    """

    title: str
    claim: str
    variants: tuple[Variant, ...]
    panels: tuple[Panel, ...]
    what: tuple[str, ...] = ()
    spans: tuple[Span, ...] = SPANS
    details: bool = False


def _figure(name: str, plot: Plot, options: PdsOptions) -> Figure:
    duration_s = options.duration_s or DURATION_S
    cases = tuple(
        FigureCase({"variant": v, "seed": seed, "duration_s": duration_s}, scenario(v, seed, duration_s))
        for v in plot.variants
        for seed in options.seeds
    )
    return Figure(
        name,
        plot.title,
        plot.claim,
        cases,
        rows,
        plot.panels,
        ROW_KEYS,
        reference=lambda: [row for v in plot.variants for row in _nominal_rows(v, duration_s)],
        details=history_rows if plot.details else None,
        details_title=DETAILS_TITLE if plot.details else "",
        table_rows=phases_only,
        summary=_summary(plot.variants, plot.what, plot.spans) if plot.what else None,
        terminal_table=bool(plot.what),
        printed=PRINTED[name],
    )


DETAILS_TITLE = "Loss ratio of class 1 to class 8, and error of all ratios in windows of 0.2 s"


def _panels(variants: Sequence[Variant], *what: tuple[str, str]) -> tuple[Panel, ...]:
    names = {"delay_ms": "delays", "delay_ratio": "delay ratios", "loss": "loss", "loss_ratio": "loss ratios"}
    return tuple(
        _time_panel(
            f"{variant.figure}: {names[y]}, {variant.history_name}",
            y,
            label,
            TOPS.get(y),
            figure=variant.figure,
            history=variant.history_name,
        )
        for variant in variants
        for y, label in what
    )


def _with_histories(variant: Variant) -> tuple[Variant, ...]:
    """The report's ring, and besides it decayed counters and proportional early loss with debts."""
    return tuple(replace(variant, history=history) for history in ("ring", "decayed", "peld"))


def _with_lengths(name: str) -> tuple[Variant, ...]:
    """Histories of different length, and the other histories."""
    base = Variant(name, loss=USUAL[::-1])
    return (
        *(replace(base, k=k) for k in (100, 400, 800, 1500, 5000, 10000)),
        replace(base, history="infinite", k=None),
        *(replace(base, history="decayed", k=k) for k in (1500, 5000)),
        replace(base, history="peld"),
    )


DELAY_ALONE = (Variant("4", delay=USUAL),)
LOSS_ALONE = _with_histories(Variant("5", loss=USUAL[::-1]))
BOTH = _with_histories(Variant("6", delay=USUAL, loss=USUAL[::-1]))
FALLING_LOAD = (
    Variant("7-usual", delay=USUAL, dips=(8,), ramp=False),
    Variant("7-large", delay=LARGE, dips=(8,), ramp=False),
)
PLOTS = {
    "4": Plot(
        "Delay differentiation with equal loss coefficients",
        "Delays keep the ratios 1, 2.01 ... 8.26 from about 0.7 s on, also while a class changes its rate.",
        DELAY_ALONE,
        _panels(DELAY_ALONE, DELAY, DELAY_RATIO),
        what=("delay_ms", "delay_ratio", "loss"),
    ),
    "5": Plot(
        "Loss differentiation with equal delay coefficients",
        "Ratios are kept under load (from 4 s on), less well where losses are near zero.",
        LOSS_ALONE,
        _panels(LOSS_ALONE, LOSS, LOSS_RATIO),
        what=("loss", "loss_ratio", "delay_ms"),
    ),
    "6": Plot(
        "Delay and loss differentiation at once, the fastest class losing most",
        "Both are kept at the same time.",
        BOTH,
        _panels(BOTH, DELAY_RATIO, LOSS_RATIO),
        what=("delay_ms", "delay_ratio", "loss", "loss_ratio"),
        spans=((8.0, 9.0),),
    ),
    "7": Plot(
        "Only the slowest class changes its rate (1.5 to 2 s): usual and large delay differentiation",
        "With coefficient 19 for class 8 delays fall with its load; with 5 they first rise.",
        FALLING_LOAD,
        _panels(FALLING_LOAD, DELAY),
        what=("delay_ms",),
        spans=((1.2, 1.4), (1.4, 1.6), (1.6, 1.8), (1.8, 2.0), (2.0, 2.2)),
    ),
    "10": Plot(
        "Loss under histories of 100 to 10000 arrivals, and other histories",
        "100 is too short to differentiate well.",
        _with_lengths("10"),
        _panels(_with_lengths("10"), LOSS),
        details=True,
    ),
    "11": Plot(
        "Loss ratios under histories of 100 to 10000 arrivals, and other histories",
        "400 and 800 give wrong ratios, 1500 fair ones; 5000 and 10000 good ones under load but not in the dips.",
        _with_lengths("11"),
        _panels(_with_lengths("11"), LOSS_RATIO),
        details=True,
    ),
}


LOSS_BEYOND_ALL = (5, *USUAL[::-1][1:])
"""Class 1 ought to lose more than it sends."""


def _windows_of(pps: int) -> Callable[[Row], bool]:
    return lambda row: is_window(row) and row["figure"].endswith(f"-{pps}")


def figure_8(options: PdsOptions) -> Figure:
    """Delay differentiation disturbs a large loss differentiation."""
    variants = tuple(
        Variant(
            f"8-{name}-{pps}" + (f"-{overhead}B" if overhead != OVERHEAD_BYTES else ""),
            delay=delay,
            loss=LOSS_BEYOND_ALL,
            pps=float(pps),
            kind="poisson",
            history=history,
            overhead_bytes=overhead,
        )
        for overhead in ((OVERHEAD_BYTES,) if options.quick else (OVERHEAD_BYTES, LESS_OVERHEAD_BYTES))
        for pps in (1500, 1300)
        for history in ("ring", "peld")
        for name, delay in (("none", EQUAL), ("usual", USUAL), ("large", LARGE))
    )
    panels = tuple(
        Panel(
            f"class 1's loss, 8 x {pps} packets/s, {history}",
            "t_from_s",
            "loss",
            "time (s)",
            "part of the arrivals",
            ("figure",),
            where={"class": 1, "history": f"{history} {K}"},
            lines=True,
            top=1.0,
            keep=_windows_of(pps),
        )
        for pps in (1500, 1300)
        for history in ("ring", "peld")
    )
    plot = Plot(
        "Loss of a class that ought to lose more than all, under no, usual and large delay differentiation",
        "It loses everything only without delay differentiation.",
        variants,
        panels,
        what=("loss", "loss_ratio"),
        spans=((1.0, options.duration_s or DURATION_S),),
    )
    return _figure("8", plot, options)


def figure_9(options: PdsOptions) -> Figure:
    """The limit bounds how exact ratios are."""
    variants = tuple(
        Variant("9" if ring == 1 else f"9-ring{ring}", delay=STEEP, limit_pkts=limit, ring=ring)
        for ring in (1, 2, 16)
        for limit in (40, 80, 160, 320)
    )
    panels = (
        Panel(
            "class 8 to class 1, 8 to 9 s (nominal 23.18)",
            "limit",
            "delay_ratio",
            "limit, packets",
            "ratio",
            ("figure",),
            theory="delay_ratio",
            where={"class": 8, "t_from_s": 8.0, "t_to_s": 9.0},
            lines=True,
            top=25.0,
        ),
        *(
            _time_panel(
                f"9: delay ratios, limit {limit}", "delay_ratio", "ratio to class 1", 30.0, figure="9", limit=limit
            )
            for limit in (40, 80, 160, 320)
        ),
    )
    plot = Plot(
        "Limit and driver ring against steep delay coefficients",
        "The longer the limit, the more exact the ratios; put down to oscillating sources.",
        variants,
        panels,
        what=("delay_ratio",),
        spans=((8.0, 9.0),),
    )
    figure = _figure("9", plot, options)
    nominal = figure.reference
    assert nominal is not None
    return replace(figure, reference=lambda: [*nominal(), *map(_resolution_row, variants)])


def _resolution_row(variant: Variant) -> Row:
    """Ratio of class 8 to class 1 that WTP's resolution allows."""
    return {
        "figure": variant.figure,
        "history": variant.history_name,
        "limit": variant.limit_pkts,
        "class": 8,
        "t_from_s": 8.0,
        "t_to_s": 9.0,
        "delay_ratio": expected(variant, MEAN_PPS[8.0, 9.0])["delay_ratio"][7],
    }


_MAKERS: dict[str, Callable[[PdsOptions], Figure]] = {
    **{name: partial(_figure, name, plot) for name, plot in PLOTS.items()},
    "8": figure_8,
    "9": figure_9,
}
FIGURES = {name: _MAKERS[name] for name in sorted(_MAKERS, key=int)}
