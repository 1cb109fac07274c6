# SPDX-License-Identifier: BSD-3-Clause
"""Boots Debian's arm64 kernels in QEMU and sends packets through a tunnel between gateways of a release's package.

    python3 machines/tunnel_arm64.py [--release build/release] [--suite bookworm|trixie] [--seconds 900]

Kernel, libraries and tools are Debian's packages for arm64, unpacked into build/arm64 and kept there. The machine has
no disk: an initramfs holds what tunnel_arm64.sh uses, which is the machine's init. It prints its checks on the
console; the output is in build/arm64/SUITE.log. QEMU emulates the processor, so speeds mean nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build/arm64"
SUITES = ("bookworm", "trixie")
CHECKS = 9  # of tunnel_arm64.sh
PACKAGES = ("linux-image-arm64", "busybox-static", "dash", "iproute2", "iputils-ping")
MODULES = ("tun", "veth")
# libraries and programs of a Debian whose /bin, /sbin and /lib may be links into /usr
LIBRARIES = ("usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu", "lib")
ACCOUNTS = {
    "passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}
SHOWN = ("kernel ", "linkweir-gateway ", "ok ", "ended ")
BAD_LOG = re.compile(r"WARNING:|BUG:|Oops|Call trace:|Kernel panic")


def run(*words: object) -> str:
    command = [str(word) for word in words]
    # depmod and modprobe are in a folder that a plain user's PATH lacks
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{bare.PATH}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"tunnel_arm64: {' '.join(command[:6])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def unpacked(suite: str, package: Path) -> Path:
    """Kernel, tools, and what the gateway's package depends on; made once for each suite."""
    depends = re.findall(r"(?:^|, )([a-z0-9.+-]+)", run("dpkg-deb", "--field", package, "Depends"))
    root = WORK / "-".join([suite, *sorted(depends)])
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        try:
            bare.unpack(suite, "arm64", root, [*PACKAGES, *depends])
        except RuntimeError as error:
            sys.exit(f"tunnel_arm64: {error}")
        (root / "complete").touch()
    return root


def found(root: Path, *places: str) -> Path:
    for place in places:
        if (root / place).exists():
            return root / place
    sys.exit(f"tunnel_arm64: none of {', '.join(places)} is in {root}")


def add_program(system: Path, root: Path, program: Path) -> None:
    """Copies a program to /usr/bin, with the libraries that it needs and Debian's loader."""
    (system / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(program, system / "usr/bin")
    wanted = [program]
    (system / "lib").mkdir(exist_ok=True)
    while wanted:
        for name in re.findall(r"^ *NEEDED +(\S+)$", run("objdump", "-p", wanted.pop()), re.MULTILINE):
            if not (system / "lib" / name).exists():
                library = found(root, *(f"{place}/{name}" for place in LIBRARIES))
                shutil.copy(library, system / "lib" / name)
                wanted.append(library)


def add_modules(system: Path, root: Path, kernel: str) -> None:
    """Copies modules, and a list of them in the order in which they are loaded."""
    base = found(root, "lib/modules", "usr/lib/modules").parents[1]
    run("depmod", "-b", base, kernel)
    shown = run("modprobe", "-d", base, "-S", kernel, "--show-depends", "--all", *MODULES)
    paths = [Path(line.split()[1]) for line in shown.splitlines() if line.startswith("insmod ")]
    (system / "modules").mkdir()
    names = []
    for path in dict.fromkeys(paths):
        names.append(path.name.removesuffix(".xz"))
        unpack = ["xz", "-dc", str(path)] if path.suffix == ".xz" else ["cat", str(path)]
        (system / "modules" / names[-1]).write_bytes(subprocess.run(unpack, check=True, capture_output=True).stdout)
    (system / "modules/order").write_text("".join(f"{name}\n" for name in names))


def make_initramfs(root: Path, kernel: str, package: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        system, unpacked_package = Path(name, "system"), Path(name, "package")
        for folder in ("bin", "proc", "sys", "dev", "run", "etc/linkweir"):
            (system / folder).mkdir(parents=True)
        run("dpkg-deb", "--extract", package, unpacked_package)
        shutil.copy(found(root, "bin/busybox", "usr/bin/busybox"), system / "bin")
        add_program(system, root, unpacked_package / "usr/bin/linkweir-gateway")
        for name in ("ip", "ping", "dash"):
            add_program(system, root, found(root, f"bin/{name}", f"usr/bin/{name}"))
        add_modules(system, root, kernel)
        for file, text in ACCOUNTS.items():
            (system / "etc" / file).write_text(text)
        shutil.copy(HERE / "tunnel_arm64.sh", system / "init")
        (system / "init").chmod(0o755)
        files = "".join(f"{path.relative_to(system)}\n" for path in sorted(system.rglob("*")))
        command = ["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"]
        out.write_bytes(
            subprocess.run(command, cwd=system, input=files.encode(), check=True, capture_output=True).stdout
        )


def boot(kernel: Path, initramfs: Path, log: Path, seconds: int) -> str:
    command = ["timeout", str(seconds), "qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-m", "512"]
    command += ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", str(kernel)]
    command += ["-initrd", str(initramfs), "-append", "console=ttyAMA0 quiet panic=-1 oops=panic"]
    with log.open("wb") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            said = f"did not end within {seconds} s" if done.returncode == 124 else f"exit code {done.returncode}"
            out.write(f"\nnot ok - qemu-system-aarch64: {said}\n".encode())
    return log.read_text(errors="replace").replace("\r", "")


def judge(text: str) -> list[str]:
    """What is wrong in the output of a machine."""
    lines = text.splitlines()
    wrong = [line for line in lines if line.startswith("not ok")]
    wrong += [f"kernel log: {line}" for line in lines if BAD_LOG.search(line)]
    held = sum(line.startswith("ok - ") for line in lines)
    if held != CHECKS:
        wrong.append(f"{held} checks of {CHECKS} held")
    if not any(line.startswith("ended ") for line in lines):
        wrong.append("the last check was not reached")
    return wrong


def tunnel(suite: str, package: Path, seconds: int) -> list[str]:
    """Boots the kernel of a suite, prints what was seen, and returns what is wrong."""
    began = time.monotonic()
    root = unpacked(suite, package)
    [kernel] = (root / "boot").glob("vmlinuz-*-arm64")
    log = WORK / f"{suite}.log"
    with tempfile.TemporaryDirectory() as name:
        initramfs = Path(name, "initramfs")
        make_initramfs(root, kernel.name.removeprefix("vmlinuz-"), package, initramfs)
        text = boot(kernel, initramfs, log, seconds)
    wrong = judge(text)
    print("\n".join(line for line in text.splitlines() if line.startswith(SHOWN)))
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
    WORK.mkdir(parents=True, exist_ok=True)
    wrong = [tunnel(suite, packages[0], options.seconds) for suite in options.suites or SUITES]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
