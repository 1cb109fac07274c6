# SPDX-License-Identifier: BSD-3-Clause
"""The policies that are measured: those of Linkweir by name, and those of users as files."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.comparison import fitting
from linkweir.comparison.plan import notes_of_peer
from linkweir.fault import PlanError
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps import keys
from linkweir.sweeps.keys import Key, nearest
from linkweir.yardstick.cases import Case
from linkweir.yardstick.traffic import scenario_of
from linkweir.yardstick.virtual import for_a_kernel

if TYPE_CHECKING:
    from linkweir.comparison.virtual import VirtualTime

DEFAULTS = ("pss", "drr", "wrr", "strict", "fq_codel", "codel", "fifo")
"""What is measured when no policy is named."""
_IN_PYTHON = re.compile(r"(?P<file>.+\.py)(?::(?P<name>\w+))?")


@dataclass(frozen=True)
class Candidate:
    """A policy that is measured.

    Attributes:
        label: its name in tables.
        policy: value of ``scheduler.policy``: a name, or the table of a file.
        file: the user's file, or empty.
        declared: of a file: the parameters it declares, of ``[scheduler]`` and of classes.
        peer: the kernel's own way to schedule the link, in the laboratory; empty for a policy of Linkweir.
    """

    label: str
    policy: str | Mapping[str, Any]
    file: str = ""
    declared: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    peer: str = ""


@dataclass(frozen=True)
class Fitted:
    """A case for one policy: the scenario, and what was left out or derived, a sentence each."""

    scenario: Scenario
    notes: tuple[str, ...]


def candidates(policies: Sequence[str], peers: Sequence[str] = ()) -> list[Candidate]:
    """The policies of a list of names and files; files alone are measured beside `DEFAULTS`.

    Args:
        policies: the list.
        peers: names that a kernel has for ways of its own to schedule a link.

    Raises:
        PlanError: one of them is none, or two have the same name.
        ScenarioError: a file is no policy.
    """
    named = [text for text in policies if not _is_file(text)]
    listed = [*(named or DEFAULTS), *(text for text in policies if _is_file(text))]
    found: dict[str, Candidate] = {}
    for text in listed:
        one = _of_file(text) if _is_file(text) else _of_name(text, peers)
        if one.label in found:
            cure = "rename the file" if one.file or found[one.label].file else "leave one out"
            raise PlanError(f"policy {text}: {one.label} is given twice; {cure}")
        found[one.label] = one
    return list(found.values())


def _is_file(text: str) -> bool:
    return text.endswith(".c") or _IN_PYTHON.fullmatch(text) is not None


def _of_name(text: str, peers: Sequence[str]) -> Candidate:
    if text in peers:
        return Candidate(text, text, peer=text)
    known = fitting.known_policies()
    if text not in known:
        from linkweir.lab.peers import PEERS

        if text in PEERS:
            raise PlanError(f"policy {text}: is a discipline of the kernel; --where virtual with --case runs it")
        listed = ", ".join(dict.fromkeys([*fitting.listed_policies(), *peers]))
        cure = f"there are {listed}; a file's name ends in .c or .py{nearest(text, known)}"
        raise PlanError(f"policy {text or chr(34) * 2}: no policy is called so; {cure}")
    return Candidate(text, text)


def _of_file(text: str) -> Candidate:
    """A policy of a user's file."""
    match = _IN_PYTHON.fullmatch(text)
    path = Path(match["file"] if match else text)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PlanError(
            f"policy {text}: cannot be read: {error.strerror}; give the path of a .c or .py file"
        ) from error
    where = path.resolve()
    policy = {"python": f"{where}:{(match['name'] or _class_in(path, content))}"} if match else {"c": str(where)}
    smallest = {
        "duration": "1s",
        "link": {"rate": "1Mbit"},
        "scheduler": {"policy": policy},
        "class": [{"name": "all"}],
        "flow": [{"class": "all", "kind": "greedy"}],
    }
    scenario = Scenario.from_dict(smallest, path=path.parent / "yardstick.toml")
    shown = scenario.native.written()
    of_scheduler = frozenset(shown["scheduler"]) - {"policy"}
    of_classes = frozenset(shown["class"][0]) - set(fitting.keys_of("fifo")["class"]) - {"flows", "l4s_step", "across"}
    return Candidate(scenario.policy, policy, str(path), (of_scheduler, of_classes))


def _class_in(path: Path, content: bytes) -> str:
    """The class of a Python file that is a policy, if there is one only."""
    try:
        parsed = ast.parse(content, str(path))
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise PlanError(f"policy {path}: is not Python{line}: {error}") from error
    found = [
        node.name
        for node in parsed.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "pick" for part in node.body)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise PlanError(f"policy {path}: has no class with a method pick(self, view); name one as {path}:CLASS")
    raise PlanError(f"policy {path}: has several policies ({', '.join(found)}); name one as {path}:{found[0]}")


def fitted(case: Case, load: str, candidate: Candidate, laboratory: VirtualTime | None = None) -> Fitted:
    """The scenario of a case for a policy, fitted as comparisons fit it; with a laboratory, as that can run it.

    Raises:
        PlanError: the policy cannot run this case.
    """
    written = scenario_of(case, load)
    of_the_kernel: tuple[str, ...] = ()
    changes: dict[Key, Any] = {}
    if laboratory is not None:
        written, of_the_kernel = for_a_kernel(written)
    trace = None if case.trace is None else case.trace()
    base = Scenario.from_dict(written, path="yardstick.toml", trace=trace)
    nominal_bps = base.native.tables()["link"]["nominal_bps"]
    if laboratory is not None and candidate.peer:
        notes = notes_of_peer(candidate.peer, laboratory)
    elif candidate.file:
        changes, notes = _for_a_file(written, candidate, nominal_bps)
    else:
        found = fitting.fit(written, candidate.label, nominal_bps)
        changes, notes = found.changes, found.notes
    there = {
        key: value for key, value in changes.items() if value is not None or keys.look_up(written, key) is not None
    }
    try:
        made = Scenario.from_dict(keys.put(written, there), path="yardstick.toml", trace=trace)
    except _native.ScenarioError as fault:
        given = f" = {fault.value}" if fault.value else ""
        place = f"policy {candidate.label}: case {case.name}, load {load}: {fault.key}{given}"
        raise PlanError(f"{place}: {fault.message}; leave the policy or the case out") from fault
    return Fitted(made, (*notes, *of_the_kernel))


def _for_a_file(
    written: Mapping[str, Any], candidate: Candidate, nominal_bps: float
) -> tuple[dict[Key, Any], tuple[str, ...]]:
    """Keys that a user's policy does not declare are left out."""
    # Without a name nothing is derived: a file may have the name of a policy of Linkweir, but not its parameters.
    found = fitting.fit(written, "", nominal_bps)
    of_scheduler, of_classes = candidate.declared
    kept = {
        key
        for key in found.changes
        if (key[0] == "scheduler" and key[-1] in of_scheduler) or (key[0] == "class" and key[-1] in of_classes)
    }
    changes = {key: value for key, value in found.changes.items() if key not in kept}
    left = sorted({str(key[-1]) for key, value in changes.items() if value is None})
    notes = (f"left out: {', '.join(left)}",) if left else ()
    return changes | {("scheduler", "policy"): dict(candidate.policy)}, notes  # type: ignore[arg-type]
