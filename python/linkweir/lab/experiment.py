# SPDX-License-Identifier: BSD-3-Clause
"""Runs scenarios in the laboratory: one, into a run directory if wanted, or many, a processor each."""

from __future__ import annotations

import copy
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from linkweir.lab import guest, host, kernel
from linkweir.lab.collect import tables
from linkweir.lab.exported import exported
from linkweir.lab.network import network
from linkweir.lab.peers import check_kernel, under_peer
from linkweir.lab.world import COUNTING_CC, KERNEL_CC, STAGGER_S, World, world
from linkweir.runs.result import Result
from linkweir.runs.simulate import AnyScenario, processors
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.scenario import Scenario, as_scenario

if TYPE_CHECKING:
    import pyarrow as pa


class Experiments(ABC):
    """Runs scenarios on real kernels; subclasses say how."""

    on = ""
    """Where packets queue: qdisc or gateway."""
    where = ""
    """Virtual or real time."""
    identity = ""
    """Hash of everything it is made of."""

    @abstractmethod
    def _made(self, scenario: Scenario) -> World:
        """The job of a scenario."""

    def job(self, scenario: Scenario) -> World:
        """The job of a scenario, without running it.

        Raises:
            ScenarioError: it cannot run here.
        """
        return self._made(scenario)

    @abstractmethod
    def _files(self, made: World, _processor: int | None) -> dict[str, bytes]:
        """Runs a job and returns the files it left."""

    def _tables(self, made: World, files: Mapping[str, bytes]) -> dict[str, pa.Table]:
        return tables(made, files)

    def _extra_files(self, _files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Further files of a run directory."""
        return {}

    def run(
        self,
        scenario: AnyScenario,
        *,
        seed: int | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
        processor: int | None = None,
    ) -> Result:
        """Runs a scenario; arguments and result are those of `linkweir.run`.

        The same scenario, seed and guest give the same tables, byte by byte.

        Args:
            processor: to stay on; one of those allowed when None.

        Raises:
            ScenarioError: the scenario is wrong, or cannot run on a real kernel; nothing was run.
            DirectoryError: `out` cannot be written; nothing was run.
            LaboratoryError: the kernel did not finish the job.
        """
        made = self._made(as_scenario(scenario, seed=seed))
        if processor is None:
            allowed = sorted(os.sched_getaffinity(0))
            processor = allowed[os.getpid() % len(allowed)]
        if out is None:
            return _result(made, self._tables(made, self._files(made, processor)))
        return self._run_to_disk(made, Path(out), force, processor)

    def _run_to_disk(self, made: World, out: Path, force: bool, processor: int | None) -> Result:
        from linkweir.runs.directory import RunDirectory

        directory = RunDirectory(out, made.scenario, force=force, on=self.on, where=self.where, guest=self.identity)
        try:
            files = self._files(made, processor)
            found = self._tables(made, files)
            for name, content in self._extra_files(files).items():
                directory.add_file(name, content)
            for name, table in found.items():
                directory.add(name, table)
            outcome = {
                "complete": True,
                "simulated_s": made.scenario.duration_s,
                "events": 0,
                "packets": _sent(found),
            }
            return directory.finish(outcome)  # type: ignore[arg-type]
        except BaseException as error:
            directory.fail(error)
            raise

    def run_many(
        self,
        scenarios: Sequence[AnyScenario],
        *,
        jobs: int | None = None,
        on_result: Callable[[int, Result], None] | None = None,
    ) -> list[Result]:
        """Runs scenarios in parallel, each on a processor of its own, results in memory.

        All are checked before the first one runs.

        Raises:
            ScenarioError: one of them is wrong; nothing was run.
            LaboratoryError: the first that failed; those not begun are not run.
        """
        made = [self._made(as_scenario(scenario)) for scenario in scenarios]
        allowed = sorted(os.sched_getaffinity(0))
        # A kernel in virtual time runs on one processor; with more jobs than processors they share in turn.
        free: SimpleQueue[int] = SimpleQueue()
        for n in range(jobs or processors()):
            free.put(allowed[n % len(allowed)])
        stop = threading.Event()

        def one(number: int) -> Result | None:
            if stop.is_set():
                return None
            processor = free.get()
            try:
                return _result(made[number], self._tables(made[number], self._files(made[number], processor)))
            finally:
                free.put(processor)

        results: dict[int, Result] = {}
        with ThreadPoolExecutor(jobs or processors()) as pool:
            waiting = {pool.submit(one, number): number for number in range(len(made))}
            try:
                for done in as_completed(waiting):
                    result = done.result()
                    if result is None:
                        continue
                    results[waiting[done]] = result
                    if on_result is not None:
                        on_result(waiting[done], result)
            except BaseException:
                stop.set()
                raise
        return [results[number] for number in range(len(made))]


class Laboratory(Experiments):
    """A kernel and a guest, made ready once, that run any number of scenarios on queueing disciplines.

    Args:
        variant: of the kernel, see `kernel.VARIANTS`.
        stagger_s: TCP connections start at random within this after their time.
        exported_script: the script of `linkweir export tc` sets up the link and the scheduler.
        ingress: that script is the one of `--ingress`.
        every_packet: the link notes how long each packet waited, so tables have the delays of all classes.
        sent_when_due: as for `guest.prepare`.
        say: called with what is built now.

    Raises:
        LaboratoryError: it cannot be built.
    """

    on = "qdisc"
    where = "virtual"

    def __init__(
        self,
        variant: str = "fast",
        *,
        stagger_s: float = STAGGER_S,
        exported_script: bool = False,
        ingress: bool = False,
        every_packet: bool = False,
        sent_when_due: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._stagger_s = stagger_s
        self._exported = exported_script
        self._ingress = ingress
        self._every_packet = every_packet
        self._peer = ""
        self.kernel = kernel.build(variant, say=say)
        options = kernel.options(self.kernel)
        self._controls = (*KERNEL_CC, *(cc for cc in COUNTING_CC if f"TCP_CONG_{cc.upper()}" in options))
        self.guest = guest.prepare(self.kernel, sent_when_due=sent_when_due)
        self.identity = self.guest.identity

    def under(self, peer: str) -> Laboratory:
        """The same laboratory, in which a peer takes the place of the scenario's policy.

        Args:
            peer: a name in `peers.PEERS`; empty for the policy.

        Raises:
            LaboratoryError: the kernel lacks it.
        """
        if peer:
            check_kernel(peer, self.kernel)
        made = copy.copy(self)
        made._peer = peer
        return made

    def _made(self, scenario: Scenario) -> World:
        refuse_constellation(scenario, "laboratory")
        if self._exported:
            return exported(scenario, ingress=self._ingress, stagger_s=self._stagger_s)
        if self._peer:
            return under_peer(
                scenario,
                self._peer,
                stagger_s=self._stagger_s,
                every_packet=self._every_packet,
                controls=self._controls,
            )
        if scenario.is_network:
            return network(scenario, self.guest.kinds, stagger_s=self._stagger_s)
        return world(
            scenario,
            self.guest.kinds,
            stagger_s=self._stagger_s,
            every_packet=self._every_packet,
            controls=self._controls,
        )

    def _files(self, made: World, _processor: int | None) -> dict[str, bytes]:
        return host.start(self.guest, made.job, made.scenario.seed, processor=_processor)


def _sent(found: dict[str, pa.Table]) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(found["series"]["sent_pkts"]).as_py() or 0)


def _same(table: pa.Table) -> pa.Table:
    return table


def _result(made: World, found: dict[str, pa.Table]) -> Result:
    sources = {name: partial(_same, table) for name, table in found.items()}
    return Result(
        made.scenario,
        sources,
        status="complete",
        simulated_s=made.scenario.duration_s,
        events=0,
        packets=_sent(found),
    )
