# SPDX-License-Identifier: BSD-3-Clause
"""Which packets belong to which class: the key `match` of a class, or its name, if that is one of RFC 4594."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir.fault import ScenarioError, unfit

Rule = Mapping[str, Any]
"""A rule as the resolved scenario has it: each key has a value, or a list of values."""

_AF = {f"AF{level}{drop}": 8 * level + 2 * drop for level in range(1, 5) for drop in range(1, 4)}
CODE_POINTS = {"EF": 46, "VOICE-ADMIT": 44, **_AF, **{f"CS{n}": 8 * n for n in range(1, 8)}, "LE": 1, "DF": 0}
"""Code points by name: RFC 2474, 2597, 3246, 5865, 8622."""

_SERVICES = {
    "networkcontrol": ["CS6"],
    "telephony": ["EF"],
    "voice": ["EF"],
    "signaling": ["CS5"],
    "multimediaconferencing": ["AF41", "AF42", "AF43"],
    "realtimeinteractive": ["CS4"],
    "multimediastreaming": ["AF31", "AF32", "AF33"],
    "broadcastvideo": ["CS3"],
    "lowlatencydata": ["AF21", "AF22", "AF23"],
    "oam": ["CS2"],
    "highthroughputdata": ["AF11", "AF12", "AF13"],
    "lowprioritydata": ["CS1"],
}
"""The service classes of RFC 4594, figure 3, without spaces and hyphens."""
_REST = ("standard", "df", "be", "cs0", "besteffort", "default", "rest", "other")
"""Names of the class that takes what no other does."""


@dataclass(frozen=True)
class Sorting:
    """Which packets belong to which class.

    Attributes:
        rules: of each class, in order; none: the class takes what no other does, and has no rule.
        rest: the number of the class that takes what no other does.
        notes: what was chosen here, a sentence each.
    """

    rules: tuple[tuple[Rule, ...] | None, ...]
    rest: int
    notes: tuple[str, ...] = ()


def code_points_of(name: str) -> list[str] | None:
    """The code points that a class of this name usually has; empty for the class of the rest; None if none is usual.

    >>> code_points_of("Multimedia Streaming"), code_points_of("af4"), code_points_of("rest"), code_points_of("a")
    (['AF31', 'AF32', 'AF33'], ['AF41', 'AF42', 'AF43'], [], None)
    """
    word = re.sub(r"[\s_-]", "", name).lower()
    if word in _REST:
        return []
    if word in _SERVICES:
        return _SERVICES[word]
    if re.fullmatch(r"af[1-4]?", word):
        return [point for point in _AF if point.lower().startswith(word)]
    exact = [point for point in CODE_POINTS if point.replace("-", "").lower() == word]
    return exact or None


def sorting(classes: Sequence[Mapping[str, Any]]) -> Sorting:
    """Which packets belong to which class.

    Args:
        classes: the tables `[[class]]` of a resolved scenario, copies counted.

    Raises:
        ScenarioError: it is not clear which class takes what.
    """
    rules: list[tuple[Rule, ...] | None] = []
    others = []
    notes = []
    taken = {point for entry in classes for rule in entry.get("match", []) for point in values(rule, "dscp")}
    for number, entry in enumerate(classes):
        if "match" in entry:
            if entry["match"][-1:] == [{}]:
                others.append(number)
            rules.append(tuple(rule for rule in entry["match"] if rule))
            continue
        points = [point for point in code_points_of(entry["name"]) or [] if point not in taken]
        taken.update(points)
        rules.append(({"dscp": points},) if points else None)
        if points and len(classes) > 1:
            key = f"class[{number}].match"
            notes.append(
                f"{key} was not given: {', '.join(points)}, which packets of a class of this name usually have"
            )
    others += [number for number, own in enumerate(rules) if own is None]
    if not others and "match" not in classes[-1]:
        others, rules[-1] = [len(classes) - 1], None
        notes[-1:] = [f"class[{others[0]}].match was not given: all packets that no other class takes"]
    if len(others) != 1:
        raise _unclear(classes, others)
    return Sorting(tuple(rules), others[0], tuple(notes))


def _unclear(classes: Sequence[Mapping[str, Any]], others: Sequence[int]) -> ScenarioError:
    if not others:
        return unfit(
            "class.match", "...", "one class must take what no other does; leave match out there, or end it with {}"
        )
    names = ", ".join(f'"{classes[number]["name"]}"' for number in others)
    message = f"is missing; only one class can take what no other does, but {names} have no match, and no usual names"
    return unfit(f"class[{others[0]}].match", "", f'{message}; write match = [{{ dscp = "AF41" }}]')


def in_order(rules: Sequence[tuple[Rule, ...] | None]) -> list[tuple[Rule, int]]:
    """The rules of all classes in the order in which they are tried, each with the number of its class.

    >>> in_order([({"dscp": "EF", "order": 2}, {"dscp": "LE"}), None, ({"dscp": "EF", "port": 53, "order": 1},)])[0]
    ({'dscp': 'LE'}, 0)
    """
    every = [(rule, number) for number, own in enumerate(rules) for rule in own or ()]
    return sorted(every, key=lambda one: one[0].get("order", 0))


def values(rule: Rule, key: str) -> list[Any]:
    """The values of a rule's key.

    >>> values({"port": 7}, "port"), values({"port": [7, "8-9"]}, "port"), values({}, "port")
    ([7], [7, '8-9'], [])
    """
    found = rule.get(key, [])
    return list(found) if isinstance(found, list) else [found]


def number_of(code_point: str | int) -> int:
    """A code point as a number."""
    return code_point if isinstance(code_point, int) else CODE_POINTS[code_point]
