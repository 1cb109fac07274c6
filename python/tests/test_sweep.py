# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: the same data set wherever and however they ran, nothing run twice, nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import COMMAND, ENDLESS, REPOSITORY, SMALL, interrupt, linkweir, linkweir_process, start_until, strict_json

import linkweir as package
from linkweir.sweeps import Answer, DaskCluster, Job, LocalProcesses, Plan, Sweep, run_plan, work
from linkweir.sweeps.confidence import estimate
from linkweir.sweeps.measures import MEASURES

PLAN = """\
scenario = "base.toml"
seeds = { first = 1, count = 4 }

[grid]
link.rate = ["1Mbit", "2Mbit", "3Mbit", "4Mbit", "5Mbit"]
class.af.rate = ["300kbit", "0.5Mbit"]
flow.voice.rate = ["200kbit", "400kbit"]
"""
RUNS = 80

BASE = SMALL.replace('"5s"', '"1s"').replace('class = "ef"\n', 'class = "ef"\nname = "voice"\n', 1)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def bounded() -> Iterator[None]:
    """A test that waits for ever fails instead."""

    def ring(number: int, frame: object) -> None:
        raise TimeoutError("the sweep does not end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Here:
    """Does runs in this process, backwards, and counts them; `before` may spoil one."""

    def __init__(self, before: Callable[[Job], None] = lambda job: None) -> None:
        self.done: list[int] = []
        self._before = before

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        for job in reversed(list(jobs)):
            self._before(job)
            answer = work(job)
            self.done.append(job.number)
            take(answer)


def data(directory: Path) -> bytes:
    return (directory / "results" / "runs.parquet").read_bytes()


def provenance(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "provenance.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
def test_one_process_two_and_a_cluster_that_loses_a_worker_give_the_same_bytes(tmp_path: Path, plan_file: Path) -> None:
    distributed = pytest.importorskip("distributed")
    plan = Plan.load(plan_file)
    assert len(plan.runs) == RUNS
    here = run_plan(plan, Here(), out=tmp_path / "here")
    one = run_plan(plan, LocalProcesses(1), out=tmp_path / "one")
    two = run_plan(plan, LocalProcesses(2), out=tmp_path / "two")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        victim = min(before)
        killed_at: list[int] = []

        def kill(done: int, planned: int, failed: int) -> None:
            if done >= RUNS // 4 and not killed_at:
                os.kill(victim, signal.SIGKILL)
                killed_at.append(done)

        dask = run_plan(plan, DaskCluster(client), out=tmp_path / "dask", progress=kill)
        client.wait_for_workers(2)
        assert victim not in set(client.run(os.getpid).values())
    assert killed_at == [RUNS // 4]
    for sweep in (here, one, two, dask):
        assert (sweep.status, sweep.runs_done, sweep.runs_now, sweep.failures) == ("complete", RUNS, RUNS, ())
        assert sweep.directory is not None
        assert data(sweep.directory) == data(tmp_path / "here")
    assert here.table["run"].unique().to_pylist() == list(range(1, RUNS + 1))


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
def test_a_cluster_by_its_address_and_by_any_client(tmp_path: Path, plan_file: Path) -> None:
    """A client that is not the default one of the process; the command, which knows the address alone."""
    distributed = pytest.importorskip("distributed")
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        mine = package.sweep(plan_file, client=client)
        done = linkweir_process("sweep", plan_file, "--dask", cluster.scheduler_address, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert mine.table.num_rows == 20 * (1 + 3 + 3)
    assert Sweep.load(tmp_path / "out").table.equals(mine.table)
    assert package.sweep(plan_file, jobs=1).table.equals(mine.table)


def test_the_data_set_holds_what_each_run_alone_gives(plan_file: Path) -> None:
    rows = package.sweep(Plan.load(plan_file, seed=41), jobs=2).table.to_pylist()
    number = 55  # case 14: 4Mbit, 300kbit, 400kbit; seed 43
    text = BASE.replace('"2Mbit"', '"4Mbit"').replace('"500kbit"', '"400kbit"')
    text = text.replace('low_level = 3\nrate = "400kbit"', 'low_level = 3\nrate = "300kbit"')
    result = package.run(package.Scenario.parse(text, seed=43))
    mine = [row for row in rows if row["run"] == number]
    keys = {"case": 14, "seed": 43, "link.rate_bps": 4e6, "class.af.rate": "300kbit", "flow.voice.rate_bps": 4e5}
    assert all(row.items() >= keys.items() for row in mine)
    assert [row["scope"] for row in mine] == ["link", "class", "class", "class", "flow", "flow", "flow"]
    assert mine[0].items() >= result.summary["link"].items()
    for row, expected in zip(mine[1:], [*result.rows("classes"), *result.rows("flows")], strict=True):
        assert row.items() >= expected.items()


@pytest.mark.slow
def test_it_ends_with_means_intervals_and_a_report_that_can_be_made_again(tmp_path: Path, plan_file: Path) -> None:
    done = linkweir("sweep", plan_file, "--out", tmp_path / "out")
    assert done.returncode == 0
    sweep = Sweep.load(tmp_path / "out")
    means = {(row["case"], row["class"]): row for row in sweep.means.to_pylist() if row["scope"] == "class"}
    for (case, name), mean in means.items():
        rates = [
            row["rate_bps"]
            for row in sweep.table.to_pylist()
            if (row["case"], row["scope"], row["class"]) == (case, "class", name)
        ]
        found = estimate(rates)
        assert mean["runs"] == found.count
        assert mean["rate_bps"] == pytest.approx(found.mean)
        assert mean["rate_bps_ci95"] == pytest.approx(found.half, abs=1e-6)
        shown = MEASURES["rate"].shown(mean["rate_bps"], mean["rate_bps_ci95"])
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"{case} ") and f" {name} " in line]
        assert all(shown in line for line in lines)
        assert lines or case > 10, "the table is cut off after 40 rows"
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in report
    (tmp_path / "out" / "report.html").unlink()
    again = linkweir("report", tmp_path / "out")
    assert again.returncode == 0
    assert (tmp_path / "out" / "report.html").read_text() == report


def test_interrupted_and_resumed_it_runs_only_what_is_missing(tmp_path: Path, plan_file: Path) -> None:
    plan, out = Plan.load(plan_file), tmp_path / "out"
    taken = 0

    def press(job: Job) -> None:
        nonlocal taken
        if taken == 23:
            raise KeyboardInterrupt
        taken += 1

    first = Here(press)
    with pytest.raises(package.SweepInterrupted, match="interrupted after 23 of 80 runs") as caught:
        run_plan(plan, first, out=out)
    assert first.done == list(range(80, 57, -1))
    partial = caught.value.sweep
    assert (partial.status, partial.runs_done) == ("interrupted", 23)
    assert partial.table["run"].unique().to_pylist() == list(range(58, 81))
    assert Sweep.load(out).table.equals(partial.table)
    assert provenance(out)["status"] == "interrupted"

    second = Here()
    whole = run_plan(plan, second, out=out)
    assert second.done == list(range(57, 0, -1))
    assert (whole.status, whole.runs_done, whole.runs_now) == ("complete", 80, 57)
    assert [session["runs_now"] for session in provenance(out)["sessions"]] == [23, 57]

    third = Here()
    again = run_plan(plan, third, out=out)
    assert (third.done, again.runs_done, again.runs_now) == ([], 80, 0)
    straight = run_plan(plan, Here(), out=tmp_path / "straight")
    assert straight.directory is not None
    assert data(out) == data(straight.directory)
    assert not (out / "parts").exists()


def test_a_disk_that_fails_and_executors_that_go_keep_what_was_done(tmp_path: Path, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"

    def break_off(job: Job) -> None:
        if job.number == 12:
            raise package.ExecutorError("they went home")

    with pytest.raises(package.ExecutorError, match="they went home"):
        run_plan(plan, Here(break_off), out=out)
    assert (Sweep.load(out).status, Sweep.load(out).runs_done) == ("interrupted", 8)

    def take_away(job: Job) -> None:
        if job.number == 6:
            (out / "parts").rename(out / "elsewhere")

    with pytest.raises(OSError, match="No such file"):
        run_plan(plan, Here(take_away), out=out)
    assert provenance(out)["status"] == "failed"
    with pytest.raises(
        package.DirectoryError, match=r"the sweep failed: .*No such file.*; the same command resumes it"
    ):
        Sweep.load(out)
    (out / "elsewhere").rename(out / "parts")
    last = Here()
    assert run_plan(plan, last, out=out).status == "complete"
    assert sorted(last.done) == list(range(1, 7))


def test_a_run_cut_off_while_it_was_written_is_run_again(tmp_path: Path, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"

    def press(job: Job) -> None:
        if job.number == 5:
            raise KeyboardInterrupt

    with pytest.raises(package.SweepInterrupted):
        run_plan(plan, Here(press), out=out)
    parts = sorted((out / "parts").glob("*.arrow"))
    assert len(parts) == 15
    parts[0].write_bytes(parts[0].read_bytes()[:-100])
    parts[1].write_bytes(b"")
    second = Here()
    assert run_plan(plan, second, out=out).runs_done == 20
    assert len(second.done) == 7


def half_way(plan_file: Path, out: Path) -> subprocess.Popen[str]:
    """A sweep of many runs, which has stopped itself when 20 were done."""
    plan_file.write_text(PLAN.replace("count = 4", "count = 12"))
    process = start_until("linkweir.commands.sweep.bar", 20, "sweep", plan_file, "--out", out, "--jobs", "2")
    assert provenance(out)["status"] == "running"
    assert len(list((out / "parts").glob("*.arrow"))) == 20
    return process


@pytest.mark.slow
@pytest.mark.usefixtures("bounded", "undrawn")
def test_ctrl_c_on_the_command_leaves_a_usable_part(tmp_path: Path, plan_file: Path) -> None:
    out = tmp_path / "out"
    process = half_way(plan_file, out)
    interrupt(process)
    shown, errors = process.communicate()
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert "the same command resumes it" in errors
    partial = Sweep.load(out)
    assert partial.status == "interrupted"
    assert 20 <= partial.runs_done < 240
    assert f"{partial.runs_done} of 240 runs done" in shown
    assert len(partial.table["run"].unique()) == partial.runs_done
    assert not list(out.rglob("*.part"))

    done = linkweir("sweep", plan_file, "--out", out, "--json")
    summary = strict_json(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (summary["status"], summary["runs_done"]) == ("complete", 240)
    assert summary["runs_now"] == 240 - partial.runs_done
    table = Sweep.load(out).table
    assert table["run"].unique().to_pylist() == list(range(1, 241))
    assert table.num_rows == 240 * 7


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
def test_killed_processes_lose_and_double_no_run(tmp_path: Path, plan_file: Path) -> None:
    plan, executor = Plan.load(plan_file), LocalProcesses(2)
    killed: list[int] = []

    def kill(done: int, planned: int, failed: int) -> None:
        if done == 24:
            for pid in executor.pids:  # one of them at least is in the middle of a run
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    sweep = run_plan(plan, executor, out=tmp_path / "killed", progress=kill)
    assert len(killed) == 2
    assert (sweep.status, sweep.runs_now) == ("complete", RUNS)
    run_plan(plan, Here(), out=tmp_path / "here")
    assert data(tmp_path / "killed") == data(tmp_path / "here")
    assert executor.pids == []


@pytest.mark.usefixtures("bounded")
def test_a_run_that_takes_its_processes_with_it_fails_and_the_others_go_on(tmp_path: Path) -> None:
    scenario = package.Scenario.parse(ENDLESS)
    small = package.Scenario.parse(SMALL)
    plan = Plan.of_scenarios("deadly", [({"which": "endless"}, scenario), ({"which": "small"}, small)])
    executor, over = LocalProcesses(1), threading.Event()
    killed: set[int] = set()

    def kill() -> None:
        while not over.wait(0.5):
            for pid in executor.pids:
                if pid not in killed and len(killed) < 3:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        sweep = run_plan(plan, executor, out=tmp_path / "out")
    finally:
        over.set()
        killer.join()
    assert len(killed) == 3
    assert (sweep.status, sweep.runs_done) == ("failed", 1)
    assert [str(failure) for failure in sweep.failures] == [
        'case 1 (which = "endless"), seed 1: its process was killed by SIGKILL, 3 times; does it need too much memory?'
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_failing_case_is_named_and_the_others_go_on(
    tmp_path: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = Plan.load(plan_file), tmp_path / "out"

    class Spoilt(Here):
        def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
            super().run((replace(job, text="spoilt") if job.number in (4, 70) else job for job in jobs), take)

    sweep = run_plan(plan, Spoilt(), out=out)
    assert (sweep.status, sweep.runs_done, sweep.runs_now) == ("failed", 78, 78)
    assert [failure.run for failure in sweep.failures] == [4, 70]
    first = str(sweep.failures[0])
    assert first.startswith(
        'case 1 (link.rate = "1Mbit", class.af.rate = "300kbit", flow.voice.rate = "200kbit"), seed 4: '
    )
    assert provenance(out)["status"] == "failed"
    assert json.loads((out / "summary.json").read_text())["failures"][1]["run"] == 70
    loaded = Sweep.load(out)
    assert loaded.failures == sweep.failures
    assert not {4, 70} & set(loaded.table["run"].to_pylist())

    monkeypatch.setattr("linkweir.sweeps.execute.LocalProcesses", lambda jobs: Spoilt())
    done = linkweir("sweep", plan_file, "--out", out)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"linkweir: failed: {first}"
    assert "78 of 80 runs done: 0 now, 78 before" in done.stdout
    monkeypatch.undo()

    cured = Here()
    assert run_plan(plan, cured, out=out).status == "complete"
    assert sorted(cured.done) == [4, 70]


def test_an_answer_of_another_version_or_none_is_a_failure(plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))

    class Strange(Here):
        def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
            for job in jobs:
                answer = work(job)
                if job.number == 2:
                    answer = replace(answer, version="0.0.1 abc")
                if job.number != 3:
                    take(answer)
                    take(answer)

    sweep = run_plan(Plan.load(plan_file), Strange())
    assert sweep.runs_done == sweep.runs_now == 18
    assert "was done by linkweir 0.0.1 abc" in sweep.failures[0].error
    assert sweep.failures[1].error == "the executor gave no answer"
    assert sweep.table.num_rows == 18 * 7


@pytest.mark.usefixtures("undrawn")
def test_another_plan_another_input_or_another_version_is_refused(tmp_path: Path, plan_file: Path) -> None:
    out, trace = tmp_path / "out", tmp_path / "trace.csv"
    trace.write_text("t_s,capacity_bps\n0,1000000\n")
    text = 'scenario = "base.toml"\n[grid]\nlink.loss = [0.0, 0.1]\n'
    (tmp_path / "base.toml").write_text(BASE.replace('rate = "2Mbit"', 'trace = "trace.csv"'))
    plan_file.write_text(text)
    assert linkweir("sweep", plan_file, "--out", out, "--jobs", "1").returncode == 0
    assert provenance(out)["inputs"][0]["source"].endswith("trace.csv")
    kept = [path.read_bytes() for path in (out / "inputs").iterdir()]
    assert kept == [trace.read_bytes()]
    rows = Sweep.load(out).table.to_pylist()
    assert [row["capacity_bps"] for row in rows if row["scope"] == "link"] == pytest.approx([1e6, 1e6], rel=1e-12)
    cures = "choose another --out, or start over with --force"

    def refused() -> str:
        before = data(out)
        done = linkweir("sweep", plan_file, "--out", out)
        assert done.returncode == 2
        # What the trace was taken for comes first.
        assert all(line.startswith("read: ") for line in done.stdout.splitlines())
        assert cures in done.stderr
        assert data(out) == before
        return done.stderr

    trace.write_text("t_s,capacity_bps\n0,2000000\n")
    assert f"{trace} has changed since the sweep began" in refused()
    trace.write_bytes(kept[0])
    plan_file.write_text(text.replace("0.1", "0.2"))
    assert "the plan or its scenario has changed since the sweep began" in refused()
    plan_file.write_text(text.replace("0.1", "0.1, 0.2"))
    assert "(2 runs then, 3 now)" in refused()
    plan_file.write_text(text)
    assert linkweir("sweep", plan_file, "--out", out).returncode == 0
    noted = provenance(out)
    (out / "provenance.json").write_text(json.dumps({**noted, "commit": "older"}))
    assert "its runs were done by commit older" in refused()

    plan_file.write_text(text.replace("0.1", "0.2"))
    done = linkweir("sweep", plan_file, "--out", out, "--force", "--json", "--jobs", "1")
    assert (done.returncode, strict_json(done.stdout)["runs_now"]) == (0, 2)


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, plan_file: Path, small: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("all I have")
    for force in ([], ["--force"]):
        done = linkweir("sweep", plan_file, "--out", out, *force)
        assert done.returncode == 2
        assert "is not empty and is not an earlier sweep; choose another --out" in done.stderr
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    assert linkweir("run", small, "--out", tmp_path / "run").returncode == 0
    done = linkweir("sweep", plan_file, "--out", tmp_path / "run", "--force")
    assert done.returncode == 2
    with pytest.raises(package.DirectoryError, match="holds a run, not a sweep"):
        Sweep.load(tmp_path / "run")


def test_two_processes_do_not_do_the_same_sweep(tmp_path: Path, plan_file: Path) -> None:
    outputs = []

    def second(job: Job) -> None:
        if not outputs:
            outputs.append(linkweir_process("sweep", plan_file, "--out", tmp_path / "out"))
            raise KeyboardInterrupt

    with pytest.raises(package.SweepInterrupted):
        run_plan(Plan.load(plan_file), Here(second), out=tmp_path / "out")
    assert outputs[0].returncode == 2
    assert "another process is writing this sweep; wait for it or choose another --out" in outputs[0].stderr


@pytest.mark.usefixtures("bounded", "undrawn")
def test_a_sweep_that_was_killed_goes_on(tmp_path: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    out = tmp_path / "out"
    process = half_way(plan_file, out)
    assert len(list(tmp_path.glob("linkweir-scratch-*"))) == 1
    process.kill()
    process.communicate()
    while list(tmp_path.glob("linkweir-scratch-*")):
        time.sleep(0.01)  # its workers end and clean up after it
    with pytest.raises(package.DirectoryError, match="still running or was killed; the same command resumes it"):
        Sweep.load(out)
    found = len(list((out / "parts").glob("*.arrow")))
    done = linkweir("sweep", plan_file, "--out", out, "--json")
    assert strict_json(done.stdout)["runs_now"] == 240 - found


@pytest.mark.slow
def test_a_pipe_gets_no_bar_and_a_terminal_does(tmp_path: Path, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    done = linkweir_process("sweep", plan_file, "--out", tmp_path / "pipe")
    assert (done.returncode, done.stderr) == (0, "")
    assert "20 of 20 runs done: 20 now, 0 before" in done.stdout.splitlines()
    ours, theirs = pty.openpty()
    words = [*COMMAND, "sweep", str(plan_file), "--out", str(tmp_path / "terminal")]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 4096):
            seen += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"runs" in seen
    assert b"20/20" in seen


def test_words_of_the_command_that_contradict_each_other_are_refused(plan_file: Path) -> None:
    assert linkweir("sweep", plan_file, "--jobs", "2", "--dask", "tcp://127.0.0.1:1").returncode == 2
    assert linkweir("sweep", plan_file, "--jobs", "0").returncode == 2
    pytest.importorskip("distributed")
    done = linkweir("sweep", plan_file, "--dask", "somewhere")
    assert done.returncode == 2
    assert "somewhere" in done.stderr


def test_a_sweep_without_dask_says_how_to_get_it(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = linkweir("sweep", plan_file, "--dask", "tcp://127.0.0.1:1")
    assert done.returncode == 1
    assert "pip install 'dask[distributed]'" in done.stderr


def test_populations_may_differ_and_columns_are_those_of_all(tmp_path: Path) -> None:
    base = {
        "duration": "1s",
        "link": {"rate": "1Mbit"},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all"}],
        "flow": [{"name": "users", "class": "all", "kind": "poisson", "rate": "50kbit"}],
    }
    sweep = package.sweep({"scenario": base, "grid": {"flow.users.count": [1, 5]}}, out=tmp_path / "out", jobs=1)
    rows = sweep.table.to_pylist()
    assert [sum(row["scope"] == "flow" for row in rows if row["flow.users.count"] == count) for count in (1, 5)] == [
        1,
        5,
    ]
    assert pq.read_schema(tmp_path / "out" / "results" / "runs.parquet").names == sweep.table.column_names


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_sweep_that_ended_while_its_data_set_was_put_together_is_resumed(
    tmp_path: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException | type[BaseException]
) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"
    straight = run_plan(plan, Here(), out=tmp_path / "straight")
    assert straight.directory is not None

    def cut_off(self: object, table: object) -> None:
        raise end

    monkeypatch.setattr("linkweir.tables.run_tables.TableFile.add", cut_off)
    with pytest.raises((KeyboardInterrupt, OSError)):
        run_plan(plan, Here(), out=out)
    monkeypatch.undo()
    assert len(list((out / "parts").glob("*.arrow"))) == 20
    with pytest.raises(package.DirectoryError, match="the same command resumes it"):
        Sweep.load(out)
    second = Here()
    assert run_plan(plan, second, out=out).status == "complete"
    assert second.done == []
    assert data(out) == data(straight.directory)
    assert not (out / "parts").exists()
    assert Sweep.load(out).status == "complete"
    assert "error" not in provenance(out)


@pytest.mark.parametrize("kept", [0, 15, 20])
@pytest.mark.usefixtures("undrawn")
def test_a_damaged_data_set_is_named_and_made_again(tmp_path: Path, plan_file: Path, kept: int) -> None:
    """From the parts that are still there, as after a power cut, and from new runs in place of the others."""
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"
    first = Here()
    run_plan(plan, first, out=out)
    whole = data(out)
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 1
    (out / "results" / "runs.parquet").write_bytes(broken)
    with pytest.raises(package.DirectoryError, match=r"runs\.parquet: is damaged"):
        _ = Sweep.load(out).table
    if kept:
        (out / "parts").mkdir()
    for run in plan.runs[:kept]:
        (out / "parts" / f"{run.job.identity}.arrow").write_bytes(work(run.job).rows or b"")
    done = linkweir("sweep", plan_file, "--out", out, "--json", "--jobs", "1")
    assert (done.returncode, strict_json(done.stdout)["runs_now"]) == (0, 20 - kept)
    assert done.stderr == (
        f"linkweir: {out}/results/runs.parquet: is damaged or missing; rebuilding it: {kept} runs are still in parts/, "
        f"{20 - kept} are run again\n"
    )
    assert data(out) == whole
    (out / "summary.json").unlink()
    assert linkweir("sweep", plan_file, "--out", out).returncode == 0
    assert Sweep.load(out).table.num_rows == 20 * 7


def test_distributions_are_kept_and_made_again_when_they_are_lost(tmp_path: Path, plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 2"))
    out = tmp_path / "out"
    first = package.sweep(plan_file, out=out, jobs=2)
    file = out / "results" / "delays.parquet"
    content = file.read_bytes()
    assert first.delays.equals(package.sweep(plan_file, jobs=1).delays)
    case = Plan.load(plan_file).cases[1]
    runs = [package.Scenario.parse(case.text, seed=seed) for seed in (1, 2)]
    merged = package.delays.merge(package.run(run).delays for run in runs)
    kept = [row for row in first.delays.to_pylist() if row["case"] == 2]
    assert [[row[name] for name in merged.column_names] for row in kept] == [
        list(row.values()) for row in merged.to_pylist()
    ]
    file.unlink()
    with pytest.raises(package.DirectoryError, match=r"delays\.parquet: is damaged or missing"):
        _ = Sweep.load(out).delays
    with pytest.warns(UserWarning, match=r"delays\.parquet: is damaged or missing; rebuilding it"):
        package.sweep(plan_file, out=out, jobs=2)
    assert file.read_bytes() == content


def test_a_sweep_of_an_earlier_version_without_a_hash_is_read(tmp_path: Path, plan_file: Path) -> None:
    """A version that noted the sources but not yet the hash, and one that noted neither."""
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"
    first = run_plan(plan, Here(), out=out)
    whole, noted = data(out), provenance(out)
    del noted["runs_sha256"]
    (out / "provenance.json").write_text(json.dumps(noted))
    assert Sweep.load(out).table.equals(first.table)
    again = Here()
    assert run_plan(plan, again, out=out).status == "complete"
    assert (again.done, data(out)) == ([], whole)
    del noted["sources_sha256"]
    (out / "provenance.json").write_text(json.dumps(noted))
    assert Sweep.load(out).table.equals(first.table)
    with pytest.raises(package.DirectoryError, match="done by an earlier version, which noted no sources; choose"):
        run_plan(plan, Here(), out=out)
    (out / "results" / "runs.parquet").unlink()
    with pytest.raises(package.DirectoryError, match=r"runs\.parquet: is damaged or missing"):
        _ = Sweep.load(out).table


def test_a_sweep_killed_before_its_first_note_or_while_it_is_overwritten_is_resumed(
    tmp_path: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    plan, out = Plan.load(plan_file), tmp_path / "out"
    out.mkdir()
    (out / ".provenance.json.part").write_text('{"linkw')
    assert run_plan(plan, Here(), out=out).status == "complete"
    whole = data(out)

    def cut_off(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", cut_off)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, Here(), out=out, force=True)
    monkeypatch.undo()
    with pytest.raises(package.DirectoryError, match="still running or was killed"):
        Sweep.load(out)
    again = Here()
    assert run_plan(plan, again, out=out).status == "complete"
    assert (len(again.done), data(out)) == (20, whole)


def test_ctrl_c_while_parts_are_removed_leaves_a_complete_sweep(
    tmp_path: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))

    def press(path: Path, **_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", press)
    with pytest.raises(KeyboardInterrupt):
        run_plan(Plan.load(plan_file), Here(), out=tmp_path / "out")
    assert Sweep.load(tmp_path / "out").status == "complete"


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_two_builds_of_one_commit_with_other_sources_do_not_mix_their_runs(tmp_path: Path, plan_file: Path) -> None:
    """As two dirty trees of a commit, or two unpacked archives, whose commit nobody knows."""
    plan_file.write_text(PLAN.replace("count = 4", "count = 1"))
    out, other = tmp_path / "out", tmp_path / "other"
    assert linkweir("sweep", plan_file, "--out", out, "--jobs", "1").returncode == 0
    shutil.copytree(Path(package.__file__).parent, other / "linkweir", ignore=shutil.ignore_patterns("__pycache__"))
    words = ("sweep", plan_file, "--out", out, "--jobs", "1")
    elsewhere = {**os.environ, "PYTHONPATH": str(other)}
    done = linkweir_process(*words, env=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    with (other / "linkweir" / "runs" / "simulate.py").open("a") as file:
        file.write("# another thought\n")
    done = linkweir_process(*words, env=elsewhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{out}: its runs were done by sources " in done.stderr
    assert "choose another --out, or start over with --force" in done.stderr


def test_the_native_module_knows_the_sources_it_was_built_from() -> None:
    """64-bit FNV-1a (Fowler, Noll and Vo) over names and contents, in the order of the names."""
    files = [REPOSITORY / "crates/linkweir-py/packages.lock"]
    for folder in (
        "core/include",
        "core/src",
        *(f"crates/linkweir-{crate}/src" for crate in ("config", "core", "panels", "py", "sim", "user", "web")),
        "crates/linkweir-user/harness",
    ):
        files += [path for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    digest = 0xCBF29CE484222325
    for path in sorted(files):
        for part in (str(path.relative_to(REPOSITORY)).encode(), path.read_bytes()):
            for byte in part:
                digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    assert package._native.sources == f"{digest:016x}", "built from other sources than these; run make build"
