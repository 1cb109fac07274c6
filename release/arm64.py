# SPDX-License-Identifier: BSD-3-Clause
"""The gateway's package for arm64: Debian's own compilers make it in a bare root, and qemu runs what is in it.

mmdebstrap makes the root, an amd64 Debian with cross compilers and arm64 libraries, runs arm64.sh there and removes it.
Nothing of this machine is used there but cargo-deb and the sources of crates, which cargo compares with Cargo.lock.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "machines"))
import bare
import emulated

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "usr/bin/linkweir-gateway"
EXAMPLES = "usr/share/doc/linkweir-gateway/examples"
COMPILERS = (
    *("gcc", "libc6-dev", "rustc-web", "cargo-web"),  # build scripts are programs of this machine's architecture
    *("gcc-aarch64-linux-gnu", "libc6-dev:arm64", "libstd-rust-web-dev:arm64"),
    *("dpkg-dev", "xz-utils"),
)


class Cross:
    """A package that was cross-compiled, and what runs its program.

    Attributes:
        package: its file.
        replay: the core's test program for arm64.
        compilers: what compiled them.
        runner: the words before an arm64 program that run it here, with the libraries that the package depends on.
    """

    def __init__(self, place: Path, cargo_deb: Path, epoch: str) -> None:
        place.mkdir()
        sources, vendor, tools = place / "linkweir.tar", place / "vendor", place / "tools"
        emulated.check("git", "-C", ROOT, "archive", "--prefix=linkweir/", f"--output={sources}", "HEAD")
        vendored = ("vendor", "--locked", "--quiet", "--respect-source-config", vendor)
        emulated.check("cargo", *vendored, at=ROOT)
        tools.mkdir()
        emulated.check("cp", cargo_deb, tools)
        script = f"env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin SOURCE_DATE_EPOCH={epoch} sh /linkweir/release/arm64.sh"
        hooks = [f"tar-in {sources} /", f"copy-in {vendor} {tools} /"]
        emulated.check(
            "mmdebstrap",
            *("--quiet", "--architectures=amd64,arm64", "--variant=apt", f"--include={','.join(COMPILERS)}"),
            *(f"--customize-hook={hook}" for hook in hooks),
            f"--chrooted-customize-hook={script}",
            f"--customize-hook=copy-out /out {place}",
            *("--format=null", emulated.SUITE, "/dev/null", bare.mirror("Debian") or bare.MIRROR),
        )
        self.package, self.replay = place / "out/linkweir-gateway.deb", place / "out/replay"
        self.compilers = (place / "out/compilers").read_text().splitlines()
        self.runner = (emulated.interpreter(), "-L", place / "root")
        bare.unpack(emulated.SUITE, "arm64", place / "root", depends(self.package))

    def run(self, *words: object) -> str:
        return emulated.check(*self.runner, *words)


def fields(package: Path) -> dict[str, str]:
    shown = emulated.check("dpkg-deb", "--field", package)
    return dict(re.findall(r"^(\S+): (.*)$", shown, re.MULTILINE))


def depends(package: Path) -> list[str]:
    """The names of the packages that a package depends on."""
    return re.findall(r"(?:^|, )([a-z0-9.+-]+)", fields(package)["Depends"])


def files(package: Path, folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of each file, and folders."""
    emulated.check("dpkg-deb", "--extract", package, folder)
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {name: (path.stat().st_mode, path.read_bytes() if path.is_file() else b"") for name, path in found.items()}


def same_package(one: Path, other: Path) -> int:
    """Compares packages for two architectures, which may differ in architecture, sizes and program only.

    Returns:
        How many files and folders they have.
    """
    with tempfile.TemporaryDirectory() as place:
        packed = [files(package, Path(place, name)) for name, package in (("one", one), ("other", other))]
    names = packed[0].keys() | packed[1].keys()
    wrong = sorted(name for name in names - {PROGRAM} if packed[0].get(name) != packed[1].get(name))
    if wrong or any(PROGRAM not in found for found in packed):
        sys.exit(f"release: {one.name} and {other.name} have different files: {', '.join(wrong) or PROGRAM}")
    said = [fields(package) | {"Architecture": "", "Installed-Size": "", "Depends": ""} for package in (one, other)]
    if said[0] != said[1] or depends(one) != depends(other):
        sys.exit(f"release: {one.name} and {other.name} say different things of themselves, or need other packages")
    return len(names)


def same_answers(amd64: Path, cross: Cross) -> int:
    """Compares what both packages' programs say of configurations and keys; the two must use each other's keys.

    Returns:
        How many examples were checked.
    """
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, name) for name in ("amd64", "arm64")]
        for package, folder in zip((amd64, cross.package), folders, strict=True):
            emulated.check("dpkg-deb", "--extract", package, folder)
        programs = [(folders[0] / PROGRAM,), (*cross.runner, folders[1] / PROGRAM)]
        examples = folders[0] / EXAMPLES
        gateways = [path for path in sorted(examples.glob("*.toml")) if "\n[gateway]\n" in path.read_text()]
        key = examples / "key"  # hub.toml names it
        for maker in programs:
            public = emulated.check(*maker, "keygen", key).strip()
            for path in gateways:
                checked = {emulated.check(*program, "check", path) for program in programs}
                said = {emulated.check(*program, "up", "--cleartext", "--dry-run", path) for program in programs}
                if len(checked) != 1 or len(said) != 1:
                    sys.exit(f"release: of {path.name} the programs for amd64 and arm64 say {checked} and {said}")
                if path.name == "hub.toml" and f" as {public}\n" not in said.pop():
                    sys.exit(f"release: {maker[-1]} keygen prints {public}, which is not the public key of its file")
            key.unlink()
    return len(gateways)
