# SPDX-License-Identifier: BSD-3-Clause
"""The option --trace-key, with which the command line describes a trace as ``[link]`` of a scenario does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from linkweir.traces import keys_of

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
