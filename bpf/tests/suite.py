# SPDX-License-Identifier: GPL-2.0-only
"""Boots the newest kernel of Debian 13's backports, unmodified, and runs guest scripts with the BPF disciplines in it.

    python3 run.py [SCRIPT...]

The kernel is fetched once as packages, with lists of apt of its own, into ~/.cache/linkweir/bpf (or
$XDG_CACHE_HOME). Exit codes: 0, every check held and the kernel log is clean; 1, something failed; 3, the kernel
cannot be obtained.

The guest has one processor, whose clock counts instructions, unless a script's name ends in "-real".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
BPF = HERE.parent
ROOT = BPF.parent
sys.path[:0] = [str(ROOT / "kernel/tests"), str(ROOT / "machines")]
import bare  # noqa: E402
from run import BAD_LOG, boot, copy  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "linkweir/bpf"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "trixie-backports"
MODULES = ("veth", "dummy", "sch_tbf", "sch_fq", "sch_codel", "sch_ingress", "cls_matchall", "act_skbedit")
TOOLS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SECONDS = {"malformed": 7200, "loaders": 7200, "killed-add": 7200}
SECONDS_EACH = 3600
"""After which a guest is ended, for each script: long enough to end only one that hangs."""
GUEST = ("traffic", "witness")
"""Programs of the guest."""
COMPARISONS = ("cost", "speed-real")
"""Scripts that need what modules.py builds."""
OTHERS = ("bpf", "costs", "kills", *COMPARISONS, "decisions", "install")
"""What the scripts have in common, and what needs modules.py, lab/agreement or install.py."""


class MissingError(Exception):
    """Something cannot be obtained here."""


def apt(*words: str, folder: Path | None = None) -> str:
    """Runs a program of apt with lists of its own.

    Raises:
        MissingError: it failed.
    """
    lists = CACHE / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (lists / name).mkdir(parents=True, exist_ok=True)
    source = lists / "sources.list"
    mirror = bare.mirror("Debian") or bare.MIRROR
    source.write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    options = [f"Dir::Etc::sourcelist={source}", "Dir::Etc::sourceparts=/dev/null", f"Dir::State={lists}/state"]
    options += [f"Dir::Cache={lists}/cache", "Dir::State::status=/dev/null", "APT::Sandbox::User=root"]
    command = [words[0], *(word for option in options for word in ("-o", option)), *words[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise MissingError(f"{' '.join(words)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def kernel() -> tuple[str, Path]:
    """The release of the newest kernel and the folder with its packages unpacked, which are fetched if need be.

    Raises:
        MissingError: they cannot be had.
    """
    root = CACHE / "root"
    complete = CACHE / "complete"
    if not complete.exists():
        if not KEYRING.exists():
            raise MissingError(f"{KEYRING} is missing: install debian-archive-keyring")
        apt("apt-get", "update", "-qq")
        image = re.search(r"linux-image-[^ ]*-cloud-amd64", apt("apt-cache", "depends", "linux-image-cloud-amd64"))
        if not image:
            raise MissingError(f"{SUITE} has no linux-image-cloud-amd64")
        release = image[0].removeprefix("linux-image-")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            known = apt("apt-cache", "search", "--names-only", f"^linux-(image|binary|modules)-{re.escape(release)}$")
            apt("apt-get", "download", "-qq", *(line.split()[0] for line in known.splitlines()), folder=folder)
            shutil.rmtree(root, ignore_errors=True)
            for package in folder.glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        complete.write_text(release)
    return complete.read_text(), root


def find(root: Path, release: str, name: str) -> Path:
    """A file of a kernel: its image is in /boot or with the modules, depending on the age of its packages."""
    found = [path for folder in ("boot", "lib/modules", "usr/lib/modules") for path in (root / folder).rglob(name)]
    if not found:
        raise MissingError(f"{release} has no {name}")
    return found[0]


def make_initramfs(release: str, modroot: Path, scripts: list[str], out: Path, more: Mapping[str, Path]) -> None:
    """Puts the programs, the objects and scripts into an archive that the guest starts from.

    Args:
        release: of the kernel.
        modroot: where its modules are.
        scripts: to run, without `.sh`.
        out: the archive.
        more: further files, by their places in the guest; in place of another one that has this place.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("bin", "proc", "sys", "dev", "tmp", "run", "etc", "guest", "modules"):
            (root / folder).mkdir()
        shutil.copy("/bin/busybox", root / "bin/busybox")
        applets = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout
        for applet in applets.split():
            if applet not in ("ip", "tc", "sh", "busybox"):
                (root / "bin" / applet).symlink_to("busybox")
        loader = BPF / "build/linkweir-bpf"
        (root / "bin/sh").symlink_to("dash")  # busybox's own shell would prefer its own ip
        tools = [loader, Path("/bin/dash"), Path("/sbin/tc"), Path("/sbin/ip")]
        tools += [BPF / "build/guest" / tool for tool in GUEST]
        compares = not set(COMPARISONS).isdisjoint(scripts)
        if compares and (bpftool := shutil.which("bpftool", path=TOOLS)):
            tools.append(Path(bpftool))
        for tool in tools:
            shutil.copy(tool.resolve(), root / "bin" / tool.name)
            shown = subprocess.run(["ldd", tool], capture_output=True, text=True).stdout
            for word in shown.split():
                if word.startswith("/"):
                    copy(Path(word), root, Path(word))
        for module in MODULES:
            path = find(modroot, release, f"{module}.ko*")
            data = path.read_bytes()
            if path.suffix == ".xz":
                data = subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout
            (root / "modules" / f"{module}.ko").write_bytes(data)
        for path in (BPF / "build").glob("*.bpf.o"):
            shutil.copy(path, root / "guest")
        for path in [ROOT / "kernel/tests/guest/checks.sh", *(HERE / "guest").iterdir()]:
            shutil.copy(path, root / "guest")
        if compares:
            shutil.copytree(BPF / "build/cost", root / "guest/modules")
            shutil.copytree(ROOT / "kernel/build/tc", root / "guest/tc")
            if (config := BPF / "build/cost/config").exists():
                (root / "boot").mkdir()
                shutil.copy(config, root / f"boot/config-{release}")
        if "vectors" in scripts:
            shutil.copytree(ROOT / "vectors", root / "guest/vectors", ignore=shutil.ignore_patterns(".random-*"))
        for place, path in more.items():
            (root / place).parent.mkdir(exist_ok=True)
            shutil.copy(path, root / place)
        (root / "guest/scripts").write_text("".join(f"{script}\n" for script in scripts))
        shutil.copy(HERE / "guest/init", root / "init")
        (root / "init").chmod(0o755)
        files = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
        cpio = ["/bin/busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"]
        archive = subprocess.run(cpio, cwd=root, input=files.encode(), capture_output=True, check=True).stdout
        out.write_bytes(archive)


def run_guest(release: str, root: Path, image: Path, scripts: list[str], processors: int) -> list[str]:
    """Runs scripts one after another in a guest and prints what they measured; what was wrong."""
    name = "-".join(scripts) if len(scripts) < 4 else "suite"
    initramfs, log = BPF / f"build/{name}.cpio", BPF / f"build/{name}.log"
    make_initramfs(release, root, scripts, initramfs, {})
    text = boot(image, initramfs, log, sum(SECONDS.get(script, SECONDS_EACH) for script in scripts), "all", processors)
    initramfs.unlink()
    held = len(re.findall(r"^ok - ", text, re.M))
    wrong = re.findall(r"^not ok - .*$", text, re.M) + [line for line in text.splitlines() if BAD_LOG.search(line)]
    wrong += [f"{script}.sh did not end" for script in scripts if f"ended {script} " not in text]
    if not held:
        wrong.append("no check was made")
    print("\n".join(re.findall(r"^# .*$", text, re.M) + wrong))
    print(f"bpf: {release} {' '.join(scripts)}: {held} checks held, {len(wrong)} failed; the log is {log}", flush=True)
    return wrong


def main() -> int:
    """Runs the scripts that are named, or all."""
    scripts = sys.argv[1:] or sorted(path.stem for path in (HERE / "guest").glob("*.sh") if path.stem not in OTHERS)
    try:
        release, root = kernel()
        image = find(root, release, "vmlinuz*")
    except MissingError as error:
        print(f"bpf: NOT TESTED: {error}", file=sys.stderr)
        return 3
    virtual = [name for name in scripts if not name.endswith("-real")]
    real = [name for name in scripts if name.endswith("-real")]
    wrong = []
    for group, processors in ((virtual, 1), (real, 4)):
        if group:
            wrong += run_guest(release, root, image, group, processors)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
