# SPDX-License-Identifier: BSD-3-Clause
"""Columns of Arrow, made from lists and read as floats.

`pyarrow.array` and `to_numpy` do the same, but import pandas where it is installed, which takes longer than most runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Values = np.ndarray[Any, np.dtype[np.float64]]


def strings(words: Sequence[str | None]) -> pa.StringArray:
    """A column of words."""
    import pyarrow as pa

    return _column(pa.string(), words, *_joined([(word or "").encode() for word in words]))


def blobs(contents: Sequence[bytes]) -> pa.BinaryArray:
    """A column of bytes."""
    import pyarrow as pa

    return _column(pa.binary(), contents, *_joined(contents))


def wholes(values: Sequence[int | None]) -> pa.Int64Array:
    """A column of whole numbers."""
    import pyarrow as pa

    return _column(pa.int64(), values, array("q", (0 if value is None else value for value in values)))


def reals(values: Sequence[float | None]) -> pa.DoubleArray:
    """A column of numbers."""
    import pyarrow as pa

    return _column(pa.float64(), values, array("d", (0.0 if value is None else value for value in values)))


def inferred(values: Sequence[Any]) -> pa.Array:
    """A column of the kind that the values have; of words if there are none."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    makers: dict[type, Any] = {str: strings, int: wholes, float: reals}
    if len(kinds) > 1:
        return pa.array(values)
    return makers.get(kinds.pop() if kinds else str, pa.array)(values)


def _joined(contents: Sequence[bytes]) -> tuple[array[int], bytes]:
    """Where each begins, and all of them."""
    return array("i", accumulate(map(len, contents), initial=0)), b"".join(contents)


def _column(kind: pa.DataType, values: Sequence[object], *data: array[Any] | bytes) -> Any:
    import numpy as np
    import pyarrow as pa

    there = None
    if None in values:
        there = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [there, *map(pa.py_buffer, data)])


def floats(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column of numbers as floats; NaN where it has no value."""
    import numpy as np
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([np.empty(0), *map(_part, chunks)])


def _part(chunk: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    import numpy as np

    rows = slice(chunk.offset, chunk.offset + len(chunk))
    if len(chunk) == chunk.null_count:
        return np.full(len(chunk), np.nan)
    there, data = chunk.buffers()
    found = np.frombuffer(data, str(chunk.type).replace("double", "float64"))[rows].astype(np.float64)
    if chunk.null_count:
        found[np.unpackbits(np.frombuffer(there, np.uint8), bitorder="little")[rows] == 0] = np.nan
    return found
