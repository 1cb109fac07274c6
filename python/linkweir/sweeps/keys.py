# SPDX-License-Identifier: BSD-3-Clause
"""Keys of scenarios as plans write them: ``link.rate``, ``class.NAME.limit``, ``flow.NAME.rate``.

A key leads to one value of a scenario. Classes and flows are addressed by their names; a name with a dot is quoted, as
in TOML: ``flow."a.b".rate``. A table sets the keys in it; keys that it does not name keep their values. Where a
scenario has several links, they are addressed by their names, too: ``link.feeder.rate``,
``link.feeder.class.voice.limit``; so are bonds: ``bond.boat.class.voice.paths``.

``link.nominal.unset = true`` takes a key out of the scenario, ``flow.NAME.unset = true`` a whole flow. Here the value
of such a key is None, as which Python may write it.
"""

from __future__ import annotations

import copy
import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from linkweir import _native, traces
from linkweir.fault import Error

Key = tuple[str, ...]
Values = dict[Key, Any]

_LISTS = ("class", "flow")
_UNSET = "unset"
"""Keys of ``[link]`` that only a trace has."""
_WORD = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^."'\s]+)\s*(?:\.|$)""")
_UNIT = re.compile(r"[0-9.]\s*([A-Za-z%]+)$")
_SUFFIXES = {
    "rate": "bps",
    "bits": "bits",
    "time": "s",
    "size": "bytes",
    "packets": "pkts",
    "fraction": "fraction",
    "symbol_rate": "bd",
}


class KeyPathError(Error, ValueError):
    """A key leads nowhere.

    Attributes:
        key: which.
    """

    def __init__(self, message: str, key: Key = ()) -> None:
        super().__init__(message)
        self.key = key


def split(text: str) -> Key:
    """The words of a dotted key.

    >>> split('flow."a.b".rate')
    ('flow', 'a.b', 'rate')
    """
    words: list[str] = []
    at = 0
    while at < len(text) or not words or text.rstrip().endswith("."):
        found = _WORD.match(text, at)
        if found is None:
            raise KeyPathError('is not a key; write one like "link.rate" or "flow.NAME.rate"')
        word = found[1]
        words.append(json.loads(word) if word.startswith('"') else word.strip("'"))
        at = found.end()
    return tuple(words)


def show(key: Key) -> str:
    """A key as plans write it.

    >>> show(("flow", "a.b", "rate"))
    'flow."a.b".rate'
    """
    return ".".join(word if re.fullmatch(r"[^.\"'\s]+", word) else json.dumps(word, ensure_ascii=False) for word in key)


def show_value(value: object) -> str:
    """A value in a message."""
    return json.dumps(value, ensure_ascii=False, default=str)


def show_values(values: Mapping[Key, Any]) -> str:
    """The keys of a case and their values in a message.

    >>> show_values({("link", "rate"): "1Mbit", ("link", "nominal"): None})
    'link.rate = "1Mbit", link.nominal unset'
    """
    return ", ".join(
        f"{show(key)} {_UNSET}" if value is None else f"{show(key)} = {show_value(value)}"
        for key, value in values.items()
    )


def leaves(tables: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    """The keys that nested tables give values to; dots separate words in the outermost keys only."""
    for text, value in tables.items():
        yield from expand(split(text), value)


def expand(key: Key, value: object) -> Iterator[tuple[Key, Any]]:
    """A value, or the keys that a table sets.

    >>> dict(expand(("link",), {"rate": "1Mbit", "nominal": {"unset": True}}))
    {('link', 'rate'): '1Mbit', ('link', 'nominal'): None}
    """
    if key[-1] == _UNSET and len(key) > 1:
        if value is not True:
            raise KeyPathError("must be true; in a grid, { unset = true } is one of the values of the key itself", key)
        yield key[:-1], None
    elif isinstance(value, Mapping) and value:
        for word, member in value.items():
            yield from expand((*key, str(word)), member)
    else:
        yield key, value


def nearest(word: str, known: Iterable[str]) -> str:
    """A guess at the word that was meant, as the end of a sentence.

    >>> nearest("vioce", ["voice", "web"])
    '; did you mean voice?'
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _is_list(place: object, rest: Key) -> bool:
    """Whether the next word of a key is a list whose entry the word after it names."""
    if len(rest) < 2 or not isinstance(place, Mapping):
        return False
    return rest[0] in _LISTS or (rest[0] in ("link", "bond") and isinstance(place.get(rest[0]), list))


def _follow(scenario: Mapping[str, Any], key: Key) -> tuple[Any, Key, str]:
    """The innermost entry that a key leads into, the words that are left, and the entry as messages write it."""
    place: Any = scenario
    rest = key
    path = ""
    if len(rest) > 3 and (rest[0], rest[2]) == ("constellation", "class"):
        kinds = scenario.get("constellation")
        place = kinds.get(rest[1]) if isinstance(kinds, Mapping) else None
        path, rest = f"constellation.{rest[1]}.", rest[2:]
    while _is_list(place, rest):
        number = _entry(place, rest, key)
        place, path = place[rest[0]][number], f"{path}{rest[0]}[{number}]."
        rest = rest[2:]
    return place, rest, path


def _entry(scenario: Mapping[str, Any], words: Key, key: Key) -> int:
    """The number of the link, class or flow that the first words of a key name."""
    kind, name = words[:2]
    entries = scenario.get(kind)
    entries = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else []
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
    found = [number for number, known in enumerate(names) if known == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise KeyPathError(f"{len(found)} entries of {kind} are named {name}; give each a name of its own", key)
    known = [str(name) for name in names if name is not None]
    if not known:
        raise KeyPathError(
            f"there is no {kind} with a name in the scenario; give the entries names to address them by", key
        )
    raise KeyPathError(f"there is no {kind} named {name}; there are {', '.join(known)}{nearest(name, known)}", key)


def indexed(scenario: Mapping[str, Any], key: Key) -> str:
    """The key as messages about scenarios write it.

    >>> indexed({"flow": [{"name": "voice"}]}, ("flow", "voice", "rate"))
    'flow[0].rate'
    """
    _, rest, path = _follow(scenario, key)
    return f"{path}{'.'.join(rest)}" if rest else path.rstrip(".")


def put(scenario: Mapping[str, Any], values: Mapping[Key, Any]) -> dict[str, Any]:
    """A copy of a scenario in which the keys have these values; a key whose value is None is taken out.

    A rate of the link takes the place of a trace with the keys that belong to it, and a trace that of a rate.

    Raises:
        KeyPathError: a key leads nowhere.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(scenario))
    if isinstance(changed.get("link"), list):
        for key in values:
            _own_tables(changed["link"], key)
    for link in _links(changed):
        _swap_capacity(changed, link, values)
    order = sorted(values, key=len)  # tables and lists first, so that single keys then change what is in them
    for key in order:
        if values[key] is not None:
            _put(changed, key, values[key])
    for key in order:
        if values[key] is None:
            _take_out(changed, key)
    return changed


def _links(scenario: Mapping[str, Any]) -> list[Key]:
    """The keys of the links: of the one, of each of several, or of a constellation's kinds of links."""
    if isinstance(shell := scenario.get("constellation"), Mapping):
        return [("constellation", kind) for kind in ("ground", "isl") if kind in shell]
    link = scenario.get("link")
    if not isinstance(link, list):
        return [("link",)]
    return [("link", str(entry["name"])) for entry in link if isinstance(entry, Mapping) and "name" in entry]


def _own_tables(links: list[Any], key: Key) -> None:
    """Gives a link that is like another one its own copy of the table that a key changes a part of."""
    if len(key) < 4 or key[0] != "link":
        return
    entries = {entry["name"]: entry for entry in links if isinstance(entry, dict) and "name" in entry}
    own = liked = entries.get(key[1])
    for _ in entries:
        if own is None or liked is None or key[2] in liked:
            break
        liked = entries.get(liked.get("like"))
    if own is not None and liked is not None and liked is not own and key[2] in liked:
        own[key[2]] = copy.deepcopy(liked[key[2]])


def _swap_capacity(scenario: dict[str, Any], of: Key, values: Mapping[Key, Any]) -> None:
    """Takes the rate out of a link that gets a trace, or the trace out of one that gets a rate."""
    given = {key[len(of)] for key, value in values.items() if key[: len(of)] == of != key and value is not None}
    try:
        place, rest, _ = _follow(scenario, of)
    except KeyPathError:  # two links of one name, which the parser refuses
        return
    link = place
    for word in rest:
        link = link.get(word) if isinstance(link, Mapping) else None
    if not isinstance(link, dict) or {"rate", "trace"} <= given:
        return
    replaced = ("rate", *traces.WITH_TRACE) if "trace" in given else traces.WITH_TRACE if "rate" in given else ()
    for word in replaced:
        if (*of, word) not in values:  # what is unset must be there
            link.pop(word, None)


def _take_out(scenario: dict[str, Any], key: Key) -> None:
    place, rest, _ = _follow(scenario, key)
    if not rest:
        outer, words, _ = _follow(scenario, key[:-2])
        for word in words:
            outer = outer[word]
        del outer[key[-2]][_entry(outer, key[-2:], key)]
        return
    for word in rest[:-1]:
        place = place.get(word) if isinstance(place, Mapping) else None
    if not isinstance(place, dict) or rest[-1] not in place:
        known = place if isinstance(place, Mapping) else ()
        raise KeyPathError(f"cannot be unset: the scenario does not give it{nearest(rest[-1], known)}", key)
    del place[rest[-1]]


def _put(scenario: dict[str, Any], key: Key, value: object) -> None:
    place, rest, _ = _follow(scenario, key)
    if not rest:
        raise KeyPathError("is a whole entry; give a table of its keys, or one key behind the name", key)
    for word in rest[:-1]:
        if not isinstance(place.get(word), dict):
            place[word] = {}  # a constant rate becomes one that changes over time
        place = place[word]
    place[rest[-1]] = copy.deepcopy(value)


def look_up(scenario: Mapping[str, Any], key: Key) -> Any:
    """The value a scenario gives a key, None where it gives none."""
    try:
        place, rest, _ = _follow(scenario, key)
        for word in rest:
            place = place[word]
    except (KeyError, TypeError, KeyPathError):
        return None
    return place


def columns(key: Key, values: Sequence[Any]) -> dict[str, list[Any]]:
    """The columns of a data set that show a key: as written, and where these are quantities, as numbers too.

    Args:
        key: what the cases give values to.
        values: one per row, None where a case gives none.

    >>> columns(("link", "rate"), ["1Mbit", None])
    {'link.rate': ['1Mbit', None], 'link.rate_bps': [1000000.0, None]}
    >>> columns(("flow", "voice", "class"), ["ef"])
    {'flow.voice.class': ['ef']}
    """
    of_network = len(key) == 3 and key[0] in ("link", "bond", "constellation") and key[2] == "class"
    name = f"{show(key)}_list" if of_network or (len(key) == 1 and key[0] in _LISTS) else show(key)
    given = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in given):
        return {name: list(values)}
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in given):
        whole = all(isinstance(value, int) for value in given)
        return {name: [value if value is None or whole else _finite(float(value)) for value in values]}
    texts = [value if value is None or isinstance(value, str) else show_value(value) for value in values]
    found: dict[str, list[Any]] = {name: texts}
    numbers = [_number(key, value) for value in given]
    units = {number[0] if number else "" for number in numbers}
    if len(units) == 1 and "" not in units:
        remaining = iter(numbers)
        found[f"{name}_{units.pop()}"] = [
            None if value is None else (next(remaining) or ("", 0))[1] for value in values
        ]
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(key: Key, value: object) -> tuple[str, float] | None:
    """A quantity as unit and number."""
    found = _UNIT.search(value) if isinstance(value, str) else None
    if found is None:
        return None
    for kind, suffix in _SUFFIXES.items():
        if (kind == "bits") != (key[-1] in _bit_parameters()) and kind in ("bits", "rate"):
            continue
        try:
            return suffix, _native.quantity(str(value), kind)
        except ValueError:
            continue
    return None


def _bit_parameters() -> set[str]:
    """Parameters of policies that count bits; elsewhere Mbit and its like are rates."""
    return {
        param["name"]
        for policy in _native.policies()
        for param in [*policy["params"], *policy["class_params"]]
        if param["unit"] == "bits"
    }
