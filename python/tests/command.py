# SPDX-License-Identifier: BSD-3-Clause
"""The command as a process, and scenarios to give it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = REPOSITORY / "scenarios"
COMMAND = [sys.executable, "-m", "linkweir.cli"]

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
"""Takes hours, so that whoever ends it does so in the middle."""


def linkweir(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=cwd, **options)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Starts the command."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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


def strict_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)
