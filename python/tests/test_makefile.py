# SPDX-License-Identifier: BSD-3-Clause
"""Every target of the Makefile runs in a check or has a record in docs/records/ci.md: none is found broken late."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from datetime import date
from pathlib import Path

import pytest
from command import REPOSITORY

TEXT = (REPOSITORY / "Makefile").read_text()
RULES: dict[str, str] = dict(re.findall(r"^([a-z][a-z0-9-]*):((?:[^\n]*\n)(?:\t[^\n]*\n)*)", TEXT, re.MULTILINE))
# what the parts of these two run, whose failure counts
for suite, lanes in runpy.run_path(str(REPOSITORY / "python/suite.py"))["SUITES"].items():
    RULES[suite] += "".join(f"\t{part.command}\n" for lane in lanes for part in lane if not part.optional)
# continuous integration runs the first, every change the second
CHECKS = {"test", "check"}
# by this file; `policy` by test_new_policy.py; test_manual_pages.py compares what `manuals` writes, test_declared.py
# what `keys` writes; test_quick.py has the rules of `quick`, which runs parts of `check`
RUN_HERE = {"help", "policy", "manuals", "keys", "quick"}
PAGE = (REPOSITORY / "docs/records/ci.md").read_text()
TIME = re.compile(r"\d (?:s|min|h)\b")
# records older than the rule that each has its time; no other may be "not noted"
UNTIMED = {
    ("bench", "2026-11-22"),
    ("accuracy", "2026-11-22"),
    ("endure", "2026-11-22"),
    ("mutate", "2026-11-21"),
    ("robust", "2026-11-21"),
}


def makes(text: str) -> set[str]:
    """The targets that a text of commands makes. After `-` make ignores a failure, so that proves nothing."""
    counted = "\n".join(line for line in text.splitlines() if not re.match(r"\t[@+]*-", line))
    return set(re.findall(r"(?:\bmake|\$\(MAKE\)) ([a-z][a-z0-9-]*)", counted)) & RULES.keys()


def reached_from(targets: set[str]) -> set[str]:
    """These targets, and those that their commands and prerequisites make."""
    reached: set[str] = set()
    wanted = list(targets)
    while wanted:
        target = wanted.pop()
        if target not in reached:
            reached.add(target)
            wanted += makes(RULES[target])
            wanted += RULES.keys() & RULES[target].splitlines()[0].split()
    return reached


def on_bare_systems() -> set[str]:
    """Targets that `make fresh` runs and no check; the record of `make fresh` is theirs."""
    run = re.findall(r"cd linkweir; make ([a-z0-9-]+)", (REPOSITORY / "machines/fresh.py").read_text())
    return reached_from(set(run)) - reached_from(CHECKS)


def recorded() -> dict[str, tuple[str, str, str]]:
    """Target, and date, time and result of its last run."""
    rows = re.findall(r"^\| `make ([a-z0-9-]+)` \| (\d[-\d]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    return {target: (day.strip(), took.strip(), result.strip()) for target, day, took, result in rows}


def test_every_target_is_declared_as_such() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)
    assert phony is not None
    assert RULES.keys() == set(phony[1].split())


def test_every_target_runs_in_a_check_or_is_recorded() -> None:
    found = recorded()
    assert RULES.keys() - reached_from(CHECKS) - RUN_HERE - on_bare_systems() == found.keys()
    for target, (day, took, result) in found.items():
        assert TIME.search(took) or (took == "not noted" and (target, day) in UNTIMED), target
        assert result, target
        assert date.fromisoformat(day) <= date.today(), target


def test_a_target_whose_failure_make_ignores_is_not_checked_by_that() -> None:
    assert makes("test:\n\t-$(MAKE) lab\n\t@-$(MAKE) deb\n\t$(MAKE) bench\n") == {"bench"}


def test_no_target_takes_a_program_that_breaks_down_for_one_that_compares() -> None:
    assert "|| test $$? = 3" in TEXT  # lab/stored.py: something is outside its bound
    assert not re.findall(r"\|\| test \$\$\? = [12]\b", TEXT)


def test_the_page_names_the_targets_that_only_make_fresh_runs() -> None:
    sentence = re.search(r"The row of `make fresh` is also the record of ([^.]*)\.", PAGE)
    assert sentence is not None
    assert set(re.findall(r"`make ([a-z0-9-]+)`", sentence[1])) == on_bare_systems()


def test_help_names_every_target_that_a_user_calls() -> None:
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines()} == RULES.keys() - {"help", "build", "clean"}


def lint(folder: Path, *, rust: str, cargo: str) -> subprocess.CompletedProcess[str]:
    """The lint of Rust in `make check`, with this version of rustc and a script as cargo."""
    answers = {"rustc": f"echo 'rustc {rust} (0 2026-01-01)'", "cargo": f'[ "$2" = --version ] && exit\n{cargo}'}
    for name, answer in answers.items():
        (folder / name).write_text(f"#!/bin/sh\n{answer}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["make", "--no-print-directory", "lint-rust"],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


# what clippy does with a warning, with an error of a lint, and with code that does not compile
WARNS = 'case "$*" in clippy*"-D warnings") exit 101 ;; esac'
DENIES = 'case "$*" in clippy*"--cap-lints warn") ;; clippy*) exit 101 ;; esac'
DOES_NOT_COMPILE = 'case "$*" in clippy*) exit 101 ;; esac'
OTHER_FORMAT = 'case "$*" in "fmt --check") exit 1 ;; esac'
DOES_NOT_PARSE = 'case "$*" in fmt*) exit 1 ;; esac'


@pytest.mark.parametrize(
    ("rust", "cargo", "passes"),
    [
        ("1.95.0", "true", True),
        ("1.95.0", WARNS, False),
        ("1.95.0", OTHER_FORMAT, False),
        ("1.85.1", WARNS, True),
        ("1.96.0", DENIES, True),
        ("1.85.1", OTHER_FORMAT, True),
        ("1.85.1", DOES_NOT_COMPILE, False),
        ("1.96.0", DOES_NOT_PARSE, False),
    ],
)
def test_another_rust_may_warn_but_its_errors_fail_the_check(
    rust: str, cargo: str, passes: bool, tmp_path: Path
) -> None:
    done = lint(tmp_path, rust=rust, cargo=cargo)
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    assert ("only Rust 1.95 warnings fail the check" in done.stdout) == (passes and rust[:4] != "1.95")


@pytest.mark.parametrize(("target", "purposes"), [("deb", "build deb"), ("release", "build deb"), ("format", "check")])
def test_what_a_target_needs_is_installed_before_cargo_runs(target: str, purposes: str) -> None:
    # as in a new clone: without cargo-deb
    command = ["make", "--no-print-directory", "--dry-run", "CARGO_DEB=not-there/cargo-deb", target]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    cargo = [line.startswith("cargo ") for line in shown].index(True)
    assert f"./setup.sh {purposes}" in shown[:cargo]


def test_folders_may_have_spaces_in_their_names() -> None:
    unquoted = [line for line in TEXT.splitlines() if re.search(r'(?<!")\$\(CURDIR\)', line)]
    assert unquoted == []
