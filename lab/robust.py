# SPDX-License-Identifier: BSD-3-Clause
"""Runs the kernel module's tests and scenarios of the papers in a kernel with KASAN and lockdep.

    python lab/robust.py [--out FILE]

First a module with planted faults shows that the kernel detects faults. Then come the guest scripts of kernel/tests and
three scenarios. Exit code 0: every check held and the kernel's log has no complaint; otherwise 1. FILE gets the record.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import linkweir
from linkweir.deploy.policy import kind_of
from linkweir.lab import guest, host, kernel
from linkweir.lab.collect import tables
from linkweir.lab.world import world
from linkweir.reproduce.papers import pds, pss

ROOT = Path(__file__).resolve().parents[1]
BOOTS = (("rows", "kinds", "conserve", "classify", "change", "malformed"), ("fuzz",), ("remove",))
MESSAGES = 100_000
"""Messages that `fuzz` sends."""
RELOADED = "KASAN: global-out-of-bounds in load_module"
"""A false report of KASAN when a module is loaded where another one was before. Only CONFIG_KASAN_VMALLOC, which this
kernel lacks, would avoid it. The log is checked up to there; `remove` runs last and loads the module again at its end.
"""
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


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description="Tests in a kernel with KASAN and lockdep.")
    parser.add_argument("--out", type=Path, help="file for the record")
    out: Path | None = parser.parse_args().out
    record = Record()
    folder = kernel.build("debug", say=lambda text: print(text, file=sys.stderr))
    ready = guest.prepare(folder)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
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
    record.say(f"Linux {release(seen)}, KASAN, lockdep, {datetime.date.today().isoformat()}")
    if out is not None:
        out.write_text("\n".join(record.lines) + "\n")
    return 1 if record.wrong else 0


def release(log: str) -> str:
    """The kernel's release, from its banner."""
    found = re.search(r"Linux version (\S+)", log)
    return found[1] if found else "unknown"


if __name__ == "__main__":
    sys.exit(main())
