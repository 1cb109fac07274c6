# SPDX-License-Identifier: BSD-3-Clause
"""The most that a flow can send in any interval, as far as its keys say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from linkweir import _native
from linkweir.bounds.curve import Curve, add, token_bucket
from linkweir.scenarios.declared import rows, table_of, traffic_kinds
from linkweir.scenarios.flows import has_sizes, is_over_tcp, of_no_kind
from linkweir.scenarios.typed import Flow, FlowReplay

NANOSECOND = Fraction(1, 10**9)
SYN_OPTIONS_BYTES = 8
"""What a SYN has besides the headers of a segment."""
USUAL_BYTES = 1500
"""The packet of a source whose sizes its keys do not list."""


@dataclass(frozen=True)
class Envelope:
    """Arrivals of a class: the curve, or why there is none; smallest and largest packet on the wire, bits."""

    curve: Curve | None
    why_none: str
    least_bits: int
    most_bits: int


@dataclass(frozen=True)
class Framing:
    """What the link adds to a packet's bytes, and the least length it counts."""

    overhead_bytes: int
    mpu_bytes: int

    def bits(self, size_bytes: int) -> int:
        """Accounted length of a packet."""
        return 8 * max(size_bytes + self.overhead_bytes, self.mpu_bytes, 1)


def exact(number: float) -> Fraction:
    """A quantity of a checked scenario, exact to the last digit that a float holds."""
    return Fraction(str(number)) if "e" not in str(number).lower() else Fraction(number)


Replayed = Callable[[str], list[tuple[int, int]] | None]
"""Packets of a flow of kind replay by its name: ns after its start, and bytes."""


def of_flow(flow: Flow, count: int, framing: Framing, replayed: Replayed) -> Envelope:
    """Arrivals of one entry of `[[flow]]`, `count` copies of it together."""
    sizes = _sizes(flow)
    least, most = (framing.bits(size) for size in (min(sizes), max(sizes)))
    kind = flow["kind"]

    def none(why: str) -> Envelope:
        return Envelope(None, f"flow {flow['name']} ({kind}) {why}", least, most)

    treatment = traffic_kinds()[kind]["bounds"]
    if treatment.words is not None:
        return none(treatment.words)
    if flow["kind"] == "replay":
        return _replayed(flow, framing, replayed(flow["name"]) or [], count)
    if flow["kind"] == "voice":
        gap_s = exact(_codec(flow["codec"])["interval_s"])
        jitter = flow["jitter"]
    elif flow["kind"] == "cbr" or flow["kind"] == "onoff":
        if not isinstance(flow["rate_bps"], (int, float)):
            return none(rows(table_of(kind))["rate"].of("bounds").words or "")
        rate_bps = exact(flow["rate_bps"])
        if rate_bps == 0:
            return Envelope(token_bucket(0, 0), "", least, most)
        jitter = flow["jitter"] if flow["kind"] == "cbr" else 0.0
        if min(sizes) != max(sizes):
            # A gap follows its packet's size: in any interval the bytes exceed the rate by one packet at most.
            return _bucket(flow["name"], jitter, framing, count, max(sizes), min(sizes), rate_bps)
        gap_s = Fraction(8 * min(sizes)) / rate_bps
    elif (
        flow["kind"] == "poisson"
        or flow["kind"] == "greedy"
        or flow["kind"] == "tcp"
        or flow["kind"] == "transfers"
        or flow["kind"] == "requests"
        or flow["kind"] == "web"
        or flow["kind"] == "video"
    ):
        raise AssertionError(f"{kind} is declared to have bounds, and has no arrival curve here")
    else:
        of_no_kind(flow)
    gap_s *= 1 - exact(jitter)
    if gap_s <= NANOSECOND:
        return none("has gaps down to 0")
    # Creations are rounded to nanoseconds, so an interval may hold the packets of one nanosecond more.
    rate = Fraction(most) / gap_s
    return Envelope(token_bucket(count * (most + rate * NANOSECOND), count * rate), "", least, most)


def _bucket(
    name: str, jitter: float, framing: Framing, count: int, most: int, least: int, rate_bps: Fraction
) -> Envelope:
    stretch = 1 - exact(jitter)
    if stretch <= 0:
        return Envelope(None, f"flow {name} has gaps down to 0", framing.bits(least), framing.bits(most))
    wire = max(Fraction(framing.bits(size), 8 * size) for size in (least, most))
    rate = rate_bps * wire / stretch
    burst = framing.bits(most) + rate * NANOSECOND
    return Envelope(token_bucket(count * burst, count * rate), "", framing.bits(least), framing.bits(most))


def _codec(name: str) -> _native._Codec:
    return next(codec for codec in _native.codecs() if codec["name"] == name)


def _sizes(flow: Flow) -> list[int]:
    if flow["kind"] == "voice":
        return [_codec(flow["codec"])["payload_bytes"] + flow["header_bytes"]]
    if has_sizes(flow):
        packet = flow["packet_bytes"]
        if isinstance(packet, int):
            return [packet]
        return packet["sizes"] if "sizes" in packet else [packet["min"], packet["max"]]
    if is_over_tcp(flow):  # the last segment of a transfer may have one byte; the SYN has options of 8 bytes
        return [flow["header_bytes"] + size for size in (1, max(flow["mss_bytes"], SYN_OPTIONS_BYTES))]
    return [USUAL_BYTES]


def _replayed(flow: FlowReplay, framing: Framing, rows: list[tuple[int, int]], count: int) -> Envelope:
    bits = [framing.bits(size) for _, size in rows]
    times = [Fraction(at_ns, 10**9) for at_ns, _ in rows]
    if flow["period_s"] is not None:
        period = exact(flow["period_s"])
        times, bits = times + [t + period for t in times], bits + bits
        tail: Fraction = Fraction(sum(bits) // 2) / period
    else:
        tail = Fraction(0)
    one = empirical(times, bits, tail)
    return Envelope(add([one] * count), "", min(bits), max(bits))


def empirical(times_s: list[Fraction], bits: list[int], tail_bps: Fraction = Fraction(0)) -> Curve:
    """The least concave curve above the arrivals of a list of packets; `tail_bps` is its rate in the long run.

    >>> empirical([Fraction(0), Fraction(1)], [100, 50]).segments
    ((Fraction(0, 1), Fraction(100, 1), Fraction(50, 1)), (Fraction(1, 1), Fraction(150, 1), Fraction(0, 1)))
    """
    total, sums = 0, [0]
    for size in bits:
        total += size
        sums.append(total)
    number = len(bits)
    spans: dict[Fraction, int] = {}
    # Every run of packets, exact up to 1,500 of them; longer lists are cut into blocks that count whole (safe side).
    block = -(-number // 1500)
    for first in range(0, number, block):
        for last in range(first, number, block):
            end = min(last + block, number)
            span = max(times_s[last] - times_s[min(first + block, number) - 1], Fraction(0))
            if span not in spans or spans[span] < sums[end] - sums[first]:
                spans[span] = sums[end] - sums[first]
    # The upper concave hull.
    hull: list[tuple[Fraction, Fraction]] = []
    for t in sorted(spans):
        point = (t, Fraction(spans[t]))
        if hull and point[1] <= hull[-1][1]:
            continue
        while len(hull) >= 2 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    segments = [(a[0], a[1], max(_slope(a, b), tail_bps)) for a, b in pairwise(hull) if _slope(a, b) > tail_bps]
    end = next((i for i, (a, b) in enumerate(pairwise(hull)) if _slope(a, b) <= tail_bps), len(hull) - 1)
    segments.append((hull[end][0], hull[end][1], tail_bps))
    return Curve.of(segments)


def _slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])
