# SPDX-License-Identifier: BSD-3-Clause
"""What the benches have in common: their tables, and the options they refuse before they measure."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from command import REPOSITORY

import linkweir

BENCH = REPOSITORY / "bench"
SECONDS = 15
"""Length of a simulated run."""


def bench(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


report = bench("report")

COLUMNS = ["policy", "ns", "state bytes"]
LINES = [["rr", "10.5", "32"], ["pss-paper", "refused: too many queues"]]


def test_a_table_in_text_has_aligned_columns_that_a_last_cell_does_not_widen() -> None:
    assert report.table(COLUMNS, LINES, markdown=False) == (
        "policy     ns    state bytes\nrr         10.5  32\npss-paper  refused: too many queues\n"
    )


def test_a_table_in_markdown_has_as_many_cells_in_each_line() -> None:
    assert report.table(COLUMNS, LINES, ["rr: 10 ns: reached"], markdown=True) == (
        "| policy | ns | state bytes |\n"
        "|---|---|---|\n"
        "| rr | 10.5 | 32 |\n"
        "| pss-paper | refused: too many queues |  |\n"
        "\n"
        "* rr: 10 ns: reached\n"
    )


def test_verdicts_stand_below_a_table_without_bullets_in_text() -> None:
    verdicts = [f"{name}: {report.verdict(met)}" for name, met in (("rr", True), ("pss", False))]
    assert report.table(["policy"], [["rr"]], verdicts, markdown=False) == "policy\nrr\n\nrr: reached\npss: missed\n"


def test_cells() -> None:
    found = [report.cell(value) for value in (None, True, False, 7, "pss", 1.23456)]
    assert found == ["-", "yes", "NO", "7", "pss", "1.235"]
    assert report.cell(1.25, 0) == "1"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"json": True, "markdown": False}, "[\n 1\n]\n"),
        ({"json": False, "markdown": True}, "rendered True\n"),
        ({"json": False, "markdown": False}, "rendered False\n"),
    ],
)
def test_an_answer_goes_where_it_is_wanted(
    options: dict[str, bool], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in (None, tmp_path / "answer"):
        report.write(Namespace(**options, out=out), [1], lambda markdown: f"rendered {markdown}\n")
    assert capsys.readouterr().out == text
    assert (tmp_path / "answer").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("core.py --queues 65537", "argument --queues: 65537: must be a whole number from 1 to 65536"),
        ("codes.py --repetitions 101", "argument --repetitions: 101: must be a whole number from 1 to 100"),
        ("peers.py --duration nan", "argument --duration: nan: must be a number from 0.01 to 1000000"),
        ("network.py --seeds 0", "argument --seeds: 0: must be a whole number from 1 to 1000"),
        ("gateway.py --rounds 1.5", "argument --rounds: 1.5: must be a whole number from 1 to 1000"),
        ("emulator.py --part 1", "argument --part: 1: must be a number from 2 to 3600"),
        ("overload.py --seconds 10", "argument --seconds: 10: must be a whole number from 11 to 3600"),
        ("feedback.py --out none/x", "argument --out: none/x: must be a file in a directory that exists"),
        ("feedback.py --out .", "argument --out: .: must be a file in a directory that exists"),
        ("peers.py --json --markdown", "argument --markdown: not allowed with argument --json"),
        ("l4s.py --burst 20", "--burst is only for --inside pss"),
        ("l4s.py --inside drr --burst 20", "--burst is only for --inside pss"),
        (
            "l4s.py --inside pss --factors",
            "--factors: the marks of two flows in one class are not counted apart; leave --inside out",
        ),
        ("l4s_kernel.py --seeds 1 --json", "--json: needs two seeds, for standard errors"),
        ("l4s_kernel.py --seeds 3 --simulated 2", "--simulated: must be at least the 3 of --seeds"),
        ("l4s_kernel.py --rates 5", "argument --rates: 5: must list some of 4,12,40,120,200"),
    ],
)
def test_what_is_refused_before_anything_is_measured(arguments: str, message: str, tmp_path: Path) -> None:
    tool, *words = arguments.split()
    command = [sys.executable, str(BENCH / tool), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.rstrip().endswith(f"{tool}: error: {message}")
    assert ended.stdout == ""


def test_a_difference_from_the_kernel_counts_only_beyond_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    tool = bench("l4s_kernel")
    ours, kernels = tool.Estimate.of([1.0, 2.0, 3.0, 4.0]), tool.Estimate.of([2.0, 4.0, 6.0, 8.0])
    # Variances of the means 5/12 and 5/3; Welch's degrees of freedom are 4.4, and t of 4 is 2.776.
    assert tool.half_of_difference(ours, kernels) == pytest.approx(2.776 * math.sqrt(25 / 12))
    values = dict.fromkeys(tool.QUANTITIES, 1.0)
    for apart, beyond in ((4.0, []), (4.1, ["ratio"])):
        found = {
            (side, (5, 4), seed + 1): {**values, "ratio": 10 + spread * (seed - 1.5) + apart * (side == "kernel")}
            for side, spread in (("simulator", 1), ("kernel", 2))
            for seed in range(4)
        }
        assert tool.compared((5, 4), found, {"simulator": 4, "kernel": 4})["beyond"] == beyond
    assert [tool.regime(ratio) for ratio in (0.49, 0.5, 2.0, 2.01)] == ["starves", "shares", "shares", "dominates"]


@pytest.mark.parametrize("inside", ["pss", "drr"])
def test_waits_inside_a_class_are_those_in_the_log_of_packets(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    l4s = bench("l4s")
    waits_ns: dict[str, list[int]] = {"l4s": [], "classic": []}

    def logged(values: dict[str, Any]) -> Any:
        return linkweir.Scenario.from_dict({**values, "log": "packets"})

    def run(scenario: Any) -> Any:
        result = linkweir.run(scenario)
        for row in result.rows("packets"):
            if row["event"] == "sent" and row["flow"] in waits_ns and row["t_ns"] >= SECONDS * 1e9 / 3:
                waits_ns[row["flow"]].append(row["t_ns"] - row["created_ns"])
        return result

    monkeypatch.setattr(l4s, "linkweir", Namespace(run=run, Scenario=Namespace(from_dict=logged)))
    options = Namespace(cc="prague", inside=inside, burst=2, step_packets=0, seconds=SECONDS)
    _, l4s_p99_s, classic_mean_s, _ = l4s.measured(options, round_trip_ms=100, rate_mbit=12, seed=1)
    p99_s = sorted(waits_ns["l4s"])[math.ceil(0.99 * len(waits_ns["l4s"])) - 1] / 1e9
    # Percentiles of tables are within 1 %, here of the wait and of the 0.67 ms that a packet takes to leave.
    assert l4s_p99_s == pytest.approx(p99_s, abs=0.01 * (p99_s + 0.67e-3))
    assert classic_mean_s == pytest.approx(fmean(waits_ns["classic"]) / 1e9, rel=0.01)


def cut_flows(bond: Any, *, af_delay_s: float = 0.03) -> dict[str, tuple[float, list[tuple[float, int]]]]:
    """All packets of the flows of bench/bond.py, which began at 100 s, in order."""
    return {
        name: (100.0, [(100 + number / rate + af_delay_s, number) for number in range(rate * bond.END_S)])
        for name, _, rate, _ in bond.CUT_FLOWS
    }


@pytest.mark.slow
def test_a_cut_is_judged_by_what_was_sent_and_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    bond = bench("bond")
    rate = {name: pkts for name, _, pkts, _ in bond.CUT_FLOWS}
    assert bond.judged(cut_flows(bond), 120.0, 0.1)[1] == 0

    # Voice that dies for good, or begins late.
    for first_s, end_s, gap_ms in ((0, 50, 9990), (7, 60, 7030)):
        flows = cut_flows(bond)
        begun, came = flows["voice"]
        flows["voice"] = (begun, [of for of in came if first_s * 50 <= of[1] < end_s * 50])
        said, missed = bond.judged(flows, 120.0, 0.1)
        assert missed == 1
        assert f"longest gap {gap_ms} ms" in said[1]

    # What comes late and in order is not lost, and does not hide what is.
    flows = cut_flows(bond)
    begun, came = flows["af"]
    late = [(at + 0.4 if 130 <= at < 131 else at, number) for at, number in came]
    flows["af"] = (begun, sorted(late, key=lambda of: of[1]))
    assert bond.judged(flows, 120.0, 0.1)[1] == 0

    # Losses from 100 ms before the cut to 300 ms after it are spared, and none after that: 5 % of a second.
    for from_s, missed in ((19.9, 0), (20.25, 0), (20.3, 1), (39.9, 1), (0, 1), (59.95, 1)):
        lost = {number for number in range(rate["af"] * 60) if from_s <= number / rate["af"] < from_s + 0.05}
        flows["af"] = (begun, [of for of in came if of[1] not in lost])
        said, found = bond.judged(flows, 120.0, 0.1)
        assert found == missed, (from_s, said)


def test_figures_of_paths_are_compared_within_a_number_of_peers() -> None:
    peers = bench("many_peers")
    rows = [{"start_cpu_s": 0.004, "memory_mb": 10.04}, {"start_cpu_s": 0.006, "memory_mb": 20.08}]
    found = [
        (row["start_cpu_s"], row["memory_mb"], row["times_memory"], row["times_start"]) for row in peers.compared(rows)
    ]
    # Of 0.00 and 0.01 s, as they are printed, there would be no ratio.
    assert found == [(0.0, 10.0, 1.0, 1.0), (0.01, 20.1, 2.0, 1.5)]
    rows[0]["start_cpu_s"] = 0
    assert math.isnan(peers.compared(rows)[1]["times_start"])


def test_traces_of_a_bond_repeat_and_have_no_rate_that_a_gateway_cannot_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setitem(sys.modules, "bond", bench("bond"))  # the oracle has a module of this name
    traces = bench("bond_traces")
    looped = tmp_path / "looped.csv"
    looped.write_text("# end=loop\n# period_s=2\nt_s,capacity_bps\n0,4000000\n1,999\n")
    steps = traces.steps_of(str(looped), 5)
    assert steps == [(0, 4_000_000), (1, 0), (2, 4_000_000), (3, 0), (4, 4_000_000)]
    assert traces.mean_bps(steps, 5) == 3 * 4_000_000 / 5
    # A mahimahi trace gives 1500 bytes at each of these instants, ms: three in the first 100 ms, one in the last 50.
    turns = tmp_path / "turns"
    turns.write_text("1\n2\n100\n150\n")
    assert traces.steps_of(f"{turns},trace_format=mahimahi", 0.15) == [(0, 360_000), (0.1, 240_000)]
    first = traces.steps_of(f"{turns},trace_format=mahimahi", 0.2)
    assert first[2] == (0.15, 360_000)
    flows = traces.flows_for(20e6)
    assert sum(flow.pkts_per_s * flow.link_bytes * 8 for flow in flows if flow.name == "rest") == pytest.approx(100e6)
