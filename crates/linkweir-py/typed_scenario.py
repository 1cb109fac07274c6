# SPDX-License-Identifier: BSD-3-Clause
"""Writes `python/linkweir/scenarios/typed.py`, the tables of a scenario as mypy knows them: `make keys`."""

from __future__ import annotations

from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path

from linkweir import _native

TARGET = Path(__file__).parents[2] / "python" / "linkweir" / "scenarios" / "typed.py"
_UNITS = {
    "rate": "bps",
    "time": "s",
    "size": "bytes",
    "bits": "bits",
    "packets": "pkts",
    "fraction": "",
    "symbol rate": "baud",
}
_COUNTED = ("size", "packets")
_FORMS = {
    "number": "int",
    "real": "float",
    "flag": "bool",
    "text": "str",
    "words": "str",
    "packets": "int | Sizes | SizesBetween",
    "losses": "float | Cosine | Steps | Lines | LossBursts",
    "random_number": "float | Drawn | Measured",
    "quantity_or_word": "str",
    "policy": "str | dict[str, Any]",
    "playout": "str | list[str]",
    "rates": "list[float]",
    "arrivals": "dict[str, Any]",
    "columns": "dict[str, Any]",
    "rules": "list[dict[str, Any]]",
    "names": "list[str]",
    "code_point": "str | int",
    "across": "dict[str, Any]",
    "per_terminal": "float | list[float] | dict[str, float]",
}
_NAMES = {"": "Top", "class": "Class", "link.beam.rain": "Rain", "place": "Place"}
_HEAD = '''# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a checked scenario: numbers, with their units in the names of the keys.

Written by `make keys` from the declarations of the keys; `python/tests/test_declared.py` compares.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, final


@final
class Cosine(TypedDict):
    """mean x (1 + amplitude x cos(2 pi t / period + phase))."""

    mean: float
    amplitude: float
    period_s: float
    phase: float


@final
class Steps(TypedDict):
    """Each value lasts until the next time; `period_s` with the end loop, `at_s` with stop."""

    steps: list[tuple[float, float]]
    end: str
    period_s: float
    at_s: float


@final
class Lines(TypedDict):
    """Straight lines between points."""

    lines: list[tuple[float, float]]


@final
class LossBursts(TypedDict):
    """Losses that come in bursts."""

    mean: float
    burst_pkts: float


@final
class Drawn(TypedDict, total=False):
    """Amounts from a distribution with a mean."""

    mean: float
    distribution: str
    shape: float
    deviation: float
    max: float


@final
class Measured(TypedDict, total=False):
    """Amounts from a measured distribution."""

    cdf: list[tuple[float, float]]
    file: str
    decimal: str


@final
class Sizes(TypedDict):
    """Sizes of packets with their weights."""

    sizes: list[int]
    weights: list[float]


@final
class SizesBetween(TypedDict):
    """Sizes of packets from one to another."""

    min: int
    max: int
'''
_TAIL = '''
Flow = (
    {flows}
)
"""An entry of `flow`: which one, its kind says."""


@final
class Tables(TypedDict):
    """A scenario."""

    top: Top
    link: Link
    scheduler: Scheduler
    classes: list[Class]
    flows: list[Flow]
'''


def text() -> str:
    """The module."""
    tables = {table["path"]: table for table in _native.tables("scenario")}
    parts = [_HEAD]
    parts += [_table(path, tables[path]) for path in _nested("link", tables)]
    parts += [_table("", tables[""], [key for key in tables[""]["keys"] if "table" not in key["shape"]["form"]])]
    parts += [_table("scheduler", tables["scheduler"], params=True), _table("class", tables["class"], params=True)]
    kinds = _native.traffic_kinds()
    for kind in kinds:
        keys = [*tables["flow"]["keys"], *tables[kind["table"]]["keys"]]
        parts.append(_table(kind["table"], tables[kind["table"]], keys, kind=kind["name"]))
    flows = "\n    | ".join(_name(kind["table"]) for kind in kinds)
    return "\n".join([*parts, _TAIL.format(flows=flows)])


def _nested(path: str, tables: dict[str, _native._Table]) -> Iterator[str]:
    """A table after those inside it."""
    for key in tables[path]["keys"]:
        if key["shape"]["form"] == "table" and key["shape"]["table"] != "place":
            yield from _nested(key["shape"]["table"], tables)
        elif key["name"] == "from":
            yield "place"
    yield path


def _name(path: str) -> str:
    return _NAMES.get(path) or "".join(part.capitalize() for part in path.removeprefix("link.").split("."))


def _table(
    path: str,
    table: _native._Table,
    keys: list[_native._Key] | None = None,
    *,
    params: bool = False,
    kind: str | None = None,
) -> str:
    title = f"A flow of kind {kind}" if kind else f"The table `{path}`" if path else "The top level"
    fields: list[tuple[str, str]] = []
    for key in table["keys"] if keys is None else keys:
        if key["name"] == "kind" and kind is not None:
            fields.append(("kind", f'Literal["{kind}"]'))
        else:
            fields += _fields(key, path)
    if params:
        fields.append(("params", "dict[str, Any]"))
    if any(iskeyword(name) for name, _ in fields):
        body = "".join(f'        "{name}": {form},\n' for name, form in fields)
        return f'\n{_name(path)} = TypedDict(\n    "{_name(path)}",\n    {{\n{body}    }},\n)\n"""{title}."""\n'
    body = "".join(f"    {name}: {form}\n" for name, form in fields)
    return f'\n@final\nclass {_name(path)}(TypedDict):\n    """{title}."""\n\n{body}'


def _fields(key: _native._Key, path: str) -> Iterator[tuple[str, str]]:
    shape = key["shape"]
    form, noun = shape["form"], shape.get("noun", "")
    if form == "limit":
        yield named(key["name"], "packets"), "int | None"
        yield named(key["name"], "time"), "float | None"
        return
    if form == "class_name":
        yield key["name"], "Any"  # a string with one link; in a network also a table, or None
        return
    one = "int" if noun in _COUNTED else "float"
    forms = _FORMS | {
        "quantity": one,
        "over_time": "float | Cosine | Steps | Lines",
        "random": f"{one} | Drawn | Measured",
        "table": _name(shape.get("table", "")),
    }
    unit = {"packets": "size", "rates": "rate"}.get(form, noun if form in ("quantity", "over_time", "random") else "")
    # Keys of a channel's table depend on one another more than a default says.
    always = key["always"] and (not path.startswith("link.") or key["default"] == "required")
    yield named(key["name"], unit), forms.get(form, "Any") + ("" if always else " | None")


def named(name: str, noun: str) -> str:
    """A key with its unit at the end, as the native module calls it."""
    unit = _UNITS.get(noun, "")
    return name if not unit or name == unit or name.endswith(f"_{unit}") else f"{name}_{unit}"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
