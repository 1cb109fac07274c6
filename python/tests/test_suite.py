# SPDX-License-Identifier: BSD-3-Clause
"""`make test` and `make check` end with one table, then failures and what was not checked; their exit code is right."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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
    # It may set this; setting it here first takes it away again after the test.
    monkeypatch.setenv("CARGO_INCREMENTAL", "")
    monkeypatch.delenv("CARGO_INCREMENTAL")
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
    assert re.search(r"^test: all passed: 0 tests in \d+ s; what was not checked is listed above \(4\)$", shown, re.M)


def test_parts_keep_what_python_has_compiled(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    part = suite.Part("python", 'test -z "$PYTHONDONTWRITEBYTECODE"')
    assert run(suite, monkeypatch, (part,)) == 0, capfd.readouterr().out


@pytest.mark.parametrize("built", [False, True])
def test_cargo_keeps_what_shortens_later_builds_only_where_it_did_before(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, built: bool
) -> None:
    if built:
        (tmp_path / "target/debug/incremental").mkdir(parents=True)
    part = suite.Part("rust", f'test "$CARGO_INCREMENTAL" = "{"" if built else 0}"')
    assert run(suite, monkeypatch, (part,)) == 0, capfd.readouterr().out


def test_only_the_check_leaves_out_slow_tests(suite: ModuleType) -> None:
    commands = {name: [part.command for lane in lanes for part in lane] for name, lanes in suite.SUITES.items()}
    assert not [command for command in commands["test"] if "slow" in command]
    assert suite.RUST in commands["test"]
    assert f"{suite.RUST} --skip slow::" in commands["check"]
    assert [command for command in commands["check"] if '-m "not slow and not long"' in command]


def without_a_compiler(folder: Path) -> str:
    """What the core prints where a compiler is missing."""
    command = ["make", "--no-print-directory", "-C", REPOSITORY / "core", "missing", "MISSING=clang++", f"B={folder}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.strip()


def without_root(_: Path) -> str:
    """What the gateway's tests in network namespaces print without root."""
    source = (REPOSITORY / "crates/linkweir-gateway/tests/namespaces/main.rs").read_text()
    [line] = re.findall(r'eprintln!\("(.*)\{why\}"\);', source)
    return f"{line}gateways in network namespaces; missing: root"


@pytest.mark.parametrize("printed", [without_a_compiler, without_root])
def test_missing_compilers_and_namespaces_are_repeated(
    suite: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    printed: Callable[[Path], str],
) -> None:
    line = printed(tmp_path / "core")
    assert "missing: root" in line or "clang++" in line
    assert run(suite, monkeypatch, (suite.Part("one", f"echo '{line}'"),)) == 0
    assert f"Not checked here:\n  one: {line}\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("said", "listed"),
    [
        ("guarantee: NOT CHECKED: coqc not installed", "guarantee: NOT CHECKED: coqc not installed"),
        ("made", "NOT TESTED: echo 'made' counted no test; see "),
    ],
)
def test_a_part_without_a_test_has_not_passed(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], said: str, listed: str
) -> None:
    assert run(suite, monkeypatch, (suite.Part("proofs", f"echo '{said}'", r"^rocq (\d+) theorems"),)) == 0
    shown = capfd.readouterr().out
    assert re.search(r"^proofs +0 .* not checked$", shown, re.M)
    assert not re.search(r"^proofs .* passed$", shown, re.M)
    assert f"Not checked here:\n  proofs: {listed}" in shown


def test_what_setup_installs_is_not_missing_afterwards(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "setup: missing: clang (the core with a second compiler)",
        "setup: missing: chromium (pages in a browser)",
        "setup: installing with apt-get",
        "setup: continuing without: chromium (steps that need them are skipped, with a message)",
    ]
    source = (REPOSITORY / "setup.sh").read_text()
    words = ("setup: missing: ", "setup: installing with apt-get", "setup: continuing without:")
    assert [word for word in words if word not in source] == []
    setup = "\n".join(f"echo '{line}'" for line in lines)
    assert run(suite, monkeypatch, (suite.Part("one", "true"),), setup=setup) == 0
    shown = capfd.readouterr().out.split("Not checked here:\n")[1]
    assert shown.splitlines()[0] == f"  setup: {lines[-1]}"
    assert "clang" not in shown


def test_the_last_line_names_the_parts_if_only_some_were_asked_for(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(suite.SUITES, "test", ((suite.Part("core", "true"), suite.Part("rust", "false")),))
    monkeypatch.setattr(sys, "argv", ["suite.py", "test", "core"])
    assert suite.main() == 0
    assert re.fullmatch(r"test: core passed: 0 tests in \d+ s", capfd.readouterr().out.splitlines()[-1])


def test_a_setup_that_lacks_what_must_be_there_ends_the_suite(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = suite.Part("rust", f"touch {tmp_path}/ran")
    assert run(suite, monkeypatch, (part,), setup="exit 1") == 1
    assert not (tmp_path / "ran").exists()


def program(folder: Path, lanes: str) -> Path:
    """A copy of the program with these lanes, and nothing to set up."""
    text = (REPOSITORY / "python/suite.py").read_text()
    begin, end = text.index("SUITES: dict"), text.index("@dataclass\nclass Result")
    (folder / "setup.sh").write_text("#!/bin/sh\n")
    (folder / "setup.sh").chmod(0o755)
    (folder / "python").mkdir()
    copy = folder / "python/suite.py"
    copy.write_text(f"{text[:begin]}SUITES = {{'test': {lanes}}}\n\n\n{text[end:]}")
    return copy


def sleeps(folder: Path) -> str:
    """A part that writes its process id to the file pid and sleeps."""
    return f"echo $$ >{folder}/pid; exec sleep 60"


def process(folder: Path) -> int:
    """The process id that the part has written, as soon as it has."""
    while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():
        time.sleep(0.01)
    return int((folder / "pid").read_text())


def ends(pid: int) -> bool:
    """Whether this process ends within ten seconds."""
    for _ in range(1000):
        try:
            if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():  # it has ended, but its parent has not waited
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_ended_suite_ends_its_parts(tmp_path: Path, number: signal.Signals) -> None:
    copy = program(tmp_path, f"((Part('one', {sleeps(tmp_path)!r}),),)")
    command = ["env", f"--default-signal={number.name[3:]}", sys.executable, copy, "test"]  # these tests may ignore it
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    pid = process(tmp_path)
    running.send_signal(number)
    assert running.wait(10) == 128 + number
    assert ends(pid)


def test_a_suite_below_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    copy = program(tmp_path, f"((Part('one', 'kill -HUP $PPID; touch {tmp_path}/ran'),),)")
    command = f"trap '' HUP; exec {sys.executable} {copy} test"
    assert subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert (tmp_path / "ran").exists()


def test_a_suite_that_cannot_print_ends_its_parts_and_fails(tmp_path: Path) -> None:
    waits = f"until test -e {tmp_path}/closed; do sleep 0.01; done"
    one, two = f"Part('one', {waits!r})", "Part('two', 'true')"
    three, four = f"Part('three', {sleeps(tmp_path)!r})", "Part('four', 'true')"
    lanes = f"(({one}, {two}), ({three}, {four}))"
    command = [sys.executable, program(tmp_path, lanes), "test"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stderr is not None
    pid = process(tmp_path)
    running.stdout.close()
    (tmp_path / "closed").touch()
    try:
        assert running.wait(10) != 0
    finally:
        running.kill()
    assert "test: ended before all parts had run: [Errno 32] Broken pipe" in running.stderr.read()
    assert ends(pid)
