# SPDX-License-Identifier: BSD-3-Clause
"""Seconds per packet and hop of Linkweir and ns-3 on the parking lot and on a shell of satellites, in one run."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import instructions
import ns3_network
import peers
import report
import shell
from network_scenarios import scenario_of, written

# Simulated seconds of a speed run; of the shell ns-3 runs a part, which has its rate.
SPEED_S, SHELL_S, NS3_SHELL_S = 60.0, 100.0, 5.0
NS3_TARGET, SHELL_TARGET_S, SHELL_TARGET_KB, THREADS_TARGET = 30.0, 60.0, 1 << 20, 1.6
ONE_THREAD, TWO_THREADS = "linkweir", "linkweir, 2 threads"
CASES = ("parking", "shell")
COLUMNS = [
    "network",
    "simulator",
    "simulated s",
    "M packet-hops",
    "run s",
    "user s",
    "peak MB",
    "ns / packet-hop",
    "x run",
    "x user",
]


def run_once(command):
    """Packet-hops, seconds without start-up, and what the process took of the machine."""
    text, used = peers.measure(command)
    found = json.loads(text)
    return {"hops": found.get("hops", found.get("packets")), "run_s": found["run_s"], **used}


def lasting(scenario, duration_s):
    return {**scenario, "duration": f"{duration_s:g}s", "warmup": "0s"}


def lineup_of(case, scratch):
    """Who runs a network, for how many simulated seconds, with which command.

    The satellites of the shell move in Linkweir; ns-3 runs the links of one instant.
    """
    if case == "shell":
        tcp = next(flow for flow in scenario_of("parking", "cubic", 1)["flow"] if flow["kind"] == "tcp")
        keys = ("cc", "profile", "mss", "initial_window", "min_rto", "delayed_ack", "hystart", "timestamps")
        tcp = {key: tcp[key] for key in keys}
        scenario, graph = shell.scenario(SHELL_S, tcp)
        ours = shell.constellation(SHELL_S, tcp)
        threads = {ONE_THREAD: 1, TWO_THREADS: 2}
    else:
        scenario, graph, threads = scenario_of(case, "cubic", 1), None, {ONE_THREAD: 1}
        ours = scenario
    ours_s, theirs_s = (SHELL_S, NS3_SHELL_S) if case == "shell" else (SPEED_S, SPEED_S)
    file = scratch / f"{case}.toml"
    file.write_text(written(lasting(ours, ours_s)), encoding="utf-8")
    for who, count in threads.items():
        yield who, ours_s, [str(instructions.BINARY), str(file), str(count)]
    yield "ns-3", theirs_s, ns3_network.speed_command(lasting(scenario, theirs_s), scratch, graph)


def measure(case, rounds):
    """Medians over rounds in which each simulator runs once; ratios are of one round."""
    with tempfile.TemporaryDirectory() as name:
        lineup = list(lineup_of(case, Path(name)))
        runs = {who: [] for who, _, _ in lineup}
        for turn in range(rounds):
            for who, _, command in lineup:
                print(f"speed of {case}: round {turn + 1} of {rounds}: {who}", file=sys.stderr)
                runs[who].append(run_once(command))
    reference = runs[lineup[0][0]]
    return [
        {
            "case": case,
            "simulator": who,
            "simulated_s": simulated_s,
            "hops": runs[who][-1]["hops"],
            **{
                key: statistics.median(run[key] for run in runs[who])
                for key in ("run_s", "wall_s", "user_s", "peak_kb")
            },
            **{
                f"{key}_times_linkweir": statistics.median(
                    run[key] / run["hops"] / (ours[key] / ours["hops"])
                    for run, ours in zip(runs[who], reference, strict=True)
                )
                for key in ("run_s", "user_s")
            },
        }
        for who, simulated_s, _ in lineup
    ]


def cells(row):
    return [
        row["case"],
        row["simulator"],
        f"{row['simulated_s']:g}",
        f"{row['hops'] / 1e6:.2f}",
        f"{row['run_s']:.2f}",
        f"{row['user_s']:.2f}",
        f"{row['peak_kb'] / 1024:.0f}",
        f"{row['run_s'] / row['hops'] * 1e9:.0f}",
        f"{row['run_s_times_linkweir']:.2f}",
        f"{row['user_s_times_linkweir']:.2f}",
    ]


def verdicts(rows):
    for row in rows:
        who = row["simulator"]
        if row["case"] == "parking" and who == "ns-3":
            ratio = row["user_s_times_linkweir"]
            met = ratio >= NS3_TARGET
            found = f"parking, ns-3 per packet and hop: {ratio:.1f} x, target {NS3_TARGET:g} x"
        elif row["case"] == "shell" and who == ONE_THREAD:
            met = row["wall_s"] <= SHELL_TARGET_S and row["peak_kb"] <= SHELL_TARGET_KB
            found = (
                f"shell: {row['wall_s']:.0f} s, {row['peak_kb'] / 1024:.0f} MB, targets {SHELL_TARGET_S:g} s, 1024 MB"
            )
        elif row["case"] == "shell" and who == TWO_THREADS:
            gain = 1 / row["run_s_times_linkweir"]
            met = gain >= THREADS_TARGET
            found = f"shell, two threads: {gain:.2f} x one, target {THREADS_TARGET:g} x"
        else:
            continue
        yield f"{found}: {report.verdict(met)}"


def render(rows, markdown):
    return report.table(COLUMNS, map(cells, rows), verdicts(rows), markdown=markdown)
