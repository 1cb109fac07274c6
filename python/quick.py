#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make quick`: format, lint, and the tests of what was changed since the main branch, in about a minute once built.

    python/quick.py [--since COMMIT] [--list]

It runs a part of `make check`; what no rule here covers, and files whose tests are all slow, are listed as not checked.
--list only shows the commands.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
TESTS = "python/tests"
NOT_LONG = ("--skip", "long::", "--skip", "slow::")
PYTEST = (sys.executable, "-m", "pytest", "--quiet", "-n", "2", "-m", "not slow and not long")
NO_TESTS = 5
"""Exit code of pytest that has nothing to run."""
IN_PYTHON = ("bench/", "docs/", "kernel/", "lab/", "machines/", "oracle/", "python/", "release/", "scenarios/")

Command = tuple[str, ...]


def git(*words: str) -> list[str]:
    """The lines that a git command prints; it must not fail."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"quick: git {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def left_main() -> str:
    """The commit at which this branch left the main one."""
    for name in ("main", "origin/main"):
        words = ["git", "merge-base", "HEAD", name]
        found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
        if found:
            return found[0]
    sys.exit("quick: this clone has no branch main to compare with; name a commit: make quick SINCE=COMMIT")


def changed(since: str | None) -> list[str]:
    """The files that differ from `since`, or from where this branch left the main one; new ones too."""
    differ = git("diff", "--name-only", since or left_main(), "--")
    return sorted({*differ, *git("ls-files", "-o", "--exclude-standard")})


def lints(paths: Iterable[str]) -> list[Command]:
    """What reads the code without running it."""
    found: list[Command] = []
    crates = crates_of(paths)
    if crates:
        packages = " ".join(f"-p {crate}" for crate in crates)
        found.append(("make", "--quiet", "lint-rust", f"PACKAGES={packages}"))
    if any(path.endswith((".py", ".pyi", ".toml")) and path.startswith((*IN_PYTHON, "pyproject")) for path in paths):
        found += [(f"{BIN}/ruff", "format", "--check", "."), (f"{BIN}/ruff", "check", "--quiet", ".")]
    if any(path.startswith(("python/linkweir/", "pyproject")) for path in paths):
        found += [(f"{BIN}/lint-imports", "--no-logo"), (f"{BIN}/mypy",)]
    return found


def crates_of(paths: Iterable[str]) -> list[str]:
    """The crates in which a file was changed, without those that are gone."""
    found = {path.split("/")[1] for path in paths if re.match(r"crates/[^/]+/.*\.(rs|toml)$", path)}
    return sorted(crate for crate in found if (ROOT / "crates" / crate / "Cargo.toml").exists())


def test_targets(crate: str, paths: Iterable[str]) -> list[str]:
    """The crate's tests with these files: those that are such a file or folder, or have it as a module."""
    folder = f"crates/{crate}/tests/"
    names = {path.removeprefix(folder).split("/")[0].removesuffix(".rs") for path in paths if path.startswith(folder)}
    roots = [*(ROOT / folder).glob("*.rs"), *(ROOT / folder).glob("*/main.rs")]
    texts = {(path.parent.name if path.stem == "main" else path.stem): path.read_text() for path in roots}
    using = {test for test, text in texts.items() if any(re.search(rf"^mod {name};", text, re.M) for name in names)}
    # tests in network namespaces need root and minutes
    return sorted((names & texts.keys() | using) - {"namespaces"})


def tests(paths: Sequence[str]) -> list[Command]:
    """The commands that test these files."""
    found: list[Command] = []
    if any(path.startswith(("core/src/", "core/include/", "core/tests/", "vectors/")) for path in paths):
        found.append(("make", "--quiet", "-C", "core", "quick"))
    for crate in crates_of(paths):
        words = [word for name in test_targets(crate, paths) for word in ("--test", name)]
        found.append(("cargo", "test", "--locked", "--quiet", "-p", crate, "--lib", *words, "--", *NOT_LONG))
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


def passes(command: Command) -> bool:
    """Runs it. Files of which pytest finds only slow tests are not checked, which is no failure."""
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code == NO_TESTS and command[: len(PYTEST)] == PYTEST:
        print(f"quick: NOT CHECKED: {' '.join(command[len(PYTEST) :])}: every test there is slow or long")
        return True
    return code == 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", help="a commit; without it, where this branch left main")
    parser.add_argument("--list", action="store_true", help="only show the commands")
    asked = parser.parse_args()
    paths = changed(asked.since)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each run compiles the tests again
    commands = (*lints(paths), *tests(paths))
    begun, failed = time.monotonic(), []
    for command in commands:
        print(" ".join(Path(word).name if word.startswith("/") else word for word in command), flush=True)
        if not asked.list and not passes(command):
            failed.append(command)
    for path in paths:
        if not covered(path):
            print(f"quick: NOT CHECKED: {path}")
    if asked.list or not commands:
        print(f"quick: nothing was run{' (--list)' if asked.list else ''}; {len(paths)} files changed")
        return 0
    took = f"{len(paths)} files changed, {time.monotonic() - begun:.0f} s"
    print(f"quick: FAILED: {len(failed)} of the commands above; {took}" if failed else f"quick: all passed; {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
