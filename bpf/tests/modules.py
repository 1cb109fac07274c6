# SPDX-License-Identifier: GPL-2.0-only
"""Builds the module and the one that measures costs for backports' kernel, in a Debian 13 with its headers: build/cost.

The module is only compared with, by tests/guest/cost.sh. Needs root. Exit codes are those of suite.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from suite import BPF, ROOT, SUITE, bare

WORK = BPF / "build/headers"
KERNEL = ROOT / "kernel"
MADE = ("sch_linkweir", "qdisc_cost")
INSTALL = f"""
apt-get update -q
apt-get install -y -q --no-install-recommends -t {SUITE} linux-headers-cloud-amd64 gcc make libc6-dev python3
"""
BUILD = """
headers=$(ls -d /lib/modules/*/build)
for folder in module cost; do make -s -C $headers M=/srv/$folder modules; done
"""


def main() -> int:
    """Makes the system, unless it is there, and builds."""
    if os.geteuid() != 0:
        print("bpf: NO COSTS: building modules for them needs root", file=sys.stderr)
        return 3
    WORK.mkdir(parents=True, exist_ok=True)
    system, log = WORK / "system", WORK / "log"
    subprocess.run(
        ["make", "-s", "-C", KERNEL, "build/tree/.made", "build/tc/q_pss.so", "build/tc/q_pds.so"], check=True
    )
    with log.open("ab") as out:
        if not (WORK / "complete").exists():
            mirror = bare.mirror("Debian") or bare.MIRROR
            if not bare.bootstrap("trixie", system, ["ca-certificates", "kmod"], out, mirror):
                print(f"bpf: NO COSTS: debootstrap failed, see {log}", file=sys.stderr)
                return 3
            bare.carry_settings(system, out)
            (system / "etc/apt/sources.list").write_text(f"deb {mirror} trixie main\ndeb {mirror} {SUITE} main\n")
            if bare.run(system, INSTALL, out):
                print(f"bpf: NO COSTS: the headers cannot be had, see {log}", file=sys.stderr)
                return 3
            (WORK / "complete").touch()
        for name, source in (("module", KERNEL / "build/tree"), ("cost", KERNEL / "tests/cost")):
            shutil.rmtree(system / "srv" / name, ignore_errors=True)
            shutil.copytree(source, system / "srv" / name)
        if bare.run(system, BUILD, out):
            print(f"bpf: the modules cannot be built, see {log}", file=sys.stderr)
            return 1
    made = BPF / "build/cost"
    made.mkdir(exist_ok=True)
    for name in MADE:
        (source,) = (system / "srv").glob(f"*/{name}.ko")
        subprocess.run(["strip", "--strip-debug", "-o", made / f"{name}.ko", source], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
