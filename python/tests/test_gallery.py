# SPDX-License-Identifier: BSD-3-Clause
"""The gallery: each scenario has an entry, what it says holds in its run, and the list of scenarios is complete."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from command import REPOSITORY, SCENARIOS, linkweir

sys.path.insert(0, str(REPOSITORY / "docs/pictures"))

import gallery

ENTRIES = gallery.entries()
QUICK = {"pss-fade.toml", "terminals.toml"}


def test_every_scenario_has_an_entry() -> None:
    assert sorted(entry.file for entry in ENTRIES) == sorted(path.name for path in SCENARIOS.glob("*.toml"))
    assert len(ENTRIES) >= 20


def test_the_list_of_scenarios_is_that_of_the_gallery() -> None:
    assert gallery.LIST.read_text() == gallery.listing(ENTRIES), "run: make pictures"


@pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, marks=() if entry.file in QUICK else pytest.mark.slow, id=entry.name) for entry in ENTRIES],
)
def test_what_an_entry_says_holds_in_its_run(entry: gallery.Entry, tmp_path: Path) -> None:
    _, seen = gallery.write(entry, tmp_path)
    assert entry.claims
    assert [claim for claim in entry.claims if not gallery.computed(claim, seen.facts)] == []
    page = (tmp_path / f"{entry.name}.md").read_text()
    assert gallery.sentence(entry, seen) in page
    assert entry.command in page
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{entry.name}{ending}" for ending in (".md", ".svg", "-small.svg")
    }


def test_the_command_of_a_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in ENTRIES if entry.file == "pss-fade.toml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(SCENARIOS)
    program, *words = shlex.split(entry.command)
    done = linkweir(*words)
    assert (program, done.returncode) == ("linkweir", 0), done.stderr
    assert (tmp_path / "runs/pss-fade/report.html").exists()
    assert {one.command.replace(one.name, "NAME") for one in ENTRIES} == {entry.command.replace(entry.name, "NAME")}


def test_a_claim_that_does_not_hold_is_found() -> None:
    assert not gallery.computed("4.9 <= af <= 5.1", {"af": 4.2})
    with pytest.raises(NameError):
        gallery.computed("ef > 1", {"af": 4.2})
