#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two recorded links at once, overloaded fivefold: a gateway beside the simulation of the same bond.

Two namespaces are joined by two emulated links whose capacities follow traces; a program (`command`) tells the gateway
each capacity when it changes. The simulator has the same links as a `[[bond]]` with `follow`. Both carry the same flows
of constant rate: a heartbeat (a copy over each link), voice (`best`), AF with a reserved rate (`stripe`), and the rest
(`spill`), which is five times what the links carry on average. Needs root, iproute2 and the package of this tree.

    bench/bond_traces.py [--first FILE[,KEY=VALUE...]] [--second FILE[,KEY=VALUE...]] [--seconds 600] [--where virtual]
        [--program FILE]

Aims, for each flow: the rates at the receiver differ by 2 % at most, the 95th percentiles of the delays by 5 ms. The
traces become steps of 100 ms. Delays are from when a packet was sent until the receiver had it, by one clock. Also
printed: how far the links were from their traces in time, and what the emulators found wrong with themselves.

In real time the gateway is told 99 % of each capacity, 3 ms early. Gateways and flows, but not that of the rest, have
real-time priority, as the emulators have; the load is printed. In virtual time (bond_virtual.py) no load disturbs: the
gateway is told all of each capacity, when it changes.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bond
import bond_virtual
import linkweir
import report
from linkweir.traces import exported, keys_of

TRACES = bond.gateway.ROOT / "scenarios" / "traces"
STEP_S = 0.1
LEAST_BPS = 1000  # a gateway takes 0 or this
LEAD_S, LEAD_BPS = 20, 20_000_000  # until both ends have agreed
DELAYS_MS = (30, 45)
# What is late is made good at 1 % more than the rate. Without so much room on the link its queue would not drain.
SHARE = 0.99
# The gateway is told so much before a link changes: what it sends too late at a high rate waits for long at a low one.
EARLY_S = 0.003
# As the emulators have it. What is not timed, the rest, has none.
REAL_TIME = ("chrt", "--rr", "1")
WARMUP_S = 5
RATE_LIMIT, DELAY_LIMIT_S = 0.02, 0.005
# What the tunnel adds to the payload of a datagram, and the number of a packet of some classes.
TUNNEL_BYTES, NUMBER_BYTES = 20 + 8 + 60, 12
# A probe, and how many each path that is in use gets in a second: what they take of a link is a flow of the simulation.
PROBE_BYTES, PROBES_PER_S = 80 + 60, 20
# What AF has reserved is more than it sends, or a queue of a fade would never be over.
AF_BPS, AF_RESERVED_BPS = 2_000_000, 4_000_000
CLASSES: tuple[dict[str, Any], ...] = (
    {"name": "heartbeat", "level": 0, "paths": "all", "reorder": "none", "limit": "50p", "max_age": "200ms"},
    {"name": "voice", "level": 1, "reorder": "none", "limit": "50p", "max_age": "1s"},
    {
        "name": "af",
        "level": 2,
        "low_level": 4,
        "rate": f"{AF_RESERVED_BPS}bit",
        "paths": "stripe",
        "reorder": "400ms",
        "resend": True,
        "limit": "400p",
    },
    {"name": "rest", "level": 3, "paths": "spill", "reorder": "none", "limit": "200p"},
)
CODE_POINTS = {"heartbeat": ("EF", 46), "voice": ("VOICE-ADMIT", 44), "af": ("AF41", 34)}
NUMBERED = tuple(entry["name"] for entry in CLASSES if entry.get("paths") in ("all", "stripe"))
OVERLOAD = 5
REST_BYTES = 1300
# In virtual time the rest is sent in bursts, so often, ns, which takes less real time. Its queue is always full.
BURST_NS = 1_000_000
# The path's capacity, a line whenever it changes. Arguments: a file of the times on the monotonic clock, s, and rates.
CAPACITY = """
import sys, time
for line in open(sys.argv[1]):
    at, rate = line.split()
    time.sleep(max(float(at) - time.monotonic(), 0))
    print(rate, flush=True)
time.sleep(1e6)
"""
# When a device is there, on the monotonic clock.
SEEN = """
import os, sys, time
print("ready", flush=True)
while not os.path.exists("/sys/class/net/" + sys.argv[1]):
    time.sleep(0.0002)
print(time.monotonic(), flush=True)
"""
# A payload begins with the time it was sent, ns, and its number. Arguments: side, address, port, DSCP, bytes, seconds,
# packets/s, when it begins on the monotonic clock, its name. The receiver writes when each came and was sent, ns, and
# its number into a file.
FLOW = """
import array, socket, struct, sys, time
side, address = sys.argv[1:3]
port, dscp, length, seconds = map(int, sys.argv[3:7])
rate, begun = map(float, sys.argv[7:9])
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if side == "receive":
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    link.bind((address, port))
    link.settimeout(0.5)
    came, end = array.array("q"), begun + seconds
    print("ready", flush=True)
    while time.monotonic() < end:
        try:
            data = link.recv(2048)
        except TimeoutError:
            continue
        came.extend((time.monotonic_ns(), *struct.unpack("!qI", data[:12])))
    came.tofile(open(sys.argv[10], "wb"))
else:
    link.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    link.connect((address, port))
    rest = bytes(length - 12)
    for number in range(int(rate * seconds)):
        wait = begun + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        link.send(struct.pack("!qI", time.monotonic_ns(), number) + rest)
"""
PATH = """
[[peer.path]]
name = "{name}"
{endpoint}
{capacity}
"""


Steps = list[tuple[float, int]]


def steps_of(given: str, seconds: float) -> Steps:
    """A trace as times, s, and rates, bit/s, for so long; a rate that a gateway cannot have is an outage."""
    file, *keys = given.split(",")
    period_s, steps = 0.0, []
    for line in exported(file, bin_s=STEP_S, keys=keys_of(keys)).splitlines():
        if line.startswith("# period_s="):
            period_s = float(line.partition("=")[2])
        elif line[0].isdigit():
            at, rate = line.split(",")
            steps.append((float(at), int(rate) if int(rate) >= LEAST_BPS else 0))
    whole: Steps = []
    rounds = int(seconds / period_s) + 1 if period_s else 1
    for turn in range(rounds):
        for at, rate in steps:
            if turn * period_s + at < seconds and (not whole or whole[-1][1] != rate):
                whole.append((turn * period_s + at, rate))
    return whole


def mean_bps(steps: Steps, seconds: float) -> float:
    ends = [*(at for at, _ in steps[1:]), seconds]
    return sum((end - at) * rate for (at, rate), end in zip(steps, ends, strict=True)) / seconds


def written(steps: Steps) -> str:
    return "# end=hold\nt_s,capacity_bps\n" + "".join(f"{at:.6f},{rate}\n" for at, rate in steps)


class Flow:
    """A flow of packets of one size: of its class, with so many bytes on a link, and so many packets a second."""

    def __init__(self, name: str, payload_bytes: int, pkts_per_s: float) -> None:
        self.name, self.payload_bytes, self.pkts_per_s = name, payload_bytes, pkts_per_s
        self.link_bytes = payload_bytes + TUNNEL_BYTES + (NUMBER_BYTES if name in NUMBERED else 0)


def flows_for(sum_bps: float) -> list[Flow]:
    af, rest = 1000, REST_BYTES - TUNNEL_BYTES
    return [
        Flow("heartbeat", 160, 50),
        Flow("voice", 160, 50),
        Flow("af", af, AF_BPS / 8 / (af + TUNNEL_BYTES + NUMBER_BYTES)),
        Flow("rest", rest, OVERLOAD * sum_bps / 8 / REST_BYTES),
    ]


# --- The simulator ----------------------------------------------------------------------------------------------------


def simulated(traces: list[Steps], flows: list[Flow], seconds: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Rate, bit/s on a link, and 95th percentile of the delay, s, of each flow."""
    links = []
    for at, steps in enumerate(traces):
        file = folder / f"simulated{at}.csv"
        file.write_text(written(steps))
        name = bond.NAMES[at]
        links.append({"name": name, "trace": str(file), "follow": True, "delay": f"{DELAYS_MS[at]}ms", "cost": at})
    probing = [f"probes of {name}" for name in bond.NAMES]
    probes = [
        {"name": probe, "level": at, "paths": [bond.NAMES[at]], "reorder": "none", "max_age": "1s"}
        for at, probe in enumerate(probing)
    ]
    levels = ("level", "low_level")
    classes = [{key: what + 2 if key in levels else what for key, what in entry.items()} for entry in CLASSES]
    sent = [(flow.name, flow.link_bytes, flow.pkts_per_s) for flow in flows]
    sent += [(probe, PROBE_BYTES, PROBES_PER_S) for probe in probing]
    scenario = {
        "duration": f"{seconds}s",
        "warmup": f"{WARMUP_S}s",
        "link": links,
        "bond": [
            {
                "name": "both",
                "links": list(bond.NAMES),
                "room": "10ms",
                "detect": "200ms",
                "scheduler": {"policy": "pss"},
                "class": [*probes, *classes],
            }
        ],
        "flow": [
            {
                "name": name,
                "path": ["both"],
                "class": name,
                "kind": "cbr",
                "packet": f"{link_bytes}B",
                "rate": f"{pkts_per_s * link_bytes * 8:.0f}bit",
            }
            for name, link_bytes, pkts_per_s in sent
        ],
    }
    rows = linkweir.run(scenario).flows.to_pylist()
    return {row["flow"]: (row["rate_bps"], row["delay_p95_s"]) for row in rows}


# --- The gateway ------------------------------------------------------------------------------------------------------


def traced_link(at: int, ends: Sequence[str]) -> str:
    """The configuration of an emulated link between two namespaces that follows a file."""
    text = bond.link_text(at, ends, 100, DELAYS_MS[at])
    # From the second end to the first: that is the direction of the flows.
    head, tail = text.split("[b_to_a]")
    return head + "[b_to_a]" + tail.replace('rate = "100Mbit"', f'trace = "emulated{at}.csv"')


def path_text(end: int, at: int, command: list[str]) -> str:
    """The configuration of a path at an end; the command tells the sender its capacity."""
    endpoint, capacity = "", 'rate = "100Mbit"'
    if end == 1:
        endpoint = f'endpoint = "10.9{at}.0.1:51820"\ndevice = "{bond.NAMES[at]}"\ncost = {at}'
        capacity = f'rate = "{LEAD_BPS}bit"\ncommand = {json.dumps(command)}'
    return PATH.format(name=bond.NAMES[at], endpoint=endpoint, capacity=capacity)


def classes_text() -> str:
    """The configuration of the classes."""
    text = ""
    for entry in CLASSES:
        # With `reorder`, even none, the gateway gives packets numbers.
        keys = {key: what for key, what in entry.items() if key != "reorder" or entry["name"] in NUMBERED}
        text += "[[class]]\n" + "".join(f"{key} = {json.dumps(what)}\n" for key, what in keys.items())
        if entry["name"] in CODE_POINTS:
            text += f'match = [{{ dscp = "{CODE_POINTS[entry["name"]][0]}" }}]\n'
    return text


def figures(flow: Flow, came: Sequence[tuple[int, int]], begun_s: float, seconds: int) -> tuple[float, float]:
    """Rate, bit/s on a link, and 95th percentile of the delay, s, of packets by when they came and were sent, ns."""
    first, last = (int(1e9 * (begun_s + at)) for at in (WARMUP_S, seconds))
    delays = sorted((came_ns - sent_ns) / 1e9 for came_ns, sent_ns in came if first <= came_ns < last)
    rate = len(delays) * flow.link_bytes * 8 / (seconds - WARMUP_S)
    return rate, delays[int(0.95 * (len(delays) - 1))] if delays else float("inf")


class TracePlace(bond.Place):
    """Two namespaces, and two links between them whose capacities follow traces after a lead."""

    def __init__(self, traces: list[Steps], folder: Path, program: Path) -> None:
        super().__init__(((0, 0), DELAYS_MS, 1, 0), folder, program)
        self.traces = traces
        self.emulators: list[subprocess.Popen[str]] = []
        self.begins_s: list[float] = []
        self.leads_s: list[float] = []
        self.takes_s = 0.0

    def link(self, at: int) -> str:
        return traced_link(at, self.names)

    def emulate(self, at: int, file: Path) -> None:
        watch = self.start(0, [sys.executable, "-c", SEEN, bond.NAMES[at]], stdout=subprocess.PIPE)
        assert watch.stdout is not None
        watch.stdout.readline()
        # Both traces begin at one time, as far as the second emulator takes as long to start as the first.
        start_s = time.monotonic()
        lead_s = self.begins_s[0] - start_s - self.takes_s if self.begins_s else LEAD_S
        steps = [(0.0, LEAD_BPS), *((lead_s + time_s, rate) for time_s, rate in self.traces[at])]
        (self.folder / f"emulated{at}.csv").write_text(written(steps))
        command = [self.program, "emulate", file, "--json"]
        emulator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.emulators.append(emulator)
        self.children.append(emulator)
        seen_s = float(watch.stdout.readline())
        self.takes_s = seen_s - start_s
        self.begins_s.append(seen_s + lead_s)
        self.leads_s.append(lead_s)
        lines = [f"0 {int(LEAD_BPS * SHARE)}bit\n"]
        for time_s, rate in self.traces[at]:
            told = max(int(rate * SHARE), LEAST_BPS) if rate else 0
            lines.append(f"{self.begins_s[at] + time_s - EARLY_S:.6f} {told}bit\n")
        (self.folder / f"capacity{at}").write_text("".join(lines))

    def start(self, end: int, command: list[Any], *, timed: bool = True, **options: Any) -> subprocess.Popen[str]:
        """Starts a command with real-time priority, unless it is not timed."""
        return super().start(end, [*REAL_TIME, *command] if timed else command, **options)

    def path(self, end: int, at: int) -> str:
        return path_text(end, at, [sys.executable, "-c", CAPACITY, str(self.folder / f"capacity{at}")])

    def carry(self, flows: list[Flow], seconds: int) -> dict[str, tuple[float, float]]:
        """As `simulated`, of the gateways."""
        begun = max(self.begins_s)
        ends = []
        for port, flow in enumerate(flows, 6000):
            dscp = CODE_POINTS.get(flow.name, ("", 0))[1]
            words = ["10.77.0.1", port, dscp, flow.payload_bytes, seconds, flow.pkts_per_s, begun, flow.name]
            receive = [sys.executable, "-c", FLOW, "receive", *words, self.folder / flow.name]
            timed = flow.name != "rest"
            receiver = self.start(0, receive, timed=timed, stdout=subprocess.PIPE)
            assert receiver.stdout is not None
            receiver.stdout.readline()
            ends.append(receiver)
            ends.append(self.start(1, [sys.executable, "-c", FLOW, "send", *words], timed=timed))
        if time.monotonic() > begun - 1:
            raise SystemExit("bond_traces.py: the gateways took too long to agree")
        for child in ends:
            child.wait(timeout=seconds + LEAD_S + 60)
        found = {}
        for flow in flows:
            came = array.array("q")
            with (self.folder / flow.name).open("rb") as file:
                came.frombytes(file.read())
            found[flow.name] = figures(flow, list(zip(came[::3], came[1::3], strict=True)), begun, seconds)
        return found

    def emulated(self) -> list[str]:
        """Ends the emulators and says what was wrong with them."""
        apart_ms = (self.begins_s[1] - self.begins_s[0]) * 1e3
        said = [f"the second trace began {apart_ms:.1f} ms after the first"]
        for at, emulator in enumerate(self.emulators):
            emulator.send_signal(signal.SIGINT)
            out, _ = emulator.communicate(timeout=20)
            found = json.loads(out)
            way = found["directions"][1]
            off_ms = (self.begins_s[at] - self.leads_s[at] - found["began_ns"] / 1e9) * 1e3
            late_ms = way["late_p99_ns"] / 1e6
            said.append(
                f"{bond.NAMES[at]}: the gateway's times are {off_ms:+.1f} ms from the emulator's, which dropped "
                f"{way['dropped_limit_pkts']}, was late by {late_ms:.1f} ms for one of 100, {faults_of(way)}"
            )
        return said


def in_real_time(
    traces: list[Steps], flows: list[Flow], seconds: int, folder: Path, program: Path
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """As `simulated`, of gateways in namespaces; and what was wrong with the links."""
    with TracePlace(traces, folder, program) as place:
        place.gateways(classes_text())
        found = place.carry(flows, seconds)
        said = place.emulated()
    said.append(f"load {os.getloadavg()[1]:.1f} on {os.cpu_count()} processors")
    return found, said


def virtual(traces: list[Steps], flows: list[Flow], seconds: int) -> bond_virtual.Run:
    """The same as a run in virtual time, in which gateways are told all of each capacity, when it changes."""
    emulated, capacities = {}, {}
    for at, steps in enumerate(traces):
        shifted = [(0.0, LEAD_BPS), *((time_s - bond_virtual.BEGIN_S, rate) for time_s, rate in steps)]
        emulated[f"emulated{at}.csv"] = written(shifted)
        capacities[bond.NAMES[at]] = steps
    gateways = []
    for end in (0, 1):
        paths = [path_text(end, at, bond_virtual.capacity_command(bond.NAMES[at])) for at in (0, 1)]
        gateways.append(bond.gateway_text(end, bond_virtual.KEY, classes_text(), paths))
    return bond_virtual.Run(
        links={bond.NAMES[at]: traced_link(at, bond_virtual.HOSTS) for at in (0, 1)},
        traces=emulated,
        gateways=(gateways[0], gateways[1]),
        capacities=capacities,
        flows=[
            bond_virtual.Sent(
                flow.name,
                CODE_POINTS.get(flow.name, ("", 0))[1],
                flow.payload_bytes,
                flow.pkts_per_s,
                BURST_NS if flow.name == "rest" else 0,
            )
            for flow in flows
        ],
        seconds=seconds,
    )


def figures_of(ran: bond_virtual.Found, flows: list[Flow], seconds: int) -> dict[str, tuple[float, float]]:
    """As `simulated`, of a run in virtual time."""
    found = {}
    for flow in flows:
        at_ns, sent_ns = ran.came[flow.name]
        found[flow.name] = figures(flow, list(zip(at_ns.tolist(), sent_ns.tolist(), strict=True)), 0.0, seconds)
    return found


def in_virtual_time(
    traces: list[Steps], flows: list[Flow], seconds: int, program: Path
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """As `in_real_time`."""
    ran = bond_virtual.run(bond_virtual.prepare(program), virtual(traces, flows, seconds))
    said = []
    for name in bond.NAMES:
        way = ran.emulators[name]["directions"][1]
        off_us = (ran.began_s[name] - bond_virtual.BEGIN_S) * 1e6
        said.append(
            f"{name}: the emulator's times are {off_us:.1f} us from the gateway's; it dropped "
            f"{way['dropped_limit_pkts']}, {faults_of(way)}"
        )
    return figures_of(ran, flows, seconds), said


def faults_of(way: dict[str, Any]) -> str:
    return "; ".join(way["faults"]) or "and was as set"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default=str(TRACES / "starlink.csv"), metavar="FILE[,KEY=VALUE...]")
    parser.add_argument("--second", default=str(TRACES / "lte-drive.csv"), metavar="FILE[,KEY=VALUE...]")
    parser.add_argument("--seconds", type=report.within(int, 10, 86_400), default=600)
    parser.add_argument("--where", choices=["real", "virtual"], default="real")
    parser.add_argument("--program", type=Path, default=bond.PROGRAM)
    options = report.options_of(parser)
    traces = [steps_of(given, options.seconds) for given in (options.first, options.second)]
    means = [mean_bps(steps, options.seconds) for steps in traces]
    flows = flows_for(sum(means))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = simulated(traces, flows, options.seconds, folder)
        program = options.program.absolute()
        if options.where == "virtual":
            found, said = in_virtual_time(traces, flows, options.seconds, program)
        else:
            found, said = in_real_time(traces, flows, options.seconds, folder, program)
    lines, missed = [], []
    for flow in flows:
        (sim_bps, sim_s), (real_bps, real_s) = wanted[flow.name], found[flow.name]
        off, later_s = real_bps / sim_bps - 1, real_s - sim_s
        if abs(off) > RATE_LIMIT or abs(later_s) > DELAY_LIMIT_S:
            missed.append(flow.name)
        offered = flow.pkts_per_s * flow.link_bytes * 8
        numbers = [f"{bps / 1e6:.3f}" for bps in (offered, sim_bps, real_bps)]
        delays = [f"{1e3 * delay:.1f}" for delay in (sim_s, real_s)]
        lines.append([flow.name, *numbers, f"{off:+.2%}", *delays, f"{1e3 * later_s:+.1f} ms"])
    columns = ["flow", "offered Mbit/s", "simulator", "gateway", "differ", "p95 simulator, ms", "gateway", "differ"]
    verdicts = [
        f"{options.seconds} s, means of the links {means[0] / 1e6:.2f} and {means[1] / 1e6:.2f} Mbit/s",
        f"rates within 2 % and p95 within 5 ms: {report.verdict(not missed)}{': ' * bool(missed)}{', '.join(missed)}",
        *said,
    ]
    answer = {"flows": lines, "verdicts": verdicts}
    report.write(options, answer, lambda markdown: report.table(columns, lines, verdicts, markdown=markdown))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
