# SPDX-License-Identifier: BSD-3-Clause
"""The E-model against ratings computed by an independent program; the simpler one and buffers against arithmetic."""

from __future__ import annotations

import doctest
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from command import linkweir, strict_json

import linkweir as package
from linkweir import quality
from linkweir.quality import SATELLITE_ADVANTAGE, Codec, cole_rosenbluth, e_model, fixed_buffer, mos


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(quality).failed == 0


def test_defaults() -> None:
    assert e_model().rating == pytest.approx(93.206, abs=0.001)


DELAYS = [(100, 90.7), (150, 89.5), (200, 85.8), (300, 72.7), (400, 62.3), (500, 54.8)]


@pytest.mark.parametrize(("delay_ms", "rating"), DELAYS)
def test_delay(delay_ms: float, rating: float) -> None:
    assert e_model(delay_ms / 1e3).rating == pytest.approx(rating, abs=0.06)


@pytest.mark.parametrize(
    ("loss", "codec", "rating", "score"),
    [
        (0.005, "g711", 100.7, 4.5),
        (0.02, "g711", 80.4, 4.04),
        (0.05, "g711", 59.5, 3.07),
        (0.15, "g711", 36.7, 1.91),
        (0.20, "g711", 32.4, 1.71),
        (0.02, "g711-plc", None, 4.50),
        (0.15, "g711-plc", None, 3.82),
    ],
)
def test_loss_over_a_satellite(loss: float, codec: str, rating: float | None, score: float) -> None:
    found = e_model(0.105, loss, codec, advantage=SATELLITE_ADVANTAGE)
    assert found.mos == pytest.approx(score, abs=0.011)
    if rating is not None:
        assert found.rating == pytest.approx(rating, abs=0.06)


@pytest.mark.parametrize(
    ("codec", "burstiness", "equipment"),
    [
        # Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl) at 4 % loss: G.107, 7-29.
        (Codec(0.0, 4.3), 1.0, 95 * 4 / 8.3),
        (Codec(0.0, 4.3), 2.0, 95 * 4 / 6.3),
        (Codec(11.0, 19.0), 4.0, 11 + 84 * 4 / 20),
    ],
)
def test_losses_in_bursts_impair_more(codec: Codec, burstiness: float, equipment: float) -> None:
    found = e_model(0.05, 0.04, codec, burstiness=burstiness)
    assert found.equipment == pytest.approx(equipment, rel=1e-12)
    alone = e_model(0.05, 0.0, codec)
    assert found.rating == pytest.approx(alone.rating + codec.impairment - equipment, rel=1e-12)


def test_jitter_counts_as_twice_as_much_delay() -> None:
    assert e_model(0.2, jitter_s=0.05).rating == pytest.approx(e_model(0.3).rating)
    assert e_model(0.2, jitter_s=0.05, jitter="none") == e_model(0.2)


def test_score_ends_and_grows() -> None:
    scores = [mos(rating / 10) for rating in range(-100, 1100)]
    assert scores[0] == 1.0
    assert scores[-1] == 4.5
    # Between 0 and 6.5 the recommendation's polynomial is a little below 1.
    assert all(a <= b for a, b in itertools.pairwise(scores[170:]))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"loss": 1.5}, "loss = 1.5: must be 0 .. 1"),
        ({"delay_s": -1.0}, "delay_s = -1.0: must be 0 .. 60"),
        ({"codec": "mp3"}, "codec = 'mp3': must be one of g711"),
        ({"jitter": "thrice"}, "must be twice or none"),
        ({"advantage": 21.0}, "must be 0 .. 20"),
    ],
)
def test_refusals(arguments: dict[str, object], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        e_model(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("delay_ms", "loss", "codec", "rating"),
    [
        (0, 0.0, "g711", 94.2),
        (100, 0.0, "g711", 91.8),
        (177.3, 0.0, "g711", 94.2 - 4.2552),
        (200, 0.0, "g711", 94.2 - 4.8 - 2.497),
        (300, 0.0, "g711", 94.2 - 7.2 - 13.497),
        (0, 0.05, "g711", 94.2 - 16.788),
        (100, 0.20, "g711", 94.2 - 2.4 - 41.589),
        (0, 0.0, "g729a", 83.2),
        (150, 0.05, "g729a", 94.2 - 3.6 - 27.219),
    ],
)
def test_cole_rosenbluth_by_hand(delay_ms: float, loss: float, codec: str, rating: float) -> None:
    assert cole_rosenbluth(delay_ms / 1e3, loss, codec).rating == pytest.approx(rating, abs=0.001)


@pytest.mark.parametrize(("delay_ms", "rating"), DELAYS[:4])
def test_cole_rosenbluth_is_near_the_whole_model_up_to_300_ms(delay_ms: float, rating: float) -> None:
    assert cole_rosenbluth(delay_ms / 1e3, base=93.2).rating == pytest.approx(rating, abs=0.25)


def test_cole_rosenbluth_treats_jitter_and_advantage_as_the_whole_model_does() -> None:
    assert cole_rosenbluth(0.2, jitter_s=0.05).rating == pytest.approx(cole_rosenbluth(0.3).rating)
    assert cole_rosenbluth(0.2, jitter_s=0.05, jitter="none") == cole_rosenbluth(0.2)
    found = cole_rosenbluth(0.1, 0.05, advantage=20.0)
    assert found.rating == pytest.approx(cole_rosenbluth(0.1, 0.05).rating + 20)
    assert found.rating == pytest.approx(found.basic - found.simultaneous - found.delay - found.equipment + 20)
    assert found.mos == mos(found.rating)


def test_late_packets_of_exponential_delays() -> None:
    """100 ms and an exponential part of mean 20 ms: exp(-b / 20 ms) of the packets come more than b later."""
    count = 100_000
    delays_s = 0.1 - 0.02 * np.log(1 - (np.arange(count) + 0.5) / count)
    for buffer_ms in (10, 40, 80):
        found = fixed_buffer(delays_s, buffer_ms / 1e3, lost=0.02)
        late = math.exp(-buffer_ms / 20)
        assert found.late == pytest.approx(late, abs=2 / count)
        assert found.delay_s == pytest.approx(0.1 + buffer_ms / 1e3, abs=1e-6)
        assert found.loss == pytest.approx(1 - 0.98 * (1 - late), abs=2 / count)
    # A long buffer trades loss for delay: here 80 ms is best, 10 ms hears gaps and 400 ms hears pauses.
    scores = {b: fixed_buffer(delays_s, b) for b in (0.01, 0.08, 0.4)}
    rated = {b: e_model(p.delay_s, p.loss, jitter="none").mos for b, p in scores.items()}
    assert rated[0.08] > max(rated[0.01], rated[0.4])


def test_buffer_of_a_histogram_and_of_the_first_packet() -> None:
    each = fixed_buffer([0.1] * 6 + [0.15] * 3 + [0.3], 0.05, lost=0.5)
    assert fixed_buffer([0.05, 0.1, 0.15, 0.3], 0.05, counts=[0, 6, 3, 1], lost=0.5) == each
    assert (each.delay_s, each.late, each.loss) == (pytest.approx(0.15), 0.1, pytest.approx(0.55))
    first = fixed_buffer([0.1, 0.15, 0.2], 0.05, reference_s=0.15)
    assert (first.delay_s, first.late) == (pytest.approx(0.2), 0.0)
    assert fixed_buffer([0.3], 0.0).loss == 0.0
    # 0.1 + 0.2 is more than 0.3 in binary, and 0.15 + 0.05 less than 0.2: neither decides.
    assert fixed_buffer([0.1, 0.3], 0.2).late == 0.0
    assert fixed_buffer([0.15, 0.2], 0.05).late == 0.0


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: fixed_buffer([], 0.1), "counts: must be at least 0, and more than 0 in all"),
        (lambda: fixed_buffer([0.1], 0.1, counts=[0]), "more than 0 in all"),
        (lambda: fixed_buffer([0.1], 0.1, counts=[1, 2]), "give a count for each delay"),
        (lambda: fixed_buffer([0.1, -0.1], 0.1), "delays_s = -0.1: must be 0 .. 60"),
        (lambda: fixed_buffer([math.nan], 0.1), "delays_s = nan: must be 0 .. 60"),
        (lambda: fixed_buffer([0.1], -0.1), "buffer_s = -0.1: must be 0 .. 60"),
        (lambda: fixed_buffer([0.1], 0.1, lost=2.0), "lost = 2.0: must be 0 .. 1"),
        (lambda: cole_rosenbluth(codec="g711-plc"), "codec = 'g711-plc': must be one of g711, g729a"),
        (lambda: cole_rosenbluth(jitter="thrice"), "must be twice or none"),
        (lambda: cole_rosenbluth(base=101.0), "base = 101.0: must be 0 .. 100"),
        (lambda: cole_rosenbluth(loss=-0.1), "loss = -0.1: must be 0 .. 1"),
    ],
)
def test_refusals_of_buffer_and_simple_model(call: object, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        call()  # type: ignore[operator]


VOICE = """\
duration = "20s"

[link]
rate = "1Mbit"
delay = "100ms"

[scheduler]
policy = "fifo"

[[class]]
name = "all"
limit = "50p"

[[flow]]
name = "voice"
class = "all"
kind = "onoff"
rate = "64kbit"
on = "1s"
off = "1s"
packet = "210B"
count = 3

[[flow]]
name = "late"
class = "all"
kind = "onoff"
rate = "64kbit"
on = "1s"
off = "1s"
packet = "210B"
start = "19999ms"

[[flow]]
class = "all"
kind = "poisson"
rate = "1Mbit"
"""


def test_voice_of_a_run() -> None:
    result = package.run(package.Scenario.parse(VOICE))
    flows = {row["flow"]: row for row in result.rows("flows")}
    rated = package.quality.voice(result, "g711-plc", advantage=20.0).to_pylist()
    assert [row["flow"] for row in rated] == ["voice-1", "voice-2", "voice-3", "late"]
    assert [rated[3][key] for key in ("delay_s", "jitter_s", "loss", "rating", "mos")] == [None] * 5
    for row in rated[:3]:
        flow = flows[row["flow"]]
        gone = flow["dropped_limit_pkts"] + flow["dropped_policy_pkts"] + flow["lost_link_pkts"]
        loss = gone / (gone + flow["delivered_pkts"])
        assert 0 < loss < 0.5
        wanted = e_model(flow["delay_mean_s"], loss, Codec(0.0, 25.1), jitter_s=flow["jitter_mad_s"], advantage=20.0)
        assert (row["loss"], row["rating"], row["mos"]) == (loss, wanted.rating, wanted.mos)
    smooth = package.quality.voice(result, "g711-plc", jitter="none", advantage=20.0).to_pylist()
    assert all(a["rating"] > b["rating"] for a, b in zip(smooth[:3], rated[:3], strict=True))
    simple = package.quality.voice(result, model="cole_rosenbluth").to_pylist()[0]
    wanted = cole_rosenbluth(simple["delay_s"], simple["loss"], jitter_s=simple["jitter_s"])
    assert simple["mos"] == wanted.mos
    for arguments in ({"model": "simple"}, {"codec": "mp3"}, {"jitter": "x"}, {"codec": Codec(0, 1)}):
        with pytest.raises(ValueError, match="must be"):
            package.quality.voice(result, **({"model": "cole_rosenbluth"} | arguments))  # type: ignore[arg-type]


def test_the_command_shows_voice_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "voice.toml").write_text(VOICE)
    plain = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "plain", "--json")
    asked = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "asked", "--json", "--mos", "g711")
    shown = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "shown", "--mos", "g711")
    assert (plain.returncode, asked.returncode, shown.returncode) == (0, 0, 0), asked.stderr
    assert "voice" not in strict_json(plain.stdout)
    rows = strict_json(asked.stdout)["voice"]
    assert rows == package.quality.voice(package.Result.load(tmp_path / "asked")).to_pylist()
    assert f"{rows[0]['mos']:.2f}" in next(line for line in shown.stdout.splitlines() if line.startswith("voice-1"))
    assert (tmp_path / "plain" / "summary.json").read_bytes() == (tmp_path / "asked" / "summary.json").read_bytes()
    refused = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "no", "--mos", "mp3")
    assert refused.returncode == 2
    assert not (tmp_path / "no").exists()
