# SPDX-License-Identifier: BSD-3-Clause
"""The keys of scenarios and of the gateway's files, as they are declared next to their parsers.

A declaration is a row in `crates/linkweir-sim/src/scenario/keys/` or `crates/linkweir-config/src/keys/`: name, kind,
unit, range, default, meaning, and what each host does with the key.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from linkweir import _native
from linkweir.fault import unfit


@dataclass(frozen=True)
class Treatment:
    """What a host does with a key.

    Attributes:
        name: carried, adapted, left_out, refused or silent.
        words: what users see; None where nothing is said.
    """

    name: str
    words: str | None


@dataclass(frozen=True)
class Row:
    """A key: its values, default and meaning as the reference shows them, and what each host does with it."""

    key: str
    values: str
    default: str
    meaning: str
    shape: _native._Shape | None = None
    hosts: Mapping[str, Treatment] | None = None
    second_default: str | None = None

    @property
    def required(self) -> bool:
        """Whether it must be given, whatever else is."""
        return self.default == "required"

    def matters(self, value: Any) -> bool:
        """Whether a host must do something about a value: it is not the default or, without one, neither none nor 0."""
        if value is None or (self.form == "limit" and value.endswith("p")):
            return False
        amount = self._amount(value)
        if self.default.startswith("`"):
            return bool(amount != self._amount(json.loads(self.default.strip("`"))))
        return bool(amount)  # the default is words, such as none

    def _amount(self, value: Any) -> Any:
        """A quantity in its base unit; any other value as it is."""
        if isinstance(value, str) and self.shape is not None and "noun" in self.shape:
            try:
                return _native.quantity(value, self.shape["noun"])
            except ValueError:
                return value  # a word in its place
        return value

    @property
    def form(self) -> str:
        """The form of its values."""
        return "" if self.shape is None else self.shape["form"]

    def of(self, host: str) -> Treatment:
        """What a host does with it."""
        assert self.hosts is not None, self.key
        return self.hosts[host]


@functools.cache
def rows(path: str, *, file: str = "scenario", own: bool = False) -> dict[str, Row]:
    """The keys of a table.

    Args:
        path: of the table, such as ``link.satellite``; that of the top level is empty.
        file: scenario or gateway.
        own: without the keys that it shares with other tables.
    """
    (table,) = (table for table in _native.tables(file) if table["path"] == path)
    return {key["name"]: _row(key) for key in table["own" if own else "keys"]}


@functools.cache
def traffic_kinds() -> dict[str, dict[str, Treatment]]:
    """The kinds of traffic, and what each host does with them."""
    return {kind["name"]: _treatments(kind["hosts"]) for kind in _native.traffic_kinds()}


@functools.cache
def table_of(kind: str) -> str:
    """The path of the table with the keys of a kind of traffic."""
    return next(found["table"] for found in _native.traffic_kinds() if found["name"] == kind)


def treated(path: str, host: str, *names: str) -> Iterator[tuple[str, str]]:
    """The keys of a table that a host treats in one of some ways, with what users see.

    >>> dict(treated("link", "laboratory", "refused"))["mpu"]
    'must be 0B in the laboratory'
    """
    for key, row in rows(path).items():
        treatment = row.of(host)
        if treatment.name in names:
            yield key, treatment.words or ""


def told(path: str, host: str, table: Mapping[str, Any], *names: str) -> Iterator[tuple[str, str]]:
    """As `treated`, for the keys of a scenario's table whose values matter.

    Args:
        path: of the table.
        host: whose decisions count.
        table: the keys as `native.written()` has them.
        names: of decisions.
    """
    for key, words in treated(path, host, *names):
        value = table.get(key)
        if rows(path)[key].matters(value):
            yield key, words


def refuse_scheduler(host: str, scheduler: Mapping[str, Any], place: str = "scheduler") -> None:
    """Refuses keys of the scheduler that a host has nothing like.

    Args:
        host: whose decisions count.
        scheduler: the table as `native.written()` has it.
        place: where its keys are.

    Raises:
        ScenarioError: there is such a key.
    """
    for key, words in told("scheduler", host, scheduler, "refused"):
        raise unfit(f"{place}.{key}", "...", words)


def _row(key: _native._Key) -> Row:
    return Row(
        key["name"],
        key["values"],
        key["default"],
        key["meaning"],
        key["shape"],
        _treatments(key["hosts"]),
        key["second_default"],
    )


def _treatments(hosts: Mapping[str, tuple[str, str | None]]) -> dict[str, Treatment]:
    return {host: Treatment(*found) for host, found in hosts.items()}
