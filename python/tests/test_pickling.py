# SPDX-License-Identifier: BSD-3-Clause
"""What users send to processes of their own: results, scenarios, comparisons, sweeps, warnings and errors."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import linkweir

KEYS: dict[str, Any] = {
    "name": "small",
    "duration": "1s",
    "link": {"rate": "1Mbit", "delay": "10ms"},
    "scheduler": {"policy": "strict"},
    "class": [{"name": "voice"}, {"name": "rest"}],
    "flow": [
        {"class": "voice", "kind": "poisson", "rate": "200kbit"},
        {"class": "rest", "kind": "tcp"},
    ],
}


def _run(seed: int) -> linkweir.Result:
    return linkweir.run(KEYS, seed=seed)


def _run_scenario(scenario: linkweir.Scenario) -> linkweir.Result:
    return linkweir.run(scenario)


def _fail(_: int) -> linkweir.Result:
    return linkweir.run({**KEYS, "duration": "1"})


@pytest.fixture(scope="module")
def result() -> linkweir.Result:
    return linkweir.run(KEYS, seed=3)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_result_can_be_copied(result: linkweir.Result, copied: Callable[[Any], Any]) -> None:
    again = copied(result)
    assert again.summary == result.summary
    assert dict(again.tables) == dict(result.tables)
    assert [str(one) for one in again.warnings] == [str(one) for one in result.warnings]
    assert again.scenario.resolved == result.scenario.resolved


def test_a_result_of_a_directory_can_be_copied(tmp_path: Path) -> None:
    result = linkweir.run(KEYS, out=tmp_path / "run")
    again = pickle.loads(pickle.dumps(result))
    assert again.directory == result.directory
    assert again.classes == result.classes


def test_a_scenario_takes_its_files_along(tmp_path: Path) -> None:
    trace = tmp_path / "steps.csv"
    trace.write_text("t_s,capacity_bps\n0,2000000\n0.5,500000\n")
    scenario = linkweir.Scenario.from_dict(KEYS, path=tmp_path / "scenario.toml", trace=trace, seed=5)
    wanted = linkweir.run(scenario).classes
    sent = pickle.dumps(scenario)
    trace.unlink()
    again = pickle.loads(sent)
    assert (again.seed, again.resolved) == (5, scenario.resolved)
    assert again.readings == scenario.readings  # provenance.json keeps them
    assert linkweir.run(again).classes == wanted
    assert linkweir.run(copy.deepcopy(scenario)).classes == wanted


def test_comparisons_sweeps_and_warnings_can_be_copied(result: linkweir.Result) -> None:
    comparison = linkweir.compare(KEYS, ["strict", "fifo"], seeds=2, jobs=1, promises=["voice.loss=1%"])
    again = pickle.loads(pickle.dumps(comparison))
    assert again.summary == comparison.summary
    assert copy.deepcopy(comparison).table == comparison.table
    sweep = linkweir.sweep({"scenario": KEYS, "grid": {"link.rate": ["1Mbit", "2Mbit"]}}, jobs=1)
    assert pickle.loads(pickle.dumps(sweep)).table == sweep.table
    for one in (linkweir.Interrupted(result), linkweir.SweepInterrupted(comparison.sweep)):
        assert str(pickle.loads(pickle.dumps(one))) == str(one)
    assert pickle.loads(pickle.dumps(linkweir.Interrupted(result))).result.summary == result.summary


def test_results_and_errors_come_back_from_processes_that_are_spawned() -> None:
    scenario = linkweir.Scenario.from_dict(KEYS, seed=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(_run, [1, 2])
        assert [one.summary for one in found] == [_run(seed).summary for seed in (1, 2)]
        assert pool.apply(_run_scenario, (scenario,)).summary == found[1].summary
        with pytest.raises(linkweir.ScenarioError) as caught:
            pool.apply(_fail, (1,))
    assert (caught.value.key, caught.value.value) == ("duration", '"1"')
