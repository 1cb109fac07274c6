# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run: read when first asked for, from memory or from Parquet files that grow by row groups."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir.columns import reals, strings
from linkweir.directories.provenance import RESULTS
from linkweir.fault import DirectoryError, TableError
from linkweir.scenarios.networks import key_of_link
from linkweir.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (
    "series",
    "link",
    "flow_series",
    "levels",
    "classes",
    "hops",
    "flows",
    "delays",
    "voice",
    "harq",
    "channel",
    "carrier",
    "terminals",
    "members",
    "bond_paths",
    "bond_receivers",
    "packets",
    "transfers",
    "completions",
    "video",
)
"""Names of the tables, of which a run has those for which there is something to say."""
OF_LINKS = (
    "series",
    "link",
    "levels",
    "classes",
    "delays",
    "channel",
    "carrier",
    "terminals",
    "members",
    "bond_paths",
    "bond_receivers",
)
"""Tables of a link, which begin with a column ``link`` in a run over several."""
THERE = "there"
"""The direction of packets in table `hops` that are not acknowledgements."""
_GROUP_ROWS = 65_536


def _known(name: str) -> None:
    """Refuses what is no name of a table."""
    if name not in TABLES:
        near = difflib.get_close_matches(str(name), TABLES, n=1)
        cure = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(TABLES)}"
        raise TableError(f'no table is called "{name}"; {cure}')


class _Tables(Mapping[str, "pa.Table"]):
    """Tables by name, read when first asked for."""

    def __init__(self, sources: Mapping[str, Callable[[], pa.Table]]) -> None:
        self._sources = {name: sources[name] for name in TABLES if name in sources}
        self._read: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._read:
            _known(name)
            if name not in self._sources:
                raise TableError(f"tables[{name!r}]: this run has none; it has {', '.join(self._sources)}")
            self._read[name] = self._sources[name]()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


class RunTables:
    """The tables of a run, and what it takes to read them: what figures, reports and warnings are made of.

    Attributes:
        scenario: what was run.
        status: ``complete`` or ``interrupted``.
        simulated_s: simulated time reached, s.
        log_cut_s: when the log of packets was full, if it was.
        directory: the run directory, if one was written.
        tables: the tables the run has, by name.
    """

    def __init__(
        self,
        scenario: Scenario,
        sources: Mapping[str, Callable[[], pa.Table]],
        *,
        status: str,
        simulated_s: float,
        log_cut_s: float | None = None,
        directory: Path | None = None,
    ) -> None:
        self.scenario = scenario
        self.status = status
        self.simulated_s = simulated_s
        self.log_cut_s = log_cut_s
        self.directory = directory
        self.tables: Mapping[str, pa.Table] = _Tables(sources)

    @property
    def notes(self) -> list[str]:
        """Notes on the run, a sentence each: those of its scenario, and that its log of packets was cut."""
        notes = list(self.scenario.notes)
        if self.log_cut_s is not None:
            notes.append(
                f"the log of packets was full at {self.log_cut_s:g} s; later steps are not in it; raise log_rows"
            )
        return notes

    def of_link(self, name: str) -> LinkTables:
        """The tables of one link of a network, as those of a run over this link alone.

        Raises:
            ScenarioError: no link has this name.
        """
        return LinkTables(self, name)

    def table(self, name: str) -> pa.Table:
        """The table, without rows if the run has none of this name."""
        _known(name)
        if name in self.tables:
            return self.tables[name]
        from linkweir import _native
        from linkweir.tables import arrow

        declared = _native.empty_tables(self.scenario.is_network)
        if name not in declared:
            declared = _native.empty_tables()
        if name in declared:
            return arrow.table(declared[name])
        import pyarrow as pa

        return pa.table({"t_s": reals([]), "class": strings([])})

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a table piece by piece: from a run directory, without ever holding the table.

        Args:
            table: name of a table; one the run does not have gives no rows.
            columns: names of the columns wanted.

        Raises:
            DirectoryError: the file is damaged.
            TableError: no table is called so.
        """
        _known(table)
        if table not in self.tables:
            return
        if self.directory is None:
            yield from self.tables[table].select(list(columns)).to_batches()
        else:
            yield from read_batches(self.directory, table, columns)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table as dicts, null as None; none if the run does not have the table.

        Raises:
            TableError: no table is called so.
        """
        rows: list[dict[str, Any]] = self.table(table).to_pylist()
        return rows


class LinkTables(RunTables):
    """The tables of one link of a network, as those of a run over this link alone.

    Args:
        run: a run over several links.
        link: the name of one of them.
    """

    def __init__(self, run: RunTables, link: str) -> None:
        of_links: dict[str, Callable[[], pa.Table]] = {
            name: partial(self._of_link, name) for name in OF_LINKS if name in run.tables
        }
        if "hops" in run.tables:
            of_links["flows"] = self._flows
        super().__init__(
            run.scenario.of_link(link), of_links, status=run.status, simulated_s=run.simulated_s, log_cut_s=None
        )
        self.link = link
        self._run = run

    @property
    def place(self) -> int:
        """Its place among the links of the network, from 1."""
        return self._run.scenario.links.index(self.link) + 1

    @property
    def comes_and_goes(self) -> bool:
        """Whether it is a link of a constellation, of which packets may be lost while it does not exist."""
        return key_of_link(self._run.scenario, self.link)[0] == "constellation"

    def passed_s(self, flows: Sequence[str], from_s: float, to_s: float) -> list[tuple[float, float]]:
        """When ways there of any of these flows have the link, between two times; in order, apart from each other."""
        spans = []
        for flow in flows:
            there = self._run.scenario.ways_over_time[flow][0]
            ends = [*(since for since, _ in there[1:]), to_s]
            for (begin, way), end in zip(there, ends, strict=True):
                if any(link == self.link for link, _ in way):
                    spans.append((max(begin, from_s), min(end, to_s)))
        found: list[tuple[float, float]] = []
        for begin, end in sorted(span for span in spans if span[0] < span[1]):
            if found and begin <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((begin, end))
        return found

    @property
    def notes(self) -> list[str]:
        """None: notes are on the run."""
        return []

    def table(self, name: str) -> pa.Table:
        """The table, without rows if the run has none of this name."""
        if name in self.tables:
            return self.tables[name]
        return super().table(name)

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a table piece by piece; see `RunTables.batches`."""
        import pyarrow.compute as pc

        _known(table)
        if table not in OF_LINKS:
            if table in self.tables:
                yield from self.tables[table].select(list(columns)).to_batches()
            return
        for batch in self._run.batches(table, ["link", *columns]):
            mine = batch.filter(pc.equal(batch.column("link"), self.link))
            if mine.num_rows:
                yield mine.select(list(columns))

    def _of_link(self, name: str) -> pa.Table:
        import pyarrow.compute as pc

        table = self._run.table(name)
        mine = table.filter(pc.equal(table["link"], self.link)).drop_columns(["link"])
        if name == "levels":  # which has the columns of all links' policies
            mine = mine.drop_columns(
                [column for column in mine.column_names if mine[column].null_count == mine.num_rows]
            )
        return mine

    def _flows(self) -> pa.Table:
        """What the flows met at this link on their way there, with their classes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        hops = self._run.table("hops")
        mine = hops.filter(pc.and_(pc.equal(hops["link"], self.link), pc.equal(hops["direction"], THERE)))
        at = {flow: row for row, flow in enumerate(mine["flow"].to_pylist())}
        names = [name for name in self.scenario.flows if name in at]
        ways = self._run.scenario.ways_over_time
        flows = self._run.table("flows")
        kinds = dict(zip(flows["flow"].to_pylist(), flows["kind"].to_pylist(), strict=True))
        classes = [next(hop[1] for _, way in ways[name][0] for hop in way if hop[0] == self.link) for name in names]
        found = mine.take(pa.array([at[name] for name in names], pa.int64()))
        found = found.append_column("class", strings(classes))
        return found.append_column("kind", strings([kinds[name] for name in names]))


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
            self._write()  # the last row group, which may be short
        if self._writer is not None:
            self._writer.close()
        if keep:
            with self._part.open("rb") as file:
                os.fsync(file.fileno())
            self._part.replace(self._path)


def read_table(path: Path) -> pa.Table:
    """A table of a directory of results.

    Raises:
        DirectoryError: the file is damaged.
    """
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:  # pq.read_table does the same, and imports pandas
            return file.read()
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


def table_files(directory: Path) -> dict[str, Callable[[], pa.Table]]:
    """Readers of the tables that a run directory has, by name."""
    paths = {name: directory / RESULTS / f"{name}.parquet" for name in TABLES}
    return {name: partial(read_table, path) for name, path in paths.items() if path.exists()}
