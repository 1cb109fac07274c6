# SPDX-License-Identifier: BSD-3-Clause
"""The host of an experiment: starts a kernel with a job's files, and returns the files the job left.

It knows nothing of schedulers or traffic. Two starts with the same guest, files and seed give the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from linkweir.lab.archive import Entry, archive
from linkweir.lab.fault import LaboratoryError
from linkweir.lab.guest import Guest
from linkweir.scratch import scratch

_START_NS = 1_700_000_000_000_000_000
MEMORY = "320M"


def start(
    guest: Guest,
    job: Mapping[str, bytes],
    seed: int,
    *,
    processor: int | None = None,
    most_s: float = 3600.0,
    memory: str = MEMORY,
) -> dict[str, bytes]:
    """Runs a job to its end.

    Args:
        guest: what the kernel starts from.
        job: files of the folder /job, by name; `run` is a shell script. What it leaves in /out is the result.
        seed: of everything random in the kernel.
        processor: to stay on; two processors that take turns are three times slower.
        most_s: real time after which a guest that hangs is ended.
        memory: of the kernel, for all files and programs, as its option `mem` takes it.

    Returns:
        The files of /out; among them `log`, the job's output, and `dmesg`.

    Raises:
        LaboratoryError: the job failed, or the kernel did not end in time.
    """
    with scratch() as folder:
        results = folder / "results"
        results.mkdir()
        # The path of the results differs between runs; padded, it leaves the size of the image the same.
        files = [Entry(f"job/{path}", content) for path, content in sorted(job.items())]
        extra = archive([*files, Entry("job/results", f"{results}\n".encode().ljust(256))])
        (folder / "image").write_bytes(guest.image + extra)
        printed = _boot(guest, folder, seed, processor, most_s, memory)
        found = {path.name: path.read_bytes() for path in sorted(results.iterdir())}
    if found.get("status") != b"0\n":
        words = found.get("log", b"").decode(errors="replace").strip() or printed.strip() or "it printed nothing"
        last = "\n".join(words.splitlines()[-60:])
        raise LaboratoryError(f"the job in the laboratory's kernel failed:\n{last}")
    return found


def ending_with(parent: int, command: list[str]) -> list[str]:
    """The command that is killed when its parent ends, and does not begin if it has ended already."""
    return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"', str(parent), *command]


def _ends(process: int, most_s: float) -> bool:
    """Waits until a process ends; False if it has not after so long. Popen.wait would look every 50 ms."""
    handle = os.pidfd_open(process)
    try:
        looks = select.poll()
        looks.register(handle)
        return bool(looks.poll(1e3 * most_s))
    finally:
        os.close(handle)


def _boot(guest: Guest, folder: Path, seed: int, processor: int | None, most_s: float, memory: str) -> str:
    command = [str(guest.linux), f"mem={memory}", "initrd=image", "con=null", "con0=null,fd:1", "quiet", "panic=-1"]
    command += ["time-travel=inf-cpu", f"time-travel-start={_START_NS}"]
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LINKWEIR_SEED": str(seed)}
    # The library is for the kernel alone.
    command = ending_with(os.getpid(), ["env", f"LD_PRELOAD={guest.preload}", *command])
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        )
        try:
            if processor is not None:
                with contextlib.suppress(OSError):  # it may have ended already
                    os.sched_setaffinity(process.pid, {processor})
            if not _ends(process.pid, most_s):
                raise LaboratoryError(f"the laboratory's kernel did not end within {most_s:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return (folder / "console").read_text(errors="replace")
