# SPDX-License-Identifier: BSD-3-Clause
"""Series thinned while they are read, so that drawing a long run takes no more memory than drawing a short one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkweir.columns import floats, strings

if TYPE_CHECKING:
    import pyarrow as pa

MOST_POINTS = 5_000
"""Points kept of each column, about as many as a figure can show."""

Values = np.ndarray[Any, np.dtype[np.float64]]


class Outline:
    """Columns of a table, by class if it has classes, as means over `step` rows of a class; null is NaN.

    Args:
        batches: the rows, in order of time.
        columns: what is kept besides `t_s`, which is that of the first of the `step` rows.
        classes: names of the classes kept; empty for a table without classes.
        step: rows of a class in one mean.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], columns: Sequence[str], classes: Sequence[str], step: int
    ) -> None:
        names = ["t_s", *columns]
        self._step = step
        open_rows: dict[str, Values] = {name: np.empty((len(names), 0)) for name in classes or [""]}
        parts: dict[str, list[Values]] = {name: [] for name in open_rows}
        for batch in batches:
            of = _places(batch.column("class"), classes) if classes else None
            rows = np.array([floats(batch.column(name)) for name in names])
            for place, name in enumerate(open_rows):
                mine = np.hstack([open_rows[name], rows if of is None else rows[:, of == place]])
                whole = mine.shape[1] // step * step
                if whole:
                    parts[name].append(self._means(mine[:, :whole]))
                open_rows[name] = mine[:, whole:]
        for name, rest in open_rows.items():
            if rest.shape[1]:
                parts[name].append(self._means(rest))
        self._index = {name: i for i, name in enumerate(names)}
        self._kept = {name: np.hstack(blocks) for name, blocks in parts.items() if blocks}

    def get(self, column: str, of: str = "") -> Values:
        """A column of a class."""
        values: Values = self._kept[of][self._index[column]]
        return values

    def has(self, of: str) -> bool:
        """Whether there are rows of a class."""
        return of in self._kept

    @property
    def any(self) -> bool:
        """Whether there are rows."""
        return bool(self._kept)

    def _means(self, rows: Values) -> Values:
        width = min(self._step, rows.shape[1])
        blocks = rows.reshape(len(rows), -1, width)
        known = ~np.isnan(blocks)
        count = known.sum(axis=2)
        sums = np.where(known, blocks, 0.0).sum(axis=2)
        means: Values = np.divide(sums, count, out=np.full(count.shape, np.nan), where=count > 0)
        means[0] = blocks[0, :, 0]
        return means


def _places(names: pa.Array, classes: Sequence[str]) -> Values:
    """The place of each name among the classes, NaN for others: places are compared much faster than names."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(names.cast(pa.string()), value_set=strings(list(classes)))
    return floats(found)
