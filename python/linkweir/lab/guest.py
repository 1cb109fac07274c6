# SPDX-License-Identifier: BSD-3-Clause
"""The files of the laboratory's kernel in one archive: the module, tc with its plugins, a shell, the traffic tool."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linkweir import _native
from linkweir.deploy.policy import kind_of, policy_of
from linkweir.lab import kernel
from linkweir.lab.archive import Entry, archive
from linkweir.lab.fault import LaboratoryError
from linkweir.scratch import scratch

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
PROGRAMS = {"busybox": "busybox-static", "dash": "dash", "tc": "iproute2", "ip": "iproute2"}
"""Programs of this machine that the guest uses, and their packages."""
_C = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror"]


@dataclass(frozen=True)
class Guest:
    """A guest for one kernel.

    Attributes:
        linux: the kernel, a program.
        image: the archive it starts from; a job's files are put behind it.
        preload: library that is loaded before the host's C library.
        kinds: policies that are queueing disciplines of the module.
        identity: hash of everything it is made of.
    """

    linux: Path
    image: bytes
    preload: Path
    kinds: frozenset[str]
    identity: str


def why_not() -> str | None:
    """Why no guest can be made here, with the cure; None if one can."""
    packages = sorted({package for program, package in PROGRAMS.items() if shutil.which(program, path=_PATH) is None})
    return f"{' '.join(packages)} missing: apt-get install them, or ./setup.sh lab as root" if packages else None


def _program(name: str) -> Path:
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise LaboratoryError(f"{name} is missing: apt-get install {PROGRAMS[name]}, or ./setup.sh lab")
    return Path(found).resolve()


def _libraries(program: Path) -> list[Path]:
    words = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout.split()
    return [Path(word) for word in words if word.startswith("/")]


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LaboratoryError(f"{what} cannot be built:\n{(done.stderr or done.stdout).strip()}")


def _library(source: Path, into: Path) -> bytes:
    """A library that is loaded before the C library."""
    _run([*_C, "-shared", "-fPIC", str(source), "-o", str(into)], source.name)
    return into.read_bytes()


def _module(folder: Path, policies: Sequence[str]) -> tuple[Path, list[Path]]:
    """The module for this kernel, and the plugins of tc."""
    source = kernel.tree() / "kernel"
    name = f"uml-{folder.name}"
    make = ["make", "--no-print-directory", "-s", "-C", str(source)]
    kinds = [kind_of(policy) for policy in policies]
    build = f"build/{'-'.join(kinds)}" if kinds else "build"
    make += [f"B={build}", f"KINDS={' '.join(kinds)}"] if kinds else []
    module = source / build / name / "sch_linkweir.ko"
    target = str(module.relative_to(source))
    with kernel.locked("module", kernel.tree() / "kernel/build"):
        _run([*make, target, f"HEADERS={folder}", "ARCH=um", "KBUILD_MODPOST_WARN=1"], "the module")
        _run([*make, "plugins"], "tc's plugins")
    return module, sorted((source / build / "tc").glob("q_*.so"))


def _line(folder: Path) -> bytes:
    """The module of the link for this kernel."""
    source = kernel.tree() / "lab/line"
    place = kernel.tree() / "kernel/build" / f"line-{folder.name}"
    with kernel.locked("module", kernel.tree() / "kernel/build"):
        place.mkdir(parents=True, exist_ok=True)
        for path in source.iterdir():
            if not (place / path.name).exists() or (place / path.name).read_bytes() != path.read_bytes():
                shutil.copyfile(path, place / path.name)
        make = ["make", "--no-print-directory", "-s", "-C", str(folder), f"M={place}", "ARCH=um"]
        _run([*make, "KBUILD_MODPOST_WARN=1", "modules"], "the link's module")
    return (place / "sch_labline.ko").read_bytes()


def prepare(folder: Path, *more: Path, kinds: Sequence[str] = (), sent_when_due: bool = False) -> Guest:
    """Builds what the guest of a kernel needs; what is up to date stays.

    Args:
        folder: of the kernel, from `kernel.build`.
        more: further programs of this machine that jobs call by their names.
        kinds: policies that the module brings; those that Linux lacks if there is none.
        sent_when_due: a datagram counts as sent when it was due. It saves a system call, as expensive as sending, and
            makes most delays longer by less than 1 us.

    Raises:
        LaboratoryError: a program is missing, or something cannot be built.
    """
    lab = kernel.tree() / "lab"
    module, plugins = _module(folder, kinds)
    entries: dict[str, Entry] = {}

    def add(path: str, content: bytes, *, link: bool = False) -> None:
        entries.setdefault(path, Entry(path, content, link=link))

    with scratch() as work:
        made = work / "made"
        options = ["-static", f"-DSENT_WHEN_DUE={sent_when_due:d}"]
        _run([*_C, *options, str(lab / "guest/workload.c"), "-o", str(made)], "the traffic tool")
        add("bin/workload", made.read_bytes())
        add("clock.so", _library(lab / "guest/clock.c", made))
        library = _library(lab / "preload.c", made)
    kept = kernel.cache() / f"preload-{hashlib.sha256(library).hexdigest()[:12]}.so"
    if not kept.exists():
        part = kept.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(library)
        part.replace(kept)
    busybox = _program("busybox")
    add("bin/busybox", busybox.read_bytes())
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=False).stdout.split()
    for applet in sorted(set(applets) - {"ip", "tc", "sh", "busybox"} - {path.name for path in more}):
        add(f"bin/{applet}", b"busybox", link=True)
    for path in (*(_program(name) for name in ("dash", "tc", "ip")), *more):
        add(f"bin/{path.name}", path.read_bytes())
        for found in _libraries(path):
            add(str(found), found.resolve().read_bytes())
    add("bin/sh", b"dash", link=True)
    add("etc/passwd", b"root:x:0:0::/:/bin/sh\n")
    add("etc/group", b"root:x:0:\n")
    for plugin in plugins:
        add(f"tc/{plugin.name}", plugin.read_bytes())
    add("sch_linkweir.ko", module.read_bytes())
    add("sch_labline.ko", _line(folder))
    add("init", (lab / "guest/init").read_bytes())
    for script in ("wires.sh", "hosts.sh"):
        add(f"guest/{script}", (lab / "guest" / script).read_bytes())
    folders = [Entry(path) for path in ("proc", "sys", "dev", "tmp", "run", "etc", "mnt", "job")]
    image = archive([*folders, *(entries[path] for path in sorted(entries))])
    linux = folder / "linux"
    identity = hashlib.sha256(image + linux.read_bytes() + library).hexdigest()
    # pss_mq is a kind, too, but not a policy
    known = {policy["name"] for policy in _native.policies()}
    brought = frozenset(policy_of(plugin.stem.removeprefix("q_")) for plugin in plugins) & known
    return Guest(linux, image, kept, brought, identity)
