# SPDX-License-Identifier: BSD-3-Clause
"""Capacity traces in Python, and seeded generators of traces with the statistics of real links.

The generators replace recordings that we may not distribute: an LTE modem in a moving car and a Starlink terminal
on the road. Both give the same rows for the same seed on every machine and with every version of Python.

The generated traces follow these statistics. LTE in a car (recordings of Winstein, Sivaraman and Balakrishnan 2013 and
their successors): rates spread over a decade, correlated over about ten seconds, with fades of seconds and gaps of
tenths of a second at handovers. Starlink (Mohan et al. 2024; Laniewski et al. 2025): satellites are reassigned every 15
s and the rate steps with them, it scatters within seconds, and obstructions cut the link for seconds.
"""

from __future__ import annotations

import io
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from linkweir import _native

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Trace:
    """Capacity over time, each value lasting until the next time.

    Attributes:
        times_s: starts of the values in seconds, the first 0, strictly increasing.
        capacity_bps: one rate in bit/s per time; 0 is an outage.
        period_s: length of one round in seconds.
        origin: one line that says where the trace is from.
    """

    times_s: tuple[float, ...]
    capacity_bps: tuple[int, ...]
    period_s: float
    origin: str

    @property
    def mean_bps(self) -> float:
        """Mean rate over one round, bit/s."""
        ends = [*self.times_s[1:], self.period_s]
        spans = zip(self.times_s, ends, self.capacity_bps, strict=True)
        return sum((end - start) * rate for start, end, rate in spans) / self.period_s

    def write(self, path: str | Path) -> None:
        """Writes the trace as CSV that ``link.trace`` of a scenario reads; it loops."""
        with Path(path).open("w", encoding="ascii", newline="\n") as file:
            self._write(file)

    def _write(self, file: TextIO) -> None:
        file.write(f"# {self.origin}\n# end=loop\n# period_s={_seconds(self.period_s)}\nt_s,capacity_bps\n")
        for time_s, rate_bps in zip(self.times_s, self.capacity_bps, strict=True):
            file.write(f"{_seconds(time_s)},{rate_bps}\n")


@dataclass(frozen=True)
class Reading:
    """What a file was taken for.

    Attributes:
        text: notation, columns, units, start, length, mean and gaps, in one line.
        doubts: what may be wrong, a sentence each.
        mean_bps: mean of a round, bit/s.
        length_s: length of a round, s; the last value counts as long as the one before. None where nothing says it.
    """

    text: str
    doubts: tuple[str, ...]
    mean_bps: float
    length_s: float | None


KEYS = tuple(key["name"] for table in _native.tables("scenario") if table["path"] == "trace" for key in table["keys"])
"""Keys of ``[link]`` that describe its trace."""
WITH_TRACE = ("trace", *KEYS)
"""These keys and that of the trace itself."""


def reading(path: str | Path, *, keys: Mapping[str, Any] | None = None) -> Reading:
    """What a capacity trace is taken for, as every command prints it.

    Args:
        path: the trace.
        keys: keys of ``[link]`` that describe it, such as ``{"trace_unit": "Mbit", "trace_interval": "1s"}``.

    Raises:
        ScenarioError: the file, the first line of it that is wrong, or a key.
    """
    text, doubts, mean_bps, length_s = _native.reading(Path(path), as_toml(keys))
    return Reading(text, tuple(doubts), mean_bps, length_s)


def as_toml(keys: Mapping[str, Any] | None) -> str:
    """Keys as the lines of a TOML table.

    >>> print(as_toml({"columns": {"t": 1, "capacity": {"column": 2, "unit": "kB"}}}), end="")
    columns = { "t" = 1, "capacity" = { "column" = 2, "unit" = "kB" } }
    """
    return "".join(f"{key} = {_toml(value)}\n" for key, value in (keys or {}).items())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(member)}" for key, member in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(member) for member in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def keys_of(texts: Sequence[str]) -> dict[str, Any]:
    """Keys as the command line has them, ``KEY=VALUE`` each: the value is TOML, or else a word.

    Raises:
        ValueError: one has no value, or is no key of a trace.

    >>> keys_of(["trace_unit=Mbit", "columns = { t = 1, capacity = 2 }"])
    {'trace_unit': 'Mbit', 'columns': {'t': 1, 'capacity': 2}}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ValueError(f"{text!r}: write KEY=VALUE, such as trace_unit=Mbit")
        if name not in KEYS:
            raise ValueError(f"{name}: is no key of a trace; there are {', '.join(KEYS)}")
        if name in found:
            raise ValueError(f"{name}: is given twice; leave one out")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


class Frame(Protocol):
    """A data frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


def as_csv(trace: Trace | Frame) -> str:
    """A trace as ``link.trace`` of a scenario reads it.

    Args:
        trace: a trace, or a data frame with the columns of such a file, times as seconds, durations or time stamps;
            time stamps without a zone are UTC. An index that is not just a count is a column like any other. Columns
            that such a file cannot hold are left out: text with commas, double quotes or line breaks, and lists.

    Raises:
        TypeError: it is neither.

    >>> print(as_csv(Trace((0.0, 1.5), (2_000_000, 0), 3.0, "by hand")), end="")
    # by hand
    # end=loop
    # period_s=3
    t_s,capacity_bps
    0,2000000
    1.5,0
    """
    if isinstance(trace, Trace):
        text = io.StringIO()
        trace._write(text)
        return text.getvalue()
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = pa.table(trace)
    except (TypeError, ValueError) as error:
        message = f"a trace is the path of a file, a linkweir.traces.Trace or a data frame, not {type(trace).__name__}"
        raise TypeError(message) from error
    columns = {name: _written(name, table[name]) for name in table.column_names if not _SPECIAL & set(name)}
    table = pa.table({name: column for name, column in columns.items() if column is not None})
    rows = io.BytesIO()
    csv.write_csv(table, rows, csv.WriteOptions(include_header=False, quoting_style="none"))
    return ",".join(table.column_names) + "\n" + rows.getvalue().decode()


_SPECIAL = set(',"\r\n')
"""Characters that names and text in a trace cannot have."""
_PER_SECOND = {"_ms": 1e3, "_us": 1e6, "_ns": 1e9}
"""Units of times by the end of a column's name; seconds without one of these."""


def _written(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A column as it is written, durations as numbers; None if a trace cannot hold it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.types
    if kind.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind.is_duration(column.type):
        nanoseconds = column.cast(pa.duration("ns")).cast(pa.int64()).cast(pa.float64(), safe=False)
        return pc.divide(nanoseconds, 1e9 / _PER_SECOND.get(name[-3:], 1.0))
    if str(column.type) in ("string", "large_string", "string_view"):
        column = column.cast(pa.large_string())
        plain = not pc.any(pc.match_substring_regex(column, f"[{''.join(sorted(_SPECIAL))}]")).as_py()
    else:
        plain = kind.is_primitive(column.type) or kind.is_decimal(column.type) or kind.is_null(column.type)
    return column if plain else None


def exported(path: str | Path, *, bin_s: float = 0.01, keys: Mapping[str, Any] | None = None) -> str:
    """A trace of any format that ``link.trace`` reads, as steps of capacity for other programs.

    The columns are t_s and capacity_bps. A comment says whether the trace repeats (end=loop, with period_s) or the last
    value stays (end=hold); after a trace that stops the capacity is 0. Opportunities to send, as of mahimahi, become
    their bits over bins.

    Args:
        path: the trace.
        bin_s: width of the bins in seconds, above 0.
        keys: keys of ``[link]`` that describe it, as for `reading`.

    Raises:
        ScenarioError: the file, the first line of it that is wrong, or a key.
    """
    what, (starts_s, values, end_s, after) = _native.trace(Path(path), as_toml(keys))
    steps = list(zip(starts_s, values, strict=True))
    if what == "opportunities":
        end_s = starts_s[-1] if end_s is None else end_s
        steps = _binned(steps, end_s, bin_s)
    if after == "stop" and end_s is not None:
        steps.append((end_s, 0.0))
    loops = after == "loop" and end_s is not None
    lines = [f"# {Path(path).name}, written by linkweir trace export", f"# end={'loop' if loops else 'hold'}"]
    if loops and end_s is not None:
        lines.append(f"# period_s={_seconds(end_s)}")
    lines.append("t_s,capacity_bps")
    lines += [f"{_seconds(t_s)},{round(rate_bps)}" for t_s, rate_bps in steps]
    return "\n".join(lines) + "\n"


def _binned(opportunities: list[tuple[float, float]], end_s: float, bin_s: float) -> list[tuple[float, float]]:
    """Rates in bit/s over bins; an opportunity at the end of a bin belongs to it. Equal rates in a row are one step."""
    bits = [0.0] * max(math.ceil(end_s / bin_s - 1e-9), 1)
    for t_s, size_bytes in opportunities:
        bits[min(max(math.ceil(t_s / bin_s - 1e-9) - 1, 0), len(bits) - 1)] += 8.0 * size_bytes
    steps: list[tuple[float, float]] = []
    for number, amount in enumerate(bits):
        start_s = number * bin_s
        rate_bps = amount / (min(start_s + bin_s, end_s) - start_s)
        if not steps or steps[-1][1] != rate_bps:
            steps.append((start_s, rate_bps))
    return steps


def lte_drive(seed: int = 1, duration_s: float = 300.0, *, mean_mbit: float = 5.0, interval_s: float = 0.1) -> Trace:
    """The down-link of an LTE modem in a moving car.

    The logarithm of the rate is the sum of shadowing (correlated over 12 s) and the cell's load (0.6 s); fades of 1 to
    6 s come every 30 s or so, handovers with a gap of 0.1 to 0.9 s every 45 s, after which another cell serves.

    Args:
        seed: any integer; the same seed gives the same trace.
        duration_s: length of the trace in seconds, more than `interval_s`.
        mean_mbit: mean rate over the trace in Mbit/s, above 0.
        interval_s: distance of the values in seconds, above 0.

    Raises:
        ValueError: an argument is out of its range.

    >>> trace = lte_drive(seed=7, duration_s=60)
    >>> len(trace.times_s), round(trace.mean_bps / 1e6, 1)
    (600, 5.0)
    """
    count = _count(duration_s, interval_s)
    if not mean_mbit > 0:
        raise ValueError("mean_mbit must be above 0")
    draw = random.Random(f"lte_drive {seed}")
    slow = _Correlated(draw, spread=0.60, memory=interval_s / 12.0)
    fast = _Correlated(draw, spread=0.45, memory=interval_s / 0.6)
    fade_left, fade_depth, gap_left = 0.0, 1.0, 0.0
    values: list[float] = []
    for _ in range(count):
        if fade_left <= 0.0 and draw.random() < interval_s / 30.0:
            fade_left, fade_depth = draw.uniform(1.0, 6.0), draw.uniform(0.03, 0.3)
        if gap_left <= 0.0 and draw.random() < interval_s / 45.0:
            gap_left = draw.uniform(0.1, 0.9)
            slow.renew()
        rate = math.exp(slow.step() + fast.step())
        if fade_left > 0.0:
            rate *= fade_depth
            fade_left -= interval_s
        if gap_left > 0.0:
            rate = 0.0
            gap_left -= interval_s
        values.append(rate)
    origin = f"LTE drive, generated: linkweir.traces.lte_drive(seed={seed}, duration_s={duration_s:g})"
    return _scaled(values, interval_s, mean_mbit, origin)


_SLOT_S = 15.0
"""How long a satellite serves a Starlink terminal."""


def starlink(
    seed: int = 1,
    duration_s: float = 600.0,
    *,
    mean_mbit: float = 150.0,
    interval_s: float = 1.0,
    phase_s: float | None = 0.0,
    stall_s: float = 0.0,
) -> Trace:
    """The down-link of a Starlink terminal on the road.

    Every 15 s another satellite serves and the level changes; around it the rate scatters within seconds, and now and
    then an obstruction cuts the link for 1 to 4 s.

    Args and errors are those of `lte_drive`, and:

    Args:
        phase_s: when the satellite first changes, in seconds, 0 up to below 15. A real terminal's changes come at times
            that its owner does not choose: None draws the phase from the seed.
        stall_s: for how long such a change cuts the link, in seconds; each takes half to one and a half times as long.
            0: not at all. Otherwise `interval_s` is at most half of it, so that the shortest stall has a value.

    >>> trace = starlink(seed=7, duration_s=60)
    >>> len(trace.times_s), round(trace.mean_bps / 1e6)
    (60, 150)
    >>> stalled = starlink(seed=7, duration_s=60, interval_s=0.05, phase_s=None, stall_s=0.1)
    >>> min(stalled.capacity_bps)
    0
    """
    count = _count(duration_s, interval_s)
    if not mean_mbit > 0:
        raise ValueError("mean_mbit must be above 0")
    if phase_s is not None and not 0 <= phase_s < _SLOT_S:
        raise ValueError(f"phase_s must be 0 up to below {_SLOT_S:g}, or None")
    if stall_s and not 2 * interval_s <= stall_s < _SLOT_S / 2:
        raise ValueError(f"stall_s must be 0, or at least twice interval_s and below {_SLOT_S / 2:g}")
    draw = random.Random(f"starlink {seed}")
    of_slots = random.Random(f"starlink slots {seed}")  # of its own: the rest of the trace does not depend on the slots
    first_s = of_slots.uniform(0.0, _SLOT_S) if phase_s is None else phase_s
    level = _Correlated(draw, spread=0.40, memory=_SLOT_S / 60.0)
    scatter = _Correlated(draw, spread=0.30, memory=interval_s / 5.0)
    values: list[float] = []
    slot: int | None = None
    height, cut_left, stall_left = 1.0, 0.0, 0.0
    for i in range(count):
        now_slot = int((i * interval_s - first_s) // _SLOT_S)
        if now_slot != slot:
            if slot is not None:
                stall_left = stall_s * of_slots.uniform(0.5, 1.5)
            slot, height = now_slot, math.exp(level.step())
        if cut_left <= 0.0 and draw.random() < interval_s / 120.0:
            cut_left = draw.uniform(1.0, 4.0)
        rate = height * max(1.0 + scatter.step(), 0.1)
        if cut_left > 0.0 or stall_left > 0.0:
            rate = 0.0
        cut_left -= interval_s
        stall_left -= interval_s
        values.append(rate)
    told = f"seed={seed}, duration_s={duration_s:g}"
    told += "" if phase_s == 0 else f", phase_s={phase_s}"
    told += f", stall_s={stall_s:g}" if stall_s else ""
    return _scaled(values, interval_s, mean_mbit, f"Starlink on the road, generated: linkweir.traces.starlink({told})")


class _Correlated:
    """A stationary first-order process with mean 0; `memory` is the step as a part of its correlation time."""

    def __init__(self, draw: random.Random, *, spread: float, memory: float) -> None:
        self._draw = draw
        self._spread = spread
        self._keep = math.exp(-memory)
        self._value = 0.0
        self.renew()

    def renew(self) -> None:
        self._value = self._spread * _normal(self._draw)

    def step(self) -> float:
        value = self._value
        fresh = self._spread * math.sqrt(1.0 - self._keep * self._keep)
        self._value = self._keep * value + fresh * _normal(self._draw)
        return value


def _normal(draw: random.Random) -> float:
    """Irwin-Hall: the sum of twelve uniform numbers needs no logarithm, whose last digit differs between machines."""
    return sum(draw.random() for _ in range(12)) - 6.0


def _count(duration_s: float, interval_s: float) -> int:
    if not 0 < interval_s < duration_s:
        raise ValueError("interval_s must be above 0 and below duration_s")
    return round(duration_s / interval_s)


def _scaled(values: list[float], interval_s: float, mean_mbit: float, origin: str) -> Trace:
    scale = mean_mbit * 1e6 * len(values) / sum(values)
    # Whole kbit/s: differences in the last digits of exp() between machines vanish.
    rates = tuple(round(value * scale / 1000.0) * 1000 for value in values)
    return Trace(tuple(_times(len(values), interval_s)), rates, len(values) * interval_s, origin)


def _times(count: int, interval_s: float) -> Iterator[float]:
    for i in range(count):
        yield round(i * interval_s, 9)


def _seconds(time_s: float) -> str:
    return f"{round(time_s, 9):.9f}".rstrip("0").rstrip(".") or "0"
