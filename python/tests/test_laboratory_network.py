# SPDX-License-Identifier: BSD-3-Clause
"""Networks in the laboratory: the job without a kernel, and runs in one where it can be built."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkweir
from linkweir.lab import guest, kernel
from linkweir.lab.experiment import Laboratory
from linkweir.lab.network import network, staggered
from linkweir.scenarios.scenario import Scenario

sys.path.insert(0, str(Path(__file__).parents[2] / "lab/networks"))
import order

KINDS = frozenset({"pss", "pds"})


def link(name: str, rate: str, delay: str, **more: Any) -> dict[str, Any]:
    classes = [{"name": "all", "limit": "50p"}]
    return {"name": name, "rate": rate, "delay": delay, "scheduler": {"policy": "fifo"}, "class": classes, **more}


def series(flows: list[dict[str, Any]], **more: Any) -> Scenario:
    """Two routers in series and a queue on the way back."""
    two = [{"name": name, "limit": "50p"} for name in ("long", "cross")]
    links = [
        link("first", "10Mbit", "10ms"),
        link("second", "8Mbit", "5ms", scheduler={"policy": "drr"}, **{"class": two}),
        link("return", "2Mbit", "15ms"),
    ]
    return Scenario.from_dict({"name": "series", "duration": "2s", "link": links, "flow": flows, **more})


def opened(**more: Any) -> Scenario:
    source = {"kind": "poisson", "packet": {"min": "700B", "max": "1500B"}}
    flows: list[dict[str, Any]] = [
        {"name": "long", "rate": "4Mbit", "class": {"first": "all", "second": "long"}, "path": ["first", "second"]},
        {"name": "one", "rate": "5Mbit", "class": "all", "path": ["first"]},
        {"name": "two", "rate": "4Mbit", "class": {"second": "cross", "return": "all"}, "path": ["second", "return"]},
    ]
    return series([{**source, **flow} for flow in flows], **more)


def transfers(**more: Any) -> Scenario:
    tcp: dict[str, Any] = {"kind": "tcp", "cc": "cubic", "tick": "10ms"}
    classes = {"first": "all", "second": "long", "return": "all"}
    flows: list[dict[str, Any]] = [
        {**tcp, "name": "long", "class": classes, "path": ["first", "second"], "back": ["return"]},
        {**tcp, "name": "cross", "class": "cross", "path": ["second"], "access_delay": "20ms"},
        {
            "name": "upload",
            "kind": "cbr",
            "jitter": 0.5,
            "rate": "1.8Mbit",
            "packet": "1000B",
            "class": "all",
            "path": ["return"],
        },
    ]
    return series(flows, **more)


def test_each_link_has_a_queue_and_each_flow_its_way() -> None:
    lines = network(transfers(), KINDS).job["run"].decode().splitlines()
    # Flow 1 and flow 2 wait in different classes of the second link.
    marks = [line for line in lines if "dev q2 parent 21:" in line and "dsfield" in line]
    assert [line.split("dsfield ")[1] for line in marks] == ["0x4 0xfc flowid 21:1", "0x8 0xfc flowid 21:2"]
    routes = [line.split() for line in lines if " route add 10.9.0.1/32" in line]
    assert [(words[2], words[9]) for words in routes] == [
        ("sender", "q4"),
        ("entry1", "q1"),
        ("exit1", "q5"),
        ("entry2", "q2"),
        ("exit2", "q6"),
    ]
    back = [line.split()[2] for line in lines if " route add 10.8.0.1/32" in line]
    assert back == ["receiver", "entry3", "exit3"]
    # Without a way back: the link's return delay of 5 ms and the access delay, on a wire of their own.
    assert any(line.startswith("tc -n receiver") and line.endswith("delay 25000.000us") for line in lines)


def test_the_job_of_a_staggered_network_is_the_same() -> None:
    scenario = transfers(seed=4)
    drawn = Scenario.from_dict(staggered(scenario))
    jobs = [network(scenario, KINDS).job["run"], network(drawn, KINDS, stagger_s=0.0).job["run"]]
    assert jobs[0] == jobs[1] != network(scenario, KINDS, stagger_s=0.0).job["run"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": 0.1}, "link.only.loss = 0.1: is there in the laboratory with one"),
        ({"mpu": "64B"}, "link.only.mpu = 64B: must be 0B in the laboratory"),
        ({"class": [{"name": "all", "max_age": "1s"}]}, r"link.only.class\[0\].max_age = 1s: is not there"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused_with_the_links_name(change: dict[str, Any], words: str) -> None:
    flow = {"name": "f", "kind": "poisson", "rate": "1Mbit", "class": "all", "path": ["only"]}
    keys = {"duration": "1s", "link": [{**link("only", "2Mbit", "1ms"), **change}], "flow": [flow]}
    with pytest.raises(linkweir.ScenarioError, match=words):
        network(Scenario.from_dict(keys), KINDS)


def test_more_flows_than_code_points_are_refused() -> None:
    flow = {"name": "f", "kind": "poisson", "rate": "1kbit", "class": "all", "path": ["only"], "count": 64}
    keys = {"duration": "1s", "link": [link("only", "2Mbit", "1ms")], "flow": [flow]}
    with pytest.raises(linkweir.ScenarioError, match="flow = 64: must be at most 63 flows"):
        network(Scenario.from_dict(keys), KINDS)


def test_packets_are_moved_until_none_meet(tmp_path: Path) -> None:
    scenario = opened(duration="500ms")
    packets, departures = order.spaced(scenario, tmp_path)
    assert len(packets) == len(order.drawn(scenario))
    assert set(departures) == {"first", "second", "return"}
    assert not len(order._Log(scenario, packets, tmp_path).meeting())


def test_another_order_is_seen() -> None:
    ours = order.Departures(np.array([0, 1, 0]), np.array([9, 9, 9]), np.array([0, 10, 20]))
    theirs = order.Departures(np.array([0, 0, 1]), np.array([9, 9, 9]), np.array([0, 10, 27]))
    assert order.compared(ours, ours) == order.Compared((3, 3), 3, 0)
    assert order.compared(ours, theirs) == order.Compared((3, 3), 1, 7)
    assert not order.compared(ours, theirs).equal


@pytest.fixture(scope="module")
def laboratory() -> Laboratory:
    why = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if why is not None:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    return Laboratory(say=lambda text: print(text, file=sys.stderr))


@pytest.mark.slow
def test_open_sources_leave_each_link_in_the_simulators_order(laboratory: Laboratory, tmp_path: Path) -> None:
    scenario = opened()
    packets, ours = order.spaced(scenario, tmp_path)
    theirs = order.kernels(laboratory, scenario, packets)
    for name, departures in ours.items():
        found = order.compared(departures, theirs[name])
        assert found.equal, (name, found)
        assert found.latest_ns < order.GUARD_NS


@pytest.mark.slow
def test_transfers_agree_with_the_simulators(laboratory: Laboratory) -> None:
    scenario = transfers(duration="20s", warmup="5s")
    kernels, ours = laboratory.run(scenario), linkweir.run(staggered(scenario))
    # Of one seed each transfer may get more or less; the means of ten are in docs/records/networks-kernel.md.
    goodput = [sum(row["goodput_bps"] for row in run.rows("flows") if row["kind"] == "tcp") for run in (ours, kernels)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.02)
    keys = ("flow", "link", "hop", "direction")
    hops = [{tuple(row[key] for key in keys): row for row in run.rows("hops")} for run in (ours, kernels)]
    assert list(hops[0]) == list(hops[1])
    upload = [run["upload", "return", 1, "there"]["arrived_pkts"] for run in hops]
    assert upload[0] == pytest.approx(upload[1], rel=0.02)
    assert hops[1]["long", "return", 1, "back"]["sent_pkts"] > 100
