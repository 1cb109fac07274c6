# SPDX-License-Identifier: BSD-3-Clause
"""Boots a Debian kernel in QEMU, in which a gateway with two paths has the kernel's own WireGuard as its peer.

    python3 machines/kernel_wireguard.py [--program target/release/linkweir-gateway] [--suite bookworm|trixie]

Kernel, libraries and tools are Debian's packages, unpacked into build/amd64 and kept there; kernel_wireguard.sh is the
machine's init, and says what is done. The machine's clock counts instructions, so a busy host changes no time, and
minutes in which nothing happens pass at once. The output is in build/amd64/SUITE.log.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import guest
from guest import HERE, ROOT, judge

SUITES = ("bookworm", "trixie")
CHECKS = 22  # of kernel_wireguard.sh
PACKAGES = ("linux-image-cloud-amd64", "busybox-static", "dash", "iproute2", "iputils-ping", "wireguard-tools")
# what the gateway's package depends on
DEPENDS = ("libc6", "libgcc-s1")
MODULES = ("tun", "veth", "sch_netem", "wireguard")
TOOLS = ("ip", "tc", "ping", "dash", "wg")
AMD64 = guest.Architecture(
    "amd64",
    "x86_64-linux-gnu",
    (
        *("qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "512", "-accel", "tcg,thread=single"),
        *("-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"),
    ),
    "ttyS0",
)


def serve(suite: str, program: Path, seconds: int) -> list[str]:
    """Boots the kernel of a suite, prints what was seen, and returns what is wrong."""
    began = time.monotonic()
    root = guest.unpacked(AMD64, suite, PACKAGES, DEPENDS)
    log = AMD64.work / f"{suite}.log"
    programs = [program, *(guest.tool(root, name) for name in TOOLS)]
    text = guest.boot(AMD64, root, programs, MODULES, HERE / "kernel_wireguard.sh", log, seconds)
    wrong = judge(text, CHECKS)
    print(guest.shown(text))
    for line in wrong:
        print(f"kernel_wireguard: {suite}: {line}", file=sys.stderr)
    result = "FAILED" if wrong else f"all {CHECKS} checks held"
    print(f"kernel_wireguard: {suite}: {result}, {time.monotonic() - began:.0f} s ({log})", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="A gateway with two paths to the kernel's WireGuard, in QEMU.")
    usual = ROOT / "target/release/linkweir-gateway"
    parser.add_argument("--program", type=Path, default=usual, help="default: target/release/linkweir-gateway")
    parser.add_argument(
        "--suite",
        dest="suites",
        action="append",
        help="Debian whose kernel and libraries run it; default: both",
    )
    parser.add_argument("--seconds", type=int, default=1800, help="after which a machine is ended (default: 1800)")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"{options.program} is missing; cargo build --release --bin linkweir-gateway makes it")
    AMD64.work.mkdir(parents=True, exist_ok=True)
    wrong = [serve(suite, options.program, options.seconds) for suite in options.suites or SUITES]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
