# SPDX-License-Identifier: BSD-3-Clause
"""`make quick` runs the tests of what was changed, and says what it left out."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
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
        (
            "crates/linkweir-plane/src/hub.rs",
            ["lint-rust PACKAGES=-p linkweir-plane\n", "-p linkweir-plane --lib -- --skip long::"],
        ),
        ("crates/linkweir-sim/tests/tcp_bbr.rs", ["-p linkweir-sim --lib --test tcp_bbr -- --skip long::"]),
        ("crates/linkweir-gateway/tests/namespaces/main.rs", ["-p linkweir-gateway --lib -- --skip long::"]),
        (
            "crates/linkweir-core/tests/made/mod.rs",
            ["-p linkweir-core --lib --test across --test queues --test vectors -- --skip"],
        ),
        ("crates/linkweir-core/tests/gone.rs", ["-p linkweir-core --lib -- --skip long::"]),
        ("python/linkweir/sizing/theory.py", ["ruff", "mypy", "lint-imports", "tests/test_theory.py"]),
        ("python/linkweir/tables/bins.py", ["ruff", "mypy"]),
        ("python/tests/test_quality.py", ["ruff", "tests/test_quality.py"]),
        ("oracle/drr.py", ["ruff", "not long oracle"]),
        ("docs/howto/sweep.md", ["tests/test_docs.py"]),
    ],
)
def test_a_change_is_linted_and_tested(quick: ModuleType, path: str, expected: list[str]) -> None:
    found = commands(quick, path)
    assert [words for words in expected if words not in found] == []
    assert quick.covered(path)


@pytest.mark.parametrize("crate", [path.name for path in sorted((REPOSITORY / "crates").iterdir())])
def test_cargo_knows_each_test_that_is_named(quick: ModuleType, crate: str) -> None:
    folder = REPOSITORY / "crates" / crate / "tests"
    for path in sorted(folder.rglob("*.rs")):
        names = quick.test_targets(crate, [path.relative_to(REPOSITORY).as_posix()])
        assert names or (folder / "namespaces") in path.parents, path
        for name in names:
            assert (folder / f"{name}.rs").exists() or (folder / name / "main.rs").exists(), path


def test_a_crate_that_is_gone_is_not_named(quick: ModuleType) -> None:
    assert commands(quick, "crates/linkweir-gone/src/lib.rs") == ""


def test_the_lint_of_rust_is_that_of_make_lint_for_the_changed_crates(quick: ModuleType) -> None:
    [command] = quick.lints(["crates/linkweir-plane/src/hub.rs", "crates/linkweir-sim/src/lib.rs"])
    shown = subprocess.run([*command, "--dry-run"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert "NOT CHECKED: cargo clippy is not here" in shown
    assert "cargo fmt --check" in shown
    assert "cargo clippy --locked -p linkweir-plane -p linkweir-sim --all-targets --quiet -- -D warnings" in shown


@pytest.fixture
def clone(quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository with one commit on a branch that is not main."""
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet", "--initial-branch", "topic"], [*author, "commit", "-qm", "one", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_commit_that_does_not_exist_is_an_error(quick: ModuleType, clone: Path) -> None:
    (clone / "docs").mkdir()
    (clone / "docs/page.md").touch()
    assert quick.changed("HEAD") == ["docs/page.md"]
    for commit in ("typo", "docs"):
        with pytest.raises(SystemExit, match=rf"quick: git diff --name-only {commit} -- failed: .*{commit}"):
            quick.changed(commit)


@pytest.mark.usefixtures("clone")
def test_a_clone_without_main_asks_for_a_commit(quick: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no branch main to compare with; name a commit: make quick SINCE=COMMIT"):
        quick.changed(None)


@pytest.mark.slow
def test_files_with_slow_tests_only_are_not_checked(
    quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    (tmp_path / "test_slow.py").write_text("import pytest\n\n@pytest.mark.slow\ndef test_a():\n    pass\n")
    assert quick.passes((*quick.PYTEST, "test_slow.py"))
    assert "quick: NOT CHECKED: test_slow.py: every test there is slow or long" in capfd.readouterr().out
    (tmp_path / "test_slow.py").write_text("def test_a():\n    assert False\n")
    assert not quick.passes((*quick.PYTEST, "test_slow.py"))


@pytest.mark.slow
def test_every_module_of_the_package_has_a_test_that_names_it_or_its_folder(quick: ModuleType) -> None:
    modules = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "python/linkweir").rglob("*.py")]
    modules = [path for path in modules if "/templates/" not in path and path != "python/linkweir/__main__.py"]
    assert [
        path for path in modules if not path.endswith("linkweir/__init__.py") and not quick.test_files([path])
    ] == []


@pytest.mark.parametrize(
    ("commands", "words", "expected"),
    [
        ([("echo", "ran")], ["--list"], ["echo ran", "quick: nothing was run (--list); 1 files changed"]),
        ([("echo", "ran")], [], ["echo ran", "ran", "quick: all passed; 1 files changed, "]),
        ([], [], ["quick: nothing was run; 1 files changed"]),
    ],
)
def test_what_no_rule_covers_and_what_was_not_run_is_said(
    quick: ModuleType,
    clone: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    commands: list[tuple[str, ...]],
    words: list[str],
    expected: list[str],
) -> None:
    (clone / "page").touch()
    monkeypatch.setattr(quick, "lints", lambda _: commands)
    monkeypatch.setattr(quick, "covered", lambda _: False)
    monkeypatch.setattr(sys, "argv", ["quick.py", "--since", "HEAD", *words])
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # main drops it
    assert quick.main() == 0
    *lines, last = capfd.readouterr().out.splitlines()
    assert lines == [*expected[:-1], "quick: NOT CHECKED: page"]
    assert last.startswith(expected[-1])


def test_no_rule_covers_the_module_of_the_kernel(quick: ModuleType) -> None:
    assert not quick.covered("kernel/plane.h")
