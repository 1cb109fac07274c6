# SPDX-License-Identifier: BSD-3-Clause
"""The source distribution and the wheel: built, installed into an empty environment, and a scenario run there."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from command import REPOSITORY, SMALL, strict_json

import linkweir
from linkweir.report import knobs

sys.path.insert(0, str(REPOSITORY / "docs/site"))

import playground

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
START = REPOSITORY / "python/linkweir/templates/start"
LICENCES = {"BSD-3-Clause.txt", "GPL-2.0-only.txt", "MIT-uPlot.txt", "THIRD-PARTY-wheel.txt"}
DRAWN_WITH = ("report.js", "report.css", "uPlot.iife.min.js", "uPlot.min.css", "uPlot.notice.js")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SIMULATOR = gzip.compress(b"a simulator, as far as the package knows", mtime=0)
HERE_ALONE = ("CARGO_TARGET_DIR", "PYTHONPATH")
NO_INDEX = ("NewConnectionError", "NameResolutionError", "ProxyError", "ConnectTimeoutError", "ReadTimeoutError")


def run(*words: object, **changes: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key not in HERE_ALONE} | changes,
    )
    if any(word in done.stderr for word in NO_INDEX):
        pytest.skip(f"NOT INSTALLED: no package index answers ({done.stderr.strip().splitlines()[-1]})")
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(command: str, *words: object, **changes: str) -> None:
    """Runs a tool of this environment, which has maturin."""
    tools = Path(sys.executable).parent
    run(tools / command, *words, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}", **changes)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build("maturin", "sdist", "--manifest-path", REPOSITORY / "crates/linkweir-py/Cargo.toml", "--out", folder)
    [path] = folder.iterdir()
    return path


def _compile_ours_quickly(source: Path) -> None:
    """Our crates are optimized less than those of a release, which `make build` compiles: it gives the same numbers."""
    names = sorted(path.parent.name for path in source.glob("crates/*/Cargo.toml"))
    assert "linkweir-py" in names
    (source / ".cargo").mkdir()
    profiles = (f"[profile.release.package.{name}]\nopt-level = 0\ncodegen-units = 16\n" for name in names)
    (source / ".cargo/config.toml").write_text("".join(profiles))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, with the dependencies that the checkout has compiled already."""
    build_in = TARGET / "sdist"
    if not build_in.exists() and (TARGET / "release").exists():
        # Not our own packages: cargo knows them by their relative paths and would take the checkout's for these.
        ours = shutil.ignore_patterns("*linkweir*", "*_native*", ".cargo-lock", "examples")
        shutil.copytree(TARGET / "release", build_in / "release", ignore=ours)
    source = build_in / "source"
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        [top] = {Path(name).parts[0] for name in archive.getnames()}
        archive.extractall(source)
    _compile_ours_quickly(source / top)
    reports = source / top / "python/linkweir/report"
    (reports / knobs.MODULE).write_bytes(SIMULATOR)
    (reports / knobs.SOURCES).write_text(playground.sources())
    for path in source.rglob("*"):
        path.touch()  # the archive's files are all of one date, by which cargo would not see a change
    folder = tmp_path_factory.mktemp("wheel")
    words = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source / top)
    build("pip", "wheel", *words, CARGO_TARGET_DIR=str(build_in))
    [path] = folder.iterdir()
    return path


def interpreter(version: str) -> str | None:
    """A Python of that version that starts: the one in PATH, or one that pyenv installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))):
        if found and subprocess.run([found, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return str(found)
    return None


def runs_a_scenario(python: str, package: Path, folder: Path) -> None:
    """Installs into an empty environment; its run must give the numbers of this checkout."""
    run(python, "-m", "venv", "--without-pip", folder / "venv")
    scripts = folder / "venv/bin"
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--no-compile", package)  # of its dependencies, few modules are needed here
    (folder / "small.toml").write_text(SMALL)
    summary = strict_json(run(scripts / "linkweir", "run", folder / "small.toml", "--out", folder / "out", "--json"))
    here = linkweir.run(folder / "small.toml").summary
    assert {key: summary[key] for key in here} == here
    assert (folder / "out/report.html").is_file()
    run(scripts / "linkweir", "init", folder / "start")
    for path in (path for path in START.rglob("*") if path.is_file() and path.name != "README.md"):
        assert (folder / "start" / path.relative_to(START)).read_bytes() == path.read_bytes()
    run(scripts / "linkweir", "check", folder / "start/lte-drive.toml")
    assert (folder / "venv/share/man/man1/linkweir.1").is_file()
    assert "properties" in strict_json(run(scripts / "linkweir", "schema"))


@pytest.mark.slow
def test_the_source_distribution_holds_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
        top = archive.getnames()[0].split("/")[0]
        described = archive.extractfile(f"{top}/PKG-INFO")
        assert described is not None
        about = HeaderParser().parsestr(described.read().decode())
    parts = ("core/src", "core/include", "python/wheel")
    needed = [path for part in parts for path in (REPOSITORY / part).rglob("*") if path.is_file()]
    assert {str(path.relative_to(REPOSITORY)) for path in needed} <= names
    assert {f"LICENSES/{name}" for name in LICENCES} <= names
    assert {f"python/linkweir/report/{name}" for name in DRAWN_WITH} <= names
    assert not any(knobs.MODULE in name for name in names)
    assert about["License-Expression"] == "BSD-3-Clause AND (GPL-2.0-only OR BSD-3-Clause) AND MIT"


@pytest.mark.slow
def test_the_source_distribution_has_the_sources_hash_of_the_repository(sdist: Path, tmp_path: Path) -> None:
    """Also after cargo took out of Cargo.lock what the archive does not need."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path)
    [top] = tmp_path.iterdir()
    locked = (top / "Cargo.lock").read_text()
    command = ["cargo", "metadata", "--quiet", "--offline", "--format-version=1"]
    subprocess.run(command, cwd=top, stdout=subprocess.DEVNULL, check=True)
    assert len((top / "Cargo.lock").read_text()) < len(locked)
    assert playground.sources(top) == playground.sources()


def test_the_source_distribution_makes_its_vectors_without_git(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path)
    [top] = tmp_path.iterdir()
    for folder in (REPOSITORY / "vectors").glob("*/"):
        packed = {path.name for path in (top / "vectors" / folder.name).iterdir()}
        assert packed == {path.name for path in folder.glob("*") if not path.name.startswith(("random-", "."))}
    run(sys.executable, top / "oracle/generate.py", "--check", "fifo", "rr")


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_runs_a_scenario(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name}
    assert texts == LICENCES
    runs_a_scenario(sys.executable, wheel, tmp_path)
    brings_the_simulator_along(wheel, tmp_path)


def brings_the_simulator_along(wheel: Path, folder: Path) -> None:
    """What was there when the wheel was built is in it; its command compares the sources and puts it into a report."""
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"linkweir/report/{knobs.MODULE}") == SIMULATOR
    assert knobs.as_text(SIMULATOR) not in (folder / "out/report.html").read_text()
    run(folder / "venv/bin/linkweir", "report", folder / "out", "--knobs")
    assert knobs.as_text(SIMULATOR) in (folder / "out/report.html").read_text()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
@pytest.mark.parametrize("version", PYTHONS)
def test_every_python_installs_both(version: str, kind: str, sdist: Path, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"NOT RUN: no Python {version} in PATH or among pyenv's versions")
    runs_a_scenario(python, sdist if kind == "sdist" else wheel, tmp_path)
