# SPDX-License-Identifier: BSD-3-Clause
"""A scenario with several links in ns-3: writes it for bench/ns3/network.cc, builds that program and runs it.

Links that follow each other on a way meet in a node of ns-3. What is read: links with `rate`, `delay` and the
policies `fifo` and `strict`, whose classes have a `limit` in packets; flows of the kinds `tcp` (cubic and reno),
`poisson`, `cbr` and `replay` (a list).
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

from peers import UnavailableError

BENCH = Path(__file__).resolve().parent
BINARY = BENCH.parent / "target" / "bench" / "ns3_network"
MODULES = ("core", "network", "internet", "applications", "traffic-control", "point-to-point")
UNITS = {"Mbit": 1e6, "kbit": 1e3, "s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1, "B": 1, "p": 1}
PPP_BYTES = 2
SEND_BUFFER_BYTES = 8_000_000  # far above what a flow has in flight
RECEIVE_BUFFER_BYTES = 16_000_000
DELAYED_ACK_SEGMENTS = 2
TCP_TYPES = {"cubic": "TcpCubic", "reno": "TcpLinuxReno"}
Way = list[tuple[int, int]]
Graph = tuple[list[tuple[int, int]], int]


def quantity(text: str) -> int:
    """A quantity of a scenario in bit/s, ns, bytes or packets."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", text)
    if not found or found[2] not in UNITS:
        raise ValueError(f"{text}: is no quantity that this bench reads")
    return round(float(found[1]) * UNITS[found[2]])


def whole_links(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """The links with what they take from those that they are like."""
    links: dict[str, dict[str, Any]] = {}
    for link in scenario["link"]:
        links[link["name"]] = {**links.get(link.get("like"), {}), **link}
    return list(links.values())


def copies(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows, each copy by itself with its start; copies are numbered as in the results."""
    flows = []
    for flow in scenario["flow"]:
        count = flow.get("count", 1)
        for i in range(count):
            name = flow["name"] if count == 1 else f"{flow['name']}-{i + 1}"
            start_ns = quantity(flow.get("start", "0s")) + i * quantity(flow.get("stagger", "0s"))
            flows.append({**flow, "name": name, "start_ns": start_ns})
    return flows


def ends_of(links: list[dict[str, Any]], flows: list[dict[str, Any]]) -> Graph:
    """The nodes from which and to which each link leads, and how many nodes there are."""
    index = {link["name"]: i for i, link in enumerate(links)}
    same = list(range(2 * len(links)))  # 2 i is where link i begins, 2 i + 1 where it ends

    def root(end: int) -> int:
        while same[end] != end:
            same[end] = same[same[end]]
            end = same[end]
        return end

    def join(one: int, other: int) -> None:
        same[root(one)] = root(other)

    for flow in flows:
        there = [index[name] for name in flow["path"]]
        back = [index[name] for name in flow.get("back", [])]
        for way in (there, back):
            for before, after in pairwise(way):
                join(2 * before + 1, 2 * after)
        if back:
            join(2 * there[-1] + 1, 2 * back[0])
            join(2 * back[-1] + 1, 2 * there[0])
    nodes: dict[int, int] = {}
    ends = [tuple(nodes.setdefault(root(end), len(nodes)) for end in (2 * i, 2 * i + 1)) for i in range(len(links))]
    return [(a, b) for a, b in ends], len(nodes)


def limits_of(link: dict[str, Any]) -> list[int]:
    if link["scheduler"]["policy"] not in ("fifo", "strict"):
        raise ValueError(f"{link['name']}: this bench reads the policies fifo and strict")
    return [quantity(cls["limit"]) for cls in link["class"]]


def way_of(names: list[str], cls: str, links: list[dict[str, Any]]) -> Way:
    index = {link["name"]: i for i, link in enumerate(links)}
    return [(index[name], [c["name"] for c in links[index[name]]["class"]].index(cls)) for name in names]


def way_line(word: str, way: Way) -> str:
    return " ".join([word, str(len(way)), *(f"{link} {cls}" for link, cls in way)])


def flow_line(flow: dict[str, Any], duration_ns: int, scratch: Path) -> str:
    kind = flow["kind"]
    if kind == "tcp":
        return f"tcp {flow['start_ns']} {quantity(flow['mss'])}"
    if kind == "replay":
        return f"list {list_of(flow, scratch)}"
    line = f"{kind} {flow['start_ns']} {duration_ns} {quantity(flow['rate'])} {quantity(flow['packet'])}"
    return f"{line} {flow.get('jitter', 0)}" if kind == "cbr" else line


def list_of(flow: dict[str, Any], scratch: Path) -> Path:
    """The list of packets of a `replay`, in ns."""
    written = scratch / f"{flow['name']}.list"
    with Path(flow["file"]).open(newline="") as file:
        rows = [f"{round(float(row['t_s']) * 1e9)} {row['bytes']}" for row in csv.DictReader(file)]
    written.write_text("\n".join(rows) + "\n")
    return written


def tcp_settings(flow: dict[str, Any]) -> list[str]:
    """The keys of a TCP flow as attributes of ns-3.

    Linux adds at least `min_rto` to the smoothed RTT. ns-3 adds at least its clock granularity, and its MinRto bounds
    the sum: set alone, it lets the timer expire when a queue makes the RTT longer than `min_rto`.
    """
    delayed = flow["delayed_ack"]
    return [
        f"ns3::TcpL4Protocol::SocketType=ns3::{TCP_TYPES[flow['cc']]}",
        f"ns3::TcpSocket::SegmentSize={quantity(flow['mss'])}",
        f"ns3::TcpSocket::InitialCwnd={quantity(flow['initial_window'])}",
        f"ns3::TcpSocket::DelAckCount={DELAYED_ACK_SEGMENTS if delayed else 1}",
        f"ns3::TcpSocketBase::MinRto={flow['min_rto']}",
        f"ns3::TcpSocketBase::ClockGranularity={flow['min_rto']}",
        f"ns3::TcpSocketBase::Timestamp={str(flow['timestamps']).lower()}",
        f"ns3::TcpCubic::HyStart={str(flow['hystart']).lower()}",
    ]


def describe(scenario: dict[str, Any], scratch: Path, graph: Graph | None = None) -> str:
    """The network as bench/ns3/network.cc reads it; lists of packets go into the folder `scratch`.

    `graph` has the ends of each link and the number of nodes, if there are links that no flow takes.
    """
    links, flows = whole_links(scenario), copies(scenario)
    ends, nodes = graph or ends_of(links, flows)
    if any(link["overhead"] != f"{PPP_BYTES}B" for link in links):
        raise ValueError(f'each link needs overhead = "{PPP_BYTES}B", what ns-3\'s point-to-point devices add')
    settings = {tuple(tcp_settings(flow)) for flow in flows if flow["kind"] == "tcp"}
    if len(settings) > 1:
        raise ValueError("all TCP flows must have the same settings")
    duration_ns, warmup_ns = quantity(scenario["duration"]), quantity(scenario.get("warmup", "0s"))
    lines = [
        f"run {duration_ns} {warmup_ns} {scenario['seed']} {nodes} {SEND_BUFFER_BYTES} {RECEIVE_BUFFER_BYTES} "
        + " ".join(setting for one in settings for setting in one)
    ]
    for link, (begin, end) in zip(links, ends, strict=True):
        limits = limits_of(link)
        numbers = [begin, end, quantity(link["rate"]), quantity(link["delay"]), len(limits), *limits]
        lines.append(" ".join(["link", *map(str, numbers)]))
    for flow in flows:
        lines.append(flow_line(flow, duration_ns, scratch))
        lines.append(way_line("there", way_of(flow["path"], flow["class"], links)))
        lines.append(way_line("back", way_of(flow.get("back", []), flow["class"], links)))
    return "\n".join(lines) + "\n"


def started(command: list[str], cwd: Path | None = None) -> str:
    """The standard output of a program that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def build() -> None:
    """Builds the program with the packages' ns-3, if it is older than its source."""
    source = BENCH / "ns3" / "network.cc"
    if not shutil.which("g++") or not Path("/usr/include/ns3/core-module.h").exists():
        raise UnavailableError("ns-3 is not installed: apt-get install g++ libns3-dev")
    if BINARY.exists() and BINARY.stat().st_mtime >= source.stat().st_mtime:
        return
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{module}" for module in MODULES]
    command = ["g++", "-std=c++17", "-O2", "-o", str(BINARY), str(source), *libraries]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode:
        raise UnavailableError("bench/ns3/network.cc was not built: g++ failed:\n" + compiled.stderr)


def speed_command(scenario: dict[str, Any], scratch: Path, graph: Graph | None = None) -> list[str]:
    """What runs the scenario as fast as ns-3 can: nothing measured but packets, flow control as it is."""
    file = scratch / "speed.network"
    file.write_text(describe(scenario, scratch, graph))
    return [str(BINARY), "--delays=0", "--idle=0", str(file)]


def run(scenario: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Rates and delays in ns-3 by flow; packets, drops and waits by link, a list with one entry per class."""
    file = scratch / "scenario.network"
    file.write_text(describe(scenario, scratch))
    found = json.loads(started([str(BINARY), str(file)]))
    return {
        "flows": dict(zip((flow["name"] for flow in copies(scenario)), found["flows"], strict=True)),
        "links": dict(zip((link["name"] for link in scenario["link"]), found["links"], strict=True)),
    }
