# SPDX-License-Identifier: BSD-3-Clause
"""The bare systems of `make fresh`: what is carried into them, and that a killed run leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import REPOSITORY

MACHINES = REPOSITORY / "machines"
sys.path.append(str(MACHINES))
import bare  # noqa: E402
import fresh  # noqa: E402

RUNS_FOREVER = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
import bare
bare.run(Path(sys.argv[2]), "sleep 100000", sys.stderr.buffer)
"""


def test_only_settings_of_the_network_that_mean_something_there_are_carried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in bare.settings():
        monkeypatch.delenv(name)
    certificate = tmp_path / "authority.pem"
    certificate.write_text("")
    wanted = {"PIP_CERT": str(certificate), "CARGO_HTTP_TIMEOUT": "60", "https_proxy": "proxy:3128"}
    others = {
        "PIP_FIND_LINKS": str(tmp_path),
        "CARGO_HOME": "/root/.cargo",
        "CARGO_REGISTRIES_OURS_TOKEN": "x",
        "A": "b",
    }
    for name, value in (wanted | others).items():
        monkeypatch.setenv(name, value)
    assert bare.settings() == wanted


def inside(system: Path) -> list[int]:
    """The processes whose root it is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "root").readlink() == system:
                found.append(int(process.name))
    return found


def test_a_killed_run_leaves_neither_processes_nor_mounts(tmp_path: Path) -> None:
    busybox = shutil.which("busybox")
    dynamic = busybox is None or subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode == 0
    if os.geteuid() != 0 or busybox is None or dynamic:
        pytest.skip("NOT TESTED that a killed run leaves nothing: that needs root and a static busybox")
    system = tmp_path / "system"
    for folder in ("bin", "root", "proc", "sys", "dev/pts", "dev/shm"):
        (system / folder).mkdir(parents=True)
    (system / "dev/null").touch()
    shutil.copy(busybox, system / "bin/busybox")
    for applet in ("sh", "sleep"):
        (system / "bin" / applet).symlink_to("busybox")
    run = subprocess.Popen([sys.executable, "-c", RUNS_FOREVER, MACHINES, system])
    while not inside(system):
        assert run.poll() is None
        time.sleep(0.05)
    run.kill()
    run.wait()
    for _ in range(600):
        if not inside(system):
            break
        time.sleep(0.05)
    left = inside(system)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert left == []
    assert str(system) not in Path("/proc/self/mountinfo").read_text()
    shutil.rmtree(system)


def test_the_installed_package_is_not_passed_without_an_example_of_a_gateway(tmp_path: Path) -> None:
    (tmp_path / "linkweir-gateway").write_text("#!/bin/sh\necho checked $2\n")
    (tmp_path / "linkweir-gateway").chmod(0o755)
    script = fresh.CHECK_EXAMPLES.replace(fresh.EXAMPLES, str(tmp_path / "examples"))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (tmp_path / "examples").mkdir()
    for table, wanted in (("[emulator]", ""), ("[gateway]", f"checked {tmp_path}/examples/a.toml\n")):
        (tmp_path / "examples/a.toml").write_text(f"{table}\n")
        done = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode == 0, done.stdout) == (wanted != "", wanted)
