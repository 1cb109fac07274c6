# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from linkweir.scenarios.declared import Row, rows, table_of, traffic_kinds
from linkweir.scenarios.policy import IN_SIMULATOR, policies
from linkweir.scenarios.schema.matching import code_point, rules_of
from linkweir.scenarios.schema.values import (
    TEXT,
    Schema,
    a_list,
    described,
    merged,
    number,
    of_policy,
    of_quantity,
    one_of,
    pairs,
    quantity,
    simple,
    table,
    words,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def scenario() -> Schema:
    """The schema of a scenario file."""
    found = rows("")
    top = {key: _key(row) for key, row in found.items()}
    top["link"] = described(found["link"], one_of(_link(), a_list(_one_of_several())))
    top["scheduler"] = described(found["scheduler"], _any_scheduler())
    top["class"] = described(found["class"], a_list(_any_class()))
    top["flow"] = described(found["flow"], a_list(_flow()))
    top["bond"] = described(found["bond"], a_list(_bond()))
    top["constellation"] = described(found["constellation"], _constellation())
    required = [key for key, row in found.items() if row.required and key != "link"]
    return {
        "$schema": DIALECT,
        "title": "Linkweir scenario",
        "description": "What to simulate; see docs/reference/scenarios.md.",
        **table(top, required),
        "allOf": [
            {"if": _COMPUTED, "then": _NO_LINKS, "else": _LINKS},
            {"if": {"not": {"required": ["bond"]}}, "then": _NO_MEMBERS},
            *by_policy(of_core(), tuple(rows("scheduler")), _class_keys()),
        ],
    }


_PATHS = ("best", "all", "spill", "stripe")
_NO_MEMBERS: Schema = {
    "properties": {
        "link": {"items": {"if": {"required": ["like"]}, "else": {"required": ["scheduler", "class"]}}},
    }
}
_COMPUTED: Schema = {"required": ["constellation"]}
_NO_LINKS: Schema = {
    "not": {"anyOf": [{"required": [key]} for key in ("link", "scheduler", "class")]},
    "properties": {
        "flow": {
            "items": {
                "required": ["from", "to"],
                "oneOf": [{"required": ["class"]}, {"required": ["dscp"]}],
                "not": {"anyOf": [{"required": [key]} for key in ("path", "back")]},
            }
        }
    },
}
_SEVERAL: Schema = {"required": ["link"], "properties": {"link": {"type": "array"}}}
_NO_TABLES: Schema = {
    "not": {"anyOf": [{"required": [key]} for key in ("scheduler", "class")]},
    "properties": {"flow": {"items": {"oneOf": [{"required": ["class"]}, {"required": ["dscp"]}]}}},
    "if": {"properties": {"link": {"minItems": 2}}},
    "then": {"properties": {"flow": {"items": {"required": ["path"]}}}},
}
_ONE_LINK: Schema = {
    "required": ["scheduler", "class"],
    "properties": {
        "flow": {
            "items": {
                "required": ["class"],
                "properties": {"class": TEXT},
                "not": {"anyOf": [{"required": [key]} for key in ("dscp", "path", "back")]},
            }
        }
    },
}

_LINKS: Schema = {
    "required": ["link"],
    "properties": {"flow": {"items": {"not": {"anyOf": [{"required": [key]} for key in ("from", "to")]}}}},
    "allOf": [{"if": _SEVERAL, "then": _NO_TABLES, "else": _ONE_LINK}],
}


def _key(row: Row) -> Schema:
    """A key of a table by what its row says."""
    return described(row, _form(row))


def _form(row: Row) -> Schema:
    shape = row.shape
    assert shape is not None, row.key
    base = simple(row)
    special: dict[str, Callable[[], Schema]] = {
        "over_time": lambda: over_time(of_quantity(shape)),
        "random": lambda: _random(of_quantity(shape)),
        "random_number": lambda: _random(number(int(shape["least"]), int(shape["most"]), whole=False)),
        "packets": lambda: _mix(of_quantity(shape)),
        "losses": lambda: one_of(over_time(of_quantity(shape)), _section(shape["table"], all_required=True)),
        "columns": columns,
        "table": lambda: _rain() if shape["table"] == "link.beam.rain" else _section(shape["table"]),
        "arrivals": _arrivals,
        "rates": lambda: a_list(quantity("rate")),
        "playout": lambda: one_of(_buffer(), a_list(_buffer())),
        "per_terminal": lambda: _per_terminal(base or {}),
        "names": lambda: a_list(TEXT),
        "code_point": code_point,
        "class_name": lambda: one_of(TEXT, {"type": "object", "additionalProperties": TEXT}),
        "across": lambda: across(own=True),
    }
    if row.key == "environment":  # the last one is the only environment of itu_p681
        return words([*shape["words"], "rural_wooded"])
    if row.key == "elevation_deg":
        return {"enum": [int(found) for found in re.findall(r"\b\d\d\b", row.values)]}
    if row.key == "neighbours":
        return {"enum": [2, 4]}
    if row.key == "spacing_deg":
        return {"type": "number", "minimum": 0.1}
    if shape["form"] in special:
        return special[shape["form"]]()
    return base or {}


def _section(path: str, *, all_required: bool = False) -> Schema:
    """A table by its path."""
    found = rows(path)
    required = [key for key, row in found.items() if row.required or all_required]
    return table({key: _key(row) for key, row in found.items()}, required)


# --- values with several forms ----------------------------------------------------------------------------------------


def over_time(value: Schema) -> Schema:
    """A value, or one over time."""
    found = rows("over_time")
    forms = {key: row_form(row, value) for key, row in found.items()}
    forms["steps"] = forms["lines"] = pairs(quantity("time"), value)

    def variant(*keys: str, end: str | None = None, required: tuple[str, ...]) -> Schema:
        own = {key: described(found[key], forms[key]) for key in keys}
        if end is not None:
            own["end"] = {"const": end}
        return table(own, required)

    return one_of(
        value,
        variant("mean", "amplitude", "period", "phase", required=("mean", "amplitude", "period")),
        variant("steps", end="hold", required=("steps",)),
        variant("steps", "period", end="loop", required=("steps", "end", "period")),
        variant("steps", "at", end="stop", required=("steps", "end", "at")),
        variant("lines", required=("lines",)),
    )


def row_form(row: Row, value: Schema) -> Schema:
    """As a row says, with `value` for "a value"."""
    return value if row.shape is not None and row.shape["form"] == "value" else simple(row) or {}


def _random(value: Schema) -> Schema:
    found = rows("random")
    forms = {key: described(row, row_form(row, value)) for key, row in found.items()}
    forms["cdf"] = described(found["cdf"], pairs(value, quantity("fraction", 0, 1)))

    def drawn(distribution: str, *keys: str, required: tuple[str, ...] = ()) -> Schema:
        own = {key: forms[key] for key in ("mean", "max", *keys)}
        return table(own | {"distribution": {"const": distribution}}, ("mean", *required))

    return one_of(
        value,
        drawn("exponential"),
        drawn("pareto", "shape", required=("distribution",)),
        drawn("lognormal", "deviation", required=("distribution", "deviation")),
        table({"cdf": forms["cdf"]}, ["cdf"]),
        table({key: forms[key] for key in ("file", "decimal")}, ["file"]),
    )


def _mix(size: Schema) -> Schema:
    found = rows("packet")
    lists = {
        "sizes": described(found["sizes"], a_list(size)),
        "weights": described(found["weights"], a_list({"type": "number", "exclusiveMinimum": 0})),
    }
    ends = {key: described(found[key], size) for key in ("min", "max")}
    return one_of(size, table(lists, ["sizes"]), table(ends, ends))


def _buffer() -> Schema:
    return one_of(quantity("time"), {"const": "adaptive"})


def _arrivals() -> Schema:
    every = {"every": quantity("time"), "process": words(["poisson", "periodic"])}
    return one_of(
        table(every, ["every"]),
        table({"load": quantity("rate")}, ["load"]),
        table({"at": a_list(quantity("time"))}, ["at"]),
    )


def columns(*, delay: bool = True) -> Schema:
    """Columns of a trace in CSV."""
    place = one_of(TEXT, {"type": "integer", "minimum": 1})
    column = one_of(place, table({"column": place, "unit": TEXT}, ["column"]))
    both = a_list(place) | {"minItems": 2, "maxItems": 2}
    keys = {"t": one_of(column, both), "capacity": column, "delay": column, "loss": column}
    if not delay:  # links whose delays are computed
        del keys["delay"]
    return table(keys, ["capacity"])


def _per_terminal(one: Schema) -> Schema:
    return one_of(one, a_list(one), table({"min": one, "max": one}, ["min", "max"]))


def _rain() -> Schema:
    found = rows("link.beam.rain")
    forms = {key: _key(row) for key, row in found.items()}
    part = pairs(quantity("fraction", 0, 1), {"type": "number"})
    fitted = forms | {"exceeded": described(found["exceeded"], part)}
    return table(fitted) | {
        "oneOf": [{"required": ["exceeded"], "not": _either("m", "sigma")}, {"required": ["m", "sigma"]}]
    }


def _one_of_several() -> Schema:
    """One of the links of a network. A link that is like another one may lack all keys but its name."""
    found = rows("links")
    keys = {key: _key(row) for key, row in found.items()}
    keys["scheduler"] = described(found["scheduler"], _any_scheduler())
    keys["class"] = described(found["class"], a_list(_any_class()))
    complete = {"oneOf": [{"required": [key]} for key in ("rate", "trace", "beam")]}
    return table(keys, ["name"]) | {
        "allOf": [
            {"if": {"required": ["like"]}, "else": complete},
            *by_policy(of_core(), tuple(rows("scheduler")), _class_keys()),
        ]
    }


def _bond() -> Schema:
    """Several links behind one scheduler."""
    found = rows("bond")
    own = rows("bond.class")
    of_class = {key: _key(row) for key, row in own.items() if key not in ("match", "paths")}
    of_class["match"] = rules_of(own["match"])
    of_class["paths"] = described(own["paths"], one_of(words(_PATHS), a_list(TEXT)))
    of_policies = merged(keys for _, keys in of_core().values())
    keys = {key: _key(row) for key, row in found.items() if key not in ("scheduler", "class")}
    keys["scheduler"] = described(found["scheduler"], _any_scheduler())
    any_class: Schema = {"type": "object", "properties": of_class | of_policies, "required": ["name"]}
    keys["class"] = described(found["class"], a_list(any_class))
    return table(keys, ["name", "links", "scheduler", "class"]) | {
        "allOf": by_policy(of_core(), tuple(rows("scheduler")), of_class)
    }


def _constellation() -> Schema:
    """Satellites and stations, and the links between them."""
    found = rows("constellation")
    keys = {key: _key(row) for key, row in found.items()}
    keys["stations"] = described(found["stations"], a_list(_section("constellation.stations")))
    for kind in ("ground", "isl"):
        keys[kind] = described(found[kind], _kind_of_links(f"constellation.{kind}"))
    pattern = rows("walker")
    needed = [key for key, row in pattern.items() if row.required]
    return table(keys, [key for key, row in found.items() if row.required and key not in pattern]) | {
        "if": {"required": ["tle"]},
        "then": {"not": _either(*pattern)},
        "else": {"required": needed},
    }


def _kind_of_links(path: str) -> Schema:
    """What links of a constellation have in common."""
    computed = ("delay", "return_delay", "satellite", "beam")
    found = {key: row for key, row in rows(path).items() if key not in computed}
    keys = {key: _key(row) for key, row in found.items()}
    keys["columns"] = described(found["columns"], columns(delay=False))
    keys["scheduler"] = described(found["scheduler"], _any_scheduler())
    keys["class"] = described(found["class"], a_list(_any_class()))
    return table(keys, ["scheduler", "class"]) | {
        "oneOf": [{"required": [key]} for key in ("rate", "trace")],
        "allOf": by_policy(of_core(), tuple(rows("scheduler")), _class_keys()),
    }


def _either(*keys: str) -> Schema:
    return {"anyOf": [{"required": [key]} for key in keys]}


def _link() -> Schema:
    return _section("link") | {"oneOf": [{"required": [key]} for key in ("rate", "trace", "beam")]}


# --- policies ---------------------------------------------------------------------------------------------------------

_OF_PAPERS: Schema = {"type": "string", "pattern": f"^({'|'.join(IN_SIMULATOR)})$"}
"""Policies that only reproduce papers: a file may have them, but editors do not offer a pattern, nor their keys."""

Parameters = dict[str, tuple[dict[str, Schema], dict[str, Schema]]]


def of_core() -> Parameters:
    """The keys of each policy: of the scheduler, and of a class."""
    return {
        policy.name: (
            {param.name: of_policy(param) for param in policy.params},
            {param.name: of_policy(param) for param in policy.class_params},
        )
        for policy in policies()
    }


def _any_scheduler() -> Schema:
    row = rows("scheduler")["policy"]
    own = {"trusted": {"type": "boolean"}}
    brought = [table({"python": TEXT}, ["python"]), table({"c": TEXT} | own, ["c"])]
    all_keys = merged(keys for keys, _ in of_core().values())
    policy = described(row, one_of(words(of_core()), _OF_PAPERS, *brought))
    over = {"across": described(rows("scheduler")["across"], across(own=False))}
    return {"type": "object", "properties": {"policy": policy, **over, **all_keys}, "required": ["policy"]}


def across(*, own: bool) -> Schema:
    """The policy across users with its parameters; of a user's `own`, the parameters of their queue."""
    policies = of_core()
    if own:
        return table(merged(keys for _, keys in policies.values()))
    rules: list[Any] = [
        {
            "if": {"required": ["policy"], "properties": {"policy": {"const": name}}},
            "then": only(("policy", *params, *class_params), params | class_params),
        }
        for name, (params, class_params) in policies.items()
    ]
    all_keys = merged(keys for both in policies.values() for keys in both)
    return table({"policy": words(policies), **all_keys}, ["policy"]) | {"allOf": rules}


def _class_keys() -> dict[str, Schema]:
    found = rows("class")
    return {key: _key(row) for key, row in found.items()} | {"match": rules_of(found["match"])}


def _any_class() -> Schema:
    all_keys = merged(keys for _, keys in of_core().values())
    return {"type": "object", "properties": _class_keys() | all_keys, "required": ["name"]}


def by_policy(parameters: Parameters, scheduler_keys: tuple[str, ...], class_keys: dict[str, Schema]) -> list[Schema]:
    """What holds under each policy. Of a policy that the user brings along, nothing is known here."""
    rules = []
    for name, (params, class_params) in parameters.items():
        condition: dict[str, Any] = {
            "required": ["scheduler"],
            "properties": {"scheduler": {"required": ["policy"], "properties": {"policy": {"const": name}}}},
        }
        holds = {
            "scheduler": only((*scheduler_keys, *params), params),
            "class": {"items": only((*class_keys, *class_params), class_params)},
        }
        rules.append({"if": condition, "then": {"properties": holds}})
    return rules


def only(keys: tuple[str, ...], forms: dict[str, Schema]) -> Schema:
    """A table with no keys but these, of which some have these forms."""
    return {"propertyNames": {"enum": list(keys)}, "properties": forms}


# --- flows ------------------------------------------------------------------------------------------------------------


def _flow() -> Schema:
    shared = rows("flow")
    tables = {kind: rows(table_of(kind)) for kind in traffic_kinds()}
    forms = {kind: {key: _key(row) for key, row in found.items()} for kind, found in tables.items()}
    rules = [
        {
            "if": {"required": ["kind"], "properties": {"kind": {"const": kind}}},
            "then": only((*shared, *forms[kind]), forms[kind])
            | {"required": [key for key, row in found.items() if row.required]},
        }
        for kind, found in tables.items()
    ]
    all_keys = {key: _key(row) for key, row in shared.items()} | merged(forms.values())
    return table(all_keys, ["kind"]) | {"allOf": rules}
