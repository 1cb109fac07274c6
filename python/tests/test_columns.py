# SPDX-License-Identifier: BSD-3-Clause
"""Columns of Arrow are those that pyarrow makes, and no run imports pandas, which takes longer than most of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from linkweir.columns import blobs, floats, inferred, reals, strings, wholes


@pytest.mark.parametrize(
    ("make", "kind", "values"),
    [
        (strings, pa.string(), ["ef", "", "ä", None, "cs0"]),
        (strings, pa.string(), []),
        (blobs, pa.binary(), [b"\0", b"", b"more"]),
        (wholes, pa.int64(), [None, -(2**63), 2**63 - 1, 0]),
        (reals, pa.float64(), [1.5, None, -0.0, float("inf"), 3]),
        (reals, pa.float64(), [None] * 9),
    ],
)
def test_a_column_is_the_one_that_pyarrow_makes(make: Any, kind: pa.DataType, values: list[Any]) -> None:
    made = make(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
    assert made.null_count == values.count(None)


@pytest.mark.parametrize("values", [["a", None], [None, 3], [2.5, 1.0], [True, None], [1, 2.5]], ids=str)
def test_a_column_has_the_kind_of_its_values(values: list[Any]) -> None:
    assert inferred(values).equals(pa.array(values))


def test_a_column_without_values_is_of_words() -> None:
    assert inferred([None, None]).equals(pa.nulls(2, pa.string()))


@pytest.mark.parametrize("kind", [pa.float64(), pa.uint64(), pa.int64(), pa.int32()], ids=str)
@pytest.mark.parametrize("values", [[], [1, 2, 3], [None, 4, None, 5, 6], [None] * 10, list(range(40))], ids=len)
def test_floats_are_those_of_to_numpy(kind: pa.DataType, values: list[Any]) -> None:
    whole = pa.array(values, kind)
    split = pa.chunked_array([whole[:1], whole[1:], whole[3:]], kind)
    for column in (whole, whole[1:], whole[2:4], split):
        wanted = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
        np.testing.assert_array_equal(floats(column), wanted.astype(float))


def test_no_run_imports_pandas(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    begin = "import sys; from linkweir.commands import cli; from linkweir.sweeps.job import Job, work; import linkweir"
    run = f"sys.argv = ['linkweir', 'run', {str(small)!r}, '--out', {str(tmp_path / 'out')!r}]; assert cli.main() == 0"
    job = f"assert work(Job(1, '', linkweir.Scenario.load({str(small)!r}).resolved, 1, ())).rows"
    for doing in (run, job):
        code = f"{begin}; {doing}; assert 'pandas' not in sys.modules"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
