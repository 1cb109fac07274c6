# SPDX-License-Identifier: BSD-3-Clause
"""Series that are thinned while they are read are the same as series thinned afterwards."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from linkweir.tables.outline import Outline


@pytest.mark.parametrize("step", [1, 2, 7, 50])
def test_means_do_not_depend_on_how_rows_arrive(step: int) -> None:
    numbers = random.Random(step)
    rows = [(float(t), name, numbers.choice([None, numbers.random()])) for t in range(53) for name in ("a", "b")]
    batches = []
    rest = rows
    while rest:
        size = numbers.randint(1, 9)
        part, rest = rest[:size], rest[size:]
        columns = zip(*part, strict=True)
        batches.append(pa.record_batch([pa.array(c) for c in columns], names=["t_s", "class", "x"]))
        batches[-1] = batches[-1].set_column(2, "x", batches[-1]["x"].cast(pa.float64()))
    outline = Outline(batches, ["x"], ["a", "b"], step)
    for name in ("a", "b"):
        mine = [(t, x) for t, of, x in rows if of == name]
        blocks = [mine[i : i + step] for i in range(0, len(mine), step)]
        assert list(outline.get("t_s", name)) == [block[0][0] for block in blocks]
        for block, mean in zip(blocks, outline.get("x", name), strict=True):
            known = [x for _, x in block if x is not None]
            assert math.isnan(mean) if not known else mean == pytest.approx(sum(known) / len(known))


def test_no_rows_is_nothing_to_draw() -> None:
    assert not Outline([], ["x"], ["a"], 3).any
