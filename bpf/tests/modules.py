# SPDX-License-Identifier: GPL-2.0-only
"""Builds what tests/guest/costs.sh compares with: build/cost.

For backports' kernel, in a Debian 13 with its headers: the module, the one that measures costs, and bpf_fq, an example
in the kernel's sources. Needs root. Exit codes are those of suite.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

from suite import BPF, ROOT, SUITE, TOOLS, bare

WORK = BPF / "build/headers"
KERNEL = ROOT / "kernel"
MADE = ("sch_linkweir", "qdisc_cost")
INSTALL = f"""
apt-get update -q
apt-get install -y -q --no-install-recommends -t {SUITE} linux-headers-cloud-amd64 gcc make libc6-dev python3
"""
EXAMPLE = "bpf_qdisc_fq"
FETCH = f"""
apt-get install -y -q --no-install-recommends -t {SUITE} libbpf-dev linux-bpf-dev xz-utils
mkdir -p /srv/example
cd /srv/example
series=$(ls /lib/modules | sed 's/^\\([0-9]*\\.[0-9]*\\)\\..*/\\1/')
apt-get download -q linux-source-$series
dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' >sources
rm linux-source-*.deb
tests='*/tools/testing/selftests/bpf'
wanted="$tests/bpf_*.h $tests/libarena/include/*.h $tests/progs/bpf_qdisc_*"
set -f
tar -xJf sources --strip-components=5 --wildcards $wanted
rm sources
test -e progs/{EXAMPLE}.c
"""
"""Its source. The kernel's types come from linux-bpf-dev."""
BUILD = """
headers=$(ls -d /lib/modules/*/build)
for folder in module cost; do make -s -C $headers M=/srv/$folder modules; done
"""


def example(system: Path, made: Path, out: IO[bytes]) -> str | None:
    """Builds bpf_fq; returns why it is left out, if it is."""
    folder = system / "srv/example"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        if bare.run(system, FETCH, out):
            return "its source cannot be had"
        shutil.copytree(system / "usr/include/bpf", folder / "bpf")  # newer than this machine's
        (folder / "complete").touch()
    clang = next(filter(None, (shutil.which(f"clang-{version}") for version in (22, 21, 20, 19))), None)
    if clang is None or shutil.which("bpftool", path=TOOLS) is None:
        return "clang-19 or bpftool is missing: ./setup.sh bpf"
    (types,) = system.glob("usr/include/*/linux/bpf")
    folders = [folder, folder / "libarena/include", types]
    command = [clang, "-w", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-D__TARGET_ARCH_x86"]
    command += [f"-I{path}" for path in folders]
    command += ["-c", str(folder / f"progs/{EXAMPLE}.c"), "-o", str(made / f"{EXAMPLE}.bpf.o")]
    if subprocess.run(command, stdout=out, stderr=out).returncode:
        return "it cannot be compiled"
    (config,) = system.glob("usr/src/linux-headers-*-cloud-amd64/.config")
    shutil.copy(config, made / "config")  # the program asks for CONFIG_HZ
    return None


def main() -> int:
    """Makes the system, unless it is there, and builds."""
    if os.geteuid() != 0:
        print("bpf: NO COSTS: building modules for them needs root", file=sys.stderr)
        return 3
    WORK.mkdir(parents=True, exist_ok=True)
    system, log = WORK / "system", WORK / "log"
    plugins = [f"build/tc/q_{kind}.so" for kind in ("pss", "pds", "lw_pf", "lw_codes")]
    subprocess.run(["make", "-s", "-C", KERNEL, "build/tree/.made", *plugins], check=True)
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
        made = BPF / "build/cost"
        made.mkdir(exist_ok=True)
        if why := example(system, made, out):
            print(f"bpf: bpf_fq is left out: {why}; see {log}", file=sys.stderr)
        if bare.run(system, BUILD, out):
            print(f"bpf: the modules cannot be built, see {log}", file=sys.stderr)
            return 1
    for name in MADE:
        (source,) = (system / "srv").glob(f"*/{name}.ko")
        subprocess.run(["strip", "--strip-debug", "-o", made / f"{name}.ko", source], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
