# SPDX-License-Identifier: BSD-3-Clause
"""A constellation is a network everywhere: runs, results, sweeps; what cannot have one says so."""

from __future__ import annotations

import copy
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from command import REPOSITORY, linkweir

import linkweir as lw
from linkweir import Scenario, ScenarioError, diagnose
from linkweir.bounds.network import network_bounds
from linkweir.commands.present import show_result
from linkweir.comparison.plan import prepare
from linkweir.deploy.bpf import bpf_settings
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.ns3 import ns3_program
from linkweir.deploy.script import tc_scripts
from linkweir.fault import PlanError
from linkweir.panels import Panels
from linkweir.report.columns import hop_rows
from linkweir.scenarios.networks import refuse_constellation
from linkweir.sweeps.keys import KeyPathError, put, split

sys.path.insert(0, str(REPOSITORY / "oracle"))
import lists
import ways

FIFO: dict[str, Any] = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all", "limit": "50p"}]}
PLACES = {"paris": (48.9, 2.4), "new-york": (40.7, -74.0), "nairobi": (-1.3, 36.8)}
STATIONS = [{"name": name, "latitude": north, "longitude": east} for name, (north, east) in PLACES.items()]
WALKER = {
    "pattern": "delta",
    "planes": 24,
    "per_plane": 20,
    "phasing": 5,
    "altitude_km": 550,
    "inclination_deg": 53,
}
MASK = 15.0


def shell(**keys: Any) -> dict[str, Any]:
    return {
        "duration": "60s",
        "interval": "5s",
        "constellation": {
            **WALKER,
            "stations": STATIONS,
            "routes": {"every": "500ms"},
            "ground": {"rate": "2Mbit", "mask": MASK, **copy.deepcopy(FIFO)},
            "isl": {"rate": "4Mbit", **copy.deepcopy(FIFO)},
        },
        "flow": [
            {"name": "file", "kind": "tcp", "class": "all", "from": "paris", "to": "new-york"},
            {"name": "south", "kind": "cbr", "rate": "1Mbit", "class": "all", "from": "nairobi", "to": "paris"},
        ],
        **keys,
    }


@pytest.mark.slow
def test_packets_take_the_ways_of_the_oracle_and_their_time() -> None:
    """One packet every 1.7 s over links so fast that sending takes no time, against geometry and Dijkstra."""
    keys = shell(duration="200s", log="packets")
    for kind in ("ground", "isl"):
        keys["constellation"][kind]["rate"] = "100Gbit"
    probe = {"kind": "cbr", "rate": "4705bit", "packet": "1000B", "class": "all"}
    keys["flow"] = [{"name": f"{a}:{b}", **probe, "from": a, "to": b} for a in PLACES for b in PLACES if a != b]
    result = lw.run(keys)
    log = result.table("packets")
    log = log.filter(pc.equal(log["event"].cast("string"), "delivered"))
    model = ways.Shell(*WALKER.values(), MASK, 4, PLACES)  # type: ignore[arg-type]
    model.radius = ways.EARTH_M + 1e3 * WALKER["altitude_km"]
    links: dict[float, Any] = {}
    for row in log.to_pylist():
        step_s = row["created_ns"] // 500_000_000 / 2
        if step_s not in links:
            links[step_s] = model.links(step_s)
        begin, end = row["flow"].split(":")
        _, metres, _ = ways.best(links[step_s], begin, end, "delay")
        took_s = (row["t_ns"] - row["created_ns"]) * 1e-9
        # Links change their delays while the packet is under way: up to 12 us each, and sending takes 80 ns.
        assert took_s == pytest.approx(metres / 299_792_458, abs=40e-6), (row, step_s)
    assert log.num_rows > 500


@pytest.mark.slow
@pytest.mark.parametrize("on_break", ["lose", "deliver"])
def test_bytes_are_the_same_on_two_threads_and_none_vanish(on_break: str) -> None:
    keys = shell(duration="300s", interval="50s")
    keys["constellation"]["on_break"] = on_break
    keys["flow"][1] |= {"rate": "1999kbit", "stop": "290s"}
    one, two = lw.run(keys, threads=1), lw.run(keys, threads=2)
    for name in ("flows", "hops", "classes", "series"):
        assert one.table(name).equals(two.table(name)), name
    lost = 0
    for hop in one.table("hops").to_pylist():
        waiting = hop["arrived_pkts"] - hop["sent_pkts"] - hop["dropped_pkts"] - hop["absent_pkts"]
        assert 0 <= waiting <= 51, hop
        lost += hop["lost_pkts"]
    south = next(flow for flow in one.table("flows").to_pylist() if flow["flow"] == "south")
    gone = south["dropped_limit_pkts"] + south["lost_link_pkts"] + south["absent_pkts"]
    assert south["arrived_pkts"] == south["delivered_pkts"] + gone, south
    assert (lost > 0) == (on_break == "lose")


def test_ways_change_and_links_show_their_flows() -> None:
    result = lw.run(shell(duration="300s", interval="50s"))
    there, back = result.scenario.ways_over_time["file"]
    assert len(there) > 1
    assert [t for t, _ in there] == [t for t, _ in back]
    late = there[-1][1][0][0]
    assert late != there[0][1][0][0], "a station has another satellite five minutes later"
    assert result.of_link(late).table("flows")["flow"].to_pylist() == ["file"]


def test_a_flow_has_one_row_for_a_link_that_it_passes_second_and_third() -> None:
    result = lw.run(shell(duration="300s", interval="50s"))
    hops = [hop for hop in result.table("hops").to_pylist() if hop["direction"] == "there"]
    rows = {(hop["link"], hop["flow"]): hop for hop in hops}
    assert len(rows) == len(hops)
    ways = result.scenario.ways_over_time["file"][0]
    places = [(link, place) for _, way in ways for place, (link, _) in enumerate(way, 1)]
    several = {link for link, place in places if (link, place + 1) in places}
    assert several
    for link in several:
        assert rows[link, "file"]["hop"] == min(place for of, place in places if of == link)
        assert rows[link, "file"]["delay_p95_s"] is not None
    for link in result.scenario.links:
        for flow in result.of_link(link).table("flows").to_pylist():
            row = rows.pop((link, flow["flow"]))
            assert {column: flow[column] for column in row} == row
    assert not rows


def test_ways_are_computed_once() -> None:
    scenario = Scenario.from_dict(shell())
    assert scenario.ways_over_time is scenario.ways_over_time


def test_an_overload_of_a_link_that_is_used_for_a_short_time_warns() -> None:
    keys = shell(duration="300s", interval="50s")
    keys["flow"] = [keys["flow"][1] | {"rate": "2400kbit", "stop": "300s"}]
    result = lw.run(keys)
    there = result.scenario.ways_over_time["south"][0]
    ends = [*(since for since, _ in there[1:]), 300.0]
    used: dict[str, float] = {}
    for (since, way), end in zip(there, ends, strict=True):
        for link in {way[0][0]} if way else set():
            used[link] = used.get(link, 0) + end - since
    shortest = min(used, key=used.__getitem__)
    assert used[shortest] < 0.8 * 300, "over the whole run the mean is below the capacity"
    (finding,) = [finding for finding in result.warnings if finding.kind == "offered"]
    assert finding.figures["capacity_bps"] == 2e6
    assert finding.figures["offered_bps"] == pytest.approx(2.4e6, rel=0.01)
    # Those behind also warn where what waits at the station's last link comes together with what the next one sends.
    more = re.search(r"\(and (\d+) more of these links\)", finding.what)
    assert more
    assert int(more[1]) >= len(used) - 1 > 0
    for advice in finding.advice:
        cured = put(keys, {split(key): value for key, value in advice.items()})
        assert "offered" not in {finding.kind for finding in lw.run(cured).warnings}


@pytest.mark.parametrize("kind", ["ground", "isl"])
def test_a_warning_about_links_of_a_kind_is_one_and_its_advice_removes_it(kind: str) -> None:
    keys = shell(duration="20s", interval="1s")
    for each in ("ground", "isl"):
        keys["constellation"][each]["rate"] = "1Mbit" if each == kind else "20Mbit"
    keys["flow"] = [
        {"name": f"c{n}", "kind": "cbr", "rate": "2Mbit", "class": "all", "from": "nairobi", "to": "paris"}
        for n in range(6)
    ]
    (finding,) = [finding for finding in lw.run(keys).warnings if finding.kind == "offered"]
    assert re.fullmatch(r"link\.(nairobi-s\d+|s\d+-paris)" if kind == "ground" else r"link\.s\d+-s\d+", finding.where)
    assert re.search(r"it carries \(and \d+ more of these links\)$", finding.what)
    faster = finding.advice[1]
    assert set(faster) == {f"constellation.{kind}.rate", f"constellation.{kind}.nominal"}
    for advice in finding.advice:
        cured = put(keys, {split(key): value for key, value in advice.items()})
        assert "offered" not in {finding.kind for finding in lw.run(cured).warnings}


def test_a_warning_about_a_key_of_a_kind_of_links_names_the_key(tmp_path: Path) -> None:
    trace = tmp_path / "short.csv"
    trace.write_text("t_s,capacity_bps\n0,2e6\n1,3e6\n2,2e6\n")
    keys = put(shell(duration="20s", interval="1s"), {("constellation", "ground", "trace"): str(trace)})
    (finding,) = [finding for finding in lw.run(keys).warnings if finding.kind == "trace"]
    assert finding.where == "constellation.ground.trace"


def test_the_worst_link_is_found_for_every_warning_about_links() -> None:
    rows = (REPOSITORY / "docs/reference/diagnosis.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", rows, flags=re.MULTILINE))
    assert listed - {"refused", "unjudged"} == set(diagnose._WORST)


def test_the_chart_of_lost_packets_counts_those_of_a_link_that_was_absent() -> None:
    result = lw.run(shell(duration="300s", interval="50s"))
    columns = ("dropped_limit_pkts", "dropped_policy_pkts", "lost_link_pkts", "absent_pkts")
    absent = 0
    for link in result.scenario.links:
        of_link = result.of_link(link)
        drops = next(panel for panel in Panels(of_link, 8, 1000).over_time if panel.name == "drops")
        rows = of_link.table("series").to_pylist()
        absent += sum(row["absent_pkts"] for row in rows)
        gone = [sum(row[column] for column in columns) / 50 for row in rows]
        assert drops.lines[0].y[:-1] == pytest.approx(gone), link
    assert absent > 0


def test_rows_of_the_report_have_different_names() -> None:
    result = lw.run(shell(duration="300s", interval="50s"))
    names = [row["hop"] for row in hop_rows(result)]
    assert len(set(names)) == len(names) == result.table("hops").num_rows
    assert {"file on s341-s321", "file on s321-s341, on the way back", "file on paris-s361"} <= {*names}


def test_of_many_notes_the_first_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = {"duration": "1s", "link": {"rate": "1Mbit"}, **FIFO, "flow": [{"kind": "tcp", "class": "all"}]}
    result = lw.run(fifo, out=tmp_path / "run")
    notes = [f"note {number}" for number in range(23)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(result), "notes", notes)
        show_result(result, as_json=False)
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert shown == [*(f"note: {note}" for note in notes[:20]), "note: and 3 more"]


@pytest.mark.slow
def test_packets_are_lost_where_links_go_by_the_oracle() -> None:
    """Which probes arrive, against a walk along the ways of the oracle: a link that goes loses what is on it."""
    keys = shell(duration="200s", log="packets")
    for kind in ("ground", "isl"):
        keys["constellation"][kind]["rate"] = "100Gbit"
    probe = {"kind": "cbr", "rate": "91954bit", "packet": "1000B", "class": "all", "stop": "199s"}
    keys["flow"] = [{"name": f"{a}:{b}", **probe, "from": a, "to": b} for a in PLACES for b in PLACES if a != b]
    log = lw.run(keys).table("packets")

    def probes(event: str) -> set[tuple[str, int]]:
        rows = log.filter(pc.equal(log["event"].cast("string"), event))
        return set(zip(rows["flow"].to_pylist(), rows["created_ns"].to_pylist(), strict=True))

    model = ways.Shell(*WALKER.values(), MASK, 4, PLACES)  # type: ignore[arg-type]
    model.radius = ways.EARTH_M + 1e3 * WALKER["altitude_km"]
    step_ns = 500_000_000
    links = [model.links(step / 2) for step in range(400)]
    found: dict[tuple[int, str], list[str] | None] = {}

    def arrives(flow: str, now_ns: float) -> bool:
        first = int(now_ns) // step_ns
        if (first, flow) not in found:
            way = ways.best(links[first], *flow.split(":"), "delay")
            found[first, flow] = way and way[2]
        for a, b in itertools.pairwise(found[first, flow] or []):
            # 1000 bytes take 80 ns.
            step = int(now_ns + 80) // step_ns
            metres = links[step].get((a, b)) or links[step].get((b, a))
            over_ns = now_ns + 80 + (metres or 0) / 0.299_792_458
            passed = range(int(now_ns) // step_ns, int(over_ns) // step_ns + 1)
            if not all((a, b) in links[at] or (b, a) in links[at] for at in passed):
                return False
            now_ns = over_ns
        return bool(found[first, flow])

    created = probes("created")
    wanted = {(flow, created_ns) for flow, created_ns in created if arrives(flow, created_ns)}
    assert probes("delivered") == wanted
    assert len(created) > 10_000
    assert created - wanted, "some link goes under a packet"


HOSTS: dict[str, Callable[[Scenario], object]] = {
    "gateway": gateway_configuration,
    "ns3": ns3_program,
    "tc": lambda scenario: tc_scripts(scenario, "eth0"),
    "bpf": bpf_settings,
    "bounds": network_bounds,
    "laboratory": lambda scenario: refuse_constellation(scenario, "laboratory"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_refuse_it_with_key_and_reason(host: str) -> None:
    with pytest.raises(ScenarioError, match=r"^constellation = \.\.\.: .+; .+") as caught:
        HOSTS[host](Scenario.from_dict(shell()))
    assert caught.value.key == "constellation"


def test_the_command_line_refuses_it(tmp_path: Path) -> None:
    file = tmp_path / "leo.toml"
    file.write_text(Scenario.from_dict(shell()).resolved)
    assert linkweir("check", file).returncode == 0
    for command in (
        ["bounds"],
        ["export", "tc", "--device", "paris-s1=eth0"],
        ["export", "ns3"],
        ["export", "gateway"],
    ):
        found = linkweir(*command[:2], file, *command[2:]) if command[0] == "export" else linkweir(*command, file)
        assert found.returncode != 0
        assert "constellation = ...: " in found.stderr, found.stderr


def test_sweeps_reach_its_keys() -> None:
    keys = put(
        shell(),
        {
            ("constellation", "isl", "rate"): "1Mbit",
            ("constellation", "ground", "class", "all", "limit"): "7p",
            ("constellation", "routes", "metric"): "hops",
        },
    )
    made = keys["constellation"]
    assert (made["isl"]["rate"], made["ground"]["class"][0]["limit"]) == ("1Mbit", "7p")
    assert made["routes"] == {"every": "500ms", "metric": "hops"}
    trace = str(REPOSITORY / "scenarios/traces/starlink.csv")
    swapped = put(shell(), {("constellation", "ground", "trace"): trace})["constellation"]["ground"]
    assert "rate" not in swapped
    assert Scenario.from_dict(keys).links


def test_a_class_of_a_kind_of_links_can_be_unset() -> None:
    keys = shell()
    keys["constellation"]["ground"]["class"].append({"name": "rest"})
    left = put(keys, {("constellation", "ground", "class", "all"): None})["constellation"]["ground"]["class"]
    assert left == [{"name": "rest"}]
    with pytest.raises(KeyPathError, match="there is no class named al; there are all, rest; did you mean all"):
        put(keys, {("constellation", "ground", "class", "al"): None})


@pytest.mark.parametrize("options", [{}, {"link": "paris-s361"}, {"everywhere": True}])
def test_a_comparison_is_refused_and_the_cure_works(options: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match=r"^constellation: .*; sweep constellation\.ground\.scheduler\.policy instead$"):
        prepare(shell(), ["fifo"], [], 1, [], **options)
    grid = {"constellation.ground.scheduler.policy": ["fifo", "codel"]}
    plan = lw.sweeps.Plan.from_dict({"scenario": shell(duration="10s"), "seeds": [1], "grid": grid})
    rows = lw.sweeps.run_plan(plan, lw.sweeps.LocalProcesses(1)).table.to_pylist()
    assert {row["constellation.ground.scheduler.policy"] for row in rows} == {"fifo", "codel"}


@pytest.mark.slow
def test_the_vectors_are_what_the_oracle_writes(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["ways.py", "--check"])
    assert lists.main("oracle/ways.py", ways.FOLDER, ways.files()) == 0, capsys.readouterr().out
