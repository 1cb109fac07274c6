# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of the simulator per packet, counted by callgrind: other work on the machine does not move them.

A scenario is run for two durations, and the shorter run's instructions are taken off those of the longer one: what
remains is the time between the two, without start-up.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BINARY = ROOT / "target" / "release" / "examples" / "run_scenario"
COLUMNS = ["case", "simulated s", "packets", "events", "M instructions", "per packet", "per event"]


class InstructionsError(Exception):
    """Instructions cannot be counted here; the text says what to do."""


def build() -> None:
    """Builds the program that runs a scenario."""
    if not shutil.which("valgrind"):
        raise InstructionsError("not installed: apt-get install valgrind")
    command = ["cargo", "build", "--locked", "--release", "-q", "-p", "linkweir-sim", "--example", "run_scenario"]
    compiled = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if compiled.returncode:
        raise InstructionsError("not built: cargo build failed:\n" + compiled.stderr)


def count(scenario: str) -> dict[str, Any]:
    """What one run of a scenario, as TOML, takes and does."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "scenario.toml"
        file.write_text(scenario)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out", str(BINARY), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or not collected:
        raise InstructionsError(f"{' '.join(command)}: exit code {done.returncode}:\n{done.stderr}")
    return {**json.loads(done.stdout), "instructions": int(collected.group(1))}


def between(case: str, scenario_of: Callable[[float], str], shorter_s: float, longer_s: float) -> dict[str, Any]:
    """What a scenario takes from the end of its shorter run to that of its longer one."""
    shorter, longer = count(scenario_of(shorter_s)), count(scenario_of(longer_s))
    found = {key: longer[key] - shorter[key] for key in ("packets", "events", "instructions")}
    return {
        "case": case,
        "from_s": shorter_s,
        "to_s": longer_s,
        **found,
        "instructions_per_packet": found["instructions"] / found["packets"],
        "instructions_per_event": found["instructions"] / found["events"],
    }


def cells(row: dict[str, Any]) -> list[str]:
    return [
        row["case"],
        f"{row['from_s']:g} .. {row['to_s']:g}",
        str(row["packets"]),
        str(row["events"]),
        f"{row['instructions'] / 1e6:.1f}",
        f"{row['instructions_per_packet']:.0f}",
        f"{row['instructions_per_event']:.0f}",
    ]
