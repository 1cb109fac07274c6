# SPDX-License-Identifier: BSD-3-Clause
"""The E-model against ratings computed by an independent program; the simpler one and buffers against arithmetic."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import linkweir, strict_json

import linkweir as package
from linkweir import quality
from linkweir.panels import Panels
from linkweir.quality import (
    SATELLITE_ADVANTAGE,
    Codec,
    Line,
    cole_rosenbluth,
    e_model,
    fixed_buffer,
    mos,
    openbach_delay,
)
from linkweir.tables.run_tables import RunTables


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


def test_long_bursts_impair_no_more_than_the_loss_of_everything() -> None:
    assert e_model(0.05, 0.5, Codec(11.0, 4.3), burstiness=40.0).equipment == 95.0


def test_a_line_of_usual_values_is_the_usual_line() -> None:
    assert e_model(0.2, 0.01, line=Line()) == e_model(0.2, 0.01)


def test_sidetone_and_the_echo_of_the_talker() -> None:
    """G.107, 7.4: below 9 dB TERV + Ist / 2 takes the place of TERV, above 20 dB the root of squares that of Idte."""

    def parts(stmr: float) -> tuple[float, float]:
        """Id without delay for its own sake at 50 ms, and Ist, from the recommendation's formulas."""
        found = e_model(0.05, line=Line(stmr=stmr, telr=40.0))
        other = e_model(0.05, line=Line(telr=40.0))
        stmro = -10 * math.log10(10 ** (-stmr / 10) + math.exp(-50 / 4) * 10 ** (-40 / 10))
        terms = ((12, 13, 6, 8), (-28, -1, 19.4, 35), (-13, 3, 33, 13))
        ist = 29 + sum(a * (1 + abs((stmro - b) / c) ** d) ** (1 / d) for a, b, c, d in terms)
        # Ro does not depend on the sidetone, and Is contains Ist.
        assert found.basic == other.basic
        return found.delay, ist

    usual, _ = parts(15.0)
    assert parts(9.0)[0] == parts(20.0)[0] == usual
    noise = -61.1792
    rle = 10.5 * (110 + 7) * (2 * 50 + 1) ** -0.25
    listener = (94.77 - rle) / 2 + math.sqrt(((94.77 - rle) / 2) ** 2 + 169)
    for stmr in (5.0, 8.9):
        delay, ist = parts(stmr)
        terv = 40 - 40 * math.log10((1 + 50 / 10) / (1 + 50 / 150)) + ist / 2
        half = (-1.5 * (noise - 2) - (80 + 2.5 * (terv - 14))) / 2
        assert delay == pytest.approx(half + math.sqrt(half**2 + 100) - 1 + listener, abs=0.01)
        assert delay < usual
    delay, ist = parts(25.0)
    assert delay - listener == pytest.approx(math.hypot(usual - listener, ist), abs=0.01)
    assert delay > usual


def test_the_recipe_of_openbach_adds_twice_the_jitter() -> None:
    assert openbach_delay(0.2, 0.05) == pytest.approx(0.3)


def test_score_ends_and_grows() -> None:
    scores = [mos(rating / 10) for rating in range(-100, 1100)]
    assert scores[0] == 1.0
    assert scores[-1] == 4.5
    # Between 0 and 6.5 the recommendation's polynomial is a little below 1; no score is.
    assert all(a <= b for a, b in itertools.pairwise(scores))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"loss": 1.5}, "loss = 1.5: must be 0 .. 1"),
        ({"delay_s": -1.0}, "delay_s = -1.0: must be 0 .. 60"),
        ({"codec": "mp3"}, "codec = 'mp3': must be one of g711"),
        ({"burstiness": 0.5}, "burstiness = 0.5: must be 1 .. 100"),
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


def test_cole_rosenbluth_treats_the_advantage_as_the_whole_model_does() -> None:
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
    rated = {b: e_model(p.delay_s, p.loss).mos for b, p in scores.items()}
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
playout = ["60ms", "adaptive"]
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
playout = "200ms"

[[flow]]
class = "all"
kind = "poisson"
rate = "1Mbit"
"""


def test_calls_of_a_run() -> None:
    result = package.run(package.Scenario.parse(VOICE))
    table = result.rows("voice")
    parts = quality.intervals(result, "g711-plc", advantage=20.0).to_pylist()
    assert len(parts) == len(table) == 3 * 2 * 2
    for part, row in zip(parts, table, strict=True):
        assert (part["flow"], part["buffer"], part["t_s"]) == (row["flow"], row["buffer"], row["t_s"])
        assert row["loss"] == (row["lost_pkts"] + row["late_pkts"]) / row["due_pkts"]
        run_length = (row["lost_pkts"] + row["late_pkts"]) / row["gaps"]
        assert row["burst_r"] == pytest.approx(max(1.0, run_length * (1 - row["loss"])))
        # The buffer is longer than the least delay, 100 ms; a packet holds 20 ms of speech.
        wanted = e_model(
            row["delay_s"] + 0.02, row["loss"], Codec(0.0, 25.1), burstiness=row["burst_r"], advantage=20.0
        )
        assert row["delay_s"] > 0.1
        assert (part["delay_s"], part["codec"]) == (row["delay_s"] + 0.02, "g711-plc")
        assert (part["rating"], part["mos"]) == (wanted.rating, wanted.mos)
    calls = quality.voice(result, "g711-plc", advantage=20.0).to_pylist()
    assert [(call["flow"], call["buffer"]) for call in calls] == [
        (f"voice-{i}", buffer) for i in (1, 2, 3) for buffer in ("60ms", "adaptive")
    ]
    for call in calls:
        own = [part for part in parts if (part["flow"], part["buffer"]) == (call["flow"], call["buffer"])]
        assert call["mos"] == pytest.approx(sum(part["mos"] for part in own) / 2)
        worst = min(own, key=lambda part: part["mos"])
        assert {f"worst_{name}": worst[name] for name in ("mos", "t_s", "loss", "burst_r")}.items() <= call.items()
        packets = sum(part["due_pkts"] for part in own)
        assert call["loss"] == pytest.approx(sum(part["loss"] * part["due_pkts"] for part in own) / packets)
    simple = quality.intervals(result, model="cole_rosenbluth").to_pylist()[0]
    assert simple["mos"] == cole_rosenbluth(simple["delay_s"], simple["loss"]).mos
    for arguments in ({"model": "simple"}, {"codec": "mp3"}, {"codec": Codec(0, 1)}):
        with pytest.raises(ValueError, match="must be"):
            quality.voice(result, **({"model": "cole_rosenbluth"} | arguments))


def test_picture_and_table_of_calls_agree_for_every_codec() -> None:
    """The picture comes from Rust, the table from `quality`; codecs, copies and the ends of delay and BurstR agree."""
    flows = []
    names = [codec["name"] for codec in package._native.codecs()]
    for number, name in enumerate([*names, None]):
        kind = f'kind = "voice"\ncodec = "{name}"' if name else 'kind = "cbr"\nrate = "64kbit"\npacket = "210B"'
        keys = f'name = "call-{number}"\ncount = {1 + number % 2}\nplayout = "60ms"\n{kind}\n'
        flows.append(f'[[flow]]\nclass = "all"\n{keys}')
    run = package.run(package.Scenario.parse(VOICE[: VOICE.index("[[flow]]")] + "".join(flows)))
    table = run.table("voice")
    last = {"delay_s": [99.0, None, 59.99], "burst_r": [1000.0, 100.0, 2.0], "loss": [0.1, 1.0, 0.02]}
    for name, values in last.items():
        column = [values[row % 3] if row % 2 else value for row, value in enumerate(table[name].to_pylist())]
        table = table.set_column(
            table.column_names.index(name), table.schema.field(name), pa.array(column, pa.float64())
        )
    sources = {name: lambda name=name: run.table(name) for name in run.tables if name != "voice"}
    edited = RunTables(run.scenario, sources | {"voice": lambda: table}, status="complete", simulated_s=run.simulated_s)
    wanted: dict[str, dict[float, float]] = {}
    for row in quality.intervals(edited).to_pylist():
        if row["mos"] is not None:
            label = f"{row['flow']}, {row['buffer']}, {row['codec']}"
            wanted.setdefault(label, {})[row["t_s"]] = row["mos"]
    assert len(wanted) > len(set(names) - quality.UNRATED)
    panel = next(panel for panel in Panels(edited, 12, 5000).over_time if panel.name == "mos")
    drawn = {
        line.label: {x: y for x, y in zip(panel.x[:-1], line.y[:-1], strict=True) if not math.isnan(y)}
        for line in panel.lines
    }
    assert drawn == wanted


def test_many_intervals_of_calls_are_not_held_as_objects() -> None:
    run = package.run(package.Scenario.parse(VOICE))
    table = pa.concat_tables([run.table("voice")] * 2000).combine_chunks()
    sources = {"voice": lambda: table, "flows": lambda: run.table("flows")}
    many = RunTables(run.scenario, sources, status="complete", simulated_s=run.simulated_s)
    assert many.table("voice").num_rows > 5 * quality._PIECE
    tracemalloc.start()
    try:
        found = quality.voice(many).to_pylist()
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes / table.num_rows < 500, "a dict of a row alone takes as much"
    for call, one in zip(found, quality.voice(run).to_pylist(), strict=True):
        assert call == pytest.approx(one)
    assert quality.intervals(many).slice(12, 24).equals(pa.concat_tables([quality.intervals(run)] * 2).combine_chunks())


def test_delays_that_a_mean_hides_are_heard() -> None:
    """An outage of a second in each ten: delay and jitter have small means, and a tenth of the speech is lost."""
    scenario = VOICE.replace(
        'rate = "1Mbit"\ndelay', 'rate = { steps = [["0s", "1Mbit"], ["9s", "0bit"], ["10s", "1Mbit"]] }\ndelay', 1
    )
    scenario = scenario.replace(
        'kind = "onoff"\nrate = "64kbit"\non = "1s"\noff = "1s"', 'kind = "cbr"\nrate = "64kbit"'
    )
    scenario = scenario.replace('kind = "poisson"\nrate = "1Mbit"', 'kind = "poisson"\nrate = "1kbit"').replace(
        "50p", "500p"
    )
    result = package.run(package.Scenario.parse(scenario))
    flow = result.rows("flows")[0]
    recipe = e_model(openbach_delay(flow["delay_mean_s"], flow["jitter_mad_s"]))
    call = quality.voice(result).to_pylist()[0]
    assert recipe.mos > 4.2
    assert call["worst_mos"] < 3.0
    assert call["worst_t_s"] == 0.0


def test_the_command_and_the_report_show_calls(tmp_path: Path) -> None:
    (tmp_path / "voice.toml").write_text(VOICE)
    plain = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "plain", "--json")
    asked = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "asked", "--json", "--mos", "g711-plc")
    shown = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "shown", "--mos", "g711-plc")
    assert (plain.returncode, asked.returncode, shown.returncode) == (0, 0, 0), asked.stderr
    result = package.Result.load(tmp_path / "asked")
    for done, codec in ((plain, None), (asked, "g711-plc")):
        rows = strict_json(done.stdout)["voice"]
        wanted = quality.voice(result, codec).to_pylist()
        assert [{key: value for key, value in row.items() if key != "call"} for row in rows] == wanted
    line = next(line for line in shown.stdout.splitlines() if line.startswith("voice-1, 60ms"))
    assert f"{rows[0]['mos']:.2f}" in line
    report = (tmp_path / "plain" / "report.html").read_text()
    assert "MOS worst" in report
    assert "<td>voice-3, adaptive, g711</td>" in report
    assert (tmp_path / "plain" / "summary.json").read_bytes() == (tmp_path / "asked" / "summary.json").read_bytes()
    refused = linkweir("run", tmp_path / "voice.toml", "--out", tmp_path / "no", "--mos", "mp3")
    assert refused.returncode == 2
    assert not (tmp_path / "no").exists()
