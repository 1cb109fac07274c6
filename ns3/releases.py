#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Builds and tests the module against releases of ns-3, as root.

    python3 ns3/releases.py [3.37|3.44|3.48|3.48-tree]...

* 3.37: Debian 12's libns3-dev, which must be installed (C++17).
* 3.44: the wheel of PyPI, in a virtual environment of its own (C++20).
* 3.48: Debian sid's libns3-dev, in a system that debootstrap makes (C++23).
* 3.48-tree: in that system, ns-3's source tree: the tarball is unpacked into its contrib/ and built with ns-3's own
  commands, with only the modules needed and with ns-3's assertions. Debian sid has the tree as a source package;
  NS3_TREE=FOLDER names another one.

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
    print("+", " ".join(str(word) for word in command), file=sys.stderr, flush=True)
    return subprocess.run([str(word) for word in command], stdout=sys.stderr, check=False).returncode == 0


def run_or_stop(*command: str | Path) -> None:
    """Runs a command.

    Raises:
        RuntimeError: it failed.
    """
    if not run(*command):
        raise RuntimeError(f"{command[0]} failed")


def build(source: Path, folder: Path, standard: int, *options: str, inside: Path | None = None) -> bool:
    """Builds the module alone and runs its suite, in a system if one is named."""
    enter = ["chroot", str(inside)] if inside else []
    suite = [*enter, f"{folder}/linkweir-test", "--test-name=linkweir", "--verbose", "--fullness=QUICK"]
    return (
        run(*enter, "cmake", "-S", source, "-B", folder, f"-DCMAKE_CXX_STANDARD={standard}", *options)
        and run(*enter, "make", "-C", folder, "-j", JOBS)
        and run(*suite)
    )


def have_debian_12() -> bool:
    """Whether 3.37 is installed."""
    return Path("/usr/lib/x86_64-linux-gnu/libns3-core.so.37").exists()


def debian_12() -> bool | None:
    """3.37; None if it is not here."""
    if not have_debian_12():
        return None
    return build(ROOT / "ns3", WORK / "3.37", 17)


def wheel_prefix() -> Path | None:
    """Where the CMake files of PyPI's wheel are, which is installed if it is not yet; None if it cannot be had.

    The packages that it depends on are for Python programs only, and take minutes to build.
    """
    venv, pattern = WORK / "venv", "lib/python*/site-packages/ns3/lib64/cmake"
    if not any(venv.glob(pattern)):
        made = venv.exists() or run(sys.executable, "-m", "venv", venv)
        if not made or not run(venv / "bin/pip", "install", "--quiet", "--no-deps", "ns3==3.44.post0"):
            return None
    return next(venv.glob(pattern))


def wheel() -> bool | None:
    """3.44; None if it cannot be had."""
    cmake = wheel_prefix()
    return None if cmake is None else build(ROOT / "ns3", WORK / "3.44", 20, f"-DCMAKE_PREFIX_PATH={cmake}")


SID = WORK / "sid"
SID_PACKAGES = ("g++", "cmake", "make", "python3", "dpkg-dev", "libns3-dev")
SOURCES = Path("usr/src")
TREES = SOURCES / "ns3"
"""Where the system of 3.48 has ns-3's source tree, from its root."""


def have_sid() -> bool:
    """Makes Debian sid with ns-3, unless it is there; false if it cannot be had."""
    if (SID / ".made").exists():
        return True
    shutil.rmtree(SID, ignore_errors=True)
    if not run("debootstrap", "--variant=minbase", f"--include={','.join(SID_PACKAGES)}", "sid", SID):
        return False
    (SID / ".made").touch()
    return True


def packed() -> Path:
    """The tarball of the module."""
    return max((ROOT / "build/ns3-dist").glob("linkweir-ns3-*.tar.gz"))


def sid() -> bool | None:
    """3.48 as installed; None if it cannot be had."""
    if not have_sid():
        return None
    shutil.rmtree(SID / SOURCES / "linkweir", ignore_errors=True)
    return run("tar", "xzf", packed(), "-C", SID / SOURCES) and build(
        Path("/usr/src/linkweir"), Path("/usr/src/build"), 23, inside=SID
    )


def source_tree() -> Path | None:
    """The source tree of 3.48 in Debian sid: NS3_TREE's, or else Debian's; None if it cannot be had."""
    trees = SID / TREES
    named = os.environ.get("NS3_TREE")
    if named:
        # links become copies, as a link cannot be copied over the one of an earlier run
        shutil.copytree(named, trees / "named", ignore_dangling_symlinks=True, dirs_exist_ok=True)
        return trees / "named"
    if not any(trees.glob("*/VERSION")):
        trees.mkdir(exist_ok=True)
        lists = SID / "etc/apt/sources.list"
        lines = [line for line in lists.read_text().splitlines() if line.startswith("deb ")]
        lists.write_text("".join(f"{line}\n{line.replace('deb', 'deb-src', 1)}\n" for line in lines))
        # A mirror may lag behind; debootstrap accepts that, too. Signatures are checked all the same.
        apt = "apt-get -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root"
        if not run("chroot", SID, "sh", "-c", f"{apt} update && cd /{TREES} && {apt} source ns3"):
            return None
    return next(trees.glob("*/VERSION")).parent


def in_tree() -> bool | None:
    """The tarball in contrib/ of 3.48's source tree, built by ns-3's own commands in the debug profile, which has
    assertions; None if there is no tree.
    """
    tree = source_tree() if have_sid() else None
    if tree is None:
        return None
    shutil.rmtree(tree / "contrib/linkweir", ignore_errors=True)
    if not run("tar", "xzf", packed(), "-C", tree / "contrib"):
        return False
    modules = "--enable-modules=linkweir --filter-module-examples-and-tests=linkweir"
    words = f"--build-profile=debug --enable-tests --enable-examples {modules}"
    commands = (f"./ns3 configure {words}", f"./ns3 build -j {JOBS}", "./test.py --no-build --suite=linkweir")
    folder = f"/{tree.relative_to(SID)}"
    return all(run("chroot", SID, "sh", "-c", f"cd {folder} && {command}") for command in commands)


RELEASES = {"3.37": debian_12, "3.44": wheel, "3.48": sid, "3.48-tree": in_tree}


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
