# SPDX-License-Identifier: GPL-2.0-only
"""Boots a stock Debian kernel in QEMU, runs guest scripts in it and judges what they say.

    python3 run.py --kernel RELEASE --module SCH_LINKWEIR.KO --plugins DIR SCRIPT...

Needs qemu-system-x86, busybox-static, dash, iproute2, kmod and a C compiler. The kernel is the installed one of that release,
or is fetched once as a package (apt-get download) into build/images. A run ends in one of: every check held and the kernel log
is clean (0); something failed (1); nothing could be run (2). No result depends on time: checks wait for conditions, and the time
limit only ends a guest that hangs.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
MODULES = (
    "veth dummy sch_htb sch_tbf sch_drr sch_prio sch_netem sch_ingress cls_matchall cls_flower cls_basic cls_u32 act_gact act_skbedit"
).split()
TOOLS = ["/bin/dash", "/sbin/tc", "/sbin/ip"]
BAD_LOG = re.compile(r"WARNING:|BUG:|Oops|Call Trace|general protection|refcount_t|unregister_netdevice: waiting|suspicious RCU")


def fail(text: str) -> None:
    print(f"kernel test: {text}", file=sys.stderr)
    sys.exit(2)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        fail(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def image(release: str) -> tuple[Path, Path]:
    """The kernel of a release and the root of its modules, fetched when not installed."""
    if Path(f"/boot/vmlinuz-{release}").exists() and Path(f"/lib/modules/{release}/modules.dep").exists():
        return Path(f"/boot/vmlinuz-{release}"), Path("/")
    root = BUILD / "images" / release
    if not (root / "complete").exists():
        root.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "-q", f"linux-image-{release}", cwd=root)
        for package in root.glob("*.deb"):
            run("dpkg-deb", "-x", package, root)
            package.unlink()
        run("depmod", "-b", root, release)
        (root / "complete").touch()
    return root / "boot" / f"vmlinuz-{release}", root


def copy(path: Path, root: Path, to: Path) -> None:
    target = root / to.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path.resolve(), target)


def add_modules(root: Path, release: str, modroot: Path, module: Path) -> None:
    wanted: list[Path] = []
    for name in MODULES:
        shown = run("modprobe", "-d", modroot, "-S", release, "--show-depends", name)
        wanted += [Path(line.split()[1]) for line in shown.splitlines() if line.startswith("insmod")]
    place = root / "lib" / "modules" / release
    place.mkdir(parents=True)
    for path in dict.fromkeys(wanted):
        target = place / path.name.removesuffix(".xz")
        if path.suffix == ".xz":
            target.write_bytes(subprocess.run(["xz", "-dc", path], check=True, capture_output=True).stdout)
        else:
            shutil.copy(path, target)
    shutil.copy(module, place / "sch_linkweir.ko")
    run("strip", "--strip-debug", place / "sch_linkweir.ko")
    for name in ("modules.builtin", "modules.order"):
        source = modroot / "lib" / "modules" / release / name
        if source.exists():
            shutil.copy(source, place / name)
    run("depmod", "-b", root, release)


def make_initramfs(release: str, modroot: Path, module: Path, plugins: Path, scripts: list[str], out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in "bin proc sys dev tmp run etc guest".split():
            (root / folder).mkdir()
        shutil.copy("/bin/busybox", root / "bin/busybox")
        for applet in run("/bin/busybox", "--list").split():
            if applet not in ("ip", "tc", "sh", "busybox"):
                (root / "bin" / applet).symlink_to("busybox")
        run("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", HERE / "traffic.c", "-o", root / "bin/traffic")
        for tool in TOOLS:
            shutil.copy(Path(tool).resolve(), root / "bin" / Path(tool).name)
            for word in run("ldd", tool).split():
                if word.startswith("/"):
                    copy(Path(word), root, Path(word))
        (root / "bin/sh").symlink_to("dash")
        (root / "sbin").symlink_to("bin")
        (root / "tc").mkdir()
        for plugin in plugins.glob("q_*.so"):
            shutil.copy(plugin, root / "tc")
        add_modules(root, release, modroot, module)
        for script in [HERE / "guest/checks.sh", *(HERE / "guest" / f"{script}.sh" for script in scripts)]:
            shutil.copy(script, root / "guest")
        shutil.copy(BUILD / "bounds.txt", root / "guest/bounds")
        (root / "guest/scripts").write_text("\n".join(scripts) + "\n")
        shutil.copy(HERE / "guest/init", root / "init")
        (root / "init").chmod(0o755)
        files = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
        cpio = ["/bin/busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"]
        archive = subprocess.run(cpio, cwd=root, input=files.encode(), capture_output=True, check=True).stdout
        out.write_bytes(archive)


def boot(kernel: Path, initramfs: Path, log: Path, seconds: int, checks: str) -> str:
    command = ["timeout", str(seconds), "nice", "-n", "10", "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max", "-smp", "1", "-m", "512"]
    command += ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]
    command += ["-kernel", str(kernel), "-initrd", str(initramfs)]
    command += ["-append", f"console=ttyS0 quiet panic=-1 oops=panic mitigations=off checks={checks}"]
    with log.open("wb") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 124:
            out.write(f"\nnot ok - the guest did not end within {seconds} s\n".encode())
    return log.read_text(errors="replace").replace("\r", "")


def judge(text: str, scripts: list[str]) -> list[str]:
    """What is wrong with what a guest said."""
    lines = text.splitlines()
    wrong = [line for line in lines if line.startswith("not ok")]
    wrong += [f"kernel log: {line}" for line in lines if BAD_LOG.search(line)]
    ended = [line.split()[1] for line in lines if line.startswith("ended ")]
    wrong += [f"{script}.sh did not end" for script in scripts if script not in ended]
    for line in lines:
        if line.startswith("json "):
            try:
                json.loads(line[5:])
            except ValueError as error:
                wrong.append(f"no valid JSON ({error}): {line[5:]}")
    if not any(line.startswith("ok ") for line in lines):
        wrong.append("no check was made")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs guest scripts on a stock Debian kernel in QEMU.")
    parser.add_argument("--kernel", required=True, help="release, e.g. 6.1.0-56-cloud-amd64")
    parser.add_argument("--module", required=True, type=Path)
    parser.add_argument("--plugins", required=True, type=Path)
    parser.add_argument("--seconds", type=int, default=900, help="after which a guest is ended")
    parser.add_argument("--checks", choices=("short", "full", "first"), default="short", help="first: short, up to the first that fails")
    parser.add_argument("scripts", nargs="+")
    args = parser.parse_args()
    for tool in ("qemu-system-x86_64", "modprobe", "depmod", "gcc", "strip", "ldd"):
        if not shutil.which(tool) and not Path("/sbin", tool).exists():
            fail(f"{tool} is missing: ./setup.sh kernel names the packages")
    kernel, modroot = image(args.kernel)
    with tempfile.TemporaryDirectory() as name:
        initramfs = Path(name) / "initramfs"
        make_initramfs(args.kernel, modroot, args.module, args.plugins, args.scripts, initramfs)
        log = BUILD / f"{args.kernel}-{'-'.join(args.scripts)}.log"
        text = boot(kernel, initramfs, log, args.seconds, args.checks)
    wrong = judge(text, args.scripts)
    held = len(re.findall(r"^ok ", text, re.M))
    for line in wrong:
        print(f"{args.kernel}: {line}")
    print(f"{args.kernel}: {held} checks held, {len(wrong)} failed ({log})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
