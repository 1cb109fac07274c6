# SPDX-License-Identifier: BSD-3-Clause
"""Means over the seeds of a sweep, with their confidence intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkweir.sweeps.confidence import LEVEL, student_t
from linkweir.sweeps.measures import BUCKET

if TYPE_CHECKING:
    import pyarrow as pa

INTERVAL = "_ci95"
"""Ends the names of columns with half the width of an interval."""
_RUN = ("run", "seed")
_PERCENTILE = re.compile(r"_p\d+_s$")
"""Ends the names of columns whose values are bounds of buckets."""
_ENTITY = ("scope", "link", "class", "flow")


def means(data: pa.Table) -> pa.Table:
    """A data set with one row per case and link, class or flow: the means over seeds and their intervals.

    Args:
        data: the data set of a sweep.

    Returns:
        The columns of the plan and the entity's; ``runs``, how many there are; and for each number of the data set its
        mean and, with `INTERVAL` behind the name, half the width of its 95 % interval (Student's t). Runs without a
        value are left out of a mean; an interval that only one run has is null.
    """
    names = data.column_names
    if "scope" not in names:
        return data
    plan = [name for name in names[: names.index("scope")] if name not in _RUN]
    texts = [name for name in names[names.index("scope") :] if name not in _ENTITY and not _is_number(data, name)]
    entity = [name for name in _ENTITY if name in names]
    numbers = [name for name in names[names.index("scope") :] if name not in (*entity, *texts)]
    return grouped_means(data, ("case", *entity), (*plan, *entity, *texts), numbers)


def grouped_means(data: pa.Table, by: Sequence[str], kept: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Means of numbers over groups of rows, one row per group in the order of their first rows.

    Half an interval of a percentile is at least `BUCKET` of the mean, the width of a bucket of its histogram: seeds
    whose percentiles fall into the same bucket may still differ by as much.

    Args:
        data: the rows.
        by: columns whose values are the same within a group.
        kept: columns shown as in the group's first row.
        numbers: columns of which means and intervals are wanted.
    """
    import numpy as np
    import pyarrow as pa

    known: dict[tuple[object, ...], int] = {}
    rows = zip(*(data[name].to_pylist() for name in by), strict=True)
    group = np.array([known.setdefault(row, len(known)) for row in rows], dtype=np.int64)
    count = len(known)
    first = np.full(count, len(group), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    found = {name: data[name].take(pa.array(first)) for name in kept}
    found["runs"] = pa.array(np.bincount(group, minlength=count), pa.int64())
    for name in numbers:
        values = data[name].cast(pa.float64()).to_numpy().astype(float)
        there = ~np.isnan(values)
        n = np.bincount(group[there], minlength=count)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(group[there], weights=values[there], minlength=count) / n
            squares = (values[there] - mean[group[there]]) ** 2
            variance = np.bincount(group[there], weights=squares, minlength=count) / (n - 1)
            half = np.array([student_t(LEVEL, k - 1) if k > 1 else np.nan for k in n.tolist()]) * np.sqrt(variance / n)
        if _PERCENTILE.search(name):
            half = np.maximum(half, BUCKET * mean)  # NaN, an interval that is not there, stays
        found[name] = pa.array(mean, pa.float64(), from_pandas=True)
        found[f"{name}{INTERVAL}"] = pa.array(half, pa.float64(), from_pandas=True)
    return pa.table(found)


def seeds_are_equal(data: pa.Table) -> bool:
    """Whether a data set has several seeds, and the runs of each case do not differ."""
    if "scope" not in data.column_names:
        return False
    found: dict[int, dict[int, list[dict[str, object]]]] = {}
    for row in data.drop_columns(["run"]).to_pylist():
        found.setdefault(row["case"], {}).setdefault(row.pop("seed"), []).append(row)
    runs = [list(seeds.values()) for seeds in found.values()]
    return any(len(of) > 1 for of in runs) and all(rows == of[0] for of in runs for rows in of)


def _is_number(data: pa.Table, name: str) -> bool:
    import pyarrow as pa

    kind = data.schema.field(name).type
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
