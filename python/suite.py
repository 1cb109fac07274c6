#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make test` and `make check`: runs the parts two at a time and ends with one table: part, tests, seconds.

    python/suite.py test|check [PART...]

What a part prints is in build/suite/PART.log. After the table come what was not checked, and of each part that failed
the end of its log. The parts of a lane run one after another; the two lanes share the cores, as each of them leaves a
core idle at times (virtual machines, the linker, gateways in real time).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build/suite"
PYTEST = f"{sys.executable} -m pytest -rs --dist loadfile --no-loadscope-reorder --durations=10"
# More threads than there are cores: the tests of the gateway mostly wait for what happens in their namespaces.
RUST = "cargo test --locked --workspace --quiet --no-fail-fast -- --skip long:: --test-threads 4"
PASSED = r"^(?:test result: \w+\. |\d+ failed, )?(\d+) passed"
HAS_SITE = sys.version_info >= (3, 11)
SITE = "make site" if HAS_SITE else "echo 'site: NOT CHECKED: make site, which needs Python 3.11'"
LAST_LINES = 60
UNCHECKED = re.compile(r"\bNOT [A-Z]{2,}|\bNO [A-Z]{2,}|^SKIPPED \[")
INSTALLS = "setup: installing with apt-get"
FAILURES = re.compile(r"^(?:=+ (?:FAILURES|ERRORS) =+|failures:)$", re.MULTILINE)
"""Where the report of failures begins in what pytest and Rust's tests print."""


@dataclass(frozen=True)
class Part:
    """Commands of one line in the table.

    Attributes:
        name: of the line, and of the log.
        command: for the shell.
        tests: pattern of a line that counts tests; its groups are added.
        optional: a failure is only named as something that was not checked.
    """

    name: str
    command: str
    tests: str = ""
    optional: bool = False


SUITES: dict[str, tuple[tuple[Part, ...], ...]] = {
    "test": (
        (
            Part("lab", "make lab", optional=True),
            Part("kernel", "make -C kernel test", r"^\S+: (\d+) checks held"),
            Part("core", "make -j 2 -C core check", r"^(\d+) (?:files, 0 bad|lives of the corpus held)"),
            Part("proofs", "make -C core prove-quick", r"^rocq \S+ +(\d+) theorems"),
            Part("site", SITE, r"^site: (\d+) pages are in order"),
            # More processes than there are cores: these tests often wait, for gateways in real time, other processes, a
            # browser. They give way to Rust's, of which more are in real time.
            Part("python", f'nice -n 5 {PYTEST} -n 4 -m "not long" oracle python/tests', PASSED),
        ),
        (Part("rust", RUST, PASSED),),
    ),
    "check": (
        (
            Part("lint", "make lint"),
            Part("core", "make -C core quick", r"^(\d+) (?:files, 0 bad|lives of the corpus held)"),
            Part("python", f'nice -n 5 {PYTEST} -n 2 -m "not slow and not long" oracle python/tests', PASSED),
        ),
        (Part("rust", f"{RUST} --skip slow::", PASSED),),
    ),
}


@dataclass
class Result:
    """How a part went."""

    part: Part
    code: int
    seconds: float
    processor_seconds: float
    text: str

    @property
    def failed(self) -> bool:
        """Whether the suite fails because of it."""
        return self.code != 0 and not self.part.optional

    @property
    def tests(self) -> int:
        """How many tests it counted."""
        found = re.findall(self.part.tests, self.text, re.MULTILINE) if self.part.tests else []
        return sum(map(int, found))

    @property
    def without_tests(self) -> bool:
        """Whether it ended well without a single test, though it has some."""
        return self.code == 0 and bool(self.part.tests) and self.tests == 0

    def unchecked(self) -> list[str]:
        """The lines that name what was not checked; one more if nothing was."""
        lines = unchecked_in(self.text)
        if self.code and self.part.optional:
            lines.append(f"NOT DONE, exit code {self.code}: {self.part.command}; see {log_of(self.part)}")
        if self.without_tests and not lines:
            lines.append(f"NOT TESTED: {self.part.command} counted no test; see {log_of(self.part)}")
        return lines

    def failures(self) -> str:
        """The report of failures in the log, or else its end."""
        begun = FAILURES.search(self.text)
        return self.text[begun.start() :] if begun else "\n".join(self.text.splitlines()[-LAST_LINES:])


@dataclass
class Suite:
    """Parts being run."""

    lanes: tuple[tuple[Part, ...], ...]
    results: list[Result] = field(default_factory=list)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    stopped: bool = False
    error: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Runs all parts. An interrupt, or an error such as a full disk, ends those that run."""
        LOGS.mkdir(parents=True, exist_ok=True)
        threads = [threading.Thread(target=self._lane, args=(lane,), daemon=True) for lane in self.lanes]
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, lambda number, _: sys.exit(128 + number))
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(1)  # a signal just before an endless wait would go unnoticed
        finally:
            self._stop()
        if self.error:
            raise self.error

    def _stop(self) -> None:
        with self.lock:  # no part is begun at this moment
            self.stopped = True
            for process in self.running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    def _lane(self, lane: tuple[Part, ...]) -> None:
        try:
            for part in lane:
                self._part(part)
        except Exception as error:
            self.error = error
            self._stop()

    def _part(self, part: Part) -> None:
        begun = time.monotonic()
        with log_of(part).open("wb") as log:
            with self.lock:
                if self.stopped:
                    return
                process = subprocess.Popen(
                    ["sh", "-c", part.command],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self.running[part.name] = process
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            del self.running[part.name]
        text = log_of(part).read_text(errors="replace")
        seconds = time.monotonic() - begun
        self.results.append(Result(part, process.returncode, seconds, used.ru_utime + used.ru_stime, text))
        if not self.stopped:
            print(row(self.results[-1]), flush=True)


def log_of(part: Part) -> Path:
    """The file with what the part printed."""
    return LOGS / f"{part.name}.log"


def row(result: Result) -> str:
    """A line of the table."""
    said = "not checked" if result.without_tests else "passed"
    if result.code:
        said = "FAILED" if result.failed else "not done"
    tests = str(result.tests) if result.part.tests else "-"
    return f"{result.part.name:10} {tests:>7} {result.seconds:8.0f} {result.processor_seconds:11.0f}   {said}"


def unchecked_in(text: str) -> list[str]:
    """The lines that name what was not checked. After installing packages, setup.sh names those still missing."""
    lines = dict.fromkeys(text.splitlines())
    missing = "setup: continuing without:" if INSTALLS in lines else "setup: missing:"
    return [line for line in lines if UNCHECKED.search(line) or line.startswith(missing)]


def report(suite: str, parts: int, results: list[Result], setup: str, seconds: float) -> int:
    """Prints what so many parts of the suite found; the exit code."""
    failed = [result for result in results if result.failed]
    unchecked = dict.fromkeys(unchecked_in(setup), "setup")
    unchecked |= {line: result.part.name for result in results for line in result.unchecked()}
    processor_s = sum(result.processor_seconds for result in results)
    tests = sum(result.tests for result in results)
    print(f"\n{'part':10} {'tests':>7} {'seconds':>8} {'processor s':>11}")
    for result in results:
        print(row(result))
    print(f"{'all':10} {tests:7} {seconds:8.0f} {processor_s:11.0f}")
    if unchecked:
        print("\nNot checked here:")
        for line, part in unchecked.items():
            print(f"  {part}: {line.strip()}")
    for result in failed:
        print(f"\n--- {result.part.name} failed, exit code {result.code}: {result.part.command}; {log_of(result.part)}")
        print(result.failures())
    if failed or len(results) < parts:
        names = ", ".join(result.part.name for result in failed) or "a part did not run"
        print(f"\n{suite}: FAILED: {names}")
        return 1
    whole = parts == sum(map(len, SUITES[suite]))
    passed = "all" if whole else " and ".join(result.part.name for result in results)
    but = f"; what was not checked is listed above ({len(unchecked)})" if unchecked else ""
    print(f"\n{suite}: {passed} passed: {tests} tests in {seconds:.0f} s{but}")
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these")
    asked = parser.parse_args()
    lanes = SUITES[asked.suite]
    unknown = set(asked.parts) - {part.name for lane in lanes for part in lane}
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    if asked.parts:
        lanes = tuple(tuple(part for part in lane if part.name in asked.parts) for lane in lanes)
    os.environ.pop("MAKEFLAGS", None)  # each part has jobs of its own
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the package again
    if not (ROOT / "target/debug/incremental").exists():
        # Incremental compilation makes a first build an eighth slower; it stays where cargo has begun it.
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
    begun = time.monotonic()
    setup = subprocess.run(["./setup.sh", asked.suite], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(setup.stdout, end="", flush=True)
    if setup.returncode:
        return setup.returncode
    suite = Suite(lanes)
    print(f"{asked.suite}: what the parts print is in {LOGS.relative_to(ROOT)}", flush=True)
    try:
        suite.run()
    except KeyboardInterrupt:
        print(f"\n{asked.suite}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"\n{asked.suite}: ended before all parts had run: {error}", file=sys.stderr)
        return 1
    parts = sum(map(len, lanes))
    return report(asked.suite, parts, suite.results, setup.stdout, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
