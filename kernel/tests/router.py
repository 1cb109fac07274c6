# SPDX-License-Identifier: GPL-2.0-only
"""Follows docs/howto/router.md on a bare Debian 12 and 13, from the packages to their removal, with real boots.

    python3 router.py [--mirror URL] [debian-12] [debian-13]

Its commands are run as they stand on the page. Section 1 runs in the new system before it boots, where only `uname` is
replaced: it prints the kernel that will run. The others run in QEMU under systemd, on a device eth0: sections 2 and 3,
a boot, then the rest. After each the test looks for what the page promises. Needs root and make deb. Exit codes are
those of run.py.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from install import release
from run import BUILD, HERE, fail, judge, run

ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "machines"))
import bare  # noqa: E402

WORK = BUILD / "router"
PAGE = ROOT / "docs/howto/router.md"
SUITES = {"debian-12": "bookworm", "debian-13": "trixie"}
PACKAGES = ["linux-image-cloud-amd64", "iproute2", "ca-certificates", "systemd-sysv", "udev", "kmod"]
DISK_BYTES = 4 << 30
UNIT = """[Service]
Type=idle
ExecStart=/bin/bash /follow
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
"""
BEGIN = """
judge() { if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2: $3"; fi; }
step() { # step NAME SCRIPT WORDS: runs commands of the page, in whose output the words are
	output=$(bash -euc "$2" 2>&1)
	judge $? "$1" "$output"
	echo "$output"
	[ -z "$3" ] || { echo "$output" | tr '\\n' ' ' | grep -qE "$3"; judge $? "$1 shows $3" "$output"; }
}
ip address replace 10.0.2.15/24 dev eth0
ip link set eth0 up
"""
CALLS = """
perl -MSocket -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Proto => "udp", PeerAddr => "10.0.2.2:9") or die $!;
	$s->setsockopt(IPPROTO_IP, IP_TOS, 0xb8); $s->send("x" x 172) for 1 .. 20'
sent=$(tc -s class show dev eth0 | grep -A1 "^class pss [0-9a-f]*:1 " | sed -n 's/.* \\([0-9]*\\) pkt.*/\\1/p')
[ "$sent" = 20 ]
judge $? "20 packets of a call are in class 1" "$sent"
"""


def blocks(page: str) -> dict[int, list[str]]:
    """The commands of each numbered section."""
    sections = re.split(r"^## (\d+)\. .*$", page, flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2], strict=True)
    return {int(number): re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for number, text in pairs}


def step(name: str, script: str, words: str = "") -> str:
    """A call of the shell's function `step`."""
    quoted = [value.replace("'", "'\\''") for value in (name, script, words)]
    return "step '{}' '{}' '{}'\n".format(*quoted)


def first_boot(found: dict[int, list[str]]) -> str:
    """Sections 2 and 3, up to the boot."""
    begun = BEGIN + step(
        "2. set it", found[2][0], "qdisc pss .* bandwidth 18Mbit .*classes 3|classes 3 .*bandwidth 18Mbit"
    )
    return begun + step("3. keep it", found[3][0]) + end("first")


def second_boot(found: dict[int, list[str]]) -> str:
    """The rest: what the boot set, the counters, a change, the removal."""
    ready = "for n in $(seq 60); do systemctl is-active --quiet linkweir-qdisc@eth0 && break; sleep 1; done\n"
    text = BEGIN + ready + step("3. after the boot", found[3][1], "^active qdisc pss .*18Mbit") + CALLS
    text += step(
        "4. read it", found[4][0], "class pss [0-9a-f]+:1 .*class pss [0-9a-f]+:2 .*class pss [0-9a-f]+:3 .*sojourn_max"
    )
    shows = "\ntc qdisc show dev eth0"
    text += step("5. change it", found[5][0] + shows, "12Mbit") + step(
        "5. for the next boot", found[5][1] + shows, "12Mbit"
    )
    text += step("6. remove it", "\n".join(found[6]) + shows)
    files = "/etc/linkweir/qdisc /usr/lib/linkweir /usr/src/linkweir* /etc/network/if-up.d/linkweir*"
    text += f"output=$(tc qdisc show dev eth0; ls -d {files} 2>/dev/null\n"
    text += "\tdpkg-query -W | grep linkweir; find /lib/modules -name 'sch_linkweir*'\n"
    text += "\tsystemctl list-unit-files | grep linkweir-qdisc)\n"
    text += 'echo "$output" | grep -qE "linkweir|pss"\n[ $? = 1 ]\njudge $? "nothing of it is left" "$output"\n'
    return text + end("second")


def end(name: str) -> str:
    return f"echo ended {name}\nsync\necho o >/proc/sysrq-trigger\nsleep 60\n"


def make_system(name: str, mirror: str | None, log: Path) -> Path:
    """A bare Debian with a kernel and systemd, and the packages in root's folder."""
    system = WORK / name
    with log.open("ab") as out:
        if not bare.bootstrap(SUITES[name], system, PACKAGES, out, mirror):
            print(f"kernel: NOT TESTED on a bare {name}: debootstrap failed, see {log}", file=sys.stderr)
            sys.exit(3)
        bare.carry_settings(system, out)
    for package in BUILD.glob("*linkweir*.deb"):
        shutil.copy(package, system / "root")
    uname = system / "usr/local/bin/uname"
    uname.write_text(f'#!/bin/sh\n[ "$1" = -r ] && exec echo {release(system)}\nexec /usr/bin/uname "$@"\n')
    uname.chmod(0o755)
    (system / "etc/systemd/system/follow.service").write_text(UNIT)
    return system


def boot(disk: Path, system: Path, log: Path) -> str:
    """What the system prints until it ends."""
    name = release(system)
    command = ["timeout", "1800", "qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "1024", "-nodefaults"]
    command += ["-no-reboot", "-display", "none", "-serial", "stdio", "-drive", f"file={disk},format=raw,if=virtio"]
    command += ["-nic", "user,model=virtio-net-pci,restrict=on", "-kernel", str(system / f"boot/vmlinuz-{name}")]
    command += ["-initrd", str(system / f"boot/initrd.img-{name}"), "-append"]
    command += ["root=/dev/vda rw console=ttyS0 quiet panic=-1 oops=panic net.ifnames=0 systemd.show_status=0"]
    with log.open("wb") as out:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    return log.read_text(errors="replace").replace("\r", "")


def follow(name: str, mirror: str | None) -> list[str]:
    """Follows the page on one system: what went wrong."""
    log = WORK / f"{name}.log"
    log.unlink(missing_ok=True)
    found = blocks(PAGE.read_text())
    system = make_system(name, mirror, log)
    # a getty on ttyS0 would hang up the console, and the service's output would be lost
    service = "systemctl enable follow.service\nsystemctl mask serial-getty@ttyS0.service"
    with log.open("ab") as out:
        if bare.run(system, f"set -eu; {found[1][0]}\n{service}", out):
            print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
            fail(f"section 1 failed on {name}, see {log}")
    shutil.rmtree(system / "usr/local/bin")
    disk = WORK / f"{name}.disk"
    wrong = []
    scripts = {"first": first_boot(found), "second": second_boot(found)}
    (system / "second").write_text(scripts["second"])
    (system / "follow").write_text(scripts["first"].replace("echo ended first", "mv /second /follow\necho ended first"))
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-d", system, disk, f"{DISK_BYTES >> 10}k")
    for which in scripts:
        text = boot(disk, system, WORK / f"{name}-{which}.log")
        failed = judge(text, [which])
        held = sum(line.startswith("ok ") for line in text.splitlines())
        print(f"{name}: {which} boot, {release(system)}: {held} checks held, {len(failed)} failed", flush=True)
        wrong += [f"{name}: {which} boot: {line}" for line in failed]
    disk.unlink()
    shutil.rmtree(system)
    return wrong


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Follows docs/howto/router.md on bare Debians.")
    parser.add_argument("--mirror", help="Debian mirror; by default this machine's own")
    parser.add_argument("systems", nargs="*", choices=[*SUITES, []], default=[])
    return parser.parse_args(words)


def main() -> int:
    options = arguments()
    if os.geteuid() != 0:
        print("kernel: NOT TESTED on bare Debians: that needs root", file=sys.stderr)
        return 3
    WORK.mkdir(parents=True, exist_ok=True)
    mirror = options.mirror or bare.mirror("Debian")
    wrong = [line for name in options.systems or SUITES for line in follow(name, mirror)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
