#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Linkweir's simulator compared with ns-2 and ns-3 on the same two cases, in one run.

Every round runs each simulator once, one after the other, so that a slow minute of the machine affects all of them;
ratios are taken within a round, and their median over the rounds is shown. A start-up run of 10 simulated
milliseconds next to each full run shows how much of the time is spent before the first packet.

    bench/peers.py [--rounds 3] [--case geo] [--peer ns-2] [--duration 100] [--json | --markdown] [--out FILE]

With --instructions, Linkweir's instructions per packet on the same cases instead, counted by callgrind from the 10th to
the 20th simulated second: under a minute, and the same whatever else the machine does.
"""

import argparse
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import instructions
import report

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "target" / "bench"
START_UP_S = 0.01
COUNTED_S = (10.0, 20.0)
TIME_LIMIT_S = 900
CASES = {
    "geo": "20 Mbit/s, RTT 500 ms, EF CBR 10 Mbit/s, 10 + 10 CUBIC flows (AF, CS0), EF strict over equal shares",
    "many": "50 Mbit/s, RTT 160 ms, 100 CUBIC flows, one FIFO",
}
TOPOLOGIES = {"routers": 0, "hosts": 1}  # value of the scripts' `hosts` option
TARGETS = {"ns-2": 2.0, "ns-3": 30.0}
NS3_MODULES = ("core", "network", "internet", "applications", "traffic-control", "point-to-point")


class UnavailableError(Exception):
    """A simulator cannot run here; the text says what to do."""


class Linkweir:
    name = "linkweir"
    topologies = ("routers",)
    binary = ROOT / "target" / "release" / "examples" / "run_scenario"

    def prepare(self, build):
        source = ROOT / "crates" / "linkweir-sim" / "examples" / "run_scenario.rs"
        if build and source.exists():
            if not shutil.which("cargo"):
                raise UnavailableError("not built: cargo is missing")
            compiled = subprocess.run(
                ["cargo", "build", "--release", "-q", "-p", "linkweir-sim", "--example", "run_scenario"],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            if compiled.returncode:
                raise UnavailableError("not built: cargo build failed:\n" + compiled.stderr)
        if not self.binary.exists():
            raise UnavailableError(f"not built: {self.binary.relative_to(ROOT)} is missing")

    def scenario(self, case, duration_s, profile="ns2"):
        """The scenario of a case; `profile` is whose TCP is simulated."""
        text = (BENCH / "scenarios" / f"{case}.toml").read_text()
        for key, value_s in (("duration", duration_s), ("interval", min(1.0, duration_s))):
            text, count = re.subn(rf'(?m)^{key} = "[^"]*"$', f'{key} = "{value_s:g}s"', text)
            if count != 1:
                raise RuntimeError(f"bench/scenarios/{case}.toml has no line for {key}")
        if duration_s < 1:  # a flow that would start after the end is refused
            text = re.sub(r'(?m)^stagger = "[^"]*"$', 'stagger = "0s"', text)
        return text.replace('profile = "ns2"', f'profile = "{profile}"')

    def command(self, case, topology, duration_s, scratch):
        scenario = Path(scratch) / f"{case}-{duration_s:g}.toml"
        scenario.write_text(self.scenario(case, duration_s))
        return [str(self.binary), str(scenario)]

    def result(self, line, duration_s):
        answer = json.loads(line)
        classes = [
            {
                "class": row["class"],
                "mbps": row["sent_bytes"] * 8 / duration_s / 1e6,
                "packets": row["sent_pkts"],
                "dropped": row["dropped_limit_pkts"] + row["dropped_policy_pkts"],
            }
            for row in answer["classes"]
        ]
        return {"packets": sum(row["packets"] for row in classes), "events": answer.get("events"), "classes": classes}


class Ns2:
    name = "ns-2"
    topologies = ("routers", "hosts")

    def prepare(self, build):
        if not shutil.which("ns"):
            raise UnavailableError("not installed: apt-get install ns2")

    def command(self, case, topology, duration_s, scratch):
        script = str(BENCH / "ns2" / "dumbbell.tcl")
        hosts = str(TOPOLOGIES[topology])
        return ["ns", script, "-case", case, "-duration", f"{duration_s:g}", "-hosts", hosts]

    def result(self, line, duration_s):
        return json.loads(line)


class Ns3:
    name = "ns-3"
    topologies = ("routers", "hosts")
    binary = BUILD / "ns3_dumbbell"

    def prepare(self, build):
        source = BENCH / "ns3" / "dumbbell.cc"
        if not build:
            if not self.binary.exists():
                raise UnavailableError(f"not built: {self.binary.relative_to(ROOT)} is missing")
            return
        if not shutil.which("g++") or not Path("/usr/include/ns3/core-module.h").exists():
            raise UnavailableError("not installed: apt-get install g++ libns3-dev")
        if self.binary.exists() and self.binary.stat().st_mtime >= source.stat().st_mtime:
            return
        BUILD.mkdir(parents=True, exist_ok=True)
        libraries = [f"-lns3-{module}" for module in NS3_MODULES]
        compiled = subprocess.run(
            ["g++", "-std=c++17", "-O2", "-o", str(self.binary), str(source), *libraries],
            capture_output=True,
            text=True,
        )
        if compiled.returncode:
            raise UnavailableError("not built: g++ failed:\n" + compiled.stderr)

    def command(self, case, topology, duration_s, scratch):
        hosts = TOPOLOGIES[topology]
        return [str(self.binary), f"--case={case}", f"--duration={duration_s:g}", f"--hosts={hosts}"]

    def result(self, line, duration_s):
        return json.loads(line)


PEERS = (Linkweir(), Ns2(), Ns3())


def watch_memory(pid, samples, done):
    """Keeps the latest high-water mark of a running process, in KB."""
    while not done.wait(0.005):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        mark = re.search(r"VmHWM:\s*(\d+) kB", status)
        if mark:
            samples.append(int(mark.group(1)))


def measure(command, floor_kb=0):
    """Runs a command; returns its standard output and its resource usage.

    Linux counts the memory of the process that called vfork into its child's peak. A child that stays below that
    (`floor_kb`) is sampled every 5 ms instead; what it adds in its last 5 ms may be missed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        guard = threading.Timer(TIME_LIMIT_S, child.kill)
        guard.start()
        samples, done = [0], threading.Event()
        watcher = threading.Thread(target=watch_memory, args=(child.pid, samples, done))
        watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - begin
        guard.cancel()
        done.set()
        watcher.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            complaint = err.read().decode(errors="replace").strip()[-500:]
            raise RuntimeError(f"{' '.join(command)}: exit code {child.returncode}: {complaint}")
        sampled = bool(floor_kb) and usage.ru_maxrss <= floor_kb * 1.05 and max(samples) > 0
        peak_kb = max(samples) if sampled else usage.ru_maxrss
        used = {"wall_s": wall_s, "user_s": usage.ru_utime, "peak_kb": peak_kb, "peak_sampled": sampled}
        return out.read().decode(), used


def run_once(peer, case, topology, duration_s, scratch, floor_kb):
    text, used = measure(peer.command(case, topology, duration_s, scratch), floor_kb)
    _, start_up = measure(peer.command(case, topology, START_UP_S, scratch))
    objects = [line for line in text.splitlines() if line.startswith("{")]
    if len(objects) != 1:
        raise RuntimeError(f"{peer.name} printed {len(objects)} JSON lines instead of one")
    achieved = peer.result(objects[0], duration_s)
    return {**used, "start_up_s": start_up["wall_s"], **achieved}


def median_of(rounds, key):
    return statistics.median(entry[key] for entry in rounds)


def summarise(rounds, reference):
    """Medians of one simulator's rounds, and ratios to the same rounds of the reference."""
    last = rounds[-1]
    row = {key: median_of(rounds, key) for key in ("wall_s", "user_s", "start_up_s", "peak_kb")}
    row["net_s"] = statistics.median(entry["wall_s"] - entry["start_up_s"] for entry in rounds)
    row["peak_sampled"] = any(entry["peak_sampled"] for entry in rounds)
    row["packets_per_s"] = last["packets"] / row["wall_s"]
    row["times_linkweir"] = row["net_times_linkweir"] = row["user_times_linkweir"] = None
    if reference:
        pairs = list(zip(rounds, reference, strict=False))
        row["times_linkweir"] = statistics.median(a["wall_s"] / b["wall_s"] for a, b in pairs)
        if all(b["user_s"] > 0 for b in reference):
            row["user_times_linkweir"] = statistics.median(a["user_s"] / b["user_s"] for a, b in pairs)
        nets = [(a["wall_s"] - a["start_up_s"], b["wall_s"] - b["start_up_s"]) for a, b in pairs]
        if all(b > 0 for _, b in nets):
            row["net_times_linkweir"] = statistics.median(a / b for a, b in nets)
    for key in ("packets", "events", "classes"):
        row[key] = last[key]
    row["rounds"] = rounds
    return row


def row_cells(row):
    rates = " / ".join(f"{entry['mbps']:.2f}" for entry in row["classes"])
    dropped = " / ".join(str(entry["dropped"]) for entry in row["classes"])
    peak = f"{row['peak_kb'] / 1024:.1f}"
    return [
        row["simulator"],
        row["topology"],
        report.cell(row["wall_s"], 3),
        report.cell(row["start_up_s"], 3),
        report.cell(row["user_s"], 3),
        peak,
        str(row["packets"]),
        f"{row['packets_per_s'] / 1000:.0f}",
        "-" if row["events"] is None else f"{row['events'] / 1e6:.2f}",
        rates,
        dropped,
        report.cell(row["times_linkweir"], 1),
        report.cell(row["net_times_linkweir"], 1),
        report.cell(row["user_times_linkweir"], 1),
    ]


COLUMNS = [
    "simulator",
    "topology",
    "wall s",
    "start-up s",
    "user s",
    "peak MB",
    "packets",
    "kpackets/s",
    "M events",
    "Mbit/s per class",
    "dropped per class",
    "x wall",
    "x without start-up",
    "x user",
]


def verdicts(rows):
    for row in rows:
        target = TARGETS.get(row["simulator"])
        if target is None or row["times_linkweir"] is None:
            continue
        verdict = report.verdict(row["times_linkweir"] >= target)
        yield f"{row['simulator']}, {row['topology']}: {row['times_linkweir']:.1f} x, target {target:g} x: {verdict}"


def render(answer, markdown):
    parts = [f"{name}: {reason}\n" for name, reason in answer["unavailable"].items()]
    for case, rows in answer["cases"].items():
        classes = " / ".join(entry["class"] for entry in rows[0]["classes"]) if rows else ""
        title = f"{case}: {CASES[case]}; {answer['duration_s']:g} s; classes {classes}; medians of {answer['rounds']}"
        table = report.table(COLUMNS, map(row_cells, rows), verdicts(rows), markdown=markdown)
        heading = f"### {title}\n\n" if markdown else f"{title}\n"
        parts.append(heading + table)
    return "\n".join(parts)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=report.within(int, 1, 1000), default=3, help="runs of each simulator (default 3)"
    )
    parser.add_argument("--case", choices=list(CASES), action="append", help="default: all")
    parser.add_argument("--peer", choices=[peer.name for peer in PEERS], action="append", help="default: all")
    parser.add_argument("--topology", choices=list(TOPOLOGIES), action="append", help="default: all")
    parser.add_argument(
        "--duration",
        type=report.within(float, START_UP_S, 1_000_000),
        default=100.0,
        help="simulated seconds (default 100)",
    )
    parser.add_argument("--no-build", action="store_true", help="measure programs that are already built")
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="count Linkweir's instructions per packet with callgrind instead of measuring times",
    )
    return report.options_of(parser)


def count_instructions(options):
    if not options.no_build:
        instructions.build()
    linkweir = Linkweir()
    rows = []
    for case, profile in itertools.product(options.case or CASES, ("ns2", "linux")):
        name = f"{case}, TCP of {profile}"
        print(f"{name}: counting instructions", file=sys.stderr)

        def made(duration_s, case=case, profile=profile):
            return linkweir.scenario(case, duration_s, profile)

        rows.append(instructions.between(name, made, *COUNTED_S))
    report.write(
        options,
        {"instructions": rows},
        lambda markdown: report.table(instructions.COLUMNS, map(instructions.cells, rows), markdown=markdown),
    )


def main():
    options = parse_arguments()
    if options.instructions:
        count_instructions(options)
        return 0
    answer = {"duration_s": options.duration, "rounds": options.rounds, "unavailable": {}, "cases": {}}
    ready = []
    for peer in PEERS:
        if options.peer and peer.name not in options.peer:
            continue
        try:
            peer.prepare(not options.no_build)
            ready.append(peer)
        except UnavailableError as reason:
            answer["unavailable"][peer.name] = str(reason)
            print(f"{peer.name}: {reason}", file=sys.stderr)
    if not ready:
        return 1

    _, empty = measure(["true"])
    answer["peak_floor_kb"] = empty["peak_kb"]
    topologies = options.topology or list(TOPOLOGIES)
    with tempfile.TemporaryDirectory() as scratch:
        for case in options.case or CASES:
            lineup = [(peer, topology) for peer in ready for topology in peer.topologies if topology in topologies]
            rounds = {(peer.name, topology): [] for peer, topology in lineup}
            for turn in range(options.rounds):
                for peer, topology in lineup:
                    print(f"{case}: round {turn + 1} of {options.rounds}: {peer.name} {topology}", file=sys.stderr)
                    entry = run_once(peer, case, topology, options.duration, scratch, empty["peak_kb"])
                    rounds[peer.name, topology].append(entry)
            reference = rounds.get(("linkweir", "routers"))
            answer["cases"][case] = [
                {"simulator": name, "topology": topology, **summarise(entries, reference)}
                for (name, topology), entries in rounds.items()
            ]
    report.write(options, answer, lambda markdown: render(answer, markdown))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, instructions.InstructionsError) as fault:
        print(f"peers.py: {fault}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
