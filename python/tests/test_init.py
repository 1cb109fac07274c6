# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir init`: what it writes can be run, and nothing of a user's is overwritten."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command import REPOSITORY, linkweir, linkweir_process, strict_json

START = REPOSITORY / "python/linkweir/templates/start"
SCENARIOS = sorted(path.name for path in START.glob("*.toml"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("linkweir ")]


def test_it_writes_files_and_says_which(here: Path) -> None:
    done = linkweir("init")
    assert done.returncode == 0, done.stderr
    written = files(here)
    assert {f"scenarios/{name}" for name in ("README.md", "traces/lte-drive.csv", *SCENARIOS)} <= set(written)
    assert sorted(done.stdout.split("\n\n")[0].splitlines()) == written
    assert commands(done.stdout) == [["run", "scenarios/geo.toml", "--out", "runs/geo"]]
    assert str(here) not in done.stdout


def test_what_it_writes_is_in_the_repository_once(here: Path) -> None:
    linkweir("init")
    for path in START.rglob("*"):
        if path.is_file() and path.name != "README.md":
            assert path.is_symlink(), f"{path} is a copy; make it a link to the file it is a copy of"
            assert path.resolve().is_relative_to(REPOSITORY)
            assert (here / "scenarios" / path.relative_to(START)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_runs(name: str, here: Path) -> None:
    linkweir("init", "start")
    text = (here / "start" / name).read_text()
    shorter, changed = re.subn(r'(?m)^duration = "\d+s"', 'duration = "12s"', text)
    assert changed == 1
    (here / "start" / name).write_text(shorter)
    done = linkweir("run", f"start/{name}", "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert all(row["sent_pkts"] > 0 for row in strict_json(done.stdout)["classes"])


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["scenarios", "two words", "."])
def test_the_commands_of_its_page_work(folder: str, here: Path) -> None:
    begin = linkweir("init", folder).stdout
    page = (here / folder / "README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
    given = commands("".join(blocks))
    assert commands(begin)[0] == given[0]
    assert len(given) >= 5
    for words in given:
        done = linkweir_process(*words, cwd=here)
        assert done.returncode == 0, f"{words}: {done.stderr}"


def test_its_page_lists_each_file(here: Path) -> None:
    listed = set(re.findall(r"`([\w/.-]+\.\w+)`", (START / "README.md").read_text()))
    assert {str(path.relative_to(START)) for path in START.rglob("*") if path.is_file()} - {"README.md"} <= listed


def test_it_overwrites_nothing(here: Path) -> None:
    (here / "scenarios").mkdir()
    (here / "scenarios/lte-home.toml").write_text("mine")
    done = linkweir("init")
    assert done.returncode == 2
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
    assert "scenarios/lte-home.toml is there already, and nothing was written" in said
    assert "as in: linkweir init start" in said
    assert files(here) == ["scenarios/lte-home.toml"]
    assert (here / "scenarios/lte-home.toml").read_text() == "mine"


def test_a_file_is_no_folder(here: Path) -> None:
    (here / "scenarios").write_text("mine")
    done = linkweir("init")
    assert done.returncode == 2
    assert "scenarios is a file, not a folder" in done.stderr


def test_other_files_do_not_disturb(here: Path) -> None:
    (here / "scenarios").mkdir()
    (here / "scenarios/mine.toml").write_text("mine")
    assert linkweir("init").returncode == 0
    assert (here / "scenarios/mine.toml").read_text() == "mine"
