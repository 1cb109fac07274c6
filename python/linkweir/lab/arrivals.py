# SPDX-License-Identifier: BSD-3-Clause
"""Times and sizes of the packets of datagram flows: the simulator's sources with other random numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkweir import _native
from linkweir.fault import unfit
from linkweir.lab.signal import Signal

HEADER_BYTES = 28
SMALLEST_BYTES, LARGEST_BYTES = HEADER_BYTES + 16, 1500

Instants = NDArray[np.uint64]
Sizes = NDArray[np.uint32]


def sizes(written: str | Mapping[str, Any], n: int, random: np.random.Generator, key: str) -> Sizes:
    """Sizes of n packets in bytes, headers of IP and UDP included."""
    if isinstance(written, str):
        lengths = [round(_native.quantity(written, "size"))]
    elif "sizes" in written:
        lengths = [round(_native.quantity(size, "size")) for size in written["sizes"]]
    else:
        lengths = [round(_native.quantity(written[end], "size")) for end in ("min", "max")]
    if min(lengths) < SMALLEST_BYTES or max(lengths) > LARGEST_BYTES:
        raise unfit(key, written, f"datagrams have {SMALLEST_BYTES}B .. {LARGEST_BYTES}B here")
    if isinstance(written, str):
        return np.full(n, lengths[0], np.uint32)
    if "sizes" not in written:
        return random.integers(lengths[0], lengths[1] + 1, n).astype(np.uint32)
    weights = np.array(written.get("weights", [1] * len(lengths)), float)
    return random.choice(np.array(lengths, np.uint32), n, p=weights / weights.sum())


def arrivals(
    flow: Mapping[str, Any], start_s: float, stop_s: float, random: np.random.Generator, key: str
) -> tuple[Instants, Sizes]:
    """Instants in ns and sizes in bytes of the packets of a flow of kind cbr or poisson."""
    rate = Signal(flow["rate"], "rate", stop_s)
    budget_bits = float(np.diff(rate.integral(np.array([start_s, stop_s])))[0])
    mean_bits = 8.0 * float(sizes(flow["packet"], 1000, np.random.default_rng(0), key).mean())
    expected = budget_bits / mean_bits
    n = math.ceil(expected + 10 * math.sqrt(expected) + 100)
    bytes_ = sizes(flow["packet"], n, random, key)
    if flow["kind"] == "poisson":
        amounts = np.cumsum(mean_bits * random.exponential(size=n))
    else:
        jitter = float(flow["jitter"])
        gaps = 8.0 * bytes_ * (1 + jitter * random.uniform(-1, 1, n))
        amounts = np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    at_s = rate.reaches(amounts, start_s, stop_s)
    return np.round(at_s * 1e9).astype(np.uint64), bytes_[: len(at_s)]
