# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of policies: what is left out or derived, promises, tables, reports, and resuming."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import ENDLESS, REPOSITORY, SCENARIOS, linkweir, start, strict_json

import linkweir as package
from linkweir.commands.compare import show
from linkweir.comparison import Comparison, compare
from linkweir.comparison.fitting import expected_bps, fit
from linkweir.comparison.plan import prepare, tomllib
from linkweir.comparison.promises import KEPT, MISSED, UNCLEAR, UNKNOWN, VERDICTS, Promise
from linkweir.sweeps import keys
from linkweir.sweeps.confidence import student_t
from linkweir.sweeps.measures import BUCKET, MEASURES

PSS: dict[str, Any] = {
    "name": "three classes",
    "duration": "3s",
    "warmup": "500ms",
    "link": {"rate": "4Mbit", "delay": "10ms"},
    "scheduler": {"policy": "pss", "sat": "exact"},
    "class": [
        {"name": "ef", "level": 0, "limit": "50p"},
        {"name": "af", "level": 1, "low_level": 3, "rate": "1Mbit", "memory": "1s"},
        {"name": "cs0", "level": 2},
    ],
    "flow": [
        {"class": "ef", "kind": "onoff", "rate": "1Mbit", "on": "500ms", "off": "500ms", "packet": "200B"},
        {"class": "af", "kind": "greedy"},
        {"class": "cs0", "kind": "tcp", "count": 2},
    ],
}


def changes(policy: str, scenario: dict[str, Any] = PSS) -> dict[str, Any]:
    return {keys.show(key): value for key, value in fit(scenario, policy, 4e6).changes.items()}


def notes(policy: str, scenario: dict[str, Any] = PSS) -> Sequence[str]:
    return fit(scenario, policy, 4e6).notes


def scenario_of(name: str) -> dict[str, Any]:
    return tomllib.loads((SCENARIOS / name).read_text())


# --- What is left out or derived --------------------------------------------------------------------------------------


def test_the_scenarios_own_policy_is_left_as_it_is() -> None:
    assert changes("pss") == {}
    assert notes("pss") == ()


def test_parameters_that_a_policy_does_not_have_are_left_out_and_each_is_named_once() -> None:
    assert changes("fifo") == {
        "scheduler.policy": "fifo",
        "scheduler.sat": None,
        "class.ef.level": None,
        "class.af.level": None,
        "class.af.low_level": None,
        "class.af.rate": None,
        "class.af.memory": None,
        "class.cs0.level": None,
    }
    assert notes("fifo") == (
        "left out: sat of the scheduler",
        "left out: level of classes ef and cs0; level, low_level, rate and memory of class af",
    )


def test_a_key_of_the_same_name_with_another_meaning_is_left_out() -> None:
    weighted = {**PSS, "scheduler": {"policy": "wrr"}, "class": [{"name": "a", "weight": "4p"}]}
    assert changes("pf", weighted)["class.a.weight"] is None  # a number there, packets here
    early = {**PSS, "scheduler": {"policy": "pds", "early": "peld"}, "class": [{"name": "a"}]}
    assert changes("pss", early)["scheduler.early"] is None  # other choices


def test_a_key_of_the_same_meaning_stays() -> None:
    faired = {**PSS, "scheduler": {"policy": "pf", "tc": "2s"}, "class": [{"name": "a", "weight": 4}]}
    assert changes("codes", faired) == {"scheduler.policy": "codes"}


def test_flows_are_isolated_only_below_policies_that_leave_the_choice_to_another() -> None:
    isolated = {**PSS, "scheduler": {"policy": "strict"}, "class": [{"name": "a", "flows": "fq_codel"}]}
    assert changes("drr", isolated) == {"scheduler.policy": "drr"}
    for policy in ("codel", "fq_codel", "pds", "bps_like"):
        assert changes(policy, isolated) == {"scheduler.policy": policy, "class.a.flows": None}, policy


def test_reservations_become_shares_of_what_more_urgent_classes_leave() -> None:
    # EF is on half of the time: 0.5 of 4 Mbit/s. AF's 1 Mbit/s is 2/7 of the rest, CS0 gets 5/7.
    assert changes("drr") == {
        "scheduler.policy": "drr",
        "scheduler.sat": None,
        "class.af.low_level": None,
        "class.af.rate": None,
        "class.af.memory": None,
        "class.ef.level": 0,
        "class.af.level": 1,
        "class.cs0.level": 1,
        "class.af.quantum": "1514B",
        "class.cs0.quantum": "3785B",
    }
    found = changes("wrr")
    assert (found["class.af.weight"], found["class.cs0.weight"]) == ("2p", "5p")
    assert "af and cs0 share level 1; weight from the reservations and the 3.5 Mbit/s" in notes("wrr")[-1]


def test_calls_count_as_load() -> None:
    # 20 calls of 200 bytes every 20 ms are 1.6 Mbit/s; with talk spurts they are there for 1004 of 2591 ms.
    calls = {"class": "ef", "kind": "voice", "codec": "g711", "count": 20}
    scenario = {**PSS, "flow": [calls, *PSS["flow"][1:]]}
    assert expected_bps(scenario, ["ef"]) == pytest.approx(1.6e6)
    scenario["flow"][0] = {**calls, "talkspurts": True, "header": "0B"}
    assert expected_bps(scenario, ["ef"]) == pytest.approx(1.28e6 * 1004 / 2591)


def test_shares_become_reservations() -> None:
    found = {keys.show(key): value for key, value in fit(scenario_of("geo-dwrr.toml"), "pss", 20e6).changes.items()}
    assert found["class.af.rate"] == "5000000bit"  # half of what 10 Mbit/s of EF leave of 20
    levels = [found.get(f"class.{name}") for name in ("ef.level", "af.level", "cs0.level", "af.low_level")]
    assert levels == sorted(levels)
    assert len(set(levels)) == 4


def test_remarks_warn_of_what_is_not_what_it_seems() -> None:
    plain = {**PSS, "scheduler": {"policy": "strict"}, "class": [{"name": "a", "level": 0}, {"name": "b", "level": 1}]}
    assert "serves by level alone" in notes("drr", plain)[-1]
    assert "--set drr.class.NAME.level=VALUE" in notes("drr", plain)[-1]
    assert "no class has a reservation" in notes("pss", plain)[-1]
    assert "a queue for each flow" in notes("fq_codel")[-1]
    assert "all classes are one queue; --set dualpi2.class.NAME.l4s=VALUE" in notes("dualpi2")[-1]
    assert not any("one queue" in note for note in notes("dualpi2", {**plain, "class": [{"name": "a", "l4s": "yes"}]}))


@pytest.mark.parametrize("cc", ["prague", "dctcp"])
def test_classes_with_senders_that_count_marks_are_l4s_classes(cc: str) -> None:
    flows = [*PSS["flow"], {"class": "cs0", "kind": "tcp", "cc": cc}]
    scenario = {**PSS, "flow": flows}
    assert changes("dualpi2", scenario)["class.cs0.l4s"] == "yes"
    assert "class.ef.l4s" not in changes("dualpi2", scenario)
    because = 'classes with L4S packets, because their flows have cc = "prague" or "dctcp": cs0'
    mixed = "other flows of class cs0 are taken for L4S, too; give them a class of their own"
    assert notes("dualpi2", scenario)[-2:] == (because, mixed)
    assert notes("dualpi2", {**scenario, "flow": [*PSS["flow"][:2], flows[-1]]})[-1] == because
    assert "class.cs0.l4s" not in changes("drr", scenario)


@pytest.mark.parametrize("name", ["lte-drive.toml", "geo.toml", "geo-dwrr.toml", "starlink.toml", "pds.toml"])
def test_every_policy_can_be_compared_on_the_scenarios_of_the_repository(name: str) -> None:
    names = [policy.name for policy in package.policies() if (name, policy.name) != ("geo-dwrr.toml", "strict")]
    plan, facts = prepare(SCENARIOS / name, names, [], 1, [])
    assert len(plan.cases) == len(names) == len(facts.variants)


def test_a_policy_that_lacks_what_it_needs_is_refused_with_the_cure() -> None:
    with pytest.raises(package.PlanError) as caught:
        prepare(SCENARIOS / "geo-dwrr.toml", ["drr", "strict"], [], 1, [])
    for words in ("policy strict", "class.cs0.level = 1", "--set strict.class.cs0.level=VALUE", "leave strict out"):
        assert words in str(caught.value)
    prepare(SCENARIOS / "geo-dwrr.toml", {"drr": {}, "strict": {"class.cs0.level": 2}}, [], 1, [])


def test_what_is_set_for_a_policy_takes_the_place_of_what_was_computed() -> None:
    _, facts = prepare(PSS, {"drr": {"class.af.quantum": "9kB", "class.cs0.quantum": None}}, [], 1, [])
    (drr,) = facts.variants
    assert drr.classes["af"]["quantum"] == "9kB"
    assert drr.classes["cs0"]["quantum"] == "1514B"  # the default
    assert drr.classes["cs0"]["level"] == 1
    assert drr.notes[-1] == 'set in their place: class.af.quantum = "9kB", class.cs0.quantum unset'


# --- Promises ---------------------------------------------------------------------------------------------------------


def test_a_promise_is_kept_missed_or_unclear() -> None:
    rate = Promise("af", "rate", 1e6)
    around = (-2.0, -1.0, 0.0, 1.0, 2.0)  # a standard deviation of 1.58, of which 12.4 are needed
    assert rate.verdict([1.2e6 + 5e3 * one for one in around]) == KEPT
    assert rate.verdict([0.995e6 + 100.0 * one for one in around]) == KEPT  # within 1 %
    assert rate.verdict([0.98e6 + 100.0 * one for one in around]) == MISSED
    assert rate.verdict([1.0e6 + 5e3 * one for one in around]) == UNCLEAR
    assert rate.verdict([]) == "no data"
    delay = Promise("ef", "delay_p99", 0.05)
    assert delay.verdict([0.04 + 2e-4 * one for one in around]) == KEPT
    assert delay.verdict([0.04]) == KEPT
    assert delay.verdict([0.06 + 2e-4 * one for one in around]) == MISSED
    assert delay.verdict([0.049 + 2e-4 * one for one in around]) == UNCLEAR
    assert delay.text == "ef: delay p99 at most 50 ms"


def test_reservations_and_targets_are_promises() -> None:
    _, facts = prepare(PSS, ["pss"], [], 1, ["ef.loss=1%"])
    assert [promise.text for promise in facts.promises] == ["af: rate at least 1 Mbit/s", "ef: loss at most 1 %"]
    target = {**PSS, "scheduler": {"policy": "mlwdf"}, "class": [{"name": "ef", "target": "80ms", "delta": "1%"}]}
    target["flow"] = [{"class": "ef", "kind": "greedy"}]
    _, facts = prepare(target, ["mlwdf"], [], 1, [])
    assert [promise.text for promise in facts.promises] == ["ef: delay p99 at most 80 ms"]
    _, facts = prepare(SCENARIOS / "starlink.toml", ["pss"], [], 1, [])
    assert [promise.measure for promise in facts.promises] == ["rate"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("af.rate", "is not CLASS.MEASURE=VALUE"),
        ("aff.rate=1Mbit", "no class named aff; there are ef, af, cs0"),
        ("af.delay=1ms", "there is no measure delay; there are rate"),
        ("af.rate=1", "needs a unit"),
        ("ef.loss=1Mbit", "promise ef.loss=1Mbit"),
        ("ef.loss=5", "for a part of a hundred write 5%"),
        ("ef.goodput=1Mbit", "class ef has no TCP flows"),
    ],
)
def test_a_wrong_promise_is_refused(text: str, words: str) -> None:
    with pytest.raises(package.PlanError, match=re.escape(words)):
        prepare(PSS, ["pss"], [], 1, [text])


def test_a_class_that_wants_less_than_it_is_promised_need_only_get_what_it_wants() -> None:
    quiet = {**PSS, "flow": [PSS["flow"][0], {"class": "af", "kind": "cbr", "rate": "300kbit"}, PSS["flow"][2]]}
    (verdict,) = compare(quiet, ["pss"], seeds=1, jobs=1).verdicts
    assert verdict.found.mean == pytest.approx(300e3, rel=0.02)
    assert verdict.verdict == KEPT
    (verdict,) = compare(quiet, ["pss"], seeds=2, jobs=1).verdicts
    assert (verdict.held, verdict.runs[:11]) == (2, "2 of 2 runs")  # two are too few to judge all seeds


@pytest.mark.usefixtures("undrawn")
def test_a_verdict_of_one_seed_says_so_everywhere(tmp_path: Path) -> None:
    one, two = (
        compare(PSS, ["pss", "fifo"], seeds=seeds, jobs=1, promises=["ef.loss=100%", "cs0.delay_p99=1us"])
        for seeds in (1, 2)
    )
    assert {verdict.text for verdict in one.verdicts} >= {"kept (1 seed)", "missed (1 seed)"}
    assert [promise["shown"] for promise in one.summary["promises"]] == [verdict.text for verdict in one.verdicts]
    report = one.report(tmp_path / "one.html").read_text()
    for words in ("kept (1 seed)", "missed (1 seed)", "in a single run.", "1 seed: what is kept"):
        assert words in report, words
    assert "1 seed" not in json.dumps(two.summary, ensure_ascii=False)
    assert "1 seed" not in two.report(tmp_path / "two.html").read_text()


def test_the_terminal_marks_verdicts_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    show(compare(PSS, ["pss"], seeds=1, jobs=1, promises=["ef.loss=100%"]), as_json=False, wide=True)
    printed = capsys.readouterr().out
    assert re.search(r"^ef: loss at most 100 % +pss \(1 seed\) +- +-", printed, re.MULTILINE), printed
    assert "no data" not in printed


def test_a_measure_that_only_one_of_the_seeds_has_is_of_one_seed() -> None:
    found = compare(PSS, ["pss"], seeds=2, jobs=1)
    classes = found._classes
    place = classes.column_names.index("delay_p99_s")
    values = [None, None, None, *classes["delay_p99_s"].to_pylist()[3:]]  # of the first run's three classes
    vars(found)["_classes"] = classes.set_column(place, "delay_p99_s", [values])
    (link,) = (link.label for link in found.facts.links)
    p99 = found.estimate(link, "pss", "ef", "delay_p99")
    assert (p99.half, p99.count) == (None, 1)
    assert found.estimate(link, "pss", "ef", "rate").count == 2


@pytest.mark.parametrize(
    ("flows", "promises"),
    [
        (PSS["flow"][1:], ["ef.delay_p99=50ms", "ef.loss=1%", "ef.rate=1Mbit"]),  # a class without flows
        ([{"class": "ef", "kind": "cbr", "rate": "1Mbit", "stop": "100ms"}, *PSS["flow"][1:]], ["ef.rate=1Mbit"]),
    ],
    ids=["no flow", "a flow that ends within the warm-up"],
)
def test_a_class_that_sent_nothing_has_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flows: Any, promises: Sequence[str]
) -> None:
    found = compare({**PSS, "flow": flows}, ["pss", "fifo"], seeds=2, jobs=1, promises=promises)
    mine = [verdict for verdict in found.verdicts if verdict.promise.name == "ef"]
    assert [verdict.verdict for verdict in mine] == [UNKNOWN] * len(promises) * 2
    show(found, as_json=False, wide=True)
    printed = capsys.readouterr().out
    assert re.search(r"^promise +kept +missed +unclear +no data", printed, re.MULTILINE), printed
    assert re.search(r"^ef: .* +- +- +- +pss, fifo", printed, re.MULTILINE), printed
    report = found.report(tmp_path / "report.html").read_text()
    assert "may have missed" not in report
    assert re.search(r"no data on [^.]*“ef: rate at least 1 Mbit/s”", report)
    assert "No data: the runs measured nothing" in report
    assert "kept every promise" not in report


def test_a_class_without_a_promise_that_sent_nothing_lost_nothing(tmp_path: Path) -> None:
    found = compare({**PSS, "flow": PSS["flow"][1:]}, ["pss"], seeds=2, jobs=1)
    report = found.report(tmp_path / "report.html").read_text()
    assert "class <b>ef</b>, which has no promise, lost nothing, as it sent nothing, under pss" in report.replace(
        "Class", "class"
    )
    assert "lost everything" not in report


def test_the_docs_list_every_verdict() -> None:
    page = (REPOSITORY / "docs/howto/compare.md").read_text()
    table = page[page.index("| verdict | meaning |") :]
    assert tuple(re.findall(r"^\| (\w[\w ]*) \|", table[: table.index("\n\n")], re.MULTILINE)[1:]) == VERDICTS


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ([], "is empty"),
        (["pss", "dr"], "no policy is called dr"),
        (["pss", "fq_code"], "did you mean fq_codel?"),
        (["pss", "pss"], "pss is given twice"),
        ("pss,,drr", '"" is an empty name'),
        ({"pss": {"link.rate": "1Mbit"}}, "link.rate: is no parameter of a policy"),
        ({"pss": {"class.none.rate": "1Mbit"}}, "no class named none"),
        (["pss", ""], '"" is an empty name; write NAME or LABEL=NAME; there are fifo'),
        (["=pss"], '"=pss" has no label'),
        (["a="], '"a=" names no policy'),
        ({"pss": {"class": None}}, "class: is no parameter of a policy"),
        ({"pss": {"class.af": None}}, "class.af: is no parameter of a policy"),
        ({"pss": {"scheduler": None}}, "scheduler: is no parameter of a policy"),
        ({"pss": {"class.none.rate": None}}, "no class named none; there are ef, af, cs0"),
        ({"pss": {"class.af.raet": None}}, "class.af.raet: cannot be unset, as there is no such key"),
        ({"pss": {"class.af.rate": "1Mbps"}}, "--set pss.class.af.rate=VALUE"),
    ],
)
def test_wrong_policies_are_refused(policies: Any, words: str) -> None:
    with pytest.raises(package.PlanError, match=re.escape(words)):
        prepare(PSS, policies, [], 1, [])


@pytest.mark.slow
def test_one_seed_is_said_to_be_one_run(tmp_path: Path) -> None:
    alone = compare(PSS, ["pss"], seeds=1, jobs=1, out=tmp_path / "one")
    several = compare(PSS, ["pss"], seeds=2, jobs=1, out=tmp_path / "two")
    for found, told in ((alone, True), (several, False)):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            show(found, as_json=False, wide=True)
        assert ("of a single run" in shown.getvalue()) is told
        assert found.directory is not None
        assert ("of a single run" in (found.directory / "report.html").read_text()) is told


def test_a_class_that_sent_nothing_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    silent = {**PSS, "flow": [flow for flow in PSS["flow"] if flow["class"] != "ef"]}
    found = compare(silent, ["pss"], seeds=1, jobs=1, promises=["ef.delay_p99=100ms"])
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        show(found, as_json=False, wide=True)
    heading, row = [line for line in shown.getvalue().splitlines() if line.startswith(("promise", "ef: "))][-2:]
    assert row[heading.index("no data") :].strip() == "pss"


def test_seeds_begin_where_they_are_said_to() -> None:
    _, facts = prepare(PSS, ["pss"], [], 3, [], 7)
    assert facts.seeds == (7, 8, 9)
    assert compare(PSS, ["fifo"], seeds=2, seed=5, jobs=1).facts.seeds == (5, 6)
    for seeds, seed, words in (
        (3, 3.0, "seed = 3.0: must be a whole number"),
        (3, True, "seed = True: must be a whole number"),
        (3, -1, "seed = -1: must be a whole number 0 .. 9223372036854775807"),
        ([1, 2], 7, "seed = 7: is for a number of seeds"),
        (True, None, "seeds = True: must be 1 .. 100000 seeds"),
        (3.0, None, "seeds = 3.0: must be 1 .. 100000 seeds"),
        ("3", None, "seeds = '3': must be 1 .. 100000 seeds"),
        ([1, 2.0], None, "seed = 2.0: must be a whole number"),
    ):
        with pytest.raises((package.PlanError, package.ScenarioError), match=re.escape(words)):
            prepare(PSS, ["pss"], [], seeds, [], seed)  # type: ignore[arg-type]


def test_a_note_on_one_policy_is_none_on_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two policies over two traces, a note on one of them comes twice, as often as one on both comes over one."""
    notes = {"drr": ["of drr", "of both"], "strict": ["of both"]}
    monkeypatch.setattr(package.Scenario, "notes", property(lambda scenario: notes.get(scenario.policy, [])))
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for mbit, path in enumerate(paths, 10):
        path.write_text(f"t_s,capacity_bps\n0,20e6\n1,{mbit}e6\n")
    _, facts = prepare(PSS, ["drr", "strict"], paths, 1, [])
    assert "of both" in facts.notes
    assert "of drr" not in facts.notes


@pytest.mark.parametrize("seed", [3.0, "3", True, -1, 2**63])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(package.ScenarioError, match=r"seed = .*must be a whole number 0 \.\. 9223372036854775807"):
        package.run(PSS, seed=seed)


def test_policies_that_reproduce_papers_are_not_listed_but_work() -> None:
    with pytest.raises(package.PlanError, match="there are fifo") as caught:
        prepare(PSS, ["pfs"], [], 1, [])
    assert not re.search("_like|tauran", str(caught.value))
    plan, _ = prepare(PSS, ["bps_like"], [], 1, [])
    assert len(plan.cases) == 1


def test_wrong_traces_and_seeds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(package.PlanError, match=r"none\.csv: cannot be read"):
        prepare(PSS, ["pss"], [tmp_path / "none.csv"], 1, [])
    trace = SCENARIOS / "traces" / "lte-drive.csv"
    with pytest.raises(package.PlanError, match="is given twice"):
        prepare(PSS, ["pss"], [trace, trace], 1, [])
    copy = tmp_path / "copy.csv"
    copy.write_bytes(trace.read_bytes())
    with pytest.raises(package.PlanError, match=r"copy\.csv is given twice: .*lte-drive\.csv has the same content"):
        prepare(PSS, ["pss"], [trace, copy], 1, [])
    for seeds in (0, -3, [], 100_001, 10**12, range(10**12)):
        with pytest.raises(package.PlanError, match=r"seeds = .*: must be 1 \.\. 100000 seeds"):
            prepare(PSS, ["pss"], [], seeds, [])
    with pytest.raises(package.PlanError, match="seeds = 4: is given twice"):
        prepare(PSS, ["pss"], [], [4, 5, 4], [])


# --- Results ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "steps.csv"
    path.write_text("# end=loop\n# period_s=2\nt_s,capacity_bps\n0,2000000\n1,3000000\n")
    return path


def test_the_table_has_means_and_intervals_of_the_runs() -> None:
    found = compare(PSS, ["pss", "fifo"], seeds=3, jobs=1)
    rows = {(row["policy"], row["class"]): row for row in found.table.to_pylist()}
    assert list(rows) == [(policy, name) for name in ("ef", "af", "cs0") for policy in ("pss", "fifo")]
    runs = []
    for seed in (1, 2, 3):
        fifo = {**PSS, "scheduler": {"policy": "fifo"}}
        fifo["class"] = [{"name": "ef", "limit": "50p"}, {"name": "af"}, {"name": "cs0"}]
        runs.append(package.run(fifo, seed=seed))
    rates = [run.rows("classes")[0]["rate_bps"] for run in runs]
    mean = sum(rates) / 3
    spread = (sum((rate - mean) ** 2 for rate in rates) / 2) ** 0.5
    assert rows["fifo", "ef"]["rate_bps"] == pytest.approx(mean)
    assert rows["fifo", "ef"]["rate_bps_ci95"] == pytest.approx(student_t(0.95, 2) * spread / 3**0.5)
    goodput = [sum(flow["goodput_bps"] for flow in run.rows("flows") if flow["kind"] == "tcp") for run in runs]
    assert rows["fifo", "cs0"]["goodput_bps"] == pytest.approx(sum(goodput) / 3)
    assert rows["fifo", "ef"]["goodput_bps"] is None
    assert rows["pss", "ef"]["runs"] == 3


def test_no_interval_of_a_percentile_is_narrower_than_a_bucket_of_its_histogram() -> None:
    fixed = {**PSS, "flow": PSS["flow"][1:]}  # nothing random: all seeds fall into the same bucket
    found = compare(fixed, ["pss"], seeds=3, jobs=1)
    for row in found.table.to_pylist():
        for name in ("delay_p50_s", "delay_p95_s", "delay_p99_s"):
            if row[name] is not None:
                assert row[f"{name}_ci95"] == pytest.approx(row[name] / 128, rel=1e-12)
        assert row["rate_bps_ci95"] == pytest.approx(0.0, abs=1e-3)
    rows = [row for row in found.sweep.delays.to_pylist() if row["lower_s"] > 1e-6]
    assert max((row["upper_s"] - row["lower_s"]) / row["upper_s"] for row in rows) <= BUCKET
    (link,) = (link.label for link in found.facts.links)
    p99 = list(found.values(link, "pss", "af", "delay_p99").values()) * 20
    assert Promise("af", "delay_p99", p99[0] * 1.001).verdict(p99) == UNCLEAR
    assert Promise("af", "delay_p99", p99[0] * 1.01).verdict(p99) == KEPT


def test_no_interval_of_a_percentile_is_shown_as_nothing() -> None:
    assert MEASURES["delay_p99"].shown(0.0013, 0.0013 / 128) == "1.3 ± 0.1"
    assert MEASURES["delay_p50"].shown(0.1, 0.0002) == "100.0 ± 0.2"
    assert MEASURES["rate"].shown(1e6, 1.0) == "1.000 ± 0.000"


def test_policies_that_schedule_in_the_same_way_are_named() -> None:
    plain = {**PSS, "scheduler": {"policy": "strict"}, "class": [{"name": name} for name in ("ef", "af", "cs0")]}
    plain["class"] = [{**entry, "level": level} for level, entry in enumerate(plain["class"])]
    found = compare(plain, ["strict", "drr", "fifo"], seeds=2, jobs=1)
    assert any(note.startswith("strict and drr: every run gave the same results") for note in found.notes)
    assert not any("fifo:" in note and "same results" in note for note in found.notes)


def test_a_scenario_without_randomness_says_that_one_seed_is_enough() -> None:
    fixed = {**PSS, "flow": PSS["flow"][1:]}
    assert any("one seed is enough" in note for note in compare(fixed, ["pss"], seeds=2, jobs=1).notes)
    assert not any("one seed is enough" in note for note in compare(fixed, ["pss"], seeds=1, jobs=1).notes)
    assert not any("one seed is enough" in note for note in compare(PSS, ["pss"], seeds=2, jobs=1).notes)


@pytest.mark.slow
def test_the_command_end_to_end(tmp_path: Path, trace: Path) -> None:
    scenario = tmp_path / "three.toml"
    scenario.write_text((SCENARIOS / "lte-drive.toml").read_text().replace('"300s"', '"6s"').replace('"10s"', '"1s"'))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "lte-drive.csv").write_text((SCENARIOS / "traces" / "lte-drive.csv").read_text())
    words = ["compare", scenario, "--policies", "pss,drr,codel=fq_codel", "--traces"]
    words += [f"{trace},{tmp_path / 'traces' / 'lte-drive.csv'}", "--seeds", 2, "--promise", "ef.delay_p99=100ms"]
    words += ["--set", "codel.scheduler.target=20ms", "--out", tmp_path / "out"]
    done = linkweir(*words)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("read: ")]
    assert lines[0] == "drr: left out: low_level, rate and memory of class af"
    assert [line for line in lines if line.startswith("codel: left out")] == [
        "codel: left out: level of classes ef and cs0; level, low_level, rate and memory of class af"
    ]
    assert "12 of 12 runs done: 12 now, 0 before" in lines
    assert {"steps", "lte-drive"} <= set(lines)
    again = linkweir(*words)
    assert "12 of 12 runs done: 0 now, 12 before" in again.stdout.splitlines()
    repeated = [line for line in again.stdout.splitlines() if not line.startswith("read: ")]
    assert repeated[: len(lines) - 2] == lines[:-2]

    report = (tmp_path / "out" / "report.html").read_text()
    assert report.index("Answer") < report.index("What each class got") < report.index("How this was made")
    assert "af: rate at least 1.5 Mbit/s" in report
    assert report.count("<svg") == 4
    assert 'target = "20ms"' in report or "target = &quot;20ms&quot;" in report
    loaded = Comparison.load(tmp_path / "out")
    assert loaded.table.equals(Comparison.load(tmp_path / "out").table)
    assert len(loaded.verdicts) == 2 * 2 * 3
    (tmp_path / "out" / "report.html").unlink()
    redrawn = linkweir("report", tmp_path / "out")
    assert redrawn.returncode == 0
    assert (tmp_path / "out" / "report.html").read_text() == report

    other = linkweir(*words, "--json", "--promise", "cs0.loss=90%")
    shown = strict_json(other.stdout)
    assert shown["runs_done"] == 12
    lossy = [one for one in shown["promises"] if one["promise"].startswith("cs0")]
    assert [one["held"] for one in lossy] == [2] * 6
    assert {one["verdict"] for one in lossy} <= {"kept", "unclear"}  # two runs that differ seldom decide
    assert linkweir(*words[:3], "pss,fifo", "--out", tmp_path / "out").returncode == 2


def test_a_comparison_that_was_interrupted_is_resumed(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(ENDLESS)
    process = start("compare", scenario, "--policies", "pss,fifo", "--seeds", "1", "--out", tmp_path / "out")
    while not (tmp_path / "out" / "parts").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted after 0 of 2 runs; the same command resumes it" in errors
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policies", "pss,nix"], "no policy is called nix"),
        (["--policies", "pss", "--set", "drr.class.af.quantum=3kB"], "drr is not compared"),
        (["--policies", "pss", "--set", "pss.class.af"], "write POLICY.KEY=VALUE"),
        (["--policies", "pss", "--promise", "af=3"], "is not CLASS.MEASURE=VALUE"),
        (["--policies", "pss,pss"], "--policies: pss is given twice; give one of them another label, like mine=pss"),
        (["--policies", "pss, pss"], "--policies: pss is given twice"),
        (["--policies", "a=drr,a=pss"], "--policies: a is given twice; give one of them another label, like mine=pss"),
        (["--policies", ","], '--policies: "," names nothing; give names of policies, like pss,drr; there are fifo'),
        (["--policies", ""], '--policies: "" names nothing'),
        (["--policies", "pss,"], '--policies: "pss," holds an empty name'),
        (["--policies", "pss", "--seeds", "0"], "--seeds: 0: must be 1 .. 100000; 10 give a confidence interval"),
        (["--policies", "pss", "--seeds", "1000000000000"], "--seeds: 1000000000000: must be 1 .. 100000"),
        (["--policies", "pss", "--seed", "-1"], "--seed: -1: must be 0 .. 9223372036854775798 with --seeds 10"),
        (["--policies", "pss", "--seed", "18446744073709551616"], "--seed: 18446744073709551616: must be 0 .."),
        (["--policies", "pss", "--traces", ""], '--traces: "" names nothing; give paths of capacity traces, or leave'),
        (
            ["--policies", "pss", "--traces", "none.csv"],
            "traces: none.csv: cannot be read: No such file or directory; give",
        ),
        (
            ["--policies", "pss", "--set", "pss.class.af.rate=1Mbit", "--set", "pss.class.af.rate=2Mbit"],
            "is given twice",
        ),
        (["--policies", "pss", "--promise", ""], 'promise "": is not CLASS.MEASURE=VALUE'),
        (
            ["--policies", "pss", "--promise", "ef.loss=5%", "--promise", "ef.loss=0.05"],
            "is given twice, first as ef.loss=5%",
        ),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(
    tmp_path: Path, small: Path, words: Sequence[str], message: str
) -> None:
    done = linkweir("compare", small, *words, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["comparison.fitting", "comparison.promises", "comparison.execute", "sweeps.measures"])
def test_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"linkweir.{name}"))
    assert tried
    assert not failed


def test_distributions_are_those_of_all_seeds_together() -> None:
    found = compare(PSS, ["pss"], seeds=3, jobs=1)
    runs = package.run_many([{**PSS, "seed": seed} for seed in (1, 2, 3)])
    merged = package.delays.merge(run.delays for run in runs)
    (link,) = (link.label for link in found.facts.links)
    for one in package.delays.distributions(merged, "queueing"):
        ours = found.distribution(link, "pss", one.of)
        assert ours is not None
        assert ours.packets.sum() == one.packets.sum()
        assert ours.quantile(0.99) == one.quantile(0.99)


def test_copies_of_a_class_are_one_class_with_their_means() -> None:
    scenario = {
        **PSS,
        "scheduler": {"policy": "drr"},
        "class": [{"name": "user", "count": 3}, {"name": "rest"}],
        "flow": [
            {"class": "user", "kind": "poisson", "rate": "900kbit", "count": 3},
            {"class": "rest", "kind": "tcp"},
        ],
    }
    found = compare(scenario, ["drr"], seeds=[1], jobs=1, promises=["user.rate=500kbit"])
    assert found.table["class"].to_pylist() == ["user", "rest"]
    assert "Class user has 3 copies; its figures are means over them" in found.notes
    run = package.run(scenario, seed=1)
    rates = [row["rate_bps"] for row in run.rows("classes")[:3]]
    assert found.table["rate_bps"][0].as_py() == pytest.approx(sum(rates) / 3)
    goodput = next(flow["goodput_bps"] for flow in run.rows("flows") if flow["kind"] == "tcp")
    assert found.table["goodput_bps"].to_pylist() == [None, pytest.approx(goodput)]
    merged = found.distribution(found.facts.links[0].label, "drr", "user")
    assert merged is not None
    assert merged.packets.sum() == sum(row["sent_pkts"] for row in run.rows("classes")[:3])
    assert [verdict.verdict for verdict in found.verdicts] == [KEPT]


@pytest.mark.usefixtures("undrawn")
def test_without_promises_the_report_says_which_policy_is_best(tmp_path: Path) -> None:
    plain = {**PSS, "scheduler": {"policy": "strict"}, "class": [{"name": name} for name in ("ef", "af", "cs0")]}
    report = compare(plain, ["strict", "fifo"], seeds=10, jobs=1).report(tmp_path / "report.html").read_text()
    assert "The scenario promises nothing to any class." in report
    best = re.search(r"<li>class <b>ef</b>: (.*?)</li>", report)
    assert best is not None
    assert "lowest delay p99 under strict (" in best[1]
