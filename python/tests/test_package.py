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
UNITS = sorted(CRATE.glob("debian/*.service"))
# Tenths of what systemd-analyze calls exposure: it says 2.6, most of it for beginning as root.
MOST_EXPOSED = 27
# Without these settings any of the units exposes more.
LESSENING = ("SystemCallFilter=", "ProtectSystem=", "CapabilityBoundingSet=")


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


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_understood_and_a_mistake_would_be_found(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()
    checked = analyze("verify", written(tmp_path, text))
    assert (checked.returncode, checked.stderr) == (0, "")
    mistaken = analyze("verify", written(tmp_path, text.replace("ProtectHome=", "ProtectHouse=")))
    assert "ProtectHouse" in mistaken.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_exposes_little(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()

    def little(text: str) -> bool:
        path = written(tmp_path, text)
        return analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", path).returncode == 0

    assert little(text)
    kept = [line for line in text.splitlines(keepends=True) if not line.startswith(LESSENING)]
    assert not little("".join(kept))


def test_the_unit_has_the_device_and_nothing_that_hides_it() -> None:
    lines = UNIT.read_text().splitlines()
    assert "DeviceAllow=/dev/net/tun rw" in lines
    assert not any(line.startswith(("PrivateDevices=", "PrivateNetwork=", "User=")) for line in lines)


def test_the_unit_may_signal_the_user_the_gateway_became() -> None:
    lines = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] not in "#[")
    assert lines["ExecReload"].startswith("+") or "CAP_KILL" in lines["CapabilityBoundingSet"].split()


def test_the_unit_runs_programs_that_every_debian_has() -> None:
    # the package declares no dependency for others; /bin/kill is in procps, which small systems lack
    runs = [
        line.split("=", 1)[1].lstrip("+").split()[0] for line in UNIT.read_text().splitlines() if line[:4] == "Exec"
    ]
    assert set(runs) == {"/usr/bin/linkweir-gateway", "/bin/sh"}


def assets() -> list[tuple[str, str, str]]:
    """Source, place and mode of what the manifest packs."""
    manifest = tomllib.loads((CRATE / "Cargo.toml").read_text())
    return [tuple(asset) for asset in manifest["package"]["metadata"]["deb"]["assets"]]


def test_everything_the_package_is_made_of_is_there() -> None:
    kept = [source for source, _, _ in assets() if not source.startswith("target/")]
    assert len(kept) == len(assets()) - 1
    for source in kept:
        assert list(CRATE.glob(source)) or (CRATE / source).is_file(), source


def checked(root: Path, table: str = "[gateway]", *, runner: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """What debian/check.sh says of a package of these files, with a stand-in for the program.

    In the packed examples `table` replaces "[gateway]". The words of `runner` are put before the program.
    """
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: linkweir-gateway\nVersion: 7.1-1\nArchitecture: all\nMaintainer: nobody\nDescription: a test\n"
    )
    program = root / "usr/bin/linkweir-gateway"
    for source, place, _ in [*assets(), ("debian/copyright", "usr/share/doc/linkweir-gateway/", "")]:
        (root / place).mkdir(parents=True, exist_ok=True)
        for path in CRATE.glob(source) if "*" in source else [CRATE / source]:
            if path.is_file():
                copy = Path(shutil.copy(path, root / place))
                if copy.suffix == ".toml":
                    copy.write_text(copy.read_text().replace("[gateway]", table))
    program.write_text(
        '#!/bin/sh\ncase $1 in\n--version) echo linkweir-gateway 7.1 ;;\nkeygen) : >"$2" ;;\n*) test -s "$2" ;;\nesac\n'
    )
    program.chmod(0o755)
    package = root.with_suffix(".deb")
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, package], check=True, capture_output=True)
    return subprocess.run([CRATE / "debian/check.sh", package, *runner], capture_output=True, text=True, check=False)


def test_what_the_manifest_packs_is_what_the_packages_check_wants(tmp_path: Path) -> None:
    done = checked(tmp_path / "right")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "more/usr/share").mkdir(parents=True)
    (tmp_path / "more/usr/share/stray").write_text("")
    done = checked(tmp_path / "more")
    assert done.returncode != 0
    assert "+./usr/share/stray" in done.stdout


def test_a_program_for_another_processor_is_run_by_the_words_before_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runner = ("sh", "-c", f'echo "$2" >>{runs}; exec "$@"', "runner")
    done = checked(tmp_path / "right", runner=runner)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(runs.read_text().split()) == {"--version", "keygen", "check"}


def test_the_packages_check_fails_if_it_finds_no_example_of_a_gateway(tmp_path: Path) -> None:
    done = checked(tmp_path / "renamed", table="[router]")
    assert done.returncode != 0
    assert "no example with a [gateway] table" in done.stderr
