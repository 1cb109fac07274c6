# SPDX-License-Identifier: BSD-3-Clause
"""What is installed of the gateway: its unit, and what its Debian package holds. `make deb` builds and lists it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CRATE = REPOSITORY / "crates/linkweir-gateway"
UNIT = CRATE / "debian/linkweir-gateway@.service"
# Tenths of what systemd-analyze calls exposure: it says 2.6, most of it for beginning as root.
MOST_EXPOSED = 27


def analyze(*words: object) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("THE UNIT IS NOT CHECKED: systemd-analyze of the package systemd is missing")
    return subprocess.run(
        ["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )


def written(folder: Path, text: str) -> Path:
    # systemd wants to find the program, which is not installed here.
    path = folder / "linkweir-gateway@lw0.service"
    path.write_text(text.replace("ExecStart=/usr/bin/linkweir-gateway ", f"ExecStart={shutil.which('true')} "))
    return path


def test_the_unit_is_understood_and_a_mistake_would_be_found(tmp_path: Path) -> None:
    text = UNIT.read_text()
    checked = analyze("verify", written(tmp_path, text))
    assert (checked.returncode, checked.stderr) == (0, "")
    mistaken = analyze("verify", written(tmp_path, text.replace("ProtectHome=", "ProtectHouse=")))
    assert "ProtectHouse" in mistaken.stderr


def test_the_unit_exposes_little(tmp_path: Path) -> None:
    text = UNIT.read_text()

    def little(text: str) -> bool:
        path = written(tmp_path, text)
        return analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", path).returncode == 0

    assert little(text)
    assert not little(text.replace("SystemCallFilter=@system-service\n", "").replace("ProtectSystem=strict\n", ""))


def test_the_unit_has_the_device_and_nothing_that_hides_it() -> None:
    lines = UNIT.read_text().splitlines()
    assert "DeviceAllow=/dev/net/tun rw" in lines
    assert not any(line.startswith(("PrivateDevices=", "PrivateNetwork=", "User=")) for line in lines)


def test_the_unit_may_signal_the_user_the_gateway_became() -> None:
    lines = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] not in "#[")
    assert lines["ExecReload"].startswith("+") or "CAP_KILL" in lines["CapabilityBoundingSet"].split()


def test_everything_the_package_is_made_of_is_there() -> None:
    manifest = tomllib.loads((CRATE / "Cargo.toml").read_text())
    assets = manifest["package"]["metadata"]["deb"]["assets"]
    kept = [source for source, _, _ in assets if not source.startswith("target/")]
    assert len(kept) == len(assets) - 1
    for source in kept:
        assert list(CRATE.glob(source)) or (CRATE / source).is_file(), source
