#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A gateway with many peers: its start, its memory, what a packet costs, and how long voice waits while peers are away.

Two gateways in network namespaces; the first has so many peers, of which only the second answers. As root.

With --paths, the start and the memory alone of a gateway whose absent peers have so many `[[peer.path]]` each, 0 for
none, and how many times those of the first number of paths they are: bench/many_peers.py --peers 10000 --paths 1,2
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
GATEWAY = REPOSITORY / "target/release/linkweir-gateway"
HEAD = """[gateway]
device = "lw0"
address = "10.77.0.{last}/24"
listen = "0.0.0.0:51820"
mode = "wireguard"
private_key_file = "{folder}/key{last}"
user = "root"
control = "{folder}/control{last}"
[link]
rate = "1Gbit"
[scheduler]
policy = "pss"
[[class]]
name = "ef"
match = [{{ port = 5060 }}]
level = 0
limit = "20p"
[[class]]
name = "rest"
level = 1
limit = "20p"
[[peer]]
name = "other"
public_key = "{key}"
endpoint = "192.0.2.{other}:51820"
allowed_ips = "10.77.0.{other}/32"
"""
ABSENT = """[[peer]]
name = "p{number}"
public_key = "{key}"
endpoint = "192.0.2.2:{port}"
allowed_ips = "{net}/32"
"""
PATH = """[[peer.path]]
name = "path{path}"
endpoint = "192.0.2.2:{port}"
rate = "20Mbit"
"""
HERE, THERE = "lwpeers1", "lwpeers2"


def net(number: int) -> str:
    return f"10.{80 + number // 65536}.{number // 256 % 256}.{number % 256}"


def absent(number: int, paths: int = 0) -> str:
    key = base64.b64encode(hashlib.sha256(str(number).encode()).digest()).decode()
    port = 20_000 + number % 40_000
    text = ABSENT.format(number=number, key=key, port=port, net=net(number))
    if not paths:
        return text
    # A peer with paths has no endpoint of its own.
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("endpoint"))
    return text + "".join(PATH.format(path=path, port=port + path) for path in range(paths))


def run(*words: str) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


class Bench:
    """Two namespaces with a cable, and the gateways in them."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder, self.program = folder, program
        self.gateways: list[subprocess.Popen[bytes]] = []
        for name in (HERE, THERE):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", HERE, "link", "add", "out", "type", "veth", "peer", "name", "out", "netns", THERE)
        for name, last in ((HERE, 1), (THERE, 2)):
            run("ip", "-n", name, "address", "add", f"192.0.2.{last}/24", "dev", "out")
            run("ip", "-n", name, "link", "set", "out", "up")
        self.keys = [run(str(program), "keygen", f"{folder}/key{last}").strip() for last in (1, 2)]

    def start(self, name: str, last: int, more: str = "") -> float:
        """Starts a gateway; returns how long it takes until it answers, s."""
        text = HEAD.format(last=last, other=3 - last, folder=self.folder, key=self.keys[2 - last]) + more
        (self.folder / f"{last}.toml").write_text(text)
        begun = time.monotonic()
        words = ["ip", "netns", "exec", name, str(self.program), "up", f"{self.folder}/{last}.toml"]
        with (self.folder / f"log{last}").open("wb") as log:
            self.gateways.append(subprocess.Popen(words, stderr=log))
        control = self.folder / f"control{last}"
        while True:
            with socket.socket(socket.AF_UNIX) as asked:
                try:
                    asked.connect(str(control))
                    return time.monotonic() - begun
                except OSError:
                    time.sleep(0.01)
                    if time.monotonic() - begun > 60:
                        raise

    def stop(self) -> None:
        for gateway in self.gateways:
            gateway.terminate()
            gateway.wait()
        self.gateways.clear()

    def close(self) -> None:
        self.stop()
        for name in (HERE, THERE):
            subprocess.run(["ip", "netns", "delete", name], check=False)


def inside(name: str, work: str, *words: str) -> str:
    """Runs this program's `work` in a namespace."""
    return run("ip", "netns", "exec", name, sys.executable, __file__, "--work", work, *words)


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def cpu_s(pid: int) -> float:
    """Processor time of all threads, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9


def send(count: int, port: int, apart_s: float) -> None:
    """Sends packets with the time at which each left."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        begun = time.monotonic()
        for number in range(count):
            ahead = begun + number * apart_s - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            sender.sendto(struct.pack("<d", time.monotonic()) + bytes(192), ("10.77.0.2", port))


def receive(port: int, seconds: float) -> None:
    """Prints how many packets came, and the 50th and 99th percentile of how long they took, us."""
    delays: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        receiver.bind(("10.77.0.2", port))
        receiver.settimeout(0.5)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                data = receiver.recv(2000)
            except TimeoutError:
                continue
            delays.append(time.monotonic() - struct.unpack("<d", data[:8])[0])
    delays.sort()
    print(len(delays), *(round(1e6 * delays[int(len(delays) * part)]) for part in (0.5, 0.99)))


def voice(seconds: float) -> tuple[int, int, int]:
    """Sends voice for a while; packets that came, and percentiles of their delay, us."""
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append(inside(THERE, "receive", "5060", str(seconds + 1))))
    listener.start()
    time.sleep(0.3)
    inside(HERE, "send", str(int(seconds * 500)), "5060", "0.002")
    listener.join()
    count, p50, p99 = (int(word) for word in heard[0].split())
    return count, p50, p99


def ask_each(peers: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(peers):
            sender.sendto(b"to one that is away", (net(number), 9))


def measure(bench: Bench, peers: int) -> dict[str, float]:
    """The figures of a gateway with so many absent peers besides the one that answers."""
    bench.start(THERE, 2)
    up_s = bench.start(HERE, 1, "".join(absent(number) for number in range(peers)))
    pid = int(run("pgrep", "-f", f"up {bench.folder}/1.toml").split()[0])
    row: dict[str, float] = {"peers": peers + 1, "start_s": round(up_s, 2)}
    while "has a session" not in (bench.folder / "log1").read_text():
        time.sleep(0.05)
    row["start_p99_us"] = voice(5)[2]
    inside(HERE, "ask", str(peers))
    row["asked_p99_us"] = voice(10)[2]
    # WireGuard gives peers up after 90 s; then only packets cost anything.
    time.sleep(95)
    row["idle_p99_us"] = voice(5)[2]
    rest_s = cpu_s(pid)
    time.sleep(5)
    row["rest_cpu_percent"] = round(100 * (cpu_s(pid) - rest_s) / 5, 2)
    costs = []
    for _ in range(5):
        before_s = cpu_s(pid)
        count, _, _ = voice(4)
        costs.append(1e6 * (cpu_s(pid) - before_s) / max(count, 1))
    row["cpu_us_a_packet"] = round(statistics.median(costs), 1)
    row["memory_mb"] = round(memory_mb(pid))
    bench.stop()
    return row


def measure_paths(bench: Bench, peers: int, paths: int) -> dict[str, float]:
    """Start and memory of a gateway with so many absent peers that have so many paths each."""
    bench.start(HERE, 1, "".join(absent(number, paths) for number in range(peers)))
    pid = bench.gateways[-1].pid
    row = {"peers": peers + 1, "paths": paths, "start_cpu_s": cpu_s(pid), "memory_mb": memory_mb(pid)}
    bench.stop()
    return row


def compared(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Rows of one number of peers, rounded, with how many times the memory and the start of the first they are."""

    def times(row: dict[str, float], figure: str) -> float:
        return round(row[figure] / rows[0][figure], 2) if rows[0][figure] else float("nan")

    return [
        {
            **row,
            "start_cpu_s": round(row["start_cpu_s"], 2),
            "memory_mb": round(row["memory_mb"], 1),
            "times_memory": times(row, "memory_mb"),
            "times_start": times(row, "start_cpu_s"),
        }
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default="1,10,1000,10000", help="numbers of peers, separated by commas")
    parser.add_argument("--paths", help="numbers of paths of each peer, separated by commas: only start and memory")
    parser.add_argument("--program", type=Path, default=GATEWAY, help="the gateway that is measured")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work, *words = options.work
        if work == "send":
            send(int(words[0]), int(words[1]), float(words[2]))
        elif work == "receive":
            receive(int(words[0]), float(words[1]))
        else:
            ask_each(int(words[0]))
        return
    program = options.program.absolute()
    if os.geteuid() != 0 or not program.is_file() or shutil.which("ip") is None:
        sys.exit("many_peers.py: needs root, iproute2, and cargo build --release -p linkweir-gateway")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), program)
        rows: list[dict[str, float]] = []
        try:
            for peers in options.peers.split(","):
                if options.paths:
                    each = options.paths.split(",")
                    rows += compared([measure_paths(bench, int(peers) - 1, int(paths)) for paths in each])
                    continue
                rows.append(measure(bench, int(peers) - 1))
                print(f"{peers} peers: {rows[-1]}", file=sys.stderr)
        finally:
            bench.close()
    columns = list(rows[0])
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(f"{row[column]:g}" for column in columns) + " |")


if __name__ == "__main__":
    main()
