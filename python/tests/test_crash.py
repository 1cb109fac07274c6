# SPDX-License-Identifier: BSD-3-Clause
"""``kill -9`` at random instants of a sweep: the same command always resumes it, and its results are the same bytes.

Half of the instants are random in time. The others are just before a random line of the code that keeps runs and puts
the data set together, each line as likely as any other: by time, the last steps of a sweep would hardly ever be hit.
Every other sweep is killed again while it is resumed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from command import COMMAND, SMALL, linkweir, strict_json

from linkweir.sweeps import Plan, Sweep

LONG = "LINKWEIR_CRASHES" in os.environ
INSTANTS = int(os.environ.get("LINKWEIR_CRASHES", "5"))
CASES, SEEDS = (20, 10) if LONG else (5, 12)
"""A few kills, as in `make test`, get a shorter sweep than the 200 runs of `make crash`, and charts of fewer lines."""
SEED = int(os.environ.get("LINKWEIR_CRASH_SEED", "1"))

BASE = SMALL.replace('"5s"', '"1s"').replace('rate = "2Mbit"', 'trace = "trace.csv"', 1)
BASE = BASE.replace('class = "ef"\n', 'class = "ef"\nname = "voice"\n', 1)
PLAN = f"""\
scenario = "base.toml"
seeds = {{ first = 1, count = {SEEDS} }}

[grid]
class.af.rate = ["100kbit", "200kbit", "300kbit", "400kbit", "500kbit"]
"""
if LONG:
    PLAN += """\
class.af.memory = ["100ms", "0.2s"]
flow.voice.rate = ["200kbit", "400kbit"]
"""
RUNS = CASES * SEEDS

_TRACED = """\
import collections, json, os, runpy, signal, sys
wanted, at, note = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
names = ("sweeps/execute", "sweeps/directory", "tables/run_tables") + tuple(
    f"directories/{name}" for name in ("parts", "provenance", "resumed")
)
keepers = tuple(f"linkweir/{name}.py" for name in names)
counts = collections.Counter()

def line(frame, event, arg):
    if event == "line":
        place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        counts[place] += 1
        if place == wanted and counts[place] == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return line

def call(frame, event, arg):
    code = frame.f_code
    return line if code.co_flags & 1 and code.co_filename.endswith(keepers) else None

sys.argv = ["linkweir", *sys.argv[4:]]
sys.settrace(call)
try:
    runpy.run_module("linkweir", run_name="__main__")
finally:
    if note:
        with open(note, "w") as file:
            json.dump(counts, file)
"""
"""Runs the command and kills itself before it executes a line for the Nth time, or notes how often it did each."""

Kill = Callable[[Path], bool]
"""Starts the sweep in a directory and kills it; False if it came to its end before."""


def words(plan: Path, out: Path) -> list[str]:
    return ["sweep", str(plan), "--out", str(out), "--jobs", "2"]


def start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def traced(plan: Path, out: Path, place: str | None, at: int, note: str = "") -> int:
    process = start([sys.executable, "-c", _TRACED, json.dumps(place), str(at), note, *words(plan, out)])
    return process.wait(timeout=300)


def kill_in_time(plan: Path, after_s: float) -> Kill:
    def kill(out: Path) -> bool:
        process = start([*COMMAND, *words(plan, out)])
        began = out / "plan.json"
        was = began.exists()
        while not was and not out.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(after_s)
        process.kill()
        return process.wait(timeout=300) < 0

    return kill


def kill_at_a_line(plan: Path, place: str, at: int) -> Kill:
    def kill(out: Path) -> bool:
        return traced(plan, out, place, at) < 0

    return kill


def results(directory: Path) -> dict[str, bytes]:
    """All that a sweep leaves but its provenance."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "provenance.json"]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def await_removal(folder: Path, pattern: str) -> None:
    """Waits until nothing is left there, as workers see a little later that their parent was killed."""
    until = time.monotonic() + 60
    while left := list(folder.glob(pattern)):
        assert time.monotonic() < until, left
        time.sleep(0.02)


_KILLED_EARLY = """\
import os, signal, sys
from pathlib import Path
from linkweir.sweeps import Plan, local, run_plan
local._Worker.give = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
run_plan(Plan.load(Path(sys.argv[1])), local.LocalProcesses(1))
"""
"""A sweep that is killed when its worker has been started but has not yet run a line of Python."""


def test_a_worker_whose_parent_died_before_it_began_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, plan = tmp_path / "tmp", tmp_path / "plan.toml"
    folder.mkdir()
    (tmp_path / "trace.csv").write_text("t_s,capacity_bps\n0,3000000\n0.4,1000000\n")
    (tmp_path / "base.toml").write_text(BASE)
    plan.write_text(PLAN)
    monkeypatch.setenv("TMPDIR", str(folder))
    assert start([sys.executable, "-c", _KILLED_EARLY, str(plan)]).wait(timeout=300) == -signal.SIGKILL
    await_removal(folder, "*")


@pytest.mark.slow
def test_a_sweep_that_was_killed_at_any_instant_is_resumed_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    plan, draw = tmp_path / "plan.toml", random.Random(SEED)
    (tmp_path / "trace.csv").write_text("t_s,capacity_bps\n0,3000000\n0.4,1000000\n")
    (tmp_path / "base.toml").write_text(BASE)
    plan.write_text(PLAN)
    assert len(Plan.load(plan).runs) == RUNS
    note = tmp_path / "lines.json"
    assert traced(plan, tmp_path / "straight", None, 0, str(note)) == 0
    lines: dict[str, int] = json.loads(note.read_text())
    expected = results(tmp_path / "straight")
    began = time.monotonic()
    assert linkweir(*words(plan, tmp_path / "second")).returncode == 0
    lasts_s = time.monotonic() - began
    assert results(tmp_path / "second") == expected

    done: Counter[str] = Counter()
    left: Counter[str] = Counter()
    trial = 0
    while sum(done.values()) < INSTANTS:
        out = tmp_path / f"out-{trial}"
        for _ in range(1 + trial % 2):
            if draw.random() < 0.5:
                kind, kill = "in time", kill_in_time(plan, draw.uniform(0, lasts_s))
            else:
                place = draw.choice(sorted(lines))
                kind, kill = "at a line", kill_at_a_line(plan, place, draw.randint(1, lines[place]))
            if kill(out):
                done[kind] += 1
                left[state(out)] += 1
        resumed = linkweir(*words(plan, out), "--json")
        assert (resumed.returncode, resumed.stderr) == (0, ""), f"seed {SEED}, trial {trial}"
        assert strict_json(resumed.stdout)["runs_done"] == RUNS
        assert results(out) == expected, f"seed {SEED}, trial {trial}"
        assert Sweep.load(out).status == "complete"
        trial += 1
    # Where the second worker has a file, the first was started. A parent killed before that has no worker to tidy up.
    await_removal(folder, "*/2.err")
    print(f"\nseed {SEED}: {dict(done)}; {trial} sweeps, all resumed; killed {dict(left)}")


def state(out: Path) -> str:
    """What a kill left, for the record."""
    if not (out / "plan.json").exists():
        return "before the plan was noted"
    if json.loads((out / "provenance.json").read_text())["status"] == "complete":
        return "when all was written"
    if list((out / "results").glob("*")) or len(list((out / "parts").glob("*.arrow"))) == RUNS:
        return "while the data set was put together"
    return "while runs were done"
