# SPDX-License-Identifier: BSD-3-Clause
"""The OpenWrt package's Makefile, read by make with stand-ins for OpenWrt's files: its syntax; nothing is built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command import REPOSITORY

PACKAGE = REPOSITORY / "kernel/openwrt/Makefile"
RULES = "INCLUDE_DIR := $(TOPDIR)/include\nPKG_BUILD_DIR := /nowhere\n"
# As OpenWrt's, these expand the definitions of a package; here as lines that the test reads.
KERNEL = """
define KernelPackage
$(info package $(1): $(strip $(call KernelPackage/$(1))))
$(info describes $(1): $(strip $(call KernelPackage/$(1)/description)))
$(info config $(1): $(call KernelPackage/$(1)/config))
endef
AutoProbe = probes $(1)
"""
PACKAGES = """
define BuildPackage
$(info package $(1): $(strip $(call Package/$(1))))
$(info installs $(1): $(strip $(call Package/$(1)/install,ROOT)))
$(info compiles: $(strip $(Build/Compile)))
all:
endef
"""


def read(tmp_path: Path, makefile: Path, *words: str) -> subprocess.CompletedProcess[str]:
    include = tmp_path / "include"
    include.mkdir(exist_ok=True)
    (tmp_path / "rules.mk").write_text(RULES)
    (include / "kernel.mk").write_text(KERNEL)
    (include / "package.mk").write_text(PACKAGES)
    command = [
        "make",
        "--no-print-directory",
        "--warn-undefined-variables",
        "-f",
        str(makefile),
        f"TOPDIR={tmp_path}",
        *words,
    ]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_make_reads_the_package_of_openwrt(tmp_path: Path) -> None:
    done = read(tmp_path, PACKAGE, "CONFIG_LINKWEIR_pss=y")
    assert done.returncode == 0, done.stderr
    for package in ("sched-linkweir", "sched-linkweir-selftest", "tc-mod-linkweir"):
        assert f"package {package}: " in done.stdout
    assert 'LINKWEIR_POLICIES="pss"' in done.stdout
    listed = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", "kernel", "show-policies"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert listed[0] == "pss"
    assert all(f"config LINKWEIR_{policy}\n" in done.stdout for policy in listed)
    assert "/nowhere/sch_linkweir.ko" in done.stdout
    assert "/nowhere/linkweir_selftest.ko" in done.stdout


@pytest.mark.parametrize(
    ("old", "new"), [("endef\n\ndefine Build/Compile", "\ndefine Build/Compile"), ("$(TOPDIR)", "$(TOP")]
)
def test_make_refuses_a_planted_mistake(tmp_path: Path, old: str, new: str) -> None:
    broken = tmp_path / "Makefile"
    broken.write_text(PACKAGE.read_text().replace(old, new, 1))
    assert read(tmp_path, broken).returncode != 0
