# SPDX-License-Identifier: BSD-3-Clause
"""A scenario from a file of a machine: a configuration of the gateway, or what tc shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import traces
from linkweir.deploy.copies import classes_of
from linkweir.deploy.found import Found
from linkweir.deploy.from_gateway import from_gateway
from linkweir.deploy.from_tc import from_tc
from linkweir.deploy.gateway import toml_table, toml_value
from linkweir.deploy.left_out import OF_THE_PATH
from linkweir.deploy.paths import bond_of, members_of, path_name
from linkweir.fault import ScenarioError, unfit
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "FILE"
"""The key of an error about the text as a whole."""
_CAPACITY = ("rate", *traces.WITH_TRACE, "nominal")
"""Keys of a link that say what it carries."""
_SHOWN = re.compile(r"\s*(\[\s*[{\]]|class )")
"""How the output of tc begins, also where it is indented."""


@dataclass(frozen=True)
class Imported:
    """A scenario made of a file.

    Attributes:
        text: the scenario as TOML; without another scenario's flows it cannot run yet.
        notes: what a scenario has no place for, or what the file does not say, a line each.
    """

    text: str
    notes: tuple[str, ...]


def imported(
    text: str, other: Scenario | None = None, *, tunnel_counted: bool = False, folder: Path | None = None
) -> Imported:
    """Makes a scenario.

    Args:
        text: a configuration of the gateway, or what tc shows.
        other: has what such a file does not hold: duration, seed, flows, the path's delays and losses, and, for tc, the
            classes' names, in their order.
        tunnel_counted: a gateway's link.overhead gets the bytes of the tunnel's headers, too.
        folder: where the text is from; a gateway's trace is looked for there.

    Raises:
        ScenarioError: the text is neither, or the other scenario has other classes.
    """
    found, from_machine = _found(text, tunnel_counted=tunnel_counted, folder=folder, rate_elsewhere=other is not None)
    missing = "duration, seed and flows"
    if from_machine:
        missing += ", and the classes' names"
    if other is None:
        notes = (*found.notes, f"{missing}: the file has none; give --with SCENARIO, which has them")
        return Imported(_written({}, found, []), notes)
    keys = _with_paths(other.native.written(), {name: str(Path(path).resolve()) for name, path, _ in other.inputs})
    if found.bond is not None:
        return _bonded(found, other, keys)
    if other.is_network:
        cure = "give a scenario with one [link], or a file of a gateway with [[peer.path]] for one with a [[bond]]"
        raise unfit("--with", other.name, f"has several links, and the file one: {cure}")
    found = _named(found, keys, rename=from_machine)
    path = {key: keys["link"][key] for key in (*OF_THE_PATH, "ring") if key in keys["link"]}
    capacity, notes = {}, found.notes
    if not {"rate", "trace"} & set(found.link):
        capacity = {key: keys["link"][key] for key in _CAPACITY if key in keys["link"]}
        notes = (*notes, "link.rate: the file has none, so it is that of the other scenario")
    found = Found({**capacity, **found.link, **path}, found.scheduler, found.classes, notes)
    top = {key: value for key, value in keys.items() if not isinstance(value, (dict, list))}
    notes = (*found.notes, f"{missing}, and the path's delays and losses: from the other scenario")
    return Imported(_written(top, found, keys["flow"]), notes)


def _found(text: str, *, tunnel_counted: bool, folder: Path | None, rate_elsewhere: bool) -> tuple[Found, bool]:
    """What the text says, and whether tc showed it."""
    from_machine = _SHOWN.match(text) is not None
    try:
        if from_machine:
            return from_tc(text), True
        keys = tomllib.loads(text)
        return from_gateway(keys, tunnel_counted=tunnel_counted, folder=folder, rate_elsewhere=rate_elsewhere), False
    except ScenarioError:
        raise
    except tomllib.TOMLDecodeError as error:
        raise unfit(FILE, "", f"is neither TOML nor what tc -j prints: {error}") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = "lacks" if isinstance(error, KeyError) else "has a value of another kind or range:"
        cure = (
            "show again what a script of linkweir export tc set up, as docs/howto/deploy.md says"
            if from_machine
            else "run linkweir-gateway check, which names the key"
        )
        raise unfit(FILE, "", f"is not as expected: it {what} {error}; {cure}") from error


def _with_paths(value: Any, paths: Mapping[str, str]) -> Any:
    """A resolved scenario that names its files where they are, not as a run directory has them."""
    if isinstance(value, dict):
        return {key: _with_paths(member, paths) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_paths(member, paths) for member in value]
    return paths.get(value, value) if isinstance(value, str) else value


def _named(found: Found, keys: Mapping[str, Any], *, rename: bool) -> Found:
    """The classes, with the names that flows of the other scenario use."""
    names = [entry["name"] for entry in classes_of(keys)]
    if any(entry["count"] > 1 for entry in keys["class"]):
        raise unfit("--with", "...", "must not have copies of classes; give each a table [[class]] of its own")
    if len(names) != len(found.classes):
        raise unfit("--with", "...", f"has {len(names)} classes, and the file {len(found.classes)}")
    if not rename:
        own = [entry.get("name") for entry in found.classes]
        words = ["-".join(name.split()) for name in names]
        if own != words:
            raise unfit("--with", ", ".join(names), f"must have the file's classes, {', '.join(map(str, own))}")
    classes = [{**entry, "name": name} for entry, name in zip(found.classes, names, strict=True)]
    return Found(found.link, found.scheduler, classes, found.notes)


def _bonded(found: Found, other: Scenario, keys: dict[str, Any]) -> Imported:
    """The same of a peer with several paths; the other scenario has one bond of the same links and classes."""
    assert found.bond is not None
    bond = bond_of(other)
    given = [] if bond is None else [path_name(name) for name in bond["links"]]
    wanted = list(found.bond["links"])
    if bond is None or sorted(given) != sorted(wanted):
        message = f"must have one [[bond]] with all its links, {', '.join(wanted)}, as the file's peer has these paths"
        raise unfit("--with", other.name, message)
    own = {"class": bond["class"]}
    named = _named(found, {**keys, **own}, rename=False)
    links = {path_name(entry["name"]): entry for _, entry in members_of(other, bond)}
    names = {name: entry["name"] for name, entry in links.items()}
    members = []
    for member in found.members:
        entry = links[member["name"]]
        path = {key: entry[key] for key in (*OF_THE_PATH, "ring") if key in entry}
        capacity = {key: entry[key] for key in _CAPACITY if key in entry}
        without = {} if {"rate", "trace"} & set(member) else capacity
        members.append({**without, **member, **path, "name": entry["name"]})
    order = [entry["name"] for _, entry in sorted(members_of(other, bond), key=lambda one: one[0])]
    members.sort(key=lambda member: order.index(member["name"]))
    table = {**found.bond, "name": bond["name"], "links": [names[name] for name in found.bond["links"]]}
    classes = [_with_names(entry, names) for entry in named.classes]
    full = Found(found.link, found.scheduler, classes, bond=table, members=tuple(members))
    top = {key: value for key, value in keys.items() if not isinstance(value, (dict, list))}
    said = "duration, seed and flows, and the delays and losses of links: from the other scenario"
    return Imported(_written(top, full, keys["flow"]), (*found.notes, said))


def _with_names(entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A class that names links of the other scenario."""
    uses = entry.get("paths")
    return {**entry, "paths": [names.get(name, name) for name in uses]} if isinstance(uses, list) else dict(entry)


def _written(top: Mapping[str, Any], found: Found, flows: list[Mapping[str, Any]]) -> str:
    text = "".join(f"{key} = {toml_value(value)}\n" for key, value in top.items()) + ("\n" if top else "")
    if found.bond is not None:
        for member in found.members:
            text += toml_table("[[link]]", member)
        text += toml_table("[[bond]]", found.bond) + toml_table("[bond.scheduler]", found.scheduler)
        for entry in found.classes:
            text += toml_table("[[bond.class]]", entry)
        for flow in flows:
            text += toml_table("[[flow]]", flow)
        return text.rstrip("\n") + "\n"
    text += toml_table("[link]", found.link) + toml_table("[scheduler]", found.scheduler)
    for entry in found.classes:
        text += toml_table("[[class]]", entry)
    for flow in flows:
        text += toml_table("[[flow]]", flow)
    return text.rstrip("\n") + "\n"
