# SPDX-License-Identifier: BSD-3-Clause
"""Bonds of scenarios as the paths of a gateway's peer, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkweir import _native
from linkweir.deploy import left_out
from linkweir.fault import unfit
from linkweir.scenarios.declared import rows
from linkweir.scenarios.scenario import Scenario

# What no key of a gateway declares; a test compares it with the gateway's sources.
ROOM = "10ms"
"""A gateway uses a further path for `best` and `spill` when a packet would wait longer; it has no key for it."""
DETECT = "200ms"
"""The usual `probe.failover` of a gateway's peer with paths."""
LEAST_REORDER_NS = 1_000_000
"""The least `reorder` of a gateway but none."""
NAME_BYTES = 16
"""Most bytes of a path's name."""
USUAL_WAIT = "50ms"
_USUAL_ORDER = {"all": "none", "stripe": USUAL_WAIT}
"""What a gateway does without `reorder` where `paths` is one of these words."""
_CAPACITY = ("rate", "nominal", "follow")
NUMBER_BYTES = 12
"""What the number of a packet takes."""
OF_A_CLASS = ("paths", "reorder", "resend")
"""Keys of a class that say how it uses the paths."""


def bond_of(scenario: Scenario) -> Mapping[str, Any] | None:
    """The table of a scenario's bond, if all its links are in one bond."""
    keys = scenario.native.written()
    bonds = keys.get("bond", [])
    if len(bonds) != 1 or {entry["name"] for entry in keys["link"]} != set(bonds[0]["links"]):
        return None
    found: Mapping[str, Any] = bonds[0]
    return found


def members_of(scenario: Scenario, bond: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """The tables of a bond's links in its order, each with its number among `[[link]]`."""
    by_name = {entry["name"]: (number, entry) for number, entry in enumerate(scenario.native.written()["link"])}
    return [by_name[name] for name in bond["links"]]


# --- To the gateway ---------------------------------------------------------------------------------------------------


def paths_of(
    members: Sequence[tuple[int, Mapping[str, Any]]], endpoint: str | None, device: str
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The tables `[[peer.path]]` of a bond's links, notes and warnings.

    Args:
        members: the links of the bond, each with its number.
        endpoint: of the peer; None where the peer calls first.
        device: what stands for the device of each path.

    Raises:
        ScenarioError: a name has no place in the gateway.
    """
    paths: list[dict[str, Any]] = []
    notes: list[str] = []
    warnings: list[str] = []
    for number, member in members:
        name = path_name(member["name"])
        if len(name.encode()) > NAME_BYTES:
            message = f"a path of the gateway has at most {NAME_BYTES} bytes in its name; rename the link"
            raise unfit(f"link[{number}].name", member["name"], message)
        if any(path["name"] == name for path in paths):
            raise unfit(f"link[{number}].name", member["name"], f"is {name} in the gateway as another link; rename it")
        where = {} if endpoint is None else {"endpoint": endpoint, "device": device}
        fixed = "rate" in member and not left_out.varies(member)
        rate = {"rate": member["rate"] if fixed else member["nominal"], "nominal": member["nominal"]}
        follow = {"follow": bool(member["follow"])} if fixed else {"follow": True}
        paths.append({"name": name, **where, **rate, **follow, "cost": member["cost"]})
        if not fixed:
            warnings.append(f"path {name}: {left_out.FIXED.format(nominal=member['nominal'], where='[[peer.path]]')}")
        said = left_out.of_the_link(member, "gateway", f"the rate of path {name}", f"link.{member['name']}")
        notes += said
    return paths, notes, warnings


def path_name(name: str) -> str:
    """A link's name without spaces."""
    return "-".join(name.split()) or "path"


def of_the_bond(bond: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The key `probe` of a peer for a bond, and notes."""
    notes = []
    if _ns(bond["room"]) != _ns(ROOM):
        notes.append(f"bond[0].room = {bond['room']}: {ROOM} in the gateway")
    detect_ns = _ns(bond["detect"])
    if detect_ns == _ns(DETECT):
        return {}, notes
    least, most = _span("probe", "failover")
    failover_ns = min(max(detect_ns, least), most)
    failover = _native.show(failover_ns / 1e9, "time")
    if failover_ns != detect_ns:
        notes.append(f"bond[0].detect = {bond['detect']}: probe.failover of the gateway's peer is {failover}")
    return {"probe": {"failover": failover}}, notes


def class_of(number: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a class that say how it uses the paths, as the gateway has them.

    Args:
        number: of the class in the bond.
        entry: its table.

    Raises:
        ScenarioError: its `reorder` has no place in the gateway.
    """
    uses, reorder, resend = (entry[key] for key in OF_A_CLASS)
    found: dict[str, Any] = {}
    if uses != "best":
        found["paths"] = [path_name(name) for name in uses] if isinstance(uses, list) else uses
    if reorder != "none":
        least, (_, most) = LEAST_REORDER_NS, _span("class", "reorder")
        if not least <= _ns(reorder) <= most:
            span = f"{_native.show(least / 1e9, 'time')} .. {_native.show(most / 1e9, 'time')}"
            raise unfit(f"bond[0].class[{number}].reorder", reorder, f"must be {span} in the gateway, or none")
    usual = _usual_order(uses) or "none"
    if resend or not _is_same(reorder, usual):
        found["reorder"] = reorder
    if resend:
        found["resend"] = True
    return found


def is_numbered(entry: Mapping[str, Any]) -> bool:
    """Whether a gateway numbers the packets of a class, as its table says."""
    return "reorder" in entry or _usual_order(entry.get("paths")) is not None


def _usual_order(uses: Any) -> str | None:
    """What a gateway does without `reorder`; None: packets of the class get no numbers."""
    if isinstance(uses, list):
        return USUAL_WAIT if len(uses) > 1 else None  # over one path no packet overtakes another
    return _USUAL_ORDER.get(uses)


def _span(table: str, key: str) -> tuple[int, int]:
    """The least and the greatest value of a key of a gateway, in its base unit; times in ns."""
    shape = rows(table, file="gateway")[key].shape
    assert shape is not None
    return round(shape["least"]), round(shape["most"])


def _is_same(reorder: str, other: str) -> bool:
    return reorder == other if "none" in (reorder, other) else _ns(reorder) == _ns(other)


def _ns(text: str) -> int:
    return round(1e9 * _native.quantity(text, "time"))


# --- From the gateway -------------------------------------------------------------------------------------------------

_OF_A_PATH = ("name", "endpoint", "device", "source", "cost")
"""Keys of a path that are not those of a capacity."""


def links_of(peer: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Of each path of a peer its name, the keys of its capacity, and the other keys that its link has."""
    usual_cost = int(rows("path", file="gateway")["cost"].default.strip("`"))
    for path in peer["path"]:
        capacity = {key: value for key, value in path.items() if key not in _OF_A_PATH}
        cost = path.get("cost", usual_cost)
        yield path["name"], capacity, {"cost": cost} if cost else {}


def bond_from(peer: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The table `[[bond]]` of a peer's paths, without scheduler and classes, and notes."""
    names = [path["name"] for path in peer["path"]]
    name = str(peer.get("name", "peer"))
    if name in names:
        name += "-bond"
    probe = peer.get("probe", {})
    bond = {"name": name, "links": names, "room": ROOM, "detect": probe.get("failover", DETECT)}
    notes = [f"bond[0].room = {ROOM}: what the gateway has, which has no key for it"]
    notes += [f"peer.probe.{key}: how the gateway probes" for key in probe if key != "failover"]
    return bond, notes


def class_from(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A class of a gateway with paths as the class of a bond."""
    uses = entry.get("paths", "best")
    found = dict(entry)
    if "reorder" not in entry and _usual_order(uses) is None:
        found["reorder"] = "none"  # it has no numbers
    return found
