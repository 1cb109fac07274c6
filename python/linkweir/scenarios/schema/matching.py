# SPDX-License-Identifier: BSD-3-Clause
"""The key `match` of a class, whose rules the page of the gateway lists."""

from __future__ import annotations

import re

from linkweir.scenarios.declared import Row, rows
from linkweir.scenarios.schema.values import Schema, a_list, described, number, one_of, table, words

NET: Schema = {"type": "string", "pattern": r"^[0-9a-fA-F:.]+(/[0-9]+)?$"}
"""An address with a prefix length."""
_PORT: Schema = {
    "type": ["integer", "string"],
    "minimum": 1,
    "maximum": 65535,
    "pattern": r"^\s*[0-9]+\s*-\s*[0-9]+\s*$",
}


def rules_of(row: Row) -> Schema:
    """The schema of a list of rules, described by `row`, the row of the key `match`."""
    found = rows("match", file="gateway")
    forms = {
        "dscp": one_or_more(code_point()),
        "protocol": one_or_more(_protocol(found["protocol"])),
        **{key: one_or_more(_PORT) for key in ("port", "source_port", "destination_port")},
        **{key: one_or_more(NET) for key in ("address", "source", "destination")},
        "order": number(0, 65535, whole=True),
    }
    rule = table({key: described(row, forms[key]) for key, row in found.items()})
    return described(row, {"type": "array", "items": rule})


def one_or_more(schema: Schema) -> Schema:
    """A value, or a list of such."""
    return one_of(schema, a_list(schema))


def code_point() -> Schema:
    """A code point by name or number."""
    cell = rows("match", file="gateway")["dscp"].values
    names = [name for name in re.findall(r"`([^`]+)`", cell) if not name[-1].isdigit()]
    classes = [f"AF{level}{drop}" for level in range(1, 5) for drop in range(1, 4)]
    return one_of(words([*names, *classes, *(f"CS{n}" for n in range(8))]), number(0, 63, whole=True))


def _protocol(row: Row) -> Schema:
    return one_of(words(re.findall(r"`([^`]+)`", row.values)), number(0, 255, whole=True))
