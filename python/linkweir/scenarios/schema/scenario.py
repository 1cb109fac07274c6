# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from linkweir.scenarios.policy import IN_SIMULATOR, policies
from linkweir.scenarios.schema.matching import rules_of
from linkweir.scenarios.schema.pages import Row, rows
from linkweir.scenarios.schema.values import (
    TEXT,
    Schema,
    a_list,
    described,
    merged,
    number,
    of_policy,
    one_of,
    pairs,
    quantity,
    simple,
    table,
    words,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PAGE = "scenarios"
_OVER_TCP = ("transfers", "requests", "web", "video")
_BOUND = re.compile(r", or (?:over time|random|a mix|in bursts|a list of them|\[.*\]\(.*\))")


def scenario() -> Schema:
    """The schema of a scenario file."""
    top = {key: _key(row) for key, row in rows(_PAGE, "Top level").items()}
    top["link"] = described(rows(_PAGE, "Top level")["link"], _link())
    top["scheduler"] = described(rows(_PAGE, "Top level")["scheduler"], _any_scheduler())
    top["class"] = described(rows(_PAGE, "Top level")["class"], a_list(_any_class()))
    top["flow"] = described(rows(_PAGE, "Top level")["flow"], a_list(_flow()))
    required = [key for key, row in rows(_PAGE, "Top level").items() if row.required]
    return {
        "$schema": DIALECT,
        "title": "Linkweir scenario",
        "description": "What to simulate; see docs/reference/scenarios.md.",
        **table(top, required),
        "allOf": by_policy(_of_policies(), _class_keys()),
    }


def _key(row: Row) -> Schema:
    """A key of a table by what its row says."""
    return described(row, _form(row))


def _form(row: Row) -> Schema:
    cell = row.values
    base = simple(_BOUND.sub("", cell.split(", adaptive")[0]), row.key, row.default)
    inner: dict[str, Callable[[], Schema]] = {
        "columns": columns,
        "reorder": lambda: _inner("Losses in bursts, and reordering", "reorder."),
        "satellite": lambda: _section("[link.satellite]"),
        "constellation": lambda: _section("[link.satellite.constellation]"),
        "beam": lambda: _section("[link.beam]"),
        "rain": _rain,
        "arrivals": _arrivals,
        "clear_sky_esn0_db": lambda: _clear_sky(base),
        "elevation_deg": lambda: {"enum": [int(found) for found in re.findall(r"\b\d\d\b", cell)]},
        "from": _place,
        "to": _place,
        "ladder": lambda: a_list(quantity("rate")),
        "playout": lambda: one_of(_buffer(), a_list(_buffer())),
        "class": lambda: TEXT,
        "link": lambda: TEXT,
    }
    if row.key == "environment":  # the last one is the only environment of itu_p681
        return words([*cell.split(", "), "rural_wooded"])
    if base is None or row.key == "clear_sky_esn0_db":
        return inner[row.key]() if row.key in inner else {}
    if "playout" in row.key:
        return inner["playout"]()
    if "over time" in cell:
        base = over_time(base)
    if "random" in cell:
        return _random(base)
    if "a mix" in cell:
        return _mix(base)
    if "in bursts" in cell:
        return one_of(base, _inner("Losses in bursts, and reordering", "loss.", all_required=True))
    return base


def _section(heading: str) -> Schema:
    """A table of the page under its heading."""
    found = rows(_PAGE, heading)
    return table({key: _key(row) for key, row in found.items()}, [key for key, row in found.items() if row.required])


def _inner(heading: str, prefix: str, *, all_required: bool = False) -> Schema:
    """An inline table, whose keys the page writes with a prefix."""
    found = {key.removeprefix(prefix): row for key, row in rows(_PAGE, heading).items() if key.startswith(prefix)}
    required = [key for key, row in found.items() if row.required or all_required]
    return table({key: _key(row) for key, row in found.items()}, required)


# --- values with several forms ----------------------------------------------------------------------------------------


def over_time(value: Schema) -> Schema:
    """A value, or one over time."""
    found = rows(_PAGE, "Values over time")
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
    return value if row.values == "a value" else simple(row.values, row.key, row.default) or {}


def _random(value: Schema) -> Schema:
    found = rows(_PAGE, "Random amounts")
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
    found = rows(_PAGE, "Packet sizes")
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


def columns() -> Schema:
    """Columns of a trace in CSV."""
    place = one_of(TEXT, {"type": "integer", "minimum": 1})
    column = one_of(place, table({"column": place, "unit": TEXT}, ["column"]))
    both = a_list(place) | {"minItems": 2, "maxItems": 2}
    return table({"t": one_of(column, both), "capacity": column, "delay": column, "loss": column}, ["capacity"])


def _clear_sky(one: Schema | None) -> Schema:
    db = one or number(-30, 60, whole=False)
    return one_of(db, a_list(db), table({"min": db, "max": db}, ["min", "max"]))


def _place() -> Schema:
    ends = {"lat_deg": number(-90, 90, whole=False), "lon_deg": number(-180, 180, whole=False)}
    return table(ends, ends)


def _rain() -> Schema:
    found = rows(_PAGE, "[link.beam.rain]")
    forms = {key: _key(row) for key, row in found.items()}
    part = pairs(quantity("fraction", 0, 1), {"type": "number"})
    fitted = forms | {"exceeded": described(found["exceeded"], part)}
    return table(fitted) | {
        "oneOf": [{"required": ["exceeded"], "not": _either("m", "sigma")}, {"required": ["m", "sigma"]}]
    }


def _either(*keys: str) -> Schema:
    return {"anyOf": [{"required": [key]} for key in keys]}


def _link() -> Schema:
    return _section("[link]") | {"oneOf": [{"required": [key]} for key in ("rate", "trace", "beam")]}


# --- policies ---------------------------------------------------------------------------------------------------------

_SIMULATOR: dict[str, tuple[dict[str, Schema], dict[str, Schema]]] = {
    "tauran_codes": ({"timeout": quantity("time")}, {}),
    "ubmt_like": ({"target": quantity("time")}, {"target": quantity("time"), "target_rate": quantity("rate")}),
}
"""Keys of the policies that only the simulator has: of the scheduler, and of a class."""

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


def _of_policies() -> Parameters:
    return of_core() | {name: _SIMULATOR.get(name, ({}, {})) for name in IN_SIMULATOR}


def _any_scheduler() -> Schema:
    row = rows(_PAGE, "[scheduler]")["policy"]
    own = {"trusted": {"type": "boolean"}}
    brought = [table({"python": TEXT}, ["python"]), table({"c": TEXT} | own, ["c"])]
    all_keys = merged(keys for keys, _ in _of_policies().values())
    policy = described(row, one_of(words(_of_policies()), *brought))
    return {"type": "object", "properties": {"policy": policy, **all_keys}, "required": ["policy"]}


def _class_keys() -> dict[str, Schema]:
    found = rows(_PAGE, "[[class]]")
    return {key: _key(row) for key, row in found.items()} | {"match": rules_of(found["match"])}


def _any_class() -> Schema:
    all_keys = merged(keys for _, keys in _of_policies().values())
    return {"type": "object", "properties": _class_keys() | all_keys, "required": ["name"]}


def by_policy(parameters: Parameters, class_keys: dict[str, Schema]) -> list[Schema]:
    """What holds under each policy. Of a policy that the user brings along, nothing is known here."""
    rules = []
    for name, (params, class_params) in parameters.items():
        condition: dict[str, Any] = {
            "required": ["scheduler"],
            "properties": {"scheduler": {"required": ["policy"], "properties": {"policy": {"const": name}}}},
        }
        holds = {
            "scheduler": only(("policy", *params), params),
            "class": {"items": only((*class_keys, *class_params), class_params)},
        }
        rules.append({"if": condition, "then": {"properties": holds}})
    return rules


def only(keys: tuple[str, ...], forms: dict[str, Schema]) -> Schema:
    """A table with no keys but these, of which some have these forms."""
    return {"propertyNames": {"enum": list(keys)}, "properties": forms}


# --- flows ------------------------------------------------------------------------------------------------------------


def _flow() -> Schema:
    shared = rows(_PAGE, "[[flow]]")
    kinds = shared["kind"].values.split(", ")
    tables = {kind: rows(_PAGE, f'kind = "{kind}"') for kind in kinds}
    for kind in _OVER_TCP:
        tables[kind] = {key: row for key, row in tables["tcp"].items() if key != "bytes"} | tables[kind]
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
    return table(all_keys, ["kind", "class"]) | {"allOf": rules}
