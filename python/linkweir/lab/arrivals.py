# SPDX-License-Identifier: BSD-3-Clause
"""Times and sizes of the packets of datagram flows: the simulator's sources with other random numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkweir.fault import unfit
from linkweir.lab.signal import Signal
from linkweir.scenarios.typed import FlowCbr, FlowPoisson, SizesBetween
from linkweir.scenarios.typed import Sizes as Mix

HEADER_BYTES = 28
SMALLEST_BYTES, LARGEST_BYTES = HEADER_BYTES + 16, 1500

Source = FlowCbr | FlowPoisson
Instants = NDArray[np.uint64]
Sizes = NDArray[np.uint32]


def check_sizes(flow: Source, key: str, written: object) -> None:
    """Refuses packets that the traffic tool cannot send; `written` is the value of the key in the scenario.

    Raises:
        ScenarioError: a packet is too short or too long.
    """
    packet = flow["packet_bytes"]
    if isinstance(packet, int):
        lengths = [packet]
    else:
        lengths = packet["sizes"] if "sizes" in packet else [packet["min"], packet["max"]]
    if min(lengths) < SMALLEST_BYTES or max(lengths) > LARGEST_BYTES:
        raise unfit(key, written, f"datagrams have {SMALLEST_BYTES}B .. {LARGEST_BYTES}B here")


def sizes(packet: int | Mix | SizesBetween, n: int, random: np.random.Generator) -> Sizes:
    """Sizes of n packets in bytes, headers of IP and UDP included."""
    if isinstance(packet, int):
        return np.full(n, packet, np.uint32)
    if "sizes" not in packet:
        return random.integers(packet["min"], packet["max"] + 1, n).astype(np.uint32)
    weights = np.array(packet["weights"], float)
    return random.choice(np.array(packet["sizes"], np.uint32), n, p=weights / weights.sum())


def arrivals(flow: Source, start_s: float, stop_s: float, random: np.random.Generator) -> tuple[Instants, Sizes]:
    """Instants in ns and sizes in bytes of the packets of a flow."""
    rate = Signal(flow["rate_bps"], stop_s)
    budget_bits = float(np.diff(rate.integral(np.array([start_s, stop_s])))[0])
    mean_bits = 8.0 * float(sizes(flow["packet_bytes"], 1000, np.random.default_rng(0)).mean())
    expected = budget_bits / mean_bits
    n = math.ceil(expected + 10 * math.sqrt(expected) + 100)
    bytes_ = sizes(flow["packet_bytes"], n, random)
    if flow["kind"] == "poisson":
        amounts = np.cumsum(mean_bits * random.exponential(size=n))
    else:
        gaps = 8.0 * bytes_ * (1 + flow["jitter"] * random.uniform(-1, 1, n))
        amounts = np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    at_s = rate.reaches(amounts, start_s, stop_s)
    return np.round(at_s * 1e9).astype(np.uint64), bytes_[: len(at_s)]
