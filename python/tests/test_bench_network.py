# SPDX-License-Identifier: BSD-3-Clause
"""bench/network.py: how a scenario with several links becomes a network of ns-3, and the shell of satellites."""

from __future__ import annotations

import importlib
import itertools
import math
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command import REPOSITORY

from linkweir import Scenario


def module(name: str) -> ModuleType:
    """A module of bench/, which is no package."""
    bench = str(REPOSITORY / "bench")
    if bench not in sys.path:
        sys.path.append(bench)
    return importlib.import_module(name)


def link(name: str, **keys: Any) -> dict[str, Any]:
    fifo = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all", "limit": "50p"}]}
    return {"name": name, "rate": "1.5Mbit", "delay": "10ms", "overhead": "2B", **fifo, **keys}


NETWORK: dict[str, Any] = {
    "duration": "2s",
    "warmup": "1s",
    "seed": 3,
    "link": [link("first"), {"name": "second", "like": "first", "rate": "1Mbit"}, link("return", delay="20ms")],
    "flow": [
        {
            "name": "bulk",
            "class": "all",
            "path": ["first", "second"],
            "back": ["return"],
            "kind": "tcp",
            "cc": "cubic",
            "mss": "1448B",
            "initial_window": "10p",
            "min_rto": "200ms",
            "delayed_ack": False,
            "hystart": False,
            "timestamps": True,
            "count": 2,
            "stagger": "300ms",
        },
        {"name": "call", "class": "all", "path": ["second"], "kind": "cbr", "rate": "64kbit", "packet": "200B"},
    ],
}
DESCRIBED = """\
link 0 1 1500000 10000000 1 50
link 1 2 1000000 10000000 1 50
link 2 0 1500000 20000000 1 50
tcp 0 1448
there 2 0 0 1 0
back 1 2 0
tcp 300000000 1448
there 2 0 0 1 0
back 1 2 0
cbr 0 2000000000 64000 200 0
there 1 1 0
back 0
"""


def test_links_that_follow_each_other_meet_in_a_node(tmp_path: Path) -> None:
    run, _, lines = module("ns3_network").describe(NETWORK, tmp_path).partition("\n")
    assert lines == DESCRIBED
    words = run.split()
    assert words[:5] == ["run", "2000000000", "1000000000", "3", "3"]
    assert "ns3::TcpSocket::DelAckCount=1" in words


def test_a_link_without_the_overhead_of_ppp_is_refused(tmp_path: Path) -> None:
    other = {**NETWORK, "link": [*NETWORK["link"][:2], link("return", overhead="0B")]}
    with pytest.raises(ValueError, match="each link needs overhead"):
        module("ns3_network").describe(other, tmp_path)


@pytest.mark.parametrize("case", ["parking", "geo", "tree"])
def test_open_sources_send_the_same_packets_in_both_simulators(case: str, tmp_path: Path) -> None:
    scenarios = module("network_scenarios")
    scenario = scenarios.recorded(scenarios.scenario_of(case, "open", 1), tmp_path)
    assert {flow["kind"] for flow in scenario["flow"]} == {"replay"}
    lists = [Path(flow["file"]).read_text().splitlines() for flow in scenario["flow"]]
    assert all(packets[0] == "t_s,bytes" and len(packets) > 500 for packets in lists)
    described = module("ns3_network").describe(scenario, tmp_path)
    assert described.count("\nlist ") == len(scenario["flow"])


def test_each_satellite_has_four_neighbours_that_have_it() -> None:
    shell = module("shell")
    satellites = range(shell.PLANES * shell.PER_PLANE)
    for i in satellites:
        near = shell.neighbours(i)
        assert len({i, *near}) == 5
        assert all(i in shell.neighbours(other) for other in near)


def test_satellites_of_neighbouring_planes_are_near() -> None:
    shell = module("shell")
    places = [shell.satellite(plane, place) for plane in range(shell.PLANES) for place in range(shell.PER_PLANE)]
    along = math.dist(places[0], places[1])
    assert along == pytest.approx(2 * (shell.EARTH_M + shell.ALTITUDE_M) * math.sin(math.pi / shell.PER_PLANE))
    assert all(math.dist(places[i], places[j]) < along for i in range(len(places)) for j in shell.neighbours(i)[2:])


def test_paths_of_the_shell_join_the_stations_of_a_pair() -> None:
    scenario, (ends, nodes) = module("shell").scenario(1.0, {"cc": "cubic"})
    at = {link["name"]: between for link, between in zip(scenario["link"], ends, strict=True)}
    assert len(at) == 4 * 1584 + 400
    assert max(max(between) for between in ends) == nodes - 1
    for pair, flow in enumerate(scenario["flow"]):
        for way, first, last in ((flow["path"], 0, 1), (flow["back"], 1, 0)):
            assert at[way[0]][0] == 1584 + 2 * pair + first
            assert at[way[-1]][1] == 1584 + 2 * pair + last
            assert all(at[a][1] == at[b][0] for a, b in itertools.pairwise(way))


def test_ns3_adds_the_least_timeout_to_the_round_trip_as_linux_does(tmp_path: Path) -> None:
    # ns-3: RTO = max(srtt + max(ClockGranularity, 4 rttvar), MinRto); Linux: srtt + max(min_rto, 4 rttvar).
    run, _, _ = module("ns3_network").describe(NETWORK, tmp_path).partition("\n")
    assert "ns3::TcpSocketBase::ClockGranularity=200ms" in run.split()


def test_the_kernel_gets_the_packets_and_starts_of_the_simulators(tmp_path: Path) -> None:
    scenarios, laboratory = module("network_scenarios"), module("network_laboratory")
    scenario = scenarios.scenario_of("parking", "reno", 2)
    drawn = scenarios.recorded(scenario, tmp_path)
    flows = laboratory.for_kernel(scenario, drawn)["flow"]
    assert [flow["name"] for flow in flows] == [flow["name"] for flow in drawn["flow"]]
    assert flows[1]["start"] == "700000000ns"
    assert "count" not in flows[1]
    assert "hystart" not in flows[1]
    packets = laboratory.packets_of(drawn)
    assert packets == sorted(packets)
    place = next(n for n, flow in enumerate(flows) if flow["name"] == "open1")
    rows = (tmp_path / "open1.csv").read_text().splitlines()[1:]
    mine = [(at_ns, size) for at_ns, n, size in packets if n == place]
    assert [f"{at_ns / 1e9:.9f},{size}" for at_ns, size in mine] == rows


def test_a_shift_moves_the_starts_of_transfers_only() -> None:
    spread = module("network_spread")
    replayed = {"name": "open", "kind": "replay", "file": "open.csv"}
    drawn = {"flow": [{"name": "one", "kind": "tcp", "start": "700ms"}, {"name": "two", "kind": "tcp"}, replayed]}
    one, two, open_source = spread.shifted(drawn, random.Random(1))["flow"]
    starts_ns = [int(flow.pop("start").removesuffix("ns")) for flow in (one, two)]
    assert 700_000_000 <= starts_ns[0] < 702_000_000
    assert 0 <= starts_ns[1] < 2_000_000
    assert [one, two, open_source] == [{"name": "one", "kind": "tcp"}, {"name": "two", "kind": "tcp"}, replayed]


def test_the_kernel_acknowledges_each_segment_and_has_no_hystart() -> None:
    there = "ip -n sender route add 10.9.0.1/32 via 10.0.5.2 dev p2\n"
    script = f"windows sender receiver\nip -n receiver route add 10.8.0.1/32 via 10.0.4.2 dev p1\n{there}"
    assert module("network_laboratory").settings(script, ["rack", "friendly"]) == (
        "echo 0 >/sys/module/tcp_cubic/parameters/hystart\n"
        "echo 0 >/sys/module/tcp_cubic/parameters/tcp_friendliness\n"
        "windows sender receiver\n"
        "in_ sender sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_recovery'\n"
        "ip -n receiver route add 10.8.0.1/32 via 10.0.4.2 dev p1 quickack 1\n" + there
    )


def test_ways_of_the_shell_that_moves_are_no_longer_than_those_of_the_one_instant() -> None:
    """There each station uses the nearest satellite only, here any that it sees."""
    shell = module("shell")
    moving, (still, _) = shell.constellation(1.0, {"cc": "cubic"}), shell.scenario(1.0, {"cc": "cubic"})
    network = Scenario.from_dict(moving)
    delay_ns = {link["name"]: int(link["delay"].removesuffix("ns")) for link in still["link"]}
    shorter = 0
    for flow in still["flow"]:
        ((_, way), *_), _ = network.ways_over_time[flow["name"]]
        assert way[0][0].split("-")[0] == flow["path"][0].split("-")[0]
        mine_ns = sum(network.of_link(name).native.link_steps("delay", 1.0)[1][0] * 1e9 for name, _ in way)
        theirs_ns = sum(delay_ns[name] for name in flow["path"])
        assert mine_ns <= theirs_ns + len(way)  # which are rounded up
        shorter += mine_ns < theirs_ns - 1e6
    assert shorter > 50
