# SPDX-License-Identifier: BSD-3-Clause
"""Plans of sweeps: the cases of a grid or a list of changes to a scenario, and their seeds, checked before any runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.columns import inferred, strings, wholes
from linkweir.fault import PlanError
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps import keys
from linkweir.sweeps.job import Job, identity
from linkweir.sweeps.keys import Key, KeyPathError, Values

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pyarrow as pa

_PLAN_KEYS = ("name", "scenario", "seeds", "grid", "case")
_SCENARIO: Key = ("scenario",)
MOST_SEED = 2**63 - 1
"""The largest seed."""


@dataclass(frozen=True)
class Case:
    """A scenario that is run with every seed.

    Attributes:
        number: from 1.
        label: a name of its own; empty if it has none.
        values: the keys it gives values to, as written.
        text: the scenario with these values and every default written out.
        seed: the scenario's own.
        inputs: files the scenario names: name in `text`, path it was read from, content.
        readings: what each measured series was taken for, a line each.
        notes: where something is not as the scenario's writer may expect, a sentence each.
        shown: `values`, and the scenario's own values of the keys that only other cases change.
        place: where its runs are done, as `Job.place`.
        texts: of each seed, if its scenario is not `text`; the files are the same.
    """

    number: int
    label: str
    values: Values
    text: str = field(repr=False)
    seed: int
    inputs: tuple[tuple[str, str, bytes], ...] = field(repr=False)
    readings: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    shown: Values = field(repr=False)
    place: tuple[str, ...] = field(default=(), repr=False)
    texts: Mapping[int, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        known = ", ".join(
            [*([self.label] if self.label else []), *([keys.show_values(self.values)] if self.values else [])]
        )
        return f"case {self.number} ({known})" if known else f"case {self.number}"


@dataclass(frozen=True)
class Run:
    """A case with a seed, and the job that an executor gets."""

    case: Case
    job: Job

    @property
    def number(self) -> int:
        """Which run of the plan, from 1."""
        return self.job.number

    @property
    def seed(self) -> int:
        """Seed of every random number."""
        return self.job.seed

    def __str__(self) -> str:
        return f"{self.case}, seed {self.seed}"


class Plan:
    """Cases times seeds, all of them valid.

    Make one with `load`, `from_dict` or `of_scenarios`.

    Attributes:
        name: shown in reports.
        cases: in the order of the plan.
        runs: every case with every seed, cases outside, seeds inside.
        keys: all that any case gives a value to, in the order of the plan.
    """

    def __init__(self, name: str, cases: Sequence[Case], seeds: Sequence[int] | None, source: str) -> None:
        self.name = name
        self.keys: tuple[Key, ...] = tuple(dict.fromkeys(key for case in cases for key in case.shown))
        self.cases = tuple(cases)
        self._source = source
        self.runs = tuple(_runs(self.cases, seeds, source))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, seed: int | None = None) -> Plan:
        """Reads a TOML file.

        Args:
            path: the file; the path of its scenario is relative to its folder.
            seed: first seed in place of the plan's; as many follow as the plan has.

        Raises:
            PlanError: the plan is wrong.
            ScenarioError: its scenario is.
        """
        where = Path(path)
        try:
            text = where.read_text(encoding="utf-8")
        except OSError as error:
            raise PlanError(f"{where}: cannot be read: {error.strerror}; give the path of a plan in TOML") from error
        except UnicodeDecodeError as error:
            raise PlanError(f"{where}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
        return cls._read(_parsed(text, str(where)), _Place(str(where), text), where, seed)

    @classmethod
    def from_dict(
        cls, plan: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".", seed: int | None = None
    ) -> Plan:
        """Reads a dict with the keys of the TOML form; ``scenario`` is a path or a dict.

        Args:
            plan: the plan.
            folder: where paths of the plan start.
            seed: as for `load`.

        Raises:
            PlanError: the plan is wrong.
            ScenarioError: its scenario is.

        >>> fifo = {"duration": "1s", "link": {"rate": "1Mbit"}, "scheduler": {"policy": "fifo"},
        ...         "class": [{"name": "all"}],
        ...         "flow": [{"name": "calls", "class": "all", "kind": "poisson", "rate": "800kbit"}]}
        >>> plan = Plan.from_dict({"scenario": fifo, "grid": {"link.rate": ["1Mbit", "2Mbit"]}, "seeds": [1, 2]})
        >>> [str(run) for run in plan.runs][-1]
        'case 2 (link.rate = "2Mbit"), seed 2'
        """
        return cls._read(plan, _Place("plan", ""), Path(folder) / "plan", seed)

    @classmethod
    def of_scenarios(
        cls,
        name: str,
        cases: Iterable[tuple[Mapping[str, Any], Scenario | Mapping[int, Scenario]]],
        seeds: Sequence[int] | None = None,
        places: Sequence[tuple[str, ...]] | None = None,
    ) -> Plan:
        """A plan of scenarios made elsewhere.

        Args:
            name: shown in reports.
            cases: what tells each from the others, by dotted key, and its scenario, or that of each seed. Scenarios of
                the seeds of a case name the same files.
            seeds: run with each; with its own when None.
            places: where the runs of each case are done, as `Job.place`; in the simulator when None.

        Raises:
            PlanError: two cases are the same, or there is none.
        """
        plan = _Place("plan", "")
        contents: dict[bytes, bytes] = {}
        made = []
        for number, (shown, given) in enumerate(cases, 1):
            values = {keys.split(key): _plain(value) for key, value in shown.items()}
            place = () if places is None else places[number - 1]
            by_seed = {} if isinstance(given, Scenario) else given
            scenario = given if isinstance(given, Scenario) else next(iter(given.values()))
            texts = {seed: one.resolved for seed, one in by_seed.items()}
            made.append(Case(number, "", values, *_kept_of(scenario, contents), values, place, texts))
        if not made:
            raise plan.fault("case", None, "is empty; give at least one case")
        return cls(name, made, None if seeds is None else _seeds(list(seeds), None, plan), "plan")

    @classmethod
    def _read(cls, plan: Mapping[str, Any], place: _Place, path: Path, seed: int | None) -> Plan:
        for key in plan:
            if key not in _PLAN_KEYS:
                message = f"unknown key; there are {', '.join(_PLAN_KEYS)}{keys.nearest(str(key), _PLAN_KEYS)}"
                raise place.fault(str(key), None, message)
        name = plan.get("name", path.stem)
        if not isinstance(name, str):
            raise place.fault("name", name, "must be text")
        if not any(key in plan for key in ("grid", "case", "seeds")):
            raise place.fault("grid", None, "is missing; a plan needs [grid], [[case]] or seeds, else use linkweir run")
        bases = _Bases(place, path, plan.get("scenario"))
        seeds = _seeds(plan.get("seeds"), seed, place)
        cases = _filled(list(_cases(plan, place, bases)), bases)
        return cls(name, cases, seeds, place.file)

    @property
    def sha256(self) -> str:
        """SHA-256 of everything that determines the data set, except the version of Linkweir."""
        digest = hashlib.sha256()
        for run in self.runs:
            digest.update(f"{run.case.number} {run.job.identity}\n".encode())
        for case in self.cases:
            shown = [[keys.show(key), value] for key, value in case.shown.items()]
            digest.update(json.dumps([case.label, shown], default=str).encode())
        return digest.hexdigest()

    @property
    def inputs(self) -> list[tuple[str, bytes]]:
        """Every file a scenario names, once: path it was read from, content."""
        found: dict[tuple[str, bytes], None] = {}
        for case in self.cases:
            found.update({(source, content): None for _, source, content in case.inputs})
        return list(found)

    def columns(self, runs: Sequence[Run]) -> pa.Table:
        """One row per run: number, case, seed, the label if any case has one, and the keys.

        Keys are as written and, if all values are quantities of one kind, as numbers too, with the unit in the name.
        The columns are those of the whole plan, even if only some runs are asked for.
        """
        import pyarrow as pa

        found: dict[str, Any] = {
            "run": wholes([run.number for run in runs]),
            "case": wholes([run.case.number for run in runs]),
            "seed": wholes([run.seed for run in runs]),
        }
        if any(case.label for case in self.cases):
            found["label"] = strings([run.case.label or None for run in runs])
        at = [run.case.number - 1 for run in runs]
        for key in self.keys:
            for name, values in keys.columns(key, [case.shown.get(key) for case in self.cases]).items():
                found[name] = inferred(values).take(wholes(at))
        return pa.table(found)

    def __repr__(self) -> str:
        return f"<Plan {self.name!r}: {len(self.cases)} cases, {len(self.runs)} runs>"


class _Place:
    """The file of a plan and its lines, for messages."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._lines = text.splitlines()

    def fault(self, key: str, value: object, message: str) -> PlanError:
        """The error for a key of the plan."""
        line = self._line(key)
        where = f"{self.file}:{line}" if line else self.file
        given = "" if value is None else f" = {keys.show_value(value)}"
        return PlanError(f"{where}: {key}{given}: {message}")

    def _line(self, key: str) -> int | None:
        """The line that gives the key a value, if only one can."""
        bare = re.sub(r"^grid\.|^case\[\d+\]\.", "", key)
        for wanted in (bare, bare.rsplit(".", 1)[-1]):
            start = re.compile(rf"\s*\[*\s*['\"]?{re.escape(wanted)}['\"]?\s*[]=]")
            found = [number for number, line in enumerate(self._lines, 1) if start.match(line)]
            if found:
                return found[0] if len(found) == 1 else None
        return None


class _Bases:
    """The scenarios that cases start from, read once each."""

    def __init__(self, place: _Place, path: Path, given: object) -> None:
        self._place, self._path = place, path
        if given is not None and not isinstance(given, (str, os.PathLike, Mapping)):
            raise place.fault("scenario", given, "must be the path of a scenario, or the table of one")
        self._given = given
        self._files: dict[str, dict[str, Any]] = {}
        self.contents: dict[bytes, bytes] = {}

    @property
    def common(self) -> str | None:
        """The path of the scenario of cases that name none of their own."""
        return os.fspath(self._given) if isinstance(self._given, (str, os.PathLike)) else None

    def base(self, values: Values) -> tuple[dict[str, Any], Path]:
        """The scenario a case starts from, and the path messages about it begin with."""
        given = values.get(_SCENARIO, self._given)
        if given is None:
            message = 'is missing; name one, like scenario = "geo.toml", or write it under [scenario]'
            raise self._place.fault("scenario", None, message)
        if isinstance(given, Mapping):
            return dict(given), self._path
        if not isinstance(given, (str, os.PathLike)):
            raise self._place.fault("scenario", given, "must be the path of a scenario")
        path = self._path.parent / given
        known = self._files.get(str(path))
        if known is None:
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                message = f"{path}: cannot be read: {error.strerror}; paths start at the folder of the plan"
                raise self._place.fault("scenario", os.fspath(given), message) from error
            except UnicodeDecodeError as error:
                raise self._place.fault("scenario", os.fspath(given), f"{path}: is not UTF-8 text") from error
            known = self._files[str(path)] = _parsed(text, str(path))
        return known, path


def _parsed(text: str, file: str) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
        where = f"{file}:{found[2]}: column {found[3]}: {found[1]}" if found else f"{file}: {error}"
        raise PlanError(f"{where}; this is not TOML") from error
    return parsed


def _seeds(given: object, first: int | None, place: _Place) -> list[int] | None:
    cure = "write a list, like [1, 2, 3], or { first = 1, count = 10 }"
    if given is None:
        return None if first is None else [_seed(first, place)]
    if isinstance(given, Mapping):
        if set(given) - {"first", "count"} or "count" not in given:
            raise place.fault("seeds", given, cure)
        start, count = given.get("first", 1), given["count"]
        if not _is_whole(start):
            raise place.fault("seeds", given, f"needs a whole number as first; {cure}")
        if not _is_whole(count) or not 1 <= count <= 10_000_000:
            raise place.fault("seeds", given, f"needs a count of 1 .. 10000000; {cure}")
        listed = list(range(start, start + count))
    elif isinstance(given, Iterable) and not isinstance(given, str):
        listed = [int(seed) if _is_whole(seed) else seed for seed in given]
    else:
        raise place.fault("seeds", given, cure)
    if not listed:
        raise place.fault("seeds", given, f"has no seeds; {cure}, or leave it out to keep the scenario's")
    if first is not None:
        return [_seed(first + i, place) for i in range(len(listed))]
    seen = set()
    for seed in listed:
        if _seed(seed, place) in seen:
            raise place.fault("seeds", seed, "is given twice; leave one out")
        seen.add(seed)
    return listed


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _seed(seed: Any, place: _Place) -> int:
    if not _is_whole(seed) or not 0 <= seed <= MOST_SEED:
        raise place.fault("seeds", seed, f"must be a whole number 0 .. {MOST_SEED}")
    return int(seed)


def _axes(plan: Mapping[str, Any], place: _Place) -> list[list[tuple[tuple[Key, Any], ...]]]:
    """The grid: for each axis its points, for each point the keys it gives values to."""
    grid = plan.get("grid")
    if grid is None:
        return []
    if not isinstance(grid, Mapping) or not grid:
        message = 'has no keys; give lists of values, like "link.rate" = ["10Mbit", "20Mbit"], or leave it out'
        raise place.fault("grid", None, message)
    axes = []
    for key, values in _leaves(grid, "grid", place):
        shown = f"grid.{keys.show(key)}"
        if isinstance(values, (Mapping, str)) or not isinstance(values, Iterable):
            raise place.fault(shown, _plain(values), "must be a list of values, one for each point of the grid")
        points = [_plain(value) for value in values]
        if not points:
            raise place.fault(shown, [], "has no values; give at least one or leave the key out")
        try:
            axes.append([tuple(keys.expand(key, value)) for value in points])
        except KeyPathError as fault:
            raise place.fault(shown, None, str(fault)) from fault
    return axes


def _leaves(tables: Mapping[str, Any], where: str, place: _Place) -> Iterator[tuple[Key, Any]]:
    for text, value in tables.items():
        try:
            found = list(keys.leaves({text: value}))
        except KeyPathError as fault:
            raise place.fault(f"{where}.{text}", None, str(fault)) from fault
        for key, leaf in found:
            if key == ("seed",):
                raise place.fault(f"{where}.seed", None, "seeds have their own key; write seeds = [1, 2, 3]")
            if key == ("name",):
                raise place.fault(f"{where}.name", None, "changes no result; leave it out, or use label in a [[case]]")
            yield key, leaf


def _plain(value: Any) -> Any:
    """Scalars of numpy and paths as what TOML knows."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        return item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _cases(plan: Mapping[str, Any], place: _Place, bases: _Bases) -> Iterator[Case]:
    axes = _axes(plan, place)
    listed = plan.get("case")
    if listed is not None and (not isinstance(listed, Sequence) or isinstance(listed, str) or not listed):
        raise place.fault("case", None, "is empty; write [[case]] with keys under it, or leave it out")
    number = 0
    for entry, given in enumerate(listed or [{}], 1):
        if not isinstance(given, Mapping) or (listed and not given):
            raise place.fault(f"case[{entry}]", None, "has no keys; give it keys of the scenario, or leave it out")
        label = given.get("label", "")
        if not isinstance(label, str):
            raise place.fault(f"case[{entry}].label", label, "must be text")
        members = {key: value for key, value in given.items() if key != "label"}
        own = {key: _plain(value) for key, value in _leaves(members, f"case[{entry}]", place)}
        for point in itertools.product(*axes):
            number += 1
            values = dict(own)
            for key, value in itertools.chain.from_iterable(point):
                if key in values:
                    message = (
                        f"is given twice, in [grid] and in {f'case {entry}' if key in own else '[grid]'}; keep one"
                    )
                    raise place.fault(f"grid.{keys.show(key)}", None, message)
                values[key] = value
            for key in values:
                inside = [other for other in values if len(other) < len(key) and other == key[: len(other)]]
                if inside and inside[0] not in (("class",), ("flow",)):
                    message = f"overlaps {keys.show(key)}, which is a part of it; keep one"
                    raise place.fault(keys.show(inside[0]), values[inside[0]], message)
            yield _case(number, label, values, place, bases)


def _case(number: int, label: str, values: Values, place: _Place, bases: _Bases) -> Case:
    base, path = bases.base(values)
    changes = {key: value for key, value in values.items() if key != _SCENARIO}
    case = f"case {number} ({keys.show_values(values)})" if values else f"case {number}"
    try:
        changed = keys.put(base, changes)
    except KeyPathError as fault:
        given = values.get(fault.key)
        raise place.fault(keys.show(fault.key), given, f"{fault} (in {case}, of {path})") from fault
    if isinstance(changed.get("name", ""), str):
        changed["name"] = "case"  # so that scenarios that differ in name only are seen to be the same
    try:
        scenario = Scenario.from_dict(changed, path=path)
    except _native.ScenarioError as fault:
        raise _attributed(fault, case, base, path, changes, place) from fault
    return Case(number, label, values, *_kept_of(scenario, bases.contents), {})


_Kept = tuple[str, int, tuple[tuple[str, str, bytes], ...], tuple[str, ...], tuple[str, ...]]


def _kept_of(scenario: Scenario, contents: dict[bytes, bytes]) -> _Kept:
    """The parts of a scenario that a case keeps; files of the same content are kept once."""
    inputs = tuple((name, source, contents.setdefault(content, content)) for name, source, content in scenario.inputs)
    return scenario.resolved, scenario.seed, inputs, tuple(scenario.readings), tuple(scenario.notes)


def _attributed(
    fault: _native.ScenarioError, case: str, base: dict[str, Any], path: Path, changes: Values, place: _Place
) -> Exception:
    """The error to report: of a value of the plan, of the unchanged scenario, or of the two together."""
    own = [key for key in changes if keys.indexed(base, key) == fault.key]
    inside = [key for key in changes if str(fault.key).startswith(f"{keys.indexed(base, key)}.")]
    for key in own or inside[:1]:
        return place.fault(keys.show(key), changes[key], f"{fault.message} (in {case}, of {path})")
    if path.is_file() and str(path) != place.file:
        try:
            Scenario.load(path)
        except _native.ScenarioError as plain:
            if plain.key == fault.key:
                return plain
    given = f" = {fault.value}" if fault.value else ""
    return PlanError(f"{place.file}: {case}: {fault.key}{given}: {fault.message} (of {path})")


def _filled(cases: list[Case], bases: _Bases) -> list[Case]:
    """Adds the value of every key: the case's, or else its scenario's."""
    found = dict.fromkeys(key for case in cases for key in case.values)
    filled = []
    for case in cases:
        base, _ = bases.base(case.values)
        changed = keys.put(base, {key: value for key, value in case.values.items() if key != _SCENARIO})
        shown = {
            key: case.values[key]
            if key in case.values
            else bases.common
            if key == _SCENARIO
            else keys.look_up(changed, key)
            for key in found
        }
        filled.append(replace(case, shown=shown))
    return filled


def _runs(cases: Sequence[Case], seeds: Sequence[int] | None, source: str) -> Iterator[Run]:
    seen: dict[str, Case] = {}
    number = 0
    for case in cases:
        inputs = tuple((name, content) for name, _, content in case.inputs)
        for seed in [case.seed] if seeds is None else seeds:
            number += 1
            text = case.texts.get(seed, case.text)
            same = identity(text, seed, inputs, case.place)
            earlier = seen.setdefault(same, case)
            if earlier is not case:
                raise PlanError(f"{source}: {case} is {earlier} again; leave one of them out")
            yield Run(case, Job(number, same, text, seed, inputs, place=case.place))
