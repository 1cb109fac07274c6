# SPDX-License-Identifier: BSD-3-Clause
"""`make test` and `make check` end with one table, then failures and what was not checked; their exit code is right."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from command import REPOSITORY


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The program with parts of its own, its logs elsewhere, and nothing to set up."""
    spec = importlib.util.spec_from_file_location("suite", REPOSITORY / "python/suite.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "suite", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "build/suite")
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    (tmp_path / "setup.sh").chmod(0o755)
    return module


def run(suite: ModuleType, monkeypatch: pytest.MonkeyPatch, *lanes: tuple[object, ...], setup: str = "") -> int:
    monkeypatch.setitem(suite.SUITES, "test", lanes)
    monkeypatch.setattr(sys, "argv", ["suite.py", "test"])
    (suite.ROOT / "setup.sh").write_text(f"#!/bin/sh\n{setup}\n")
    code: int = suite.main()
    return code


def test_a_table_names_each_part_its_tests_and_its_seconds(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rust = "echo 'test result: ok. 3 passed; 0 failed'; echo 'test result: ok. 4 passed; 0 failed'"
    python = "echo '12 passed, 3 skipped in 600.04s (0:10:00)'"
    parts = ((suite.Part("rust", rust, suite.PASSED),), (suite.Part("python", python, suite.PASSED),))
    assert run(suite, monkeypatch, *parts) == 0
    table = capfd.readouterr().out.split("processor s\n")[1].splitlines()
    assert sorted(line.split()[:2] for line in table[:2]) == [["python", "12"], ["rust", "7"]]
    assert table[2].split()[:2] == ["all", "19"]
    assert re.fullmatch(r"test: all passed: 19 tests in \d+ s", table[-1])


def test_a_part_that_fails_is_shown_again_and_the_others_go_on(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "echo before; echo failures:; echo why; echo 'test result: FAILED. 2 passed; 1 failed'; exit 101"
    lane = (suite.Part("rust", words, suite.PASSED), suite.Part("site", "echo made"))
    assert run(suite, monkeypatch, lane) == 1
    shown = capfd.readouterr().out
    assert re.search(r"^rust +2 .* FAILED$", shown, re.M)
    assert re.search(r"^site .* passed$", shown, re.M)
    assert "--- rust failed, exit code 101" in shown
    assert "failures:\nwhy" in shown
    assert "before" not in shown.split("--- rust")[1].split("\n", 1)[1]
    assert shown.splitlines()[-1] == "test: FAILED: rust"


def test_what_was_not_checked_is_repeated_and_an_optional_part_may_fail(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = suite.Part("kernel", "echo 'kernel: NOT TESTED on 6.12: no headers'; echo 'kernel: 5 checks'")
    python = suite.Part("python", "echo 'SKIPPED [1] test_wheel.py:3: NOT INSTALLED: no package index answers'")
    missing = "echo 'setup: missing: clang (fuzzing)'"
    lanes = ((suite.Part("lab", "exit 2", optional=True), kernel), (python,))
    assert run(suite, monkeypatch, *lanes, setup=missing) == 0
    shown = capfd.readouterr().out.split("Not checked here:\n")[1]
    assert "setup: setup: missing: clang (fuzzing)" in shown
    assert "kernel: kernel: NOT TESTED on 6.12: no headers" in shown
    assert "python: SKIPPED [1] test_wheel.py:3: NOT INSTALLED" in shown
    assert "lab: NOT DONE, exit code 2: exit 2" in shown
    assert "5 checks" not in shown


def test_a_setup_that_lacks_what_must_be_there_ends_the_suite(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = suite.Part("rust", f"touch {tmp_path}/ran")
    assert run(suite, monkeypatch, (part,), setup="exit 1") == 1
    assert not (tmp_path / "ran").exists()


def test_a_part_waits_for_the_one_it_needs(suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = suite.Part("kernel", f"sleep 0.3; touch {tmp_path}/built")
    python = suite.Part("python", f"test -e {tmp_path}/built", after="kernel")
    assert run(suite, monkeypatch, (kernel,), (python,)) == 0


def test_an_ended_suite_ends_its_parts(tmp_path: Path) -> None:
    text = (REPOSITORY / "python/suite.py").read_text()
    (tmp_path / "python").mkdir()
    program = tmp_path / "python/suite.py"
    begin, end = text.index("SUITES: dict"), text.index("@dataclass\nclass Result")
    sleep = f"echo $$ >{tmp_path}/pid; exec sleep 60"
    program.write_text(f"{text[:begin]}SUITES = {{'test': ((Part('one', {sleep!r}),),)}}\n\n\n{text[end:]}")
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    (tmp_path / "setup.sh").chmod(0o755)
    running = subprocess.Popen([sys.executable, program, "test"], stdout=subprocess.DEVNULL)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    assert running.wait(10) == 143
    status = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/status")
    for _ in range(1000):
        try:
            if "State:\tZ" in status.read_text():  # it has ended, and nobody has asked for its exit code
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    pytest.fail("the part goes on")
