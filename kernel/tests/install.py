# SPDX-License-Identifier: GPL-2.0-only
"""Installs the module on a Debian 12 that has nothing else, boots it with its own kernel and uses the qdiscs.

    python3 install.py [--mirror URL]

debootstrap makes the system, with Debian's cloud kernel. The steps are those of docs/howto/kernel.md: setup.sh, make,
make install, and a boot; then make uninstall, make deb, apt-get install of both packages (DKMS builds), and a boot. A
booted system adds each qdisc with tc, which has to load the module by the kind, sends packets through it, changes it
and reads its JSON. Only `uname` is replaced before the boots: it prints the kernel that will run. Needs root. Exit
codes are those of run.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from run import BUILD, HERE, fail, judge, run

ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "machines"))
import bare  # noqa: E402

WORK = BUILD / "install"
SOURCES = ("setup.sh", "Cargo.toml", "pyproject.toml", "core", "kernel", "vectors")
DISK_BYTES = 4 << 30


def inside(system: Path, script: str, log: Path) -> None:
    """Runs a script in the system without booting it."""
    with log.open("ab") as out:
        code = bare.run(system, script, out)
    if code:
        print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
        fail(f"a step in the new system failed, see {log}")


def make_system(mirror: str | None, log: Path) -> Path:
    """A Debian 12 with a kernel, from the packages of this machine's mirror; kept between runs, and copied for each."""
    fresh, system = WORK / "fresh", WORK / "system"
    if not (WORK / "complete").exists():
        packages = ["linux-image-cloud-amd64", "iproute2", "ca-certificates"]
        with log.open("ab") as out:
            made = bare.bootstrap("bookworm", fresh, packages, out, mirror)
        if not made:
            print(f"kernel: NOT TESTED on a clean Debian: debootstrap failed, see {log}", file=sys.stderr)
            sys.exit(3)
        (WORK / "complete").touch()
    shutil.rmtree(system, ignore_errors=True)
    subprocess.run(["cp", "-a", fresh, system], check=True)
    with log.open("ab") as out:
        bare.carry_settings(system, out)
    (system / "linkweir").mkdir()
    pack = subprocess.run(["tar", "-C", ROOT, "--exclude=build", "-c", *SOURCES], check=True, capture_output=True)
    subprocess.run(["tar", "-C", system / "linkweir", "-x"], input=pack.stdout, check=True)
    uname = system / "usr/local/bin/uname"
    uname.write_text(f'#!/bin/sh\n[ "$1" = -r ] && exec echo {release(system)}\nexec /usr/bin/uname "$@"\n')
    uname.chmod(0o755)
    return system


def release(system: Path) -> str:
    """The release of the system's kernel."""
    return max(path.name for path in (system / "lib/modules").iterdir())


def boot(system: Path, what: str, place: str) -> list[str]:
    """Boots the system: failures in its output, or a module that was not loaded from `place`."""
    script = system / "linkweir-test"
    shutil.copy(HERE / "guest/install.sh", script)
    script.chmod(0o755)
    disk, log = WORK / "disk", WORK / f"{what}.log"
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-d", system, disk, f"{DISK_BYTES >> 10}k")
    name = release(system)
    command = ["timeout", "1800", "qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "1024", "-nodefaults"]
    command += ["-no-reboot", "-display", "none", "-serial", "stdio", "-drive", f"file={disk},format=raw,if=virtio"]
    command += ["-kernel", str(system / f"boot/vmlinuz-{name}"), "-initrd", str(system / f"boot/initrd.img-{name}")]
    command += ["-append", "root=/dev/vda rw console=ttyS0 quiet panic=-1 oops=panic init=/linkweir-test"]
    with log.open("wb") as out:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    disk.unlink()
    text = log.read_text(errors="replace").replace("\r", "")
    wrong = judge(text, ["install"])
    if f"\nmodule /lib/modules/{name}/{place}/sch_linkweir.ko" not in text:
        wrong.append(f"the module does not come from {place}")
    held = sum(line.startswith("ok ") for line in text.splitlines())
    for line in wrong:
        print(f"{name}: {what}: {line}")
    print(f"{name}: {what}: {held} checks held, {len(wrong)} failed ({log})")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Installs the module on a clean Debian 12 and boots it.")
    parser.add_argument("--mirror", help="Debian mirror; by default this machine's own")
    mirror: str | None = parser.parse_args().mirror or bare.mirror("Debian")
    if os.geteuid() != 0:
        print("kernel: NOT TESTED on a clean Debian: that needs root", file=sys.stderr)
        return 3
    WORK.mkdir(parents=True, exist_ok=True)
    log = WORK / "steps.log"
    log.unlink(missing_ok=True)
    system = make_system(mirror, log)
    inside(system, "cd /linkweir && ./setup.sh kernel && make -C kernel && make -C kernel install", log)
    wrong = boot(system, "make-install", "extra")
    inside(system, "cd /linkweir && make -C kernel uninstall && make -C kernel deb", log)
    packages = "./kernel/build/linkweir-dkms_*.deb ./kernel/build/iproute2-linkweir_*.deb"
    inside(system, f"cd /linkweir && apt-get install -y {packages}", log)
    wrong += boot(system, "make-deb", "updates/dkms")
    shutil.rmtree(system)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
