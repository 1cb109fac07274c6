# SPDX-License-Identifier: BSD-3-Clause
"""Runs the kernel module's tests and scenarios of the papers in three kernels that check themselves.

    python lab/robust.py [--out FILE] [KERNEL...]

`kasan` and `kcsan` run in QEMU on four processors: first faults are planted in our module, then come the scripts of
kernel/tests with the unchanged one. `debug` is user-mode Linux on one processor, with KASAN and lockdep: first a module
of its own with planted faults, then scripts and three scenarios. Exit code 0: every fault was noticed, every check held
and no log has a complaint; otherwise 1. FILE gets the record, a part for each kernel; parts of other kernels stay.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import linkweir
from linkweir.deploy.policy import kind_of
from linkweir.lab import guest, host, kernel
from linkweir.lab.collect import tables
from linkweir.lab.fault import LaboratoryError
from linkweir.lab.world import world
from linkweir.reproduce.papers import pds, pss
from linkweir.scratch import scratch

ROOT = Path(__file__).resolve().parents[1]
BOOTS = (("rows", "kinds", "conserve", "classify", "change", "malformed"), ("fuzz",), ("remove",))
MESSAGES = 100_000
"""Messages that `fuzz` sends."""
RELOADED = "KASAN: global-out-of-bounds in load_module"
"""A false report of KASAN when a module is loaded where another one was before. Only CONFIG_KASAN_VMALLOC, which this
kernel lacks, would avoid it. The log is checked up to there; `remove` runs last and loads the module again at its end.
"""
MACHINES = {
    "kasan": "KASAN, UBSAN, lockdep, object tracking, kmemleak",
    "kcsan": "KCSAN, lockdep",
}
"""Kernels in QEMU, and what checks them."""
FULL = ("--processors", "4", "--checks", "full")
STRESS = ("4 processors", ("stress",), (*FULL, "--set", "stress_messages=60"))
LONG_STRESS = ("4 processors", ("stress",), (*FULL, "--set", "stress_messages=300"))
MANY = ("4 processors", ("tdc", "malformed", "fuzz", "remove"), ("--processors", "4", "--set", "messages=3000"))
ONE = ("1 processor", ("rows", "kinds", "conserve", "carrier", "queues", "classify", "change", "record"), ())
SUITES = {"kasan": (STRESS, MANY, ONE), "kcsan": (LONG_STRESS, MANY)}
"""What runs there: scripts, and options of kernel/tests/run.py. Emulated and checked, these kernels are slow."""
COMPLAINTS = re.compile(
    r"BUG:|WARNING:|Oops|Call Trace|general protection|possible circular locking|inconsistent lock state"
    r"|suspicious RCU|ODEBUG:|list_(add|del) corruption|refcount_t:|unregister_netdevice: waiting"
)
PLANTED = (
    r"KASAN: (slab-)?use-after-free in planted_init",
    r"scheduling while atomic|sleeping function called from invalid context",
    r"possible circular locking dependency",
)

# modprobe for the guest: all modules but these two are built in.
MODPROBE = """#!/bin/sh
for word; do
	case $word in
	sch_*|net-sch-*) [ -e /sys/module/sch_linkweir ] || exec insmod /sch_linkweir.ko ;;
	linkweir_vectors) exec insmod /job/linkweir_vectors.ko ;;
	esac
done
"""
RUN = """mkdir -p /guest
cp /job/*.sh /guest/
cp /job/bounds /job/choices /job/defaults /job/kinds /job/messages /guest/
mv /job/traffic /job/fuzz /job/attributes /job/modprobe /bin/
ln -s bin /sbin
for script in {scripts}; do
	echo "# $script"
	dash /guest/$script.sh && echo "ended $script"
done
"""


class Record:
    """The results, printed and kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.wrong = 0

    def say(self, text: str) -> None:
        """Prints and keeps a line."""
        print(text, flush=True)
        self.lines.append(text)

    def keep(self, out: Path) -> None:
        """Writes it to a file, in place of the part that begins with the same line."""
        parts = [part.strip() for part in out.read_text().split("\n\n")] if out.exists() else []
        kept = [part for part in parts if not part.startswith(self.lines[0])]
        out.write_text("\n\n".join([*kept, "\n".join(self.lines)]) + "\n")

    def judge(self, what: str, wrong: list[str]) -> None:
        """Records a result with its faults, if any."""
        self.say(f"{'failed' if wrong else 'held'}: {what}")
        for line in wrong[:20]:
            self.say(f"    {line}")
        self.wrong += bool(wrong)


def compiled(source: Path, out: Path, *more: str) -> bytes:
    """Compiles a static program."""
    subprocess.run(["gcc", "-O2", "-static", *more, str(source), "-o", str(out)], check=True)
    return out.read_bytes()


def planted(folder: Path, work: Path) -> bytes:
    """Builds the module with planted faults."""
    place = work / "planted"
    shutil.copytree(ROOT / "lab/planted", place)
    make = ["make", "-s", "-C", str(folder), f"M={place}", "ARCH=um", "KBUILD_MODPOST_WARN=1", "modules"]
    subprocess.run(make, check=True, capture_output=True)
    return (place / "planted.ko").read_bytes()


def complaints(dmesg: str) -> list[str]:
    """Lines of a kernel's log that report a fault, each with the three that follow."""
    lines = dmesg.splitlines()
    return [f"{line} | {' | '.join(lines[n + 1 : n + 4])}" for n, line in enumerate(lines) if COMPLAINTS.search(line)]


def checked(command: list[str | Path]) -> tuple[list[str], str]:
    """Runs a program of kernel/tests: the lines it prints, and how long it took."""
    begun = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if not lines or done.returncode not in (0, 1):
        raise LaboratoryError(f"{command[1]}: exit code {done.returncode}: {done.stderr.strip()}")
    return lines, f"{time.monotonic() - begun:.0f} s"


def machine(record: Record, variant: str) -> None:
    """Runs the suite in QEMU, under a kernel that checks itself."""
    folder = kernel.build(variant, say=lambda text: print(text, file=sys.stderr))
    name = (folder / "include/config/kernel.release").read_text().strip()
    module = ROOT / f"kernel/build/{name}/sch_linkweir.ko"
    make = ["make", "-s", "-C", ROOT / "kernel", f"HEADERS={folder}", module.relative_to(ROOT / "kernel"), "tools"]
    subprocess.run([str(word) for word in make], check=True)
    tests, image = ROOT / "kernel/tests", kernel.image(folder)

    command = [sys.executable, tests / "broken.py", name, "--debug", variant, "--headers", folder, "--image", image]
    (*faults, last), took = checked(command)
    record.judge(f"{last}, in {took}", [line for line in faults if not line.startswith("noticed: ")])
    for where, scripts, options in SUITES[variant]:
        log = f"robust-{scripts[0]}"
        command = [sys.executable, tests / "run.py", "--kernel", name, "--image", image, "--module", module]
        command += ["--plugins", ROOT / "kernel/build/tc", "--seconds", "7200", "--log", log, *options, *scripts]
        (*said, last), took = checked(command)
        held = re.search(r"\d+ checks held", last)
        wrong = [line for line in said if " replayed: " not in line]
        record.judge(f"{held[0] if held else last}, {where}, in {took}: {', '.join(scripts)}", wrong)
        races = (ROOT / f"kernel/build/{log}-{name}.log").read_text(errors="replace").count("BUG: KCSAN")
        if races:
            record.say(f"    {races} races were reported; those between other parts of the kernel do not count")
    record.say(f"Linux {name}, {MACHINES[variant]}, {datetime.date.today().isoformat()}, {commit()}")


@cache
def commit() -> str:
    """The commit of this tree."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def user_mode(record: Record) -> None:
    """Runs the suite and scenarios in user-mode Linux."""
    folder = kernel.build("debug", say=lambda text: print(text, file=sys.stderr))
    ready = guest.prepare(folder)
    with scratch() as work:
        faults = planted(folder, work)
        core = sorted((ROOT / "core/src").glob("*.c"))
        programs = {}
        for program in ("bounds", "traffic", "fuzz", "attributes"):
            source = ROOT / f"kernel/tests/{program}.c"
            programs[program] = compiled(
                source, work / program, "-std=gnu11", f"-I{ROOT}/core/include", *map(str, core)
            )
        kinds = sorted(kind_of(policy) for policy in ready.kinds)
        facts = {"kinds": "\n".join([*kinds, ""]).encode()}
        for fact, option in {"bounds": (), "choices": ("--choices",), "defaults": ("--defaults",)}.items():
            facts[fact] = subprocess.run([work / "bounds", *option, *kinds], check=True, capture_output=True).stdout
        scripts = {path.name: path.read_bytes() for path in (ROOT / "kernel/tests/guest").glob("*.sh")}
        facts["linkweir_vectors.ko"] = (ROOT / f"kernel/build/uml-{folder.name}/linkweir_vectors.ko").read_bytes()
        tools = {**programs, **facts, "modprobe": MODPROBE.encode(), "messages": f"{MESSAGES}\n".encode()}

    seen = host.start(ready, {"run": b"insmod /job/planted.ko || true\n", "planted.ko": faults}, 1)["dmesg"].decode()
    record.judge("the kernel sees three planted faults", [p for p in PLANTED if not re.search(p, seen)])

    for names in BOOTS:
        job = {**scripts, **tools, "run": RUN.format(scripts=" ".join(names)).encode()}
        found = host.start(ready, job, 1)
        text, log = found["log"].decode(errors="replace"), found["dmesg"].decode(errors="replace")
        wrong = [line for line in text.splitlines() if line.startswith("not ok")]
        wrong += [f"{script}.sh did not end" for script in names if f"ended {script}" not in text]
        checks = len(re.findall(r"^ok ", text, re.M))
        record.judge(f"{checks} checks of kernel/tests/guest: {', '.join(names)}", wrong)
        before, again, _ = log.partition(f"BUG: {RELOADED}") if "remove" in names else (log, "", "")
        until = ", until the module was loaded again" if again else ""
        record.judge(f"the kernel's log after them has no complaint{until}", complaints(before))

    tcp = pss.PssOptions("tcp", False, 30.0, 1)
    swinging = pss.FIGURES["7"](replace(tcp, duration_s=15.0)).cases[0].scenario
    variant = pds.Variant("6", delay=pds.USUAL, loss=pds.USUAL[::-1], history="decayed")
    for what, scenario in (
        ("PSS, fixed capacity, 30 s", pss.FIGURES["6"](tcp).cases[0].scenario),
        ("PSS, swinging capacity, 15 s", swinging),
        ("WTP and PLR, 9 s", pds.scenario(variant, 1, 9.0)),
    ):
        made = world(linkweir.Scenario.from_dict(scenario), ready.kinds)
        files = host.start(ready, made.job, 1)
        sent = sum(row["sent_pkts"] for row in tables(made, files)["classes"].to_pylist())
        record.judge(f"{what}: {sent} packets, no complaint", complaints(files["dmesg"].decode(errors="replace")))
    record.say(f"Linux {release(seen)}, KASAN, lockdep, {datetime.date.today().isoformat()}, {commit()}")


def main() -> int:
    """Runs everything, or what is named."""
    parser = argparse.ArgumentParser(description="Tests in kernels that check themselves.")
    parser.add_argument("--out", type=Path, help="file for the record")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="kasan, kcsan or debug; all unless given")
    args = parser.parse_args()
    for name in args.kernels:
        if name not in (*MACHINES, "debug"):
            parser.error(f"no kernel {name}: there are {', '.join(MACHINES)} and debug")
    wrong = 0
    commit()  # before a record changes the tree
    for name in args.kernels or (*MACHINES, "debug"):
        record = Record()
        record.say(f"# {name}")
        if name == "debug":
            user_mode(record)
        else:
            machine(record, name)
        wrong += record.wrong
        if args.out is not None:
            record.keep(args.out)
    return 1 if wrong else 0


def release(log: str) -> str:
    """The kernel's release, from its banner."""
    found = re.search(r"Linux version (\S+)", log)
    return found[1] if found else "unknown"


if __name__ == "__main__":
    sys.exit(main())
