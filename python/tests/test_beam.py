# SPDX-License-Identifier: BSD-3-Clause
"""A beam to terminals in rain: modulation, code and rate compared with a naive model, tables, figures and files."""

from __future__ import annotations

import html
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomllib
from command import REPOSITORY, SCENARIOS, SMALL, linkweir, strict_json

import linkweir as package
from linkweir import Result, Scenario, ScenarioError
from linkweir.panels.plot import charts, svg

THRESHOLDS_DB = {
    "QPSK 1/4": -2.35,
    "QPSK 1/3": -1.24,
    "QPSK 2/5": -0.30,
    "QPSK 1/2": 1.00,
    "QPSK 3/5": 2.23,
    "QPSK 2/3": 3.10,
    "QPSK 3/4": 4.03,
    "QPSK 4/5": 4.68,
    "QPSK 5/6": 5.18,
    "QPSK 8/9": 6.20,
    "QPSK 9/10": 6.42,
    "8PSK 3/5": 5.50,
    "8PSK 2/3": 6.62,
    "8PSK 3/4": 7.91,
    "8PSK 5/6": 9.35,
    "8PSK 8/9": 10.69,
    "8PSK 9/10": 10.98,
    "16APSK 2/3": 8.97,
    "16APSK 3/4": 10.21,
    "16APSK 4/5": 11.03,
    "16APSK 5/6": 11.61,
    "16APSK 8/9": 12.89,
    "16APSK 9/10": 13.13,
    "32APSK 3/4": 12.73,
    "32APSK 4/5": 13.64,
    "32APSK 5/6": 14.28,
    "32APSK 8/9": 15.69,
    "32APSK 9/10": 16.05,
}
"""EN 302 307-1, table 13."""


def efficiency(name: str) -> float:
    """Data bits per symbol of a normal frame without pilots, from the lengths of its parts."""
    modulation, rate = name.split()
    bits = {"QPSK": 2, "8PSK": 3, "16APSK": 4, "32APSK": 5}[modulation]
    over, under = map(int, rate.split("/"))
    bch = {"2/3": 160, "5/6": 160, "8/9": 128, "9/10": 128}.get(rate, 192)
    return (64800 * over / under - bch - 80) / (64800 / bits + 90)


def chosen(before: str | None, esn0_db: float, margin_db: float, hysteresis_db: float) -> str | None:
    """The rule in words: the most efficient one that is met; a more efficient one than before needs more."""
    had = 0.0 if before is None else efficiency(before)
    met = [
        name
        for name, threshold_db in THRESHOLDS_DB.items()
        if esn0_db >= threshold_db + margin_db + (hysteresis_db if efficiency(name) > had else 0.0)
    ]
    return max(met, key=efficiency, default=None)


def beam(**keys: Any) -> dict[str, Any]:
    """Three terminals that always have packets."""
    return {
        "duration": "30s",
        "interval": "100ms",
        "link": {"delay": "250ms", "beam": {"symbol_rate": "2MBd", "clear_sky_esn0_db": [8, 12, 16], **keys}},
        "scheduler": {"policy": "rr"},
        "class": [{"name": "t", "count": 3}],
        "flow": [{"class": "t", "kind": "greedy", "count": 3}],
    }


def test_modulation_and_code_follow_a_recorded_fade(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    steps = np.cumsum(random.normal(0, 0.6, (300, 3)), axis=0)
    fades = np.round(np.abs(steps), 3)  # on the channel's own grid, so that every tick reads one line
    lines = [",".join(f"{value:.3f}" for value in (i / 10, *row)) for i, row in enumerate(fades)]
    (tmp_path / "fade.csv").write_text("\n".join(["t_s,a,b,c", *lines]) + "\n")
    sound = Scenario.from_dict(beam(attenuation=str(tmp_path / "fade.csv"), margin_db=0.7, hysteresis_db=0.4))
    result = package.run(sound)
    found = result.to_pandas("channel")
    assert len(found) == 900
    changes = [0, 0, 0]
    before: list[str | None] = [None, None, None]
    first = True
    for i in range(300):
        for k, clear_db in enumerate((8.0, 12.0, 16.0)):
            row = found.iloc[3 * i + k]
            esn0_db = clear_db - float(np.float32(fades[i, k]))
            now = chosen(before[k], esn0_db, 0.7, 0.0 if first else 0.4)
            changes[k] += not first and now != before[k]
            assert row["modcod"] == (now or "none"), (i, k)
            assert row["esn0_db"] == pytest.approx(esn0_db, abs=1e-9)
            assert row["outage"] == (0.0 if now else 1.0)
            # Efficiencies of the table are rounded to six digits.
            assert row["rate_bps"] == pytest.approx(2e6 * efficiency(now) if now else 0.0, abs=2)
            before[k] = now
        first = False
    assert min(changes) > 10
    assert found["outage"].max() == 1.0
    assert result.terminals["modcod_changes"].to_pylist() == changes
    # The carrier is never idle while any terminal can decode it.
    reached = found["outage"].to_numpy().reshape(300, 3).min(axis=1) == 0
    assert np.allclose(result.to_pandas("carrier")["occupancy"][reached][1:], 1.0, atol=0.02)


def test_a_run_says_which_pairs_of_rain_its_model_misses(tmp_path: Path) -> None:
    scenario = beam(rain={"exceeded": [["0.01%", 14.5], ["1%", 1.2]], "probability": "5%"})
    missed = "1.2 dB in 0.674% of the time instead of 1%"
    result = package.run(scenario, out=tmp_path / "out")
    (note,) = result.summary["notes"]
    assert note.startswith("link.beam.rain.exceeded: ")
    assert missed in note
    assert missed in result.scenario.resolved
    assert f'<p class="warning">{html.escape(note)}</p>' in (tmp_path / "out" / "report.html").read_text()
    assert package.Result.load(tmp_path / "out").summary["notes"] == [note]
    done = linkweir("run", str(tmp_path / "out" / "scenario.toml"), "--out", str(tmp_path / "again"))
    assert f"note: {note}\n" in done.stdout
    assert package.run(beam()).summary["notes"] == []


def shipped(policy: str) -> dict[str, Any]:
    scenario = tomllib.loads((SCENARIOS / "geo-beam-rain.toml").read_text())
    scenario["duration"], scenario["warmup"] = "20s", "5s"
    scenario["scheduler"] = {"policy": policy}
    return scenario


@pytest.mark.parametrize("policy", ["rr", "drr", "strict", "pf"])
def test_the_shipped_beam_runs_under_policies(policy: str) -> None:
    result = package.run(shipped(policy))
    summary = json.loads(json.dumps(result.summary, allow_nan=False))
    carrier, link = summary["carrier"], summary["link"]
    assert 0.99 < carrier["occupancy"] <= 1.0 + 1e-9
    assert 0.0 < carrier["outage"] < 0.2
    assert link["used_bps"] < link["capacity_bps"]
    terminals = result.to_pandas("terminals")
    rates = result.to_pandas("classes")["rate_bps"]
    assert len(terminals) == 100
    assert np.all(rates[terminals["outage"] == 1.0] == 0.0)
    # Sent is what fits into the time on air: rates change, but little within these seconds.
    possible = terminals["airtime"] * terminals["channel_rate_bps"]
    steady = terminals["modcod_changes"] == 0
    assert steady.sum() > 20
    assert np.allclose(rates[steady], possible[steady], rtol=0.01, atol=2000)
    assert terminals["airtime"].sum() == pytest.approx(carrier["occupancy"], abs=1e-9)


@pytest.mark.slow
def test_the_shipped_comparison_runs(tmp_path: Path) -> None:
    short = (SCENARIOS / "geo-beam-rain.toml").read_text().replace('"300s"', '"20s"').replace('"30s" ', '"5s" ')
    assert 'policy = "pf"' in short
    (tmp_path / "short.toml").write_text(short)
    script = [sys.executable, str(SCENARIOS / "geo_beam_policies.py")]
    words = ["short.toml", "--policies", "rr", "pf", "--storms", "1", "--out", "pictures"]
    done = subprocess.run([*script, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    head, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert head[1:3] == ["`rr`", "`pf`"]
    rows = {name: (float(rr), float(pf), more) for name, rr, pf, more in lines}
    goodputs_bps = package.run(Scenario.parse(short)).to_pandas("flows")["goodput_bps"]
    rr, pf, more = rows["goodput of all terminals (Mbit/s)"]
    assert pf == pytest.approx(goodputs_bps.sum() / 1e6, rel=0.005)  # three digits
    assert rr < pf
    assert more == "1 of 1"
    rr, pf, more = rows["Jain's index of goodputs"]
    assert pf < rr <= 1
    assert more == "0 of 1"
    shown = (REPOSITORY / "docs" / "records" / "geo-beam.md").read_text()
    for name in ("geo-beam-goodput.svg", "geo-beam-fade.svg"):
        assert "</svg>" in (tmp_path / "pictures" / name).read_text()
        assert f"(images/{name})" in shown
        assert (REPOSITORY / "docs" / "records" / "images" / name).stat().st_size < 200_000


def test_the_shipped_comparison_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain.toml").write_text(SMALL)
    main = runpy.run_path(str(SCENARIOS / "geo_beam_policies.py"))["main"]
    monkeypatch.chdir(tmp_path)
    for words, message in (
        (["--policies", "best"], 'scheduler.policy = "best": must be one of fifo'),
        (["plain.toml"], "plain.toml: link.beam: is missing"),
        (["none.toml"], "none.toml: cannot be read"),
        (["--storms", "0"], "--storms = 0: must be at least 1"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["plain.toml"]


def test_weather_does_not_depend_on_policy_or_traffic() -> None:
    columns = ["clear_sky_esn0_db", "attenuation_mean_db", "channel_rate_bps", "outage", "modcod_changes"]
    rr, drr = (package.run(shipped(policy)).terminals.select(columns) for policy in ("rr", "drr"))
    assert rr.equals(drr)
    quiet = {**shipped("rr"), "flow": [{"class": "terminal", "kind": "greedy"}]}
    assert package.run(quiet).terminals.select(columns).equals(rr)
    assert not package.run(quiet, seed=2).terminals.select(columns).equals(rr)
    quiet["link"]["beam"]["channel_seed"] = 1
    assert package.run(quiet, seed=2).terminals.select(columns).equals(rr)


@pytest.mark.slow
def test_a_directory_has_it_all(tmp_path: Path) -> None:
    (tmp_path / "fade.csv").write_text("t_s,attenuation_db\n0,0\n10,6.5\n20,0\n")
    scenario = json.dumps(beam(attenuation="fade.csv"))
    text = "\n".join(_toml(json.loads(scenario)))
    (tmp_path / "beam.toml").write_text(text)
    done = linkweir("run", tmp_path / "beam.toml", "--out", tmp_path / "out", "--json", "--figures", "svg")
    assert done.returncode == 0, done.stderr
    assert strict_json(done.stdout)["carrier"]["occupancy"] == pytest.approx(1.0)
    loaded = Result.load(tmp_path / "out")
    assert {"channel", "carrier", "terminals"} < set(loaded.tables)
    assert (tmp_path / "out" / "inputs" / "fade.csv").read_text().startswith("t_s")
    for name in ("channel", "carrier", "terminals"):
        assert (tmp_path / "out" / "figures" / f"{name}.svg").stat().st_size > 1000
    assert "<h2>Terminals</h2>" in (tmp_path / "out" / "report.html").read_text()
    again = linkweir("rerun", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert "different" not in again.stdout
    figures = {chart.name: chart for chart in charts(loaded)}
    assert svg(figures["terminals"]) == svg(figures["terminals"])
    plain = package.run({**beam(), "link": {"rate": "2Mbit"}})
    assert not {"channel", "carrier", "terminals"} & {chart.name for chart in charts(plain)}
    assert not {"channel", "carrier", "terminals"} & set(plain.tables)
    assert "carrier" not in plain.summary


def _toml(scenario: dict[str, Any]) -> list[str]:
    """The few kinds of values these scenarios have; JSON and TOML write lists and inline values in the same way."""
    top = [f"{key} = {json.dumps(value)}" for key, value in scenario.items() if isinstance(value, str)]
    link = dict(scenario["link"])
    inner = link.pop("beam")
    for header, table in (("[link]", link), ("[link.beam]", inner), ("[scheduler]", scenario["scheduler"])):
        top += [header, *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    for key in ("class", "flow"):
        for table in scenario[key]:
            top += [f"[[{key}]]", *(f"{name} = {json.dumps(value)}" for name, value in table.items())]
    return top


def test_faults_name_file_and_cure(tmp_path: Path) -> None:
    (tmp_path / "fade.csv").write_text("t_s,attenuation_db\n0,-3\n")
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(beam(attenuation=str(tmp_path / "fade.csv")))
    assert str(caught.value).endswith('fade.csv:2: attenuation_db = "-3": must be dB, 0 .. 300; a fade is positive')
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(beam(clear_sky_esn0_db=[1, 2]))
    assert str(caught.value) == (
        "link.beam.clear_sky_esn0_db = [1, 2]: has 2 values where there are 3 classes; give one for each or one for all"
    )


def test_a_symbol_rate_is_a_quantity_of_sweeps() -> None:
    plan = {"scenario": beam(), "grid": {"link.beam.symbol_rate": ["1MBd", "2MBd"]}}
    table = package.sweep(plan, jobs=1).table
    assert sorted(set(table["link.beam.symbol_rate_bd"].to_pylist())) == [1e6, 2e6]
