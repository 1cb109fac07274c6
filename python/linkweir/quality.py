# SPDX-License-Identifier: BSD-3-Clause
"""The quality of conversations: the E-model of ITU-T G.107 (06/2015), a simpler one, and their inputs.

The rating R runs from 0 to about 100; with all defaults it is 93.2. The mean opinion score (MOS) runs from 1 to 4.5.

Delay and loss impair a packet call. The effect of varying delays depends on the play-out buffer, which turns them into
a longer delay and more loss. A run follows the buffers of flows with the key ``playout`` packet by packet; `intervals`
and `voice` rate the delay and loss behind these buffers.

>>> round(e_model().rating, 1), round(e_model().mos, 2)
(93.2, 4.41)
>>> round(e_model(delay_s=0.3).rating, 1)
72.7
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from linkweir import _native

if TYPE_CHECKING:
    import pyarrow as pa

    from linkweir.tables.run_tables import RunTables

_FACTOR_RANGE_S = 60.0
_NANOSECOND = 1e-9
_MOST_BURSTS = 100.0


@dataclass(frozen=True)
class Codec:
    """The impairments of a codec.

    Attributes:
        impairment: equipment impairment factor Ie without loss.
        robustness: packet-loss robustness factor Bpl: the loss in per cent that halves what is left of 95 - Ie.
        delay_s: from the mouth to the end of a packet: the speech in a packet, and what the codec looks ahead. 20 ms of
            speech unless stated otherwise.
    """

    impairment: float
    robustness: float
    delay_s: float = 0.02


CODECS = {
    codec["name"]: Codec(*codec["impairment"], codec["delay_s"]) for codec in _native.codecs() if codec["impairment"]
}
"""Codecs of ITU-T G.113, appendix I, as flows of kind ``voice`` name them, and two of them with longer names."""
UNRATED = frozenset(codec["name"] for codec in _native.codecs() if not codec["impairment"])
"""Codecs of flows for which G.113 has no factors of the narrowband E-model."""
CODECS |= {"g729a-vad": CODECS["g729"], "g723.1-6.3k": CODECS["g723.1"]}

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

    The formula of the standard falls a hundredth below 1 between 0 and 6.5, where 1 is returned.

    >>> mos(-5.0), mos(3.0), round(mos(80.4), 2), mos(101.0)
    (1.0, 1.0, 4.04, 4.5)
    """
    return _native.mos(rating)


def e_model(
    delay_s: float = 0.0,
    loss: float = 0.0,
    codec: Codec | str = "g711",
    *,
    burstiness: float = 1.0,
    advantage: float = 0.0,
    line: Line | None = None,
) -> Quality:
    """The E-model for a packet call without echo of its own: T = Ta = delay, Tr = 2 T.

    Args:
        delay_s: one-way delay from mouth to ear, seconds; that of a play-out buffer is part of it.
        loss: part of the packets that are not played, 0 .. 1.
        codec: a `Codec`, or a name in `CODECS`.
        burstiness: BurstR, 1 for losses at random. Ie,eff is at most 95, as it is for losses at random.
        advantage: factor A, 0 at home to 20 behind several satellite hops.
        line: everything else.

    Raises:
        ValueError: a value outside its range.
    """
    found = _found(codec)
    _checked_ms(delay_s, loss, advantage)
    _within("burstiness", burstiness, 1.0, _MOST_BURSTS)
    factors = (found.impairment, found.robustness)
    basic, simultaneous, delay, equipment = _native.e_model(
        delay_s, loss, factors, burstiness, None if line is None else asdict(line)
    )
    return Quality(basic - simultaneous - delay - equipment + advantage, basic, simultaneous, delay, equipment)


def _found(codec: Codec | str) -> Codec:
    found = CODECS.get(codec) if isinstance(codec, str) else codec
    if found is None:
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(CODECS)}, or a Codec")
    return found


COLE_ROSENBLUTH = {"g711": (0.0, 30.0, 15.0), "g729a": (11.0, 40.0, 10.0)}
"""Codecs of `cole_rosenbluth`: a, b, c of the equipment impairment a + b ln(1 + c loss)."""


def cole_rosenbluth(
    delay_s: float = 0.0,
    loss: float = 0.0,
    codec: str = "g711",
    *,
    base: float = 94.2,
    advantage: float = 0.0,
) -> Quality:
    """The simplified E-model of Cole and Rosenbluth 2001: R = base - 0.024 d - 0.11 (d - 177.3)+ - Ie(loss), d in ms.

    Args:
        delay_s: one-way delay from mouth to ear, seconds.
        loss: part of the packets that are lost, 0 .. 1, at random.
        codec: a name in `COLE_ROSENBLUTH`.
        base: rating without delay and loss: 94.2 as published; the current defaults of G.107 give 93.2.
        advantage: as for `e_model`.

    Raises:
        ValueError: a value outside its range.

    >>> round(cole_rosenbluth().rating, 1), round(cole_rosenbluth(0.2, 0.01).rating, 2)
    (94.2, 82.71)
    """
    if codec not in COLE_ROSENBLUTH:
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(COLE_ROSENBLUTH)}")
    d_ms = _checked_ms(delay_s, loss, advantage)
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
        What is left, for ``e_model(p.delay_s, p.loss)``. Delays alone do not say whether losses come in bursts.

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


INTERVAL_COLUMNS = ("t_s", "class", "flow", "buffer", "due_pkts", "loss", "burst_r", "delay_s")
"""Columns of the table `voice` that `intervals` keeps."""


def intervals(
    result: RunTables, codec: Codec | str | None = None, *, model: str = "g107", advantage: float = 0.0
) -> pa.Table:
    """How the calls of a run sound, in intervals of 10 s: the flows that have play-out buffers (the key ``playout``).

    Args:
        result: a run.
        codec: as for `e_model`, or for `cole_rosenbluth` a name in `COLE_ROSENBLUTH`; when None, what the flow's key
            ``codec`` says, or else ``g711``.
        model: ``g107``, the E-model, or ``cole_rosenbluth``, which knows no BurstR.
        advantage: as for `e_model`.

    Returns:
        One row per interval, flow and buffer: of the table `voice` the columns ``t_s``, ``class``, ``flow``,
        ``buffer``, ``due_pkts``, ``loss``, ``burst_r`` and ``delay_s``, to which the delay of the codec is added; then
        ``codec`` (null for one without a name), ``rating`` and ``mos``. ``delay_s`` is null where no packet was ever
        received; ``rating`` and ``mos`` are null for the codecs in `UNRATED`.

    Raises:
        ValueError: a value outside its range.
    """
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("class", "flow", "buffer", "codec")]
    numbers = [(name, pa.float64()) for name in ("loss", "burst_r", "delay_s", "rating", "mos")]
    schema = pa.schema([("t_s", pa.float64()), *texts, ("due_pkts", pa.uint64()), *numbers])
    parts = (pa.Table.from_pylist(rows, schema) for rows in _rated(result, codec, model, advantage))
    return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()


_PIECE = 4096
"""Rows of the table `voice` that are objects of Python at the same time: there may be millions."""


def _rated(
    result: RunTables, codec: Codec | str | None, model: str, advantage: float
) -> Iterator[list[dict[str, Any]]]:
    """The rows of `intervals`, piece by piece."""
    if model not in ("g107", "cole_rosenbluth"):
        raise ValueError(f"model = {model!r}: must be g107 or cole_rosenbluth")
    named = _codecs_of(result) if codec is None else {}
    _call(model, codec or "g711", 0.0, 0.0, 1.0, advantage)  # refuses what is wrong even where there is no voice
    for batch in result.batches("voice", INTERVAL_COLUMNS):
        for first in range(0, batch.num_rows, _PIECE):
            rows = []
            for row in batch.slice(first, _PIECE).to_pylist():
                used = codec or named.get(row["flow"], "g711")
                name = used if isinstance(used, str) else None
                found = {**row, "codec": name, "rating": None, "mos": None}
                if name not in UNRATED:
                    delay_s = None if row["delay_s"] is None else row["delay_s"] + _found(used).delay_s
                    call = _call(model, used, delay_s or 0.0, row["loss"], row["burst_r"], advantage)
                    found |= {"delay_s": delay_s, "rating": call.rating, "mos": call.mos}
                rows.append(found)
            yield rows


def voice(
    result: RunTables, codec: Codec | str | None = None, *, model: str = "g107", advantage: float = 0.0
) -> pa.Table:
    """How the calls of a run sound: means over the intervals of 10 s, and the worst of them.

    Args:
        result: as for `intervals`.
        codec: as for `intervals`.
        model: as for `intervals`.
        advantage: as for `intervals`.

    Returns:
        One row per flow and buffer: ``flow``, ``class``, ``buffer``, ``codec``; ``delay_s`` and ``loss``, means over
        packets; ``mos``, the mean over the intervals; ``worst_mos``, the least of one interval; where it begins,
        ``worst_t_s``, and what it is made of, ``worst_delay_s``, ``worst_loss`` and ``worst_burst_r``.

    Raises:
        ValueError: a value outside its range.
    """
    import pyarrow as pa

    calls: dict[tuple[str, str], _Call] = {}
    for piece in _rated(result, codec, model, advantage):
        for row in piece:
            key = (row["flow"], row["buffer"])
            if key not in calls:
                calls[key] = _Call(row)
            calls[key].add(row)
    names = ("delay_s", "loss", "mos", "worst_mos", "worst_t_s", "worst_delay_s", "worst_loss", "worst_burst_r")
    rows = []
    for (flow, buffer), call in calls.items():
        worst, mos = call.worst, call.mos
        found = {"flow": flow, "class": worst["class"], "buffer": buffer, "codec": worst["codec"]}
        found |= {"delay_s": call.delay_s.mean(), "loss": call.loss.mean(), "mos": sum(mos) / len(mos) if mos else None}
        rows.append(found | {f"worst_{name}": worst[name] for name in ("mos", "t_s", "delay_s", "loss", "burst_r")})
    order = {name: place for place, name in enumerate(result.table("flows")["flow"].to_pylist())}
    rows.sort(key=lambda row: order.get(row["flow"], len(order)))
    texts = [(name, pa.string()) for name in ("flow", "class", "buffer", "codec")]
    return pa.Table.from_pylist(rows, pa.schema([*texts, *((name, pa.float64()) for name in names)]))


class _Weighted:
    """The mean of a value over the packets of intervals, of those in which it is known."""

    def __init__(self) -> None:
        self._products = array("d")
        self._packets = 0

    def add(self, value: float | None, packets: int) -> None:
        if value is not None:
            self._products.append(value * packets)
            self._packets += packets

    def mean(self) -> float | None:
        return sum(self._products) / self._packets if self._packets else None


class _Call:
    """What `voice` needs of the intervals of a call: a few numbers each, and the worst of them."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.worst = first
        self.delay_s, self.loss = _Weighted(), _Weighted()
        self.mos = array("d")

    def add(self, row: dict[str, Any]) -> None:
        self.delay_s.add(row["delay_s"], row["due_pkts"])
        self.loss.add(row["loss"], row["due_pkts"])
        if row["mos"] is not None:
            self.mos.append(row["mos"])
            if row["mos"] < (self.worst["mos"] or math.inf):
                self.worst = row


def _codecs_of(result: RunTables) -> dict[str, str]:
    """The codecs that the scenario names, by flow."""
    found = {}
    for flow in result.scenario.native.tables()["flows"]:
        if flow["kind"] == "voice":
            names = [flow["name"]] if flow["count"] == 1 else [f"{flow['name']}-{i + 1}" for i in range(flow["count"])]
            found.update(dict.fromkeys(names, flow["codec"]))
    return found


def _call(model: str, codec: Codec | str, delay_s: float, loss: float, burstiness: float, advantage: float) -> Quality:
    delay_s = min(delay_s, _FACTOR_RANGE_S)  # beyond a minute of delay the rating does not change any more
    if model == "g107":
        return e_model(delay_s, loss, codec, burstiness=min(burstiness, _MOST_BURSTS), advantage=advantage)
    if not isinstance(codec, str):
        raise ValueError(f"codec = {codec!r}: must be one of {', '.join(COLE_ROSENBLUTH)}")
    return cole_rosenbluth(delay_s, loss, codec, advantage=advantage)


def openbach_delay(delay_s: float, jitter_s: float) -> float:
    """The delay that OpenBACH gives to the E-model: the mean delay and twice the mean jitter.

    It is the recipe of the tool of the group of Tauran et al. 2018, and here only to reproduce their figures. It
    flatters: a buffer of twice the mean jitter would lose packets, of which the recipe knows nothing. `voice` counts
    them.

    Args:
        delay_s: mean one-way delay, seconds.
        jitter_s: mean difference between the delays of successive packets, seconds.
    """
    return delay_s + 2 * jitter_s


def _checked_ms(delay_s: float, loss: float, advantage: float) -> float:
    """The delay, ms; refuses what is outside its range."""
    _within("delay_s", delay_s, 0.0, _FACTOR_RANGE_S)
    _within("loss", loss, 0.0, 1.0)
    _within("advantage", advantage, 0.0, SATELLITE_ADVANTAGE)
    return 1e3 * delay_s


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} = {value!r}: must be {least:g} .. {most:g}")


def jain(shares: list[float]) -> float:
    """Fairness of shares, 1 / n .. 1 (Jain, Chiu and Hawe 1984).

    >>> jain([1.0, 1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
