# SPDX-License-Identifier: BSD-3-Clause
"""The outcome of a sweep: one data set, and the runs that failed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir.directories.build import build
from linkweir.directories.provenance import PROVENANCE, RESULTS, SUMMARY, read_provenance, write_whole, writing
from linkweir.fault import DirectoryError
from linkweir.sweeps.means import means
from linkweir.tables.run_tables import read_table

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "sweep"
RUNS = "runs"
DELAYS = "delays"
_ENDED = ("complete", "interrupted", "failed")


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
    read_delays: Callable[[], pa.Table]

    @property
    def table(self) -> pa.Table:
        """The data set: for each run a row of the link, of each class and of each flow (``scope``).

        Columns: ``run``, ``case``, ``seed``, the keys of the plan as written and, where they are quantities, as
        numbers with the unit in the name; ``scope``, ``class``, ``flow``; then those of `linkweir.Result.classes` and
        `linkweir.Result.flows`, and of the link the means ``capacity_bps`` and ``used_bps`` from the warm-up on. What
        does not apply is null. Rows are in the order of the plan, not in that in which runs ended.
        """
        return self.read()

    @property
    def delays(self) -> pa.Table:
        """The distributions of delays of each case, all its seeds together: the keys of the plan, and the columns of
        `linkweir.Result.delays`. `linkweir.delays` merges cases and computes quantiles.
        """
        return self.read_delays()

    @property
    def means(self) -> pa.Table:
        """One row per case and link, class or flow: means over the seeds with Student's 95 % intervals.

        The keys of the plan, ``scope``, ``class``, ``flow``, ``runs`` (how many seeds), and for each number of `table`
        its mean and, with ``_ci95`` behind the name, half the width of its interval; null where only one run has a
        value. That of a percentile is at least 1/128 of the mean, the width of a bucket of its histogram.
        """
        return means(self.table)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes a report: one HTML file with means, intervals and figures.

        Raises:
            DirectoryError: it cannot be written.
        """
        from linkweir.sweeps.page import page

        target = Path(path)
        about = build() if self.directory is None else read_provenance(self.directory, KIND)
        with writing(target.parent):
            write_whole(target, page(self.name, self.runs_done, self.runs_planned, self.table, self.delays, about))
        return target

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Sweep:
        """Opens an earlier sweep, complete or not.

        Raises:
            DirectoryError: there is none, or it did not end.
        """
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


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep early.

    Attributes:
        sweep: the runs that were finished before, with ``status == "interrupted"``.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(f"interrupted after {sweep.runs_done} of {sweep.runs_planned} runs")
        self.sweep = sweep

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.sweep,)


# --- Opening an earlier one -----------------------------------------------------------------------------------------


def open_sweep(directory: Path) -> Sweep:
    """Opens an earlier sweep.

    Raises:
        DirectoryError: there is none, or it did not end.
    """
    provenance = read_provenance(directory, KIND)
    if provenance["status"] not in _ENDED:
        raise DirectoryError(f"{directory}: the sweep is still running or was killed; the same command resumes it")
    if "error" in provenance:
        raise DirectoryError(f"{directory}: the sweep failed: {provenance['error']}; the same command resumes it")
    try:
        summary = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DirectoryError(
            f"{directory}: {SUMMARY} cannot be read ({error}); {PROVENANCE} says {provenance['status']}"
        ) from error
    return Sweep(
        summary["name"],
        summary["status"],
        summary["runs_planned"],
        summary["runs_done"],
        0,
        tuple(Failure(**failure) for failure in summary["failures"]),
        directory,
        partial(
            _read_checked,
            directory / RESULTS / f"{RUNS}.parquet",
            provenance.get("runs_sha256"),
            summary["runs_done"],
        ),
        partial(
            _read_checked,
            directory / RESULTS / f"{DELAYS}.parquet",
            provenance.get("delays_sha256"),
            summary["runs_done"],
        )
        if "delays_sha256" in provenance
        else partial(read_data, directory / RESULTS / f"{DELAYS}.parquet"),
    )


def file_sha256(file: Path) -> str | None:
    """SHA-256 of a file; None if it is not there."""
    digest = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def read_data(file: Path) -> pa.Table:
    """The data set; an empty table where no run is done."""
    import pyarrow as pa

    return read_table(file) if file.exists() else pa.table({})


def as_noted(file: Path, sha256: str | None, runs: int) -> bool:
    """Whether the data set of so many runs is unchanged. Earlier versions recorded no hash: then it need only be there.
    Without runs there is no file.
    """
    return file.exists() or not runs if sha256 is None else file_sha256(file) == sha256


def _read_checked(file: Path, sha256: str | None, runs: int) -> pa.Table:
    if not as_noted(file, sha256, runs):
        raise DirectoryError(f"{file}: is damaged or missing; repeat the sweep to rebuild it")
    return read_data(file)
