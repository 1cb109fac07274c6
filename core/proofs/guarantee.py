# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Checks the proofs of the guarantees in rocq/, and that the C code answers as the models do that they are about.

1. Rocq checks every file. No theorem may rest on an axiom.
2. The models, extracted to OCaml, replay the vectors of their policies.
3. They replay random lives of the C code (rocq/lives.c).

With --faults: each fault of guarantee_faults.toml, put into a copy of the core, must make step 3 fail.
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
RECORD = CORE.parent / "docs" / "results" / "proofs.md"
FILES = ("Pss", "Charge", "Identity", "Guarantee", "Link", "LessMemory", "Rr", "Drr", "Bits", "Assumptions", "Extract")
POLICIES = ("pss", "drr", "rr")
OPERATIONS = 2000
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
    tools = [tool for tool in ("coqc", "ocamlopt", "gcc") if not shutil.which(tool)]
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
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
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


def compile_lives(out: Path, faulty: Path | None = None) -> None:
    """lives.c with the C core; `faulty`: a copy of one of its sources, in place of it."""
    compile_c = ["gcc", "-std=c11", "-O1", "-w", f"-I{CORE}/include", f"-I{CORE}/src"]
    sources = [HERE / "rocq" / "lives.c", *sorted((CORE / "src").glob("*.c"))]
    objects = [str(BUILD / f"{source.stem}.o") for source in sources]
    if not faulty:
        for source, target in zip(sources, objects, strict=True):
            must([*compile_c, "-c", str(source), "-o", target], source.name)
    else:
        objects[[source.name for source in sources].index(faulty.name)] = str(faulty)
    must([*compile_c, *objects, "-o", str(out)], "lives.c")


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


def caught(fault: dict, seeds: int) -> str:
    """How a life shows the fault; empty if none does."""
    place = BUILD / f"{fault['policy']}.c"
    source = (CORE / "src" / place.name).read_text()
    if source.count(fault["was"]) != 1:
        sys.exit(
            f"guarantee_faults.toml: {place.name} has {fault['was']!r} {source.count(fault['was'])} times, not once"
        )
    place.write_text(source.replace(fault["was"], fault["now"]))
    compile_lives(BUILD / "lives-fault", place)
    for seed in range(1, seeds + 1):
        path = live(BUILD / "lives-fault", fault["policy"], seed)
        if path is None:
            return f"life {seed}: the C code crashes or never returns"
        done = replay([path])
        if done.returncode:
            first = done.stdout.splitlines()[0] if done.stdout else "the model cannot follow it"
            return f"life {seed}, line {first.split(':', 1)[-1]}"
        path.unlink()
    return ""


def fill(start: str, end: str, lines: list[str]) -> None:
    text = RECORD.read_text()
    before, rest = text.split(start, 1)
    RECORD.write_text(before + start + "\n" + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few lives; says what is missing instead of failing")
    parser.add_argument("--faults", action="store_true", help="then plant the faults of guarantee_faults.toml")
    parser.add_argument("--record", action="store_true", help="write the results into docs/results/proofs.md")
    args = parser.parse_args()
    lacking = missing()
    if lacking:
        print(f"guarantee: NOT CHECKED: {', '.join(lacking)} not installed: ./setup.sh prove")
        return 0 if args.quick else 1
    os.environ.setdefault("OCAMLRUNPARAM", "b")
    began = time.monotonic()
    proofs = prove(args.quick)
    compile_lives(BUILD / "lives")
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
        fill(START, END, lines)
    if not args.faults:
        return 0
    faults = tomllib.loads((HERE / "guarantee_faults.toml").read_text())["fault"]
    unnoticed, lines = 0, ["| policy | fault | guarantee that it breaks | noticed |", "|---|---|---|---|"]
    for fault in faults:
        how = caught(fault, 60)
        print(f"{fault['policy']}: {'rejected: ' + how if how else 'NOT NOTICED'}: {fault['breaks']}", flush=True)
        lines.append(f"| {fault['policy']} | {fault['fault']} | {fault['breaks']} | {how or 'no'} |")
        unnoticed += not how and not fault.get("unnoticed")
    if args.record:
        fill(FAULTS_START, FAULTS_END, lines)
    print(f"guarantee: {len(faults)} faults, {unnoticed} not noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
