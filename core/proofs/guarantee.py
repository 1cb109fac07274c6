# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Checks the proofs of the guarantees in rocq/, and that the C code answers as the models do that they are about.

1. Rocq checks every file. No theorem may rest on an axiom.
2. The models, extracted to OCaml, replay the vectors of their policies.
3. They replay random lives of the C code (rocq/lives.c).
4. A data plane that knows neither models nor code checks the guarantees' inequalities in lives of the C code
   (broken/broken.c).

With --faults: each fault of guarantee_faults.toml, put into a copy of the core, must make step 3 fail, and step 4 by
the inequality that the fault names. With --outside: step 4 alone, on the core and on the faults.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent
CORE = HERE.parent
VECTORS = CORE.parent / "vectors"
BUILD = CORE / "build" / "guarantee"
RECORD = CORE.parent / "docs" / "records" / "proofs.md"
FILES = (
    "Pss",
    "Charge",
    "Carry",
    "Identity",
    "Guarantee",
    "Link",
    "LessMemory",
    "Rr",
    "Drr",
    "Bits",
    "Sort",
    "Assumptions",
    "Extract",
)
POLICIES = ("pss", "drr", "rr")
OPERATIONS = 2000
PROGRAMS = {"lives": HERE / "rocq" / "lives.c", "broken": HERE / "broken" / "broken.c"}
START, END = "<!-- guarantees: made by `make -C core prove-guarantee RECORD=1` -->", "<!-- end of guarantees -->"
FAULTS_START, FAULTS_END = "<!-- faults: made by `make -C core prove-guarantee RECORD=1` -->", "<!-- end of faults -->"


def run(command: list[str], limit_s: int = 900, folder: Path = BUILD) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s)


def must(command: list[str], what: str) -> str:
    done = run(command)
    if done.returncode:
        sys.exit(f"guarantee: {what} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def missing() -> list[str]:
    tools = [tool for tool in ("coqc", "ocamlopt") if not shutil.which(tool)]
    if "ocamlopt" not in tools:
        where = subprocess.run(["ocamlopt", "-where"], capture_output=True, text=True).stdout.strip()
        if not (Path(where) / "zarith").is_dir():
            tools.append("zarith")
    return tools


def processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def prove(quick: bool) -> list[tuple[str, int, float]]:
    """Each file with its number of theorems and lemmas, and the processor time of its check."""
    rows = []
    for name in FILES:
        if quick and name == "Assumptions":  # half of the time
            continue
        source = (HERE / "rocq" / f"{name}.v").read_text()
        (BUILD / f"{name}.v").write_text(source)
        began = processor_s()
        output = must(["coqc", "-q", "-Q", ".", "Pss", f"{name}.v"], f"rocq/{name}.v")
        if name == "Assumptions":
            wanted = source.count("Print Assumptions")
            closed = output.count("Closed under the global context")
            if closed != wanted:
                sys.exit(f"guarantee: {wanted - closed} of {wanted} theorems rest on axioms:\n{output}")
        count = len(re.findall(r"^(?:Theorem|Lemma|Example) ", source, re.MULTILINE))
        rows.append((name, count, processor_s() - began))
    shutil.copy(HERE / "rocq" / "replay.ml", BUILD)
    command = ["ocamlopt", "-I", "+zarith", "-w", "-a", "zarith.cmxa", "models.mli", "models.ml", "replay.ml"]
    must([*command, "-o", "replay"], "the extracted models")
    return rows


def compile_c(source: Path, target: Path) -> Path:
    flags = ["gcc", "-std=c11", "-O1", "-w", f"-I{CORE}/include", f"-I{CORE}/src"]
    must([*flags, "-c", str(source), "-o", str(target)], source.name)
    return target


def compile_core() -> None:
    """The core, lives.c and broken.c, and both programs with the core as it is."""
    for source in (*PROGRAMS.values(), *(CORE / "src").glob("*.c")):
        compile_c(source, BUILD / f"{source.stem}.o")
    for name in PROGRAMS:
        link(name, BUILD / name)


def link(name: str, out: Path, faulty: Path | None = None) -> Path:
    """One of PROGRAMS; `faulty`: the object of a faulty policy, in place of the right one."""
    objects = [BUILD / f"{source.stem}.o" for source in (CORE / "src").glob("*.c")]
    objects = [BUILD / f"{name}.o", *(faulty if faulty and faulty.stem == f"{o.stem}-fault" else o for o in objects)]
    must(["gcc", *map(str, objects), "-o", str(out)], name)
    return out


def live(lives: Path, policy: str, seed: int) -> Path | None:
    """The vector of one random life; None if the C code did not survive it."""
    path = BUILD / f"life-{policy}-{seed}.vec"
    with path.open("w") as out:
        command = ["prlimit", "--cpu=10", "--fsize=100000000", str(lives), policy, str(seed), str(OPERATIONS)]
        done = subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL)
    return None if done.returncode else path


def replay(paths: list[Path]) -> subprocess.CompletedProcess:
    return run([str(BUILD / "replay"), *map(str, paths)])


def compare(lives: Path, seeds: int) -> list[tuple[str, str, str]]:
    rows = []
    for policy in POLICIES:
        vectors = replay(sorted((VECTORS / policy).glob("*.vec")))
        if vectors.returncode:
            sys.exit(f"guarantee: the model of {policy} differs from a vector:\n{vectors.stdout}")
        paths = [live(lives, policy, seed) for seed in range(1, seeds + 1)]
        if None in paths:
            sys.exit(f"guarantee: the C code of {policy} ended in the life of seed {paths.index(None) + 1}")
        random = replay([path for path in paths if path])
        if random.returncode:
            sys.exit(f"guarantee: the C code of {policy} answers otherwise than the model:\n{random.stdout[:2000]}")
        rows.append((policy, vectors.stdout.strip(), random.stdout.strip()))
        for path in paths:
            if path:
                path.unlink()
    return rows


def from_outside(broken: Path, policy: str, seeds: int, inequality: str = "") -> subprocess.CompletedProcess:
    """Answers 3 and says which inequality breaks, or 0 and how often each was checked."""
    command = ["prlimit", "--cpu=60", str(broken), policy, "1", str(seeds), str(OPERATIONS)]
    return run([*command, inequality] if inequality else command)


def hold(seeds: int) -> list[tuple[str, str]]:
    """The inequalities hold in lives of the core as it is."""
    rows = []
    for policy in POLICIES:
        done = from_outside(BUILD / "broken", policy, seeds)
        if done.returncode:
            sys.exit(f"guarantee: {policy} breaks a guarantee:\n{done.stdout}{done.stderr}")
        rows.append((policy, done.stdout.strip().removesuffix(", no breach")))
        print(f"{policy}: {seeds} lives seen from outside, checks: {rows[-1][1]}")
    return rows


def plant(fault: dict) -> Path:
    """The object of the policy with the fault."""
    source = (CORE / "src" / f"{fault['policy']}.c").read_text()
    count = source.count(fault["was"])
    if count != 1:
        sys.exit(f"guarantee_faults.toml: {fault['policy']}.c has {fault['was']!r} {count} times, not once")
    place = BUILD / f"{fault['policy']}-fault.c"
    place.write_text(source.replace(fault["was"], fault["now"]))
    return compile_c(place, place.with_suffix(".o"))


def seen_broken(fault: dict, faulty: Path, seeds: int) -> str:
    """Where the inequality that the fault names breaks; empty if it does not."""
    broken = link("broken", BUILD / "broken-fault", faulty)
    done = from_outside(broken, fault["policy"], seeds, fault["inequality"])
    return done.stdout.strip() if done.returncode == 3 else ""


def caught(fault: dict, faulty: Path, seeds: int) -> str:
    """How a life shows the fault; empty if none does."""
    lives = link("lives", BUILD / "lives-fault", faulty)
    for seed in range(1, seeds + 1):
        path = live(lives, fault["policy"], seed)
        if path is None:
            return f"life {seed}: the C code crashes or never returns"
        done = replay([path])
        if done.returncode:
            first = done.stdout.splitlines()[0] if done.stdout else "the model cannot follow it"
            return f"life {seed}, line {first.split(':', 1)[-1]}"
        path.unlink()
    return ""


def plant_all(outside: bool) -> tuple[list[str], int]:
    """The lines of the table of faults, and how many faults went unnoticed. `outside`: do not ask the models."""
    faults = tomllib.loads((HERE / "guarantee_faults.toml").read_text())["fault"]
    head = "| policy | fault | guarantee that it breaks | inequality seen broken | noticed |"
    lines = [head, "|---|---|---|---|---|"]
    unnoticed = unbroken = 0
    for fault in faults:
        faulty = plant(fault)
        broken = seen_broken(fault, faulty, 400)
        how = "" if outside else caught(fault, faulty, 60)
        answer = "" if outside else f"rejected: {how}: " if how else "NOT NOTICED: "
        print(f"{fault['policy']}: {answer}{broken or 'NOT SEEN BROKEN'}: {fault['breaks']}", flush=True)
        cells = (fault["policy"], fault["fault"], fault["breaks"], broken or "none", how or "no")
        lines.append(f"| {' | '.join(cells)} |")
        unnoticed += not how and not outside and not fault.get("unnoticed")
        unbroken += not broken
    noticed = "" if outside else f"{unnoticed} not noticed, "
    print(f"guarantee: {len(faults)} faults, {noticed}{unbroken} without a guarantee seen broken")
    return lines, unnoticed + unbroken


def fill(start: str, end: str, lines: list[str]) -> None:
    text = RECORD.read_text()
    before, rest = text.split(start, 1)
    RECORD.write_text(before + start + "\n" + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few lives; says what is missing instead of failing")
    parser.add_argument("--faults", action="store_true", help="then plant the faults of guarantee_faults.toml")
    parser.add_argument("--record", action="store_true", help="write the results into docs/records/proofs.md")
    parser.add_argument("--outside", action="store_true", help="only the inequalities, which need no Rocq")
    args = parser.parse_args()
    if not shutil.which("gcc"):
        print("guarantee: NOT CHECKED: gcc not installed: ./setup.sh prove")
        return 0 if args.quick else 1
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    subprocess.run(["sh", VECTORS / "make.sh"], check=True)
    compile_core()
    outside = hold(100 if args.quick else 2000)
    if args.outside:
        return 1 if plant_all(True)[1] else 0
    lacking = missing()
    if lacking:
        print(f"guarantee: NOT CHECKED: {', '.join(lacking)} not installed: ./setup.sh prove")
        return 0 if args.quick else 1
    os.environ.setdefault("OCAMLRUNPARAM", "b")
    began = time.monotonic()
    proofs = prove(args.quick)
    bridges = compare(BUILD / "lives", 10 if args.quick else 200)
    for name, count, seconds in proofs:
        print(f"rocq {name + '.v':15} {count:3} theorems {seconds:5.1f} s")
    for policy, vectors, lives in bridges:
        print(f"{policy}: vectors: {vectors}\n{policy}: lives: {lives}")
    proved = "proved" if args.quick else "proved without axioms"
    print(f"guarantee: {proved}; the C code answers as the models ({time.monotonic() - began:.0f} s)")
    if args.record:
        lines = ["| file | theorems and lemmas | time |", "|---|---|---|"]
        lines += [f"| {name}.v | {count} | {seconds:.1f} s |" for name, count, seconds in proofs]
        lines += [
            "",
            "| policy | vectors replayed in the model | lives of the C code replayed in the model |",
            "|---|---|---|",
        ]
        lines += [f"| {policy} | {vectors} | {lives} |" for policy, vectors, lives in bridges]
        lines += ["", "| policy | inequalities checked in 2000 lives of the C code, none broken |", "|---|---|"]
        lines += [f"| {policy} | {counts} |" for policy, counts in outside]
        fill(START, END, lines)
    if not args.faults:
        return 0
    lines, bad = plant_all(False)
    if args.record:
        fill(FAULTS_START, FAULTS_END, lines)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
