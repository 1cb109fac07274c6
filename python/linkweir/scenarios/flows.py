# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of traffic by what they have in common."""

from __future__ import annotations

from typing import NoReturn, TypeAlias, TypeGuard

from linkweir.scenarios import typed
from linkweir.scenarios.typed import Flow

OverTcp: TypeAlias = typed.FlowBulk | typed.FlowTransfers | typed.FlowRequests | typed.FlowWeb | typed.FlowVideo
"""Traffic over TCP."""
OfSizes: TypeAlias = typed.FlowCbr | typed.FlowPoisson | typed.FlowOnoff | typed.FlowGreedy
"""Traffic whose packets have sizes of their own."""


def is_over_tcp(flow: Flow) -> TypeGuard[OverTcp]:
    """Whether a flow has TCP's keys."""
    return "mss_bytes" in flow


def has_sizes(flow: Flow) -> TypeGuard[OfSizes]:
    """Whether a flow has the key `packet`."""
    return "packet_bytes" in flow


def of_no_kind(flow: NoReturn) -> NoReturn:
    """Ends a distinction of all kinds: mypy refuses the call while a kind is left over."""
    raise AssertionError(f"a kind of traffic that is not known here: {flow}")
