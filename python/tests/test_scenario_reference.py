# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/scenarios.md names exactly the keys, units, ranges and defaults that the parser has."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY

import linkweir
from linkweir import Scenario, ScenarioError

PAGE = (REPOSITORY / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
BASE: dict[str, Any] = {
    "duration": "10s",
    "link": {"rate": "20Mbit"},
    "scheduler": {"policy": "fifo"},
    "class": [{"name": "all"}],
    "flow": [{"class": "all", "kind": "greedy"}],
}
BEAM = {"symbol_rate": "50MBd", "clear_sky_esn0_db": 12.0}
KINDS: dict[str, dict[str, Any]] = {
    "cbr": {"rate": "1Mbit"},
    "poisson": {"rate": "1Mbit"},
    "onoff": {"rate": "1Mbit", "on": "1s", "off": "1s", "lengths": "pareto"},
    "greedy": {},
    "tcp": {},
    "voice": {"codec": "g711"},
    "replay": {"file": str(Path(__file__).with_name("packets.csv"))},
    "transfers": {"size": "1kB", "arrivals": {"every": "1s"}},
    "requests": {"response": "1kB", "think": "1s"},
    "web": {"main": "1kB", "objects": 1, "object": "1kB", "think": "1s"},
    "video": {"ladder": ["1Mbit"]},
}
OVER_TCP = ("transfers", "requests", "web", "video")
AMOUNTS = [{"mean": "1B", "distribution": "pareto"}, {"mean": "1B", "distribution": "lognormal", "deviation": "1B"}]
HERE = {"lat_deg": 0, "lon_deg": 0}
SHELL = {
    "planes": 6,
    "per_plane": 11,
    "altitude_km": 800,
    "inclination_deg": 86.4,
    "from": HERE,
    "to": HERE,
}
STEPS = [["0s", "1Mbit"]]
SIGNALS = [
    {"mean": "1Mbit", "amplitude": 0.1, "period": "1s"},
    {"steps": STEPS, "end": "loop", "period": "2s"},
    {"steps": STEPS, "end": "stop", "at": "2s"},
    {"lines": STEPS},
]
SIZES = [{"sizes": ["1B"]}, {"min": "1B", "max": "2B"}]
STRANGE = "q" * 30


def with_flow(kind: str, **keys: Any) -> dict[str, Any]:
    return {**BASE, "flow": [{"class": "all", "kind": kind, **KINDS[kind], **keys}]}


def with_keys(section: str, **keys: Any) -> dict[str, Any]:
    scenario = copy.deepcopy(BASE)
    if section == "Top level":
        scenario.update(keys)
    elif section == "[[flow]]":
        scenario["flow"][0].update(keys)
    elif section == "[[class]]":
        scenario["class"][0].update(keys)
    elif section == "[link.satellite]":
        scenario["link"]["satellite"] = {"packet": "1500B", "reorder": "shared", **keys}
    elif section == "[link.satellite.constellation]":
        scenario["link"]["satellite"] = {"packet": "1500B", "constellation": {**SHELL, **keys}}
    elif section == "[link.beam]":
        scenario["link"] = {"beam": {**BEAM, **keys}}
    elif section == "[link.beam.rain]":
        scenario["link"] = {"beam": {**BEAM, "rain": {"m": -4.0, "sigma": 1.8, **keys}}}
    elif section.startswith("kind"):
        return with_flow(section.split('"')[1], **keys)
    else:
        scenario[section.strip("[]")].update(keys)
    return scenario


SECTIONS = [
    "Top level",
    "[link]",
    "[link.satellite]",
    "[link.satellite.constellation]",
    "[link.beam]",
    "[link.beam.rain]",
    "[scheduler]",
    "[[class]]",
    "[[flow]]",
    *(f'kind = "{kind}"' for kind in KINDS),
]


def refusal(scenario: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(scenario)
    return str(caught.value)


def known(scenario: dict[str, Any]) -> set[str]:
    """The keys the parser lists for the table that holds a strange one."""
    return set(refusal(scenario).split("known here: ")[1].split(", "))


def rows(section: str) -> dict[str, list[str]]:
    """Cells of the first table under a heading, by key."""
    text = re.split(rf"^#+ {re.escape(section)}$", PAGE, flags=re.MULTILINE)[1]
    body = re.split(r"^#", text, flags=re.MULTILINE)[0]
    lines = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("| `")]
    assert lines, section
    return {cells[0].strip("`"): cells[1:] for cells in lines}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_the_keys_the_parser_knows(section: str) -> None:
    expected = known(with_keys(section, **{STRANGE: 1}))
    if section.startswith("kind"):
        expected -= set(rows("[[flow]]"))
    if section.split('"')[1:2] and section.split('"')[1] in OVER_TCP:
        shared = set(rows('kind = "tcp"')) - {"bytes"}
        assert shared <= expected
        expected -= shared
    if section == "[[flow]]":
        expected = set.intersection(*(known(with_flow(kind, **{STRANGE: 1})) for kind in KINDS))
    assert set(rows(section)) == expected


@pytest.mark.parametrize(
    ("section", "kind", "key", "tables"),
    [
        ("Values over time", "cbr", "rate", SIGNALS),
        ("Packet sizes", "cbr", "packet", SIZES),
        ("Random amounts", "requests", "response", AMOUNTS),
    ],
)
def test_the_page_has_the_keys_of_inner_tables(section: str, kind: str, key: str, tables: list[dict[str, Any]]) -> None:
    expected = set.union(*(known(with_flow(kind, **{key: {**table, STRANGE: 1}})) for table in tables))
    assert set(rows(section)) == expected


def ranges() -> list[tuple[str, str, str]]:
    found = [
        (section, key, match[0])
        for section in SECTIONS
        for key, cells in rows(section).items()
        if (match := re.match(r"-?\d[\w.%]* \.\. [\w.%]+", cells[0]))
    ]
    assert len(found) > 40
    return found


@pytest.mark.parametrize(("section", "key", "allowed"), ranges())
def test_ranges_are_those_of_the_parser(section: str, key: str, allowed: str) -> None:
    unit = re.sub(r"^-?[\d.]+", "", allowed.split()[0])
    far: Any = f"-9e15{unit}" if unit else -9_000_000_000_000_000
    message = refusal(with_keys(section, **{key: far}))
    assert re.search(rf"\b{re.escape(key)} = .*: must be .*(?<![\d.]){re.escape(allowed)}$", message), message


def test_choices_are_those_of_the_parser() -> None:
    found = 0
    for section in SECTIONS:
        for key, cells in rows(section).items():
            words = cells[0].split(", ")
            if len(words) < 2 or not all(re.fullmatch(r"[a-z0-9_]+", word) for word in words):
                continue
            found += 1
            if words == ["true", "false"]:
                assert "must be true or false" in refusal(with_keys(section, **{key: 1}))
                continue
            given = {key: STRANGE, **({"trace": "trace.csv"} if section == "[link]" else {})}
            scenario = with_keys(section, **given)
            if section == "[link]":
                del scenario["link"]["rate"]
            assert refusal(scenario).endswith(f"must be one of {cells[0]}"), key
    assert found >= 9


def resolved_lines(scenario: dict[str, Any], header: str) -> set[str]:
    text = Scenario.from_dict(scenario).resolved
    parts = text.split(f"\n{header}\n") if header else ["", text]
    return set(parts[1].split("\n[")[0].splitlines())


@pytest.mark.parametrize("section", SECTIONS)
def test_defaults_are_those_of_the_parser(section: str) -> None:
    header = {"Top level": "", **{name: name for name in SECTIONS if name.startswith("[")}}
    scenario = with_keys(section)
    lines = resolved_lines(scenario, header.get(section, "[[flow]]"))
    if "lengths" in scenario["flow"][0]:
        del scenario["flow"][0]["lengths"]  # given for the sake of shape, which only one of its values has
        lines |= resolved_lines(scenario, "[[flow]]")
    if "satellite" in scenario["link"]:
        scenario["link"]["satellite"].pop("reorder", None)  # likewise, for its buffer and timeout
        lines |= resolved_lines(scenario, header[section])
    for key, cells in rows(section).items():
        if cells[1].startswith("`"):
            assert f"{key} = {cells[1].strip('`')}" in lines, (key, cells[1])


def test_defaults_of_ns2_are_those_of_the_parser() -> None:
    lines = resolved_lines(with_flow("tcp", profile="ns2"), "[[flow]]")
    for key, cells in rows('kind = "tcp"').items():
        if cells[2].startswith("`"):
            assert f"{key} = {cells[2].strip('`')}" in lines, (key, cells[2])


def test_units_are_those_of_the_parser() -> None:
    places: dict[str, Callable[[], dict[str, Any]]] = {
        "a rate": lambda: with_keys("[link]", rate="1x"),
        "a time": lambda: with_keys("[link]", delay="1x"),
        "a size": lambda: with_keys("[link]", mpu="1x"),
        "a number of packets": lambda: with_keys("[[class]]", limit="1x"),
        "a fraction": lambda: with_keys("[link]", loss="1x"),
        "a symbol rate": lambda: with_keys("[link.beam]", symbol_rate="1x"),
    }
    table = dict(re.findall(r"^\| (an? [a-z ]+) \| ([^|]*) \|", PAGE, flags=re.MULTILINE))
    assert set(table) == set(places)
    for noun, place in places.items():
        units = ", ".join(re.findall(r"`([^`]+)`", table[noun]))
        assert refusal(place()).endswith(f'unknown unit "x" for {noun}; use one of {units}')


def test_examples_of_the_page_run(tmp_path: Path) -> None:
    first, lossy, across, *kinds, network, bond, amounts, sizes, signals, _ = re.findall(
        r"```toml\n(.*?)```", PAGE, flags=re.DOTALL
    )
    assert Scenario.parse(first).flows[0] == "cbr1"
    link = '[link]\nrate = "20Mbit"\ndelay = "250ms"\n'
    assert link in first
    Scenario.parse(first.replace(link, lossy))
    assert len(kinds) == 6
    users = re.sub(r"\[scheduler\]\n(?:.+\n)+", across, first)
    assert "across" in Scenario.parse(users).resolved
    assert Scenario.parse(network).links == ["feeder", "beam", "return"]
    assert Scenario.parse(bond).links == ["boat"]
    (tmp_path / "packets.csv").write_text("t_s,bytes,flow\n0,1500,camera\n")
    for kind in kinds:
        Scenario.parse(f"{first}\n{kind}", path=tmp_path / "x.toml")
    for amount in amounts.splitlines():
        flow = f'[[flow]]\nclass = "rest"\nkind = "transfers"\narrivals = {{ every = "1s" }}\n{amount}'
        Scenario.parse(f"{first}\n{flow}")
    for line in (sizes + signals).splitlines():
        text = first.replace('rate = "1Mbit"\npacket = "200B"', f'packet = "200B"\n{line}')
        if line.startswith("packet"):
            text = first.replace('packet = "200B"', line)
        assert text != first
        Scenario.parse(text)


def test_the_example_of_named_columns_reads_a_drive(tmp_path: Path) -> None:
    """1 s at 5 Mbit/s, then 7 until the end of the 10 s: 6.8 on average."""
    (tmp_path / "drive.csv").write_text("when,dl_mbps\n2026-01-31 11:00:00,5\n2026-01-31 11:00:01,7\n")
    link = re.findall(r"```toml\n\[link\]\n(trace = .*?)```", PAGE, flags=re.DOTALL)[0]
    scenario = Scenario.parse(f'duration = "10s"\n[link]\n{link}' + LOADED, path=tmp_path / "x.toml")
    assert 'nominal = "6.8Mbit"' in scenario.resolved


LOADED = """\
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
class = "all"
kind = "greedy"
"""


@pytest.mark.parametrize(
    ("link", "wire_bytes"),
    [
        ({}, 100),
        ({"overhead": "25B"}, 125),
        ({"mpu": "200B"}, 200),
        ({"overhead": "-50B"}, 50),
        ({"overhead": "25B", "mpu": "84B"}, 125),
        ({"overhead": "-50B", "mpu": "64B"}, 64),
    ],
)
def test_limit_bytes_counts_overhead_and_mpu(link: dict[str, str], wire_bytes: int) -> None:
    """As the page says: a queue that is not served holds as many packets as fit with their length on the wire."""
    page = (REPOSITORY / "docs/reference/scenarios.md").read_text()
    assert "bytes the queue holds, counted as on the wire: each packet with the link's `overhead`, and as `mpu`" in page
    scenario: dict[str, Any] = {
        "duration": "10s",
        "link": {"rate": {"steps": [["0s", "0bit"], ["9.5s", "1Mbit"]]}, "nominal": "1Mbit", **link},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all", "limit_bytes": "1000B"}],
        "flow": [{"class": "all", "kind": "cbr", "rate": "80kbit", "packet": "100B"}],
    }
    # The capacity comes back in the last bin only.
    held = linkweir.run(scenario).rows("series")[8]["backlog_pkts"]
    assert held == 1000 // wire_bytes
    scenario["class"][0]["limit_bytes"] = f"{wire_bytes - 1}B"
    with pytest.raises(ScenarioError, match=f"{wire_bytes}B on the wire"):
        Scenario.from_dict(scenario)


def test_a_dish_that_answers_only_to_grpc_web_has_its_port_on_the_page() -> None:
    """Since June 2026 some dishes answer on port 9201 with gRPC-Web only, which grpcurl cannot speak."""
    (after,) = PAGE.split("grpcurl needs the dish's port 9200.")[1:]
    paragraph = " ".join(after.split("\n\n")[0].split())
    assert "192.168.100.1:9200 SpaceX.API.Device.Device/Handle" in PAGE
    assert "answer only on port 9201, with gRPC-Web, which grpcurl cannot speak" in paragraph
    assert "a client for gRPC-Web, to `http://192.168.100.1:9201`" in paragraph
