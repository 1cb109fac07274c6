# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep gives: one data set, and what failed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Failure:
    """A run that failed.

    Attributes:
        run: its number in the plan, from 1.
        case: number of its case, from 1.
        seed: its seed.
        what: the case in words.
        error: why it failed.
    """

    run: int
    case: int
    seed: int
    what: str
    error: str

    def __str__(self) -> str:
        return f"{self.what}: {self.error}"


@dataclass(frozen=True)
class Sweep:
    """The outcome of a sweep.

    Attributes:
        name: name of the plan.
        status: ``complete``; ``failed``, when runs failed; or ``interrupted``.
        runs_planned: runs of the plan.
        runs_done: of them, those in the data set.
        runs_now: of them, those that were done by this call and not found.
        failures: what failed, in the order of the plan.
        directory: where it was written, if it was.
    """

    name: str
    status: str
    runs_planned: int
    runs_done: int
    runs_now: int
    failures: tuple[Failure, ...]
    directory: Path | None
    read: Callable[[], pa.Table]

    @property
    def table(self) -> pa.Table:
        """The data set: for each run a row of the link, of each class and of each flow (``scope``).

        Columns: ``run``, ``case``, ``seed``, the keys of the plan as written and, where they are quantities, as
        numbers with the unit in the name; ``scope``, ``class``, ``flow``; then those of `linkweir.Result.classes` and
        `linkweir.Result.flows`, and of the link the means ``capacity_bps`` and ``used_bps`` from the warm-up on. What
        does not apply is null. Rows stand in the order of the plan, whatever the order in which runs ended.
        """
        return self.read()

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Sweep:
        """Opens an earlier sweep, complete or not.

        Raises:
            DirectoryError: there is none, or it did not end.
        """
        from linkweir.sweeps.keep import open_sweep

        return open_sweep(Path(directory))

    @property
    def summary(self) -> dict[str, Any]:
        """The sweep in a few numbers, for JSON."""
        return {
            "name": self.name,
            "status": self.status,
            "runs_planned": self.runs_planned,
            "runs_done": self.runs_done,
            "failures": [asdict(failure) for failure in self.failures],
        }

    def __repr__(self) -> str:
        kept = "" if self.directory is None else f", in {self.directory}"
        return f"<Sweep {self.name!r}: {self.status}, {self.runs_done} of {self.runs_planned} runs{kept}>"
