# SPDX-License-Identifier: BSD-3-Clause
"""Does what docs/howto/gateway.md says, on two bare Debian systems: its commands as they stand there.

    python3 machines/sites.py [--deb build/linkweir-gateway.deb]

`ground` is Debian 13 with a public address. `ship` is Debian 12 behind a router with NAT, which lets in only answers.
On both, systemd runs as on a machine. First a gateway is at each end; then wg-quick is at the ship, with wireguard-go
or the kernel's WireGuard, and `linkweir-gateway import` takes its tunnel over. Where a person must put something in,
this program does: the public keys, a process number, and an editor that writes what the page says.

Needs root. The output ends with a table of what was seen, which is also written to build/fresh/sites.md.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bare
from containers import Container
from fresh import ROOT, SYSTEMS, WORK, Trial, TrialError, git

PAGE = (ROOT / "docs/howto/gateway.md").read_text()
INTERNET, GROUND, SHIP = "lwinternet", "lwground", "lwship"
EVERYWHERE = "systemd-sysv dbus iproute2 iputils-ping"
EXAMPLES = "/usr/share/doc/linkweir-gateway/examples"
# Masquerading, and no way in that was not asked for from inside.
NAT = """
table ip nat {
	chain after {
		type nat hook postrouting priority 100
		oifname "outside" masquerade
	}
}
table ip filter {
	chain through {
		type filter hook forward priority 0; policy drop
		ct state established,related accept
		iifname "inside" accept
	}
}
"""
# It gets the line to begin at and the file, and writes between the remarks there.
EDITOR = """#!/bin/sh
for file; do :; done
sed -i '3i [Service]\\nDeviceAllow=/dev/ttyUSB2 rw' "$file"
"""


def block(section: str, language: str = "", at: int = 0) -> str:
    """A fenced block of a section of the page."""
    text = re.split(rf"^#+ {re.escape(section)}$", PAGE, flags=re.MULTILINE)[1]
    text = re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return str(found[at])


class Commands:
    """The commands of the page, each of which must be run."""

    def __init__(self) -> None:
        sections = (
            "In ten lines",
            "Commands",
            "From a wg-quick file",
            "Run it as a service",
            "Try it on an emulated link",
        )
        blocks = [block(section) for section in sections] + [block("Run it as a service", at=at) for at in (1, 2)]
        lines = "".join(blocks).splitlines()
        self.all = [re.split(r"  +#", line)[0].strip() for line in lines]
        self.left = set(self.all)

    def like(self, pattern: str) -> str:
        """The command that looks like this."""
        found = {command for command in self.all if fnmatch.fnmatchcase(command, pattern)}
        if len(found) != 1:
            raise TrialError(f"the page has {len(found)} commands like {pattern}, not one: {sorted(found)}")
        self.left -= found
        return found.pop()


class Sites(Trial):
    """The two systems, the network between them, and what is done there."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(SYSTEMS["debian-13"], options)
        self.commands = Commands()
        self.seen: list[tuple[str, str]] = []
        self.keys: dict[str, str] = {}

    @property
    def log(self) -> Path:
        return WORK / "sites.log"

    def note(self, what: str, seen: str) -> None:
        self.seen.append((what, seen))
        print(f"sites: {what}: {seen}", flush=True)

    def prepare(self, system: str, name: str, packages: str) -> Path:
        """A bare system, with what a machine has and the page supposes, and the package that `make deb` built."""
        self.system = SYSTEMS[system]
        place = self.machine(f"sites-{name}")
        self.step(place, "", f"apt-get update -qq; apt-get install --no-install-recommends {packages}")
        return place

    def install(self, place: Path, name: str) -> None:
        (place / "root/build").mkdir()
        shutil.copy(self.options.deb, place / "root/build/linkweir-gateway.deb")
        self.step(place, f"{name}: the package", self.commands.like("apt-get install *"))
        self.step(place, "", self.commands.like("mkdir *"))
        made = self.step(
            place, "", self.commands.like("linkweir-gateway keygen */key") + "; linkweir-gateway --version"
        )
        self.keys[name], version = made.split()[-3], made.splitlines()[-1]
        with (place / "etc/os-release").open() as about:
            system = next(line.split('"')[1] for line in about if line.startswith("PRETTY_NAME="))
        self.note(name, f"{system}, {version}")

    def configure(self, ground: Path, ship: Path) -> None:
        """What a person writes in the editor: the page's configurations, with the keys."""
        self.commands.like("editor *")
        for place, name, other, at in ((ground, "ground", "ship", 0), (ship, "ship", "ground", 1)):
            text = block("Write a configuration", "toml", at)
            text, changed = re.subn(r'(?m)^public_key = ".*"$', f'public_key = "{self.keys[other]}"', text)
            if changed != 1:
                raise TrialError(f"the page's configuration of {name} has {changed} public keys")
            (place / f"etc/linkweir/{name}.toml").write_text(text)

    def run(self) -> None:
        ground = self.prepare("debian-13", "ground", EVERYWHERE)
        ship = self.prepare("debian-12", "ship", f"{EVERYWHERE} wireguard-tools wireguard-go")
        router = self.prepare("debian-13", "router", "nftables")
        self.install(ground, "ground")
        self.install(ship, "ship")
        self.configure(ground, ship)
        with (
            network(router),
            self.log.open("ab") as log,
            Container(ground, "ground", GROUND, log) as one,
            Container(ship, "ship", SHIP, log) as other,
        ):
            self.by_hand(one, other)
            self.as_services(one, other)
            self.with_a_modem(one, other)
            self.with_wireguard(one, other)
            self.emulated(one)
        self.commands.like("cargo build *")  # make deb runs it
        if self.commands.left:
            raise TrialError(f"not run: {self.commands.left}")
        for place in (ground, ship, router):
            shutil.rmtree(place)

    def do(self, system: Container, script: str, seconds: float = 60) -> str:
        code, printed = system.run(script, seconds)
        system.log.write(f"\n=== {system.place.name}: {script}\n{printed}".encode())
        system.log.flush()
        if code:
            raise TrialError(f"{system.place.name}: {script}: exit code {code}: {printed[-2000:]}")
        return printed

    def until(self, system: Container, script: str, seconds: float = 20) -> str:
        """Runs a script until it succeeds."""
        deadline = time.monotonic() + seconds
        while True:
            code, printed = system.run(script)
            if code == 0:
                return printed
            if time.monotonic() > deadline:
                raise TrialError(f"{system.place.name}: {script}: {printed[-2000:]}")
            time.sleep(0.3)

    def passes(self, ground: Container, ship: Container, what: str) -> None:
        """Packets cross the tunnel in both directions, of IPv4 and IPv6; the ship calls first."""
        self.until(ship, "ping -c 1 -W 1 10.77.0.1")
        lost = [
            re.search(r"(\d+)% packet loss", self.do(system, f"ping -q -i 0.1 -c 10 {address}"))
            for system, address in ((ship, "10.77.0.1"), (ground, "10.77.0.2"), (ship, "fd77::1"), (ground, "fd77::2"))
        ]
        if any(one is None or one[1] != "0" for one in lost):
            raise TrialError(f"{what}: packets were lost: {lost}")
        self.note(what, "packets cross in both directions, of IPv4 and IPv6")

    def by_hand(self, ground: Container, ship: Container) -> None:
        """The commands of the page, without systemd."""
        run = self.commands.like
        self.do(ground, run("linkweir-gateway check *"))
        self.do(ship, run("linkweir-gateway check *").replace("ground", "ship"))
        ended = [
            ground.start(run("linkweir-gateway up *")),
            ship.start(run("linkweir-gateway up *").replace("ground", "ship")),
        ]
        self.passes(ground, ship, "gateways started by hand")
        shown = self.do(ground, run("linkweir-gateway show"))
        endpoint = re.search(r"peer ship at (\S+),", shown)
        self.note("`linkweir-gateway show`", f"the ship is at {endpoint[1] if endpoint else '?'}, the router's address")
        if endpoint is None or not endpoint[1].startswith("192.0.2.2:"):
            raise TrialError(f"the ship is not behind the router: {shown}")
        self.do(ground, run("linkweir-gateway set *"))
        if "18Mbit" not in self.do(ground, run("linkweir-gateway show")):
            raise TrialError("linkweir-gateway show does not say the capacity that was set")
        servers = [ground.start(run("linkweir-gateway page")), ground.start(run("linkweir-gateway metrics *"))]
        self.pages(ground, "`linkweir-gateway page` and `metrics`")
        number = str(self.process_of(ground, "up"))
        self.do(ground, run("kill *").replace("PID", number))
        self.passes(ground, ship, "the configuration read again")
        for system in (ground, ship):
            self.do(system, f"kill {self.process_of(system, 'up')}")
        for process in servers:
            process.terminate()
        for process in (*ended, *servers):
            process.wait(timeout=10)

    def process_of(self, system: Container, command: str) -> int:
        """The number, in its system, of the process that runs `linkweir-gateway COMMAND`."""
        script = (
            "cd /proc; for one in [0-9]*; do tr '\\0' ' ' <$one/cmdline | sed \"s/^/$one /\"; echo; done 2>/dev/null"
        )
        found = re.findall(rf"^(\d+) linkweir-gateway {command} ", self.do(system, script), re.MULTILINE)
        if len(found) != 1:
            raise TrialError(f"{len(found)} processes run linkweir-gateway {command}")
        return int(found[0])

    def pages(self, ground: Container, what: str) -> None:
        """The figures that a browser and Prometheus get."""
        script = (
            "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n"
            "Connection: close\\r\\n\\r\\n' >&3; cat <&3"
        )
        seen = []
        for port, path, expected in ((9706, "/", "<title>"), (9705, "/metrics", "linkweir_class_sent_packets_total")):
            asked = f"bash -c {json.dumps(script.format(port=port, path=path))} | grep -q -a {expected!r}"
            self.until(ground, asked)
            seen.append(f"127.0.0.1:{port}{path}")
        self.note(what, f"{' and '.join(seen)} answer")

    def as_services(self, ground: Container, ship: Container) -> None:
        run = self.commands.like
        self.do(ground, run("systemctl enable --now linkweir-gateway@ground"))
        self.do(ship, run("systemctl enable --now linkweir-gateway@ground").replace("ground", "ship"))
        self.passes(ground, ship, "gateways as services")
        self.do(ground, run("ping *"))
        self.do(ship, run("ping *").replace("10.77.0.2", "10.77.0.1"))
        self.do(ground, run("systemctl reload *"))
        self.passes(ground, ship, "the service reloaded")
        for unit in ("metrics", "page"):
            self.do(ground, run(f"systemctl enable --now linkweir-gateway-{unit}@lw0"))
        self.pages(ground, "the services of page and metrics")
        shown = self.do(ground, "journalctl --quiet --output cat --unit linkweir-gateway@ground")
        said = [line for line in shown.splitlines() if "session" in line]
        self.note("the journal", said[0] if said else shown)

    def with_a_modem(self, ground: Container, ship: Container) -> None:
        """The user and device of a program that asks a modem."""
        run = self.commands.like
        self.do(ground, run("useradd *"))
        path = ground.place / "etc/linkweir/ground.toml"
        path.write_text(path.read_text().replace('device = "lw0"', 'device = "lw0"\nuser = "linkweir"'))
        editor = ground.place / "root/editor"
        editor.write_text(EDITOR)
        editor.chmod(0o755)
        ground.run_at_terminal("export SYSTEMD_EDITOR=/root/editor; " + run("systemctl edit *"))
        self.do(ground, run("systemctl restart *"))
        self.passes(ground, ship, "with a user of its own, restarted")
        shown = self.do(ground, "systemctl show -p DeviceAllow linkweir-gateway@ground")
        if "/dev/ttyUSB2" not in shown:
            raise TrialError(f"the unit does not allow the modem: {shown}")

    def with_wireguard(self, ground: Container, ship: Container) -> None:
        """WireGuard at the ship, then the gateway that took its tunnel over."""
        run = self.commands.like
        self.do(ship, "systemctl disable --now linkweir-gateway@ship")
        secret = (ship.place / "etc/linkweir/key").read_text().strip()
        text = f"[Interface]\nPrivateKey = {secret}\nAddress = 10.77.0.2/24, fd77::2/64\nListenPort = 51820\n\n[Peer]\n"
        text += f"PublicKey = {self.keys['ground']}\nEndpoint = 192.0.2.1:51820\nAllowedIPs = 10.77.0.0/24, fd77::/64\n"
        path = ship.place / "etc/wireguard/wg0.conf"
        path.write_text(text + "PersistentKeepalive = 25\n")
        path.chmod(0o600)
        printed = self.do(ship, "wg-quick up wg0")
        kind = "wireguard-go" if "wireguard-go" in printed else "the kernel's WireGuard"
        self.passes(ground, ship, f"{kind} at the ship")
        self.do(ship, run("linkweir-gateway import *"))
        self.do(ship, run("wg-quick down wg0"))
        self.do(ship, run("systemctl enable --now linkweir-gateway@wg0"))
        self.passes(ground, ship, "its tunnel taken over by `linkweir-gateway import`")

    def emulated(self, ground: Container) -> None:
        run = self.commands.like
        self.do(ground, run("ip netns add *"))
        printed = self.do(ground, f"cd {EXAMPLES}; " + run("linkweir-gateway emulate *"), 130)
        self.note(
            "`linkweir-gateway emulate geo.toml`", f"ended after 100 s with {len(printed.splitlines())} lines of JSON"
        )


@contextlib.contextmanager
def network(router: Path) -> Iterator[None]:
    """Two networks: ground's, and the ship's behind a router with NAT."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names = (INTERNET, GROUND, SHIP)
    for name in names:  # what a run that was killed left behind
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for name, device, there, address, other in (
            (GROUND, "outside", "eth0", "192.0.2.2/24", "192.0.2.1/24"),
            (SHIP, "inside", "eth0", "192.168.1.1/24", "192.168.1.2/24"),
        ):
            ip("-n", INTERNET, "link", "add", device, "type", "veth", "peer", "name", there, "netns", name)
            ip("-n", INTERNET, "address", "add", address, "dev", device)
            ip("-n", INTERNET, "link", "set", device, "up")
            ip("-n", name, "address", "add", other, "dev", there)
            ip("-n", name, "link", "set", there, "up")
        ip("-n", SHIP, "route", "add", "default", "via", "192.168.1.1")
        inside = ["ip", "netns", "exec", INTERNET]
        subprocess.run([*inside, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"], check=True)
        (router / "root/nat").write_text(NAT)
        subprocess.run([*inside, "chroot", router, "/usr/sbin/nft", "-f", "/root/nat"], check=True)
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="Does what docs/howto/gateway.md says, on two bare Debian systems.")
    parser.add_argument("--deb", type=Path, default=ROOT / "build/linkweir-gateway.deb", help="what make deb built")
    parser.add_argument("--mirror", default=bare.mirror("Debian"), help="Debian mirror (default: this machine's)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("sites: bare systems need root", file=sys.stderr)
        return 1
    if not options.deb.is_file():
        print(f"sites: there is no {options.deb}; make deb builds it", file=sys.stderr)
        return 1
    WORK.mkdir(parents=True, exist_ok=True)
    trial = Sites(options)
    trial.log.unlink(missing_ok=True)
    failure = ""
    try:
        trial.run()
    except (TrialError, subprocess.SubprocessError, RuntimeError, OSError) as error:
        failure = f"\nFAILED: {error}\n"
    commit = git("rev-parse", "--short", "HEAD").strip()
    lines = [f"commit {commit}, {time.strftime('%Y-%m-%d')}", "", "| step | seen |", "|---|---|"]
    lines += [f"| {what} | {seen} |" for what, seen in trial.seen]
    text = "\n".join(lines) + "\n" + failure
    (WORK / "sites.md").write_text(text)
    print(text)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
