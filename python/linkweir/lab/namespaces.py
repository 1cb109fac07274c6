# SPDX-License-Identifier: BSD-3-Clause
"""The host of an experiment in real time: a job in network namespaces of this machine's kernel.

A job's processes have network, mount and process namespaces of their own. Its first process dies with the one that
waits for it, all others die with the first, and the namespaces and devices vanish with the last: nothing stays behind,
whichever process is killed. Where it is allowed they have real-time priority (`chrt`); otherwise other work on the
machine would show as delay. They sleep most of the time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from linkweir.lab import kernel
from linkweir.lab.fault import LaboratoryError
from linkweir.scratch import scratch

PREPARATION_NS = 5_000_000_000
"""From the start of a job to the beginning of its experiment."""
MOST_S = 60.0
"""Most time that a job may take beyond its experiment."""
NO_GATEWAY = "linkweir-gateway: cargo build --release -p linkweir-gateway, or name it with --gateway"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
_PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "setpriv": "util-linux", "gcc": "gcc and libc6-dev"}
_ALONE = ["unshare", "--net", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"]
_PRIORITY = "chrt --fifo 20"
# A file system of its own at /run, so that only this job sees the names of its network namespaces.
_FIRST = 'mount -t tmpfs run /run && mkdir /run/netns && cd "$JOB" && exec $PRIORITY sh ./run'


@dataclass(frozen=True)
class Tools:
    """Programs and processes of jobs.

    Attributes:
        programs: folder with `workload` and `linkweir-gateway`.
        priority: command that gives real-time priority; empty where that is not allowed.
        running: first processes of the jobs that run.
    """

    programs: Path
    priority: str
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)

    def stop(self) -> None:
        """Ends all jobs that run; `start` then raises a LaboratoryError."""
        for process in list(self.running):
            process.kill()


def why_not(gateway: Path | None) -> list[str]:
    """Why jobs cannot run here, each reason with its cure; empty if they can.

    Args:
        gateway: the program `linkweir-gateway`, or None if it was not found.
    """
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root, to make network namespaces and devices: run it with sudo, or in a virtual machine as root")
    packages = sorted({package for name, package in _PROGRAMS.items() if shutil.which(name, path=_PATH) is None})
    if packages:
        lacks.append(f"{', '.join(packages)}: apt-get install them")
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        lacks.append(
            f"/dev/net/tun ({error.strerror}): load the module with `modprobe tun`, or give the container the device"
        )
    if gateway is None:
        lacks.append(NO_GATEWAY)
    if not lacks:
        tried = subprocess.run([*_ALONE, "true"], env=_environment(), capture_output=True, text=True, check=False)
        if tried.returncode:
            lacks.append(f"namespaces, which this machine refuses: {tried.stderr.strip()}")
    return lacks


def find_gateway() -> Path | None:
    """`linkweir-gateway` as cargo built it in this source tree, or as it is installed."""
    with contextlib.suppress(LaboratoryError):
        built = kernel.tree() / "target/release/linkweir-gateway"
        if built.is_file():
            return built
    found = shutil.which("linkweir-gateway", path=_PATH)
    return None if found is None else Path(found)


def _environment() -> dict[str, str]:
    return {"PATH": _PATH, "HOME": "/", "LC_ALL": "C"}


def prepare(gateway: Path | None, folder: Path) -> Tools:
    """Puts the programs of jobs into a folder.

    Raises:
        LaboratoryError: jobs cannot run here; it names everything that is missing.
    """
    lacks = why_not(gateway)
    if lacks:
        raise LaboratoryError("missing here: " + "; ".join(lacks))
    assert gateway is not None
    shutil.copy(gateway, folder / "linkweir-gateway")
    source = kernel.tree() / "lab/guest/workload.c"
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", str(source), "-o", str(folder / "workload")]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise LaboratoryError(f"the traffic tool cannot be built:\n{done.stderr.strip()}")
    tried = subprocess.run([*_PRIORITY.split(), "true"], env=_environment(), capture_output=True, check=False)
    return Tools(folder, _PRIORITY if tried.returncode == 0 else "")


def start(tools: Tools, job: Mapping[str, bytes], lasts_s: float) -> dict[str, bytes]:
    """Runs a job to its end, from the thread that waits for it.

    Args:
        tools: from `prepare`.
        job: files by name; `run` is a shell script. Its environment has their folder in JOB, the folder for its
            results in OUT, and the start of the experiment on the monotonic clock in ZERO_NS.
        lasts_s: how long the experiment takes.

    Returns:
        The files of OUT; among them `log`, the job's output.

    Raises:
        LaboratoryError: the job failed, or did not end in time.
    """
    with scratch() as folder:
        files, out = folder / "job", folder / "out"
        files.mkdir()
        out.mkdir()
        for path, content in job.items():
            (files / path).write_bytes(content)
        environment = _environment() | {
            "PATH": f"{tools.programs}:{_PATH}",
            "JOB": str(files),
            "OUT": str(out),
            "PRIORITY": tools.priority,
            "ZERO_NS": str(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + PREPARATION_NS),
        }
        command = ["setpriv", "--pdeathsig", "KILL", *_ALONE, "sh", "-c", _FIRST]
        with (out / "log").open("wb") as log:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            tools.running.add(process)
            try:
                status = process.wait(timeout=lasts_s + PREPARATION_NS / 1e9 + MOST_S)
            except subprocess.TimeoutExpired:
                raise LaboratoryError(f"the job did not end within {MOST_S:g} s of its experiment") from None
            finally:
                process.kill()
                process.wait()
                tools.running.discard(process)
        found = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
    if status != 0:
        words = found["log"].decode(errors="replace").strip() or "it printed nothing"
        raise LaboratoryError("the job failed:\n" + "\n".join(words.splitlines()[-40:]))
    return found
