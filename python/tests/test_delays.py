# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of delays: worked by hand, against the totals of runs, merged over runs, and in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command import SMALL

import linkweir
from linkweir import Result, Scenario, delays
from linkweir.panels.plot import delay_charts, svg

ASKED = SMALL + "delays = true\n"


def by_hand(*buckets: tuple[str, float, float, int]) -> pa.Table:
    rows = [
        {"class": of, "flow": "", "kind": "queueing", "lower_s": lower, "upper_s": upper, "count_pkts": count}
        for of, lower, upper, count in buckets
    ]
    return pa.Table.from_pylist(rows)


def test_quantiles_worked_by_hand() -> None:
    table = by_hand(("a", 0.0, 1.0, 90), ("a", 2.0, 3.0, 9), ("a", 5.0, 6.0, 1), ("b", 1.0, 2.0, 4))
    a, b = delays.quantiles(table, (0.0, 0.9, 0.901, 0.99, 0.991, 1.0))
    assert list(a.values()) == ["a", "", "queueing", 100, 1.0, 1.0, 3.0, 3.0, 6.0, 6.0]
    assert list(b.values())[3:] == [4, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert list(a) == ["class", "flow", "kind", "count_pkts", "p0_s", "p90_s", "p90.1_s", "p99_s", "p99.1_s", "p100_s"]
    found = delays.cdf(table).to_pydict()
    assert found["part"] == pytest.approx([0.9, 0.99, 1.0, 1.0])
    assert found["delay_s"] == [1.0, 3.0, 6.0, 2.0]
    with pytest.raises(ValueError, match=r"q = 1\.01: must be"):
        delays.quantiles(table, (1.01,))


def test_merging_adds_the_counts_of_equal_buckets() -> None:
    one = by_hand(("a", 0.0, 1.0, 2), ("b", 3.0, 4.0, 1))
    other = by_hand(("a", 0.0, 1.0, 5), ("a", 0.5, 1.5, 7), ("b", 1.0, 2.0, 1))
    other = other.append_column("seed", pa.array([3, 3, 3]))
    merged = delays.merge(table for table in (one, other))
    assert merged.equals(
        by_hand(("a", 0.0, 1.0, 7), ("a", 0.5, 1.5, 7), ("b", 1.0, 2.0, 1), ("b", 3.0, 4.0, 1)).cast(merged.schema)
    )
    assert delays.merge([merged.slice(0, 0), merged, merged.slice(0, 0)]).equals(merged)
    with pytest.raises(ValueError, match="no table"):
        delays.merge([])


@pytest.fixture(scope="module")
def runs() -> list[Result]:
    return linkweir.run_many([Scenario.parse(ASKED, seed=seed) for seed in (1, 2, 3)])


def test_the_quantiles_are_those_of_the_totals(runs: list[Result]) -> None:
    for run in runs:
        found = {(row["class"], row["flow"], row["kind"]): row for row in delays.quantiles(run.delays)}
        totals: list[tuple[Any, dict[str, Any], str]] = [
            ((row["class"], "", "queueing"), row, "sent_pkts") for row in run.rows("classes")
        ]
        flows = [row for row in run.rows("flows") if (row["class"], row["flow"], "one-way") in found]
        totals += [((row["class"], row["flow"], "one-way"), row, "delivered_pkts") for row in flows]
        assert len(flows) == 1
        for key, row, count in totals:
            assert found[key]["count_pkts"] == row[count]
            for q in ("p50_s", "p95_s", "p99_s"):
                # Totals are cut at the largest delay; a bucket ends above it.
                assert found[key][q] == pytest.approx(row[f"delay_{q}"], rel=1 / 128, abs=2e-9)
                assert found[key][q] > row[f"delay_{q}"] - 1e-12


def test_merged_runs_hold_the_packets_of_all(runs: list[Result]) -> None:
    merged = delays.merge(run.delays for run in runs)
    sent = sum(np.sum(run.classes["sent_pkts"].to_numpy()) for run in runs)
    whole = [one for one in delays.distributions(merged, "queueing") if not one.flow]
    assert sum(one.packets.sum() for one in whole) == sent
    assert [one.of for one in whole] == list(runs[0].scenario.classes)
    assert {one.kind for one in delays.distributions(merged, "one-way")} == {"one-way"}
    assert all(np.all(np.diff(one.upper_s) > 0) for one in whole)


@pytest.mark.slow
def test_the_report_shows_them(tmp_path: Path) -> None:
    result = linkweir.run(Scenario.parse(ASKED), out=tmp_path / "run", figures=["svg"])
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Distribution of the queueing delay" in report
    assert "p99.9 (ms)" in report
    charts = delay_charts(result)
    assert [chart.name for chart in charts] == ["distribution-queueing", "distribution-one-way"]
    for chart in charts:
        assert (tmp_path / "run" / "figures" / f"{chart.name}.svg").read_text() == svg(chart)
    loaded = Result.load(tmp_path / "run")
    assert loaded.delays.equals(result.delays)
