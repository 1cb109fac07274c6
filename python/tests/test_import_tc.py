# SPDX-License-Identifier: BSD-3-Clause
"""What `linkweir import` reads of tc: each filter a rule, in the kernel's order, and what is left out by its place.

Texts are those that tc of iproute2 6.1 printed. tc_shown.json has what it showed of the configurations of
lab/imported/configurations.py, and where a kernel put packets; lab/imported/compare.py --store wrote it.
"""

from __future__ import annotations

import collections
import itertools
import json
import random
import re
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, linkweir
from test_deploy import naive

from linkweir.deploy import conditions
from linkweir.deploy.conditions import Conditions, both
from linkweir.deploy.filters import Filters
from linkweir.deploy.from_tc import from_tc
from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.imported import imported
from linkweir.deploy.matching import in_order, sorting
from linkweir.fault import ScenarioError
from linkweir.lab import guest, kernel
from linkweir.scenarios.scenario import Scenario

sys.path.insert(0, str(REPOSITORY / "lab/imported"))
import compare
import configurations

QDISCS = [
    {"kind": "htb", "handle": "1:", "root": True, "options": {"default": "0x1"}, "stab": {"linklayer": "ethernet"}},
    {"kind": "prio", "handle": "10:", "parent": "1:1", "options": {"bands": 2, "priomap": [1] * 16}},
    {"kind": "pfifo", "handle": "101:", "parent": "10:1", "options": {"limit": 50}},
    {"kind": "pfifo", "handle": "102:", "parent": "10:2", "options": {"limit": 100}},
]
CLASSES = "class htb 1:1 root leaf 10: prio 0 rate 8Mbit ceil 8Mbit linklayer ethernet burst 1600b/1 mpu 0b level 0 "


def flower(pref: int, target: str, protocol: str = "ip", **keys: Any) -> dict[str, Any]:
    options = {"handle": 1, "classid": target, "keys": keys, "not_in_hw": True}
    return {"protocol": protocol, "pref": pref, "kind": "flower", "chain": 0, "options": options}


def other(pref: int, kind: str, target: str, protocol: str = "ip", **options: Any) -> dict[str, Any]:
    entry = {"protocol": protocol, "pref": pref, "kind": kind, "chain": 0}
    return {**entry, "options": {"flowid": target, **options}}


def u32(pref: int, target: str, *matches: tuple[str, str, int], protocol: str = "ip") -> str:
    """As tc prints it: a key for each match, all with the same name."""
    keys = "".join(
        f',"match":{{"value":"{value}","mask":"{mask}","offmask":"","off":{at}}}' for value, mask, at in matches
    )
    return (
        f'{{"protocol":"{protocol}","pref":{pref},"kind":"u32","chain":0,"options":{{"fh":"800::800","order":2048,'
        f'"key_ht":"800","bkt":"0","flowid":"{target}","not_in_hw":true{keys}}}}}'
    )


def shown(*filters: Any, qdiscs: Any = QDISCS, classes: str = CLASSES) -> str:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in filters]
    return f"{json.dumps(qdiscs)}\n{classes}\n[]\n[{','.join(texts)}]\n"


def bands(number: int) -> list[dict[str, Any]]:
    """Queueing disciplines of tc: prio, whose last band takes packets without a filter."""
    ends = [
        {"kind": "pfifo", "handle": f"10{n}:", "parent": f"10:{n}", "options": {"limit": 50}}
        for n in range(1, number + 1)
    ]
    return [QDISCS[0], {**QDISCS[1], "options": {"bands": number, "priomap": [number - 1] * 16}}, *ends]


def rules(*filters: Any) -> Any:
    return from_tc(shown(*filters)).classes[0].get("match")


def notes(*filters: Any) -> list[str]:
    return [note for note in from_tc(shown(*filters)).notes if note.startswith("filter")]


def test_two_filters_on_one_class_are_two_rules_in_any_order_of_preference() -> None:
    for first, second in itertools.permutations(range(1, 5), 2):
        found = rules(
            flower(first, "10:1", ip_tos=184, ip_tos_mask="fc"), flower(second, "10:1", ip_proto="udp", dst_port=5060)
        )
        assert sorted(found, key=str) == [
            {"dscp": "EF", "source": "0.0.0.0/0"},
            {"protocol": "udp", "destination_port": 5060, "source": "0.0.0.0/0"},
        ]


def test_filters_that_differ_in_the_version_only_are_one_rule() -> None:
    both = [flower(n, "10:1", family, ip_tos=184, ip_tos_mask="fc") for n, family in ((3, "ipv6"), (8, "ip"))]
    assert rules(*both) == [{"dscp": "EF"}]
    assert rules(both[0]) == [{"dscp": "EF", "source": "::/0"}]


def test_filters_that_lead_to_classes_in_turn_keep_their_order() -> None:
    found = from_tc(
        shown(
            flower(1, "10:2", ip_tos=184, ip_tos_mask="fc"),
            flower(2, "10:1", ip_proto="udp"),
            other(9, "matchall", "10:2", "all"),
        )
    )
    voice = {"dscp": "EF", "source": "0.0.0.0/0"}
    # the class of the rest must keep a rule, because a later one would take its packets
    assert found.classes[1]["match"] in ([voice, {}], [{**voice, "order": 0}, {}])
    order = [(rule.get("protocol"), number) for rule, number in in_order(sorting(found.classes).rules)]
    assert order == [(None, 1), ("udp", 0)]
    assert sorting(found.classes).rest == 1


def test_rules_of_a_class_are_one_though_a_filter_of_another_class_is_between() -> None:
    points = [flower(pref, target, ip_tos=tos, ip_tos_mask="fc")
              for pref, target, tos in ((1, "10:1", 64), (2, "10:2", 32), (3, "10:1", 176))]  # fmt: skip
    found = from_tc(shown(*points, qdiscs=bands(3)))
    assert [entry.get("match") for entry in found.classes] == [
        [{"dscp": ["CS2", "VOICE-ADMIT"], "source": "0.0.0.0/0"}],
        [{"dscp": "CS1", "source": "0.0.0.0/0"}],
        None,
    ]


@pytest.mark.parametrize("between", [{"ip_proto": "udp"}, {"ip_proto": "tcp", "dst_port": 80}])
def test_a_class_that_filters_give_all_packets_is_the_class_of_the_rest(between: dict[str, Any]) -> None:
    """The filter between takes nothing: all packets of its version are gone already."""
    filters = [
        flower(1, "10:1"),
        flower(2, "10:2", **between),
        flower(3, "10:1", "ipv6"),
        other(4, "matchall", "10:2", "all"),
    ]
    found = from_tc(shown(*filters))
    assert [entry.get("match") for entry in found.classes] == [None, []]
    assert sorting(found.classes).rest == 0


def test_a_class_that_gets_all_packets_but_some_is_the_class_of_the_rest() -> None:
    voice = flower(2, "10:2", ip_tos=184, ip_tos_mask="fc")
    filters = [flower(1, "10:1", "ipv6"), voice, flower(3, "10:1"), other(4, "matchall", "10:2", "all")]
    found = from_tc(shown(*filters))
    assert [entry.get("match") for entry in found.classes] == [None, [{"dscp": "EF", "source": "0.0.0.0/0"}]]


def test_a_rule_whose_packets_a_later_rule_of_its_class_takes_is_left_away() -> None:
    filters = [
        flower(1, "10:1", "ipv6", ip_tos=184, ip_tos_mask="fc", ip_proto="tcp"),
        flower(2, "10:1", ip_tos=40, ip_tos_mask="fc"),
        flower(3, "10:1", "ipv6"),
    ]
    assert rules(*filters) == [{"dscp": "AF11", "source": "0.0.0.0/0"}, {"source": "::/0"}]


def test_a_filter_of_htb_that_drops_packets_is_named() -> None:
    drops = {"actions": [{"order": 1, "kind": "gact", "control_action": {"type": "drop"}}]}
    filters = [
        {**other(1, "matchall", "1:1", "ip", **drops), "parent": "1:"},
        {**other(2, "matchall", "1:1", "all"), "parent": "1:"},
    ]
    assert notes(*filters) == ["filter parent 1: pref 1 matchall: has the action gact: left out"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (flower(1, "10:1", ip_tos=160, ip_tos_mask="e0"), {"dscp": ["CS5", 41, 42, 43, "VOICE-ADMIT", 45, "EF", 47]}),
        (
            flower(1, "10:1", ip_proto="tcp", dst_port={"start": 80, "end": 90}),
            {"protocol": "tcp", "destination_port": "80-90"},
        ),
        (
            flower(1, "10:1", ip_proto="udp", src_port=80, src_port_mask="fff0"),
            {"protocol": "udp", "source_port": "80-95"},
        ),
        (
            u32(1, "10:1", ("b80000", "fc0000", 0), ("35", "ffff", 20), ("110000", "ff0000", 8)),
            {"dscp": "EF", "protocol": "udp", "destination_port": 53},
        ),
        (
            u32(1, "10:1", ("a000000", "ff000000", 12), ("60000", "ff0000", 8)),
            {"protocol": "tcp", "source": "10.0.0.0/8"},
        ),
        (
            u32(1, "10:1", ("b800000", "fc00000", 0), ("fd000000", "ffff0000", 8), protocol="ipv6"),
            {"dscp": "EF", "source": "fd00::/16"},
        ),
        (other(1, "basic", "10:1"), {"source": "0.0.0.0/0"}),
    ],
)
def test_what_a_rule_can_say_is_kept(written: Any, wanted: dict[str, Any]) -> None:
    (rule,) = rules(written)
    assert rule == ({"source": "0.0.0.0/0"} if "source" not in wanted else {}) | wanted
    assert notes(written) == []


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            flower(4, "10:1", ip_proto="tcp", tcp_flags="0x10/12"),
            "pref 4 flower handle 1: compares tcp_flags: left out",
        ),
        (flower(4, "10:1", ip_ttl=3), "compares ip_ttl: left out"),
        (flower(4, "10:1", ip_proto="l2tp"), "compares ip_proto l2tp, whose number is not known here: left out"),
        (flower(4, "10:1", "802.1Q", vlan_id=5), "is for packets of protocol 802.1Q, and a rule only for IP: left out"),
        (flower(4, "10:1", ip_tos=1, ip_tos_mask="3"), "compares the ECN bits only: left out"),
        (flower(4, "10:1", ip_tos=184), "compares the ECN bits, too: its rule takes packets with any"),
        (flower(4, "10:1", ip_proto="tcp", dst_port=80, dst_port_mask="f0"), "which is not a range: left out"),
        (
            u32(4, "10:1", ("35", "ffff", 20)),
            "ports in packets of every protocol: its rule only those of tcp, udp and sctp",
        ),
        (u32(4, "10:1", ("40000000", "ff000000", 8)), "compares the bits ff000000 at 8: left out"),
        (
            other(4, "matchall", "10:1", actions=[{"kind": "gact", "control_action": {"type": "drop"}}]),
            "has the action gact: left out",
        ),
        (other(4, "flow", "10:1"), "flow does not compare headers of packets: left out"),
        (
            '{"protocol":"ip","pref":4,"kind":"fw","chain":0,"options":{handle 0x6 classid 10:1 }}',
            "fw handle 0x6: fw does not",
        ),
        (
            '{"protocol":"ip","pref":4,"kind":"basic","chain":0,"options":{"handle":"1","flowid":"10:1"\n'
            "  cmp(u16 at 2 layer 2 eq 53)\n  AND NOT meta(priority eq 3)\n}}",
            "basic handle 1: compares ematch: left out",
        ),
    ],
)
def test_what_no_rule_can_say_is_named_with_its_place(written: Any, said: str) -> None:
    (note,) = notes(written)
    assert note.startswith("filter parent 10: pref 4 ")
    assert said in note
    assert ("left out" in said or "fw" in said) == (rules(written) in ([], None))


def test_filters_at_an_input_device_are_named() -> None:
    entry = flower(4, "10:1", ip_proto="tcp")
    entry["options"]["indev"] = "eth1"
    assert notes(entry) == ["filter parent 10: pref 4 flower handle 1: compares indev: left out"]


@pytest.mark.parametrize("kind", ["sfq", "red", "netem", "codel"])
def test_a_queue_that_no_class_has_is_named(kind: str) -> None:
    qdiscs = [*QDISCS[:3], {"kind": kind, "handle": "102:", "parent": "10:2", "options": {"limit": 127}}]
    found = from_tc(shown(flower(1, "10:1", ip_tos=184, ip_tos_mask="fc"), qdiscs=qdiscs))
    assert f"qdisc {kind} 102: at 10:2: became a FIFO, as no class has a {kind}: left out" in found.notes


def test_fq_codel_at_a_class_becomes_flows() -> None:
    options = {
        "limit": 10240,
        "flows": 1024,
        "quantum": 1514,
        "target": 4999,
        "interval": 99999,
        "memory_limit": 33554432,
        "ecn": True,
    }
    qdiscs = [*QDISCS[:3], {"kind": "fq_codel", "handle": "102:", "parent": "10:2", "options": options}]
    found = from_tc(shown(other(1, "matchall", "10:2", "all"), qdiscs=qdiscs))
    assert (found.classes[1]["flows"], found.classes[1]["limit"]) == ("fq_codel", "10240p")
    assert found.notes == ()
    qdiscs[-1]["options"]["target"] = 9999  # type: ignore[index]
    found = from_tc(shown(other(1, "matchall", "10:2", "all"), qdiscs=qdiscs))
    assert found.notes == ("qdisc fq_codel 102: at 10:2 target 9999: left out",)


@pytest.mark.parametrize("ecn", [{}, {"ecn": False}])
def test_fq_codel_without_ecn_at_a_class_is_named(ecn: dict[str, bool]) -> None:
    """Flows inside a class get marks. tc shows "ecn" only where it is on."""
    entry = {"kind": "fq_codel", "handle": "102:", "parent": "10:2", "options": {"limit": 10240, **ecn}}
    found = from_tc(shown(other(1, "matchall", "10:2", "all"), qdiscs=[*QDISCS[:3], entry]))
    assert found.notes == ("qdisc fq_codel 102: at 10:2 ecn off: left out",)


DUALPI2 = {
    "limit": 10000,
    "memory-limit": 30280000,
    "target": 15000,
    "tupdate": 16000,
    "alpha": 0.15625,
    "beta": 3.195312,
    "step-thresh-us": 1000,
    "min-qlen-step": 0,
    "coupling": 2,
    "drop-overload": "drop",
    "drop-early": "drop-dequeue",
    "c-protection": 10,
    "ecn-mask": "l4s-ect",
    "split-gso": None,
}
"""What iproute2 prints of it by default (tc/q_dualpi2.c), with the gains of Linux 7.3, which are rounded down twice."""


def test_dualpi2_at_a_class_becomes_flows_and_carries_its_step() -> None:
    def queue(**options: Any) -> Any:
        entry = {"kind": "dualpi2", "handle": "102:", "parent": "10:2", "options": DUALPI2 | options}
        return from_tc(shown(other(1, "matchall", "10:2", "all"), qdiscs=[*QDISCS[:3], entry]))

    found = queue()
    assert {key: found.classes[1].get(key) for key in ("flows", "limit", "l4s_step")} == {
        "flows": "dualpi2",
        "limit": "10000p",
        "l4s_step": None,
    }
    assert found.notes == ()
    found = queue(**{"step-thresh-us": 6000, "coupling": 1, "c-protection": 11, "ecn-mask": "any-ect"})
    assert found.classes[1]["l4s_step"] == "6000us"
    left = [f"qdisc dualpi2 102: at 10:2 {words}: left out" for words in ("coupling 1", "c-protection 11")]
    assert found.notes == (*left, "qdisc dualpi2 102: at 10:2 ecn-mask any-ect: left out")
    assert queue(**{"memory-limit": 100_000}).notes == ("qdisc dualpi2 102: at 10:2 memory-limit 100000: left out",)
    # Linux sets it with the limit, to twice as many packets of 1514 bytes.
    assert queue(**{"limit": 50, "memory-limit": 151_400}).notes == ()
    packets = {key: value for key, value in DUALPI2.items() if key != "step-thresh-us"} | {"step-thresh-pkts": 3}
    entry = {"kind": "dualpi2", "handle": "102:", "parent": "10:2", "options": packets}
    found = from_tc(shown(other(1, "matchall", "10:2", "all"), qdiscs=[*QDISCS[:3], entry]))
    assert found.notes == ("qdisc dualpi2 102: at 10:2 step-thresh-pkts 3: left out",)


def test_dualpi2_below_a_shaper_is_a_class_that_sorts() -> None:
    entry = {"kind": "dualpi2", "handle": "10:", "parent": "1:1", "options": DUALPI2}
    found = from_tc(shown(qdiscs=[QDISCS[0], entry]))
    assert found.scheduler == {"policy": "fifo"}
    assert found.classes == [{"name": "class-1", "limit": "10000p", "flows": "dualpi2"}]


def test_overhead_of_a_class_and_a_second_class_of_htb_count() -> None:
    qdiscs = [{**QDISCS[0], "stab": {"overhead": 24, "linklayer": "atm"}}, *QDISCS[1:]]
    classes = CLASSES.replace("rate 8Mbit", "rate 8Mbit overhead 10").replace("mpu 0b", "mpu 60b")
    classes += "\nclass htb 1:2 root prio 2 quantum 12500 rate 1Mbit ceil 3Mbit linklayer ethernet level 0 "
    found = from_tc(shown(flower(1, "10:1", ip_tos=184, ip_tos_mask="fc"), qdiscs=qdiscs, classes=classes))
    # 14 bytes of Ethernet, 24 of the root and 10 of the class
    assert found.link == {"rate": "8000000bit", "overhead": "48B", "mpu": "60B"}
    assert "stab of htb 1: linklayer atm: the simulator's links have no cells: left out" in found.notes
    assert "class htb 1:2 (rate 1Mbit, ceil 3Mbit, prio 2): left out, with its packets" in found.notes


def test_classes_of_htb_that_share_by_rate_are_refused_by_name() -> None:
    qdiscs = [{**QDISCS[0], "options": {"default": "0x12"}}]
    minors = (11, 12, 13)
    qdiscs += [{"kind": "fq_codel", "handle": f"1{n}:", "parent": f"1:{n}", "options": {}} for n in minors]
    lines = [
        "class htb 1:1 root rate 20Mbit ceil 20Mbit",
        *(f"class htb 1:{n} parent 1:1 prio {n} rate 1Mbit ceil 19Mbit" for n in (11, 12, 13)),
    ]
    with pytest.raises(
        ScenarioError, match=r"htb 1:: shares the link.*1:11 \(rate 1Mbit, ceil 19Mbit, prio 11\), 1:12.*1:13"
    ):
        from_tc(shown(qdiscs=qdiscs, classes="\n".join(lines)))


def test_cake_becomes_fq_codel_and_what_it_has_more_is_named() -> None:
    options = {"bandwidth": 2500000, "diffserv": "diffserv4", "flowmode": "triple-isolate", "rtt": 100000, "raw": False,
               "atm": "atm", "overhead": 18, "mpu": 64}  # fmt: skip
    found = from_tc(json.dumps([{"kind": "cake", "handle": "8003:", "root": True, "options": options}]))
    assert found.link == {"rate": "20000000bit", "overhead": "18B", "mpu": "64B"}
    assert found.scheduler == {"policy": "fq_codel", "target": "5000us", "interval": "100000us"}
    for said in (
        "cake 8003:: became fq_codel",
        "diffserv diffserv4: left out",
        "atm atm: left out",
        "triple-isolate: hosts",
    ):
        assert any(said in note for note in found.notes), said
    children = [{"kind": "cake", "handle": f"{n}:", "parent": f"1:{n}", "options": options} for n in (1, 2)]
    with pytest.raises(ScenarioError, match="mq 1:: has 2 cake, each a link of its own"):
        from_tc(json.dumps([{"kind": "mq", "handle": "1:", "root": True, "options": {}}, *children]))


def test_packets_that_no_filter_takes_come_to_the_band_of_their_code_point() -> None:
    qdiscs = [
        QDISCS[0],
        {**QDISCS[1], "options": {"bands": 2, "priomap": [1, 1, 1, 1, 1, 1, 0, *[1] * 9]}},
        *QDISCS[2:],
    ]
    found = from_tc(shown(qdiscs=qdiscs))
    (rule,) = found.classes[0]["match"]
    # priority 6, interactive, is that of TOS with minimum delay alone (RFC 1349): bits 3 and 4 are 0 and 1
    assert rule["source"] == "0.0.0.0/0"
    assert {"AF22", "CS2", "EF"} & set(rule["dscp"]) == {"AF22"}
    assert any("qdisc prio 10: priomap" in note for note in found.notes)


def test_an_export_for_every_address_of_one_version_compares_no_address() -> None:
    """flower never matches an address with an empty mask."""
    keys = {"duration": "1s", "link": {"rate": "1Mbit"}, "scheduler": {"policy": "strict"}}
    classes = [{"name": "six", "match": [{"source": "::/0"}]}, {"name": "rest"}]
    flow = [{"class": "rest", "kind": "cbr", "rate": "1kbit", "packet": "99B"}]
    scenario = Scenario.from_dict({**keys, "class": classes, "flow": flow})
    lines = Filters("d0", sorting([{"name": "six", "match": [{"source": "::/0"}]}, {"name": "rest"}])).lines(
        "10:", {0: "10:1", 1: "10:2"}
    )
    assert [re.sub(" +", " ", line) for line in lines] == [
        "filter add dev d0 parent 10: protocol ipv6 pref 2 flower classid 10:1",
        "filter add dev d0 parent 10: protocol all pref 3 matchall classid 10:2",
    ]
    assert '{ source = "::/0" }' in gateway_configuration(scenario).text


def test_an_export_names_code_points_as_the_plugins_of_tc_do() -> None:
    """By kernel/tc/plugin.c: EF, VA, LE, CS0 .. CS7, AF11 .. AF43, or numbers; the last of one code point counts."""
    match = [{"dscp": ["DF", "VOICE-ADMIT", "EF"]}], [{"dscp": ["AF11", "LE", 46, 63]}], [{}]
    classes = [{"name": f"class-{number}", "match": rules} for number, rules in enumerate(match)]
    assert Filters("d0", sorting(classes)).words() == [
        *("dscp", "CS0=1,VA=1,EF=1,AF11=2,LE=2,63=2"),
        *("default", "3"),
    ]


def test_the_class_of_the_rest_keeps_its_rules_in_every_host(tmp_path: Path) -> None:
    match = [{"dscp": "EF", "order": 1}, {}]
    classes = [{"name": "a", "match": match}, {"name": "b", "match": [{"protocol": "udp", "order": 2}]}]
    keys = {"duration": "1s", "link": {"rate": "1Mbit"}, "scheduler": {"policy": "strict"}}
    flow = [{"class": "a", "kind": "cbr", "rate": "1kbit", "packet": "99B"}]
    scenario = Scenario.from_dict({**keys, "class": classes, "flow": flow})
    text = gateway_configuration(scenario).text
    assert 'match = [{ dscp = "EF", order = 1 }, {}]' in text
    assert 'match = [{ dscp = "EF", order = 1 }, {}]' in imported(text, scenario).text
    (tmp_path / "case.toml").write_text(scenario.resolved)
    done = linkweir("export", "tc", tmp_path / "case.toml", "--device", "d0")
    filters = [line.split("protocol ")[1] for line in done.stdout.splitlines() if "filter add" in line]
    assert filters == [
        "ip pref 1 flower ip_tos 0xb8/0xfc classid 10:1",
        "ipv6 pref 2 flower ip_tos 0xb8/0xfc classid 10:1",
        "ip pref 3 flower ip_proto udp classid 10:2",
        "ipv6 pref 4 flower ip_proto udp classid 10:2",
        "all pref 5 matchall classid 10:1",
    ]


VALUES: dict[str, list[Any]] = {
    "version": [4, 6],
    "dscp": [8, 10, 46],
    "protocol": [6, 17, 50],
    "source_port": [(53, 53), (80, 90)],
    "destination_port": [(53, 53), (80, 90)],
    "source": [ip_network("10.0.0.0/8"), ip_network("10.1.0.0/16"), ip_network("fd00::/8")],
    "destination": [ip_network("10.0.0.0/8"), ip_network("10.1.0.0/16"), ip_network("fd00::/8")],
}
PACKETS = [
    {"version": 4 if ends < 2 else 6, "dscp": point, "protocol": protocol, "source_port": ports[0],
     "destination_port": ports[1], "source": ("10.1.0.1", "10.2.0.1", "fd00::1")[ends],
     "destination": ("10.2.0.1", "10.1.0.1", "2001:db8::1")[ends]}
    for point in (8, 10, 46) for protocol in (6, 17, 50) for ports in ((53, 80), (80, 53), (85, 85))
    for ends in range(3)
]  # fmt: skip


def drawn(draw: random.Random) -> Conditions:
    keys = draw.sample(list(VALUES), draw.choice((0, 1, 1, 2, 2, 3)))
    found = both({}, {key: frozenset(draw.sample(VALUES[key], draw.choice((1, 1, 2)))) for key in keys})
    return drawn(draw) if found is None else found


def as_shown(lines: list[str]) -> Iterator[dict[str, Any]]:
    """Filters of an export, as tc shows them."""
    handles = collections.Counter[str]()
    for line in lines:
        words = line.split()
        of = dict(zip(words[2:10:2], words[3:10:2], strict=True))  # dev, parent, protocol and pref
        if words[10] == "matchall":
            yield other(int(of["pref"]), "matchall", words[-1], "all")
            continue
        keys: dict[str, Any] = {}
        for key, value in zip(words[11:-2:2], words[12:-2:2], strict=True):
            if key == "ip_tos":
                point, _, mask = value.partition("/0x")
                keys |= {key: int(point, 16), "ip_tos_mask": mask}
            elif key == "ip_proto":
                keys[key] = value.removeprefix("0x")
            elif key.endswith("_port"):
                first, _, last = value.partition("-")
                keys[key] = {"start": int(first), "end": int(last)} if last else int(first)
            else:
                keys[key] = value
        entry = flower(int(of["pref"]), words[-1], of["protocol"], **keys)
        handles[of["pref"]] += 1
        entry["options"]["handle"] = handles[of["pref"]]
        yield entry


def meets(packet: dict[str, Any], wanted: Conditions) -> bool:
    def meets_one(key: str, value: Any) -> bool:
        if key.endswith("_port"):
            return packet["protocol"] != 50 and bool(value[0] <= packet[key] <= value[1])
        return ip_address(packet[key]) in value if key in ("source", "destination") else bool(packet[key] == value)

    return all(any(meets_one(key, value) for value in own) for key, own in wanted.items())


@pytest.mark.parametrize("seed", range(150))
def test_the_shortest_rules_give_each_packet_its_class_and_cannot_be_shortened(seed: int) -> None:
    draw = random.Random(seed)
    filters = [(drawn(draw), draw.randrange(3)) for _ in range(draw.randint(1, 6))]
    found = conditions.in_order(filters, 3, 2)
    sorted_by = sorting(
        [{"name": f"class-{n}", **({"match": own} if own is not None else {})} for n, own in enumerate(found)]
    )
    written = in_order(sorted_by.rules)
    for packet in PACKETS:
        fields = {key: value for key, value in packet.items() if key != "version"}
        if packet["protocol"] == 50:
            fields |= {"source_port": None, "destination_port": None}
        wanted = next((number for one, number in filters if meets(packet, one)), 2)
        own = (number for rule, number in written if naive({k: v for k, v in rule.items() if k != "order"}, fields))
        assert next(own, sorted_by.rest) == wanted, packet
    # an import of their export finds the same
    lines = Filters("d0", sorted_by).lines("10:", {n: f"10:{n + 1}" for n in range(3)})
    again = from_tc(shown(*as_shown(lines), qdiscs=bands(3)))
    assert [entry.get("match") for entry in again.classes] == found


# --- What a kernel did ------------------------------------------------------------------------------------------------

STORED = json.loads((Path(__file__).parent / "data/tc_shown.json").read_text())


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: str(stored["seed"]))
def test_packets_come_to_the_class_of_the_kernel_or_the_import_says_why_not(stored: dict[str, Any]) -> None:
    made = configurations.configuration(stored["seed"], extras=True)
    packets = configurations.probes(random.Random(stored["seed"]), compare.PROBES)
    assert [made.place(packet) for packet in packets] == [
        "direct" if place == "dropped" and made.place(packet) == "direct" else place
        for packet, place in zip(packets, stored["places"], strict=True)
    ]
    found = from_tc(stored["shown"])
    said = compare.named(made, found)
    sorted_by = sorting(found.classes)
    for packet in packets:
        fields = {
            "dscp": packet.tos >> 2,
            "protocol": packet.protocol,
            "source": packet.source,
            "destination": packet.destination,
            "source_port": packet.ports and packet.ports[0],
            "destination_port": packet.ports and packet.ports[1],
        }
        own = (
            number
            for rule, number in in_order(sorted_by.rules)
            if naive({k: v for k, v in rule.items() if k != "order"}, fields)
        )
        wanted = made.place(packet, said.removed, said.changes, said.main)
        if wanted == "dropped" and said.drops:
            continue
        assert found.places[next(own, sorted_by.rest)] == wanted, packet


def test_configurations_without_extras_compare_nothing_that_the_usual_kernel_ignores() -> None:
    lines = [line for n in range(5000, 5200) for line in configurations.configuration(n, extras=False).lines()]
    assert not any("match mark" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.long)])
def test_configurations_of_tc_mean_the_same_after_import_and_export_in_a_kernel(count: int) -> None:
    why = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if why is not None:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    tally = compare.Tally()
    compare.compare(guest.prepare(kernel.build()), range(5000, 5000 + count), False, tally)
    assert tally.faults == []
    assert tally.packets == count * compare.PROBES
