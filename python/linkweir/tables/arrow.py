# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of rows of the native module as Arrow, without copying the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from linkweir import _native
from linkweir.columns import strings

_TYPES = {"real": pa.float64(), "count": pa.uint64(), "whole": pa.int64()}


def _array(column: _native._Column) -> Any:
    _, kind, rows, values, validity, words = column
    if kind == "name":
        indices = pa.Array.from_buffers(pa.uint32(), rows, [None, pa.py_buffer(values)])
        return pa.DictionaryArray.from_arrays(indices, strings(words or ())).dictionary_decode()
    bitmap = None if validity is None else pa.py_buffer(validity)
    return pa.Array.from_buffers(_TYPES[kind], rows, [bitmap, pa.py_buffer(values)])


def table(columns: Sequence[_native._Column]) -> pa.Table:
    """One chunk."""
    return pa.table({column[0]: _array(column) for column in columns})


def joined(chunks: Sequence[Sequence[_native._Column]]) -> pa.Table:
    """All chunks of a table; there is at least one."""
    return pa.concat_tables([table(chunk) for chunk in chunks]).combine_chunks()
