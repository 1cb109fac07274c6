# SPDX-License-Identifier: BSD-3-Clause
"""A scenario with several links in network namespaces of this machine, in real time: what the kernel's own TCP does.

Every link is a veth pair with tbf and pfifo where it begins. Transfers are iperf3, each from a namespace of its own:
a sender on the router itself would fill its queue no further than TCP small queues let it. Delays need netem, which
not every kernel has, so links have no delay but that of their queues. Needs root, iproute2, iperf3 and a kernel with
tbf.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from typing import Any

import ns3_network
from ns3_network import quantity
from peers import UnavailableError

ETHERNET_BYTES = 14  # tbf counts them
FULL_BYTES = 1500
FIRST_PORT = 5201
SETTLE_S = 1.0
# Arguments: the list of packets, the address.
SENDER = """
import csv, socket, sys, time
target = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begun = time.monotonic()
for row in csv.DictReader(open(sys.argv[1])):
    time.sleep(max(0.0, begun + float(row["t_s"]) - time.monotonic()))
    target.sendto(bytes(int(row["bytes"]) - 28), (sys.argv[2], 9))
"""


def needed() -> None:
    """Refuses a machine that cannot run this."""
    for program in ("ip", "tc", "iperf3"):
        if not shutil.which(program):
            raise UnavailableError(f"{program} is missing: apt-get install iproute2 iperf3")


def act(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(
            f"{' '.join(words)}: {done.stderr.strip()}; this needs root and a kernel with veth and tbf"
        )


class Namespaces:
    """The nodes and links of a scenario, until it is closed."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.links = ns3_network.whole_links(scenario)
        self.flows = ns3_network.copies(scenario)
        self.ends, self.nodes = ns3_network.ends_of(self.links, self.flows)
        self.index = {link["name"]: i for i, link in enumerate(self.links)}

    def __enter__(self) -> Namespaces:
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for node in range(self.nodes + len(self.flows)):
            subprocess.run(["ip", "netns", "del", self.name(node)], capture_output=True, check=False)

    def make(self) -> None:
        for node in range(self.nodes + len(self.flows)):
            act("ip", "netns", "add", self.name(node))
            act("ip", "-n", self.name(node), "link", "set", "lo", "up")
            act("ip", "netns", "exec", self.name(node), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for i, link in enumerate(self.links):
            self.connect(i, link)
        for number in range(len(self.flows)):
            self.add_host(number)

    @staticmethod
    def name(node: int) -> str:
        return f"lwbench{node}"

    @staticmethod
    def address(link: int, side: int) -> str:
        return f"10.99.{link}.{side + 1}"

    def connect(self, i: int, link: dict[str, Any]) -> None:
        if quantity(link["delay"]):
            raise ValueError(f"{link['name']}: links of namespaces have no delay")
        begin, end = (self.name(node) for node in self.ends[i])
        act("ip", "-n", begin, "link", "add", f"v{i}a", "type", "veth", "peer", f"v{i}b", "netns", end)
        for side, node in enumerate((begin, end)):
            device = f"v{i}{'ab'[side]}"
            act("ip", "-n", node, "addr", "add", f"{self.address(i, side)}/24", "dev", device)
            act("ip", "-n", node, "link", "set", device, "gso_max_segs", "1", "up")  # no super-packets
        bytes_on_link = FULL_BYTES + quantity(link["overhead"])
        rate = quantity(link["rate"]) * (FULL_BYTES + ETHERNET_BYTES) // bytes_on_link
        tbf = ["root", "handle", "1:", "tbf", "rate", f"{rate}bit", "burst", str(FULL_BYTES + 40), "limit", "1000000"]
        act("tc", "-n", begin, "qdisc", "add", "dev", f"v{i}a", *tbf)
        limit = str(quantity(link["class"][0]["limit"]))
        act("tc", "-n", begin, "qdisc", "add", "dev", f"v{i}a", "parent", "1:1", "pfifo", "limit", limit)

    def host(self, number: int) -> str:
        """The namespace of a flow's source."""
        return self.name(self.nodes + number)

    def path(self, number: int) -> list[int]:
        return [self.index[name] for name in self.flows[number]["path"]]

    def add_host(self, number: int) -> None:
        """The source of a flow on a fast link to the node where its path begins, with routes there and back."""
        path, host, subnet = self.path(number), self.host(number), f"10.98.{number}"
        router = self.name(self.ends[path[0]][0])
        act("ip", "-n", host, "link", "add", "out", "type", "veth", "peer", f"h{number}", "netns", router)
        for node, device, address in ((host, "out", f"{subnet}.1"), (router, f"h{number}", f"{subnet}.2")):
            act("ip", "-n", node, "addr", "add", f"{address}/24", "dev", device)
            act("ip", "-n", node, "link", "set", device, "gso_max_segs", "1", "up")
        act("ip", "-n", host, "route", "add", "default", "via", f"{subnet}.2")
        for before in path[:-1]:
            there = [f"10.99.{path[-1]}.0/24", "via", self.address(before, 1)]
            act("ip", "-n", self.name(self.ends[before][0]), "route", "replace", *there)
        for link in path:
            back = [f"{subnet}.0/24", "via", self.address(link, 0)]
            act("ip", "-n", self.name(self.ends[link][1]), "route", "replace", *back)


def start_open(network: Namespaces, number: int) -> subprocess.Popen[str]:
    """Sends the list of packets of an open source, in real time, to a port where nothing listens."""
    end = network.address(network.path(number)[-1], 1)
    words = [sys.executable, "-c", SENDER, network.flows[number]["file"], end]
    return subprocess.Popen(["ip", "netns", "exec", network.host(number), *words], text=True)


def start_flow(network: Namespaces, number: int, duration_s: float, warmup_s: float) -> subprocess.Popen[str]:
    """An iperf3 from the flow's start to the end of the run; what came in the warm-up is left out."""
    flow = network.flows[number]
    path, start_s = network.path(number), flow["start_ns"] / 1e9
    client = ["iperf3", "-J", "-c", network.address(path[-1], 1), "-p", str(FIRST_PORT + number), "-C", flow["cc"]]
    client += ["-t", f"{duration_s - start_s:.0f}", "-O", f"{warmup_s:.0f}", "--get-server-output"]
    server = ["iperf3", "-s", "-1", "-D", "-p", str(FIRST_PORT + number)]
    act("ip", "netns", "exec", network.name(network.ends[path[-1]][1]), *server)
    time.sleep(0.1)
    return subprocess.Popen(
        ["ip", "netns", "exec", network.host(number), "sh", "-c", f"sleep {start_s}; exec {' '.join(client)}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def goodput(name: str, child: subprocess.Popen[str]) -> float:
    """What the receiver of a transfer got, bit/s."""
    out, _ = child.communicate()
    answer = json.loads(out)
    if child.returncode or "error" in answer:
        raise RuntimeError(f"iperf3 of {name}: {answer.get('error', 'failed')}")
    return float(answer["end"]["sum_received"]["bits_per_second"])


def run(scenario: dict[str, Any]) -> dict[str, float]:
    """Goodput of each transfer, bit/s."""
    needed()
    seconds = [quantity(scenario[key]) / 1e9 for key in ("duration", "warmup")]
    with Namespaces(scenario) as network:
        time.sleep(SETTLE_S)
        transfers, sources = {}, []
        for number, flow in enumerate(network.flows):
            if flow["kind"] == "tcp":
                transfers[flow["name"]] = start_flow(network, number, *seconds)
            else:
                sources.append(start_open(network, number))
        try:
            return {name: goodput(name, child) for name, child in transfers.items()}
        finally:
            for source in sources:
                source.kill()
                source.wait()
