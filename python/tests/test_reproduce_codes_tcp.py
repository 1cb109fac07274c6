# SPDX-License-Identifier: BSD-3-Clause
"""TCP over a satellite link: what is run, how rows follow, and a small run of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from result_tables import Fake

import linkweir
from linkweir.reproduce.execute import distinct
from linkweir.reproduce.figure import FigureCase, identity
from linkweir.reproduce.papers import codes_printed, codes_tcp
from linkweir.reproduce.papers.codes import CodesOptions
from linkweir.reproduce.papers.codes_tcp import NONE, SHARED, Setup

QUICK = CodesOptions(quick=True)
MAKERS = {**codes_tcp.FIGURES, **codes_tcp.TABLES}


def by_hand(*goodputs_bps: float, first: int = 45) -> Fake:
    """Of 200 segments of each flow 20 were sent again, 5 after a timeout, and 4 arrived twice."""
    flow: dict[str, Any] = {
        "transmitted_pkts": 200.0,
        "retransmitted_pkts": 20.0,
        "retransmitted_fast_pkts": 15.0,
        "retransmitted_rto_pkts": 5.0,
        "spurious_pkts": 4.0,
        "arrived_pkts": 200,
        "dropped_limit_pkts": 5,
        "dropped_policy_pkts": 1,
        "delivered_pkts": 190,
        "delivered_bytes": 190 * 1040,
        "delay_mean_s": 0.09,
        "jitter_mad_s": 0.003,
        "jitter_rfc3550_s": 0.002,
    }
    attempts = {
        "decoded_first_pkts": first,
        "decoded_second_pkts": 20,
        "decoded_third_pkts": 25,
        "decoded_fourth_pkts": 98 - 45 - first,
        "given_up_pkts": 2,
        "coded_bits": 1_860_700,
    }
    return Fake(flows=[{**flow, "goodput_bps": bps} for bps in goodputs_bps], harq=[attempts])


def test_shares_are_means_over_the_flows() -> None:
    tables = by_hand(0.95e6, 0.45e6)
    tables.tables["flows"][0] |= {"transmitted_pkts": 1000.0, "retransmitted_pkts": 20.0}
    assert codes_tcp.measured(tables, 10.0)["retx_share"] == pytest.approx((2.0 + 10.0) / 2)


def test_goodput_counts_from_a_transfers_own_start() -> None:
    # Starts at 0.5 and 1 s of 10.
    assert codes_tcp.goodputs_mbps(by_hand(0.95e6, 0.45e6), 10.0) == pytest.approx([1.0, 0.5])


def test_measures_worked_by_hand() -> None:
    found = codes_tcp.measured(by_hand(0.95e6, 0.45e6), 10.0)
    assert tuple(found) == codes_tcp.MEASURES
    assert found["goodput_mbps_min"] == pytest.approx(0.5)
    assert found["goodput_mbps_mean"] == pytest.approx(0.75)
    assert found["goodput_mbps_max"] == pytest.approx(1.0)
    assert found["goodput_mbps_sd"] == pytest.approx(0.25)
    assert found["jain"] == pytest.approx(1.5**2 / (2 * 1.25))
    assert [found[name] for name in codes_tcp.SHARES] == pytest.approx([10.0, 7.5, 2.5, 2.0])
    assert (found["tx0"], found["drop"]) == pytest.approx((45.0, 2.0))
    assert found["coded_bits_per_pkt"] == pytest.approx(18_607)


def labelled(policy: str, seed: int) -> FigureCase:
    return FigureCase({"policy": policy, "users": 2, "cc": "cubic", "reordering": "none", "seed": seed}, {})


def test_rows_have_means_and_intervals() -> None:
    (row,) = codes_tcp.rows(10.0, [(labelled("RR", 1), by_hand(0.95e6)), (labelled("RR", 2), by_hand(1.9e6))])
    wanted = {"policy", "users", "mode", "cc", "reordering", "runs", *codes_tcp.MEASURES}
    assert {*wanted, *(f"{name}_ci95" for name in codes_tcp.MEASURES)} == set(row)
    assert (row["policy"], row["users"], row["cc"], row["reordering"]) == ("RR", 2, "cubic", "none")
    assert row["goodput_mbps_mean"] == pytest.approx(1.5)
    # Student's quantile for one degree of freedom times the standard error, 0.5.
    assert row["goodput_mbps_mean_ci95"] == pytest.approx(12.706 * 0.5)


def test_gains_are_over_dt_h_on_the_same_channel() -> None:
    results = [
        (labelled("DT_H", 1), by_hand(0.95e6)),
        (labelled("PF", 1), by_hand(1.14e6)),
        (labelled("DT_H", 2), by_hand(1.9e6)),
        (labelled("PF", 2), by_hand(2.66e6)),
        (labelled("PF", 3), by_hand(9.5e6)),
    ]
    base, pf = codes_tcp.gains(10.0, results)
    assert base["gain"] == 0.0
    # 20 and 40 %; channel 3 has nothing to compare with.
    assert pf["gain"] == pytest.approx(30.0)


def test_the_distribution_ranks_users_and_averages_channels() -> None:
    one, two = by_hand(1.9e6, 0.9e6), by_hand(0.95e6, 2.7e6)
    found = codes_tcp.distribution(10.0, [(labelled("RR", 1), one), (labelled("RR", 2), two)])
    # Of two users, half have at most what the last one has.
    assert [row["cdf"] for row in found] == [0.5, 1.0]
    assert found[0]["goodput_mbps"] == pytest.approx(1.0)
    assert found[-1]["goodput_mbps"] == pytest.approx(2.5)


def test_ranks_carry_what_all_users_have() -> None:
    first, last = codes_tcp.distribution(10.0, [(labelled("RR", 1), by_hand(1.9e6, 0.9e6))])
    assert (first["goodput_mbps"], last["goodput_mbps"]) == pytest.approx((1.0, 2.0))
    for row in (first, last):
        assert (row["goodput_mbps_min"], row["goodput_mbps_max"]) == pytest.approx((1.0, 2.0))
        assert (row["retx_share"], row["rto_share"], row["cc"], row["reordering"]) == (10.0, 2.5, "cubic", "none")
    summary = MAKERS["journal-27"](QUICK).summary
    assert summary is not None
    assert summary([first, last])[1] == [["RR", "1.000", "1.000", "1.000", "2.000", "2.000"]]


def test_table_5_by_hand() -> None:
    """1 860 700 coded bits for 1.4 Mbit/s of goodput in 10 s; voice of which a fifth is lost is no conversation."""
    voice = FigureCase({"policy": "PF", "voice_users": 300}, {})
    lossless = by_hand(0.0)
    lossless.tables["flows"][0] |= {"dropped_limit_pkts": 38}
    row = codes_tcp._ranks(0.5, 10.0, [(voice, lossless), (labelled("PF", 1), by_hand(0.95e6, 0.45e6))])[0]
    assert (row["users"], row["voice_users"], row["cc"], row["reordering"]) == (2, 300, "cubic", "none")
    assert row["link_bits_per_bit"] == pytest.approx(1_860_700 / 14e6)
    assert row["spread"] == pytest.approx(0.25 / 0.75)
    assert row["goodput_mbps_min"] == pytest.approx(0.5)
    assert row["rto_share"] == pytest.approx(2.5)
    assert row["mos"] < 2
    summary = codes_tcp.table_5(QUICK).summary
    assert summary is not None
    columns, ((policy, mos, goodput, spread, bits),) = summary([row])
    assert columns[0] == "policy"
    assert (policy, goodput, spread, bits) == ("PF", "0.750 (++)", "0.333 (+)", "0.13 (++)")
    assert mos == f"{row['mos']:.2f} (+)"


def test_fairness_stands_beside_the_paper() -> None:
    labels = {"users": 20, "cc": "cubic", "reordering": "none", "seed": 1}
    results = [
        (FigureCase({"policy": policy, **labels}, {}), by_hand(0.95e6, 0.45e6)) for policy in ("M-LWDF", "RR", "PF")
    ]
    summary = MAKERS["journal-3"](QUICK).summary
    assert summary is not None
    _, lines = summary(codes_tcp.rows(10.0, results))
    jain = f"{1.5**2 / (2 * 1.25):.4f}"
    assert lines == [
        ["20", "PF", *_beside("0.45; +0.050", "0.60; +0.400", "0.55; +0.200", "0.028; +0.222"), jain],
        ["20", "RR", *_beside("0.56; -0.060", "0.72; +0.280", "0.68; +0.070", "0.027; +0.223"), jain],
        ["20", "M-LWDF", "0.500", "1.000", "0.750", "0.250", jain],
    ]


def _beside(*printed: str) -> list[str]:
    return [f"{ours} ({of})" for ours, of in zip(("0.500", "1.000", "0.750", "0.250"), printed, strict=True)]


def test_retransmissions_by_cause() -> None:
    summary = MAKERS["journal-reordering"](QUICK).summary
    assert summary is not None
    columns, lines = summary(codes_tcp.rows(10.0, [(labelled("RR", 1), by_hand(0.95e6))]))
    assert columns[-4:] == ["sent again, %", "in fast recovery", "after timeouts", "received twice"]
    assert lines == [["RR", "2", "none", "1.000", "10.00", "7.50", "2.50", "2.00"]]


def test_assumptions_are_named_by_how_long_runs_last() -> None:
    def names(options: CodesOptions) -> list[str]:
        return list(dict.fromkeys(case.labels["assumption"] for case in MAKERS["journal-assumptions"](options).cases))

    assert names(CodesOptions())[:3] == ["75 ms, 6 ms, 600 s", "100 s", "75 ms, 7.3 ms"]
    # Runs of 100 s are no other assumption then.
    assert names(QUICK)[:2] == ["75 ms, 6 ms, 100 s", "75 ms, 7.3 ms"]
    assert names(dataclasses.replace(QUICK, duration_s=50.0))[0] == "75 ms, 6 ms, 50 s"


@pytest.mark.parametrize("name", [*codes_tcp.FIGURES, *(f"table {name}" for name in codes_tcp.TABLES)])
def test_corrected_keeps_order_flow_by_flow(name: str) -> None:
    make = codes_tcp.TABLES[name.removeprefix("table ")] if name.startswith("table ") else codes_tcp.FIGURES[name]
    if name.removeprefix("table ") in codes_tcp.PUBLISHED_ONLY:
        return
    shared = {case.labels.get("reordering") for case in make(QUICK).cases}
    figure = make(dataclasses.replace(QUICK, mode="corrected"))
    for case in figure.cases:
        satellite = case.scenario["link"]["satellite"]
        assert "repeats_see" not in satellite
        assert "first_attempt" not in satellite
        assert satellite["users"] == "flows"
        assert satellite.get("reorder") in (None, "none", "per_flow")
        assert case.labels.get("mode", "corrected") == "corrected"
    found = {case.labels.get("reordering") for case in figure.cases}
    assert found == {"per_flow" if order == "shared" else order for order in shared}


@pytest.mark.parametrize("policy", codes_tcp.POLICIES)
@pytest.mark.parametrize("setup", [NONE, SHARED, Setup("newreno", "per_flow", 100.0, 7.6)])
def test_scenarios_are_sound(setup: Setup, policy: str) -> None:
    made = linkweir.Scenario.from_dict(codes_tcp.scenario(setup, policy, 12, 1, 20.0))
    assert len(made.flows) == 12
    assert len(made.classes) == (1 if policy.startswith("DT") else 12)


@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_corrected_has_linux_in_segments_of_the_same_bytes(cc: str) -> None:
    published, corrected = Setup(cc), Setup(cc).corrected()
    for setup, profile, named in ((published, "ns2", cc), (corrected, "linux", cc.replace("newreno", "reno"))):
        made = codes_tcp.scenario(setup, "RR", 2, 1, 20.0)
        assert linkweir.Scenario.from_dict(made)
        assert {(flow["profile"], flow["cc"]) for flow in made["flow"]} == {(profile, named)}
        sizes = {"mss": "1kB", "header": "40B", "ack": "40B"}
        # ns2's are defaults.
        assert {key: made["flow"][0].get(key, size) for key, size in sizes.items()} == sizes
        assert ("mss" in made["flow"][0]) == (profile == "linux")
    titles = [make(dataclasses.replace(QUICK, mode="corrected")).title for make in codes_tcp.FIGURES.values()]
    assert not any("NewReno" in title for title in titles)
    assert sum("Linux's Reno" in title for title in titles) == 2


def test_queues_count_voice_packets() -> None:
    """10 Mbit / sqrt(users) in packets of 1680 bits, and one more."""

    def limit(policy: str, users: int) -> str:
        return str(codes_tcp.scenario(NONE, policy, users, 1, 100.0)["class"][0]["limit"])

    assert limit("DT_H", 10) == "1883p"
    assert limit("PF", 10) == limit("DT_S", 10) == "189p"
    assert limit("RR", 40) == "24p"
    assert limit("RR", 80) == "11p"


def test_every_figure_is_a_plan_and_runs_are_shared() -> None:
    assert {f"journal-{number}" for number in range(15, 29)} == set(codes_tcp.FIGURES)
    figures = {name: make(QUICK) for name, make in MAKERS.items()}
    for name, figure in figures.items():
        assert figure.cases
        assert figure.name in (name, name.replace("journal-", "journal-table-"))
    fairness = [case.scenario for case in figures["journal-3"].cases]
    assert all(scenario in [case.scenario for case in figures["journal-17"].cases] for scenario in fairness)


def test_the_papers_tables_have_every_cell() -> None:
    for table in (codes_tcp.TABLE_3, codes_tcp.TABLE_4):
        assert tuple(table) == codes_tcp.USERS["cubic"]
        assert all(set(row) == set(codes_tcp.FAIRNESS) for row in table.values())
    assert tuple(codes_tcp.TABLE_5) == codes_tcp.POLICIES


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """Figures of 25 s with two channels, and the results of their runs by scenario name."""
    options = dataclasses.replace(QUICK, duration_s=25.0)
    made = {name: MAKERS[name](options) for name in ("journal-16", "journal-4", "journal-28", "journal-assumptions")}
    runs = distinct(made.values())
    results = zip((identity(run) for run in runs), linkweir.run_many(runs), strict=True)
    return {"figures": made, "results": dict(results)}


@pytest.mark.slow
def test_summaries_of_a_small_run(small: dict[str, Any]) -> None:
    for figure in small["figures"].values():
        made = figure.measure([(case, small["results"][identity(case.scenario)]) for case in figure.cases])
        assert made
        columns, lines = figure.summary(made)
        assert all(len(line) == len(columns) for line in lines)
        assert set(figure.columns) <= set(made[0])


def test_a_saturated_link_carries_what_coding_leaves() -> None:
    """Under RR a packet takes 8320 bits of its own and those of its attempts, of 50 Mbit/s.

    A packet is two words of 4460 bits; at 10 dB four attempts send 5696, 1831, 3560 and 15 773 bits of each.
    Bits count when they are sent, packets when they are done: with repetitions up to 46 ms later, at most 84 of 18 350
    packets are counted in one and not the other.
    """
    found = linkweir.run({**codes_tcp.scenario(SHARED, "RR", 40, 1, 40.0), "warmup": "30s"})
    attempts = found.tables["harq"].to_pylist()
    names = ("decoded_first", "decoded_second", "decoded_third", "decoded_fourth", "given_up")
    _, second, third, fourth, given_up = counts = [sum(row[f"{name}_pkts"] for row in attempts) for name in names]
    more_bits = 1831 * (second + third + fourth + given_up) + 3560 * (third + fourth + given_up)
    expected_bits = 2 * (5696 * sum(counts) + more_bits + 15_773 * (fourth + given_up))
    coded_bits = sum(row["coded_bits"] for row in attempts)
    assert coded_bits == pytest.approx(expected_bits, rel=84 / 18_350)
    assert sum(counts) / 10.0 == pytest.approx(50e6 / (8320 + coded_bits / sum(counts)), rel=0.02)


def test_order_helps_few_users() -> None:
    """The paper's Tables 3 and 4 at 10 users: PF has 0.54 and 1.35 Mbit/s, 2.5 times as much."""
    plain, ordered = linkweir.run_many([codes_tcp.scenario(setup, "PF", 10, 1, 60.0) for setup in (NONE, SHARED)])
    before, after = (codes_tcp.measured(result, 60.0) for result in (plain, ordered))
    assert after["goodput_mbps_mean"] > 2.0 * before["goodput_mbps_mean"]


def test_a_packet_takes_its_uncoded_bits_too() -> None:
    """Equations (5), (6) and (8) by hand: 18 840 coded bits on average and a segment of 1040 bytes make 27 160
    bits, 0.5432 ms of 50 Mbit/s; while a repetition is 20 ms late, a flow sends three packets among up to 12.27 users.
    """
    rows = [{"policy": "RR", "users": 100, "reordering": "none", "coded_bits_per_pkt": 18840.0}]
    printed = codes_printed.JOURNAL["19"]
    bits, ms, users = (number.ours(rows) for number in printed.numbers)
    assert bits == pytest.approx(18840 + 8320)
    assert (ms, users) == (0.54, 12)
