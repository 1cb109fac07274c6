# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/platforms.md: what of the Python package needs no Linux, tried without what only Linux has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from command import REPOSITORY, SMALL

PAGE = (REPOSITORY / "docs/reference/platforms.md").read_text()
MACHINES = (REPOSITORY / "machines/macos.sh").read_text()
WITHOUT_LINUX = """
import os, select, signal, socket
GONE = {
    os: ("sched_", "pidfd_", "memfd_", "eventfd", "setns", "unshare", "splice", "timerfd", "posix_fadvise"),
    select: ("epoll",), signal: ("SIGRT", "pidfd_"), socket: ("AF_NETLINK", "AF_PACKET"),
}
for module, beginnings in GONE.items():
    for name in [name for name in vars(module) if name.startswith(beginnings)]:
        delattr(module, name)
import builtins
found, real = [], builtins.open
def watched(file, *rest, **named):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(file)
    return real(file, *rest, **named)
builtins.open = watched
"""


def without_linux(script: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LINUX + script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_module_is_imported(tmp_path: Path) -> None:
    script = """
import importlib, pkgutil, linkweir
for module in pkgutil.walk_packages(linkweir.__path__, "linkweir."):
    if ".templates" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    without_linux(script, tmp_path)


def test_a_scenario_runs_and_policies_are_compared(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    script = """
import linkweir
linkweir.run("small.toml", out="run")
linkweir.compare("small.toml", ["pss", "fifo"], seeds=2, jobs=2, out="compared")
"""
    without_linux(script, tmp_path)
    assert (tmp_path / "run/report.html").is_file()


def test_the_page_names_the_crates_that_the_script_checks() -> None:
    checked = set(re.findall(r'^crates="(.*)"$', MACHINES, re.MULTILINE)[0].split())
    table = PAGE.split("| part | result |")[1].split("\n\n")[0]
    rows = {name: row for row in table.splitlines() for name in re.findall(r"`(linkweir-[a-z]+)`", row)}
    all_crates = {path.name for path in (REPOSITORY / "crates").iterdir() if path.is_dir()}
    assert set(rows) == all_crates
    assert {name for name, row in rows.items() if "does not compile" not in row} == checked
