# SPDX-License-Identifier: BSD-3-Clause
"""Applications over TCP, voice and replay as Python sees them: their tables, their part of the report, codecs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command import SCENARIOS
from command import linkweir as linkweir_command

import linkweir
from linkweir import Result, Scenario, _native, quality

KEYS = {
    "transfers": ["flow", "class", "start_s", "size_bytes", "completion_s"],
    "video": [
        *("flow", "class", "segments", "bitrate_mean_bps", "switches"),
        *("startup_s", "stalls", "stalled_s", "played_s"),
    ],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Result:
    directory = tmp_path_factory.mktemp("runs") / "home"
    return linkweir.run(Scenario.load(SCENARIOS / "lte-home.toml"), out=directory)


def test_the_tables_of_applications_are_kept_in_the_run_directory(home: Result) -> None:
    assert home.directory is not None
    again = Result.load(home.directory)
    for name in ("transfers", "completions", "video"):
        assert again.tables[name].equals(getattr(home, name))
    for name, columns in KEYS.items():
        assert home.tables[name].column_names == columns


def test_completions_are_those_of_the_transfers_after_the_warm_up(home: Result) -> None:
    rows = home.rows("transfers")
    for total in home.rows("completions"):
        mine = [row for row in rows if row["flow"] == total["flow"] and row["start_s"] >= home.scenario.warmup_s]
        assert total["finished"] == len(mine) > 0
        assert total["begun"] - total["finished"] in (0, 1)
        assert total["refused"] == 0
        times = sorted(row["completion_s"] for row in mine)
        assert total["completion_mean_s"] == pytest.approx(sum(times) / len(times))
        assert total["completion_max_s"] == times[-1]
        median = times[math.ceil(len(times) / 2) - 1]
        assert total["completion_p50_s"] == pytest.approx(median, rel=0.01)
        assert total["mean_bytes"] == pytest.approx(sum(row["size_bytes"] for row in mine) / len(mine))


def test_a_film_is_played_or_waits_or_stands_still(home: Result) -> None:
    (film,) = home.rows("video")
    together = film["startup_s"] + film["played_s"] + film["stalled_s"]
    assert together == pytest.approx(home.scenario.duration_s)
    fetched = sum(row["flow"] == "film" for row in home.rows("transfers"))
    assert film["segments"] == fetched
    assert 0.3e6 <= film["bitrate_mean_bps"] <= 6e6
    # What was fetched is what the rates say.
    sizes = sum(row["size_bytes"] for row in home.rows("transfers") if row["flow"] == "film")
    assert sizes * 8 / 4 == pytest.approx(film["bitrate_mean_bps"] * fetched)


def test_the_report_shows_completion_times_and_video(home: Result) -> None:
    assert home.directory is not None
    page = (home.directory / "report.html").read_text()
    assert page.index("<h2>Over time</h2>") < page.index("<h2>Completion times</h2>") < page.index("<h2>Video</h2>")
    assert "reader-3" in page


def test_calls_are_rated(home: Result) -> None:
    calls = quality.voice(home, "g711-plc").to_pylist()
    assert [call["flow"] for call in calls] == ["call-1", "call-2"]


def test_codecs_are_those_of_the_simulator() -> None:
    """Names and values of ITU-T G.113, appendix I."""
    found = {codec["name"]: codec for codec in _native.codecs()}
    narrow = {name for name, codec in found.items() if codec["impairment"]}
    assert narrow == {"g711", "g711-plc", "g729", "g723.1", "gsm-efr"}
    for name in narrow:
        codec = quality.CODECS[name]
        assert (codec.impairment, codec.robustness) == found[name]["impairment"]
    # The delay is the packet's, and what the codec looks ahead: 5 ms (G.729, annex A) and 7.5 ms (G.723.1).
    assert quality.CODECS["g711"] == quality.Codec(0.0, 4.3, 0.020)
    assert quality.CODECS["g729"] == quality.CODECS["g729a-vad"] == quality.Codec(11.0, 19.0, 0.025)
    assert quality.CODECS["g723.1"] == quality.CODECS["g723.1-6.3k"] == quality.Codec(15.0, 16.1, 0.0375)
    assert found["g711"]["payload_bytes"] * 8 / found["g711"]["interval_s"] == pytest.approx(64e3)


def test_a_replay_keeps_its_file_in_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "packets.csv").write_text("t_s,bytes\n0,1500\n0.5,100\n")
    text = """
duration = "1s"
[link]
rate = "1Mbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
class = "all"
kind = "replay"
file = "packets.csv"
"""
    result = linkweir.run(Scenario.parse(text, path=tmp_path / "x.toml"), out=tmp_path / "run")
    assert result.rows("flows")[0]["delivered_pkts"] == 2
    assert (tmp_path / "run" / "inputs" / "packets.csv").read_text() == (tmp_path / "packets.csv").read_text()
    # The laboratory refuses what only the simulator has.
    from linkweir.lab.world import world

    with pytest.raises(linkweir.ScenarioError, match=r"flow\[0\].kind = replay: must be "):
        world(Scenario.load(tmp_path / "run" / "scenario.toml"), frozenset())


def test_a_sweep_keeps_completion_times(home: Result) -> None:
    from linkweir.sweeps.job import summary_rows

    rows = summary_rows(dict(home.tables), home.scenario, home.simulated_s).to_pylist()
    flows = {row["flow"]: row for row in rows if row["scope"] == "flow"}
    (film,) = home.rows("video")
    for total in home.rows("completions"):
        assert flows[total["flow"]]["completion_p95_s"] == total["completion_p95_s"]
        stalls = film["stalls"] if total["flow"] == "film" else None
        assert flows[total["flow"]]["stalls"] == stalls
    assert flows["call-1"]["begun"] is None
    assert flows["call-1"]["kind"] == "voice"


def test_a_run_prints_completion_times_and_video(tmp_path: Path) -> None:
    text = (SCENARIOS / "lte-home.toml").read_text().replace('"300s"', '"20s"').replace('"10s"', '"1s"')
    file = tmp_path / "home.toml"
    file.write_text(text.replace("traces/", f"{SCENARIOS}/traces/"))
    shown = linkweir_command("run", file, "--out", tmp_path / "a", "--wide").stdout
    assert "completion time mean (s)" in shown
    assert "start-up delay (s)" in shown
    summary = json.loads(linkweir_command("run", file, "--out", tmp_path / "b", "--json").stdout)
    assert [row["flow"] for row in summary["completions"]] == ["reader-1", "reader-2", "reader-3", "film"]
    assert [row["flow"] for row in summary["video"]] == ["film"]
