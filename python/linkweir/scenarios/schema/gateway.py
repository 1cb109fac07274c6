# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a gateway's configuration."""

from __future__ import annotations

import re
from typing import Any

from linkweir.scenarios.schema.matching import CLASS, NET, code_point, one_or_more, rules_of
from linkweir.scenarios.schema.pages import Row, rows
from linkweir.scenarios.schema.scenario import DIALECT, by_policy, columns, of_core, only, over_time
from linkweir.scenarios.schema.values import (
    TEXT,
    Schema,
    a_list,
    described,
    merged,
    one_of,
    simple,
    table,
    words,
)

_PAGE = "gateway"
_LINK = "[link], and each peer"
_UNDERLAYS = "Several underlays"
_RECORD = "[record]"
_ONLY_IN_LINK = ("below", "overhead", "mpu")
_NAMED = r"^([A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.)*[A-Za-z0-9_]*[A-Za-z][A-Za-z0-9_-]*:[1-9][0-9]{0,4}$"
_SOCKET: Schema = {"type": "string", "pattern": r"^([0-9.]+|\[[0-9a-fA-F:.%]+\]):[0-9]+$"}
_WORD: Schema = {"type": "string", "pattern": r"^\S+$"}


def gateway() -> Schema:
    """The schema of a gateway's file."""
    policies = of_core()
    scheduler = {
        "type": "object",
        "properties": {"policy": words(policies), **merged(keys for keys, _ in policies.values())},
        "required": ["policy"],
    }
    classes = {
        "type": "object",
        "properties": _class_keys() | merged(keys for _, keys in policies.values()),
        "required": ["name"],
    }
    tables = {
        "gateway": _own(),
        "link": table(_link_keys() | {"across": _across(own=False)}),
        "scheduler": scheduler,
        "class": a_list(classes),
        "peer": a_list(_peer()),
    }
    return {
        "$schema": DIALECT,
        "title": "Linkweir gateway",
        "description": "The configuration of linkweir-gateway up; see docs/reference/gateway.md.",
        **table(tables | {"record": _record()}, tables),
        "allOf": by_policy(policies, _class_keys()),
    }


def _record() -> Schema:
    found = rows(_PAGE, _RECORD)
    return table(_keys(_RECORD), [key for key, row in found.items() if row.required])


def _form(row: Row) -> Schema:
    cell = row.values
    forms: dict[str, Schema] = {
        "address with prefix length, or a list": one_or_more(NET),
        "address:port": _SOCKET,
        "address:port, or name:port": one_of(_SOCKET, {"type": "string", "pattern": _NAMED}),
        "a code point": code_point(),
        "a word": _WORD,
        "a user, or its number": _WORD,
        "a group": _WORD,
        "list of words": a_list(TEXT),
        "32 bytes in base64": {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"},
    }
    if row.key in ("device", "listen_device"):
        return {"type": "string", "pattern": r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}$"}
    if row.key == "columns":
        return columns()
    if cell.startswith("as in "):
        scenario = rows("scenarios", "[link]")[row.key]
        return simple(scenario.values, row.key) or {}
    if cell in forms:
        return forms[cell]
    base = simple(re.sub(r", or \[over time\].*| \(.*\)", "", cell), row.key, row.default)
    if base is not None and "over time" in cell:
        return over_time(base)
    return base or {}


def _keys(heading: str, nth: int = 0) -> dict[str, Schema]:
    return {key: described(row, _form(row)) for key, row in rows(_PAGE, heading, nth).items()}


def _own() -> Schema:
    found = rows(_PAGE, "[gateway]")
    wireguard: Schema = {"required": ["mode"], "properties": {"mode": {"const": "wireguard"}}}
    pipe: Schema = {"required": ["dscp"], "properties": {"dscp": {"const": "pipe"}}}
    return table(_keys("[gateway]"), [key for key, row in found.items() if row.required]) | {
        "if": wireguard,
        "then": {"required": ["private_key_file"]},
        "else": {"not": {"required": ["private_key_file"]}},
        "dependentSchemas": {"outer_dscp": pipe},
    }


def _link_keys() -> dict[str, Schema]:
    keys = _keys(_LINK)
    feedback = rows(_PAGE, "feedback")
    inner = table(_keys("feedback"), [key for key, row in feedback.items() if row.required])
    keys["feedback"] = described(rows(_PAGE, _LINK)["feedback"], one_of({"type": "boolean"}, inner))
    return keys


def _across(*, own: bool) -> Schema:
    """The policy among peers with its parameters; of a peer's `own`, the parameters of its queue."""
    row = rows(_PAGE, _LINK)["across"]
    policies = of_core()
    if own:
        return described(row, table(merged(keys for _, keys in policies.values())))
    rules: list[Any] = [
        {
            "if": {"required": ["policy"], "properties": {"policy": {"const": name}}},
            "then": only(("policy", *params, *class_params), params | class_params),
        }
        for name, (params, class_params) in policies.items()
    ]
    all_keys = merged(keys for both in policies.values() for keys in both)
    return described(row, table({"policy": words(policies), **all_keys}, ["policy"]) | {"allOf": rules})


def _class_keys() -> dict[str, Schema]:
    return _keys(CLASS) | {"match": rules_of(rows(_PAGE, CLASS)["match"])}


def _peer() -> Schema:
    found = rows(_PAGE, "[[peer]]")
    link = {key: schema for key, schema in _link_keys().items() if key not in _ONLY_IN_LINK}
    keys = _keys("[[peer]]") | link | {"across": _across(own=True)}
    underlay = rows(_PAGE, _UNDERLAYS)
    ways = a_list(table(_keys(_UNDERLAYS), [key for key, row in underlay.items() if row.required]))
    keys["underlays"] = described(found["underlays"], ways)
    keys["probe"] = described(found["probe"], table(_keys(_UNDERLAYS, 1)))
    return table(keys, [key for key, row in found.items() if row.required])
