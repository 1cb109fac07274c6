# SPDX-License-Identifier: BSD-3-Clause
"""`make quick` runs the tests of what was changed, and says what it left out."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest
from command import REPOSITORY


@pytest.fixture(scope="module")
def quick() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quick", REPOSITORY / "python/quick.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(quick: ModuleType, *paths: str) -> str:
    return "\n".join(" ".join(command) for command in (*quick.lints(paths), *quick.tests(paths)))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("core/src/drr.c", ["make --quiet -C core quick"]),
        ("crates/linkweir-plane/src/hub.rs", ["cargo fmt", "clippy", "-p linkweir-plane --lib -- --skip long::"]),
        ("crates/linkweir-sim/tests/tcp_bbr.rs", ["-p linkweir-sim --lib --test tcp_bbr -- --skip long::"]),
        ("crates/linkweir-gateway/tests/namespaces/main.rs", ["-p linkweir-gateway --lib -- --skip long::"]),
        ("python/linkweir/sizing/theory.py", ["ruff", "mypy", "lint-imports", "tests/test_theory.py"]),
        ("python/linkweir/tables/outline.py", ["tests/test_outline.py"]),
        ("python/tests/test_quality.py", ["ruff", "tests/test_quality.py"]),
        ("oracle/drr.py", ["ruff", "not long oracle"]),
        ("docs/howto/sweep.md", ["tests/test_docs.py"]),
    ],
)
def test_a_change_is_linted_and_tested(quick: ModuleType, path: str, expected: list[str]) -> None:
    found = commands(quick, path)
    assert [words for words in expected if words not in found] == []
    assert quick.covered(path)


def test_every_module_of_the_package_has_a_test_that_names_it_or_its_folder(quick: ModuleType) -> None:
    modules = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "python/linkweir").rglob("*.py")]
    modules = [path for path in modules if "/templates/" not in path and path != "python/linkweir/__main__.py"]
    assert [
        path for path in modules if not path.endswith("linkweir/__init__.py") and not quick.test_files([path])
    ] == []


def test_what_no_rule_covers_is_said(quick: ModuleType) -> None:
    assert not quick.covered("kernel/plane.h")
    listed = subprocess.run(
        [sys.executable, REPOSITORY / "python/quick.py", "--list", "--since", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.splitlines()[-1].startswith("quick: all passed; ")
