# SPDX-License-Identifier: BSD-3-Clause
"""Which packets belong to which class: the key `match` of a class, or its name, if that is one of RFC 4594."""

from __future__ import annotations

import json
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
    "voip": ["EF"],
    "call": ["EF"],
    "calls": ["EF"],
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
"""The service classes of RFC 4594, figure 3, without spaces and hyphens, and other names of telephony."""
_REST = ("standard", "df", "be", "cs0", "besteffort", "default", "rest", "other")
"""Names of the class that takes what no other does."""
_SUGGESTED = ("AF41", "AF31", "AF21", "AF11", "CS5", "CS4", "CS3", "CS2", "CS1", "EF", *_AF, "CS6", "CS7", "LE")
"""Code points that a message suggests, one for each class."""


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


def sorting(classes: Sequence[Mapping[str, Any]], tables: Sequence[Mapping[str, Any]] = ()) -> Sorting:
    """Which packets belong to which class.

    Args:
        classes: the tables `[[class]]` of a resolved scenario, copies counted.
        tables: the same as they are written, copies not counted; they are named where a rule is missing.

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
        raise _unclear(tables or classes)
    return Sorting(tuple(rules), others[0], tuple(notes))


def _unclear(tables: Sequence[Mapping[str, Any]]) -> ScenarioError:
    """Names the tables that lack a rule, and a rule for each that needs one."""
    taken = {point for entry in tables for rule in entry.get("match", []) for point in values(rule, "dscp")}
    usual = [code_points_of(entry["name"]) or [] for entry in tables]
    lack = [n for n, entry in enumerate(tables) if "match" not in entry and not set(usual[n]) - taken]
    if not lack:
        return unfit(
            "class.match", "...", "one class must take what no other does; leave match out there, or end it with {}"
        )
    single = [n for n in lack if tables[n].get("count", 1) == 1]
    named_so = [n for n in single if code_points_of(tables[n]["name"]) == []]
    ended = any(entry["match"][-1:] == [{}] for entry in tables if "match" in entry)
    default = None if ended else next(iter([*named_so, *reversed(single)]), None)
    free = iter([point for point in _SUGGESTED if point not in taken.union(*usual)])
    needed = [n for n in lack if n != default]
    cures = []
    for n in needed:
        last = ", {}" if n == needed[-1] and default is None and not ended else ""
        if tables[n].get("count", 1) > 1:
            rule = f'{{ address = "10.{n + 1}.0.1" }}'
        else:
            point = next(free, None)
            rule = f'{{ dscp = "{point}" }}' if point else f"{{ port = {5000 + n} }}"
        cures.append(f"match = [{rule}{last}] to {_quoted(tables[n])}")
    names = _listed([_quoted(tables[n]) for n in lack])
    counted = any(tables[n].get("count", 1) > 1 for n in needed)
    copies = " (each copy of a class takes the next address)" if counted else ""
    have = "have" if len(lack) > 1 else "has"
    message = (
        f"is missing; {names} {have} no match, and only one class may be the default; add {_listed(cures)}{copies}"
    )
    return unfit(f"class[{needed[0]}].match", "", message)


def _quoted(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry["name"], ensure_ascii=False)


def _listed(words: Sequence[str]) -> str:
    """Words with commas between them.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


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
