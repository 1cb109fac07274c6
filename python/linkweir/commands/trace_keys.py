# SPDX-License-Identifier: BSD-3-Clause
"""The option --trace-key, with which the command line describes a trace as ``[link]`` of a scenario does.

The functions here also print what a trace is then taken for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from linkweir.traces import Reading, keys_of, reading

TraceKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--trace-key",
        metavar="KEY=VALUE",
        help="A key that describes the trace as in a scenario, such as trace_unit=Mbit; repeat.",
    ),
]


def trace_keys(texts: Sequence[str] | None, trace: object) -> dict[str, Any] | None:
    """The keys, or None without any.

    Raises:
        BadParameter: one is wrong, or there is no trace.
    """
    if not texts:
        return None
    if trace is None:
        raise typer.BadParameter(
            "describes a trace; give --trace, too, or write it in [link]", param_hint="--trace-key"
        )
    try:
        return keys_of(texts)
    except ValueError as fault:
        raise typer.BadParameter(str(fault), param_hint="--trace-key") from None


def show_reading(found: Reading, *, err: bool = False) -> None:
    """Prints what a trace is taken for and what of it is doubtful; to stderr with `err`."""
    typer.echo(f"read: {found.text}", err=err)
    for doubt in found.doubts:
        typer.echo(f"note: {doubt}", err=err)


def show_trace(trace: Path | None, keys: Mapping[str, Any] | None = None, *, err: bool = False) -> None:
    """As `show_reading`, for a trace that may be given.

    Raises:
        ScenarioError: the trace is wrong.
    """
    if trace is not None:
        show_reading(reading(trace, keys=keys), err=err)
