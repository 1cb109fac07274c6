# SPDX-License-Identifier: BSD-3-Clause
"""A user's own delays and fading of a satellite link run from a scenario file; wrong ones are refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from command import SCENARIOS, linkweir

from linkweir import Result, Scenario, ScenarioError, run
from linkweir.directories.provenance import read_provenance

SCENARIO = """
duration = "4s"
[link]
rate = "100Mbit"
[link.satellite]
packet = "210B"
fading = "fading.txt"
user_offset = "0s"
delays = "delays.csv"
delays_start = "100s"
delays_shift = "10s"
delays_before = "100ms"
ground_delay = "1ms"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
class = "all"
name = "user"
count = 12
kind = "cbr"
rate = "8kbit"
packet = "210B"
"""
# At 100 s: 80 ms up, 8 ms down. Ten seconds earlier 70 ms up.
DELAYS = "t_s,to_satellite_s,to_ground_s\n0,0.060,0.004\n60,0.070,0.006\n95,0.080,0.008\n"
CLEAR = "".join(f"{n / 1000} 0.0\n" for n in range(1000))
"""The line of sight."""


def folder_of(tmp_path: Path, *, delays: str = DELAYS, fading: str = CLEAR, scenario: str = SCENARIO) -> Path:
    (tmp_path / "delays.csv").write_text(delays, encoding="utf-8")
    (tmp_path / "fading.txt").write_text(fading, encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(scenario, encoding="utf-8")
    return path


def test_each_flow_has_its_own_delay(tmp_path: Path) -> None:
    result = run(folder_of(tmp_path))
    found = result.flows["delay_mean_s"].to_pylist()
    # Flow i looks at 100 - 10 i s: up to 0 s in the file, and before it for the last one.
    up_ms = [80, *[70] * 4, *[60] * 6, 100]
    for delay_s, expected_ms in zip(found, up_ms, strict=True):
        # 8 ms down, 1 ms to the user, and at most twelve packets of 2290 coded bits at 100 Mbit/s.
        assert expected_ms + 9 <= delay_s * 1e3 <= expected_ms + 9 + 0.3
    assert sum(result.harq["decoded_first_pkts"].to_pylist()) == sum(result.flows["delivered_pkts"].to_pylist())


def test_fading_decides_what_is_understood(tmp_path: Path) -> None:
    result = run(folder_of(tmp_path, fading=f"t_s,gain_db\n{CLEAR.replace(' 0.0', ',-60')}"))
    assert sum(result.flows["delivered_pkts"].to_pylist()) == 0
    # Every 210 ms a packet from each of 12 users, of which the last few are still being tried at the end.
    assert 12 * 18 <= sum(result.harq["given_up_pkts"].to_pylist()) <= 12 * 20


def test_a_run_directory_holds_both_files_and_repeats_the_run(tmp_path: Path) -> None:
    path = folder_of(tmp_path)
    assert linkweir("run", path, "--out", tmp_path / "out").returncode == 0
    hashes = {entry["name"]: entry["sha256"] for entry in read_provenance(tmp_path / "out")["inputs"]}
    assert set(hashes) == {"inputs/delays.csv", "inputs/fading.txt"}
    assert hashes["inputs/delays.csv"] == hashlib.sha256(DELAYS.encode()).hexdigest()
    assert (tmp_path / "out" / "inputs" / "delays.csv").read_text() == DELAYS
    again = run(Scenario.load(tmp_path / "out" / "scenario.toml"))
    assert again.flows.equals(Result.load(tmp_path / "out").flows)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"delays": DELAYS.replace("0.070", "70ms")}, 'delays.csv:3: to_satellite_s = "70ms": is not a number'),
        ({"delays": DELAYS.replace("95", "30")}, 'delays.csv:4: t_s = "30": must be later than the line before, 60'),
        ({"delays": DELAYS.replace("ground", "earth")}, 'delays.csv:1: unknown column "to_earth_s"'),
        ({"delays": DELAYS.replace("0.008", "-8")}, 'delays.csv:4: to_ground_s = "-8": must be seconds, 0 .. 3600'),
        ({"fading": "0,-1\n0.001,deep\n"}, 'fading.txt:2: gain_db = "deep": is not a number'),
        ({"fading": "0,-1\n1,-1\n5,-1\n"}, "fading.txt:2: t_s = 1: samples must be equally spaced"),
        (
            {"scenario": SCENARIO.replace('"delays.csv"', '"delay.csv"')},
            "delay.csv: cannot be read",
        ),
        (
            {"scenario": SCENARIO.replace('"100Mbit"', '"100Mbit"\ndelay = "8ms"')},
            'own.toml:5: link.delay = "8ms": link.satellite has delays of its own; leave one out',
        ),
        (
            {"scenario": SCENARIO.replace('"cbr"', '"cbr"\naccess_delay = "100ms"')},
            'flow[0].access_delay = "100ms": link.satellite has delays of its own; leave one out',
        ),
        (
            {"scenario": SCENARIO.replace('"delays.csv"', '"delays.csv"\nconstellation = { planes = 6 }')},
            "delays and constellation exclude each other; leave one out",
        ),
        (
            {"scenario": SCENARIO.replace('"fading.txt"', '"fading.txt"\nmodel = "itu_p681"')},
            "link.satellite.model",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, str], expected: str) -> None:
    path = folder_of(tmp_path, **change)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    assert expected in str(caught.value)
    shown = linkweir("check", path)
    assert shown.returncode == 2
    assert expected in shown.stderr.replace("\n", " ")


def test_the_shipped_constellation_carries_voice() -> None:
    result = run(SCENARIOS / "leo-constellation.toml")
    rows = result.rows("flows")
    shortest_s = min(row["delay_p50_s"] for row in rows)
    longest_s = max(row["delay_p50_s"] for row in rows)
    # 15 000 km as the crow flies and 99 ms through the longest way of a day, and at most 100 ms in the queue.
    assert 0.053 < shortest_s < longest_s < 0.2
    assert sum(row["delivered_pkts"] for row in rows) > 0.9 * sum(row["arrived_pkts"] for row in rows)


def test_a_constellation_with_gaps_runs_and_says_when_the_link_is_down(tmp_path: Path) -> None:
    # 66 satellites at 800 km, planes spread evenly: New York sees none from 2723 s until 2733 s.
    scenario = {
        "duration": "30s",
        "link": {
            "rate": "1Mbit",
            "satellite": {
                "packet": "210B",
                "delays_start": "2715s",
                "constellation": {
                    "planes": 6,
                    "per_plane": 11,
                    "phasing": 3,
                    "altitude_km": 800,
                    "inclination_deg": 86.4,
                    "min_elevation_deg": 8.2,
                    "from": {"lat_deg": -33.87, "lon_deg": 151.21},
                    "to": {"lat_deg": 40.71, "lon_deg": -74.01},
                },
            },
        },
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all"}],
        "flow": [{"class": "all", "kind": "cbr", "rate": "64kbit", "packet": "210B"}],
    }
    result = run(scenario, out=tmp_path / "out")
    (note,) = result.summary["notes"]
    assert "for 10s of 30s, from 8s to 18s" in note
    assert note in (tmp_path / "out" / "report.html").read_text()
    capacities = result.link["capacity_bps"].to_pylist()
    assert [round(bps) for bps in capacities] == [10**6] * 8 + [0] * 10 + [10**6] * 12
    sent = result.series["sent_pkts"].to_pylist()
    # The packet of 8 s is on the link all the time.
    assert sum(sent[9:18]) == 0
    assert sent[18] > 10 * 38
    assert result.summary["link"]["capacity_bps"] == pytest.approx(2e6 / 3)
