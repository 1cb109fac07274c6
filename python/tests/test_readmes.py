# SPDX-License-Identifier: BSD-3-Clause
"""Each folder that a visitor opens says what it is, what it may know, where to begin, and how to test it alone."""

from __future__ import annotations

import re
import subprocess

import pytest
from command import REPOSITORY

SAID = {
    "what it may know": r"What (it|they) may know",
    "where to begin": r"\*\*Begin with",
    "how to test it alone": r"Test (it|them) alone",
}
OTHERS = {"docs", "vectors"}
"""Their READMEs are lists, of pages and of what a file of vectors holds."""


def folders() -> list[str]:
    """The folders of the repository that hold files, and the crates."""
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    parts = [path.split("/") for path in listed.splitlines()]
    top = {path[0] for path in parts if len(path) > 1 and not path[0].startswith(".")}
    crates = {f"crates/{path[1]}" for path in parts if path[0] == "crates"}
    return sorted(top - {"LICENSES", "requirements", "crates"} | crates)


@pytest.mark.parametrize("folder", folders())
def test_a_folder_says_what_a_visitor_needs(folder: str) -> None:
    text = (REPOSITORY / folder / "README.md").read_text()
    if folder not in OTHERS:
        assert [name for name, pattern in SAID.items() if not re.search(pattern, text)] == []


@pytest.mark.parametrize("folder", folders())
def test_the_commands_of_a_folder_are_there(folder: str) -> None:
    """The commands themselves are those of `make check`, `make test` and of the folders' Makefiles."""
    text = (REPOSITORY / folder / "README.md").read_text()
    for path, target in re.findall(r"`make(?: -C ((?!build)[\w/]+))? (\w[\w-]*)[^`]*`", text):
        rules = (REPOSITORY / (path or ".") / "Makefile").read_text()
        assert re.search(rf"^{target}:|^\.PHONY:.* {target}\b", rules, re.MULTILINE), (path, target)
    for crate, test in re.findall(r"cargo test -p ([\w-]+)(?: --test (\w+))?", text):
        place = REPOSITORY / "crates" / crate
        assert (place / "Cargo.toml").exists(), crate
        assert not test or (place / "tests" / f"{test}.rs").exists() or (place / "tests" / test).is_dir(), test
    for name in re.findall(r"\b(?:python3|pytest -q(?: -m \"[^\"]*\")?) ((?:[\w/.-]+\.py ?|oracle\b)+)", text):
        assert [path for path in name.split() if not (REPOSITORY / path).exists()] == [], name
    for script in re.findall(r"\bpython3? ([\w/-]+\.py)\b", text):
        assert "__main__" in (REPOSITORY / script).read_text(), f"python3 {script} does nothing"


def test_the_architecture_links_the_readme_of_each_folder() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    assert [folder for folder in folders() if f"]({folder}/README.md)" not in text] == []
    assert len(text.split()) <= 1_300
