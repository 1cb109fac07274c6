# SPDX-License-Identifier: BSD-3-Clause
"""A worker process of `linkweir.sweeps.local`: it receives jobs and sends answers over one connection."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from linkweir.sweeps.job import Job, work

READY = "ready"
"""The first message of a worker."""


def main() -> None:
    """Does runs until the other end of the connection goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[2]))
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(connection, jobs, int(sys.argv[4]), sys.argv[3]), daemon=True)
    listener.start()
    with contextlib.suppress(OSError):
        connection.send(READY)
        while True:
            connection.send(work(jobs.get()))
    listener.join()


def _listen(connection: Connection, jobs: queue.SimpleQueue[Job], parent: int, folder: str) -> None:
    """Passes jobs on; ends the process, even during a run, when the parent has died or closed the connection."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(connection.recv())
    for _ in range(40):  # the kernel reports a killed parent a little later than the closed connection
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)  # was the parent's to remove
            break
        time.sleep(0.05)
    os._exit(0)
