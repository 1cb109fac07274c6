#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How exactly the link emulator keeps its settings, measured from outside at both ends.

For each rate and delay: a load of half the rate shows the delay, a load of six fifths the rate. A trace is offered more
than its peak. Packets carry the time they were sent; both ends read one clock. The emulator's own report is shown, too.
Needs root, and the package of this tree.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import report
from linkweir.lab import LaboratoryError, namespaces
from linkweir.lab.signal import Signal
from linkweir.lab.world import DUE
from linkweir.scenarios.scenario import Scenario

RATES_MBIT = (5, 20, 100)
DELAYS_MS = (10, 250)
PACKET_BYTES = 1500
LIGHT, HEAVY = 0.5, 1.2
SETTLE_S = 1.0
ALLOWED_RATE = 0.01
ALLOWED_CURVE = 0.02
LEAST_BPS = 1e6
"""Seconds of a trace that carry less are left out: a packet is more than 1 % of them."""

CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])

SCRIPT = """\
set -e
cd "$JOB"
echo $ZERO_NS >$OUT/zero_ns
for host in sender receiver; do ip netns add $host; ip -n $host link set lo up; done
{emulator} link.toml --json >$OUT/report & emulator=$!
for host in sender receiver; do
	until ip -n $host link show up dev sat 2>/dev/null | grep -q sat; do kill -0 $emulator; sleep 0.02; done
	ip -n $host link set sat txqueuelen 10000
done
ip netns exec receiver workload receive 1000000000 {end_ns} $OUT/datagrams $OUT/streams & jobs=$!
ip netns exec sender workload datagrams 192.0.2.2 due 0 & jobs="$jobs $!"
for job in $jobs; do wait $job; done
kill -TERM $emulator
wait $emulator || :
"""


@dataclass(frozen=True)
class Asked:
    """A link and what is offered to it: pairs of a time in s and a load in bit/s from then on."""

    way: Mapping[str, str]
    offered: tuple[tuple[float, float], ...]
    end_s: float


def due(asked: Asked) -> bytes:
    """The sending times and lengths of all packets."""
    parts = []
    ends = [*(t_s for t_s, _ in asked.offered[1:]), asked.end_s]
    for (from_s, bps), to_s in zip(asked.offered, ends, strict=True):
        at_s = np.arange(from_s, to_s, 8 * PACKET_BYTES / bps)
        part = np.zeros(len(at_s), DUE)
        part["at_ns"], part["bytes"] = np.round(1e9 * at_s).astype(np.uint64), PACKET_BYTES
        parts.append(part)
    return np.concatenate(parts).tobytes()


def measure(tools: namespaces.Tools, asked: Asked, *, realtime: bool) -> tuple[np.ndarray, dict[str, object], int]:
    """The packets received, the emulator's report, and the instant of the packets' time 0."""
    way = "".join(f"{key} = {json.dumps(value)}\n" for key, value in asked.way.items())
    ends = "".join(
        f'[{end}]\ndevice = "sat"\nnetns = "{host}"\naddress = "192.0.2.{last}/24"\n'
        for end, host, last in (("a", "sender", 1), ("b", "receiver", 2))
    )
    text = f'{ends}[a_to_b]\n{way}[b_to_a]\nrate = "1Gbit"\n'
    last_s = asked.end_s + 1.0
    emulator = "linkweir-gateway emulate" if realtime else "chrt --other 0 linkweir-gateway emulate --normal-priority"
    script = SCRIPT.format(emulator=emulator, end_ns=round(1e9 * last_s))
    job = {"run": script.encode(), "link.toml": text.encode(), "due": due(asked)}
    files = namespaces.start(tools, job, last_s)
    packets = np.frombuffer(files["datagrams"], CAME)
    return packets, json.loads(files["report"]), int(files["zero_ns"])


def steady(tools: namespaces.Tools, mbit: int, delay_ms: int, part_s: float, *, realtime: bool) -> dict[str, object]:
    """Rate and delay of a constant link."""
    bps, delay_s = mbit * 1e6, delay_ms / 1e3
    way = {"rate": f"{mbit}Mbit", "delay": f"{delay_ms}ms", "limit": "200p"}
    asked = Asked(way, ((0.0, LIGHT * bps), (part_s, HEAVY * bps)), 2 * part_s)
    packets, report, _ = measure(tools, asked, realtime=realtime)
    sent_s, came_s = packets["sent_ns"] / 1e9, packets["came_ns"] / 1e9
    light = (sent_s > SETTLE_S) & (sent_s < part_s - 0.01)
    extra_ms = 1e3 * (came_s - sent_s - 8 * PACKET_BYTES / bps - delay_s)[light]
    heavy = came_s[(came_s > part_s + SETTLE_S + delay_s) & (came_s < 2 * part_s + delay_s - 0.01)]
    rate_bps = 8 * PACKET_BYTES * (len(heavy) - 1) / (heavy[-1] - heavy[0])
    there = report["directions"][0]
    allowed_ms = 1 + 0.01 * delay_ms
    p99_ms, rate_off = float(np.quantile(extra_ms, 0.99)), rate_bps / bps - 1
    return {
        "asked": f"{mbit} Mbit/s, {delay_ms} ms",
        "priority": "real-time" if report["realtime"] else "normal",
        "rate_off_percent": 100 * rate_off,
        "delay_off_p50_ms": float(np.quantile(extra_ms, 0.5)),
        "delay_off_p99_ms": p99_ms,
        "delay_off_max_ms": float(extra_ms.max()),
        "allowed_ms": allowed_ms,
        "own_late_p99_ms": there["late_p99_ns"] / 1e6,
        "own_faults": len(there["faults"]),
        "kept": bool(abs(rate_off) <= ALLOWED_RATE and abs(p99_ms) <= allowed_ms),
    }


def traced(tools: namespaces.Tools, trace: Path, lasts_s: int, *, realtime: bool) -> dict[str, object]:
    """The bits that a link with a trace delivered in each second, compared with the trace."""
    keys = {"duration": f"{lasts_s + 10}s", "link": {"trace": str(trace)}, "scheduler": {"policy": "fifo"}}
    keys |= {"class": [{"name": "all"}], "flow": [{"class": "all", "kind": "greedy"}]}
    Scenario.from_dict(keys)  # raises if the trace is invalid
    times, values = np.loadtxt(trace, delimiter=",", comments=["#", "t_s"], unpack=True, usecols=(0, 1))
    points = [[f"{t:.6f}s", f"{v:.0f}bit"] for t, v in zip(times, values, strict=True)]
    period_s = next(float(line.split("=")[1]) for line in trace.read_text().splitlines() if "period_s" in line)
    signal = Signal({"steps": points, "end": "loop", "period": f"{period_s}s"}, "rate", lasts_s + 60.0)
    delay_s = 0.05
    way = {"trace": str(trace), "delay": "50ms", "limit": "1000p"}
    asked = Asked(way, ((0.0, 1.2 * float(values.max())),), float(lasts_s))
    packets, report, zero_ns = measure(tools, asked, realtime=realtime)
    # Seconds of the link's own clock, from the first whole one in which the queue is full.
    came_s = (packets["came_ns"] + zero_ns - report["began_ns"]) / 1e9 - delay_s
    first = int(np.ceil((zero_ns - report["began_ns"]) / 1e9 + SETTLE_S))
    edges = np.arange(first, first + lasts_s - 2)
    bits = 8.0 * PACKET_BYTES * np.histogram(came_s, edges)[0]
    wanted = np.diff(signal.integral(edges.astype(float)))
    curve_off = np.cumsum(bits) / np.cumsum(wanted) - 1
    counted = wanted >= LEAST_BPS
    each_off = bits[counted] / wanted[counted] - 1
    there = report["directions"][0]
    worst = float(np.abs(curve_off[1:]).max())
    return {
        "trace": trace.name,
        "priority": "real-time" if report["realtime"] else "normal",
        "seconds": len(wanted),
        "delivered_mbit": float(bits.sum() / 1e6),
        "curve_off_max_percent": 100 * worst,
        "second_off_p99_percent": 100 * float(np.quantile(np.abs(each_off), 0.99)),
        "second_off_max_percent": 100 * float(np.abs(each_off).max()),
        "own_late_p99_ms": there["late_p99_ns"] / 1e6,
        "kept": worst <= ALLOWED_CURVE,
    }


def table(rows: list[dict[str, object]], *, markdown: bool) -> str:
    """A table for each group of rows with equal columns."""
    return report.table(list(rows[0]), [list(map(report.cell, row.values())) for row in rows], markdown=markdown)


def _results(arguments: argparse.Namespace, tools: namespaces.Tools) -> Iterator[tuple[str, dict[str, object]]]:
    for realtime in (True, False) if arguments.both else (True,):
        for mbit in RATES_MBIT:
            for delay_ms in DELAYS_MS:
                yield "steady", steady(tools, mbit, delay_ms, arguments.part, realtime=realtime)
        if arguments.trace is not None:
            yield "traced", traced(tools, arguments.trace.resolve(), arguments.seconds, realtime=realtime)


def main() -> int:
    """The command; returns 1 if a bound was missed with real-time priority."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateway", type=Path, help="linkweir-gateway (default: the one that cargo built)")
    parser.add_argument(
        "--part", type=report.within(float, 2, 3600), default=10.0, help="seconds of each load (default 10)"
    )
    parser.add_argument("--trace", type=Path, help="CSV with columns t_s, capacity_bps and a comment period_s=")
    parser.add_argument("--seconds", type=report.within(int, 5, 3600), default=60, help="of the trace (default 60)")
    parser.add_argument("--both", action="store_true", help="also without real-time priority")
    arguments = report.options_of(parser)
    found: dict[str, list[dict[str, object]]] = {}
    whole = False
    with tempfile.TemporaryDirectory() as folder:
        try:
            tools = namespaces.prepare(arguments.gateway or namespaces.find_gateway(), Path(folder))
            for kind, row in _results(arguments, tools):
                found.setdefault(kind, []).append(row)
                print(json.dumps(row), file=sys.stderr)
            whole = True
        except LaboratoryError as error:
            print(f"bench/emulator.py: {error}", file=sys.stderr)
    report.write(
        arguments, found, lambda markdown: "\n".join(table(rows, markdown=markdown) for rows in found.values())
    )
    judged = [row for rows in found.values() for row in rows if row["priority"] == "real-time"]
    return 0 if whole and all(row["kept"] for row in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
