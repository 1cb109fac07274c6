#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How much faster than real time the satellite runs, and how long `linkweir reproduce codes` takes.

The case is the journal paper's voice: 300 users behind PF, 100 s, on one core; for comparison, other policies and the
corrected mode. Medians of processor time over the repetitions, each with another channel, as in a reproduction.

    bench/codes.py [--repetitions 5] [--whole | --instructions] [--json | --markdown] [--out FILE]

With --instructions, instructions per packet of the same cases instead, counted by callgrind from the 32nd to the 36th
simulated second, when all users talk: some minutes, and the same figures whatever else the machine does.
With --whole, both papers in both modes as well, whole and with --quick, on all cores: 20 to 40 minutes.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import instructions
import linkweir
import report
from linkweir.reproduce.papers import codes

CASES = (
    ("published", "PF", 300),
    ("published", "RR", 300),
    ("published", "DT_S", 300),
    ("corrected", "PF", 300),
    ("corrected", "PF", 450),
    ("corrected", "FQ-CoDel", 450),
    ("corrected", "M-LWDF", 450),
)
COLUMNS = ["mode", "policy", "users", "packets", "cpu s", "times real time"]
DURATION_S = 100.0
COUNTED_S = (32.0, 36.0)
TARGET = {("published", "PF", 300): 40.0}
TARGET_WHOLE_S = 1800.0
TARGET_QUICK_S = 120.0


def time_case(mode, policy, users, repetitions):
    seconds, packets = [], 0
    for seed in range(1, repetitions + 1):
        scenario = codes.scenario(codes.JOURNAL, policy, users, seed, DURATION_S, mode)
        sound = linkweir.Scenario.from_dict(scenario)
        begun = time.process_time()
        result = linkweir.run(sound)
        seconds.append(time.process_time() - begun)
        packets = sum(row["arrived_pkts"] for row in result.rows("flows"))
    median_s = statistics.median(seconds)
    return {
        "mode": mode,
        "policy": policy,
        "users": users,
        "packets": packets,
        "cpu_s": seconds,
        "times_real_time": DURATION_S / median_s,
    }


def count_case(mode, policy, users):
    def scenario_of(duration_s):
        scenario = codes.scenario(codes.JOURNAL, policy, users, 1, duration_s, mode)
        return linkweir.Scenario.from_dict(scenario).resolved

    return instructions.between(f"{mode}, {policy}, {users} users", scenario_of, *COUNTED_S)


def count_instructions(options):
    instructions.build()
    rows = []
    for case in CASES:
        print(", ".join(map(str, case)), file=sys.stderr)
        rows.append(count_case(*case))
    report.write(
        options,
        {"instructions": rows},
        lambda markdown: report.table(instructions.COLUMNS, map(instructions.cells, rows), markdown=markdown),
    )


def time_whole(quick):
    walls, before = {}, resource.getrusage(resource.RUSAGE_CHILDREN)
    for paper in codes.PAPERS:
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "linkweir", "reproduce", "codes", "--paper", paper, "--mode", "both"]
            command += ["--out", str(Path(scratch) / "out"), *(["--quick"] if quick else [])]
            begun = time.monotonic()
            done = subprocess.run(command, stdout=subprocess.DEVNULL)
            walls[paper] = time.monotonic() - begun
        if done.returncode:
            raise SystemExit(f"codes.py: {' '.join(command)}: exit code {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"quick": quick, "wall_s": walls, "cpu_s": cpu_s, "cores": os.cpu_count()}


def render(rows, wholes, markdown):
    lines = []
    for row in rows:
        median_s = statistics.median(row["cpu_s"])
        cells = [row["mode"], row["policy"], row["users"], row["packets"], f"{median_s:.2f}"]
        lines.append([str(cell) for cell in [*cells, f"{row['times_real_time']:.0f}"]])
    return report.table(COLUMNS, lines, verdicts(rows, wholes), markdown=markdown)


def verdicts(rows, wholes):
    for row in rows:
        target = TARGET.get((row["mode"], row["policy"], row["users"]))
        if target is not None:
            found = row["times_real_time"]
            case = f"{row['mode']}, {row['policy']}, {row['users']} users"
            yield f"{case}: {found:.0f} times real time, target {target:g}: {report.verdict(found >= target)}"
    for whole in wholes:
        target_s = TARGET_QUICK_S if whole["quick"] else TARGET_WHOLE_S
        took_s = sum(whole["wall_s"].values())
        which = "`reproduce codes`, both papers, both modes" + (", `--quick`" if whole["quick"] else "")
        parts = ", ".join(f"{paper} {wall_s:.0f} s" for paper, wall_s in whole["wall_s"].items())
        on = f"{whole['cpu_s']:.0f} s of processor time on {whole['cores']} cores"
        yield f"{which}: {took_s:.0f} s ({parts}; {on}), target {target_s:g} s: {report.verdict(took_s <= target_s)}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=report.within(int, 1, 100), default=5, metavar="N", help="default 5")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--whole", action="store_true", help="also time the reproductions: 20 to 40 minutes")
    what.add_argument(
        "--instructions",
        action="store_true",
        help="count the simulator's instructions per packet with callgrind instead of measuring times",
    )
    return report.options_of(parser)


def main():
    options = parse_arguments()
    if options.instructions:
        count_instructions(options)
        return 0
    rows = []
    for mode, policy, users in CASES:
        print(f"{mode}, {policy}, {users} users", file=sys.stderr)
        rows.append(time_case(mode, policy, users, options.repetitions))
    wholes = [time_whole(quick) for quick in (True, False)] if options.whole else []
    answer = {"cases": rows, "reproductions": wholes}
    report.write(options, answer, lambda markdown: render(rows, wholes, markdown))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except instructions.InstructionsError as fault:
        print(f"codes.py: {fault}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
