# SPDX-License-Identifier: BSD-3-Clause
"""setup.sh takes nothing away from a machine, and does not trust half of a compiler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from command import REPOSITORY

APT = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *" --no-remove "*gcc-multilib*) exit 100 ;; esac
"""
# as Debian's gcc with libc6-dev-i386 beside a cross compiler: it links, but <errno.h> leads to headers that are absent
GCC = """#!/bin/sh
case "$*" in
*-m32*probe.c*) ! grep -q errno "$BUILD/probe.c" ;;
*-m32*) ! grep -q errno ;;
esac
"""
POLICY = """#!/bin/sh
echo "  Candidate: 1.0"
"""


def set_up(tmp_path: Path, purpose: str, **programs: str) -> tuple[list[str], str]:
    """Runs it with these programs in place of the machine's: the calls of apt-get, and what was printed."""
    for name, script in programs.items():
        program = tmp_path / name.replace("_", "-")
        program.write_text(script)
        program.chmod(0o755)
    calls = tmp_path / "calls"
    calls.touch()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls)}
    run = subprocess.run(
        ["sh", REPOSITORY / "setup.sh", purpose], env=environment, capture_output=True, text=True, check=False
    )
    return calls.read_text().splitlines(), run.stdout + run.stderr


def test_a_package_that_would_remove_another_is_left_out_and_the_rest_installed(tmp_path: Path) -> None:
    root = "#!/bin/sh\necho 0\n"
    calls, printed = set_up(tmp_path, "test", apt_get=APT, apt_cache=POLICY, gcc=GCC, id=root)
    installs = [call for call in calls if call.startswith("install ")]
    assert installs, printed
    assert all(" --no-remove " in call for call in installs)
    assert any(call.endswith(" gcc-multilib") for call in installs[1:])
    assert all(" gcc-multilib " not in call for call in installs[1:])
    assert "continuing without:" in printed
    assert "gcc-multilib" in printed.split("continuing without:")[1]


def test_half_of_a_32_bit_compiler_is_not_taken_for_one(tmp_path: Path) -> None:
    _, printed = set_up(tmp_path, "test", apt_get=APT, apt_cache=POLICY, gcc=GCC, id="#!/bin/sh\necho 1000\n")
    assert "gcc-multilib" in printed
    build = ["make", "-C", str(REPOSITORY / "core"), f"B={tmp_path}/build", "--dry-run", "missing"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "BUILD": f"{tmp_path}/build"}
    shown = subprocess.run(build, env=environment, capture_output=True, text=True, check=False)
    assert "no such compiler here: gcc-m32" in shown.stdout, shown.stdout + shown.stderr
