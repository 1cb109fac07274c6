# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of CONTRIBUTING.md: each is tried with an example, and names the files that it takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import REPOSITORY
from recipes import COLUMN, FORMAT, KEY, PAGE, PARAMETER, RECIPES, SOURCE, Edit

NAMES = {"TABLE": "link", "POLICY": "rr", "FORMAT": "kbit", "NAME": "recipe"}
"""What the placeholders of the recipes are in these examples."""


def recipe(title: str) -> str:
    """A section of CONTRIBUTING.md."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    return text.split(f"\n### {title}\n")[1].split("\n#")[0]


def copied(root: Path, *folders: str) -> Path:
    """A copy of some folders of the repository, and of the files at its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        if ("/" not in name or name.startswith(folders)) and (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
    return root


def make(edits: tuple[Edit, ...], root: Path) -> None:
    for edit in edits:
        edit.make(root)


def run(root: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    own = {key: value for key, value in os.environ.items() if key not in ("CARGO_TARGET_DIR", "PYTHONPATH")}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=own | variables)


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_names_the_files_that_it_takes(title: str) -> None:
    text = recipe(title)
    for placeholder, name in NAMES.items():
        text = re.sub(rf"\b{placeholder}\b", name, text)
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |\Z)", text, re.MULTILINE | re.DOTALL)
    named = {
        path for step in steps for path in re.findall(r"`((?:[\w-]+/)+[\w.*-]+\.\w+)`", step.split("\n\nThen ")[0])
    }
    assert {path.replace("hand-*", "hand-newcomer") for path in named} == {edit.file for edit in RECIPES[title]}


@pytest.mark.slow
def test_a_page_is_accepted_once_it_is_listed(tmp_path: Path) -> None:
    root = copied(tmp_path, "docs/", ".github/", "python/tests/", "python/README.md")
    checks = (
        "test_docs_are_sorted_into_rooms_and_listed",
        "test_links_within_the_repository_lead_somewhere[docs/howto",
    )
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "python/tests/test_docs.py",
        "-k",
        checks[0],
    )
    PAGE[0].make(root)
    done = run(root, *command)
    assert done.returncode == 1, done.stdout
    assert "docs/howto/recipe.md" in done.stdout
    PAGE[1].make(root)
    done = run(root, *command)
    assert done.returncode == 0, done.stdout


def test_a_parameter_is_known_to_core_and_oracle(tmp_path: Path) -> None:
    root = copied(tmp_path, "core/", "oracle/", "vectors/", "docs/reference/policies/")
    make(PARAMETER, root)
    sources = [str(path) for path in sorted((root / "core/src").glob("*.c"))]
    built = run(
        root, "gcc", "-std=c11", "-Wall", "-Werror", "-Icore/include", "core/tests/replay.c", *sources, "-o", "replay"
    )
    assert built.returncode == 0, built.stderr
    for file in ("hand-newcomer.vec", "hand-turns.vec"):
        done = run(root, "./replay", f"vectors/rr/{file}")
        assert done.returncode == 0, done.stdout + done.stderr
    script = (
        "import pathlib, sys; sys.path.insert(0, 'oracle')\n"
        "from vectorfile import replay\n"
        "for name in sys.argv[1:]: assert replay(pathlib.Path(name)) > 0"
    )
    done = run(root, sys.executable, "-c", script, "vectors/rr/hand-newcomer.vec", "vectors/rr/hand-turns.vec")
    assert done.returncode == 0, done.stderr
    wrong = root / "vectors/rr/hand-newcomer.vec"
    wrong.write_text(wrong.read_text().replace("newcomer=head", "newcomer=tail"))
    assert run(root, "./replay", "vectors/rr/hand-newcomer.vec").returncode != 0


def test_every_example_can_still_be_made(tmp_path: Path) -> None:
    root = copied(tmp_path, "core/", "crates/", "docs/", "oracle/", "python/", "vectors/")
    for edits in RECIPES.values():
        make(edits, root)


def rate_bps(root: Path, scenario: str) -> float:
    """What the class of a scenario got, with the simulator of a copy."""
    (root / "recipe.toml").write_text(f'duration = "4s"\nscheduler = {{ policy = "fifo" }}\n{scenario}')
    words = ("--locked", "--quiet", "-p", "linkweir-sim", "--example", "run_scenario", "recipe.toml")
    done = run(root, "cargo", "run", *words)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["classes"]
    rate: float = row["rate_bps"]
    return rate


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Path]:
    """A copy of the simulator, whose build is removed: pytest would keep it three times."""
    folders = ("core/", "crates/", "bench/linkweir-rate/", "third-party/", "scenarios/", "docs/reference/", "python/")
    yield copied(tmp_path, *folders)
    shutil.rmtree(tmp_path / "target", ignore_errors=True)


@pytest.mark.long
def test_columns_keys_sources_and_trace_formats_are_built_and_seen(built: Path) -> None:
    make(COLUMN + KEY + SOURCE + FORMAT, built)
    (built / "kbit.txt").write_text("100\n300\n")
    trace = 'link = { trace = "kbit.txt", trace_format = "kbit", end = "loop" }\n'
    greedy = 'class = [{ name = "all" }]\nflow = [{ class = "all", kind = "greedy" }]\n'
    assert rate_bps(built, trace + greedy) == pytest.approx(200e3, rel=0.1)

    link = 'link = { rate = "1Mbit", delay = "10ms", extra_return = "%s" }\n'
    ticks = (
        'class = [{ name = "all" }]\nflow = [{ class = "all", kind = "ticks", every = "100ms", packet = "1000B" }]\n'
    )
    assert rate_bps(built, link % "0s" + ticks) == pytest.approx(80e3, rel=0.05)
    tcp = 'class = [{ name = "all" }]\nflow = [{ class = "all", kind = "tcp" }]\n'
    assert rate_bps(built, link % "0s" + tcp) > 2 * rate_bps(built, link % "900ms" + tcp)

    tests = ("cargo", "test", "--locked", "--quiet", "-p", "linkweir-sim")
    snapshot = built / "crates/linkweir-sim/tests/snapshots/pss_on_a_fading_link.txt"
    assert "unused_bps" not in snapshot.read_text()
    for value, expected in (("compare", 101), ("write", 0), ("compare", 0)):
        done = run(built, *tests, "--test", "engine", "snapshots_pss", LINKWEIR_SNAPSHOTS=value)
        assert done.returncode == expected, done.stdout + done.stderr
    assert "unused_bps" in snapshot.read_text()
