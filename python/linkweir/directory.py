# SPDX-License-Identifier: BSD-3-Clause
"""Directories of results: what a run leaves, how it is read again, and what runs and reproductions have in common.

A run leaves::

    scenario.toml      the scenario with every default, which alone repeats the run
    inputs/            copies of the files it names
    provenance.json    what ran, when and where, and how it ended; nothing of this is in the results
    results/*.parquet  the tables, which grow on disk while the run goes on
    summary.json       totals, with units in the keys
    figures/*.svg
    report.html        figures and tables in one file

``status`` of provenance.json is ``running`` until everything is written, then ``complete``, ``interrupted`` or
``failed``, and ``removing`` while it is overwritten; it changes by renaming a whole file. A run that was killed says
``running`` for ever, and nothing reads it as a result. A reproduction (`linkweir.reproduce.keep`) keeps the same rules
with files of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import filecmp
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.build import build
from linkweir.fault import DirectoryError
from linkweir.result import TABLES, Result
from linkweir.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

PROVENANCE = "provenance.json"
SCENARIO = "scenario.toml"
SUMMARY = "summary.json"
REPORT = "report.html"
RESULTS = "results"
FIGURES = "figures"
INPUTS = "inputs"
REMARKS = ("gateway.json", "emulator.json", "memory.csv")
"""What real gateways leave beside the tables: what was shown at the end, what the emulator kept, and their memory."""
IDENTICAL = "identical"
SAME = "same values"
_ENDED = ("complete", "interrupted")
REMOVING = "removing"
"""Status of an earlier result that is being overwritten; treated as absent."""
_HEADER = "# Every default is written out here; with inputs/ beside it, this file repeats the run.\n"
_GROUP_ROWS = 65_536
_FORMAT = 1


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file that is either the old one or the new one, whole, whatever happens."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def dump(value: object) -> str:
    """JSON as people read it; never NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def free_directory(name: str) -> Path:
    """`runs/NAME`, or with a number behind it the first that is not there."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    number, path = 1, Path("runs") / stem
    while path.exists():
        number += 1
        path = Path("runs") / f"{stem}-{number}"
    return path


def _cut_off(entry: Path) -> bool:
    """Whether a file was being written by one of us that was killed."""
    return entry.name.startswith(".") and entry.name.endswith(".part")


def read_provenance(directory: Path, kind: str = "run") -> dict[str, Any]:
    """What a directory says of the run (or the reproduction) it holds.

    Raises:
        DirectoryError: it is no such directory.
    """
    try:
        provenance = json.loads((directory / PROVENANCE).read_text(encoding="utf-8"))
    except OSError as error:
        raise DirectoryError(f"{directory}: is no run directory ({PROVENANCE}: {error.strerror})") from error
    except ValueError as error:
        raise DirectoryError(f"{directory}: {PROVENANCE} is damaged ({error})") from error
    if not isinstance(provenance, dict) or "linkweir" not in provenance or "status" not in provenance:
        raise DirectoryError(f"{directory}: {PROVENANCE} is not of a run of linkweir")
    if provenance.get("kind", "run") != kind:
        raise DirectoryError(f"{directory}: holds a {provenance['kind']}, not a {kind}")
    return provenance


@contextlib.contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Makes an operating system's refusal to write into a directory a `DirectoryError`."""
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        why = error.strerror or error
        raise DirectoryError(f"{where}: cannot be written: {why}; choose another directory or mend this one") from error


class TableFile:
    """A Parquet file that grows by row groups and gets its name when it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._writer: Any = None
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Appends rows, all with the columns of the first."""
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows >= _GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.concat_tables(self._waiting).combine_chunks()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._part, table.schema, compression="zstd")
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._waiting, self._rows = [], 0

    def close(self, *, keep: bool) -> None:
        """Gives the file its name, or removes it."""
        if not keep:
            self._part.unlink(missing_ok=True)
        elif self._waiting:
            self._write()
        if self._writer is not None:
            self._writer.close()
        if keep:
            with self._part.open("rb") as file:
                os.fsync(file.fileno())
            self._part.replace(self._path)


class OwnDirectory:
    """A directory of results being written: made before the work, so that one that cannot be is refused before any.

    Args:
        path: where; it may exist if it is empty.
        force: an earlier directory of the same kind is overwritten.
        facts: what its provenance says beside what is known here.

    Raises:
        DirectoryError: the directory cannot be made or written, or holds something.
    """

    KIND = ""
    OURS: tuple[str, ...] = ()
    """Patterns of the names of all that is written into it."""

    def __init__(self, path: Path, facts: dict[str, Any], *, force: bool) -> None:
        self.path = path
        self._began = time.monotonic()
        with writing(path):
            if path.exists() and (not path.is_dir() or not all(map(_cut_off, path.iterdir()))):
                self._clear(force=force)
            path.mkdir(parents=True, exist_ok=True)
            self._provenance = self._known() | facts
            self._note()  # first of all, so that whatever is left can be told to be ours

    def _known(self) -> dict[str, Any]:
        return {
            **build(),
            "kind": self.KIND,
            "format": _FORMAT,
            "status": "running",
            "started_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "pyarrow": _version("pyarrow"),
            "matplotlib": _version("matplotlib"),
            "command": sys.argv,
        }

    def _clear(self, *, force: bool) -> None:
        if not self.path.is_dir():
            raise DirectoryError(f"{self.path}: is not a directory; choose another --out")
        try:
            provenance = read_provenance(self.path, self.KIND)
        except DirectoryError as fault:
            message = f"{self.path}: is not empty and no earlier {self.KIND}; choose another --out"
            raise DirectoryError(message) from fault
        if not force and provenance["status"] != REMOVING:
            raise DirectoryError(
                f"{self.path}: holds an earlier {self.KIND}; choose another --out or overwrite it with --force"
            )
        ours = [found for name in self.OURS for found in self.path.glob(name)]
        known = {PROVENANCE, *(found.name for found in ours)}
        rest = sorted(entry.name for entry in self.path.iterdir() if entry.name not in known and not _cut_off(entry))
        if rest:
            raise DirectoryError(f"{self.path}: also holds {rest[0]}, which is not ours; choose another --out")
        # Noted first: what is left when this stops half-way is no result, but can be told to be ours.
        write_whole(self.path / PROVENANCE, dump(provenance | {"status": REMOVING}))
        for target in ours:
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _note(self, **changes: Any) -> None:
        write_whole(self.path / PROVENANCE, dump(self._provenance | changes))
        self._provenance.update(changes)  # after it is written: a disk that is full leaves the status as it was

    def fail(self, error: BaseException) -> None:
        """Notes that the work ended without a result; what is complete stays so."""
        if self._provenance["status"] == "complete":
            return
        with contextlib.suppress(OSError):
            self._note(status="failed", error=str(error) or type(error).__name__, wall_s=self._wall_s())

    def _wall_s(self) -> float:
        return round(time.monotonic() - self._began, 3)


class RunDirectory(OwnDirectory):
    """The directory of a run."""

    KIND = "run"
    OURS = (SCENARIO, INPUTS, RESULTS, SUMMARY, FIGURES, REPORT, *REMARKS)

    def __init__(self, path: Path, scenario: Scenario, *, force: bool = False, **more: str) -> None:
        self._scenario = scenario
        self._files: dict[str, TableFile] = {}
        resolved = _HEADER + scenario.resolved
        inputs = [
            {
                "name": name,
                "source": source,
                "sha256": hashlib.sha256(content).hexdigest(),
                "size_bytes": len(content),
            }
            for name, source, content in scenario.inputs
        ]
        facts = {
            "name": scenario.name,
            "seed": scenario.seed,
            "scenario_sha256": hashlib.sha256(resolved.encode()).hexdigest(),
            "inputs": inputs,
            **more,
        }
        super().__init__(path, facts, force=force)
        with writing(path):
            for folder in (INPUTS, RESULTS, FIGURES):
                (path / folder).mkdir(exist_ok=True)
            for name, _, content in scenario.inputs:
                (path / name).write_bytes(content)
            write_whole(path / SCENARIO, resolved)

    def add(self, name: str, table: pa.Table) -> None:
        """Appends rows to a table."""
        if name not in self._files:
            self._files[name] = TableFile(self.path / RESULTS / f"{name}.parquet")
        self._files[name].add(table)

    def remark(self, name: str, content: bytes) -> None:
        """Writes one of `REMARKS`."""
        with writing(self.path):
            write_whole(self.path / name, content)

    def fail(self, error: BaseException) -> None:
        """Notes that the run ended without a result; what it had written is removed."""
        for file in self._files.values():
            with contextlib.suppress(Exception):  # whatever broke the run may break this too
                file.close(keep=False)
        super().fail(error)

    def finish(self, outcome: _native._Outcome, figures: Callable[[Result, Path], None]) -> Result:
        """Writes all that is left; the directory has a status other than ``running`` only when everything is there."""
        for file in self._files.values():
            file.close(keep=True)
        status = "complete" if outcome["complete"] else "interrupted"
        result = Result(
            self._scenario,
            _sources(self.path),
            status=status,
            simulated_s=outcome["simulated_s"],
            events=outcome["events"],
            packets=outcome["packets"],
            directory=self.path,
        )
        write_whole(self.path / SUMMARY, dump(result.summary))
        ended = {
            "simulated_s": outcome["simulated_s"],
            "events": outcome["events"],
            "packets": outcome["packets"],
            "wall_s": self._wall_s(),
        }
        self._provenance.update(ended)
        figures(result, self.path)
        self._note(status=status)
        return result


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def read_table(path: Path) -> pa.Table:
    """A table of a directory of results.

    Raises:
        DirectoryError: the file is damaged.
    """
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, ValueError) as error:
        raise DirectoryError(f"{path}: is damaged ({error})") from error


def read_batches(directory: Path, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of a table of a run directory, a row group at a time.

    Raises:
        DirectoryError: the file is damaged.
    """
    import pyarrow.parquet as pq

    path = directory / RESULTS / f"{table}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(columns=list(columns))
    except (OSError, ValueError) as error:
        raise DirectoryError(f"{path}: is damaged ({error})") from error


def _sources(directory: Path) -> dict[str, Callable[[], pa.Table]]:
    paths = {name: directory / RESULTS / f"{name}.parquet" for name in TABLES}
    return {name: partial(read_table, path) for name, path in paths.items() if path.exists()}


def open_result(directory: Path) -> Result:
    """Opens the result in a run directory.

    Raises:
        DirectoryError: it is no run directory, or its run did not end.
    """
    provenance = read_provenance(directory)
    status = provenance["status"]
    if status not in _ENDED:
        why = "failed" if status == "failed" else "is still running or was killed"
        raise DirectoryError(f"{directory}: the run {why} (status {status}); there is no result to read")
    try:
        scenario = Scenario.load(directory / SCENARIO)
    except _native.ScenarioError as fault:
        raise DirectoryError(f"{directory}: its scenario cannot be read: {fault}") from fault
    return Result(
        scenario,
        _sources(directory),
        status=status,
        simulated_s=float(provenance["simulated_s"]),
        events=int(provenance["events"]),
        packets=int(provenance["packets"]),
        directory=directory,
    )


def result_files(directory: Path) -> list[str]:
    """Names of the result files of a run: tables and summary."""
    tables = sorted(path.name for path in (directory / RESULTS).glob("*.parquet"))
    return [*(f"{RESULTS}/{name}" for name in tables), SUMMARY]


def compare(first: Path, second: Path) -> list[tuple[str, str]]:
    """Compares the results of two runs.

    Returns:
        One pair per file: its name, and `IDENTICAL`, ``different``, `SAME` (a table with the same values, which another
        version of pyarrow wrote as other bytes), ``missing`` or ``new``.
    """
    before, after = result_files(first), result_files(second)
    return [(name, _verdict(first / name, second / name)) for name in _union(before, after)]


def _union(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return [*first, *(name for name in second if name not in first)]


def _verdict(first: Path, second: Path) -> str:
    if not second.exists():
        return "missing"
    if not first.exists():
        return "new"
    if filecmp.cmp(first, second, shallow=False):
        return IDENTICAL
    if first.suffix == ".parquet" and read_table(first).equals(read_table(second)):
        return SAME
    return "different"
