# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory's kernels, made once from Debian's linux-source and kept in a cache.

`fast`, `debug`, `traced`, `classifiers` and `newest` are user-mode Linux in virtual time. `classifiers` has more
classifiers of tc. `newest` is made from the newest sources of Debian's backports, which kernel/series/sources.py
fetches; it has queueing disciplines that 6.12 lacks. `kasan` and `kcsan` run in QEMU with several processors.

::

    ~/.cache/linkweir/lab/source-HASH/       the sources, unpacked
    ~/.cache/linkweir/lab/linux-HASH/        a build; `complete` is its last file

A build is named by everything it is made from: sources, configuration, compiler and this recipe. Its banner holds no
time and no name of a machine, because the kernel mixes it into its random numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from linkweir.lab.fault import LaboratoryError

SOURCES = "linux-source-6.12"
TOOLS = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "tar": "tar", "xz": "xz-utils"}
VARIANTS = {
    "fast": ("minimal",),
    "debug": ("minimal", "debug"),
    "traced": ("minimal", "traced"),
    "classifiers": ("minimal", "classifiers"),
    "newest": ("minimal", "newest"),
    "kasan": ("machine", "kasan"),
    "kcsan": ("machine", "kcsan"),
}
"""Kernels there are, and the configurations they are made from."""

_LEFT_OUT = ("drivers/gpu/*.[ch]", "sound/*.[ch]", "Documentation/*/*", "tools/testing/*", "*.dts", "*.dtsi")
_BANNER = {
    "KBUILD_BUILD_TIMESTAMP": "2000-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "linkweir",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
}
_RECIPE = 1
_WATCHED = "$(if $(filter net net/% drivers/net%,$(obj)),y,n)"
"""What the sanitizers of `kasan` and `kcsan` watch, besides modules; the rest of the kernel is faster without them."""


def tree() -> Path:
    """The source tree of linkweir, which has `lab/` and `kernel/`.

    Raises:
        LaboratoryError: this package was installed without it.
    """
    for folder in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (folder / "lab/kernel/minimal.config").is_file() and (folder / "kernel/Makefile").is_file():
            return folder
    raise LaboratoryError("the laboratory needs linkweir's source tree: run it there, or install with maturin develop")


def cache() -> Path:
    """The folder of kernels and sources."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "linkweir" / "lab"


def sources() -> Path | None:
    """Debian's archive of the sources, if installed."""
    path = Path("/usr/src") / f"{SOURCES}.tar.xz"
    return path if path.is_file() else None


def newest(*, fetch: bool = False) -> Path | None:
    """The tree of Debian's newest sources that was fetched before; with `fetch` they are fetched if there is none.

    Raises:
        LaboratoryError: they cannot be fetched.
    """
    script = tree() / "kernel/series/sources.py"
    for words in (["--kept"], []) if fetch else (["--kept"],):
        done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LaboratoryError(f"kernel (newest): {done.stderr.strip()}")
        if found := done.stdout.strip():
            return Path(found.splitlines()[-1])
    return None


def release(folder: Path) -> str:
    """The version of a build, as `uname -r` shows it there."""
    return (folder / "include/config/kernel.release").read_text().strip()


def options(folder: Path) -> frozenset[str]:
    """The options of a build that are in the kernel itself, without CONFIG_."""
    lines = (folder / ".config").read_text().splitlines()
    return frozenset(line[len("CONFIG_") : -len("=y")] for line in lines if line.endswith("=y"))


def image(folder: Path) -> Path:
    """The program or image that starts, of a build."""
    program = folder / "linux"
    return program if program.exists() else folder / "arch/x86/boot/bzImage"


def why_not(variant: str = "fast") -> str | None:
    """Why no kernel can be built here, with the cure; None if one can."""
    if platform.machine() != "x86_64":
        return f"user-mode Linux needs an x86-64 processor, this is {platform.machine()}"
    packages = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    packages += [] if variant == "newest" or sources() else [SOURCES]
    if packages:
        return f"{' '.join(packages)} missing: apt-get install them, or ./setup.sh lab as root"
    return None


def _hash(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:12]


def _identity(archive: Path) -> bytes:
    """A fingerprint of an archive of sources, without reading all 150 MB."""
    with archive.open("rb") as file:
        file.seek(-65536, os.SEEK_END)
        return str(archive.stat().st_size).encode() + file.read()


def _configs(variant: str) -> list[Path]:
    return [tree() / "lab/kernel" / f"{name}.config" for name in VARIANTS[variant]]


def _sources_identity(variant: str) -> bytes | None:
    """A fingerprint of the sources of a variant; None if they are not here."""
    if variant == "newest":
        found = newest()
        return None if found is None else found.name.encode() + (found / "Makefile").read_bytes()
    archive = sources()
    return None if archive is None else _identity(archive)


def place(variant: str = "fast") -> Path:
    """The folder of a build of the sources that are here, whether it is there or not.

    Raises:
        LaboratoryError: there are no sources.
    """
    identity = _sources_identity(variant)
    if identity is None:
        if variant == "newest":
            raise LaboratoryError(
                "kernel (newest): its sources are missing; linkweir lab build-kernel --newest gets them"
            )
        raise LaboratoryError(f"/usr/src/{SOURCES}.tar.xz is missing: apt-get install {SOURCES}, or ./setup.sh lab")
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, check=False).stdout
    parts = [path.read_bytes() for path in _configs(variant)]
    parts += [_WATCHED.encode()] if "machine" in VARIANTS[variant] else []
    return cache() / f"linux-{_hash(identity, compiler, str((_RECIPE, _BANNER)).encode(), *parts)}"


def built(variant: str = "fast") -> Path | None:
    """The folder of a kernel that is there already."""
    if shutil.which("gcc") is None or _sources_identity(variant) is None:
        return None
    folder = place(variant)
    return folder if (folder / "complete").exists() else None


@contextlib.contextmanager
def locked(name: str, folder: Path | None = None) -> Iterator[None]:
    """Holds a lock in a folder (default: the cache): a second process waits here, and then finds the work done."""
    where = folder or cache()
    where.mkdir(parents=True, exist_ok=True)
    with (where / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], folder: Path, log: Path) -> None:
    environment = {**os.environ, **_BANNER, "LC_ALL": "C"}
    with log.open("ab") as out:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=out, stderr=out, check=False)
    if done.returncode:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        raise LaboratoryError(f"{' '.join(command)}: failed, see {log}:\n{end}")


def _unpacked(archive: Path, say: Callable[[str], None]) -> Path:
    folder = cache() / f"source-{_hash(_identity(archive), str(_LEFT_OUT).encode())}"
    if (folder / "complete").exists():
        return folder
    with locked(folder.name):
        if not (folder / "complete").exists():
            say(f"unpacking {archive}")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            out = [f"--exclude=*/{pattern}" for pattern in _LEFT_OUT]
            _run(["tar", "-xJf", str(archive), "--strip-components=1", *out], folder, folder / "tar.log")
            (folder / "complete").touch()
    return folder


def build(variant: str = "fast", *, jobs: int | None = None, say: Callable[[str], None] = lambda _: None) -> Path:
    """Builds a kernel unless it is there.

    Args:
        variant: a name in `VARIANTS`.
        jobs: commands at a time; as many as there are processors when None.
        say: called with what is done now.

    Returns:
        The folder with the kernel (`image`), against which modules are built.

    Raises:
        LaboratoryError: packages are missing, or a command failed.
    """
    found = built(variant)
    if found is not None:
        return found
    if why := why_not(variant):
        raise LaboratoryError(f"no kernel can be built: {why}")
    if variant == "newest" and newest() is None:
        say("fetching the newest sources of Debian's backports: 150 MB, 2 GB when unpacked")
        newest(fetch=True)
    folder = place(variant)
    with locked(folder.name):
        if (folder / "complete").exists():
            return folder
        source = _tree_of(variant, say)
        folder.mkdir(parents=True, exist_ok=True)
        minutes = "4 to 6" if "minimal" in VARIANTS[variant] else "10 to 20"
        say(f"building the kernel ({variant}) in {folder}: {minutes} minutes of one processor")
        _make(source, folder, variant, jobs or len(os.sched_getaffinity(0)))
        (folder / "complete").touch()
    return folder


def _tree_of(variant: str, say: Callable[[str], None]) -> Path:
    """The unpacked sources of a variant."""
    found = newest() if variant == "newest" else sources()
    assert found is not None
    return found if variant == "newest" else _unpacked(found, say)


def _wanted(configs: Iterable[str]) -> dict[str, str]:
    r"""The values of several configurations; of a name in more than one the last counts.

    >>> _wanted(["CONFIG_A=y\nCONFIG_B=y", "CONFIG_A=n"])
    {'CONFIG_A': 'n', 'CONFIG_B': 'y'}
    """
    lines = (line for text in configs for line in text.splitlines() if line.startswith("CONFIG_"))
    return dict(line.split("=", 1) for line in lines)


def _make(source: Path, folder: Path, variant: str, jobs: int) -> None:
    log = folder / "build.log"
    architecture, target = ("um", "linux") if "minimal" in VARIANTS[variant] else ("x86_64", "bzImage")
    make = ["make", "-s", f"ARCH={architecture}", f"O={folder}"]
    configs = [str(path) for path in _configs(variant)]
    _run([*make, "tinyconfig"], source, log)
    _run(["./scripts/kconfig/merge_config.sh", "-m", "-O", str(folder), f"{folder}/.config", *configs], source, log)
    _run([*make, "olddefconfig"], source, log)
    chosen = (folder / ".config").read_text().splitlines()
    for name, value in _wanted(path.read_text() for path in _configs(variant)).items():
        there = f"{name}=y" in chosen or f"{name}=m" in chosen
        if (value == "y" and f"{name}=y" not in chosen) or (value == "n" and there):
            raise LaboratoryError(f"kernel ({variant}): {name}={value} of lab/kernel is refused by these sources")
    if "CONFIG_UML_RANDOM=y" in chosen:
        raise LaboratoryError("the kernel would ask this machine for randomness")
    if architecture == "x86_64":
        make += [f"{sanitizer}_SANITIZE={_WATCHED}" for sanitizer in ("KASAN", "KCSAN", "UBSAN")]
    _run([*make, f"-j{jobs}", target, "modules"], source, log)


def clean() -> list[Path]:
    """Removes what is in the cache; returns what was there."""
    found = sorted(cache().glob("*")) if cache().is_dir() else []
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found
