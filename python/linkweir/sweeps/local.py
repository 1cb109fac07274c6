# SPDX-License-Identifier: BSD-3-Clause
"""Runs on processes of this machine, which end with the one that started them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Pipe, wait
from pathlib import Path

from linkweir.fault import ExecutorError
from linkweir.runs.simulate import processors
from linkweir.scratch import scratch
from linkweir.sweeps.job import Answer, Job

_ATTEMPTS = 3
"""After so many deaths of its process the run itself is taken to be the cause."""

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from linkweir.sweeps.worker import main; main()"


class _Worker:
    """A process that does one run after the other."""

    def __init__(self, folder: Path, number: int) -> None:
        self._errors = folder / f"{number}.err"
        self.job: Job | None = None
        self.ready = False
        self.connection, theirs = Pipe()
        # Our process number is an argument: when a worker asks for its parent's, this process may already be dead.
        numbers = str(theirs.fileno()), str(folder), str(os.getpid())
        words = [sys.executable, "-c", _START, json.dumps(sys.path), *numbers]
        # A session of its own, so that Ctrl-C reaches only this process, which then ends the worker.
        with self._errors.open("wb") as errors, theirs:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "TMPDIR": str(folder)},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, job: Job) -> None:
        self.job = job
        with contextlib.suppress(OSError):  # a worker that has died is noticed when its connection is read
            self.connection.send(job)

    def end(self) -> None:
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def cause_of_death(self) -> str:
        code = self._process.wait()
        errors = self._errors.read_text(errors="replace").strip().splitlines()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{how}: {errors[-1]}" if errors else how


class LocalProcesses:
    """Does runs on processes of this machine.

    A process that dies is replaced and its run repeated; a run on which three processes died has failed.

    Args:
        processes: how many; as many as there are processors when None.
    """

    def __init__(self, processes: int | None = None) -> None:
        if processes is not None and processes < 1:
            raise ValueError("processes must be at least 1")
        self._count = processes or processors()
        self._workers: list[_Worker] = []

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that are alive."""
        return [worker.pid for worker in self._workers]

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        """Does the runs and hands over each answer once, in any order, from the calling thread.

        Raises:
            ExecutorError: processes cannot be started.
        """
        waiting = iter(jobs)
        again: deque[Job] = deque()
        deaths: Counter[int] = Counter()
        started = 0
        with scratch() as folder:
            try:
                while True:
                    while len(self._workers) < self._count and (job := _next(again, waiting)) is not None:
                        started += 1
                        self._workers.append(_Worker(folder, started))
                        self._workers[-1].give(job)
                    if not self._workers:
                        return
                    # At least one worker has a job here, so the wait ends: with an answer, or with the worker's death.
                    for worker in self._with_messages():
                        try:
                            message = worker.connection.recv()
                        except (EOFError, OSError):
                            self._replace_dead(worker, deaths, again, take)
                            continue
                        if not isinstance(message, Answer):
                            worker.ready = True
                            continue
                        take(message)
                        worker.job = _next(again, waiting)
                        if worker.job is None:
                            self._workers.remove(worker)
                            worker.end()
                        else:
                            worker.give(worker.job)
            finally:
                for worker in self._workers:
                    worker.end()
                self._workers.clear()

    def _with_messages(self) -> list[_Worker]:
        ready = wait([worker.connection for worker in self._workers])
        return [worker for worker in self._workers if worker.connection in ready]

    def _replace_dead(
        self, worker: _Worker, deaths: Counter[int], again: deque[Job], take: Callable[[Answer], None]
    ) -> None:
        self._workers.remove(worker)
        why = worker.cause_of_death()
        worker.end()
        if not worker.ready and "killed" not in why:
            raise ExecutorError(f"a worker process cannot start: it {why}")
        assert worker.job is not None
        deaths[worker.job.number] += 1
        if deaths[worker.job.number] < _ATTEMPTS:
            again.append(worker.job)
        else:
            take(
                Answer(worker.job.number, None, f"its process {why}, {_ATTEMPTS} times; does it need too much memory?")
            )


def _next(again: deque[Job], waiting: Iterator[Job]) -> Job | None:
    return again.popleft() if again else next(waiting, None)
