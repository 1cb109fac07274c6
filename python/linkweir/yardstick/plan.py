# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: policies, cases and seeds, as one plan of a sweep."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from linkweir.directories.build import build
from linkweir.fault import PlanError
from linkweir.sweeps.keys import nearest
from linkweir.sweeps.plan import Plan
from linkweir.yardstick.candidates import candidates, fitted
from linkweir.yardstick.cases import CASES, FIELD, Case
from linkweir.yardstick.instructions import Counts
from linkweir.yardstick.instructions import count as counted
from linkweir.yardstick.virtual import job

if TYPE_CHECKING:
    from linkweir.comparison.virtual import VirtualTime

NAME = "Yardstick"
SEEDS = 10
MOST_SEEDS = 1000
_QUICK_LOAD = "busy"


@dataclass(frozen=True)
class Entry:
    """A case with one load under one policy; its place in `Facts.entries` is that of its case in the plan.

    Attributes:
        case: name of the case.
        load: name of the load.
        policy: label of the policy.
        trace_sha256: of the trace of the link; empty if it has none.
        notes: what was left out of the scenario or derived for the policy.
    """

    case: str
    load: str
    policy: str
    trace_sha256: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """What a report says besides the results.

    Attributes:
        policies: labels, in order.
        files: of the policies that are files of users: the file.
        seeds: of the runs of every entry.
        entries: cases outside, loads and policies inside.
        commit: of Linkweir.
        instructions: of each policy, per packet; None if they could not be counted. Empty if they were not asked for.
        kernel: the laboratory's, in words; empty in the simulator.
        not_counted: of each policy whose instructions could not be counted: why.
    """

    policies: tuple[str, ...]
    files: dict[str, str]
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]
    commit: str
    instructions: dict[str, int | None] = field(default_factory=dict)
    kernel: str = ""
    not_counted: dict[str, str] = field(default_factory=dict)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Every case with every load, in order."""
        return list(dict.fromkeys((entry.case, entry.load) for entry in self.entries))

    def to_dict(self) -> dict[str, Any]:
        """As plain lists and dicts."""
        return asdict(self)

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Facts:
        """The inverse of `to_dict`."""
        entries = tuple(Entry(**{**entry, "notes": tuple(entry["notes"])}) for entry in written["entries"])
        lists = {key: tuple(written[key]) for key in ("policies", "seeds")}
        return cls(**{**written, **lists, "entries": entries})


def prepare(
    policies: Sequence[str] = (),
    cases: Sequence[str] = (),
    *,
    seeds: int | None = None,
    quick: bool = False,
    instructions: bool = False,
    jobs: int | None = None,
    laboratory: VirtualTime | None = None,
) -> tuple[Plan, Facts]:
    """The plan of all runs, every scenario checked.

    Args:
        policies: names, and files of users.
        cases: names; all, or those of ``--quick``, when empty.
        seeds: runs of each.
        quick: few cases, with one load each.
        instructions: those of each policy are counted, which takes tens of seconds; in the simulator only.
        jobs: processes that count at a time; as many as there are processors when None.
        laboratory: does the runs, of the cases that are named.

    Raises:
        PlanError: a policy or a case is none, or a policy cannot run a case.
        ScenarioError: a file is no policy.
        LaboratoryError: the laboratory's kernel cannot be built, or lacks a policy.
    """
    if laboratory is not None and not cases:
        raise PlanError("where = virtual: a kernel is far slower than the simulator; name the cases wanted")
    if laboratory is not None and instructions:
        raise PlanError("instructions: only the simulator's are counted; leave them out, or where = virtual")
    count = SEEDS if seeds is None else seeds
    if not 1 <= count <= MOST_SEEDS:
        raise PlanError(f"seeds = {count}: must be 1 .. {MOST_SEEDS}")
    chosen = _chosen(cases, quick=quick)
    measured = candidates(policies, () if laboratory is None else laboratory.peers)
    places = [(case, load) for case in chosen for load in case.loads if not quick or _is_quick(case, load)]
    seeds_of_runs = tuple(range(1, count + 1))
    entries, scenarios, jobs_there = [], [], []
    for (case, load), candidate in itertools.product(places, measured):
        drawn = seeds_of_runs if case.slot_s is not None else seeds_of_runs[:1]
        by_seed = {seed: fitted(case.of_seed(seed), load, candidate, laboratory) for seed in drawn}
        found = by_seed[seeds_of_runs[0]]
        entries.append(Entry(case.name, load, candidate.label, _trace_sha256(found.scenario.inputs), found.notes))
        if laboratory is not None:
            place = f"policy {candidate.label}: case {case.name}, load {load}"
            jobs_there.append(laboratory.place(candidate.peer, job(laboratory, found.scenario, candidate.peer, place)))
        shown = {"test_case": case.name, "load": load, "policy": candidate.label}
        of_seeds = {seed: one.scenario for seed, one in by_seed.items()}
        scenarios.append((shown, found.scenario if case.slot_s is None else of_seeds))
    cost = counted(measured, jobs=jobs) if instructions else Counts()
    plan = Plan.of_scenarios(NAME, scenarios, seeds_of_runs, None if laboratory is None else jobs_there)
    return plan, Facts(
        policies=tuple(one.label for one in measured),
        files={one.label: one.file for one in measured if one.file},
        seeds=seeds_of_runs,
        entries=tuple(entries),
        commit=str(build()["commit"]),
        instructions=cost.instructions,
        kernel="" if laboratory is None else laboratory.where,
        not_counted=cost.reasons,
    )


def _chosen(names: Sequence[str], *, quick: bool) -> list[Case]:
    for name in names:
        if name not in CASES:
            raise PlanError(f"case {name}: there is none; there are {', '.join(CASES)}{nearest(name, list(CASES))}")
    if names:
        return [case for case in CASES.values() if case.name in names]
    return [case for case in CASES.values() if case.quick or not quick]


def _is_quick(case: Case, load: str) -> bool:
    return case.group != FIELD or load == _QUICK_LOAD


def _trace_sha256(inputs: Sequence[tuple[str, str, bytes]]) -> str:
    """Of the trace among the files of a scenario; a user's policy is a file, too."""
    traces = [content for _, source, content in inputs if source.endswith(".csv")]
    return hashlib.sha256(traces[0]).hexdigest() if traces else ""
