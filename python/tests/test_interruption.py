# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C leaves what was recorded, marked so; a run that was killed or that failed is never taken for a result."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import ENDLESS, SMALL, await_status, interrupt, linkweir, linkweir_process, start, start_until

import linkweir as package
from linkweir.directories import provenance


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.toml"
    path.write_text(ENDLESS)
    return path


def status(directory: Path) -> str:
    return str(json.loads((directory / "provenance.json").read_text())["status"])


def test_ctrl_c_keeps_what_was_recorded(tmp_path: Path, endless: Path) -> None:
    out = tmp_path / "out"
    # Two of the intervals that are recorded are over.
    process = start_until("linkweir.commands.cli._progress", 120.0, "run", endless, "--out", out)
    assert status(out) == "running"
    interrupt(process)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert errors.count("\n") == 1
    assert "interrupted at " in errors
    assert "report: " in shown

    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["status"] == "interrupted"
    assert 0 < provenance["simulated_s"] < 36_000_000
    assert json.loads((out / "summary.json").read_text())["status"] == "interrupted"
    assert "The run was interrupted at" in (out / "report.html").read_text()
    assert not list(out.rglob("*.part"))
    result = package.Result.load(out)
    assert result.status == "interrupted"
    assert result.series.num_rows > 0
    assert max(result.series["t_s"].to_pylist()) <= provenance["simulated_s"]

    done = linkweir("report", out)
    assert done.returncode == 0


def test_ctrl_c_while_the_command_is_imported_is_quiet(small: Path) -> None:
    """The import of the command line is made to press Ctrl-C itself, so that it is always in time."""
    program = (
        "import builtins, runpy, signal, sys\n"
        "plain = builtins.__import__\n"
        "def press(name, *rest, **more):\n"
        "    if name == 'typer':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return plain(name, *rest, **more)\n"
        "builtins.__import__ = press\n"
        f"sys.argv = ['linkweir', 'check', {str(small)!r}]\n"
        "runpy.run_module('linkweir', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "linkweir: interrupted\n")


def test_a_killed_run_is_no_result(tmp_path: Path, endless: Path, small: Path) -> None:
    out = tmp_path / "out"
    process = start("run", endless, "--out", out)
    await_status(out, "running", process)
    process.kill()
    process.communicate()
    assert status(out) == "running"
    assert not list(out.rglob("*.parquet"))
    assert not (out / "summary.json").exists()
    done = linkweir("report", out)
    assert done.returncode == 2
    assert "is still running or was killed" in done.stderr
    with pytest.raises(package.DirectoryError, match="was killed"):
        package.Result.load(out)
    assert linkweir("run", small, "--out", out, "--force").returncode == 0
    assert status(out) == "complete"


def test_a_full_disk_is_a_failed_run(tmp_path: Path, small: Path) -> None:
    """Files may not grow beyond 4 kB, which the notes need and the tables exceed."""
    small.write_text(SMALL.replace('"5s"', '"300s"'))
    out = tmp_path / "out"
    limits = (4096, 4096)
    done = linkweir_process(
        "run", small, "--out", out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert status(out) == "failed"
    with pytest.raises(package.DirectoryError, match="failed"):
        package.Result.load(out)


def test_a_disk_that_is_full_when_the_run_ends_leaves_a_failed_run(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the note that it is complete finds no room; the shorter one that it failed does."""
    write_whole = provenance.write_whole

    def full(path: Path, content: str) -> None:
        if path.name == "provenance.json" and '"status": "complete"' in content:
            raise OSError(28, "No space left on device")
        write_whole(path, content)

    monkeypatch.setattr(provenance, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        package.run(small, out=tmp_path / "out")
    assert status(tmp_path / "out") == "failed"


def test_an_error_of_the_caller_is_a_failed_run(tmp_path: Path, small: Path) -> None:
    def stop(simulated_s: float) -> None:
        raise RuntimeError(f"enough at {simulated_s}")

    small.write_text(ENDLESS)
    with pytest.raises(RuntimeError, match="enough at"):
        package.run(small, out=tmp_path / "out", progress=stop)
    assert status(tmp_path / "out") == "failed"


def test_interrupted_carries_the_partial_result(small: Path) -> None:
    def press(simulated_s: float) -> None:
        signal.raise_signal(signal.SIGINT)

    small.write_text(ENDLESS)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(package.Interrupted) as caught:
        package.run(small, progress=press)
    result = caught.value.result
    assert result.status == "interrupted"
    assert 0 < result.simulated_s < result.scenario.duration_s
    assert result.classes.num_rows == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_many_runs(small: Path) -> None:
    def press(index: int, result: package.Result) -> None:
        signal.raise_signal(signal.SIGINT)

    endless = package.Scenario.parse(ENDLESS)
    with pytest.raises(KeyboardInterrupt):
        package.run_many([small, endless, endless], jobs=2, on_result=press)


def test_a_rerun_of_an_interrupted_run_differs_and_says_why(tmp_path: Path, small: Path) -> None:
    out = tmp_path / "out"
    small.write_text(SMALL.replace('"5s"', '"200s"'))

    def press(simulated_s: float) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(package.Interrupted):
        package.run(small, out=out, progress=press)
    done = linkweir("rerun", out)
    assert done.returncode == 1
    assert "the first run has status interrupted" in done.stderr
