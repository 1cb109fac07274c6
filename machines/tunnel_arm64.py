# SPDX-License-Identifier: BSD-3-Clause
"""Boots Debian's arm64 kernels in QEMU and sends packets through a tunnel between gateways of a release's package.

    python3 machines/tunnel_arm64.py [--release build/release] [--suite bookworm|trixie] [--seconds 900]

Kernel, libraries and tools are Debian's packages for arm64, unpacked into build/arm64 and kept there. The machine has
no disk: an initramfs holds what tunnel_arm64.sh uses, which is the machine's init. It prints its checks on the
console; the output is in build/arm64/SUITE.log. QEMU emulates the processor, so speeds mean nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

import guest
from guest import HERE, ROOT, judge, run

SUITES = ("bookworm", "trixie")
CHECKS = 9  # of tunnel_arm64.sh
PACKAGES = ("linux-image-arm64", "busybox-static", "dash", "iproute2", "iputils-ping")
MODULES = ("tun", "veth")
ARM64 = guest.Architecture(
    "arm64",
    "aarch64-linux-gnu",
    ("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-m", "512"),
    "ttyAMA0",
)


def tunnel(suite: str, package: Path, seconds: int) -> list[str]:
    """Boots the kernel of a suite, prints what was seen, and returns what is wrong."""
    began = time.monotonic()
    depends = re.findall(r"(?:^|, )([a-z0-9.+-]+)", run("dpkg-deb", "--field", package, "Depends"))
    root = guest.unpacked(ARM64, suite, PACKAGES, depends)
    log = ARM64.work / f"{suite}.log"
    with tempfile.TemporaryDirectory() as name:
        run("dpkg-deb", "--extract", package, name)
        programs = [Path(name, "usr/bin/linkweir-gateway"), *(guest.tool(root, one) for one in ("ip", "ping", "dash"))]
        text = guest.boot(ARM64, root, programs, MODULES, HERE / "tunnel_arm64.sh", log, seconds)
    wrong = judge(text, CHECKS)
    print(guest.shown(text))
    for line in wrong:
        print(f"tunnel_arm64: {suite}: {line}", file=sys.stderr)
    result = "FAILED" if wrong else f"all {CHECKS} checks held"
    print(f"tunnel_arm64: {suite}, {package.name}: {result}, {time.monotonic() - began:.0f} s ({log})", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="A tunnel between two gateways on Debian's arm64 kernels, in QEMU.")
    parser.add_argument("--release", type=Path, default=ROOT / "build/release", help="default: build/release")
    parser.add_argument(
        "--suite",
        dest="suites",
        action="append",
        help="Debian whose kernel and libraries run it; default: both",
    )
    parser.add_argument("--seconds", type=int, default=900, help="after which a machine is ended (default: 900)")
    options = parser.parse_args()
    packages = list(options.release.glob("linkweir-gateway_*_arm64.deb"))
    if len(packages) != 1:
        parser.error(f"{options.release} holds {len(packages)} arm64 packages of the gateway; make release makes one")
    ARM64.work.mkdir(parents=True, exist_ok=True)
    wrong = [tunnel(suite, packages[0], options.seconds) for suite in options.suites or SUITES]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
