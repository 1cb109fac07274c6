# SPDX-License-Identifier: BSD-3-Clause
"""The names that docs/reference/stability.md promises to keep, as they are now.

`make names` writes them into stable_names.json, which test_stable_names.py compares with the present ones. It refuses
to leave a name out that was there, unless the changes not yet released in CHANGELOG.md name it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import linkweir
from linkweir.commands import cli
from linkweir.scenarios.schema import KINDS

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_suffix(".json")
METRICS = "crates/linkweir-gateway/src/show/metrics.rs"
GROWS = "policies"
"""May have more than the file: `make policy` adds one and touches no other file."""


def names() -> dict[str, list[str]]:
    """All names, by what they are."""
    return {
        "python": sorted(_python()),
        "commands": sorted(_commands()),
        "gateway commands": sorted(_gateway_commands()),
        "scenario keys": sorted(set(_keys(KINDS["scenario"](), "", "scheduler", "class"))),
        "gateway keys": sorted(set(_keys(KINDS["gateway"](), "", "scheduler", "class", "across"))),
        "policies": sorted(_policies()),
        "tables": sorted(_tables()),
        "run directory": sorted(_directory()),
        "metrics": sorted(set(re.findall(r'"(linkweir_[a-z0-9_]+)"', _text(METRICS)))),
        "contract": list(_contract()),
        "netlink": list(_netlink()),
    }


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _python() -> Iterator[str]:
    for name in linkweir.__all__:
        found = getattr(linkweir, name)
        if inspect.isclass(found):
            yield f"{name}"
            if not issubclass(found, BaseException):
                members = {*dir(found), *getattr(found, "__annotations__", {})}
                yield from (f"{name}.{member}" for member in members if not member.startswith("_"))
        elif inspect.ismodule(found):
            public = getattr(found, "__all__", None) or [key for key in vars(found) if not key.startswith("_")]
            own = (key for key in public if getattr(getattr(found, key), "__module__", None) == found.__name__)
            yield from (f"{name}.{key}" for key in own)
        elif callable(found):
            yield from (f"{name}({parameter})" for parameter in inspect.signature(found).parameters)
        else:
            yield name
    yield from (f"sweeps.{name}" for name in linkweir.sweeps.__all__)


def _commands() -> Iterator[str]:
    sys.path.insert(0, str(ROOT / "python"))
    import manual

    for words, command in manual.commands():
        yield words
        for param in command.params:
            if param.param_type_name == "option" and not param.hidden:
                yield from (f"{words} {option}" for option in param.opts if option.startswith("--"))
    yield from (f"exit code {code}" for code in (0, cli.FAILED, cli.BAD_INPUT))


def _gateway_commands() -> Iterator[str]:
    page = _text("crates/linkweir-gateway/manual/linkweir-gateway.8")
    for part in page.split(".SS ")[1:]:
        words = part.split("\n", 1)[0]
        yield words
        yield from (f"{words} --{option}".replace("\\-", "-") for option in re.findall(r"\\-\\-([a-z\\-]+)\\fR", part))


def _keys(schema: Any, path: str, *policies: str) -> Iterator[str]:
    """Keys of all tables of a schema; parameters of policies, which tables of these names have too, are elsewhere."""
    for key, inner in schema.get("properties", {}).items() if isinstance(schema, dict) else ():
        if path.strip(".").split(".")[-1] in policies and f"{path}{key}" not in _OWN:
            continue
        yield f"{path}{key}"
        yield from _keys(inner, f"{path}{key}.", *policies)
    for part in ("items", "anyOf"):
        inner = schema.get(part, []) if isinstance(schema, dict) else []
        for one in inner if isinstance(inner, list) else [inner]:
            yield from _keys(one, path, *policies)


_OWN = {
    *("scheduler.policy", "class.name", "class.count", "class.limit", "class.limit_bytes", "class.match"),
    *("link.across.policy",),
}


def _policies() -> Iterator[str]:
    for policy in linkweir.policies():
        yield policy.name
        yield from (f"{policy.name} scheduler.{param.name}" for param in policy.params)
        yield from (f"{policy.name} class.{param.name}" for param in policy.class_params)
        yield from (f"{policy.name} levels.{stat.column}" for stat in policy.stats)


def _tables() -> Iterator[str]:
    """Columns of all tables with their types; every one of these runs has some that the others have not."""
    for file, keys in (("geo", {"log": "packets"}), ("geo-beam-rain", {}), ("leo-voice", {}), ("lte-home", {})):
        given = {"duration": "6s", "warmup": "0s", "interval": "1s"} | keys
        text = re.sub(r"(?m)^(duration|warmup|interval|log) = .*\n", "", (ROOT / f"scenarios/{file}.toml").read_text())
        text = "".join(f'{key} = "{value}"\n' for key, value in given.items()) + text
        result = linkweir.run(linkweir.Scenario.parse(text, path=ROOT / f"scenarios/{file}.toml"))
        for name, table in result.tables.items():
            if name != "levels":
                yield from (f"{name}.{field.name}: {field.type}" for field in table.schema)


def _directory() -> Iterator[str]:
    from linkweir.directories import provenance

    files = ("PROVENANCE", "SCENARIO", "SUMMARY", "REPORT", "RESULTS", "INPUTS")
    yield from (getattr(provenance, name) for name in files)
    yield f"format {provenance._FORMAT}"


def _contract() -> Iterator[str]:
    """Constants and members in their order, which are the binary interface of a policy in C."""
    text = re.sub(r"/\*.*?\*/", "", _text("core/include/linkweir/policy.h"), flags=re.DOTALL)
    for line in text.splitlines():
        if line.startswith("#define LW_") and not line.endswith("_H"):
            yield " ".join(line.split()[1:])
    for kind, name, body in re.findall(r"^(struct|enum) (\w+) \{(.*?)^\}", text, flags=re.DOTALL | re.MULTILINE):
        members = re.split(r"[;,]\s*\n" if kind == "struct" else r",", body)
        yield from (f"{kind} {name}: {' '.join(member.split()).rstrip(';')}" for member in members if member.strip())


def _netlink() -> Iterator[str]:
    """Attributes with their numbers."""
    text = re.sub(r"/\*.*?\*/", "", _text("kernel/linkweir_netlink.h"), flags=re.DOTALL)
    for body in re.findall(r"enum \w*\s*\{(.*?)\}", text, flags=re.DOTALL):
        for number, name in enumerate(word.strip() for word in body.split(",") if word.strip()):
            yield f"{name} {number}"


def missing(kept: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    """Names that were kept and are gone."""
    return [name for group, all_names in kept.items() for name in all_names if name not in set(now.get(group, []))]


def unannounced(gone: list[str]) -> list[str]:
    """Those of them that the changes not yet released do not name."""
    text = re.split(r"^## ", _text("CHANGELOG.md"), flags=re.MULTILINE)[1]
    return [name for name in gone if re.split(r"[ .(:]+", name.rstrip(")"))[-1] not in text and name not in text]


def main() -> int:
    """Writes the file."""
    now = names()
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    silent = unannounced(missing(kept, now))
    if silent:
        print("CHANGELOG.md does not say under Not released what became of: " + "; ".join(silent), file=sys.stderr)
        return 1
    FILE.write_text(json.dumps(now, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
