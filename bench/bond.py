#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two paths at once: TCP through a gateway that stripes, beside the kernel's MPTCP if it has it, and cuts.

Two namespaces are joined by two emulated links (`linkweir-gateway emulate`). A class with `paths = "stripe"` carries
iperf3 through the gateways; MPTCP connections carry it over the bare links. Needs root, iproute2 and iperf3.

    bench/bond.py [--seconds 20] [--profile asymmetric|equal]
    bench/bond.py --cut silent|carrier [--where virtual] [--program target/debug/linkweir-gateway]

asymmetric: 300 Mbit/s with 10 ms and 80 Mbit/s with 30 ms one way, 16 connections. equal: 100 and 100 Mbit/s with
10 ms, one connection. The targets are what mqvpn reports for these, 319 and 187 Mbit/s. Of 1500 bytes on these links
1376 are payload of TCP in the tunnel, so no more than that part of the rates can come through.

--cut: links of 40 Mbit/s, 10 ms and 30 Mbit/s, 30 ms get five times as much as they carry, for 60 s. Each in its turn
is cut from 20 s to 40 s: at the far end, so that nothing tells the sender (silent), or at the sender's end (carrier).
Aims: of the heartbeat (50 packets/s, a copy over each path) nothing is lost; voice (50 packets/s, `best`) has no gap
above 300 ms from the first second to the last, or 100 ms where the carrier goes; of what AF sends in any second, with
20 Mbit/s reserved and sent, 99 % come; nothing comes twice, and AF in order. A packet's number shows when it was to be
sent, and it counts for that second however late it comes. Seconds are left out only if packets in them were to be sent
between 100 ms before the cut, which may be under way then, and 300 ms after it; those with the return in them count.
Packets wait for processors, too: the machine's load is printed, and where packets were lost. The device of the tunnel
has room for 4096 packets of all classes, so a gateway that does not run for 110 ms loses packets of any class there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bond_virtual
import gateway
from linkweir.lab.guest import Guest

PROGRAM = gateway.RELEASE / "linkweir-gateway"
NAMES = ("sat", "lte")
# Rates in Mbit/s, one-way delays in ms, connections, what is to be reached in Mbit/s.
PROFILES: dict[str, tuple[tuple[int, int], tuple[int, int], int, int]] = {
    "asymmetric": ((300, 80), (10, 30), 16, 319),
    "equal": ((100, 100), (10, 10), 1, 187),
}
LINK = """
[a]
device = "{name}"
netns = "{a}"
address = "10.9{at}.0.1/24"
[b]
device = "{name}"
netns = "{b}"
address = "10.9{at}.0.2/24"
[a_to_b]
rate = "{rate}Mbit"
delay = "{delay}ms"
limit = "1000p"
[b_to_a]
rate = "{rate}Mbit"
delay = "{delay}ms"
limit = "1000p"
"""
GATEWAY = """
[gateway]
device = "lw0"
address = "10.77.0.{own}/24"
listen = "0.0.0.0:51820"
mode = "wireguard"
user = "root"
private_key_file = "key{own}"
control = "control{own}"
[link]
[scheduler]
policy = "pss"
[[class]]
name = "all"
level = 1
paths = "stripe"
reorder = "200ms"
limit = "100ms"
[[peer]]
name = "other"
public_key = "{key}"
allowed_ips = "10.77.0.{other}/32"
"""
# What the classes are while a path is cut, in place of the one above.
CUT_CLASSES = """
[[class]]
name = "heartbeat"
match = [{ dscp = "EF" }]
level = 0
paths = "all"
[[class]]
name = "voice"
match = [{ dscp = "VOICE-ADMIT" }]
level = 1
[[class]]
name = "af"
match = [{ dscp = "AF41" }]
level = 2
low_level = 4
rate = "20Mbit"
paths = "stripe"
reorder = "400ms"
resend = true
[[class]]
name = "rest"
level = 3
paths = "spill"
limit = "100ms"
"""
# Rates in Mbit/s, one-way delays in ms.
CUT_PROFILE = ((40, 30), (10, 30), 1, 0)
# Name, DSCP, packets/s and bytes of a packet's payload: 1000 bytes are 1100 on the link, so AF sends 20 Mbit/s there.
CUT_FLOWS = (("heartbeat", 46, 50, 160), ("voice", 44, 50, 160), ("af", 34, 2272, 1000))
CUT_SENT = tuple(bond_virtual.Sent(name, dscp, length, rate) for name, dscp, rate, length in CUT_FLOWS)
CUT_S, BACK_S, END_S = 20, 40, 60
# Of each flow, when it began, s, and which of its packets came when.
Flows = dict[str, tuple[float, list[tuple[float, int]]]]
# Of packets that were to be sent so long before and after the cut nothing is asked, s.
SPARED_S = (0.1, 0.3)
OVERLOAD = 5
FLOOD_BYTES = 1200
# For so long after the last packet was sent packets are received, s.
AFTER_S = 8
# A packet's payload begins with its number. Arguments are the side, address, port, DSCP, packets/s, bytes, and seconds.
# The receiver prints when each packet came, s, and its number.
FLOW = """
import socket, struct, sys, time
side, address, port, dscp, rate, length, seconds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if side == "receive":
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    link.bind((address, port))
    link.settimeout(0.5)
    came, end = [], time.monotonic() + seconds
    print("ready", flush=True)
    while time.monotonic() < end:
        try:
            data = link.recv(2048)
        except TimeoutError:
            continue
        came.append((time.monotonic(), struct.unpack("!I", data[:4])[0]))
    sys.stdout.writelines(f"{at:.6f} {number}\\n" for at, number in came)
else:
    link.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    link.connect((address, port))
    begun, rest = time.monotonic(), bytes(length - 4)
    for number in range(rate * seconds):
        wait = begun + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        link.send(struct.pack("!I", number) + rest)
    print(begun, flush=True)
"""
PATH = """
[[peer.path]]
name = "{name}"
{endpoint}
rate = "{rate}kbit"
"""
# What the gateway leaves to the link: handshakes, and the sender's clock.
SHARE = 0.99
PAYLOAD_BYTES, LINK_BYTES = 1376, 1500
# IPPROTO_MPTCP sockets: arguments are the side, the address, the seconds and the connections.
MPTCP = """
import socket, sys, threading, time
side, address, seconds, count = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
total, lock = [0], threading.Lock()
def take(link):
    while data := link.recv(1 << 18):
        with lock:
            total[0] += len(data)
def give():
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    link.connect((address, 5300))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        link.send(bytes(1 << 17))
    link.close()
if side == "receive":
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    server.bind((address, 5300))
    server.listen(64)
    print("ready", flush=True)
    threads = [threading.Thread(target=take, args=(server.accept()[0],)) for _ in range(count)]
    begun = time.monotonic()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(total[0] * 8 / (time.monotonic() - begun), flush=True)
else:
    threads = [threading.Thread(target=give) for _ in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def link_text(at: int, ends: Sequence[str], rate_mbit: int, delay_ms: int) -> str:
    """The configuration of an emulated link between two namespaces."""
    return LINK.format(a=ends[0], b=ends[1], at=at, rate=rate_mbit, delay=delay_ms, name=NAMES[at])


def path_text(end: int, at: int, rate_mbit: int, share: float) -> str:
    """The configuration of a path at an end, which is told a share of the link's rate."""
    endpoint = f'endpoint = "10.9{at}.0.1:51820"\ndevice = "{NAMES[at]}"' if end == 1 else ""
    return PATH.format(name=NAMES[at], endpoint=endpoint, rate=int(rate_mbit * 1000 * share))


def gateway_text(end: int, key: str, classes: str | None, paths: Sequence[str]) -> str:
    """The configuration of the gateway at an end, with other classes if some are given; `key` is the other end's."""
    text = GATEWAY.format(own=end + 1, other=2 - end, key=key)
    if classes is not None:
        text = text[: text.index("[[class]]")] + classes + text[text.index("[[peer]]") :]
    return text + "".join(paths)


class Place:
    """Two namespaces and the links between them, until it is closed."""

    def __init__(self, profile: tuple[tuple[int, int], tuple[int, int], int, int], folder: Path, program: Path) -> None:
        self.rates, self.delays, self.connections, self.target = profile
        self.folder, self.program = folder, program
        self.names = [f"lwbond{os.getpid()}{end}" for end in "ab"]
        self.children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Place:
        for name in self.names:
            gateway.run(["ip", "netns", "add", name])
            gateway.run(["ip", "-n", name, "link", "set", "lo", "up"])
        for at, name in enumerate(NAMES):
            file = self.folder / f"{name}.toml"
            file.write_text(self.link(at))
            self.emulate(at, file)
        for end in (0, 1):
            for name in NAMES:
                self.wait(lambda end=end, name=name: self.run(end, ["ip", "link", "show", "up", "dev", name]).stdout)
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.children):
            child.kill()
            child.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def link(self, at: int) -> str:
        """The configuration of an emulated link."""
        return link_text(at, self.names, self.rates[at], self.delays[at])

    def emulate(self, at: int, file: Path) -> None:
        """Starts the emulator of a link."""
        self.children.append(subprocess.Popen([self.program, "emulate", file], stdout=subprocess.DEVNULL, text=True))

    def path(self, end: int, at: int) -> str:
        """The configuration of a path at an end."""
        return path_text(end, at, self.rates[at], SHARE)

    @staticmethod
    def wait(there: Any) -> None:
        end = time.monotonic() + 20
        while not there():
            if time.monotonic() > end:
                raise SystemExit("bond.py: the links or gateways do not come up")
            time.sleep(0.1)

    def inside(self, end: int, command: list[Any]) -> list[str]:
        return ["ip", "netns", "exec", self.names[end], *map(str, command)]

    def run(self, end: int, command: list[Any]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.inside(end, command), capture_output=True, text=True, check=False)

    def start(self, end: int, command: list[Any], **options: Any) -> subprocess.Popen[str]:
        child = subprocess.Popen(self.inside(end, command), text=True, **options)
        self.children.append(child)
        return child

    def gateways(self, classes: str | None = None) -> None:
        """Starts a gateway at each end, with other classes if some are given, and waits until they have agreed."""
        keys = [gateway.run([self.program, "keygen", self.folder / f"key{own}"]).strip() for own in (1, 2)]
        for end in (0, 1):
            file = self.folder / f"{end + 1}.toml"
            file.write_text(gateway_text(end, keys[1 - end], classes, [self.path(end, at) for at in (0, 1)]))
            self.start(end, [self.program, "up", file], stderr=subprocess.DEVNULL)
        self.wait(lambda: all(self.agreed(end) for end in (0, 1)))

    def show(self, end: int) -> dict[str, Any]:
        done = self.run(end, [self.program, "show", "--control", self.folder / f"control{end + 1}", "--json"])
        shown: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return shown

    def agreed(self, end: int) -> bool:
        peers = self.show(end).get("peers", [])
        return bool(peers) and peers[0]["paths_agreed"] and all(path["in_use"] for path in peers[0]["paths"])

    def tcp_bps(self, seconds: int) -> float:
        """What iperf3 receives through the gateways, from the second end to the first."""
        server = self.start(0, ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        command = ["iperf3", "-c", "10.77.0.1", "-t", seconds, "-P", self.connections, "-O", 3, "--json"]
        done = self.run(1, command)
        server.wait(timeout=30)
        received: float = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
        return received

    def mptcp_bps(self, seconds: int) -> float | None:
        """What MPTCP connections carry over the bare links; none: the kernel has no MPTCP."""
        if self.run(0, ["sysctl", "-qw", "net.mptcp.enabled=1"]).returncode:
            return None
        self.run(1, ["sysctl", "-qw", "net.mptcp.enabled=1"])
        for end in (0, 1):
            self.run(end, ["ip", "mptcp", "limits", "set", "subflow", 2, "add_addr_accepted", 2])
        self.run(1, ["ip", "mptcp", "endpoint", "add", "10.91.0.2", "dev", NAMES[1], "subflow"])
        self.run(0, ["ip", "mptcp", "endpoint", "add", "10.91.0.1", "dev", NAMES[1], "signal"])
        arguments = ["10.90.0.1", seconds, self.connections]
        receiver = self.start(0, [sys.executable, "-c", MPTCP, "receive", *arguments], stdout=subprocess.PIPE)
        assert receiver.stdout is not None
        if receiver.stdout.readline().strip() != "ready":
            return None
        self.run(1, [sys.executable, "-c", MPTCP, "send", *arguments])
        return float(receiver.stdout.readline())

    def cut(self, link: int, where: int) -> tuple[Flows, float]:
        """Sends all flows from the second end to the first while a link is cut at an end.

        Returns when each began, s, and which of its packets came when; and when the link was cut.
        """
        receivers, senders = {}, {}
        for port, (name, dscp, rate, length) in enumerate(CUT_FLOWS, 6000):
            words = ["10.77.0.1", port, dscp, rate, length]
            command = [sys.executable, "-c", FLOW]
            receivers[name] = self.start(0, [*command, "receive", *words, END_S + AFTER_S], stdout=subprocess.PIPE)
            output = receivers[name].stdout
            assert output is not None
            output.readline()
            senders[name] = [*command, "send", *words, END_S]
        offered = f"{OVERLOAD * sum(self.rates)}M"
        flood = ["iperf3", "-u", "-c", "10.77.0.1", "-t", END_S, "-b", offered, "-l", FLOOD_BYTES]
        server = self.start(0, ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        self.start(1, flood, stdout=subprocess.DEVNULL)
        started = {name: self.start(1, command, stdout=subprocess.PIPE) for name, command in senders.items()}
        begun, times = time.monotonic(), []
        for after, state in ((CUT_S, "down"), (BACK_S, "up")):
            time.sleep(max(begun + after - time.monotonic(), 0))
            self.run(where, ["ip", "link", "set", NAMES[link], state])
            times.append(time.monotonic())
        found = {}
        for name, receiver in receivers.items():
            sent, _ = started[name].communicate(timeout=END_S)
            came, _ = receiver.communicate(timeout=END_S)
            lines = [line.split() for line in came.splitlines()]
            found[name] = (float(sent), [(float(at), int(number)) for at, number in lines])
        server.kill()
        return found, times[0]

    def lost(self) -> str:
        """Where packets from the second end to the first were lost."""
        device = self.run(1, ["cat", "/sys/class/net/lw0/statistics/tx_dropped"]).stdout.strip()
        return lost_text(int(device), (self.show(0), self.show(1)))


def lost_text(device_pkts: int, shown: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """Where packets were lost, by what the sender's device dropped and both gateways show."""
    came, sent = ({entry["name"]: entry for entry in show["peers"][0]["classes"]}["af"] for show in shown)
    queue = sum(sent[f"dropped_{why}_pkts"] for why in ("limit", "policy", "age"))
    restored = came["restored"]
    return (
        f"before the gateway read them, its device dropped {device_pkts} packets of all classes; of af its queue "
        f"dropped {queue}, the receiver gave up {restored['given_up_pkts']}, and {restored['late_pkts']} came too late"
    )


def share_of(came: set[int], rate: int, from_s: float) -> float:
    """How much of what a flow with these packets/s was to send in the second from a time on came, whenever it came."""
    first = math.ceil(from_s * rate)
    return sum(number in came for number in range(first, first + rate)) / rate


def judged(flows: Flows, cut: float, gap_s: float, end_s: int = END_S) -> tuple[list[str], int]:
    """What each flow got that was sent for so long and cut at a time, and how many aims were missed."""
    said, missed = [], 0
    for name, _, rate, _ in CUT_FLOWS:
        begun, came = flows[name]
        numbers = [number for _, number in came]
        twice, lost = len(numbers) - len(set(numbers)), rate * end_s - len(set(numbers))
        back = sum(later < earlier for earlier, later in itertools.pairwise(numbers))
        # A flow that comes late, or stops for good, has its gap at an end.
        times = [begun, *(at for at, _ in came), begun + end_s]
        gap = max(later - earlier for earlier, later in itertools.pairwise(times))
        said.append(
            f"{name}: {len(numbers)} came, {lost} lost, {twice} twice, {back} out of order, "
            f"longest gap {gap * 1e3:.0f} ms"
        )
        missed += twice > 0
        if name == "heartbeat":
            missed += lost > 0
        elif name == "voice":
            missed += gap > gap_s
        else:
            missed += back > 0
            known = set(numbers)
            before, after = cut - begun - SPARED_S[0], cut - begun + SPARED_S[1]
            starts = [at / 10 for at in range((end_s - 1) * 10 + 1)]
            asked = [at for at in starts if at + 1 <= before or at >= after]
            share, at = min((share_of(known, rate, at), at) for at in asked)
            said[-1] += f", least of what was sent in any second {share:.1%}, in that from {at:.1f} s on"
            missed += share < 0.99
    return said, missed


def cut_in_real_time(link: int, end: int, program: Path) -> tuple[Flows, float, str]:
    """What came of each flow while a link was cut at an end, when it was cut, s, and where packets were lost."""
    with tempfile.TemporaryDirectory() as folder, Place(CUT_PROFILE, Path(folder), program) as place:
        place.gateways(CUT_CLASSES)
        flows, at = place.cut(link, end)
        return flows, at, place.lost()


def virtual_cut(link: int, end: int, times_s: tuple[int, int, int] = (CUT_S, BACK_S, END_S)) -> bond_virtual.Run:
    """A cut as a run in virtual time; the times are those of the cut, the return and the end."""
    cut_s, back_s, end_s = times_s
    rates, delays = CUT_PROFILE[:2]
    paths = [[path_text(own, at, rate, 1.0) for at, rate in enumerate(rates)] for own in (0, 1)]
    # iperf3 sends what is due in each millisecond together.
    flood = bond_virtual.Sent("flood", 0, FLOOD_BYTES, OVERLOAD * sum(rates) * 1e6 / 8 / FLOOD_BYTES, 1_000_000)
    switched = [(at_s, end, f"link set {NAMES[link]} {state}") for at_s, state in ((cut_s, "down"), (back_s, "up"))]
    return bond_virtual.Run(
        links={NAMES[at]: link_text(at, bond_virtual.HOSTS, rates[at], delays[at]) for at in (0, 1)},
        gateways=(
            gateway_text(0, bond_virtual.KEY, CUT_CLASSES, paths[0]),
            gateway_text(1, bond_virtual.KEY, CUT_CLASSES, paths[1]),
        ),
        flows=[*CUT_SENT, flood],
        seconds=end_s,
        after_s=AFTER_S,
        commands=switched,
    )


def flows_of(found: bond_virtual.Found) -> Flows:
    """The flows of a run in virtual time, of which one is the flood."""
    flows: Flows = {}
    for flow in CUT_SENT:
        at_ns, sent_ns = found.came[flow.name]
        numbers = bond_virtual.numbers_of(flow, sent_ns)
        flows[flow.name] = (0.0, list(zip((at_ns / 1e9).tolist(), numbers.tolist(), strict=True)))
    return flows


def cut_in_virtual_time(link: int, end: int, made: Guest) -> tuple[Flows, float, str]:
    """As `cut_in_real_time`, in a kernel that is made ready."""
    found = bond_virtual.run(made, virtual_cut(link, end))
    return flows_of(found), float(CUT_S), lost_text(found.device_dropped_pkts, found.shown)


def run_cuts(how: str, where: str, program: Path) -> int:
    """Cuts each link in its turn; returns how many aims were missed."""
    made = bond_virtual.prepare(program) if where == "virtual" else None
    missed = 0
    for link, name in enumerate(NAMES):
        end = 1 if how == "carrier" else 0
        if made is not None:
            flows, at, lost = cut_in_virtual_time(link, end, made)
        else:
            flows, at, lost = cut_in_real_time(link, end, program)
        said, wrong = judged(flows, at, 0.1 if how == "carrier" else 0.3)
        missed += wrong
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
        print(f"{name} cut ({how}), {load if made is None else 'virtual time'}: {wrong} aims missed")
        print("\n".join(f"  {line}" for line in [*said, lost]), flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--profile", choices=list(PROFILES), action="append")
    parser.add_argument("--cut", choices=["silent", "carrier"])
    parser.add_argument("--where", choices=["real", "virtual"], default="real")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    options = parser.parse_args()
    if options.cut:
        return int(run_cuts(options.cut, options.where, options.program.absolute()) > 0)
    if options.where == "virtual":
        parser.error("--where virtual is for --cut")

    failed = 0
    for profile in options.profile or list(PROFILES):
        with (
            tempfile.TemporaryDirectory() as folder,
            Place(PROFILES[profile], Path(folder), options.program.absolute()) as place,
        ):
            mptcp = place.mptcp_bps(options.seconds)
            place.gateways()
            striped = place.tcp_bps(options.seconds)
            show = place.show(0)
        most = sum(place.rates) * PAYLOAD_BYTES / LINK_BYTES
        paths = show["peers"][0]["paths"]
        restored = show["peers"][0]["classes"][0]["restored"]
        print(
            f"{profile}: {'+'.join(map(str, place.rates))} Mbit/s, {place.connections} connections: "
            f"linkweir {striped / 1e6:.0f} Mbit/s (target {place.target}, at most {most:.0f}), "
            f"MPTCP {'none' if mptcp is None else f'{mptcp / 1e6:.0f} Mbit/s'}"
        )
        print("  packets over", ", ".join(f"{path['name']} {path['received_pkts']}" for path in paths), restored)
        failed += striped < place.target * 1e6
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
