#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a gateway per round trip, of two builds; counted by callgrind, so other work does not matter.

A gateway under callgrind and one beside it carry datagrams between two network namespaces; the far end echoes each.
The next datagram leaves when the last has come back. What the functions of handshakes take is left out: their number
depends on the clock. Needs root.

    bench/gateway_instructions.py NEW [--before OLD] [--round-trips 2000] [--cleartext] [--functions 20]

NEW and OLD are programs, `target/release/linkweir-gateway` of two work trees. For names of functions, build both with
`CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release -p linkweir-gateway`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import gateway
import report

FEW = 200  # round trips of the shorter run, which is taken off the longer one: start, session, growing buffers
PAYLOAD_BYTES = 64
SETTLED_S = 3  # until then the system reports addresses of IPv6, at which a gateway looks at its paths again
SELF_EXE = gateway.BUILD / "self_exe.so"
TARGET = 0.01
LOOP = "linkweir_gateway::run::Gateway::run"  # only what it calls is counted
# What a handshake takes, and what the clock alone causes. The rest of boringtun's module `noise` is of packets: the
# choice of a session, its counters and its replay window.
NOT_OF_PACKETS = re.compile(
    r"handshake|x25519|curve25519|blake2|NoiseParams|fiat|shake_hands|montgomery", re.IGNORECASE
)

ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
while True:
    data, sender = s.recvfrom(2048)
    s.sendto(data, sender)
"""
ASK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 5000))
s.settimeout(10)
for _ in range(int(sys.argv[2])):
    s.send(bytes(int(sys.argv[3])))
    s.recv(2048)
"""


def build_self_exe() -> None:
    """Builds what a gateway needs that starts itself under valgrind."""
    gateway.BUILD.mkdir(parents=True, exist_ok=True)
    source = gateway.BENCH / "gateway" / "self_exe.c"
    gateway.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", source, "-o", SELF_EXE, "-ldl"])


def self_costs(file: Path) -> dict[str, int]:
    """Instructions by function, without what it calls."""
    costs = {}
    text = gateway.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", file])
    for line in text.splitlines():
        found = re.match(r"\s*([\d,]+)\s+(\S.*)$", line)
        if found and "PROGRAM TOTALS" not in line:
            name = re.sub(r"^[^:]*:(?!:)|\s+\[.*\]$|'\d+$", "", found[2])
            costs[name] = costs.get(name, 0) + int(found[1].replace(",", ""))
    return costs


def run_costs(binary: Path, round_trips: int, sealed: bool) -> dict[str, int]:
    """Instructions by function of a gateway that carries so many round trips, from its start to its end."""
    with gateway.Place() as place:
        out = place.file("callgrind.out")
        program = [
            f"SELF_EXE={binary}",
            f"LD_PRELOAD={SELF_EXE}",
            "valgrind",
            "--quiet",
            "--vgdb=no",
            "--tool=callgrind",
        ]
        under = ["env", *program, f"--toggle-collect={LOOP}", f"--callgrind-out-file={out}.%p"]
        gateway.start_gateway(sealed, binary, under)(place)
        counted = place.children[0]
        gateway.wait_ready(place)
        place.start(1, [sys.executable, "-c", ECHO])
        time.sleep(SETTLED_S)
        ask = [sys.executable, "-c", ASK, gateway.INNER[1]]
        gateway.run(place.inside(0, [*ask, round_trips, PAYLOAD_BYTES]))
        # The gateway has given up its privileges, and callgrind writes at its end.
        costs = Path(f"{out}.{counted.pid}")
        costs.chmod(0o666)
        costs.parent.chmod(0o711)
        place.end(counted)
        return self_costs(costs)


def count(binary: Path, round_trips: int, sealed: bool) -> dict[str, float]:
    """Instructions per round trip of a build by function: what a longer run takes above a shorter one."""
    shorter, longer = (run_costs(binary, count, sealed) for count in (FEW, FEW + round_trips))
    names = {*shorter, *longer}
    return {name: (longer.get(name, 0) - shorter.get(name, 0)) / round_trips for name in names}


def of_packets(costs: dict[str, float]) -> float:
    return sum(cost for name, cost in costs.items() if not NOT_OF_PACKETS.search(name))


def render(results: dict[str, dict[str, float]], functions: int, markdown: bool) -> str:
    lines = [[name, f"{of_packets(costs):.0f}", f"{sum(costs.values()):.0f}"] for name, costs in results.items()]
    verdicts = []
    if "before" in results:
        before, new = results["before"], results["new"]
        more = of_packets(new) / of_packets(before) - 1
        verdicts.append(f"{more:+.2%} instructions, target {TARGET:+.0%}: {report.verdict(more <= TARGET)}")
        names = {name for name in {*before, *new} if not NOT_OF_PACKETS.search(name)}
        differences = {name: new.get(name, 0) - before.get(name, 0) for name in names}
        most = sorted(names, key=lambda name: -abs(differences[name]))[:functions]
        verdicts.extend(f"{differences[name]:+.1f} to {new.get(name, 0):.1f}: {name}" for name in most)
    return report.table(["build", "instructions per round trip", "with handshakes"], lines, verdicts, markdown=markdown)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("new", type=Path, help="the program that is measured")
    parser.add_argument("--before", type=Path, help="the program that it is compared with")
    parser.add_argument("--round-trips", type=report.within(int, 100, 100_000), default=2000, help="(default 2000)")
    parser.add_argument("--cleartext", action="store_true", help="without sessions")
    parser.add_argument(
        "--functions", type=report.within(int, 0, 1000), default=0, help="list those that differ most (default none)"
    )
    options = report.options_of(parser)
    lacks = [*gateway.missing(), *(["valgrind (apt-get install valgrind)"] if not shutil.which("valgrind") else [])]
    if lacks:
        print(f"gateway_instructions.py: missing: {', '.join(lacks)}", file=sys.stderr)
        return 1
    gateway.build_probe()
    build_self_exe()
    builds = {"before": options.before, "new": options.new}
    results = {
        name: count(path.resolve(), options.round_trips, not options.cleartext) for name, path in builds.items() if path
    }
    report.write(options, results, lambda markdown: render(results, options.functions, markdown))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (gateway.BenchError, subprocess.TimeoutExpired) as fault:
        print(f"gateway_instructions.py: {fault}", file=sys.stderr)
        sys.exit(1)
