# SPDX-License-Identifier: BSD-3-Clause
"""Users of a scenario with a policy across them as peers of the gateway, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkweir.fault import unfit

_OF_THE_USER = ("name", "count", "user", "across")
"""Keys of a class that say whose it is. Without them, the classes of all users must be the same."""
_OF_THE_CHANNEL = "coded"
"""The key of a class that belongs to the satellite's link."""


def peers_of(classes: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The classes towards every peer, and for each user a name and, if given, its parameters across users.

    Args:
        classes: the tables `[[class]]` of a resolved scenario.

    Raises:
        ScenarioError: the users have different classes.

    >>> one, peers = peers_of([{"name": "call", "count": 2, "user": "u"}, {"name": "data", "count": 2, "user": "u"}])
    >>> [entry["name"] for entry in one], [peer["name"] for peer in peers]
    (['call', 'data'], ['u-1', 'u-2'])
    """
    users: dict[str, list[dict[str, Any]]] = {}
    own: dict[str, dict[str, Any]] = {}
    for entry in classes:
        count = entry["count"]
        for number in range(1, count + 1):
            end = "" if count == 1 else f"-{number}"
            user = f"{entry.get('user', entry['name'])}{end}"
            users.setdefault(user, []).append({**entry, "count": 1})
            if "across" in entry:
                own[user] = dict(entry["across"])
    (first, same), *others = users.items()
    for user, entries in others:
        if list(map(_as_class, entries)) != list(map(_as_class, same)):
            cure = (
                "the gateway has the same classes towards every peer; give each user the same classes in the same order"
            )
            raise unfit("class.user", user, f"has other classes than {first}: {cure}")
    towards_each = [_named(entry, first) for entry in same]
    return towards_each, [{"name": user} | ({"across": own[user]} if user in own else {}) for user in users]


def users_of(
    classes: Sequence[Mapping[str, Any]], peers: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The classes of a scenario whose users are the peers of a hub, and what could not be carried over.

    >>> users_of([{"name": "call"}], [{"name": "a"}, {"name": "b", "across": {"weight": 2}}])[0][1]
    {'name': 'b-call', 'user': 'b', 'across': {'weight': 2}}
    """
    found: list[dict[str, Any]] = []
    for peer in peers:
        for place, entry in enumerate(classes):
            own = {key: value for key, value in entry.items() if key not in ("name", "least")}
            name = f"{peer['name']}-{entry['name']}"
            first = {"across": dict(peer["across"])} if place == 0 and "across" in peer else {}
            found.append({"name": name, "user": peer["name"], **own, **first})
    lost = [
        f"class.least of {entry['name']}: across users a scenario has none" for entry in classes if "least" in entry
    ]
    return found, lost


def _as_class(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in (*_OF_THE_USER, _OF_THE_CHANNEL)}


def _named(entry: Mapping[str, Any], user: str) -> dict[str, Any]:
    """A class of the first user without what says whose it is."""
    name = entry["name"].removeprefix(f"{user}-") or entry["name"]
    return {"name": name, "count": 1, **_as_class(entry)}
