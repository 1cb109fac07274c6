# SPDX-License-Identifier: BSD-3-Clause
"""Classes and flows that are there several times."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from linkweir.fault import unfit
from linkweir.scenarios.typed import Class


def copies(entry: Mapping[str, Any]) -> list[str]:
    """Names of a class or flow that is there several times."""
    count = entry["count"]
    return [entry["name"]] if count == 1 else [f"{entry['name']}-{n}" for n in range(1, count + 1)]


def classes_of(keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables `[[class]]` of a resolved scenario, a table for each copy, with its name and without a count.

    The first copy has the addresses of the key `match`, and each further one the next of the same size.
    """
    return [
        {key: value for key, value in entry.items() if key != "count"} | {"name": name} | _match(entry, number)
        for entry in keys["class"]
        for number, name in enumerate(copies(entry))
    ]


def each_copy(classes: Sequence[Class]) -> list[Class]:
    """The checked tables of classes in the order of `classes_of`: the table of each, as often as there are copies."""
    return [entry for entry in classes for _ in range(entry["count"])]


def _match(entry: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The key `match` of a copy; only the last one takes what no other does."""
    if "match" not in entry:
        return {}
    last = number + 1 == entry["count"]
    return {"match": [_moved(rule, number) for rule in entry["match"] if rule or last]}


def _moved(rule: Mapping[str, Any], places: int) -> dict[str, Any]:
    """A rule with the addresses so many places further."""
    moved = dict(rule)
    for key in ("address", "source", "destination"):
        if places and key in rule:
            nets = rule[key] if isinstance(rule[key], list) else [rule[key]]
            moved[key] = [_next(net, places) for net in nets]
    return moved


def _next(net: str, places: int) -> str:
    """The address or network so many places after another.

    >>> _next("10.0.0.1", 3), _next("10.0.0.0/24", 2), _next("2001:db8::/64", 1)
    ('10.0.0.4', '10.0.2.0/24', '2001:db8:0:1::/64')
    """
    first = ipaddress.ip_network(net, strict=False)
    start = int(first.network_address) + places * first.num_addresses
    if start + first.num_addresses > 1 << first.max_prefixlen:
        raise unfit(
            "class.match", net, f"has no {places} addresses of its size after it, which copies of the class need"
        )
    address = type(first.network_address)(start)
    return f"{address}/{first.prefixlen}" if "/" in net else str(address)
