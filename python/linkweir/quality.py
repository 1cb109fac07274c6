# SPDX-License-Identifier: BSD-3-Clause
"""The quality of conversations: the E-model of ITU-T G.107 (06/2015), a simpler one, and their inputs.

The rating R runs from 0 to about 100; 93.2 is what all defaults give. The mean opinion score (MOS) runs from 1 to 4.5.

A packet call suffers from delay and loss. How it suffers from varying delays depends on its play-out buffer, of which
three are here: one as long as twice the mean jitter, one of a fixed length that loses what comes later
(`fixed_buffer`), and none.

>>> round(e_model().rating, 1), round(e_model().mos, 2)
(93.2, 4.41)
>>> round(e_model(delay_s=0.3).rating, 1)
72.7
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkweir import _native

if TYPE_CHECKING:
    import pyarrow as pa

    from linkweir.tables import RunTables

_FACTOR_RANGE_S = 60.0
_NANOSECOND = 1e-9


@dataclass(frozen=True)
class Codec:
    """The impairments of a codec.

    Attributes:
        impairment: equipment impairment factor Ie without loss.
        robustness: packet-loss robustness factor Bpl: the loss in per cent that halves what is left of 95 - Ie.
    """

    impairment: float
    robustness: float


CODECS = {codec["name"]: Codec(*codec["impairment"]) for codec in _native.codecs() if codec["impairment"]}
"""Codecs of ITU-T G.113, appendix I, as flows of kind ``voice`` name them, and two of them with longer names."""
CODECS |= {"g729a-vad": CODECS["g729"], "g723.1-6.3k": CODECS["g723.1"]}

VOICE_KINDS = ("onoff", "voice")
"""Flows that are taken for conversations."""

SATELLITE_ADVANTAGE = 20.0
"""Largest advantage factor A: people who are hard to reach put up with more, as over several satellite hops."""


@dataclass(frozen=True)
class Line:
    """The parameters of the E-model besides delay, loss and codec; in dB unless stated otherwise."""

    slr: float = 8.0
    rlr: float = 2.0
    stmr: float = 15.0
    lstr: float = 18.0
    ds: float = 3.0
    telr: float = 65.0
    wepl: float = 110.0
    qdu: float = 1.0
    nc: float = -70.0
    nfor: float = -64.0
    ps: float = 35.0
    pr: float = 35.0


@dataclass(frozen=True)
class Quality:
    """The result of the E-model.

    Attributes:
        rating: transmission rating factor R.
        basic: basic signal-to-noise ratio Ro; of `cole_rosenbluth`, Ro - Is.
        simultaneous: simultaneous impairment Is; of `cole_rosenbluth`, 0.
        delay: delay impairment Id.
        equipment: equipment impairment with loss, Ie,eff.
        mos: mean opinion score, 1 .. 4.5.
    """

    rating: float
    basic: float
    simultaneous: float
    delay: float
    equipment: float

    @property
    def mos(self) -> float:
        """MOS of the rating, ITU-T G.107, annex B."""
        return mos(self.rating)


def mos(rating: float) -> float:
    """Mean opinion score of a rating: 1 below 0, 4.5 above 100.

    >>> mos(-5.0), round(mos(80.4), 2), mos(101.0)
    (1.0, 4.04, 4.5)
    """
    if rating <= 0:
        return 1.0
    if rating >= 100:
        return 4.5
    return 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)


def e_model(
    delay_s: float = 0.0,
    loss: float = 0.0,
    codec: Codec | str = "g711",
    *,
    jitter_s: float = 0.0,
    jitter: str = "twice",
    burstiness: float = 1.0,
    advantage: float = 0.0,
    line: Line | None = None,
) -> Quality:
    """The E-model for a packet call without echo of its own: T = Ta = delay, Tr = 2 T.

    Args:
        delay_s: one-way delay from mouth to ear, seconds.
        loss: part of the packets that are lost, 0 .. 1.
        codec: a `Codec`, or a name in `CODECS`.
        jitter_s: mean difference between the delays of successive packets, seconds.
        jitter: how it counts: ``twice`` adds twice as much to the delay, as a play-out buffer of that length would
            (and as OpenBACH, the tool of the group of Tauran et al. 2018, does); ``none`` leaves it out, as where
            delay and loss are those behind a buffer (`fixed_buffer`).
        burstiness: BurstR, 1 for losses at random.
        advantage: factor A, 0 at home to 20 behind several satellite hops.
        line: everything else.

    Raises:
        ValueError: a value outside its range.
    """
    found = CODECS.get(codec) if isinstance(codec, str) else codec
    if found is None:
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(CODECS)}, or a Codec")
    t_ms = _effective_ms(delay_s, loss, jitter_s, jitter, advantage)
    _within("burstiness", burstiness, 1.0, 100.0)
    line = line or Line()
    basic, noise = _basic(line)
    simultaneous = _simultaneous(line, basic, noise, t_ms)
    delay = _delay(line, basic, noise, t_ms)
    per_cent = 100 * loss
    spread = per_cent / (per_cent / burstiness + found.robustness)
    equipment = found.impairment + (95 - found.impairment) * spread
    rating = basic - simultaneous - delay - equipment + advantage
    return Quality(rating, basic, simultaneous, delay, equipment)


COLE_ROSENBLUTH = {"g711": (0.0, 30.0, 15.0), "g729a": (11.0, 40.0, 10.0)}
"""Codecs of `cole_rosenbluth`: a, b, c of the equipment impairment a + b ln(1 + c loss)."""


def cole_rosenbluth(
    delay_s: float = 0.0,
    loss: float = 0.0,
    codec: str = "g711",
    *,
    jitter_s: float = 0.0,
    jitter: str = "twice",
    base: float = 94.2,
    advantage: float = 0.0,
) -> Quality:
    """The simplified E-model of Cole and Rosenbluth 2001: R = base - 0.024 d - 0.11 (d - 177.3)+ - Ie(loss), d in ms.

    Args:
        delay_s: one-way delay from mouth to ear, seconds.
        loss: part of the packets that are lost, 0 .. 1, at random.
        codec: a name in `COLE_ROSENBLUTH`.
        jitter_s: as for `e_model`.
        jitter: as for `e_model`.
        base: rating without delay and loss: 94.2 as published; the current defaults of G.107 give 93.2.
        advantage: as for `e_model`.

    Raises:
        ValueError: a value outside its range.

    >>> round(cole_rosenbluth().rating, 1), round(cole_rosenbluth(0.2, 0.01).rating, 2)
    (94.2, 82.71)
    """
    if codec not in COLE_ROSENBLUTH:
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(COLE_ROSENBLUTH)}")
    d_ms = _effective_ms(delay_s, loss, jitter_s, jitter, advantage)
    _within("base", base, 0.0, 100.0)
    a, b, c = COLE_ROSENBLUTH[codec]
    delay = 0.024 * d_ms + 0.11 * max(0.0, d_ms - 177.3)
    equipment = a + b * math.log(1 + c * loss)
    return Quality(base - delay - equipment + advantage, base, 0.0, delay, equipment)


@dataclass(frozen=True)
class PlayOut:
    """A flow behind a play-out buffer.

    Attributes:
        delay_s: delay of every packet that is played, seconds.
        late: part of the packets received that come too late to be played.
        loss: part of the packets sent that are not played: lost on the way, or late.
    """

    delay_s: float
    late: float
    loss: float


def fixed_buffer(
    delays_s: Sequence[float] | Any,
    buffer_s: float,
    *,
    counts: Sequence[float] | Any | None = None,
    lost: float = 0.0,
    reference_s: float | None = None,
) -> PlayOut:
    """A play-out buffer of fixed length, as in ITU-T G.1020, section 7.2.

    Every packet is played `reference + buffer` after it was sent; one that takes longer counts as lost.

    Args:
        delays_s: one-way delays of the packets received, seconds: one each, or with `counts` the values of a histogram.
        buffer_s: length of the buffer, seconds.
        counts: packets of each delay; one each when None.
        lost: part of the packets sent that are not received, 0 .. 1.
        reference_s: delay of a packet that waits for the whole length: the least delay when None. For a buffer that the
            first packet of a call sets, give that packet's delay.

    Returns:
        What is left, for a model without a treatment of jitter: ``e_model(p.delay_s, p.loss, jitter="none")``.

    Raises:
        ValueError: a value outside its range, or no packet.

    >>> p = fixed_buffer([0.10, 0.11, 0.12, 0.20], 0.05, lost=0.2)
    >>> round(p.delay_s, 3), p.late, round(p.loss, 3)
    (0.15, 0.25, 0.4)
    """
    import numpy as np

    delays = np.asarray(delays_s, dtype=float)
    weights = np.ones(delays.shape) if counts is None else np.asarray(counts, dtype=float)
    if delays.ndim != 1 or weights.shape != delays.shape:
        raise ValueError(f"counts: has shape {weights.shape}, delays_s {delays.shape}; give a count for each delay")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError("counts: must be at least 0, and more than 0 in all; give packets that were received")
    known = delays[weights > 0]
    for value in (known.min(), known.max()):
        _within("delays_s", float(value), 0.0, _FACTOR_RANGE_S)
    _within("buffer_s", buffer_s, 0.0, _FACTOR_RANGE_S)
    _within("lost", lost, 0.0, 1.0)
    reference = float(known.min()) if reference_s is None else reference_s
    _within("reference_s", reference, 0.0, _FACTOR_RANGE_S)
    # Half a nanosecond, as delays are known to a nanosecond: rounding errors must not decide.
    too_late = delays > reference + buffer_s + _NANOSECOND / 2
    late = float(weights[too_late].sum()) / float(weights.sum())
    return PlayOut(reference + buffer_s, late, 1 - (1 - lost) * (1 - late))


def voice(
    result: RunTables,
    codec: Codec | str = "g711",
    *,
    model: str = "g107",
    jitter: str = "twice",
    advantage: float = 0.0,
) -> pa.Table:
    """The quality of the on/off and voice flows of a run, taken for conversations.

    Delay and jitter are a flow's means. Loss is the part dropped or lost among its packets that were delivered, dropped
    or lost from the warm-up to the end; packets on their way at the end are not counted.

    Args:
        result: a run.
        codec: as for `e_model`, or for `cole_rosenbluth` a name in `COLE_ROSENBLUTH`.
        model: ``g107``, the E-model, or ``cole_rosenbluth``.
        jitter: as for `e_model`. For a fixed buffer, which needs all delays, see `fixed_buffer`.
        advantage: as for `e_model`.

    Returns:
        One row per flow of kind ``onoff`` or ``voice``: ``flow``, ``class``, ``delay_s``, ``jitter_s``, ``loss``,
        ``rating`` and ``mos``, null where nothing was delivered.

    Raises:
        ValueError: a value outside its range.
    """
    import pyarrow as pa

    if model not in ("g107", "cole_rosenbluth"):
        raise ValueError(f"model = {model!r}: must be g107 or cole_rosenbluth")
    _rating(model, codec, 0.0, 0.0, 0.0, jitter, advantage)  # refuses what is wrong even where there is no voice
    rows = []
    for flow in result.rows("flows") if "flows" in result.tables else []:
        if flow["kind"] not in VOICE_KINDS:
            continue
        gone = flow["dropped_limit_pkts"] + flow["dropped_policy_pkts"] + flow["lost_link_pkts"]
        row = {"flow": flow["flow"], "class": flow["class"], "delay_s": flow["delay_mean_s"]}
        row |= {"jitter_s": flow["jitter_mad_s"], "loss": None, "rating": None, "mos": None}
        if flow["delivered_pkts"]:
            loss = gone / (gone + flow["delivered_pkts"])
            # Beyond a minute of delay the rating does not change any more.
            delay_s, jitter_s = (min(value or 0.0, _FACTOR_RANGE_S) for value in (row["delay_s"], row["jitter_s"]))
            call = _rating(model, codec, delay_s, loss, jitter_s, jitter, advantage)
            row |= {"loss": loss, "rating": call.rating, "mos": call.mos}
        rows.append(row)
    texts = [(name, pa.string()) for name in ("flow", "class")]
    numbers = [(name, pa.float64()) for name in ("delay_s", "jitter_s", "loss", "rating", "mos")]
    return pa.Table.from_pylist(rows, pa.schema(texts + numbers))


def _rating(
    model: str, codec: Codec | str, delay_s: float, loss: float, jitter_s: float, jitter: str, advantage: float
) -> Quality:
    if model == "g107":
        return e_model(delay_s, loss, codec, jitter_s=jitter_s, jitter=jitter, advantage=advantage)
    if not isinstance(codec, str):
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(COLE_ROSENBLUTH)}")
    return cole_rosenbluth(delay_s, loss, codec, jitter_s=jitter_s, jitter=jitter, advantage=advantage)


def _effective_ms(delay_s: float, loss: float, jitter_s: float, jitter: str, advantage: float) -> float:
    """The delay that counts, ms; refuses what is outside its range."""
    _within("delay_s", delay_s, 0.0, _FACTOR_RANGE_S)
    _within("jitter_s", jitter_s, 0.0, _FACTOR_RANGE_S)
    _within("loss", loss, 0.0, 1.0)
    _within("advantage", advantage, 0.0, SATELLITE_ADVANTAGE)
    if jitter not in ("twice", "none"):
        raise ValueError(f"jitter = {jitter!r}: must be twice or none")
    return 1e3 * (delay_s + (2 * jitter_s if jitter == "twice" else 0.0))


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} = {value!r}: must be {least:g} .. {most:g}")


def _sum_db(*levels: float) -> float:
    return 10 * math.log10(sum(10 ** (level / 10) for level in levels))


def _basic(line: Line) -> tuple[float, float]:
    """Ro and No: the talker's level over all noise, at the point where loudness ratings are defined."""
    olr = line.slr + line.rlr
    send_room = line.ps - line.slr - line.ds - 100 + 0.004 * (line.ps - olr - line.ds - 14) ** 2
    effective = line.pr + 10 * math.log10(1 + 10 ** ((10 - line.lstr) / 10))
    receive_room = line.rlr - 121 + effective + 0.008 * (effective - 35) ** 2
    noise = _sum_db(line.nc, send_room, receive_room, line.nfor + line.rlr)
    return 15 - 1.5 * (line.slr + noise), noise


def _simultaneous(line: Line, basic: float, noise: float, t_ms: float) -> float:
    """Is: too loud, sidetone, quantizing."""
    x = line.slr + line.rlr + 0.2 * (64 + noise - line.rlr)
    loud = 20 * ((1 + (x / 8) ** 8) ** (1 / 8) - x / 8)
    stmr = -10 * math.log10(10 ** (-line.stmr / 10) + math.exp(-t_ms / 4) * 10 ** (-line.telr / 10))
    sidetone = (
        12 * (1 + abs((stmr - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + abs((stmr + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + abs((stmr - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    q = 37 - 15 * math.log10(line.qdu)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y = (basic - 100) / 15 + 46 / 8.4 - g / 9
    z = 46 / 30 - g / 40
    quantizing = 15 * math.log10(1 + 10**y + 10**z)
    return float(loud + sidetone + quantizing)


def _delay(line: Line, basic: float, noise: float, t_ms: float) -> float:
    """Id: the talker's echo, the listener's echo, and delay for its own sake."""
    talker = 0.0
    if t_ms >= 1:
        terv = line.telr - 40 * math.log10((1 + t_ms / 10) / (1 + t_ms / 150)) + 6 * math.exp(-0.3 * t_ms * t_ms)
        half = (-1.5 * (noise - line.rlr) - (80 + 2.5 * (terv - 14))) / 2
        talker = (half + math.sqrt(half * half + 100) - 1) * (1 - math.exp(-t_ms))
    rle = 10.5 * (line.wepl + 7) * (2 * t_ms + 1) ** -0.25
    half = (basic - rle) / 2
    listener = half + math.sqrt(half * half + 169)
    absolute = 0.0
    if t_ms > 100:
        x = math.log2(t_ms / 100)
        absolute = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
    return float(talker + listener + absolute)


def jain(shares: list[float]) -> float:
    """Fairness of shares, 1 / n .. 1 (Jain, Chiu and Hawe 1984).

    >>> jain([1.0, 1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
