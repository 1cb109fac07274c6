# SPDX-License-Identifier: BSD-3-Clause
"""Runs a comparison as a sweep, so that it is resumed, spread over processes and kept like one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from linkweir.comparison.outcome import Comparison
from linkweir.comparison.plan import Facts, Policies, prepare
from linkweir.sweeps.execute import Executor, of_client, run_and_write
from linkweir.sweeps.plan import Plan

if TYPE_CHECKING:
    from distributed import Client

    from linkweir.comparison.virtual import VirtualTime

PLACES = ("simulator", "virtual")
"""Where comparisons run."""


def compare(
    scenario: Mapping[str, Any] | str | os.PathLike[str],
    policies: Policies,
    *,
    traces: Sequence[str | os.PathLike[str]] = (),
    trace_keys: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 10,
    seed: int | None = None,
    promises: Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
    link: str | None = None,
    everywhere: bool = False,
    where: str = "simulator",
    kernel: str = "6.12",
) -> Comparison:
    """Runs one scenario under several policies and compares the service of each class.

    Parameters that a policy does not have are left out; the notes of the result say which.

    Args:
        scenario: the path of a TOML file, or a dict with the same keys.
        policies: names of policies; ``"LABEL=NAME"`` where one is compared with two settings. Or a dict with the keys
            that each changes, as in plans: ``{"pss": {}, "drr": {"class.af.quantum": "3kB"}}``; None leaves a key out.
        traces: capacity traces, each of which takes the place of the link's rate or trace; without any, the link is
            the scenario's own.
        trace_keys: keys of ``[link]`` that describe every trace, such as ``{"trace_unit": "Mbit"}``.
        seeds: the number of seeds, the first being the scenario's own; or a list of seeds.
        seed: the first seed in place of the scenario's own, if `seeds` is a number.
        promises: bounds that a class should keep in addition to what the scenario reserves: ``"af.rate=1.5Mbit"``
            (at least), ``"ef.delay_p99=50ms"`` or ``"ef.loss=1%"`` (at most).
        out: directory for the results and the report. If it holds an incomplete comparison, this is resumed. Without
            `out` everything stays in memory.
        client: a client of `dask.distributed`, whose cluster does the runs.
        jobs: processes of this machine; as many as there are processors when None.
        force: `out` may be another comparison or sweep, which is overwritten.
        progress: called after each run with how many are done, how many there are, and how many failed.
        link: of a network, the link that gets the policies and whose classes are compared.
        everywhere: the other links of the network get the policies, too.
        where: ``"simulator"``, or ``"virtual"``: the laboratory, where a real kernel schedules and sends in virtual
            time, and `policies` may name its own queueing disciplines, those of `linkweir.lab.peers.PEERS`.
        kernel: of the laboratory, ``"6.12"`` or ``"newest"``: the newest of Debian's backports.

    Returns:
        The comparison; `Comparison.table` has the means, `Comparison.report` writes the report.

    Raises:
        PlanError: a policy, a trace or a promise is wrong; nothing was run.
        ScenarioError: the scenario is wrong; nothing was run.
        DirectoryError, ExecutorError: as for `linkweir.sweeps.run_plan`; the laboratory cannot be built, or lacks one.
        SweepInterrupted: Ctrl-C; `Comparison.load` opens the finished part, if `out` was given.

    >>> scenario = {"duration": "2s", "link": {"rate": "2Mbit"}, "scheduler": {"policy": "strict"},
    ...             "class": [{"name": "voice"}, {"name": "rest"}],
    ...             "flow": [{"class": "voice", "kind": "poisson", "rate": "500kbit"},
    ...                      {"class": "rest", "kind": "greedy"}]}
    >>> found = compare(scenario, ["strict", "fifo"], seeds=10, jobs=1, promises=["voice.delay_p99=50ms"])
    >>> [(verdict.policy, verdict.verdict) for verdict in found.verdicts]
    [('strict', 'kept'), ('fifo', 'missed')]
    """
    executor = of_client(client, jobs)
    laboratory = laboratory_at(where, kernel, client, jobs)
    plan, facts = prepare(
        scenario,
        policies,
        traces,
        seeds,
        promises,
        seed,
        trace_keys=trace_keys,
        link=link,
        everywhere=everywhere,
        laboratory=laboratory,
    )
    return run_comparison(plan, facts, laboratory or executor, out=out, force=force, progress=progress)


def laboratory_at(where: str, kernel: str, client: Client | None, jobs: int | None) -> VirtualTime | None:
    """The laboratory, if the runs are done there.

    Raises:
        ValueError: there is no such place, or a cluster should do its runs.
        PlanError: there is no such kernel.
    """
    if where not in PLACES:
        raise ValueError(f"where = {where!r}: must be one of {', '.join(PLACES)}")
    if where != "virtual":
        return None
    if client is not None:
        raise ValueError("client: a cluster does runs of the simulator; leave it out with where = 'virtual'")
    from linkweir.comparison.virtual import VirtualTime

    return VirtualTime(kernel, jobs)


def run_comparison(
    plan: Plan,
    facts: Facts,
    executor: Executor,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> Comparison:
    """Runs a comparison that was prepared; see `compare`."""
    return run_and_write(plan, executor, partial(Comparison, facts), out=out, force=force, progress=progress)
