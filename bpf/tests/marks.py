# SPDX-License-Identifier: GPL-2.0-only
"""Shows that other hosts of the core get the same object files with the marks of BPF as without.

    python3 marks.py CORE

The Makefile here marks a copy of core/src, CORE: lw_zero() is the 0 that a loop begins with, lw_below(i, n) is i.
All files are compiled from core/src and from CORE, with these words for the marks and the compilers of the hosts, and
the object files are compared byte by byte: C on this machine (programs, the gateway), 32 bits, C++ (ns-3), Clang,
WebAssembly (the browser), and the kernel module.

Exit codes: 0, all are the same; 1, some differ, or nothing was compared. A compiler that is missing is named and left
out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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


Maker = Callable[[Path], dict[str, bytes] | None]


def makers(folder: Path) -> dict[str, Maker]:
    """What compiles the C files of a folder for each host, into object files by name, or None where it cannot."""
    marks = folder / "marks.h"
    marks.write_text("".join(MARKS))
    found: dict[str, Maker] = {host: partial(objects, compiler, marks) for host, compiler in HOSTS.items()}
    return {**found, "the kernel module": partial(module, folder / "tree")}


def objects(compiler: tuple[str, ...], marks: Path, source: Path) -> dict[str, bytes] | None:
    """The object files of a compiler, or None, after its message."""
    found = {}
    out = marks.with_name("out.o")
    for path in sorted(source.glob("*.c")):
        command = [*compiler, f"-I{ROOT / 'core/include'}", "-include", str(marks), "-c", path.name, "-o", str(out)]
        try:
            done = subprocess.run(command, cwd=source, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        if done.returncode:
            print(f"  {path.name}: {done.stderr.strip()[:300]}")
            return None
        found[path.stem] = out.read_bytes()
    return found


def module(tree: Path, source: Path) -> dict[str, bytes] | None:
    """The policies' object files in the module for the newest kernel whose headers are here, or None.

    An object of the module may have its path, so both are built in one place, a copy of what the module is built from.
    Kernels are built with debugging information, which has the columns of the source; it is left out.
    """
    kernels = sorted(Path("/lib/modules").glob("*/build"))
    if not kernels:
        return None
    release = kernels[-1].parent.name
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
        print(f"  module for {release}: {done.stderr.strip()[-300:]}")
        return None
    built = sorted(tree.rglob("kind_*.o"))
    for path in built:
        subprocess.run(["strip", "--strip-debug", path], check=True)
    return {path.stem: path.read_bytes() for path in built}


def main() -> int:
    """Compares, and prints a line for each host."""
    marked = Path(sys.argv[1]).resolve()
    plain = ROOT / "core/src"
    texts = [sum(path.read_text().count(mark) for path in marked.glob("*.[ch]")) for mark in ("lw_zero()", "lw_below(")]
    print(f"marks: {texts[0]} of lw_zero, {texts[1]} of lw_below")
    differ = compared = 0
    with tempfile.TemporaryDirectory() as name:
        for host, make in makers(Path(name)).items():
            before, after = make(plain), make(marked)
            if before is None or after is None:
                print(f"{host}: NOT COMPARED", flush=True)
                continue
            other = [stem for stem in before if before[stem] != after.get(stem)]
            differ += len(other)
            compared += len(before)
            result = f"these differ: {', '.join(other)}" if other else "all the same"
            print(f"{host}: {len(before)} object files, {result}", flush=True)
    return 0 if compared and not differ and texts[0] else 1


if __name__ == "__main__":
    sys.exit(main())
