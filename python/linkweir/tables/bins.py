# SPDX-License-Identifier: BSD-3-Clause
"""Means over the bins of a series, whose last one may be shorter than the others and which the warm-up may cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from linkweir.columns import floats

if TYPE_CHECKING:
    import pyarrow as pa

    from linkweir.columns import Values


def spans_ns(starts_s: Values, *, interval_s: float, from_s: float, to_s: float) -> Values:
    """The part of each bin between two times, in whole nanoseconds, so that whole bins have exactly `interval_s`.

    Args:
        starts_s: where the bins begin; any shape.
        interval_s: their length.
        from_s: end of the warm-up.
        to_s: end of the run, where the last bin ends.
    """
    import numpy as np

    interval_ns, from_ns, to_ns = (round(1e9 * time_s) for time_s in (interval_s, from_s, to_s))
    start_ns = np.rint(1e9 * starts_s).astype(np.int64)
    spans: Values = np.maximum(np.minimum(start_ns + interval_ns, to_ns) - np.maximum(start_ns, from_ns), 0)
    return spans


def means_by(
    batches: Iterable[pa.RecordBatch],
    of: str,
    columns: Sequence[str],
    *,
    interval_s: float,
    from_s: float,
    to_s: float,
) -> dict[str, dict[str, float | None]]:
    """As `means`, for each value of the column `of`, such as the links of a network."""
    import numpy as np
    import pyarrow as pa

    parts: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        names = batch.column(of).cast(pa.string()).dictionary_encode()
        numbers = names.indices.to_numpy()
        # One sort, as there may be thousands of names: a filter for each would read all rows each time.
        sorted_rows = batch.select(["t_s", *columns]).take(pa.array(np.argsort(numbers, kind="stable")))
        first = 0
        for name, count in zip(names.dictionary.to_pylist(), np.bincount(numbers).tolist(), strict=True):
            parts.setdefault(name, []).append(sorted_rows.slice(first, count))
            first += count
    return {name: means(rows, columns, interval_s=interval_s, from_s=from_s, to_s=to_s) for name, rows in parts.items()}


def means(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, interval_s: float, from_s: float, to_s: float
) -> dict[str, float | None]:
    """Means over time: each bin counts by the part of its length that lies between two times.

    A table knows only the mean of a whole bin. So a bin that `from_s` cuts counts with that mean for its later part.

    Args:
        batches: rows of a table with one row per bin: its start `t_s`, and the columns.
        columns: names of the columns wanted.
        interval_s: length of the bins, of which the last one ends at `to_s`.
        from_s: end of the warm-up.
        to_s: end of the run.

    Returns:
        The mean of each column, None if no bin reaches beyond `from_s`.
    """
    parts: dict[str, list[float]] = {key: [] for key in columns}
    bins: list[float] = []
    for batch in batches:
        starts_s = floats(batch["t_s"])
        weights = spans_ns(starts_s, interval_s=interval_s, from_s=from_s, to_s=to_s) / round(1e9 * interval_s)
        bins.append(math.fsum(weights))
        for key, sums in parts.items():
            sums.append(math.fsum(weights * floats(batch[key])))
    total = math.fsum(bins)
    return {key: math.fsum(sums) / total if total > 0 else None for key, sums in parts.items()}
