# SPDX-License-Identifier: BSD-3-Clause
"""Runs of a comparison in the laboratory: policies as queueing disciplines of a kernel, and that kernel's own peers."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from queue import SimpleQueue

from linkweir.fault import PlanError
from linkweir.lab import kernel
from linkweir.lab.experiment import Laboratory
from linkweir.lab.peers import PEERS
from linkweir.lab.world import World, left_out
from linkweir.runs.simulate import processors
from linkweir.scenarios.scenario import Scenario, with_inputs
from linkweir.sweeps.job import Answer, Job, kept_rows, version

KERNELS = {"6.12": "fast", "newest": "newest"}
"""Kernels that a comparison may run on, and their variants in `kernel.VARIANTS`."""
_PLACE = "virtual time"


class VirtualTime:
    """The laboratory as an executor of a comparison's runs, each on a processor of its own.

    Args:
        kernel_name: a name in `KERNELS`.
        jobs: runs at a time; as many as there are processors when None.
        say: called with what is built.

    Raises:
        PlanError: there is no such kernel.
    """

    def __init__(
        self, kernel_name: str = "6.12", jobs: int | None = None, say: Callable[[str], None] = lambda _: None
    ) -> None:
        if kernel_name not in KERNELS:
            raise PlanError(f"kernel = {kernel_name}: must be one of {', '.join(KERNELS)}")
        self._jobs = jobs or processors()
        self._variant = KERNELS[kernel_name]
        self._say = say

    @cached_property
    def _laboratory(self) -> Laboratory:
        """Built when first asked for: what is wrong in a plan is found before minutes are spent on a kernel."""
        return Laboratory(self._variant, every_packet=True, say=self._say)

    @property
    def where(self) -> str:
        """The kernel in words.

        Raises:
            LaboratoryError: it cannot be built.
        """
        return f"Linux {kernel.release(self._laboratory.kernel)} in virtual time"

    @property
    def peers(self) -> list[str]:
        """Names of the kernel's own ways to schedule a link."""
        return list(PEERS)

    def words(self, peer: str) -> str:
        """What an operator gets with a peer."""
        return PEERS[peer].words

    def place(self, peer: str, job: World) -> tuple[str, ...]:
        """Names a run here, for its identity and for `run`; other commands of tc make it another run.

        Args:
            peer: as for `job`.
            job: what that returned.
        """
        files = hashlib.sha256(job.job["run"] + b"\0" + job.job["changes"]).hexdigest()
        return (_PLACE, self._laboratory.identity, peer, files)

    def job(self, scenario: Scenario, peer: str) -> World:
        """The job of a run; `peer` is empty for the scenario's policy.

        Raises:
            ScenarioError: the scenario cannot run here.
            LaboratoryError: the kernel cannot be built, or lacks the peer.
        """
        return self._laboratory.under(peer).job(scenario)

    def left_out(self, scenario: Scenario) -> list[str]:
        """What the laboratory goes on without, a line each."""
        return list(left_out(scenario.native.written()))

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        """Does the runs and hands over an answer for each, in any order, from the calling thread."""
        allowed = sorted(os.sched_getaffinity(0))
        free: SimpleQueue[int] = SimpleQueue()
        for n in range(self._jobs):
            free.put(allowed[n % len(allowed)])
        stop = threading.Event()

        def one(job: Job) -> Answer | None:
            if stop.is_set():
                return None
            processor = free.get()
            try:
                return self._answer(job, processor)
            finally:
                free.put(processor)

        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                for done in as_completed([pool.submit(one, job) for job in jobs]):
                    answer = done.result()
                    if answer is not None:
                        take(answer)
            except BaseException:
                stop.set()  # runs that have begun end, no other begins
                raise

    def _answer(self, job: Job, processor: int) -> Answer:
        try:
            if job.place[:2] != (_PLACE, self._laboratory.identity):
                raise ValueError("is a run of another laboratory")
            scenario = with_inputs(job.text, job.inputs, job.seed)
            result = self._laboratory.under(job.place[2]).run(scenario, processor=processor)
            return Answer(job.number, kept_rows(result.tables, scenario, scenario.duration_s), version=version())
        except Exception as fault:  # one failed run must not end the others
            return Answer(job.number, None, str(fault) or type(fault).__name__, version())
