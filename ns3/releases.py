#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Builds and tests the module against releases of ns-3, as root.

    python3 ns3/releases.py [3.37|3.44|3.48]...

* 3.37: Debian 12's libns3-dev, which must be installed (C++17).
* 3.44: the wheel of PyPI, in a virtual environment of its own (C++20).
* 3.48: Debian sid's libns3-dev, in a system that debootstrap makes (C++23). There also ns-3's source tree of the same
  release: the tarball is unpacked into its contrib/ and built with ns-3's own commands, with only the modules needed
  and with ns-3's assertions.

Everything is in build/ns3. A release that is missing is named and left out; the exit code is 1 if a test failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/ns3"
JOBS = str(max(os.cpu_count() or 1, 2))


def run(*command: str | Path) -> bool:
    """Runs a command and shows it."""
    print("+", " ".join(str(word) for word in command), flush=True)
    return subprocess.run([str(word) for word in command], check=False).returncode == 0


def build(source: Path, folder: Path, standard: int, *options: str, inside: Path | None = None) -> bool:
    """Builds the module alone and runs its suite, in a system if one is named."""
    enter = ["chroot", str(inside)] if inside else []
    suite = [*enter, f"{folder}/linkweir-test", "--test-name=linkweir", "--verbose", "--fullness=QUICK"]
    return (
        run(*enter, "cmake", "-S", source, "-B", folder, f"-DCMAKE_CXX_STANDARD={standard}", *options)
        and run(*enter, "make", "-C", folder, "-j", JOBS)
        and run(*suite)
    )


def debian_12() -> bool | None:
    """3.37; None if it is not here."""
    if not Path("/usr/lib/x86_64-linux-gnu/libns3-core.so.37").exists():
        return None
    return build(ROOT / "ns3", WORK / "3.37", 17)


def wheel() -> bool | None:
    """3.44; None if it cannot be had."""
    venv = WORK / "venv"
    if not venv.exists() and not run(sys.executable, "-m", "venv", venv):
        return None
    if not run(venv / "bin/pip", "install", "--quiet", "ns3==3.44.post0"):
        return None
    cmake = next(venv.glob("lib/python*/site-packages/ns3/lib64/cmake"))
    return build(ROOT / "ns3", WORK / "3.44", 20, f"-DCMAKE_PREFIX_PATH={cmake}")


SID_PACKAGES = ("g++", "cmake", "make", "python3", "dpkg-dev", "libns3-dev")
TREES = Path("usr/src/ns3")
"""Where the system of 3.48 has ns-3's source tree, from its root."""


def sid() -> bool | None:
    """3.48, installed and in its source tree; None if it cannot be had."""
    system = WORK / "sid"
    if not (system / ".made").exists() and not make_system(system):
        return None
    sources = system / "usr/src"
    shutil.rmtree(sources / "linkweir", ignore_errors=True)
    tarball = max((ROOT / "build/ns3-dist").glob("linkweir-ns3-*.tar.gz"))
    if not run("tar", "xzf", tarball, "-C", sources):
        return None
    return build(Path("/usr/src/linkweir"), Path("/usr/src/build"), 23, inside=system) and in_tree(system, tarball)


def make_system(system: Path) -> bool:
    """Makes Debian sid with ns-3 and its source tree; false if it cannot be had."""
    shutil.rmtree(system, ignore_errors=True)
    if not run("debootstrap", "--variant=minbase", f"--include={','.join(SID_PACKAGES)}", "sid", system):
        return False
    lists = system / "etc/apt/sources.list"
    lists.write_text("".join(f"{line}\n{line.replace('deb ', 'deb-src ', 1)}\n" for line in lists.read_text().split("\n") if line))
    (system / TREES).mkdir()
    fetch = f"apt-get update && cd /{TREES} && apt-get -o APT::Sandbox::User=root source ns3"
    if not run("chroot", system, "sh", "-c", fetch):
        return False
    (system / ".made").touch()
    return True


def in_tree(system: Path, tarball: Path) -> bool:
    """The tarball in contrib/ of the source tree, built by ns-3's own commands in the debug profile, with assertions."""
    tree = next((system / TREES).glob("*/VERSION")).parent
    shutil.rmtree(tree / "contrib/linkweir", ignore_errors=True)
    if not run("tar", "xzf", tarball, "-C", tree / "contrib"):
        return False
    words = "--build-profile=debug --enable-modules=linkweir --enable-tests --enable-examples"
    commands = (f"./ns3 configure {words}", "./ns3 build", "./test.py --no-build --suite=linkweir")
    folder = f"/{tree.relative_to(system)}"
    return all(run("chroot", system, "sh", "-c", f"cd {folder} && {command}") for command in commands)


RELEASES = {"3.37": debian_12, "3.44": wheel, "3.48": sid}


def main(names: list[str]) -> int:
    """The exit code."""
    unknown = [name for name in names if name not in RELEASES]
    if unknown:
        print(f"releases.py: {unknown[0]} must be one of {', '.join(RELEASES)}", file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    results = {name: RELEASES[name]() for name in names or RELEASES}
    for name, good in results.items():
        print(f"ns-3 {name}: {'NOT CHECKED: it is not here' if good is None else 'good' if good else 'FAILED'}")
    return int(any(good is False for good in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
