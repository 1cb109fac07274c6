# SPDX-License-Identifier: BSD-3-Clause
"""Figures as data: their runs, how rows follow from results, and what is written. No simulator is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from result_tables import Fake
from typer.testing import CliRunner

from linkweir.commands.reproduce import app
from linkweir.fault import DirectoryError
from linkweir.reproduce import directory, execute, native, page, plot
from linkweir.reproduce.figure import FigureCase, Row, Scenario, Tables
from linkweir.reproduce.papers import pds, pss

runner = CliRunner()
BACKLOGGED = pss.PssOptions()


def class_of(scenario: Scenario, name: str) -> dict[str, Any]:
    return next(c for c in scenario["class"] if c["name"] == name)


# --- Runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["5", "6", "12"])
def test_fifty_four_points(name: str) -> None:
    figure = pss.FIGURES[name](BACKLOGGED)
    points = [case.labels["point"] for case in figure.cases]
    assert len({(p.scheduler, p.ef_share, p.k_af) for p in points}) == 54


def test_figures_5_and_6_share_runs() -> None:
    """DWRR knows no expectation; at half the link both expect the same; 15 K = 10 K' three times, 5 K = 10 K' four
    times."""
    figures = [pss.FIGURES["5"](BACKLOGGED), pss.FIGURES["6"](BACKLOGGED)]
    assert len(execute.distinct(figures)) == 54 + 18 - 3 - 4


def test_pss_run() -> None:
    """K 0.3 of the 10 Mbit/s that an EF of half the link would leave."""
    run = pss.scenario(pss.Point("pss", 0.75, 0.5, 0.3, 0.01, False), BACKLOGGED, 100.0)
    assert run["scheduler"] == {"policy": "pss", "sat": "exact", "early": "charge"}
    af = class_of(run, "af")
    assert (af["rate"], af["burst"], af["mtu"], af["memory"]) == ("3000000bit", "20p", "1500B", "0.01s")
    assert af["level"] < class_of(run, "cs0")["level"] < af["low_level"]
    assert class_of(run, "ef") == {"name": "ef", "level": 1, "limit": "500p"}
    assert run["flow"][0]["rate"] == "15000000bit"


def test_pss_without_memory_has_the_least_level() -> None:
    """LR = Lmax * BW = 12000 * 0.2025."""
    run = pss.scenario(pss.Point("pss", 0.75, 0.75, 0.81, None, True), BACKLOGGED, 100.0)
    assert class_of(run, "af")["lr"] == "2430bit"
    assert "memory" not in class_of(run, "af")


@pytest.mark.parametrize(
    ("k", "quanta"), [(0.1, (1500, 13500)), (0.3, (1500, 3500)), (0.5, (1500, 1500)), (0.9, (13500, 1500))]
)
def test_dwrr_quanta(k: float, quanta: tuple[int, int]) -> None:
    run = pss.scenario(pss.Point("dwrr", 0.5, 0.5, k, None, False), BACKLOGGED, 100.0)
    assert (class_of(run, "af")["quantum"], class_of(run, "cs0")["quantum"]) == tuple(f"{q}B" for q in quanta)
    assert class_of(run, "ef")["level"] < class_of(run, "af")["level"] == class_of(run, "cs0")["level"]


def test_tcp_run() -> None:
    run = pss.scenario(pss.Point("pss", 0.5, 0.5, 0.5, 0.01, False), pss.PssOptions("tcp"), 100.0)
    assert (run["link"]["delay"], run["link"]["return_delay"]) == ("250ms", "250ms")
    assert [f["count"] for f in run["flow"] if f["kind"] == "tcp"] == [10, 10]
    assert class_of(run, "af")["limit"] == "833p"
    assert run["warmup"] == "10s"


def test_changing_capacity_run() -> None:
    run = pss.scenario(pss.Point("pss", 0.25, 0.25, 0.5, 15.0, True), BACKLOGGED, 915.0)
    assert run["link"]["rate"] == {"mean": "20000000bit", "amplitude": 0.3, "period": "15s"}
    assert run["link"]["nominal"] == "20000000bit"
    assert run["flow"][0]["rate"] == {"mean": "5000000bit", "amplitude": 0.6, "period": "6.1s"}


def test_report_traffic() -> None:
    """Class 8 dips first, class 1 second, class 5 third; the others do not."""
    run = pds.scenario(pds.Variant("4"), 1, 9.0)
    lines = {f["name"]: f["rate"]["lines"] for f in run["flow"]}
    ramp = [["4s", "13200000bit"], ["9s", "18000000bit"]]
    assert lines["source 2"] == [["0s", "13200000bit"], *ramp]
    for source, start in (("source 8", 1.5), ("source 1", 2.5), ("source 5", 3.5)):
        assert lines[source][1:4] == [
            [f"{start:g}s", "13200000bit"],
            [f"{start + 0.25:g}s", "4800000bit"],
            ["4s" if start == 3.5 else f"{start + 0.5:g}s", "13200000bit"],
        ]
    assert [f["start"] for f in run["flow"]] == [f"{100 * i}ms" for i in range(8)]
    assert run["link"] == {"rate": "100000000bit", "overhead": "38B", "ring": 1}


def test_early_loss_needs_decayed_history() -> None:
    run = pds.scenario(pds.Variant("5", history="peld"), 1, 9.0)
    assert run["scheduler"] == {
        "policy": "pds",
        "limit": "80p",
        "history": "decayed",
        "early": "peld",
        "qmin": "20p",
        "k": "1500p",
    }


def test_every_figure_names_its_cases_apart() -> None:
    for figure in [make(pds.PdsOptions()) for make in pds.FIGURES.values()]:
        assert len({(c.labels["variant"], c.labels["seed"]) for c in figure.cases}) == len(figure.cases)
        assert len(execute.distinct([figure])) == len(figure.cases)


# --- Rows -----------------------------------------------------------------------------------------------------------


def rates(**mbps: float) -> list[Row]:
    return [{"class": name, "rate_bps": 1e6 * value} for name, value in mbps.items()]


def test_rate_rows_have_the_promised_keys() -> None:
    case = next(
        c
        for c in pss.FIGURES["6"](BACKLOGGED).cases
        if (c.labels["point"].scheduler, c.labels["point"].ef_share, c.labels["point"].k_af) == ("pss", 0.75, 0.6)
    )
    assert pss.rate_rows([(case, Fake(classes=rates(ef=15.0, af=4.99, cs0=0.01)))]) == [
        {
            "scheduler": "pss",
            "traffic": "backlogged",
            "ef_share": 0.75,
            "ef_expected_share": 0.5,
            "k_af": 0.6,
            "memory_s": 0.01,
            "ef_mbps": 15.0,
            "af_mbps": pytest.approx(4.99),
            "cs0_mbps": pytest.approx(0.01),
            "af_theory_mbps": 5.0,
            "cs0_theory_mbps": 0.0,
        }
    ]


def test_first_seconds_come_from_the_series() -> None:
    case = FigureCase({"point": pss.Point("dwrr", 0.5, 0.5, 0.5, None, True), "traffic": "backlogged"}, {})
    series = [
        {"t_s": float(t), "class": c, "sent_bytes": 125_000 if t < 100 else 0}
        for t in range(101)
        for c in ("ef", "af", "cs0")
    ]
    row = pss.first_seconds_rows([(case, Fake(series=series))])[0]
    assert (row["ef_mbps"], row["af_mbps"], row["cs0_mbps"]) == (1.0, 1.0, 1.0)


def test_series_rows() -> None:
    case = FigureCase({"point": pss.Point("pss", 0.75, 0.75, 0.81, 15.0, True), "traffic": "backlogged"}, {})
    series = [{"t_s": 0.0, "class": c, "sent_bps": b} for c, b in (("ef", 9e6), ("af", 4e6), ("cs0", 7e6))]
    levels = [{"t_s": 0.0, "class": c, "credit_bits": b} for c, b in (("ef", 0), ("af", 60_750_000), ("cs0", 0))]
    assert pss.series_rows([(case, Fake(series=series, levels=levels))]) == [
        {
            "t_s": 0.0,
            "ef_mbps": 9.0,
            "af_mbps": 4.0,
            "cs0_mbps": 7.0,
            "level": 60_750_000,
            "scheduler": "pss",
            "memory_s": 15.0,
        }
    ]


def series_of_pds(losses: Sequence[float], delays_s: Sequence[float], bins: int) -> list[Row]:
    return [
        {
            "t_s": 0.1 * n,
            "class": f"class {i + 1}",
            "arrived_pkts": 1000,
            "sent_pkts": 1000 - round(1000 * losses[i]),
            "dropped_policy_pkts": round(1000 * losses[i]),
            "dropped_limit_pkts": 0,
            "delay_mean_s": delays_s[i],
        }
        for n in range(bins)
        for i in range(8)
    ]


def test_pds_rows_pool_bins_and_seeds() -> None:
    cases = pds.FIGURES["6"](pds.PdsOptions()).cases[:2]
    results = [
        (cases[0], Fake(series=series_of_pds([0.2] * 7 + [0.1], [0.001] * 8, 90))),
        (cases[1], Fake(series=series_of_pds([0.6] * 7 + [0.1], [0.003] * 8, 90))),
    ]
    rows = pds.rows(results)
    assert all(tuple(row) == pds.ROW_KEYS for row in rows)
    loaded = {row["class"]: row for row in rows if (row["t_from_s"], row["t_to_s"]) == (8.0, 9.0)}
    assert loaded[1]["loss"] == pytest.approx(0.4)
    assert loaded[1]["loss_ratio"] == pytest.approx(4.0)
    # 800 packets waited 1 ms and 400 waited 3 ms
    assert loaded[1]["delay_ms"] == pytest.approx(5 / 3)
    assert loaded[1]["delay_ratio"] == 1.0
    assert loaded[1]["history"] == "ring 1500"
    assert sum(pds.is_window(row) for row in rows) == 45 * 8


def test_no_loss_gives_no_ratio() -> None:
    case = pds.FIGURES["4"](pds.PdsOptions()).cases[0]
    rows = pds.rows([(case, Fake(series=series_of_pds([0.0] * 8, [0.001] * 8, 90)))])
    assert {row["loss"] for row in rows} == {0.0}
    assert {row["loss_ratio"] for row in rows} == {None}


def test_history_rows_measure_the_error() -> None:
    """Nominal 157/19; every window at 0.4 to 0.1 is 4, and the other classes at 1 times class 8."""
    case = next(c for c in pds.FIGURES["11"](pds.PdsOptions()).cases if c.labels["variant"].k == 400)
    rows = pds.history_rows([(case, Fake(series=series_of_pds([0.4] + [0.1] * 7, [0.001] * 8, 90)))])
    assert [row["phase"] for row in rows] == ["light", "loaded"]
    nominal = [157 / lo for lo in pds.USUAL[::-1]]
    expected = (abs(4 / nominal[0] - 1) + sum(1 - 1 / n for n in nominal[1:7])) / 8
    assert rows[1]["ratio"] == pytest.approx(4.0)
    assert rows[1]["error_in_windows"] == pytest.approx(expected)


# --- Output ---------------------------------------------------------------------------------------------------------


def by_theory(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
    """Stands in for the simulator: classes at rates that need no run."""
    for number, _ in enumerate(scenarios):
        take(number, Fake(classes=rates(ef=10.0, af=4.0, cs0=6.0), series=[], levels=[], flows=[]))


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(native, "on", lambda *_: by_theory)
    return tmp_path


@pytest.mark.usefixtures("faked")
def test_json_is_figure_and_rows() -> None:
    result = runner.invoke(app, ["pss", "--figure", "6", "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert list(answer) == ["figure", "rows"]
    assert answer["figure"] == 6
    assert len(answer["rows"]) == 54
    assert all(tuple(row) == pss.RATE_KEYS for row in answer["rows"])
    assert {row["memory_s"] for row in answer["rows"] if row["scheduler"] == "dwrr"} == {None}


def test_directory_holds_rows_pictures_and_report(faked: Path) -> None:
    result = runner.invoke(app, ["pss", "--figure", "6", "--out", "out"])
    assert result.exit_code == 0, result.output
    assert "PSS EF 0.25" in result.stdout
    assert "out/report.html" in result.stdout.replace("\n", "")
    out = faked / "out"
    assert pq.read_table(out / "figure-6.parquet").num_rows == 54
    assert json.loads((out / "rows.json").read_text())[0]["figure"] == 6
    assert json.loads((out / "summary.json").read_text())["complete"] is True
    text = (out / "report.html").read_text()
    assert "<svg" in text
    assert "src=" not in text
    assert "http-equiv" not in text
    assert "<script" not in text


def test_default_directory_is_a_new_one(faked: Path) -> None:
    for _ in range(2):
        assert runner.invoke(app, ["pss", "--figure", "13"]).exit_code == 0
    assert (faked / "runs/reproduce-pss-figure13-backlogged/report.html").exists()
    assert (faked / "runs/reproduce-pss-figure13-backlogged-2/report.html").exists()


@pytest.mark.usefixtures("faked")
def test_an_earlier_reproduction_is_overwritten_on_demand_only() -> None:
    args = ["pss", "--figure", "13", "--out", "out"]
    assert runner.invoke(app, args).exit_code == 0
    with pytest.raises(DirectoryError, match="with --force"):
        runner.invoke(app, args, catch_exceptions=False)
    assert runner.invoke(app, [*args, "--force"]).exit_code == 0


@pytest.mark.usefixtures("faked")
def test_figure_13_is_theory_only() -> None:
    answer = json.loads(runner.invoke(app, ["pss", "--figure", "13", "--json"]).stdout)
    assert {row["af_mbps"] for row in answer["rows"]} == {None}
    row = next(r for r in answer["rows"] if (r["scheduler"], r["k_af"], r["ef_share"]) == ("pss", 0.8, 0.75))
    assert (row["af_theory_mbps"], row["cs0_theory_mbps"]) == (5.0, 0.0)


def test_interrupt_keeps_what_is_done_and_says_so(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        by_theory(scenarios[:3], take)
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "on", lambda *_: interrupted)
    result = runner.invoke(app, ["pss", "--figure", "6", "--out", "out"])
    assert result.exit_code == 1
    assert "interrupted after 3 of 54 runs" in result.stderr
    assert json.loads((faked / "out/summary.json").read_text())["complete"] is False
    assert len(json.loads((faked / "out/rows.json").read_text())[0]["rows"]) == 3
    assert "Interrupted" in (faked / "out/report.html").read_text()


def test_failure_leaves_no_summary_of_an_older_run(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner.invoke(app, ["pss", "--figure", "13", "--out", "out"]).exit_code == 0

    def broken(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        raise RuntimeError(f"no simulator for {len(scenarios)} runs and {take}")

    monkeypatch.setattr(native, "on", lambda *_: broken)
    assert runner.invoke(app, ["pss", "--figure", "6", "--out", "out", "--force"]).exit_code == 1
    assert not (faked / "out/summary.json").exists()
    assert not list((faked / "out").glob("figure-*"))
    provenance = json.loads((faked / "out/provenance.json").read_text())
    assert (provenance["status"], provenance["kind"]) == ("failed", "reproduction")
    assert provenance["error"].startswith("no simulator")


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["pss", "--figure", "4"], "must be one of 5"),
        (["pss", "--figure", "6", "--table", "memory"], "not both"),
        (["pss", "--table", "x"], "two-controlled"),
        (["pss", "--traffic", "udp"], "backlogged or tcp"),
        (["pss", "--figure", "6", "--duration", "100"], "needs a unit"),
        (["pss", "--figure", "6", "--duration", "1500ms"], "whole seconds"),
        (["pds", "--figure", "12"], "must be one of 4"),
    ],
)
def test_refusals(args: list[str], part: str) -> None:
    result = runner.invoke(app, args)
    assert result.exit_code == 2
    assert part in result.stderr


def test_unwritable_directory(faked: Path) -> None:
    (faked / "file").write_text("")
    with pytest.raises(DirectoryError, match=r"cannot be written.*choose another"):
        runner.invoke(app, ["pss", "--figure", "13", "--out", "file/out"], catch_exceptions=False)


def test_directory_with_other_files_is_left_alone(faked: Path) -> None:
    (faked / "mine").mkdir()
    (faked / "mine/report.html").write_text("my thesis")
    with pytest.raises(DirectoryError, match="is not empty and is not an earlier reproduction; choose another"):
        runner.invoke(app, ["pss", "--figure", "13", "--out", "mine"], catch_exceptions=False)
    assert (faked / "mine/report.html").read_text() == "my thesis"


def test_same_rows_same_picture() -> None:
    figure = pss.FIGURES["13"](BACKLOGGED)
    rows = figure.measure([])
    assert plot.svg(figure, rows) == plot.svg(figure, rows)


def test_markdown_replaces_marked_tables(faked: Path) -> None:
    (faked / "doc.md").write_text("before\n<!-- table pss-6-backlogged -->\nold\n<!-- end -->\nafter\n")
    assert runner.invoke(app, ["pss", "--figure", "6", "--into", "doc.md"]).exit_code == 0
    text = (faked / "doc.md").read_text()
    assert text.startswith("before\n<!-- table pss-6-backlogged -->\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "| 0.9 | 4.00 (9.00), 6.00 (6.00) |" in text


def test_deviation_names_the_worst() -> None:
    rows = [
        {"af_mbps": 1.01, "af_theory_mbps": 1.0, "cs0_mbps": 0.02, "cs0_theory_mbps": 0.0},
        {"af_mbps": 5.0, "af_theory_mbps": 5.0, "cs0_mbps": 3.9, "cs0_theory_mbps": 4.0},
    ]
    assert page.deviation(rows).startswith(
        "Largest distance from theory: AF 1.00 % or 0.010 Mbit/s, CS0 2.50 % or 0.100 Mbit/s"
    )


def test_parquet_keeps_empty_columns_as_numbers() -> None:
    assert str(directory.arrow([{"memory_s": None, "k": 1.0}]).schema.field("memory_s").type) == "double"


def test_summary_puts_theory_above_ours() -> None:
    """Class 1 loses 8 p (1/19) / sum(1/l) of p = 1 - 8127/8800 and so on; one line of theory serves all histories."""
    figure = pds.FIGURES["5"](pds.PdsOptions(quick=True))
    tables = Fake(series=series_of_pds([0.1] * 8, [0.001] * 8, 90))
    assert figure.summary is not None
    columns, lines = figure.summary(pds.rows([(case, tables) for case in figure.cases]))
    assert columns[-1] == "class 8"
    first = [line for line in lines if line[:2] == ["0.9 to 1.5", "loss, %"]]
    assert [line[2] for line in first] == [
        "theory",
        "5, ring 1500, limit 80",
        "5, decayed 1500, limit 80",
        "5, peld 1500, limit 80",
    ]
    part = sum(1 / x for x in pds.USUAL)
    assert float(first[0][3]) == pytest.approx(100 * 8 * (1 - 8127.4 / 8800) / 19 / part, rel=0.005)
    assert first[1][3:] == ["10"] * 8
