# SPDX-License-Identifier: GPL-2.0-only
"""Shows that other hosts of the core get the same object files with the marks of BPF as without.

    python3 marks.py CORE

The Makefile here marks a copy of core/src, CORE: lw_zero() is the 0 that a loop begins with, lw_below(i, n) is i.
All files are compiled from core/src and from CORE, with these words for the marks and the compilers of the hosts, and
the object files are compared byte by byte: C on this machine (programs, the gateway), 32 bits, C++ (ns-3), Clang,
WebAssembly (the browser), and all objects of the kernel module.

Exit codes: 0, all hosts get the same; 1, object files differ, a file cannot be compiled, or nothing was compared; 3,
those compared are the same, but a compiler or the kernel's headers are missing here. The last line has their number,
and the hosts that this was not shown for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = Path("/lib/modules")
"""Where headers of kernels are found."""
FREESTANDING = ROOT / "crates/linkweir-core/src/freestanding"
MARKS = ("#define lw_zero() 0\n", "#define lw_below(place, end) (place)\n")
C = ("-std=c11", "-O2")
HOSTS: dict[str, tuple[str, ...]] = {
    "gcc": ("gcc", *C),
    "gcc -Os": ("gcc", "-std=gnu11", "-Os"),
    "gcc -m32": ("gcc", *C, "-m32"),
    "g++, as for ns-3": ("g++", "-x", "c++", "-std=c++20", "-O2"),
    "clang": ("clang", *C),
    "clang for WebAssembly": ("clang", "--target=wasm32-unknown-unknown", "-nostdlib", f"-I{FREESTANDING}", *C),
}


Maker = Callable[[Path], dict[str, bytes]]


class MissingError(Exception):
    """A compiler or headers are not on this machine."""


class RefusedError(Exception):
    """A file cannot be compiled."""


def makers(folder: Path) -> dict[str, Maker]:
    """What compiles the C files of a folder for each host, into object files by name."""
    marks = folder / "marks.h"
    marks.write_text("".join(MARKS))
    found: dict[str, Maker] = {host: partial(objects, compiler, marks) for host, compiler in HOSTS.items()}
    release = newest()
    return {**found, f"the kernel module for {release or 'no kernel'}": partial(module, folder / "tree", release)}


def newest() -> str | None:
    """The newest kernel whose headers are here, if any."""
    releases = [path.parent.name for path in MODULES.glob("*/build")]
    return max(releases, key=lambda release: [int(number) for number in re.findall(r"\d+", release)], default=None)


def compiled(compiler: tuple[str, ...], source: Path, out: Path) -> str | None:
    """The first error of a compiler, or None."""
    command = [*compiler, "-c", source.name, "-o", str(out)]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())


def objects(compiler: tuple[str, ...], marks: Path, source: Path) -> dict[str, bytes]:
    """The object files of a compiler.

    Raises:
        MissingError: it is not here, or lacks the headers of a host.
        RefusedError: it refuses a file of the core.
    """
    out = marks.with_name("out.o")
    least = marks.with_name("least.c")
    least.write_text("#include <stdint.h>\n#include <string.h>\n")
    try:
        error = compiled(compiler, least, out)
    except FileNotFoundError:
        raise MissingError(f"{compiler[0]} is missing") from None
    if error:
        raise MissingError(error)
    with_core = (*compiler, f"-I{ROOT / 'core/include'}", "-include", str(marks))
    found = {}
    for path in sorted(source.glob("*.c")):
        if error := compiled(with_core, path, out):
            raise RefusedError(f"{path.name}: {error}")
        found[path.stem] = out.read_bytes()
    return found


def module(tree: Path, release: str | None, source: Path) -> dict[str, bytes]:
    """The object files of the module for a kernel.

    An object of the module may have its path, so both are built in one place, a copy of what the module is built from.
    Kernels are built with debugging information, which has the columns of the source; it is left out.

    Raises:
        MissingError: there are no headers.
        RefusedError: the module cannot be built.
    """
    if release is None:
        raise MissingError(f"there are no headers in {MODULES}: ./setup.sh kernel")
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("core", "kernel"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("build", ".random-*"))
    shutil.copy(ROOT / "Cargo.toml", tree)
    (tree / "vectors").mkdir()
    (tree / "vectors/make.sh").write_text(":\n")  # the module with the vectors is not compared
    shutil.rmtree(tree / "core/src")
    shutil.copytree(source, tree / "core/src")
    port = tree / "core/include/linkweir/port.h"
    port.write_text("".join(MARKS) + port.read_text())
    done = subprocess.run(
        ["make", "-C", tree / "kernel", f"KERNELS={release}", "VECTORS=", "modules"], capture_output=True, text=True
    )
    if done.returncode:
        raise RefusedError(f"module for {release}: {done.stderr.strip()[-300:]}")
    built = tree / "kernel/build" / release
    found = {}
    for path in sorted(built.rglob("*.o")):
        name = str(path.relative_to(built))
        if "vectors" not in name:
            subprocess.run(["strip", "--strip-debug", path], check=True)
            found[name] = path.read_bytes()
    return found


def main() -> int:
    """Compares, and prints a line for each host."""
    marked = Path(sys.argv[1]).resolve()
    plain = ROOT / "core/src"
    texts = [sum(path.read_text().count(mark) for path in marked.glob("*.[ch]")) for mark in ("lw_zero()", "lw_below(")]
    print(f"marks: {texts[0]} of lw_zero, {texts[1]} of lw_below")
    same: list[str] = []
    missing: list[str] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for host, make in makers(Path(name)).items():
            try:
                before, after = make(plain), make(marked)
            except MissingError as error:
                missing.append(host)
                result = f"NOT COMPARED: {error}"
            except RefusedError as error:
                wrong.append(host)
                result = f"NOT COMPARED: {error}"
            else:
                other = sorted(stem for stem in before.keys() | after.keys() if before.get(stem) != after.get(stem))
                (wrong if other or not before else same).append(host)
                verdict = f"these differ: {', '.join(other)}" if other else "all the same"
                result = f"{len(before)} object files, {verdict}"
            print(f"{host}: {result}", flush=True)
    print(
        f"marks: {len(same)} hosts get the same; not the same: {'; '.join(wrong) or 'none'}; "
        f"not compared, because something is missing here: {'; '.join(missing) or 'none'}"
    )
    if wrong or not same or not texts[0]:
        return 1
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
