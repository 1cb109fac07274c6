#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make quick`: format, lint, and the tests of what was changed since the main branch, in about a minute once built.

    python/quick.py [--since COMMIT] [--list]

It runs a part of `make check`; what no rule here covers is listed as not checked. --list only shows the commands.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
TESTS = "python/tests"
PYTEST = (sys.executable, "-m", "pytest", "--quiet", "-n", "2", "-m", "not slow and not long")
IN_PYTHON = ("bench/", "docs/", "kernel/", "lab/", "machines/", "oracle/", "python/", "release/", "scenarios/")

Command = tuple[str, ...]


def git(*words: str) -> list[str]:
    """The lines that a git command prints; none if it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()


def changed(since: str | None) -> list[str]:
    """The files that differ from `since`, or from where this branch left the main one; new ones too."""
    bases = [since] if since else [line for name in ("main", "origin/main") for line in git("merge-base", "HEAD", name)]
    return sorted({*git("diff", "--name-only", *(bases or ["HEAD"])[:1]), *git("ls-files", "-o", "--exclude-standard")})


def lints(paths: Iterable[str]) -> list[Command]:
    """What reads the code without running it."""
    found: list[Command] = []
    crates = crates_of(paths)
    if crates:
        packages = [word for crate in crates for word in ("-p", crate)]
        found += [
            ("cargo", "fmt", "--check"),
            ("cargo", "clippy", "--locked", "--quiet", "--all-targets", *packages, "--", "-D", "warnings"),
        ]
    if any(path.endswith((".py", ".pyi", ".toml")) and path.startswith((*IN_PYTHON, "pyproject")) for path in paths):
        found += [(f"{BIN}/ruff", "format", "--check", "."), (f"{BIN}/ruff", "check", "--quiet", ".")]
    if any(path.startswith(("python/linkweir/", "pyproject")) for path in paths):
        found += [(f"{BIN}/lint-imports", "--no-logo"), (f"{BIN}/mypy",)]
    return found


def crates_of(paths: Iterable[str]) -> list[str]:
    """The crates in which a file was changed."""
    return sorted({path.split("/")[1] for path in paths if re.match(r"crates/[^/]+/.*\.(rs|toml)$", path)})


def tests(paths: Sequence[str]) -> list[Command]:
    """The commands that test these files."""
    found: list[Command] = []
    if any(path.startswith(("core/src/", "core/include/", "core/tests/", "vectors/")) for path in paths):
        found.append(("make", "--quiet", "-C", "core", "quick"))
    for crate in crates_of(paths):
        own = [
            path.removeprefix(f"crates/{crate}/tests/") for path in paths if path.startswith(f"crates/{crate}/tests/")
        ]
        # tests in network namespaces need root and minutes
        names = sorted({path.split("/")[0].removesuffix(".rs") for path in own} - {"namespaces", "snapshots"})
        words = [word for name in names for word in ("--test", name)]
        found.append(("cargo", "test", "--locked", "--quiet", "-p", crate, "--lib", *words, "--", "--skip", "long::"))
    if any(path.startswith("oracle/") for path in paths):
        found.append((*PYTEST, "oracle"))
    files = sorted(test_files(paths))
    if files:
        found.append((*PYTEST, *files))
    if any(path.endswith(".md") for path in paths):
        found.append((*PYTEST, f"{TESTS}/test_docs.py", f"{TESTS}/test_readmes.py", "-k", "not commands_of_a_page"))
    return found


def test_files(paths: Iterable[str]) -> set[str]:
    """The tests that were changed, and those that name a changed module or, if there are none, its folder."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted((ROOT / TESTS).glob("test_*.py"))}
    found = {path for path in paths if path in texts}
    for path in paths:
        if not path.startswith("python/linkweir/") or not path.endswith(".py"):
            continue
        parts = path.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").split("/")
        for depth in range(len(parts), 1, -1):
            above, name = ".".join(parts[: depth - 1]), parts[depth - 1]
            said = re.compile(rf"\b{above}\.{name}\b|\bfrom {above} import [^\n]*\b{name}\b")
            naming = {test for test, text in texts.items() if said.search(text)}
            if naming:
                found |= naming
                break
    return found


def covered(path: str) -> bool:
    """Whether a rule above reads or runs this file."""
    return bool(lints([path]) or tests([path]))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", help="a commit; without it, where this branch left main")
    parser.add_argument("--list", action="store_true", help="only show the commands")
    asked = parser.parse_args()
    paths = changed(asked.since)
    begun, failed = time.monotonic(), []
    for command in (*lints(paths), *tests(paths)):
        print(" ".join(Path(word).name if word.startswith("/") else word for word in command), flush=True)
        if not asked.list and subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(command)
    for path in paths:
        if not covered(path):
            print(f"quick: NOT CHECKED: {path}")
    took = f"{len(paths)} files changed, {time.monotonic() - begun:.0f} s"
    print(f"quick: FAILED: {len(failed)} of the commands above; {took}" if failed else f"quick: all passed; {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
