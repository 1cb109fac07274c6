# SPDX-License-Identifier: BSD-3-Clause
"""The options `--jobs` and `--dask`, which several commands have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from linkweir.sweeps.execute import Executor, executor


@contextlib.contextmanager
def executor_of(jobs: int | None, address: str | None) -> Iterator[Executor]:
    """The executor that the options name: `jobs` processes here, or the Dask cluster at the address."""
    if jobs is not None and address is not None:
        raise typer.BadParameter("give --jobs or --dask, not both", param_hint="--dask")
    with contextlib.ExitStack() as stack:
        try:
            chosen = stack.enter_context(executor(jobs, address))
        except ValueError as error:
            message = f'"{address}" is not an address ({error}); give one like tcp://host:8786'
            raise typer.BadParameter(message, param_hint="--dask") from error
        yield chosen
