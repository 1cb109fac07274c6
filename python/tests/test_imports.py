# SPDX-License-Identifier: BSD-3-Clause
"""The check of imports in `make check` passes here and fails on a planted circle and on planted forbidden edges."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from command import REPOSITORY

PACKAGE = REPOSITORY / "python/linkweir"
LINT = Path(sysconfig.get_path("scripts")) / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The check as the Makefile runs it, of the package in this folder."""
    return subprocess.run(
        [LINT, "--no-logo", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the package and of the contracts."""
    shutil.copytree(PACKAGE, tmp_path / "linkweir", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def test_make_check_runs_it() -> None:
    assert "\t$(VENV)/bin/lint-imports --no-logo --no-cache\n" in (REPOSITORY / "Makefile").read_text()


def test_the_package_keeps_the_contracts(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("traces.py", "from linkweir.scenarios.scenario import Scenario", "No import circles"),
        ("sweeps/keys.py", "from linkweir.sweeps.plan import Plan", "No import circles"),
        ("tables/run_tables.py", "from linkweir.runs.result import Result", "Commands above what they run"),
        ("lab/world.py", "from linkweir.reproduce.figure import Figure", "Commands above what they run"),
        ("sweeps/directory.py", "import typer", "Only commands know the command line"),
        ("sweeps/job.py", "from linkweir.commands.terminal import room", "Only commands know the command line"),
        ("quality.py", "from linkweir.report import number", "Models and quality"),
        ("sizing/theory.py", "from linkweir.commands import cli", "Models and quality"),
        ("sizing/pss.py", "from linkweir.sweeps.job import Job", "Commands above what they run"),
    ],
)
def test_it_fails_on_a_planted_import(module: str, line: str, broken: str, copy: Path) -> None:
    path = copy / "linkweir" / module
    planted = path.read_text().replace(
        "from __future__ import annotations\n", f"from __future__ import annotations\n{line}\n"
    )
    path.write_text(planted)
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [text for text in done.stdout.splitlines() if text.startswith(broken) and "BROKEN" in text]


def test_it_fails_on_a_module_without_a_place(copy: Path) -> None:
    (copy / "linkweir/helper.py").write_text("")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "linkweir.helper" in done.stdout


def taken_from_the_package(source: str) -> list[str]:
    """What a module takes from the package's `__init__`, where the contracts cannot follow it."""
    modules = {path.stem for path in PACKAGE.iterdir()} | {"_native"}
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "linkweir":
            found += [alias.name for alias in node.names if alias.name not in modules]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name == "linkweir"]
    return found


def test_no_module_below_the_command_imports_the_package_itself() -> None:
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    assert len(paths) > 80
    found = {name: taken_from_the_package(path.read_text()) for name, path in paths.items()}
    assert {name for name, names in found.items() if names} == {"commands/cli.py"}
    assert taken_from_the_package("from linkweir import _native, run, traces") == ["run"]
    assert taken_from_the_package("import linkweir") == ["linkweir"]
