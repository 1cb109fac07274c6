# SPDX-License-Identifier: BSD-3-Clause
"""Runs each tutorial from top to bottom, as its reader does: files are saved, commands run in a shell, output compared.

The simulator's tutorials print to a terminal of 80 columns, without bars of progress; WITHOUT_TERMINAL names others.

Commands are those of blocks marked `sh`. A block marked `text` behind one is what it prints; a line `...` stands for
lines that the page leaves out. The simulator repeats itself, so output is compared word by word, and numbers too. Where
a page runs other programs, with times of their own, only the form is compared. A block of any other language is a file,
named in the sentence before it.

With LINKWEIR_TUTORIALS=write, a block `text` that holds only `?` is filled with what the command printed.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

import pytest
from command import REPOSITORY, SCENARIOS, read_terminal
from processes import wait_until
from test_docs import shape

from linkweir.lab import LaboratoryError, guest, host, kernel, namespaces

FOLDER = REPOSITORY / "docs/tutorial"
WRITE = os.environ.get("LINKWEIR_TUTORIALS") == "write"
WIDTH = 80
WITHOUT_TERMINAL = ("own-policy",)
"""Tutorials whose output goes to a file, in which tables have all columns: this one builds the core."""
MARK = "LINKWEIR-BLOCK"
MOST_S = 300
"""Of real time, for a page."""
ELSEWHERE = {
    "make demo": "installs packages and takes minutes",
    "make -C kernel": "needs headers of the running kernel; the laboratory's kernel has the module",
    "make -C kernel install": "installs; make -C kernel test-install does this in a system of its own",
    "apt-get install *": "installs packages",
    ". .venv/bin/activate": "the shell of this test finds the program without it",
}
"""Commands that are not run here, and why."""

_SPACES = "setpriv --pdeathsig KILL unshare --net --pid --mount --mount-proc --fork --kill-child"
_FIRST = 'mount -t tmpfs run /run && mount -t tmpfs shm /dev/shm && mkdir /run/netns && ip link set lo up && exec "$@"'
ALONE = (*_SPACES.split(), "sh", "-c", _FIRST, "sh")
"""Namespaces that vanish with the first process, whichever is killed; what runs there sees only its own."""


@functools.cache
def alone() -> Sequence[str]:
    """Such namespaces as root or as a plain user, so that all ports are free; nothing where none can be made."""
    for user in ((), ("--map-root-user",)):
        words = (*_SPACES.split(), *user, "sh", "-c", _FIRST, "sh")
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return words
    return ()


@dataclass
class Step:
    """A fenced block: its language, its text, the paragraph before it, and where it begins."""

    language: str
    text: str
    before: str
    at: int

    @property
    def commands(self) -> str:
        """Its commands, without those that are run elsewhere."""
        lines = self.text.splitlines()
        return "\n".join(line for line in lines if not any(fnmatchcase(line, left) for left in ELSEWHERE))

    @property
    def name(self) -> str:
        """The file that it is, named in the sentence before: "Save this as `mine.toml`"."""
        named = re.findall(r"[Ss]ave .*?`([\w./-]+)`", self.before, re.DOTALL)
        assert named, f"no name for the file behind: {self.before}"
        return named[-1]


def steps(text: str) -> list[Step]:
    """The fenced blocks of a page."""
    found = []
    for block in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        before = text[: block.start()].rstrip().rsplit("\n\n", 1)[-1]
        found.append(Step(block[1], block[2], before, block.start(2)))
    return found


def form(text: str) -> str:
    """The form of an output. Which datagrams a gateway dropped, if any, depends on times.

    >>> form("up 36 s; dropped 4 no_peer"), form("received 34915 packets; dropped 1 not_genuine, 2 no_session\\nlink")
    ('up 0 s', 'received 0 packets link')
    """
    return shape(re.sub(r"; dropped \d[^\n]*", "", text))


def matches(shown: str, printed: str, *, form_only: bool = False) -> bool:
    """Whether the output is as shown.

    >>> matches("a\\n...\\nd\\n", "a\\nb\\nc\\nd\\n"), matches("a\\nd\\n", "a\\nb\\nd\\n")
    (True, False)
    """
    same = form if form_only else str.split
    parts = [same(part) for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    whole = same(printed)
    if len(parts) == 1:
        return parts[0] == whole
    words, parts = (whole, parts) if form_only else (" ".join(whole), [" ".join(part) for part in parts])
    pattern = ".*".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, words, re.DOTALL) is not None


def script(found: Sequence[Step]) -> str:
    """A page as one script, so that what a block starts in the background is there in the next."""
    lines = []
    for number, step in enumerate(found):
        if step.language == "sh":
            lines.append(step.commands)
        elif step.language != "text":
            lines.append(f"mkdir -p $(dirname {step.name}); cat >{step.name} <<'{MARK}'\n{step.text}{MARK}")
        lines.append(f"echo; echo {MARK} {number}")
    return "\n".join(lines)


def run(commands: str, folder: Path, *, within: Sequence[str] = (), path: str = "", terminal: bool = False) -> str:
    """What a shell prints, on both of its outputs, into a file or to a terminal."""
    # A reader's make is not started by another one, as that of this test may be.
    others = ("LINES", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in others}
    programs = f"{path}:{Path(sys.executable).parent}:{environment['PATH']}:/usr/sbin:/sbin"
    # rich then shows no bars of progress and no colours, although it writes to a terminal
    environment["TTY_COMPATIBLE"] = "0"
    # Output goes to a file: a pipe would stay open as long as anything in the background has it.
    with (folder / "printed").open("w+") as kept, on(kept, terminal=terminal) as printed:
        process = subprocess.Popen(
            [*within, "bash", "-euc", commands],
            cwd=folder,
            env=environment | {"PATH": programs, "COLUMNS": str(WIDTH)},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(MOST_S)
        finally:  # also ends what a tutorial that failed left in the background
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = (folder / "printed").read_text()
    assert code == 0, text
    return text


@contextlib.contextmanager
def on(kept: IO[str], *, terminal: bool) -> Iterator[int | IO[str]]:
    """The file itself, or a terminal what is written to which is kept in it."""
    if not terminal:
        yield kept
        return
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    reader = threading.Thread(target=lambda: kept.write(read_terminal(ours).decode().replace("\r\n", "\n")))
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join(30)


def follow(page: Path, folder: Path, *, form_only: bool = False, within: Sequence[str] = (), path: str = "") -> None:
    """Does what a page says; output whose words are compared is that of a terminal."""
    terminal = not form_only and page.stem not in WITHOUT_TERMINAL
    printed = run(script(steps(page.read_text())), folder, within=within, path=path, terminal=terminal)
    compare(page, printed, form_only=form_only)


def compare(page: Path, output: str, *, form_only: bool = False) -> None:
    """Compares what the blocks of a page printed with what it shows."""
    text = page.read_text()
    found = steps(text)
    parts = re.split(rf"\n?^{MARK} \d+\n", output, flags=re.MULTILINE)
    for number, step in reversed(list(enumerate(found))):
        if step.language != "text":
            continue
        printed = parts[number - 1]
        if step.text.strip() == "?" and WRITE:
            lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
            text = text[: step.at] + lines + text[step.at + len(step.text) :]
        else:
            assert matches(step.text, printed, form_only=form_only), f"{page.name}:\n{step.text}\nbut\n{printed}"
    if WRITE:
        page.write_text(text)


SIMULATED = ("first-scenario", "network", "own-trace", "sweep", "own-policy", "reproduce-figure")


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_a_tutorial_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    if name == "own-policy":  # it changes the sources
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True).stdout
        for path in map(Path, tracked.decode().split("\0")[:-1]):
            (tmp_path / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, tmp_path / path, follow_symlinks=False)
    else:
        shutil.copytree(SCENARIOS, tmp_path / "scenarios")
    follow(FOLDER / f"{name}.md", tmp_path, within=alone())


def test_examples() -> None:
    assert doctest.testmod(sys.modules[__name__]) == (0, 2)


def processes(words: str) -> list[str]:
    """The processes that have these words in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words in path.read_text().replace("\0", " "):
                found.append(path.parent.name)
    return found


@pytest.mark.parametrize("within", [alone(), ()], ids=["namespaces", "none"])
def test_a_tutorial_that_fails_leaves_nothing_in_the_background(within: Sequence[str], tmp_path: Path) -> None:
    waits = f"sleep 9{os.getpid()}"
    with pytest.raises(AssertionError):
        run(f"{waits} & sleep 0.1; false", tmp_path, within=within)
    wait_until(lambda: not processes(waits))


def test_a_tutorial_ends_with_its_test(tmp_path: Path) -> None:
    if not alone():
        pytest.skip("no namespaces can be made here")
    waits = f"sleep 8{os.getpid()}"
    test = subprocess.Popen([*alone(), "bash", "-euc", f"{waits} & touch begun; wait"], cwd=tmp_path)
    wait_until((tmp_path / "begun").exists)
    assert processes(waits)
    test.kill()
    test.wait()
    wait_until(lambda: not processes(waits))


@pytest.mark.slow
def test_the_tutorial_of_the_gateway_runs(tmp_path: Path) -> None:
    tested = REPOSITORY / "target" / "debug" / "linkweir-gateway"  # as `cargo test` built it
    gateway = tested if tested.is_file() else namespaces.find_gateway()
    lacks = namespaces.why_not(gateway)
    programs = {"iperf3": "iperf3", "ping": "iputils-ping"}
    lacks += [f"{name}: apt-get install {package}" for name, package in programs.items() if shutil.which(name) is None]
    if lacks:
        pytest.skip("; ".join(lacks))
    assert gateway is not None
    follow(FOLDER / "deploy-gateway.md", tmp_path, form_only=True, within=ALONE, path=str(gateway.parent))


@pytest.mark.long
def test_the_tutorial_of_the_qdisc_runs_in_a_kernel_of_the_laboratory() -> None:
    programs = {"iperf3": "iperf3", "ping": "iputils-ping"}
    found = {name: shutil.which(name) for name in programs}
    lacks = [f"{name}: apt-get install {programs[name]}" for name, path in found.items() if path is None]
    if lacks:
        pytest.skip("; ".join(lacks))
    try:
        made = guest.prepare(kernel.build("fast"), *(Path(path).resolve() for path in found.values() if path))
    except LaboratoryError as error:
        pytest.skip(str(error))
    page = FOLDER / "deploy-qdisc.md"
    job = f"cd /tmp\nip link set lo up\nset -eu\n{script(steps(page.read_text()))}\n"
    files = host.start(made, {"run": job.encode()}, 1, most_s=MOST_S)
    compare(page, files["log"].decode(), form_only=True)
