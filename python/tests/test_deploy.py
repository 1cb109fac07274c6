# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios that become scripts of tc and configurations of the gateway, and the way back.

The script and the configuration run in a kernel in virtual time; where none can be built, these tests are skipped and
name what is missing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from built import program
from command import REPOSITORY, SCENARIOS, linkweir

import linkweir as package
from linkweir import _native
from linkweir.deploy.copies import classes_of
from linkweir.deploy.filters import Filters
from linkweir.deploy.from_tc import from_tc
from linkweir.deploy.gateway import gateway_configuration, toml_table, toml_value
from linkweir.deploy.imported import imported
from linkweir.deploy.matching import CODE_POINTS, Sorting, sorting, values
from linkweir.deploy.policy import IN_MODULE, PREFIXED
from linkweir.deploy.script import tc_scripts
from linkweir.fault import ScenarioError
from linkweir.lab import LaboratoryError, guest, kernel
from linkweir.lab.experiment import Laboratory
from linkweir.lab.exported import marked
from linkweir.lab.gateways import VirtualGateways
from linkweir.lab.world import staggered, world
from linkweir.replays.recording import Recording
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


sys.path.insert(0, str(REPOSITORY / "lab/exported"))
import exports


def classes(*names: str, **matches: Any) -> list[dict[str, Any]]:
    return [{"name": name, **({"match": matches[name]} if name in matches else {})} for name in names]


FLOW = {"class": "rest", "kind": "cbr", "rate": "1Mbit", "packet": "200B"}


def written(**changes: Any) -> Scenario:
    """Voice before a reserved class before the rest."""
    keys = {
        "duration": "10s",
        "link": {"rate": "8Mbit"},
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "ef", "level": 0},
            {"name": "af", "level": 1, "low_level": 3, "rate": "2Mbit", "memory": "5s"},
            {"name": "rest", "level": 2},
        ],
        "flow": [{"class": "ef", "kind": "cbr", "rate": "1Mbit", "packet": "200B"}],
    }
    return Scenario.from_dict({**keys, **changes})


# --- Which packets belong to a class ----------------------------------------------------------------------------------


def test_classes_that_are_named_as_in_rfc_4594_have_its_code_points() -> None:
    names = ["Telephony", "signaling", "Real-Time Interactive", "af4", "multimedia streaming", "oam", "standard"]
    found = sorting(classes(*names))
    points = [None if rules is None else [CODE_POINTS[point] for point in rules[0]["dscp"]] for rules in found.rules]
    # RFC 4594, figure 3
    assert points == [[46], [40], [32], [34, 36, 38], [26, 28, 30], [16], None]
    assert found.rest == 6
    assert len(found.notes) == 6


def test_what_a_class_says_itself_counts_before_its_name() -> None:
    own = [{"protocol": "udp", "port": 5060}, {"dscp": "EF"}]
    found = sorting(classes("voice", "signaling", "rest", voice=own))
    assert found.rules[0] == tuple(own)
    assert found.rules[1] == ({"dscp": ["CS5"]},)
    # Where another class has taken CS5, signaling must say what it takes.
    with pytest.raises(ScenarioError, match='"signaling" and "rest" have no match'):
        sorting(classes("voice", "signaling", "rest", voice=[{"dscp": ["CS5"]}]))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "b"), r'class\[0\].match: is missing; "a" and "b" have no match, .* add match = .* to "a"$'),
        (("ef", "rest", "default"), r'class\[2\].match: .* "rest" and "default" have .* to "default"$'),
    ],
)
def test_two_classes_cannot_both_take_the_rest(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        sorting(classes(*names))


EXPORTS = {"tc": ("--device", "eth0"), "gateway": ()}


def followed(text: str, message: str) -> str:
    """The scenario with the keys that a message says to add, each in the class that it names."""
    cures = re.findall(r'(match = \[[^]]*\]) to "([^"]*)"', message)
    assert cures, message
    for rule, name in cures:
        table = f'[[class]]\nname = "{name}"\n'
        assert text.count(table) == 1
        text = text.replace(table, f"{table}{rule}\n")
    return text


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_scenario_is_exported_or_says_in_a_sentence_what_to_add(
    path: Path, kind: str, tmp_path: Path
) -> None:
    done = linkweir("export", kind, path, *EXPORTS[kind])
    if done.returncode == 0:
        return
    (message,) = done.stderr.splitlines()
    if "scheduler.across" in message:
        assert path.stem == "calls-and-downloads"
        assert kind != "gateway"
        return
    if ": constellation = " in message:
        assert path.stem == "leo-shell"
        return
    if ": bond = " in message:
        assert path.stem in ("boat", "two-modems")
        assert kind != "gateway"
        return
    if ": bond[0].class[0].match: " in message:
        assert (path.stem, kind) == ("boat", "gateway")  # test_deploy_paths.py follows it
        return
    links = Scenario.load(path).links
    if links and kind == "gateway":
        assert message.endswith(
            "a gateway has one link, and this scenario has [[link]]; export a scenario with one [link]"
        )
        return
    if links:
        assert message.endswith(f"must be LINK=NAME, as this scenario has several links, such as {links[0]}=eth0")
        for link in links:
            exported = linkweir("export", kind, path, "--device", f"{link}=eth0")
            if exported.returncode:  # one queue for all classes, which its results keep apart
                assert path.stem in ("household", "geo-return")
                assert "scheduler.policy = fifo: must have one class here" in exported.stderr
        return
    for folder in ("traces", "recordings"):
        (tmp_path / folder).symlink_to(SCENARIOS / folder)
    mended = tmp_path / path.name
    mended.write_text(followed(path.read_text(), message))
    again = linkweir("export", kind, mended, *EXPORTS[kind])
    assert again.returncode == 0, again.stderr
    assert linkweir("check", mended).returncode == 0


def test_copies_of_a_class_take_one_address_after_another() -> None:
    table = {"name": "terminal", "count": 3, "match": [{"address": "10.1.0.1", "dscp": "EF"}, {}]}
    found = sorting(classes_of({"class": [table]}))
    taken = [[address for rule in rules for address in values(rule, "address")] for rules in found.rules if rules]
    assert taken == [["10.1.0.1"], ["10.1.0.2"], ["10.1.0.3"]]
    assert found.rest == 2
    with pytest.raises(ScenarioError, match=r"255\.255\.255\.254: has no 2 addresses"):
        classes_of({"class": [{**table, "match": [{"source": "255.255.255.254"}]}]})


def test_copies_of_a_class_need_addresses() -> None:
    table = {"name": "terminal", "count": 3, "match": [{"dscp": "EF"}]}
    with pytest.raises(ScenarioError, match=r"class\[0\]\.match.*must have address, source or destination"):
        written(**{"class": [table, {"name": "rest"}], "scheduler": {"policy": "rr"}, "flow": [FLOW]})


def test_the_code_points_that_a_message_suggests_are_not_those_of_other_classes() -> None:
    with pytest.raises(ScenarioError) as fault:
        sorting(classes("a", "b", "af4", "c", b=[{"dscp": "AF31"}]))
    assert str(fault.value).endswith('add match = [{ dscp = "AF21" }] to "a"')


def test_codel_becomes_that_of_linux() -> None:
    scenario = Scenario.load(SCENARIOS / "ecn.toml")
    (line,) = (line for line in tc_scripts(scenario, "eth0").up.splitlines() if "codel" in line and "tc " in line[:3])
    assert line == ("tc qdisc add dev eth0 parent 1:1 handle 10: codel limit 1000 target 5000us interval 100000us ecn")
    for changes, said in (
        ({"scheduler": {"policy": "codel", "mtu": "3000B"}, "class": [{"name": "rest"}]}, "scheduler.mtu = 3kB"),
        ({"scheduler": {"policy": "codel"}, "class": [{"name": "rest", "limit_bytes": "9kB"}]}, "give limit"),
        ({"scheduler": {"policy": "codel"}, "class": [{"name": "ef"}, {"name": "rest"}]}, "one queue for all"),
    ):
        with pytest.raises(ScenarioError, match=said):
            tc_scripts(written(**{**changes, "flow": [FLOW]}), "eth0")


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize(("name", "warned"), [("fade", True), ("lte-drive", True), ("geo", False)])
def test_a_changing_rate_that_becomes_a_fixed_one_is_warned_of(name: str, kind: str, warned: bool) -> None:
    done = linkweir("export", kind, SCENARIOS / f"{name}.toml", *EXPORTS[kind])
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("linkweir export: warning: ")]
    assert bool(warnings) == warned
    for warning in warnings:
        assert "linkweir-gateway rate" in warning
        assert "feedback" in warning
        assert warning.removeprefix("linkweir export: ") in done.stdout, "the file says it, too"


def test_where_each_class_has_a_usual_name_the_last_takes_the_rest() -> None:
    assert sorting(classes("ef", "af41")).rest == 1


def test_the_class_of_the_page_has_the_code_point_and_ports_that_it_names() -> None:
    page = (REPOSITORY / "docs/howto/deploy.md").read_text()
    shown = page.split("```toml\n")[1].split("```")[0]
    entry = tomllib.loads(shown)["class"][0]
    scenario = written(**{"class": [{**entry, "level": 0}, {"name": "rest", "level": 1}], "flow": [FLOW]})
    lines = tc_scripts(scenario, "eth0").up.splitlines()
    filters = [line for line in lines if "filter add" in line and "protocol ip " in line]
    assert [line.split("flower ")[1] for line in filters] == [
        "ip_tos 0xb8/0xfc classid 10:1",
        "ip_proto udp src_port 16384-32767 classid 10:1",
        "ip_proto udp dst_port 16384-32767 classid 10:1",
    ]


def naive(rule: dict[str, Any], packet: dict[str, Any]) -> bool:
    """Whether a packet matches a rule, by the words of the gateway's reference."""

    def listed(key: str) -> list[Any] | None:
        value = rule.get(key)
        return value if value is None or isinstance(value, list) else [value]

    def in_range(port: int | None, wanted: Any) -> bool:
        ends = [int(end) for end in str(wanted).split("-")]
        return port is not None and ends[0] <= port <= ends[-1]

    def in_net(address: str, net: str) -> bool:
        return ipaddress.ip_address(address) in ipaddress.ip_network(net, strict=False)

    numbers = {"tcp": [6], "udp": [17], "icmp": [1, 58], "sctp": [132], "esp": [50], "gre": [47]}
    ends = ("source", "destination")
    checks = {
        "dscp": lambda value: packet["dscp"] == CODE_POINTS.get(value, value),
        "protocol": lambda value: packet["protocol"] in numbers.get(value, [value]),
        "port": lambda value: any(in_range(packet[f"{end}_port"], value) for end in ends),
        "address": lambda value: any(in_net(packet[end], value) for end in ends),
        **{f"{end}_port": lambda value, end=end: in_range(packet[f"{end}_port"], value) for end in ends},
        **{end: lambda value, end=end: in_net(packet[end], value) for end in ends},
    }
    return all(any(map(checks[key], listed(key) or [])) for key in rule)


def flower(line: str, packet: dict[str, Any]) -> bool:
    """Whether a packet passes a filter, by tc-flower(8)."""
    words = line.split()
    version = {"ip": 4, "ipv6": 6}[words[words.index("protocol") + 1]]
    if ipaddress.ip_address(packet["source"]).version != version:
        return False
    conditions = words[words.index("flower") + 1 : words.index("classid")]
    protocols = {"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "icmpv6": 58}
    for key, value in zip(conditions[::2], conditions[1::2], strict=True):
        end = {"src": "source", "dst": "destination"}.get(key[:3], "")
        if key == "ip_tos":
            tos, mask = (int(part, 16) for part in value.split("/"))
            good = packet["dscp"] << 2 & mask == tos
        elif key == "ip_proto":
            good = packet["protocol"] == (protocols[value] if value in protocols else int(value, 16))
        elif key.endswith("_port"):
            port, ends = packet[f"{end}_port"], [int(part) for part in value.split("-")]
            # Without these protocols flower has no ports to compare.
            assert "ip_proto" in conditions
            good = port is not None and ends[0] <= port <= ends[-1]
        else:
            good = ipaddress.ip_address(packet[end]) in ipaddress.ip_network(value, strict=False)
        if not good:
            return False
    return True


@pytest.mark.slow
def test_filters_match_what_the_rules_say() -> None:
    draw = random.Random(1)
    nets = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.1/32", "fd00::/8", "fd00:1::/32", "0.0.0.0/0"]
    addresses = ["10.1.2.3", "10.2.0.1", "192.0.2.1", "198.51.100.7", "fd00:1::1", "fd00:2::1", "2001:db8::1"]
    choices = {
        "dscp": ["EF", "DF", "AF41", 63],
        "protocol": ["tcp", "udp", "icmp", "esp", 6, 58, 200],
        **{key: [53, 5060, "5000-6000", "1-65535"] for key in ("port", "source_port", "destination_port")},
        "address": nets,
        "source": nets,
        "destination": nets,
    }
    matched = 0
    for _ in range(400):
        rules: list[dict[str, Any]] = []
        for _ in range(draw.randint(1, 3)):
            keys = draw.sample(sorted(choices), draw.randint(1, 3))
            rules.append({key: draw.sample(choices[key], draw.randint(1, 2)) for key in keys})
        owners = sorted(draw.choices((0, 1), k=len(rules)))
        of_class = [tuple(rule for rule, owner in zip(rules, owners, strict=True) if owner == at) for at in (0, 1)]
        filters = Filters("eth0", Sorting((of_class[0] or None, of_class[1] or None, None), 2))
        lines = filters.lines("10:", {0: "10:1", 1: "10:2", 2: "10:3"})
        for _ in range(30):
            source = draw.choice(addresses)
            version = ipaddress.ip_address(source).version
            protocol = draw.choice([6, 17, 58 if version == 6 else 1, 50, 132, 200])
            ported = protocol in (6, 17, 132)
            packet = {
                "source": source,
                "destination": draw.choice([a for a in addresses if ipaddress.ip_address(a).version == version]),
                "dscp": draw.choice([46, 0, 34, 63, 12]),
                "protocol": protocol,
                "source_port": draw.choice([53, 5060, 5500, 40000]) if ported else None,
                "destination_port": draw.choice([53, 5060, 5500, 40000]) if ported else None,
            }
            wanted = next((o for rule, o in zip(rules, owners, strict=True) if naive(rule, packet)), 2)
            found = next((line for line in lines if "matchall" in line or flower(line, packet)), "classid 10:3")
            assert found.rsplit(" ", 1)[1] == f"10:{wanted + 1}", (rules, packet, lines)
            matched += wanted < 2
    assert matched > 1000


def test_filters_of_one_preference_have_one_protocol() -> None:
    rules = ({"dscp": ["EF", "CS5"], "port": [1, 2]},)
    lines = Filters("eth0", Sorting((rules, None), 1)).lines("10:", {0: "10:1", 1: "10:2"})
    protocols: dict[str, set[str]] = {}
    for line in lines:
        words = line.split()
        protocols.setdefault(words[words.index("pref") + 1], set()).add(words[words.index("protocol") + 1])
    assert all(len(found) == 1 for found in protocols.values())
    assert protocols[max(protocols, key=int)] == {"all"}


def test_rules_that_need_too_many_filters_are_refused() -> None:
    many = [{"port": list(range(1, 100)), "address": [f"10.0.0.{n}/32" for n in range(50)]}]
    with pytest.raises(ScenarioError, match=r"would need .* filters"):
        Filters("eth0", sorting(classes("a", "rest", a=many))).lines("10:", {0: "10:1", 1: "10:2"})


# --- The commands -----------------------------------------------------------------------------------------------------


def test_the_policies_of_the_module_are_those_that_it_is_built_with() -> None:
    makefile = (REPOSITORY / "kernel/Makefile").read_text()
    in_tree = next(line for line in makefile.splitlines() if line.startswith("IN_TREE := ")).split()[2:]
    assert {policy["name"] for policy in _native.policies()} - set(in_tree) == IN_MODULE
    prefixed = next(line for line in makefile.splitlines() if line.startswith("PREFIXED := ")).split()[2:]
    assert set(prefixed) == PREFIXED


def test_a_script_names_what_it_needs_and_what_it_leaves_out(tmp_path: Path) -> None:
    done = linkweir("export", "tc", SCENARIOS / "pss-fade.toml", "--device", "eth0", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    up, down = ((tmp_path / name).read_text() for name in ("up.sh", "down.sh"))
    for note in (
        "link.rate changes over time",
        "flow: 3 simulated sources",
        "duration = 30s, seed = 1",
        "match was not",
    ):
        assert note in up
        assert note in done.stderr
    assert "linkweir-dkms" in up
    assert "tc qdisc change dev eth0 parent 1:1 handle 10: pss link RATE" in up
    assert down.splitlines()[-1] == "tc qdisc del dev eth0 root"
    for name in ("up.sh", "down.sh"):
        assert subprocess.run(["sh", "-n", tmp_path / name], check=False).returncode == 0


def test_names_from_a_scenario_cannot_become_commands() -> None:
    evil = "x\n$(touch /tmp/evil)`id`'"
    script = tc_scripts(Scenario.from_dict({**tomllib.loads(written().resolved), "name": evil}), "eth0").up
    assert all(line.startswith("#") for line in script.splitlines() if "touch" in line)
    with pytest.raises(ScenarioError, match="--device = eth0; id: must be the name of a network device"):
        tc_scripts(written(), "eth0; id")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scheduler": {"policy": "wrr"}, "class": [{"name": "rest"}], "flow": []}, "must be one of .* on Linux"),
        (
            {"class": [{"name": "rest", "limit_bytes": "9kB"}], "scheduler": {"policy": "strict"}},
            r"class\[0\]\.limit_bytes = 9kB.*give limit",
        ),
        (
            {"class": [{"name": "rest", "limit": "100ms"}], "scheduler": {"policy": "strict"}},
            r"class\[0\]\.limit = 100ms: must be packets here",
        ),
    ],
)
def test_what_linux_has_not_is_refused_with_what_it_has(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        tc_scripts(written(**{**changes, "flow": [FLOW]}), "eth0")


def test_limits_that_queueing_disciplines_lack_are_said() -> None:
    scenario = written(**{"class": [{"name": "ef", "level": 0, "limit": "50ms", "max_age": "100ms"}, {"name": "rest"}]})
    found = tc_scripts(scenario, "eth0")
    # 8 Mbit/s carry 50,000 bytes in 50 ms.
    assert "class 1 limit_bytes 50000 " in found.up
    assert any(note.startswith("class[0].limit = 50ms: became the bytes") for note in found.notes)
    assert any(note.startswith("class[0].max_age = 100ms: queueing disciplines have no") for note in found.notes)


def test_flows_inside_a_class_are_kept_by_the_gateway_and_named_for_tc() -> None:
    scenario = written(**{"class": [{"name": "ef", "level": 0}, {"name": "rest", "flows": "fq_codel"}]})
    (note,) = [note for note in tc_scripts(scenario, "eth0").notes if "flows" in note]
    assert note == "class[1].flows = fq_codel: the queueing disciplines do not tell the flows of a class apart"
    text = gateway_configuration(scenario).text
    assert tomllib.loads(text)["class"][1]["flows"] == "fq_codel"
    assert tomllib.loads(imported(text).text)["class"][1]["flows"] == "fq_codel"
    l4s = {"flows": "dualpi2", "l4s_step": "3ms"}
    text = gateway_configuration(written(**{"class": [{"name": "ef", "level": 0}, {"name": "rest", **l4s}]})).text
    for found in text, imported(text).text:
        assert tomllib.loads(found)["class"][1].items() >= l4s.items()


def test_each_host_says_in_a_sentence_what_becomes_of_the_shipped_class_with_l4s_packets() -> None:
    path = SCENARIOS / "l4s.toml"
    done = linkweir("export", "gateway", path)
    assert (done.returncode, "flows" in done.stderr) == (0, False), done.stderr
    assert tomllib.loads(done.stdout)["class"][1]["flows"] == "dualpi2"
    done = linkweir("export", "tc", path, "--device", "eth0")
    (said,) = [line for line in done.stderr.splitlines() if "flows" in line]
    assert said.endswith("class[1].flows = dualpi2: the queueing disciplines do not tell the flows of a class apart")
    for kind, refusal in (
        ("bpf", "class[1].flows = dualpi2: is not in BPF, where a class is one queue; leave it out"),
        ("ns3", "flow[1].cc = prague: must be one of cubic, reno, bbr, newreno in ns-3"),
    ):
        done = linkweir("export", kind, path)
        (said,) = done.stderr.splitlines()
        assert (done.returncode, refusal in said) == (2, True), said
    with pytest.raises(ScenarioError, match=r"class\[1\]\.flows.*is not there in the laboratory; leave it out"):
        world(Scenario.load(path), frozenset({"pss"}))


def test_an_export_says_that_a_gateway_drops_old_packets_of_voice() -> None:
    said = [note for note in gateway_configuration(written()).notes if "max_age" in note]
    assert said == [
        "class[0].max_age: the gateway drops EF after 200ms, and from the head when it is full; "
        'write max_age = "3600s" and full = "tail" for none of this'
    ]
    aged = written(**{"class": [{"name": "ef", "level": 0, "max_age": "1s"}, {"name": "rest"}], "flow": [FLOW]})
    assert not [note for note in gateway_configuration(aged).notes if "max_age" in note]


@pytest.fixture(scope="module")
def built() -> Path:
    return program("linkweir-gateway", test="manual")


def test_check_names_each_placeholder_and_accepts_what_replaces_them(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "ground.toml"
    done = linkweir("export", "gateway", SCENARIOS / "geo.toml", "--out", path)
    assert done.returncode == 0, done.stderr
    checked = subprocess.run([built, "check", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 2
    for key in ("gateway.address", "gateway.private_key_file", "peer[0].public_key", "peer[0].allowed_ips"):
        assert key in checked.stderr
    peer = "name=ship,endpoint=192.0.2.1:51820,allowed_ips=10.77.0.2/32+10.9.0.0/16"
    done = linkweir("export", "gateway", SCENARIOS / "geo.toml", "--mode", "cleartext", "--peer", peer, "--out", path)
    assert done.returncode == 0, done.stderr
    whole = path.read_text().replace('"<address of this end in the tunnel, such as 10.77.0.1/24>"', '"10.77.0.1/24"')
    path.write_text(whole)
    checked = subprocess.run([built, "check", "--cleartext", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "pss with 3 classes towards 1 peers" in checked.stdout


@pytest.mark.parametrize("name", ["geo", "geo-dwrr", "burst-loss", "ecn"])
def test_a_configuration_of_the_gateway_becomes_the_scenario_again(name: str, tmp_path: Path) -> None:
    scenario = Scenario.load(SCENARIOS / f"{name}.toml")
    found = gateway_configuration(scenario)
    # What became of the names: the classes now say what they take.
    keys = tomllib.loads(scenario.resolved)
    for entry, rules in zip(keys["class"], sorting(keys["class"]).rules, strict=True):
        if rules is not None:
            entry["match"] = list(rules)
    wanted = Scenario.from_dict(keys)
    assert Scenario.parse(imported(found.text, wanted).text).resolved == wanted.resolved
    alone = imported(found.text)
    assert any("duration, seed and flows" in note for note in alone.notes)
    counted = imported(gateway_configuration(scenario, tunnel_counted=True).text, wanted, tunnel_counted=True)
    assert Scenario.parse(counted.text).resolved == wanted.resolved


def test_a_recording_has_the_flows_that_a_configuration_lacks(tmp_path: Path) -> None:
    recording = REPOSITORY / "python/tests/data/voyage.lwrec"
    settings = Recording.load([recording]).part().settings
    own = toml_table("[gateway]", {"device": "lw0"}) + toml_table("[link]", {"rate": "9Mbit"})
    own += toml_table("[scheduler]", settings["scheduler"])
    own += "".join(toml_table("[[class]]", entry) for entry in settings["class"])
    (tmp_path / "ground.toml").write_text(own)
    done = linkweir("import", tmp_path / "ground.toml", "--with", recording, "--out", tmp_path / "back.toml")
    assert done.returncode == 0, done.stderr
    back = Scenario.load(tmp_path / "back.toml")
    assert [flow["kind"] for flow in tomllib.loads(back.resolved)["flow"]] == ["replay"] * 3
    arrived = {row["class"]: row["arrived_pkts"] for row in package.run(back).rows("classes")}
    recorded = Recording.load([recording]).part().sums(1e9)[0]
    assert list(arrived.values()) == [sums.arrived_pkts for sums in recorded]


def test_a_queueing_discipline_that_shapes_itself_has_one_line_for_all() -> None:
    scenario = written(link={"rate": "18Mbit", "overhead": "22B", "mpu": "64B"})
    scripts = tc_scripts(scenario, "eth0", shaper="module")
    (line,) = [line for line in scripts.up.splitlines() if line.startswith("tc ")]
    assert "qdisc add dev eth0 root handle 10: pss classes 3 bandwidth 18mbit overhead 22 mpu 64 " in line
    assert "htb" not in scripts.up
    assert "tc qdisc del dev eth0 root" in scripts.down
    fades = tc_scripts(Scenario.load(SCENARIOS / "pss-fade.toml"), "eth0", shaper="module").up
    assert "tc qdisc change dev eth0 root handle 10: pss bandwidth RATE" in fades
    with pytest.raises(ScenarioError, match=r"--shaper.*must be htb or module"):
        tc_scripts(scenario, "eth0", shaper="tbf")
    with pytest.raises(ScenarioError, match="at most 256B"):
        tc_scripts(written(link={"rate": "18Mbit", "overhead": "300B"}), "eth0", shaper="module")
    keys = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all"}], "flow": [{**FLOW, "class": "all"}]}
    fifo = written(**keys)
    with pytest.raises(ScenarioError, match="fifo is not of linkweir's module"):
        tc_scripts(fifo, "eth0", shaper="module")


SHAPER_SHOWN = """[{"kind":"pss","handle":"10:","root":true,"refcnt":2,"options":{"classes":2,"link_bps":18000000,\
"bandwidth_bps":18000000,"overhead_bytes":22,"mpu_bytes":64,"default":2,"dscp":{"EF":1},"sat":"exact",\
"on_empty":"keep","early":"charge"}}]
class pss 10:1 root limit 100p level 0 burst 20p mtu 1514b memory 100ms
class pss 10:2 root limit 1000p level 1 low_level 4 rate 8Mbit share 0% burst 20p mtu 1514b memory 5s
"""


def test_what_tc_shows_of_one_that_shapes_itself_becomes_its_link_and_classes() -> None:
    found = from_tc(SHAPER_SHOWN)
    assert found.link == {"rate": "18000000bit", "overhead": "22B", "mpu": "64B", "nominal": "18000000bit"}
    assert found.scheduler["policy"] == "pss"
    assert [entry["limit"] for entry in found.classes] == ["100p", "1000p"]
    assert (found.classes[1]["rate"], found.classes[1]["memory"]) == ("8Mbit", "5s")
    with pytest.raises(ScenarioError, match=r"atm.*counts cells"):
        from_tc(SHAPER_SHOWN.replace('"mpu_bytes":64', '"cells":"atm"'))


def test_policies_whose_disciplines_have_other_names_go_out_and_come_back() -> None:
    for policy in sorted(PREFIXED):
        keys = {"scheduler": {"policy": policy}, "class": [{"name": "all"}], "flow": [{**FLOW, "class": "all"}]}
        scenario = written(link={"rate": {"steps": [["0s", "5Mbit"], ["2s", "1Mbit"]]}, "nominal": "5Mbit"}, **keys)
        for shaper in ("htb", "module"):
            up = tc_scripts(scenario, "eth0", shaper=shaper).up
            assert f" handle 10: lw_{policy} classes 1 " in up
            assert re.search(rf"qdisc change dev eth0 .* handle 10: lw_{policy} (link|bandwidth) RATE", up)
            assert f"plugin for lw_{policy}:" in up
        shown = SHAPER_SHOWN.replace("pss", f"lw_{policy}").replace(
            '"bandwidth_bps"', '"tc_ns":500000000,"bandwidth_bps"'
        )
        found = from_tc(shown)
        assert found.scheduler["policy"] == policy
        assert found.scheduler["tc"] == "500000000ns"
        assert [entry["limit"] for entry in found.classes] == ["100p", "1000p"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is missing: this is no configuration"),
        ("[gateway", "is neither TOML nor"),
        ('[{"kind":"htb"', "the text may be cut off"),
        ("[]", "must show HTB with class 1:1"),
        ('[{"kind":"noqueue","handle":"0:","root":true}]', "must show HTB with class 1:1"),
        ("[{}]", "must show HTB"),
    ],
)
def test_what_is_neither_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        imported(text)


def test_a_trace_is_looked_for_where_the_configuration_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "pass.csv").write_text("# end=hold\nt_s,capacity_bps\n0,8000000\n5,4000000\n")
    text = gateway_configuration(written()).text.replace('rate = "8Mbit"', 'trace = "pass.csv"', 1)
    (folder / "ground.toml").write_text(text)
    other = tmp_path / "other.toml"
    other.write_text(written().resolved)
    back = tmp_path / "back.toml"
    done = linkweir("import", folder / "ground.toml", "--with", other, "--out", back)
    assert done.returncode == 0, done.stderr
    done = linkweir("check", back)
    assert done.returncode == 0, done.stderr


def test_the_only_peer_says_what_its_link_is() -> None:
    text = gateway_configuration(written()).text.replace('rate = "8Mbit"\n', "", 1).replace('nominal = "8Mbit"\n', "")
    text += 'rate = "3Mbit"\noverhead = "40B"\n'
    found = imported(text)
    link = tomllib.loads(found.text)["link"]
    assert (link["rate"], link["overhead"]) == ("3Mbit", "40B")
    assert not any(note.startswith("peer[0]") for note in found.notes)
    two = f'{text}\n[[peer]]\nname = "b"\npublic_key = "x"\nallowed_ips = "10.0.0.0/8"\n'
    with pytest.raises(ScenarioError, match=r"link\.rate: is missing"):
        imported(two)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89LWREC", "is no text"),
        (b"[gateway", "is neither TOML nor"),
        (b"[gateway]\n", "scheduler: is missing"),
        (b'[{"kind": "htb"}]', "is not as expected"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "ground"
    path.write_bytes(content)
    done = linkweir("import", path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"linkweir: {path}: {said}"), done.stderr


def test_a_folder_that_is_not_there_is_named_without_names_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "ground.toml"
    done = linkweir("export", "gateway", SCENARIOS / "geo.toml", "--out", path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"linkweir: {path}: No such file or directory"


def test_a_key_that_linux_has_not_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(written(scheduler={"policy": "wrr"}, **{"class": [{"name": "rest"}], "flow": [FLOW]}).resolved)
    done = linkweir("export", "tc", path, "--device", "eth0")
    assert done.returncode == 2
    assert done.stderr.startswith(f"linkweir: {path}: scheduler.policy = wrr: must be one of"), done.stderr


def test_peers_without_names_get_one_each_and_keys_are_given_once() -> None:
    text = gateway_configuration(written(), [{}, {}, {"allowed_ips": "10.0.0.3/32"}], mode="cleartext").text
    peers = tomllib.loads(text)["peer"]
    assert [peer["name"] for peer in peers] == ["other", "other-2", "other-3"]
    # In cleartext a peer is told by its address, so it must have one.
    assert peers[2]["endpoint"].startswith("<address and port")
    done = linkweir("export", "gateway", SCENARIOS / "geo.toml", "--peer", "name=a,name=b")
    assert done.returncode == 2
    assert "has name twice" in done.stderr


def test_a_gateway_that_knows_no_rate_takes_that_of_the_other_scenario() -> None:
    text = gateway_configuration(written()).text
    head, rest = text.split("[link]\n")
    unknown = f'{head}[link]\nfeedback = true\n{rest[rest.index("[scheduler]") - 1 :]}\n[record]\nfolder = "/x"\n'
    with pytest.raises(ScenarioError, match=r"link\.rate: is missing.*--with SCENARIO"):
        imported(unknown)
    found = imported(unknown, written())
    link = tomllib.loads(found.text)["link"]
    assert (link["rate"], link["nominal"]) == ("8Mbit", "8Mbit")
    assert any("link.rate: the file has none" in note for note in found.notes)
    assert "record: concerns the gateway, not its scheduler" in found.notes
    assert "link.feedback: how the gateway learns the rate" in found.notes


SHOWN = [
    {
        "kind": "htb",
        "handle": "1:",
        "root": True,
        "options": {"default": "0x1"},
        "stab": {"overhead": 14, "mpu": 64},
    },
    {"kind": "prio", "handle": "10:", "parent": "1:1", "options": {"bands": 3, "priomap": [1] * 16}},
    {"kind": "pfifo", "handle": "21:", "parent": "10:1", "options": {"limit": 100}},
    {"kind": "drr", "handle": "22:", "parent": "10:2", "options": {}},
    {"kind": "bfifo", "handle": "31:", "parent": "22:1", "options": {"limit": 100_000}},
]
OWN = [SHOWN[0], {"kind": "pss", "handle": "10:", "parent": "1:1", "options": {"link_bps": 8_000_000, "classes": 2}}]
OWN[1]["options"] |= {"dscp": {"46": 1}, "default": 2}
FILTERS = [
    {"protocol": "ip", "pref": 1, "kind": "flower", "options": {"classid": "10:1", "keys": {"ip_tos": "184"}}},
    {"protocol": "all", "pref": 9, "kind": "matchall", "options": {"classid": "22:1"}},
]
SHAPED = "class htb 1:1 root leaf 10: prio 0 quantum 60000 rate 8Mbit ceil 8Mbit\nclass drr 22:1 root quantum 1500\n"
FILE = {
    "gateway": {"device": "lw0", "mode": "cleartext"},
    "link": {"rate": "8Mbit", "overhead": "28B"},
    "scheduler": {"policy": "strict"},
    "class": [{"name": "ef", "match": [{"dscp": "EF"}]}, {"name": "rest"}],
    "peer": [{"name": "ship", "rate": "1Mbit"}],
}


def changed(value: Any, draw: random.Random) -> Any:
    """The same with a part missing, or of another kind."""
    if draw.random() < 0.15:
        return draw.choice([None, 7, "x", [], {}, -1, [3], True])
    if isinstance(value, dict):
        return {key: changed(part, draw) for key, part in value.items() if draw.random() > 0.1}
    return [changed(part, draw) for part in value if draw.random() > 0.1] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(40))
def test_what_another_machine_shows_never_ends_in_a_traceback(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        shown = json.dumps(changed(draw.choice([SHOWN, OWN]), draw)) + "\n"
        if not shown.startswith("["):
            continue
        text = shown + SHAPED.replace("1:1", draw.choice(["1:1", "1:2"])) + json.dumps([changed(FILTERS, draw)]) + "\n"
        file = changed(FILE, draw)
        keys = "".join(f"{key} = {toml_value(part)}\n" for key, part in file.items()) if isinstance(file, dict) else "x"
        for given in (text, keys.replace("null", '"none"')):
            with contextlib.suppress(ScenarioError):
                imported(given)


def test_indented_output_of_tc_is_read(tmp_path: Path) -> None:
    two = f"{SHAPED}class drr 22:2 root quantum 3000\n"
    text = f"{json.dumps(SHOWN, indent=4)}\n{two}{json.dumps(FILTERS, indent=4)}\n"
    plain = f"{json.dumps(SHOWN)}\n{two}{json.dumps(FILTERS)}\n"
    assert imported(text).text == imported(plain).text
    assert 'policy = "drr"' in imported(text).text


def test_classes_shown_as_json_are_refused_with_what_shows_them() -> None:
    """As tc of iproute2 6.2 and later prints them; q_drr.c prints quanta as text only."""
    shown = {
        "class": "htb",
        "handle": "1:1",
        "root": True,
        "leaf": "0x10",
        "prio": 0,
        "rate": 1_000_000,
        "ceil": 1_000_000,
    }
    quanta = {"class": "drr", "handle": "22:1", "root": True, "leaf": "0x31"}
    text = f"{json.dumps(SHOWN)}\n{json.dumps([shown, quanta])}\n{json.dumps(FILTERS)}\n"
    with pytest.raises(ScenarioError, match=r"shown as JSON.*tc -d class show, without -j"):
        imported(text)


@pytest.mark.parametrize("parent", ["10:", "22:"])
def test_classes_whose_filters_are_not_shown_are_not_taken_without_match(parent: str) -> None:
    two = f"{SHAPED}class drr 22:2 root quantum 3000\n"
    filters = [entry for entry in FILTERS if not str(entry["options"]["classid"]).startswith(parent)]
    with pytest.raises(ScenarioError, match=f"{parent}: has 2 classes.*tc -j filter show dev DEVICE parent {parent}"):
        imported(f"{json.dumps(SHOWN)}\n{two}{json.dumps(filters)}\n")
    assert imported(f"{json.dumps(SHOWN)}\n{two}{json.dumps(FILTERS)}\n").text.count("[[class]]") == 3


# --- In a kernel ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shaped() -> Laboratory:
    why = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if why is not None:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    return Laboratory(exported_script=True, say=lambda text: print(text, file=sys.stderr))


@pytest.fixture(scope="module")
def shaped_inward(shaped: Laboratory) -> Laboratory:
    return Laboratory(exported_script=True, ingress=True)


@pytest.fixture(scope="module")
def over_gateways(shaped: Laboratory, built: Path) -> VirtualGateways:
    try:
        return VirtualGateways(built, exported=True)
    except LaboratoryError as error:
        pytest.skip(f"NO GATEWAY: {error}")


def differing(policy: str, number: int, host: Any, folder: Path) -> dict[str, tuple[float, float]]:
    """Classes whose rate differs by more than 1 % from the simulation of the same packets, with both rates."""
    scenario = exports.scenario(policy, number)
    simulated = exports.rates(package.run(exports.recorded(scenario, folder)))
    found = exports.rates(host.run(Scenario.from_dict(marked(scenario))))
    return {
        name: (found[name], wanted)
        for name, wanted in simulated.items()
        if abs(found[name] - wanted) > exports.allowed_bps(scenario, wanted)
    }


def chosen(*in_short: str) -> list[Any]:
    """The twenty; those that are not the first of one of these policies take too long for make test."""
    every = [(policy, number) for policy in exports.POLICIES for number in exports.NUMBERS]
    return [
        pytest.param(policy, number, marks=() if number == 0 and policy in in_short else pytest.mark.long)
        for policy, number in every
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "number"), chosen("pss", "drr"))
def test_a_script_gives_the_classes_their_simulated_rates(
    policy: str, number: int, shaped: Laboratory, tmp_path: Path
) -> None:
    assert differing(policy, number, shaped, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "number"), chosen("strict"))
def test_a_script_for_traffic_inward_gives_the_classes_their_simulated_rates(
    policy: str, number: int, shaped_inward: Laboratory, tmp_path: Path
) -> None:
    assert differing(policy, number, shaped_inward, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "number"), chosen("pss"))
def test_a_configuration_gives_the_classes_their_simulated_rates(
    policy: str, number: int, over_gateways: VirtualGateways, tmp_path: Path
) -> None:
    assert differing(policy, number, over_gateways, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("host", ["shaped", "over_gateways"])
def test_tcp_gets_its_simulated_goodput(host: str, request: pytest.FixtureRequest) -> None:
    scenario = Scenario.from_dict(marked(Scenario.from_dict(exports.TCP)))
    simulated = exports.rates(package.run(Scenario.from_dict(staggered(scenario))))
    found = exports.rates(request.getfixturevalue(host).run(scenario))
    assert found == {name: pytest.approx(wanted, rel=exports.TCP_BOUND) for name, wanted in simulated.items()}


@pytest.mark.slow
@pytest.mark.parametrize("policy", exports.POLICIES)
def test_what_tc_shows_becomes_the_scenario_again(policy: str, shaped: Laboratory) -> None:
    scenario = Scenario.from_dict(marked(exports.scenario(policy, 0, duration="6s")))
    made = shaped._made(scenario)
    files = shaped._files(made, None)
    assert Scenario.parse(imported(files["tc"].decode(), scenario).text).resolved == scenario.resolved
    # The script that undoes it ran at the end.
    assert files["after"] == files["before"]


@pytest.mark.slow
def test_what_is_undone_leaves_no_ifb_behind(shaped_inward: Laboratory) -> None:
    files = shaped_inward._files(shaped_inward._made(Scenario.from_dict(marked(written(duration="1s")))), None)
    assert b"noqueue" in files["before"]
    assert files["after"] == files["before"]


def in_namespace(script: str) -> str:
    """What a script prints in a network namespace of its own, where a0 and b0 are the ends of a wire."""
    prepared = f"ip link add a0 type veth peer name b0; ip link set a0 up; ip link set b0 up; {script}"
    done = subprocess.run(["unshare", "--net", "sh", "-c", prepared], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("there", ["ingress", "clsact"])
def test_what_somebody_has_set_up_for_traffic_inward_stays(there: str, tmp_path: Path) -> None:
    lacking = in_namespace("ip link add ifb-x type ifb && tc qdisc add dev a0 ingress")
    if lacking:
        pytest.skip(f"NO TRAFFIC INWARD HERE: {lacking}")
    (tmp_path / "up.sh").write_text(tc_scripts(written(), "a0", ingress=True).up)
    said = in_namespace(f"tc qdisc add dev a0 {there}; sh {tmp_path}/up.sh && echo is up; tc qdisc show; ip -o link")
    assert "is up" not in said
    assert f"qdisc {there} ffff:" in said
    assert "ifb-a0" not in said.split("qdisc ", 1)[1]
