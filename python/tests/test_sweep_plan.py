# SPDX-License-Identifier: BSD-3-Clause
"""Plans of sweeps: the runs they describe, and the errors of wrong ones."""

from __future__ import annotations

import copy
import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import REPOSITORY, SCENARIOS, linkweir

import linkweir as package
from linkweir.sweeps import Plan
from linkweir.sweeps.plan import tomllib

SCENARIO: dict[str, Any] = {
    "duration": "1s",
    "link": {"rate": "2Mbit"},
    "scheduler": {"policy": "drr"},
    "class": [{"name": "af", "quantum": "3000B"}, {"name": "cs.0", "quantum": "1500B"}],
    "flow": [
        {"name": "web", "class": "af", "kind": "poisson", "rate": "1Mbit"},
        {"name": "bulk", "class": "cs.0", "kind": "greedy"},
    ],
}


def plan(**more: Any) -> Plan:
    return Plan.from_dict({"scenario": SCENARIO, **more})


def columns(made: Plan) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = made.columns(made.runs).to_pydict()
    return found


def test_a_grid_is_every_combination_with_every_seed_and_seeds_go_fastest() -> None:
    made = plan(grid={"link.rate": ["1Mbit", "2Mbit"], "flow.web.rate": ["300kbit", "0.5Mbit"]}, seeds=[7, 3])
    assert columns(made) == {
        "run": [1, 2, 3, 4, 5, 6, 7, 8],
        "case": [1, 1, 2, 2, 3, 3, 4, 4],
        "seed": [7, 3, 7, 3, 7, 3, 7, 3],
        "link.rate": ["1Mbit"] * 4 + ["2Mbit"] * 4,
        "link.rate_bps": [1e6] * 4 + [2e6] * 4,
        "flow.web.rate": ["300kbit", "300kbit", "0.5Mbit", "0.5Mbit"] * 2,
        "flow.web.rate_bps": [3e5, 3e5, 5e5, 5e5] * 2,
    }
    assert 'rate = "500kbit"' in made.runs[-1].job.text
    assert 'rate = "2Mbit"' in made.runs[-1].job.text


def test_a_list_of_cases_shows_what_the_scenario_says_of_keys_they_leave_out() -> None:
    made = plan(
        case=[{"label": "thin", "link": {"rate": "1Mbit", "delay": "10ms"}}, {"label": "fat", "link.rate": "9Mbit"}]
    )
    assert columns(made) == {
        "run": [1, 2],
        "case": [1, 2],
        "seed": [1, 1],
        "label": ["thin", "fat"],
        "link.rate": ["1Mbit", "9Mbit"],
        "link.rate_bps": [1e6, 9e6],
        "link.delay": ["10ms", None],
        "link.delay_s": [0.01, None],
    }


def test_cases_are_combined_with_the_grid() -> None:
    made = plan(case=[{"link.rate": "1Mbit"}, {"link.rate": "2Mbit"}], grid={"link.loss": [0.0, 0.1, 0.2]})
    found = columns(made)
    assert found["link.rate_bps"] == [1e6, 1e6, 1e6, 2e6, 2e6, 2e6]
    assert found["link.loss"] == [0.0, 0.1, 0.2, 0.0, 0.1, 0.2]


def test_a_table_on_an_axis_ties_keys_together() -> None:
    made = plan(grid={"flow.web": [{"rate": "1Mbit", "packet": "100B"}, {"rate": "2Mbit", "packet": "1kB"}]})
    assert len(made.runs) == 2
    assert columns(made)["flow.web.packet_bytes"] == [100.0, 1000.0]
    assert columns(made)["flow.web.rate_bps"] == [1e6, 2e6]


def test_a_value_may_be_a_table_or_a_list() -> None:
    fade = {"steps": [["0s", "2Mbit"], ["500ms", "1Mbit"]]}
    flows = [{"class": "af", "kind": "greedy"}]
    made = plan(case=[{"link.rate": fade}, {"flow": flows}])
    found = columns(made)
    assert found["link.rate.steps"] == ['[["0s", "2Mbit"], ["500ms", "1Mbit"]]', None]
    assert found["flow_list"][1] == '[{"class": "af", "kind": "greedy"}]'
    assert made.cases[1].text.count("[[flow]]") == 1
    assert "steps = " in made.cases[0].text


def test_a_table_changes_the_keys_it_names_and_leaves_the_others() -> None:
    cosine = {"mean": "2Mbit", "amplitude": 0.5, "period": "1s"}
    scenario = {**SCENARIO, "link": {"rate": cosine}}
    made = Plan.from_dict({"scenario": scenario, "grid": {"link": {"rate": {"amplitude": [0.1, 0.2]}}}})
    assert columns(made)["link.rate.amplitude"] == [0.1, 0.2]
    assert ['mean = "2Mbit", amplitude = 0.2, period = "1s"' in case.text for case in made.cases] == [False, True]


def test_quoted_names_numbers_and_bits() -> None:
    made = plan(
        grid={'class."cs.0".limit': ["30p", "20p"], "flow.web.count": np.array([1, 2]), "warmup": ["0s", "1ms"]}
    )
    found = columns(made)
    assert set(found['class."cs.0".limit_pkts']) == {30.0, 20.0}
    assert found["flow.web.count"] == [1, 1, 2, 2] * 2
    assert found["warmup_s"] == [0.0, 0.001] * 4


def test_a_key_can_be_unset_and_then_has_its_default() -> None:
    made = plan(grid={"class.af.quantum": ["4500B", {"unset": True}], "flow.web.packet": ["500B"]})
    assert columns(made)["class.af.quantum_bytes"] == [4500.0, None]
    assert ['quantum = "1514B"' in case.text for case in made.cases] == [False, True]
    assert str(made.cases[1]) == 'case 2 (class.af.quantum unset, flow.web.packet = "500B")'


def test_python_may_write_none_for_what_is_unset() -> None:
    written = plan(case=[{"class.af.quantum.unset": True}, {"link.rate": "1Mbit"}])
    given = plan(case=[{"class.af.quantum": None}, {"link.rate": "1Mbit"}])
    assert written.sha256 == given.sha256


def test_a_whole_flow_can_be_unset() -> None:
    made = plan(case=[{"flow.bulk.unset": True}, {"link.rate": "1Mbit"}])
    assert [case.text.count("[[flow]]") for case in made.cases] == [1, 2]


def trace_file(folder: Path) -> Path:
    path = folder / "drive.csv"
    path.write_text("# end=loop\n# period_s=1\nt_s,capacity_bps\n0,1000000\n0.5,3000000\n")
    return path


def test_a_trace_takes_the_place_of_a_rate(tmp_path: Path) -> None:
    trace = trace_file(tmp_path)
    made = plan(grid={"link": [{"rate": "5Mbit"}, {"trace": str(trace)}]})
    found = columns(made)
    assert found["link.rate_bps"] == [5e6, None]
    assert found["link.trace"] == [None, str(trace)]
    assert [[name for _, name, _ in case.inputs] for case in made.cases] == [[], [str(trace)]]


def test_a_rate_takes_the_place_of_a_trace_and_of_the_keys_that_belong_to_it(tmp_path: Path) -> None:
    link = {"trace": str(trace_file(tmp_path)), "trace_format": "linkweir", "end": "hold", "delay": "7ms"}
    made = Plan.from_dict({"scenario": {**SCENARIO, "link": link}, "grid": {"link.rate": ["1Mbit", "2Mbit"]}})
    assert columns(made)["link.rate_bps"] == [1e6, 2e6]
    for case in made.cases:
        assert not case.inputs
        assert "trace" not in case.text
        assert 'delay = "7ms"' in case.text


def test_a_trace_in_place_of_another_does_not_keep_its_keys(tmp_path: Path) -> None:
    scenario = {**SCENARIO, "link": {"trace": str(trace_file(tmp_path)), "end": "loop"}}
    (tmp_path / "other.csv").write_text("t_s,capacity_bps\n0,1000000\n1,2000000\n")
    other = {"link.trace": str(tmp_path / "other.csv")}
    made = Plan.from_dict({"scenario": scenario, "case": [other, {"link.delay": "1ms"}, {**other, "link.end": "stop"}]})
    ends = [re.findall(r'^end = "(\w+)"', case.text, re.MULTILINE) for case in made.cases]
    assert ends == [["hold"], ["loop"], ["stop"]]


def test_what_the_scenario_does_not_say_is_null() -> None:
    made = plan(
        case=[{"scheduler": {"policy": "fifo"}, "class": [{"name": "af"}, {"name": "cs.0"}]}, {"link.loss": "5%"}]
    )
    found = columns(made)
    assert found["link.loss"] == [None, "5%"]
    assert found["link.loss_fraction"] == [None, 0.05]
    assert found["scheduler.policy"] == ["fifo", "drr"]


def test_seeds_as_a_range_and_from_the_command() -> None:
    assert [run.seed for run in plan(seeds={"first": 5, "count": 3}).runs] == [5, 6, 7]
    assert [run.seed for run in plan(seeds={"count": 2}).runs] == [1, 2]
    assert [run.seed for run in Plan.from_dict({"scenario": SCENARIO, "seeds": [9, 4]}, seed=20).runs] == [20, 21]
    own = {**SCENARIO, "seed": 77}
    assert [run.seed for run in Plan.from_dict({"scenario": own, "grid": {"link.loss": [0.1]}}).runs] == [77]


def test_scenarios_of_files_and_of_cases(tmp_path: Path) -> None:
    text = 'duration = "1s"\n[link]\nrate = "1Mbit"\n[scheduler]\npolicy = "POLICY"\n[[class]]\nname = "all"\n'
    text += '[[flow]]\nclass = "all"\nkind = "greedy"\n'
    (tmp_path / "fifo.toml").write_text(text.replace("POLICY", "fifo"))
    (tmp_path / "rr.toml").write_text(text.replace("POLICY", "rr"))
    (tmp_path / "plan.toml").write_text('scenario = "fifo.toml"\n[grid]\nscenario = ["fifo.toml", "rr.toml"]\n')
    made = Plan.load(tmp_path / "plan.toml")
    assert columns(made)["scenario"] == ["fifo.toml", "rr.toml"]
    assert ['policy = "rr"' in case.text for case in made.cases] == [False, True]


def test_a_plan_of_scenarios_made_elsewhere() -> None:
    slow = package.Scenario.from_dict(SCENARIO)
    fast = package.Scenario.from_dict({**SCENARIO, "link": {"rate": "9Mbit"}})
    made = Plan.of_scenarios("mine", [({"users": 1}, slow), ({"users": 2}, fast)], seeds=[1, 2])
    assert columns(made)["users"] == [1, 1, 2, 2]
    with pytest.raises(package.PlanError, match=r"case 2 \(users = 2\) is case 1 \(users = 1\) again"):
        Plan.of_scenarios("mine", [({"users": 1}, slow), ({"users": 2}, slow)])


def test_the_hash_tells_plans_apart_and_not_their_notation() -> None:
    grid = {"link.rate": ["1Mbit", "2Mbit"]}
    one = plan(grid=grid, seeds=[1, 2]).sha256
    assert plan(grid={"link": {"rate": ["1Mbit", "2Mbit"]}}, seeds={"count": 2}).sha256 == one
    assert plan(grid=grid, seeds=[2, 1]).sha256 != one
    assert plan(grid={"link.rate": ["2Mbit", "1Mbit"]}, seeds=[1, 2]).sha256 != one
    changed = copy.deepcopy(SCENARIO)
    changed["flow"][0]["rate"] = "999kbit"
    assert Plan.from_dict({"scenario": changed, "grid": grid, "seeds": [1, 2]}).sha256 != one


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"grids": {}}, ["plan: grids", "unknown key", "did you mean grid?"]),
    ({}, ["grid: is missing", "a plan needs [grid], [[case]] or seeds"]),
    ({"grid": {}}, ["grid: has no keys", "or leave it out"]),
    ({"grid": {"link.rate": []}}, ["grid.link.rate = []", "has no values", "give at least one"]),
    ({"grid": {"link.rate": "1Mbit"}}, ['grid.link.rate = "1Mbit"', "must be a list of values"]),
    ({"grid": {"link..rate": ["1Mbit"]}}, ["grid.link..rate", 'write one like "link.rate"']),
    ({"grid": {"link.rat": ["1Mbit"]}}, ['link.rat = "1Mbit"', "case 1", "rate"]),
    ({"grid": {"link.rate": ["1Mbit", "2"]}}, ['link.rate = "2"', "needs a unit", "case 2"]),
    ({"grid": {"flow.web.rate": ["1"]}}, ['flow.web.rate = "1"', "needs a unit", "case 1"]),
    ({"grid": {"flow.wbe.rate": ["1Mbit"]}}, ["flow.wbe.rate", "there are web, bulk", "did you mean web?"]),
    ({"grid": {"class.ef.limit": ["1p"]}}, ["class.ef.limit", "no class named ef", "there are af, cs.0"]),
    ({"grid": {"class.af": ["1p"]}}, ["class.af", "is a whole entry; give a table of its keys"]),
    ({"grid": {"duration.s": [1]}}, ["duration.s", "must be a time like"]),
    ({"grid": {"seed": [1, 2]}}, ["grid.seed", "write seeds = [1, 2, 3]"]),
    ({"grid": {"name": ["a", "b"]}}, ["grid.name", "changes no result"]),
    ({"grid": {"link.rate": ["1Mbit", "1000kbit"]}}, ["case 2", "1000kbit", "is case 1", "leave one of them out"]),
    ({"grid": {"link.rate": ["1Mbit"], "link": [{"rate": "2Mbit"}]}}, ["grid.link.rate", "is given twice", "keep one"]),
    ({"grid": {"link.rate": ["1Mbit"]}, "case": [{"link.rate": "2Mbit"}]}, ["in [grid] and in case 1", "keep one"]),
    ({"case": [{"link.rate": "1Mbit", "link.rate.mean": "1Mbit"}]}, ["link.rate", "link.rate.mean", "keep one"]),
    ({"case": []}, ["case: is empty", "write [[case]]"]),
    ({"case": [{}]}, ["case[1]: has no keys"]),
    ({"case": [{"link.rate": "1Mbit"}, {"link.rate": "1Mbit"}]}, ["case 2", "is case 1", "again"]),
    ({"case": [{"label": 3, "link.rate": "1Mbit"}]}, ["case[1].label = 3", "must be text"]),
    ({"seeds": []}, ["seeds = []", "has no seeds", "[1, 2, 3]"]),
    ({"seeds": [1, 2, 1]}, ["seeds = 1", "is given twice"]),
    ({"seeds": 5}, ["seeds = 5", "{ first = 1, count = 10 }"]),
    ({"seeds": {"first": 1}}, ["seeds", "{ first = 1, count = 10 }"]),
    ({"seeds": {"count": 0}}, ["seeds", "needs a count of 1 .. 10000000"]),
    ({"seeds": {"first": 3.0, "count": 1}}, ["seeds", "needs a whole number as first"]),
    ({"seeds": {"first": True, "count": 1}}, ["seeds", "needs a whole number as first"]),
    ({"seeds": [-1]}, ["seeds = -1", "0 .. 9223372036854775807"]),
    ({"seeds": [1.5]}, ["seeds = 1.5", "must be a whole number"]),
    ({"scenario": None, "seeds": [1]}, ["scenario: is missing", 'scenario = "geo.toml"']),
    ({"scenario": 3, "seeds": [1]}, ["scenario = 3", "must be the path of a scenario"]),
    ({"scenario": "none.toml", "seeds": [1]}, ['scenario = "none.toml"', "cannot be read", "folder of the plan"]),
    ({"name": 3, "seeds": [1]}, ["name = 3", "must be text"]),
    ({"case": [{"class.af.quantums.unset": True}]}, ["class.af.quantums", "cannot be unset", "did you mean quantum?"]),
    ({"case": [{"class.ef.quantum.unset": True}]}, ["class.ef.quantum", "no class named ef"]),
    ({"case": [{"link.rate.unset": True}]}, ["link", "rate", "case 1"]),
    ({"case": [{"class.af.quantum.unset": False}]}, ["class.af.quantum.unset", "must be true"]),
    ({"grid": {"class.af.quantum.unset": [True]}}, ["class.af.quantum.unset", "one of the values of the key itself"]),
    ({"grid": {"class.af.quantum": [{"unset": 1}]}}, ["grid.class.af.quantum", "must be true"]),
    ({"case": [{"link.rate": "1Mbit", "link.trace": "x.csv"}]}, ["link", "rate", "trace"]),
]


@pytest.mark.parametrize(("given", "message_parts"), WRONG)
def test_a_wrong_plan_is_refused_with_key_value_and_cure(given: dict[str, Any], message_parts: list[str]) -> None:
    with pytest.raises(package.PlanError) as caught:
        plan(**given)
    for words in message_parts:
        assert words in str(caught.value)


def test_faults_of_files_name_file_and_line(tmp_path: Path) -> None:
    scenario = tmp_path / "base.toml"
    scenario.write_text('duration = "1s"\n[link]\nrate = "1Mbit"\nlos = 0.1\n')
    path = tmp_path / "plan.toml"

    def refusal(text: str) -> str:
        path.write_text(text)
        done = linkweir("sweep", path, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()
        return done.stderr

    assert f"{path}:3: grid.link.rate = []: has no values" in refusal(
        'scenario = "base.toml"\n[grid]\nlink.rate = []\n'
    )
    assert f"{path}:2: column 5: " in refusal('name = "x"\nseed\n')
    assert f"{path}:1: scenario" in refusal('scenario = "none.toml"\nseeds = [1]\n')
    broken = refusal('scenario = "base.toml"\n[grid]\n"link.rate" = ["1Mbit", "2Mbit"]\n')
    assert f"{scenario}:4: link.los" in broken
    scenario.write_text('duration = "1s\n')
    assert f"{scenario}:1: " in refusal('scenario = "base.toml"\nseeds = [1]\n')
    path.unlink()
    done = linkweir("sweep", path)
    assert (done.returncode, "cannot be read" in done.stderr, str(path) in done.stderr) == (2, True, True)


def test_a_dry_run_lists_and_runs_nothing(tmp_path: Path, small: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('scenario = "small.toml"\nseeds = [1, 2]\n[grid]\nlink.rate = ["1Mbit", "2Mbit"]\n')
    done = linkweir("sweep", path, "--dry-run", "--out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == 'run 4: case 2 (link.rate = "2Mbit"), seed 2'
    assert not (tmp_path / "out").exists()


def test_the_plans_of_the_documentation_are_sound() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (REPOSITORY / "docs" / "howto" / "sweep.md").read_text(), re.DOTALL)
    counts = []
    for block in blocks:
        written = {"scenario": "geo.toml", **tomllib.loads(block)}
        counts.append(len(Plan.from_dict(written, folder=SCENARIOS).runs))
    assert counts == [40, 2, 3, 2, 12]


@pytest.mark.parametrize(
    "name", ["linkweir.sweeps", "linkweir.sweeps.keys", "linkweir.sweeps.plan", "linkweir.sweeps.plot"]
)
def test_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
