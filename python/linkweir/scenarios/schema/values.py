# SPDX-License-Identifier: BSD-3-Clause
"""From the form of a key to a JSON Schema."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from linkweir import _native
from linkweir.scenarios.declared import Row
from linkweir.scenarios.policy import Parameter

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def quantity(noun: str, least: float | None = None, most: float | None = None) -> Schema:
    """A number with its unit. Its range is the parser's to check; a fraction may be bare and then has it here."""
    names = _native.units()[noun]
    if noun != "fraction":
        return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({'|'.join(names)})\s*$"}
    bare: Schema = {"type": ["number", "string"], "pattern": rf"^\s*{_NUMBER}\s*%?\s*$"}
    return bare | {key: value for key, value in (("minimum", least), ("maximum", most)) if value is not None}


def number(least: float, most: float, *, whole: bool) -> Schema:
    """A bare number."""
    return {"type": "integer" if whole else "number", "minimum": least, "maximum": most}


def words(choices: Iterable[str]) -> Schema:
    """One of some words."""
    return {"enum": list(choices)}


def a_list(item: Schema) -> Schema:
    """A list that holds something."""
    return {"type": "array", "items": item, "minItems": 1}


def pairs(first: Schema, second: Schema) -> Schema:
    """A list of pairs."""
    pair = {"type": "array", "prefixItems": [first, second], "items": False, "minItems": 2}
    return a_list(pair)


def table(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """A table that has no other keys."""
    needed = {"required": sorted(required)} if required else {}
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **needed}


def one_of(first: Schema, *more: Schema) -> Schema:
    """One of several forms."""
    return {"anyOf": [first, *more]} if more else first


def simple(row: Row) -> Schema | None:
    """The schema of a quantity, a number, a word or a text; None if the form is none of these."""
    shape = row.shape
    assert shape is not None, row.key
    form = shape["form"]
    if form == "quantity":
        return of_quantity(shape)
    if form == "quantity_or_word":
        return one_of(of_quantity(shape), words(shape["words"]))
    if form == "number":
        return number(shape["least"], shape["most"], whole=True)
    if form in ("real", "per_terminal"):
        return number(_as_int(shape["least"]), _as_int(shape["most"]), whole=False)
    if form == "limit":
        return one_of(quantity("packets"), quantity("time"))
    if form == "words":
        return words(shape["words"])
    return {"text": TEXT, "flag": FLAG}.get(form)


def of_quantity(shape: _native._Shape) -> Schema:
    """A quantity of a form; of a fraction also the range."""
    return quantity(shape["noun"], shape["least"], shape["most"])


def _as_int(value: float) -> float:
    return int(value) if value.is_integer() else value


def described(row: Row, schema: Schema) -> Schema:
    """With meaning, values and default, which editors show."""
    about = plain(f"{row.meaning}.\n\nValues: {row.values}.\nDefault: {row.default or 'none'}.")
    shown: Schema = {"description": about[:1].upper() + about[1:], **schema}
    if row.default.startswith("`"):
        with contextlib.suppress(ValueError):  # a path, which the page shows without quotes
            shown["default"] = json.loads(row.default.strip("`"))
    return shown


def of_policy(param: Parameter) -> Schema:
    """A parameter of a policy."""
    if param.unit == "choice":
        schema = words(param.choices)
    elif param.unit == "number":
        schema = number(int(str(param.min)), int(str(param.max)), whole=True)
    else:
        schema = quantity(param.unit)
    row = Row(param.name, param.range, param.default or "not given", param.help)
    default = {} if param.default is None else {"default": param.default}
    if param.unit == "number" and param.default is not None:
        default = {"default": int(param.default)}  # type: ignore[dict-item]
    return described(row, schema) | default


def merged(tables: Iterable[Mapping[str, Schema]]) -> dict[str, Schema]:
    """The keys of all tables. A key that differs from table to table may be as any of them has it."""
    forms: dict[str, list[Schema]] = {}
    for keys in tables:
        for key, schema in keys.items():
            if schema not in forms.setdefault(key, []):
                forms[key].append(schema)
    return {key: one_of(*schemas) for key, schemas in forms.items()}


def plain(markdown: str) -> str:
    """Without links and quotes."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "")
