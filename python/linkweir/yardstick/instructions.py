# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a policy: instructions of the simulator per packet, counted by callgrind.

Every policy gets the same packets: calls, media and a flood that the link cannot carry, none of which reacts to losses.
A run of 1 s is taken off one of 5 s, so that neither start nor end counts. What is left is the simulator with the
policy, so a difference between two policies is that of their cost. Other work on the machine changes nothing, and a
second count there gives the same number, or one that differs by a few instructions if the policy is in Python; other
libraries may give another one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from linkweir.fault import PlanError
from linkweir.lab.host import ending_with
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
_LOOK_S = 0.2
"""How often a count looks whether it is still wanted."""


@dataclass(frozen=True)
class Counts:
    """The cost of policies, by label.

    Attributes:
        instructions: per packet; None where they could not be counted.
        reasons: of each policy that could not be counted: why, in words.
    """

    instructions: dict[str, int | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def instructions(measured: Sequence[Candidate], *, jobs: int | None = None) -> dict[str, int | None]:
    """Instructions per packet of each policy, by label; None where they could not be counted. See `count`."""
    return count(measured, jobs=jobs).instructions


def count(measured: Sequence[Candidate], *, jobs: int | None = None) -> Counts:
    """Counts the instructions of each policy.

    Nothing is counted without valgrind. A policy that the simulator cannot run is not counted either.

    Args:
        measured: the policies.
        jobs: processes at a time; as many as there are processors when None.
    """
    labels = [one.label for one in measured]
    if not shutil.which("valgrind"):
        return Counts(dict.fromkeys(labels), dict.fromkeys(labels, "valgrind is not installed"))
    stop = threading.Event()
    # With setarch a process has the same addresses each time, and so the instructions that depend on them.
    before = [*_if_allowed(ending_with(os.getpid(), [])), *_if_allowed(["setarch", "-R"])]
    pool = ThreadPoolExecutor(jobs or processors())
    try:
        found = list(pool.map(lambda one: _counted(one, before, stop), measured))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    counts = {label: one if isinstance(one, int) else None for label, one in zip(labels, found, strict=True)}
    return Counts(counts, {label: one for label, one in zip(labels, found, strict=True) if isinstance(one, str)})


def _if_allowed(before: list[str]) -> list[str]:
    """Words in front of a command, if it can be started with them: containers may refuse it.

    Without setarch counts differ by a few instructions; without setpriv a count outlives a parent that is killed.
    """
    try:
        subprocess.run([*before, "true"], check=True, capture_output=True, timeout=_LONGEST_S)
    except (OSError, subprocess.SubprocessError):
        return []
    return before


def _counted(candidate: Candidate, before: Sequence[str], stop: threading.Event) -> int | str:
    """Counts one, in a process of its own: what ran before it there would change where its memory is.

    Returns instructions per packet, or why there are none.
    """
    with scratch() as folder:
        try:
            files = [str(file) for file in _written(candidate, folder)]
            short, long = _totals(folder, files, before, stop)
        except subprocess.TimeoutExpired:
            return f"it took longer than {_LONGEST_S} s"
        except subprocess.CalledProcessError as error:
            return _last_line(error.stderr) or f"the process ended with {error.returncode}"
        except (PlanError, OSError, ValueError) as error:
            return str(error)
    pkts = long[1] - short[1]
    return round((long[0] - short[0]) / pkts) if pkts > 0 else "it sent no packets"


def _last_line(text: str) -> str:
    """Of what a program wrote to standard error; valgrind's own lines begin with its process number."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"==\d+==", line)]
    return lines[-1] if lines else ""


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


def _totals(folder: Path, files: Sequence[str], before: Sequence[str], stop: threading.Event) -> list[tuple[int, int]]:
    """For each scenario the instructions of its run and the packets it sent."""
    package = str(Path(counted.__file__).parents[1])
    out = folder / "callgrind"
    command = ["valgrind", "--tool=callgrind", "--dump-before=sched_yield", f"--callgrind-out-file={out}"]
    search = json.dumps([path for path in sys.path if path])
    program = [sys.executable, "-s", "-S", counted.__file__, package, search, *files]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    printed = output_of([*before, *command, *program], stop, env=environment, cwd=folder)
    # The first part is what came before the first mark; then runs alternate with what is between them.
    return [(_total(Path(f"{out}.{2 * run}")), pkts) for run, pkts in enumerate(json.loads(printed), 1)]


def output_of(command: Sequence[str], stop: threading.Event, **options: Any) -> str:
    """What a command prints. It has a process group of its own, which is killed when `stop` is set.

    Raises:
        subprocess.TimeoutExpired: it took longer than 600 s, or was stopped.
        subprocess.CalledProcessError: it failed.
    """
    end_s = time.monotonic() + _LONGEST_S
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    ) as process:
        try:
            while True:
                try:
                    printed, errors = process.communicate(timeout=_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    if stop.is_set() or time.monotonic() > end_s:
                        raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, printed, errors)
    return str(printed)


def _total(part: Path) -> int:
    found = re.search(r"^totals: (\d+)$", part.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{part} has no total")
    return int(found[1])
