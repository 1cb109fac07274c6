# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Mutation tests of the core: changes one small thing in the sources at a time; the tests must notice each change.

    python core/tests/mutate.py [FILE ...]              all sources, or those named (pss.c, math.h)
    python core/tests/mutate.py --resume [FILE ...]     tries only what earlier runs on the same sources did not find
    python core/tests/mutate.py --stale                 lists the files whose line in the record is missing or old

A mutant changes one operator, constant, condition or statement. Those that do not compile, or compile to the object
code of the original or of another mutant, are left out. The rest run the tests of the policies that the file is
compiled into, the fastest first: vectors, random lives, limits of the contract, sanitizers. Every mutant that survives
must be explained in mutants.toml, and every explanation there must belong to a survivor; otherwise the run fails.
Files are tried in the order in which they are named, or those with few mutants first. When a file is done and its
survivors are all explained, it gets its line in docs/records/mutation.md, with a hash of the code it was run on; a run
that is interrupted keeps these lines.
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
REPORT = ROOT / "docs" / "records" / "mutation.md"
LIVES = ("1", "20")  # seeds of the random lives
ARITHMETIC = ("include/linkweir/math.h", "src/soft.h")  # property.c calls it itself
HANGS_S = 10  # of processor time, so a busy machine changes nothing; no test takes more than two
REPLAY_HANGS_S = 2  # the same for the vectors of one policy, which take a tenth of a second

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
    return hashlib.sha256(
        "\0".join(m.group() for m in TOKEN.finditer(text) if m.lastgroup != "blank").encode()
    ).hexdigest()


class Sources:
    """The files of the core by name, and what each includes."""

    def __init__(self):
        paths = [*CORE.glob("src/*.[ch]"), *CORE.glob("include/linkweir/*")]
        self.texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
        self.codes = {}

    def included(self, name):
        """The file and all that it includes, directly or not."""
        found, waiting = set(), [name]
        while waiting:
            name = waiting.pop()
            if name in self.texts and name not in found:
                found.add(name)
                waiting += re.findall(r'#include ["<](?:linkweir/)?([\w.]+)[">]', self.texts[name])
        return found

    def users(self, name):
        """The sources to compile when a file has changed."""
        return sorted(user for user in self.texts if user.endswith(".c") and name in self.included(user))

    def code(self, name):
        """A hash of the file and of all it is compiled with, without macros that none of it uses."""
        if name not in self.codes:
            self.codes[name] = self.hash_of(name)
        return self.codes[name]

    def hash_of(self, name):
        files = sorted({name}.union(*(self.included(user) for user in self.users(name))))
        text = "\n".join(self.texts[file] for file in files)
        words = Counter(token.group() for token in TOKEN.finditer(text) if token.lastgroup == "word")
        define = re.compile(r"^#define (\w+)(?:[^\n\\]|\\\n|\\)*\n", re.M)
        return fingerprint(define.sub(lambda macro: "" if words[macro[1]] == 1 else macro[0], text))

    def policies(self, name):
        """The policies that are compiled with the file."""
        users = {pathlib.Path(user).stem for user in self.users(name)}
        everyone = set(with_vectors())
        return sorted(everyone if name == "policies.c" else users & everyone)


class Known:
    """Verdicts of earlier runs. More tests cannot lose a mutant that was found; survivors are tried again when the
    tests have changed."""

    def __init__(self, path, sources):
        self.path = path
        self.sources = sources
        self.verdicts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.tests = {}

    def key(self, mutant):
        """Of the mutant and of all it is compiled with."""
        code = self.sources.code(pathlib.Path(mutant.file).name)
        return hashlib.sha256(f"{mutant.file} {fingerprint(mutant.source)} {code}".encode()).hexdigest()

    def tests_of(self, mutant):
        """A hash of the tests that the mutant faces."""
        if mutant.file not in self.tests:
            policies = self.sources.policies(pathlib.Path(mutant.file).name)
            paths = [path for policy in policies for path in sorted((ROOT / "vectors" / policy).glob("*.vec"))]
            paths += sorted((CORE / "tests").glob("*.[ch]"))
            self.tests[mutant.file] = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
        return self.tests[mutant.file]

    def recall(self, mutant):
        """(how it was found, hash of its object code), or None."""
        how, code, tests = self.verdicts.get(self.key(mutant), (None, None, None))
        return None if how is None or (how == "survived" and tests != self.tests_of(mutant)) else (how, code)

    def keep(self, mutant, how, code):
        self.verdicts[self.key(mutant)] = (how, code, self.tests_of(mutant))

    def save(self):
        self.path.write_text(json.dumps(self.verdicts), encoding="utf-8")


def with_vectors():
    """The policies, by the folders that have vectors of them; `queues` has lives of the queues around a policy."""
    return sorted({path.parent.name for path in (ROOT / "vectors").glob("*/*.vec")})


def run_quietly(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True).returncode == 0


def how_it_fails(command, cwd, seconds):
    """None when the command succeeds."""
    done = subprocess.run(["prlimit", f"--cpu={seconds}", *command], cwd=cwd, capture_output=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hangs"
    return None if done.returncode == 0 else "fails"


class Build:
    """One way to compile the core and its tests; the core is a library, so a mutant costs one object and one link."""

    def __init__(self, bench, name, options, tests):
        self.bench, self.name, self.options = bench, name, options
        self.path = bench.path / name
        if not self.path.exists():  # the bench is no copy
            self.path.mkdir()
            for source in bench.sources:
                self.compile(source)
            self.link()
            for test in tests:
                self.compile_test(test)
        self.originals = {source: self.object(source).read_bytes() for source in bench.sources}

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

    def changed(self, source):
        return self.object(source).read_bytes() != self.originals[source]

    def digest(self, sources):
        return hashlib.sha256(b"".join(self.object(source).read_bytes() for source in sources)).hexdigest()

    def restore(self, sources):
        for source in sources:
            self.object(source).write_bytes(self.originals[source])

    def fails(self, test, arguments, seconds=HANGS_S):
        return how_it_fails([f"{self.name}/{test}", *arguments], self.bench.path, seconds)


class Bench:
    """A copy of the core, or of another bench, in which one mutant after the other is built and tested."""

    def __init__(self, number, known, other=None):
        self.path = BUILD / str(number)
        shutil.rmtree(self.path, ignore_errors=True)
        if other:
            shutil.copytree(other.path, self.path)
        else:
            self.path.mkdir(parents=True)
            shutil.copytree(CORE / "src", self.path / "src")
            shutil.copytree(CORE / "include", self.path / "include")
            shutil.copytree(ROOT / "vectors", self.path / "vectors", ignore=shutil.ignore_patterns(".random-*"))
        self.known = known
        self.sources = sorted(path.name for path in (self.path / "src").glob("*.c"))
        self.quick = Build(self, "quick", ["-O0"], ("replay",))
        self.plain = Build(self, "plain", ["-O2"], ("property", "limits"))
        self.sanitized = Build(self, "sanitized", ["-O1", *SANITIZE], ("replay", "limits"))

    def vectors(self, policies):
        return [str(path) for policy in policies for path in sorted((self.path / "vectors" / policy).glob("*.vec"))]

    def passes(self):
        policies = with_vectors()
        return not (
            any(self.quick.fails("replay", self.vectors([policy]), REPLAY_HANGS_S) for policy in policies)
            or self.plain.fails("property", LIVES)
            or self.plain.fails("limits", ())
            or self.sanitized.fails("replay", self.vectors(policies))
            or self.sanitized.fails("limits", ())
        )

    def replay(self, file, sources, policies, seen):
        """Runs the vectors: (how the mutant was found, hash of its code), or (None, "") if they find nothing."""
        compiled = []
        for source in sources:
            if not self.quick.compile(source):
                return "invalid", ""
            if not self.quick.changed(source):
                continue
            compiled.append(source)
            code = f"{file} {compiled} {self.quick.digest(compiled)}"
            if code in seen:
                return "repeated", ""
            self.quick.link()
            tested = policies if source == "policies.c" else [pathlib.Path(source).stem]
            failed = self.quick.fails("replay", self.vectors(tested), REPLAY_HANGS_S * len(tested))
            if failed:
                return "hangs" if failed == "hangs" else "vectors", code
        return (None, "") if compiled else ("identical", "")

    def live(self, policies):
        """Runs the random lives and the limits of the contract."""
        self.plain.link()
        for how, test, arguments in (("lives", "property", LIVES), ("limits", "limits", ())):
            failed = self.plain.fails(test, [*arguments, *policies])
            if failed:
                return "hangs" if failed == "hangs" else how
        return "survived"

    def sanitize(self, sources, policies):
        """Vectors and limits again with AddressSanitizer and UBSan, which see what the answers do not show."""
        if not all(self.sanitized.compile(source) for source in sources):
            return "survived"
        self.sanitized.link()
        failed = self.sanitized.fails("replay", self.vectors(policies)) or self.sanitized.fails("limits", policies)
        return "sanitizers" if failed else "survived"

    def run(self, mutant, seen):
        """(how the mutant was found, hash of its object code), remembered or tried out."""
        how, code = self.known.recall(mutant) or self.try_out(mutant, seen)
        if code:
            seen.add(code)
        self.known.keep(mutant, how, code)
        return how, code

    def try_out(self, mutant, seen):
        """(how it was found, hash of its object code)"""
        place, name = self.path / mutant.file, pathlib.Path(mutant.file).name
        original = place.read_text(encoding="utf-8")
        sources, policies = self.known.sources.users(name), self.known.sources.policies(name)
        tested_inline = False
        place.write_text(mutant.source, encoding="utf-8")
        try:
            how, code = self.replay(mutant.file, sources, policies, seen)
            if how:
                return how, code
            if not all(self.plain.compile(source) for source in sources):
                return "invalid", ""
            if not any(self.plain.changed(source) for source in sources):
                return "identical", ""
            code = f"{mutant.file} {self.plain.digest(sources)}"
            if code in seen:
                return "repeated", ""
            tested_inline = mutant.file in ARITHMETIC
            if tested_inline:
                self.plain.compile_test("property")
            how = self.live(policies)
            return self.sanitize(sources, policies) if how == "survived" else how, code
        finally:
            place.write_text(original, encoding="utf-8")
            for build in (self.quick, self.plain, self.sanitized):
                build.restore(sources)
            if tested_inline:
                self.plain.compile_test("property")


def verdicts(mutants, benches, seen):
    """(mutant, how it was found) of each mutant in turn, as many at a time as there are benches in the queue.

    `seen` saves trying a mutant whose object code was tried before. It does not know of those that are being tried at
    the moment, so the codes are compared again here, where one verdict comes after the other.
    """
    counted = set()

    def run(mutant):
        bench = benches.get()
        try:
            return mutant, *bench.run(mutant, seen)
        finally:
            benches.put(bench)

    with concurrent.futures.ThreadPoolExecutor(benches.qsize()) as pool:
        for mutant, how, code in pool.map(run, mutants):
            yield mutant, "repeated" if code in counted else how
            counted.update({code} - {""})


def explanations():
    """{name of a mutant: why it may survive}; an entry may list several replacements of one line."""
    why = {}
    if EXPLANATIONS.exists():
        for entry in tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8")).get("mutant", []):
            for now in entry["now"]:
                why[(entry["file"], entry["function"], entry["was"], now)] = entry["why"]
    return why


ABOUT = """
`make mutate` changes the sources of the core in one small way at a time: a relation, an operator, a constant by one,
a negated condition, swapped branches, a statement left out. A changed source is a mutant. The tests should fail for
each mutant; a mutant that passes all of them is a survivor. Mutants that do not compile are not counted, nor are
those that compile to the same object code as the original or as another mutant. The others run the tests of each
policy that includes the file, in this order: vectors, random operations ("lives"), the limits of the contract, then
vectors and limits with AddressSanitizer and UBSan. A mutant that hangs counts as found. `core/tests/mutants.toml`
explains why each survivor changes nothing that matters; a survivor without explanation fails the run.
"""
CODE = """
Each line of the table names the code it was measured on, by the first digits of a hash of the source and of all that
is compiled with it. `python3 core/tests/mutate.py --stale` lists the files whose line is missing or was measured on
older code. A file without figures has not been run to its end, or has survivors without explanation.
"""
HOW = ("vectors", "lives", "limits", "sanitizers", "hangs", "survived")
CELLS = (
    "source",
    "code",
    "mutants",
    "found by vectors",
    "by lives",
    "by limits",
    "by sanitizers",
    "by hanging",
    "survivors, all explained",
)


def recorded():
    """{file: cells of its line in the record}"""
    rows = {}
    for line in REPORT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == len(CELLS) and cells[1]:
            rows[cells[0].strip("`")] = cells[1:]
    return rows


def stale(sources, paths):
    """The files whose line in the record is missing or of older code."""
    rows = recorded()
    names = [str(path.relative_to(CORE)) for path in paths]
    return [name for name in names if name not in rows or rows[name][0] != sources.code(pathlib.Path(name).name)[:8]]


def report(sources, paths, counts, why):
    """Writes the lines of the files in `counts`; the others stay as they are."""
    rows = recorded()
    for file, count in counts.items():
        numbers = [sum(count[how] for how in HOW), *(count[how] for how in HOW)]
        rows[file] = [sources.code(pathlib.Path(file).name)[:8], *map(str, numbers)]
    names = [str(path.relative_to(CORE)) for path in paths]
    lines = [
        "# Mutation tests of the core",
        "",
        *textwrap.wrap(ABOUT.strip(), 118),
        "",
        *textwrap.wrap(CODE.strip(), 118),
        "",
    ]
    lines += ["| " + " | ".join(CELLS) + " |", "|---" * len(CELLS) + "|"]
    empty = [""] * (len(CELLS) - 1)
    lines += [f"| `{name}` | " + " | ".join(rows.get(name, empty)) + " |" for name in sorted(names)]
    sums = (sum(int(rows[name][i]) for name in names if name in rows) for i in range(1, len(CELLS) - 1))
    lines += ["| all | | " + " | ".join(map(str, sums)) + " |", "", "## Survivors", ""]
    by_why = {}
    for (file, function, was, now), reason in why.items():
        by_why.setdefault((file, reason), []).append(f"* `{function}`: `{was}` → `{now or '(nothing)'}`")
    for (file, reason), mutants in sorted(by_why.items()):
        lines += [f"**`{file}`**: {reason}", "", *mutants, ""]
    REPORT.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def judge(file, verdicts, total, why, known):
    """How many mutants of a file were found by what, and whether its survivors are those that `why` explains."""
    count, survivors, repeated = Counter(), set(), set()
    for done, (mutant, how) in enumerate(verdicts, 1):
        count[how] += 1
        if done % 50 == 0:
            known.save()
        if how == "repeated":  # of two with the same object code, either may have come first
            repeated.add(mutant.name)
        if how == "survived":
            survivors.add(mutant.name)
            if mutant.name not in why:
                print(
                    f"survived, not explained: {file} {mutant.function}\n  was {mutant.was}\n  now {mutant.now}",
                    flush=True,
                )
        if sys.stderr.isatty():
            print(f"\r{file} {done}/{total}, {len(survivors)} survived ", end="", file=sys.stderr)
    known.save()
    gone = sorted(name for name in set(why) - survivors - repeated if name[0] == file)
    for _, function, was, now in gone:
        print(f"explained, but found or gone: {file} {function}\n  was {was}\n  now {now}", flush=True)
    return count, not gone and survivors <= set(why)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--resume", action="store_true", help="try only what earlier runs on the same sources did not find"
    )
    parser.add_argument(
        "--stale", action="store_true", help="list the files whose line in the record is missing or of older code"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time (default: 2)")
    parser.add_argument("file", nargs="*", help="names of sources; all when none is given")
    arguments = parser.parse_args()
    paths = [*sorted(CORE.glob("src/*.[ch]")), CORE / "include" / "linkweir" / "math.h"]
    unknown = set(arguments.file) - {path.name for path in paths}
    if unknown:
        parser.error(f"no source of the core is called {', '.join(sorted(unknown))}")
    subprocess.run(["sh", ROOT / "vectors/make.sh"], check=True)
    sources = Sources()
    if arguments.stale:
        print("\n".join(stale(sources, paths)))
        return 0
    if arguments.file:
        files = [list(mutants_of(path, CORE)) for name in arguments.file for path in paths if path.name == name]
    else:
        files = sorted((list(mutants_of(path, CORE)) for path in paths), key=len)
    known = Known(BUILD / "known.json", sources)
    if not arguments.resume:
        known.verdicts.clear()
    benches = queue.Queue()
    first = Bench(0, known)
    if not first.passes():
        sys.exit("the original does not pass its tests")
    benches.put(first)
    for number in range(1, arguments.workers):
        benches.put(Bench(number, known, first))
    seen, faulty = set(), set()
    for mutants in filter(None, files):
        file, why = mutants[0].file, explanations()
        count, explained = judge(file, verdicts(mutants, benches, seen), len(mutants), why, known)
        print(file, dict(sorted(count.items())), flush=True)
        if explained:
            report(sources, paths, {file: count}, why)
        else:
            faulty.add(file)
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
