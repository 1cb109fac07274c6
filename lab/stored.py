# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the laboratory whose results are stored, so that an interrupted comparison continues where it was."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)

OUTSIDE = 3
"""Exit code of a comparison that finds something outside its bounds; that of a program that breaks down is 1."""


class Processors:
    """Processors for a number of runs at a time, each on one of its own if there are as many."""

    def __init__(self, at_once: int) -> None:
        self._free: SimpleQueue[int] = SimpleQueue()
        allowed = sorted(os.sched_getaffinity(0))
        for n in range(at_once):
            self._free.put(allowed[n % len(allowed)])

    @contextmanager
    def one(self) -> Iterator[int]:
        """A processor that no other run has, once there is one."""
        processor = self._free.get()
        try:
            yield processor
        finally:
            self._free.put(processor)


@dataclass(frozen=True)
class Job:
    """A run.

    Attributes:
        name: for progress; empty where that is not worth a line.
        depends: everything that the result depends on, as JSON has it.
        run: does it on a processor and returns the result, as JSON has it.
    """

    name: str
    depends: Any
    run: Callable[[int], Any]


class Store:
    """Results of runs, a file each, named by what they depend on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, job: Job) -> Path:
        whole = hashlib.sha256(json.dumps(job.depends, sort_keys=True).encode())
        return self.folder / f"{whole.hexdigest()[:24]}.json"

    def find(self, job: Job) -> Any:
        """The result of a run that was made before, or None."""
        path = self._path(job)
        return json.loads(path.read_text()) if path.exists() else None

    def keep(self, job: Job, result: Any) -> None:
        """Stores a result, whole or not at all."""
        path = self._path(job)
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        part.write_text(json.dumps(result))
        part.replace(path)


def run_all(
    jobs: Mapping[Key, Job], store: Store, at_once: int, say: Callable[[str], None], most_s: float = float("inf")
) -> dict[Key, Any]:
    """Runs what is not stored, in this order.

    Args:
        jobs: what is wanted.
        store: has the results of earlier runs and gets the others.
        at_once: runs at a time, each on a processor of its own if there are as many.
        say: called with the progress.
        most_s: no run begins later than this.

    Returns:
        The results; without those for which there was no time.
    """
    found = {key: store.find(job) for key, job in jobs.items()}
    results = {key: result for key, result in found.items() if result is not None}
    missing: Sequence[Key] = [key for key in jobs if key not in results]
    processors = Processors(at_once)
    began = time.monotonic()
    stop = threading.Event()

    def one(key: Key) -> None:
        if stop.is_set() or time.monotonic() - began > most_s:
            return
        job = jobs[key]
        try:
            with processors.one() as processor:
                known = store.find(job)  # another key may depend on the same
                results[key] = job.run(processor) if known is None else known
            store.keep(job, results[key])
            if job.name:
                done = sum(other in results for other in missing)
                say(f"{done} of {len(missing)} after {time.monotonic() - began:.0f} s: {job.name}")
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for done in [pool.submit(one, key) for key in missing]:
                done.result()
        except BaseException:
            stop.set()  # runs that have begun end and are stored, no other begins
            raise
    return results
