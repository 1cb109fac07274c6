# SPDX-License-Identifier: BSD-3-Clause
"""The directory of a sweep, which keeps finished runs however the sweep ends.

::

    plan.json              the cases and the seed of every run
    inputs/                copies of the files that scenarios name, by SHA-256
    parts/                 the rows of every run that is done, until all are
    results/runs.parquet   the data set
    results/delays.parquet the distributions of delays of each case, all seeds together
    summary.json           how many runs, and what failed
    report.html            means, intervals and figures in one file
    comparison.json        of a comparison: what is compared, besides the plan
    yardstick.json         of the yardstick: what is measured, and its rows
    provenance.json        what ran, when and where, and how it ended, as in a run directory

The data set is made of the parts in the order of the plan, so its bytes do not depend on where or when runs were done.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir.directories.build import build
from linkweir.directories.parts import PARTS
from linkweir.directories.provenance import (
    INPUTS,
    REPORT,
    RESULTS,
    SUMMARY,
    dump,
    input_facts,
    utc_now,
    write_whole,
    writing,
)
from linkweir.directories.resumed import ResumedDirectory
from linkweir.fault import DirectoryError
from linkweir.sweeps import keys
from linkweir.sweeps.data import assembled, assembled_delays
from linkweir.sweeps.job import KeptRun, read_run
from linkweir.sweeps.outcome import DELAYS, KIND, RUNS, Failure, Sweep, as_noted, file_sha256, read_data
from linkweir.sweeps.plan import Plan, Run
from linkweir.tables.run_tables import TableFile

if TYPE_CHECKING:
    import pyarrow as pa

PLAN = "plan.json"
COMPARISON = "comparison.json"
"""What a comparison adds to the directory of its sweep."""
YARDSTICK = "yardstick.json"
"""What the yardstick adds."""
_EARLIER = "an earlier version, which noted no {}"


class SweepDirectory(ResumedDirectory):
    """The directory of a sweep, held by one process at a time.

    Args:
        path: where; a sweep of the same plan that is there is resumed.
        plan: what is to be done.
        force: an earlier sweep of another plan is overwritten.

    Raises:
        DirectoryError: it cannot be made or written, holds something else, or another process is writing it.
    """

    KIND = KIND
    OURS = (PLAN, COMPARISON, YARDSTICK, INPUTS, PARTS, RESULTS, SUMMARY, REPORT)

    def __init__(self, path: Path, plan: Plan, *, force: bool = False) -> None:
        self._plan = plan
        self._data = path / RESULTS / f"{RUNS}.parquet"
        self._delays = path / RESULTS / f"{DELAYS}.parquet"
        facts = {
            "name": plan.name,
            "runs_planned": len(plan.runs),
            "plan_sha256": plan.sha256,
            "inputs": [input_facts(source, content) for source, content in plan.inputs],
            "sessions": [],
        }
        super().__init__(path, facts, force=force)

    def _resumes(self, path: Path, earlier: dict[str, Any], facts: dict[str, Any]) -> bool:
        _check_same(path, earlier, facts)
        return True

    def _prepare(self) -> None:
        """Writes the plan and the inputs, unless they are there."""
        if not (self.path / PLAN).exists():
            for _, content in self._plan.inputs:
                (self.path / INPUTS).mkdir(exist_ok=True)
                write_whole(self.path / INPUTS / hashlib.sha256(content).hexdigest(), content)
            write_whole(self.path / PLAN, dump(_described(self._plan)))

    @property
    def complete(self) -> bool:
        """Whether the data set of all runs is there and undamaged."""
        return self._provenance["status"] == "complete" and self._damaged() is None

    def _damaged(self) -> Path | None:
        """The file of a complete sweep that is not as it was noted."""
        noted = ((self._data, "runs_sha256"), (self._delays, "delays_sha256"))
        for file, key in noted:
            # Earlier versions noted no hash, and had no distributions.
            if (file == self._data or key in self._provenance) and not as_noted(
                file, self._provenance.get(key), len(self._plan.runs)
            ):
                return file
        return None

    def found(self) -> set[int]:
        """Numbers of the runs that are done, of a sweep that is not complete."""
        found = {run.number for run in self._plan.runs if self._read(run) is not None}
        if self._provenance["status"] == "complete":
            warnings.warn(
                f"{self._damaged()}: is damaged or missing; rebuilding it: {len(found)} runs are still in {PARTS}/, "
                f"{len(self._plan.runs) - len(found)} are run again",
                stacklevel=2,
            )
        return found

    def begin(self, **session: Any) -> None:
        """Notes that runs are being done."""
        with writing(self.path):
            self.parts.make()
            self._session = {"started_utc": utc_now(), **session, "runs_now": 0}
            self._provenance.pop("error", None)
            self._note(status="running", sessions=[*self._provenance["sessions"], self._session])

    def add(self, run: Run, rows: bytes) -> None:
        """Keeps the rows of a run."""
        self.parts.add(run.job.identity, rows)

    def _read(self, run: Run) -> KeptRun | None:
        """What is kept of a run, if it is done."""
        return self.parts.read(run.job.identity, read_run)

    def finish(self, status: str, failures: tuple[Failure, ...], runs_now: int) -> Sweep:
        """Makes the data set of what is done."""
        self.parts.tidy()
        done = self._assemble()
        sweep = self._summed_up(status, failures, done, runs_now)
        self._session |= {"runs_now": runs_now, "wall_s": self._wall_s()}
        # The parts go last: until the data set and its hash are recorded, they are the only copy of the results.
        hashes = {"runs_sha256": file_sha256(self._data), "delays_sha256": file_sha256(self._delays)}
        self._note(status=status, runs_done=done, **hashes)
        if status == "complete":
            self.parts.remove()
        return sweep

    def opened(self) -> Sweep:
        """The sweep, if it is complete."""
        self.parts.remove()
        return self._summed_up("complete", (), len(self._plan.runs), 0)

    def _assemble(self) -> int:
        """Writes the data set and the distributions of delays; gives how many runs are in them."""
        (self.path / RESULTS).mkdir(exist_ok=True)
        done = _written(self._data, assembled(self._plan, self._read))
        _written(self._delays, assembled_delays(self._plan, self._read))
        return done

    def _summed_up(self, status: str, failures: tuple[Failure, ...], done: int, runs_now: int) -> Sweep:
        sweep = Sweep(
            self._plan.name,
            status,
            len(self._plan.runs),
            done,
            runs_now,
            failures,
            self.path,
            partial(read_data, self._data),
            partial(read_data, self._delays),
        )
        write_whole(self.path / SUMMARY, dump(sweep.summary))
        return sweep


def _written(path: Path, tables: Iterable[pa.Table]) -> int:
    """Writes a Parquet file of the tables, none if there is no table; gives how many there are."""
    count = 0
    writer = TableFile(path)
    try:
        for table in tables:
            writer.add(table)
            count += 1
    except BaseException:
        writer.close(keep=False)
        raise
    writer.close(keep=count > 0)
    if not count:
        path.unlink(missing_ok=True)
    return count


def _described(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "keys": [keys.show(key) for key in plan.keys],
        "cases": [
            {
                "case": case.number,
                **({"label": case.label} if case.label else {}),
                "values": {keys.show(key): value for key, value in case.values.items()},
                "scenario": case.text,
                **({"scenarios": {str(seed): text for seed, text in case.texts.items()}} if case.texts else {}),
                "inputs": {name: hashlib.sha256(content).hexdigest() for name, _, content in case.inputs},
            }
            for case in plan.cases
        ],
        "runs": [
            {"run": run.number, "case": run.case.number, "seed": run.seed, "sha256": run.job.identity}
            for run in plan.runs
        ],
    }


def _check_same(path: Path, earlier: dict[str, Any], facts: dict[str, Any]) -> None:
    """Refuses to resume another sweep."""
    cure = "choose another --out, or start over with --force"
    for key, here in build().items():
        if earlier.get(key) != here:
            what = key.removesuffix("_sha256")
            then = f"{what} {earlier[key]}, this is {here}" if key in earlier else _EARLIER.format(what)
            raise DirectoryError(f"{path}: its runs were done by {then}; {cure}")
    now = {entry["source"]: entry["sha256"] for entry in facts["inputs"]}
    for entry in earlier.get("inputs", []):
        if now.get(entry["source"], entry["sha256"]) != entry["sha256"]:
            raise DirectoryError(f"{path}: {entry['source']} has changed since the sweep began; restore it, {cure}")
    if earlier.get("plan_sha256") != facts["plan_sha256"]:
        before, after = earlier.get("runs_planned"), facts["runs_planned"]
        counts = "" if before == after else f" ({before} runs then, {after} now)"
        raise DirectoryError(
            f"{path}: the plan or its scenario has changed since the sweep began{counts}; restore it, {cure}"
        )
