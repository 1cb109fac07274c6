# SPDX-License-Identifier: BSD-3-Clause
"""The warnings a run ends with: each rule with a scenario that triggers exactly it, and none where all is well."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, SCENARIOS, linkweir, strict_json

import linkweir as lw
from linkweir import Interrupted, diagnose
from linkweir.diagnose import reservations

Keys = dict[str, Any]


def pss(ef: str, *, link: Keys, af: Keys | None = None, flow: Keys | None = None, **top: Any) -> Keys:
    """Voice before a class that reserves 5 Mbit/s, before the rest."""
    return {
        "duration": "60s",
        "warmup": "10s",
        "link": link,
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "ef", "level": 0, "limit": "100p"},
            {"name": "af", "level": 1, "low_level": 3, "rate": "5Mbit", "limit": "50p", **(af or {})},
            {"name": "cs0", "level": 2, "limit": "50p"},
        ],
        "flow": [
            {"class": "ef", "kind": "cbr", "rate": ef},
            {"class": "af", "kind": "greedy", **(flow or {})},
            {"class": "cs0", "kind": "greedy"},
        ],
        **top,
    }


def one(policy: Keys, flow: Keys, *, link: Keys, **of_class: Any) -> Keys:
    """One class and one flow."""
    return {
        "duration": "20s",
        "link": link,
        "scheduler": policy,
        "class": [{"name": "all", **of_class}],
        "flow": [{"class": "all", **flow}],
    }


FIFO = {"policy": "fifo"}
SLOW = {"kind": "cbr", "rate": "100kbit"}
FADES = {"rate": {"steps": [["0s", "20Mbit"], ["10s", "5Mbit"]], "end": "loop", "period": "20s"}}


def kinds(scenario: Keys) -> list[tuple[str, str]]:
    return [(finding.kind, finding.where) for finding in lw.run(scenario).warnings]


EACH: list[tuple[Keys, list[tuple[str, str]]]] = [
    (pss("17Mbit", link={"rate": "20Mbit"}), [("reservation_starved", "class af")]),
    (
        pss("30Mbit", link={"rate": "20Mbit"}, flow={"kind": "tcp"}),
        [("reservation_starved", "class af"), ("offered", "link")],
    ),
    (pss("4Mbit", link=FADES), [("reservation_memory", "class af")]),
    (pss("1kbit", link={"rate": "4.5Mbit", "nominal": "20Mbit"}), [("reservation_link", "class af")]),
    (one(FIFO, {"kind": "cbr", "rate": "12Mbit"}, link={"rate": "10Mbit"}, limit="100p"), [("offered", "link")]),
    (
        one(FIFO, {"kind": "cbr", "rate": "9.8Mbit"}, link={"rate": "10Mbit", "overhead": "60B"}, limit="100p"),
        [("offered", "link")],
    ),
    (pss("1Mbit", link={"rate": "20Mbit"}, af={"mtu": "600B"}), [("mtu", "class af")]),
    (one({"policy": "codel", "mtu": "600B"}, SLOW, link={"rate": "10Mbit"}), [("mtu", "scheduler.mtu")]),
    (one({"policy": "fq_codel", "mtu": "600B"}, SLOW, link={"rate": "10Mbit"}), [("mtu", "scheduler.mtu")]),
    (
        one({"policy": "codel", "mtu": "1500B"}, SLOW, link={"rate": "10Mbit", "overhead": "38B"}),
        [("mtu", "scheduler.mtu")],
    ),
    (
        one({"policy": "codel"}, {**SLOW, "packet": "1600B"}, link={"rate": "10Mbit"}),
        [("mtu", "scheduler.mtu")],
    ),
    (one(FIFO, {"kind": "tcp"}, link={"rate": "1Mbit"}), [("delay", "class all")]),
    (
        one(FIFO, {"kind": "cbr", "rate": "3Mbit", "count": 4}, link={"rate": "10Mbit"}, limit="20p"),
        [("offered", "link"), ("in_step", "class all")],
    ),
    (
        one(
            FIFO,
            {"kind": "transfers", "arrivals": {"every": "100ms"}, "size": "500kB", "concurrent": 2},
            link={"rate": "10Mbit", "delay": "10ms"},
            limit="50p",
        ),
        [("refused", "flow transfers1")],
    ),
]
"""Scenarios and the warnings each must give, and no other."""


@pytest.mark.parametrize(("scenario", "expected"), EACH)
def test_each_fault_of_a_scenario_gives_its_warning_and_no_other(scenario: Keys, expected: list[Any]) -> None:
    assert kinds(scenario) == expected


def test_each_kind_of_warning_is_in_the_docs_and_has_its_scenario() -> None:
    page = (REPOSITORY / "docs/reference/diagnosis.md").read_text()
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    tried = {kind for _, expected in EACH for kind, _ in expected} | {"trace", "unjudged"}
    assert sorted(documented) == sorted(tried)


def test_refused_transfers_are_counted_with_those_that_began() -> None:
    flow = {"kind": "transfers", "arrivals": {"every": "100ms", "process": "periodic"}, "size": "10MB", "concurrent": 2}
    (finding,) = lw.run(one(FIFO, flow, link={"rate": "1Mbit"}, limit="20p")).warnings
    # 10 arrive in each of 20 s; the two that are there from the beginning never end.
    assert finding.figures == {"refused": 198.0, "begun": 2.0}
    assert "198 of 200 transfers were refused" in finding.what


def test_a_small_mtu_of_codel_lets_it_drop_while_one_packet_waits_behind() -> None:
    # codel.h: nothing is dropped while no more than `mtu` bytes wait behind a packet, so a lone one never is
    (finding,) = lw.run(one({"policy": "codel", "mtu": "600B"}, SLOW, link={"rate": "10Mbit"})).warnings
    assert "dropped although only one packet waits behind" in finding.what


def test_refused_transfers_of_copies_give_the_warning_of_the_worst_and_other_sources_theirs() -> None:
    flow = {"kind": "transfers", "size": "100kB", "arrivals": {"every": "500ms", "process": "periodic"}}
    files = {**flow, "class": "all", "name": "files", "concurrent": 1, "count": 4, "stagger": "4s"}
    alone = [{**flow, "class": "all", "name": f"alone{i}", "concurrent": 1} for i in range(4)]
    scenario = one(FIFO, files, link={"rate": "1Mbit"}, limit="50p")
    scenario["flow"] += alone
    found = [finding for finding in lw.run(scenario).warnings if finding.kind == "refused"]
    assert [finding.where for finding in found[1:]] == [f"flow alone{i}" for i in range(4)]
    assert found[0].where == "flow files-1"
    assert ["(and 3 more of its copies)" in finding.what for finding in found] == [True, *[False] * 4]
    assert "as concurrent = 1 allows" in found[0].what


HEALTHY = {
    "as many transfers as may be": one(
        FIFO,
        {"kind": "transfers", "size": "100kB", "arrivals": {"every": "1s", "process": "periodic"}, "concurrent": 1},
        link={"rate": "10Mbit"},
        limit="200p",
    ),
    "one packet waits whenever a bin ends": pss(
        "1Mbit",
        link={"rate": "20Mbit"},
        af={"memory": "0s"},
        flow={"kind": "cbr", "rate": "12kbit", "start": "999.9ms"},
    ),
    "a fade shorter than the memory": pss("4Mbit", link=FADES, af={"memory": "10s"}, duration="61s"),
    "bursts that fill a short queue": pss(
        "4Mbit",
        link={"rate": "20Mbit"},
        af={"limit": "10p"},
        flow={"kind": "onoff", "rate": "100Mbit", "on": "20ms", "off": "1s"},
    ),
    "a mtu nobody uses": pss("4Mbit", link={"rate": "20Mbit"}, af={"mtu": "64B", "lr": "1000bit", "lm": "400000bit"}),
    "overhead 38B, default mtu": pss("4Mbit", link={"rate": "20Mbit", "overhead": "38B"}),
    "overhead 38B, default mtu of codel": one({"policy": "codel"}, SLOW, link={"rate": "10Mbit", "overhead": "38B"}),
    "a packet at the edge of a short time": one(FIFO, {"kind": "cbr", "rate": "1Mbit"}, link={"rate": "1Mbit"})
    | {"duration": "40ms", "interval": "10ms"},  # 4 packets begin in the time of 3.3
    "as much as it carries": one(FIFO, {"kind": "cbr", "rate": "10Mbit"}, link={"rate": "10Mbit"}),
    "tcp slows down": one(FIFO, {"kind": "tcp", "count": 30}, link={"rate": "10Mbit"}, limit="100p"),
    "the flow ends before its bits are too many": one(
        FIFO, {"kind": "cbr", "rate": "30Mbit", "stop": "1s"}, link={"rate": "10Mbit"}, limit="100p"
    ),
}


@pytest.mark.parametrize("scenario", HEALTHY.values(), ids=list(HEALTHY))
def test_what_is_healthy_gives_no_warning(scenario: Keys) -> None:
    assert kinds(scenario) == []


@pytest.mark.parametrize("interval", ["20ms", "1s"])
@pytest.mark.parametrize("memory", ["0s", "5s"])
@pytest.mark.parametrize(
    ("ef_mbps", "missed"), [(0.5, False), (14.9, False), (15, False), (15.04, False), (15.3, True)]
)
def test_a_reservation_is_missed_if_and_only_if_less_than_it_is_left(
    ef_mbps: float, missed: bool, memory: str, interval: str
) -> None:
    # pss.md: a class that stays backlogged gets at least min(rate, what more urgent classes leave). At 15.04 it lacks
    # 0.8 %, and 1 % is let pass.
    scenario = pss(f"{ef_mbps}Mbit", link={"rate": "20Mbit"}, af={"memory": memory}, interval=interval, duration="90s")
    found = [kind for kind in kinds(scenario) if kind[0].startswith("reservation")]
    assert found == ([("reservation_starved", "class af")] if missed else [])


@pytest.mark.parametrize("interval", ["20ms", "1s"])
@pytest.mark.parametrize("memory", ["0s", "1s"])
@pytest.mark.parametrize("limit", ["50p", "1000p"])
@pytest.mark.parametrize(
    "flow",
    [
        {"kind": "cbr", "rate": "5Mbit"},
        {"kind": "poisson", "rate": "4.9Mbit"},
        {"kind": "onoff", "rate": "10Mbit", "on": "500ms", "off": "500ms"},
    ],
    ids=["cbr", "poisson", "onoff"],
)
def test_a_class_that_offers_at_most_its_reservation_and_is_left_as_much_misses_nothing(
    flow: Keys, limit: str, memory: str, interval: str
) -> None:
    # EF leaves exactly the 5 Mbit/s at all times. In bins of 1 s the queue may have been empty at times.
    scenario = pss(
        "15Mbit", link={"rate": "20Mbit"}, af={"memory": memory, "limit": limit}, interval=interval, flow=flow
    )
    assert [kind for kind in kinds(scenario) if kind[0].startswith("reservation")] == []


def test_figures_of_a_starved_class() -> None:
    (finding,) = lw.run(pss("17Mbit", link={"rate": "20Mbit"})).warnings
    figures = finding.figures
    assert figures["reserved_bps"] == 5e6
    assert figures["capacity_bps"] == 20e6
    assert figures["left_bps"] == pytest.approx(3e6, rel=1e-3)
    assert figures["sent_bps"] == pytest.approx(3e6, rel=1e-3)
    assert figures["used_up_s"] == 50  # all of the time that totals cover
    assert figures["lost_bits"] == pytest.approx((5e6 - 3e6) * 50, rel=1e-3)
    assert "(ef)" in str(finding)


@pytest.mark.parametrize(
    ("link", "rate"),
    [
        ({"rate": "10Mbit", "mpu": "300B"}, "9.5Mbit"),  # 14 Mbit/s on the wire
        ({"rate": "10Mbit", "ring": 16}, "9.5Mbit"),
        ({"rate": "10Mbit", "satellite": {"packet": "210B"}}, "6Mbit"),  # 14 Mbit/s coded
        ({"beam": {"symbol_rate": "3MBd", "clear_sky_esn0_db": 12.0}}, "9.5Mbit"),
    ],
    ids=["mpu", "ring", "satellite", "beam"],
)
def test_what_more_urgent_classes_leave_is_counted_as_on_the_link(link: Keys, rate: str) -> None:
    scenario = pss(rate, link=link, af={"rate": "1Mbit"}, flow={"kind": "cbr", "rate": "2Mbit"})
    for flow in scenario["flow"]:
        flow["packet"] = "200B"
    (found,) = (finding for finding in lw.run(scenario).warnings if finding.kind.startswith("reservation"))
    assert found.kind == "reservation_starved"
    assert found.figures["left_bps"] < 1e6


def test_what_a_fade_took_is_lost_although_the_link_is_free_afterwards() -> None:
    scenario = pss("4Mbit", link=FADES)
    del scenario["flow"][2]
    (finding,) = lw.run(scenario).warnings
    # 10 s of each of three fades, in which 1 of 5 Mbit/s is left; after a fade all 16 are there for this class. Of each
    # the credit covers between LR = 0.5 Mbit and LM = LR + 19 * 12112 bit * 15 / 20 = 0.67 Mbit.
    assert finding.figures["lost_bits"] == pytest.approx(3 * (10 * (5e6 - 1e6) - 0.59e6), rel=0.004)


@pytest.mark.parametrize("interval", ["100ms", "500ms", "1s", "2s"])
def test_the_memory_asked_for_is_enough(interval: str) -> None:
    (finding,) = lw.run(pss("4Mbit", link=FADES, interval=interval)).warnings
    # from 10 s to 60 s three fades leave 5 - 4 and two times without leave 20 - 4 Mbit/s, each for 10 s
    assert finding.figures["left_bps"] == pytest.approx((3 * 1e6 + 2 * 16e6) / 5, rel=1e-3)
    cure = finding.cure.split('"')[1]
    assert kinds(pss("4Mbit", link=FADES, af={"memory": cure}, interval=interval)) == []


@pytest.mark.parametrize("interval", ["100ms", "200ms", "1s"])
def test_fades_shorter_than_bins_are_seen(interval: str) -> None:
    steps = [["0s", "10Mbit"], ["2.1s", "0bit"], ["2.9s", "10Mbit"]]
    link = {"rate": {"steps": steps, "end": "loop", "period": "4s"}, "nominal": "10Mbit"}
    scenario = pss("1kbit", link=link, af={"memory": "100ms"}, interval=interval)
    (finding,) = lw.run(scenario).warnings
    assert finding.kind == "reservation_memory"
    # Of 4 Mbit that each of 13 fades takes, the credit covers LR = 0.5 Mbit up to LM = LR + 19 * 12112 bit / 2, and one
    # packet is left to chance. The rest is lost; of a bin of 1 s, 0.2 s have 10 Mbit/s, half of them after the fade.
    assert 11 * (4e6 - 0.616e6 - 0.5e6 - 12e3) <= finding.figures["lost_bits"] <= 13 * 3.5e6
    cure = finding.cure.split('"')[1]
    scenario["class"][1]["memory"] = cure
    assert kinds(scenario) == []


@pytest.mark.parametrize("interval", ["100ms", "4s"])
def test_a_bin_in_which_the_queue_may_have_been_empty_tells_no_loss(interval: str) -> None:
    """Bins of 4 s end in fades, so packets wait at both ends of each, but in between all is sent that is asked for."""
    steps = [["0s", "0bit"], ["200ms", "10Mbit"], ["3.8s", "0bit"]]
    link = {"rate": {"steps": steps, "end": "loop", "period": "4s"}, "nominal": "10Mbit"}
    # A bin of 4 s has 20 Mbit less than is reserved, which is more than the memory of 15 Mbit. The fades take
    # 1 + 2 + 2 + 1 Mbit, and each of 720 packets waits for one of another class and itself, 1.3 ms, which
    # takes 5 Mbit at most.
    flow = {"kind": "cbr", "rate": "48kbit", "packet": "100B"}
    scenario = pss("1kbit", link=link, af={"memory": "3s"}, flow=flow, interval=interval, duration="12s", warmup="0s")
    assert kinds(scenario) == []


def test_a_share_is_a_part_of_what_the_link_carries_now() -> None:
    share = {"rate": "0bit", "share": "25%"}
    assert kinds(pss("2Mbit", link={**FADES, "follow": True}, af=share)) == []
    starved = pss("4.5Mbit", link={"rate": "5Mbit", "follow": True}, af=share)
    assert kinds(starved) == [("reservation_starved", "class af")]
    (late, *_) = lw.run(pss("4.9Mbit", link={**FADES, "follow": True}, af=share)).warnings
    assert late.kind == "reservation_memory"
    # In three fades of 10 s a quarter of 5 Mbit/s is reserved and 0.1 Mbit/s are left. The credit covers between
    # LR = 0.5 Mbit and LM = LR + 19 * 12112 bit * 3 / 4 = 0.67 Mbit.
    assert late.figures["lost_bits"] == pytest.approx(3 * (10 * (1.25e6 - 0.1e6) - 0.59e6), rel=0.01)


@pytest.mark.parametrize(("end", "after"), [("hold", "last value"), ("stop", "nothing"), ("loop", "began again")])
def test_a_trace_shorter_than_the_run(tmp_path: Path, end: str, after: str) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("t_s,capacity_bps\n0,10e6\n5,8e6\n")
    scenario = one(FIFO, SLOW, link={"trace": str(trace), "end": end}) | {"duration": "11s"}
    (finding,) = lw.run(scenario).warnings
    assert (finding.kind, finding.where) == ("trace", "link.trace")
    assert finding.figures == {"trace_s": 10, "simulated_s": 11}
    assert after in finding.what
    assert kinds(scenario | {"duration": "10s"}) == []


def test_a_trace_that_is_short_by_milliseconds_is_no_fault(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("t_s,capacity_bps\n0,10e6\n5.001001,8e6\n")  # lasts 10.002002 s
    scenario = one(FIFO, SLOW, link={"trace": str(trace)})
    assert kinds(scenario | {"duration": "10.004s"}) == []
    (finding,) = lw.run(scenario | {"duration": "10.2s"}).warnings
    assert 'Set duration = "10.002s"' in finding.cure
    assert kinds(scenario | {"duration": "10002ms"}) == []


def test_a_mahimahi_trace_shorter_than_the_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace.down"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 5001)))
    scenario = one(FIFO, SLOW, link={"trace": str(trace)})
    assert kinds(scenario | {"duration": "5s"}) == []
    assert kinds(scenario | {"duration": "6s"}) == [("trace", "link.trace")]


def test_a_rate_in_steps_is_no_trace() -> None:
    assert kinds(one(FIFO, SLOW, link=FADES)) == []


def limit_pkts(finding: diagnose.Finding) -> int:
    (advice,) = finding.advice
    return int(advice["class.all.limit"].removesuffix("p"))


def test_the_cure_of_a_long_delay_is_a_shorter_queue_if_the_queue_is_full() -> None:
    (finding,) = lw.run(one(FIFO, {"kind": "tcp"}, link={"rate": "1Mbit"}, limit="200p")).warnings
    assert f'limit = "{limit_pkts(finding)}p"' in finding.cure
    assert 60 <= limit_pkts(finding) <= 83  # 1 Mbit/s are 83.3 packets of 1500 bytes per second


@pytest.mark.parametrize("limit", [{}, {"limit": "100000p"}])
def test_the_cure_of_a_long_delay_is_a_limit_if_the_queue_grows(limit: Keys) -> None:
    flow = {"kind": "cbr", "rate": "3Mbit"}
    offered, delay = lw.run(one(FIFO, flow, link={"rate": "1Mbit"}, **limit) | {"duration": "5s"}).warnings
    assert (offered.kind, delay.kind) == ("offered", "delay")
    assert 60 <= limit_pkts(delay) <= 83


def test_a_long_delay_in_outages_names_them_and_no_shorter_queue() -> None:
    outages = {"rate": {"steps": [["0s", "10Mbit"], ["1s", "0bit"]], "end": "loop", "period": "10s"}}
    (finding,) = lw.run(one(FIFO, SLOW, link=outages)).warnings
    assert finding.kind == "delay"
    assert finding.figures["delay_p95_s"] > 5
    # down for 9 s of each 10
    assert finding.figures["down_s"] / finding.figures["waited_s"] == pytest.approx(0.9, abs=0.05)
    assert "the link was down for" in finding.what
    assert finding.advice == ({"class.all.max_age": "1s"},)


def test_a_long_delay_names_the_classes_that_took_the_link() -> None:
    scenario = one({"policy": "strict"}, {"kind": "cbr", "rate": "9Mbit"}, link={"rate": "10Mbit"})
    scenario["class"].append({"name": "rest", "limit": "500p"})
    scenario["flow"].append({"class": "rest", "kind": "tcp"})
    (finding,) = lw.run(scenario).warnings
    assert finding.where == "class rest"
    assert finding.figures["others_bps"] == pytest.approx(9e6, rel=0.01)
    assert "other classes got 9 Mbit/s of 10 Mbit/s" in finding.what


def test_a_rule_that_fails_leaves_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(result: lw.Result, setting: object) -> list[diagnose.Finding]:
        raise ZeroDivisionError("no packets")

    monkeypatch.setattr(diagnose, "RULES", (broken, *diagnose.RULES))
    scenario = one(FIFO, {"kind": "cbr", "rate": "12Mbit"}, link={"rate": "10Mbit"}, limit="100p")
    result = lw.run(scenario, out=tmp_path / "out")
    assert [finding.kind for finding in result.warnings] == ["unjudged", "offered"]
    assert "the rule broken failed with ZeroDivisionError: no packets" in str(result.warnings[0])
    assert lw.Result.load(tmp_path / "out").status == "complete"


def test_copies_of_a_class_give_one_warning() -> None:
    scenario = one(FIFO, {"kind": "cbr", "rate": "500kbit", "count": 4}, link={"rate": "1Mbit"}, count=4)
    offered, delay = lw.run(scenario).warnings
    assert (offered.kind, delay.kind) == ("offered", "delay")
    assert delay.what.endswith("(and 3 more of its copies)")


def test_reservations_are_judged_the_same_in_blocks_of_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    result = lw.run(pss("4Mbit", link=FADES))
    (whole,) = result.warnings
    monkeypatch.setattr(reservations, "_BINS", 7)
    del result.__dict__["warnings"]
    (in_blocks,) = result.warnings
    assert in_blocks.to_dict() == whole.to_dict()


EXPECTED = {
    "calls-and-downloads": {"delay": "50 packets are more than a second of a download's part; only the download waits"},
    "geo-beam-rain": {
        "delay": "in this storm 60 packets are more than a second of what faded terminals are given",
    },
    "geo-return": {"delay": "the camera's 200 packets are 2.4 s of the return link; acknowledgements wait behind"},
    "leo-voice": {"offered": "the file says so: the link is just full, and repetitions take the rest"},
    "lte-drive": {
        "delay": "200 packets are 1.6 s at 1.5 Mbit/s, which keeps TCP going through fades; fades hold up the rest",
    },
    "lte-home": {
        "delay": "200 packets are 1 s at 2.4 Mbit/s; the film's are held up by fades, and its player does not mind"
    },
    "pds": {"offered": "classes differ in losses under overload, which is shown here"},
    "voice-admit": {
        "offered": "the calls that were not admitted are more than the link carries, which is shown here",
        "in_step": "the same of these calls lose their packets throughout, as their intervals are equal",
    },
}
"""What is to be warned of in shipped scenarios, and why it is there."""


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_scenarios_give_only_the_warnings_that_belong_to_them(file: Path) -> None:
    found = {finding.kind for finding in lw.run(file).warnings}
    assert found == set(EXPECTED.get(file.stem, {}))


def test_terminal_report_summary_and_python_show_the_same_warnings(tmp_path: Path) -> None:
    file = tmp_path / "starved.toml"
    file.write_text((SCENARIOS / "geo.toml").read_text().replace('rate = "10Mbit"', 'rate = "30Mbit"'))
    done = linkweir("run", file, "--out", tmp_path / "out")
    assert done.returncode == 0
    warnings = lw.Result.load(tmp_path / "out").warnings
    assert [finding.kind for finding in warnings] == ["reservation_starved", "offered"]
    assert [f"warning: {finding}" for finding in warnings] == done.stdout.splitlines()[-3:-1]
    summary = strict_json((tmp_path / "out" / "summary.json").read_text())
    assert summary["warnings"] == [finding.to_dict() for finding in warnings]
    report = (tmp_path / "out" / "report.html").read_text()
    assert all(html.escape(finding.cure, quote=True) in report for finding in warnings)
    shown = json.loads(linkweir("run", file, "--out", tmp_path / "json", "--json").stdout)
    assert shown["warnings"] == summary["warnings"]


def test_the_members_of_a_warning_stay() -> None:
    (finding,) = lw.run(one(FIFO, {"kind": "tcp"}, link={"rate": "1Mbit"}, limit="200p")).warnings
    assert list(finding.to_dict()) == ["kind", "where", "what", "cure", "figures", "advice"]
    assert finding.to_dict()["advice"] == [{"class.all.limit": f"{limit_pkts(finding)}p"}]


def test_a_run_interrupted_before_its_warm_up_has_no_figures_to_judge() -> None:
    def stop(simulated_s: float) -> None:
        raise KeyboardInterrupt

    scenario = pss("30Mbit", link={"rate": "20Mbit"}, duration="10000h", warmup="9999h", interval="1h")
    with pytest.raises(Interrupted) as interrupted:
        lw.run(scenario, progress=stop)
    assert interrupted.value.result.warnings == []


def test_a_warning_is_one_line_whatever_a_class_is_called() -> None:
    (finding,) = lw.run(
        one(FIFO, {"kind": "tcp"}, link={"rate": "1Mbit"}) | {"class": [{"name": "all", "limit": "200p"}]}
    ).warnings
    assert "\n" not in str(dataclasses.replace(finding, where="class a\nb"))


def test_figures_are_finite() -> None:
    stopped = pss(
        "30Mbit", link={"rate": {"steps": [["0s", "20Mbit"]], "end": "stop", "at": "10s"}, "nominal": "20Mbit"}
    )
    for finding in lw.run(stopped).warnings:
        assert all(math.isfinite(value) for value in finding.to_dict()["figures"].values())
