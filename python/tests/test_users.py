# SPDX-License-Identifier: BSD-3-Clause
"""Users with several classes: from a hub's configuration, to one, and the hosts that have nothing like them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomllib

import linkweir
from linkweir.bounds.answer import setting_of
from linkweir.comparison.fitting import fit
from linkweir.deploy.from_gateway import from_gateway
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.ns3 import ns3_program
from linkweir.deploy.script import tc_scripts
from linkweir.lab.world import check_flows
from linkweir.scenarios.schema.scenario import scenario as schema

HUB = Path(__file__).parents[2] / "crates" / "linkweir-gateway" / "configs" / "hub.toml"
TWO: dict[str, Any] = {
    "duration": "1s",
    "link": {"rate": "10Mbit", "overhead": "60B"},
    "scheduler": {"policy": "strict", "across": {"policy": "pf", "tc": "500ms"}},
    "class": [
        {"name": "call", "count": 2, "user": "u", "level": 0, "match": [{"dscp": "EF"}]},
        {"name": "data", "count": 2, "user": "u", "level": 1},
    ],
    "flow": [
        {"class": "call", "count": 2, "kind": "voice", "codec": "g711"},
        {"class": "data", "count": 2, "kind": "tcp"},
    ],
}


def scenario(**changes: Any) -> linkweir.Scenario:
    return linkweir.Scenario.from_dict(copy.deepcopy(TWO) | changes)


def test_the_gateway_gets_a_peer_for_each_user() -> None:
    written = tomllib.loads(gateway_configuration(scenario(), tunnel_counted=True).text)
    assert written["link"]["across"] == {"policy": "pf", "tc": "500ms", "weight": 1}
    assert [(entry["name"], entry["level"]) for entry in written["class"]] == [("call", 0), ("data", 1)]
    assert [peer["name"] for peer in written["peer"]] == ["u-1", "u-2"]


def test_an_export_imported_again_is_the_same() -> None:
    entries = copy.deepcopy(TWO["class"])
    entries[0]["across"] = {"weight": 3}
    written = tomllib.loads(gateway_configuration(scenario(**{"class": entries}), tunnel_counted=True).text)
    assert [peer["across"] for peer in written["peer"]] == [{"weight": 3}, {"weight": 3}]
    found = from_gateway(written, tunnel_counted=True)
    assert found.scheduler["across"] == {"policy": "pf", "tc": "500ms", "weight": 1}
    assert [(entry["name"], entry["user"]) for entry in found.classes] == [
        ("u-1-call", "u-1"),
        ("u-1-data", "u-1"),
        ("u-2-call", "u-2"),
        ("u-2-data", "u-2"),
    ]
    again = scenario(
        link=found.link,
        scheduler=found.scheduler,
        flow=[{"class": "u-1-call", "kind": "voice", "codec": "g711"}],
        **{"class": found.classes},
    )
    twice = tomllib.loads(gateway_configuration(again, tunnel_counted=True).text)
    assert {key: twice[key] for key in ("link", "scheduler", "class", "peer")} == {
        key: written[key] for key in ("link", "scheduler", "class", "peer")
    }


def test_a_hub_of_the_gateway_is_kept() -> None:
    found = from_gateway(tomllib.loads(HUB.read_text(encoding="utf-8")), folder=HUB.parent)
    assert found.scheduler["across"]["policy"] == "pf"
    assert {"weight": 2} in [entry.get("across") for entry in found.classes]
    assert not any("across" in note for note in found.notes)


def test_users_with_other_classes_have_no_gateway() -> None:
    entries = copy.deepcopy(TWO["class"])
    entries[1]["count"] = 1
    entries[1]["user"] = "u-1"
    flows = [{"class": "call", "count": 2, "kind": "voice", "codec": "g711"}]
    with pytest.raises(linkweir.ScenarioError, match=r"u-2.*has other classes than u-1"):
        gateway_configuration(scenario(**{"class": entries}, flow=flows))
    with pytest.raises(linkweir.ScenarioError, match="must be 2 peers, one for each user, or none"):
        gateway_configuration(scenario(), [{"name": "a"}])


def test_other_hosts_refuse_in_a_sentence() -> None:
    one = scenario()
    with pytest.raises(linkweir.ScenarioError, match=r"scheduler\.across.*has no queueing discipline"):
        tc_scripts(one, "eth0")
    with pytest.raises(linkweir.ScenarioError, match=r"scheduler\.across.*has no queue disc"):
        ns3_program(one)
    with pytest.raises(linkweir.ScenarioError, match=r"scheduler\.across.*is not there in the laboratory"):
        check_flows(one.native.written(), ())
    assert setting_of(one, {}, None)[1] == "scheduler.across: no bound is known across users; leave it out"


def test_a_comparison_keeps_the_policy_across_users() -> None:
    changes = fit(TWO, "drr", 1e7).changes
    assert ("scheduler", "across") not in changes
    assert fit(TWO, "bbs_like", 1e7).changes[("scheduler", "across")] is None


def test_the_schema_knows_users() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    assert list(validator.iter_errors(TWO)) == []
    wrong = copy.deepcopy(TWO)
    wrong["scheduler"]["across"]["quantum"] = "1500B"
    assert list(validator.iter_errors(wrong)) != []


@pytest.mark.parametrize("across", ["rr", "pf", "codes", "mlwdf"])
def test_knowledge_of_a_fixed_age_counts_across_users(across: str) -> None:
    """Policies that look at channels decide otherwise at another age, also across users; round robin does not."""

    def sent(age: str) -> list[int]:
        satellite = {"packet": "210B", "csi_age": age}
        scheduler = {"policy": "strict", "across": {"policy": across}}
        entries = [
            {"name": name, "count": 4, "user": "u", "level": level, "limit": "20p"}
            for level, name in enumerate(("call", "data"))
        ]
        flows = [
            {"class": name, "count": 4, "kind": "poisson", "rate": "300kbit", "packet": "210B"}
            for name in ("call", "data")
        ]
        link = {"rate": "4Mbit", "delay": "8ms", "satellite": satellite}
        run = linkweir.run(scenario(duration="5s", link=link, scheduler=scheduler, flow=flows, **{"class": entries}))
        return [*run.harq["decoded_first_pkts"].to_pylist(), *run.classes["sent_pkts"].to_pylist()]

    assert (sent("0s") == sent("50ms")) == (across == "rr")
