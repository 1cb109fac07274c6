# SPDX-License-Identifier: BSD-3-Clause
"""Programs for ns-3 and traces as steps: what they say, and what is said to be left out.

`make ns3` compiles and runs the module.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from linkweir import _native
from linkweir.deploy.ns3 import camel, ns3_program
from linkweir.fault import ScenarioError
from linkweir.scenarios.scenario import Scenario
from linkweir.traces import exported

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
TOO_MANY_CLASSES = {"geo-beam-rain", "leo-constellation", "leo-voice"}
ACROSS_USERS = {"calls-and-downloads"}
COUNT_MARKS = {"l4s"}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_becomes_a_program_or_a_refusal(path: Path) -> None:
    scenario = Scenario.load(path)
    if path.stem in TOO_MANY_CLASSES:
        with pytest.raises(ScenarioError, match="must be at most 63"):
            ns3_program(scenario)
        return
    if path.stem in ACROSS_USERS:
        with pytest.raises(ScenarioError, match=r"scheduler\.across.*has no queue disc"):
            ns3_program(scenario)
        return
    if path.stem in COUNT_MARKS:
        with pytest.raises(
            ScenarioError, match=r"flow\[1\]\.cc = prague: must be one of cubic, reno, bbr, newreno in ns-3"
        ):
            ns3_program(scenario)
        return
    if scenario.links:
        with pytest.raises(ScenarioError, match=r"the program has one link.*export a scenario with one \[link\]"):
            ns3_program(scenario)
        return
    program = ns3_program(scenario)
    assert program.text.count("{") == program.text.count("}")
    for note in program.notes:
        assert "".join(c if c.isprintable() else "?" for c in note) in program.text
    flows = len(re.findall(r"^\[\[flow\]\]", scenario.resolved, re.MULTILINE))
    made = len(re.findall(r"^        Add(?:Tcp|Cbr|OnOff|Greedy)\(", program.text, re.MULTILINE))
    left_out = len({note.split(" ")[0] for note in program.notes if note.startswith("flow[") and "left out" in note})
    assert made <= flows <= made + left_out


def test_a_program_has_the_parameters_of_the_scenario() -> None:
    text = ns3_program(Scenario.load(ROOT / "scenarios/geo.toml")).text
    assert 'LinkweirHelper helper("pss", "LinkRate", StringValue("20000000bps"));' in text
    assert (
        '"LowLevel", StringValue("3"), "Rate", StringValue("5000000bps"), "Memory", StringValue("1000000000ns")' in text
    )


@pytest.mark.parametrize("cc", ["prague", "dctcp"])
def test_senders_that_count_marks_are_refused(cc: str) -> None:
    link = 'duration = "1s"\nlink.rate = "1Mbit"\nscheduler.policy = "fifo"\n[[class]]\nname = "all"\n'
    scenario = Scenario.parse(f'{link}[[flow]]\nclass = "all"\nkind = "tcp"\ncc = "{cc}"\n')
    with pytest.raises(ScenarioError, match=r"flow\[0\]\.cc.*must be one of cubic, reno, bbr, newreno in ns-3"):
        ns3_program(scenario)


def test_a_changing_capacity_is_in_the_program() -> None:
    text = ns3_program(Scenario.load(ROOT / "scenarios/pss-fade.toml")).text
    assert "{NanoSeconds(10000000000), DataRate(3000000)}," in text
    assert "capacity->Attach(devices.Get(0), nullptr);" in text


def test_a_constant_rate_sends_its_first_packet_at_its_start() -> None:
    """As the simulator does; OnOffApplication would send it a gap later."""
    text = (ROOT / "scenarios/geo.toml").read_text()
    program = ns3_program(Scenario.parse(text.replace('"10Mbit"', '"10Mbit"\nstart = "53us"'))).text
    assert "AddCbr(nodes, to, 1, 10000000, 1500, start, stop);" in program
    assert "const Time start = NanoSeconds(53000) + i * NanoSeconds(0);" in program
    silent = ns3_program(Scenario.parse(text.replace('"10Mbit"', '"0bit"')))
    assert 'flow[0] "voice": left out, its rate is 0' in silent.notes


def test_code_points_are_set_after_connecting() -> None:
    """Before ns-3.42 Connect() of a UDP socket sets the code point to that of the address, which is 0."""
    text = ns3_program(Scenario.load(ROOT / "scenarios/geo.toml")).text
    assert re.findall(r"socket->(Connect|SetIpTos)\(", text) == ["Connect", "SetIpTos"] * 2


def test_names_of_parameters_differ_in_ns3() -> None:
    for policy in _native.policies():
        for params in (policy["params"], policy["class_params"]):
            names = [camel(param["name"]) for param in params]
            assert len(set(names)) == len(names)


def test_a_trace_is_exported_as_steps(tmp_path: Path) -> None:
    trace = tmp_path / "up.down"
    trace.write_text("1\n1\n12\n20\n")  # milliseconds, 1500 bytes each
    steps = exported(trace)
    assert steps.splitlines()[1:4] == ["# end=loop", "# period_s=0.02", "t_s,capacity_bps"]
    assert steps.splitlines()[4:] == ["0,2400000"]  # two opportunities in each bin of 10 ms
    csv = tmp_path / "steps.csv"
    csv.write_text("t_s,capacity_bps\n0,5\n2.5,0\n")
    assert exported(csv).splitlines()[1:] == ["# end=hold", "t_s,capacity_bps", "0,5", "2.5,0"]


def test_the_tarball_has_core_and_vectors(tmp_path: Path) -> None:
    unfinished = ROOT / f"vectors/rr/.random-of-a-test-1.vec.{os.getpid()}"  # as of a generator that runs now
    unfinished.touch()
    try:
        done = subprocess.run([ROOT / "ns3/dist.sh", tmp_path], capture_output=True, text=True, check=True)
    finally:
        unfinished.unlink()
    made = done.stdout.strip()
    names = subprocess.run(["tar", "tzf", made], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in (
        "CMakeLists.txt",
        "core/src/pss.c",
        "core/include/linkweir/policies.def",
        "core/tests/replay.c",
        "core/tests/vector.h",
        "LICENSES/GPL-2.0-only.txt",
    ):
        assert f"linkweir/{name}" in names
    assert any(name.startswith("linkweir/vectors/pss/random-") for name in names)
    assert any(name.startswith("linkweir/vectors/pss/hand-") for name in names)
    assert [name for name in names if "/.random-" in name or name.startswith("linkweir/vectors/queues")] == []
