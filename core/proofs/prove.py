# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Runs every proof of plan.toml and compares what stays open with open.toml; fills the table of docs/records/proofs.md.

A run is Eva over the most general data plane (data_plane.h) for one policy and one number of queues, or WP over one
file.
Every property of the run (alarm, assertion, contract, loop invariant) is proved or open. An open one must be named in
open.toml with the reason why it holds. When all runs were done, an entry there that no property needs is an error too.
"""

import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent
CORE = HERE.parent
RECORD = CORE.parent / "docs" / "records" / "proofs.md"
KINDS = ("elsewhere", "guarded", "wrap", "counter", "assumed")
COLUMNS = ("engine", "proof", "queues", "proved", *KINDS, "not listed", "time", "")
LINE = "{:6} {:15} {:>6} {:>6} {:>9} {:>7} {:>4} {:>7} {:>7} {:>10} {:>6} {}"
UNPROVED = re.compile(r"\[(?:Failed|Timeout|Unknown)\] Goal (\w+)")
FAULT_GOAL_S = 20
"""Time for a goal where a fault was planted, s, unless the fault has another `goal_s`."""
running: set[int] = set()
"""The process groups of all runs that have not ended."""
START, END = "<!-- table: made by `make -C core prove` -->", "<!-- end of table -->"


def frama_c(run: dict, report: str, core: Path) -> list[str]:
    defines = " ".join(f"-D{name}={value}" for name, value in run["define"].items())
    command = ["frama-c", "-machdep", "gcc_x86_64", "-c11", f"-cpp-extra-args=-I{core}/include {defines}"]
    command += [run["file"], "-warn-unsigned-overflow", *run["options"]]
    return [*command, "-then", "-report-csv", report, "-report-no-proven"]


def shorten(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def name_of(goal: str) -> str:
    """A goal's name, without the memory model's."""
    return re.sub(r"^typed_(cast_)?", "", goal)


def output_of(command: list[str], folder: Path, *, first: bool) -> tuple[str, int, float]:
    """What a command prints, its exit code, and its processor time in s, which other work changes little.

    `first`: it is ended once it has named a goal that is not proved.
    """
    environment = {**os.environ, "PWD": str(folder)}  # frama-c reads it instead of asking the kernel
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipe) as process:
        lines = []
        running.add(process.pid)
        try:
            for line in process.stdout:
                lines.append(line)
                if first and UNPROVED.search(line):
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
    return "".join(lines), process.returncode, usage.ru_utime + usage.ru_stime


def perform(run: dict, core: Path = CORE, *, first: bool = False) -> dict:
    """The open properties of one run as (function, kind, text), the number proved, and the processor time.

    `first`: a run of WP ends at the first goal that is not proved.
    """
    first = first and run["engine"] == "wp"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.csv"
        command = ["prlimit", f"--cpu={run['seconds']}", *frama_c(run, str(report), core)]
        output, code, seconds = output_of(command, core / "proofs", first=first)
        goals = {("", "goal", name_of(goal)) for goal in UNPROVED.findall(output)}  # none in a run of Eva
        if first and goals:
            return {"open": goals, "proved": 0, "seconds": seconds, "failed": ""}
        if code or not report.exists():
            late = code in (-signal.SIGXCPU, -signal.SIGKILL)
            failed = "out of time" if late else output[-2000:]
            return {"open": set(), "proved": 0, "seconds": seconds, "failed": failed}
        rows = list(csv.DictReader(report.open(), delimiter="\t"))
    found = set()
    for row in rows:
        if row["status"] == "Considered valid":
            continue
        found.add((row["function"], row["property kind"], shorten(row["property"])))
    if run["engine"] == "eva":
        counts = [int(n) for n in re.findall(r"(?:Assertions|Preconditions)\s+(\d+) valid", output)]
        proved = sum(counts)
        alarms = int((re.search(r"(\d+) alarms? generated", output) or [0, 0])[1])
    else:
        match = re.search(r"Proved goals:\s+(\d+) / (\d+)", output)
        proved, alarms = (int(match[1]), int(match[2]) - int(match[1])) if match else (0, 0)
        found = goals
        if alarms != len(found) or not proved:  # no prover was run, for instance
            found.add(("", "goal", f"{proved} goals proved and {alarms} not, of which {len(found)} are named"))
    return {"open": found, "proved": proved, "alarms": alarms, "seconds": seconds, "failed": ""}


def performed(runs: list[dict]) -> Iterator[tuple[dict, dict]]:
    """Each run with its result, in order. Two runs of Eva, with a process each, go on at once; WP has two provers."""
    pool = ThreadPoolExecutor(2)
    try:
        ahead = [pool.submit(perform, run) if run["engine"] == "eva" else None for run in runs]
        for run, result in zip(runs, ahead, strict=True):
            yield run, result.result() if result else perform(run)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for group in list(running):  # none, unless this ends early
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def functions_of(entry: dict, entries: list[dict]) -> list[str]:
    """Options for the functions of another proof, if the entry names one."""
    other = [each["options"] for each in entries if each["file"] == entry.get("functions_of")]
    return ["-wp-fct", other[0][other[0].index("-wp-fct") + 1]] if other else []


def plan() -> list[dict]:
    document = tomllib.loads((HERE / "plan.toml").read_text())
    eva = [
        {
            "engine": "eva",
            "name": entry["policy"] + entry.get("variant", ""),
            "policy": entry["policy"],
            "queues": str(queues),
            "file": entry.get("file", f"{entry['policy']}/eva.c"),
            "define": {"QUEUES": queues, **entry.get("define", {})},
            "options": [
                *document["options"]["eva"],
                "-eva-min-loop-unroll",
                str(max(entry.get("unroll", 0), queues + 1)),
                *entry.get("options", []),
            ],
            "seconds": entry.get("seconds", 600),
        }
        for entry in document["eva"]
        for queues in entry["queues"]
    ]
    wp = [
        {
            "engine": "wp",
            "name": entry["file"],
            "policy": entry["policy"],
            "queues": "any",
            "file": entry["file"],
            "define": {},
            "options": [*document["options"]["wp"], *functions_of(entry, document["wp"]), *entry["options"]],
            "seconds": entry.get("seconds", 1800),
        }
        for entry in document["wp"]
    ]
    return eva + wp


def reason(entries: list[dict], run: dict, item: tuple[str, str, str]) -> int | None:
    for index, entry in enumerate(entries):
        if run["policy"] not in entry.get("policies", [run["policy"]]):
            continue
        if run["engine"] != "eva" or not re.fullmatch(entry["function"], item[0]):
            continue
        if re.search(entry["property"], item[2]):
            return index
    return None


def record(row: tuple) -> None:
    """Writes a row into docs/records/proofs.md, in the plan's order; the rows of other runs stay as they are."""
    before, rest = RECORD.read_text().split(START, 1)
    old, after = rest.split(END, 1)
    rows = {}
    for line in old.strip().splitlines()[2:]:
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        rows[cells[:3]] = cells
    rows[tuple(map(str, row[:3]))] = row
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for run in plan():
        found = rows.get((run["engine"], run["name"], run["queues"]))
        if found:
            lines.append("| " + " | ".join(map(str, found)) + " |")
    RECORD.write_text(before + START + "\n" + "\n".join(lines) + "\n" + END + after)


def fault_run(fault: dict) -> dict:
    """The run that must reject a fault."""
    run = next(run for run in plan() if run["name"] == fault["proof"])
    options = run["options"]
    if "function" in fault:
        options[options.index("-wp-fct") + 1] = fault["function"]
    if run["engine"] == "wp":
        options[options.index("-wp-timeout") + 1] = str(fault.get("goal_s", FAULT_GOAL_S))
    return run


def with_fault(fault: dict, run: dict) -> dict:
    """What a run finds in a copy of the core that has the fault; WP's ends at the first goal."""
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder) / "core"
        for part in ("src", "include", "proofs"):
            shutil.copytree(CORE / part, core / part)
        place = core / fault["file"]
        source = place.read_text()
        times = source.count(fault["was"])
        if times != 1:
            sys.exit(f"faults.toml: {fault['file']} holds {fault['was']!r} {times} times, not once")
        place.write_text(source.replace(fault["was"], fault["now"]))
        return perform(run, core, first=True)


def missed(entries: list[dict], only: str) -> int:
    """How many faults of faults.toml their proof does not reject, and how many proofs reject the core as it is.

    `only`: how the names of the proofs begin.
    """
    bad = 0
    sound: set[tuple[str, str]] = set()
    for fault in tomllib.loads((HERE / "faults.toml").read_text())["fault"]:
        if not fault["proof"].startswith(only):
            continue
        run = fault_run(fault)
        result = with_fault(fault, run)
        unlisted = [item for item in sorted(result["open"]) if reason(entries, run, item) is None]
        verdict = "rejected" if unlisted else result["failed"] or "NOT NOTICED"
        print(f"{run['name']}, {run['queues']} queues: {verdict}: {shorten(fault['now'])}", flush=True)
        for function, _, text in unlisted:
            print(f"       {function}: {text}")
        bad += not unlisted
        which = (fault["proof"], fault.get("function", ""))
        if run["engine"] == "wp" and which not in sound:
            sound.add(which)
            without = perform(run, first=True)
            if without["open"] or without["failed"]:
                print(f"{' '.join(which)}: NOT PROVED WITHOUT A FAULT, with as much time for each goal", flush=True)
                bad += 1
    return bad


def judged(run: dict, result: dict, entries: list[dict], used: set[int], *, recording: bool) -> int:
    """Shows the result of a run, and records it if asked to.

    Returns how many of its properties are open without a reason. `used` gets the places of the reasons in `entries`.
    """
    unlisted = []
    kinds = dict.fromkeys(KINDS, 0)
    for item in sorted(result["open"]):
        index = reason(entries, run, item)
        if index is None:
            unlisted.append(item)
        else:
            used.add(index)
            kinds[entries[index]["kind"]] += 1
    state = "does not finish" if result["failed"] == "out of time" else "FAILED" if result["failed"] else ""
    row = (
        run["engine"],
        run["name"],
        run["queues"],
        result["proved"],
        *kinds.values(),
        len(unlisted),
        f"{result['seconds']:.0f} s",
        state,
    )
    if recording:
        record(row)
    print(LINE.format(*row), flush=True)
    for function, kind, text in unlisted:
        print(f"       {function}: {kind}: {text}")
    if result["failed"]:
        print("       " + result["failed"].replace("\n", "\n       "))
    return len(unlisted) + bool(result["failed"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="run only the proofs whose name begins with ONLY")
    parser.add_argument("--queues", help="only this number of queues")
    parser.add_argument("--record", action="store_true", help="write the results into docs/records/proofs.md")
    parser.add_argument("--faults", action="store_true", help="plant the faults of faults.toml; each must be rejected")
    args = parser.parse_args()
    entries = tomllib.loads((HERE / "open.toml").read_text())["open"]
    if args.faults:
        return 1 if missed(entries, args.only or "") else 0
    used: set[int] = set()
    print(LINE.format(*COLUMNS))
    bad = 0
    runs = [run for run in plan() if run["name"].startswith(args.only or "") and args.queues in (None, run["queues"])]
    with closing(performed(runs)) as results:
        for run, result in results:
            bad += judged(run, result, entries, used, recording=args.record)
    if not args.only and not args.queues:
        for index, entry in enumerate(entries):
            if index not in used:
                print(f"open.toml: nothing needs {entry['function']}: {entry['property']}")
                bad += 1
    print("proofs: " + ("all as recorded" if not bad else f"{bad} differ from the record"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
