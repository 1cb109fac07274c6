# SPDX-License-Identifier: BSD-3-Clause
"""The directory of a run: written during the run, and compared with that of another.

A run leaves::

    scenario.toml      the scenario with every default, which alone repeats the run
    inputs/            copies of the files it names
    provenance.json    what ran, when and where, and how it ended; nothing of this is in the results
    results/*.parquet  the tables, which grow on disk during the run
    summary.json       totals, with units in the keys
    report.html        charts and tables in one file
    figures/           the charts as files, if they were asked for
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkweir import _native
from linkweir.directories.provenance import (
    FIGURES,
    INPUTS,
    REPORT,
    RESULTS,
    SCENARIO,
    SUMMARY,
    OwnDirectory,
    dump,
    input_facts,
    write_whole,
    writing,
)
from linkweir.report import write_figures, write_report
from linkweir.runs.result import Result
from linkweir.scenarios.scenario import Scenario
from linkweir.tables.run_tables import TableFile, read_table, table_files

if TYPE_CHECKING:
    import pyarrow as pa

EXTRA_FILES = ("gateway.json", "emulator.json", "memory.csv")
"""Files of real gateways besides the tables: their state at the end, the emulator's delays, and their memory."""
FORMAT = 1
"""Version of the tables of a run over one link, in provenance.json."""
FORMAT_OF_NETWORKS = 2
"""Of a run over several links: tables of links begin with a column ``link``, and there is a table ``hops``."""
IDENTICAL = "identical"
SAME = "same values"
_HEADER = "# Every default is written out here; with inputs/ beside it, this file repeats the run.\n"


class RunDirectory(OwnDirectory):
    """The directory of a run."""

    KIND = "run"
    OURS = (SCENARIO, INPUTS, RESULTS, SUMMARY, FIGURES, REPORT, *EXTRA_FILES)

    def __init__(self, path: Path, scenario: Scenario, *, force: bool = False, **more: str) -> None:
        self._scenario = scenario
        self._files: dict[str, TableFile] = {}
        resolved = _HEADER + scenario.resolved
        inputs = [{"name": name, **input_facts(source, content)} for name, source, content in scenario.inputs]
        facts = {
            "name": scenario.name,
            "seed": scenario.seed,
            "format": FORMAT_OF_NETWORKS if scenario.is_network else FORMAT,
            "scenario_sha256": hashlib.sha256(resolved.encode()).hexdigest(),
            "inputs": inputs,
            "readings": scenario.readings,
            **more,
        }
        super().__init__(path, facts, force=force)
        with writing(path):
            for folder in (INPUTS, RESULTS):
                (path / folder).mkdir(exist_ok=True)
            for name, _, content in scenario.inputs:
                (path / name).write_bytes(content)
            write_whole(path / SCENARIO, resolved)

    def add(self, name: str, table: pa.Table) -> None:
        """Appends rows to a table."""
        if name not in self._files:
            self._files[name] = TableFile(self.path / RESULTS / f"{name}.parquet")
        self._files[name].add(table)

    def add_file(self, name: str, content: bytes) -> None:
        """Writes one of `EXTRA_FILES`."""
        with writing(self.path):
            write_whole(self.path / name, content)

    def fail(self, error: BaseException) -> None:
        """Records that the run ended without a result, and removes its tables."""
        for file in self._files.values():
            with contextlib.suppress(Exception):  # the cause of the failure, such as a full disk, may break this too
                file.close(keep=False)
        super().fail(error)

    def finish(self, outcome: _native._Outcome, figures: Sequence[str] = ()) -> Result:
        """Writes tables, summary and report, and last the status, which stays ``running`` until all are there.

        Args:
            outcome: how the run ended.
            figures: formats in which the charts are drawn as files, too.
        """
        for file in self._files.values():
            file.close(keep=True)
        status = "complete" if outcome["complete"] else "interrupted"
        result = Result(
            self._scenario,
            table_files(self.path),
            status=status,
            simulated_s=outcome["simulated_s"],
            events=outcome["events"],
            packets=outcome["packets"],
            log_cut_s=outcome.get("log_cut_s"),
            directory=self.path,
        )
        write_whole(self.path / SUMMARY, dump(result.summary))
        ended = {
            "simulated_s": outcome["simulated_s"],
            "events": outcome["events"],
            "packets": outcome["packets"],
            "log_cut_s": outcome.get("log_cut_s"),
            "wall_s": self._wall_s(),
        }
        self._provenance.update(ended)
        write_report(result, result.warnings, self.path)
        write_figures(result, figures, self.path)
        self._note(status=status)
        return result


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
