# SPDX-License-Identifier: BSD-3-Clause
"""Completion as a shell asks for it, after it was installed as the help says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY, linkweir_process

BIN = Path(sys.executable).parent
COMMANDS = {
    "run",
    "check",
    "policies",
    "report",
    "rerun",
    "reproduce",
    "plan",
    "compare",
    "sweep",
    "yardstick",
    "emulate",
    "lab",
    "init",
    "schema",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which completion was installed from a bash."""
    if shutil.which("bash") is None:
        pytest.skip("COMPLETION IS NOT TRIED: bash is missing")
    folder = tmp_path_factory.mktemp("home")
    output = bash(folder, "linkweir --install-completion; true")
    assert "completion installed" in output
    return folder


def bash(home: Path, script: str) -> str:
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


def completed(home: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words: it calls the function that is registered for the command."""
    script = """
    source "$HOME/.bashrc"
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
    registered=$(complete -p linkweir); registered=${registered##* -F }
    ${registered%% *} linkweir "${COMP_WORDS[COMP_CWORD]}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    quoted = " ".join(f"'{word}'" for word in words)
    return set(bash(home, f"set -- {quoted}\n{script}").split())


@pytest.mark.slow
def test_bash_completes_commands(home: Path) -> None:
    assert completed(home, "linkweir", "ru") == {"run"}
    assert completed(home, "linkweir", "re") == {"replay", "report", "rerun", "reproduce"}
    assert completed(home, "linkweir", "") >= COMMANDS


@pytest.mark.slow
def test_bash_completes_what_the_packages_offer(home: Path) -> None:
    assert completed(home, "linkweir", "plan", "p") == {"pss", "pds"}
    assert completed(home, "linkweir", "reproduce", "") == {"pss", "pds", "codes"}
    assert completed(home, "linkweir", "sweep", "plan.toml", "--da") == {"--dask"}
    assert completed(home, "linkweir", "reproduce", "pss", "--fig") == {"--figure"}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered_in_their_words(shell: str) -> None:
    environment = {
        **os.environ,
        "_LINKWEIR_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "linkweir sweep --da",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "--da",
    }
    done = linkweir_process(env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--dask" in done.stdout


@pytest.mark.slow
def test_only_the_whole_command_offers_to_install_it() -> None:
    assert "--install-completion" in linkweir_process("--help").stdout
    for package in ("reproduce", "plan", "sweep", "lab"):
        assert "completion" not in linkweir_process(package, "--help").stdout


GATEWAY = REPOSITORY / "crates/linkweir-gateway/manual/bash/linkweir-gateway"


def completed_of_the_gateway(*words: str) -> set[str]:
    script = """
    source "$FILE"
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
    registered=$(complete -p linkweir-gateway); registered=${registered##* -F }
    ${registered%% *} linkweir-gateway "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "FILE": str(GATEWAY)}
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", "linkweir-gateway", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_bash_completes_the_gateway() -> None:
    assert completed_of_the_gateway("em") == {"emulate"}
    assert completed_of_the_gateway("") >= {"keygen", "check", "up", "show", "page", "metrics", "emulate", "set"}
    assert completed_of_the_gateway("up", "--cl") == {"--cleartext"}
    assert completed_of_the_gateway("set", "cap") == {"capacity"}
