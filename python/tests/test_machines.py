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
        "PIP_INDEX_URL": "https://user:pass@packages.example/simple",
        "http_proxy": "http://user:pass@proxy:3128",
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
    (tmp_path / "linkweir-gateway").write_text("#!/bin/sh\n# check --cleartext FILE\necho checked $3\n")
    (tmp_path / "linkweir-gateway").chmod(0o755)
    script = fresh.CHECK_EXAMPLES.replace(fresh.EXAMPLES, str(tmp_path / "examples"))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (tmp_path / "examples").mkdir()
    for table, wanted in (("[emulator]", ""), ("[gateway]", f"checked {tmp_path}/examples/a.toml\n")):
        (tmp_path / "examples/a.toml").write_text(f"{table}\n")
        done = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode == 0, done.stdout) == (wanted != "", wanted)


def test_a_missing_security_archive_is_reported_with_the_option_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bare, "mirror", lambda label: None)
    monkeypatch.setattr(sys, "argv", ["fresh.py"])
    with pytest.raises(SystemExit):
        fresh.parse()
    errors = capsys.readouterr().err
    assert 'make fresh SYSTEMS="--security-mirror URL"' in errors
    monkeypatch.setattr(sys, "argv", ["fresh.py", "debian-13"])
    assert fresh.parse().systems == ["debian-13"]


def test_root_reads_a_plain_users_checkout_and_sees_why_git_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED that root reads a plain user's checkout: that needs root")
    checkout = tmp_path / "checkout"
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody"]
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    subprocess.run(["git", "-C", checkout, *author, "commit", "--quiet", "--allow-empty", "-m", "First"], check=True)
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    monkeypatch.setattr(fresh, "ROOT", checkout)
    assert fresh.git("log", "--format=%s") == "First\n"
    fresh.git("bundle", "create", "--quiet", tmp_path / "bundle", "HEAD")
    with pytest.raises(fresh.TrialError, match="unknown revision"):
        fresh.git("log", "no-such")


@pytest.mark.slow
def test_the_record_holds_what_ran_before_a_system_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(trial: fresh.Trial) -> None:
        if trial.system.name == "debian-12":
            trial.record.append(("debian-12", "make demo as root", 61.0, 2.0))
            raise OSError("disk is full")
        between.append((tmp_path / "record.md").read_text())

    between: list[str] = []
    monkeypatch.setattr(fresh, "WORK", tmp_path)
    monkeypatch.setattr(fresh, "git", lambda *words: "")
    monkeypatch.setattr(fresh.Trial, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["fresh.py", "debian-12", "debian-13"])
    assert fresh.main() == 1
    (record,) = between
    assert "| debian-12 | make demo as root | 1 min 01 s | 0 min 02 s |" in record
    assert "FAILED: debian-12: disk is full" in record


def test_debootstrap_finds_the_programs_of_sbin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert {"/usr/sbin", "/sbin"} <= set(bare.PATH.split(":"))
    (tmp_path / "debootstrap").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "debootstrap").chmod(0o755)
    monkeypatch.setattr(bare, "NAMESPACES", [])
    monkeypatch.setattr(bare, "PATH", f"{tmp_path}")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with (tmp_path / "log").open("ab") as log:
        assert bare.bootstrap("bookworm", tmp_path / "system", ["make"], log, None)
    assert "--include=make bookworm" in (tmp_path / "log").read_text()


def test_no_file_with_a_password_or_token_is_carried_and_the_others_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, system = tmp_path / "home", tmp_path / "system"
    (system / "etc/apt/apt.conf.d").mkdir(parents=True)
    (system / "etc/pip.conf").touch()  # this machine's own is not what is tried
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CARGO_HOME", str(home / ".cargo"))
    monkeypatch.setattr(bare, "run", lambda system, script, log: 0)
    carried = {"etc/xdg/pip/pip.conf": home / ".config/pip/pip.conf", ".cargo/config.toml": home / ".cargo/config.toml"}

    def carry(text: str) -> list[str]:
        for target, source in carried.items():
            (system / target).unlink(missing_ok=True)
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(text)
            source.chmod(0o600)
        with (tmp_path / "log").open("ab") as log:
            bare.carry_settings(system, log)
        return [target for target in carried if (system / target).exists()]

    assert carry("[global]\nfind-links = https://user:pass@packages.example/simple\n") == []
    assert carry('[registries.ours]\nindex = "sparse+https://x.example/"\ntoken = "Bearer 1"\n') == []
    assert carry("-----BEGIN PRIVATE KEY-----\n") == []
    errors = capsys.readouterr().err
    for source in carried.values():
        assert errors.count(f"password, token or private key: {source}\n") == 1
    assert carry("[global]\nfind-links = https://packages.example/simple\ntimeout = 60\n") == list(carried)
    assert {(system / target).stat().st_mode & 0o777 for target in carried} == {0o644}
