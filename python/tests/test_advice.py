# SPDX-License-Identifier: BSD-3-Clause
"""Every advice of every warning, followed: each alone removes its warning, over many links, policies and traffic."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, SCENARIOS

import linkweir as lw
from linkweir.sweeps import keys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Keys = dict[str, Any]


def loop(period: str, *steps: tuple[str, str]) -> Keys:
    return {"rate": {"steps": [list(step) for step in steps], "end": "loop", "period": period}, "nominal": "6Mbit"}


LINKS: dict[str, Keys] = {
    "constant": {"rate": "2Mbit", "nominal": "2Mbit"},
    "slow": {"rate": "300kbit", "nominal": "300kbit", "overhead": "38B", "mpu": "84B"},
    "fades": loop("10s", ("0s", "6Mbit"), ("6s", "300kbit")),
    "outages": loop("10s", ("0s", "6Mbit"), ("7s", "0bit")),
    "short outages": loop("3s", ("0s", "6Mbit"), ("1.5s", "0bit")),
    "drops once": {"rate": {"steps": [["0s", "6Mbit"], ["12s", "400kbit"]]}, "nominal": "6Mbit"},
    "cosine": {"rate": {"mean": "3Mbit", "amplitude": 0.95, "period": "9s"}, "nominal": "3Mbit"},
}
TRAFFIC: dict[str, list[Keys]] = {
    "tcp": [{"kind": "tcp", "count": 2}],
    "one window": [{"kind": "tcp", "window": "400p"}],
    "overload": [{"kind": "cbr", "rate": "3.5Mbit"}],
    "poisson": [{"kind": "poisson", "rate": "1.6Mbit", "packet": "700B"}],
    "calls in step": [{"kind": "voice", "codec": "g711", "count": 40}],
    "in step": [{"kind": "cbr", "rate": "1Mbit", "count": 3}, {"kind": "cbr", "rate": "500kbit"}],
    "greedy": [{"kind": "greedy", "backlog": "300p"}],
    "bursts": [{"kind": "onoff", "rate": "6Mbit", "on": "3s", "off": "3s"}, {"kind": "tcp"}],
    "files": [{"kind": "transfers", "arrivals": {"every": "300ms"}, "size": "300kB", "concurrent": 3}],
}
URGENT: Keys = {"kind": "cbr", "rate": "1.2Mbit", "packet": "400B"}
POLICIES: dict[str, tuple[Keys, Keys]] = {
    "fifo": ({"policy": "fifo"}, {}),
    "strict": ({"policy": "strict"}, {}),
    "drr": ({"policy": "drr"}, {}),
    "pss": ({"policy": "pss"}, {"level": 1, "low_level": 3, "rate": "1.5Mbit"}),
}


def generated() -> Iterator[tuple[str, Keys]]:
    """Small scenarios: each link with each traffic, under policies and limits in turn."""
    choices = itertools.cycle(itertools.product(POLICIES, ["1000p", "40p"]))
    for (link, link_keys), (traffic, flows) in itertools.product(LINKS.items(), TRAFFIC.items()):
        policy, limit = next(choices)
        scheduler, of_class = POLICIES[policy]
        if link == "slow" and policy == "pss":
            of_class = of_class | {"rate": "150kbit"}
        yield (
            f"{link}, {traffic}, {policy}, {limit}",
            {
                "duration": "30s",
                "warmup": "3s",
                "interval": "500ms",
                "link": link_keys | {"delay": "20ms"},
                "scheduler": scheduler,
                "class": [
                    {"name": "urgent", "limit": "100p"} | ({"level": 0} if policy == "pss" else {}),
                    {"name": "rest", "limit": "500p" if traffic == "greedy" else limit, **of_class},
                ],
                "flow": [
                    {"class": "urgent", "name": "urgent", **URGENT},
                    *({"class": "rest", "name": f"f{i}", **flow} for i, flow in enumerate(flows)),
                ],
            },
        )


def pss(link: Keys, ef: Keys, **af: Any) -> Keys:
    """Voice before a class with a reservation, before the rest."""
    return {
        "duration": "60s",
        "warmup": "10s",
        "link": link,
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "ef", "level": 0, "limit": "100p"},
            {"name": "af", "level": 1, "low_level": 3, "rate": "5Mbit", "limit": "50p", **af},
            {"name": "cs0", "level": 2, "limit": "50p"},
        ],
        "flow": [
            {"class": "ef", "name": "ef", "kind": "cbr", **ef},
            {"class": "af", "name": "af", "kind": "greedy"},
            {"class": "cs0", "name": "cs0", "kind": "greedy"},
        ],
    }


def one(scheduler: Keys, flow: Keys, link: Keys, **of_class: Any) -> Keys:
    """One class and one flow."""
    return {
        "duration": "20s",
        "link": link,
        "scheduler": scheduler,
        "class": [{"name": "all", **of_class}],
        "flow": [{"class": "all", "name": "flow", **flow}],
    }


FADES = {"rate": {"steps": [["0s", "20Mbit"], ["10s", "5Mbit"]], "end": "loop", "period": "20s"}}
LONG_AND_SHORT = {
    "rate": {"steps": [["0s", "20Mbit"], ["10s", "2Mbit"], ["20s", "9Mbit"], ["24s", "2Mbit"], ["32s", "20Mbit"]]}
}
SLOW = {"kind": "cbr", "rate": "100kbit"}
TEN = {"rate": "10Mbit"}
FIFO = {"policy": "fifo"}
BY_HAND: dict[str, tuple[str, Keys]] = {
    "starved": ("reservation_starved", pss({"rate": "20Mbit"}, {"rate": "17Mbit"})),
    "starved by more than the link": ("reservation_starved", pss({"rate": "20Mbit"}, {"rate": "18Mbit"}, memory="0s")),
    "starved share": ("reservation_starved", pss({"rate": "20Mbit"}, {"rate": "17Mbit"}, rate="0bit", share="25%")),
    "starved at times": ("reservation_starved", pss(FADES, {"rate": "9Mbit"})),
    "slow link": ("reservation_link", pss({"rate": "4.5Mbit", "nominal": "20Mbit"}, {"rate": "1kbit"})),
    "slow and fading link": (
        "reservation_link",
        pss({"rate": FADES["rate"], "nominal": "20Mbit"}, {"rate": "1kbit"}, rate="15Mbit"),
    ),
    "memory": ("reservation_memory", pss(FADES, {"rate": "4Mbit"})),
    "memory, two fades in a row": ("reservation_memory", pss(LONG_AND_SHORT, {"rate": "1Mbit"})),
    "memory by lr": ("reservation_memory", pss(FADES, {"rate": "4Mbit"}, lr="500kbit")),
    "memory by lr and lm": ("reservation_memory", pss(FADES, {"rate": "4Mbit"}, lr="500kbit", lm="900kbit")),
    "mtu of pss": ("mtu", pss({"rate": "20Mbit"}, {"rate": "1Mbit"}, mtu="600B")),
    "mtu of codel": ("mtu", one({"policy": "codel", "mtu": "600B"}, SLOW, TEN)),
    "mtu of fq_codel": ("mtu", one({"policy": "fq_codel", "mtu": "600B"}, SLOW, TEN)),
    "a standing queue without drops": ("delay", one(FIFO, {"kind": "tcp", "window": "300p"}, {"rate": "2Mbit"})),
    "overhead": ("offered", one(FIFO, {"kind": "cbr", "rate": "9.8Mbit"}, TEN | {"overhead": "60B"}, limit="100p")),
    "a load over time": (
        "offered",
        one(FIFO, {"kind": "poisson", "rate": {"mean": "12Mbit", "amplitude": 0.5, "period": "4s"}}, TEN),
    ),
    "calls": ("in_step", one(FIFO, {"kind": "voice", "codec": "g711", "count": 20}, {"rate": "1.2Mbit"}, limit="10p")),
    "copies of a class": (
        "offered",
        one({"policy": "drr"}, {"kind": "cbr", "rate": "700kbit", "count": 4}, {"rate": "2Mbit"}, count=4),
    ),
    "greedy": ("delay", one(FIFO, {"kind": "greedy", "backlog": "50p"}, {"rate": "200kbit"})),
    "fq_codel below": ("delay", one(FIFO, {"kind": "tcp", "count": 9}, {"rate": "300kbit"}, flows="drr")),
    "four equal flows": ("in_step", one(FIFO, {"kind": "cbr", "rate": "3Mbit", "count": 4}, TEN, limit="20p")),
    "a burst of flows on a link that carries them": (
        "in_step",
        one(FIFO, {"kind": "cbr", "rate": "250kbit", "count": 20}, TEN, limit="10p"),
    ),
    "separate flows with multiples of an interval": (
        "in_step",
        one(FIFO, {"kind": "cbr", "rate": "6Mbit"}, TEN, limit="20p")
        | {
            "flow": [
                {"class": "all", "name": "a", "kind": "cbr", "rate": "6Mbit"},
                {"class": "all", "name": "b", "kind": "cbr", "rate": "1.5Mbit", "packet": "750B"},
                {"class": "all", "name": "c.d", "kind": "cbr", "rate": "4.5Mbit"},
            ]
        },
    ),
    "flows in step in copies of a class": (
        "in_step",
        one({"policy": "drr"}, {"kind": "cbr", "rate": "3Mbit", "count": 8}, {"rate": "20Mbit"}, limit="20p", count=2),
    ),
    "refused": (
        "refused",
        one(
            FIFO,
            {"kind": "transfers", "arrivals": {"every": "100ms"}, "size": "500kB", "concurrent": 2},
            TEN,
            limit="50p",
        ),
    ),
}

SHIPPED = ("lte-drive", "lte-home", "leo-voice", "pds", "voice-admit", "geo-beam-rain")


def shipped(name: str) -> Keys:
    """A shipped scenario, shortened."""
    scenario = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
    if "trace" in scenario["link"]:
        scenario["link"]["trace"] = str(SCENARIOS / scenario["link"]["trace"])
    if name.startswith("lte"):
        scenario["duration"] = "120s"
    return scenario


def short_trace(folder: Path) -> Keys:
    trace = folder / "trace.csv"
    trace.write_text("t_s,capacity_bps\n0,10e6\n5,8e6\n")
    return one({"policy": "fifo"}, SLOW, {"trace": str(trace)})


def group(where: str) -> str:
    """The class or flow of a warning without the number of its copy."""
    return where.rsplit("-", 1)[0] if where.rsplit("-", 1)[-1].isdigit() else where


def followed(scenario: Keys) -> tuple[list[str], list[str]]:
    """The kinds of warnings whose advice was followed, and the advice that did not help."""
    result = lw.run(scenario)
    resolved = tomllib.loads(result.scenario.resolved)
    if "trace" in resolved["link"]:
        resolved["link"]["trace"] = scenario["link"]["trace"]
    tried, failed = [], []
    for finding in result.warnings:
        assert finding.kind != "unjudged", finding
        for advice in finding.advice:
            changed = keys.put(resolved, {keys.split(key): value for key, value in advice.items()})
            after = lw.run(changed).warnings
            left = [
                found for found in after if found.kind == finding.kind and group(found.where) == group(finding.where)
            ]
            tried.append(finding.kind)
            if left:
                failed.append(f"{finding} -- {advice} -- {left[0]}")
    return tried, failed


GENERATED = dict(generated())
_EVERY = 4
"""Of the generated scenarios, the normal run takes one in so many."""


def test_each_rule_has_scenarios_of_which_the_advice_is_followed() -> None:
    page = (REPOSITORY / "docs/reference/diagnosis.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert documented - {"unjudged"} == {kind for kind, _ in BY_HAND.values()} | {"trace"}
    in_the_normal_run = len(list(GENERATED)[::_EVERY]) + len(BY_HAND) + len(SHIPPED)
    assert in_the_normal_run >= 40


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if n % _EVERY else []) for n, name in enumerate(GENERATED)]
)
def test_every_advice_removes_its_warning(name: str) -> None:
    assert followed(GENERATED[name])[1] == []


@pytest.mark.parametrize("name", BY_HAND)
def test_every_advice_removes_its_warning_where_a_rule_was_provoked(name: str) -> None:
    kind, scenario = BY_HAND[name]
    tried, failed = followed(scenario)
    assert kind in tried
    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_every_advice_removes_its_warning_in_shipped_scenarios(name: str) -> None:
    tried, failed = followed(shipped(name))
    assert tried
    assert failed == []


def test_the_advice_about_a_short_trace_removes_its_warning(tmp_path: Path) -> None:
    assert followed(short_trace(tmp_path)) == (["trace"], [])


def test_jitter_makes_the_losses_of_flows_in_step_even() -> None:
    scenario = BY_HAND["four equal flows"][1]
    (finding,) = (found for found in lw.run(scenario).warnings if found.kind == "in_step")
    # 12 Mbit/s are offered to 10: two of twelve packets are lost, all of one flow, which sends three of the twelve.
    assert finding.figures["loss_worst"] == pytest.approx(2 / 3, abs=0.01)
    assert finding.figures["loss_mean"] == pytest.approx(1 / 6, abs=0.01)
    scenario["flow"][0] |= {"jitter": finding.advice[0]["flow.flow.jitter"]}
    parts = [row["dropped_limit_pkts"] / row["arrived_pkts"] for row in lw.run(scenario).rows("flows")]
    assert all(part == pytest.approx(1 / 6, rel=0.15) for part in parts)


@pytest.mark.parametrize(
    "flow",
    [
        {"kind": "onoff", "rate": "6Mbit", "on": "500ms", "off": "500ms", "count": 4},
        {"kind": "voice", "codec": "g711", "talkspurts": True, "count": 400},
        {"kind": "poisson", "rate": "3Mbit", "count": 4},
        {"kind": "cbr", "rate": "3Mbit", "count": 4, "packet": {"min": "500B", "max": "1500B"}},
    ],
    ids=lambda flow: flow["kind"],
)
def test_flows_that_change_their_phases_are_not_in_step(flow: Keys) -> None:
    found = [finding.kind for finding in lw.run(one(FIFO, flow, TEN, limit="20p")).warnings]
    assert found == ["offered"]


def test_a_limit_is_advised_where_one_suffices_and_it_costs_little() -> None:
    """The link fades, but the queue is what makes packets wait: a shorter one keeps the rate."""
    scenario = shipped("lte-drive")
    result = lw.run(scenario)
    (finding,) = (found for found in result.warnings if found.where == "class cs0")
    limit = finding.advice[0]["class.cs0.limit"]
    scenario["class"][2]["limit"] = limit
    before, after = result.rows("classes")[2], lw.run(scenario).rows("classes")[2]
    assert before["delay_p95_s"] > 1 >= after["delay_p95_s"]
    assert after["rate_bps"] > 0.95 * before["rate_bps"]


def test_a_standing_queue_of_one_window_gets_a_limit() -> None:
    # 300 segments of 1500 bytes are 1.8 s at 2 Mbit/s, and nothing is dropped.
    (finding,) = lw.run(BY_HAND["a standing queue without drops"][1]).warnings
    (advice,) = finding.advice
    # 2 Mbit/s are 166.7 packets/s.
    assert 100 <= int(advice["class.all.limit"].removesuffix("p")) <= 166


def test_no_page_and_no_rule_says_that_a_smaller_limit_would_not_help() -> None:
    """A warning said so wherever a link fades or a queue stands, and there a smaller limit cuts the delay: of 2.02 s on
    lte-drive 50 packets in place of 200 leave 0.34 s.
    """
    folders = [REPOSITORY / name for name in ("docs", "python/linkweir", "scenarios", "crates")]
    kinds = (".md", ".ipynb", ".py", ".rs")
    pages = [path for folder in folders for path in folder.rglob("*") if path.suffix in kinds]
    pages += [path for path in REPOSITORY.glob("*.md") if path.name != "CHANGELOG.md"]
    assert REPOSITORY / "README.md" in pages
    assert REPOSITORY / "docs/tutorial/own-trace.md" in pages
    said = re.compile(r"which\s+a\s+smaller\s+limit\s+does\s+not\s+change|link\s+or\s+its\s+service\s+pauses")
    assert [str(path) for path in pages if said.search(path.read_text(encoding="utf-8"))] == []
