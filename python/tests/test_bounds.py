# SPDX-License-Identifier: BSD-3-Clause
"""Bounds: curves against a slow second implementation and closed forms, sentences, and runs that try to exceed them."""

from __future__ import annotations

import json
import random
import struct
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import minplus_oracle as oracle
import pytest
from typer.testing import CliRunner

from linkweir.bounds import capacity
from linkweir.bounds.answer import bounds, envelope, framing_of
from linkweir.bounds.arrivals import empirical
from linkweir.bounds.attack import Sender, climb, packets
from linkweir.bounds.curve import Curve, add, horizontal, minimum, rate_latency, residual, token_bucket, vertical
from linkweir.bounds.page import Distance, largest_backlog, longest_delay
from linkweir.bounds.policies import compose, shared, smooth
from linkweir.commands.cli import app
from linkweir.directories.provenance import write_whole
from linkweir.runs.simulate import run
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def of(curve: Any) -> oracle.Corners:
    return list(curve.segments)


def test_curves_agree_with_the_oracle_in_random_cases() -> None:
    rng = random.Random(23)
    for _ in range(1000):
        buckets = [token_bucket(rng.randint(1, 50), Fraction(rng.randint(0, 40), rng.randint(1, 9))) for _ in range(3)]
        service = rate_latency(Fraction(rng.randint(50, 99), rng.randint(1, 3)), Fraction(rng.randint(0, 9), 7))
        if rng.random() < 0.5:  # and an outage later
            begins, until = service.starts[-1] + 1, service.starts[-1] + 1 + Fraction(rng.randint(1, 30), 7)
            level, rate = service(begins), service.rate
            service = Curve.of([*service.segments, (begins, level, 0), (until, level, rate)])
        mine, others = minimum(buckets[0], buckets[1]), [buckets[2], add(buckets[:2])][: rng.randint(1, 2)]
        blocking = Fraction(rng.randint(0, 20))
        left = residual(service, others, blocking)
        for t in [Fraction(rng.randint(0, 400), 37) for _ in range(4)] + left.starts:
            assert left(t) == oracle.rest(of(service), [of(x) for x in others], blocking, t)
            assert mine(t) == min(oracle.value(of(b), t) for b in buckets[:2])
        found = horizontal(mine, left)
        assert left.rate == 0 or (found is None) == (mine.rate > left.rate)
        if found is not None:
            slow = oracle.delay(of(mine), of(left))
            assert slow <= found <= slow + Fraction(1, 10**9)
            assert vertical(mine, left) == oracle.backlog(of(mine), of(left))


def test_token_bucket_and_rate_latency_as_fractions() -> None:
    """Le Boudec and Thiran 2001, theorems 1.4.1 and 1.4.2: T + b / R and b + r T."""
    for b, r, rate, latency in [
        (Fraction(7, 3), Fraction(1, 3), Fraction(5, 7), Fraction(2, 9)),
        (Fraction(1), Fraction(0), Fraction(1, 9), Fraction(0)),
    ]:
        assert horizontal(token_bucket(b, r), rate_latency(rate, latency)) == latency + b / rate
        assert vertical(token_bucket(b, r), rate_latency(rate, latency)) == b + r * latency


def test_drr_as_on_the_page() -> None:
    """The level has received x + first + each * k when the class has sent x, with k = floor((x + l - 8) / Q)."""
    quantum, lost, first, each = Fraction(12000), Fraction(11992), Fraction(35984), Fraction(24000)
    service = compose(shared(quantum, lost, first, each), rate_latency(10**7, Fraction(1, 1000)))
    for bits in (8, 12000, 12008, 24008, 36000):
        done = (bits + lost) // quantum
        # the packet that ends at `bits` belongs to a visit that is not complete before it
        done = (bits - 1 + lost) // quantum
        assert service.first(bits) == Fraction(1, 1000) + (bits + first + each * done) / Fraction(10**7)


def test_round_robins_agree_with_visits_played_one_by_one() -> None:
    """The instant at which each bit, or packet, of a class has left at the latest."""
    rng = random.Random(24)
    visits = 20  # as many as are looked at
    for _ in range(1000):
        link = rate_latency(Fraction(rng.randint(1, 50), rng.randint(1, 7)), Fraction(rng.randint(0, 9), 7))
        latency, rate = link.starts[-1], link.rate
        own, *rivals = [(rng.randint(3, 12), rng.randint(1, 3), rng.randint(3, 12)) for _ in range(rng.randint(2, 4))]
        first = sum(q + length - grain for q, grain, length in rivals)
        service = compose(shared(own[0], own[2] - own[1], first, sum(q for q, _, _ in rivals), visits), link)
        for bits in rng.sample(range(1, 40), 2):
            assert service.first(bits) == latency + oracle.drr_needs(*own, rivals, bits) / rate
        weights = [(rng.randint(1, 6), rng.randint(1, 9)) for _ in rivals]
        service = compose(smooth(own[0], own[2], weights, visits), link)
        for number in rng.sample(range(1, 16), 2):
            needs = oracle.smooth_needs(own[0], own[2], weights, number)
            assert service.first(number * own[2]) == latency + needs / rate


def test_a_trace_is_exact_on_its_bins() -> None:
    starts, rates, end = [0, 10**9, 2 * 10**9], [3.0, 1.0, 2.0], 3 * 10**9
    curve = capacity.of_steps(starts, rates, end)
    assert [curve(t) for t in range(5)] == [0, 1, 3, 6, 7]
    assert curve(Fraction(1, 2)) == Fraction(1, 2)


def test_worst_case_of_a_window() -> None:
    curve = capacity.worst_case("60%/10s", Fraction(1000))
    assert [curve(t) for t in (4, 5, 10, 14, 20)] == [0, 1000, 6000, 6000, 12000]


def test_empirical_curve_covers_every_run_of_packets() -> None:
    rng = random.Random(1)
    times = sorted(Fraction(rng.randint(0, 1000), 7) for _ in range(60))
    sizes = [rng.randint(1, 50) for _ in times]
    curve = empirical(times, sizes)
    for i in range(60):
        for j in range(i, 60):
            assert curve(times[j] - times[i]) >= sum(sizes[i : j + 1])


def test_senders_stay_within_their_curve() -> None:
    curve = minimum(token_bucket(36000, 10**6), token_bucket(12000, 5 * 10**6))
    rows = packets(curve, Sender(5, 1500), 10**9)
    for i in range(len(rows)):
        for j in range(i, len(rows)):
            assert curve(Fraction(rows[j][0] - rows[i][0], 10**9)) >= 12000 * (j - i + 1)


def scenario(policy: str, ring: int = 1, last: str = "cbr", **keys: dict[str, Any]) -> Scenario:
    classes = [{"name": n, **keys.get(n, {})} for n in ("ef", "af", "cs0")]
    flows = [{"class": n, "kind": "cbr", "rate": "1Mbit", "packet": "1500B"} for n in ("ef", "af", "cs0")]
    if last == "greedy":
        flows[2] = {"class": "cs0", "kind": "greedy"}
    link = {"rate": "10Mbit", "ring": ring}
    every = {"duration": "400ms", "interval": "100ms", "link": link, "scheduler": {"policy": policy}}
    return Scenario.from_dict({**every, "class": classes, "flow": flows})


LEVELS: dict[str, dict[str, Any]] = {"ef": {"level": 0}, "af": {"level": 1}, "cs0": {"level": 2}}
RESERVED = {**LEVELS, "af": {"level": 1, "low_level": 3, "rate": "3Mbit", "memory": "500ms"}}


@pytest.mark.slow
@pytest.mark.parametrize("ring", [1, 4])
@pytest.mark.parametrize(
    ("policy", "keys"), [("fifo", {}), ("strict", LEVELS), ("pss", RESERVED), ("drr", {}), ("wrr", {}), ("rr", {})]
)
def test_no_run_exceeds_a_bound(policy: str, keys: dict[str, dict[str, Any]], ring: int) -> None:
    case = scenario(policy, ring, **keys)
    curves = dict(envelope(text) for text in ("ef=9000B:1Mbit", "af=6000B:2Mbit", "cs0=4500B:1Mbit"))
    found = bounds(case, envelopes=curves)
    for bound in found:
        assert bound.delay_s is not None, bound.why_none
        worst, broken = climb(case, found, bound.name, 8, 1, dict.fromkeys(("ef", "af", "cs0"), (1500, 1500)))
        assert broken == []
        assert worst.tightness > 0.3


def test_the_search_takes_an_overhead_of_a_kilobyte() -> None:
    """EF's three packets and one in the device, 2,500 B each; a resolved scenario has the overhead as 1kB."""
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["link"]["overhead"] = "1000B"
    case = Scenario.from_dict(keys)
    curves = dict(envelope(text) for text in ("ef=7500B:1Mbit", "af=2500B:1Mbit", "cs0=2500B:1Mbit"))
    found = bounds(case, envelopes=curves)
    assert found[0].delay_s == Fraction(4 * 20000, 10**7)
    worst, broken = climb(case, found, "ef", 4, 1, dict.fromkeys(("ef", "af", "cs0"), (1500, 1500)))
    assert broken == []
    assert worst.tightness > 0.9999


def test_strict_of_equal_packets_is_reached() -> None:
    """EF's delay: its burst and one packet in the device, 5 packets of 1.2 ms."""
    case = scenario("strict", **LEVELS)
    curves = dict(envelope(text) for text in ("ef=6000B:1Mbit", "af=1500B:1Mbit", "cs0=1500B:1Mbit"))
    found = bounds(case, envelopes=curves)
    assert found[0].delay_s == Fraction(5 * 12000, 10**7)
    worst, _ = climb(case, found, "ef", 6, 1, dict.fromkeys(("ef", "af", "cs0"), (1500, 1500)))
    assert worst.tightness > 0.9999


@pytest.mark.parametrize(
    ("rate", "worst"),
    [
        ("10Mbit", "50%/100ms"),
        ({"steps": [["0s", "10Mbit"], ["130ms", "0bit"], ["180ms", "10Mbit"]], "end": "loop", "period": "400ms"}, None),
    ],
)
def test_the_search_finds_the_outage(rate: object, worst: str | None) -> None:
    """An outage of 50 ms begins with EF's burst; the packet in the device and EF's four follow, 1.2 ms each."""
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["link"] |= {"rate": rate, "nominal": "10Mbit"}
    keys["warmup"] = "300ms"  # of the scenario, not of the search
    case = Scenario.from_dict(keys)
    curves = dict(envelope(text) for text in ("ef=6000B:1Mbit", "af=1500B:1Mbit", "cs0=1500B:1Mbit"))
    found = bounds(case, envelopes=curves, worst=worst)
    assert found[0].delay_s == Fraction(50, 1000) + Fraction(5 * 12000, 10**7)
    sizes = dict.fromkeys(("ef", "af", "cs0"), (1500, 1500))
    attack, broken = climb(case, found, "ef", 8, 1, sizes, worst)
    assert broken == []
    assert attack.tightness > 0.999


def test_the_arrival_curve_of_a_capture_covers_its_packets(tmp_path: Path) -> None:
    """Frames of 114 B are packets of 100 B: three within 2 ms are 2400 bits, and one more comes within 10 ms."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    frames = b"".join(struct.pack("<IIII", 5, at_us, 114, 114) + bytes(114) for at_us in (0, 1000, 2000, 10000))
    (tmp_path / "calls.pcap").write_bytes(header + frames)
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["flow"][0] = {"class": "ef", "kind": "replay", "file": str(tmp_path / "calls.pcap")}
    curve = bounds(Scenario.from_dict(keys))[0].arrivals
    assert curve is not None
    assert [curve(Fraction(ms, 1000)) for ms in (0, 1, 2, 10, 1000)] == [800, 1600, 2400, 3200, 3200]


def delays(case: Scenario, *texts: str) -> list[Fraction]:
    found = [bound.delay_s for bound in bounds(case, envelopes=dict(envelope(text) for text in texts))]
    assert None not in found
    return [delay for delay in found if delay is not None]


def test_drr_of_equal_packets_wastes_less_than_a_packet_of_any_size() -> None:
    """Quanta of 500 B and packets of 1,500 B: deficits end at 0, 500 or 1,000 B, so a rival's last visits may send
    1,000 B more than its quantum. AF's one packet needs up to 3 further visits; those before it cost each rival
    4 * 500 + 1,000 B, and one packet of AF itself or 500 B may be in the device."""
    case = scenario("drr", **{name: {"quantum": "500B"} for name in ("ef", "af", "cs0")})
    many = ("ef=90kB:1Mbit", "af=1500B:1Mbit", "cs0=90kB:1Mbit")
    bits = 8 * (1500 + 1500 + 2 * (3 * 500 + 1000))
    found = delays(case, *many)[1]
    assert found == Fraction(bits, 10**7)


def test_rivals_that_send_little_cost_no_more_than_that() -> None:
    """CS0 sends 300 B at most at a time; visits alone would count its quantum in each of AF's."""
    case = scenario("drr", **{name: {"quantum": "1500B"} for name in ("ef", "af", "cs0")})
    little = delays(case, "ef=90kB:2Mbit", "af=9kB:2Mbit", "cs0=1500B:10kbit")[1]
    much = delays(case, "ef=90kB:2Mbit", "af=9kB:2Mbit", "cs0=90kB:2Mbit")[1]
    # AF's 6 packets, 6 visits of EF and its deficit's rest, AF's packet in the device
    without = Fraction(8 * (9000 + 6 * 1500 + 1500), 10**7)
    assert without < little < without + Fraction(8 * 3 * 1500, 10**7) < much


def test_a_reserved_class_that_cannot_reach_lm_waits_as_at_its_high_level() -> None:
    """AF's burst of 6,000 B lies below LM - LR = 19 * 12,112 * 0.7 bit, so it waits for EF's burst, its own and CS0's
    packet: 2,250 B more than C - r_EF carries at once."""
    case = scenario("pss", **RESERVED)
    ef, af, _ = delays(case, "ef=9000B:1Mbit", "af=6000B:2Mbit", "cs0=4500B:1Mbit")
    assert ef == Fraction(8 * (9000 + 1500), 10**7)
    assert af == Fraction(8 * (9000 + 6000 + 1500), 9 * 10**6)
    more = delays(case, "ef=9000B:1Mbit", "af=21kB:2Mbit", "cs0=4500B:1Mbit")[1]
    assert more > Fraction(8 * (9000 + 21000 + 1500), 9 * 10**6)


def test_a_class_with_an_envelope_and_no_flow_may_send_packets_of_1500_bytes() -> None:
    """EF waits for one of CS0's; without a flow of CS0 nothing else says how long that is."""
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["flow"] = keys["flow"][:2]
    ef = delays(Scenario.from_dict(keys), "ef=1500B:1Mbit", "af=1500B:1Mbit", "cs0=9kB:1Mbit")[0]
    assert ef == Fraction(2 * 12000, 10**7)
    keys["flow"][1]["packet"] = "200B"
    ef = delays(Scenario.from_dict(keys), "ef=1500B:1Mbit", "af=1500B:1Mbit", "cs0=9kB:1Mbit")[0]
    assert ef == Fraction(2 * 12000, 10**7)


def test_calls_have_packets_of_their_codec_and_of_the_links_overhead() -> None:
    """Three calls of G.711: 3 x (160 + 40 + 60 B) at once, one packet of 1,560 B before them, at 10 Mbit/s. The flow's
    own packets of 1,500 B are not those of the calls."""
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["link"]["overhead"] = "60B"
    case = Scenario.from_dict(keys)
    name, curve = envelope("ef=3xg711", framing_of(case.native.tables()["link"]))
    found = bounds(case, envelopes={name: curve})[0]
    assert found.delay_s == Fraction(8 * (3 * 260 + 1560), 10**7)
    assert found.limit_pkts is not None
    assert found.limit_pkts >= 3


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["ef=-15kB:1Mbit"], "is below 0"),
        (["ef=15kB:-1Mbit"], "is below 0"),
        (["ef=1:2:3"], "write it as CLASS=BURST:RATE"),
        (["ef=0B:0bit"], "a burst of 0 B lets no packet of the class pass: the smallest has 1500 B"),
        (["ef=1kB:1Mbit,100B:5Mbit"], "a burst of 100 B lets no packet of the class pass"),
        (["ef=2kB:1Mbit", "ef=9kB:9Mbit"], "ef has an envelope already"),
    ],
)
def test_an_envelope_in_which_no_packet_fits_gets_no_bound(texts: list[str], said: str) -> None:
    options = [word for text in texts for word in ("--envelope", text)]
    done = CliRunner().invoke(app, ["bounds", str(SCENARIOS / "geo.toml"), *options])
    assert done.exit_code == 2
    assert said in done.output
    assert "unpack" not in done.output  # a word of Python


def test_a_report_in_the_place_of_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(IsADirectoryError, match=r"page'$"):
        write_whole(tmp_path / "page", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def longest_s(case: Scenario, name: str) -> float:
    """The longest delay of a class in a run."""
    rows = run(case).flows.to_pydict()
    return max(delay or 0.0 for of, delay in zip(rows["class"], rows["delay_max_s"], strict=True) if of == name)


def packets_at(folder: Path, name: str, *rows: tuple[float, int]) -> dict[str, str]:
    """A flow of these packets: s and bytes."""
    path = folder / f"{name}.csv"
    path.write_text("t_s,bytes\n" + "".join(f"{at_s},{size}\n" for at_s, size in rows))
    return {"class": name, "kind": "replay", "file": str(path)}


@pytest.mark.parametrize(
    ("rate", "at_s"),
    [
        ({"lines": [["0s", "10Mbit"], ["100ms", "10Mbit"], ["101ms", "0bit"], ["103ms", "10Mbit"]]}, 0.1008),
        ({"lines": [["0s", "10Mbit"], ["100ms", "0bit"], ["200ms", "10Mbit"]]}, 0.0995),
        ({"mean": "10Mbit", "amplitude": 1.0, "period": "20ms"}, 0.109),
    ],
)
def test_the_bound_holds_in_the_dip_of_a_smooth_capacity(rate: object, at_s: float, tmp_path: Path) -> None:
    """A packet that arrives in the dip waits for longer than at the mean of the 10 ms around it."""
    keys = tomllib.loads(scenario("strict", **LEVELS).resolved)
    keys["link"] |= {"rate": rate, "nominal": "10Mbit"}
    keys["flow"] = [packets_at(tmp_path, name, (at_s, 500)) for name in ("ef",)]
    case = Scenario.from_dict(keys)
    bound_s = bounds(case)[0].delay_s
    assert bound_s is not None
    found_s = longest_s(case, "ef")
    assert found_s > 0.0006  # at the mean of the worst 10 ms it would be less
    assert found_s <= bound_s < 5 * Fraction(found_s)


def test_a_capacity_reported_late_leaves_a_lower_lm_until_then(tmp_path: Path) -> None:
    """pss computes LM from 3.3 Mbit/s until the report at 10 ms, so AF's burst at 100 Mbit/s reaches it, and CS0 goes
    first until AF's credit is back at LR. AF would wait for 1.2 ms if it stayed at its high level."""
    keys = tomllib.loads(scenario("pss", last="greedy", **RESERVED).resolved)
    fast = {"lines": [["0s", "3300kbit"], ["0.1ms", "100Mbit"]]}
    keys["link"] |= {"rate": fast, "nominal": "3300kbit", "follow": True}
    keys["flow"] = [keys["flow"][2], packets_at(tmp_path, "af", *[(0.001, 1500)] * 8)]
    case = Scenario.from_dict(keys)
    bound_s = bounds(case)[1].delay_s
    assert bound_s is not None
    found_s = longest_s(case, "af")
    assert 0.01 < found_s <= bound_s


@pytest.mark.parametrize("follow", [False, True])
def test_a_report_of_no_capacity_does_not_spoil_the_bound(follow: bool, tmp_path: Path) -> None:
    """An outage of 200 ms costs AF that time, whether it is reported or not; pss keeps LM during it."""
    keys = tomllib.loads(scenario("pss", last="greedy", **RESERVED).resolved)
    steps = {"steps": [["0s", "10Mbit"], ["100ms", "0bit"], ["300ms", "10Mbit"]]}
    keys["link"] |= {"rate": steps, "nominal": "10Mbit", "follow": follow}
    keys["flow"] = [keys["flow"][2], packets_at(tmp_path, "af", *[(0.1, 1500)] * 30)]
    bound_s = bounds(Scenario.from_dict(keys))[1].delay_s
    assert bound_s is not None
    assert 0.2 < bound_s < 0.5


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"share": "30%", "rate": "0bit"}, "reserves a share"),
        ({"credit": "1000bit"}, "starts with a credit"),
    ],
)
def test_what_pss_bounds_do_not_cover_gets_the_reason(keys: dict[str, Any], sentence: str) -> None:
    found = bounds(scenario("pss", last="greedy", **{**LEVELS, "af": {**RESERVED["af"], **keys}}))
    assert sentence in found[1].why_none


def test_tcp_or_greedy_into_strict_gets_a_sentence() -> None:
    found = bounds(scenario("strict", last="greedy", **{**LEVELS, "cs0": {"level": 0}, "ef": {"level": 2}}))
    assert found[0].delay_s is None
    assert "class cs0 may take everything" in found[0].why_none


def test_the_command_and_the_worst_case_that_it_writes(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["bounds", str(SCENARIOS / "geo.toml"), "--json"])
    classes = json.loads(done.stdout)["classes"]
    assert classes[0]["delay_s"] > 0
    assert classes[1]["delay_s"] is None
    assert "tcp" in classes[1]["why_none"]
    assert runner.invoke(app, ["bounds", str(SCENARIOS / "geo.toml"), "--worst", "60%"]).exit_code == 2
    path = tmp_path / "case.toml"
    path.write_text(scenario("rr").resolved)
    done = runner.invoke(app, ["bounds", str(path), "--attack", "4", "--out", str(tmp_path / "w"), "--json"])
    assert done.exit_code == 0, done.output
    for row in json.loads(done.stdout)["attacks"]:
        flows = run(row["scenario"]).flows.to_pydict()
        assert (
            max(d for c, d in zip(flows["class"], flows["delay_max_s"], strict=True) if c == row["name"])
            == row["found_s"]
        )


def test_the_page_shows_where_the_distances_are_longest(tmp_path: Path) -> None:
    """Le Boudec and Thiran 2001: T + b / R at the burst, b + r T at the latency."""
    arrivals, service = token_bucket(8000, 1000), rate_latency(4000, 3)
    assert longest_delay(arrivals, service) == Distance(Fraction(0), Fraction(8000), Fraction(5))
    assert largest_backlog(arrivals, service) == Distance(Fraction(3), Fraction(0), Fraction(11000))
    path = tmp_path / "curves.html"
    done = CliRunner().invoke(app, ["bounds", str(SCENARIOS / "geo.toml"), "--report", str(path)])
    assert done.exit_code == 0, done.output
    text = path.read_text()
    assert text.count("<svg") == 3
    assert "af: no bound: flow af (tcp)" in text


def test_a_trace_is_attacked_where_it_carries_least(tmp_path: Path) -> None:
    """A link of 1 Mbit/s that pauses for 100 ms: the file of its trace goes with the scenarios that are tried."""
    (tmp_path / "pause.csv").write_text("t_s,capacity_bps\n0,1000000\n0.5,0\n0.6,1000000\n1,1000000\n")
    link = 'trace = "pause.csv"\nend = "loop"'
    flow = '[[flow]]\nclass = "all"\nkind = "cbr"\nrate = "80kbit"\npacket = "1000B"\n'
    text = f'duration = "2s"\n[link]\n{link}\n[scheduler]\npolicy = "fifo"\n[[class]]\nname = "all"\n{flow}'
    path = tmp_path / "case.toml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["bounds", str(path), "--attack", "3", "--out", str(tmp_path / "w"), "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["attacks"]
    assert row["tightness"] > 0.9
    assert max(run(row["scenario"]).flows["delay_max_s"].to_pylist()) == row["found_s"] > 0.1
