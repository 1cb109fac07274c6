#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The gateway compared with other tunnels: TCP goodput, loss-free packet rate, one-way latency and rate under flood.

Every tunnel runs between two network namespaces connected by a veth pair; the tool makes and removes them, and needs
root. Tunnels whose programs are missing are named and left out.

    bench/gateway.py [--rounds 3] [--seconds 5] [--only plain] [--json | --markdown] [--out FILE]
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "target" / "bench" / "gateway"
RELEASE = ROOT / "target" / "release"
WIREGUARD_GO = "golang.zx2c4.com/wireguard@v0.0.0-20260522210424-ecfc5a8d5446"
OUTER = ("192.0.2.1", "192.0.2.2")
INNER = ("10.77.0.1", "10.77.0.2")
PORT = 51820
CLEAR_MTU = 1472  # 1500 minus IPv4 and UDP headers
SEALED_MTU = 1420  # WireGuard's default
RATE = "100Gbit"  # of the gateway's link: high enough never to be the limit
PAYLOAD_BYTES = 64
LOSS = 0.001  # a rate counts as loss-free below this
LEAST_PKTS_PER_S = 20_000
MOST_PKTS_PER_S = 1_000_000
BISECTIONS = 5
QUEUE_PKTS = 4096  # queue of the gateway's device; plain-queued has the same
REACHED = 0.9  # part of a rate that the sender must reach
TRIALS = 3  # per rate, of which one must pass: a stall of the machine is not a fault of the tunnel
LATENCY_PKTS_PER_S = 1000
HELD_UP_US = 1000  # if p99 of an idle forwarder is more, it was waiting for the processor
STEADY_PKTS_PER_S = 50_000
PATIENCE_S = 20


class BenchError(Exception):
    pass


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, check=False, **options)
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_probe():
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("plain", "probe"):
        source = BENCH / "gateway" / f"{name}.c"
        run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", source, "-o", BUILD / name])


def build():
    build_probe()
    run(
        ["cargo", "build", "--locked", "--release", "--quiet", "-p", "linkweir-gateway", "--bins", "--examples"],
        cwd=ROOT,
    )


def wireguard_go():
    """Path of wireguard-go, built from the Go module proxy; None, with the reason printed, if that is impossible."""
    binary = BUILD / "go" / "bin" / "wireguard"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        print("gateway.py: wireguard-go is left out, Go is missing: apt-get install golang-go", file=sys.stderr)
        return None
    environment = {**os.environ, "GOPATH": str(BUILD / "go"), "GOBIN": str(binary.parent), "GOFLAGS": "-modcacherw"}
    try:
        run([go, "install", WIREGUARD_GO], env=environment)
    except (BenchError, subprocess.TimeoutExpired) as fault:
        print(f"gateway.py: wireguard-go is left out, it cannot be built: {fault}", file=sys.stderr)
        return None
    return binary


class Place:
    """Two namespaces and the cable between them; processes inside end with them."""

    def __init__(self):
        self.names = [f"lwbench{os.getpid()}{end}" for end in "ab"]
        self.children = []
        self.scratch = tempfile.TemporaryDirectory(prefix="linkweir-bench-")

    def __enter__(self):
        try:
            for name in self.names:
                run(["ip", "netns", "add", name])
                run(["ip", "-n", name, "link", "set", "lo", "up"])
            one, two = self.names
            run(["ip", "-n", one, "link", "add", "out", "type", "veth", "peer", "name", "out", "netns", two])
            for name, address in zip(self.names, OUTER, strict=True):
                run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "out"])
                run(["ip", "-n", name, "link", "set", "out", "up"])
        except BenchError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            if child.poll() is None:
                child.kill()
            child.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        self.scratch.cleanup()

    def inside(self, end, command):
        return ["ip", "netns", "exec", self.names[end], *map(str, command)]

    def start(self, end, command, **options):
        # iproute2 becomes the command, so a signal to the child reaches it.
        child = subprocess.Popen(self.inside(end, command), text=True, **options)
        self.children.append(child)
        return child

    def end(self, child, with_signal=signal.SIGINT):
        """Stops a child and returns its output."""
        child.send_signal(with_signal)
        return child.communicate(timeout=PATIENCE_S)[0]

    def file(self, name):
        return Path(self.scratch.name) / name

    def address(self, end, device, mtu):
        """Waits for a device and sets its address."""
        waited_until = time.monotonic() + PATIENCE_S
        while subprocess.run(["ip", "-n", self.names[end], "link", "show", device], capture_output=True).returncode:
            if time.monotonic() > waited_until:
                raise BenchError(f"the device {device} does not appear")
            time.sleep(0.05)
        run(["ip", "-n", self.names[end], "address", "add", f"{INNER[end]}/24", "dev", device])
        run(["ip", "-n", self.names[end], "link", "set", device, "mtu", mtu, "up"])


def start_forwarder(binary, queue_pkts=None):
    """A function that starts a forwarder; `queue_pkts` sets the queue of its device, else that keeps its default."""

    def start(place):
        for end in (0, 1):
            place.start(end, [binary, "lw0", OUTER[end], OUTER[1 - end], PORT])
            place.address(end, "lw0", CLEAR_MTU)
            if queue_pkts:
                run(["ip", "-n", place.names[end], "link", "set", "lw0", "txqueuelen", queue_pkts])

    return start


GATEWAY = """[gateway]
device = "lw0"
address = "{inner}/24"
listen = "{outer}:{port}"
control = "{control}"
mtu = "{mtu}B"
{mode}
[link]
rate = "{rate}"
[scheduler]
policy = "pss"
[[class]]
name = "ef"
match = [{{ dscp = "EF" }}]
level = 0
limit = "4000p"
[[class]]
name = "af"
match = [{{ dscp = ["AF31", "AF32", "AF33"] }}]
level = 1
low_level = 3
rate = "5Mbit"
limit = "4000p"
[[class]]
name = "rest"
level = 2
limit = "4000p"
[[peer]]
name = "other"
endpoint = "{other}:{port}"
allowed_ips = "{behind}/32"
{key}
"""


def start_gateway(sealed, binary=RELEASE / "linkweir-gateway", under=()):
    """A function that starts a gateway at both ends; the first end's runs `under` another command, such as valgrind."""

    def start(place):
        keys = [run([binary, "keygen", place.file(f"key{end}")]).strip() for end in (0, 1)] if sealed else [None, None]
        for end in (0, 1):
            config = place.file(f"{end}.toml")
            mode = f'mode = "wireguard"\nprivate_key_file = "key{end}"' if sealed else 'mode = "cleartext"'
            config.write_text(
                GATEWAY.format(
                    inner=INNER[end],
                    outer=OUTER[end],
                    other=OUTER[1 - end],
                    behind=INNER[1 - end],
                    port=PORT,
                    control=place.file(f"control{end}"),
                    mtu=SEALED_MTU if sealed else CLEAR_MTU,
                    mode=mode,
                    rate=RATE,
                    key=f'public_key = "{keys[1 - end]}"' if sealed else "",
                )
            )
            place.start(end, [*(under if end == 0 else ()), binary, "up", config, "--cleartext"])

    return start


def curve25519_pair(binary, place, end):
    """A secret and its public key, both in hexadecimal, as wireguard-go wants them."""
    import base64

    public = run([binary, "keygen", place.file(f"peer{end}")]).strip()
    secret = place.file(f"peer{end}").read_text().strip()
    return [base64.b64decode(key).hex() for key in (secret, public)]


def start_wireguard_go(binary):
    def start(place):
        # Control sockets are named by device, and both ends share a file system.
        devices = [f"lwbench{os.getpid() % 10_000}{end}" for end in "ab"]
        pairs = [curve25519_pair(RELEASE / "linkweir-gateway", place, end) for end in (0, 1)]
        for end, device in enumerate(devices):
            quiet = {**os.environ, "LOG_LEVEL": "error"}
            place.start(end, [binary, "-f", device], env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            place.address(end, device, SEALED_MTU)
            control = Path("/var/run/wireguard") / f"{device}.sock"
            waited_until = time.monotonic() + PATIENCE_S
            while not control.exists():
                if time.monotonic() > waited_until:
                    raise BenchError("wireguard-go does not answer")
                time.sleep(0.05)
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(str(control))
                asked.sendall(
                    f"set=1\nprivate_key={pairs[end][0]}\nlisten_port={PORT}\npublic_key={pairs[1 - end][1]}\n"
                    f"endpoint={OUTER[1 - end]}:{PORT}\nallowed_ip={INNER[1 - end]}/32\n\n".encode()
                )
                answer = asked.recv(4096).decode()
            if "errno=0" not in answer:
                raise BenchError(f"wireguard-go refuses its configuration: {answer}")

    return start


def processor_s(processes):
    """Processor time of processes in s, including the kernel's work for them."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def tcp_bps(place, seconds, backward):
    """Goodput of one TCP connection, with CUBIC, as the machine's default may be another."""
    server = place.start(1, ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    command = ["iperf3", "-c", INNER[1], "-C", "cubic", "-t", seconds, "-O", 1, "-J"]
    answer = json.loads(run(place.inside(0, command + ["-R"] * backward)))
    server.wait(PATIENCE_S)
    return answer["end"]["sum_received"]["bits_per_second"]


def trial(place, pkts_per_s, seconds):
    """Sends datagrams at a rate and returns what was sent and received."""
    receiver = place.start(1, [BUILD / "probe", "receive", "0.0.0.0", 5000], stdout=subprocess.PIPE)
    if receiver.stdout.readline() != "ready\n":
        raise BenchError("the receiver does not start")
    command = [BUILD / "probe", "send", INNER[1], 5000, PAYLOAD_BYTES, pkts_per_s, seconds]
    try:
        sent = json.loads(run(place.inside(0, command)))
        time.sleep(0.3)
    finally:  # otherwise the next receiver could not bind the port
        output = place.end(receiver)
    received = json.loads(output)
    return {
        "offered_pkts_per_s": sent["sent_pkts"] / sent["seconds"],
        "received_pkts_per_s": received["received_pkts"] / sent["seconds"],
        "loss": 1 - received["received_pkts"] / sent["sent_pkts"],
        "reordered_pkts": received["reordered_pkts"],
        "p50_us": received["p50_us"],
        "p99_us": received["p99_us"],
    }


def wait_ready(place):
    """Waits until a packet gets through."""
    waited_until = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(BenchError):  # the device may not have its address yet
            if trial(place, 100, 0.1)["loss"] < 1:
                return
        if time.monotonic() > waited_until:
            raise BenchError("nothing comes through the tunnel")
        time.sleep(0.1)


def loss_free_pkts_per_s(place, seconds):
    """The highest rate at which one of three trials loses less than 0.1 %; one the sender misses is tried again."""

    def passes(rate):
        best = None
        for _ in range(TRIALS):
            tried = trial(place, int(rate), seconds)
            if tried["loss"] < LOSS:
                best = max(best or 0.0, tried["offered_pkts_per_s"])
                if best >= REACHED * rate:
                    break
        return best

    best, low, high = 0.0, float(LEAST_PKTS_PER_S), float(MOST_PKTS_PER_S)
    rate = low
    while rate < high:
        passed = passes(rate)
        if passed is None:
            high = rate
            break
        best, low = max(best, passed), rate
        if passed < REACHED * rate:  # the sender itself is the limit
            return best
        rate *= 1.6
    for _ in range(BISECTIONS):
        rate = (low * high) ** 0.5
        passed = passes(rate)
        if passed is None:
            high = rate
        else:
            best, low = max(best, passed), rate
    return best


def measure(start, seconds, backward):
    with Place() as place:
        start(place)
        ends = list(place.children)
        wait_ready(place)
        begun_s = processor_s(ends)
        bps = tcp_bps(place, seconds, False)
        # Processor time includes the second that iperf3 leaves out.
        tcp_s = (processor_s(ends) - begun_s) * seconds / (seconds + 1)
        begun_s = processor_s(ends)
        steady = trial(place, STEADY_PKTS_PER_S, seconds)
        steady_s = processor_s(ends) - begun_s
        back_bps = tcp_bps(place, seconds, True) if backward else None
        latency = trial(place, LATENCY_PKTS_PER_S, seconds)
        most = loss_free_pkts_per_s(place, 1)
        flood = trial(place, 0, seconds)
    return {
        "tcp_bps": bps,
        "tcp_backward_bps": back_bps,
        "processor_s_per_gbit": tcp_s / (bps * seconds / 1e9),
        "processor_us_per_pkt": steady_s * 1e6 / (steady["received_pkts_per_s"] * seconds),
        "loss_free_pkts_per_s": most,
        "p50_us": latency["p50_us"],
        "p99_us": latency["p99_us"],
        "flood_offered_pkts_per_s": flood["offered_pkts_per_s"],
        "flood_pkts_per_s": flood["received_pkts_per_s"],
        "flood_share": flood["received_pkts_per_s"] / most if most else 0.0,
        "reordered_pkts": latency["reordered_pkts"] + flood["reordered_pkts"],
    }


# name, against, what, sign, figure; the ratio is taken within one round.
TARGETS = [
    ("cleartext", "offloaded", "tcp_bps", 0.9, "TCP goodput"),
    ("cleartext", "offloaded", "loss_free_pkts_per_s", 0.95, "loss-free packet rate"),
    ("wireguard", "wireguard-go", "tcp_bps", 2.2, "TCP goodput"),
    ("wireguard", "wireguard-go", "loss_free_pkts_per_s", 5.0, "loss-free packet rate"),
]
LATENCY_ABOVE_US = 100.0
FLOOD_SHARE = 0.8


def median(rounds, key):
    return statistics.median(each[key] for each in rounds)


def verdicts(results):
    lines = []
    for name, against, key, least, what in TARGETS:
        if name in results and against in results:
            pairs = list(zip(results[name], results[against], strict=True))
            if any(theirs[key] == 0 for _, theirs in pairs):
                lines.append(f"{name}, {what}: {against} lost packets at every rate: measure on a quiet machine")
                continue
            ratio = statistics.median(mine[key] / theirs[key] for mine, theirs in pairs)
            lines.append(
                f"{name}, {what}: {ratio:.2f} x {against}, target {least:g} x: {report.verdict(ratio >= least)}"
            )
    if "cleartext" in results and "offloaded" in results:
        pairs = list(zip(results["cleartext"], results["offloaded"], strict=True))
        above_us = statistics.median(mine["p99_us"] - theirs["p99_us"] for mine, theirs in pairs)
        verdict = report.verdict(above_us <= LATENCY_ABOVE_US)
        if max(theirs["p99_us"] for _, theirs in pairs) > HELD_UP_US:
            verdict = "says nothing, the machine was held up for longer: measure on a quiet one"
        lines.append(f"cleartext, p99 at 1000 packets/s: {above_us:+.0f} us to offloaded, target +100 us: {verdict}")
    for name in ("cleartext", "wireguard"):
        if name in results:
            share = median(results[name], "flood_share")
            verdict = report.verdict(share >= FLOOD_SHARE)
            lines.append(
                f"{name}, rate under flood: {share:.2f} of the loss-free one, target {FLOOD_SHARE:g}: {verdict}"
            )
    return lines


COLUMNS = [
    "tunnel",
    "TCP Gbit/s",
    "cpu s/Gbit",
    "cpu us/packet",
    "loss-free kpackets/s",
    "p50 us",
    "p99 us",
    "flood kpackets/s",
    "of loss-free",
    "offered in flood",
]


def render(results, markdown):
    lines = []
    for name, rounds in results.items():
        lines.append(
            [
                name,
                f"{median(rounds, 'tcp_bps') / 1e9:.2f}",
                f"{median(rounds, 'processor_s_per_gbit'):.3f}",
                f"{median(rounds, 'processor_us_per_pkt'):.1f}",
                f"{median(rounds, 'loss_free_pkts_per_s') / 1e3:.0f}",
                f"{median(rounds, 'p50_us'):.0f}",
                f"{median(rounds, 'p99_us'):.0f}",
                f"{median(rounds, 'flood_pkts_per_s') / 1e3:.0f}",
                f"{median(rounds, 'flood_share'):.2f}",
                f"{median(rounds, 'flood_offered_pkts_per_s') / 1e3:.0f}",
            ]
        )
    return report.table(COLUMNS, lines, verdicts(results), markdown=markdown)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=report.within(int, 1, 1000), default=3, help="each measures every tunnel once (default 3)"
    )
    parser.add_argument(
        "--seconds", type=report.within(int, 1, 3600), default=5, help="of each measurement (default 5)"
    )
    parser.add_argument("--only", action="append", help="tunnels to measure; default all")
    parser.add_argument("--backward", action="store_true", help="also TCP in the other direction (only in the JSON)")
    return report.options_of(parser)


def missing():
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root")
    if not Path("/dev/net/tun").exists():
        lacks.append("/dev/net/tun")
    for tool, package in (("ip", "iproute2"), ("iperf3", "iperf3"), ("gcc", "gcc")):
        if shutil.which(tool) is None:
            lacks.append(f"{tool} (apt-get install {package})")
    return lacks


def main():
    options = parse_arguments()
    lacks = missing()
    if lacks:
        print(f"gateway.py: tunnels are left out; missing: {', '.join(lacks)}", file=sys.stderr)
        return 0
    build()
    tunnels = {
        "plain": start_forwarder(BUILD / "plain"),
        "plain-queued": start_forwarder(BUILD / "plain", QUEUE_PKTS),
        "offloaded": start_forwarder(RELEASE / "examples" / "forward"),
        "cleartext": start_gateway(sealed=False),
        "wireguard": start_gateway(sealed=True),
    }
    go = wireguard_go() if options.only is None or "wireguard-go" in options.only else None
    if go:
        tunnels["wireguard-go"] = start_wireguard_go(go)
    for name in options.only or ():
        if name not in tunnels:
            print(f"gateway.py: no tunnel {name}; known: {', '.join(tunnels)}", file=sys.stderr)
            return 2
    chosen = {name: start for name, start in tunnels.items() if not options.only or name in options.only}
    results = {name: [] for name in chosen}
    for number in range(options.rounds):
        names = list(chosen)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            print(f"round {number + 1} of {options.rounds}, {name}", file=sys.stderr)
            results[name].append(measure(chosen[name], options.seconds, options.backward))
    answer = {"tunnels": results, "targets": verdicts(results)}
    report.write(options, answer, lambda markdown: render(results, markdown))
    return 0


if __name__ == "__main__":
    # so that the namespaces are removed on SIGTERM, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (BenchError, subprocess.TimeoutExpired) as fault:
        print(f"gateway.py: {fault}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
