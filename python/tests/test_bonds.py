# SPDX-License-Identifier: BSD-3-Clause
"""Bonds of several links: results, sweeps and comparisons by name, and hosts that have none."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from command import SCENARIOS
from command import linkweir as command

import linkweir
from linkweir import Scenario
from linkweir.comparison.of_network import parts_of
from linkweir.scenarios.networks import refuse_constellation
from linkweir.sweeps import keys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODEMS = SCENARIOS / "two-modems.toml"


def modems(**top: Any) -> dict[str, Any]:
    return tomllib.loads(MODEMS.read_text()) | {"duration": "4s", "warmup": "1s"} | top


def test_a_run_has_the_tables_of_its_bond() -> None:
    result = linkweir.run(Scenario.from_dict(modems()))
    assert result.scenario.links == ["both"]
    assert set(result.members["member"].to_pylist()) == {"dsl", "lte"}
    paths = result.bond_paths.to_pylist()
    assert [(row["class"], row["member"]) for row in paths] == [("all", "dsl"), ("all", "lte")]
    dsl_bps, lte_bps = (row["sent_bps"] for row in paths)
    assert 20e6 < dsl_bps < 30.1e6
    assert 6e6 < lte_bps < 8.1e6
    assert result.bond_receivers["reordered_pkts"].to_pylist()[0] > 0
    plain = linkweir.run(Scenario.load(SCENARIOS / "burst-loss.toml"))
    assert "members" not in plain.tables


def test_keys_address_a_bond_and_its_classes_by_name() -> None:
    changed = keys.put(
        modems(),
        {
            ("bond", "both", "room"): "5ms",
            ("bond", "both", "class", "all", "paths"): "best",
            ("link", "lte", "rate"): "9Mbit",
        },
    )
    resolved = tomllib.loads(Scenario.from_dict(changed).resolved)
    assert resolved["bond"][0]["room"] == "5ms"
    assert resolved["bond"][0]["class"][0]["paths"] == "best"
    assert resolved["link"][1]["rate"] == "9Mbit"


def test_compare_changes_the_policy_of_a_bond() -> None:
    written = modems()
    _, (part,) = parts_of(Scenario.from_dict(written), written, None, everywhere=False)
    assert part.key(("scheduler", "policy")) == ("bond", "both", "scheduler", "policy")
    assert part.of_fault("bond[0].scheduler.policy") == "scheduler.policy"
    compared = linkweir.compare(written, policies=["fifo", "codel"], seeds=1)
    assert [variant.policy for variant in compared.facts.variants] == ["fifo", "codel"]


@pytest.mark.parametrize(
    "words",
    [
        ["export", "tc", str(MODEMS), "--device", "both=eth0"],
        ["export", "ns3", str(MODEMS)],
    ],
    ids=["tc", "ns3"],
)
def test_hosts_without_bonds_name_the_key_and_the_reason(words: list[str]) -> None:
    done = command(*words)
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "bond" in said, said
    assert any(reason in said for reason in ("no queueing", "has one link", "is not there")), said


def test_the_laboratory_refuses_a_bond() -> None:
    with pytest.raises(linkweir.ScenarioError, match=r"bond.*is not there in the laboratory"):
        refuse_constellation(Scenario.load(MODEMS), "laboratory")


@pytest.mark.parametrize(("reorder", "is_enough"), [("201ms", False), ("300ms", True)])
def test_repetitions_come_in_time_with_half_as_long_again_as_it_takes_to_find_a_dead_link(
    reorder: str, is_enough: bool
) -> None:
    """As docs/reference/scenarios.md advises: what is sent again behind `detect` has to wait for its turns as well."""
    loss = {"steps": [["0s", 0.0], ["2s", 1.0], ["4s", 0.0]]}
    links = [
        {"name": "dies", "rate": "10Mbit", "delay": "30ms", "loss": loss},
        {"name": "stays", "rate": "30Mbit", "delay": "45ms"},
    ]
    stripe = {"name": "all", "paths": "stripe", "reorder": reorder, "resend": True}
    bond = {
        "name": "both",
        "links": ["dies", "stays"],
        "detect": "200ms",
        "scheduler": {"policy": "strict"},
        "class": [stripe],
    }
    flow = {"path": ["both"], "class": "all", "kind": "cbr", "rate": "14Mbit", "packet": "1200B"}
    result = linkweir.run({"duration": "4s", "link": links, "bond": [bond], "flow": [flow]})
    late = result.bond_receivers["late_pkts"].to_pylist()
    assert (late == [0]) == is_enough, late
