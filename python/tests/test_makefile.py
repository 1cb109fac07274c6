# SPDX-License-Identifier: BSD-3-Clause
"""Every target of the Makefile runs in a check, or docs/ci.md has a record of it, so that none is found broken late."""

from __future__ import annotations

import re
import subprocess
from datetime import date

from command import REPOSITORY

TEXT = (REPOSITORY / "Makefile").read_text()
RULES: dict[str, str] = dict(re.findall(r"^([a-z][a-z-]*):((?:[^\n]*\n)(?:\t[^\n]*\n)*)", TEXT, re.MULTILINE))
# continuous integration runs the first, every change the second
CHECKS = {"test", "check"}
RUN_HERE = {"help"}


def makes(text: str) -> set[str]:
    """The targets that a text of commands makes."""
    return set(re.findall(r"(?:\bmake|\$\(MAKE\)) ([a-z][a-z-]*)", text)) & RULES.keys()


def in_checks() -> set[str]:
    """Targets that a check reaches; `make fresh` is one, of what it runs on bare systems."""
    on_bare_systems = re.findall(r"cd linkweir; make ([a-z-]+)", (REPOSITORY / "machines/fresh.py").read_text())
    reached: set[str] = set(RUN_HERE)
    wanted = [*CHECKS, *on_bare_systems]
    while wanted:
        target = wanted.pop()
        if target not in reached:
            reached.add(target)
            wanted += makes(RULES[target])
            wanted += RULES.keys() & RULES[target].splitlines()[0].split()
    return reached


def recorded() -> dict[str, tuple[str, str, str]]:
    """Target, and date, time and result of its last run."""
    page = (REPOSITORY / "docs/ci.md").read_text()
    rows = re.findall(r"^\| `make ([a-z-]+)` \| (\d[-\d]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    return {target: (day.strip(), took.strip(), result.strip()) for target, day, took, result in rows}


def test_every_target_is_declared_as_such() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)
    assert phony is not None
    assert RULES.keys() == set(phony[1].split())


def test_every_target_runs_in_a_check_or_is_recorded() -> None:
    found = recorded()
    assert RULES.keys() - in_checks() == found.keys()
    for target, (day, took, result) in found.items():
        assert took, target
        assert result, target
        assert date.fromisoformat(day) <= date.today(), target


def test_help_names_every_target_that_a_user_calls() -> None:
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines()} == RULES.keys() - {"help", "build", "clean"}
