# SPDX-License-Identifier: BSD-3-Clause
"""What commands that do many runs show: a bar, warnings, and the runs that failed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator

from rich.console import Console

from linkweir.sweeps.outcome import Sweep

_MOST_SHOWN = 10


@contextlib.contextmanager
def bar() -> Iterator[Callable[[int, int, int], None] | None]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("runs", total=None)

        def tell(done: int, planned: int, failed: int) -> None:
            words = f"runs, {failed} failed" if failed else "runs"
            bar.update(task, completed=done + failed, total=planned, description=words)

        yield tell


@contextlib.contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Prints warnings in the form of the command's other messages."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"linkweir: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def report_failures(sweep: Sweep) -> None:
    """Prints the first runs that failed to stderr."""
    for failure in sweep.failures[:_MOST_SHOWN]:
        print(f"linkweir: failed: {failure}", file=sys.stderr)
    if len(sweep.failures) > _MOST_SHOWN:
        more = len(sweep.failures) - _MOST_SHOWN
        print(f"linkweir: and {more} more, all in {sweep.directory}/summary.json", file=sys.stderr)
