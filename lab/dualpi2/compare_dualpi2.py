#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares dualpi2 of the core with Linux's sch_dualpi2, verdict by verdict.

The kernel's file is compiled into a program of its own (`little_kernel.h` stands for the kernel around it), with the
same arrivals, times and random numbers on both sides. It is that of Debian's newest sources, which `--fetch` gets
(150 MB, 2 GB when unpacked); LINUX_SOURCE may name another tree. Faults that are planted in a copy of the file must be
noticed.

Exit code 0: all verdicts are the same; 1: not, or a fault was not noticed; 3: the sources or a compiler are missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = "net/sched/sch_dualpi2.c"
OWN = ("linux/errno.h", "linux/limits.h", "linux/types.h")
"""Headers of the kernel's file that this system has for programs; all others are empty here."""


class MissingError(Exception):
    """Something is missing here; the text says what and the cure."""


class BrokenError(Exception):
    """The comparison itself does not work; the text says why."""


@dataclass(frozen=True)
class Settings:
    """A row of the comparison: settings as the program takes them, and queues of each kind."""

    words: tuple[str, ...] = ()
    classes: int = 1

    @property
    def name(self) -> str:
        """In words."""
        told = ", ".join(word.replace("=", " = ") for word in self.words) or "defaults"
        return told if self.classes == 1 else f"{told}; {self.classes} queues of each kind"


LIMITED = (Settings(("limit=60",), 2), Settings(("memory=60000",)))
"""They refuse packets that come."""
MARKING = Settings(("overload=1",))
"""It never drops because of overload; with `Settings()` there is overload."""
ROWS = (
    Settings(),
    Settings(classes=3),
    MARKING,
    Settings(("coupling=4", "step=0")),
    Settings(("step=6000000",)),
    Settings(("classic_share=500000",), 2),
    Settings(("classic_share=0",)),
    Settings(("target=5000000", "tupdate=4000000", "alpha=100", "beta=1000")),
    Settings(("tupdate=500000",)),
    *LIMITED,
)
SHOWN = {
    "packets": "packets",
    "marked_l4s": "L4S marked",
    "by_step": "L4S above `step`",
    "marked_classic": "classic marked",
    "dropped_l4s": "L4S dropped",
    "dropped_classic": "classic dropped",
    "refused": "refused",
    "overloaded_events": "events in overload",
    "longest": "longest queue",
}
PLANTED = {
    "a step of 1.001 ms": (("q->step_thresh = 1 * NSEC_PER_MSEC", "q->step_thresh = 1001 * NSEC_PER_USEC"), Settings()),
    "the classic queue is next at a credit of 0": (("_credit <= 0", "_credit < 0"), Settings()),
    "delays count 0.001 % more": (
        ("((s64)qdelay - (s64)q->pi2_target) *", "((s64)qdelay * 100001 / 100000 - (s64)q->pi2_target) *"),
        Settings(),
    ),
    "the classic queue keeps the time of its first head": (
        ("WRITE_ONCE(q->c_head_ts, head_enqueue_time(sch));", ";"),
        Settings(),
    ),
    "just two mtu behind a packet are too few": (("backlog < 2 * mtu", "backlog <= 2 * mtu"), Settings()),
    "one packet above the limit": (("qdisc_qlen(sch) >= sch->limit", "qdisc_qlen(sch) > sch->limit"), LIMITED[0]),
    "one byte above the memory": (("truesize > q->memory_limit", "truesize > q->memory_limit + 1ull"), LIMITED[1]),
    "it drops though it should only mark": (
        ("if (!q->drop_overload)\n\t\treturn min_t", "if (0)\n\t\treturn min_t"),
        MARKING,
    ),
}
"""Changes of the kernel's file, and the settings with which each must be noticed."""


def tree(*, fetch: bool) -> Path:
    """The kernel's sources.

    Raises:
        MissingError: there are none, or without dualpi2.
    """
    words = [] if fetch else ["--kept"]
    script = ROOT / "kernel/series/sources.py"
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(done.stderr.strip())
    if not done.stdout.strip():
        raise MissingError("Linux's newest sources are missing; lab/dualpi2/compare_dualpi2.py --fetch gets them")
    found = Path(done.stdout.strip().splitlines()[-1])
    if not (found / SOURCE).is_file():
        raise MissingError(f"{found} has no {SOURCE}: it came with Linux 6.17")
    return found


def built(source: Path, folder: Path, *, planted: tuple[str, str] | None = None) -> Path:
    """Compiles the program, with a change of the kernel's file if one is planted.

    Raises:
        MissingError: there is no compiler.
        BrokenError: it refuses the files, or the line of the fault is not there.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise MissingError("a C compiler is missing: ./setup.sh check as root")
    text = (source / SOURCE).read_text()
    if planted:
        if text.count(planted[0]) != 1:
            raise BrokenError(f"{source / SOURCE} does not have the line {planted[0]!r} once")
        text = text.replace(*planted)
    headers = folder / "include"
    folder.mkdir()
    for name in (*re.findall(r"^#include <(\S+)>", text, re.MULTILINE), "linux/pkt_sched.h"):
        if name in OWN:
            continue
        (headers / name).parent.mkdir(parents=True, exist_ok=True)
        (headers / name).write_text("")
    shutil.copy(source / "include/uapi/linux/pkt_sched.h", headers / "linux/pkt_sched.h")
    (folder / "sch_dualpi2.c").write_text(f"#pragma GCC system_header\n{text}")
    program = folder / "compare"
    places = [f"-I{place}" for place in (HERE, headers, ROOT / "core/include", ROOT / "core/tests")]
    kernel_file = f'-DKERNEL_SOURCE="{folder / "sch_dualpi2.c"}"'
    sources = [HERE / "compare.c", *sorted((ROOT / "core/src").glob("*.c"))]
    # plane.h has functions that this program does not use
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    command = [
        compiler,
        "-std=gnu11",
        "-O2",
        *warnings,
        *places,
        kernel_file,
        *map(str, sources),
        "-lm",
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokenError(f"{source / SOURCE} does not compile here: {done.stderr.strip()[:2000]}")
    return program


def compared(program: Path, packets: int, row: Settings, seed: int) -> dict[str, float] | str:
    """What was counted, or the first difference.

    Raises:
        BrokenError: the program ended otherwise.
    """
    command: list[str | Path] = [program, str(packets), str(row.classes), str(seed), *row.words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 1 and done.stderr.startswith("compare: at "):
        return str(done.stderr.strip())
    if done.returncode:
        raise BrokenError(f"{row.name}: exit code {done.returncode}: {done.stderr.strip()}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def reached(found: dict[Settings, dict[str, float] | str]) -> list[str]:
    """What a row is for but did not reach."""
    wanted = [(row, "refused") for row in LIMITED] + [(Settings(), "overloaded_events"), (Settings(), "by_step")]
    lines = []
    for row, name in wanted:
        one = found[row]
        if not isinstance(one, str) and not one[name]:
            lines.append(f"{row.name}: NOT REACHED: {SHOWN[name]}")
    plain = found[Settings()]
    if not isinstance(plain, str) and (plain["least"] > 0 or plain["most"] < 0.5):
        lines.append(f"defaults: NOT REACHED: probabilities from 0 to 0.5, but {plain['least']} to {plain['most']}")
    return lines


def at_least_one(word: str) -> int:
    """A number of packets."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word}: must be a whole number from 1 on")
    return int(word)


def main() -> int:
    """Compares, and says whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="get the sources if they are not there")
    parser.add_argument("--packets", type=at_least_one, default=1_000_000, help="of each row; default: 1000000")
    parser.add_argument("--seed", type=int, default=7, help="of the arrivals; default: 7")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            source = tree(fetch=options.fetch)
            program = built(source, Path(folder) / "same")
            faulty = [built(source, Path(folder) / told, planted=fault) for told, (fault, _) in PLANTED.items()]
            runs = [(program, row) for row in ROWS]
            runs += [(of, row) for of, (_, row) in zip(faulty, PLANTED.values(), strict=True)]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                answers = list(pool.map(lambda run: compared(run[0], options.packets, run[1], options.seed), runs))
        except MissingError as missing:
            print(f"NOT COMPARED: {missing}", file=sys.stderr)
            return 3
        except BrokenError as broken:
            print(f"compare_dualpi2.py: {broken}", file=sys.stderr)
            return 1
    found, noticed = dict(zip(ROWS, answers[: len(ROWS)], strict=True)), answers[len(ROWS) :]
    print("| settings | " + " | ".join(SHOWN.values()) + " | verdicts |")
    print("|---" * (len(SHOWN) + 2) + "|")
    for row, one in found.items():
        cells = ["" for _ in SHOWN] if isinstance(one, str) else [f"{one[name]:,.0f}" for name in SHOWN]
        print(f"| {row.name} | " + " | ".join(cells) + f" | {one if isinstance(one, str) else 'the same'} |")
    print(f"\n{source.name}, {SOURCE}. Planted faults:")
    for (told, (_, row)), one in zip(PLANTED.items(), noticed, strict=True):
        print(f"* {told} ({row.name}): {one if isinstance(one, str) else 'NOT NOTICED'}")
    print(*(missed := reached(found)), sep="\n", end="")
    differs = any(isinstance(one, str) for one in found.values())
    return int(differs or bool(missed) or not all(isinstance(one, str) for one in noticed))


if __name__ == "__main__":
    sys.exit(main())
