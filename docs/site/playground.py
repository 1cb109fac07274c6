# SPDX-License-Identifier: BSD-3-Clause
"""What the playground loads: the simulator as WebAssembly, scenarios with their files, and the scripts of reports.

The simulator is `crates/linkweir-web`. Without its toolchain the site is made without it, and says what is missing.
As a program this compiles it and puts it into the Python package, for reports with knobs: `linkweir report --knobs`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = "wasm32-unknown-unknown"
FAST, SMALL = "browser", "browser-small"
"""Profiles of cargo: the playground's simulator is fast, that of reports with knobs is small."""
PAGE = "docs/playground"
"""The page that has these scripts and styles, in this order; the others do not load them."""
SCRIPTS = (
    "playground-data.js",
    "simulator.js",
    "shown.js",
    "playground.js",
    "uPlot.notice.js",
    "uPlot.iife.min.js",
    "report.js",
)
STYLES = ("uPlot.min.css", "report.css", "playground.css", "knobs.css")
_OF_REPORTS = (
    "uPlot.notice.js",
    "uPlot.iife.min.js",
    "uPlot.min.css",
    "report.js",
    "report.css",
    "simulator.js",
    "shown.js",
    "knobs.css",
)
_IN_PACKAGE = REPOSITORY / "python/linkweir/report/simulator.wasm.gz"
_SOURCES = "crates/linkweir-py/sources.txt"
_SCENARIOS = REPOSITORY / "scenarios"
_MUST = ("cargo", "rustc", "clang", "llvm-ar")
_CURE = "./setup.sh playground installs it, or names its package"
_LAST_LINES = 20


class MissingError(Exception):
    """Why the simulator is not built, and what helps."""


def write(into: Path) -> None:
    """Writes the files into a folder. Without a toolchain it prints what is missing, and the page says so, too."""
    from linkweir.report import knobs  # as a program this file only compiles, before there is a package

    module, missing = None, None
    try:
        module = knobs.as_text(packed(FAST))
    except MissingError as error:
        missing = str(error)
        print(f"site: NOT BUILT: the playground's simulator: {missing}", flush=True)
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_SCENARIOS.glob("*.toml"))}
    made = {"geo-strict": strict(shipped["geo-dwrr"])}
    data = {
        "module": module,
        "missing": missing,
        "scenarios": {**shipped, **made},
        "made": dict.fromkeys(made, True),
        "files": {
            path.relative_to(_SCENARIOS).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(_SCENARIOS.rglob("*.csv"))
        },
    }
    (into / "playground-data.js").write_text(f"window.linkweirPlayground = {json.dumps(data)};\n", encoding="utf-8")
    for name in _OF_REPORTS:
        (into / name).write_bytes((resources.files("linkweir.report") / name).read_bytes())


def packed(profile: str) -> bytes:
    """Compiles the simulator; the module as gzip packs it.

    Raises:
        MissingError: as of `built`.
    """
    return gzip.compress(built(profile).read_bytes(), 9, mtime=0)


def sources(repository: Path = REPOSITORY) -> str:
    """The hash of what decides results, as the build script of `crates/linkweir-py` notes it in the native module."""
    named = [repository / line for line in (repository / _SOURCES).read_text(encoding="utf-8").splitlines()]
    within = [path for name in named for path in ([name] if name.is_file() else name.rglob("*")) if path.is_file()]
    found = 0xCBF29CE484222325
    for path in sorted(within, key=lambda path: path.parts):
        for byte in path.relative_to(repository).as_posix().encode() + path.read_bytes():
            found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


def strict(text: str) -> str:
    """The scenario `geo-dwrr` with strict priorities: no quanta, and CS0 below AF."""
    lines = [line for line in text.split("\n") if not line.startswith(("quantum", "# "))]
    before, _, after = (
        "\n".join(lines).replace('"drr"', '"strict"').replace("DWRR", "Strict priority").partition('name = "cs0"')
    )
    return f'{before}name = "cs0"{after.replace("level = 1", "level = 2", 1)}'


def built(profile: str) -> Path:
    """Compiles the simulator; the module.

    Raises:
        MissingError: a part of the toolchain is missing, or the compiler fails.
    """
    for program in _MUST:
        if shutil.which(program) is None:
            raise MissingError(f"{program} is missing; {_CURE}")
    has_linker = any((_rust("sysroot") / "lib/rustlib").glob("*/bin/rust-lld"))
    if shutil.which("wasm-ld") is None and not has_linker:
        raise MissingError(f"wasm-ld is missing; {_CURE}")
    command = ["cargo", "rustc", "--locked", "--quiet", "--profile", profile, "--package", "linkweir-web"]
    command += ["--lib", "--crate-type", "cdylib", "--target", TARGET]
    environment = dict(os.environ)
    if not has_linker:  # as in Debian's packages, whose compilers look for rust-lld all the same
        environment["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"] = "wasm-ld"
    if not _has_std():
        if not (_rust("sysroot") / "lib/rustlib/src/rust/library/std/Cargo.toml").exists():
            raise MissingError(f"Rust's standard library for {TARGET} is missing; {_CURE}")
        command += ["-Z", "build-std=std,panic_abort"]
        environment["RUSTC_BOOTSTRAP"] = "1"
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        end = "\n".join(done.stderr.splitlines()[-_LAST_LINES:])
        raise MissingError(f"cargo failed with exit code {done.returncode}:\n{end}")
    folder = REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")
    return folder / TARGET / profile / "linkweir_web.wasm"


def _has_std() -> bool:
    return any(_rust("target-libdir", "--target", TARGET).glob("libstd-*.rlib"))


def _rust(what: str, *more: str) -> Path:
    answer = subprocess.run(
        ["rustc", "--print", what, *more], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise MissingError(f"rustc --print {what} failed: {answer.stderr.strip()}")
    return Path(answer.stdout.strip())


if __name__ == "__main__":
    try:
        begun = sources()
        _IN_PACKAGE.unlink(missing_ok=True)
        _IN_PACKAGE.with_name("simulator.wasm.sources").write_text(begun, encoding="utf-8")
        _IN_PACKAGE.write_bytes(packed(SMALL))
    except MissingError as error:
        sys.exit(f"playground: NOT BUILT: {error}")
    print(f"playground: {_IN_PACKAGE.relative_to(REPOSITORY)}: {_IN_PACKAGE.stat().st_size / 1e3:.0f} kB")
