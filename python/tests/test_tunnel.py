# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios over real gateways: the job, what becomes of its counters, and runs where this machine allows them.

Runs in real time need root and the program that `cargo test` builds; without they are skipped and name what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import wait_until

from linkweir.lab import LaboratoryError, collect, gateways, guest, kernel, namespaces, tunnel
from linkweir.lab.gateways import Gateways, VirtualGateways
from linkweir.lab.world import NETEM
from linkweir.reproduce import gateways as figures
from linkweir.reproduce.papers import pss
from linkweir.scenarios.scenario import as_scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from command import COMMAND

PATIENCE_S = 60.0


def two_classes(**changes: Any) -> dict[str, Any]:
    """EF before a rest that asks for twice what the link carries."""
    link = {"rate": "8Mbit", "delay": "20ms", **changes.pop("link", {})}
    return {
        "duration": "2s",
        "interval": "500ms",
        "link": link,
        "scheduler": {"policy": "strict"},
        "class": [{"name": "ef", "level": 0, "limit": "50p"}, {"name": "rest", "level": 1, "limit": "50p"}],
        "flow": [
            {"name": "ef", "class": "ef", "kind": "cbr", "rate": "2Mbit", "packet": "1000B"},
            {"name": "rest", "class": "rest", "kind": "cbr", "rate": "16Mbit", "packet": "1000B"},
        ],
        **changes,
    }


def files_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """The configurations of a job, read."""
    job = tunnel.tunnel(as_scenario(scenario)).job
    return {name: tomllib.loads(text.decode()) for name, text in job.items() if name.endswith(".toml")}


# --- The job --------------------------------------------------------------------------------------------------------


def test_the_gateway_counts_the_scenarios_bytes_and_the_link_has_the_delays() -> None:
    link = {"delay": "250ms", "return_delay": "5ms", "overhead": "10B"}
    made = files_of(two_classes(link=link))
    # 28 bytes of the tunnel's headers are no bytes of the scenario.
    assert made["sender.toml"]["link"] == {"rate": "8Mbit", "nominal": "8Mbit", "follow": False, "overhead": "-18B"}
    assert (made["link.toml"]["a_to_b"]["delay"], made["link.toml"]["b_to_a"]["delay"]) == ("250ms", "5ms")
    # 1500 bytes fit into the tunnel, and with its headers into the link.
    assert made["link.toml"]["mtu"] == made["sender.toml"]["gateway"]["underlay_mtu"] == "1528B"


def test_netem_delays_in_place_of_the_emulator() -> None:
    job = tunnel.tunnel(as_scenario(two_classes(link={"delay": "250ms", "return_delay": "5ms"})), None).job
    run = job["run"].decode()
    assert "link.toml" not in job
    assert "linkweir-gateway emulate" not in run
    assert f"tc -n sender qdisc add dev sat root {NETEM} delay 250000.000us" in run
    assert f"tc -n receiver qdisc add dev sat root {NETEM} delay 5000.000us" in run
    assert "mtu 1528 " in run  # as the emulated link


def test_classes_are_told_apart_by_code_points_and_the_last_takes_the_rest() -> None:
    classes = files_of(two_classes())["sender.toml"]["class"]
    assert [entry.get("match") for entry in classes] == [[{"dscp": 1}], None]
    assert [entry["limit"] for entry in classes] == ["50p", "50p"]


def test_a_class_whose_name_has_spaces_is_one_word_for_the_gateway() -> None:
    scenario = two_classes()
    scenario["class"][0]["name"] = scenario["flow"][0]["class"] = "class 1"
    made = tunnel.tunnel(as_scenario(scenario))
    assert made.classes[0] == "class 1"
    assert tomllib.loads(made.job["sender.toml"].decode())["class"][0]["name"] == "class-1"


def test_a_changing_capacity_is_given_as_the_means_of_its_steps() -> None:
    rate = {"mean": "20Mbit", "amplitude": 0.3, "period": "15s"}
    scenario = two_classes(duration="15s", interval="1s", link={"rate": rate})
    job = tunnel.tunnel(as_scenario(scenario)).job
    lines = [line.split() for line in job["capacity"].decode().splitlines()]
    inside = [(int(at), int(word.removesuffix("bit"))) for at, word in lines if int(at) < 15_000_000_000]
    assert [at for at, _ in inside] == [n * 50_000_000 for n in range(300)]
    assert sum(bps for _, bps in inside) / 300 == pytest.approx(20e6, rel=1e-6)
    assert inside[0][1] == pytest.approx(26e6, rel=1e-3)
    assert inside[150][1] == pytest.approx(14e6, rel=1e-3)
    # The program that says them must not end before the run does.
    assert int(lines[-1][0]) > 15_000_000_000
    assert tomllib.loads(job["sender.toml"].decode())["link"]["command"] == ["workload", "say", "capacity"]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"link": {"loss": 0.1}}, "link.loss"),
        ({"link": {"ring": 4}}, "link.ring"),
        ({"flow": [{"class": "rest", "kind": "greedy"}]}, "flow[0].kind"),
    ],
)
def test_what_gateways_cannot_do_is_refused_with_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(Exception, match=key.replace("[", r"\[")):
        tunnel.tunnel(as_scenario(two_classes(**changes)))


# --- Its counters ---------------------------------------------------------------------------------------------------


def shown(sent: int, backlog: int, dropped: int) -> dict[str, Any]:
    """A class as a gateway shows it; packets have 1000 bytes."""
    return {
        "backlog_pkts": backlog,
        "backlog_bytes": 1000 * backlog,
        "sent_pkts": sent,
        "sent_bytes": 1000 * sent,
        "dropped_limit_pkts": dropped,
        "dropped_policy_pkts": 0,
        "sojourn_max_ns": 1,
        "state": {},
    }


def test_counters_become_rates_of_bins() -> None:
    made = tunnel.tunnel(as_scenario(two_classes()))
    answers = [[shown(100 * n, 0, 0), shown(400 * n, min(n, 1) * 50, 500 * n)] for n in range(5)]
    text = "".join(json.dumps({"peers": [{"classes": classes}]}, indent=1) for classes in answers).encode()
    files = {"counters": text, "datagrams": b"", "received": b""}
    found = collect.tables(made, files, gateways.gateway_counters)
    rest = [row for row in found["series"].to_pylist() if row["class"] == "rest"]
    assert [row["sent_bps"] for row in rest] == [400 * 8000 / 0.5] * 4
    assert [row["backlog_pkts"] for row in rest] == [50] * 4
    assert [row["arrived_pkts"] for row in rest] == [950, 900, 900, 900]
    assert [row["used_bps"] for row in found["link"].to_pylist()] == [8e6] * 4
    classes = {row["class"]: row for row in found["classes"].to_pylist()}
    assert classes["rest"]["loss"] == pytest.approx(2000 / 3650)
    assert classes["ef"]["rate_bps"] == pytest.approx(1.6e6)


def test_packets_from_the_warm_up_that_are_dropped_later_do_not_lose_more_than_all() -> None:
    made = tunnel.tunnel(as_scenario(two_classes(warmup="1s")))
    # 50 packets wait at the end of the warm-up and are dropped after it, as is the only one that arrives then.
    answers = [[shown(0, 0, 0), shown(0, 50 if n < 3 else 0, 0 if n < 3 else 51)] for n in range(5)]
    text = "".join(json.dumps({"peers": [{"classes": classes}]}, indent=1) for classes in answers).encode()
    files = {"counters": text, "datagrams": b"", "received": b""}
    found = collect.tables(made, files, gateways.gateway_counters)
    rest = next(row for row in found["classes"].to_pylist() if row["class"] == "rest")
    assert (rest["arrived_pkts"], rest["dropped_limit_pkts"]) == (1, 51)
    assert rest["loss"] == 1.0


def test_an_answer_that_is_missing_is_told() -> None:
    made = tunnel.tunnel(as_scenario(two_classes()))
    text = json.dumps({"peers": [{"classes": [shown(0, 0, 0), shown(0, 0, 0)]}]}).encode()
    with pytest.raises(LaboratoryError, match="answered 1 times, not 5"):
        gateways.gateway_counters(made, text)


# --- Points of figures ----------------------------------------------------------------------------------------------


def test_points_choose_runs_of_a_figure() -> None:
    figure = pss.FIGURES["6"](pss.PssOptions("tcp"))
    part = figures.part(figure, figures.points("0.25:0.5, 0.75:0.3"), ["pss"])
    chosen = [(case.labels["point"].ef_share, case.labels["point"].k_af) for case in part.cases]
    assert chosen == [(0.25, 0.5), (0.75, 0.3)]
    assert len(figures.part(figure, None, None).cases) == len(figure.cases) == 54


# --- What is missing ------------------------------------------------------------------------------------------------


def test_everything_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(namespaces, "_PATH", "/nowhere")
    words = "; ".join(namespaces.why_not(None))
    for what in ("root", "sudo", "iproute2", "util-linux", "cargo build --release -p linkweir-gateway"):
        assert what in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pss", "--points", "0.25"], '"0.25"'),
        (["pss", "--points", "0.3:0.5"], "no such run"),
        (["pss", "--figure", "4"], '--figure = "4"'),
        (["pss", "--where", "moon"], '--where = "moon"'),
        (["pss", "--duration", "500ms"], '--duration = "500ms": must be whole seconds'),
        (["run", "x.toml", "--where", "real"], "--on gateway"),
    ],
)
def test_wrong_words_are_bad_input(arguments: list[str], words: str) -> None:
    done = subprocess.run([*COMMAND, "lab", *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_all_wrong_words_are_named_at_once() -> None:
    wrong = [
        "pss",
        "--duration",
        "x",
        "--figure",
        "99",
        "--where",
        "moon",
        "--points",
        "0.25",
        "--json",
        "--markdown",
        "--into",
        "/nowhere/page.md",
    ]
    done = subprocess.run([*COMMAND, "lab", *wrong], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [line.startswith("linkweir lab: ") for line in lines] == [True] * 6
    for words in (
        '--where = "moon"',
        '--figure = "99"',
        '"0.25"',
        "not both",
        '"/nowhere/page.md"',
        '--duration = "x"',
    ):
        assert sum(words in line for line in lines) == 1, words


# --- Runs in namespaces ---------------------------------------------------------------------------------------------


def program() -> Path | None:
    """The gateway as cargo built it last, optimised or not."""
    built = [kernel.tree() / f"target/{kind}/linkweir-gateway" for kind in ("release", "debug")]
    return max((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture(scope="module")
def real() -> Gateways:
    lacks = namespaces.why_not(program())
    if lacks:
        pytest.skip(f"NO RUN IN NAMESPACES: {'; '.join(lacks)}")
    return Gateways(program())


@pytest.mark.slow
def test_a_run_in_namespaces_leaves_the_directory_of_a_run(real: Gateways, tmp_path: Path) -> None:
    result = real.run(two_classes(), out=tmp_path / "run")
    classes = {row["class"]: row for row in result.rows("classes")}
    flows = {row["flow"]: row for row in result.rows("flows")}
    # What is reported of the classes does not depend on how fast this machine is.
    # Packets may have come before the first look at the counters, and left by then or not: no more than a queue holds.
    most = 50
    for name, row in classes.items():
        # what waits at the last look, less what waited at the first
        more = row["arrived_pkts"] - row["sent_pkts"] - row["dropped_limit_pkts"] - row["dropped_policy_pkts"]
        assert abs(more) <= most, name
        assert flows[name]["delivered_pkts"] <= row["sent_pkts"] + more + most
    assert flows["ef"]["delivered_pkts"] > 0
    assert classes["ef"]["delay_p50_s"] >= 0.0
    assert result.summary["status"] == "complete"
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {"scenario.toml", "report.html", "gateway.json", "emulator.json", "memory.csv"}
    assert len((tmp_path / "run/memory.csv").read_text().splitlines()) == 1 + 5


def test_a_job_that_fails_says_what_it_printed(real: Gateways) -> None:
    job = {"run": b"echo the reason >&2\nexit 3\n"}
    with pytest.raises(LaboratoryError, match="the reason"):
        namespaces.start(real.tools, job, 1.0)


def users_of(namespace: str) -> list[str]:
    """Processes in a network namespace."""
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):  # it may have ended
            if str(path.readlink()) == namespace:
                found.append(str(path))
    return found


def test_nothing_stays_behind_of_what_is_killed(real: Gateways, tmp_path: Path) -> None:
    written = tmp_path / "namespace"
    job = f"""
ip netns add inside
ip netns exec inside sh -c 'readlink /proc/self/ns/net >{written}.part; mv {written}.part {written}; sleep 1000' &
wait
"""
    waiting = f"""
from pathlib import Path
from linkweir.lab.namespaces import Tools, start
start(Tools(Path({str(real.tools.programs)!r}), ""), {{"run": {job.encode()!r}}}, 1000.0)
"""
    process = subprocess.Popen([sys.executable, "-c", waiting], start_new_session=True)
    try:
        wait_until(written.exists)
        namespace = written.read_text().strip()
        assert users_of(namespace)
        assert namespace != str(Path("/proc/self/ns/net").readlink())
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not users_of(namespace))
    finally:
        process.kill()
        process.wait()


# --- Runs in virtual time -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def virtual() -> VirtualGateways:
    lacks = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if lacks:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {lacks}")
    if program() is None:
        pytest.skip(namespaces.NO_GATEWAY)
    return VirtualGateways(program())


@pytest.mark.slow
def test_netem_gives_the_rates_and_delays_of_the_emulator(virtual: VirtualGateways, tmp_path: Path) -> None:
    flow = {"class": "rest", "kind": "tcp", "profile": "linux", "count": 2}
    scenario = two_classes(duration="3s", warmup="1s")
    scenario["flow"][1] = {"name": "rest", **flow}
    emulated = virtual.run(scenario)
    delayed = VirtualGateways(program(), below=None).run(scenario, out=tmp_path / "run")
    pairs = list(zip(emulated.rows("classes"), delayed.rows("classes"), strict=True))
    for one, other in pairs:
        assert other["rate_bps"] == pytest.approx(one["rate_bps"], rel=0.002), one["class"]
    one, other = pairs[0]  # EF
    # Without the emulator's 10 Gbit/s and its reads of the clock it is some microseconds less; a packet takes 1 ms.
    assert other["delay_p50_s"] == pytest.approx(one["delay_p50_s"], abs=20e-6)
    assert (tmp_path / "run/memory.csv").read_text().startswith("sender_bytes,receiver_bytes\n")
    assert not (tmp_path / "run/emulator.json").exists()


@pytest.mark.slow
def test_virtual_runs_repeat_and_give_each_class_its_due(virtual: VirtualGateways) -> None:
    scenario = two_classes(duration="4s", warmup="1s")
    first, second = virtual.run(scenario), virtual.run(scenario)
    for name in ("series", "classes", "flows"):
        assert first.rows(name) == second.rows(name)
    classes = {row["class"]: row for row in first.rows("classes")}
    # Strict priority: EF has its 2 Mbit/s, the rest what is left of 8; a packet of 1000 bytes takes 1 ms.
    assert classes["ef"]["rate_bps"] == pytest.approx(2e6, rel=0.005)
    assert classes["rest"]["rate_bps"] == pytest.approx(6e6, rel=0.005)
    assert classes["ef"]["loss"] == 0.0
    assert classes["ef"]["delay_max_s"] <= 0.00101
