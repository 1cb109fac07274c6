# SPDX-License-Identifier: BSD-3-Clause
"""One run of a sweep as it is sent to an executor, and the answer, whose bytes do not depend on where it ran.

A sweep needs the rows of a run for its data set; a reproduction needs all its tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from linkweir import _native
from linkweir.columns import blobs, reals, strings, wholes
from linkweir.directories.build import build
from linkweir.fault import ExecutorError
from linkweir.scenarios.scenario import Scenario, with_inputs
from linkweir.tables import bins

if TYPE_CHECKING:
    import pyarrow as pa

_DELAYS = "delays"
_ROWS = "rows"
_APPLICATIONS = ("completions", "video")
_KEPT = ("classes", "flows", "link", _DELAYS, *_APPLICATIONS)
"""Tables of a run that are kept: its rows are made of all but the delays."""


@dataclass(frozen=True)
class Job:
    """A run, with all it needs.

    Attributes:
        number: which run of the plan, from 1.
        identity: SHA-256 of everything its results depend on, except the version of Linkweir; names its results.
        text: the scenario with every default written out.
        seed: seed of every random number.
        inputs: the files that `text` names, as (name, content).
        whole: the answer holds all tables of the run instead of its rows in a data set.
        place: where it runs if not in the simulator, for the executor that knows this place.
    """

    number: int
    identity: str
    text: str
    seed: int
    inputs: tuple[tuple[str, bytes], ...] = field(repr=False)
    whole: bool = False
    place: tuple[str, ...] = ()


class KeptRun(NamedTuple):
    """What a sweep keeps of a run: its rows in the data set, and the distributions of its delays."""

    rows: pa.Table
    delays: pa.Table | None


@dataclass(frozen=True)
class Answer:
    """The answer to a job.

    Attributes:
        number: which run of the plan, from 1.
        rows: its rows and the distributions of its delays (`read_run`), or of a whole job its tables (`read_tables`);
            None if it failed.
        error: why it failed.
        version: version, commit and sources of Linkweir that did it.
    """

    number: int
    rows: bytes | None
    error: str = ""
    version: str = ""

    @property
    def fault(self) -> str:
        """Why the answer cannot be used: the run failed, or another version of Linkweir did it; empty if it can."""
        if self.rows is None:
            return self.error
        if self.version != version():
            return f"was done by linkweir {self.version}, here it is {version()}; install the same version"
        return ""


def version() -> str:
    """Version, commit and sources of Linkweir here."""
    here = build()
    return f"{here['linkweir']} {here['commit']} {here['sources_sha256'][:12]}"


def identity(text: str, seed: int, inputs: tuple[tuple[str, bytes], ...], place: tuple[str, ...] = ()) -> str:
    """SHA-256 of everything that the results of a run depend on."""
    digest = hashlib.sha256(f"{seed}\n{len(text)}\n{text}".encode())
    for name, content in inputs:
        digest.update(f"\n{name}\n{hashlib.sha256(content).hexdigest()}".encode())
    for word in place:
        digest.update(f"\n{len(word)} {word}".encode())
    return digest.hexdigest()


def work(job: Job) -> Answer:
    """Does a run; a failure is also an answer."""
    try:
        return Answer(job.number, _content(job), version=version())
    except Exception as fault:  # one failed run must not end the others
        return Answer(job.number, None, str(fault) or type(fault).__name__, version())


def _content(job: Job) -> bytes:
    if job.place:
        raise ExecutorError(f"is a run in {job.place[0]}, which this executor cannot do")
    scenario = _scenario(job)
    tables, simulated_s = _simulate(scenario, whole=job.whole)
    return write_tables(tables) if job.whole else kept_rows(tables, scenario, simulated_s)


def kept_rows(tables: Mapping[str, pa.Table], scenario: Scenario, simulated_s: float) -> bytes:
    """The answer of a run: its rows and the distributions of its delays, for `read_run`."""
    kept = {_ROWS: summary_rows(tables, scenario, simulated_s)}
    return write_tables(kept | {name: table for name, table in tables.items() if name == _DELAYS})


def write_tables(tables: Mapping[str, pa.Table]) -> bytes:
    """The tables of a run as one file, for `read_tables`."""
    import pyarrow as pa

    contents = [_written(table, compression="zstd") for table in tables.values()]
    return _written(pa.table({"table": strings(list(tables)), "content": blobs(contents)}))


def _written(table: pa.Table, compression: str | None = None) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_rows(content: bytes) -> pa.Table:
    """A table of an answer.

    Raises:
        ValueError: they are not whole.
    """
    import pyarrow as pa

    try:
        with pa.ipc.open_file(pa.py_buffer(content)) as reader:
            return reader.read_all()
    except (OSError, pa.ArrowException) as error:
        raise ValueError(str(error)) from error


def read_tables(content: bytes) -> dict[str, bytes]:
    """The tables of an answer by name, each for `read_rows`.

    Raises:
        ValueError: they are not whole.
    """
    kept = read_rows(content)
    return {row["table"]: row["content"] for row in kept.to_pylist()}


def read_run(content: bytes) -> KeptRun:
    """The answer to a job that is not whole.

    Raises:
        ValueError: it is cut off.
    """
    tables = read_tables(content)
    if _ROWS not in tables:
        raise ValueError("has no rows")
    return KeptRun(read_rows(tables[_ROWS]), read_rows(tables[_DELAYS]) if _DELAYS in tables else None)


def _simulate(scenario: Scenario, *, whole: bool) -> tuple[dict[str, pa.Table], float]:
    """The tables kept of a run, and how far it came, s."""
    from linkweir.tables import arrow

    chunks: dict[str, list[list[_native._Column]]] = {name: [] for name in _KEPT}

    def take(name: str, columns: list[_native._Column]) -> None:
        if whole or name in chunks:
            chunks.setdefault(name, []).append(columns)

    outcome = _native.run(scenario.native, take, None)
    return {name: arrow.joined(parts) for name, parts in chunks.items() if parts}, outcome["simulated_s"]


def _scenario(job: Job) -> Scenario:
    return with_inputs(job.text, job.inputs, job.seed)


def summary_rows(tables: Mapping[str, pa.Table], scenario: Scenario, simulated_s: float) -> pa.Table:
    """A run in few rows: one of the link, one of each class, one of each flow, distinguished by ``scope``.

    Args:
        tables: ``classes``, ``flows`` and ``link`` of a run, and ``completions`` and ``video`` of its applications.
        scenario: what was run; the link's means start at the end of its warm-up.
        simulated_s: end of the run.
    """
    import pyarrow as pa

    means = _link_means(tables, scenario, simulated_s)
    count = len(means)
    names: dict[str, Any] = {"scope": strings(["link"] * count)}
    if scenario.is_network:
        names["link"] = strings(list(means))
    names |= {key: pa.nulls(count, pa.string()) for key in ("class", "flow")}
    numbers = {key: reals([row.get(key) for row in means.values()]) for key in _OF_LINK}
    parts = [pa.table(names | numbers)]
    for scope, name in (("class", "classes"), ("flow", "flows")):
        if name in tables:
            table = tables[name] if scope == "class" else _with_applications(tables)
            parts.append(table.add_column(0, "scope", strings([scope] * table.num_rows)))
    return pa.concat_tables(parts, promote_options="default").combine_chunks()


_OF_LINK = ("capacity_bps", "used_bps")


def _link_means(
    tables: Mapping[str, pa.Table], scenario: Scenario, simulated_s: float
) -> dict[str, dict[str, float | None]]:
    """The means of each link by its name; of a scenario with one ``[link]`` of the link without a name."""
    batches = tables["link"].to_batches() if "link" in tables else []
    span = {"interval_s": scenario.interval_s, "from_s": scenario.warmup_s, "to_s": simulated_s}
    if not scenario.is_network:
        return {"": bins.means(batches, _OF_LINK, **span)}
    found = bins.means_by(batches, "link", _OF_LINK, **span)
    return {link: found.get(link, {}) for link in scenario.links}


def _with_applications(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Table ``flows`` with the columns of what its applications did; null for other flows."""
    flows = tables["flows"]
    for name in _APPLICATIONS:
        if name not in tables:
            continue
        table = tables[name]
        places = {flow: place for place, flow in enumerate(table["flow"].to_pylist())}
        taken = wholes([places.get(flow) for flow in flows["flow"].to_pylist()])
        for column in table.column_names:
            if column not in ("flow", "class", "kind"):
                flows = flows.append_column(column, table[column].take(taken))
    return flows
