# SPDX-License-Identifier: BSD-3-Clause
"""The planner against formulas worked by hand, and its refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import linkweir
from linkweir import ScenarioError
from linkweir.commands.plan import app
from linkweir.sizing import pss as sizing
from linkweir.sizing import shortage

runner = CliRunner()


def answer(*args: str) -> dict[str, Any]:
    result = runner.invoke(app, ["pss", "--json", *args])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_levels_follow_from_memory_and_burst() -> None:
    """BW 0.4; LR = 8e6 * 0.1; LM = LR + 19 * 12000 * 0.6."""
    queue = answer("--link", "20Mbit", "--rate", "8Mbit", "--mtu", "1500B")["queues"][0]
    assert queue["bw"] == pytest.approx(0.4)
    assert queue["lr_bits"] == pytest.approx(800_000)
    assert queue["lm_bits"] == pytest.approx(936_800)
    assert queue["tr_s"] == pytest.approx(0.1)


OTHER_DEFAULTS = """
from linkweir import _native

table = _native.policies()
wanted = {"burst": "7p", "mtu": "999B", "memory": "250ms", "sat": "paper"}
for policy in table:
    for param in (*policy["params"], *policy["class_params"]):
        if policy["name"] == "pss" and param["name"] in wanted:
            param["default"] = wanted[param["name"]]
_native.policies = lambda: table

from linkweir.commands.plan import app
from linkweir.sizing import pss

print(pss.from_target("af", 20e6, 5e6))
print(pss.from_weights(20e6, 0.0, 16, 4))
app(["pss", "--link", "20Mbit", "--rate", "5Mbit"], standalone_mode=False)
app(["pss", "--help"], standalone_mode=False)
"""


def test_defaults_are_those_of_the_cores_table() -> None:
    """In a process whose table has other defaults, every answer and the help show these."""
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    words = [sys.executable, "-c", OTHER_DEFAULTS]
    shown = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    target, weights, rest = shown.split("\n", 2)
    assert "burst_pkts=7, mtu_bytes=999, memory_s=0.25," in target
    assert "mtu_bytes=999, memory_s=0.25," in weights
    assert "sat='paper'" in target
    assert "sat='paper'" in weights
    scenario, help_text = rest.split("Usage:")
    for line in ('burst = "7p"', 'mtu = "999B"', 'memory = "250ms"', 'sat = "paper"'):
        assert line in scenario
    for text in ("(default: 7p)", "(default: 250ms)", "[default: 999B]", "[default: paper]"):
        assert text in help_text


def test_short_memory_still_covers_other_packets() -> None:
    """Without memory LR is BW * (largest other packet + largest burst above)."""
    base = ["--link", "20Mbit", "--rate", "8Mbit", "--mtu", "1500B", "--memory", "0ms"]
    assert answer(*base)["queues"][0]["lr_bits"] == pytest.approx(0.4 * 24_000)
    more = answer(*base, "--other-mtu", "9000B", "--burst-above", "6000B")
    assert more["queues"][0]["lr_bits"] == pytest.approx(0.4 * 120_000)
    assert 'lr = "48kbit"' in more["toml"]


def test_weights_recommended_and_published() -> None:
    """W 16:4, EF expected 10 of 20: K 0.8; recommended BW 0.4, published B 15/18 and BW 15/36."""
    got = answer("--link", "20Mbit", "--weights", "16:4", "--ef-expected", "50%")
    assert got["queues"][0]["rate_bps"] == pytest.approx(8e6)
    assert got["queues"][0]["burst_pkts"] == 16
    assert got["queues"][0]["lm_bits"] - got["queues"][0]["lr_bits"] == pytest.approx(15 * 12_000 * 0.6)
    assert got["published_map"]["b"] == pytest.approx(15 / 18)
    assert got["published_map"]["bw"] == pytest.approx(15 / 36)
    assert got["published_map"]["lm_bits"] == pytest.approx(15 * 12_000 * 21 / 36)


def test_weights_of_one_have_no_published_map() -> None:
    got = answer("--link", "20Mbit", "--weights", "1:1")
    assert got["published_map"] is None
    assert got["queues"][0]["burst_pkts"] == 2


def test_published_saturation_is_corrected_downwards() -> None:
    """delta = (1 - 0.25/0.5) / (2 * 4) = 1/16."""
    got = answer("--link", "20Mbit", "--rate", "5Mbit", "--burst", "5p", "--ef-expected", "50%", "--sat", "paper")
    assert got["queues"][0]["rate_bps"] == pytest.approx(5e6 / 1.0625)
    assert 'sat = "paper"' in got["toml"]


def test_two_reservations_beyond_the_residual() -> None:
    got = answer("--link", "20Mbit", "--rate", "6Mbit", "--rate", "4Mbit", "--ef-expected", "12Mbit")
    row = next(r for r in got["rates"] if r["ef_bps"] == 12e6)
    assert row["pss_controlled_bps"] == [6e6, 2e6]
    assert row["pss_cs0_bps"] == 0
    assert any("exceed" in text for text in got["warnings"])


def test_a_reservation_of_exactly_what_ef_leaves_fits() -> None:
    # 0.68 * 3e6 is 2040000.0000000002 and 3e6 - 0.32 * 3e6 is 2040000.0.
    assert answer("--link", "3Mbit", "--share", "68%", "--ef-expected", "32%")["warnings"] == []
    assert "exceed" in answer("--link", "3Mbit", "--share", "68.01%", "--ef-expected", "32%")["warnings"][0]


def test_reservations_of_exactly_the_link_are_taken() -> None:
    shares = ("--share", "4%", "--share", "28%", "--share", "68%")  # 3000000.0000000005 in all
    assert len(answer("--link", "3Mbit", *shares)["queues"]) == 3
    refused = runner.invoke(app, ["pss", "--link", "3Mbit", *shares[:-1], "68.01%"])
    assert refused.exit_code == 2
    assert "reserve less" in refused.output


def test_a_memory_of_exactly_the_need_is_enough() -> None:
    fine = sizing.from_target("af", 20e6, 5e6, memory_s=0.3)
    assert sizing.warnings_about([fine], 0.0, 0.1 + 0.2) == []
    assert "0.3001 s that lose nothing" in sizing.warnings_about([fine], 0.0, 0.3001)[0]


def test_toml_has_distinct_levels() -> None:
    tomllib = pytest.importorskip("tomllib")
    got = tomllib.loads(answer("--link", "20Mbit", "--rate", "6Mbit", "--rate", "4Mbit")["toml"])
    levels = [c[key] for c in got["class"] for key in ("level", "low_level") if key in c]
    assert sorted(levels) == [1, 2, 3, 4, 5, 6]
    assert [c["name"] for c in got["class"]] == ["ef", "af1", "af2", "cs0"]
    assert got["class"][1] == {
        "name": "af1",
        "level": 2,
        "low_level": 5,
        "rate": "6Mbit",
        "burst": "20p",
        "mtu": "1514B",
        "memory": "100ms",
    }


def test_rates_as_equations_1_6_7_8() -> None:
    got = answer("--link", "20Mbit", "--rate", "6Mbit", "--ef-expected", "50%", "--ef", "75%", "--ef", "25%")
    rows = {r["ef_bps"]: r for r in got["rates"]}
    assert rows[15e6]["pss_controlled_bps"] == [5e6]
    assert rows[5e6]["pss_cs0_bps"] == 9e6
    assert rows[15e6]["drr_af_bps"] == pytest.approx(3e6)
    assert rows[5e6]["drr_cs0_bps"] == pytest.approx(6e6)


def test_memory_from_the_longest_fade() -> None:
    assert answer("--link", "20Mbit", "--rate", "6Mbit", "--longest-fade", "4s")["queues"][0]["memory_s"] == 8
    assert (
        answer("--link", "20Mbit", "--rate", "6Mbit", "--longest-fade", "4s", "--margin", "1")["queues"][0]["memory_s"]
        == 4
    )


def test_a_fade_lasts_until_what_ef_queued_in_it_is_sent() -> None:
    """EF of 5 Mbit/s queues 20 Mbit in 4 s, which take 20 / 15 s at the 15 Mbit/s that it does not need."""
    words = ("--link", "20Mbit", "--rate", "6Mbit", "--longest-fade", "4s", "--ef-expected", "5Mbit", "--margin", "1")
    queue = answer(*words)["queues"][0]
    assert queue["memory_needed_s"] == pytest.approx(4 + 20 / 15)
    assert queue["memory_s"] == 5.334  # never below what is needed


def test_memory_from_a_trace(tmp_path: Path) -> None:
    """3 s at 2 Mbit/s are short of 6: a deficit of 12 Mbit, which is 2 s of the reservation, and which the 14 Mbit/s
    that are left later repay in 12/14 s.
    """
    trace = tmp_path / "fade.csv"
    trace.write_text("# end=hold\nt_s,capacity_bps\n0,20e6\n5,2e6\n8,20e6\n9,20e6\n")
    queue = answer("--link", "20Mbit", "--rate", "6Mbit", "--trace", str(trace))["queues"][0]
    assert queue["longest_shortage_s"] == 3
    assert queue["memory_needed_s"] == pytest.approx(2)
    assert queue["memory_s"] == 2
    assert queue["longest_hold_s"] == pytest.approx(3 + 12 / 14)
    more = answer("--link", "20Mbit", "--rate", "6Mbit", "--trace", str(trace), "--margin", "1.5")["queues"][0]
    assert (more["memory_needed_s"], more["memory_s"]) == (pytest.approx(2), 3)


def test_a_given_memory_is_judged_by_the_trace(tmp_path: Path) -> None:
    """Of the 2 s of need, half is lost: 3 s of shortage and 6/14 s of repayment hold CS0."""
    trace = tmp_path / "fade.csv"
    trace.write_text("# end=hold\nt_s,capacity_bps\n0,20e6\n5,2e6\n8,20e6\n9,20e6\n")
    words = ("--link", "20Mbit", "--rate", "6Mbit", "--trace", str(trace))
    short = answer(*words, "--memory", "1s")
    assert "memory 1 s is less than the 2 s that lose nothing here" in short["warnings"][0]
    assert short["queues"][0]["memory_s"] == 1
    assert short["queues"][0]["longest_hold_s"] == pytest.approx(3 + 6 / 14)
    assert answer(*words, "--memory", "2.5s")["warnings"] == []
    assert answer(*words, "--lr", "12Mbit")["warnings"] == []


STARLINK = Path(__file__).parents[2] / "scenarios/traces/starlink.csv"


@pytest.mark.parametrize(
    "words",
    [
        ("--rate", "60Mbit", "--ef-expected", "20Mbit"),
        ("--share", "40%", "--ef-expected", "20Mbit"),
        ("--rate", "60Mbit", "--ef-expected", "20Mbit", "--sat", "paper"),
        ("--rate", "40Mbit", "--rate", "30Mbit", "--ef-expected", "20Mbit"),
        ("--weights", "16:4"),
    ],
)
def test_the_memory_prescribed_is_the_memory_needed(words: tuple[str, ...]) -> None:
    for queue in answer("--link", "150Mbit", *words, "--trace", str(STARLINK))["queues"]:
        assert queue["memory_needed_s"] <= queue["memory_s"]
        assert queue["memory_s"] == pytest.approx(max(queue["memory_needed_s"], 0.1), abs=0.001)


def test_on_starlink_the_need_suffices_and_half_does_not() -> None:
    """With the memory prescribed AF gets its 60 Mbit/s over nine minutes, and CS0 waits as long as printed, within the
    second in which a series counts and the burst of 20 packets. Half the memory loses in the worst shortage what it
    lacks, and more than is needed changes nothing.
    """
    words = ("--link", "150Mbit", "--rate", "60Mbit", "--ef-expected", "20Mbit", "--mtu", "9000B")
    queue = answer(*words, "--trace", str(STARLINK))["queues"][0]

    def ran(memory_s: float) -> tuple[float, int]:
        text = f'duration = "540s"\n[link]\ntrace = "{STARLINK}"\nnominal = "150Mbit"\n[scheduler]\npolicy = "pss"\n'
        classes = OUTAGE.replace("1.5Mbit", "60Mbit").replace("1Mbit", "20Mbit").replace("1500B", "9000B")
        result = linkweir.run(linkweir.Scenario.parse(text + classes.format(memory_s=memory_s)))
        af = next(row["rate_bps"] for row in result.rows("classes") if row["class"] == "af")
        waited = longest = 0
        for row in result.rows("series"):
            if row["class"] == "cs0":
                waited = waited + 1 if row["sent_pkts"] == 0 else 0
                longest = max(longest, waited)
        return af / 60e6, longest

    rate, waited_s = ran(queue["memory_s"])
    assert rate == pytest.approx(1, abs=1e-4)
    assert waited_s == pytest.approx(queue["longest_hold_s"], abs=2)
    missed_s = queue["memory_needed_s"] / 2
    assert ran(missed_s)[0] <= 1 - 0.9 * missed_s / 540
    assert ran(2 * queue["longest_shortage_s"])[0] == pytest.approx(rate, abs=1e-4)


def test_expected_ef_lengthens_the_shortage(tmp_path: Path) -> None:
    """EF of 8 Mbit/s leaves 4 from 5 s on, queues 12 Mbit in the two seconds at 2 Mbit/s, and sends them by 9 s."""
    trace = tmp_path / "fade.csv"
    trace.write_text("t_s,dl_mbit\n0,20\n5,12\n6,2\n8,20\n12,20\n")
    queue = answer("--link", "20Mbit", "--rate", "6Mbit", "--ef-expected", "8Mbit", "--trace", str(trace))["queues"][0]
    assert queue["longest_shortage_s"] == 4


OUTAGE = """\
[[class]]
name = "ef"
level = 0
limit = "1000p"
[[class]]
name = "af"
level = 1
low_level = 3
rate = "1.5Mbit"
mtu = "1500B"
burst = "2p"
memory = "{memory_s:g}s"
[[class]]
name = "cs0"
level = 2
[[flow]]
class = "ef"
kind = "cbr"
rate = "1Mbit"
packet = "1500B"
[[flow]]
class = "af"
kind = "greedy"
packet = "1500B"
[[flow]]
class = "cs0"
kind = "greedy"
packet = "1500B"
"""


def test_memory_covers_the_time_in_which_ef_sends_what_queued_up_in_an_outage(tmp_path: Path) -> None:
    """No capacity for 2 s, then 3 Mbit/s: EF of 1 Mbit/s has queued 2 Mbit, which take it 1 s at 2 Mbit/s. So AF gets
    nothing for 3 s, and is owed 4.5 Mbit, 3 s of its 1.5 Mbit/s, which the 0.5 Mbit/s left over repay by 17 s.
    """
    trace = tmp_path / "outage.csv"
    trace.write_text("t_s,capacity_bps\n0,6e6\n5,0\n7,3e6\n20,3e6\n")
    words = ["--link", "6Mbit", "--rate", "1.5Mbit", "--ef-expected", "1Mbit", "--trace", str(trace)]
    queue = answer(*words)["queues"][0]
    assert queue["longest_shortage_s"] == pytest.approx(3)
    assert queue["memory_needed_s"] == pytest.approx(3)

    def af_bits(memory_s: float) -> float:
        text = f'duration = "20s"\n[link]\ntrace = "{trace}"\nnominal = "6Mbit"\n[scheduler]\npolicy = "pss"\n'
        classes = linkweir.run(linkweir.Scenario.parse(text + OUTAGE.format(memory_s=memory_s))).rows("classes")
        return 20 * next(row["rate_bps"] for row in classes if row["class"] == "af")

    packet_bits = 12_000
    assert af_bits(queue["memory_needed_s"]) >= 20 * 1.5e6 - 3 * packet_bits
    assert af_bits(0.9 * queue["memory_needed_s"]) == pytest.approx(20 * 1.5e6 - 0.3 * 1.5e6, abs=3 * packet_bits)


def test_mahimahi_trace_loops(tmp_path: Path) -> None:
    """Ten packets in the first 100 ms of a second: 1.2 Mbit/s there, then none for 900 ms, over and over."""
    trace = tmp_path / "t.down"
    trace.write_text("".join(f"{ms}\n" for ms in range(10, 101, 10)) + "1000\n")
    read = shortage.read(trace)
    assert read.loops
    assert read.mean_bps() == pytest.approx(11 * 12000)
    assert read.rates[0] == pytest.approx(1.2e6)
    assert read.shortage_s(130e3, 0.0) == pytest.approx(0.9)


def test_a_trace_that_cannot_carry_the_rate_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("# end=loop\nt_s,capacity_bps\n0,2e6\n1,8e6\n2,2e6\n")
    result = runner.invoke(app, ["pss", "--link", "20Mbit", "--rate", "7Mbit", "--trace", str(trace)])
    assert result.exit_code == 2
    assert "in the long run" in result.stderr


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("t_s,capacity_bps\n0,1e6\n1,-5\n", 3, "must be bit/s, 0 .."),
        ("t_s,capacity_bps\n0,1e6\n1,fast\n", 3, "not a number"),
        ("t_s,capacity_bps\n0,1e6\n0,1e6\n", 3, "must be later"),
        ("t_s,capacity_bps\n0,1e6\n1\n", 3, "fields"),
        ("time,rate\n0,1e6\n", 1, "header"),
        ("t_s,x_mbit\n5,1\n3,1\n", 3, "must be later"),
    ],
)
def test_bad_traces_name_the_line(tmp_path: Path, text: str, line: int, part: str) -> None:
    trace = tmp_path / "bad.csv"
    trace.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        shortage.read(trace)
    assert (caught.value.file, caught.value.line) == (str(trace), line)
    assert part in caught.value.message
    refused = runner.invoke(app, ["pss", "--link", "20Mbit", "--rate", "7Mbit", "--trace", str(trace)])
    assert refused.exit_code == 2
    assert f"{trace}:{line}: " in refused.stderr


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["--rate", "8"], "needs a unit"),
        (["--rate", "8Mbps"], "bytes per second"),
        (["--rate", "8mbit"], "unknown unit"),
        (["--rate", "20Mbit"], "below the link"),
        (["--rate", "15Mbit", "--rate", "9Mbit"], "reserve less"),
        (["--share", "120%"], "0% .. 100%"),
        (["--share", "0"], "10 bit/s"),
        (["--rate", "5Mbit", "--share", "20%"], "exactly one"),
        ([], "exactly one"),
        (["--rate", "5Mbit", "--lr", "400kbit", "--lm", "300kbit"], "above lr"),
        (["--rate", "5Mbit", "--burst", "1p"], "2p"),
        (["--rate", "5Mbit", "--memory", "1s", "--longest-fade", "1s"], "only one"),
        (["--rate", "5Mbit", "--ef-expected", "20Mbit"], "leave something"),
        (["--rate", "5Mbit", "--sat", "fuzzy"], "exact or paper"),
        (["--rate", "5Mbit", "--trace", "missing.csv"], "cannot be read"),
        (["--weights", "3"], "AF:CS0"),
        (["--weights", "0:3"], "whole numbers"),
    ],
)
def test_refusals_say_what_is_allowed(args: list[str], part: str) -> None:
    result = runner.invoke(app, ["pss", "--link", "20Mbit", *args])
    assert result.exit_code == 2
    assert part in result.stderr
    assert "Traceback" not in result.output


def test_warnings() -> None:
    """Each warning of the specification, provoked."""
    narrow = sizing.from_target("af", 20e6, 5e6, resume_bits=100e3, maximum_bits=101e3)
    assert "every packet switches" in sizing.warnings_about([narrow], 0.0)[0]
    shallow = sizing.from_target("af", 20e6, 5e6, resume_bits=100.0)
    assert "below BW * 2 packets" in sizing.warnings_about([shallow], 0.0)[0]
    fine = sizing.from_target("af", 20e6, 5e6)
    assert sizing.warnings_about([fine], 10e6) == []
    assert "starve" in sizing.warnings_about([fine], 16e6)[0]
    assert "missed beyond it is lost" in sizing.warnings_about([fine], 0.0, 3.0)[0]


def test_table_for_people() -> None:
    result = runner.invoke(app, ["pss", "--link", "20Mbit", "--rate", "8Mbit", "--ef", "25%"])
    assert result.exit_code == 0
    assert "LM, kbit" in result.stdout
    assert 'policy = "pss"' in result.stdout


def test_the_snippet_makes_a_scenario_that_keeps_the_rates() -> None:
    """What the planner writes, run: 6 and 4 Mbit/s reserved, EF at 12 of 20 leaves 8, so 6, 2 and nothing."""
    got = answer("--link", "20Mbit", "--rate", "6Mbit", "--rate", "4Mbit", "--mtu", "1500B", "--ef-expected", "12Mbit")
    flows = "".join(
        f'[[flow]]\nclass = "{name}"\nkind = "greedy"\npacket = "1500B"\n' for name in ("af1", "af2", "cs0")
    )
    ef = '[[flow]]\nclass = "ef"\nkind = "cbr"\nrate = "12Mbit"\npacket = "1500B"\n'
    text = 'duration = "20s"\n[link]\nrate = "20Mbit"\n' + got["toml"] + ef + flows
    rows = {r["class"]: r["rate_bps"] for r in linkweir.run(linkweir.Scenario.parse(text)).rows("classes")}
    row = next(r for r in got["rates"] if r["ef_bps"] == 12e6)
    assert [rows["af1"], rows["af2"]] == pytest.approx(row["pss_controlled_bps"], rel=0.01)
    assert rows["cs0"] == pytest.approx(row["pss_cs0_bps"], abs=1e4)
