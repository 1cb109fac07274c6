# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios: what to simulate, from a file, a text or a dict."""

from __future__ import annotations

import difflib
import json
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypedDict

from linkweir import _native, traces
from linkweir.fault import unfit
from linkweir.scratch import scratch

AnyTrace = str | os.PathLike[str] | traces.Trace | traces.Frame
"""A capacity trace: the path of a file, a `linkweir.traces.Trace`, or a data frame."""

_WIDEST = 2**63
_Since = tuple[float, list[tuple[str, str]]]


class Scenario:
    """A scenario that has been read and checked completely.

    Make one with `load`, `parse` or `from_dict`; all raise `linkweir.ScenarioError`, whose message names file, line,
    key, value, the range allowed and what to do.
    """

    def __init__(self, native: _native.Scenario, readings: Sequence[str] | None = None) -> None:
        self._native = native
        self._readings = readings  # of a copy, whose own would name the files that it was made of

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        seed: int | None = None,
        trace: AnyTrace | None = None,
        trace_keys: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """Reads a TOML file.

        Args:
            path: the file; paths in it are relative to its folder.
            seed: takes the place of the file's seed.
            trace: capacity trace that takes the place of ``link.rate`` or ``link.trace``: the path of a file, a
                `linkweir.traces.Trace`, or a data frame of pandas, polars or pyarrow with the columns of such a file
                (``t_s`` in seconds, durations or time stamps, ``capacity_bps``).
            trace_keys: keys of ``[link]`` that describe `trace`, such as ``{"trace_unit": "Mbit"}``.

        Raises:
            ScenarioError: the file, or one it names, cannot be read or is wrong.
        """
        return cls(_native.load(os.fspath(path), seed=_seed(seed), **_trace(trace, trace_keys)))

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        path: str | os.PathLike[str] | None = None,
        seed: int | None = None,
        trace: AnyTrace | None = None,
        trace_keys: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """Reads TOML text.

        Args:
            text: the scenario.
            path: a file name for messages; paths in the scenario are relative to its folder. The file need not exist.
            seed: takes the place of the text's seed.
            trace: as for `load`.
            trace_keys: as for `load`.

        Raises:
            ScenarioError: the text, or a file it names, is wrong.
        """
        return cls(_native.parse(text, _path(path), seed=_seed(seed), **_trace(trace, trace_keys)))

    @classmethod
    def from_dict(
        cls,
        keys: Mapping[str, Any],
        *,
        path: str | os.PathLike[str] | None = None,
        seed: int | None = None,
        trace: AnyTrace | None = None,
        trace_keys: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """Reads a dict with the keys of the TOML form; ``class`` and ``flow`` are lists of dicts, so is ``link`` of a
        network.

        Args:
            keys: the scenario; paths in it are relative to the working directory unless `path` is given.
            path: as for `parse`.
            seed: takes the place of the dict's seed.
            trace: as for `load`.
            trace_keys: as for `load`.

        Raises:
            ScenarioError: something in it is wrong or cannot be written as TOML.

        >>> fifo = {"duration": "1s", "link": {"rate": "1Mbit"}, "scheduler": {"policy": "fifo"},
        ...         "class": [{"name": "all"}], "flow": [{"class": "all", "kind": "poisson", "rate": "1"}]}
        >>> Scenario.from_dict(fifo)
        Traceback (most recent call last):
        ...
        linkweir.ScenarioError: flow[0].rate = "1": needs a unit: one of Gbit, Mbit, kbit, bit, like "20Mbit"
        """
        return cls.parse(_text(keys), path=path, seed=seed, trace=trace, trace_keys=trace_keys)

    @property
    def native(self) -> _native.Scenario:
        """The parsed form, for the native module."""
        return self._native

    @property
    def name(self) -> str:
        """Name shown in reports."""
        return self._native.name

    @property
    def duration_s(self) -> float:
        """Simulated time, s."""
        return self._native.duration_s

    @property
    def warmup_s(self) -> float:
        """Start of the time that totals and percentiles cover, s."""
        return self._native.warmup_s

    @property
    def interval_s(self) -> float:
        """Width of the bins of every series, s."""
        return self._native.interval_s

    @property
    def capacity_length_s(self) -> float | None:
        """Length of the link's capacity over time, s, if it has steps or comes from a trace; None for other rates.

        The last value of a trace that is held counts as long as the one before it.
        """
        return self._native.capacity_length_s

    @property
    def seed(self) -> int:
        """Seed of every random number of the run."""
        return self._native.seed

    @property
    def links(self) -> list[str]:
        """Names of the links of a network, in the order in which flows first use them; none for one ``[link]``."""
        return self._native.link_names or []

    @property
    def is_network(self) -> bool:
        """Whether the scenario has ``[[link]]``, each with its own scheduler and classes."""
        return self._native.link_names is not None

    def of_link(self, name: str) -> Scenario:
        """A link of a network alone: with its scheduler, its classes, and the flows that pass it on their way there.

        Args:
            name: one of `links`.

        Raises:
            ScenarioError: no link has this name.
        """
        if name not in self._alone:
            near = difflib.get_close_matches(name, self._alone, n=1)
            cure = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(self._alone) or 'no [[link]]'}"
            raise _fault("link", f"no link has this name; {cure}", json.dumps(name, ensure_ascii=False))
        return self._alone[name]

    @cached_property
    def _alone(self) -> dict[str, Scenario]:
        alone = map(type(self), self._native.links)
        return dict(zip(self.links, alone, strict=True))

    @property
    def ways(self) -> dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
        """Of each flow of a network the links that it passes there and back, each with the flow's class on it.

        The ways of a constellation change; these are the ones at the start.
        """
        return {flow: (there, back) for flow, there, back in self._native.ways()}

    @cached_property
    def ways_over_time(self) -> dict[str, tuple[list[_Since], list[_Since]]]:
        """Of each flow of a network the ways there and back, with the time in s from which packets take them.

        Where a list of links is empty, there is no way from that time on.
        """
        return {flow: (there, back) for flow, there, back in self._native.ways_over_time()}

    @property
    def policy(self) -> str:
        """Name of the scheduling policy; of a network, those of its links, each once."""
        return self._native.policy

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in queue order; of a network ``LINK: CLASS``, link by link."""
        return self._native.classes

    @property
    def flows(self) -> list[str]:
        """Names of the flows, copies counted."""
        return self._native.flows

    @property
    def resolved(self) -> str:
        """The scenario as TOML with every default written out."""
        return self._native.resolved

    @property
    def inputs(self) -> list[tuple[str, str, bytes]]:
        """Files the scenario names: (name of the copy in a run directory, path it was read from, content)."""
        return self._native.inputs

    @property
    def notes(self) -> list[str]:
        """Effects of the models that the author of the scenario may not expect: outages of a constellation, or pairs of
        ``exceeded`` that the rain model misses. Each note is one sentence that begins with the key.
        """
        return self._native.notes

    @property
    def readings(self) -> list[str]:
        """What each trace was taken for, a line each: file, notation, columns, units, start, length, mean and gaps."""
        return self._native.readings if self._readings is None else list(self._readings)

    def __reduce__(self) -> tuple[Any, ...]:
        """For `pickle` and `copy`: the text with every default, and the content of the files that it names."""
        inputs = tuple((name, content) for name, _, content in self.inputs)
        return _copied, (self.resolved, inputs, self.seed, self.readings)

    def __repr__(self) -> str:
        return repr(self._native)


def _copied(text: str, inputs: Sequence[tuple[str, bytes]], seed: int, readings: Sequence[str]) -> Scenario:
    return Scenario(with_inputs(text, inputs, seed)._native, readings)


def with_inputs(text: str, inputs: Sequence[tuple[str, bytes]], seed: int) -> Scenario:
    """A scenario of which the files are given with their content.

    Args:
        text: the scenario with every default written out.
        inputs: the files that `text` names, as (name, content).
        seed: seed of every random number.
    """
    if not inputs:
        return Scenario.parse(text, seed=seed)
    with scratch() as folder:
        path = folder / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        for name, content in inputs:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return Scenario.load(path, seed=seed)


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


class _Trace(TypedDict):
    trace: str | None
    trace_content: bytes | None
    trace_keys: str


def _trace(trace: AnyTrace | None, trace_keys: Mapping[str, Any] | None) -> _Trace:
    """A trace as the native module takes it: a path, or a name and the content; and the keys that describe it."""
    if trace is None and trace_keys:
        raise _fault("trace_keys", "describe a trace that is given with them; give trace, too, or write them in [link]")
    keys = traces.as_toml(trace_keys)
    if trace is None or isinstance(trace, (str, os.PathLike)):
        return {"trace": _path(trace), "trace_content": None, "trace_keys": keys}
    return {"trace": "trace.csv", "trace_content": traces.as_csv(trace).encode(), "trace_keys": keys}


def _fault(key: str, message: str, value: str = "") -> _native.ScenarioError:
    fault = _native.ScenarioError(f"{key} = {value}: {message}" if value else f"{key}: {message}")
    fault.file, fault.line, fault.key, fault.value, fault.message = None, None, key, value, message
    return fault


def _seed(seed: int | None) -> int | None:
    return None if seed is None else whole_seed(seed)


def whole_seed(seed: object, most: int = _WIDEST - 1) -> int:
    """A seed, which is a whole number, also one of numpy's.

    Raises:
        ScenarioError: it is anything else, such as 3.0, "3" or True, or is out of range.
    """
    number = int(seed) if isinstance(seed, numbers.Integral) and not isinstance(seed, bool) else None
    if number is not None and 0 <= number <= most:
        return number
    message = f"must be a whole number 0 .. {most}" + (", like seed=3" if number is None else "")
    raise _fault("seed", message, repr(seed))


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _fault(repr(key), "keys must be strings")
    return _quoted(key)


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """A string in TOML; cached, as scenarios of many users repeat the same words."""
    # Escaped, JSON writes code points beyond 16 bits as pairs, which TOML does not know: so these stay as they are.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml(value: object, place: str) -> str:
    """One value as TOML on one line."""
    if isinstance(value, str):
        return _quoted(value)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()  # a scalar of numpy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return _quoted(os.fspath(value))
    if isinstance(value, numbers.Integral):
        if not -_WIDEST <= int(value) < _WIDEST:
            raise _fault(place, "the number is too large")
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        members = (f"{_key(key)} = {_toml(member, f'{place}.{key}')}" for key, member in value.items())
        return "{ " + ", ".join(members) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(member, f"{place}[{i}]") for i, member in enumerate(value)) + "]"
    raise _fault(place, f"cannot be written as TOML: {type(value).__name__}; give a string, number, list or dict")


def _text(keys: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_toml(value, str(key))}\n" for key, value in keys.items())


def link_of(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    *,
    seed: int | None = None,
    trace: AnyTrace | None = None,
    trace_keys: Mapping[str, Any] | None = None,
) -> _native.Scenario:
    """The parsed form of a scenario for `linkweir.Link`, which may lack flows and duration."""
    if isinstance(scenario, Scenario):
        native = as_scenario(scenario, seed=seed, trace=trace).native
        if native.link_names is not None:
            raise unfit("link", "", "must be one link here; write one [link] instead of several")
        return native
    given = _trace(trace, trace_keys)
    if isinstance(scenario, Mapping):
        return _native.parse(_text(scenario), None, seed=_seed(seed), driven=True, **given)
    return _native.load(os.fspath(scenario), seed=_seed(seed), driven=True, **given)


def driven_link(keys: Mapping[str, Any], inputs: Mapping[str, bytes], *, seed: int | None = None) -> _native.Scenario:
    """The parsed form of a dict for `linkweir.Link`, which may lack flows and duration.

    Args:
        keys: the scenario.
        inputs: content of the files that `keys` names, by their names; other paths must be absolute.
        seed: takes the place of the dict's seed.

    Raises:
        ScenarioError: something in it is wrong.
    """
    if not inputs:
        return _native.parse(_text(keys), None, seed=_seed(seed), driven=True)
    with scratch() as folder:
        for name, content in inputs.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return _native.parse(_text(keys), str(folder / "scenario.toml"), seed=_seed(seed), driven=True)


def as_scenario(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    *,
    seed: int | None = None,
    trace: AnyTrace | None = None,
    trace_keys: Mapping[str, Any] | None = None,
) -> Scenario:
    """Makes a `Scenario` of what `linkweir.run` takes: a dict, a path, or a `Scenario`."""
    if isinstance(scenario, Scenario):
        if seed is None and trace is None:
            return scenario
        raise ValueError("seed and trace are given where a Scenario is made, not where it is run")
    if isinstance(scenario, Mapping):
        return Scenario.from_dict(scenario, seed=seed, trace=trace, trace_keys=trace_keys)
    if not isinstance(scenario, (str, os.PathLike)):
        kind = type(scenario).__name__
        raise TypeError(f"scenario: must be a dict, a path or a Scenario, not a {kind}; run_many takes several")
    return Scenario.load(Path(scenario), seed=seed, trace=trace, trace_keys=trace_keys)
