# SPDX-License-Identifier: BSD-3-Clause
"""Terminals that cannot show every letter, closed streams, and names of files that are not UTF-8."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command import SMALL

LINKWEIR = f"{shlex.quote(sys.executable)} -m linkweir"
COMMANDS = [
    "run scenario.toml --out out",
    "check scenario.toml",
    "compare scenario.toml --policies pss,fifo --seeds 2 --jobs 1 --out out",
    "policies pss",
    "--help",
]


def shell(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=os.environ | environment, capture_output=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = SMALL.replace('name = "ef"', 'name = "Ж ±"').replace('class = "ef"', 'class = "Ж ±"')
    assert "Ж" in text
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_cannot_show_are_replaced(folder: Path, command: str, encoding: str) -> None:
    done = shell(folder, f"{LINKWEIR} {command}", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


@pytest.mark.slow
def test_the_c_locale_is_enough(folder: Path) -> None:
    command = f"{LINKWEIR} {COMMANDS[2]}"
    done = shell(folder, command, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b" ? " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_closed_streams_are_no_failure(folder: Path, command: str) -> None:
    without_stdout = shell(folder, f"{LINKWEIR} {command} >&-")
    assert (without_stdout.returncode, without_stdout.stderr) == (0, b"")
    (folder / "out").exists() and shell(folder, "rm -r out")
    without_both = shell(folder, f"{LINKWEIR} {command} >&- 2>&-")
    assert without_both.returncode == 0
    assert shell(folder, f"{LINKWEIR} run none.toml 2>&-").returncode == 2


@pytest.mark.slow
def test_a_scenario_may_have_a_name_that_is_not_utf_8(folder: Path) -> None:
    name = b"sc\xe9nario.toml"
    (folder / "scenario.toml").rename(folder / os.fsdecode(name))
    for words in ("run {} --out out", "check {}", "compare {} --policies pss,fifo --seeds 2 --jobs 1"):
        done = shell(folder, f"{LINKWEIR} {words.format('sc*nario.toml')}")
        assert (done.returncode, done.stderr) == (0, b""), words
    wrong = shell(folder, f"printf x > $(printf 'w\\351.toml'); {LINKWEIR} run w*.toml")
    assert wrong.returncode == 2
    assert b"Traceback" not in wrong.stderr
