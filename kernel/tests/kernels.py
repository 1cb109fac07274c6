# SPDX-License-Identifier: GPL-2.0-only
"""Builds the module for kernels that this machine's Debian lacks, and runs the suite on the newest of them.

    python3 kernels.py [--mirror URL] [PART...]
    python3 kernels.py --source

Parts:

    newest    Debian 13's backports: built with gcc 14, then guest scripts in QEMU
    rt        PREEMPT_RT of Debian 12, of Debian 13 and of its backports: built
    i386      Debian 12's 32-bit kernel: built, then loaded in QEMU, where it replays the vectors
    powerpc   big-endian, 32 bits: the core's vectors under qemu-user, the module built against the newest sources

The module is built in a bare Debian of the kernel's own release. These systems, the kernel images and the sources are
fetched once and kept in ~/.cache/linkweir/kernel (or $XDG_CACHE_HOME); remove a folder there to fetch newer ones. A
build must give no warning. --source makes the system debian-13 and prints where its archive of the newest sources is.
Needs root, and the staged tree and the tools of the Makefile. Exit codes are those of run.py.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from run import BAD_LOG, BUILD, HERE, run

ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "machines"))
import bare  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "linkweir/kernel"
LOG = BUILD / "kernels.log"
SCRIPTS = ("rows", "kinds", "conserve", "carrier", "classify", "change", "record")
BASE = ("ca-certificates", "make", "gcc", "libc6-dev", "xz-utils", "kmod")
LEFT_OUT = ("drivers/gpu/*.[ch]", "sound/*.[ch]", "Documentation/*/*", "tools/testing/*", "*.dts", "*.dtsi")
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox insmod /sch_linkweir.ko && echo "ok - the qdiscs are loaded"
/bin/busybox insmod /linkweir_vectors.ko && echo "ok - the vectors are replayed"
/bin/busybox dmesg
/bin/busybox rmmod linkweir_vectors sch_linkweir && echo "ended load"
/bin/busybox poweroff -f
"""


@dataclass(frozen=True)
class System:
    """A bare Debian in which modules are built.

    Attributes:
        suite: of Debian.
        packages: beside BASE.
        newer: packages of its backports.
        architecture: None for this machine's.
    """

    suite: str
    packages: tuple[str, ...]
    newer: tuple[str, ...] = ()
    architecture: str | None = None


# perl runs kernel-doc, which W=1 calls in 6.1 and 6.12
CROSS = ("gcc-powerpc-linux-gnu", "libc6-dev-powerpc-cross", "qemu-user-static", "flex", "bison", "bc", "libelf-dev")
SYSTEMS = {
    "debian-12": System("bookworm", ("linux-headers-rt-amd64", "perl")),
    "debian-12-i386": System(
        "bookworm", ("linux-headers-686-pae", "linux-image-686-pae", "busybox-static", "perl"), architecture="i386"
    ),
    "debian-13": System(
        "trixie",
        ("linux-headers-rt-amd64", "perl", *CROSS),
        ("linux-headers-cloud-amd64", "linux-headers-rt-amd64", "linux-source"),
    ),
}


class MissingError(Exception):
    """Something cannot be obtained here."""


def inside(system: Path, script: str) -> str:
    """Runs a script in a system; returns what it printed, which is also appended to the log.

    Raises:
        RuntimeError: it failed.
    """
    part = LOG.with_suffix(".part")
    with part.open("wb") as out:
        code = bare.run(system, script, out)
    text = part.read_text(errors="replace")
    with LOG.open("a") as log:
        log.write(text)
    if code:
        raise RuntimeError(f"in {system}: {text[-2000:]}")
    return text


def make_system(name: str, mirror: str | None) -> Path:
    """The system of this name, made unless it is in the cache.

    Raises:
        MissingError: it cannot be made.
    """
    spec, folder, complete = SYSTEMS[name], CACHE / name, CACHE / f"{name}.complete"
    wanted = repr(spec)
    if complete.exists() and complete.read_text() == wanted:
        return folder
    print(f"kernel: making {folder}, which takes minutes", flush=True)
    complete.unlink(missing_ok=True)
    with LOG.open("ab") as log:
        if not bare.bootstrap(spec.suite, folder, list(BASE), log, mirror, spec.architecture):
            raise MissingError(f"debootstrap of {name} failed, see {LOG}")
        bare.carry_settings(folder, log)
    install = "apt-get install -y -qq --no-install-recommends"
    steps = ["apt-get update -qq", f"{install} {' '.join(spec.packages)}"]
    if spec.newer:
        archive = f"deb {mirror or bare.MIRROR} {spec.suite}-backports main"
        steps += [f"echo '{archive}' >/etc/apt/sources.list.d/backports.list", "apt-get update -qq"]
        steps += [f"{install} -t {spec.suite}-backports {' '.join(spec.newer)}"]
    try:
        inside(folder, " && ".join([*steps, "apt-get clean"]))
    except RuntimeError as error:
        raise MissingError(str(error)) from None
    complete.write_text(wanted)
    return folder


def releases(system: Path, pattern: str) -> list[str]:
    """The kernels for which a system has headers, oldest first."""
    # `build` is a link that is valid inside of the system only
    found = [path.name for path in (system / "lib/modules").iterdir() if (path / "build").is_symlink()]
    numbers = {name: [int(word) for word in re.findall(r"\d+", name)] for name in found if re.search(pattern, name)}
    return sorted(numbers, key=numbers.__getitem__)


def stage(system: Path, name: str) -> Path:
    """The module's sources, in a folder of the system."""
    folder = system / "linkweir" / name
    folder.parent.mkdir(exist_ok=True)
    run("cp", "-rpuT", BUILD / "tree", folder)
    return folder


def compile_module(system: Path, release: str, headers: str, words: str = "W=1") -> list[str]:
    """Builds the module in a system; the warnings. The result is in build/RELEASE."""
    folder = stage(system, release)
    text = inside(system, f"make -s -C {headers} M=/linkweir/{release} {words} modules")
    kept = BUILD / release
    kept.mkdir(exist_ok=True)
    for module in folder.glob("*.ko"):
        shutil.copy(module, kept)
    wrong = [f"{release}: {line}" for line in text.splitlines() if "warning:" in line]
    print(f"{release}: built, {len(wrong)} warnings", flush=True)
    return wrong


def image(system: Path, release: str) -> Path:
    """The image and the modules of a release, for run.py; fetched unless in the cache."""
    folder = CACHE / "images" / release
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        names = " ".join(f"linux-{part}-{release}" for part in ("base", "binary", "modules"))
        inside(system, f"rm -rf /fetched && mkdir /fetched && cd /fetched && apt-get download -q {names}")
        for package in (system / "fetched").glob("*.deb"):
            run("dpkg-deb", "-x", package, folder)
        shutil.rmtree(system / "fetched")
        (folder / "boot").mkdir(exist_ok=True)
        (folder / "lib").symlink_to("usr/lib")
        shutil.copy(folder / "lib/modules" / release / "vmlinuz", folder / "boot" / f"vmlinuz-{release}")
        run("depmod", "-b", folder, release)
        (folder / "complete").touch()
    place = BUILD / "images" / release
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(folder)
    return folder


def modules_of(release: str) -> list[Path]:
    return sorted((BUILD / release).glob("*.ko"))


# --- the parts ---


def newest(mirror: str | None) -> list[str]:
    """Builds for the newest kernel and runs the suite there."""
    system = make_system("debian-13", mirror)
    release = releases(system, r"-cloud-")[-1]
    wrong = compile_module(system, release, f"/lib/modules/{release}/build")
    image(system, release)
    words = [word for module in modules_of(release) for word in ("--module", str(module))]
    command = [sys.executable, str(HERE / "run.py"), "--kernel", release, *words, "--plugins", str(BUILD / "tc")]
    if subprocess.run([*command, "--log", "kernels", *SCRIPTS], check=False).returncode:
        wrong.append(f"{release}: the suite failed")
    return wrong


def rt(mirror: str | None) -> list[str]:
    """Builds for PREEMPT_RT."""
    wrong = []
    for name in ("debian-12", "debian-13"):
        system = make_system(name, mirror)
        for release in releases(system, r"-rt-"):
            wrong += compile_module(system, release, f"/lib/modules/{release}/build")
    return wrong


def i386(mirror: str | None) -> list[str]:
    """Builds for 32 bits, boots and loads the module."""
    system = make_system("debian-12-i386", mirror)
    release = releases(system, r"-686-")[-1]
    wrong = compile_module(system, release, f"/lib/modules/{release}/build")
    root, initramfs, log = BUILD / "i386", BUILD / "i386.cpio", BUILD / f"load-{release}.log"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("bin", "proc", "dev"):
        (root / folder).mkdir(parents=True)
    shutil.copy(system / "bin/busybox", root / "bin")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    for module in modules_of(release):
        run("strip", "--strip-debug", "-o", root / module.name, module)
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    pack = ["/bin/busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"]
    archive = subprocess.run(pack, cwd=root, input=files.encode(), capture_output=True, check=True).stdout
    initramfs.write_bytes(archive)
    command = ["timeout", "600", "qemu-system-i386", "-m", "512", "-nodefaults", "-no-reboot", "-display", "none"]
    command += ["-serial", "stdio", "-kernel", str(system / f"boot/vmlinuz-{release}"), "-initrd", str(initramfs)]
    command += ["-append", "console=ttyS0 quiet panic=-1 oops=panic"]
    with log.open("wb") as out:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    lines = log.read_text(errors="replace").replace("\r", "").splitlines()
    expected = ("ok - the qdiscs are loaded", "ok - the vectors are replayed", "ended load")
    wrong += [f"{release}: no line '{line}', see {log}" for line in expected if line not in lines]
    wrong += [f"{release}: kernel log: {line}" for line in lines if BAD_LOG.search(line)]
    told = [line for line in lines if "linkweir: self-test:" in line]
    print(f"{release}: {told[0] if told else 'no self-test'}", flush=True)
    return wrong if told else [*wrong, f"{release}: no self-test"]


def powerpc(mirror: str | None) -> list[str]:
    """Replays the vectors as big-endian code, and builds the module for such a processor."""
    system = make_system("debian-13", mirror)
    compiler = "powerpc-linux-gnu-"
    work = system / "linkweir/powerpc"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run("cp", "-rp", ROOT / "core", ROOT / "vectors", work)
    script = f"cd /linkweir/powerpc && {compiler}gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -Icore/include "
    script += (
        "core/tests/replay.c core/src/*.c -o replay && qemu-ppc-static ./replay $(find vectors -name '*.vec' | sort)"
    )
    replayed = inside(system, script).strip().splitlines()
    print(f"powerpc: {replayed[-1] if replayed else 'nothing was replayed'}", flush=True)
    archive = source(system)
    tree = archive.name.removesuffix(".tar.xz")
    prepared = f"/usr/src/{tree}-powerpc"
    make = f"make -s -C {prepared} ARCH=powerpc CROSS_COMPILE={compiler}"
    if not (system / prepared.lstrip("/") / "prepared").exists():
        out = " ".join(f"--exclude='*/{pattern}'" for pattern in LEFT_OUT)
        unpack = f"rm -rf {prepared} && mkdir {prepared} && tar -xJf /usr/src/{archive.name} -C {prepared}"
        unpack += f" --strip-components=1 {out}"
        config = f"{prepared}/scripts/config --file {prepared}/.config -e NET_SCHED -e NET_CLS_ACT"
        prepare = f"{make} pmac32_defconfig && {config} && {make} olddefconfig"
        prepare += f" && {make} modules_prepare arch/powerpc/lib/crtsavres.o"
        inside(system, f"{unpack} && {prepare} && touch {prepared}/prepared")
    name = f"powerpc-{tree.rpartition('-')[2]}"
    wrong = compile_module(system, name, prepared, f"W=1 ARCH=powerpc CROSS_COMPILE={compiler} KBUILD_MODPOST_WARN=1")
    # no kernel is built, so modpost knows none of its symbols
    wrong = [line for line in wrong if not re.search(r"undefined!|Module\.symvers|unresolved symbol", line)]
    needed = inside(system, f"{compiler}nm -u /linkweir/{name}/sch_linkweir.ko")
    wrong += [f"{name}: the kernel has no {symbol}" for symbol in re.findall(r"__\w*(?:div|mod)[ds]i3", needed)]
    identity = modules_of(name)[0].read_bytes()[:6]
    return wrong if identity == b"\x7fELF\x01\x02" else [*wrong, f"{name}: not 32-bit and big-endian: {identity!r}"]


def source(system: Path) -> Path:
    """The archive of the newest sources."""
    return max((system / "usr/src").glob("linux-source-*.tar.xz"))


PARTS: dict[str, Callable[[str | None], list[str]]] = {"newest": newest, "rt": rt, "i386": i386, "powerpc": powerpc}


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Builds the module for other kernels, and tests it on the newest.")
    parser.add_argument("--mirror", help="Debian mirror; by default this machine's own")
    parser.add_argument("--source", action="store_true", help="print the archive of the newest sources")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", default=[])
    return parser.parse_args(words)


def main() -> int:
    options = arguments()
    mirror = options.mirror or bare.mirror("Debian")
    if os.geteuid() != 0:
        print("kernel: NOT TESTED on other kernels: that needs root", file=sys.stderr)
        return 3
    BUILD.mkdir(exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    LOG.unlink(missing_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second run waits here
        return print_source(mirror) if options.source else test(options.parts or list(PARTS), mirror)


def print_source(mirror: str | None) -> int:
    try:
        print(source(make_system("debian-13", mirror)))
    except MissingError as error:
        print(f"kernel: no sources: {error}", file=sys.stderr)
        return 3
    return 0


def test(parts: list[str], mirror: str | None) -> int:
    codes = [test_part(part, mirror) for part in parts]
    return 1 if 1 in codes else max(codes)


def test_part(part: str, mirror: str | None) -> int:
    try:
        wrong = PARTS[part](mirror)
    except MissingError as error:
        print(f"kernel: NOT TESTED: {part}: {error}", file=sys.stderr)
        return 3
    except RuntimeError as error:
        wrong = [f"{part}: {error}"]
    for line in wrong:
        print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
