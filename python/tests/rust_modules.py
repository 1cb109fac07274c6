# SPDX-License-Identifier: BSD-3-Clause
"""Which module of a Rust crate uses which other one, found in the text of its files.

A module is a file; `mod` blocks inside a file belong to it. Code that is built for tests only is left out, and so are
comments and strings. Declaring a module (`mod x;`) does not use it; naming something in it does.

Tests read the same crates many times, with one file changed: what depends on the text of a file alone is kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Module = tuple[str, ...]

# A raw string ends at a quote with as many hashes as it began with. A character has a second quote, a lifetime has not.
NO_CODE = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | \bb?r(?P<hashes>\#*)".*?"(?P=hashes) | "(?:\\.|[^"\\])*" | '(?:\\[^\n]+?|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
TEST_ONLY = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s*(?:\([^)]*\)\s*)?)?(?:mod|use|fn|impl|const)\b")
VISIBILITY = re.compile(r"\bpub\s*\([^)]*\)")
DECLARED = re.compile(r"\bmod\s+(\w+)\s*;")
BRACE = re.compile(r"[{}]")
BLOCK = re.compile(r"\bmod\s+(\w+)\s*\{")
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:$.])(?:::)?([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+)")


@dataclass(frozen=True)
class Edge:
    """One use: the path names something in module `to`, or in another crate where that is None."""

    user: Module
    path: str
    to: Module | None


@functools.cache
def blanked(text: str) -> str:
    """Strings and comments become blanks, so that no brace or path in them counts."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def end_of_block(text: str, opened: int) -> int:
    """Where the block ends whose `{` is at `opened`."""
    depth = 0
    for brace in BRACE.finditer(text, opened):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    raise ValueError("a block has no end")


@functools.cache
def without_tests(text: str) -> str:
    while found := TEST_ONLY.search(text):
        semicolon, brace = (
            at if at >= 0 else len(text) for at in (text.find(";", found.end()), text.find("{", found.end()))
        )
        # `use a::{b, c};` has braces before its end.
        is_block = brace < semicolon and not found.group().endswith("use")
        end = end_of_block(text, brace) if is_block else semicolon + 1
        text = text[: found.start()] + re.sub(r"[^\n]", " ", text[found.start() : end]) + text[end:]
    return text


def blocks(text: str, inside: Module = ()) -> Iterator[tuple[Module, str]]:
    """The text of a file without its inline modules, and that of each of them with its names from the file down."""
    rest, at = "", 0
    while found := BLOCK.search(text, at):
        end = end_of_block(text, found.end() - 1)
        yield from blocks(text[found.end() : end - 1], (*inside, found.group(1)))
        rest += text[at : found.start()]
        at = end
    yield inside, rest + text[at:]


def flattened(tree: str) -> Iterator[str]:
    """The paths of a `use`: `a::{b, c::{self, d}}` names a::b, a::c and a::c::d."""
    head, brace, inner = tree.partition("{")
    if not brace:
        path = re.sub(r"\s+as\s+\w+|::\s*\*|\s", "", tree).removeprefix("::")
        if path:
            yield path.removesuffix("::self")
        return
    depth, part = 0, ""
    for char in inner[: inner.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield from flattened(head + part.strip()) if part.strip() else ()
            part = ""
        else:
            part += char


@functools.cache
def named_in(text: str) -> tuple[tuple[Module, tuple[str, ...]], ...]:
    """The paths that a file names, with the inline module in which it names them."""
    return tuple((inside, tuple(_paths(part))) for inside, part in blocks(text))


def _paths(part: str) -> Iterator[str]:
    for tree in USE.findall(part):
        yield from flattened(tree)
    for path in PATH.findall(USE.sub("", part)):
        yield re.sub(r"\s", "", path)


def module_of(file: Path, sources: Path) -> Module:
    """The names from the crate down. A program beside a library is a crate of its own, here a module `main`."""
    parts = file.relative_to(sources).with_suffix("").parts
    roots = ("mod", "lib") if (sources / "lib.rs").exists() else ("mod", "lib", "main")
    return parts[:-1] if parts[-1] in roots else parts


def edges(sources: Path, with_tests: bool = False) -> set[Edge]:
    """All uses in the files of a crate's folder `src`; `with_tests`: also in code that is built for tests only."""
    texts = {module_of(file, sources): blanked(file.read_text()) for file in sorted(sources.rglob("*.rs"))}
    found: set[Edge] = set()
    for module, text in texts.items():
        text = VISIBILITY.sub("pub", text if with_tests else without_tests(text))
        children = {name for name in DECLARED.findall(text) if (*module, name) in texts}
        for inside, named in named_in(text):
            for path in named:
                first, *rest = path.split("::")
                base = (*module, *inside)
                if first == "crate":
                    target: Module = tuple(rest)
                elif first in ("self", "super"):
                    while first == "super":
                        base, first, rest = base[:-1], (rest or [""])[0], [*rest[1:]]
                    target = (*base, *([first] if first not in ("", "self") else []), *rest)
                elif first in children and not inside:
                    target = (*module, first, *rest)
                else:
                    found.add(Edge(module, path, None))
                    continue
                while target not in texts:
                    target = target[:-1]
                if target != module:
                    found.add(Edge(module, path, target))
    return found


def circles(found: set[Edge]) -> list[list[Module]]:
    """Sets of modules each of which uses the others, if only through one another."""
    uses: dict[Module, set[Module]] = {}
    for edge in found:
        if edge.to is not None:
            uses.setdefault(edge.user, set()).add(edge.to)

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        waiting = [start]
        while waiting:
            for to in uses.get(waiting.pop(), ()):
                if to not in seen:
                    seen.add(to)
                    waiting.append(to)
        return seen

    reach = {module: reached(module) for module in uses}
    rings = {
        tuple(sorted(other for other in reach[module] if module in reach.get(other, ())))
        for module in uses
        if module in reach[module]
    }
    return [list(ring) for ring in sorted(rings)]
