# SPDX-License-Identifier: GPL-2.0-only
"""Installs the package on a Debian 13 that has nothing but backports' kernel, boots it and follows docs/howto/bpf.md.

    python3 install.py PACKAGE.deb

The system has no compiler, no headers and no module of linkweir. It is booted with systemd, whose unit linkweir-bpf@v0
makes the discipline. Needs root. Exit codes are those of suite.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from suite import BAD_LOG, BPF, HERE, SUITE, bare

WORK = BPF / "build/install"
DISK_KB = 3 << 20
SECONDS = 7200
"""After which the guest is ended: long enough to end only one that hangs."""
PACKAGES = ["ca-certificates", "dbus", "iproute2", "kmod", "systemd-sysv", "udev"]
UNIT = """\
[Unit]
Description=the checks
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=tty
TTYPath=/dev/ttyS0
ExecStart=/linkweir-test
ExecStopPost=/usr/bin/systemctl --force --force poweroff
[Install]
WantedBy=multi-user.target
"""


def inside(system: Path, script: str, log: Path) -> None:
    """Runs a script in the system without booting it.

    Raises:
        SystemExit: it failed.
    """
    with log.open("ab") as out:
        code = bare.run(system, script, out)
    if code:
        print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
        sys.exit(f"bpf: a step in the new system failed, see {log}")


def make_system(package: Path, log: Path) -> Path | None:
    """A Debian 13 with backports' kernel and the package; the system without the package is kept between runs."""
    fresh, system = WORK / "fresh", WORK / "system"
    if not (WORK / "complete").exists():
        mirror = bare.mirror("Debian") or bare.MIRROR
        with log.open("ab") as out:
            if not bare.bootstrap("trixie", fresh, PACKAGES, out, mirror):
                return None
            bare.carry_settings(fresh, out)
        (fresh / "etc/apt/sources.list").write_text(f"deb {mirror} trixie main\ndeb {mirror} {SUITE} main\n")
        install = "apt-get install -y -q --no-install-recommends"
        inside(fresh, f"apt-get update -q; {install} -t {SUITE} linux-image-cloud-amd64 initramfs-tools", log)
        (WORK / "complete").touch()
    shutil.rmtree(system, ignore_errors=True)
    subprocess.run(["cp", "-a", fresh, system], check=True)
    shutil.copy(package, system / "root")
    inside(system, f"apt-get install -y -q --no-install-recommends ./{package.name}", log)
    shutil.copy(BPF / "build/guest/traffic", system / "usr/local/bin")
    shutil.copy(HERE / "guest/install.sh", system / "linkweir-test")
    (system / "linkweir-test").chmod(0o755)
    (system / "etc/systemd/system/linkweir-test.service").write_text(UNIT)
    inside(system, "systemctl enable linkweir-test; systemctl mask getty@tty1 serial-getty@ttyS0", log)
    return system


def boot(system: Path, log: Path) -> str:
    """Boots the system and returns its output."""
    disk = WORK / "disk"
    disk.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", system, disk, f"{DISK_KB}k"], check=True)
    release = max(path.name for path in (system / "lib/modules").iterdir())
    command = ["timeout", str(SECONDS), "qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "1024"]
    command += ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-no-reboot", "-display", "none", "-serial", "stdio"]
    command += ["-nodefaults", "-drive", f"file={disk},format=raw,if=virtio"]
    command += [
        "-kernel",
        str(system / f"boot/vmlinuz-{release}"),
        "-initrd",
        str(system / f"boot/initrd.img-{release}"),
    ]
    command += ["-append", "root=/dev/vda rw console=ttyS0 quiet panic=-1 oops=panic systemd.show_status=false"]
    with log.open("wb") as out:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    disk.unlink()
    return log.read_text(errors="replace").replace("\r", "")


def main() -> int:
    """Installs, boots and judges."""
    if os.geteuid() != 0:
        print("bpf: NOT TESTED on a bare Debian 13: that needs root", file=sys.stderr)
        return 3
    WORK.mkdir(parents=True, exist_ok=True)
    steps, log = WORK / "steps.log", BPF / "build/install.log"
    steps.unlink(missing_ok=True)
    system = make_system(Path(sys.argv[1]).resolve(), steps)
    if system is None:
        print(f"bpf: NOT TESTED on a bare Debian 13: debootstrap failed, see {steps}", file=sys.stderr)
        return 3
    text = boot(system, log)
    shutil.rmtree(system)
    held = len(re.findall(r"^ok - ", text, re.M))
    wrong = re.findall(r"^not ok - .*$", text, re.M) + [line for line in text.splitlines() if BAD_LOG.search(line)]
    if "ended install" not in text:
        wrong.append("the script did not reach its end")
    print("\n".join(re.findall(r"^# .*$", text, re.M) + wrong))
    print(f"bpf: bare Debian 13: {held} checks held, {len(wrong)} failed; the log is {log}")
    return 1 if wrong or not held else 0


if __name__ == "__main__":
    sys.exit(main())
