# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of PSS for the rates an operator wants, and warnings about them.

The level of a controlled queue rises by each packet it sends and falls at the reserved rate rho = BW * C. Below LR it
is urgent, from LM on it is not. So LM - LR sets the burst (N packets) and LR the memory: how long a starvation is
remembered.

Sources: Finzi, Perrier, Frances and Lochin 2023, sections 2.1, 2.3 and 2.4. Ours differs where theirs misses the
target: no margin on BW (1/(N-1) more reserves far too much), LR covers the packets of every other queue, EF included,
and with exact saturation N packets a window need no correction for a lost one. The published map stays available to
compare with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkweir import _native
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import theory
from linkweir.sizing.defaults import BURST_PKTS, MEMORY_S, MTU_BYTES, SAT

ROUNDING = 1e-9
"""Relative error of sums and products of rates: what differs by less is the same."""


@dataclass(frozen=True)
class Queue:
    """A controlled queue with the parameters of PSS."""

    name: str
    link_bps: float
    reserved_bps: float
    target_bps: float
    burst_pkts: int
    mtu_bytes: int
    memory_s: float
    resume_bits: float
    maximum_bits: float
    sat: str = SAT

    @property
    def bw(self) -> float:
        """Reserved part of the nominal link rate."""
        return self.reserved_bps / self.link_bps

    @property
    def resume_s(self) -> float:
        """LR as a time: the longest full starvation that is compensated."""
        return self.resume_bits / self.reserved_bps

    @property
    def maximum_s(self) -> float:
        """LM as a time."""
        return self.maximum_bits / self.reserved_bps


def from_target(
    name: str,
    link_bps: float,
    target_bps: float,
    *,
    burst_pkts: int = BURST_PKTS,
    mtu_bytes: int = MTU_BYTES,
    memory_s: float = MEMORY_S,
    other_mtu_bytes: int | None = None,
    burst_above_bytes: int | None = None,
    ef_expected_bps: float = 0.0,
    sat: str = SAT,
    resume_bits: float | None = None,
    maximum_bits: float | None = None,
) -> Queue:
    """Recommended parameters for a rate: BW from the target alone, LR from the memory, LM from N packets.

    With ``sat="paper"`` a cycle forgets about half an increment at LM, so that AF gets more than it reserves; the
    reservation is lowered to make up for it.

    >>> q = from_target("af", 20e6, 5e6, mtu_bytes=1500)
    >>> round(q.resume_bits), round(q.maximum_bits)
    (500000, 671000)
    """
    if not 0.0 < target_bps < link_bps:
        raise OptionError(
            "rate", f"{target_bps:g}bit", f"must be above 0 and below the link's {link_bps:g} bit/s: reserve less"
        )
    if burst_pkts < 2:
        raise OptionError("burst", f"{burst_pkts}p", "must be at least 2 packets")
    reserved = target_bps
    if sat == "paper":
        reserved = target_bps / (1.0 + saturation_excess(target_bps / link_bps, burst_pkts, ef_expected_bps / link_bps))
    bw = reserved / link_bps
    others_bytes = (mtu_bytes if other_mtu_bytes is None else other_mtu_bytes) + (
        mtu_bytes if burst_above_bytes is None else burst_above_bytes
    )
    resume = max(reserved * memory_s, bw * 8 * others_bytes) if resume_bits is None else resume_bits
    maximum = resume + (burst_pkts - 1) * 8 * mtu_bytes * (1.0 - bw) if maximum_bits is None else maximum_bits
    if maximum <= resume:
        shown = _native.show(resume, "bits")
        cure = "raise --lm or lower --lr" if resume_bits is not None else "raise --lm or lower --memory, which sets it"
        raise OptionError("--lm", _native.show(maximum, "bits"), f"must be above lr, {shown}: {cure}")
    remembered_s = memory_s if resume_bits is None else resume / reserved
    return Queue(name, link_bps, reserved, target_bps, burst_pkts, mtu_bytes, remembered_s, resume, maximum, sat)


def saturation_excess(bw: float, burst_pkts: int, ef_expected_share: float) -> float:
    """Relative excess of AF over its reservation with the saturation of Algorithm 1, on average over packet patterns.

    >>> round(saturation_excess(0.25, 5, 0.5), 4)
    0.0625
    """
    left = 1.0 - ef_expected_share
    return 0.5 * max(1.0 - bw / left, 0.0) / (burst_pkts - 1) if left > 0 else 0.0


@dataclass(frozen=True)
class PublishedMap:
    """The map from WRR weights that the paper prints, equations (2) to (5), with BW as the fraction (5) needs."""

    k_af: float
    b: float
    bw: float
    maximum_bits: float


def published_map(
    link_bps: float, ef_expected_bps: float, af_weight: int, cs0_weight: int, af_bytes: float, cs0_bytes: float
) -> PublishedMap:
    """Equations (2) to (5); LR is 0 there.

    >>> m = published_map(20e6, 10e6, 16, 4, 1500, 1500)
    >>> m.k_af, round(m.b, 4), round(m.bw, 4), round(m.maximum_bits)
    (0.8, 0.8333, 0.4167, 105000)
    """
    if af_weight < 2 or cs0_weight < 2:
        raise OptionError(
            "weights", f"{af_weight}:{cs0_weight}", "the published map needs both weights to be at least 2"
        )
    k_af = theory.wrr_share(af_weight, cs0_weight, af_bytes, cs0_bytes)
    b = theory.wrr_share(af_weight - 1, cs0_weight - 1, af_bytes, cs0_bytes)
    bw = b * (1.0 - ef_expected_bps / link_bps)
    return PublishedMap(k_af, b, bw, 8 * af_bytes * (af_weight - 1) * (1.0 - bw))


def from_weights(
    link_bps: float,
    ef_expected_bps: float,
    af_weight: int,
    cs0_weight: int,
    *,
    af_bytes: float = 1500.0,
    cs0_bytes: float = 1500.0,
    mtu_bytes: int = MTU_BYTES,
    memory_s: float = MEMORY_S,
    sat: str = SAT,
    **bounds: int | None,
) -> Queue:
    """Recommended map: the share of equation (2) of what EF is expected to leave, and N = W_AF packets of mean size.

    >>> q = from_weights(20e6, 10e6, 16, 4)
    >>> q.reserved_bps, q.burst_pkts
    (8000000.0, 16)
    """
    if af_weight < 1 or cs0_weight < 1:
        raise OptionError("weights", f"{af_weight}:{cs0_weight}", "must be at least 1 packet each")
    k_af = theory.wrr_share(af_weight, cs0_weight, af_bytes, cs0_bytes)
    burst_pkts = max(af_weight, 2)
    queue = from_target(
        "af",
        link_bps,
        theory.reserved_bps(link_bps, ef_expected_bps, k_af),
        burst_pkts=burst_pkts,
        mtu_bytes=mtu_bytes,
        memory_s=memory_s,
        ef_expected_bps=ef_expected_bps,
        sat=sat,
        **bounds,
    )
    window_bits = (burst_pkts - 1) * 8 * af_bytes * (1.0 - queue.bw)
    return replace(queue, maximum_bits=queue.resume_bits + window_bits)


def check_together(queues: list[Queue]) -> None:
    """Refuses reservations whose sum exceeds the link."""
    total = sum(q.reserved_bps for q in queues)
    if queues and total > queues[0].link_bps * (1 + ROUNDING):
        raise OptionError(
            "rate",
            f"{total:g}bit",
            f"the reservations add up to more than the link's {queues[0].link_bps:g} bit/s: reserve less",
        )


def warnings_about(queues: list[Queue], ef_expected_bps: float, needed_s: float | None = None) -> list[str]:
    """Warnings about what will not work as intended, a sentence each."""
    found = []
    link_bps = queues[0].link_bps
    for q in queues:
        packet_bits = 8 * q.mtu_bytes
        if q.maximum_bits - q.resume_bits < packet_bits * (1.0 - q.bw) - ROUNDING * q.maximum_bits:
            found.append(
                f"{q.name}: LM - LR is less than the credit of one packet, so every packet switches the level; "
                "raise burst"
            )
        if q.resume_bits < q.bw * 2 * packet_bits * (1 - ROUNDING):
            found.append(
                f"{q.name}: LR is below BW * 2 packets, so the level empties while other packets are sent and "
                f"{q.name} gets less than it reserves; raise memory"
            )
        if q.sat == "paper":
            found.append(
                f"{q.name}: sat=paper keeps the rate only on average over packet patterns; sat=exact keeps it always"
            )
        if needed_s is not None and q.resume_s < needed_s * (1 - ROUNDING):
            found.append(
                f"{q.name}: memory {q.resume_s:g} s is less than the {needed_s:g} s that lose nothing here, so what is "
                "missed beyond it is lost; raise memory"
            )
    total = sum(q.reserved_bps for q in queues)
    if total - (link_bps - ef_expected_bps) > ROUNDING * link_bps:
        found.append(
            f"reservations of {total:g} bit/s exceed what the expected EF leaves, "
            f"{max(link_bps - ef_expected_bps, 0):g} bit/s: the less urgent ones and CS0 will starve"
        )
    return found
