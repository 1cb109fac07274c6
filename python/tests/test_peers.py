# SPDX-License-Identifier: BSD-3-Clause
"""Peers: the kernel's own queueing disciplines in comparisons. What needs a kernel builds it (minutes, once)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from command import REPOSITORY, linkweir_process

import linkweir
from linkweir.comparison.plan import notes_of_peer
from linkweir.comparison.virtual import VirtualTime
from linkweir.fault import PlanError, ScenarioError
from linkweir.lab import LaboratoryError, collect, guest, host, kernel, peers
from linkweir.lab.experiment import Laboratory
from linkweir.lab.world import ZERO_NS, World
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps.job import Job, identity, work

SCENARIOS = REPOSITORY / "scenarios"


def commands(scenario: str, peer: str) -> list[str]:
    return list(peers.queues(Scenario.load(SCENARIOS / f"{scenario}.toml"), peer).commands)


# --- Without a kernel -----------------------------------------------------------------------------------------------


def test_htb_guarantees_urgent_load_and_reservations_and_leaves_the_rest() -> None:
    """geo: voice sends 10 of 20 Mbit/s and gets a quarter more, af has 5 reserved, so 2.5 are left."""
    lines = [line for line in commands("geo", "htb+fq_codel") if line.startswith("class")]
    assert [re.findall(r"classid (\S+) htb rate (\S+) ceil (\S+)", line)[0] for line in lines] == [
        ("10:ff", "20mbit", "20mbit"),
        ("10:1", "12500kbit", "20mbit"),
        ("10:2", "5mbit", "20mbit"),
        ("10:3", "2500kbit", "20mbit"),
    ]
    assert [line.split("prio ")[1].split()[0] for line in lines[1:]] == ["0", "1", "2"]


def test_ets_shares_what_urgent_classes_leave() -> None:
    """geo: of the 10 Mbit/s that voice leaves, af has 5 reserved. fade: 20 - 0.32 - 3 Mbit/s are left for the rest."""
    assert "ets bands 3 strict 1 quanta 1514 1514 " in commands("geo", "ets")[0]
    assert f"quanta 1514 {round(1514 * 16.68 / 3)} " in commands("fade", "ets")[0]
    slower = peers.queues(Scenario.load(SCENARIOS / "fade.toml"), "ets").changes[0]
    assert slower[0] == 20_000_000_000
    assert f"quanta {round(1514 * 3 / 0.68)} 1514 " in slower[1]


def test_no_turn_of_ets_is_longer_than_60_kilobytes_where_reservations_take_all() -> None:
    """Of 4 Mbit/s voice takes 1. af has 5 reserved and gets 3, cs0 gets 8 kbit/s: that ratio makes turns of 565 kB."""
    scenario = busy()
    scenario["class"][1]["rate"] = "5Mbit"
    scenario["link"] = {"rate": {"steps": [["0s", "10Mbit"], ["4s", "4Mbit"]]}}
    slower = peers.queues(Scenario.from_dict(scenario), "ets").changes[0][1]
    assert "bands 3 strict 1 quanta 60000 1514 " in slower


def test_the_round_trip_is_told_where_it_is_longer_than_what_peers_assume() -> None:
    assert commands("geo", "cake") == [
        "qdisc add dev r1 parent 1:1 handle 10: cake bandwidth 20mbit diffserv4 rtt 500ms"
    ]
    assert commands("fade", "cake")[0].endswith("rtt 100ms")
    assert any(line.endswith("fq_codel interval 500ms target 25ms") for line in commands("geo", "htb+fq_codel"))


def test_peers_with_a_rate_follow_the_capacity_and_keep_it_in_an_outage() -> None:
    fade = Scenario.load(SCENARIOS / "fade.toml")
    told = [(at_ns, line.split("bandwidth ")[1]) for at_ns, line in peers.queues(fade, "cake").changes]
    assert told == [(20_000_000_000, "4mbit"), (40_000_000_000, "20mbit")]
    htb = [line for at_ns, line in peers.queues(fade, "htb+fq_codel").changes if at_ns == 20_000_000_000]
    rates = [re.findall(r" rate (\S+) ceil (\S+)", line)[0] for line in htb]
    assert rates == [("4mbit", "4mbit"), ("400kbit", "4mbit"), ("3mbit", "4mbit"), ("600kbit", "4mbit")]
    assert peers.queues(fade, "fq_pie").changes == []
    assert peers.queues(Scenario.load(SCENARIOS / "5g-blockage.toml"), "cake").changes == []


def test_code_points_tell_the_classes_apart_and_keep_what_a_class_matches() -> None:
    base = {"duration": "1s", "link": {"rate": "10Mbit"}, "scheduler": {"policy": "pss"}}
    classes = [
        {"name": "a", "level": 0},
        {"name": "b", "level": 1, "match": [{"dscp": "EF"}]},
        {"name": "c", "level": 2, "low_level": 6, "rate": "1Mbit"},
        {"name": "d", "level": 3, "low_level": 7, "rate": "1Mbit"},
        {"name": "e", "level": 4},
        {"name": "f", "level": 5, "match": [{"dscp": "CS1"}]},
    ]
    flows = [{"class": entry["name"], "kind": "cbr", "rate": "100kbit"} for entry in classes]
    task = peers.task_of(Scenario.from_dict({**base, "class": classes, "flow": flows}))
    assert [one.part for one in task.classes] == ["urgent", "urgent", "reserved", "reserved", "rest", "rest"]
    assert [one.mark for one in task.classes] == [44, 46, 34, 36, 0, 8]


def counting(*, ecn: bool = False) -> dict[str, Any]:
    """A download of DCTCP, whose packets are L4S ones, and one of CUBIC."""
    return {
        "duration": "9s",
        "warmup": "3s",
        "interval": "3s",
        "link": {"rate": "20Mbit", "delay": "10ms", "return_delay": "10ms"},
        "scheduler": {"policy": "dualpi2"},
        "class": [{"name": "l4s", "l4s": "yes"}, {"name": "classic"}],
        "flow": [{"class": "l4s", "kind": "tcp", "cc": "dctcp"}, {"class": "classic", "kind": "tcp", "ecn": ecn}],
    }


def test_l4s_classes_are_in_the_queue_of_dualpi2_that_marks_them() -> None:
    lines = peers.queues(Scenario.from_dict(counting()), "dualpi2").commands
    assert lines[0] == "qdisc add dev r1 parent 1:1 handle 10: dualpi2"
    assert [line.rpartition(" ")[2] for line in lines[1:]] == ["10:1"]


def test_classes_of_senders_that_count_marks_are_there_too_whatever_the_scenarios_policy() -> None:
    keys = {**counting(), "scheduler": {"policy": "drr"}, "class": [{"name": "l4s"}, {"name": "classic"}]}
    found = peers.queues(Scenario.from_dict(keys), "dualpi2").commands
    assert found == peers.queues(Scenario.from_dict(counting()), "dualpi2").commands


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        ("strict", ["urgent", "rest"]),
        ("pss", ["urgent", "rest"]),
        *((name, ["rest"] * 2) for name in ("fifo", "pds", "drr")),
    ],
)
def test_classes_of_a_policy_without_levels_are_equals(policy: str, parts: list[str]) -> None:
    """Their order says nothing: no operator would let the first one starve the others."""
    scenario = {
        "duration": "1s",
        "link": {"rate": "10Mbit"},
        "scheduler": {"policy": policy},
        "class": [{"name": "bulk"}, {"name": "voice"}],
        "flow": [{"class": "bulk", "kind": "cbr", "rate": "1Mbit"}],
    }
    task = peers.task_of(Scenario.from_dict(scenario))
    assert [one.part for one in task.classes] == parts
    assert len({one.rank for one in task.classes}) == len(set(parts))


def test_a_run_of_the_laboratory_is_another_one_and_no_other_executor_does_it() -> None:
    assert identity("text", 1, ()) == identity("text", 1, (), ())
    assert len({identity("text", 1, (), place) for place in ((), ("virtual", "a"), ("virtual", "b"), ("v", "a"))}) == 4
    answer = work(Job(1, "", "", 1, (), place=("virtual time", "", "cake")))
    assert answer.rows is None
    assert answer.error == "is a run in virtual time, which this executor cannot do"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policies", "pss,cake"], "cake is a queueing discipline of the kernel: --where virtual runs it"),
        (["--policies", "pss", "--where", "moon"], "must be one of simulator, virtual"),
        (["--policies", "pss", "--where", "virtual", "--kernel", "5.4"], "must be one of 6.12, newest"),
        (["--policies", "pss", "--where", "virtual", "--dask", "tcp://a:1"], "leave it out with --where virtual"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: list[str], said: str) -> None:
    done = linkweir_process("compare", str(SCENARIOS / "geo.toml"), *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policies", "pss,caek"], "no policy is called caek"),
        (["--policies", "pss", "--promise", "ef.speed=1"], "there is no measure speed"),
        (["--policies", "pss", "--traces", "missing.csv"], "missing.csv: cannot be read"),
    ],
)
def test_what_is_misspelt_is_refused_before_a_kernel_is_built(words: list[str], said: str, tmp_path: Path) -> None:
    """Here none can be built, for want of a compiler; a plan without faults says so."""
    command = ["compare", str(SCENARIOS / "geo.toml"), "--where", "virtual", "--out", str(tmp_path / "out")]
    nothing = os.environ | {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = linkweir_process(*command, *words, env=nothing)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "no kernel can be built" in linkweir_process(*command, "--policies", "pss", env=nothing).stderr


def test_a_name_that_a_policy_and_a_peer_share_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --where virtual it is the kernel's, and the notes of the comparison say so."""
    monkeypatch.setitem(cast("dict[str, peers.Peer]", peers.PEERS), "codel", peers.PEERS["fq_pie"])
    with pytest.raises(PlanError) as refused:
        linkweir.compare(SCENARIOS / "geo.toml", ["moon"], where="virtual")
    names = re.findall(r"[\w+]+", str(refused.value).split("there are ")[1])
    assert (names.count("codel"), names.count("cake")) == (1, 1)
    assert notes_of_peer("codel", VirtualTime())[0] == "the kernel's own; without --where virtual, codel is Linkweir's"
    assert not any("Linkweir" in note for note in notes_of_peer("cake", VirtualTime()))


@pytest.mark.parametrize("name", ["missing", "file", "empty"])
def test_a_tree_of_the_kernel_that_is_not_there_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("LINUX_SOURCE", str(tmp_path / name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(LaboratoryError, match=rf"LINUX_SOURCE = .*{name}: is no unpacked kernel tree; name one"):
        kernel.build("newest")


def test_a_run_of_more_packets_than_can_be_noted_is_refused_before_it_begins() -> None:
    scenario = busy() | {"duration": "100s", "link": {"rate": "1Gbit"}}
    message = r"^duration = 100 s: up to 20,\d{3},\d{3} packets pass, .* note 4,000,000; use at most 19 s, or a lower"
    with pytest.raises(ScenarioError, match=message):
        peers.under_peer(Scenario.from_dict(scenario), "cake", every_packet=True)
    peers.under_peer(Scenario.from_dict(scenario | {"duration": "19s"}), "cake", every_packet=True)


def test_the_buckets_of_delays_are_the_simulators() -> None:
    """The bounds that the simulator has used for its own delays must be bounds here."""
    scenario = {
        "duration": "2s",
        "link": {"rate": "7Mbit"},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all"}],
        "flow": [{"class": "all", "kind": "poisson", "rate": "6.9Mbit"}],
    }
    for row in linkweir.run(scenario).delays.to_pylist():
        for bound_s in (row["lower_s"], row["upper_s"] - 1e-9):
            lower, upper, _ = collect.buckets(np.array([round(1e9 * bound_s)]))
            assert [lower[0] / 1e9, upper[0] / 1e9] == [row["lower_s"], row["upper_s"]]


# --- In a kernel ----------------------------------------------------------------------------------------------------


def made(variant: str) -> Laboratory:
    why = guest.why_not() or (None if kernel.built(variant) else kernel.why_not(variant))
    if why is not None:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    try:
        return Laboratory(variant, every_packet=True, say=lambda text: print(text, file=sys.stderr))
    except LaboratoryError as error:
        if variant == "newest" and "no sources of Linux" in str(error):
            pytest.skip(f"NO RUN ON THE NEWEST KERNEL: {error}")
        raise


@pytest.fixture(scope="module")
def laboratory() -> Laboratory:
    return made("fast")


def busy() -> dict[str, Any]:
    """A fade with more traffic than the link carries, so that every peer drops."""
    return {
        "duration": "12s",
        "warmup": "1s",
        "link": {"rate": {"steps": [["0s", "10Mbit"], ["4s", "2Mbit"], ["8s", "10Mbit"]]}, "delay": "10ms"},
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "ef", "level": 0},
            {"name": "af", "level": 1, "low_level": 3, "rate": "3Mbit"},
            {"name": "cs0", "level": 2},
        ],
        "flow": [
            {"class": "ef", "kind": "poisson", "rate": "1Mbit", "packet": "500B"},
            {"class": "af", "kind": "cbr", "rate": "4Mbit", "jitter": 0.2},
            {"class": "cs0", "kind": "tcp", "cc": "cubic", "count": 4},
        ],
    }


KEYS = ("bytes", "packets", "drops", "qlen")


def qdiscs(text: str) -> dict[str, tuple[list[int], str]]:
    """Of each handle in `tc -s qdisc show`: bytes and packets sent, packets dropped, packets that wait; its words."""
    found = {}
    for part in re.split(r"^qdisc ", text, flags=re.MULTILINE)[1:]:
        handle = part.split()[1]
        numbers = re.search(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+),.*?backlog \S+b (\d+)p", part, re.DOTALL)
        assert numbers is not None, part
        found[handle] = ([int(number) for number in numbers.groups()], part)
    return found


def tins(text: str) -> dict[str, list[int]]:
    """Packets, bytes and drops of each tin of cake's diffserv4, which counts dropped ones among its packets."""
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    wanted = zip(("Bulk", "Best Effort", "Video", "Voice"), rows["pkts"], rows["bytes"], rows["drops"], strict=True)
    return {name: [int(number) for number in numbers] for name, *numbers in wanted}


def counted(files: Mapping[str, bytes], world: World) -> list[list[int]]:
    """What the page counts of each class at the end: bytes and packets sent, packets dropped, packets that wait."""
    _, classes, _ = collect.tc_counters(world, files["counters"])
    return [[one.sent_bytes, one.sent_pkts, one.dropped_pkts, one.backlog_pkts] for one in classes[-1]]


def of_leaves(shown: Mapping[str, tuple[list[int], str]], classes: list[list[int]]) -> None:
    assert [shown[f"{0x101 + n:x}:"][0] for n in range(3)] == classes


def of_tins(shown: Mapping[str, tuple[list[int], str]], classes: list[list[int]]) -> None:
    of_whole(shown, classes)
    found = tins(shown["10:"][1])
    for name, (_, packets, drops, waiting) in zip(("Voice", "Video", "Best Effort"), classes, strict=True):
        assert (found[name][0], found[name][2]) == (packets + drops + waiting, drops)


def of_whole(shown: Mapping[str, tuple[list[int], str]], classes: list[list[int]]) -> None:
    assert shown["10:"][0] == [sum(numbers) for numbers in zip(*classes, strict=True)]


def of_bands(shown: Mapping[str, tuple[list[int], str]], classes: list[list[int]]) -> None:
    """ets peeks at the heads of bands that share: its leaf counts this packet as sent, although it waits."""
    of_whole(shown, classes)
    for n, (size, packets, drops, waiting) in enumerate(classes):
        leaf = shown[f"{0x101 + n:x}:"][0]
        assert leaf[2:] == [drops, waiting]
        assert leaf[:2] in ([size, packets], *([size + one, packets + 1] for one in range(40, 1501) if n))


CHECKS: dict[str, Callable[[Mapping[str, tuple[list[int], str]], list[list[int]]], None]] = {
    "cake": of_tins,
    "htb+fq_codel": of_leaves,
    "ets": of_bands,
    "fq_pie": of_whole,
    "dualpi2": of_whole,
}


def check_statistics(laboratory: Laboratory, peer: str) -> None:
    world = laboratory.under(peer).job(Scenario.from_dict(busy()))
    files = host.start(laboratory.guest, world.job, 1)
    classes = counted(files, world)
    text = files["counters"].decode()
    CHECKS[peer](qdiscs(text[text.index("\nqdisc ") :]), classes)
    assert sum(drops for _, _, drops, _ in classes) > 100
    # The delays of as many packets were noted until the counters were read as these say.
    left = np.frombuffer(files["departures"], collect.DEPARTURE)
    left = left[left["at_ns"] <= ZERO_NS + round(1e9 * world.bins[-1])]
    assert [int((left["mark"] == mark).sum()) for (mark,) in world.marks or ()] == [sent for _, sent, _, _ in classes]


@pytest.mark.slow
@pytest.mark.parametrize("peer", [name for name in CHECKS if name != "dualpi2"])
def test_the_page_counts_what_the_kernel_counts(laboratory: Laboratory, peer: str) -> None:
    assert set(CHECKS) == set(peers.PEERS)
    check_statistics(laboratory, peer)


@pytest.mark.long
@pytest.mark.parametrize("peer", list(CHECKS))
def test_the_newest_kernel_counts_the_same(peer: str) -> None:
    check_statistics(made("newest"), peer)


@pytest.mark.long
@pytest.mark.parametrize("ecn", [False, True])
def test_dctcp_has_accurate_ecn_in_the_newest_kernel_and_others_what_they_ask_for(ecn: bool) -> None:
    """The kernel has one setting for all connections of a host, which the sender changes between their starts."""
    laboratory = made("newest").under("dualpi2")
    world = laboratory.job(Scenario.from_dict(counting(ecn=ecn)))
    run = world.job["run"] + b"in_ sender cat /proc/net/netstat >/out/sender\n"
    files = host.start(laboratory.guest, {**world.job, "run": run}, 1)
    l4s, classic = collect.tc_counters(world, files["counters"])[1][-1]
    assert (classic.marked_pkts > 5, classic.dropped_pkts > 5) == (ecn, not ecn)
    assert (l4s.marked_pkts > 500, l4s.dropped_pkts) == (True, 0)
    if not ecn:
        # One bit per acknowledgement would not tell how many segments had marks. Some are still on their way.
        names, numbers = (line.split() for line in files["sender"].decode().splitlines()[:2])
        delivered = int(numbers[names.index("TCPDeliveredCE")])
        assert l4s.marked_pkts - 100 <= delivered <= l4s.marked_pkts


@pytest.mark.slow
def test_a_peer_that_the_kernel_lacks_is_refused_with_what_to_do(laboratory: Laboratory) -> None:
    with pytest.raises(
        LaboratoryError, match=r"^policies: dualpi2: Linux 6\.12.* has no sch_dualpi2; add --kernel newest$"
    ):
        laboratory.under("dualpi2")


@pytest.mark.slow
def test_a_comparison_in_virtual_time_repeats_and_resumes(laboratory: Laboratory, tmp_path: Path) -> None:
    assert laboratory.kernel.exists()  # built, so that the comparison need not
    about = {"policies": ["pss", "cake"], "seeds": 1, "where": "virtual", "promises": ["ef.delay_p99=20ms"]}
    first = linkweir.compare(busy(), out=tmp_path / "first", **about)
    again = linkweir.compare(busy(), **about)
    assert first.table.equals(again.table)
    assert first.facts.where.startswith("Linux 6.12")
    assert (first.sweep.runs_now, linkweir.compare(busy(), out=tmp_path / "first", **about).sweep.runs_now) == (2, 0)
    # All classes have delays, and none is that of the simulator.
    assert None not in first.table["delay_p99_s"].to_pylist()
    assert first.distribution("link", "cake", "cs0") is not None
    page = (tmp_path / "first/report.html").read_text()
    assert "tc qdisc add dev r1 parent 1:1 handle 10: cake bandwidth 10mbit diffserv4 rtt 100ms" in page
    assert "tc qdisc change dev r1 parent 1:1 handle 10: cake bandwidth 2mbit" in page
    with pytest.raises(PlanError, match=r"policy cake: scheduler\.limit: cake is the kernel's and has no key"):
        linkweir.compare(busy(), {"cake": {"scheduler.limit": "9p"}}, where="virtual")
    with pytest.raises(PlanError, match=r"compares policies on one \[link\]"):
        linkweir.compare(SCENARIOS / "household.toml", ["cake"], where="virtual", link="up")


@pytest.mark.slow
def test_delays_that_the_link_notes_are_those_of_the_datagrams(laboratory: Laboratory) -> None:
    """Two measurements of one class: the link's notes, and time stamps from sender to receiver."""
    noted = laboratory.run(busy())
    laboratory_without = Laboratory()
    measured = laboratory_without.run(busy())
    # The link notes packets as they leave, datagrams count as they arrive. Of a growing queue these are other packets
    # at both ends of the counted time, which moves its mean and median, not its longest delays.
    longest = ("delay_p99_s", "delay_max_s")
    for of_class, columns in {"ef": ("delay_mean_s", "delay_p50_s", *longest), "af": longest}.items():
        rows = [next(r for r in run.rows("classes") if r["class"] == of_class) for run in (noted, measured)]
        for column in columns:
            assert rows[0][column] == pytest.approx(rows[1][column], abs=1e-5), (of_class, column)


@pytest.mark.slow
def test_the_most_that_may_be_noted_fits_into_the_guest(laboratory: Laboratory) -> None:
    scenario = busy() | {"duration": "19s", "link": {"rate": "1Gbit"}, "flow": busy()["flow"][:1]}
    found = laboratory.run(scenario)
    assert next(row for row in found.rows("classes") if row["class"] == "ef")["sent_pkts"] > 4000


def test_a_laboratory_of_another_kernel_is_refused() -> None:
    with pytest.raises(PlanError, match=r"kernel = 5\.4: must be one of 6\.12, newest"):
        VirtualTime("5.4")
