# SPDX-License-Identifier: BSD-3-Clause
"""From the cell of a table that says what a key may be to a JSON Schema."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from linkweir.scenarios.policy import Parameter
from linkweir.scenarios.schema.pages import Row, plain, units

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_REAL = {"altitude_km", "amplitude", "clear_sky_esn0_db", "inclination_deg", "m", "objects"}
"""Keys whose values may have a fraction although neither range nor default shows one."""
_OF_POLICIES = {"rate": "rate", "time": "time", "size": "size", "packets": "number of packets", "fraction": "fraction"}


def quantity(noun: str, least: float | None = None, most: float | None = None) -> Schema:
    """A number with its unit. Its range is the parser's to check; a fraction may be bare and then has it here."""
    names = units()["rate" if noun == "amount of bits" else noun]
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


def simple(cell: str, key: str, default: str = "") -> Schema | None:
    """What a cell that needs no other table says: a quantity, a number, a word, a text; None if it is none of these."""
    if key == "decimal":
        return words([".", ","])
    if cell in ("text", "path", "name of a class", "a word"):
        return TEXT
    if cell == "true, false":
        return FLAG
    if cell == "time":
        return quantity("time")
    if re.fullmatch(r"[a-z][\w.-]*(, [a-z][\w.-]*)+", cell):
        return words(cell.split(", "))
    forms = [part.removeprefix("or ") for part in cell.split(", ")]
    if len(forms) > 1 and all(re.match(r"[0-9][\w.]* \.\. [0-9]", form) for form in forms):
        return one_of(*(_range(form, key, default) for form in forms))
    if len(forms) > 1 and re.match(r"[0-9][\w.]* \.\. [0-9]", forms[0]) and all(map(str.isalpha, forms[1:])):
        return one_of(_range(forms[0], key, default), words(forms[1:]))
    if re.match(r"(from |floor \.\. )?-?[0-9]", cell):
        return _range(cell, key, default)
    return None


def _range(cell: str, key: str, default: str) -> Schema:
    ends = [(float(value), unit) for value, unit in re.findall(r"(-?\d[\d.]*)([A-Za-z%]*)", cell)[:2]]
    unit = next((unit for _, unit in reversed(ends) if unit), "")
    if unit:
        noun = next(noun for noun, names in units().items() if unit in names)
        return quantity(noun, *(value / 100 for value, _ in ends)) if noun == "fraction" else quantity(noun)
    whole = key not in _REAL and "." not in cell.replace(" .. ", "") and "." not in default
    if " .. " not in cell:
        return {"type": "integer" if whole else "number", "minimum": _as_int(ends[0][0])}
    return number(*(_as_int(value) for value, _ in ends), whole=whole)


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
        schema = quantity(_OF_POLICIES.get(param.unit, "amount of bits"))
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
