# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a policy: instructions of the simulator per packet, counted by callgrind.

Every policy gets the same packets: calls, media and a flood that the link cannot carry, none of which reacts to losses.
A run of 1 s is taken off one of 5 s, so that neither start nor end counts. What is left is the simulator with the
policy, so a difference between two policies is that of their cost. Other work on the machine changes nothing, and a
second count there gives the same number; other libraries may give another one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from linkweir.fault import PlanError
from linkweir.runs.simulate import processors
from linkweir.scratch import scratch
from linkweir.yardstick import counted
from linkweir.yardstick.candidates import Candidate, fitted
from linkweir.yardstick.cases import AQM, AS_WRITTEN, Case

_LENGTHS_S = (1, 5)
_FLOOD = {"name": "flood", "kind": "cbr", "rate": "12Mbit", "packet": "1200B", "jitter": 0.1}
_CASE = Case(
    "instructions",
    "An overloaded link without TCP",
    AQM,
    "",
    "",
    {"rate": "10Mbit", "delay": "25ms"},
    "1Mbit",
    _LENGTHS_S[-1],
    warmup_s=0,
    flows=(_FLOOD,),
)
_LONGEST_S = 600
"""A policy that takes longer is not counted."""


def instructions(measured: Sequence[Candidate], *, jobs: int | None = None) -> dict[str, int | None]:
    """Instructions per packet of each policy, by label; None where they could not be counted.

    Nothing is counted without valgrind. A policy that the simulator cannot run is not counted either.

    Args:
        measured: the policies.
        jobs: processes at a time; as many as there are processors when None.
    """
    if not shutil.which("valgrind"):
        return {one.label: None for one in measured}
    with ThreadPoolExecutor(jobs or processors()) as pool:
        found = pool.map(_counted, measured)
        return {one.label: count for one, count in zip(measured, found, strict=True)}


def _counted(candidate: Candidate) -> int | None:
    """Counts one, in a process of its own: what ran before it there would change where its memory is."""
    with scratch() as folder:
        try:
            files = [str(file) for file in _written(candidate, folder)]
            short, long = _totals(folder, files)
        except (PlanError, OSError, subprocess.SubprocessError, ValueError):
            return None
    pkts = long[1] - short[1]
    return round((long[0] - short[0]) / pkts) if pkts > 0 else None


def _written(candidate: Candidate, folder: Path) -> Iterator[Path]:
    """The scenario of both lengths as files; a policy in C is in the process that is counted."""
    inside = candidate
    if isinstance(candidate.policy, Mapping) and "c" in candidate.policy:
        inside = replace(candidate, policy={**candidate.policy, "trusted": True})
    for length_s in _LENGTHS_S:
        scenario = fitted(replace(_CASE, duration_s=length_s), AS_WRITTEN, inside).scenario
        place = folder / f"{length_s}s"
        for name, _, content in scenario.inputs:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        place.mkdir(exist_ok=True)
        file = place / "scenario.toml"
        file.write_text(scenario.resolved, encoding="utf-8")
        yield file


def _totals(folder: Path, files: Sequence[str]) -> list[tuple[int, int]]:
    """For each scenario the instructions of its run and the packets it sent."""
    package = str(Path(counted.__file__).parents[1])
    out = folder / "callgrind"
    command = ["valgrind", "--tool=callgrind", "--dump-before=sched_yield", f"--callgrind-out-file={out}"]
    # Hashes and addresses are the same each time, and so are the instructions that depend on them.
    steady = ["setarch", "-R"] if shutil.which("setarch") else []
    search = json.dumps([path for path in sys.path if path])
    program = [sys.executable, "-s", "-S", counted.__file__, package, search, *files]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*steady, *command, *program],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=_LONGEST_S,
    )
    # The first part is what came before the first mark; then runs alternate with what is between them.
    return [(_total(Path(f"{out}.{2 * run}")), pkts) for run, pkts in enumerate(json.loads(done.stdout), 1)]


def _total(part: Path) -> int:
    found = re.search(r"^totals: (\d+)$", part.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{part} has no total")
    return int(found[1])
