# SPDX-License-Identifier: BSD-3-Clause
"""Machines in QEMU: a Debian kernel and an initramfs with a few programs, of which one shell script is the init.

Kernel, libraries and tools are packages of a Debian, unpacked into build/ARCHITECTURE and kept there; none of them is
run here. The script prints its checks on the console, "ok - WHAT" or "not ok - WHAT", and "ended" behind the last one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ACCOUNTS = {
    "passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}
SHOWN = ("kernel ", "linkweir-gateway ", "ok ", "ended ")
BAD_LOG = re.compile(r"WARNING:|BUG:|Oops|Call [Tt]race:|Kernel panic")


@dataclass(frozen=True)
class Architecture:
    """What a machine is.

    Attributes:
        name: of Debian's architecture.
        triplet: of the folder of its libraries.
        qemu: the command that emulates it.
        console: its serial port.
    """

    name: str
    triplet: str
    qemu: tuple[str, ...]
    console: str

    @property
    def libraries(self) -> tuple[str, ...]:
        """Folders of libraries in a Debian whose /bin, /sbin and /lib may be links into /usr."""
        return (f"usr/lib/{self.triplet}", f"lib/{self.triplet}", "lib64", "lib")

    @property
    def work(self) -> Path:
        """Where packages are unpacked, and logs written."""
        return ROOT / "build" / self.name


def run(*words: object) -> str:
    """What a command prints; ends this program if it fails."""
    command = [str(word) for word in words]
    # depmod and modprobe are in a folder that a plain user's PATH lacks
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{bare.PATH}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"machines: {' '.join(command[:6])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def unpacked(of: Architecture, suite: str, packages: Iterable[str], depends: Iterable[str] = ()) -> Path:
    """Packages of a Debian and what they need, with `depends`, which name the folder; made once for each suite."""
    depends = sorted(depends)
    root = of.work / "-".join([suite, *depends])
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        try:
            bare.unpack(suite, of.name, root, [*packages, *depends])
        except RuntimeError as error:
            sys.exit(f"machines: {error}")
        (root / "complete").touch()
    return root


def found(root: Path, *places: str) -> Path:
    """The first of these places that is there."""
    for place in places:
        if (root / place).exists():
            return root / place
    sys.exit(f"machines: none of {', '.join(places)} is in {root}")


def tool(root: Path, name: str) -> Path:
    """A program of the packages."""
    return found(root, *(f"{place}/{name}" for place in ("usr/bin", "bin", "usr/sbin", "sbin")))


def _add_program(of: Architecture, system: Path, root: Path, program: Path) -> None:
    """Copies a program to /usr/bin, with the libraries that it needs and Debian's loader."""
    (system / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(program, system / "usr/bin")
    wanted = [program]
    (system / "lib").mkdir(exist_ok=True)
    while wanted:
        for name in re.findall(r"^ *NEEDED +(\S+)$", run("objdump", "-p", wanted.pop()), re.MULTILINE):
            if not (system / "lib" / name).exists():
                library = found(root, *(f"{place}/{name}" for place in of.libraries))
                shutil.copy(library, system / "lib" / name)
                wanted.append(library)


def _add_modules(system: Path, root: Path, kernel: str, modules: Iterable[str]) -> None:
    """Copies modules, and a list of them in the order in which they are loaded."""
    base = found(root, "lib/modules", "usr/lib/modules").parents[1]
    run("depmod", "-b", base, kernel)
    shown = run("modprobe", "-d", base, "-S", kernel, "--show-depends", "--all", *modules)
    paths = [Path(line.split()[1]) for line in shown.splitlines() if line.startswith("insmod ")]
    (system / "modules").mkdir()
    names = []
    for path in dict.fromkeys(paths):
        names.append(path.name.removesuffix(".xz"))
        unpack = ["xz", "-dc", str(path)] if path.suffix == ".xz" else ["cat", str(path)]
        (system / "modules" / names[-1]).write_bytes(subprocess.run(unpack, check=True, capture_output=True).stdout)
    (system / "modules/order").write_text("".join(f"{name}\n" for name in names))


def kernel_of(root: Path) -> Path:
    """The only kernel of the packages."""
    [kernel] = (root / "boot").glob("vmlinuz-*")
    return kernel


def boot(
    of: Architecture, root: Path, programs: Sequence[Path], modules: Sequence[str], init: Path, log: Path, seconds: int
) -> str:
    """Boots a machine and returns its output.

    Args:
        of: what it is.
        root: of the packages.
        programs: what is in its /usr/bin, besides busybox.
        modules: of the kernel, which init loads in the order of /modules/order.
        init: the script.
        log: where the output is kept.
        seconds: after which it is ended.
    """
    kernel = kernel_of(root)
    with tempfile.TemporaryDirectory() as name:
        system, initramfs = Path(name, "system"), Path(name, "initramfs")
        for folder in ("bin", "proc", "sys", "dev", "run", "etc/linkweir"):
            (system / folder).mkdir(parents=True)
        (system / "lib64").symlink_to("lib")
        shutil.copy(found(root, "bin/busybox", "usr/bin/busybox"), system / "bin")
        for program in programs:
            _add_program(of, system, root, program)
        _add_modules(system, root, kernel.name.removeprefix("vmlinuz-"), modules)
        _write(system / "etc", ACCOUNTS)
        shutil.copy(init, system / "init")
        (system / "init").chmod(0o755)
        files = "".join(f"{path.relative_to(system)}\n" for path in sorted(system.rglob("*")))
        pack = ["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"]
        initramfs.write_bytes(
            subprocess.run(pack, cwd=system, input=files.encode(), check=True, capture_output=True).stdout
        )
        command = ["timeout", str(seconds), *of.qemu, "-nodefaults", "-no-reboot", "-display", "none"]
        command += ["-serial", "stdio", "-kernel", str(kernel), "-initrd", str(initramfs)]
        command += ["-append", f"console={of.console} quiet panic=-1 oops=panic"]
        with log.open("wb") as out:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
            if done.returncode:
                said = f"did not end within {seconds} s" if done.returncode == 124 else f"exit code {done.returncode}"
                out.write(f"\nnot ok - {of.qemu[0]}: {said}\n".encode())
    return log.read_text(errors="replace").replace("\r", "")


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


def judge(text: str, checks: int) -> list[str]:
    """What is wrong in the output of a machine that makes so many checks."""
    lines = text.splitlines()
    wrong = [line for line in lines if line.startswith("not ok")]
    wrong += [f"kernel log: {line}" for line in lines if BAD_LOG.search(line)]
    held = sum(line.startswith("ok - ") for line in lines)
    if held != checks:
        wrong.append(f"{held} checks of {checks} held")
    if not any(line.startswith("ended ") for line in lines):
        wrong.append("the last check was not reached")
    return wrong


def shown(text: str) -> str:
    """The lines of a machine's output that say what was seen."""
    return "\n".join(line for line in text.splitlines() if line.startswith(SHOWN))
