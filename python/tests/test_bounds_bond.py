# SPDX-License-Identifier: BSD-3-Clause
"""Bounds of bonds: cases by hand, random bonds in the simulator, what is printed, and what is refused."""

from __future__ import annotations

import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, SCENARIOS
from typer.testing import CliRunner

from linkweir.bounds.attack import BEGIN_NS, Sender
from linkweir.bounds.attack_bond import Bonds
from linkweir.bounds.attack_network import climb_network
from linkweir.bounds.bonds import BoundsOfBond, bounds_of_bonds
from linkweir.bounds.curve import Curve, longest_wait, longest_wait_at, minimum, rate_latency, token_bucket
from linkweir.bounds.network import network_bounds
from linkweir.commands.bounds_bond import outside, sentences
from linkweir.commands.cli import app
from linkweir.fault import ScenarioError
from linkweir.runs.simulate import run
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

sys.path.append(str(REPOSITORY / "bench"))

import bounds_bond

ROUNDING = Fraction(1, 10**7)
"""Sender and receiver count in whole nanoseconds."""


def bond(
    links: list[dict[str, Any]], classes: list[dict[str, Any]], *, policy: str = "strict", **keys: Any
) -> Scenario:
    """Flow f0 sends to the first class, f1 to the second, and so on."""
    flows = [
        {
            "name": f"f{i}",
            "class": one["name"],
            "kind": "cbr",
            "rate": "1Mbit",
            "packet": one.pop("packet"),
            "path": ["x"],
        }
        for i, one in enumerate(classes)
    ]
    links = [{"name": f"l{i}", **link} for i, link in enumerate(links)]
    names = [link["name"] for link in links]
    table = {"name": "x", "links": names, "scheduler": {"policy": policy}, "class": classes, **keys}
    return Scenario.from_dict({"duration": "100ms", "interval": "100ms", "link": links, "bond": [table], "flow": flows})


def bounded(scenario: Scenario, *envelopes: str) -> BoundsOfBond:
    (found,) = bounds_of_bonds(scenario, envelopes=envelopes)
    return found


def delays(found: BoundsOfBond) -> list[Fraction]:
    assert [bound.why_none for bound in found.classes] == [""] * len(found.classes)
    return [bound.delay_s for bound in found.classes if bound.delay_s is not None]


def searched(scenario: Scenario, flow: str, *envelopes: str, runs: int = 12) -> float:
    """The longest delay that a search finds, s; no run exceeds a bound."""
    network = Bonds(scenario, bounds_of_bonds(scenario, envelopes=envelopes), envelopes)
    worst, broken = climb_network(network, flow, runs, 1)
    assert broken == []
    return worst.found_s


# --- curves -----------------------------------------------------------------------------------------------------------


def test_the_longest_wait_is_that_of_a_service_that_must_exceed_what_came_before() -> None:
    """By looking at every packet: it starts when the service is above all bits before it."""
    rng = random.Random(66)
    for _ in range(300):
        arrivals = minimum(
            token_bucket(rng.randint(10, 50), rng.randint(0, 9)), token_bucket(rng.randint(10, 20), rng.randint(9, 90))
        )
        rate, latency = rng.randint(10, 60), Fraction(rng.randint(0, 9), 7)
        pause = latency + Fraction(rng.randint(1, 9), 5)
        level = rate * (pause - latency)
        service = Curve.of([*rate_latency(rate, latency).segments, (pause, level, 0), (pause + 2, level, rate)])
        size = rng.choice((1, 5, 10))
        slow = Fraction(0)
        for number in range(1, 200):
            came = arrivals.first(number * size)
            if came is None:
                break
            bits = Fraction((number - 1) * size)
            starts = latency + bits / rate if bits < level else pause + 2 + (bits - level) / rate
            slow = max(slow, starts - came)
        assert longest_wait_at(arrivals, service, size) == slow
        whole = longest_wait(Curve.of((t, v - size, r) for t, v, r in arrivals.segments), service)
        assert whole is not None
        assert whole >= slow


# --- by hand ----------------------------------------------------------------------------------------------------------

TEN = {"rate": "10Mbit"}


def test_one_class_over_two_links() -> None:
    """Eight packets of 8,000 bit at once. Before the last of them 56,000 bit leave at 20 Mbit/s, and an older packet
    may be on one of the transmitters: 64,000 / 20 M = 3.2 ms. Its own transmission takes 0.8 ms. Eight packets take
    four rounds of 0.8 ms at least."""
    scenario = bond([TEN, TEN], [{"name": "a", "paths": "stripe", "packet": "1000B"}])
    (delay_s,) = delays(bounded(scenario, "f0=8kB:1Mbit"))
    assert delay_s == Fraction(4, 1000)
    assert searched(scenario, "f0", "f0=8kB:1Mbit") >= 0.0032


def test_an_older_packet_on_a_slow_link_leaves_the_fast_one_alone() -> None:
    """The first packet goes over 200 kbit/s, 40 ms; 5 ms later ten come at once. Nine wait for 10 Mbit/s, 7.2 ms,
    where the sum of both rates needed 7.06 ms. The bound counts a packet on either link: 80,000 bit at the sum."""
    scenario = bond(
        [{"rate": "10Mbit", "delay": "1ms"}, {"rate": "200kbit"}], [{"name": "a", "paths": "stripe", "packet": "1000B"}]
    )
    found = bounded(scenario, "f0=10kB:5Mbit")
    (delay_s,) = delays(found)
    wait_s = delay_s - Fraction(40, 1000)
    assert wait_s == Fraction(80_000, 10_200_000)
    network = Bonds(scenario, [found], ["f0=10kB:5Mbit"])
    first = Sender(BEGIN_NS, 1000, light_ns=4_900_000, gap_ns=5_000_000)
    with scratch() as folder:
        result = run(Scenario.from_dict(network.candidate({"f0": first}, folder)))
    (waited_s,) = result.classes["delay_max_s"].to_pylist()  # until a transmitter takes the packet
    assert Fraction(72_000, 10_200_000) < waited_s <= wait_s


def test_two_classes_over_two_links() -> None:
    """The urgent class waits for a packet of 12,000 bit on each link, and the second of its two packets for the
    first: (24,000 + 8,000) / 20 M = 1.6 ms, and 0.8 ms. The other waits for nine of its own packets, an older one on
    one of the links, and 16,000 bit and 1 Mbit/s of the urgent class: 136,000 / 19 M, and 1.2 ms."""
    classes = [
        {"name": "urgent", "paths": "stripe", "packet": "1000B"},
        {"name": "rest", "paths": "stripe", "packet": "1500B"},
    ]
    scenario, envelopes = bond([TEN, TEN], classes), ("f0=2kB:1Mbit", "f1=15kB:1Mbit")
    urgent_s, rest_s = delays(bounded(scenario, *envelopes))
    assert urgent_s == Fraction(24, 10_000)
    assert rest_s == Fraction(136_000, 19 * 10**6) + Fraction(12, 10_000)
    assert searched(scenario, "f0", *envelopes) >= 0.7 * urgent_s
    assert searched(scenario, "f1", *envelopes) >= 0.7 * rest_s


def test_the_slowest_link_counts_for_the_transmission_and_the_fast_one_for_the_wait() -> None:
    """One packet of 8,000 bit behind one of 12,000 bit on each link, 10 and 2 Mbit/s: the fast one is free after 1.2
    ms. If the slow one takes it by then, it needs 4 ms there and 30 ms of propagation. A packet on the fast link
    comes up to 34 - 0.8 - 5 ms before an earlier one on the slow one."""
    links = [{"rate": "10Mbit", "delay": "5ms"}, {"rate": "2Mbit", "delay": "30ms"}]
    classes = [
        {"name": "call", "paths": "stripe", "packet": "1000B"},
        {"name": "rest", "paths": "stripe", "packet": "1500B"},
    ]
    call = bounded(bond(links, classes), "f0=1kB:100kbit", "f1=15kB:1Mbit").classes[0]
    assert call.delay_s == Fraction(12, 10_000) + Fraction(34, 1000)
    assert call.reorder_s is not None
    assert 0 < call.reorder_s - Fraction(34, 1000) + Fraction(58, 10_000) < ROUNDING


def test_a_copy_comes_over_the_link_that_is_best_for_it() -> None:
    """Two packets of 8,000 bit, each over both links behind one of 12,000 bit: 28,000 bit at 10 Mbit/s and 5 ms, or at
    2 Mbit/s and 1 ms. Without the first link, only the second is left."""
    links = [{"rate": "10Mbit", "delay": "5ms"}, {"rate": "2Mbit", "delay": "1ms", "cost": 7}]
    classes = [
        {"name": "control", "paths": "all", "packet": "1000B"},
        {"name": "rest", "paths": ["l0", "l1"], "packet": "1500B"},
    ]
    scenario, envelopes = bond(links, classes), ("f0=2kB:100kbit", "f1=15kB:1Mbit")
    found = bounded(scenario, *envelopes)
    over = [Fraction(28_000, 10**7) + Fraction(5, 1000), Fraction(28_000, 2 * 10**6) + Fraction(1, 1000)]
    assert found.classes[0].delay_s == over[0]
    assert [(one.link, one.cost, one.classes[0].delay_s) for one in found.without] == [
        ("l0", 0, over[1]),
        ("l1", 7, over[0]),
    ]
    assert searched(scenario, "f0", *envelopes) >= 0.9 * over[0]


def test_a_class_that_spills_has_the_first_link_or_all_after_the_room() -> None:
    """It sends 1 Mbit/s. Over the first link of 2 Mbit/s, four packets of 8,000 bit wait for 12 ms and are sent for 4
    ms at most, on either link. At 3 Mbit/s the first link does not suffice: 5 ms at 2 Mbit/s, 10,000 bit, may wait
    when the class becomes full, before 24,000 further ones and a packet on each link."""
    links = [{"rate": "2Mbit"}, {"rate": "2Mbit", "cost": 1}]
    classes = [{"name": "a", "paths": "spill", "packet": "1000B"}]
    scenario = bond(links, classes, room="5ms")
    assert delays(bounded(scenario, "f0=4kB:1Mbit")) == [Fraction(24_000, 2 * 10**6) + Fraction(4, 1000)]
    more = bounded(scenario, "f0=4kB:3Mbit")
    (more_s,) = delays(more)
    assert 0 <= more_s - Fraction(24_000 + 10_000 + 16_000, 4 * 10**6) - Fraction(4, 1000) < ROUNDING
    assert more.without[1].classes[0].why_none == "no bound: up to 3 Mbit/s arrive, and 2 Mbit/s are certain"
    assert searched(scenario, "f0", "f0=4kB:3Mbit", runs=20) > 0.5 * more_s


def test_what_waits_for_the_first_link_counts_before_a_burst() -> None:
    """At 3 Mbit/s, more and more waits for the first link of 2 Mbit/s. When the burst comes, all wait for 4 Mbit/s:
    longer than 56 ms, in which burst, packets on the links and the last packet alone would be sent."""
    links = [{"rate": "2Mbit"}, {"rate": "2Mbit", "cost": 1}]
    scenario = bond(links, [{"name": "a", "paths": "spill", "packet": "1000B"}], room="40ms")
    found = bounded(scenario, "f0=25kB:3Mbit")
    (bound_s,) = delays(found)
    assert 0 <= bound_s - Fraction(192_000 + 80_000 + 16_000, 4 * 10**6) - Fraction(4, 1000) < ROUNDING
    slowly = Sender(BEGIN_NS, 1000, light_ns=46_000_000, gap_ns=2_666_667)
    longest_s = Bonds(scenario, [found], ["f0=25kB:3Mbit"]).measure({"f0": slowly})["f0"]
    assert 0.056 < longest_s <= bound_s
    assert longest_s > 0.8 * bound_s


def test_a_lost_packet_holds_those_behind_it_for_reorder() -> None:
    links = [TEN, {**TEN, "loss": 0.1}]
    classes = [
        {"name": "held", "paths": "stripe", "reorder": "7ms", "packet": "1000B"},
        {"name": "copied", "paths": "all", "packet": "1000B"},
        {"name": "safe", "paths": ["l0"], "reorder": "7ms", "packet": "1000B"},
    ]
    held, copied, safe = bounded(bond(links, classes), "f0=1kB:1Mbit", "f1=1kB:1Mbit", "f2=1kB:1Mbit").classes
    assert held.delay_s is not None
    assert held.received_s is not None
    assert held.delay_s - held.received_s == Fraction(7, 1000)
    assert (held.sure, copied.sure, safe.sure) == (False, True, True)
    assert safe.delay_s == safe.received_s


def test_a_silent_link_counts_for_nothing_until_it_is_known_to_be_alive() -> None:
    """Silent from 20 to 40 ms, found out 10 ms later: a packet that must take it waits for 30 ms at most."""
    silence = {"steps": [["0s", 0.0], ["20ms", 1.0], ["40ms", 0.0]]}
    classes = [{"name": "a", "paths": ["l0"], "packet": "1000B"}]
    links = [{**TEN, "loss": silence}, TEN]
    (delay_s,) = delays(bounded(bond(links, classes, detect="10ms"), "f0=1kB:1Mbit"))
    assert delay_s == Fraction(308 + 500, 10_000)  # with 50 ms of reorder


def test_promises_are_those_that_the_links_can_carry() -> None:
    links = [TEN, {"rate": "2Mbit", "cost": 9}]
    classes = [
        {"name": "ef", "level": 0, "paths": "stripe", "packet": "200B"},
        {"name": "af", "level": 1, "low_level": 3, "rate": "5Mbit", "paths": "stripe", "packet": "1000B"},
        {"name": "cs0", "level": 2, "paths": "stripe", "packet": "1500B"},
    ]
    scenario = bond(links, classes, policy="pss")
    found = bounded(scenario, "f0=200B:100kbit", "f1=1kB:100kbit", "f2=1500B:100kbit")
    assert [(p.name, p.kept_bps) for p in found.promises] == [("af", 5_000_000)]
    assert [one.promises[0].kept_bps for one in found.without] == [2_000_000, 5_000_000]
    ef_s, af_s, cs0_s = delays(found)
    assert ef_s == Fraction(12_000, 10**7) + Fraction(1600, 2 * 10**6)
    assert ef_s < af_s < cs0_s + Fraction(1, 100)


# --- the simulator ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "bonds"), [(1, 80), pytest.param(10_001, 2000, marks=pytest.mark.long)])
def test_no_run_exceeds_a_bound(first: int, bonds: int) -> None:
    attacked = bounds_bond.attacked
    rows = [attacked(seed, 4) for seed in range(first, first + bonds)]
    left = [row["without"] for row in rows if "without" in row]
    assert [sentence for row in [*rows, *left] for sentence in row["broken"]] == []
    for some in (rows, [row for row in left if row["how"] == "down"], [row for row in left if row["how"] != "down"]):
        assert max(row["tightness"] for row in some if row["runs"]) > 0.95


@pytest.mark.parametrize(("first", "bonds"), [(501, 30), pytest.param(20_001, 500, marks=pytest.mark.long)])
def test_limits_and_reorder_that_lose_nothing_lose_nothing(first: int, bonds: int) -> None:
    draw, tried = bounds_bond.draw, 0
    for seed in range(first, first + bonds):
        rng = random.Random(seed)
        scenario, envelopes = draw(rng)
        (found,) = bounds_of_bonds(scenario, envelopes=envelopes)
        if any(bound.delay_s is None or not bound.arrives for bound in found.classes):
            continue
        network = Bonds(scenario, [found], envelopes)
        case = network.first_cases(network.names[0])[0]
        for _ in range(3):
            case = network.mutated(rng, case)
        with scratch() as folder:
            keys = network.candidate(case, folder)
            if all(bound.sure for bound in found.classes):
                as_written = run(Scenario.from_dict(keys))
                assert sum(as_written.bond_paths["late_pkts"].to_pylist()) == 0, seed
                assert sum(as_written.bond_receivers["given_up_pkts"].to_pylist()) == 0, seed
            for entry, bound in zip(keys["bond"][0]["class"], found.classes, strict=True):
                assert entry["name"] == bound.name
                assert bound.reorder_s is not None
                entry["limit"] = f"{max(bound.limit_pkts or 0, 1)}p"
                entry["reorder"] = f"{math.ceil(bound.reorder_s * 10**9)}ns"
            result = run(Scenario.from_dict(keys))
        assert sum(result.bond_paths["late_pkts"].to_pylist()) == 0, seed
        assert sum(result.bond_receivers["given_up_pkts"].to_pylist()) == 0, seed
        assert sum(result.classes["dropped_limit_pkts"].to_pylist()) == 0, seed
        tried += 1
    assert tried > bonds / 6


def test_a_shorter_reorder_loses_a_packet() -> None:
    """Three packets at once, over links of 1 and 30 ms: the third comes up to 29 ms before the second."""
    links = [{**TEN, "delay": "1ms"}, {**TEN, "delay": "30ms"}]
    scenario = bond(links, [{"name": "a", "paths": "stripe", "packet": "1000B"}])
    (bound,) = bounded(scenario, "f0=3kB:1Mbit").classes
    assert bound.reorder_s is not None
    network = Bonds(scenario, bounds_of_bonds(scenario, envelopes=["f0=3kB:1Mbit"]), ["f0=3kB:1Mbit"])
    late = []
    for reorder_ns in (math.ceil(bound.reorder_s * 10**9), 28_000_000):
        with scratch() as folder:
            keys = network.candidate(network.first_cases("f0")[0], folder)
            keys["bond"][0]["class"][0]["reorder"] = f"{reorder_ns}ns"
            late.append(sum(run(Scenario.from_dict(keys)).bond_paths["late_pkts"].to_pylist()))
    assert late[0] == 0
    assert late[1] > 0


def test_a_class_whose_reorder_is_too_short_is_not_sure() -> None:
    """Links of 0 and 50 ms: a packet of 8,000 bit over the first comes 50 ms before one over the second, and each takes
    0.8 ms. With 5 ms, the simulator drops what comes later."""
    links = [TEN, {**TEN, "delay": "50ms"}]
    for paths in ("stripe", "all"):
        for reorder, is_sure in (("5ms", False), ("51ms", True), ("none", True)):
            scenario = bond(links, [{"name": "a", "paths": paths, "packet": "1000B", "reorder": reorder}])
            found = bounded(scenario, "f0=20kB:1Mbit")
            (bound,) = found.classes
            if paths == "stripe":
                assert bound.reorder_s is not None
                assert 0 < bound.reorder_s - Fraction(5, 100) < ROUNDING
                assert bound.sure is is_sure
            needed = f"{float(bound.reorder_s or 0) * 1e3:.3f} ms"
            short = f"a: reorder 5 ms is shorter than {needed}: late packets are dropped"
            assert sentences([bound]) == ([] if bound.sure else [short])
            network = Bonds(scenario, [found], ["f0=20kB:1Mbit"])
            with scratch() as folder:
                result = run(Scenario.from_dict(network.candidate(network.first_cases("f0")[0], folder)))
            dropped = sum(result.bond_paths["late_pkts"].to_pylist())
            if bound.sure:
                assert dropped == 0
            elif paths == "stripe":
                assert dropped > 0


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_classes_and_what_is_left_without_each_link(tmp_path: Path) -> None:
    runner = CliRunner()
    boat = str(SCENARIOS / "boat.toml")
    done = runner.invoke(app, ["bounds", boat])
    assert done.exit_code == 0, done.output
    assert "without lte (cost 10)" in done.output
    assert "3 Mbit/s reserved" in done.output
    assert "give --envelope charts=BURST:RATE" in done.output
    options = ["--envelope", "charts=15kB:1Mbit", "--json", "--report", str(tmp_path / "page.html")]
    done = runner.invoke(app, ["bounds", boat, *options])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["bonds"]
    assert [(one["name"], one["sure"]) for one in found["classes"]] == [
        ("heartbeat", False),
        ("camera", False),
        ("charts", False),
    ]
    assert found["promises"] == [{"name": "camera", "promised_bps": 3_000_000, "kept_bps": 3_000_000}]
    assert [one["link"] for one in found["without"]] == ["starlink", "lte"]
    assert found["without"][0]["classes"][2]["why_none"] == "no bound: none of its links is there"
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 3
    assert "without starlink (cost 0)" in page


def test_the_command_searches_worst_cases_and_writes_them(tmp_path: Path) -> None:
    scenario = bond([TEN, TEN], [{"name": "a", "paths": "stripe", "packet": "1000B"}])
    path = tmp_path / "two.toml"
    path.write_text(scenario.resolved)
    options = ["--envelope", "f0=8kB:1Mbit", "--attack", "3", "--out", str(tmp_path / "w"), "--json"]
    done = CliRunner().invoke(app, ["bounds", str(path), *options])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["attacks"]
    assert 0.7 < row["tightness"] <= 1
    assert run(row["scenario"]).flows["delay_max_s"].to_pylist() == [row["found_s"]]


def test_what_has_no_bound_names_the_key_and_the_cure() -> None:
    def why(links: list[dict[str, Any]], policy: str = "strict", **keys: Any) -> str:
        scenario = bond(links, [{"name": "a", "paths": "stripe", "packet": "1000B", **keys}], policy=policy)
        return bounded(scenario).classes[0].why_none

    assert why([TEN, TEN], policy="codel") == "no bound is known for the policy codel"
    outage = {"rate": {"steps": [["0s", "10Mbit"], ["20ms", "0bit"]], "end": "hold"}, "nominal": "10Mbit"}
    assert why([TEN, outage]) == ""
    assert "class a sends again what a dead link held" in why([TEN, outage], resend=True)
    assert why([TEN, TEN], resend=True) == ""
    fade = {"rate": {"lines": [["0s", "10Mbit"], ["50ms", "0bit"]]}, "nominal": "10Mbit"}
    assert "link l1: its rate changes smoothly and reaches 0; write it in steps" in why([TEN, fade])
    assert "up to 1 Mbit/s arrive, and 0.2 Mbit/s are certain" in why([{"rate": "100kbit"}, {"rate": "100kbit"}])


def test_names_that_are_wrong_are_refused() -> None:
    scenario = bond([TEN, TEN], [{"name": "a", "paths": "stripe", "packet": "1000B"}])
    with pytest.raises(OptionError, match=r"x\.b is neither a flow \(f0\) nor LINK\.CLASS or BOND\.CLASS \(x\.a\)"):
        bounded(scenario, "x.b=1kB:1Mbit")
    with pytest.raises(ScenarioError, match="bounds of a bond are those of its classes; call bounds_of_bonds"):
        network_bounds(scenario)


def test_what_comes_from_another_link_needs_an_envelope() -> None:
    keys = bond([TEN, TEN], [{"name": "a", "paths": "stripe", "packet": "1000B"}]).native.written()
    before = {"name": "before", "rate": "5Mbit", "scheduler": {"policy": "fifo"}, "class": [{"name": "a"}]}
    keys["link"].append(before)
    keys["flow"][0]["path"] = ["before", "x"]
    scenario = Scenario.from_dict(keys)
    (bound,) = bounded(scenario).classes
    assert bound.why_none == "no bound: flow f0 comes from another link; give --envelope x.a=BURST:RATE"
    assert outside(scenario) == ["before is not bounded here, as it is in no bond"]
    assert outside(bond([TEN, TEN], [{"name": "a", "paths": "stripe", "packet": "1000B"}])) == []
    assert bounded(scenario, "x.a=8kB:1Mbit").classes[0].delay_s == Fraction(4, 1000)
