# SPDX-License-Identifier: GPL-2.0-only
"""Boots a stock Debian kernel in QEMU, runs guest scripts in it and evaluates their output.

    python3 run.py --kernel RELEASE --module SCH_LINKWEIR.KO --plugins DIR SCRIPT...

The kernel is the installed one of that release, or is fetched once as a package (apt-get download) into build/images.
Recordings that a guest made of a policy are replayed here. Exit codes: 0, every check held, every replay agreed and the
kernel log is clean; 1, something failed; 2, nothing could be run; 3, the kernel cannot be obtained.

The clock of a guest with one processor counts instructions (-icount), so a run does not depend on how busy the host is,
pauses cost nothing, and the time limit only ends a guest that hangs. A guest with several processors runs in real time.

The script `tdc` runs the cases of tests/tdc, in the format of the kernel's own tool of that name.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import trace_vectors as trace

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
MODULES = ["veth", "dummy", "tun"]
MODULES += ["sch_htb", "sch_tbf", "sch_drr", "sch_prio", "sch_netem", "sch_ingress", "sch_cake", "sch_ets", "sch_hfsc"]
MODULES += ["sch_qfq", "sch_multiq", "sch_mqprio", "sch_red", "sch_sfb", "sch_cbs"]
MODULES += ["cls_matchall", "cls_flower", "cls_basic", "cls_u32", "act_gact", "act_skbedit", "act_mirred"]
TOOLS = ["/bin/dash", "/sbin/tc", "/sbin/ip"]
TDC = HERE / "tdc"
BAD_LOG = re.compile(
    r"WARNING:|BUG:|Oops|Call Trace|general protection|refcount_t|unregister_netdevice: waiting|suspicious RCU|UBSAN:"
    r"|possible (circular|recursive|irq lock inversion)|inconsistent lock state|ODEBUG:|list_(add|del) corruption"
    r"|detected stalls|INFO: task .* blocked"
)
QFQ = "qfq_dequeue: non-workconserving leaf"
"""In a warning of 6.1's qfq about every child that holds packets back, as a shaper does; later kernels do not warn."""
RULE = re.compile(r"^(\[[^]]*\] )?={60,}$")
"""The line before and after a report of KASAN and KCSAN."""
UNLOCKED = "tc_fill_qdisc+"
"""A function of the kernel that reads length and counters of every qdisc without its lock (net/sched/sch_api.c)."""


NO_CHECK = "no check was made"
REPORT_S = 5.0
"""How long a kernel may take to write the rest of a report."""


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
        command = ["apt-get", "download", "-q", f"linux-image-{release}"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        if done.returncode:
            print(f"kernel: NOT TESTED on {release}: {' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
            sys.exit(3)
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


def add_modules(root: Path, release: str, modroot: Path | None, modules: list[Path]) -> None:
    """Copies the modules under test and those of the kernel that they need; `modroot` is None if these are built in."""
    wanted: list[Path] = []
    for name in MODULES:
        if not modroot:
            break
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
    # with each sch_linkweir.ko comes the module of its vectors
    beside = [module.with_name("linkweir_vectors.ko") for module in modules]
    for module in [*modules, *dict.fromkeys(path for path in beside if path.exists())]:
        shutil.copy(module, place)
        run("strip", "--strip-debug", place / module.name)
    for name in ("modules.builtin", "modules.order"):
        source = modroot / "lib" / "modules" / release / name if modroot else None
        if source and source.exists():
            shutil.copy(source, place / name)
    run("depmod", "-b", root, release)


def taken(modroot: Path, release: str, kinds: list[str]) -> list[str]:
    """Complains about each kind of ours whose name a qdisc of this kernel has, as far as its lists of modules tell."""
    lists = [modroot / "lib" / "modules" / release / name for name in ("modules.order", "modules.builtin")]
    own = re.findall(r"/sch_(\w+)\.", "".join(path.read_text() for path in lists))
    if not own:
        return [f"no qdisc in {lists[0]}"]
    return [f"this kernel has a qdisc {kind} of its own" for kind in kinds if kind in own]


CHANGES = 80
"""Rates of each kind of link that fades, of which shaper.sh reports 20 a second."""


def fading_bps() -> dict[str, list[int]]:
    """The rates of links that fade, bit/s: a cosine, and a drive through an LTE network."""
    rows = (HERE.parents[1] / "scenarios/traces/lte-drive.csv").read_text().splitlines()
    return {
        "cosine": [round(6e6 + 5e6 * math.cos(step / 6)) for step in range(CHANGES)],
        "lte": [int(row.split(",")[1]) for row in rows if row[:1].isdigit()][:CHANGES],
    }


def cases() -> list[dict[str, Any]]:
    """The cases of tests/tdc, in the order of their files."""
    found = [case for path in sorted(TDC.glob("*.json")) for case in json.loads(path.read_text())]
    if len({case["id"] for case in found}) != len(found):
        fail(f"two cases in {TDC} have the same id")
    return found


def script_of(case: dict[str, Any]) -> str:
    """A case as a script for tdc.sh."""

    def step(what: str, command: str | list[Any]) -> str:
        text, codes = (command, [0]) if isinstance(command, str) else (str(command[0]), command[1:])
        return f"{what} {shlex.quote(' '.join(map(str, codes)))} {shlex.quote(text)}"

    lines = [step("setup", command) for command in case["setup"]]
    lines += [step("execute", [case["cmdUnderTest"], case["expExitCode"]]), f"verify {shlex.quote(case['verifyCmd'])}"]
    lines += [*(step("teardown", command) for command in case["teardown"]), f"finish {case['id']}"]
    return "\n".join(lines) + "\n"


def judge_cases(text: str) -> tuple[int, list[str]]:
    """How many cases held in a guest's output, and the others."""
    held, wrong = 0, []
    for case in cases():
        found = re.search(rf"^tdc {case['id']} (found|broken) ?(.*)$", text, re.M)
        name = f"tdc {case['id']}, {case['name']}"
        if not found or found[1] == "broken":
            wrong.append(f"{name}: {found[2] if found else 'did not run'}")
            continue
        output = base64.b64decode(found[2]).decode(errors="replace")
        times = len(re.findall(case["matchPattern"], output, re.DOTALL | re.MULTILINE))
        if times == int(case["matchCount"]):
            held += 1
        else:
            wrong.append(f"{name}: {times} instead of {case['matchCount']} times {case['matchPattern']} in: {output!r}")
    return held, wrong


def make_initramfs(
    release: str,
    modroot: Path | None,
    modules: list[Path],
    plugins: Path,
    scripts: list[str],
    facts: dict[str, str],
    out: Path,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("bin", "proc", "sys", "dev", "tmp", "run", "etc", "guest"):
            (root / folder).mkdir()
        shutil.copy("/bin/busybox", root / "bin/busybox")
        for applet in run("/bin/busybox", "--list").split():
            if applet not in ("ip", "tc", "sh", "busybox"):
                (root / "bin" / applet).symlink_to("busybox")
        for tool in ("traffic", "fuzz", "attributes", "stress"):
            shutil.copy(BUILD / "guest" / tool, root / "bin")
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
        add_modules(root, release, modroot, modules)
        for script in [HERE / "guest/checks.sh", *(HERE / "guest" / f"{script}.sh" for script in scripts)]:
            shutil.copy(script, root / "guest")
        for name in ("bounds", "choices", "defaults", "kinds"):
            shutil.copy(BUILD / f"{name}.txt", root / "guest" / name)
        (root / "guest/scripts").write_text("\n".join(scripts) + "\n")
        for fact, value in facts.items():
            (root / "guest" / fact).write_text(f"{value}\n")
        if "tdc" in scripts:
            (root / "guest/tdc").mkdir()
            for number, case in enumerate(cases()):
                (root / f"guest/tdc/{number:04}").write_text(script_of(case))
        for name, rates in fading_bps().items():
            (root / "guest" / name).write_text("".join(f"{rate}\n" for rate in rates))
        shutil.copy(HERE / "guest/init", root / "init")
        (root / "init").chmod(0o755)
        files = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
        cpio = ["/bin/busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"]
        archive = subprocess.run(cpio, cwd=root, input=files.encode(), capture_output=True, check=True).stdout
        out.write_bytes(archive)


def _found(log: Path, until: str) -> bool:
    """Whether the output so far has a failure that contains `until`."""
    failures = judge(log.read_text(errors="replace").replace("\r", ""), [])
    return any(re.search(until, line) for line in failures if line != NO_CHECK)


def finished(guest: subprocess.Popen[bytes], log: Path, until: str) -> int:
    """The exit code of a guest, which is ended when its output has a failure that contains `until`."""
    read = 0
    try:
        while until and guest.poll() is None:
            time.sleep(1)
            if (size := log.stat().st_size) == read:
                continue
            read = size
            if _found(log, until):
                time.sleep(REPORT_S)
                if _found(log, until):  # still: a report that was not whole may be one that does not count
                    guest.terminate()
                    break
        return guest.wait()
    finally:
        guest.terminate()


def boot(kernel: Path, initramfs: Path, log: Path, seconds: int, checks: str, processors: int, until: str = "") -> str:
    """Boots a guest and returns its output. One processor's clock counts instructions; several run in real time."""
    command = ["timeout", str(seconds), "qemu-system-x86_64"]
    command += ["-machine", "q35", "-cpu", "max", "-smp", str(processors)]
    if processors == 1:
        command += ["-m", "512", "-accel", "tcg,thread=single"]
        command += ["-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2025-01-01,clock=vm"]
    else:
        command += ["-m", "2048", "-accel", "tcg,thread=multi"]
    command += ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]
    command += ["-kernel", str(kernel), "-initrd", str(initramfs)]
    reports = "kasan.fault=panic" if checks == "first" else "kasan_multi_shot"  # known to kernels with KASAN only
    # no_timer_check: on a busy host the timer of several processors may seem to stand still during boot
    # norandmaps: QEMU translates the code of a process again wherever it lies at another address
    command += [
        "-append",
        f"console=ttyS0 quiet panic=-1 oops=panic mitigations=off no_timer_check norandmaps {reports} checks={checks}",
    ]
    with log.open("wb") as out:
        guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        if finished(guest, log, until) == 124:
            out.write(f"\nnot ok - the guest did not end within {seconds} s\n".encode())
    return log.read_text(errors="replace").replace("\r", "")


def replay(text: str, release: str, folder: Path) -> list[str]:
    """Replays in the core what was recorded in the guest: `trace NAME BASE64`, of gzipped trace events."""
    wrong = []
    for name in dict.fromkeys(re.findall(r"^trace (\S+) \S+$", text, re.M)):
        parts = re.findall(rf"^trace {re.escape(name)} (\S+)$", text, re.M)
        events = gzip.decompress(base64.b64decode("".join(parts))).decode()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text(events)
        try:
            recorded = trace.vectors(events, trace.read_choices(BUILD / "choices.txt"))
        except trace.UnreadableError as error:
            wrong.append(f"replay of {name}: {error}")
            continue
        files = []
        for number, vector in enumerate(recorded, 1):
            files.append(folder / f"{name}-{number}.vec")
            files[-1].write_text(vector)
        done = subprocess.run([BUILD / "replay", *files], capture_output=True, text=True)
        if done.returncode or not files:
            wrong.append(f"replay of {name}: {done.stderr.strip() or 'nothing was recorded'}")
        else:
            print(f"{release}: {name} replayed: {done.stdout.strip()}")
    return wrong


def without_reports(lines: list[str], of: str, names: str) -> list[str]:
    """Leaves out reports of races (KCSAN) that `names`, the module under test, has no part in or could not prevent.

    It could not where one of the two accesses is made by UNLOCKED without it.
    """
    left: list[str] = []
    report: list[str] | None = None
    for line in lines:
        if RULE.match(line):
            if report is None:
                report = []
            else:
                accesses = "\n".join(re.sub(r"^\[ *[0-9.]+\] ?", "", one) for one in report).split("\n\n")
                unlocked = any(UNLOCKED in access and names not in access for access in accesses)
                if not any(of in one for one in report) or (any(names in one for one in report) and not unlocked):
                    left += report
                report = None
        elif report is not None:
            report.append(line)
        else:
            left.append(line)
    return left + (report or [])


def without_warnings(lines: list[str], of: str) -> list[str]:
    """Leaves out those warnings of the kernel that contain `of`."""
    left: list[str] = []
    begun = 0
    for line in lines:
        if "[ cut here ]" in line:
            begun = len(left)
        left.append(line)
        if "[ end trace" in line and any(of in one for one in left[begun:]):
            left[begun:] = [one for one in left[begun:] if not re.match(r"\[ *[0-9.]+\]", one)]
    return left


def judge(text: str, scripts: list[str]) -> list[str]:
    """The failures in a guest's output."""
    lines = text.splitlines()
    wrong = [line for line in lines if line.startswith("not ok")]
    logged = without_warnings(without_reports(lines, "BUG: KCSAN", "[sch_linkweir]"), QFQ)
    # base64 may contain any word
    logged = [line for line in logged if not line.startswith(("trace ", "tdc "))]
    wrong += [f"kernel log: {line}" for line in logged if BAD_LOG.search(line)]
    ended = [line.split()[1] for line in lines if line.startswith("ended ")]
    wrong += [f"{script}.sh did not end" for script in scripts if script not in ended]
    for line in lines:
        if line.startswith("json "):
            try:
                json.loads(line[5:])
            except ValueError as error:
                wrong.append(f"no valid JSON ({error}): {line[5:]}")
    if not any(line.startswith("ok ") for line in lines):
        wrong.append(NO_CHECK)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs guest scripts on a stock Debian kernel in QEMU.")
    parser.add_argument("--kernel", required=True, help="release, e.g. 6.1.0-56-cloud-amd64")
    parser.add_argument(
        "--image", type=Path, help="its image; what the suite needs is built in (otherwise Debian's of that release)"
    )
    parser.add_argument("--module", required=True, type=Path, action="append", help="sch_linkweir.ko, or one more")
    parser.add_argument("--plugins", required=True, type=Path)
    parser.add_argument("--seconds", type=int, default=3600, help="after which a guest is ended")
    parser.add_argument("--until", default="", metavar="REGEX", help="ends the guest at a failure that contains this")
    parser.add_argument("--checks", choices=("short", "full", "first"), default="short", help="first: up to a failure")
    parser.add_argument("--processors", type=int, default=1, help="more than one run in real time, to find races")
    parser.add_argument("--log", help="name of the log in build/ (the scripts' names, unless given)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="writes a file for the scripts, /guest/NAME"
    )
    parser.add_argument("scripts", nargs="+")
    args = parser.parse_args()
    for tool in ("qemu-system-x86_64", "modprobe", "depmod", "strip", "ldd"):
        if not shutil.which(tool) and not Path("/sbin", tool).exists():
            fail(f"{tool} is missing: ./setup.sh kernel-test names the packages")
    kernel, modroot = (args.image, None) if args.image else image(args.kernel)
    facts = dict(word.split("=", 1) for word in args.set)
    with tempfile.TemporaryDirectory() as name:
        initramfs = Path(name) / "initramfs"
        make_initramfs(args.kernel, modroot, args.module, args.plugins, args.scripts, facts, initramfs)
        log = BUILD / f"{args.log or '-'.join(args.scripts)}-{args.kernel}.log"
        text = boot(kernel, initramfs, log, args.seconds, args.checks, args.processors, args.until)
    wrong = judge(text, args.scripts) + replay(text, args.kernel, BUILD / "traces" / log.stem)
    if modroot:
        wrong += taken(modroot, args.kernel, (BUILD / "kinds.txt").read_text().split())
    for line in re.findall(r"^cost \S+ [\d ]+$", text, re.M):
        print(f"{args.kernel}: {line}")
    held = len(re.findall(r"^ok ", text, re.M))
    if "tdc" in args.scripts:
        well, bad = judge_cases(text)
        held += well
        wrong += bad
    for line in wrong:
        print(f"{args.kernel}: {line}")
    print(f"{args.kernel}: {held} checks held, {len(wrong)} failed ({log})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
