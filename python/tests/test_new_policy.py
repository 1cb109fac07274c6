# SPDX-License-Identifier: BSD-3-Clause
"""A policy is added by `make policy` and by filling in the files that it makes; no other file is edited.

core/tests/edf is such a policy. It is added to a copy of the repository.
"""

from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY

POLICY = "edf"
WRITTEN = REPOSITORY / "core/tests" / POLICY
sys.path.insert(0, str(REPOSITORY / "core/template"))
import lay_down  # noqa: E402

pytestmark = pytest.mark.slow


def run(where: Path, *command: str) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def changed(where: Path) -> set[str]:
    """Files that differ from the commit of the copy, and new ones."""
    return {line[3:] for line in run(where, "git", "status", "--porcelain", "--untracked-files=all").splitlines()}


@pytest.fixture(scope="module")
def laid_down(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository after `make policy NAME=edf`."""
    copy = tmp_path_factory.mktemp("repository")
    listed = run(REPOSITORY, "git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in listed.splitlines():
        if (REPOSITORY / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, copy / name)
    run(copy, "git", "init", "--quiet")
    run(copy, "git", "add", "--all")
    run(copy, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message=start")
    run(copy, "make", "policy", f"NAME={POLICY}")
    return copy


@pytest.fixture(scope="module")
def written(laid_down: Path) -> Path:
    """The same with the policy in place of the stubs."""
    for source, place in lay_down.PLACES.items():
        shutil.copyfile(WRITTEN / source, laid_down / place.replace("NAME", POLICY))
    run(laid_down, sys.executable, "oracle/generate.py", "--policy", POLICY)
    return laid_down


def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(laid_down: Path) -> None:
    before = changed(laid_down)
    for name, why in {
        "Edf": "a policy is named by 1 to 15 of a-z",
        "earliest_deadline": "a policy is named by 1 to 15 of a-z",
        "pf": "lists it already",
        "select": "would hide a module of Python",
        "tauran_pf": "has it already",
        POLICY: "lists it already",
    }.items():
        done = subprocess.run(
            ["make", "policy", f"NAME={name}"], cwd=laid_down, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert why in done.stderr
    assert changed(laid_down) == before


def test_nothing_is_written_when_a_part_cannot_be(laid_down: Path) -> None:
    before, readme = changed(laid_down), laid_down / "README.md"
    text = readme.read_text()
    readme.write_text(text.replace("| policy | guarantees | source |", "| policy |"))
    table_gone = changed(laid_down)
    done = subprocess.run(["make", "policy", "NAME=other"], cwd=laid_down, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert changed(laid_down) == table_gone
    readme.write_text(text)
    generator = laid_down / "oracle/generate.py"
    works = generator.read_text()
    generator.write_text("raise SystemExit(1)\n")
    done = subprocess.run(["make", "policy", "NAME=other"], cwd=laid_down, capture_output=True, text=True, check=False)
    generator.write_text(works)
    assert done.returncode == 2
    assert changed(laid_down) == before


def test_the_manual_page_has_the_date_of_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    class Calendar(datetime.date):
        @classmethod
        def today(cls) -> Calendar:
            return cls(2031, 4, 5)

    monkeypatch.setattr(datetime, "date", Calendar)
    assert lay_down.filled("man.8", POLICY).splitlines()[1] == '.TH EDF 8 2031-04-05 "Linkweir" "Linux"'


def test_stubs_give_the_answers_of_their_vectors(laid_down: Path) -> None:
    run(laid_down, "make", "-C", "core", "complete", "build/gcc/replay")
    vectors = sorted((laid_down / "vectors" / POLICY).glob("*.vec"))
    assert len(vectors) > 3
    run(laid_down, "core/build/gcc/replay", *map(str, vectors))


def test_the_core_without_a_part_of_a_policy_is_refused(laid_down: Path) -> None:
    parts = lay_down.places(POLICY, laid_down)
    parts.pop("man.8")  # test_manual_pages.py misses that: a policy that Linux has is no qdisc of ours
    for part in parts.values():
        hidden = part.with_name("hidden")
        part.rename(hidden)
        done = subprocess.run(
            ["make", "-C", "core", "quick"], cwd=laid_down, capture_output=True, text=True, check=False
        )
        hidden.rename(part)
        assert done.returncode == 2
        assert f"the policy {POLICY} lacks" in done.stderr


def test_only_what_was_laid_down_is_touched(written: Path) -> None:
    assert changed(written) == {
        "core/include/linkweir/policies.def",
        "core/proofs/plan.toml",
        *lay_down.ROWS,
        *(place.replace("NAME", POLICY) for place in lay_down.PLACES.values()),
        *(f"vectors/{POLICY}/{path.name}" for path in (written / "vectors" / POLICY).glob("random-*.vec")),
    }
    added = run(written, "git", "diff", "--numstat", "core/include/linkweir/policies.def")
    assert added.split()[:2] == ["1", "0"]


def test_the_policy_passes_the_tests_of_core_and_models(written: Path) -> None:
    run(written, "make", "-C", "core", "quick", "CC_QUICK=gcc", "SEEDS=20")
    run(written, sys.executable, "-m", "pytest", "--quiet", "oracle", "-k", f"{POLICY} or every_policy")
    run(written, sys.executable, "oracle/generate.py", "--check", "--policy", POLICY)
