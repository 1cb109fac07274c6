# SPDX-License-Identifier: BSD-3-Clause
"""Voice over a satellite link: what is run, how rows follow, and a small run of it."""

from __future__ import annotations

import re
import statistics
from typing import Any

import pytest
from command import REPOSITORY
from result_tables import Fake

import linkweir
from linkweir.reproduce.figure import FigureCase
from linkweir.reproduce.papers import codes
from linkweir.reproduce.papers.codes import CONFERENCE, JOURNAL

KEYS = ("policy", "users", "mode", *codes.MEASURES)


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


def test_measures_worked_by_hand() -> None:
    found = codes.measured(JOURNAL, by_hand(), 0.5)
    assert [found[name] for name in codes.SPLIT] == [50, 30, 10, 6, 4]
    assert (found["loss"], found["loss_full"]) == pytest.approx((20.0, 12.5))
    assert found["loss_late"] == pytest.approx(100 * 5 / 120)
    assert found["jitter_rfc3550_ms"] == pytest.approx(4.0)
    assert found["latency_ms"] == pytest.approx(200.0)
    assert found["throughput_mbps"] == pytest.approx(96 * 210 * 8e-6 / 0.5)
    assert found["coded_mbps"] == pytest.approx(0.6)
    assert found["useful_mbps"] == pytest.approx(found["throughput_mbps"])
    # 20 % lost is a rating of about 30, whatever the delay.
    assert 1.0 < found["mos"] < 1.8


def test_opinion_of_late_and_jittery_speech() -> None:
    """G.107 by hand: 180 ms and twice 10 ms leave 85.8 of the rating, 2 % lost take 95 * 2 / (2 + 4.3), and 20 is
    allowed for a satellite: 75.6, a MOS of 3.85. Without the jitter it is 3.92, without the allowance 2.9.
    """
    tables = by_hand()
    tables.tables["flows"][0] |= {
        "arrived_pkts": 200,
        "dropped_limit_pkts": 0,
        "dropped_policy_pkts": 0,
        "delay_mean_s": 0.18,
    }
    rating = 85.8 - 95 * 2 / (2 + 4.3) + 20
    mos = 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6
    assert codes.measured(JOURNAL, tables, 0.5)["mos"] == pytest.approx(mos, abs=0.01)


def test_latency_counts_packets_and_jitter_users() -> None:
    tables = by_hand()
    other = {"delivered_pkts": 32, "delay_mean_s": 0.4, "jitter_mad_s": 0.03, "jitter_rfc3550_s": 0.008}
    tables.tables["flows"].append({**tables.tables["flows"][0], **other})
    found = codes.measured(JOURNAL, tables, 0.5)
    assert found["latency_ms"] == pytest.approx((96 * 200 + 32 * 400) / 128)
    assert (found["jitter_ms"], found["jitter_rfc3550_ms"]) == pytest.approx((20.0, 6.0))


def labelled(policy: str, users: int = 300, seed: int = 1, mode: str = "published") -> FigureCase:
    return FigureCase({"policy": policy, "users": users, "mode": mode, "seed": seed}, {})


def waiting(delay_s: float) -> Fake:
    tables = by_hand()
    tables.tables["flows"][0]["delay_mean_s"] = delay_s
    return tables


def test_ratios_are_over_pf_on_the_same_channel() -> None:
    results = [
        (labelled("PF", seed=1), waiting(0.2)),
        (labelled("PF", seed=2), waiting(0.4)),
        (labelled(codes.CODES, seed=1), waiting(0.1)),
        (labelled(codes.CODES, seed=2), waiting(0.6)),
        (labelled(codes.CODES, seed=3), waiting(9.0)),
    ]
    pf, timed = codes.ratios(JOURNAL, 0.5, results)
    assert (pf["latency_ms_ratio"], pf["latency_ms_ratio_ci95"]) == (1.0, 0.0)
    # 0.5 and 1.5; channel 3 has nothing to compare with.
    assert timed["latency_ms_ratio"] == pytest.approx(1.0)
    assert timed["latency_ms_ratio_ci95"] == pytest.approx(12.706 * 0.5)
    assert timed["loss_ratio"] == pytest.approx(1.0)
    summary = codes.figure_ratios(JOURNAL, "11", codes.CodesOptions(quick=True)).summary
    assert summary is not None
    columns, lines = summary([pf, timed])
    assert columns == ["users", "latency", "jitter", "loss", "throughput", "coded"]
    assert lines == [["300", "1.000 ± 6.353", *["1.000 ± 0.000"] * 4]]


def test_table_2_stands_beside_the_paper() -> None:
    summary = codes.table_2(JOURNAL, codes.CodesOptions(mode="corrected")).summary
    assert summary is not None
    results = [(labelled("RR", users), by_hand()) for users in (450, 300)] + [(labelled(codes.CODES), by_hand())]
    columns, lines = summary(codes.rows(JOURNAL, 0.5, results))
    assert columns[:4] == ["users", "policy", "channels", "first, %"]
    beside = (("50.96", "-0.96"), ("25.73", "+4.27"), ("19.07", "-9.07"), ("3.82", "+2.18"), ("0.42", "+3.58"))
    ours = ["50.00", "30.00", "10.00", "6.00", "4.00"]
    assert lines == [
        ["300", "RR", "1", *(f"{own} ({of}; {gap})" for own, (of, gap) in zip(ours, beside, strict=True)), "20.00"],
        ["300", codes.CODES, "1", *ours, "20.00"],
        ["450", "RR", "1", *ours, "20.00"],
    ]
    # As corrected something else is simulated, so there is nothing to subtract.
    _, lines = summary(codes.rows(JOURNAL, 0.5, [(labelled("RR", 300, mode="corrected"), by_hand())]))
    assert lines[0][3] == "50.00 (50.96)"


def test_causes_are_full_queues_and_late_packets() -> None:
    figure = codes.figure_causes(CONFERENCE, "11", codes.CodesOptions(quick=True))
    assert {case.labels["policy"] for case in figure.cases} == {"PF", codes.CODES}
    assert [(panel.title, panel.y) for panel in figure.panels] == [("No room", "loss_full"), ("Too late", "loss_late")]
    (row,) = figure.measure([(labelled("PF"), by_hand())])
    assert (row["loss_full"], row["loss_late"]) == pytest.approx((12.5, 100 * 5 / 120))


def test_curves_as_tables() -> None:
    results = [(labelled("RR", 20), waiting(0.2)), (labelled("PF", 10), waiting(0.3)), (labelled("RR", 10), by_hand())]
    made = codes.rows(JOURNAL, 0.5, results)
    assert codes.by_users(codes._PLOTS["latency"], made) == (
        ["users", "RR", "PF"],
        [["10", "200.0", "300.0"], ["20", "200.0", ""]],
    )
    # 96 packets of 1680 bits and 300 000 coded bits in half a second.
    columns, lines = codes.by_load(made[:1])
    assert columns[2:] == ["coded, Mbit/s", "useful, Mbit/s", "coded / useful"]
    assert lines == [["20", "RR", "0.60", "0.32", "1.860"]]


def test_who_schedules_by_policy_and_mode() -> None:
    def scheduler(policy: str, mode: str, packet_bytes: int = 210) -> tuple[dict[str, Any], dict[str, Any]]:
        made = codes.scenario(JOURNAL, policy, 2, 1, 9.0, mode, packet_bytes)
        return made["scheduler"], made["class"][0]

    for mode in codes.MODES:
        for policy, name in {"DT_S": "fifo", "DT_H": "fifo", "RR": "rr", "M-LWDF": "mlwdf", "EXP/PF": "exp_pf"}.items():
            assert scheduler(policy, mode)[0] == {"policy": name}
        for policy, name in {"UBMT-like": "ubmt_like", "BBS-like": "bbs_like", "BPS-like": "bps_like"}.items():
            assert scheduler(policy, mode)[0] == {"policy": name}
        # CoDel drops only while more than mtu waits.
        assert scheduler("FQ-CoDel", mode)[0] == {"policy": "fq_codel", "quantum": "210B", "mtu": "210B"}
        assert scheduler("FQ-CoDel", mode, 1040)[0] == {"policy": "fq_codel", "quantum": "1040B", "mtu": "1040B"}
    assert scheduler("PF", "published")[0] == {"policy": "tauran_pf"}
    assert scheduler("PF", "corrected")[0] == {"policy": "pf"}
    assert scheduler("CoDeS 50 ms", "published")[0] == {"policy": "tauran_codes", "timeout": "50ms"}
    timed, of_class = scheduler("CoDeS 50 ms", "corrected")
    assert (timed, of_class["timeout"]) == ({"policy": "codes"}, "50ms")


def test_what_the_modes_tell_the_link() -> None:
    def satellite(mode: str) -> Any:
        return codes.scenario(JOURNAL, "PF", 2, 1, 9.0, mode)["link"]["satellite"]

    same = {"packet": "210B", "esn0_db": 10, "user_offset": "51s", "ground_delay": "1ms"}
    assert satellite("published") == {**same, "repeats_see": "first_user", "first_attempt": "coded_and_plain"}
    assert satellite("corrected") == {**same, "users": "flows"}


def test_channels_are_ten_at_saturation_and_five_far_from_it() -> None:
    cases = codes.FIGURES["journal-8"](codes.CodesOptions()).cases
    for policy, users, channels in (
        ("PF", 50, 5),
        ("PF", 200, 10),
        ("PF", 300, 10),
        ("EXP/PF", 300, 10),
        ("EXP/PF", 250, 5),
    ):
        found = [c for c in cases if (c.labels["policy"], c.labels["users"]) == (policy, users)]
        assert len(found) == channels, (policy, users)
    assert {c.labels["users"] for c in cases if c.labels["policy"] == "EXP/PF"} == {250, 300, 350}


def test_the_conference_counts_decoded_packets() -> None:
    found = codes.measured(CONFERENCE, by_hand(), 0.5)
    assert [found[name] for name in codes.SPLIT] == pytest.approx([5000 / 96, 3000 / 96, 1000 / 96, 600 / 96, 4])


def test_rows_have_means_and_intervals() -> None:
    one, two = (FigureCase({"policy": "RR", "users": 7, "mode": "published", "seed": seed}, {}) for seed in (1, 2))
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
        figure = make(codes.CodesOptions(quick=True, mode=mode))
        assert figure.cases
        assert figure.name.endswith("-corrected") == (mode == "corrected")
        assert figure.name.split("-")[0] in codes.PAPERS


@pytest.mark.slow
@pytest.mark.parametrize("paper", [JOURNAL, CONFERENCE])
@pytest.mark.parametrize("policy", ["RR", "PF"])
def test_quick_tables_are_as_close_to_the_printed_values_as_the_page_says(paper: codes.Paper, policy: str) -> None:
    options = codes.CodesOptions(quick=True)
    figure = codes.table_2(paper, options)
    cases = [case for case in figure.cases if case.labels["policy"] == policy]
    results = linkweir.run_many([case.scenario for case in cases])
    splits = [codes.measured(paper, result, options.voice_s) for result in results]
    ours = [statistics.fmean(split[name] for split in splits) for name in codes.SPLIT]
    assert ours == pytest.approx(paper.table[policy], abs=2.5)
    page = (REPOSITORY / "docs" / "records" / "codes.md").read_text()
    assert "with `--quick`, over fourteen channels, within 2.5" in re.sub(r"\s+", " ", page)
    assert len(cases) == 14


def test_only_policies_that_look_at_channels_have_an_age() -> None:
    """Runs of the others are those of the default, and so shared; PF and CoDeS know what is asked."""
    options = codes.CodesOptions(csi_age="0s")
    figure = codes.FIGURES["journal-6"](options)
    assert figure.name == "journal-6-age-0s"
    assert figure.printed is None
    default = {case.key for case in codes.FIGURES["journal-6"](codes.CodesOptions()).cases}
    for case in figure.cases:
        age = case.scenario["link"]["satellite"].get("csi_age")
        assert age == ("0s" if case.labels["policy"] == "PF" else None)
        assert (case.key in default) == (age is None)


def test_the_other_policies_have_an_age_as_corrected() -> None:
    """As published they get rates by reports in any case, so an age for them would compare nothing."""
    published = codes.FIGURES["journal-6"](codes.CodesOptions(csi_age="0s"))
    assert not {case.labels["policy"] for case in published.cases} & set(codes.RIVALS)
    corrected = codes.FIGURES["journal-6"](codes.CodesOptions(csi_age="0s", mode="corrected"))
    assert corrected.name == "journal-6-corrected-age-0s"
    of = {case.labels["policy"]: case.scenario["link"]["satellite"].get("csi_age") for case in corrected.cases}
    assert set(codes.RIVALS) <= set(of)
    assert {policy for policy, age in of.items() if age is None} == {"DT_S", "DT_H", "RR", "FQ-CoDel"}
    assert set(of.values()) == {None, "0s"}
