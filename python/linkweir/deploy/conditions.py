# SPDX-License-Identifier: BSD-3-Clause
"""Conditions on packets as sets, and a list of them, the first that matches counts, as the key `match` of classes."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from linkweir.deploy.matching import CODE_POINTS

Net = ipaddress.IPv4Network | ipaddress.IPv6Network
Conditions = Mapping[str, frozenset[Any]]
"""The values that each key of a rule can have; a key that is not there can have any. Keys are those of `match`, and
`version`, of IP. Code points and protocols are numbers, ports pairs of the first and the last, addresses nets."""

WITH_PORTS = frozenset((6, 17, 132))
"""Protocols whose headers begin with ports: TCP, UDP and SCTP."""
_PORTS = ("source_port", "destination_port")
_NETS = ("source", "destination")
_ORDER = ("dscp", "protocol", "port", "source_port", "destination_port", "address", "source", "destination")
_POINTS = {number: name for name, number in reversed(list(CODE_POINTS.items()))}
_PROTOCOLS = {6: "tcp", 17: "udp", 132: "sctp", 50: "esp", 47: "gre"}
_ICMP = frozenset((1, 58))
_EVERY_ADDRESS: dict[int, Net] = {4: ipaddress.ip_network("0.0.0.0/0"), 6: ipaddress.ip_network("::/0")}


_Tried = tuple[Conditions, int, int]
"""Conditions, the number of the class of packets that meet them, and when they are tried: its `order`."""


def both(one: Conditions, other: Conditions) -> Conditions | None:
    """The conditions of packets that meet both; None if no packet does."""
    found: dict[str, frozenset[Any]] = {**one, **other}
    for key in one.keys() & other.keys():
        values = [_common(key, a, b) for a in one[key] for b in other[key]]
        found[key] = frozenset(value for value in values if value is not None)
    if any(key in found for key in _PORTS):
        found["protocol"] = found.get("protocol", WITH_PORTS) & WITH_PORTS
    versions = [found["version"]] if "version" in found else []
    versions += [frozenset(net.version for net in found[key]) for key in _NETS if key in found]
    if versions:
        shared = frozenset.intersection(*versions)
        for key in _NETS:
            if key in found:
                found[key] = frozenset(net for net in found[key] if net.version in shared)
        found["version"] = shared
    return found if all(found.values()) else None


def _common(key: str, one: Any, other: Any) -> Any:
    if key in (*_PORTS, "port"):
        first, last = max(one[0], other[0]), min(one[1], other[1])
        return (first, last) if first <= last else None
    if key in (*_NETS, "address"):
        if one.version != other.version or not one.overlaps(other):
            return None
        return max(one, other, key=lambda net: net.prefixlen)
    return one if one == other else None


def covers(one: Conditions, other: Conditions) -> bool:
    """Whether every packet that meets the other conditions meets these; False also where it is not seen."""
    return all(
        key in other and all(any(_common(key, a, b) == b for a in values) for b in other[key])
        for key, values in one.items()
    )


def in_order(rules: Iterable[tuple[Conditions, int]], classes: int, rest: int) -> list[list[dict[str, Any]] | None]:
    """The key `match` of each class; None for a class that takes what no other does.

    Args:
        rules: conditions, and the number of the class of packets that meet them, in order.
        classes: how many there are.
        rest: number of the class of packets that meet none.
    """
    tried, rest = _simplified(list(rules), rest)
    while True:
        # What one pass leaves away may let the next one join rules, as an import of an export of these would.
        simpler, others = _simplified([(wanted, number) for wanted, number, _ in tried], rest)
        if len(simpler) >= len(tried) and _last(simpler) >= _last(tried):
            break
        tried, rest = simpler, others
    found: list[list[dict[str, Any]] | None] = [[] for _ in range(classes)]
    for wanted, number, place in tried:
        own = found[number]
        assert own is not None
        own.append({**_written(wanted), **({"order": place} if place else {})})
    found[rest] = [*found[rest], {}] if found[rest] else None  # type: ignore[misc]
    return found


def _last(tried: Sequence[_Tried]) -> int:
    return max((place for _, _, place in tried), default=0)


def _simplified(rules: Sequence[tuple[Conditions, int]], rest: int) -> tuple[list[_Tried], int]:
    """The same with fewer rules, as far as one pass finds them, in the order in which a scenario tries them."""
    rules, rest = _until_all(rules, rest)
    reached: list[tuple[Conditions, int]] = []
    before: list[Conditions] = []
    for wanted, number in rules:
        reached += [(part, number) for part in _parts(wanted) if not any(covers(one, part) for one in before)]
        before.append(wanted)
    reached = [
        (wanted, number)
        for at, (wanted, number) in enumerate(reached)
        if number != rest or any(later != rest and both(wanted, others) for others, later in reached[at + 1 :])
    ]
    needs_order = any(
        number > later and both(wanted, others)
        for at, (wanted, number) in enumerate(reached)
        for others, later in reached[at + 1 :]
    )
    if not needs_order:
        reached.sort(key=lambda rule: rule[1])
    tried: list[_Tried] = []
    for place, (run, number) in enumerate(_runs(reached)):
        for wanted in _folded(run):
            if not any(covers(earlier, wanted) for earlier, _, _ in tried):
                tried.append((wanted, number, place if needs_order else 0))
    return tried, rest


def _until_all(rules: Sequence[tuple[Conditions, int]], rest: int) -> tuple[Sequence[tuple[Conditions, int]], int]:
    """The rules up to one after which no packet is left, and the class of the rest: the one that takes all packets."""
    takers: dict[int, int] = {}
    for at, (wanted, number) in enumerate(rules):
        if wanted.keys() <= {"version"}:
            for version in wanted.get("version", _EVERY_ADDRESS):
                takers.setdefault(version, number)
        if takers.keys() == _EVERY_ADDRESS.keys():
            return (rules[:at], number) if len(set(takers.values())) == 1 else (rules[: at + 1], rest)
    return rules, rest


def _parts(wanted: Conditions) -> Iterator[Conditions]:
    """The same as conditions that have one value for each key, so that those which an earlier rule takes can go."""
    for either, ends in (("port", _PORTS), ("address", _NETS)):
        if either in wanted:
            others = {key: values for key, values in wanted.items() if key != either}
            for end in ends:
                yield from _parts({**others, end: wanted[either]})
            return
    whole = wanted if "version" in wanted else {**wanted, "version": frozenset((4, 6))}
    for values in itertools.product(*(sorted(own, key=str) for own in whole.values())):
        part = both({}, {key: frozenset((value,)) for key, value in zip(whole, values, strict=True)})
        if part is not None:
            yield part


def _runs(rules: Sequence[tuple[Conditions, int]]) -> Iterator[tuple[list[Conditions], int]]:
    """Conditions that follow one another and have the same class; their order does not matter."""
    run: list[Conditions] = []
    for at, (wanted, number) in enumerate(rules):
        run.append(wanted)
        if at + 1 == len(rules) or rules[at + 1][1] != number:
            yield run, number
            run = []


def _folded(run: Sequence[Conditions]) -> list[Conditions]:
    """The same in fewer rules: two that differ in one key only become one, which has the values of both."""
    folded = [_normal(wanted) for wanted in run]
    for one, other, either in (("source_port", "destination_port", "port"), ("source", "destination", "address")):
        for key in ("version", one, other):
            folded = _joined(folded, key)
        folded = _either(folded, one, other, either)
    for key in ("version", "protocol", "dscp", "port", "source_port", "destination_port", "address", *_NETS, "version"):
        folded = _joined(folded, key)
    for wanted in list(folded):
        others = [other for other in folded if other is not wanted]
        if any(covers(other, wanted) for other in others):
            folded = others
    return folded


def _normal(wanted: Conditions) -> Conditions:
    """Without a version that is that of its addresses."""
    implied = any(key in wanted for key in _NETS) or wanted.get("version") == frozenset((4, 6))
    return {key: values for key, values in wanted.items() if key != "version" or not implied}


def _joined(run: Sequence[Conditions], key: str) -> list[Conditions]:
    """Joins conditions that differ in this key only."""
    groups: dict[Hashable, list[Conditions]] = {}
    for wanted in run:
        groups.setdefault(frozenset((k, v) for k, v in wanted.items() if k != key), []).append(wanted)
    found: list[Conditions] = []
    for group in groups.values():
        others = {k: v for k, v in group[0].items() if k != key}
        if all(key in wanted for wanted in group):
            values = frozenset().union(*(wanted[key] for wanted in group))
            found.append(_normal({**others, key: _outermost(key, values)}))
        else:
            found.append(others)
    return found


def _outermost(key: str, values: frozenset[Any]) -> frozenset[Any]:
    """The values that are in no other of them, as a net may be in a larger one."""
    if key in (*_NETS, "address"):
        lengths = sorted({net.prefixlen for net in values})

        def larger(net: Net) -> Iterator[Any]:
            return (net.supernet(new_prefix=bits) for bits in lengths if bits < net.prefixlen)

        return frozenset(net for net in values if not any(one in values for one in larger(net)))
    return frozenset(
        one for one in values if not any(one != other and _common(key, one, other) == one for other in values)
    )


def _either(run: Sequence[Conditions], one: str, other: str, either: str) -> list[Conditions]:
    """Joins conditions on one end of a packet with the same ones on its other end."""
    found = list(run)
    for wanted in run:
        if one in wanted and other not in wanted:
            turned = {**{k: v for k, v in wanted.items() if k != one}, other: wanted[one]}
            if turned in found:
                found[found.index(wanted)] = {**{k: v for k, v in wanted.items() if k != one}, either: wanted[one]}
                found.remove(turned)
    return found


def _written(wanted: Conditions) -> dict[str, Any]:
    """A rule as a scenario has it."""
    rule = {key: [_value(key, value) for value in _sorted(key, values)] for key, values in wanted.items()}
    rule.pop("version", None)
    for version in wanted.get("version", ()):
        rule["source"] = [str(_EVERY_ADDRESS[version])]
    protocols = wanted.get("protocol", frozenset())
    if protocols == WITH_PORTS and any("port" in key for key in rule):
        del rule["protocol"]  # what ports imply
    elif protocols >= _ICMP:
        rule["protocol"] = ["icmp", *(_value("protocol", number) for number in sorted(protocols - _ICMP))]
    return {key: rule[key][0] if len(rule[key]) == 1 else rule[key] for key in _ORDER if key in rule}


def _sorted(key: str, values: Iterable[Any]) -> list[Any]:
    if key in (*_NETS, "address"):
        return sorted(values, key=lambda net: (net.version, net))
    return sorted(values)


def _value(key: str, value: Any) -> str | int:
    if key == "dscp":
        return str(_POINTS[value]) if value in _POINTS else int(value)
    if key == "protocol":
        return _PROTOCOLS[value] if value in _PROTOCOLS else int(value)
    if key.endswith("port"):
        return int(value[0]) if value[0] == value[1] else f"{value[0]}-{value[1]}"
    return str(value)
