# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Mutation tests of the core: small faults are put into the sources, one at a time, and the tests must find each.

    python core/tests/mutate.py [FILE ...]      all sources, or those named (pss.c, math.h)

A mutant changes one operator, constant, condition or statement. Those that do not compile, or compile to the object
code of the original or of another mutant, are left out. The rest face the vectors, random lives of every policy and
the limits of the contract. A mutant that survives must be explained in mutants.toml, and an explanation must have
its survivor; else the run fails. Counts and explanations are written to docs/mutation.md when all sources were run.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from typing import NamedTuple

import tomllib

CORE = pathlib.Path(__file__).resolve().parent.parent
ROOT = CORE.parent
BUILD = CORE / "build" / "mutate"
EXPLANATIONS = CORE / "tests" / "mutants.toml"
REPORT = ROOT / "docs" / "mutation.md"
WORKERS = 2
LIVES = ("1", "20")  # seeds of the random lives
ARITHMETIC = ("include/linkweir/math.h", "src/soft.h")  # property.c calls it itself
HANGS_S = 10  # of the processor, whatever else the machine does; no test takes more than two

COMPILE = ["gcc", "-std=c11", "-w", "-Werror=return-type", "-Werror=implicit-function-declaration", "-ffreestanding"]
SANITIZE = ["-g", "-fsanitize=address,undefined,bounds-strict", "-fno-sanitize-recover=all"]

# Faults

SWAPS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "&&": ("||",),
    "||": ("&&",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("*",),
    "%": ("/",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "^": ("&",),
    "++": ("--",),
    "--": ("++",),
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "|=": ("&=", "="),
    "&=": ("|=", "="),
    "<<=": (">>=",),
    ">>=": ("<<=",),
    "!": ("",),
    "~": ("",),
}
TOKEN = re.compile(
    r"""(?P<blank>\s+|/\*.*?\*/|//[^\n]*|\\\n)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\.\.\.|.)""",
    re.S | re.X,
)
BINARY_ONLY = {"+", "-", "*", "&", "/", "%", "|", "^", "<<", ">>"}
KEYWORDS = {"return", "if", "else", "for", "while", "do", "switch", "case", "break", "continue", "sizeof", "goto"}


class Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def end(self):
        return self.at + len(self.text)


class Mutant(NamedTuple):
    file: str
    function: str
    was: str  # the source line, and what it becomes
    now: str
    source: str

    @property
    def name(self):
        return (self.file, self.function, self.was, self.now)


def tokens_of(source):
    """Without comments, and without preprocessor lines other than definitions of values."""
    skipped = [match.span() for match in re.finditer(r"^#(?!define \w+ )(?:[^\n]|\\\n)*", source, re.M)]
    tokens = [Token(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(source)]
    return [
        token
        for token in tokens
        if token.kind != "blank" and not any(start <= token.at < end for start, end in skipped)
    ]


def closing(tokens, i):
    """Index of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text in "([{") - (tokens[j].text in ")]}")
        if depth == 0:
            return j
    raise ValueError("unbalanced brackets")


def edits_of(source):
    """(start, end, replacement) of every fault."""
    tokens = tokens_of(source)
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else token
        if token.kind == "number":
            digits = token.text.rstrip("uUlL")
            suffix = token.text[len(digits) :]
            value = int(digits, 0)
            for other in (value + 1, value - 1):
                if other >= 0:
                    yield token.at, token.end, f"{other}{suffix}"
        elif token.kind == "sign" and token.text in SWAPS:
            operand = (before.kind in ("number", "word") and before.text not in KEYWORDS) or before.text in (")", "]")
            if token.text not in BINARY_ONLY or operand:
                for other in SWAPS[token.text]:
                    yield token.at, token.end, other
        elif token.text in ("if", "while") and tokens[i + 1].text == "(":
            end = tokens[closing(tokens, i + 1)]
            yield tokens[i + 1].end, end.at, f"!({source[tokens[i + 1].end : end.at]})"
        elif token.text == "?":
            yield from swapped_branches(source, tokens, i)
    yield from removed_statements(source, tokens)


def swapped_branches(source, tokens, i):
    depth, colon = 0, None
    for j in range(i + 1, len(tokens)):
        text = tokens[j].text
        if text in "([{":
            depth += 1
        elif depth == 0 and text == ":" and colon is None:
            colon = j
        elif depth == 0 and text in (")", "]", "}", ",", ";", ":"):
            first = source[tokens[i].end : tokens[colon].at]
            second = source[tokens[colon].end : tokens[j].at]
            yield tokens[i].end, tokens[j].at, f"{second} :{first}"
            return
        elif text in ")]}":
            depth -= 1


def removed_statements(source, tokens):
    """Expression statements, break, continue and return without a value become empty."""
    depth = 0  # of round brackets: the parts of a for are no statements
    for i in range(1, len(tokens)):
        depth += (tokens[i - 1].text == "(") - (tokens[i - 1].text == ")")
        starts = depth == 0 and tokens[i - 1].text in (";", "{", "}", "else", "do", ")")
        if starts and tokens[i].kind == "word" and tokens[i].text not in KEYWORDS - {"break", "continue", "return"}:
            j = i
            while j < len(tokens) and tokens[j].text not in (";", "{", "}"):
                j = closing(tokens, j) + 1 if tokens[j].text in ("(", "[") else j + 1
                if j < len(tokens) and tokens[j].text == ")":
                    break
            declared = j > i + 1 and tokens[i + 1].kind == "word"
            if j < len(tokens) and tokens[j].text == ";" and not declared and tokens[i].text not in ("struct", "enum"):
                yield tokens[i].at, tokens[j].at, ""


def function_at(source, at):
    """Name of the function or table that holds a place."""
    name = "-"
    for match in re.finditer(r"^(?:[a-z].*?)?(\w+)(?:\(|\[.*\] = \{| = \{)", source, re.M):
        if match.start() > at:
            break
        name = match.group(1)
    return name


def line_at(text, at):
    return " ".join(text[text.rfind("\n", 0, at) + 1 : (text + "\n").find("\n", at)].split())


def mutants_of(path, root):
    source = path.read_text(encoding="utf-8")
    for start, end, text in edits_of(source):
        was, mutated = line_at(source, start), source[:start] + text + source[end:]
        if "unused" not in was:  # padding
            yield Mutant(str(path.relative_to(root)), function_at(source, start), was, line_at(mutated, start), mutated)


# Runs


def fingerprint(text):
    """Of what the compiler sees: comments and spaces do not count."""
    return hashlib.sha256("\0".join(token.text for token in tokens_of(text)).encode()).hexdigest()


class Known:
    """Verdicts of earlier runs. More tests cannot lose a mutant that was found, so only survivors are tried again."""

    def __init__(self, path, sources):
        self.path = path
        self.prints = {source: fingerprint(source.read_text(encoding="utf-8")) for source in sources}
        self.verdicts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def key(self, mutant):
        """Of the mutant and of all it is compiled with."""
        others = [
            print_
            for source, print_ in self.prints.items()
            if str(source.relative_to(CORE)) != mutant.file and (source.suffix == ".h" or mutant.file.endswith(".h"))
        ]
        return hashlib.sha256(" ".join([mutant.file, fingerprint(mutant.source), *others]).encode()).hexdigest()

    def save(self):
        self.path.write_text(json.dumps(self.verdicts), encoding="utf-8")


def run_quietly(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True).returncode == 0


def how_it_fails(command, cwd):
    """None when the command succeeds."""
    done = subprocess.run(["prlimit", f"--cpu={HANGS_S}", *command], cwd=cwd, capture_output=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hangs"
    return None if done.returncode == 0 else "fails"


class Build:
    """One way to compile the core and its tests; the core is a library, so a mutant costs one object and one link."""

    def __init__(self, bench, name, options, tests):
        self.bench, self.name, self.options = bench, name, options
        self.path = bench.path / name
        self.path.mkdir()
        self.compiled = all(self.compile(source) for source in bench.sources)
        self.originals = {source: self.object(source).read_bytes() for source in bench.sources}
        self.link()
        for test in tests:
            self.compile_test(test)

    def compile_test(self, test):
        command = ["gcc", "-std=c11", "-w", *self.options, "-Iinclude", "-Isrc", str(CORE / "tests" / f"{test}.c")]
        command += [f"-L{self.name}", "-lcore", "-Wl,-rpath,$ORIGIN", "-o", f"{self.name}/{test}"]
        subprocess.run(command, cwd=self.bench.path, check=True)

    def object(self, source):
        return self.path / f"{source}.o"

    def compile(self, source):
        command = [*COMPILE, *self.options, "-fPIC", "-Iinclude", "-c", f"src/{source}", "-o", str(self.object(source))]
        return run_quietly(command, self.bench.path)

    def link(self):
        objects = [str(self.object(source)) for source in self.bench.sources]
        command = ["gcc", *self.options, "-shared", *objects, "-o", f"{self.name}/libcore.so"]
        subprocess.run(command, cwd=self.bench.path, check=True)

    def digest(self, sources):
        return hashlib.sha256(b"".join(self.object(source).read_bytes() for source in sources)).hexdigest()

    def restore(self, sources):
        for source in sources:
            self.object(source).write_bytes(self.originals[source])

    def fails(self, test, arguments):
        return how_it_fails([f"{self.name}/{test}", *arguments], self.bench.path)


class Bench:
    """A copy of the core in which one mutant after the other is built and tested."""

    def __init__(self, number):
        self.path = BUILD / str(number)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        shutil.copytree(CORE / "src", self.path / "src")
        shutil.copytree(CORE / "include", self.path / "include")
        self.sources = sorted(path.name for path in (self.path / "src").glob("*.c"))
        self.plain = Build(self, "plain", ["-O2"], ("replay", "property", "limits"))
        self.sanitized = Build(self, "sanitized", ["-O1", *SANITIZE], ("replay", "limits"))
        shutil.copytree(ROOT / "vectors", self.path / "vectors")
        self.vectors = [str(path) for path in sorted((self.path / "vectors").glob("*/*.vec"))]

    def users_of(self, file):
        """The sources to compile when a file has changed."""
        if file.endswith(".c"):
            return [pathlib.Path(file).name]
        headers, grown = {pathlib.Path(file).name}, True
        texts = {path.name: path.read_text(encoding="utf-8") for path in self.path.rglob("*.[ch]")}
        while grown:
            found = {
                n
                for n, text in texts.items()
                if any(re.search(rf'#include ["<](?:linkweir/)?{h}[">]', text) for h in headers)
            }
            grown = not found <= headers
            headers |= found
        return [source for source in self.sources if source in headers]

    def test(self):
        """How a mutant was found: vectors, lives, limits, hangs; or survived."""
        self.plain.link()
        for how, test, arguments in (
            ("vectors", "replay", self.vectors),
            ("lives", "property", LIVES),
            ("limits", "limits", ()),
        ):
            failed = self.plain.fails(test, arguments)
            if failed:
                return "hangs" if failed == "hangs" else how
        return "survived"

    def test_sanitized(self, sources):
        """The same again with AddressSanitizer and UBSan, which see what the answers do not show."""
        try:
            if not all(self.sanitized.compile(source) for source in sources):
                return "survived"
            self.sanitized.link()
            failed = self.sanitized.fails("replay", self.vectors) or self.sanitized.fails("limits", ())
            return "sanitizers" if failed else "survived"
        finally:
            self.sanitized.restore(sources)

    def run(self, mutant, seen, known):
        key = known.key(mutant)
        if key in known.verdicts:
            return known.verdicts[key]
        how = self.try_out(mutant, seen)
        if how != "survived":  # a survivor may be found by a test that is new
            known.verdicts[key] = how
        return how

    def try_out(self, mutant, seen):
        place = self.path / mutant.file
        original = place.read_text(encoding="utf-8")
        sources = self.users_of(mutant.file)
        before = self.plain.digest(sources)
        tested_inline = mutant.file in ARITHMETIC
        place.write_text(mutant.source, encoding="utf-8")
        try:
            if not all(self.plain.compile(source) for source in sources):
                return "invalid"
            digest = self.plain.digest(sources)
            if digest == before:
                return "identical"
            if seen.setdefault((mutant.file, digest), mutant) is not mutant:
                return "repeated"
            if tested_inline:
                self.plain.compile_test("property")
            how = self.test()
            return self.test_sanitized(sources) if how == "survived" else how
        finally:
            place.write_text(original, encoding="utf-8")
            self.plain.restore(sources)
            if tested_inline:
                self.plain.compile_test("property")


def explanations():
    """{name of a mutant: why it may survive}; an entry may stand for several replacements of one line."""
    why = {}
    if EXPLANATIONS.exists():
        for entry in tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8")).get("mutant", []):
            for now in entry["now"]:
                why[(entry["file"], entry["function"], entry["was"], now)] = entry["why"]
    return why


ABOUT = """
`make mutate` puts one small fault at a time into the sources of the core: a relation, an operator, a constant by one, a
negated condition, swapped branches, a statement left out. Mutants that do not compile, or compile to the same object
code as the original or as another mutant, do not count. The others face all vectors, then random lives of all policies,
then the limits of the contract, then the same with AddressSanitizer and UBSan; one that hangs is found too. Survivors
are explained in `core/tests/mutants.toml`; one without explanation fails the run.
"""
HOW = ("vectors", "lives", "limits", "sanitizers", "hangs", "survived")


def report(counts, survivors, why):
    lines = [
        "# Mutation tests of the core",
        "",
        *textwrap.wrap(ABOUT, 118),
        "",
        "| source | mutants | by vectors | by lives | at limits | by sanitizers | by hanging | survived, explained |",
        "|---|---|---|---|---|---|---|---|",
    ]
    total = Counter()
    for file in sorted(counts):
        count = counts[file]
        total.update(count)
        lines.append(
            f"| `{file}` | {sum(count[how] for how in HOW)} | " + " | ".join(str(count[how]) for how in HOW) + " |"
        )
    lines.append(f"| all | {sum(total[how] for how in HOW)} | " + " | ".join(str(total[how]) for how in HOW) + " |")
    lines += ["", "## Survivors", ""]
    by_why = {}
    for mutant in survivors:
        by_why.setdefault((mutant.file, why[mutant.name]), []).append(mutant)
    for (file, reason), mutants in sorted(by_why.items(), key=lambda item: item[0]):
        lines += [f"**`{file}`**: {reason}", ""]
        lines += [f"* `{m.function}`: `{m.was}` → `{m.now or '(nothing)'}`" for m in mutants]
        lines.append("")
    REPORT.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--resume", action="store_true", help="try only what earlier runs on the same sources did not find"
    )
    parser.add_argument("file", nargs="*", help="names of sources; all when none is given")
    arguments = parser.parse_args()
    paths = [*sorted(CORE.glob("src/*.[ch]")), CORE / "include" / "linkweir" / "math.h"]
    chosen = [path for path in paths if not arguments.file or path.name in arguments.file]
    mutants = [mutant for path in chosen for mutant in mutants_of(path, CORE)]
    benches = queue.Queue()
    for number in range(WORKERS):
        benches.put(Bench(number))
    first = benches.get()
    if first.test() != "survived":
        sys.exit("the original does not pass its tests")
    benches.put(first)
    known = Known(BUILD / "known.json", [*paths, *sorted((CORE / "include" / "linkweir").glob("po*.h"))])
    if not arguments.resume:
        known.verdicts.clear()
    seen, counts, survivors, done = {}, {}, [], 0
    why, failed = explanations(), False

    def run(mutant):
        bench = benches.get()
        try:
            return mutant, bench.run(mutant, seen, known)
        finally:
            benches.put(bench)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for mutant, how in pool.map(run, mutants):
            counts.setdefault(mutant.file, Counter())[how] += 1
            done += 1
            if done % 50 == 0:
                known.save()
            if how == "survived":
                survivors.append(mutant)
                if mutant.name not in why:
                    failed = True
                    print(
                        f"survived, not explained: {mutant.file} {mutant.function}\n"
                        f"  was {mutant.was}\n  now {mutant.now}",
                        flush=True,
                    )
            if sys.stderr.isatty():
                print(f"\r{done}/{len(mutants)}, {len(survivors)} survived", end="", file=sys.stderr)
    known.save()
    for name in set(why) - {mutant.name for mutant in survivors}:
        if name[0] in {str(path.relative_to(CORE)) for path in chosen}:
            failed = True
            print(f"explained, but found or gone: {name[0]} {name[1]}\n  was {name[2]}\n  now {name[3]}")
    for file, count in sorted(counts.items()):
        print(file, dict(sorted(count.items())))
    if not failed and not arguments.file:
        report(counts, survivors, why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
