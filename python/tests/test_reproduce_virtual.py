# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the kernel compared with simulation and theory, with both kinds of runs made up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from linkweir.commands.reproduce import app
from linkweir.directories.parts import Parts
from linkweir.fault import DirectoryError
from linkweir.reproduce import ef_delay, native, virtual
from linkweir.reproduce.compact import compact
from linkweir.reproduce.execute import Outcome
from linkweir.reproduce.figure import Row, Scenario, Tables
from linkweir.reproduce.papers import pds, pss

runner = CliRunner()


class Made:
    def __init__(self, **tables: list[Row]) -> None:
        self._tables = tables

    def rows(self, table: str) -> list[Row]:
        return self._tables[table]


def af_of(rate: Callable[[Scenario], float]) -> Any:
    """A runner whose runs give AF this rate, EF 0.25 s plus a little, and CS0 what is left of 20 Mbit/s."""

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        for number, scenario in enumerate(scenarios):
            af_bps = rate(scenario)
            rates = {"ef": 1e7, "af": af_bps, "cs0": 1e7 - af_bps}
            classes = [{"class": c, "rate_bps": r, "loss": 0.0, "backlog_mean_pkts": 1.0} for c, r in rates.items()]
            series = [{"class": name, "t_s": 0.0, "backlog_pkts": 1, "sent_bytes": 0} for name in rates]
            flow = {"class": "ef", "flow": "ef", "delay_mean_s": 0.2503, "delay_max_s": 0.2506}
            take(number, Made(classes=classes, flows=[flow], series=series, levels=[]))

    return run


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(native, "on", lambda *_: af_of(lambda _: 4e6))
    monkeypatch.setattr(virtual, "laboratory", lambda _: SimpleNamespace())
    monkeypatch.setattr(virtual, "runner", lambda *_: af_of(lambda scenario: 5e6 + 1e5 * scenario["seed"]))
    return tmp_path


def answers(*arguments: str) -> dict[Any, list[Row]]:
    result = runner.invoke(app, [*arguments, "--json", "--out", "out", "--force"])
    assert result.exit_code == 0, result.output
    return {answer["figure"]: answer["rows"] for answer in json.loads(result.stdout)}


@pytest.mark.usefixtures("faked")
def test_rows_are_means_over_seeds_and_say_where_they_come_from() -> None:
    found = answers("pss", "--where", "virtual", "--figure", "6", "--seed", "1")
    rows = found[6]
    assert len(rows) == 2 * 54
    ours = [row["af_mbps"] for row in rows if row["where"] == "kernel"]
    assert ours == pytest.approx([5.2] * 54)  # seeds 1, 2 and 3
    assert {row["af_mbps"] for row in rows if row["where"] == "simulation"} == {4.0}
    assert {row["run"] for row in rows} == {
        f"{where} {scheduler}" for where in ("kernel", "simulation") for scheduler in ("pss", "dwrr")
    }
    assert len(found["6-ef-delay"]) == 3 * 54
    # The link's 250 ms, two packets of 1500 bytes at 20 Mbit/s, and 0.1 ms for the kernel.
    assert [row["bound_ms"] for row in found["6-ef-delay"]] == pytest.approx([250 + 2 * 0.6 + 0.1] * 162)


@pytest.mark.usefixtures("faked")
def test_distances_are_those_of_the_worst_point() -> None:
    found = answers("pss", "--where", "virtual", "--figure", "6", "--seeds", "1")
    pss_row = next(row for row in found["6-distances"] if row["scheduler"] == "pss")
    # Theory is 2 Mbit/s at K_AF 0.2, the smallest that counts: there 5.1 is furthest from it, and the simulation's 4.
    assert pss_row["points"] == 24
    assert pss_row["kernel_from_theory"] == pytest.approx(155.0)
    assert pss_row["simulation_from_theory"] == pytest.approx(100.0)
    assert pss_row["at"].endswith("K_AF 0.2")


def test_over_gateways_ef_may_wait_three_packet_times_and_2_ms_where_capacity_is_fixed() -> None:
    """A packet of 1500 bytes takes 0.6 ms at 20 Mbit/s."""
    of_class = {"class": "ef", "dropped_limit_pkts": 1, "dropped_policy_pkts": 2}
    of_class |= {"delay_p50_s": 0.0005, "delay_p99_s": 0.002, "delay_max_s": None}
    of_flow = {"flow": "ef", "arrived_pkts": 100, "delivered_pkts": 97}
    sets = [[pss.FIGURES[name](pss.PssOptions("tcp")) for name in ("6", "7")]]
    fixed, changing = (figure.cases[0] for figure in sets[0])
    run = Made(classes=[{"class": "af"}, of_class], flows=[{"flow": "af"}, of_flow])
    outcome = Outcome({case.key: run for case in (fixed, changing)})
    (shown,) = ef_delay.over_gateways([*sets, *sets], outcome)
    assert [row["allowed_ms"] for row in shown.rows] == [pytest.approx(3.8), None]
    for row in shown.rows:
        assert (row["sent_pkts"], row["came_pkts"], row["dropped_pkts"]) == (100, 97, 3)
        assert (row["p50_ms"], row["p99_ms"], row["max_ms"]) == (0.5, 2.0, None)
    assert ef_delay.over_gateways(sets, Outcome()) == []


def test_the_page_shows_both(faked: Path) -> None:
    result = runner.invoke(app, ["pss", "--where", "virtual", "--figure", "6", "--quick", "--out", "out"])
    assert result.exit_code == 0, result.output
    assert "5.10" in result.stdout
    report = (faked / "out/report.html").read_text()
    assert "kernel pss, EF 0.5" in report
    assert "simulation dwrr, EF 0.5" in report


def test_a_document_gets_tables_of_both_and_the_pictures_it_shows(faked: Path) -> None:
    document = faked / "doc.md"
    document.write_text("![rates](images/pss-6-virtual.svg)\n<!-- table pss-6-virtual -->\nold\n<!-- end -->\n")
    command = ["pss", "--where", "virtual", "--figure", "6", "--quick", "--out", "out", "--into", "doc.md"]
    assert runner.invoke(app, command).exit_code == 0
    assert "AF, CS0 in Mbit/s: kernel / simulation; theory in brackets." in document.read_text()
    assert "| 0.9 | 5.10 / 4.00 (9.00), 4.90 / 6.00 (6.00) |" in document.read_text()
    picture = (faked / "out/figure-6.svg").read_text()
    assert (faked / "images/pss-6-virtual.svg").read_text() == compact(picture)
    assert len(compact(picture)) < 0.8 * len(picture)
    assert compact(picture).count("<path") == picture.count("<path")


def losing(parts: Sequence[float]) -> Any:
    """A runner whose runs lose these parts of 1000 packets of each class and bin."""
    series = [
        {
            "t_s": 0.1 * n,
            "class": f"class {i}",
            "arrived_pkts": 1000,
            "sent_pkts": round(1000 * (1 - part)),
            "dropped_policy_pkts": round(1000 * part),
            "dropped_limit_pkts": 0,
            "delay_mean_s": 0.001 * i,
        }
        for n in range(90)
        for i, part in enumerate(parts, 1)
    ]

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        for number in range(len(scenarios)):
            take(number, Made(series=series))

    return run


@pytest.mark.slow
def test_histories_are_judged_in_both() -> None:
    figure = pds.FIGURES["11"](pds.PdsOptions(nseeds=1))
    runners = [losing([first, *(0.1,) * 7]) for first in (0.2, 0.4)]
    _, (shown,) = virtual.run_all([[figure]], *runners, lambda: None)
    found = [(row["where"], row["ratio"]) for row in shown.details if row["history"] == "ring 1500"]
    assert found == [
        (where, pytest.approx(ratio)) for where, ratio in (("kernel", 2.0), ("simulation", 4.0)) for _ in range(2)
    ]


def test_ratios_that_were_asked_for_stand_above_those_found() -> None:
    figure = pds.FIGURES["4"](pds.PdsOptions(nseeds=1))
    _, (shown,) = virtual.run_all([[figure]], losing([0.1] * 8), losing([0.2] * 8), lambda: None)
    assert shown.figure.summary is not None
    _, lines = shown.figure.summary(shown.rows)
    found = {line[2]: line[3:] for line in lines if line[:2] == ["8 to 9", "delay ratio"]}
    assert [*found] == ["nominal", "theory", "4, ring 1500, limit 80, kernel and simulation"]
    assert found["nominal"] == ["1", "2.01", "3.02", "4.03", "5.06", "6.04", "7.14", "8.26"]  # section 4.2


def test_lines_of_two_worlds_are_not_paired_where_one_lacks_some() -> None:
    figure = pds.FIGURES["4"](pds.PdsOptions(nseeds=1))
    _, (shown,) = virtual.run_all([[figure]], losing([0.1] * 8), losing([0.2] * 8), lambda: None)
    assert shown.figure.summary is not None
    _, whole = shown.figure.summary(shown.rows)
    kept = [row for row in shown.rows if row["where"] == "kernel" or row["t_to_s"] != 9]
    _, lines = shown.figure.summary(kept)
    assert any(line[2].endswith(", simulation") for line in whole)
    where = [line[2].rsplit(", ", 1)[1] for line in lines]
    assert where == sorted(where)
    assert {*where} == {"kernel", "simulation"}


def test_the_scenarios_of_every_seed_are_kept(faked: Path) -> None:
    answers("pss", "--where", "virtual", "--figure", "6", "--seed", "1")
    with gzip.open(faked / "out/scenarios.json.gz") as file:
        kept = json.load(file)
    assert len(set(kept["figures"]["6"])) == 3 * 54
    assert {scenario["seed"] for scenario in kept["scenarios"].values()} == {1, 2, 3}


def test_an_interrupted_reproduction_can_be_gone_on_with(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        af_of(lambda _: 5e6)(scenarios[:2], take)
        raise KeyboardInterrupt

    monkeypatch.setattr(virtual, "runner", lambda *_: stopped)
    command = ["pss", "--where", "virtual", "--figure", "6", "--seeds", "1", "--out", "out"]
    result = runner.invoke(app, command)
    assert result.exit_code == 1
    assert "interrupted after 2 of 54 runs" in result.output
    assert "the same command with --out out resumes it" in result.output
    refused = runner.invoke(app, ["pss", "--traffic", "tcp", "--figure", "6", "--out", "out"])
    assert isinstance(refused.exception, DirectoryError)  # the same runs, but not the same reproduction
    monkeypatch.setattr(virtual, "runner", lambda *_: af_of(lambda _: 5e6))
    assert runner.invoke(app, command).exit_code == 0
    assert json.loads((faked / "out/summary.json").read_text())["complete"]


class Counted:
    """A laboratory with this guest, which notes the seeds it runs and is stopped before it runs some seed."""

    def __init__(self, identity: str, stop_at: int | None = None) -> None:
        self.guest = SimpleNamespace(identity=identity)
        self.ran: list[int] = []
        self._stop_at = stop_at

    def run_many(
        self, scenarios: Sequence[Scenario], *, jobs: int | None, on_result: Callable[[int, Any], None]
    ) -> None:
        for number, scenario in enumerate(scenarios):
            if scenario["seed"] == self._stop_at:
                raise KeyboardInterrupt
            self.ran.append(scenario["seed"])
            tables = {"classes": pa.table({"class": ["af"], "rate_bps": [1e6 * scenario["seed"]]})}
            on_result(number, SimpleNamespace(tables=tables, rows=lambda name, of=tables: of[name].to_pylist()))


def test_a_kernels_run_is_done_once_by_each_guest(tmp_path: Path) -> None:
    case = pss.FIGURES["6"](pss.PssOptions("tcp", False, 30.0, 1)).cases[0].scenario
    scenarios = [{**case, "seed": seed} for seed in (1, 2, 3)]
    parts = Parts(tmp_path)
    parts.make()

    def rates(laboratory: Counted) -> dict[int, float]:
        found: dict[int, float] = {}

        def take(number: int, tables: Tables) -> None:
            found[number] = tables.rows("classes")[0]["rate_bps"]

        virtual.runner(laboratory, 1, parts)(scenarios, take)  # type: ignore[arg-type]
        return found

    stopped = Counted("old", stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        rates(stopped)
    assert stopped.ran == [1, 2]
    again = Counted("old")
    assert rates(again) == {0: 1e6, 1: 2e6, 2: 3e6}
    assert again.ran == [3]
    other = Counted("new")
    assert rates(other) == {0: 1e6, 1: 2e6, 2: 3e6}
    assert other.ran == [1, 2, 3]


def test_figures_keep_what_a_kernel_can_run() -> None:
    figure = pds.FIGURES["9"](pds.PdsOptions(quick=True))
    part = virtual.possible(figure)
    assert part is not None
    assert {case.scenario["link"]["ring"] for case in figure.cases} == {1, 2, 16}
    assert {case.scenario["link"]["ring"] for case in part.cases} == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pss", "--where", "moon"], '--where = "moon": must be sim or virtual'),
        (["pds", "--where", "moon"], '--where = "moon": must be sim or virtual'),
        (
            ["pss", "--where", "virtual", "--traffic", "backlogged"],
            '--traffic = "backlogged": must be tcp in the kernel',
        ),
        (
            ["pss", "--where", "virtual", "--dask", "tcp://host:8786"],
            '--dask = "tcp://host:8786": is for --where sim; the laboratory runs its kernels on this machine',
        ),
        (["pds", "--where", "virtual", "--dask", "tcp://host:8786"], "is for --where sim"),
        (["pss", "--seeds", "2"], "--seeds = 2: is for --where virtual"),
        (["pss", "--where", "virtual", "--table", "ring"], '--table = "ring": must be one of'),
    ],
)
@pytest.mark.usefixtures("faked")
def test_what_cannot_be_is_refused(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.output
