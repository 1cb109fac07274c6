# SPDX-License-Identifier: BSD-3-Clause
"""Voice over a satellite link: what is run, how rows follow, and a small run of it."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import linkweir
from linkweir.reproduce import codes
from linkweir.reproduce.codes import CONFERENCE, JOURNAL
from linkweir.reproduce.figure import Case, Row

KEYS = ("policy", "users", "mode", *codes.MEASURES)


class Fake:
    """Result tables written by hand."""

    def __init__(self, **tables: list[Row]) -> None:
        self.tables = tables

    def rows(self, table: str) -> list[Row]:
        return self.tables[table]


def by_hand(first: int = 50) -> Fake:
    """100 packets reached the link, 20 of 120 did not; half a second's worth of bits."""
    attempts = {
        "decoded_first_pkts": first,
        "decoded_second_pkts": 30,
        "decoded_third_pkts": 10,
        "decoded_fourth_pkts": 96 - 40 - first,
        "given_up_pkts": 4,
        "coded_bits": 300_000,
    }
    flow: dict[str, Any] = {
        "arrived_pkts": 120,
        "delivered_pkts": 96,
        "delivered_bytes": 96 * 210,
        "dropped_limit_pkts": 15,
        "dropped_policy_pkts": 5,
        "delay_mean_s": 0.2,
        "jitter_mad_s": 0.01,
        "jitter_rfc3550_s": 0.004,
    }
    return Fake(harq=[attempts], flows=[flow])


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(codes).failed == 0


def test_measures_worked_by_hand() -> None:
    found = codes.measured(JOURNAL, by_hand(), 0.5)
    assert [found[name] for name in codes.SPLIT] == [50, 30, 10, 6, 4]
    assert found["loss"] == pytest.approx(20.0)
    assert found["latency_ms"] == pytest.approx(200.0)
    assert found["throughput_mbps"] == pytest.approx(96 * 210 * 8e-6 / 0.5)
    assert found["coded_mbps"] == pytest.approx(0.6)
    assert found["useful_mbps"] == pytest.approx(found["throughput_mbps"])
    # 20 % lost is a rating of about 30, whatever the delay.
    assert 1.0 < found["mos"] < 1.8


def test_the_conference_counts_decoded_packets() -> None:
    found = codes.measured(CONFERENCE, by_hand(), 0.5)
    assert [found[name] for name in codes.SPLIT] == pytest.approx([5000 / 96, 3000 / 96, 1000 / 96, 600 / 96, 4])


def test_rows_have_means_and_intervals() -> None:
    one, two = (Case({"policy": "RR", "users": 7, "mode": "published", "seed": seed}, {}) for seed in (1, 2))
    (row,) = codes.rows(JOURNAL, 0.5, [(one, by_hand(49)), (two, by_hand(51))])
    assert {*KEYS, *(f"{name}_ci95" for name in codes.MEASURES)} <= set(row)
    assert (row["policy"], row["users"], row["mode"]) == ("RR", 7, "published")
    assert row["tx0"] == 50
    assert row["tx0_ci95"] == pytest.approx(12.706 * 2**0.5 / 2**0.5)


@pytest.mark.parametrize("paper", [JOURNAL, CONFERENCE])
@pytest.mark.parametrize("mode", codes.MODES)
@pytest.mark.parametrize("policy", [*codes.POLICIES, *codes.RIVALS])
def test_scenarios_are_sound(paper: codes.Paper, policy: str, mode: str) -> None:
    made = linkweir.Scenario.from_dict(codes.scenario(paper, policy, 12, 1, 5.0, mode))
    assert len(made.flows) == 12
    assert len(made.classes) == (1 if policy.startswith("DT") else 12)


def test_queues_follow_the_rule_and_its_floor() -> None:
    def limit(paper: codes.Paper, policy: str, users: int) -> str:
        return str(codes.scenario(paper, policy, users, 1, 100.0)["class"][0]["limit"])

    assert limit(JOURNAL, "DT_H", 300) == "344p"
    assert limit(JOURNAL, "DT_S", 300) == limit(JOURNAL, "PF", 300) == "11p"
    assert limit(JOURNAL, "RR", 20) == "67p"
    assert limit(CONFERENCE, "DT_H", 75) == "130p"


def test_a_small_run() -> None:
    """Far below saturation nothing is lost but what the code gives up, and PF has no reason to differ from RR."""
    runs = [codes.scenario(JOURNAL, policy, 30, 1, 20.0) for policy in ("RR", "PF", "CoDeS 50 ms")]
    rr, pf, timed = (codes.measured(JOURNAL, result, 20.0) for result in linkweir.run_many(runs))
    for found in (rr, pf, timed):
        assert sum(found[name] for name in codes.SPLIT) == pytest.approx(100)
        assert found["loss"] < 2.0
        # 100 ms, 7.6 ms and 1 ms, and what repetitions take: 15.2 ms each.
        assert 108.6 < found["latency_ms"] < 140.0
        assert found["mos"] > 3.5
    assert pf["tx0"] == pytest.approx(rr["tx0"], abs=1.0)


def test_corrected_every_packet_meets_its_own_users_channel() -> None:
    """Below saturation nothing depends on the queues: who shares one has the same channel as who does not."""
    runs = [codes.scenario(JOURNAL, policy, 30, 1, 20.0, "corrected") for policy in ("DT_H", "RR", "PF", "FQ-CoDel")]
    splits = [
        [codes.measured(JOURNAL, result, 20.0)[name] for name in codes.SPLIT] for result in linkweir.run_many(runs)
    ]
    for split in splits[1:]:
        assert split == pytest.approx(splits[0], abs=0.5)
    # As published, the one queue of all has one channel for all.
    (published,) = linkweir.run_many([codes.scenario(JOURNAL, "DT_H", 30, 1, 20.0)])
    assert codes.measured(JOURNAL, published, 20.0)["tx0"] != pytest.approx(splits[0][0], abs=0.5)


@pytest.mark.parametrize("mode", codes.MODES)
def test_every_figure_is_a_plan(mode: str) -> None:
    for make in (*codes.FIGURES.values(), *codes.TABLES.values()):
        figure = make(codes.Settings(quick=True, mode=mode))
        assert figure.cases
        assert figure.name.endswith("-corrected") == (mode == "corrected")
        assert figure.name.split("-")[0] in codes.PAPERS
