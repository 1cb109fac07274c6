# SPDX-License-Identifier: BSD-3-Clause
"""The command as a process, and scenarios to give it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import Any
from unittest import mock

from linkweir.commands import cli

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = REPOSITORY / "scenarios"
COMMAND = [sys.executable, "-m", "linkweir"]

SMALL = """\
duration = "5s"

[link]
rate = "2Mbit"
delay = "10ms"

[scheduler]
policy = "pss"

[[class]]
name = "ef"
level = 0

[[class]]
name = "af"
level = 1
low_level = 3
rate = "500kbit"

[[class]]
name = "cs0"
level = 2

[[flow]]
class = "ef"
kind = "poisson"
rate = "500kbit"

[[flow]]
class = "af"
kind = "tcp"

[[flow]]
class = "cs0"
kind = "tcp"
"""

ENDLESS = SMALL.replace('"5s"', '"10000h"').replace("[link]", 'interval = "1min"\n[link]', 1)
"""Takes hours, so that it is always ended in the middle."""


@dataclass
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def linkweir(*arguments: object) -> Done:
    """Runs the command to its end, in this process: an exception that escapes fails the test."""
    shown, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["linkweir", *map(str, arguments)]),
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(errors),
    ):
        code = cli.main()
    return Done(code, shown.getvalue(), errors.getvalue())


def linkweir_process(*arguments: object, **options: Any) -> Done:
    """Runs the command to its end, in a process of its own."""
    words = [*COMMAND, *map(str, arguments)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)
    return Done(ended.returncode, ended.stdout, ended.stderr)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Starts the command."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


PAUSED = """\
import contextlib, os, signal, sys
from unittest import mock
from linkweir.commands import cli

def tell(at, *_):
    if at >= reached and not told:
        told.append(at)
        os.kill(os.getpid(), signal.SIGSTOP)

told, bar, reached = [], sys.argv[1], float(sys.argv[2])
sys.argv[1:3] = []
with mock.patch(bar, lambda *_: contextlib.nullcontext(tell)):
    sys.exit(cli.main())
"""


def start_until(bar: str, reached: float, *arguments: object) -> subprocess.Popen[str]:
    """Starts the command, which stops itself (SIGSTOP) once its progress is at least this; returns it then.

    `bar` is the full name of the function whose bar shows the progress on a terminal.
    """
    words = [sys.executable, "-c", PAUSED, bar, str(reached), *map(str, arguments)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert found is not None
    assert found.si_code == os.CLD_STOPPED, process.communicate()
    return process


def interrupt(process: subprocess.Popen[str]) -> None:
    """Presses Ctrl-C on a command that has stopped itself, and lets it continue."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)


def await_status(directory: Path, status: str, process: subprocess.Popen[str]) -> None:
    """Waits until a run directory says so; a process that ends before that fails the test."""
    while True:
        try:
            if json.loads((directory / "provenance.json").read_text())["status"] == status:
                return
        except FileNotFoundError:
            pass
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def on_a_terminal(width: int, *arguments: object, cwd: Path | None = None, errors: bool = False) -> str:
    """What the command prints on a terminal that wide, without its colours; with `errors` also its warnings."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    words = [*COMMAND, *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        words,
        stdout=theirs,
        stderr=theirs if errors else subprocess.DEVNULL,
        stdin=theirs,
        cwd=cwd,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = read_terminal(ours)
    assert process.wait() == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "")


def read_terminal(ours: int) -> bytes:
    """All that is written to the other end of a pseudo-terminal until it is closed."""
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return seen


def strict_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)
