# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a gateway's configuration."""

from __future__ import annotations

from linkweir.scenarios.declared import Row, rows
from linkweir.scenarios.schema.matching import NET, code_point, one_or_more, rules_of
from linkweir.scenarios.schema.scenario import DIALECT, across, by_policy, columns, of_core, over_time
from linkweir.scenarios.schema.values import (
    TEXT,
    Schema,
    a_list,
    described,
    merged,
    of_quantity,
    one_of,
    simple,
    table,
    words,
)

_ONLY_IN_LINK = ("below", "overhead", "mpu")
_NOT_OF_A_PATH = ("across", "command")
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
        "allOf": by_policy(policies, ("policy",), _class_keys()),
    }


def _record() -> Schema:
    found = _rows("record")
    return table(_keys("record"), [key for key, row in found.items() if row.required])


def _form(row: Row) -> Schema:
    shape = row.shape
    assert shape is not None, row.key
    forms: dict[str, Schema] = {
        "nets": one_or_more(NET),
        "socket": _SOCKET,
        "endpoint": one_of(_SOCKET, {"type": "string", "pattern": _NAMED}),
        "code_point": code_point(),
        "word": _WORD,
        "public_key": {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"},
        "device": {"type": "string", "pattern": r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}$"},
        "other": a_list(TEXT),
    }
    if shape["form"] == "words_or_names":
        return one_of(words(shape["words"]), a_list(_WORD))
    if shape["form"] == "of_scenario":
        scenario = rows("link")[shape["key"]]
        return columns() if shape["key"] == "columns" else simple(scenario) or {}
    if shape["form"] == "over_time":
        return over_time(of_quantity(shape))
    return forms.get(shape["form"]) or simple(row) or {}


def _rows(path: str) -> dict[str, Row]:
    return rows(path, file="gateway")


def _keys(path: str) -> dict[str, Schema]:
    return {key: described(row, _form(row)) for key, row in _rows(path).items()}


def _own() -> Schema:
    found = _rows("gateway")
    wireguard: Schema = {"required": ["mode"], "properties": {"mode": {"const": "wireguard"}}}
    pipe: Schema = {"required": ["dscp"], "properties": {"dscp": {"const": "pipe"}}}
    return table(_keys("gateway"), [key for key, row in found.items() if row.required]) | {
        "if": wireguard,
        "then": {"required": ["private_key_file"]},
        "else": {"not": {"required": ["private_key_file"]}},
        "dependentSchemas": {"outer_dscp": pipe},
    }


def _link_keys() -> dict[str, Schema]:
    keys = _keys("link")
    feedback = _rows("feedback")
    inner = table(_keys("feedback"), [key for key, row in feedback.items() if row.required])
    keys["feedback"] = described(_rows("link")["feedback"], one_of({"type": "boolean"}, inner))
    return keys


def _across(*, own: bool) -> Schema:
    return described(_rows("link")["across"], across(own=own))


def _class_keys() -> dict[str, Schema]:
    return _keys("class") | {"match": rules_of(_rows("class")["match"])}


def _peer() -> Schema:
    found = _rows("peer")
    link = {key: schema for key, schema in _link_keys().items() if key not in _ONLY_IN_LINK}
    keys = _keys("peer") | link | {"across": _across(own=True)}
    underlay = _rows("underlays")
    ways = a_list(table(_keys("underlays"), [key for key, row in underlay.items() if row.required]))
    keys["underlays"] = described(found["underlays"], ways)
    path = _rows("path")
    of_path = {key: schema for key, schema in link.items() if key not in _NOT_OF_A_PATH}
    paths = a_list(table(_keys("path") | of_path, [key for key, row in path.items() if row.required]))
    keys["path"] = described(found["path"], paths)
    keys["probe"] = described(found["probe"], table(_keys("probe")))
    return table(keys, [key for key, row in found.items() if row.required])
