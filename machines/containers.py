# SPDX-License-Identifier: BSD-3-Clause
"""A bare Debian system that runs as a machine does: systemd is its first process, in namespaces and a cgroup of its
own.

The network namespace is one that exists already, so its devices can be there before the system starts. When the program
that started the system ends, however it ends, the kernel ends the system.
"""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import time
from pathlib import Path
from typing import IO

import bare

NAMESPACES = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork"]
NAMESPACES += ["--kill-child", "--mount-proc"]
# Joins the cgroup $1, and runs the rest. It comes before `ip netns exec`, which hides the folders of cgroups.
ENTER_GROUP = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"'
# $0: the folder of the system; $1: its name.
BOOT = """
set -e
hostname "$1"; mount --bind "$0" "$0"; cd "$0"
mount -t proc proc proc; mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup; mount -t cgroup2 cgroup2 sys/fs/cgroup
for place in run dev tmp; do mount -t tmpfs -o mode=755 tmpfs $place; done; chmod 1777 tmp
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm dev/net; mount -t tmpfs tmpfs dev/shm; mknod dev/net/tun c 10 200
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts; ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
: >etc/machine-id
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd
"""


class Container:
    """A running system. Use it in a `with` statement."""

    def __init__(self, place: Path, name: str, network: str, log: IO[bytes]) -> None:
        self.place = place
        self.log = log
        self.group = unified_groups() / f"linkweir-{name}-{os.getpid()}"
        self.group.mkdir()
        inside = [*NAMESPACES, "sh", "-c", BOOT, place, name]
        command = ["sh", "-c", ENTER_GROUP, "sh", self.group, "ip", "netns", "exec", network, *inside]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.first = 0

    def __enter__(self) -> Container:
        try:
            self.wait_until_it_runs()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_until_it_runs(self) -> None:
        deadline = time.monotonic() + 60
        state = ""
        while state not in ("running", "degraded"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"systemd in {self.place} does not run: {state or 'it ended'}")
            time.sleep(0.2)
            self.first = self.first or self.find_first()
            state = self.run("systemctl is-system-running || true")[1].strip() if self.first else ""

    def find_first(self) -> int:
        """The number of the process that is the system's first, here."""
        for line in self.group.joinpath("cgroup.procs").read_text().split() + self.inner_processes():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{line}/comm").read_text() == "systemd\n":
                    return int(line)
        return 0

    def inner_processes(self) -> list[str]:
        found: list[str] = []
        for path in self.group.glob("*/cgroup.procs"):
            with contextlib.suppress(OSError):
                found += path.read_text().split()
        return found

    def command(self, script: str) -> list[str]:
        """The words that run a script in the system, from root's home."""
        enter = ["nsenter", "--target", str(self.first), "--all", "--root", "--wd"]
        start = ["env", "-i", f"PATH={bare.PATH}", "HOME=/root", "LC_ALL=C.UTF-8", "sh", "-c", f"set -e; cd; {script}"]
        return [*enter, *start]

    def run(self, script: str, seconds: float = 60) -> tuple[int, str]:
        """Runs a script in the system; returns its exit code and what it printed."""
        done = subprocess.run(
            self.command(script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def run_at_terminal(self, script: str, seconds: float = 60) -> None:
        """Runs a script in the system at a terminal, of which nobody reads what it shows."""
        ours, theirs = pty.openpty()
        try:
            streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
            subprocess.run(self.command(script), **streams, timeout=seconds, check=True)
        finally:
            os.close(ours)
            os.close(theirs)

    def start(self, script: str) -> subprocess.Popen[bytes]:
        """Starts a script in the system; its output goes into the log."""
        return subprocess.Popen(self.command(script), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        # The kernel ends the others with their first process; a group can be removed when its processes are gone.
        deadline = time.monotonic() + 10
        while self.group.exists() and time.monotonic() < deadline:
            for path in sorted(self.group.rglob("*"), reverse=True):
                if path.is_dir():
                    with contextlib.suppress(OSError):
                        path.rmdir()
            with contextlib.suppress(OSError):
                self.group.rmdir()
            time.sleep(0.05)


def unified_groups() -> Path:
    """Where this machine's cgroups of version 2 are."""
    for line in Path("/proc/mounts").read_text().splitlines():
        words = line.split()
        if words[2] == "cgroup2":
            return Path(words[1])
    raise RuntimeError("no cgroups of version 2 are mounted; mount -t cgroup2 none DIRECTORY")
