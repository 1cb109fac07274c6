# SPDX-License-Identifier: BSD-3-Clause
"""The models compared with published and derived figures, and with each other. Rates are in Mbit/s, as in the papers.

The link of these tests takes a packet (or r of them at once, as a driver does) whenever it is free. AF and CS0
always have packets waiting, EF comes at a constant rate.
"""

import heapq
import os
import shutil
import subprocess
from fractions import Fraction

import bonds
import dualpi2
import generate
import pss
import pss_bits
import pytest
import scalable
from dataplane import POLICIES, DataPlane, model_of
from generate import Random
from vectorfile import replay

MBIT = 10**6
SECOND = 10**9
LINK = 20 * MBIT
PACKET = 1500
EF, AF, CS0 = 0, 1, 2


def transmission_ns(size, rate_bps):
    return size * 8 * SECOND // rate_bps


def rates(plane, ef_bps, seconds, pulled=1, greedy=((AF, PACKET), (CS0, PACKET)), start_ns=0, after_ns=0):
    """Mbit/s of each queue over `seconds`, from `after_ns` on; greedy: (queue, packet length)."""
    sizes = dict(greedy)
    now_ns = start_ns
    ef_ns = start_ns
    sent_bits = [0] * len(plane.view.queues)
    for q, size in greedy:
        for _ in range(3):
            plane.enqueue(now_ns, q, size)
    while now_ns < start_ns + seconds * SECOND:
        while ef_bps and ef_ns <= now_ns:
            plane.enqueue(ef_ns, EF, PACKET)
            ef_ns += transmission_ns(PACKET, ef_bps)
        busy_ns = 0
        for _ in range(pulled):
            q = plane.pick(now_ns)
            size = plane.send(now_ns)[1]
            if now_ns >= start_ns + after_ns:
                sent_bits[q] += 8 * size
            if q in sizes:
                plane.enqueue(now_ns, q, sizes[q])
            busy_ns += transmission_ns(size, LINK)
        now_ns += busy_ns
    return [bits / (seconds * SECOND - after_ns) * SECOND / MBIT for bits in sent_bits]


def pss_plane(k, expected_ef=0.5, memory_ns=10_000_000, model="pss", **more):
    """EF at level 0, AF at 2 and 4 with its share of what EF is expected to leave, CS0 at 3."""
    params = {name: more.pop(name) for name in ("sat", "on_empty", "early") if name in more}
    values = {
        "level": 2,
        "low_level": 4,
        "rate": round(k * (1 - expected_ef) * LINK),
        "mtu": PACKET,
        "memory": memory_ns,
    }
    plane = DataPlane(model, 3, LINK, params, {EF: {"level": 0}, AF: values | more, CS0: {"level": 3}})
    plane.init(0)
    return plane


def half_percent(expected):
    return pytest.approx(expected, rel=0.005, abs=0.02)


# Two controlled queues, fixed capacity (PSS paper, figures 5 and 6): AF and CS0 within 0.5 % over 30 s


@pytest.mark.parametrize("ef", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("k", [0.1, 0.5, 0.9])
def test_pss_gives_af_its_reservation_whatever_ef_does(k, ef):
    residual = 20 * (1 - ef)
    af = min(10 * k, residual)
    assert rates(pss_plane(k), ef * LINK, 30)[AF:] == [half_percent(af), half_percent(residual - af)]


@pytest.mark.parametrize("ef", [0.25, 0.75])
@pytest.mark.parametrize("k", [0.1, 0.5, 0.9])
def test_drr_shares_what_ef_leaves(k, ef):
    total = PACKET / min(k, 1 - k)
    quanta = {AF: {"level": 1, "quantum": round(k * total)}, CS0: {"level": 1, "quantum": round((1 - k) * total)}}
    plane = DataPlane("drr", 3, LINK, {}, quanta)
    plane.init(0)
    residual = 20 * (1 - ef)
    assert rates(plane, ef * LINK, 30)[AF:] == [half_percent(k * residual), half_percent((1 - k) * residual)]


@pytest.mark.parametrize("mode", ["burst", "smooth"])
def test_wrr_shares_what_ef_leaves_by_weight(mode):
    plane = DataPlane("wrr", 3, LINK, {"mode": mode}, {AF: {"level": 1, "weight": 7}, CS0: {"level": 1, "weight": 3}})
    plane.init(0)
    assert rates(plane, 5 * MBIT, 10)[AF:] == [half_percent(10.5), half_percent(4.5)]


# DualPI2


def test_the_random_numbers_of_dualpi2_are_the_published_ones():
    """The first of SplitMix64 for seed 1234567, as in Rosetta Code's task: upper halves."""
    dice = dualpi2.Dice(1234567)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [dice.roll() for _ in published] == [number >> 32 for number in published]


def test_dualpi2_moves_the_probability_as_rfc_9332_says():
    """Appendix A.1: alpha * (delay - target) + beta * (delay - last), in Hz and s. Linux rounds gains by 0.1 %."""
    controller = dualpi2.Controller(dualpi2.PARAMS | {"alpha": 41, "beta": 819}, 0)
    expected = last_s = 0.0
    for delay_ms in [5, 20, 30, 60, 40, 35, 35, 35, 10, 0, 25, 80]:
        controller.tick(delay_ms * 10**6)
        delay_s = delay_ms / 1000
        expected += 41 / 256 * (delay_s - 0.015) + 819 / 256 * (delay_s - last_s)
        expected, last_s = max(0.0, expected), delay_s
        assert controller.base / 2**32 == pytest.approx(expected, rel=0.002, abs=1e-4)


@pytest.mark.parametrize("l4s", [False, True])
def test_dualpi2_marks_as_often_as_its_probability(l4s):
    """Section 2.1: p * p of the classic packets, 2 * p of the L4S packets; within 5 standard deviations."""
    params = {"mtu": 0, "step": 4 * SECOND, "tupdate": SECOND}
    plane = DataPlane("dualpi2", 2, LINK, params, {1: {"l4s": "yes"}})
    plane.init(0)
    plane.model.controller.base = round(0.3 * 2**32)
    marks, packets = 0, 20_000
    for _ in range(packets):
        plane.enqueue(0, int(l4s), PACKET)
        plane.pick(0)
        marks += plane.verdict(0, True) == "mark"
        plane.send(0)
    likely = 0.6 if l4s else 0.09
    assert abs(marks / packets - likely) < 5 * (likely * (1 - likely) / packets) ** 0.5


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
def test_dualpi2_shares_the_link_between_both_kinds(share):
    params = {"classic_share": round(share * 10**6)}
    plane = DataPlane("dualpi2", 2, LINK, params, {1: {"l4s": "yes"}})
    plane.init(0)
    shared = rates(plane, 0, 10, greedy=((0, PACKET), (1, 700)))
    assert shared == [half_percent(20 * share), half_percent(20 * (1 - share))]


# Special situations of PSS


def test_residual_below_the_reservations_goes_by_level():
    """Reservations of 6 and 4, and 8 Mbit/s left by EF: 6, 2 and nothing for CS0."""
    controlled = {"mtu": PACKET, "memory": 10_000_000}
    qparams = {
        0: {"level": 0},
        1: {"level": 1, "low_level": 4, "rate": 6 * MBIT} | controlled,
        2: {"level": 2, "low_level": 5, "rate": 4 * MBIT} | controlled,
        3: {"level": 3},
    }
    plane = DataPlane("pss", 4, LINK, {}, qparams)
    plane.init(0)
    measured = rates(plane, 12 * MBIT, 30, greedy=((1, PACKET), (2, PACKET), (3, PACKET)))
    assert measured[1:] == [half_percent(6.0), half_percent(2.0), half_percent(0.0)]


@pytest.mark.parametrize("pulled", [2, 4, 8, 16])
def test_bursts_pulled_by_a_driver_do_not_change_the_rate(pulled):
    assert rates(pss_plane(0.8), 5 * MBIT, 20, pulled=pulled)[AF] == half_percent(8.0)


@pytest.mark.parametrize(("pulled", "af"), [(2, 9.19), (4, 10.91), (8, 12.00), (16, 12.63)])
def test_bursts_pulled_by_a_driver_favour_af_without_the_early_branch(pulled, af):
    assert rates(pss_plane(0.8, early="ignore"), 5 * MBIT, 20, pulled=pulled)[AF] == half_percent(af)


@pytest.mark.parametrize(("sat", "af"), [("exact", 8.0), ("paper", 10.0)])
def test_packet_larger_than_the_window(sat, af):
    """A window of 0.2 packets, N = 1.2: sat=exact keeps the part of a packet above LM."""
    lr = 80_000
    window = 8 * PACKET * 2 // 10 * 6 // 10
    assert rates(pss_plane(0.8, sat=sat, lr=lr, lm=lr + window), 5 * MBIT, 30)[AF] == half_percent(af)


def test_packet_of_64_kbyte():
    """LM sized for 20 packets of 1500 bytes."""
    plane = pss_plane(0.8, memory_ns=100_000_000)
    assert rates(plane, 5 * MBIT, 60, greedy=((AF, 65535), (CS0, PACKET)))[AF] == half_percent(8.01)


def test_idle_gap_is_not_starvation():
    """Ten seconds of silence, a memory of five: AF has its 6 Mbit/s from the first second on, not the whole link."""
    plane = pss_plane(0.6, memory_ns=5 * SECOND)
    assert rates(plane, 0, 1, start_ns=10 * SECOND)[AF] == pytest.approx(6.0, rel=0.04)  # a second is 28 windows


def test_credit_of_zero_takes_the_memory_as_a_debt_to_af():
    """Starting at 0 instead of LR, AF has LR more bits in its first seconds."""
    plane = pss_plane(0.8, memory_ns=2 * SECOND, credit=0)
    assert rates(plane, 0, 20)[AF] == half_percent(8.0 + 8.0 * 2 / 20)


def test_spare_capacity_is_not_held_against_af():
    """AF alone for 10 s, then CS0 returns: AF has its reservation at once, less the window."""
    plane = pss_plane(0.8)
    rates(plane, 0, 10, greedy=((AF, PACKET),))
    assert rates(plane, 0, 2, start_ns=10 * SECOND)[AF] == pytest.approx(8.0, rel=0.02)


def test_lost_deficit_without_memory():
    """EF takes the whole link for a second. A memory of two seconds gives AF its 8 Mbit afterwards, 10 ms do not."""
    for memory_ns, af in ((2 * SECOND, 8.0), (10_000_000, 7.2)):
        plane = pss_plane(0.8, memory_ns=memory_ns)
        for _ in range(LINK // 8 // PACKET):
            plane.enqueue(0, EF, PACKET)
        assert rates(plane, 0, 10)[AF] == half_percent(af)


# Levels in nanoseconds compared with levels in bits


def mixed(random):
    return random.choice([64, 576, 1500, random.between(40, 1500)])


def decisions(model, qparams, scenario, early, packets=4000):
    """The queues served, on a link whose speed, sources and sizes are drawn from one seed."""
    plane = DataPlane(model, len(qparams), LINK, {"early": early}, qparams)
    plane.init(0)
    random = Random(scenario)
    sources = [[0, q] for q in range(len(qparams))]
    load = {q: random.between(4, 9) for q in qparams}
    now_ns, served = 0, []
    speed = 100
    while len(served) < packets:
        for source in sources:
            while source[0] <= now_ns:
                size = mixed(random) if "mixed" in scenario else PACKET
                plane.enqueue(max(source[0], 0), source[1], size)
                gap = transmission_ns(size, load[source[1]] * MBIT)
                source[0] += random.below(2 * gap)
                if "onoff" in scenario and random.chance(2):
                    source[0] += random.below(SECOND)
        if "backlogged" in scenario:
            for q in range(1, len(qparams)):
                if len(plane.view.queues[q].packets) < 2:
                    plane.enqueue(now_ns, q, mixed(random))
        q = plane.pick(now_ns)
        if q is None:
            now_ns = min(source[0] for source in sources)
            continue
        served.append((now_ns, q))
        size = plane.send(now_ns)[1]
        if "variable" in scenario and random.chance(1):
            speed = random.between(30, 170) if "backlogged" in scenario else random.between(30, 100)
        now_ns += transmission_ns(size, LINK) * 100 // speed
    return served


ONE = {0: {"level": 0}, 1: {"level": 2, "low_level": 4, "rate": 8 * MBIT, "lr": 80_000, "lm": 160_000}, 2: {"level": 3}}
TWO = {
    0: {"level": 0},
    1: {"level": 1, "low_level": 5, "rate": 5 * MBIT, "lr": 50_000, "lm": 80_000},
    2: {"level": 2, "low_level": 6, "rate": 4 * MBIT, "lr": 0, "lm": 30_000},
    3: {"level": 4},
}


@pytest.mark.parametrize("qparams", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("early", ["charge", "ignore"])
@pytest.mark.parametrize(
    "scenario", ["fixed", "mixed", "onoff mixed", "variable mixed onoff", "variable backlogged mixed"]
)
def test_levels_in_time_and_in_bits_decide_alike(qparams, scenario, early):
    """Both rates divide 8 * 10^9 and LINK, so no cost is rounded and every decision must agree.

    If the link is faster than reported, all queues stay backlogged: for a queue that empties before its last packet's
    nominal end, one form keeps the level at that end, the other the level at the next departure.
    """
    in_time = decisions("pss", qparams, scenario, early)
    assert in_time == decisions("pss_bits", qparams, scenario, early)
    assert len({q for _, q in in_time}) == len(qparams)


def test_the_two_forms_share_no_arithmetic():
    assert pss.Model.sent is not pss_bits.Model.sent
    assert not issubclass(pss_bits.Model, pss.Model)


def test_pace_has_the_published_multipliers():
    for rate_bps, mult, shift in (
        (10, 3200000000, 2),
        (10**3, 4096000000, 9),
        (10**6, 4194304000, 19),
        (10**8, 2684354560, 25),
        (10**9, 2147483648, 28),
        (10**10, 3435973837, 32),
        (4 * 10**11, 2748779069, 37),
    ):
        pace = pss.Pace(rate_bps)
        assert (pace.mult, pace.shift) == (mult, shift)


def test_pace_carries_fractions():
    """A million packets at 400 Gbit/s: off by less than 4e-8."""
    pace, fraction, total = pss.Pace(400 * 10**9), 0, 0
    for _ in range(10**6):
        ns, fraction = pace.ns_with_fraction(PACKET, fraction)
        total += ns
    exact = Fraction(8 * PACKET * 10**6, 400)
    assert abs(total - exact) / exact < 4e-8


# Proportional delay and loss: eight classes with jitter of 30 % on 100 Mbit/s, 1538 bytes on the wire

DELAY = (157, 78, 52, 39, 31, 26, 22, 19)


def classes(delay, loss, limit, per_second, from_s, to_s, seed=1, **params):
    """Mean delays in ms, and losses in %, of the classes between two times."""
    plane = DataPlane(
        "pds",
        8,
        100 * MBIT,
        {"limit": limit} | params,
        dict(enumerate({"delay": d, "loss": c} for d, c in zip(delay, loss, strict=False))),
    )
    plane.init(0)
    random = Random(f"classes {seed}")
    gap = SECOND // per_second
    arrivals = [(random.below(gap), q) for q in range(8)]
    heapq.heapify(arrivals)
    delays, sent, arrived, lost = [0] * 8, [0] * 8, [0] * 8, [0] * 8
    now_ns, from_ns, to_ns = 0, from_s * SECOND, to_s * SECOND
    while now_ns < to_ns:
        while arrivals[0][0] <= now_ns:
            at_ns, q = heapq.heappop(arrivals)
            dropped = plane.enqueue(at_ns, q, 1538)
            if at_ns >= from_ns:
                arrived[q] += 1
                for victim in dropped:
                    lost[victim] += 1
            heapq.heappush(arrivals, (at_ns + gap * 7 // 10 + random.below(gap * 6 // 10), q))
        q = plane.pick(now_ns)
        if q is None:
            now_ns = arrivals[0][0]
            continue
        arrival_ns, size = plane.send(now_ns)
        if now_ns >= from_ns:
            delays[q] += now_ns - arrival_ns
            sent[q] += 1
        now_ns += transmission_ns(size, 100 * MBIT)
    return [delays[q] / sent[q] / MBIT for q in range(8)], [100 * lost[q] / arrived[q] for q in range(8)]


@pytest.mark.parametrize(("limit", "ratio"), [(40, 20.0), (80, 21.5), (160, 22.3), (320, 22.7)])
def test_wtp_ratio_nears_the_nominal_one_with_longer_queues(limit, ratio):
    delays, _ = classes((255, 63, 36, 25, 19, 16, 13, 11), [1] * 8, limit, 1100, 1, 3)
    assert delays[7] / delays[0] == pytest.approx(ratio, abs=0.1)


@pytest.mark.slow
def test_wtp_and_plr_together():
    """The load of the last of nine seconds: 8 x 1460 packets/s, of which 8127 fit."""
    delays, losses = classes(DELAY, DELAY[::-1], 80, 1460, 2, 4)
    assert delays == pytest.approx([1.95, 3.85, 5.75, 7.63, 9.57, 11.4, 13.4, 15.6], rel=0.01)
    assert losses == pytest.approx([54.8, 47.3, 40.1, 33.7, 26.9, 20.3, 13.6, 6.9], abs=0.5)
    assert losses[0] / losses[7] == pytest.approx(7.99, rel=0.03)


@pytest.mark.slow
def test_loss_differentiation_alone_leaves_delays_equal():
    delays, losses = classes([1] * 8, DELAY[::-1], 80, 1460, 1, 2, history="ring")
    assert delays == pytest.approx([9.64] * 8, rel=0.01)
    assert losses == pytest.approx([54.7, 47.3, 40.2, 33.7, 26.9, 20.3, 13.6, 6.8], abs=0.5)


@pytest.mark.slow
def test_early_drops_keep_queues_short_and_ratios_exact():
    delays, losses = classes(DELAY, DELAY[::-1], 80, 1460, 2, 4, early="peld")
    assert delays[0] < 1.95
    assert losses[0] / losses[7] == pytest.approx(157 / 19, rel=0.05)


# Vectors


@pytest.mark.parametrize("policy", POLICIES)
def test_models_replay_all_vectors(policy):
    files = sorted((generate.made() / policy).glob("*.vec"))
    assert files
    for path in files:
        assert replay(path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("folder", generate.FOLDERS)
def test_random_vectors_are_what_their_recipe_gives(folder):
    listed = (generate.VECTORS / folder / "SHA256SUMS").read_text(encoding="utf-8")
    assert generate.sums(generate.files(folder)) == listed


@pytest.fixture
def vectors(tmp_path):
    """The vectors of rr and what makes them, elsewhere."""
    generate.made()
    unfinished = shutil.ignore_patterns("__pycache__", ".random-*")  # another process may rename or remove these
    for part in ("vectors/make.sh", "vectors/rr", "oracle", "core/include"):
        source, copy = generate.VECTORS.parent / part, tmp_path / part
        copy.parent.mkdir(exist_ok=True)
        shutil.copytree(source, copy, ignore=unfinished) if source.is_dir() else shutil.copy(source, copy)
    return tmp_path / "vectors"


def make(vectors):
    return subprocess.run(["sh", vectors / "make.sh"], capture_output=True, text=True)


def test_missing_changed_and_stray_vectors_are_made_again(vectors):
    before = {path.name: path.read_bytes() for path in (vectors / "rr").iterdir()}
    changed, missing, *_ = sorted((vectors / "rr").glob("random-*"))
    changed.write_text("# changed\n")
    missing.unlink()
    (vectors / "rr/random-stray-1.vec").touch()
    (vectors / "of_another_commit").mkdir()
    (vectors / "of_another_commit/random-few-1.vec").touch()
    done = make(vectors)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in (vectors / "rr").iterdir()} == before
    assert not (vectors / "of_another_commit").exists()


def test_an_unfinished_vector_of_a_killed_generator_is_removed_after_an_hour(vectors):
    old, new = vectors / "rr/.random-few-1.vec.1", vectors / "rr/.random-few-1.vec.2"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    assert make(vectors).returncode == 0
    assert new.exists()
    assert not old.exists()


def test_a_machine_that_makes_other_vectors_is_told_so(vectors):
    model = vectors.parent / "oracle/rr.py"
    (vectors / "rr/random-few-1.vec").unlink()
    model.write_text(model.read_text().replace("self.turn.append(q)", "self.turn.insert(0, q)"))
    done = make(vectors)
    assert done.returncode == 1
    assert "in vectors/rr, oracle/ makes other files on this machine than SHA256SUMS lists" in done.stderr
    assert "random-few-1.vec" in done.stderr


def test_every_policy_has_a_model():
    assert len(POLICIES) >= 14
    assert all(hasattr(model_of(name), "Model") for name in POLICIES)


def test_the_lives_of_bonds_are_those_of_the_model():
    for name, text in bonds.lives().items():
        assert (bonds.FOLDER / name).read_text() == text, "run: python oracle/bonds.py"


def test_the_lives_of_senders_that_count_marks_are_those_of_the_model():
    for name, lines in scalable.files():
        written = (scalable.FOLDER / name).read_text().splitlines()[2:]
        assert written == list(lines), "run: python oracle/scalable.py"
