# SPDX-License-Identifier: BSD-3-Clause
"""Python for aarch64 under qemu, without a system around it: enough to run what a wheel installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "machines"))
import bare

SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = ("python3-minimal", "python3", "libpython3-stdlib", "libstdc++6")
# what pip may install for that Python
PLATFORMS = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28, 34)]
ABIS = [f"--abi={abi}" for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none")]
# they name the machine, the time and the folder
DIFFERENT = ("provenance.json", "report.html")


class Machine:
    """Debian's Python for aarch64 in a folder, and the packages that were installed for it."""

    def __init__(self, place: Path) -> None:
        self.root, self.site = place / "root", place / "site"
        place.mkdir()
        bare.unpack(SUITE, "arm64", self.root, PACKAGES)
        self.program = interpreter()
        self.qemu = " ".join(check(self.program, "--version").split()[:3])

    def install(self, pip: Path, wheel: Path) -> None:
        """Installs a wheel with what it depends on, all as wheels for aarch64."""
        words = ["--quiet", "--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp"]
        check(pip, "install", *words, *ABIS, *PLATFORMS, "--target", self.site, wheel)

    def linkweir(self, *words: object, fails: bool = False) -> str:
        """Runs the command line, which fails only if it should."""
        changes = {
            "PYTHONHOME": self.root / "usr",
            "PYTHONPATH": self.site,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        settings = [word for name, value in changes.items() for word in ("-E", f"{name}={value}")]
        python = self.root / f"usr/bin/python{PYTHON}"
        return check(self.program, "-L", self.root, *settings, python, "-m", "linkweir", *words, fails=fails)


def interpreter() -> str:
    """The program that runs those of arm64."""
    found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if found is None:
        sys.exit("release: qemu-aarch64 is missing")
    return found


def check(*words: object, fails: bool = False, at: Path | None = None) -> str:
    """Runs a command and returns its output; ends the release if it fails, or succeeds although it should fail."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=at, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if (done.returncode != 0) != fails:
        print(done.stdout[-5000:], file=sys.stderr)
        sys.exit(f"release: {' '.join(command[:8])}: exit code {done.returncode}")
    return done.stdout


def same_files(one: Path, other: Path) -> int:
    """Compares all files of runs but those that name machine and time; returns how many there are."""
    files = [{path.relative_to(at) for path in at.rglob("*") if path.is_file()} for at in (one, other)]
    if files[0] != files[1] or not files[0]:
        sys.exit(f"release: the runs wrote different files: {sorted(map(str, files[0] ^ files[1]))}")
    compared = [path for path in sorted(files[0]) if path.name not in DIFFERENT]
    for path in compared:
        if (one / path).read_bytes() != (other / path).read_bytes():
            sys.exit(f"release: {path} is not the same in {one} and {other}")
    return len(compared)
