# SPDX-License-Identifier: BSD-3-Clause
"""Runs on a Dask cluster, through any client of `dask.distributed`."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from linkweir.fault import ExecutorError
from linkweir.sweeps.job import Answer, Job, version, work

if TYPE_CHECKING:
    from distributed import Client

_CURE = "install the same version on every worker"
_LEAST_AHEAD = 64
_AHEAD_PER_THREAD = 16
"""Runs submitted ahead of their answers; more would only fill the scheduler's memory in a long sweep."""


class DaskCluster:
    """Does runs on a Dask cluster.

    A run on a worker that dies is repeated on another; one on which several workers died (the scheduler's
    ``allowed-failures``) has failed. When a sweep ends early, workers finish the runs they have begun.

    Args:
        client: a client of `dask.distributed`, which stays open.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        """Does the runs and hands over each answer once, in any order, from the calling thread.

        Raises:
            ExecutorError: a worker has no Linkweir or another version of it, or the cluster was lost.
        """
        from distributed import as_completed

        self._check_workers()
        waiting = iter(jobs)
        batch = uuid.uuid4().hex  # keys of an earlier sweep may still be known to the scheduler
        open_jobs: dict[Any, Job] = {}
        with self._client.as_current():
            finished = as_completed()

        def submit(count: int) -> None:
            for job in islice(waiting, count):
                future = self._client.submit(work, job, key=f"linkweir-{batch}-{job.number}", pure=False)
                open_jobs[future] = job
                finished.add(future)

        try:
            submit(max(_LEAST_AHEAD, _AHEAD_PER_THREAD * sum(self._client.nthreads().values())))
            for future in finished:
                take(_answer(future, open_jobs.pop(future)))
                submit(1)
        finally:
            if open_jobs:
                with contextlib.suppress(Exception):  # there may be no cluster any more
                    self._client.cancel(list(open_jobs), force=True)

    def _check_workers(self) -> None:
        """Checks the workers there are; those that join later are checked by their answers."""
        try:
            found = self._client.run(version, on_error="return")
        except (OSError, ImportError) as error:
            raise ExecutorError(f"the workers of the Dask cluster cannot be reached: {error}") from error
        for worker, answer in found.items():
            if isinstance(answer, ModuleNotFoundError):
                raise ExecutorError(f"worker {worker}: {answer}; {_CURE}")
            if not isinstance(answer, str):
                raise ExecutorError(f"worker {worker}: did not report its version: {answer}")
            if answer != version():
                raise ExecutorError(f"worker {worker}: has linkweir {answer}, here it is {version()}; {_CURE}")


def _answer(future: Any, job: Job) -> Answer:
    from distributed import KilledWorker

    try:
        answer = future.result()
    except KilledWorker as error:
        return Answer(
            job.number, None, f"its worker died, {error.allowed_failures + 1} times; does it need too much memory?"
        )
    except Exception as error:
        if future.status in ("cancelled", "lost") or isinstance(error, OSError):
            message = "the Dask cluster was lost; finished runs are kept, and the same command runs the others"
            raise ExecutorError(message) from error
        return Answer(job.number, None, f"{type(error).__name__}: {error}")
    assert isinstance(answer, Answer)
    return answer


@contextlib.contextmanager
def connected(address: str) -> Any:
    """A cluster by the address of its scheduler.

    Raises:
        ValueError: it is no address.
        ExecutorError: nothing answers there, or Dask is not installed.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError as error:
        raise ExecutorError(
            "--dask needs dask[distributed]; install it with: pip install 'dask[distributed]'"
        ) from error
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters comes back as an error
    get_address_host_port(address, strict=True)
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError) as error:
        message = f'--dask = "{address}": no scheduler answers ({error}); start one with: dask scheduler'
        raise ExecutorError(message) from error
    with client:
        yield DaskCluster(client)
