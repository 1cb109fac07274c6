# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir log`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir.commands import pcapng
from linkweir.commands.present import emit, say
from linkweir.directories.provenance import writing
from linkweir.fault import DirectoryError
from linkweir.runs.result import Result, open_result
from linkweir.scenarios.flows import is_over_tcp

app = typer.Typer(add_completion=False)

_COLUMNS = ("t_ns", "event", "reason", "flow", "connection", "number", "retransmission", "size_bytes")


@app.command()
def log(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")],
    file: Annotated[
        Path | None, typer.Option("--pcapng", metavar="FILE", help="Write the log for Wireshark, as pcapng.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Count the steps in a log of packets, or write it for Wireshark."""
    result = open_result(directory)
    if "packets" not in result.tables:
        raise DirectoryError(f'{directory}: has no log of packets; run its scenario with log = "packets"')
    if file is None:
        _count(result)
    elif result.scenario.is_network:
        raise DirectoryError(
            f"{directory}: its run has several links, and the form for Wireshark has one; read the table packets"
        )
    else:
        if file.exists() and not force:
            raise DirectoryError(f"{file}: exists already; name another file, or overwrite it with --force")
        part = file.with_name(f"{file.name}.part")
        with writing(file):
            try:
                with part.open("wb") as target:
                    count = pcapng.write(target, _rows(result), _streams(result))
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
        emit(f"{file}: {count} packets on the interfaces {', '.join(pcapng.INTERFACES)}\n")
    if result.log_cut_s is not None:
        say(f"linkweir: {result.notes[-1]}")


def _count(result: Result) -> None:
    counts: Counter[tuple[str, ...]] = Counter()
    columns = ["event", "reason", *(["link"] if result.scenario.is_network else [])]
    for batch in result.batches("packets", columns):
        counts.update(zip(*(batch[name].to_pylist() for name in columns), strict=True))
    for (event, reason, *link), count in counts.items():
        place = f" ({link[0]})" if link and link[0] else ""
        emit(f"{count:>12} {event}{f': {reason}' if reason else ''}{place}\n")


def _rows(result: Result) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    assert result.directory is not None
    # Logs of earlier versions have no connections.
    there = pq.read_schema(result.directory / "results" / "packets.parquet").names
    for batch in result.batches("packets", [name for name in _COLUMNS if name in there]):
        yield from batch.to_pylist()


def _streams(result: Result) -> dict[str, pcapng.Stream]:
    segments: dict[str, tuple[int, int, int]] = {}
    for flow in result.scenario.native.tables()["flows"]:
        if is_over_tcp(flow):
            copies = [f"-{i + 1}" for i in range(flow["count"])] if flow["count"] > 1 else [""]
            header_bytes = flow["header_bytes"]
            bare_bytes = header_bytes if flow["profile"] == "linux" else 0
            sizes = flow["mss_bytes"], header_bytes, bare_bytes
            segments |= {f"{flow['name']}{copy}": sizes for copy in copies}
    return pcapng.streams(result.rows("flows"), result.scenario.classes, segments)
