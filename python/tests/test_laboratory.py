# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory: its parts without a kernel, and runs in one where it can be built.

What needs a kernel builds it (minutes, once; it stays in the cache) or is skipped and names the packages it lacks.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import COMMAND
from processes import wait_until

import linkweir
from linkweir.commands.lab import run
from linkweir.lab import LaboratoryError, choice, collect, guest, host, kernel
from linkweir.lab.archive import Entry, archive
from linkweir.lab.arrivals import arrivals
from linkweir.lab.experiment import Laboratory
from linkweir.lab.signal import Signal
from linkweir.lab.world import staggered, world
from linkweir.reproduce.papers import pds, pss
from linkweir.runs.directory import compare
from linkweir.scenarios.scenario import Scenario

KINDS = frozenset({"pss", "pds", "codes", "pf"})


def random() -> np.random.Generator:
    return np.random.default_rng(1)


def source(**keys: Any) -> Any:
    """A checked flow of datagrams."""
    return Scenario.from_dict(fifo(flow=keys)).native.tables()["flows"][0]


# --- Without a kernel -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("20Mbit", lambda t: 20e6),
        (
            {"mean": "20Mbit", "amplitude": 0.3, "period": "15s", "phase": 1.0},
            lambda t: 20e6 * (1 + 0.3 * np.cos(2 * np.pi * t / 15 + 1)),
        ),
        (
            {"lines": [["0s", "1Mbit"], ["4s", "1Mbit"], ["9s", "3Mbit"]]},
            lambda t: 1e6 if t < 4 else 1e6 + 2e6 * (t - 4) / 5 if t < 9 else 3e6,
        ),
        (
            {"steps": [["0s", "2Mbit"], ["3s", "5Mbit"]], "end": "loop", "period": "4s"},
            lambda t: 5e6 if t % 4 >= 3 else 2e6,
        ),
        (
            {"steps": [["0s", "2Mbit"], ["3s", "5Mbit"]], "end": "stop", "at": "5s"},
            lambda t: (t < 3) * 2e6 + (3 <= t < 5) * 5e6,
        ),
    ],
)
def test_a_signal_has_the_integral_of_its_values(written: Any, value: Callable[[float], float]) -> None:
    signal = Signal(source(rate=written)["rate_bps"], 12.0)
    middles = (np.arange(120_000) + 0.5) * 1e-4
    numeric = np.cumsum([value(t) for t in middles]) * 1e-4
    ends = (np.arange(120_000) + 1) * 1e-4
    np.testing.assert_allclose(signal.integral(ends), numeric, rtol=1e-6, atol=1.0)


def test_packets_come_when_the_rate_has_added_up_to_them() -> None:
    # As the simulator's own test: 1 packet/s, silent from 2.5 s to 4 s, then 2 packets/s.
    steps = {"steps": [["0s", "1kbit"], ["2.5s", "0bit"], ["4s", "2kbit"]], "end": "hold"}
    flow = source(kind="cbr", rate=steps, jitter=0.0, packet="125B")
    at_ns, sizes = arrivals(flow, 1.0, 5.0, random())
    np.testing.assert_allclose(at_ns / 1e9, [1, 2, 4.25, 4.75], atol=1e-6)
    assert sizes.tolist() == [125] * 4


def test_jitter_and_poisson_keep_the_mean_rate() -> None:
    cbr = source(kind="cbr", rate="12Mbit", jitter=0.3, packet="1500B")
    at_ns, _ = arrivals(cbr, 0.0, 100.0, random())
    gaps_s = np.diff(at_ns.astype(float)) / 1e9
    assert gaps_s.min() >= 0.7e-3 - 1e-8
    assert gaps_s.max() <= 1.3e-3 + 1e-8
    assert abs(len(at_ns) - 100_000) < 219  # four standard errors, as in the simulator's test
    poisson = source(kind="poisson", rate="12Mbit", packet="1500B")
    at_ns, _ = arrivals(poisson, 0.0, 100.0, random())
    assert abs(len(at_ns) - 100_000) < 4 * 317


def test_a_kernel_could_unpack_the_archive(tmp_path: Path) -> None:
    cpio = shutil.which("cpio") or shutil.which("busybox")
    if cpio is None:
        pytest.skip("neither cpio nor busybox is here to read the archive with")
    made = archive([Entry("bin/sh", b"dash", link=True), Entry("a/b/c", b"\0\1\2" * 999), Entry("proc")])
    again = archive([Entry("a/d", b"second")])
    command = [cpio, "-i"] if cpio.endswith("cpio") else [cpio, "cpio", "-i"]
    for part in (made, again):
        subprocess.run(command, cwd=tmp_path, input=part, check=True, capture_output=True)
    assert (tmp_path / "a/b/c").read_bytes() == b"\0\1\2" * 999
    assert (tmp_path / "a/d").read_bytes() == b"second"
    assert (tmp_path / "bin/sh").readlink() == Path("dash")
    assert (tmp_path / "proc").is_dir()


def fifo(**changes: Any) -> dict[str, Any]:
    link = {"rate": "10Mbit", **changes.pop("link", {})}
    flow = {"class": "all", "kind": "cbr", "rate": "1Mbit", **changes.pop("flow", {})}
    base = {"duration": "1s", "scheduler": {"policy": "strict"}, "class": [{"name": "all"}]}
    return {**base, "link": link, "flow": [flow], **changes}


def test_a_kernel_without_dctcp_names_the_one_that_has_it() -> None:
    scenario = {**fifo(), "flow": [{"class": "all", "kind": "tcp", "cc": "dctcp"}]}
    with pytest.raises(linkweir.ScenarioError, match="compare and yardstick have it with --kernel newest"):
        world(linkweir.Scenario.from_dict(scenario), KINDS)


@pytest.mark.parametrize(
    ("scenario", "key"),
    [
        (fifo(link={"ring": 4}), "link.ring"),
        (fifo(link={"mpu": "64B"}), "link.mpu"),
        (fifo(flow={"kind": "greedy", "rate": None}), "flow[0].kind"),
        (fifo(flow={"packet": "9kB"}), "flow cbr1: packet"),
        (fifo(flow={"kind": "tcp", "rate": None, "cc": "prague"}), "flow[0].cc"),
        (fifo(flow={"kind": "tcp", "rate": None, "cc": "dctcp"}), "flow[0].cc"),
        (fifo(scheduler={"policy": "rr"}), "scheduler.policy"),
        (fifo(scheduler={"policy": "fifo"}, **{"class": [{"name": "all"}, {"name": "other"}]}), "scheduler.policy"),
        (fifo(scheduler={"policy": "fq_codel"}), "class.limit"),
        (
            fifo(scheduler={"policy": "fifo"}, **{"class": [{"name": "all", "limit": "9p", "limit_bytes": "9kB"}]}),
            "class.limit",
        ),
        (fifo(scheduler={"policy": "fq_codel", "mtu": "1kB"}), "scheduler.mtu"),
        (fifo(**{"class": [{"name": "all", "flows": "fq_codel"}]}), "class[0].flows"),
        (
            {
                **fifo(),
                "flow": [{"class": "all", "kind": "cbr", "rate": "1kbit", "access_delay": f"{n}ms"} for n in range(17)],
            },
            "flow.access_delay",
        ),
    ],
)
def test_what_no_kernel_can_do_is_refused_by_name(scenario: dict[str, Any], key: str) -> None:
    scenario["flow"] = [{k: v for k, v in flow.items() if v is not None} for flow in scenario["flow"]]
    with pytest.raises(linkweir.ScenarioError) as refused:
        world(linkweir.Scenario.from_dict(scenario), KINDS)
    assert refused.value.key == key
    assert str(refused.value).startswith(key)


def test_what_the_laboratory_goes_on_without_is_in_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class WithoutAKernel:
        def run(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("no kernel here")

    monkeypatch.setattr(choice, "experiments", lambda *_, **__: WithoutAKernel())
    path = tmp_path / "logged.toml"
    scenario = fifo(flow={"delays": True, "playout": "60ms"}, log="packets", log_rows=1000)
    path.write_text(linkweir.Scenario.from_dict(scenario).resolved)
    with pytest.raises(RuntimeError, match="no kernel here"):
        run(path, out=tmp_path / "out")
    assert capsys.readouterr().out.splitlines() == [
        "note: log = packets: left out, also log_rows; the laboratory has no table of packets",
        "note: flow[0].delays: left out, the laboratory has no distributions of delays",
        "note: flow[0].playout: left out, the laboratory does not rate calls",
    ]


def lines(scenario: dict[str, Any]) -> list[str]:
    return world(linkweir.Scenario.from_dict(scenario), KINDS).job["run"].decode().splitlines()


def test_the_kernels_own_queues_get_the_scenarios_limits() -> None:
    bytes_ = fifo(scheduler={"policy": "fifo"}, **{"class": [{"name": "all", "limit_bytes": "30kB"}]})
    assert any(line.endswith("parent 1:1 handle 10: bfifo limit 30000") for line in lines(bytes_))
    packets = fifo(scheduler={"policy": "fifo"}, **{"class": [{"name": "all", "limit": "30p"}]})
    assert any(line.endswith("pfifo limit 30") for line in lines(packets))
    policy = {"policy": "fq_codel", "limit": "500p", "target": "7ms", "ecn": "no"}
    codel = fifo(scheduler=policy, **{"class": [{"name": "all", "limit": "500p"}]})
    codel["class"].append({"name": "other", "limit": "9999p"})
    assert sum(" filter add dev r1 parent 10: " in line for line in lines(codel)) == 2
    wanted = "fq_codel limit 500 flows 2 quantum 1514 target 7000us interval 100000us noecn"
    assert any(line.endswith(wanted) for line in lines(codel))


def test_access_delays_are_netems() -> None:
    tcp = {"class": "all", "kind": "tcp"}
    scenario = fifo(link={"loss": 0.03, "delay": "20ms", "return_delay": "0s"})
    scenario["flow"] = [
        {**tcp, "cc": "newreno"},
        {**tcp, "access_delay": "5ms", "count": 3},
        {**tcp, "access_delay": "7ms", "cc": "cubic"},
    ]
    script = lines(scenario)
    assert not any(" dev y1 " in line for line in script)
    assert not any("receiver qdisc" in line for line in script)
    filters = [line for line in script if " filter add dev r0 " in line]
    assert [line.split("dst_port ")[1] for line in filters] == ["20001-20003 classid a0:2", "20004 classid a0:3"]
    assert "tc -n sender qdisc add dev s0 parent a0:2 netem limit 10000000 delay 5000.000us" in script
    streams = next(line for line in script if "workload streams" in line).split()
    priorities = {word.split(":")[0]: (int(word.split(":")[2]), word.split(":")[6]) for word in streams if ":" in word}
    assert priorities == {
        "0": (0, "reno"),
        **{str(n): (0xA00002, "cubic") for n in (1, 2, 3)},
        "4": (0xA00003, "cubic"),
    }


@pytest.mark.parametrize(
    "impaired",
    [
        {"loss": 0.03},
        {"loss": {"mean": 0.02, "burst": "4p"}, "reorder": {"probability": 0.05, "delay": "9ms"}},
        {"reorder": {"probability": 1.0, "delay": "9ms"}},
    ],
)
def test_the_link_loses_and_holds_back_what_the_simulator_draws(impaired: dict[str, Any]) -> None:
    scenario = linkweir.Scenario.from_dict(fifo(link=impaired))
    job = world(scenario, KINDS).job
    assert b" dev y1 " not in job["run"]
    header = link_list(job)[0]
    # As many as packets of 40 bytes could leave in 1 s, and a thousand.
    assert header[4] == 10_000_000 // (8 * 40) + 1000
    assert job["line"].endswith(scenario.native.fates(header[4]))
    assert header[5] == (9_000_000 if "reorder" in impaired else 0)


def test_a_loss_that_changes_is_netems() -> None:
    changing = {"steps": [["0s", 0.0], ["2s", 0.03]]}
    link = {"loss": changing, "reorder": {"probability": 0.05, "delay": "9ms"}}
    job = world(linkweir.Scenario.from_dict(fifo(link=link, duration="5s")), KINDS).job
    words = "netem limit 10000000 delay 9000.000us reorder 95.0000000% gap 1 loss random"
    assert f"tc -n relay qdisc add dev y1 root {words} 0.0000000%\n".encode() in job["run"]
    assert f"2000000000 qdisc change dev y1 root {words} 3.0000000%\n".encode() == job["losses"]
    assert link_list(job)[0][4] == 0


def test_tc_gets_the_papers_parameters() -> None:
    settings = pss.PssOptions("tcp", True, 30.0, 1)
    case = next(case for case in pss.FIGURES["7"](settings).cases if case.labels["point"].memory_s is None)
    script = world(linkweir.Scenario.from_dict(case.scenario), KINDS).job["run"].decode()
    assert "class 2 limit 833 level 2 low_level 4 rate 1500kbit mtu 1500 lr 900" in script
    dwrr = next(case for case in pss.FIGURES["6"](settings).cases if case.labels["point"].scheduler == "dwrr")
    script = world(linkweir.Scenario.from_dict(dwrr.scenario), KINDS).job["run"].decode()
    assert "drr quantum 1500\n" in script
    assert "drr quantum 13500\n" in script


def link_list(job: Mapping[str, bytes]) -> tuple[list[int], Any, Any]:
    """What `labline` reads: header, capacity and delays."""
    header = np.frombuffer(job["line"], "<u8", 7).astype(np.int64).tolist()
    width = 1 if header[0] else 2
    numbers = np.frombuffer(job["line"], "<u8", width * header[2] + 2 * header[3], 56).astype(np.int64)
    assert len(job["line"]) == 56 + 8 * len(numbers) + header[4]
    return header, numbers[: width * header[2]].reshape(-1, width), numbers[width * header[2] :].reshape(-1, 2)


def test_a_changing_capacity_is_given_in_steps_with_its_mean() -> None:
    settings = pss.PssOptions("tcp", True, 15.0, 1)
    case = pss.FIGURES["7"](settings).cases[0]
    _, rates, delays = link_list(world(linkweir.Scenario.from_dict(case.scenario), KINDS).job)
    assert len(rates) == 15_000
    assert rates[0, 0] == delays[0, 0] == 5_000_000_000
    assert np.diff(rates[:, 0]).tolist() == [1_000_000] * (len(rates) - 1)
    assert rates[:, 1].max() < 26e6
    assert rates[:, 1].min() > 14e6
    assert rates[:, 1].mean() == pytest.approx(20e6, rel=1e-6)  # one whole period


def test_outages_traces_and_delays_reach_the_link_as_they_are(tmp_path: Path) -> None:
    link = {
        "rate": {"steps": [["0s", "4Mbit"], ["0.25s", "0bit"]]},
        "delay": {"steps": [["0s", "5ms"], ["0.5s", "1ms"]]},
    }
    header, rates, delays = link_list(world(linkweir.Scenario.from_dict(fifo(link=link)), KINDS).job)
    assert header == [0, 0, 2, 2, 0, 0, 0]
    assert rates.tolist() == [[5_000_000_000, 4_000_000], [5_250_000_000, 0]]
    assert delays.tolist() == [[5_000_000_000, 5_000_000], [5_500_000_000, 1_000_000]]
    (tmp_path / "up.trace").write_text("0\n3\n3\n400\n")
    trace = {
        **fifo(),
        "link": {"trace": str(tmp_path / "up.trace"), "trace_format": "mahimahi", "follow": True},
        "scheduler": {"policy": "pss"},
    }
    made = world(linkweir.Scenario.from_dict(trace), KINDS)
    header, instants, _ = link_list(made.job)
    assert header == [1, 1500, 11, 1, 0, 0, 0]
    ms = [0, 3, 3, 400, 400, 403, 403, 800, 800, 803, 803]
    assert instants[:, 0].tolist() == [5_000_000_000 + n * 1_000_000 for n in ms]
    assert made.capacity.mean(0.0, 0.5) == 7 * 12_000 / 0.5
    reports = [line.split(" qdisc") for line in made.job["changes"].decode().splitlines() if " link " in line]
    # As in the simulator: the mean over the last 100 ms, every 10 ms; here 1 bit/s takes the place of none.
    assert reports[0] == ["100000000", " change dev r1 parent 1:1 handle 10: pss link 360000bit"]
    assert [int(at_ns) for at_ns, _ in reports] == [n * 10_000_000 for n in (10, 11, 41, 51, 81, 91)]
    assert reports[2][1].endswith("link 480000bit")
    assert reports[1][1].endswith("link 1bit")


SHOWN = """\
class labline 1:1 root leaf 10:
 Sent 4536000 bytes 3024 pkt (dropped 7, overlimits 2 requeues 0)
 backlog 1116000b 744p requeues 0

class pss 10:1 parent 10: limit 500p level 1 rate 0bit share 0% burst 20p mtu 1514b memory 100ms
 Sent 4500000 bytes 3000 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  dropped_limit 0p dropped_victim 0p dropped_expired 0p dropped_leaving 0p marked 0p sojourn_mean 300.5us \
sojourn_max 600us credit 0bit low 0

class pss 10:2 parent 10: limit 833p level 2 low_level 4 rate 1Mbit share 0% burst 20p mtu 1500b memory 10ms
 Sent 36000 bytes 24 pkt (dropped 7, overlimits 0 requeues 0)
"""


def test_what_tc_says_is_read_with_its_units() -> None:
    (counters,) = collect.shown(SHOWN)
    assert counters["1:1"] == {"bytes": 4536000, "packets": 3024, "drops": 7, "backlog": 1116000, "qlen": 744}
    assert counters["10:1"]["packets"] == 3000
    assert counters["10:1"]["sojourn_mean"] == 300_500
    assert counters["10:1"]["sojourn_max"] == 600_000
    assert counters["10:2"] == {"bytes": 36000, "packets": 24, "drops": 7}
    assert len(collect.shown(SHOWN * 3)) == 3


def test_the_host_waits_for_the_end_of_a_process_and_not_for_ever() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not host._ends(process.pid, 0.01)
        process.kill()
        assert host._ends(process.pid, 60.0)


sys.path.insert(0, str(Path(__file__).parents[2] / "lab"))
sys.path.insert(0, str(Path(__file__).parents[2] / "lab/transport"))
import cases  # noqa: E402
import stored  # noqa: E402
import transport  # noqa: E402


@pytest.mark.slow
def test_simulator_and_laboratory_accept_every_scenario_of_the_agreement() -> None:
    chosen = cases.cases()
    assert len(chosen) >= 60
    assert len({case.name for case in chosen}) == len(chosen)
    for case in chosen:
        first, second = (transport.ready(case.scenario(seed)) for seed in (1, 2))
        made = [world(scenario, KINDS, stagger_s=0.0) for scenario in (first, second)]
        # The flows start at other times with another seed, and otherwise nothing changes.
        starts = [[flow.start_s for flow in one.flows if flow.kind == "tcp"] for one in made]
        assert starts[0] != starts[1]
        assert max(starts[0]) <= cases.STAGGER_S


def test_a_staggered_scenario_has_the_starts_that_the_laboratory_draws() -> None:
    tcp = {"class": "one", "kind": "tcp", "count": 3, "start": "1s", "stagger": "2s"}
    keys = {
        "duration": "10s",
        "seed": 4,
        "link": {"rate": "10Mbit"},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "one"}],
        "flow": [tcp, {"class": "one", "kind": "cbr", "rate": "1Mbit", "name": "steady"}],
    }
    scenario = linkweir.Scenario.from_dict(keys)
    drawn = linkweir.Scenario.from_dict(staggered(scenario))
    jobs = [world(scenario, KINDS).job, world(drawn, KINDS, stagger_s=0.0).job]
    assert jobs[0]["run"] == jobs[1]["run"] != world(scenario, KINDS, stagger_s=0.0).job["run"]
    assert jobs[0]["due"] == jobs[1]["due"]


def line_of(ours: float, kernels: float, error: float = 0.1) -> transport.Line:
    means = {
        side: {q.column: value for q in transport.QUANTITIES}
        for side, value in zip(transport.SIDES, (ours, kernels), strict=True)
    }
    errors = {side: {q.column: error for q in transport.QUANTITIES} for side in transport.SIDES}
    return transport.Line("a scenario", means, errors)


def test_a_value_outside_its_bound_is_named() -> None:
    names = [q.title.split(",")[0] for q in line_of(106, 100).outside]
    assert names == ["goodput"]
    assert [q.title for q in line_of(84, 100).outside][1:] == [
        "retransmitted",
        "timeouts",
        "received twice",
        "marked",
        "mean window",
    ]
    assert [q.title for q in line_of(4, 0).outside][1:] == ["mean window"]
    assert line_of(100, 100).outside == []
    assert line_of(106, 100, error=2.2).noise == transport.NOISE
    assert line_of(106, 100, error=2.1).noise == ""
    assert line_of(100, 100, error=9).noise == ""


def test_a_page_keeps_its_reasons_and_marks_what_is_outside(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{transport.MARKS[0]}\n{transport.MARKS[1]}\nafter\n")
    transport.write_into(page, [line_of(106, 100)], "Measured.")
    text = page.read_text()
    assert "| **0.000 / 0.000** | 106.0 / 100.0 |" in text
    page.write_text(text.replace("| goodput |  |", "| goodput | because |"))
    transport.write_into(page, [line_of(107, 100)], "Measured.")
    assert "| goodput | because |" in page.read_text()
    assert page.read_text().endswith(f"{transport.MARKS[1]}\nafter\n")


def test_a_stored_run_is_found_again_by_what_ran_it(tmp_path: Path) -> None:
    def job(scenario: Mapping[str, Any], identity: str) -> stored.Job:
        return stored.Job("", transport.depends(scenario, identity), lambda _processor: None)

    store = stored.Store(tmp_path / "store")
    case = cases.cases()[0]
    assert store.find(job(case.scenario(1), "kernel")) is None
    store.keep(job(case.scenario(1), "kernel"), {"class1": {"timeouts": 3.0}})
    again = stored.Store(tmp_path / "store")
    assert again.find(job({**case.scenario(1), "name": "new"}, "kernel")) == {"class1": {"timeouts": 3.0}}
    assert store.find(job(case.scenario(2), "kernel")) is None
    assert store.find(job(case.scenario(1), "another kernel")) is None


def test_a_run_that_fails_leaves_what_was_done_before_it(tmp_path: Path) -> None:
    def job(number: int) -> stored.Job:
        def run(_processor: int) -> int:
            if number == 2:
                raise RuntimeError("broken")
            return 10 * number

        return stored.Job(f"job {number}", number, run)

    store = stored.Store(tmp_path / "store")
    said: list[str] = []
    with pytest.raises(RuntimeError, match="broken"):
        stored.run_all({n: job(n) for n in range(4)}, store, 1, said.append)
    assert store.find(job(1)) == 10
    assert store.find(job(3)) is None
    assert stored.run_all({n: job(n) for n in (0, 1, 3)}, store, 1, said.append) == {0: 0, 1: 10, 3: 30}
    assert [text.split(": ")[1] for text in said] == ["job 0", "job 1", "job 3"]
    assert stored.run_all({n: job(n) for n in (1, 7)}, store, 1, said.append, most_s=-1.0) == {1: 10}
    ran: list[int] = []
    same = {n: stored.Job("", "same", lambda _processor: ran.append(0) or 5) for n in (20, 21)}
    assert stored.run_all(same, store, 1, said.append) == {20: 5, 21: 5}
    assert ran == [0]


# --- In a kernel ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def laboratory() -> Laboratory:
    why = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if why is not None:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    return Laboratory(say=lambda text: print(text, file=sys.stderr))


def thirty_seconds() -> dict[str, Any]:
    settings = pss.PssOptions("tcp", False, 30.0, 1)
    cases = pss.FIGURES["6"](settings).cases
    return next(
        case.scenario
        for case in cases
        if (case.labels["point"].scheduler, case.labels["point"].ef_share, case.labels["point"].k_af)
        == ("pss", 0.5, 0.5)
    )


@pytest.mark.slow
def test_two_runs_of_a_seed_give_the_same_bytes(laboratory: Laboratory, tmp_path: Path) -> None:
    runs = [laboratory.run(thirty_seconds(), out=tmp_path / name) for name in ("first", "second")]
    verdicts = compare(tmp_path / "first", tmp_path / "second")
    assert {name for name, _ in verdicts} >= {f"results/{table}.parquet" for table in ("series", "classes", "flows")}
    assert {verdict for _, verdict in verdicts} == {"identical"}
    # They are not the same because nothing happened.
    rates = {row["class"]: row["rate_bps"] for row in runs[0].rows("classes")}
    assert rates["ef"] == pytest.approx(10e6, rel=1e-3)
    assert rates["af"] == pytest.approx(5e6, rel=0.05)
    simulated = linkweir.run({**thirty_seconds(), "duration": "1s", "warmup": "0s"})
    # The kernel shows no distribution of the delays of TCP.
    assert {n: table.schema for n, table in runs[0].tables.items()} == {
        n: t.schema for n, t in simulated.tables.items() if n != "delays"
    }
    ef = next(row for row in runs[0].rows("flows") if row["flow"] == "ef")
    assert ef["delivered_pkts"] > 16_000
    # It waits for one packet at most, and for its own end.
    assert ef["delay_max_s"] <= 0.25 + 2 * 1500 * 8 / 20e6 + 1e-4
    assert all(row["timeouts"] is not None for row in runs[0].rows("flows") if row["kind"] == "tcp")


@pytest.mark.slow
def test_a_job_that_fails_says_why(laboratory: Laboratory) -> None:
    with pytest.raises(LaboratoryError, match=r"Cannot find device \"eth7\""):
        host.start(laboratory.guest, {"run": b"set -e\nip link set eth7 up\n"}, 1)


@pytest.mark.slow
def test_the_kernel_ends_with_the_program_that_started_it(laboratory: Laboratory, tmp_path: Path) -> None:
    program = """
from linkweir.lab import guest, host, kernel
host.start(guest.prepare(kernel.build("fast")), {"run": b"while :; do sleep 1; done"}, 1)
"""
    started = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        wait_until(lambda: bool(users_of(tmp_path)), 300)
        started.kill()
        wait_until(lambda: not users_of(tmp_path))
    finally:
        started.kill()
        started.wait()


@pytest.mark.slow
@pytest.mark.parametrize("seen", [False, True], ids=["before it knows of it", "after"])
def test_what_the_kernel_begins_ends_with_it(laboratory: Laboratory, seen: bool) -> None:
    """Its processes are traced by it; it may be killed before it has said that they shall end with it."""
    program = f"""
import ctypes, os, signal, time
kernel, begun = os.getpid(), os.fork()
if begun:
    if {seen}:
        os.waitpid(begun, os.WUNTRACED)
    os.kill(kernel, signal.SIGKILL)
print(os.getpid(), flush=True)
while not {seen} and os.getppid() == kernel:
    time.sleep(0.01)
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
os.kill(os.getpid(), signal.SIGSTOP)
"""
    environment = {**os.environ, "LD_PRELOAD": str(laboratory.guest.preload)}
    kernel = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
    assert kernel.stdout is not None
    begun = int(kernel.stdout.readline())
    kernel.wait()
    with kernel.stdout as held:  # by what was begun, while it is there
        ended, _, _ = select.select([held], [], [], 30)
    if not ended:
        os.kill(begun, signal.SIGKILL)
    assert ended


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_folders_behind(
    laboratory: Laboratory, tmp_path: Path, number: signal.Signals
) -> None:
    """Ended by Ctrl-C or SIGTERM it removes its own; after `kill -9` the next one removes them."""
    assert laboratory.guest.linux.exists()  # built, so that the command need not
    scenario = linkweir.Scenario.from_dict({**thirty_seconds(), "duration": "3600s"})
    (tmp_path / "long.toml").write_text(scenario.resolved)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    command = [*COMMAND, "lab", "run", str(tmp_path / "long.toml"), "--out", str(tmp_path / "out"), "--force"]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: bool(users_of(scratch)), 300)
        started.send_signal(number)
        _, said = started.communicate(timeout=60)
    finally:
        started.kill()
        started.wait()
    wait_until(lambda: not users_of(scratch))
    if number != signal.SIGKILL:
        assert b"Traceback" not in said
        assert list(scratch.iterdir()) == []
        return
    assert list(scratch.iterdir()) != []
    program = 'from linkweir.lab import guest, kernel; guest.prepare(kernel.build("fast"))'
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list(scratch.iterdir()) == []


def test_a_kernel_does_not_begin_after_the_program_that_started_it() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for parent, begins in ((os.getpid(), True), (ended.pid, False)):
        done = subprocess.run(host.ending_with(parent, ["echo", "begun"]), capture_output=True, text=True, check=False)
        assert (done.stdout == "begun\n") == begins


REGISTERS = r"""
#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char registers[4096]; /* more than a host without AMX has */

static int set(int pid)
{
	struct iovec all = { registers, sizeof(registers) };

	return ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all) == 0;
}

int main(int words, char **word)
{
	struct iovec all = { registers, sizeof(registers) };
	int pid = fork();

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(1);
		raise(SIGSTOP);
	}
	waitpid(pid, 0, 0);
	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all))
		return 2;
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);
	if (words == 2 && *word[1] == 'c')
		registers[32]++;
	if (words == 2 && *word[1] == 'r')
		ptrace(PTRACE_CONT, pid, 0, 0);
	return set(pid); /* a process that has gone cannot get registers */
}
"""


def test_registers_that_have_not_changed_are_not_set_again(tmp_path: Path) -> None:
    if why := kernel.why_not():
        pytest.skip(f"NO KERNEL IN VIRTUAL TIME: {why}")
    library = tmp_path / "preload.so"
    library.write_bytes(guest._library(kernel.tree() / "lab/preload.c", tmp_path / "made"))
    (tmp_path / "registers.c").write_text(REGISTERS)
    subprocess.run(["gcc", "-o", tmp_path / "registers", tmp_path / "registers.c"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    for words, left_out in (([], 1), (["changed"], 0), (["ran"], 0)):
        program = [tmp_path / "registers", *words]
        assert subprocess.run(program, env=environment, check=False, timeout=60).returncode == left_out


CLOCK = """
import select, time
first = time.monotonic_ns()
time.sleep(0.001)
assert time.monotonic_ns() == first
waits = select.epoll()
waits.poll(0)
second = time.monotonic_ns()
assert second > first
times = []
while len(times) < 100:
    time.sleep(0.0001)
    times.append(time.monotonic_ns())
assert 1 < len(set(times)) < 10, "a new time after 64 reads; sleep() reads it, too"
"""


def test_a_program_in_the_kernel_reads_the_clock_again_after_it_has_waited(tmp_path: Path) -> None:
    if why := kernel.why_not():
        pytest.skip(f"NO KERNEL IN VIRTUAL TIME: {why}")
    library = tmp_path / "clock.so"
    library.write_bytes(guest._library(kernel.tree() / "lab/guest/clock.c", tmp_path / "made"))
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    assert subprocess.run([sys.executable, "-S", "-c", CLOCK], env=environment, check=False).returncode == 0


def users_of(folder: Path) -> list[str]:
    """The processes that work in a folder below this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if folder in path.readlink().parents:
                found.append(path.parent.name)
    return found


@pytest.mark.slow
def test_another_seed_gives_another_run(laboratory: Laboratory) -> None:
    scenario = {**thirty_seconds(), "duration": "3s", "warmup": "0s"}
    first, second = (laboratory.run(scenario, seed=seed) for seed in (1, 2))
    assert first.rows("flow_series") != second.rows("flow_series")


@pytest.mark.slow
def test_delays_and_losses_are_those_of_the_simulator(laboratory: Laboratory) -> None:
    variant = pds.Variant("6", delay=pds.USUAL, loss=pds.USUAL[::-1], history="decayed")
    scenario = {**pds.scenario(variant, 1, 9.0), "warmup": "4s"}
    ours = {row["class"]: row for row in laboratory.run(scenario).rows("classes")}
    theirs = {row["class"]: row for row in linkweir.run(scenario).rows("classes")}
    for name, row in theirs.items():
        for key, base, bound in (("delay_mean_s", "class 1", 0.05), ("loss", "class 8", 0.1)):
            assert ours[name][key] / ours[base][key] == pytest.approx(row[key] / theirs[base][key], rel=bound), (
                name,
                key,
            )
        assert ours[name]["arrived_pkts"] == pytest.approx(row["arrived_pkts"], rel=0.01)


@pytest.mark.slow
def test_packets_are_lost_and_delayed_on_the_way(laboratory: Laboratory) -> None:
    cbr = {"class": "all", "kind": "cbr", "rate": "3Mbit"}
    scenario = fifo(duration="10s", link={"loss": 0.1, "delay": "20ms"}, scheduler={"policy": "fifo"})
    scenario["flow"] = [cbr, {**cbr, "access_delay": "30ms"}]
    rows = laboratory.run(scenario).rows("flows")
    for row, delay_s in zip(rows, (0.02, 0.05), strict=True):
        n = row["arrived_pkts"]
        assert n == 2500
        assert abs(row["delivered_pkts"] - 0.9 * n) < 4 * (0.09 * n) ** 0.5 + delay_s * n / 10
        assert row["delay_p50_s"] == pytest.approx(delay_s, abs=0.0025)
        assert row["lost_link_pkts"] is None  # the kernel does not count them by flow


LINKS = {
    "constant": {"rate": "4Mbit", "delay": "20ms", "overhead": "14B"},
    "cosine": {"rate": {"mean": "4Mbit", "amplitude": 0.6, "period": "3s", "phase": 0.0}, "delay": "20ms"},
    "outages": {
        "rate": {"steps": [["0s", "4Mbit"], ["2s", "0bit"], ["3.5s", "6Mbit"], ["4.0003s", "1Mbit"], ["4.5s", "9Mbit"]]}
    },
    "opportunities": {"trace": "up.trace", "trace_format": "mahimahi", "delay": "3ms"},
    "delays": {"rate": "4Mbit", "delay": {"steps": [["0s", "20ms"], ["3s", "5ms"], ["4s", "90ms"]]}},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKS)
def test_every_packet_takes_as_long_as_in_the_simulator(laboratory: Laboratory, tmp_path: Path, name: str) -> None:
    (tmp_path / "up.trace").write_text("".join(f"{ms}\n" for ms in (0, 1, 3, 3, 9, 15, 16, 17, 40, 41, 42, 43, 44, 50)))
    # Rates that have no common multiple: packets that meet at an instant may have either order.
    cbr = {"class": "all", "kind": "cbr"}
    keys = fifo(duration="6s", scheduler={"policy": "fifo"}, **{"class": [{"name": "all", "limit": "40000p"}]})
    keys["link"] = LINKS[name]
    keys["flow"] = [
        {**cbr, "rate": "1.5123791Mbit", "packet": "1200B"},
        {**cbr, "rate": "1.1073917Mbit", "packet": "700B", "access_delay": "3ms", "start": "10.137ms"},
    ]
    scenario = linkweir.Scenario.from_dict(keys, path=tmp_path / "scenario.toml")
    ours, theirs = laboratory.run(scenario), linkweir.run(scenario)
    for mine, row in zip(ours.rows("flows"), theirs.rows("flows"), strict=True):
        assert mine["delivered_pkts"] == row["delivered_pkts"]
        assert mine["delay_mean_s"] == pytest.approx(row["delay_mean_s"], abs=1e-6)
        assert mine["delay_max_s"] == pytest.approx(row["delay_max_s"], abs=2e-6)
    for mine, row in zip(ours.rows("link"), theirs.rows("link"), strict=True):
        assert mine["capacity_bps"] == pytest.approx(row["capacity_bps"], rel=1e-6)
        assert mine["used_bps"] == pytest.approx(row["used_bps"], abs=3 * 1214 * 8)
    for mine, row in zip(ours.rows("classes"), theirs.rows("classes"), strict=True):
        assert abs(mine["sent_pkts"] - row["sent_pkts"]) <= 1
        if name != "opportunities":  # when a packet begins is then not known
            assert mine["delay_max_s"] == pytest.approx(row["delay_max_s"], abs=2e-6)


@pytest.mark.slow
def test_only_flows_that_negotiated_it_are_marked(laboratory: Laboratory) -> None:
    keys = fifo(duration="15s", link={"rate": "4Mbit", "delay": "20ms"}, scheduler={"policy": "fq_codel"})
    keys["class"] = [{"name": name, "limit": "10240p"} for name in ("marked", "dropped")]
    tcp = {"kind": "tcp", "count": 3}
    keys["flow"] = [{**tcp, "class": "marked", "ecn": True}, {**tcp, "class": "dropped"}]
    marked, dropped = laboratory.run(keys).rows("classes")
    assert marked["marked_pkts"] > 20
    assert marked["dropped_limit_pkts"] == 0
    assert dropped["marked_pkts"] == 0
    assert dropped["dropped_limit_pkts"] > 20
    assert sum(row["marked_pkts"] for row in laboratory.run(keys).rows("series")) == marked["marked_pkts"]
    keys["scheduler"]["ecn"] = "no"
    assert [row["marked_pkts"] for row in laboratory.run(keys).rows("classes")] == [0, 0]


SAMPLE = (
    "cubic, RTT 100 ms, outage 1 s, 1 flow",
    "cubic, RTT 50 ms, drr 1:15, 4 flows per class",
    "reno, RTT 50 ms, fq_codel with ECN, 1 queue of 10 flows",
    "bbr, RTT 50 ms, loss 0 %",
)
"""Scenarios of the agreement that hardly differ from seed to seed."""


@pytest.mark.slow
def test_simulated_tcp_agrees_with_the_kernels_in_a_sample(laboratory: Laboratory, tmp_path: Path) -> None:
    chosen = [case for case in cases.cases() if case.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    wanted = [(side, case, seed) for case in chosen for seed in (1, 2) for side in transport.SIDES]
    unstaggered = Laboratory(stagger_s=0.0)
    store = transport.Store(tmp_path / "store")
    answers = transport.run_all(wanted, unstaggered, store, 2, lambda _: None)
    lines = transport.compared(chosen, (1, 2), answers)
    assert {line.name: [q.title for q in line.outside] for line in lines if line.outside} == {}
    # What was stored is not run again.
    unstaggered.run = None  # type: ignore[method-assign,assignment]
    assert transport.run_all(wanted, unstaggered, store, 2, lambda _: None) == answers


@pytest.mark.slow
def test_datagrams_may_count_as_sent_when_they_were_due(laboratory: Laboratory) -> None:
    cbr = {"class": "all", "kind": "cbr", "rate": "3Mbit", "packet": "300B"}  # a packet each 0.8 ms
    scenario = linkweir.Scenario.from_dict(fifo(duration="2s", scheduler={"policy": "fifo"}, flow=cbr))
    made = world(scenario, laboratory.guest.kinds)

    def sent_ns(where: guest.Guest) -> Any:
        return collect.Record(made, host.start(where, made.job, 1), collect.tc_counters).packets["sent_ns"].astype(int)

    due_ns = sent_ns(Laboratory(sent_when_due=True).guest)
    np.testing.assert_array_equal(due_ns, 800_000 * np.arange(len(due_ns)))
    late_ns = sent_ns(laboratory.guest) - due_ns
    assert 0 < late_ns.min() < 1000
    assert np.median(late_ns) < 1000


@pytest.mark.slow
def test_losses_in_bursts_and_reordering_are_those_of_the_simulator(laboratory: Laboratory) -> None:
    cbr = {"class": "all", "kind": "cbr", "rate": "3Mbit", "packet": "300B"}
    keys = fifo(duration="60s", link={"delay": "20ms"}, scheduler={"policy": "fifo"}, flow=cbr)
    keys["link"] |= {"loss": {"mean": 0.05, "burst": "4p"}, "reorder": {"probability": 0.2, "delay": "9ms"}}
    scenario = linkweir.Scenario.from_dict(keys)
    made = world(scenario, laboratory.guest.kinds)
    record = collect.Record(made, host.start(laboratory.guest, made.job, 1), collect.tc_counters)
    order = np.round(record.packets["sent_ns"] / 0.8e6).astype(int)  # a packet is created every 0.8 ms
    n = 60_000
    lost = np.ones(n, bool)
    lost[order[order < n]] = False
    # The simulator's own draws say which.
    fates = np.frombuffer(scenario.native.fates(n), np.uint8)
    np.testing.assert_array_equal(lost, fates == 1)
    late = np.zeros(n, bool)
    late[order[(record.packets["came_ns"] - record.packets["sent_ns"] > 25e6) & (order < n)]] = True
    np.testing.assert_array_equal(late, fates == 2)
    mean_burst = lost.sum() / (lost[1:] & ~lost[:-1]).sum()
    assert mean_burst == pytest.approx(4, rel=4 * (4 / (0.05 * n)) ** 0.5)
    took_ms = (record.packets["came_ns"] - record.packets["sent_ns"]) / 1e6
    np.testing.assert_allclose(np.minimum(abs(took_ms - 20.24), abs(took_ms - 29.24)), 0, atol=2e-3)
    assert (took_ms > 25).mean() == pytest.approx(0.2, abs=4 * (0.16 / n) ** 0.5)
    row = linkweir.run(scenario).rows("flows")[0]
    assert row["delay_max_s"] == pytest.approx(0.02924, abs=1e-6)
    assert row["delay_mean_s"] == pytest.approx(took_ms.mean() / 1e3, rel=0.01)
    for part in (lost.mean(), row["lost_link_pkts"] / row["arrived_pkts"]):
        assert part == pytest.approx(0.05, abs=4 * (0.0475 / n * 8) ** 0.5)


@pytest.mark.slow
def test_every_congestion_control_runs_and_its_window_is_a_mean_over_time(laboratory: Laboratory) -> None:
    scenario = fifo(duration="10s", link={"rate": "4Mbit", "delay": "20ms"}, scheduler={"policy": "fifo"})
    scenario["class"][0]["limit"] = "20p"
    for cc in ("cubic", "newreno"):
        scenario["flow"] = [{"class": "all", "kind": "tcp", "cc": cc}]
        whole = laboratory.run(scenario).rows("flows")[0]
        assert whole["goodput_bps"] == pytest.approx(4e6 * 1448 / 1500, rel=0.1)
        assert whole["retransmitted_pkts"] > 0
        assert whole["spurious_pkts"] is not None
        assert 10 < whole["cwnd_mean_pkts"] < 45
        finer = laboratory.run({**scenario, "interval": "50ms"}).rows("flows")[0]
        assert finer["cwnd_mean_pkts"] == pytest.approx(whole["cwnd_mean_pkts"], rel=0.05)
