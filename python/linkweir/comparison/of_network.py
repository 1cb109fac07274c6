# SPDX-License-Identifier: BSD-3-Clause
"""A link of a network as the scenario of this link alone: what policies are fitted to, and where their keys belong."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir.fault import PlanError
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps.keys import Key, nearest

_OF_LINK = ("name", "like", "links", "scheduler", "class")


@dataclass(frozen=True)
class Part:
    """A scenario with one link, or a link of a network.

    Attributes:
        link: name of the link; empty for the one ``[link]`` of a scenario.
        table: ``link``, or ``bond`` for several links behind one scheduler.
        number: its number among the tables ``[[link]]`` or ``[[bond]]``.
        scenario: the link alone, checked.
        written: the same as it is written, without defaults.
    """

    link: str
    table: str
    number: int
    scenario: Scenario
    written: dict[str, Any]

    def key(self, key: Key) -> Key:
        """A key of the link alone in the scenario."""
        return (self.table, self.link, *key) if self.link else key

    def of_fault(self, key: str) -> str:
        """The key of a fault of the scenario as that of the link alone."""
        return key.removeprefix(f"{self.table}[{self.number}].") if self.link else key

    def flow_classes(self) -> dict[str, str]:
        """The classes on this link of the flows that pass it; empty for one ``[link]``, where flows say their class."""
        if not self.link:
            return {}
        alone = self.scenario.native.written().get("flow", [])
        return {name: entry["class"] for entry in alone for name in _copies(entry)}


def _copies(entry: Mapping[str, Any]) -> list[str]:
    name, count = entry["name"], entry["count"]
    return [name] if count == 1 else [f"{name}-{copy}" for copy in range(1, count + 1)]


def parts_of(
    own: Scenario, written: dict[str, Any], link: str | None, *, everywhere: bool
) -> tuple[dict[str, Any], list[Part]]:
    """What policies are compared on: first the link whose classes are judged, then others that get the policy, too.

    Args:
        own: the scenario, checked.
        written: the same as it is written.
        link: a link of a network; None if there is one link.
        everywhere: every link gets the policy.

    Returns:
        The scenario as written, in which no link is like another one, and the parts.

    Raises:
        PlanError: the link is missing or unknown, or the links are those of a constellation.
    """
    if "constellation" in written:
        raise PlanError(
            "constellation: its links share a policy, and compare changes that of one link or of all; "
            "sweep constellation.ground.scheduler.policy instead"
        )
    if not own.is_network:
        if link is not None or everywhere:
            raise PlanError(f"link: {link or 'everywhere'}: the scenario has one [link]; leave this out")
        return written, [Part("", "link", 0, own, written)]
    links = own.links
    if link is None and len(links) > 1:
        raise PlanError(f"link: the scenario has several; give one, whose classes are compared: {', '.join(links)}")
    first = links[0] if link is None else link
    if first not in links:
        raise PlanError(
            f"link: {first}: there is no link of this name{nearest(first, links)}; there are {', '.join(links)}"
        )
    full = _without_likes(written["link"])
    bonds = written.get("bond", [])
    tables = [("link", number, entry) for number, entry in enumerate(full) if entry["name"] in links]
    tables += [("bond", number, entry) for number, entry in enumerate(bonds)]
    by_name = {entry["name"]: (table, number, entry) for table, number, entry in tables}
    others = [name for name in by_name if name != first] if everywhere else []
    parts = [_part(own, *by_name[name]) for name in (first, *others)]
    return {**written, "link": full}, parts


def _part(own: Scenario, table: str, number: int, entry: Mapping[str, Any]) -> Part:
    alone = own.of_link(entry["name"])
    written = {
        "link": {key: value for key, value in entry.items() if key not in _OF_LINK},
        "scheduler": entry["scheduler"],
        "class": entry["class"],
        "flow": alone.native.written().get("flow", []),
    }
    return Part(entry["name"], table, number, alone, written)


def _without_likes(links: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The links with the tables of their schedulers and classes; a link that is like another one has copies of them."""
    by_name = {entry["name"]: entry for entry in links}
    full = []
    for entry in links:
        found = dict(entry)
        liked = by_name.get(entry.get("like"))
        while liked is not None:
            for key in ("scheduler", "class"):
                if key not in found and key in liked:
                    found[key] = copy.deepcopy(liked[key])
            liked = by_name.get(liked.get("like"))
        full.append(found)
    return full


def named(key: str, classes: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The name of the class and the rest of a key such as ``class[1].rate``; None for other keys."""
    found = re.match(r"class\[(\d+)\]", key)
    if found is None:
        return None
    return str(classes[int(found[1])]["name"]), key[found.end() :]
