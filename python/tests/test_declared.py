# SPDX-License-Identifier: BSD-3-Clause
"""Keys of scenarios and of the gateway are declared once; pages, schemas and exports are made of the declarations."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY

from linkweir import Scenario, ScenarioError, _native
from linkweir.bounds.answer import bounds
from linkweir.deploy.imported import imported
from linkweir.deploy.ns3 import TCP, ns3_program
from linkweir.deploy.script import tc_scripts
from linkweir.lab.world import KERNEL_CC, left_out, world
from linkweir.scenarios.declared import Row, rows, told, traffic_kinds, treated

KINDS = frozenset({"pss"})
HOSTS = {"laboratory", "gateway", "tc", "ns3", "bounds"}


def loaded(path: Path) -> Any:
    """A program as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_of_a_scenario_are_those_declared() -> None:
    path = REPOSITORY / "crates/linkweir-py/typed_scenario.py"
    assert loaded(path).text() == (REPOSITORY / "python/linkweir/scenarios/typed.py").read_text(), "run make keys"


@pytest.mark.parametrize("page", ["scenarios", "gateway"])
def test_the_reference_has_the_keys_as_they_are_declared(page: str) -> None:
    text = (REPOSITORY / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    assert text.count("<!-- keys: ") == text.count("<!-- end of keys -->") > 5
    assert loaded(REPOSITORY / "docs/site/keys.py").filled(text) == text, "run make keys"


def test_a_table_of_another_declaration_is_noticed() -> None:
    text = (REPOSITORY / "docs/reference/scenarios.md").read_text(encoding="utf-8")
    changed = text.replace("| `ring` | 1 .. 65536 |", "| `ring` | 1 .. 65535 |")
    assert changed != text
    assert loaded(REPOSITORY / "docs/site/keys.py").filled(changed) == text


def test_every_host_has_a_decision_for_every_key_and_every_kind_of_traffic() -> None:
    for path in ("", "link", "links", "scheduler", "class", "flow"):
        for key, row in rows(path).items():
            assert row.hosts is not None
            assert set(row.hosts) == HOSTS, key
    assert all(set(hosts) == HOSTS for hosts in traffic_kinds().values())


OTHER: dict[str, dict[str, Any]] = {
    "": {"name": "other", "warmup": "1s", "interval": "2s", "seed": 7, "log": "packets"},
    "link": {
        "follow": True,
        "nominal": "19Mbit",
        "delay": "10ms",
        "return_delay": "20ms",
        "loss": 0.01,
        "reorder": {"probability": "1%", "delay": "10ms"},
        "ring": 4,
        "overhead": "20B",
        "mpu": "64B",
    },
    "class": {
        "limit": "100ms",
        "limit_bytes": "100kB",
        "max_age": "1s",
        "full": "head",
        "least": "10%",
        "flows": "drr",
        "match": [{"dscp": 1}],
    },
    "flow": {
        "name": "other",
        "start": "1s",
        "stop": "5s",
        "access_delay": "10ms",
        "count": 3,
        "stagger": "1s",
        "delays": True,
        "playout": "60ms",
    },
    "flow.cbr": {
        "rate": {"steps": [["0s", "1Mbit"], ["1s", "2Mbit"]]},
        "jitter": 0.1,
        "packet": {"sizes": ["500B", "1kB"]},
    },
    "flow.bulk": {
        "cc": "reno",
        "profile": "ns2",
        "ecn": True,
        "mss": "1000B",
        "header": "60B",
        "ack": "60B",
        "window": "100p",
        "initial_window": "4p",
        "min_rto": "100ms",
        "max_rto": "60s",
        "initial_rto": "3s",
        "tick": "1ms",
        "delayed_ack": False,
        "delayed_ack_timeout": "50ms",
        "quick_acks": "0p",
        "hystart": False,
        "timestamps": False,
        "bytes": "1MB",
    },
}
"""Values that differ from the default, by table and key."""


def with_another(path: str, of: str, *, other: bool) -> Scenario:
    """A scenario in which a key has its other value, or the one to compare it with."""
    kind = "tcp" if path == "flow.bulk" else "cbr"
    keys: dict[str, Any] = {
        "duration": "10s",
        "link": {"rate": {"steps": [["0s", "20Mbit"], ["1s", "10Mbit"]]}},
        "scheduler": {"policy": "fifo" if of == "limit_bytes" else "pss"},
        "class": [{"name": "all"}],
        "flow": [{"kind": kind, "class": "all", "count": 2, **({"rate": "1Mbit"} if kind == "cbr" else {})}],
    }
    table = {"": keys, "link": keys["link"], "class": keys["class"][0]}.get(path, keys["flow"][0])
    if of == "profile":
        table |= {"mss": "1448B", "header": "52B"}
    if of == "seed":
        keys["flow"][0]["jitter"] = 0.1
    if other:
        table[of] = OTHER[path][of]
    return Scenario.from_dict(keys)


def is_said(words: str, notes: set[str]) -> bool:
    """Whether one of the notes ends with these words, whose names in braces stand for anything."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\{\w+\}", words))
    return any(re.search(pattern + "$", note) for note in notes)


EACH = [(path, key) for path, values in OTHER.items() for key in values]


@pytest.mark.parametrize(("path", "key"), EACH)
def test_ns3_says_of_a_key_what_is_declared(path: str, key: str) -> None:
    treatment = rows(path)[key].of("ns3")
    usual, other = (ns3_program(with_another(path, key, other=other)) for other in (False, True))
    notes = {note.replace('"other"', '"cbr1"') for note in other.notes} - set(usual.notes)
    if treatment.words is None:
        assert not notes
        texts = [[line for line in made.text.splitlines() if line[:4] != "//  "] for made in (usual, other)]
        differs = texts[0] != texts[1]
        assert differs == (treatment.name == "carried")
    else:
        assert is_said(treatment.words, notes), notes


@pytest.mark.parametrize(("path", "key"), EACH)
def test_the_laboratory_says_of_a_key_what_is_declared(path: str, key: str) -> None:
    treatment = rows(path)[key].of("laboratory")
    scenario = with_another(path, key, other=True)
    if treatment.name == "refused":
        with pytest.raises(ScenarioError, match=re.escape(treatment.words or "")) as refused:
            world(scenario, KINDS)
        assert refused.value.key is not None
        assert refused.value.key.rpartition(".")[2] == key
        return
    notes = set(left_out(scenario.native.written()))
    if treatment.words is None:
        assert not notes
    else:
        assert is_said(treatment.words, notes), notes
    differs = in_the_laboratory(scenario) != in_the_laboratory(with_another(path, key, other=False))
    assert differs == (treatment.name == "carried")


def in_the_laboratory(scenario: Scenario) -> tuple[Any, ...]:
    """What the laboratory makes of a scenario."""
    made = world(scenario, KINDS)
    names = scenario.name, made.classes, [flow.name for flow in made.flows]
    return (made.job, made.bins, scenario.warmup_s, *names)


def test_the_laboratory_and_ns3_have_every_congestion_control_that_does_not_count_marks() -> None:
    """The others are refused there, which test_laboratory.py and test_ns3.py hold."""
    words = set(rows("flow.tcp")["cc"].shape["words"]) - {"prague", "dctcp"}  # type: ignore[index]
    assert words == set(KERNEL_CC)
    assert words == set(TCP)


def test_users_see_words_for_what_a_host_leaves_out_or_refuses() -> None:
    for path in ("", "link", "scheduler", "class", "flow"):
        for host in HOSTS:
            assert all(words for _, words in treated(path, host, "adapted", "left_out", "refused")), (path, host)


def zeros(row: Row) -> list[Any]:
    """The ways to write 0 as the value of a key, if it may be 0."""
    assert row.shape is not None
    if row.shape.get("least", 0) > 0:
        return []
    if row.form in ("number", "real"):
        return [0]
    units = _native.units()[row.shape["noun"]] if "noun" in row.shape else []
    return [f"{zero}{unit}" for zero in ("0", "0.0") for unit in units] + ([0.0] if units else [])


@pytest.mark.parametrize("path", [table["path"] for table in _native.tables("scenario")])
def test_nothing_matters_of_a_key_that_is_0_by_default_or_has_no_default(path: str) -> None:
    for key, row in rows(path).items():
        if row.default.startswith("`") and not re.fullmatch(r'`"?0(\.0)?[a-zB]*"?`', row.default):
            continue
        for zero in zeros(row):
            assert not row.matters(zero), (path, key, zero)


def test_a_value_that_is_not_the_default_matters_even_if_it_is_0_or_false() -> None:
    assert rows("flow.tcp")["delayed_ack"].default == "`true`"
    assert rows("flow.tcp")["delayed_ack"].matters(False)
    assert not rows("flow.tcp")["delayed_ack"].matters(True)
    assert rows("flow")["delays"].matters(True)
    assert not rows("flow")["delays"].matters(False)
    assert rows("flow.voice")["header"].default == '`"40B"`'
    assert rows("flow.voice")["header"].matters("0B")
    assert not rows("flow.voice")["header"].matters("0.04kB")
    assert rows("link")["overhead"].matters("-20B")
    assert rows("link")["loss"].matters(0.01)
    assert rows("class")["least"].matters("1%")
    assert rows("class")["limit"].matters("100ms")
    assert not rows("class")["limit"].matters("50p")
    assert not rows("class")["flows"].matters(None)


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_least_share_of_0_is_none_for_every_host(host: str) -> None:
    scenario = scenario_of({"kind": "cbr", "class": "all", "rate": "1Mbit"}, least="0%")
    (entry,) = scenario.native.written()["class"]
    assert entry["least"] == "0%"
    assert "least" not in dict(told("class", host, entry, "left_out", "refused"))


def test_a_least_share_of_0_runs_in_the_laboratory_and_is_not_mentioned_by_exports() -> None:
    scenario = scenario_of({"kind": "cbr", "class": "all", "rate": "1Mbit"}, least="0%")
    assert world(scenario, frozenset({"fifo"})).classes == ("all",)
    for notes in (ns3_program(scenario).notes, tc_scripts(scenario, "eth0").notes):
        assert not [note for note in notes if "least" in note]


def test_a_class_with_a_least_share_of_0_has_the_bounds_of_one_without() -> None:
    flow = {"kind": "cbr", "class": "all", "rate": "1Mbit"}
    (without,), (found,) = bounds(scenario_of(flow)), bounds(scenario_of(flow, least="0%"))
    assert found == without
    assert found.delay_s is not None


def test_bounds_say_of_a_rate_that_changes_what_is_declared() -> None:
    rate = {"steps": [["0s", "1Mbit"], ["1s", "2Mbit"]]}
    (found,) = bounds(scenario_of({"kind": "cbr", "class": "all", "rate": rate}))
    words = rows("flow.cbr")["rate"].of("bounds").words
    assert words is not None
    assert found.why_none == f"no bound: flow cbr1 (cbr) {words}"


def test_bounds_know_what_to_do_with_every_kind_of_traffic() -> None:
    """A kind that is declared to have bounds has an arrival curve; of any other the words say why not."""
    own = {
        "cbr": {"rate": "1Mbit"},
        "poisson": {"rate": "1Mbit"},
        "onoff": {"rate": "1Mbit", "on": "1s", "off": "1s"},
        "voice": {"codec": "g711"},
        "replay": {"file": str(Path(__file__).with_name("packets.csv"))},
        "transfers": {"size": "1kB", "arrivals": {"every": "1s"}},
        "requests": {"response": "1kB", "think": "1s"},
        "web": {"main": "1kB", "objects": 1, "object": "1kB", "think": "1s"},
        "video": {"ladder": ["1Mbit"]},
    }
    for kind, hosts in traffic_kinds().items():
        (found,) = bounds(scenario_of({"kind": kind, "class": "all", **own.get(kind, {})}))
        if hosts["bounds"].words is None:
            assert found.arrivals is not None, kind
        else:
            assert hosts["bounds"].words in found.why_none


def test_packets_from_a_size_to_a_size_count_with_their_own_lengths() -> None:
    """One packet of 9,000 B at a time: not the 1,500 B that a class without sizes has."""
    flow = {"kind": "cbr", "class": "all", "rate": "1Mbit", "packet": {"min": "64B", "max": "9kB"}}
    (found,) = bounds(scenario_of(flow))
    assert found.sizes_bits == (8 * 64, 8 * 9000)


def scenario_of(flow: dict[str, Any], **of_the_class: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "duration": "10s",
            "link": {"rate": "20Mbit"},
            "scheduler": {"policy": "fifo"},
            "class": [{"name": "all", **of_the_class}],
            "flow": [flow],
        }
    )


def test_an_import_keeps_all_keys_that_describe_a_trace(tmp_path: Path) -> None:
    (tmp_path / "rates.txt").write_text("5\n7\n")
    text = """
        [gateway]
        mode = "cleartext"
        [link]
        trace = "rates.txt"
        trace_interval = "1s"
        trace_unit = "Mbit"
        [scheduler]
        policy = "fifo"
        [[class]]
        name = "all"
    """
    found = imported(text, folder=tmp_path)
    assert 'trace_unit = "Mbit"\ntrace_interval = "1s"' in found.text
    assert not [note for note in found.notes if "trace_" in note]
