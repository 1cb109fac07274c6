#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nanoseconds and instructions per packet of each policy, compared with a bare strict-priority loop.

Compiles core/src/*.c with gcc -O2, one object each as in production (no link-time optimisation), links
bench/core/bench.c to them and runs every case with 3, 64 and 4096 queues, which are drawn at random (the main
figure) and in turn (the cost when the processor predicts every branch). Each repetition times the bare loop, the loop
that also keeps the policy's view, and the policy, one after the other; medians over the repetitions are shown, ratios
are taken within one. Instructions are counted by valgrind's callgrind inside the measured loop only, with random draws.

    bench/core.py [--queues 3] [--case pss] [--repetitions 9] [--no-instructions] [--json | --markdown] [--out FILE]
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import report

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "target" / "bench" / "core"
BINARY = BUILD / "bench"
SIZES = (3, 64, 4096)
MANY = 65536  # queues, for the policies whose cost hardly grows with them and that are used with so many
WITH_MANY = ("rr", "pf", "codes")
TIMED_PACKETS = 1_000_000
COUNTED_PACKETS = 100_000
CFLAGS = ["-std=c11", "-O2", "-D_POSIX_C_SOURCE=199309L", f"-I{ROOT / 'core' / 'include'}"]
TARGET_NS = {("pss", 3): 25.0}
TARGET_GROWTH = 3.0  # instructions of pf at 65536 queues, as a multiple of those at 64


class BenchError(Exception):
    pass


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done


def build():
    if not shutil.which("gcc"):
        raise BenchError("gcc is missing: apt-get install gcc")
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [*sorted((ROOT / "core" / "src").glob("*.c")), BENCH / "core" / "bench.c"]
    objects = []
    for source in sources:
        target = BUILD / (source.stem + ".o")
        run(["gcc", *CFLAGS, "-c", str(source), "-o", str(target)])
        objects.append(str(target))
    run(["gcc", *objects, "-o", str(BINARY)])


def packets_for(linear, queues, packets):
    """Fewer packets for policies whose steps grow with the queues, as their times are long and vary little."""
    return packets if not linear or queues <= 64 else max(packets // 100, 1000)


def time_case(name, order, linear, queues, repetitions):
    packets = packets_for(linear, queues, TIMED_PACKETS)
    answer = json.loads(run([str(BINARY), "time", name, order, str(queues), str(packets), str(repetitions)]).stdout)
    if "refused" in answer:
        return answer
    bare, view, policy = answer["bare_ns"], answer["view_ns"], answer["policy_ns"]
    return {
        "packets": packets,
        "state_bytes": answer["state_bytes"],
        "bare_ns": statistics.median(bare),
        "view_ns": statistics.median(view),
        "policy_ns": statistics.median(policy),
        "policy_least_ns": min(policy),
        "ratio_to_bare": statistics.median(a / b for a, b in zip(policy, bare, strict=True)),
        "ratio_to_view": statistics.median(a / b for a, b in zip(policy, view, strict=True)),
        "repetitions": {"bare_ns": bare, "view_ns": view, "policy_ns": policy},
    }


def count_instructions(what, linear, queues):
    packets = packets_for(linear, queues, COUNTED_PACKETS)
    with tempfile.TemporaryDirectory() as scratch:
        done = run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={scratch}/out",
                "--collect-atstart=no",
                "--toggle-collect=measured_*",
                str(BINARY),
                "count",
                what,
                "random",
                str(queues),
                str(packets),
            ]
        )
    collected = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if not collected:
        raise BenchError("callgrind did not say how much it collected:\n" + done.stderr)
    return int(collected.group(1)) / packets


COLUMNS = [
    "policy",
    "queues",
    "ns",
    "least ns",
    "bare ns",
    "view ns",
    "ns / bare",
    "instructions",
    "of view",
    "of bare",
    "instr. / bare",
    "ns in turn",
    "bare in turn",
    "state bytes",
]


def cells_of(row):
    if "refused" in row:
        return [row["case"], str(row["queues"]), row["refused"]]
    drawn, turn, counted = row["random"], row["turn"], row["instructions"]
    return [
        row["case"],
        str(row["queues"]),
        report.cell(drawn["policy_ns"], 1),
        report.cell(drawn["policy_least_ns"], 1),
        report.cell(drawn["bare_ns"], 1),
        report.cell(drawn["view_ns"], 1),
        report.cell(drawn["ratio_to_bare"], 2),
        report.cell(counted and counted["policy"], 0),
        report.cell(counted and counted["view"], 0),
        report.cell(counted and counted["bare"], 0),
        report.cell(counted and counted["policy"] / counted["bare"], 2),
        report.cell(turn["policy_ns"], 1),
        report.cell(turn["bare_ns"], 1),
        str(drawn["state_bytes"]),
    ]


def verdicts(rows):
    for row in rows:
        target = TARGET_NS.get((row["case"], row["queues"]))
        if target is not None and "refused" not in row:
            ns = row["random"]["policy_ns"]
            verdict = report.verdict(ns <= target)
            measured = f"{row['case']}, {row['queues']} queues: {ns:.1f} ns, target {target:g} ns: {verdict}"
            yield f"{measured}; bare loop {row['random']['bare_ns']:.1f} ns in the same run"
    counted = {
        row["queues"]: row["instructions"]["policy"] for row in rows if row["case"] == "pf" and row.get("instructions")
    }
    if 64 in counted and MANY in counted:
        growth = counted[MANY] / counted[64]
        verdict = report.verdict(growth <= TARGET_GROWTH)
        yield f"pf: {growth:.2f} times the instructions at {MANY} queues, target {TARGET_GROWTH:g}: {verdict}"


def render(rows, markdown):
    return report.table(COLUMNS, map(cells_of, rows), verdicts(rows), markdown=markdown)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--queues", type=report.within(int, 1, MANY), action="append", help="default: 3, 64 and 4096; some also 65536"
    )
    parser.add_argument("--case", action="append", help="default: all; `bench list` names them")
    parser.add_argument(
        "--repetitions", type=report.within(int, 1, 1000), default=9, help="timed repetitions (default 9)"
    )
    parser.add_argument("--no-instructions", action="store_true", help="time only: valgrind is not needed")
    return report.options_of(parser)


def main():
    options = parse_arguments()
    counting = not options.no_instructions
    if counting and not shutil.which("valgrind"):
        print("core.py: instructions are left out, valgrind is missing: apt-get install valgrind", file=sys.stderr)
        counting = False
    build()
    known = dict(line.split() for line in run([str(BINARY), "list"]).stdout.splitlines())
    names = options.case or list(known)
    for name in names:
        if name not in known:
            print(f"core.py: no case {name}; known: {', '.join(known)}", file=sys.stderr)
            return 2

    rows = []
    for queues in options.queues or (*SIZES, MANY):
        plain = {}
        for loop in ("bare", "view") if counting else ():
            plain[loop] = count_instructions(loop, False, queues)
        for name in names:
            if not options.queues and queues == MANY and name not in WITH_MANY:
                continue
            linear = known[name] == "linear"
            print(f"{name}, {queues} queues", file=sys.stderr)
            row = {"case": name, "queues": queues}
            for order in ("random", "turn"):
                timed = time_case(name, order, linear, queues, options.repetitions)
                if "refused" in timed:
                    row = timed
                    break
                row[order] = timed
            else:
                row["instructions"] = None
                if counting:
                    row["instructions"] = {**plain, "policy": count_instructions(name, linear, queues)}
            rows.append(row)
    report.write(options, rows, lambda markdown: render(rows, markdown))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as fault:
        print(f"core.py: {fault}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
