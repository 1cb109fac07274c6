# SPDX-License-Identifier: GPL-2.0-only
"""The newest kernel and iproute2 sources of Debian, fetched by apt without changing this system, and kept in a cache.

    ~/.cache/linkweir/series/linux-VERSION/      the kernel's sources, unpacked
    ~/.cache/linkweir/series/iproute2-VERSION/   iproute2's, with Debian's patches

    python3 sources.py [--kept]     prints the kernel's tree; --kept: the one that was fetched before, without a network

apt works in folders of its own, so neither root nor an entry in /etc is needed. LINUX_SOURCE and IPROUTE2_SOURCE name
other trees; then nothing is fetched for that one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from transform import ROOT

sys.path.append(str(ROOT / "machines"))
import bare

SUITES = ("trixie-backports", "trixie", "bookworm")
"""Where packages are looked for, the newest first."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LEFT_OUT = ("drivers/gpu/*.[ch]", "sound/*.[ch]", "*.dts", "*.dtsi")


class MissingError(Exception):
    """Something cannot be had here; the text says what, and how to get it."""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "linkweir/series"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _apt(*words: str, folder: Path | None = None) -> str:
    """Runs a command of apt with settings of our own."""
    own = cache() / "apt"
    for name in ("lists/partial", "archives/partial"):
        (own / name).mkdir(parents=True, exist_ok=True)
    mirror = bare.mirror("Debian") or bare.MIRROR
    lines = [f"{kind} [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in SUITES for kind in ("deb", "deb-src")]
    (own / "sources.list").write_text("".join(lines))
    settings = {
        "Dir::Etc::sourcelist": own / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": own / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": own,
        "APT::Sandbox::User": "root",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    done = subprocess.run([words[0], *options, *words[1:]], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{' '.join(words)}: {done.stderr.strip()[-400:]}")
    return done.stdout


def _newest_linux() -> tuple[str, str]:
    """Package and version of the newest kernel source."""
    names = re.findall(r"^(linux-source-[0-9.]+) ", _apt("apt-cache", "search", "^linux-source-[0-9]"), re.MULTILINE)
    if not names:
        raise MissingError(f"no package linux-source-* in {', '.join(SUITES)}")
    name = max(names, key=lambda name: [int(part) for part in name.split("-")[-1].split(".")])
    version = re.search(r"^Version: (\S+)$", _apt("apt-cache", "show", name), re.MULTILINE)
    assert version
    return name, version[1]


def _given_linux() -> Path | None:
    """The tree that LINUX_SOURCE names, if it names one.

    Raises:
        MissingError: no kernel is there.
    """
    if not (given := os.environ.get("LINUX_SOURCE")):
        return None
    if not (Path(given) / "MAINTAINERS").is_file():
        raise MissingError(f"LINUX_SOURCE = {given}: is no unpacked kernel tree; name one, or unset it")
    return Path(given).resolve()


def kept_linux() -> Path | None:
    """The newest of the kernel's trees that were fetched before.

    Raises:
        MissingError: LINUX_SOURCE names something else.
    """
    if given := _given_linux():
        return given
    kept = [path.parent for path in cache().glob("linux-*/MAINTAINERS") if not path.parent.name.endswith(".files")]
    return max(kept, key=lambda tree: [int(part) for part in re.findall(r"\d+", tree.name)], default=None)


def linux() -> Path:
    """The newest kernel's tree, as Debian ships it.

    Raises:
        MissingError: it cannot be had.
    """
    if given := _given_linux():
        return given
    try:
        _apt("apt-get", "update")
        name, version = _newest_linux()
    except MissingError:
        if (kept := kept_linux()) is None:
            raise
        return kept
    folder = cache() / f"linux-{version.replace('~', '-')}"
    if (folder / "MAINTAINERS").is_file():
        return folder
    print(f"series: fetching {name} {version}", flush=True)
    part = cache() / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    _apt("apt-get", "download", name, folder=part)
    subprocess.run(["dpkg-deb", "-x", next(part.glob("*.deb")), part / "deb"], check=True)
    archive = next((part / "deb/usr/src").glob("linux-source-*.tar.xz"))
    out = [f"--exclude=*/{pattern}" for pattern in LEFT_OUT]
    (part / "tree").mkdir()
    subprocess.run(["tar", "-xJf", archive, "--strip-components=1", "-C", part / "tree", *out], check=True)
    (part / "tree").rename(folder)
    shutil.rmtree(part)
    return folder


def iproute2() -> Path:
    """The newest iproute2 whose source package can be fetched.

    Raises:
        MissingError: there is none.
    """
    if given := os.environ.get("IPROUTE2_SOURCE"):
        return Path(given).resolve()
    shown = _apt("apt-cache", "showsrc", "--only-source", "iproute2")
    versions = sorted(
        set(re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)),
        key=lambda version: [int(part) for part in re.findall(r"\d+", version)],
        reverse=True,
    )
    refusals = []
    for version in versions:
        folder = cache() / f"iproute2-{version}"
        if (folder / "tc/Makefile").is_file():
            return folder
        part = cache() / "part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            _apt("apt-get", "source", "--download-only", f"iproute2={version}", folder=part)
        except MissingError as refusal:
            refusals.append(str(refusal))
            continue
        subprocess.run(
            ["dpkg-source", "--no-check", "-x", str(next(part.glob("*.dsc"))), "tree"],
            cwd=part,
            capture_output=True,
            check=True,
        )
        (part / "tree").rename(folder)
        shutil.rmtree(part)
        return folder
    raise MissingError("no source package of iproute2: " + "; ".join(refusals))


if __name__ == "__main__":
    try:
        found = kept_linux() if "--kept" in sys.argv[1:] else linux()
    except MissingError as error:
        sys.exit(f"no sources of Linux: {error}")
    print(found or "")
