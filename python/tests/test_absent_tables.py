# SPDX-License-Identifier: BSD-3-Clause
"""Tables that a run does not have are there with their columns; names that no table has are refused."""

from __future__ import annotations

from typing import Any

import pytest
from command import SCENARIOS, SMALL

import linkweir
from linkweir import Result, Scenario, TableError
from linkweir.tables.run_tables import TABLES

OPTIONAL = ("voice", "harq", "channel", "carrier", "terminals", "transfers", "completions", "video")


@pytest.fixture(scope="module")
def plain() -> Result:
    return linkweir.run(Scenario.parse(SMALL))


def shortened(name: str) -> Result:
    text = (SCENARIOS / f"{name}.toml").read_text()
    lines = ['duration = "6s"' if line.startswith("duration") else line for line in text.splitlines()]
    lines = ['warmup = "0s"' if line.startswith("warmup") else line for line in lines]
    return linkweir.run(Scenario.parse("\n".join(lines), path=SCENARIOS / f"{name}.toml"))


def test_tables_a_run_does_not_have_have_the_columns_of_runs_that_do(plain: Result) -> None:
    runs = [shortened(name) for name in ("geo-beam-rain", "leo-voice", "lte-home")]
    for name in OPTIONAL:
        has = next(run for run in runs if name in run.tables)
        assert name not in plain.tables
        assert has.tables[name].num_rows > 0
        for empty in (getattr(plain, name), plain.to_pandas(name), plain.to_polars(name)):
            assert len(empty) == 0
            assert list(getattr(empty, "column_names", None) or empty.columns) == has.tables[name].column_names
        assert getattr(plain, name).schema.equals(has.tables[name].schema)
        assert plain.rows(name) == []


@pytest.mark.parametrize("read", ["to_pandas", "to_polars", "rows"])
def test_a_name_that_no_table_has_is_refused_with_the_nearest(plain: Result, read: str) -> None:
    with pytest.raises(TableError) as caught:
        getattr(plain, read)("klasses")
    assert isinstance(caught.value, KeyError)
    assert str(caught.value) == 'no table is called "klasses"; did you mean "classes"?'
    with pytest.raises(TableError, match=f"there are {', '.join(TABLES)}"):
        getattr(plain, read)("nonsense")


def test_a_misspelt_table_is_refused_by_the_other_ways_to_read_it(plain: Result) -> None:
    reads: list[Any] = [lambda: plain.tables["klasses"], lambda: list(plain.batches("klasses", ["class"]))]
    for read in reads:
        with pytest.raises(TableError, match='did you mean "classes"'):
            read()
    with pytest.raises(TableError, match="this run has none; it has series, link"):
        plain.tables["harq"]
    assert plain.tables.get("harq") is None
