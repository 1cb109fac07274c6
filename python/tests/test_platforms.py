# SPDX-License-Identifier: BSD-3-Clause
"""docs/records/platforms.md: what of the Python package needs no Linux, tried without what only Linux has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import SMALL

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


@pytest.mark.slow
def test_a_scenario_runs_and_policies_are_compared(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    script = """
import linkweir
linkweir.run("small.toml", out="run")
linkweir.compare("small.toml", ["pss", "fifo"], seeds=2, jobs=2, out="compared")
"""
    without_linux(script, tmp_path)
    assert (tmp_path / "run/report.html").is_file()
