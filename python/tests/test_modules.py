# SPDX-License-Identifier: BSD-3-Clause
"""Modules of the Rust crates use one another in one direction, and only as the table below lets them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import REPOSITORY
from rust_modules import Edge, circles, edges, flattened

# What each part of a crate may use, besides itself and libraries that are not named here. A part is a file or a folder
# of `src`. A name with :: is a module of another crate of ours, and the name of a crate is all of it. `toml` is the
# parser. Parts without a row have ANY's. What linkweir-plane may use of other packages and of the standard library is
# held by its `tests/boundaries.rs` and `clippy.toml`.
ANY = "*"
VALUES = {"linkweir_config::signal"}
READER = {
    f"linkweir_config::{name}"
    for name in (
        "Fault",
        "across",
        "fault",
        "keys",
        "limits",
        "link",
        "matching",
        "parameters",
        "placeholders",
        "queue",
        "reader",
        "recording",
        "signal",
        "table",
        "trace",
        "units",
        "values",
    )
}
MAY_USE: dict[str, dict[str, set[str]]] = {
    "linkweir-core": {
        "ffi": set(),
        "info": {"ffi"},
        "policy": {"ffi"},
        "distribution": set(),
        ANY: {ANY},
    },
    "linkweir-config": {
        "fault": set(),
        "limits": {"linkweir_core"},
        "signal": set(),
        "spelling": set(),
        "written": {"signal", "units"},
        "units": {"fault"},
        ANY: {ANY},
    },
    "linkweir-user": {
        "watched": {"linkweir_core"},
        "build": set(),
        ANY: {ANY},
    },
    "linkweir-py": {
        "panics": {"linkweir_core"},
        "errors": {"linkweir_sim"},
        ANY: {ANY},
    },
    "linkweir-sim": {
        # Models: they know neither how a scenario is written nor the engine.
        "random": set(),
        "table": set(),
        "tcp": set(),
        "codec": set(),
        "satellite": {"random"},
        "experiment": {"satellite", "tcp", "linkweir_core"} | VALUES,
        "network": {"experiment"},
        "traffic": {"experiment", "random"} | VALUES,
        "policies": {"experiment", "satellite", "linkweir_core"},
        "metrics": {"experiment", "satellite", "table", "tcp", "linkweir_core"},
        # The parser knows what it makes, and the names of the policies; not who runs it.
        "scenario": {
            "codec",
            "experiment",
            "network",
            "random",
            "satellite",
            "tcp",
            "policies",
            "linkweir_core",
            "linkweir_config::bond",
            "toml",
        }
        | READER,
        # The engine runs what it is given, however it was written.
        "engine": {
            "experiment",
            "metrics",
            "network",
            "policies",
            "random",
            "satellite",
            "table",
            "tcp",
            "traffic",
            "linkweir_core",
        }
        | VALUES,
        "lib": {ANY},
    },
    "linkweir-link": {
        "inside": set(),
        "packet": set(),
        "error": {"linkweir_sim"},
        "link": {"error", "inside", "packet", "linkweir_sim"},
        ANY: {ANY},
    },
    "linkweir-panels": {
        "words": set(),
        "outline": set(),
        "panel": set(),
        "rows": {"linkweir_sim"},
        "e_model": {"linkweir_sim"},
        "json": {"panel"},
        "apart": {"panel"},
        "reservation": {"linkweir_core", "linkweir_sim"},
        "distribution": {"panel", "rows"},
        "calls": {"e_model", "panel", "rows", "words", "linkweir_sim"},
        ANY: {ANY},
    },
    "linkweir-web": {
        "parts": set(),
        "files": {"linkweir_sim"},
        "request": {"files", "parts", "linkweir_sim"},
        "answer": {"parts", "request", "linkweir_panels", "linkweir_sim"},
        ANY: {ANY},
    },
    "linkweir-plane": {
        # Packets as bytes: the gateway's `linux` uses nothing else of the plane.
        "bytes": set(),
        "routing": set(),
        "tos": set(),
        "waits": set(),
        "starved": {"linkweir_core", "reservation"},
        "classify": {"bytes", "linkweir_config::matching", "linkweir_core"},
        "mss": {"bytes"},
        "pace": VALUES,
        ANY: {ANY},
    },
    "linkweir-gateway": {
        "tunnel": set(),
        # The format of the files that it writes.
        "linux": {"linkweir_plane::bytes", "linkweir_config::recording"},
        "config": {"tunnel", "linkweir_plane", "linkweir_core", "linkweir_config", "toml"},
        "show": {"linux", "config", "linkweir_plane", "linkweir_core", "linkweir_config"},
        "run": {"tunnel", "linux", "config", "show", "linkweir_plane", "linkweir_core", "linkweir_config"},
        "lib": set(),
        "arguments": {"linkweir_gateway", "linkweir_config"},
        "main": {"arguments", "linkweir_gateway", "linkweir_config"},
    },
}
# Crates whose table also holds for code that is built for tests only.
TESTS_TOO = ("linkweir-plane", "linkweir-gateway")
# Crates that the table speaks of: what else a file uses is its own affair.
OURS = (
    "linkweir_core",
    "linkweir_config",
    "linkweir_link",
    "linkweir_panels",
    "linkweir_sim",
    "linkweir_py",
    "linkweir_plane",
    "linkweir_gateway",
    "linkweir_user",
    "toml",
)
# Crates of which the table names single modules.
IN_PARTS = ("linkweir_config", "linkweir_plane")


def sources(crate: str) -> Path:
    return REPOSITORY / "crates" / crate / "src"


def shown(module: tuple[str, ...] | None) -> str:
    return "::".join(module) if module else "lib"


def rings(found: set[Edge]) -> list[str]:
    """Each circle as one line, with a use for every arrow in it."""
    lines = []
    for ring in circles(found):
        arrows = sorted({f"{shown(e.user)} uses {e.path}" for e in found if e.user in ring and e.to in ring})
        lines.append(f"circle of {', '.join(map(shown, ring))}: " + "; ".join(arrows))
    return lines


def used(edge: Edge) -> str | None:
    """The name under which the table knows what is used; none if it does not speak of it."""
    if edge.to is not None:
        return edge.to[0] if edge.to else "lib"
    first, *rest = edge.path.split("::")
    if first not in OURS:
        return None
    return f"{first}::{rest[0]}" if first in IN_PARTS and rest else first


def forbidden(found: set[Edge], table: dict[str, set[str]]) -> list[str]:
    lines = []
    for edge in sorted(found, key=lambda e: (e.user, e.path)):
        user = edge.user[0] if edge.user else "lib"
        allowed = table.get(user, table.get(ANY))
        to = used(edge)
        if allowed is None:
            lines.append(f"{shown(edge.user)}: the table has no row {user}")
        elif to is not None and to != user and not {ANY, to, to.split("::")[0]} & allowed:
            lines.append(
                f"{shown(edge.user)} uses {edge.path}; {user} may use {', '.join(sorted(allowed)) or 'nothing'}"
            )
    return lines


def uses_of(crate: str, folder: Path) -> set[Edge]:
    """All uses in a folder that the crate's table is for."""
    return edges(folder, with_tests=crate in TESTS_TOO)


@pytest.mark.parametrize("crate", MAY_USE)
def test_no_modules_use_one_another_in_a_circle(crate: str) -> None:
    found = edges(sources(crate))
    assert len(found) > 5
    assert rings(found) == []


@pytest.mark.parametrize("crate", MAY_USE)
def test_modules_use_only_what_they_may(crate: str) -> None:
    assert forbidden(uses_of(crate, sources(crate)), MAY_USE[crate]) == []


def two_ways(table: dict[str, set[str]]) -> list[str]:
    """Circles of parts that a table would let use one another; a row that lets a part use anything is left out."""
    return rings({Edge((part,), to, (to,)) for part, allowed in table.items() for to in allowed & table.keys() - {ANY}})


@pytest.mark.parametrize("crate", MAY_USE)
def test_the_table_lets_parts_use_one_another_in_one_direction_only(crate: str) -> None:
    table = MAY_USE[crate]
    assert two_ways(table) == []
    first, second = [part for part in table if part != ANY][:2]
    planted = {first: {second}, second: {first}}
    assert two_ways({part: allowed | planted.get(part, set()) for part, allowed in table.items()}) != []


def test_the_table_has_no_row_without_a_part() -> None:
    for crate, table in MAY_USE.items():
        parts = {path.stem for path in sources(crate).iterdir()} | {ANY}
        assert table.keys() - parts == set(), crate


@pytest.mark.parametrize("crate", MAY_USE)
def test_a_planted_circle_is_found(crate: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sources(crate), tmp_path / "src"))
    edge = next(e for e in sorted(edges(copy), key=str) if e.user and e.to and e.user[0] != e.to[0])
    assert edge.to is not None
    target = copy.joinpath(*edge.to)
    file = target.with_suffix(".rs") if target.with_suffix(".rs").exists() else target / "mod.rs"
    file.write_text(file.read_text() + f"\nfn planted(_: crate::{shown(edge.user)}::Planted) {{}}\n")
    (ring,) = rings(edges(copy))
    assert f"{shown(edge.to)} uses crate::{shown(edge.user)}::Planted" in ring


@pytest.mark.parametrize(
    ("crate", "file", "text", "part"),
    [
        ("linkweir-sim", "satellite/fading.rs", "use crate::scenario::Fault;", "satellite"),
        ("linkweir-sim", "satellite/mod.rs", "use linkweir_config::reader::Section;", "satellite"),
        (
            "linkweir-sim",
            "satellite/rain.rs",
            "use {super::super::scenario::{self, Fault as F}, std::fmt};",
            "satellite",
        ),
        ("linkweir-sim", "tcp/cubic.rs", "fn planted() { let _ = crate::engine::run; }", "tcp"),
        ("linkweir-sim", "policies/means.rs", "mod inner { use super::super::super::scenario::Scenario; }", "policies"),
        ("linkweir-sim", "traffic/sizes.rs", "use toml::Value;", "traffic"),
        ("linkweir-sim", "engine/line.rs", "type Planted = linkweir_config::units::Kind;", "engine"),
        ("linkweir-plane", "bytes/packet.rs", "use crate::link::Link;", "bytes"),
        ("linkweir-plane", "bytes/vnet.rs", "type Planted = linkweir_core::Mux;", "bytes"),
        ("linkweir-plane", "tos.rs", "#[cfg(test)]\nmod planted {\n    use crate::link::Link;\n}", "tos"),
        ("linkweir-gateway", "tunnel/admission.rs", "fn planted() { let _ = crate::config::load; }", "tunnel"),
        ("linkweir-gateway", "linux/tun.rs", "use linkweir_plane::link::Link;", "linux"),
        ("linkweir-gateway", "linux/command.rs", "use linkweir_config::units::Kind;", "linux"),
        ("linkweir-gateway", "config/names.rs", "use crate::show::control;", "config"),
        ("linkweir-gateway", "show/page.rs", "use crate::run::Gateway;", "show"),
        ("linkweir-gateway", "lib.rs", "pub use run::Gateway;", "lib"),
        ("linkweir-gateway", "main.rs", "use linkweir_plane::link::Link;", "main"),
    ],
)
def test_a_planted_forbidden_use_is_found(crate: str, file: str, text: str, part: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sources(crate), tmp_path / "src"))
    with (copy / file).open("a") as end:
        end.write(f"\n{text}\n")
    lines = forbidden(uses_of(crate, copy), MAY_USE[crate])
    assert lines
    assert all(f"; {part} may use " in line for line in lines)


@pytest.mark.parametrize(
    ("crate", "file", "text"),
    [
        ("linkweir-plane", "bytes/vnet.rs", "use crate::bytes::packet;"),
        ("linkweir-gateway", "linux/tun.rs", "use linkweir_plane::bytes::packet;"),
        ("linkweir-gateway", "config/names.rs", "use {linkweir_plane::link::Link, crate::tunnel::seal};"),
        ("linkweir-gateway", "show/page.rs", "// crate::run is not used"),
    ],
)
def test_a_planted_use_that_is_allowed_is_not_found(crate: str, file: str, text: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sources(crate), tmp_path / "src"))
    with (copy / file).open("a") as end:
        end.write(f"\n{text}\n")
    assert forbidden(uses_of(crate, copy), MAY_USE[crate]) == []


def test_a_part_that_the_table_does_not_name_is_found(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sources("linkweir-sim"), tmp_path / "src"))
    (copy / "planted.rs").write_text("use crate::random::Random;\n")
    assert forbidden(edges(copy), MAY_USE["linkweir-sim"]) == ["planted: the table has no row planted"]


def test_uses_are_read_as_the_compiler_reads_them(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\npub mod b;\nuse a::{One, c::Two};\n",
        "a/mod.rs": 'pub mod c;\n// use crate::b;\nconst T: &str = "use crate::b; {";\npub(in crate::b) struct One;\n',
        "a/c.rs": (
            "use super::One;\n#[cfg(test)]\nmod tests {\n    use crate::b::Three;\n    const Q: char = '\"';\n}\n"
        ),
        "b.rs": (
            "fn f<'a>(x: &'a str, y: char) -> bool { y == '{' && crate::a::c::two(x) }\n"
            "mod m { use super::super::a; use self::n; }\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {(shown(e.user), shown(e.to)) for e in edges(tmp_path) if e.to is not None}
    assert found == {("lib", "a"), ("lib", "a::c"), ("a::c", "a"), ("b", "a::c"), ("b", "a")}
    assert list(flattened("a::{b, c::{self, d as e}, f::*}")) == ["a::b", "a::c", "a::c::d", "a::f"]
    assert list(flattened("{super::x::{self, Y}, std::fmt}")) == ["super::x", "super::x::Y", "std::fmt"]
