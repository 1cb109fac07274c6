# SPDX-License-Identifier: BSD-3-Clause
"""The figures themselves, run: against theory, against rates measured with independent models, and against such a
model.

The values in tables here come from packet-level prototypes written before this code; they have two decimals, so half a
unit of the last digit is allowed besides the relative bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from proportional_model import Link, losses

import linkweir
from linkweir.reproduce import execute, page
from linkweir.reproduce.figure import Figure, Row, Scenario, identity
from linkweir.reproduce.papers import pds, pss
from linkweir.sizing import theory

slow = pytest.mark.slow
Grid = dict[tuple[float, float], Row]


KEPT: dict[str, linkweir.Result] = {}
"""The latest runs: figures whose tests follow one another share many."""
MOST_KEPT = 200


def ran(scenarios: Sequence[Scenario]) -> list[linkweir.Result]:
    """The results of scenarios; those that were run for a test before are not run again."""
    missing = {identity(scenario): scenario for scenario in scenarios if identity(scenario) not in KEPT}
    KEPT.update(zip(missing, linkweir.run_many(list(missing.values())), strict=True))
    found = [KEPT[identity(scenario)] for scenario in scenarios]
    while len(KEPT) > MOST_KEPT:
        del KEPT[next(iter(KEPT))]
    return found


def shown(figure: Figure) -> page.FigureResult:
    keys = [case.key for case in figure.cases]
    results = ran([case.scenario for case in figure.cases])
    return execute.show(figure, execute.Outcome(dict(zip(keys, results, strict=True)), complete=True))


def grid(rows: list[Row], scheduler: str) -> Grid:
    return {(r["ef_share"], r["k_af"]): r for r in rows if r["scheduler"] == scheduler}


def within(value: float, wanted: float, relative: float, rounding: float = 0.0) -> bool:
    return abs(value - wanted) <= relative * abs(wanted) + rounding


def assert_theory(rows: list[Row], relative: float, names: tuple[str, ...] = ("af", "cs0")) -> None:
    """Every rate within a relative bound; where theory says 0 or nearly, within that part of 1 Mbit/s."""
    for row, name in itertools.product(rows, names):
        wanted = row[f"{name}_theory_mbps"]
        assert abs(row[f"{name}_mbps"] - wanted) <= relative * max(wanted, 1.0), row


# --- Fixed capacity -------------------------------------------------------------------------------------------------


def test_corners_of_figures_5_and_6() -> None:
    """A few points over 30 s; the slow tests have all."""
    settings = pss.PssOptions(quick=True)
    for make in (pss.FIGURES["5"], pss.FIGURES["6"]):
        figure = make(settings)
        rows = shown(figure).rows
        assert len(rows) == 30
        assert_theory(rows, 0.005)


@slow
@pytest.mark.parametrize("make", [pss.FIGURES["5"], pss.FIGURES["6"]])
def test_all_points_at_fixed_capacity(make: Callable[[pss.PssOptions], Figure]) -> None:
    rows = shown(make(pss.PssOptions())).rows
    assert len(rows) == 54
    for row in rows:
        ef_bps = row["ef_share"] * 20e6
        if row["scheduler"] == "pss":
            reserved = theory.reserved_bps(20e6, row["ef_expected_share"] * 20e6, row["k_af"])
            wanted = theory.pss_rates(20e6, ef_bps, reserved)
        else:
            wanted = theory.drr_rates(20e6, ef_bps, row["k_af"])
        assert within(row["af_mbps"] * 1e6, wanted.af_bps, 0.005), row
        # where CS0 ought to get nothing, a packet or so a second slips through between two of AF
        assert within(row["cs0_mbps"] * 1e6, wanted.cs0_bps, 0.005, rounding=5e3), row


def test_two_controlled_queues() -> None:
    rows = {r["class"]: r["rate_mbps"] for r in shown(pss.table_two_controlled(pss.PssOptions())).rows}
    assert rows["af1"] == pytest.approx(6.0, rel=0.005)
    assert rows["af2"] == pytest.approx(2.0, rel=0.005)
    assert rows["cs0"] == pytest.approx(0.0, abs=0.001)


def test_bursts_of_the_driver() -> None:
    """Target 8: the older algorithm gives AF more the more packets are pulled at once, the newer one never."""
    rows = shown(pss.table_ring(pss.PssOptions())).rows
    wanted = {
        "pss-early-ignored": dict(zip((1, 2, 4, 8, 16), (8.00, 9.19, 10.91, 12.00, 12.63), strict=True)),
        "pss": dict.fromkeys((1, 2, 4, 8, 16), 8.00),
    }
    assert len(rows) == 10
    for row in rows:
        assert within(row["af_mbps"], wanted[row["scheduler"]][row["ring_pkts"]], 0.005), row


# --- Changing capacity ----------------------------------------------------------------------------------------------

MEASURED = [
    # EF, K, target, AF with: no memory and no branch, no memory and branch, memory and no branch, memory and branch
    (0.25, 0.10, 1.50, 1.51, 1.50, 1.51, 1.50),
    (0.25, 0.50, 7.50, 7.61, 7.45, 7.66, 7.50),
    (0.25, 0.81, 12.15, 11.74, 11.29, 12.64, 12.15),
    (0.25, 0.90, 13.50, 12.70, 12.14, 14.21, 13.50),
    (0.50, 0.10, 1.00, 0.91, 0.91, 1.00, 1.00),
    (0.50, 0.50, 5.00, 4.30, 4.27, 5.03, 5.00),
    (0.50, 0.81, 8.10, 6.56, 6.47, 8.25, 8.10),
    (0.50, 0.90, 9.00, 7.13, 7.02, 9.20, 9.00),
    (0.75, 0.10, 0.50, 0.31, 0.31, 0.50, 0.50),
    (0.75, 0.50, 2.50, 1.43, 1.43, 2.51, 2.50),
    (0.75, 0.81, 4.05, 2.21, 2.20, 4.08, 4.05),
    (0.75, 0.90, 4.50, 2.42, 2.40, 4.54, 4.50),
]  # fmt: skip


@slow
def test_memory_and_branch_over_both_periods() -> None:
    """Figures 7 and 9 and the fourth combination, over 915 s, within 1 %."""
    kinds = [("pss-early-ignored", None), ("pss", None), ("pss-early-ignored", 15.0), ("pss", 15.0)]
    settings = pss.PssOptions()
    cells = [
        (row[3 + i], pss.Point(scheduler, row[0], row[0], row[1], memory_s, changing=True))
        for row in MEASURED
        for i, (scheduler, memory_s) in enumerate(kinds)
    ]
    results = ran([pss.scenario(point, settings, 915.0) for _, point in cells])
    for (wanted, point), result in zip(cells, results, strict=True):
        rate = next(r["rate_bps"] for r in result.rows("classes") if r["class"] == "af") / 1e6
        assert within(rate, wanted, 0.01, 0.005), (point, rate, wanted)


@slow
def test_figure_11_over_both_periods_and_over_100_s() -> None:
    """AF 10 K and CS0 10 (1 - K) over 915 s; over 100 s what was measured elsewhere."""
    figure = shown(pss.FIGURES["11"](pss.PssOptions()))
    for row in figure.rows:
        assert within(row["af_mbps"], 10 * row["k_af"], 0.01), row
        assert within(row["cs0_mbps"], 10 * (1 - row["k_af"]), 0.01), row
    short = {
        "pss": [1.00, 2.00, 2.97, 3.94, 4.90, 5.86, 6.82, 7.77, 8.73],
        "dwrr": [0.98, 1.97, 2.95, 3.94, 4.92, 5.90, 6.89, 7.87, 8.86],
    }
    for scheduler, wanted in short.items():
        rates = [r["af_mbps"] for r in figure.other if r["scheduler"] == scheduler]
        assert all(within(rate, w, 0.005, 0.005) for rate, w in zip(rates, wanted, strict=True)), rates


@slow
def test_figure_12_over_both_periods() -> None:
    rows = shown(pss.FIGURES["12"](pss.PssOptions())).rows
    ours, theirs = grid(rows, "pss"), grid(rows, "dwrr")
    late_af = [1.00, 2.00, 3.00, 4.00, 4.99, 5.65, 5.66, 5.66, 5.67]
    late_cs0 = [4.67, 3.67, 2.67, 1.67, 0.68, 0.02, 0.01, 0.01, 0.01]
    drr_af = [0.57, 1.13, 1.70, 2.27, 2.84, 3.40, 3.97, 4.54, 5.11]
    for i, k in enumerate(pss.TENTHS):
        for ef in (0.25, 0.5):
            assert within(ours[ef, k]["af_mbps"], 10 * k, 0.01), (ef, k)
            assert within(ours[ef, k]["cs0_mbps"], 20 * (1 - ef) - 10 * k, 0.01), (ef, k)
            assert within(theirs[ef, k]["af_mbps"], 20 * (1 - ef) * k, 0.01), (ef, k)
        assert within(ours[0.75, k]["af_mbps"], late_af[i], 0.01, 0.005), k
        assert within(ours[0.75, k]["cs0_mbps"], late_cs0[i], 0.01, 0.01), k
        assert within(theirs[0.75, k]["af_mbps"], drr_af[i], 0.01, 0.005), k


@slow
def test_memory_table() -> None:
    """Error of AF in per cent over the length of the memory, EF 0.75 and K 0.81."""
    wanted = {0.1: -44, 1: -31, 2: -22, 3: -15, 4: -8.4, 5: -3.9, 6.1: -1.0, 7.5: 0.0, 15: 0.0}
    rows = [r for r in shown(pss.table_memory(pss.PssOptions())).rows if r["ef_share"] == 0.75]
    for row in rows:
        assert 100 * (row["af_mbps"] / 4.05 - 1) == pytest.approx(wanted[row["memory_s"]], abs=0.6), row


def seconds(figure: Figure, key: str, value: object) -> dict[float, Row]:
    return {r["t_s"]: r for r in shown(figure).rows if r[key] == value}


def test_figure_8_series() -> None:
    """Starvation, catching up, target: AF and CS0 second by second."""
    figure = pss.FIGURES["8"](pss.PssOptions(quick=True))
    memory, none = seconds(figure, "memory_s", 15.0), seconds(figure, "memory_s", None)
    for rows, wanted in (
        (memory, {5: (0, 0), 6: (0, 0), 7: (0, 0), 9: (9.1, 0.0), 14: (17.0, 0.0), 15: (7.7, 11.5), 27: (16.6, 0.0)}),
        (none, {9: (4.0, 5.1), 14: (4.1, 12.9), 27: (4.0, 12.6)}),
    ):
        for t_s, (af, cs0) in wanted.items():
            assert rows[t_s]["af_mbps"] == pytest.approx(af, abs=0.15), t_s
            assert rows[t_s]["cs0_mbps"] == pytest.approx(cs0, abs=0.15), t_s
    assert memory[0.0]["level"] == pytest.approx(60.75e6, rel=1e-6)
    assert min(r["level"] for r in memory.values()) == pytest.approx(40e6, abs=2.5e6)
    assert max(r["level"] for r in memory.values()) == pytest.approx(61e6, abs=0.5e6)
    assert none[6.0]["level"] == 0


def test_figure_10_series() -> None:
    """AF with and without charging packets that end early, around the capacity's peak at 15 s."""
    figure = pss.FIGURES["10"](pss.PssOptions(quick=True))
    older, ours = seconds(figure, "scheduler", "pss-early-ignored"), seconds(figure, "scheduler", "pss")
    for t_s, (before, after) in {0: (13.3, 12.2), 14: (14.4, 12.2), 15: (13.8, 12.2), 29: (13.3, 12.1)}.items():
        assert older[t_s]["af_mbps"] == pytest.approx(before, abs=0.15), t_s
        assert ours[t_s]["af_mbps"] == pytest.approx(after, abs=0.15), t_s
    assert older[15]["cs0_mbps"] == pytest.approx(9.8, abs=0.15)
    assert ours[15]["cs0_mbps"] == pytest.approx(11.4, abs=0.15)
    for rows, t_s in itertools.product((older, ours), (9, 10, 11, 12)):
        assert 13.35 <= rows[t_s]["af_mbps"] <= 15.45
        assert rows[t_s]["cs0_mbps"] == 0


# --- TCP ------------------------------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("make", [pss.FIGURES["5"], pss.FIGURES["6"]])
def test_tcp_fills_what_pss_reserves(make: Callable[[pss.PssOptions], Figure]) -> None:
    """AF within 5 % of theory; under DWRR it follows EF, under PSS it does not."""
    result = shown(make(pss.PssOptions("tcp")))
    ours, theirs = grid(result.rows, "pss"), grid(result.rows, "dwrr")
    assert len(ours) == len(theirs) == 27
    assert_theory(list(ours.values()), 0.05, ("af",))
    assert len(result.details) == 108
    for k in pss.TENTHS:
        assert theirs[0.25, k]["af_mbps"] > 1.35 * theirs[0.5, k]["af_mbps"] > 1.8 * theirs[0.75, k]["af_mbps"]
    if make is pss.FIGURES["6"]:
        for k in (0.1, 0.2, 0.3, 0.4, 0.5):
            rates = [ours[ef, k]["af_mbps"] for ef in pss.SHARES]
            assert max(rates) < 1.05 * min(rates)


@slow
def test_tcp_fills_its_share_when_capacity_and_ef_change() -> None:
    """No class stays more than 5 % below theory; the report would name one that did."""
    result = shown(pss.FIGURES["12"](pss.PssOptions("tcp")))
    assert len(result.details) == 108
    assert result.notable == []
    assert result.figure.notable is not None
    for row in result.details:
        assert row["rate_mbps"] >= 0.95 * row["theory_mbps"]
        assert result.figure.notable({**row, "rate_mbps": 0.94 * row["theory_mbps"]}) == (row["theory_mbps"] > 0)


# --- Proportional delay and loss ------------------------------------------------------------------------------------


def phase(rows: list[Row], from_s: float, to_s: float, **keys: object) -> list[Row]:
    chosen = [
        r
        for r in rows
        if (r["t_from_s"], r["t_to_s"]) == (from_s, to_s) and all(r[key] == value for key, value in keys.items())
    ]
    assert [r["class"] for r in chosen] == list(pds.CLASSES)
    return chosen


DELAYS_MS = [2.16, 4.29, 6.40, 8.51, 10.7, 12.7, 15.0, 17.4]
DELAY_RATIOS = [1, 1.98, 2.96, 3.93, 4.94, 5.88, 6.93, 8.02]
LOADED_LOSSES = [54.7, 47.3, 40.2, 33.7, 26.9, 20.3, 13.6, 6.8]
LOADED_LOSS_RATIOS = [8.00, 6.92, 5.88, 4.92, 3.93, 2.97, 1.98, 1]


def test_figure_4_delays() -> None:
    rows = shown(pds.FIGURES["4"](pds.PdsOptions(quick=True))).rows
    for span, loss in (((0.9, 1.5), 0.077), ((8.0, 9.0), 0.304)):
        for row, delay_ms, ratio in zip(phase(rows, *span), DELAYS_MS, DELAY_RATIOS, strict=True):
            assert row["delay_ms"] == pytest.approx(delay_ms, rel=0.03)
            assert row["delay_ratio"] == pytest.approx(ratio, rel=0.03)
            assert row["loss"] == pytest.approx(loss, abs=0.005)


@slow
def test_figure_5_losses() -> None:
    """Losses within half a point in all phases, ratios under load within 3 %; delays all equal."""
    rows = shown(pds.FIGURES["5"](pds.PdsOptions())).rows
    wanted = {
        (0.9, 1.5): [13.7, 11.8, 10.0, 8.6, 6.8, 5.2, 3.6, 2.0],
        (4.0, 5.0): [19.5, 16.8, 14.3, 12.0, 9.7, 7.3, 4.9, 2.7],
        (8.0, 9.0): LOADED_LOSSES,
    }
    for span, losses_percent in wanted.items():
        for row, percent in zip(phase(rows, *span, history="ring 1500"), losses_percent, strict=True):
            assert 100 * row["loss"] == pytest.approx(percent, abs=0.5), row
            assert row["delay_ms"] == pytest.approx(9.64, rel=0.03)
    for history in ("ring 1500", "decayed 1500", "peld 1500"):
        for row, ratio in zip(phase(rows, 8.0, 9.0, history=history), LOADED_LOSS_RATIOS, strict=True):
            assert row["loss_ratio"] == pytest.approx(ratio, rel=0.03), row


@slow
def test_figure_11_history() -> None:
    """Class 1 to class 8 in windows of 0.2 s, and the mean error of all ratios there, in the loaded phase."""
    result = shown(pds.FIGURES["11"](pds.PdsOptions()))
    found = {r["history"]: r for r in result.details if r["phase"] == "loaded"}
    wanted = {
        "ring 100": (4.4, 35), "ring 400": (6.7, 15), "ring 800": (7.5, 9), "ring 1500": (7.8, 10),
        "ring 5000": (8.3, 11), "ring 10000": (8.5, 14), "infinite": (8.8, 5), "decayed 1500": (8.05, 4),
        "decayed 5000": (8.2, 3),
    }  # fmt: skip
    for history, (ratio, error_percent) in wanted.items():
        assert found[history]["ratio_in_windows"] == pytest.approx(ratio, rel=0.03), history
        assert 100 * found[history]["error_in_windows"] == pytest.approx(error_percent, abs=1.5), history


@slow
def test_figure_6_both_at_once() -> None:
    rows = shown(pds.FIGURES["6"](pds.PdsOptions())).rows
    delays_ms = [1.95, 3.85, 5.75, 7.63, 9.57, 11.4, 13.4, 15.6]
    delay_ratios = [1, 1.98, 2.95, 3.92, 4.92, 5.86, 6.90, 7.99]
    loss_ratios = [7.99, 6.90, 5.85, 4.92, 3.93, 2.97, 1.98, 1]
    for i, row in enumerate(phase(rows, 8.0, 9.0, history="ring 1500")):
        assert row["delay_ms"] == pytest.approx(delays_ms[i], rel=0.03)
        assert row["delay_ratio"] == pytest.approx(delay_ratios[i], rel=0.03)
        assert 100 * row["loss"] == pytest.approx(LOADED_LOSSES[i], abs=0.5)
        assert row["loss_ratio"] == pytest.approx(loss_ratios[i], rel=0.03)
    early = phase(rows, 4.0, 9.0, history="peld 1500")
    late = phase(rows, 4.0, 9.0, history="ring 1500")
    assert 2 < late[0]["delay_ms"] / early[0]["delay_ms"] < 3


@slow
def test_figure_7_delays_rise_while_load_falls() -> None:
    rows = [r for r in shown(pds.FIGURES["7"](pds.PdsOptions())).rows if pds.is_window(r)]

    def window(figure: str, from_s: float, class_number: int) -> float:
        return next(
            r["delay_ms"]
            for r in rows
            if (r["figure"], r["class"]) == (figure, class_number) and r["t_from_s"] == pytest.approx(from_s)
        )

    assert window("7-large", 1.2, 1) == pytest.approx(1.36, rel=0.03)
    assert window("7-large", 1.6, 1) > 1.15 * window("7-large", 1.2, 1)
    assert window("7-large", 1.6, 8) > 1.15 * window("7-large", 1.2, 8)
    assert window("7-usual", 1.2, 1) == pytest.approx(2.16, rel=0.03)
    assert window("7-usual", 1.6, 1) == pytest.approx(2.23, rel=0.03)
    assert window("7-large", 2.2, 1) == pytest.approx(window("7-large", 1.2, 1), rel=0.03)


@slow
def test_figure_9_limit_and_ring() -> None:
    rows = shown(pds.FIGURES["9"](pds.PdsOptions())).rows
    wanted = {"9": (20.0, 21.5, 22.3, 22.7), "9-ring2": (17.8, 20.2, 21.6, 22.4), "9-ring16": (5.4, 10.3, 14.5, 18.2)}
    for figure, ratios in wanted.items():
        for limit, ratio in zip((40, 80, 160, 320), ratios, strict=True):
            last = phase(rows, 8.0, 9.0, figure=figure, limit=limit)[7]
            assert within(last["delay_ratio"], ratio, 0.03, 0.05), (figure, limit)


@slow
@pytest.mark.parametrize(
    ("name", "pps", "history", "delay"),
    [
        ("8-usual-1500", 1500.0, "ring", pds.USUAL),
        pytest.param("8-usual-1500", 1500.0, "peld", pds.USUAL, marks=pytest.mark.long),
        pytest.param("8-large-1300", 1300.0, "ring", pds.LARGE, marks=pytest.mark.long),
        ("8-none-1300", 1300.0, "peld", pds.EQUAL),
    ],
)
def test_figure_8_against_a_model(name: str, pps: float, history: str, delay: tuple[int, ...]) -> None:
    """Ratios of class 1 to class 8 within 3 % of a plain model; losses within half a point where load hardly varies."""
    variant = pds.Variant(name, delay=delay, loss=pds.LOSS_BEYOND_ALL, pps=pps, kind="poisson", history=history)
    seeds = range(1, 5)
    runs = [losses(Link(delay, pds.LOSS_BEYOND_ALL, history), pps, seed) for seed in seeds]
    model = [sum(run[i] for run in runs) / len(runs) for i in range(8)]
    results = ran([pds.scenario(variant, seed, 9.0) for seed in range(1, 21)])
    bins = pds.sums(results)
    ours = [total.loss for total in pds.sums_over(bins, 1.0, 9.0).values()]
    assert ours[0] / ours[7] == pytest.approx(model[0] / model[7], rel=0.03)
    if pps == 1500.0:
        assert ours[0] == pytest.approx(model[0], abs=0.005)


@slow
def test_figure_8_delay_differentiation_disturbs_loss() -> None:
    """Without it class 1 loses all; with it the ring lets packets through, and early loss does not."""
    rows = shown(pds.FIGURES["8"](pds.PdsOptions())).rows
    lost = {
        (r["figure"], r["history"]): (100 * r["loss"], r["loss_ratio"])
        for r in rows
        if r["class"] == 1 and (r["t_from_s"], r["t_to_s"]) == (1.0, 9.0)
    }
    assert lost["8-none-1500", "ring 1500"][0] == pytest.approx(99.8, abs=0.5)
    for name, percent in (("none", 99.8), ("usual", 99.4), ("large", 99.3)):
        assert lost[f"8-{name}-1500", "peld 1500"][0] == pytest.approx(percent, abs=0.5)
    for name, ratio in (("none", 26.2), ("usual", 21.8), ("large", 19.0)):
        assert lost[f"8-{name}-1300", "ring 1500"][1] == pytest.approx(ratio, rel=0.03)
    # The losses known from an earlier prototype are those of a link of 8180 packets/s: 28 bytes per packet, not
    # 38. One of them, 71.8 % under large differentiation, is 0.9 points above ours and 0.7 above the 71.1 % of the
    # plain model.
    for pps, history, percents, ratios in (
        (1500, "ring 1500", (99.8, 92.9, 87.8), None),
        (1300, "ring 1500", (85.6, 77.5, None), (26.2, 21.8, 19.0)),
        (1500, "peld 1500", (99.8, 99.4, 99.3), None),
        (1300, "peld 1500", (88.0, 87.9, 87.8), (29.4, 29.3, 29.4)),
    ):
        for i, name in enumerate(("none", "usual", "large")):
            percent, ratio = lost[f"8-{name}-{pps}-28B", history]
            if percents[i] is not None:
                assert percent == pytest.approx(percents[i], abs=0.5), (name, pps, history)
            if ratios:
                assert ratio == pytest.approx(ratios[i], rel=0.03), (name, pps, history)
    ring = [lost[f"8-{name}-1500", "ring 1500"][0] for name in ("none", "usual", "large")]
    assert ring[0] - ring[1] > 5
    assert ring[1] - ring[2] > 4
