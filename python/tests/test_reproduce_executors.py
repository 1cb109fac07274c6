# SPDX-License-Identifier: BSD-3-Clause
"""Reproductions on the executors of sweeps: the same rows wherever they ran, nothing run twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from command import linkweir, linkweir_process

import linkweir as package
from linkweir.commands import reproduction
from linkweir.reproduce import execute, native
from linkweir.reproduce.figure import Figure, Row
from linkweir.reproduce.papers import pss
from linkweir.sweeps import Answer, Executor, Job, LocalProcesses, work

FIGURE = ("reproduce", "pss", "--table", "ring", "--duration", "2s")
RUNS = 10


class Here:
    """Does runs in this process and counts them; `before` may spoil one."""

    def __init__(self, before: Callable[[int], None] = lambda done: None) -> None:
        self.done = 0
        self._before = before

    def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
        for job in jobs:
            self._before(self.done)
            take(work(job))
            self.done += 1


def ring() -> Figure:
    return pss.table_ring(pss.PssOptions(duration_s=2.0))


def rows(executor: Executor) -> list[Row]:
    figure = ring()
    outcome = execute.execute(execute.distinct([figure]), native.on(executor), lambda: None)
    assert outcome.complete
    return execute.show(figure, outcome).rows


def kept(directory: Path) -> list[str]:
    return [path.suffix for path in (directory / "parts").iterdir()]


def use(monkeypatch: pytest.MonkeyPatch, executor: Executor) -> None:
    @contextlib.contextmanager
    def given(jobs: int | None, address: str | None) -> Iterator[Executor]:
        yield executor

    monkeypatch.setattr(reproduction, "executor_of", given)


def stop_after(count: int, error: BaseException) -> Callable[[int], None]:
    def before(done: int) -> None:
        if done == count:
            raise error

    return before


def test_rows_are_those_of_run_many() -> None:
    figure = ring()
    assert len(figure.cases) == RUNS
    results = package.run_many([case.scenario for case in figure.cases])
    plain = figure.measure(list(zip(figure.cases, results, strict=True)))
    assert len({row["af_mbps"] for row in plain}) > 3
    assert rows(Here()) == plain
    assert rows(LocalProcesses(2)) == plain


def test_whole_tables_come_back_as_they_are() -> None:
    scenario = ring().cases[0].scenario
    given: dict[str, list[Row]] = {}

    def take(number: int, tables: execute.Tables) -> None:
        given.update({name: tables.rows(name) for name in result.tables})

    result = package.run(scenario)
    native.on(Here())([scenario], take)
    assert {"series", "classes", "flows", "link"} <= set(given)
    assert given == {name: result.rows(name) for name in result.tables}


def test_an_interrupted_reproduction_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Here())
    whole = linkweir(*FIGURE, "--out", tmp_path / "whole", "--json")
    assert whole.returncode == 0, whole.stderr
    out = tmp_path / "out"
    use(monkeypatch, Here(stop_after(4, KeyboardInterrupt())))
    first = linkweir(*FIGURE, "--out", out, "--json")
    assert first.returncode == 1
    assert f"interrupted after 4 of {RUNS} runs; {out} holds the runs that are done; the same command with --out" in (
        first.stderr
    )
    assert kept(out) == [".arrow"] * 4
    (out / "parts" / ".cut.arrow.part").write_text("half")
    spoilt = sorted((out / "parts").glob("*.arrow"))[0]
    spoilt.write_bytes(spoilt.read_bytes()[:-9])
    rest = Here()
    use(monkeypatch, rest)
    second = linkweir(*FIGURE, "--out", out, "--json")
    assert second.returncode == 0, second.stderr
    assert rest.done == RUNS - 3  # one of the four was damaged
    assert second.stdout == whole.stdout
    assert (out / "rows.json").read_bytes() == (tmp_path / "whole" / "rows.json").read_bytes()
    assert not (out / "parts").exists()
    assert json.loads((out / "provenance.json").read_text())["status"] == "complete"
    third = linkweir(*FIGURE, "--out", out)
    assert third.returncode == 2
    assert "holds an earlier reproduction; choose another --out or overwrite it with --force" in third.stderr


def test_another_reproduction_does_not_go_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Here(stop_after(1, KeyboardInterrupt())))
    assert linkweir(*FIGURE, "--out", tmp_path / "out").returncode == 1
    rest = Here()
    use(monkeypatch, rest)
    other = (*FIGURE[:-1], "3s", "--out", tmp_path / "out")
    refused = linkweir(*other)
    assert (refused.returncode, rest.done) == (2, 0)
    assert "holds an earlier reproduction" in refused.stderr
    assert linkweir(*other, "--force").returncode == 0
    assert rest.done == RUNS


def test_another_build_does_not_go_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Here(stop_after(1, KeyboardInterrupt())))
    assert linkweir(*FIGURE, "--out", tmp_path / "out").returncode == 1
    noted = tmp_path / "out" / "provenance.json"
    noted.write_text(json.dumps(json.loads(noted.read_text()) | {"sources_sha256": 64 * "0"}))
    rest = Here()
    use(monkeypatch, rest)
    refused = linkweir(*FIGURE, "--out", tmp_path / "out")
    assert (refused.returncode, rest.done) == (2, 0)
    assert "holds an earlier reproduction" in refused.stderr


def test_one_killed_while_it_was_overwritten_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(path: Path) -> None:
        raise KeyboardInterrupt

    use(monkeypatch, Here(stop_after(1, KeyboardInterrupt())))
    assert linkweir(*FIGURE, "--out", tmp_path / "out").returncode == 1
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", cut_off)
        assert linkweir(*FIGURE, "--out", tmp_path / "out", "--force").returncode == 1
    rest = Here()
    use(monkeypatch, rest)
    done = linkweir(*FIGURE, "--out", tmp_path / "out")
    assert (done.returncode, rest.done) == (0, RUNS), done.stderr


def test_a_run_that_fails_is_named_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Third(Here):
        def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
            for job in jobs:
                take(Answer(job.number, None, "no memory") if job.number == 3 else work(job))

    use(monkeypatch, Third())
    failed = linkweir(*FIGURE, "--out", tmp_path / "out")
    assert failed.returncode == 1
    name = ring().cases[2].scenario["name"]
    assert f"{name}: no memory" in failed.stderr
    assert kept(tmp_path / "out") == [".arrow"] * 2
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["status"] == "failed"
    rest = Here()
    use(monkeypatch, rest)
    assert linkweir(*FIGURE, "--out", tmp_path / "out").returncode == 0
    assert rest.done == RUNS - 2


def test_answers_of_another_version_and_none_at_all() -> None:
    scenario = ring().cases[0].scenario

    class Strange(Here):
        def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
            for job in jobs:
                take(Answer(job.number, b"rows", version="9.9.9 abc"))

    class Silent(Here):
        def run(self, jobs: Iterable[Job], take: Callable[[Answer], None]) -> None:
            assert len(list(jobs)) == 1

    with pytest.raises(package.RunError, match=r"was done by linkweir 9\.9\.9 abc, here it is .*; install the same"):
        native.on(Strange())([scenario], lambda number, tables: None)
    with pytest.raises(package.RunError, match="1 of 1 runs: the executor gave no answer"):
        native.on(Silent())([scenario], lambda number, tables: None)


@pytest.mark.slow
def test_a_cluster_by_its_address(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as cluster:
        address = cluster.scheduler_address
        far = linkweir_process(*FIGURE, "--dask", address, "--out", tmp_path / "far", "--json")
        both = linkweir_process(*FIGURE, "--dask", address, "--jobs", 1, "--out", tmp_path / "both")
    near = linkweir_process(*FIGURE, "--jobs", 1, "--out", tmp_path / "near", "--json")
    assert far.returncode == near.returncode == 0, far.stderr
    assert far.stdout == near.stdout
    assert both.returncode == 2
    assert "not both" in both.stderr
    assert not (tmp_path / "both").exists()
