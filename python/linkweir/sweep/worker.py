# SPDX-License-Identifier: BSD-3-Clause
"""A process that does runs for `linkweir.sweep.local`: jobs come in and answers go out on one connection."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection

from linkweir.sweep.job import Job, work

READY = "ready"
"""What is said first."""


def main() -> None:
    """Does runs until the other end of the connection goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[2]))
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, jobs), daemon=True).start()
    connection.send(READY)
    while True:
        connection.send(work(jobs.get()))


def _listen(connection: Connection, jobs: queue.SimpleQueue[Job]) -> None:
    """Ends the process, in the middle of a run if need be, when nobody waits for its answers any more."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(connection.recv())
    os._exit(0)
