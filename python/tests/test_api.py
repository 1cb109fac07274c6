# SPDX-License-Identifier: BSD-3-Clause
"""The package as a notebook uses it."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command import SCENARIOS, SMALL

import linkweir
from linkweir import Result, Scenario, ScenarioError


def greedy(rate: str = "20Mbit", **changes: Any) -> dict[str, Any]:
    """Two classes that always have packets, three to one."""
    return {
        "duration": "10s",
        "link": {"rate": rate},
        "scheduler": {"policy": "drr"},
        "class": [{"name": "af", "quantum": "4500B"}, {"name": "cs0", "quantum": "1500B"}],
        "flow": [{"class": "af", "kind": "greedy"}, {"class": "cs0", "kind": "greedy"}],
        **changes,
    }


def test_a_dict_is_a_scenario() -> None:
    result = linkweir.run(greedy(), seed=5)
    assert result.scenario.seed == 5
    assert result.status == "complete"
    af, cs0 = result.classes["rate_bps"].to_pylist()
    # Three packets to one, to within one round of four packets over the run.
    assert af == pytest.approx(15e6, abs=4 * 12000 / 10)
    assert cs0 == pytest.approx(5e6, abs=4 * 12000 / 10)
    assert sum(result.classes["sent_pkts"].to_pylist()) == result.packets


def test_tables_go_where_people_want_them() -> None:
    result = linkweir.run(SCENARIOS / "pds.toml")
    assert isinstance(result.series, pa.Table)
    frame = result.to_pandas("classes")
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["class"]) == [f"c{i}" for i in range(1, 9)]
    assert isinstance(result.to_polars("classes"), pl.DataFrame)
    assert result.to_polars("flows")["delay_mean_s"].dtype == pl.Float64
    assert result.rows("flows")[0]["retransmitted_pkts"] is None
    assert set(result.tables) == {"series", "link", "flow_series", "levels", "classes", "flows", "delays"}
    assert result.link.num_rows == 100
    assert result.levels.column_names[:2] == ["t_s", "class"]
    with pytest.raises(KeyError):
        result.to_pandas("nonsense")
    assert "<table>" in result._repr_html_()
    assert len(result.plot().axes) >= 4
    json.dumps(result.summary, allow_nan=False)


def test_a_policy_without_levels_has_an_empty_table() -> None:
    result = linkweir.run(greedy(scheduler={"policy": "fifo"}, **{"class": [{"name": "af"}, {"name": "cs0"}]}))
    assert result.levels.num_rows == 0
    assert "levels" not in result.tables


def test_disk_and_memory_hold_the_same(tmp_path: Path) -> None:
    scenario = Scenario.parse(SMALL)
    kept = linkweir.run(scenario)
    written = linkweir.run(scenario, out=tmp_path / "out")
    loaded = Result.load(tmp_path / "out")
    assert set(kept.tables) == set(written.tables) == set(loaded.tables)
    for name, table in kept.tables.items():
        assert written.tables[name].equals(table), name
        assert loaded.tables[name].equals(table), name
    assert kept.summary == written.summary == loaded.summary
    assert loaded.scenario.resolved == scenario.resolved
    assert loaded.directory == tmp_path / "out"


def test_the_seed_decides() -> None:
    scenario = {
        **greedy(),
        "flow": [{"class": "af", "kind": "poisson", "rate": "10Mbit"}, {"class": "cs0", "kind": "greedy"}],
    }
    first, same, other = (linkweir.run(scenario, seed=seed) for seed in (1, 1, 2))
    assert first.series.equals(same.series)
    assert not first.series.equals(other.series)


def test_many_runs_are_those_of_one_by_one() -> None:
    scenarios = [greedy(f"{mbit}Mbit") for mbit in range(1, 9)]
    calls: list[tuple[int, int]] = []
    seen: list[int] = []
    results = linkweir.run_many(
        scenarios, jobs=3, progress=lambda done, of: calls.append((done, of)), on_result=lambda i, _: seen.append(i)
    )
    assert calls == [(n, 8) for n in range(1, 9)]
    assert sorted(seen) == list(range(8))
    for scenario, result in zip(scenarios, results, strict=True):
        assert result.series.equals(linkweir.run(scenario).series)
    assert linkweir.run_many([]) == []


def test_many_runs_are_checked_before_the_first() -> None:
    seen: list[int] = []
    with pytest.raises(ScenarioError, match="needs a unit"):
        linkweir.run_many([greedy(), greedy("20")], on_result=lambda i, _: seen.append(i))
    assert seen == []
    with pytest.raises(ValueError, match="jobs"):
        linkweir.run_many([greedy()], jobs=0)


def test_an_error_of_the_callback_is_raised() -> None:
    def fail(index: int, result: Result) -> None:
        raise LookupError(index)

    with pytest.raises(LookupError):
        linkweir.run_many([greedy(), greedy()], on_result=fail)


def test_faults_carry_their_parts() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(SMALL.replace('"2Mbit"', "2"), path="mine.toml")
    fault = caught.value
    assert (fault.file, fault.line, fault.key, fault.value) == ("mine.toml", 4, "link.rate", "2")
    assert fault.message.startswith("needs a unit")
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(greedy("20"))
    assert (caught.value.file, caught.value.line) == (None, None)


def test_what_python_values_may_be_given() -> None:
    scenario = Scenario.from_dict(
        {
            **greedy(),
            "name": 'tricky "quotes" \\ \u00e9 \U0001f6f0 \x7f\n',
            "seed": np.int64(4),
            "link": {"rate": "20Mbit", "loss": np.float64(0.25), "follow": np.bool_(True), "ring": np.uint8(2)},
        }
    )
    assert scenario.name == 'tricky "quotes" \\ \u00e9 \U0001f6f0 \x7f\n'
    assert "loss = 0.25" in scenario.resolved
    assert "follow = true" in scenario.resolved
    again = Scenario.parse(scenario.resolved)
    assert again.name == scenario.name
    for value in (None, object(), {1, 2}, float("nan"), float("inf"), 2**70, b"bytes", 1 + 2j):
        with pytest.raises(ScenarioError, match="seed"):
            Scenario.from_dict({**greedy(), "seed": value})
    with pytest.raises(ScenarioError, match="keys must be strings"):
        Scenario.from_dict({**greedy(), 5: "x"})  # type: ignore[dict-item]


def test_a_scenario_is_made_once() -> None:
    scenario = Scenario.parse(SMALL)
    with pytest.raises(ValueError, match="where a Scenario is made"):
        linkweir.run(scenario, seed=3)


def test_shipped_scenarios_are_sound() -> None:
    for path in sorted(SCENARIOS.glob("*.toml")):
        assert Scenario.load(path).duration_s > 0


def test_shipped_traces_come_from_the_generators(tmp_path: Path) -> None:
    linkweir.traces.lte_drive(seed=6, duration_s=300).write(tmp_path / "lte-drive.csv")
    linkweir.traces.starlink(seed=1, duration_s=600).write(tmp_path / "starlink.csv")
    for name in ("lte-drive.csv", "starlink.csv"):
        assert (tmp_path / name).read_bytes() == (SCENARIOS / "traces" / name).read_bytes()


def test_generators_keep_to_their_word() -> None:
    for make in (linkweir.traces.lte_drive, linkweir.traces.starlink):
        for seed in range(5):
            trace = make(seed=seed, duration_s=120.0, mean_mbit=8.0)
            assert trace.mean_bps == pytest.approx(8e6, rel=1e-3)
            assert trace.times_s[0] == 0
            assert all(a < b for a, b in zip(trace.times_s, trace.times_s[1:], strict=False))
            assert min(trace.capacity_bps) >= 0
        assert make(seed=1, duration_s=60.0) != make(seed=2, duration_s=60.0)
        with pytest.raises(ValueError, match="interval_s"):
            make(interval_s=0)
        with pytest.raises(ValueError, match="mean_mbit"):
            make(mean_mbit=0)


def stalls(trace: linkweir.traces.Trace) -> list[tuple[float, float]]:
    """When the capacity becomes 0, and for how long, in seconds."""
    found = []
    begun: float | None = None
    for time_s, rate in zip(trace.times_s, trace.capacity_bps, strict=True):
        if rate == 0 and begun is None:
            begun = time_s
        elif rate and begun is not None:
            found.append((begun, time_s - begun))
            begun = None
    return found


def test_a_satellite_changes_every_15_s_from_a_phase_on_and_stalls_the_link() -> None:
    def at_changes(first_s: float | None, seed: int) -> list[float]:
        trace = linkweir.traces.starlink(seed, 300.0, interval_s=0.05, phase_s=first_s, stall_s=0.2)
        short = [(at_s, long_s) for at_s, long_s in stalls(trace) if long_s < 0.5]  # the others are obstructions
        assert all(0.05 < long_s < 0.35 for _, long_s in short)
        assert len(short) >= 15
        return [at_s % 15.0 for at_s, _ in short]

    assert at_changes(4.0, 3) == pytest.approx([4.0] * len(at_changes(4.0, 3)), abs=0.051)
    phases = {round(at_changes(None, seed)[0], 1) for seed in range(1, 6)}
    assert len(phases) == 5
    faults: list[dict[str, Any]] = [
        *({"phase_s": phase_s} for phase_s in (-1.0, 15.0)),
        *({"stall_s": stall_s} for stall_s in (-0.1, 1.0, 8.0)),
    ]
    for keys in faults:
        with pytest.raises(ValueError, match=f"{next(iter(keys))} must be"):
            linkweir.traces.starlink(**keys)


@pytest.mark.parametrize(
    "name",
    [
        "linkweir",
        "linkweir.links",
        "linkweir.scenarios.policy",
        "linkweir.scenarios.scenario",
        "linkweir.runs.simulate",
        "linkweir.traces",
    ],
)
def test_examples_in_docstrings_run(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0


def test_heavy_packages_are_imported_only_when_needed() -> None:
    program = """
import sys, linkweir, linkweir.commands.cli
linkweir.Scenario.load(sys.argv[1])
heavy = {"matplotlib", "pyarrow", "numpy", "pandas", "polars"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program, str(SCENARIOS / "geo.toml")], check=True)


def test_the_stub_is_true_to_the_module(tmp_path: Path) -> None:
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "linkweir._native", "--mypy-config-file", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def capacities(result: Result) -> list[float]:
    return [row["capacity_bps"] for row in result.rows("link")]


def test_run_takes_its_own_trace(small: Path, tmp_path: Path) -> None:
    trace = linkweir.traces.lte_drive(seed=3, duration_s=5)
    trace.write(tmp_path / "trace.csv")
    expected = linkweir.run(small, trace=tmp_path / "trace.csv")
    result = linkweir.run(small, trace=trace, out=tmp_path / "out")
    for name in ("series", "classes", "link"):
        assert result.tables[name].equals(expected.tables[name])
    assert (tmp_path / "out/inputs/trace.csv").read_bytes() == (tmp_path / "trace.csv").read_bytes()
    again = Scenario.load(tmp_path / "out/scenario.toml")
    assert again.inputs[0][2] == (tmp_path / "trace.csv").read_bytes()


def test_run_takes_a_data_frame_as_its_trace(small: Path) -> None:
    """Seconds, UNIX seconds, or time stamps with or without a zone, also as the index of a pandas frame."""
    seconds, rates = [0.0, 2.0, 3.0], [2e6, 0.0, 1e6]
    expected = [2e6, 2e6, 0.0, 1e6, 1e6]
    unix = pd.Series([1_700_000_000, 1_700_000_002, 1_700_000_003])
    stamps = pd.to_datetime(unix, unit="s")
    plain = {"t_s": seconds, "capacity_bps": rates}
    for frame in (
        pd.DataFrame(plain),
        pl.DataFrame(plain),
        pa.table(plain),
        pd.DataFrame({"t_s": unix, "capacity_bps": rates}),
        pd.DataFrame({"t_s": stamps, "capacity_bps": rates}),
        pd.DataFrame({"t_s": stamps.dt.tz_localize("Europe/Paris"), "capacity_bps": rates}),
        pd.DataFrame({"t_s": stamps.dt.tz_localize("UTC"), "down_mbit": [2.0, 0.0, 1.0]}),
        pd.DataFrame({"capacity_bps": rates}, index=pd.DatetimeIndex(stamps, name="t_s")),
        pl.DataFrame({"t_s": list(stamps.dt.to_pydatetime()), "capacity_bps": rates}),
    ):
        assert capacities(linkweir.run(small, trace=frame)) == pytest.approx(expected, rel=1e-12), frame


def test_durations_of_a_data_frame_are_times(small: Path) -> None:
    """0, 2 and 3 s in each of the units that data frames have."""
    rates = [2e6, 0.0, 1e6]
    spans = [timedelta(seconds=s) for s in (0, 2, 3)]
    for frame in (
        pd.DataFrame({"t_s": pd.to_timedelta([0, 2, 3], unit="s"), "capacity_bps": rates}),
        pd.DataFrame({"capacity_bps": rates}, index=pd.TimedeltaIndex(spans, name="t_s")),
        pl.DataFrame({"t_s": spans, "capacity_bps": rates}),
        *(
            pa.table({"t_s": pa.array(spans, pa.duration(unit)), "capacity_bps": rates})
            for unit in ("s", "ms", "us", "ns")
        ),
    ):
        shown = capacities(linkweir.run(small, trace=frame))
        assert shown == pytest.approx([2e6, 2e6, 0.0, 1e6, 1e6], rel=1e-12), frame


def test_durations_have_the_unit_that_the_name_of_their_column_says() -> None:
    spans = pa.array([timedelta(0), timedelta(seconds=1.5)])
    for name, last in (("t_s", "1.5"), ("when", "1.5"), ("t_ms", "1500"), ("t_us", "1500000"), ("t_ns", "1500000000")):
        text = linkweir.traces.as_csv(pa.table({name: spans, "down_mbit": [1, 2]}))
        assert text == f"{name},down_mbit\n0,1\n{last},2\n"


def test_columns_of_a_data_frame_that_are_no_part_of_the_trace_do_no_harm(small: Path) -> None:
    stamps = ["2026-01-31T12:00:00Z", "2026-01-31T12:00:02Z", "2026-01-31T12:00:03Z"]
    plain = {
        "place": ["a,b", 'the "bridge"', "two\nlines"],
        "t_s": stamps,
        "near, far": [1, 2, 3],
        "seen": [[1], [2, 3], []],
        "car": ["red", "blue", None],
        "down_mbit": [2.0, 0.0, 1.0],
    }
    for frame in (
        pd.DataFrame(plain),
        pd.DataFrame(plain).astype({"place": "category", "car": "category"}),
        pl.DataFrame(plain),
        pa.table(plain),
    ):
        shown = capacities(linkweir.run(small, trace=frame))
        assert shown == pytest.approx([2e6, 2e6, 0.0, 1e6, 1e6], rel=1e-12), frame


def test_a_trace_that_is_none_is_refused(small: Path) -> None:
    for wrong in (5, [(0, 1e6)], object()):
        with pytest.raises(TypeError, match="Trace or a data frame, not"):
            linkweir.run(small, trace=wrong)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match=r"trace\.csv:1: cannot tell the trace's format"):
        linkweir.run(small, trace=pd.DataFrame({"time": [0.0], "speed": [1.0]}))
    with pytest.raises(ScenarioError, match=r'trace\.csv:3: capacity_bps = "": is not a number'):
        linkweir.run(small, trace=pd.DataFrame({"t_s": [0.0, 1.0], "capacity_bps": [1e6, float("nan")]}))
