# SPDX-License-Identifier: BSD-3-Clause
"""The data sets of a sweep, made of what is kept of its runs, in the order of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from linkweir import delays
from linkweir.sweeps.job import KeptRun
from linkweir.sweeps.plan import Plan, Run

if TYPE_CHECKING:
    import pyarrow as pa

_TOGETHER = 32
"""Runs whose distributions are merged at a time."""


def assembled(plan: Plan, read: Callable[[Run], KeptRun | None]) -> Iterator[pa.Table]:
    """The data set, a run at a time in the order of the plan, all with the columns of the whole."""
    import pyarrow as pa

    # Two passes: the first finds the columns of all runs, so that the second needs one run in memory at a time.
    done, schemas = [], []
    for run in plan.runs:
        kept = read(run)
        if kept is not None:
            done.append(run)
            if kept.rows.schema not in schemas:
                schemas.append(kept.rows.schema)
    metrics = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
    shown = plan.columns(done)
    for number, run in enumerate(done):
        kept = read(run)
        assert kept is not None
        rows = kept.rows
        arrays = {name: pa.repeat(shown[name][number], rows.num_rows) for name in shown.column_names}
        for field in metrics:
            known = field.name in rows.column_names
            arrays[field.name] = rows[field.name].cast(field.type) if known else pa.nulls(rows.num_rows, field.type)
        yield pa.table(arrays)


def assembled_delays(plan: Plan, read: Callable[[Run], KeptRun | None]) -> Iterator[pa.Table]:
    """The distributions of delays, a case at a time, all its seeds together: the keys of the plan and the buckets."""
    import pyarrow as pa

    for _, runs in groupby(plan.runs, key=lambda run: run.case.number):
        done = [run for run in runs if (kept := read(run)) is not None and kept.delays is not None]
        if not done:
            continue
        merged = delays.merge(_chunks(done, read))
        shown = plan.columns(done[:1]).drop_columns(["run", "seed"])
        arrays = {name: pa.repeat(shown[name][0], merged.num_rows) for name in shown.column_names}
        yield pa.table(arrays | {name: merged[name] for name in merged.column_names})


def _chunks(runs: list[Run], read: Callable[[Run], KeptRun | None]) -> Iterator[pa.Table]:
    import pyarrow as pa

    for start in range(0, len(runs), _TOGETHER):
        tables = [kept.delays for run in runs[start : start + _TOGETHER] if (kept := read(run)) is not None]
        yield pa.concat_tables([table for table in tables if table is not None])
