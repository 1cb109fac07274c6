# SPDX-License-Identifier: BSD-3-Clause
"""Builds and checks the files of a release from the clone that this file is in; release.py made the clone.

Each file is checked before it is listed in FILES.md. A check that fails ends the release.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

import arm64
import emulated

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT.parent
TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
# of the systems that we name, Debian 12 has the oldest C library
OLDEST_GLIBC = (2, 36)
# compiled for glibc 2.17, as CentOS 7 had it
MANYLINUX = "manylinux_2_17"
SCENARIOS = ("scenarios/pds.toml", "scenarios/leo-voice.toml")
LICENCES = ("BSD-3-Clause.txt", "GPL-2.0-only.txt")
IN_PYTHON = (*LICENCES, "MIT-uPlot.txt", "THIRD-PARTY-wheel.txt")
IN_GATEWAY = ("BSD-3-Clause.txt", "MIT-uPlot.txt", "THIRD-PARTY-gateway.txt")
# the simulator for browsers is in no commit: reports with knobs bring it along
SIMULATOR = ("linkweir/report/simulator.wasm.gz", "linkweir/report/simulator.wasm.sources")
IN_WHEEL = (
    *SIMULATOR,
    "linkweir/py.typed",
    "linkweir/_native.abi3.so",
    "linkweir/templates/policy.c",
    "linkweir/templates/policy.py",
)
# a policy that breaks its contract unwinds the run, which needs tables that a linker may leave out
BROKEN = {
    "mine.py": "class Mine:\n    def __init__(self, *_): pass\n    def pick(self, view): return 7\n",
    "broken.toml": """duration = "1s"
link = { rate = "10Mbit" }
scheduler = { policy = { python = "mine.py:Mine" } }
class = [{ name = "one" }]
flow = [{ class = "one", kind = "cbr", rate = "1Mbit" }]
""",
}
BREAKS = "named queue 7"
# of a list of components, by the schema of CycloneDX
VALIDATE = """
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion[sys.argv[2]]).validate_str(pathlib.Path(sys.argv[1]).read_text())
sys.exit(str(fault) if fault else 0)
"""
CORE = ("core/include", "core/src", "core/tests/replay.c", "core/tests/vector.h", "core/tests/plane.h", "vectors")


def run(*words: object, at: Path = ROOT, fails: bool = False, **changes: str) -> str:
    """Runs a command and returns its output; ends the release if it fails, or succeeds although it should fail."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        cwd=at,
        env=os.environ | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if (done.returncode != 0) != fails:
        print(done.stdout[-5000:], file=sys.stderr)
        sys.exit(f"release: {' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def need(holds: bool, otherwise: str) -> None:
    if not holds:
        sys.exit(f"release: {otherwise}")


def need_licences(package: str, names: Iterable[str], texts: Mapping[str, bytes]) -> None:
    """Ends the release unless a package has these texts as they are in LICENSES.

    Args:
        package: its name.
        names: of the texts.
        texts: what the package has, by its path.
    """
    found = {path.rpartition("/")[2]: text for path, text in texts.items()}
    lacking = [name for name in names if found.get(name) != (ROOT / "LICENSES" / name).read_bytes()]
    need(not lacking, f"{package} lacks licences, or has other texts: {', '.join(lacking)}")


def version() -> str:
    """The version, which Cargo.toml has; what cannot read it there must agree."""
    found = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found is not None
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    need(cited is None or cited[1] == found[1], f"CITATION.cff has another version than Cargo.toml, {found[1]}")
    return found[1]


@dataclass
class Release:
    """A release being made."""

    out: Path
    tools: Path
    version: str
    commit: str
    epoch: str
    made: list[tuple[str, str, str]] = field(default_factory=list)
    cross_compilers: list[str] = field(default_factory=list)

    @property
    def programs(self) -> Path:
        return WORK / "tools/bin"

    def say(self, what: str) -> None:
        print(f"release: {what}", flush=True)

    def add(self, path: Path, purpose: str, checked: str, name: str = "") -> Path:
        """Puts a checked file into the folder."""
        target = self.out / (name or path.name)
        shutil.copyfile(path, target)
        self.made.append((target.name, purpose, checked))
        self.say(f"{target.name}: {checked}")
        return target

    def build(self) -> None:
        os.environ["SOURCE_DATE_EPOCH"] = self.epoch
        os.environ["RUSTFLAGS"] = f"--remap-path-prefix={cargo_home()}=/cargo"
        for name in ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "MAKEFLAGS", "MAKELEVEL", "PYTHONPATH", "VIRTUAL_ENV"):
            os.environ.pop(name, None)
        os.environ["PATH"] = f"{self.programs}:{os.environ['PATH']}"
        self.say("installing the tools of requirements/release.lock")
        run(sys.executable, "-m", "venv", WORK / "tools")
        run(self.programs / "pip", "install", "--quiet", "--requirement", "requirements/release.lock")
        run(sys.executable, "release/notices.py", "--check")
        run("sh", "vectors/make.sh")
        source = self.sdist()
        self.say("simulator for browsers")
        run(sys.executable, "docs/site/playground.py")
        wheels = {machine: self.wheel(machine) for machine in TARGETS}
        self.compare(wheels)
        self.gateway_arm64(self.gateway())
        self.kernel()
        self.core()
        self.components(wheels["x86_64"])
        self.container()
        self.finish(source)

    def sdist(self) -> Path:
        self.say("source distribution")
        run("maturin", "sdist", "--out", WORK / "dist")
        [path] = (WORK / "dist").glob("*.tar.gz")
        with tarfile.open(path) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
            members = [member for member in archive if member.isfile() and "/LICENSES/" in member.name]
            texts = {member.name: archive.extractfile(member).read() for member in members}
        need_licences(path.name, IN_PYTHON, texts)
        tracked = run("git", "ls-files", "core/src", "core/include", "crates/linkweir-py", "crates/linkweir-sim/src")
        lacking = {*tracked.split(), "Cargo.lock"} - names
        need(not lacking, f"{path.name} lacks {sorted(lacking)[:5]}")
        return self.add(
            path, "source of the Python package: `pip install` compiles it", "has core, crates and licences"
        )

    def wheel(self, machine: str) -> Path:
        self.say(f"wheel for {machine}")
        words = ("--release", "--locked", "--zig", "--target", TARGETS[machine], "--compatibility", MANYLINUX)
        run("maturin", "build", *words, "--out", WORK / "dist")
        [path] = (WORK / "dist").glob(f"*_{machine}.whl")
        need(path.name.split("-")[2:4] == ["cp310", "abi3"], f"{path.name} is not for the stable ABI of Python 3.10")
        shown = run("auditwheel", "show", path)
        tag = f"{MANYLINUX}_{machine}"
        need(f'platform tag:\n"{tag}"' in shown and tag in path.name, f"auditwheel: {path.name} is not {tag}:\n{shown}")
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            module = archive.read("linkweir/_native.abi3.so")
            texts = {name: archive.read(name) for name in names if ".dist-info/licenses/" in name}
        package = {name.removeprefix("python/") for name in run("git", "ls-files", "python/linkweir").split()}
        lacking = (package | set(IN_WHEEL)) - names
        need(not lacking, f"{path.name} lacks {sorted(lacking)[:5]}")
        need_licences(path.name, IN_PYTHON, texts)
        need(any(".dist-info/sboms/" in name for name in names), f"{path.name} has no list of its components")
        need(self.commit.encode() in module, f"{path.name} does not know its commit")
        need(str(cargo_home()).encode() not in module, f"{path.name} names folders of this machine")
        checked = f"auditwheel: {tag}; has all files of the package, licences and commit"
        return self.add(path, f"Python package for {machine}, Python 3.10 and later", checked)

    def compare(self, wheels: dict[str, Path]) -> None:
        """Installs both wheels and runs scenarios: the one for aarch64, under qemu, must give the same bytes."""
        self.say("wheel for x86_64 in an empty environment")
        run(sys.executable, "-m", "venv", WORK / "x86_64")
        run(WORK / "x86_64/bin/pip", "install", "--quiet", wheels["x86_64"])
        native = WORK / "x86_64/bin/linkweir"
        need(self.version in run(native, "--version"), "linkweir --version has another version")
        for scenario in SCENARIOS:
            run(native, "run", ROOT / scenario, "--out", WORK / "runs/x86_64" / Path(scenario).stem)
        run(native, "run", ROOT / SCENARIOS[0], "--out", WORK / "knobs")
        run(native, "report", WORK / "knobs", "--knobs")
        for name, text in BROKEN.items():
            (WORK / name).write_text(text)
        words = ("run", WORK / "broken.toml", "--out")
        need(
            BREAKS in run(native, *words, WORK / "broken", fails=True),
            "a policy that breaks its contract does not end its run",
        )
        self.say("wheel for aarch64 under qemu")
        machine = emulated.Machine(WORK / "aarch64")
        machine.install(self.programs / "pip", wheels["aarch64"])
        for scenario in SCENARIOS:
            machine.linkweir("run", ROOT / scenario, "--out", WORK / "runs/aarch64" / Path(scenario).stem)
        need(
            BREAKS in machine.linkweir(*words, WORK / "broken-too", fails=True),
            "under qemu such a policy does not end its run",
        )
        count = emulated.same_files(WORK / "runs/x86_64", WORK / "runs/aarch64")
        runs = " and ".join(f"`{Path(scenario).name}`" for scenario in SCENARIOS)
        for machine_name, name, how in (
            ("x86_64", wheels["x86_64"].name, f"ran {runs}; wrote a report with knobs"),
            (
                "aarch64",
                wheels["aarch64"].name,
                f"ran {runs} under {machine.qemu}: {count} files as x86_64 writes them",
            ),
        ):
            self.note(name, how)
            self.say(f"{machine_name}: {how}")

    def note(self, name: str, how: str) -> None:
        self.made = [(n, why, f"{c}; {how}" if n == name else c) for n, why, c in self.made]

    def debian(self, path: Path, texts: tuple[str, ...]) -> str:
        """Checks what all packages have in common, and returns the name that Debian gives a package."""
        fields = run("dpkg-deb", "--field", path, "Package", "Version", "Architecture").splitlines()
        name, has, architecture = (line.partition(": ")[2] for line in fields)
        need(has.partition("-")[0] == self.version, f"{path.name} has version {has}, not {self.version}")
        with tempfile.TemporaryDirectory() as folder:
            run("dpkg-deb", "--extract", path, folder)
            papers = Path(folder, "usr/share/doc", name)
            need((papers / "copyright").exists(), f"{path.name} has no file copyright")
            need_licences(
                path.name, texts, {file.name: file.read_bytes() for file in papers.iterdir() if file.is_file()}
            )
            for file in Path(folder).rglob("*"):
                if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
                    wanted = glibc(file)
                    need(wanted <= OLDEST_GLIBC, f"{file.name} of {path.name} needs glibc {wanted}: build on Debian 12")
        return f"{name}_{has}_{architecture}.deb"

    def gateway(self) -> Path:
        self.say("gateway's package")
        run("make", "deb", f"CARGO_DEB={self.tools / 'cargo-deb'}")  # its check.sh compares the files with a list
        path = ROOT / "build/linkweir-gateway.deb"
        name = self.debian(path, IN_GATEWAY)
        return self.add(
            path,
            "gateway, with its unit for systemd, examples and pages",
            "files as listed; program, unit, examples",
            name,
        )

    def gateway_arm64(self, amd64: Path) -> None:
        self.say("gateway's package for arm64, by Debian's compilers")
        cross = arm64.Cross(WORK / "arm64", self.tools / "cargo-deb", self.epoch)
        self.cross_compilers = cross.compilers
        name = self.debian(cross.package, IN_GATEWAY)
        run("crates/linkweir-gateway/debian/check.sh", cross.package, *cross.runner)
        entries, examples = arm64.same_package(amd64, cross.package), arm64.same_answers(amd64, cross)
        vectors = sorted((ROOT / "vectors").rglob("*.vec"))
        cross.run(cross.replay, *vectors)
        qemu = " ".join(run(emulated.interpreter(), "--version").split()[:3])
        self.add(
            cross.package,
            "the same for arm64",
            f"the other's {entries} files and folders, but the program; under {qemu}: `check` of {examples} examples "
            f"and keys as the other's program has them, and the core replays {len(vectors)} vectors",
            name,
        )

    def kernel(self) -> None:
        self.say("packages of the kernel module and of tc")
        run("make", "-C", "kernel", "deb")
        purposes = {
            "linkweir-dkms": "source of the kernel module, which DKMS builds",
            "iproute2-linkweir": "plugins of tc, and manual pages",
        }
        for package, purpose in purposes.items():
            [path] = (ROOT / "kernel/build").glob(f"{package}_*.deb")
            shown = run("dpkg-deb", "--contents", path)
            kinds = re.findall(
                r"^LINKWEIR_KIND\((.*)\)$", (ROOT / "kernel/build/tree/kinds.h").read_text(), re.MULTILINE
            )
            parts = ("kind_{}.c",) if package == "linkweir-dkms" else ("/q_{}.so", "/tc-{}.8.gz")
            lacking = [part.format(kind) for kind in kinds for part in parts if part.format(kind) not in shown]
            need(not lacking, f"{path.name} lacks {lacking}")
            self.add(path, purpose, f"has what each of {len(kinds)} qdiscs needs", self.debian(path, ()))

    def core(self) -> None:
        self.say("sources of the core")
        top = f"linkweir-core-{self.version}"
        words = ["archive"]
        for made in sorted((ROOT / "vectors").glob("*/random-*")):
            words += [f"--prefix={top}/vectors/{made.parent.name}/", f"--add-file={made}"]
        words += [f"--prefix={top}/", "HEAD", *CORE, *(f"LICENSES/{name}" for name in LICENCES)]
        packed = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        path = WORK / f"{top}.tar.gz"
        path.write_bytes(gzip.compress(packed, mtime=int(self.epoch)))
        with tempfile.TemporaryDirectory() as folder:
            run("tar", "-x", "-f", path, "-C", folder)
            at = Path(folder, top)
            sources = sorted((at / "core/src").glob("*.c"))
            run("cc", "-std=c11", "-O2", "-Icore/include", "core/tests/replay.c", *sources, "-o", "replay", at=at)
            vectors = sorted((at / "vectors").rglob("*.vec"))
            need(len(vectors) == len([*(ROOT / "vectors").rglob("*.vec")]), f"{path.name} lacks vectors")
            run("./replay", *vectors, at=at)
        self.add(path, "the core in C, with its test vectors", f"compiled alone; it replays its {len(vectors)} vectors")

    def components(self, wheel: Path) -> None:
        self.say("lists of components")
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
            native = WORK / f"linkweir-native-{self.version}.cdx.json"
            native.write_bytes(archive.read(name))
        manifest = ("--manifest-path", ROOT / "crates/linkweir-gateway/Cargo.toml")
        words = (
            "--format",
            "json",
            "--spec-version",
            "1.5",
            "--target",
            TARGETS["x86_64"],
            "--override-filename",
            "bom",
        )
        run(self.tools / "cargo-cyclonedx", "cyclonedx", *manifest, *words)
        gateway = ROOT / "crates/linkweir-gateway/bom.json"
        python = WORK / f"linkweir-python-{self.version}.cdx.json"
        words = ("--output-reproducible", "--output-format", "JSON", "--output-file", str(python))
        run("cyclonedx-py", "requirements", "--pyproject", "pyproject.toml", *words, "requirements/build.lock")
        for path, what, name in (
            (native, "crates in the wheel", native.name),
            (gateway, "crates in the gateway", f"linkweir-gateway-{self.version}.cdx.json"),
            (python, "locked Python packages", python.name),
        ):
            listed = json.loads(path.read_text())
            need(listed["bomFormat"] == "CycloneDX" and bool(listed["components"]), f"{name} lists nothing")
            run(self.programs / "python", "-c", VALIDATE, path, f"V{listed['specVersion'].replace('.', '_')}")
            checked = f"valid CycloneDX {listed['specVersion']}, {len(listed['components'])} components"
            self.add(path, f"list of components (SBOM): {what}", checked, name)

    def container(self) -> None:
        self.add(
            ROOT / "requirements/build.lock",
            "versions of Python packages that the tests ran with",
            "a file of the commit",
            "requirements.lock",
        )
        self.add(
            ROOT / "release/Containerfile",
            "describes container images of gateway and command line",
            "a file of the commit",
        )

    def finish(self, source: Path) -> None:
        day = datetime.fromtimestamp(int(self.epoch), tz=timezone.utc).date()
        zig = run(self.programs / "python", "-m", "ziglang", "version").strip()
        compilers = [run("rustc", "--version").strip(), f"zig {zig}"]
        compilers += [run(program, "--version").splitlines()[0] for program in ("cc", "clang")]
        lines = [
            f"Linkweir {self.version}, commit {self.commit} of {day}.",
            "",
            f"Built on {system()}, {platform.machine()}, with {', '.join(compilers)}; the package for arm64 in a bare "
            f"Debian {emulated.SUITE} with {', '.join(self.cross_compilers)}.",
            "",
            "| file | bytes | what it is for | how it was checked |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {name} | {(self.out / name).stat().st_size:,} | {why} | {checked} |" for name, why, checked in self.made
        ]
        (self.out / "FILES.md").write_text("\n".join(lines) + "\n")
        sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(self.out.iterdir())]
        (self.out / "SHA256SUMS").write_text("".join(sums))
        run("sha256sum", "--check", "--quiet", "SHA256SUMS", at=self.out)
        listed = {name for name, _, _ in self.made} | {"FILES.md", "SHA256SUMS"}
        need({path.name for path in self.out.iterdir()} == listed, "the folder holds other files than its list")
        self.say(f"{len(listed)} files in {self.out}, from {source.name} on")


def cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))


def system() -> str:
    found = re.search(r'^PRETTY_NAME="(.*)"$', Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else "an unknown system"


def glibc(program: Path) -> tuple[int, int]:
    """The newest version of glibc that a program or library asks for."""
    asked = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", program))
    return max(((int(major), int(minor)) for major, minor in asked), default=(0, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tools", type=Path, required=True)
    options = parser.parse_args()
    commit, epoch = run("git", "log", "-1", "--format=%H %ct").split()
    try:
        Release(options.out, options.tools, version(), commit, epoch).build()
    except RuntimeError as error:  # of a bare system
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
