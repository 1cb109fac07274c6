# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with several links: runs, tables, reports, warnings, sweeps, comparisons and exports know links by name."""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command import SCENARIOS, linkweir, strict_json

import linkweir as lw
from linkweir import Scenario, ScenarioError
from linkweir.comparison.plan import prepare
from linkweir.deploy.bpf import bpf_settings
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.ns3 import ns3_program
from linkweir.deploy.script import tc_scripts
from linkweir.diagnose import MOST_LINKS
from linkweir.fault import PlanError
from linkweir.scenarios.declared import rows
from linkweir.sweeps import keys
from linkweir.sweeps.keys import KeyPathError
from linkweir.tables import bins

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = """\
name = "two links"
duration = "5s"
warmup = "1s"

[[link]]
name = "feeder"
rate = "10Mbit"
delay = "5ms"
[link.scheduler]
policy = "strict"
[[link.class]]
name = "voice"
match = [{ dscp = "EF" }]
level = 0
[[link.class]]
name = "rest"
level = 1
limit = "100p"

[[link]]
name = "beam"
like = "feeder"
rate = "4Mbit"

[[link]]
name = "return"
rate = "200kbit"
delay = "5ms"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "acks"

[[flow]]
name = "call"
kind = "cbr"
rate = "500kbit"
packet = "500B"
jitter = 0.1
dscp = "EF"
path = ["feeder", "beam"]

[[flow]]
name = "load"
kind = "tcp"
class = { feeder = "rest", beam = "rest", return = "acks" }
path = ["feeder", "beam"]
back = ["return"]
count = 2
"""
NETWORK: dict[str, Any] = tomllib.loads(TEXT)
LINKS = ["feeder", "beam", "return"]


def network(**changes: Any) -> dict[str, Any]:
    """The network with other values at keys such as `link.beam.rate`."""
    values = {keys.split(key.replace("__", ".")): value for key, value in changes.items()}
    return keys.put(NETWORK, values)


@pytest.fixture(scope="module")
def result() -> lw.Result:
    return lw.run(NETWORK)


def test_a_scenario_knows_its_links_and_the_ways_through_them() -> None:
    scenario = Scenario.parse(TEXT)
    assert scenario.is_network
    assert scenario.links == LINKS
    assert scenario.flows == ["call", "load-1", "load-2"]
    assert scenario.policy == "strict, fifo"
    assert scenario.classes == ["feeder: voice", "feeder: rest", "beam: voice", "beam: rest", "return: acks"]
    assert scenario.ways["call"] == ([("feeder", "voice"), ("beam", "voice")], [])
    there = [("feeder", "rest"), ("beam", "rest")]
    assert scenario.ways["load-2"] == (there, [("return", "acks")])
    assert "3 links" in repr(scenario)


def test_a_scenario_with_one_link_has_no_names() -> None:
    scenario = Scenario.load(SCENARIOS / "pss-fade.toml")
    assert not scenario.is_network
    assert (scenario.links, scenario.ways) == ([], {})
    with pytest.raises(ScenarioError, match=r'link = "a": no link has this name; there are no \[\[link\]\]'):
        scenario.of_link("a")


def test_a_dict_makes_the_same_network_as_its_file() -> None:
    assert Scenario.from_dict(NETWORK).resolved == Scenario.parse(TEXT).resolved
    assert Scenario.parse(Scenario.parse(TEXT).resolved).resolved == Scenario.parse(TEXT).resolved


def test_a_link_alone_is_a_scenario() -> None:
    scenario = Scenario.parse(TEXT)
    beam = scenario.of_link("beam")
    assert (beam.classes, beam.policy, beam.flows) == (["voice", "rest"], "strict", scenario.flows)
    assert beam.native.tables()["link"]["nominal_bps"] == 4e6
    assert [flow["class"] for flow in beam.native.tables()["flows"]] == ["voice", "rest"]
    assert Scenario.parse(beam.resolved).resolved == beam.resolved
    assert scenario.of_link("return").flows == []  # acknowledgements alone
    with pytest.raises(ScenarioError, match=r'link = "bean": no link has this name; did you mean "beam"\?'):
        scenario.of_link("bean")


def test_a_network_can_be_pickled() -> None:
    scenario = Scenario.parse(TEXT)
    assert pickle.loads(pickle.dumps(scenario)).resolved == scenario.resolved


def test_tables_of_links_have_their_names(result: lw.Result) -> None:
    for table in ("series", "link", "classes", "delays"):
        assert result.table(table).column_names[0] == "link", table
        assert set(result.table(table)["link"].to_pylist()) == set(LINKS), table
    hops = {(row["flow"], row["link"], row["direction"]) for row in result.hops.to_pylist()}
    assert {("call", "beam", "there"), ("load-1", "return", "back")} <= hops
    assert len(hops) == 2 + 2 * 3
    assert lw.run(SCENARIOS / "pss-fade.toml").table("hops").num_rows == 0


def test_a_link_of_a_run_has_its_rows_without_the_name(result: lw.Result) -> None:
    beam = result.of_link("beam")
    assert "link" not in beam.table("classes").column_names
    assert beam.table("classes")["class"].to_pylist() == ["voice", "rest"]
    mine = [row for row in result.rows("series") if row.pop("link") == "beam"]
    assert beam.rows("series") == mine
    batches = list(beam.batches("series", ["t_s", "sent_bytes"]))
    assert sum(pa.Table.from_batches(batches)["sent_bytes"].to_pylist()) == sum(row["sent_bytes"] for row in mine)
    flows = {row["flow"]: row["class"] for row in beam.rows("flows")}
    assert flows == {"call": "voice", "load-1": "rest", "load-2": "rest"}
    assert result.of_link("return").rows("flows") == []


def test_the_summary_has_an_entry_for_each_link(result: lw.Result) -> None:
    summary = strict_json(json.dumps(result.summary))
    assert [(link["link"], link["policy"]) for link in summary["links"]] == [
        ("feeder", "strict"),
        ("beam", "strict"),
        ("return", "fifo"),
    ]
    assert [link["capacity_bps"] for link in summary["links"]] == pytest.approx([10e6, 4e6, 0.2e6])
    assert all(0 < link["used_bps"] <= 1.001 * link["capacity_bps"] for link in summary["links"])
    assert "link" not in summary


def test_distributions_of_classes_of_one_name_are_not_mixed(result: lw.Result) -> None:
    found = {one["class"]: one["count_pkts"] for one in lw.delays.quantiles(result.delays) if one["kind"] == "queueing"}
    assert set(found) == set(Scenario.parse(TEXT).classes)
    merged = lw.delays.quantiles(lw.delays.merge([result.delays, result.delays]))
    assert {one["class"]: one["count_pkts"] for one in merged if one["kind"] == "queueing"} == {
        name: 2 * count for name, count in found.items()
    }
    assert set(lw.delays.cdf(result.delays)["class"].to_pylist()) >= set(found)


def test_the_number_of_threads_changes_nothing(result: lw.Result) -> None:
    other = lw.run(NETWORK, threads=2)
    assert all(other.table(name).equals(result.table(name)) for name in result.tables)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        lw.run(NETWORK, threads=0)


@pytest.mark.slow
def test_the_command_runs_a_network_and_repeats_it(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(TEXT)
    checked = linkweir("check", file)
    assert checked.stdout == f"{file}: valid: 3 links, 5 classes, 3 flows, 5 s, policy strict, fifo\n"
    done = linkweir("run", file, "--out", tmp_path / "run", "--threads", 2, "--figures", "svg")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^beam \(strict\) +4\.000 ", done.stdout, re.MULTILINE)
    assert re.search(r"^return: acks ", done.stdout, re.MULTILINE)
    provenance = json.loads((tmp_path / "run/provenance.json").read_text())
    assert provenance["format"] == 2
    assert (tmp_path / "run/figures/link-2-rates.svg").exists()
    again = linkweir("rerun", tmp_path / "run", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert "identical   results/hops.parquet" in again.stdout
    opened = lw.Result.load(tmp_path / "run")
    assert opened.of_link("beam").table("classes").num_rows == 2
    assert linkweir("report", tmp_path / "run").returncode == 0
    one = linkweir("run", SCENARIOS / "pss-fade.toml", "--out", tmp_path / "one")
    assert one.returncode == 0
    assert json.loads((tmp_path / "one/provenance.json").read_text())["format"] == 1


def test_many_networks_run_at_once(result: lw.Result) -> None:
    slower = network(link__beam__rate="2Mbit")
    first, second = lw.run_many([NETWORK, slower], jobs=2)
    assert first.table("classes").equals(result.table("classes"))
    assert second.summary["links"][1]["capacity_bps"] == pytest.approx(2e6)


def test_the_log_of_packets_has_the_steps_on_each_link(tmp_path: Path) -> None:
    lw.run(NETWORK | {"log": "packets"}, out=tmp_path / "run")
    done = linkweir("log", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ +\d+ sent \(beam\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +\d+ delivered$", done.stdout, re.MULTILINE)
    wireshark = linkweir("log", tmp_path / "run", "--pcapng", tmp_path / "log.pcapng")
    assert wireshark.returncode == 2
    assert "its run has several links, and the form for Wireshark has one" in wireshark.stderr


def test_calls_over_several_links_are_rated(tmp_path: Path) -> None:
    call = {"name": "talk", "kind": "voice", "codec": "g711", "dscp": "EF", "path": ["feeder", "beam"]}
    done = lw.run(NETWORK | {"duration": "30s", "flow": [*NETWORK["flow"], call]}, out=tmp_path / "run")
    (rated,) = lw.quality.voice(done).to_pylist()
    assert (rated["flow"], rated["mos"] > 4) == ("talk", True)
    assert "Calls" in (tmp_path / "run/report.html").read_text()


# --- the report ------------------------------------------------------------------------------------------------------


def chain(links: int) -> dict[str, Any]:
    """A network of many links, each with a flow of its own."""
    made: dict[str, Any] = {"duration": "2s", "interval": "10ms", "link": [], "flow": []}
    for number in range(links):
        name = f"l{number}"
        queues = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all"}]}
        made["link"].append({"name": name, "rate": "1Mbit"} | (queues if number == 0 else {"like": "l0"}))
        flow = {"name": f"f{number}", "kind": "cbr", "rate": f"{100 + 10 * number}kbit", "packet": "500B"}
        made["flow"].append(flow | {"class": "all", "path": [name]})
    return made


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.parametrize("links", [1, 3, 50, 60])
def test_the_report_has_the_charts_of_each_link(links: int, tmp_path: Path) -> None:
    lw.run(chain(links), out=tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert len(page) < 3_000_000
    data = embedded(page)
    drawn = data["links"]
    assert len(drawn) == min(links, 50)
    assert all(link["classes"] == ["all"] for link in drawn)
    assert all({"rates", "delays", "drops"} <= {panel["name"] for panel in link["panels"]} for link in drawn)
    if links == 60:  # those that sent most
        assert [link["name"] for link in drawn] == [f"l{number}" for number in range(10, 60)]
        assert "10 more links, which lost and sent less, are not drawn" in page
    assert "Flows on each link" in page


def test_the_report_of_one_link_has_the_form_that_it_had(tmp_path: Path) -> None:
    lw.run(SCENARIOS / "pss-fade.toml", out=tmp_path / "run")
    assert set(embedded((tmp_path / "run/report.html").read_text())) == {"classes", "shown", "warmup", "panels"}


# --- warnings --------------------------------------------------------------------------------------------------------


def test_a_warning_names_the_link_and_its_advice_removes_it() -> None:
    crowded = copy.deepcopy(NETWORK)
    crowded["flow"] = [
        {"name": f"c{n}", "kind": "cbr", "rate": "1Mbit", "packet": "500B", "dscp": "EF", "path": ["feeder", "beam"]}
        for n in range(6)
    ]
    found = {finding.kind: finding for finding in lw.run(crowded).warnings}
    assert found["offered"].where == "link.beam"
    assert found["in_step"].where == "link beam, class voice"
    advice = found["offered"].advice[1]
    assert set(advice) == {"link.beam.rate", "link.beam.nominal"}
    cured = keys.put(crowded, {keys.split(key): value for key, value in advice.items()})
    assert "offered" not in {finding.kind for finding in lw.run(cured).warnings}


def test_a_missed_reservation_is_found_on_the_second_link() -> None:
    changed = copy.deepcopy(NETWORK)
    changed["link"][1] |= {
        "rate": {"steps": [["0s", "4Mbit"], ["2s", "1Mbit"], ["4s", "4Mbit"]]},
        "nominal": "4Mbit",
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "voice", "level": 0, "match": [{"dscp": "EF"}]},
            {"name": "rest", "level": 1, "low_level": 2, "rate": "2Mbit", "memory": "0s"},
        ],
    }
    (finding,) = [finding for finding in lw.run(changed).warnings if finding.kind.startswith("reservation")]
    assert finding.where == "link beam, class rest"
    assert all(key.startswith("link.beam.class.rest.") for advice in finding.advice for key in advice)


def test_of_many_links_those_that_lost_most_are_looked_at() -> None:
    made = chain(MOST_LINKS + 6)
    last = made["flow"][-1]["path"][0]
    made["flow"].append({"name": "more", "kind": "cbr", "rate": "3Mbit", "class": "all", "path": [last]})
    assert [finding.where for finding in lw.run(made).warnings if finding.kind == "offered"] == [f"link.{last}"]


# --- sweeps ----------------------------------------------------------------------------------------------------------


def test_means_of_each_link_are_those_of_its_rows_alone_whatever_their_order() -> None:
    names = ["b", "a", "b", "c", "a", "b"]
    starts_s = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0]
    used = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    batch = pa.record_batch({"link": names, "t_s": starts_s, "used_bps": used}).slice(1)
    found = bins.means_by([batch, batch.slice(0, 0)], "link", ["used_bps"], interval_s=1.0, from_s=0.0, to_s=2.5)
    # The last bin of b counts half: (4 + 32 / 2) / 1.5.
    assert found == {"a": {"used_bps": 9.0}, "b": {"used_bps": 20 / 1.5}, "c": {"used_bps": 8.0}}


def test_keys_of_a_plan_lead_into_links() -> None:
    changed = network(
        link__beam__rate="1Mbit", link__return__class__acks__limit="7p", link__feeder__scheduler__policy="fifo"
    )
    assert changed["link"][1]["rate"] == "1Mbit"
    assert changed["link"][2]["class"][0]["limit"] == "7p"
    assert changed["link"][0]["scheduler"] == {"policy": "fifo"}
    assert keys.look_up(NETWORK, keys.split("link.feeder.class.rest.limit")) == "100p"
    assert keys.indexed(NETWORK, keys.split("link.return.class.acks.limit")) == "link[2].class[0].limit"


def test_a_link_that_is_like_another_one_gets_its_own_copy_of_what_is_changed() -> None:
    changed = network(link__beam__class__rest__limit="7p")
    assert changed["link"][1]["class"][1]["limit"] == "7p"
    assert changed["link"][0]["class"][1]["limit"] == "100p"
    assert "class" not in NETWORK["link"][1]
    assert Scenario.from_dict(changed).of_link("beam").native.tables()["classes"][1]["limit_pkts"] == 7


def test_a_trace_takes_the_place_of_the_rate_of_its_link() -> None:
    changed = network(link__beam__trace="x.csv")
    assert "rate" not in changed["link"][1]
    assert changed["link"][0]["rate"] == "10Mbit"
    assert "trace" not in keys.put(changed, {("link", "beam", "rate"): "1Mbit"})["link"][1]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("link.bean.rate", "there is no link named bean; there are feeder, beam, return; did you mean beam?"),
        ("link.beam.class.vioce.limit", "there is no class named vioce; there are voice, rest; did you mean voice?"),
        ("link.beam", "is a whole entry; give a table of its keys, or one key behind the name"),
    ],
)
def test_a_key_that_leads_nowhere_is_refused(key: str, message: str) -> None:
    with pytest.raises(KeyPathError, match=re.escape(message)):
        keys.put(NETWORK, {keys.split(key): "1Mbit"})


def test_a_key_of_a_link_can_be_unset() -> None:
    assert "delay" not in keys.put(NETWORK, {("link", "return", "delay"): None})["link"][2]
    with pytest.raises(KeyPathError, match="cannot be unset: the scenario does not give it"):
        keys.put(NETWORK, {("link", "return", "mpu"): None})


def test_a_sweep_over_a_link_has_rows_of_each_link() -> None:
    plan = lw.sweeps.Plan.from_dict(
        {"scenario": NETWORK, "seeds": [1, 2], "grid": {"link.beam.rate": ["2Mbit", "3Mbit"]}}
    )
    sweep = lw.sweeps.run_plan(plan, lw.sweeps.LocalProcesses(1))
    data = sweep.table.to_pylist()
    of_links = [row for row in data if row["scope"] == "link"]
    assert [row["link"] for row in of_links[:3]] == LINKS
    capacities = {row["link.beam.rate"]: row["capacity_bps"] for row in of_links if row["link"] == "beam"}
    assert capacities == {"2Mbit": pytest.approx(2e6), "3Mbit": pytest.approx(3e6)}
    means = [row for row in sweep.means.to_pylist() if row["scope"] == "class"]
    assert [(row["link"], row["class"]) for row in means[:5]] == [
        ("feeder", "voice"),
        ("feeder", "rest"),
        ("beam", "voice"),
        ("beam", "rest"),
        ("return", "acks"),
    ]
    assert all(row["runs"] == 2 for row in means)


# --- comparisons -----------------------------------------------------------------------------------------------------


def test_policies_are_compared_on_one_link() -> None:
    found = lw.compare(NETWORK, ["strict", "fifo"], link="beam", seeds=2, jobs=1, promises=["voice.delay_p99=20ms"])
    assert {row["class"] for row in found.table.to_pylist()} == {"voice", "rest"}
    assert [(verdict.policy, verdict.verdict) for verdict in found.verdicts] == [("strict", "kept"), ("fifo", "missed")]
    rest = {row["policy"]: row for row in found.table.to_pylist() if row["class"] == "rest"}
    assert 3e6 < rest["strict"]["goodput_bps"] < 4e6
    assert "Classes are those of link beam" in found.facts.notes[-1]


def test_policies_are_compared_on_all_links() -> None:
    plan, facts = prepare(NETWORK, ["strict", "fifo"], [], 1, [], link="beam", everywhere=True)
    fifo = Scenario.parse(next(run.job.text for run in plan.runs if run.case.values[("policy",)] == "fifo"))
    assert [fifo.of_link(link).policy for link in LINKS] == ["fifo"] * 3
    notes = facts.variants[1].notes
    assert any(note.startswith("link feeder: left out: level of") for note in notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "link: the scenario has several; give one, whose classes are compared: feeder, beam, return"),
        ({"link": "bean"}, "link: bean: there is no link of this name; did you mean beam?"),
        ({"link": "beam", "traces": ["x.csv"]}, "traces: cannot take the place of the rates of several links"),
    ],
)
def test_a_comparison_that_names_no_link_is_refused(options: dict[str, Any], message: str) -> None:
    traces = options.pop("traces", [])
    with pytest.raises(PlanError, match=re.escape(message)):
        prepare(NETWORK, ["fifo"], traces, 1, [], **options)


def test_a_link_of_a_scenario_with_one_is_refused() -> None:
    with pytest.raises(PlanError, match=r"link: beam: the scenario has one \[link\]; leave this out"):
        prepare(SCENARIOS / "pss-fade.toml", ["fifo"], [], 1, [], link="beam")


def test_a_wrong_parameter_of_a_link_names_the_policy_and_the_class() -> None:
    with pytest.raises(PlanError, match=r"policy pss: class\.rest\.rate"):
        prepare(NETWORK, {"pss": {"class.rest.rate": "30Mbit", "class.rest.low_level": 2}}, [], 1, [], link="beam")


# --- hosts -----------------------------------------------------------------------------------------------------------

REFUSING = {
    "gateway": lambda scenario: gateway_configuration(scenario, []),
    "ns3": ns3_program,
}


@pytest.mark.parametrize("host", REFUSING)
def test_a_host_with_one_link_refuses_several_with_the_words_that_are_declared(host: str) -> None:
    treatment = rows("links")["name"].of(host)
    assert treatment.name == "refused"
    with pytest.raises(ScenarioError, match=re.escape(f"link.name = feeder: {treatment.words}")):
        REFUSING[host](Scenario.parse(TEXT))


def test_tc_has_a_script_for_each_link(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(TEXT)
    one = linkweir("export", "tc", file, "--device", "beam=eth1")
    assert one.returncode == 0, one.stderr
    assert one.stdout == tc_scripts(Scenario.parse(TEXT).of_link("beam"), "eth1").up
    assert "rate 4mbit" in one.stdout
    two = linkweir("export", "tc", file, "--device", "feeder=eth0,beam=eth1", "--out", tmp_path / "scripts")
    assert two.returncode == 0, two.stderr
    assert "dev eth0" in (tmp_path / "scripts/feeder/up.sh").read_text()
    assert "dev eth1" in (tmp_path / "scripts/beam/down.sh").read_text()


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("eth0", "--device = eth0: must be LINK=NAME, as this scenario has several links, such as feeder=eth0"),
        ("bean=eth0", "--device = bean=eth0: names no link; there are feeder, beam, return"),
        ("beam=eth0,beam=eth1", "has beam twice; leave one out"),
        ("beam=eth0,feeder=eth0", "has eth0 twice; leave one out"),
        ("beam=eth0,feeder=eth1", "gives a script for each link; add --out DIR, or give one LINK=NAME"),
    ],
)
def test_devices_that_are_no_links_are_refused(device: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(TEXT)
    done = linkweir("export", "tc", file, "--device", device)
    assert done.returncode == 2
    assert message in done.stderr


def test_settings_for_bpf_are_those_of_one_link() -> None:
    with pytest.raises(ScenarioError, match=r"link\.name = feeder: is one of 3 links, each with settings of its own"):
        bpf_settings(Scenario.parse(TEXT))


def test_the_script_of_a_network_is_asked_for_by_link() -> None:
    with pytest.raises(ScenarioError, match=r"link\.name = feeder: is one of 3 links, each with a script of its own"):
        tc_scripts(Scenario.parse(TEXT), "eth0")
