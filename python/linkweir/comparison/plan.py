# SPDX-License-Identifier: BSD-3-Clause
"""What is compared: one scenario under several policies, on one or more links, with several seeds."""

from __future__ import annotations

import copy
import hashlib
import itertools
import numbers
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.comparison import fitting
from linkweir.comparison.of_network import Part, named, parts_of
from linkweir.comparison.promises import MOST_SEEDS, Promise, given_promise, promises_of
from linkweir.fault import PlanError, ScenarioError
from linkweir.scenarios.kinds import OPEN_LOOP
from linkweir.scenarios.scenario import Scenario, whole_seed
from linkweir.sweeps import keys
from linkweir.sweeps.keys import Key, KeyPathError
from linkweir.sweeps.plan import MOST_SEED, Plan

if TYPE_CHECKING:
    from linkweir.comparison.virtual import VirtualTime
    from linkweir.lab.world import World

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Policies = Sequence[str] | Mapping[str, Mapping[str, Any]]
"""Names of policies, ``LABEL=NAME`` where two entries have the same; or the keys that each changes, by name."""

_PARAMETERS = {"scheduler": 2, "class": 3}
"""Where keys of a policy begin, and how many words lead to one."""


@dataclass(frozen=True)
class Variant:
    """A policy as it is compared.

    Attributes:
        label: its name in the comparison.
        policy: name of the policy.
        notes: what was left out of the scenario or derived for it, a sentence each.
        scheduler: its parameters, as they ran.
        classes: the parameters of each class, as they ran.
        commands: of tc that put it below the link, where it ran in the laboratory.
    """

    label: str
    policy: str
    notes: tuple[str, ...]
    scheduler: dict[str, Any]
    classes: dict[str, dict[str, Any]]
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """A link on which the policies are compared.

    Attributes:
        label: its name in the comparison.
        source: the file of a trace, or empty for the scenario's own link.
        sha256: of the file.
    """

    label: str
    source: str
    sha256: str


@dataclass(frozen=True)
class Facts:
    """All that a report of a comparison says besides the results; `to_dict` and `from_dict` are for JSON."""

    name: str
    scenario: str
    resolved: str
    classes: tuple[str, ...]
    copies: dict[str, int]
    fixed_load: tuple[str, ...]
    duration_s: float
    warmup_s: float
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    links: tuple[Link, ...]
    promises: tuple[Promise, ...]
    notes: tuple[str, ...]
    readings: tuple[str, ...] = ()
    """What the traces were taken for."""
    link: str = ""
    """The link of a network whose classes are compared."""
    flow_classes: dict[str, str] = field(default_factory=dict)
    """The classes there of the flows that pass it."""
    where: str = ""
    """Where the runs were done, if not in the simulator."""

    def to_dict(self) -> dict[str, Any]:
        """As plain lists and dicts; what only a network or the laboratory has is left out of others."""
        written = asdict(self)
        left_out = [*(() if self.link else ("link", "flow_classes")), *(() if self.where else ("where",))]
        if not self.where:
            for one in written["variants"]:
                del one["commands"]
        return {key: value for key, value in written.items() if key not in left_out}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Facts:
        """The inverse of `to_dict`."""
        parts = {
            "variants": tuple(
                Variant(**{**one, "notes": tuple(one["notes"]), "commands": tuple(one.get("commands", ()))})
                for one in written["variants"]
            ),
            "links": tuple(Link(**one) for one in written["links"]),
            "promises": tuple(Promise(**one) for one in written["promises"]),
        }
        lists = {key: tuple(written.get(key, ())) for key in ("classes", "fixed_load", "seeds", "notes", "readings")}
        return cls(**{**written, **lists, **parts})


def prepare(
    scenario: Mapping[str, Any] | str | os.PathLike[str],
    policies: Policies,
    traces: Sequence[str | os.PathLike[str]],
    seeds: int | Sequence[int],
    promises: Sequence[str],
    seed: int | None = None,
    *,
    trace_keys: Mapping[str, Any] | None = None,
    link: str | None = None,
    everywhere: bool = False,
    laboratory: VirtualTime | None = None,
) -> tuple[Plan, Facts]:
    """The plan of a comparison, checked, and what its report says; with a laboratory its runs are done there.

    Raises:
        PlanError: a policy, a trace or a promise is wrong, or a policy lacks what it needs.
        ScenarioError: the scenario is wrong.
    """
    written, path = _read(scenario)
    own = Scenario.from_dict(written, path=path) if isinstance(scenario, Mapping) else Scenario.load(path)
    written, parts = parts_of(own, written, link, everywhere=everywhere)
    judged = parts[0]
    if own.is_network and laboratory is not None:
        raise PlanError("where = virtual: compares policies on one [link]; a network runs with linkweir lab run")
    nominal_bps = _nominal_bps(judged.scenario)
    if own.is_network and traces:
        raise PlanError("traces: cannot take the place of the rates of several links; write trace in one of them")
    links = list(_links_of(judged.written, traces))
    count = _seeds(seeds, own.seed, seed)
    brought = judged.scenario.policy if isinstance(judged.written["scheduler"]["policy"], Mapping) else None
    listed = list(_entries(policies, brought, [] if laboratory is None else laboratory.peers))
    copies = {entry["name"]: entry["count"] for entry in judged.scenario.native.tables()["classes"]}
    promised = (
        *promises_of(judged.written, judged.scenario.native.tables()["classes"], nominal_bps),
        *_given_promises(promises, list(copies), tuple(_with_tcp(judged.scenario))),
    )
    variants = []
    cases = []
    places = []
    readings: dict[str, None] = {}
    told: dict[str, set[str]] = {}
    for label, policy, changes in listed:
        peer = ""
        if laboratory is not None and policy in laboratory.peers:
            peer = policy
            fitted = _peer(label, peer, changes, laboratory, judged.written)
        else:
            fitted = fitting.fit(judged.written, policy, nominal_bps, brought)
        if policy != brought and not peer:  # whose parameters are not known here
            _check_unset(label, policy, changes, fitted.changes, judged.written)
        of_others = _of_others(parts[1:], policy)
        commands: tuple[str, ...] = ()
        own_changes = {judged.key(key): value for key, value in (fitted.changes | changes).items()}
        changed = _changed(written, own_changes | of_others.changes, label)
        settled: Scenario | None = None
        for offered in links:
            settled = _checked(changed, path, offered, label, judged, trace_keys)
            readings.update(dict.fromkeys(settled.readings))
            for note in settled.notes:
                told.setdefault(note, set()).add(label)
            cases.append(({"policy": label, "trace": offered.label}, settled))
            if laboratory is not None:
                job = _in_the_laboratory(laboratory, settled, peer, label, judged.written)
                commands += (*([f"# on {offered.label}:"] if len(links) > 1 else []), *job.commands)
                places.append(laboratory.place(peer, job))
                for note in laboratory.left_out(settled):
                    told.setdefault(note, set()).add(label)
        assert settled is not None
        settled = settled.of_link(judged.link) if judged.link else settled
        own_keys = (
            [f"{'set in their place' if fitted.notes else 'set'}: {keys.show_values(changes)}"] if changes else []
        )
        made = _variant(label, policy, (*fitted.notes, *own_keys, *of_others.notes), settled)
        variants.append(replace(made, scheduler={}, classes={}) if peer else made)
        variants[-1] = replace(variants[-1], commands=commands)
    facts = Facts(
        name=own.name,
        scenario=str(path) if not isinstance(scenario, Mapping) else "",
        resolved=own.resolved,
        classes=tuple(copies),
        copies=copies,
        fixed_load=tuple(_fixed_load(judged.scenario)),
        duration_s=own.duration_s,
        warmup_s=own.warmup_s,
        seeds=tuple(count),
        variants=tuple(variants),
        links=tuple(links),
        promises=promised,
        # What is noted under every policy is no matter of one of them.
        notes=(
            *_notes(judged.written, links, nominal_bps, copies),
            *_of_the_network(parts),
            *(note for note, labels in told.items() if len(labels) == len(listed)),
        ),
        readings=tuple(readings),
        link=judged.link,
        flow_classes=judged.flow_classes(),
        where="" if laboratory is None else laboratory.where,
    )
    return Plan.of_scenarios(own.name, cases, count, None if laboratory is None else places), facts


def _peer(
    label: str, peer: str, changes: Mapping[Key, Any], laboratory: VirtualTime, written: Mapping[str, Any]
) -> fitting.Fitted:
    """What is said of a peer of the kernel, whose commands take the place of the scenario's parameters."""
    for key in changes:
        message = f"{peer} is the kernel's and has no key of a scenario; leave this out"
        raise PlanError(f"policy {label}: {keys.show(key)}: {message}")
    l4s = fitting.taken_for_l4s(written) if peer == "dualpi2" else ()
    return fitting.Fitted({}, (*notes_of_peer(peer, laboratory), *l4s))


def notes_of_peer(peer: str, laboratory: VirtualTime) -> tuple[str, ...]:
    """What is said of a peer, and which one runs where a policy has its name."""
    which = (
        [f"the kernel's own; without --where virtual, {peer} is Linkweir's"] if peer in fitting.known_policies() else []
    )
    note = "keys of the scheduler and limits of classes are left out; the report has the commands of tc that set it up"
    return (*which, laboratory.words(peer), note)


def _in_the_laboratory(
    laboratory: VirtualTime, scenario: Scenario, peer: str, label: str, written: Mapping[str, Any]
) -> World:
    """The job of a run in the laboratory."""
    try:
        return laboratory.job(scenario, peer)
    except ScenarioError as fault:
        key = _named(str(fault.key), written)
        if not key.startswith(tuple(_PARAMETERS)):
            raise
        given = f" = {fault.value}" if fault.value else ""
        raise PlanError(f"policy {label}: {key}{given}: {fault.message}; or leave {label} out") from fault


def _read(scenario: Mapping[str, Any] | str | os.PathLike[str]) -> tuple[dict[str, Any], Path]:
    if isinstance(scenario, Mapping):
        return copy.deepcopy(dict(scenario)), Path("scenario")
    if not isinstance(scenario, (str, os.PathLike)):
        raise TypeError(f"scenario: is a {type(scenario).__name__}; give the path of a scenario, or a dict")
    path = Path(scenario)
    Scenario.load(path)  # its faults have lines
    return tomllib.loads(path.read_text(encoding="utf-8")), path


def _nominal_bps(scenario: Scenario) -> float:
    return scenario.native.tables()["link"]["nominal_bps"]


def _seeds(seeds: int | Sequence[int], own: int, first: int | None) -> list[int]:
    """The seeds of the runs: so many from the first on, or those listed."""
    wrong = f"seeds = {seeds!r}: must be 1 .. {MOST_SEEDS} seeds; 10 give a confidence interval"
    count = int(seeds) if isinstance(seeds, numbers.Integral) and not isinstance(seeds, bool) else None
    if count is None and (isinstance(seeds, (str, bytes, bool)) or not isinstance(seeds, Iterable)):
        raise PlanError(f"{wrong}; give their number, like 10, or a list of seeds, like [1, 2, 3]")
    if count is None and first is not None:
        raise PlanError(f"seed = {first!r}: is for a number of seeds; the list {seeds!r} has its own first")
    start = own if first is None else whole_seed(first, MOST_SEED)
    given: Iterable[int] = (
        seeds if isinstance(seeds, Iterable) else range(start, start + min(count or 0, MOST_SEEDS + 1))
    )
    found = list(itertools.islice(given, MOST_SEEDS + 1))
    if not 1 <= len(found) <= MOST_SEEDS:
        raise PlanError(wrong)
    return [whole_seed(seed, MOST_SEED) for seed in found]


def _given_promises(texts: Sequence[str], names: Sequence[str], with_tcp: Sequence[str]) -> Iterator[Promise]:
    seen: dict[Promise, str] = {}
    for text in texts:
        promise = given_promise(text, names, with_tcp)
        if promise in seen:
            raise PlanError(f"promise {text}: is given twice, first as {seen[promise]}; leave one out")
        seen[promise] = text
        yield promise


def label_and_policy(text: str) -> tuple[str, str]:
    """The parts of ``LABEL=NAME``; of ``NAME`` the policy is empty, since a key may set it.

    Raises:
        PlanError: one of them is missing.
    """
    label, equals, policy = (part.strip() for part in text.rpartition("="))
    if not equals:
        label, policy = policy, ""
    if not label or (equals and not policy):
        missing = "is an empty name" if not equals else "has no label" if not label else "names no policy"
        known = ", ".join(fitting.listed_policies())
        raise PlanError(f'policies: "{text}" {missing}; write NAME or LABEL=NAME; there are {known}')
    return label, policy


def _entries(
    policies: Policies, brought: str | None, peers: Sequence[str]
) -> Iterator[tuple[str, str, dict[Key, Any]]]:
    """Label, policy and changes of each; `brought` is the scenario's policy if it comes from a file.

    A name in `peers` is the kernel's, also if a policy has the same.
    """
    others = [*([brought] if brought else []), *peers]
    known = [*fitting.known_policies(), *others]
    listed = ", ".join(dict.fromkeys([*fitting.listed_policies(), *others]))
    if isinstance(policies, str):
        policies = policies.split(",")
    given: list[tuple[str, Mapping[str, Any]]]
    given = list(policies.items()) if isinstance(policies, Mapping) else [(text, {}) for text in policies]
    if not given:
        raise PlanError(f"policies: is empty; there are {listed}")
    seen = set()
    for text, more in given:
        label, policy = label_and_policy(text)
        try:
            changes = dict(keys.leaves(more))
        except KeyPathError as fault:
            raise PlanError(f"policy {label}: {fault}") from fault
        policy = policy or str(changes.pop(("scheduler", "policy"), label))
        if policy not in known:
            raise _unknown(policy, known, listed)
        if label in seen:
            raise PlanError(f"policies: {label} is given twice; give one another label, like mine={policy}")
        for key in changes:
            if len(key) < _PARAMETERS.get(key[0], len(key) + 1):
                message = "is no parameter of a policy; give keys like class.NAME.KEY or scheduler.KEY"
                raise PlanError(f"policy {label}: {keys.show(key)}: {message}")
        seen.add(label)
        yield label, policy, changes


def _unknown(policy: str, known: Sequence[str], listed: str) -> PlanError:
    from linkweir.lab.peers import PEERS

    if policy in PEERS:
        return PlanError(f"policies: {policy} is a queueing discipline of the kernel: --where virtual runs it")
    return PlanError(f"policies: no policy is called {policy}; there are {listed}{keys.nearest(policy, known)}")


def _links_of(written: Mapping[str, Any], traces: Sequence[str | os.PathLike[str]]) -> Iterator[Link]:
    if not traces:
        link = written.get("link", {})
        trace, rate = link.get("trace"), link.get("rate")
        label = Path(trace).stem if isinstance(trace, str) else rate if isinstance(rate, str) else "link"
        yield Link(label, "", "")
        return
    if isinstance(traces, (str, os.PathLike)):
        raise TypeError("traces: is one path; give a list")
    paths = [Path(trace) for trace in traces]
    seen: dict[str, Path] = {}
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise PlanError(f"traces: {path} is given twice; leave one out")
        try:
            content = path.read_bytes()
        except OSError as error:
            cure = "give the paths of capacity traces, or none to keep the scenario's link"
            raise PlanError(f"traces: {path}: cannot be read: {error.strerror}; {cure}") from error
        digest = hashlib.sha256(content).hexdigest()
        if digest in seen:
            raise PlanError(f"traces: {path} is given twice: {seen[digest]} has the same content; leave one out")
        seen[digest] = path
        alone = [other.stem for other in paths].count(path.stem) == 1
        yield Link(path.stem if alone else str(path), str(path), digest)


def _changed(written: Mapping[str, Any], changes: Mapping[Key, Any], label: str) -> dict[str, Any]:
    there = {
        key: value for key, value in changes.items() if value is not None or keys.look_up(written, key) is not None
    }
    try:
        return keys.put(written, there)
    except KeyPathError as fault:
        raise PlanError(f"policy {label}: {keys.show(fault.key)}: {fault}") from fault


def _check_unset(
    label: str, policy: str, changes: Mapping[Key, Any], fitted: Mapping[Key, Any], written: Mapping[str, Any]
) -> None:
    """Refuses to leave out what is not there and what the policy does not know, which is a slip of the pen."""
    classes = [str(entry["name"]) for entry in written["class"]]
    for key, value in changes.items():
        if value is not None or key in fitted or keys.look_up(written, key) is not None:
            continue
        if key[0] == "class" and key[1] not in classes:
            message = f"there is no class named {key[1]}; there are {', '.join(classes)}"
            raise PlanError(f"policy {label}: {keys.show(key)}: {message}")
        names = fitting.keys_of(policy)[key[0]]
        if key[-1] not in names:
            message = f"cannot be unset, as there is no such key; there are {', '.join(names)}"
            raise PlanError(f"policy {label}: {keys.show(key)}: {message}{keys.nearest(key[-1], names)}")


def _checked(
    changed: Mapping[str, Any],
    path: Path,
    link: Link,
    label: str,
    judged: Part,
    trace_keys: Mapping[str, Any] | None,
) -> Scenario:
    try:
        keys_of_trace = trace_keys if link.source else None
        return Scenario.from_dict(changed, path=path, trace=link.source or None, trace_keys=keys_of_trace)
    except _native.ScenarioError as fault:
        key = _named(judged.of_fault(str(fault.key)), judged.written)
        if not key.startswith(tuple(_PARAMETERS)):
            raise
        given = f" = {fault.value}" if fault.value else ""
        raise PlanError(
            f"policy {label}: {key}{given}: {fault.message}; set it for this policy alone, "
            f"like --set {label}.{key}=VALUE, or leave {label} out"
        ) from fault


def _named(key: str, written: Mapping[str, Any]) -> str:
    """The key of a message with the name of the class: ``class[1].rate`` as ``class.af.rate``."""
    found = named(key, written["class"])
    return key if found is None else keys.show(("class", found[0])) + found[1]


def _of_others(parts: Sequence[Part], policy: str) -> fitting.Fitted:
    """What gives the other links of a network the policy, too."""
    changes: dict[Key, Any] = {}
    notes: list[str] = []
    for part in parts:
        brought = part.scenario.policy if isinstance(part.written["scheduler"]["policy"], Mapping) else None
        fitted = fitting.fit(part.written, policy, _nominal_bps(part.scenario), brought)
        changes |= {part.key(key): value for key, value in fitted.changes.items()}
        notes += [f"link {part.link}: {note}" for note in fitted.notes]
    return fitting.Fitted(changes, tuple(notes))


def _of_the_network(parts: Sequence[Part]) -> Iterator[str]:
    if parts[0].link:
        where = f"every link ({', '.join(part.link for part in parts)})" if parts[1:] else "this link alone"
        yield f"Classes are those of link {parts[0].link}; the policies are compared on {where}"


def _variant(label: str, policy: str, notes: tuple[str, ...], scenario: Scenario) -> Variant:
    resolved = scenario.native.written()
    common = ("name", "count")
    return Variant(
        label,
        policy,
        notes,
        {key: value for key, value in resolved["scheduler"].items() if key != "policy"},
        {entry["name"]: {k: v for k, v in entry.items() if k not in common} for entry in resolved["class"]},
    )


def _fixed_load(scenario: Scenario) -> Iterator[str]:
    """Classes without flows, or whose flows all send at rates of their own: they may want less than is promised."""
    tables = scenario.native.tables()
    for entry in tables["classes"]:
        flows = [flow for flow in tables["flows"] if flow["class"] == entry["name"]]
        if all(flow["kind"] in OPEN_LOOP for flow in flows):
            yield entry["name"]


def _with_tcp(scenario: Scenario) -> Iterator[str]:
    """Classes with TCP flows, which alone have a goodput."""
    for flow in scenario.native.tables()["flows"]:
        if flow["kind"] == "tcp":
            yield flow["class"]


def _notes(
    written: Mapping[str, Any], links: Sequence[Link], nominal_bps: float, copies: Mapping[str, int]
) -> Iterator[str]:
    for name, count in copies.items():
        if count > 1:
            yield f"Class {name} has {count} copies; its figures are means over them"
    if "nominal" in written.get("link", {}) and any(link.source for link in links):
        believed = f"{nominal_bps / 1e6:.4g} Mbit/s (link.nominal)"
        yield f"On every trace the schedulers believe that the link carries {believed}"
