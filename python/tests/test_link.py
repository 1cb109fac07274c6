# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir.Link`: a link that a program drives. Expected times are by hand, or those of a run of the same packets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import linkweir
from linkweir import Link, ScenarioError

MS = 1_000_000


def strict(**changes: Any) -> dict[str, Any]:
    """1500 bytes take 1 ms, and 5 ms to the other end; voice goes first."""
    return {
        "link": {"rate": "12Mbit", "delay": "5ms"},
        "scheduler": {"policy": "strict"},
        "class": [{"name": "voice"}, {"name": "rest", "limit": "2p"}],
        **changes,
    }


def test_packets_arrive_in_the_policys_order_with_what_they_carry() -> None:
    link = Link(strict())
    carried = [object() for _ in range(3)]
    assert link.classes == ["voice", "rest"]
    assert link.next_ns() is None
    assert link.end_ns == 3_600_000 * MS
    for class_name, payload in zip(("rest", "rest", "voice"), carried, strict=True):
        link.send(0, class_name, 1500, payload)
    found = []
    while (now_ns := link.next_ns()) is not None:
        while packet := link.receive(now_ns):
            found.append(packet)
    assert [packet.payload for packet in found] == [carried[0], carried[2], carried[1]]
    assert [packet.arrived_ns // MS for packet in found] == [6, 7, 8]
    assert [packet.left_ns // MS for packet in found] == [0, 1, 2]
    assert found[0][1:] == ("rest", 1500, 0, 0, 6 * MS, False)
    assert link.counts("rest") == {"sent_pkts": 2, "arrived_pkts": 2, "marked_pkts": 0, "dropped_pkts": 0}


def test_what_has_no_room_comes_back() -> None:
    link = Link(strict())
    for number in range(4):
        link.send(7, "rest", 1500, number)
    assert link.dropped(7) == (3, "rest", 1500, 7, 7, "limit")
    assert link.dropped(7) is None
    assert link.receive(6 * MS) is None
    assert link.receive(6 * MS + 7) is not None


def test_what_cannot_be_sent_is_an_error() -> None:
    link = Link(strict())
    with pytest.raises(ValueError, match="no class has the name 'best'; there are voice, rest"):
        link.send(0, "best", 1500)
    with pytest.raises(ValueError, match=r"1 \.\. 1048575 bytes"):
        link.send(0, "rest", 0)
    with pytest.raises(ValueError, match="the link's time is over"):
        link.send(link.end_ns, "rest", 1500)
    with pytest.raises(ScenarioError, match="needs a unit"):
        Link(strict(link={"rate": "12"}))
    with pytest.raises(ScenarioError, match="flow"):
        linkweir.run({"duration": "1s", **strict()})


def test_wrong_numbers_are_errors_of_the_value() -> None:
    link = Link(strict())
    for now_ns, length, flow in (-1, 1, 0), (2**64, 1, 0), (0, -1, 0), (0, 2**32, 0), (0, 1, -1), (0, 1, 2**32):
        with pytest.raises(ValueError, match=r"now_ns must be 0 \.\. 2\*\*64 - 1, length"):
            link.send(now_ns, "rest", length, flow=flow)
    for call in link.receive, link.dropped:
        with pytest.raises(ValueError, match=r"now_ns must be 0 \.\. 2\*\*64 - 1"):
            call(-1)
    with pytest.raises(TypeError):
        link.send(0.5, "rest", 1500)  # type: ignore[arg-type]
    assert link.counts("rest")["sent_pkts"] == 0


def test_a_refused_packet_does_not_move_the_clock() -> None:
    link = Link(strict())
    with pytest.raises(ValueError, match="the link's time is over"):
        link.send(link.end_ns, "rest", 1500)
    link.send(0, "rest", 1500)
    found = link.receive(6 * MS)
    assert found is not None
    assert found.sent_ns == 0


def test_l4s_packets_are_sorted_and_marked() -> None:
    link = Link(strict(**{"class": [{"name": "voice", "level": 0}, {"name": "rest", "level": 1, "flows": "dualpi2"}]}))
    for payload, l4s in ("a", False), ("b", False), ("c", True), ("d", True):
        link.send(0, "rest", 1500, payload, l4s=l4s)
    found = []
    while (packet := link.receive(50 * MS)) is not None:
        found.append((packet.payload, packet.marked))
    # Each takes 1 ms, so "c" waits exactly as long as it may unmarked, and "d" longer.
    assert found == [("a", False), ("c", False), ("d", True), ("b", False)]


def test_dropped_packets_can_be_forgotten() -> None:
    link = Link(strict())
    link.forget_dropped()
    for number in range(4):
        link.send(0, "rest", 1500, number)
    assert link.dropped(0) is None
    assert link.counts("rest")["dropped_pkts"] == 1


POLICIES = """
ask = None


class Asks:
    def __init__(self, view, params, classes):
        pass

    def pick(self, view):
        if ask is not None:
            ask()
        return next((q for q, queue in enumerate(view.queues) if queue.ready), None)


class Fails(Asks):
    def pick(self, view):
        if view.now_ns > 0:
            raise ArithmeticError("no more")
        return super().pick(view)
"""


def brought(folder: Path, name: str) -> Link:
    (folder / "policies.py").write_text(POLICIES)
    return Link(strict(scheduler={"policy": {"python": f"{folder / 'policies.py'}:{name}"}}))


def test_a_policy_that_asks_its_own_link_gets_an_error(tmp_path: Path) -> None:
    """It would wait for itself. In a process of its own, so that a test that waits for ever ends."""
    (tmp_path / "policies.py").write_text(
        POLICIES.replace("ask = None", "import __main__\n\n\ndef ask():\n    __main__.link.next_ns()")
    )
    program = f"""
import linkweir
link = linkweir.Link({strict(scheduler={"policy": {"python": str(tmp_path / "policies.py") + ":Asks"}})!r})
try:
    link.send(0, "rest", 1500)
except linkweir.RunError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "RuntimeError: the link is in use" in done.stdout


def test_a_link_whose_policy_failed_says_so_each_time(tmp_path: Path) -> None:
    link = brought(tmp_path, "Fails")
    link.send(0, "rest", 1500)
    link.send(0, "rest", 1500)
    for call in (
        lambda: link.receive(9 * MS),
        link.next_ns,
        lambda: link.dropped(9 * MS),
        lambda: link.send(9 * MS, "rest", 1500),
        lambda: link.counts("rest"),
    ):
        with pytest.raises(linkweir.RunError, match="no more"):
            call()
    assert link.classes == ["voice", "rest"]


def test_it_has_one_link() -> None:
    two = linkweir.Scenario.load(Path(__file__).parents[2] / "scenarios" / "parking-lot.toml")
    with pytest.raises(ScenarioError, match="link: must be one link here; write one"):
        Link(two)
    with pytest.raises(ScenarioError, match="link: must be one link here; write one"):
        Link({"link": [{"name": name, **strict()["link"]} for name in "ab"]})


def test_a_run_does_the_same_to_the_same_packets(tmp_path: Path) -> None:
    """Over losses, with other traffic: when each packet left its queue, and when and how it ended."""
    packets = [(at * 777_777 + 13, 200 + at * 37 % 1200) for at in range(900)]
    scenario = strict(
        duration="1s",
        seed=7,
        link={"rate": "9Mbit", "delay": "5ms", "loss": {"mean": "5%", "burst": "3p"}},
        flow=[{"name": "other", "class": "voice", "kind": "poisson", "rate": "2Mbit", "packet": "300B"}],
    )
    (tmp_path / "packets.csv").write_text("t_s,bytes\n" + "".join(f"{ns / 1e9:.9f},{size}\n" for ns, size in packets))
    replay = {"name": "ours", "class": "rest", "kind": "replay", "file": str(tmp_path / "packets.csv")}
    result = linkweir.run({**scenario, "log": "packets", "flow": [*scenario["flow"], replay]})
    expected: dict[int, list[tuple[int, str]]] = {}
    for row in result.rows("packets"):
        if row["flow"] == "ours" and row["event"] in ("delivered", "dropped"):
            expected.setdefault(row["number"], []).append((row["t_ns"], row["reason"]))
    link = Link(scenario)
    found: dict[int, list[tuple[int, str]]] = {}
    for number, (at_ns, size) in enumerate(packets):
        link.send(at_ns, "rest", size, number)
    while packet := link.receive(10**9 - 1):
        found.setdefault(packet.payload, []).append((packet.arrived_ns, ""))
    while lost := link.dropped(10**9 - 1):
        found.setdefault(lost.payload, []).append((lost.dropped_ns, lost.reason))
    assert found == expected
    assert {reason for ends in found.values() for _, reason in ends} == {"", "limit", "link"}
