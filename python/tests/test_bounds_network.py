# SPDX-License-Identifier: BSD-3-Clause
"""Bounds over several links: operations on curves, closed forms, a naive model of packets, attacks in the simulator."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import minplus_oracle as oracle
import network_model as naive
import pytest
from command import REPOSITORY
from test_bounds import of
from typer.testing import CliRunner

from linkweir.bounds.answer import bounds
from linkweir.bounds.arrivals import Envelope, Framing
from linkweir.bounds.convex import convex, convolution, deconvolution, left_over, lowered, tidied
from linkweir.bounds.curve import Curve, minimum, rate_latency, token_bucket
from linkweir.bounds.network import NetworkBounds, network_bounds
from linkweir.bounds.paths import CLOCK_S, Analysis, Link, Stop, Traffic, factor
from linkweir.bounds.policies import Queue, Setting
from linkweir.commands.cli import app
from linkweir.fault import ScenarioError
from linkweir.runs.simulate import run
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario


def test_operations_agree_with_the_oracle_in_random_cases() -> None:
    rng = random.Random(61)
    for _ in range(500):
        services = [rate_latency(rng.randint(20, 60), Fraction(rng.randint(0, 9), 7)) for _ in range(2)]
        services.append(convolution([services[0], _bent(rng)]))
        one, other = services[rng.randrange(3)], _bent(rng)
        buckets = [token_bucket(rng.randint(5, 50), Fraction(rng.randint(1, 40), rng.randint(2, 9))) for _ in range(2)]
        arrivals = minimum(*buckets)
        together, out = convolution([one, other]), deconvolution(arrivals, one)
        short = tidied(arrivals)
        for t in [Fraction(rng.randint(0, 400), 37) for _ in range(4)]:
            assert together(t) == oracle.in_series(of(one), of(other), t)
            assert out is not None
            assert out(t) == oracle.output(of(arrivals), of(one), t)
            assert arrivals(t) <= short(t) < arrivals(t) + 1
            assert lowered(one, 30)(t) == max(one(t) - 30, 0)


def _bent(rng: random.Random) -> Curve:
    """A convex curve of three pieces."""
    slopes = sorted(rng.randint(0, 60) for _ in range(2))
    first, second = sorted((Fraction(rng.randint(1, 30), 7), Fraction(rng.randint(31, 60), 7)))
    bits = slopes[0] * first
    return Curve.of(
        [(0, 0, slopes[0]), (first, bits, slopes[1]), (second, bits + slopes[1] * (second - first), slopes[1] + 20)]
    )


def test_the_convex_minorant_lies_below_and_is_the_greatest() -> None:
    """Each of its corners lies on the curve or at its lower side, and its slopes rise."""
    rng = random.Random(62)
    for _ in range(300):
        segments, t, bits = [(Fraction(0), Fraction(0), Fraction(0))], Fraction(0), Fraction(0)
        for _ in range(rng.randint(1, 6)):
            t += Fraction(rng.randint(1, 9), 3)
            bits = oracle.value(segments, t)
            segments.append((t, bits, Fraction(rng.randint(0, 9))))
        curve = Curve.of([*segments, (t + 1, oracle.value(segments, t + 1), 5)])
        below = convex(curve)
        slopes = [slope for _, _, slope in below.segments]
        assert slopes == sorted(slopes)
        assert all(below(x) <= curve(x) for x in [*curve.starts, *(Fraction(i, 7) for i in range(150))])
        assert all(below(start) == curve(start) for start in below.starts)


def test_what_a_flow_has_for_itself_is_the_difference_of_the_curves() -> None:
    """Le Boudec and Thiran 2001, proposition 6.4.1, at every delay from which on the difference is not negative."""
    rng = random.Random(63)
    for _ in range(300):
        service = rate_latency(rng.randint(20, 60), Fraction(rng.randint(0, 9), 7))
        cross = minimum(token_bucket(rng.randint(5, 30), rng.randint(1, 9)), token_bucket(3, rng.randint(9, 90)))
        delay = Fraction(rng.randint(20, 90), 10)
        own = left_over(service, cross, delay)
        for u in [Fraction(rng.randint(0, 400), 37) for _ in range(4)]:
            later = [u, *(t for t in cross.starts if t > u), *(t - delay for t in service.starts if t - delay > u)]
            least = min(service(delay + t) - cross(t) for t in later)
            assert own(u) == max(least, 0)


def test_packets_that_are_filled_up_grow_most_when_they_are_small() -> None:
    for first, second in ((Framing(0, 0), Framing(20, 84)), (Framing(24, 64), Framing(0, 0))):
        slow = max(Fraction(second.bits(size), first.bits(size)) for size in range(40, 1501))
        assert factor(first, second, (40, 1500)) == slow


# --- links by hand ----------------------------------------------------------------------------------------------------


def by_hand(
    policy: str, rate: int, *, queues: int = 1, delay: Fraction | int = 0, params: list[dict[str, Any]] | None = None
) -> Link:
    nothing = Envelope(token_bucket(0, 0), "", 8, 8)
    names = [
        Queue(f"q{i}", (params or [{}] * queues)[i] | {"level": i * (policy == "strict")}, nothing)
        for i in range(queues)
    ]
    setting = Setting(policy, {}, rate_latency(rate, 0), 1, Fraction(rate), (Fraction(rate), Fraction(rate)), names)
    at = Fraction(delay)
    return Link(f"{policy}-{rate}", setting, Framing(0, 0), (at, at), True, Fraction(rate), {})


def source(bits: int, curve: Curve) -> Callable[[Framing], Envelope]:
    return lambda _: Envelope(curve, "", bits, bits)


def test_a_burst_is_paid_once() -> None:
    """Ten packets of 12,000 bit over links of 10, 5 and 10 Mbit/s: one is sent at the first, all ten at the second, and
    the last of them at the third."""
    links = [by_hand("fifo", rate, delay=Fraction(1, 1000)) for rate in (10**7, 5 * 10**6, 10**7)]
    way = tuple(Stop(i, 0) for i in range(3))
    analysis = Analysis(links, [Traffic("f", way, source(12000, token_bucket(120_000, 10**6)))])
    found = analysis.delay_s(0)
    assert found is not None
    exact = Fraction(12_000, 10**7) + Fraction(120_000, 5 * 10**6) + Fraction(12_000, 10**7) + Fraction(3, 1000)
    assert exact <= found < exact + 9 * CLOCK_S
    # one by one, the burst waits at the first link and again, as fast as that sends, at the second
    assert sum(analysis.at[stop].delay_s or 0 for stop in way) + Fraction(3, 1000) > found + Fraction(1, 1000)
    stretches = analysis.stretches(0)
    assert stretches is not None
    assert [len(stretch.stops) for stretch in stretches] != [1, 1, 1]


def test_cross_traffic_that_leaves_delays_only_where_it_was() -> None:
    """Two FIFO links; the other flow passes the first only. Its burst does not count at the second."""
    links = [by_hand("fifo", 10**7), by_hand("fifo", 10**7)]
    mine = Traffic("mine", (Stop(0, 0), Stop(1, 0)), source(12000, token_bucket(12_000, 10**6)))
    other = Traffic("other", (Stop(0, 0),), source(12000, token_bucket(120_000, 10**6)))
    analysis = Analysis(links, [mine, other])
    assert analysis.at[Stop(0, 0)].delay_s == Fraction(132_000, 10**7)
    second = analysis.at[Stop(1, 0)].delay_s
    assert second is not None
    # the line lets one packet through, and then no faster than the second link sends
    assert second <= Fraction(12_000, 10**7) + 2 * CLOCK_S


def test_a_ring_gets_a_fixed_point_and_one_that_grows_gets_a_sentence() -> None:
    def ring(count: int, rate_bps: int, **changed: Any) -> Analysis:
        links = [replace(by_hand("fifo", 10**7), name=f"l{i}", **changed) for i in range(count)]
        ways = [tuple(Stop((i + j) % count, 0) for j in range(count)) for i in range(count)]
        sent = source(12000, token_bucket(24_000, rate_bps))
        return Analysis(links, [Traffic(f"f{i}", way, sent) for i, way in enumerate(ways)])

    calm = ring(3, 10**6)
    assert calm.order == [[0, 1, 2]]
    assert all((calm.delay_s(i) or 0) > Fraction(24_000, 10**7) for i in range(3))
    # at this load of 95 % a delay d makes bursts of 0.19 x 0, d, 2d, 3d, 4d, together more than d
    growing = ring(5, 19 * 10**5, peak_bps=None)
    assert growing.delay_s(0) is None
    assert "the links l0, l1, l2, l3, l4 depend on each other in a ring" in growing.at[Stop(0, 0)].why_none


def test_a_link_behind_another_is_analysed_after_it_however_they_are_listed() -> None:
    links = [by_hand("fifo", 10**7), by_hand("fifo", 5 * 10**6)]
    flow = source(12000, token_bucket(60_000, 10**6))
    forward = Analysis(links, [Traffic("f", (Stop(0, 0), Stop(1, 0)), flow)])
    backward = Analysis(links[::-1], [Traffic("f", (Stop(1, 0), Stop(0, 0)), flow)])
    assert forward.delay_s(0) == backward.delay_s(0)


# --- a naive model ----------------------------------------------------------------------------------------------------


def played(rng: random.Random) -> None:
    """A random network by hand: no packet is later, no queue longer, no arrivals more than the analysis says."""
    count = rng.randint(2, 4)
    ring = rng.random() < 0.3
    links, stations, quanta = [], [], []
    for _ in range(count):
        policy, rate = rng.choice(("fifo", "strict", "rr", "drr")), rng.choice((4, 8, 10)) * 10**6
        delay = rng.choice((Fraction(0), Fraction(1, 700)))
        quanta = [rng.choice((500, 1500)) for _ in range(3)]
        links.append(by_hand(policy, rate, queues=3, delay=delay, params=[{"quantum": q} for q in quanta]))
        stations.append(naive.Station(policy, rate, delay, 3, [8 * q for q in quanta]))
    traffic, ways, packets = [], [], []
    for number in range(rng.randint(2, 5)):
        first, length = rng.randrange(count), rng.randint(1, count)
        passed = [(first + i) % count for i in range(length)] if ring else list(range(first, count))[:length]
        way = [(link, rng.randrange(3)) for link in passed]
        bits, rate = 8 * rng.choice((200, 700, 1500)), rng.randint(50, 700) * 1000
        burst = bits * rng.randint(1, 6)
        traffic.append(Traffic(f"f{number}", tuple(Stop(*at) for at in way), source(bits, token_bucket(burst, rate))))
        ways.append(way)
        start = rng.choice((Fraction(0), Fraction(rng.randint(0, 8), 1000)))
        instants = [start + max(Fraction((k + 1) * bits - burst, rate), Fraction(0)) for k in range(30)]  # greedy
        packets += [naive.Packet(number, bits, at) for at in instants]
    analysis = Analysis(links, traffic)
    rng.shuffle(packets)
    worst = naive.play(stations, ways, packets)
    for number, delay_s in enumerate(worst):
        bound_s = analysis.delay_s(number)
        assert bound_s is None or delay_s <= bound_s
    for link, station in enumerate(stations):
        for queue in range(3):
            at = analysis.at[Stop(link, queue)]
            if at.arrivals is None:
                continue
            assert at.backlog_bits is not None
            assert station.worst_bits[queue] <= at.backlog_bits
            rows = station.arrived[queue]
            for i in range(0, len(rows), 3):
                bits = 0
                for instant, size in rows[i:]:
                    bits += size
                    assert bits <= at.arrivals(instant - rows[i][0])


@pytest.mark.slow
def test_a_naive_model_of_packets_keeps_all_bounds_and_arrival_curves() -> None:
    rng = random.Random(64)
    for _ in range(60):
        played(rng)


@pytest.mark.slow
def test_a_naive_model_of_packets_keeps_all_bounds_in_many_networks() -> None:
    rng = random.Random(65)
    for _ in range(400):
        played(rng)


# --- the simulator ----------------------------------------------------------------------------------------------------


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bounds_network", REPOSITORY / "bench/bounds_network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("first", "networks"),
    [(1, 20), pytest.param(101, 80, marks=pytest.mark.slow), pytest.param(201, 800, marks=pytest.mark.long)],
)
def test_no_run_exceeds_a_bound(first: int, networks: int) -> None:
    attacked = bench().attacked
    rows = [attacked(seed, 4) for seed in range(first, first + networks)]
    assert [sentence for row in rows for sentence in row["broken"]] == []
    assert max(row["tightness"] for row in rows) > 0.95


HOUSE = """
duration = "1s"
[[link]]
name = "up"
rate = "5Mbit"
delay = "5ms"
[link.scheduler]
policy = "strict"
[[link.class]]
name = "voice"
level = 0
[[link.class]]
name = "rest"
level = 1
[[link]]
name = "core"
like = "up"
rate = "20Mbit"
[[link]]
name = "down"
like = "up"
[[flow]]
name = "call"
kind = "cbr"
rate = "100kbit"
packet = "200B"
class = "voice"
count = 2
path = ["up", "core"]
[[flow]]
name = "data"
kind = "tcp"
class = "rest"
path = ["up", "core"]
back = ["down"]
"""


def house(*envelopes: str, text: str = HOUSE) -> NetworkBounds:
    return network_bounds(Scenario.parse(text), envelopes=envelopes)


def test_a_call_waits_for_one_packet_of_each_link() -> None:
    """Two packets of 200 B and one segment of 1,500 B at 5 Mbit/s; at 20 Mbit/s no two calls' packets come at once."""
    call, data, back = house().ways
    assert (call.flow, call.copies, data.delay_s, back.delay_s) == ("call", 2, None, None)
    up, core = (hop.at.delay_s for hop in call.hops)
    slack = Fraction(1, 10**6)
    assert up is not None
    assert core is not None
    assert 0 <= up - Fraction(8 * (400 + 1500), 5 * 10**6) < slack
    assert 0 <= core - Fraction(8 * (200 + 1500), 20 * 10**6) < Fraction(8 * 200, 20 * 10**6) + slack
    assert call.delay_s is not None
    assert call.delay_s <= up + core + Fraction(10, 1000) + slack


def test_tcp_and_its_acknowledgements_need_envelopes() -> None:
    reasons = {way.flow: way.why_none for way in house().ways}
    assert "give --envelope data=BURST:RATE" in reasons["data"]
    assert (
        "acknowledgements of flow data (tcp) have no arrival curve; give --envelope down.rest="
        in reasons["data (back)"]
    )
    found = house("data=15kB:1Mbit", "down.rest=500B:100kbit")
    assert all(way.delay_s is not None for way in found.ways)
    # what arrives at a class is known, whatever its flows send
    shaped = house("up.rest=15kB:1Mbit")
    assert shaped.ways[1].delay_s is not None
    assert shaped.ways[2].delay_s is None


def test_the_bounds_of_classes_refuse_several_links() -> None:
    with pytest.raises(ScenarioError, match=r"link\.name = up: bounds of a network are those of its flows' ways"):
        bounds(Scenario.parse(HOUSE))


def test_a_policy_without_a_bound_is_named_with_its_link() -> None:
    other = 'scheduler = { policy = "fq_codel" }\nclass = [{ name = "voice" }, { name = "rest" }]'
    text = HOUSE.replace('name = "core"\nlike = "up"', f'name = "core"\nlike = "up"\n{other}')
    call = house(text=text).ways[0]
    assert call.delay_s is None
    assert "no bound is known for the policy fq_codel" in call.why_none
    assert call.hops[0].at.delay_s is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cal=1kB:1Mbit", "cal is neither a flow (call, data) nor LINK.CLASS or BOND.CLASS (up.voice, up.rest, core"),
        ("up.voce=1kB:1Mbit", "up.voce is neither a flow"),
        ("call=1kB", "write it as CLASS=BURST:RATE"),
        ("call=100B:1Mbit", "a burst of 100 B lets no packet of the flow pass: the smallest has 200 B"),
    ],
)
def test_a_wrong_envelope_is_refused(text: str, said: str) -> None:
    with pytest.raises(OptionError) as refused:
        house(text)
    assert said in str(refused.value)


def test_the_command_prints_flows_and_queues_and_writes_worst_cases(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_text(HOUSE)
    runner = CliRunner()
    done = runner.invoke(app, ["bounds", str(path)])
    assert done.exit_code == 0, done.output
    assert "up: voice" in done.output
    options = ["--envelope", "data=3kB:500kbit", "--attack", "3", "--out", str(tmp_path / "w"), "--json"]
    done = runner.invoke(app, ["bounds", str(path), *options, "--report", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [flow["name"] for flow in found["flows"]] == ["call", "data", "data (back)"]
    assert found["flows"][0]["path"] == [["up", "voice"], ["core", "voice"]]
    assert sum(stretch["links"] for stretch in found["flows"][0]["stretches"]) == 2
    assert (tmp_path / "page.html").read_text().count("<svg") >= 4
    for row in found["attacks"]:
        assert 0.5 < row["tightness"] <= 1
        flows = run(row["scenario"]).flows.to_pydict()
        assert dict(zip(flows["flow"], flows["delay_max_s"], strict=True))[row["name"]] == row["found_s"]
    done = runner.invoke(app, ["bounds", str(path), "--worst", "60%/1s"])
    assert done.exit_code == 2
    assert "is for one link" in done.output


def test_a_segment_of_tcp_has_its_headers(tmp_path: Path) -> None:
    """A call's packet that comes when a segment has just begun waits for all of its 1,500 B, not only the payload."""
    calls = tmp_path / "calls.csv"
    calls.write_text("t_s,bytes\n" + "".join(f"{0.5 + 0.0173 * i:.9f},200\n" for i in range(100)))
    keys = {
        "duration": "3s",
        "link": {"rate": "1Mbit"},
        "scheduler": {"policy": "strict"},
        "class": [{"name": "voice", "level": 0}, {"name": "rest", "level": 1}],
        "flow": [
            {"name": "calls", "class": "voice", "kind": "replay", "file": str(calls)},
            {"name": "data", "class": "rest", "kind": "tcp"},
        ],
    }
    scenario = Scenario.from_dict(keys)
    bound_s = bounds(scenario)[0].delay_s
    assert bound_s == Fraction(8 * (200 + 1500), 10**6)
    longest_s = run(scenario).flows.to_pydict()["delay_max_s"][0]
    assert Fraction(8 * (200 + 1448), 10**6) < longest_s <= bound_s
