# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios with a bond that become configurations of a gateway whose peer has several paths, and the way back."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from built import program
from command import REPOSITORY, SCENARIOS
from command import linkweir as command

from linkweir import _native
from linkweir.deploy.from_gateway import from_gateway
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.imported import imported
from linkweir.deploy.paths import DETECT, LEAST_REORDER_NS, NAME_BYTES, NUMBER_BYTES, ROOM, USUAL_WAIT, class_from
from linkweir.fault import ScenarioError
from linkweir.scenarios.declared import rows
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIGS = REPOSITORY / "crates/linkweir-gateway/configs"
BOAT: dict[str, Any] = {
    "duration": "10s",
    "link": [
        {"name": "sat", "rate": "40Mbit", "delay": "30ms", "overhead": "60B", "mpu": "64B"},
        {"name": "lte", "rate": "10Mbit", "nominal": "9Mbit", "delay": "45ms", "cost": 10},
        {"name": "port", "rate": "90Mbit", "loss": 0.01, "overhead": "60B", "mpu": "64B"},
    ],
    "bond": [
        {
            "name": "boat",
            "links": ["lte", "sat", "port"],
            "room": "10ms",
            "detect": "400ms",
            "scheduler": {"policy": "pss"},
            "class": [
                {"name": "voice", "match": [{"dscp": "EF"}], "level": 0, "paths": "all", "max_age": "150ms"},
                {
                    "name": "video",
                    "match": [{"dscp": "AF41"}],
                    "level": 1,
                    "low_level": 4,
                    "rate": "4Mbit",
                    "paths": "stripe",
                    "reorder": "400ms",
                    "resend": True,
                },
                {"name": "maps", "match": [{"dscp": "AF21"}], "level": 5, "paths": ["port", "sat"], "reorder": "none"},
                {"name": "mail", "match": [{"dscp": "AF11"}], "level": 2, "paths": "spill"},
                {"name": "rest", "match": [{}], "level": 3, "reorder": "none"},
            ],
        }
    ],
    "flow": [{"path": ["boat"], "class": "video", "kind": "cbr", "rate": "2Mbit", "packet": "1000B"}],
}


BOAT["link"][1] |= {"overhead": "60B", "mpu": "64B"}


def constants(file: str, pattern: str) -> tuple[int, ...]:
    """Numbers that a source of the gateway declares."""
    text = (REPOSITORY / "crates" / file).read_text()
    found = re.search(pattern, text)
    assert found, f"{file} has no {pattern}"
    return tuple(int(number.replace("_", "")) for number in found.groups())


def test_what_the_gateway_has_no_key_for_is_as_its_sources_have_it() -> None:
    room_ns, detect_ns, wait_ns = (round(1e9 * _native.quantity(text, "time")) for text in (ROOM, DETECT, USUAL_WAIT))
    assert constants("linkweir-plane/src/paths.rs", r"const ROOM_NS: u64 = ([\d_]+);") == (room_ns,)
    underlays = "linkweir-gateway/src/config/underlays.rs"
    assert constants(underlays, r"const OF_PATHS: \(u64, u64\) = \([\d_]+, ([\d_]+)\);") == (detect_ns,)
    assert constants("linkweir-config/src/bond.rs", r"const USUAL_REORDER_NS: u64 = ([\d_]+);") == (wait_ns,)
    message = "linkweir-plane/src/feedback/message.rs"
    assert constants(message, r"const MOST_BYTES: usize = (\d+);") == (NAME_BYTES,)
    numbered = "linkweir-plane/src/bytes/numbered.rs"
    assert constants(numbered, r"const HEADER_BYTES: usize = (\d+);") == (NUMBER_BYTES,)
    peer_paths = "linkweir-gateway/src/config/peer_paths.rs"
    assert constants(peer_paths, r"const REORDER_NS: \(u64, u64\) = \(([\d_]+),") == (LEAST_REORDER_NS,)
    late = "linkweir-plane/src/late_paths.rs"
    reorder = rows("class", file="gateway")["reorder"].shape
    assert reorder is not None
    assert constants(late, r"const MOST_REORDER_NS: u64 = ([\d_]+);") == (reorder["most"],)


def boat(**bond: Any) -> Scenario:
    keys = copy.deepcopy(BOAT)
    keys["bond"][0] |= bond
    return Scenario.from_dict(keys)


def classes(number: int, **changes: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = copy.deepcopy(BOAT["bond"][0]["class"])
    entries[number] |= changes
    return entries


def test_a_bond_becomes_the_paths_of_a_peer() -> None:
    found = gateway_configuration(boat(room="20ms"))
    keys = tomllib.loads(found.text)
    assert keys["link"] == {"overhead": "60B", "mpu": "64B"}
    (peer,) = keys["peer"]
    assert "endpoint" not in peer
    assert peer["probe"] == {"failover": "400ms"}
    assert [(path["name"], path["rate"], path["cost"]) for path in peer["path"]] == [
        ("lte", "10Mbit", 10),
        ("sat", "40Mbit", 0),
        ("port", "90Mbit", 0),
    ]
    uses = [{key: entry[key] for key in ("paths", "reorder", "resend") if key in entry} for entry in keys["class"]]
    assert uses == [
        {"paths": "all"},
        {"paths": "stripe", "reorder": "400ms", "resend": True},
        {"paths": ["port", "sat"], "reorder": "none"},
        {"paths": "spill", "reorder": "50ms"},  # without it, the gateway restores no order
        {},
    ]
    assert "bond[0].room = 20ms: 10ms in the gateway" in found.notes
    assert [note for note in found.notes if note.startswith(("link.sat.delay", "link.port.loss"))]
    assert not found.warnings


def test_several_names_have_the_same_usual_order_in_scenario_and_gateway() -> None:
    """A gateway numbers packets over several named paths by default; over one none overtakes."""
    for names, reorder, written in (
        (["port", "sat"], "50ms", None),
        (["port", "sat"], "none", "none"),
        (["sat"], "50ms", "50ms"),
        (["sat"], "none", None),
    ):
        text = gateway_configuration(boat(**{"class": classes(2, paths=names, reorder=reorder)})).text
        assert tomllib.loads(text)["class"][2].get("reorder") == written
        entry = {"name": "maps", "paths": names, **({"reorder": written} if written else {})}
        assert class_from(entry).get("reorder", "50ms") == reorder


def test_numbers_of_packets_are_counted_with_the_tunnel() -> None:
    """The gateway gives 12 bytes more to numbered packets: of `all`, `stripe`, several names, or with `reorder`."""
    note = "link: packets of {} are 12 bytes longer in the tunnel than others: their numbers"
    entries = classes(0)
    found = gateway_configuration(boat(), tunnel_counted=True)
    assert tomllib.loads(found.text)["link"]["overhead"] == "0B"
    assert note.format(", ".join(entries[at]["name"] for at in (0, 1, 2, 3))) in found.notes
    for entry in entries:
        entry |= {"paths": "all"}
        entry.pop("reorder", None)
        entry.pop("resend", None)
    keys = copy.deepcopy(BOAT)
    keys["bond"][0]["class"] = entries
    for link in keys["link"]:
        link["overhead"] = "100B"
    scenario = Scenario.from_dict(keys)
    counted = gateway_configuration(scenario, tunnel_counted=True)
    assert tomllib.loads(counted.text)["link"]["overhead"] == "28B"
    assert not [said for said in counted.notes if "12 bytes" in said]
    assert Scenario.parse(imported(counted.text, scenario, tunnel_counted=True).text).resolved == scenario.resolved
    assert any("72 bytes longer" in said for said in gateway_configuration(scenario).notes)


def test_the_gateway_takes_it_once_placeholders_are_replaced(tmp_path: Path) -> None:
    built = program("linkweir-gateway", test="manual")
    text = gateway_configuration(boat(), [{"name": "base", "endpoint": "192.0.2.1:51820"}]).text
    path = tmp_path / "boat.toml"
    path.write_text(text)
    done = subprocess.run([built, "check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    for key in ("gateway.address", "peer[0].public_key", "peer[0].path[0].device", "peer[0].path[2].device"):
        assert key in done.stderr, done.stderr
    for name in ("lte", "sat", "port"):
        before = f'name = "{name}"\nendpoint = "192.0.2.1:51820"\ndevice = "'
        lacking = f'{before}<device over which this path leads, such as wwan0>"'
        assert lacking in text
        text = text.replace(lacking, f'{before}{name}0"')
    for key, value in {
        "address": "10.77.0.2/24",
        "private_key_file": "boat.key",
        "public_key": "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",
        "allowed_ips": "10.77.0.1/32",
    }.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"{key} = ")]
        text = text.replace(line, f'{key} = "{value}"')
    path.write_text(text)
    subprocess.run([built, "keygen", tmp_path / "boat.key"], capture_output=True, check=True)
    done = subprocess.run([built, "check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("counted", [False, True])
def test_it_becomes_the_scenario_again(*, counted: bool) -> None:
    wanted = boat()
    text = gateway_configuration(wanted, tunnel_counted=counted).text
    back = imported(text, wanted, tunnel_counted=counted)
    assert Scenario.parse(back.text).resolved == wanted.resolved
    alone = imported(text, tunnel_counted=counted)
    assert any("duration, seed and flows" in note for note in alone.notes)
    keys = tomllib.loads(alone.text)
    assert [member["name"] for member in keys["link"]] == ["lte", "sat", "port"]
    assert keys["bond"][0]["links"] == ["lte", "sat", "port"]


def test_the_configuration_of_a_boat_becomes_a_scenario_that_runs() -> None:
    """Feedback finds the rates; here they are its ceilings."""
    text = (CONFIGS / "boat.toml").read_text()
    keys = tomllib.loads(imported(text).text)
    assert [(link["name"], link["rate"], link["cost"]) for link in keys["link"]] == [
        ("starlink", "40Mbit", 1),
        ("lte", "30Mbit", 10),
    ]
    (bond,) = keys["bond"]
    assert (bond["name"], bond["links"]) == ("base", ["starlink", "lte"])
    assert [entry.get("paths") for entry in bond["class"]] == ["all", "stripe", "spill"]
    assert [entry.get("reorder") for entry in bond["class"]] == [None, "400ms", "none"]
    flow = {"path": ["base"], "class": "video", "kind": "cbr", "rate": "2Mbit", "packet": "1000B"}
    scenario = Scenario.from_dict({"duration": "1s", **keys, "flow": [flow]})
    again = tomllib.loads(gateway_configuration(scenario).text)
    gateway = tomllib.loads(text)
    for one, other in zip(gateway["class"], again["class"], strict=True):
        for key in ("name", "paths", "reorder", "resend", "level", "rate"):
            assert one.get(key) == other.get(key), (one, key)
    paths = [path["name"] for path in gateway["peer"][0]["path"]]
    assert [path["name"] for path in again["peer"][0]["path"]] == paths


def test_shipped_bonds_go_out_and_come_back(tmp_path: Path) -> None:
    (tmp_path / "traces").symlink_to(SCENARIOS / "traces")
    for name in ("boat", "two-modems"):
        out, back = tmp_path / f"{name}.toml", tmp_path / f"{name}-back.toml"
        named = (SCENARIOS / f"{name}.toml").read_text()
        for lacking, point in (('name = "heartbeat"\n', "EF"), ('name = "camera"\n', "AF41")):
            named = named.replace(f"{lacking}level", f'{lacking}match = [{{ dscp = "{point}" }}]\nlevel')
        given = tmp_path / f"{name}-given.toml"
        given.write_text(named)
        done = command("export", "gateway", given, "--out", out)
        assert done.returncode == 0, done.stderr
        assert ("the rate stays at" in done.stderr) == (name == "boat")
        done = command("import", out, "--with", given, "--out", back)
        assert done.returncode == 0, done.stderr
        before, after = (tomllib.loads(Scenario.load(path).resolved) for path in (given, back))
        assert [link["name"] for link in after["link"]] == [link["name"] for link in before["link"]]
        for one, other in zip(before["bond"][0]["class"], after["bond"][0]["class"], strict=True):
            for key in ("name", "paths", "reorder", "resend"):
                assert one[key] == other[key]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            boat(**{"class": classes(1, reorder="5s")}),
            r"bond\[0\].class\[1\].reorder = 5s: must be 1ms .. 2s in the gate",
        ),
        (boat(**{"class": classes(3, reorder="0s")}), r"bond\[0\].class\[3\].reorder = 0s: must be 1ms .. 2s"),
        (Scenario.load(SCENARIOS / "household.toml"), "a gateway has one link"),
    ],
)
def test_what_a_gateway_has_not_is_refused_with_its_key(scenario: Scenario, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        gateway_configuration(scenario)


def test_refusals_say_the_key_and_the_cure() -> None:
    with pytest.raises(ScenarioError, match="--mode = cleartext: must be wireguard for a bond"):
        gateway_configuration(boat(), mode="cleartext")
    keys = copy.deepcopy(BOAT)
    for names, said in [
        ({"lte": "the-modem-of-the-harbour"}, "at most 16 bytes in its name; rename the link"),
        ({"lte": "a b", "sat": "a-b"}, "is a-b in the gateway as another link; rename it"),
    ]:
        text = str(keys)
        for old, new in names.items():
            text = text.replace(f"'{old}'", f"'{new}'")
        with pytest.raises(ScenarioError, match=said):
            gateway_configuration(Scenario.from_dict(ast.literal_eval(text)))
    dear = copy.deepcopy(BOAT)
    dear["link"][1]["cost"] = 2_000_000
    found = tomllib.loads(gateway_configuration(Scenario.from_dict(dear)).text)
    assert max(path["cost"] for path in found["peer"][0]["path"]) == 2_000_000, "one range in both"
    apart = copy.deepcopy(BOAT)
    apart["bond"][0]["links"] = ["lte", "sat"]
    apart["bond"][0]["class"][2]["paths"] = ["sat"]
    apart["link"][2] |= {"scheduler": {"policy": "fifo"}, "class": [{"name": "all"}]}
    apart["flow"].append({"path": ["port"], "class": "all", "kind": "cbr", "rate": "1Mbit", "packet": "200B"})
    with pytest.raises(ScenarioError, match=r"bond.*is exported only where it is the one bond and has all links"):
        gateway_configuration(Scenario.from_dict(apart))
    gateway = tomllib.loads((CONFIGS / "boat.toml").read_text())
    gateway["peer"].append({"name": "other"})
    with pytest.raises(ScenarioError, match=r"peer\[0\].path.*several paths at once.*leave the other peers out"):
        from_gateway(gateway)


def test_the_other_scenario_must_fit() -> None:
    text = gateway_configuration(boat()).text
    one = Scenario.load(SCENARIOS / "ecn.toml")
    for other in (one, Scenario.load(SCENARIOS / "two-modems.toml")):
        with pytest.raises(ScenarioError, match=r"--with.*one \[\[bond\]\] with all its links, lte, sat, port"):
            imported(text, other)
    with pytest.raises(ScenarioError, match=r"--with.*has several links, and the file one: give a scenario"):
        imported(gateway_configuration(Scenario.load(SCENARIOS / "geo.toml")).text, boat())
