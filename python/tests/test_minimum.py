# SPDX-License-Identifier: BSD-3-Clause
"""The least versions of Rust and Python: each is stated once, or compared, and the locked packages accept them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINUX = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WORKSPACE = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]
RUST: str = WORKSPACE["package"]["rust-version"]
PYTHON: str = PROJECT["project"]["requires-python"].removeprefix(">=")


def number(version: str) -> tuple[int, ...]:
    major, minor, *patch = map(int, version.split("."))
    return (major, minor, *(patch or [0]))


def packages_for(platform: str) -> list[dict[str, Any]]:
    """The locked packages that are built there; without the platform, those of Windows would be listed too."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={platform}"]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, Any]] = json.loads(shown.stdout)["packages"]
    return found


@pytest.mark.parametrize("platform", LINUX)
def test_every_locked_package_takes_the_least_rust(platform: str) -> None:
    packages = packages_for(platform)
    assert len(packages) > 100
    stated = {f"{p['name']} {p['version']}": p["rust_version"] for p in packages if p["rust_version"]}
    assert len(stated) > 50
    assert {name: least for name, least in stated.items() if number(least) > number(RUST)} == {}


def test_every_crate_states_the_least_rust_of_the_workspace() -> None:
    members = [p for p in packages_for(LINUX[0]) if p["source"] is None]
    found = {path.parent for path in REPOSITORY.glob("*/*/Cargo.toml")} - {REPOSITORY / "build/site-source"}
    assert {p["name"] for p in members} == {path.name for path in found}
    assert {p["rust_version"] for p in members} == {RUST}


def test_the_resolver_prefers_versions_that_take_the_least_rust() -> None:
    assert WORKSPACE["resolver"] == "3"


def test_python_tools_judge_by_the_least_python() -> None:
    tool = PROJECT["tool"]
    assert tool["mypy"]["python_version"] == PYTHON
    assert tool["ruff"]["target-version"] == f"py{PYTHON.replace('.', '')}"


# the tools that setup.sh uses itself, and a compiler, which the tests of versions are not about
TOOLS = ("sh", "dirname", "sed", "sort", "head", "printf", "cut", "cat", "gcc", "ls")


def missing(folder: Path, *, rust: str, python: str, apt: dict[str, str] | None = None) -> str:
    """What setup.sh says to a plain user who has these versions, and whose apt, if any, has these packages."""
    answers = {"rustc": f"echo rustc {rust}", "cargo": "true", "python3": f"echo {python}", "id": "echo 1000"}
    if apt is not None:
        known = "".join(f"{package}) echo '  Candidate: {version}' ;;\n" for package, version in apt.items())
        # ls finds the package lists that apt-get update leaves
        answers |= {"apt-get": "true", "apt-cache": f'case "$2" in\n{known}esac', "ls": "true"}
    for name in TOOLS:
        if name not in answers:
            (folder / name).symlink_to(str(shutil.which(name)))
    for name, answer in answers.items():
        (folder / name).write_text(f"#!/bin/sh\n{answer}\n")
        (folder / name).chmod(0o755)
    command = ["/bin/sh", REPOSITORY / "setup.sh", "build"]
    environment = {**os.environ, "PATH": str(folder)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert shown.returncode == (1 if "required, missing:" in shown.stderr else 0), shown
    return shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("rust", "python", "wanted"),
    [
        (f"{RUST}.0", PYTHON, []),
        ("1.84.1", PYTHON, [f"Rust {RUST} or later"]),
        ("1.100.0", "3.100", []),
        (RUST, "3.9", [f"Python {PYTHON} or later with venv"]),
    ],
)
def test_setup_wants_the_least_versions_and_no_later_ones(
    rust: str, python: str, wanted: list[str], tmp_path: Path
) -> None:
    packages = {"rustc": "1.85.0", "cargo": "1.85.0", "python3-venv": "3.11"}
    advice = missing(tmp_path, rust=rust, python=python, apt=packages)
    assert re.findall(r"\(((?:Rust|Python) [^)]*)\)", advice) == wanted
    lines = re.findall(r"as root: apt-get update && apt-get install --no-install-recommends .+", advice)
    assert len(lines) == len(wanted)


def test_setup_says_so_where_no_known_package_has_the_least_rust(tmp_path: Path) -> None:
    advice = missing(tmp_path, rust="1.75.0", python=PYTHON, apt={"rustc": "1.75.0", "cargo": "1.75.0"})
    assert f"Rust {RUST} or later is needed, and no package of this release that setup.sh knows has it" in advice
    assert "apt-get install" not in advice


def test_setup_names_the_packages_where_there_is_no_apt(tmp_path: Path) -> None:
    advice = missing(tmp_path, rust="1.75.0", python="3.9")
    named = re.findall(r"install these with your package manager \(Debian's names\): (.+)", advice)
    assert len(named) == 1
    assert re.fullmatch("python3-venv rustc(?:-web)? cargo(?:-web)?", named[0])
    assert "apt-get" not in advice
