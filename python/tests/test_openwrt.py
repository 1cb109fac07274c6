# SPDX-License-Identifier: BSD-3-Clause
"""The syntax of OpenWrt's package, with definitions that stand for its build system. No OpenWrt tree is involved."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from command import REPOSITORY

PACKAGE = REPOSITORY / "kernel/openwrt"
RULES = "INSTALL_DIR:=install -d\nINSTALL_DATA:=install -m 644\nKERNEL_MAKE:=echo kernel-make\nTARGET_CC:=target-cc\nPKG_BUILD_DIR:=/build\n"
KERNEL = """define AutoProbe
probe $(1)
endef
define KernelPackage
$(foreach part,SUBMENU TITLE DEPENDS FILES AUTOLOAD,$(if $(findstring $(part):=,$(value KernelPackage/$(1))),,$(error $(1) has no $(part))))
$(eval $(call KernelPackage/$(1)))
$(info FILES $(FILES))
$(info CONFIG $(call KernelPackage/$(1)/config))
endef
"""
PACKAGES = """define BuildPackage
$(foreach part,SECTION CATEGORY TITLE,$(if $(findstring $(part):=,$(value Package/$(1))),,$(error $(1) has no $(part))))
all:
	$(call Build/Prepare)
	$(call Build/Configure)
	$(call Build/Compile)
	$(call Package/$(1)/install,/target)
endef
"""


def dry_run(folder: Path, *words: str) -> str:
    (folder / "rules.mk").write_text(RULES)
    (folder / "kernel.mk").write_text(KERNEL)
    (folder / "package.mk").write_text(PACKAGES)
    command = ["make", "-n", "--no-print-directory", f"TOPDIR={folder}", f"INCLUDE_DIR={folder}", *words, "all"]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_builds_the_policies_that_were_chosen(tmp_path: Path) -> None:
    shown = dry_run(tmp_path, "CONFIG_LINKWEIR_pss=y", "CONFIG_LINKWEIR_pds=y")
    assert set(re.findall(r'KINDS="([^"]*)"', shown)) == {"pss pds"}
    assert "FILES /build/tree/sch_linkweir.ko" in shown
    assert 'kernel-make M="/build/tree" modules' in shown
    assert "install -m 644 /build/tc/q_*.so /target/usr/lib/tc/" in shown


def test_its_menu_has_every_policy_that_linux_lacks(tmp_path: Path) -> None:
    shown = dry_run(tmp_path)
    kinds = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", str(REPOSITORY / "kernel"), "kinds"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert re.findall(r"config LINKWEIR_(\w+)", shown) == kinds
    assert "pss" in kinds
