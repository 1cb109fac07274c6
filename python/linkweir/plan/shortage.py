# SPDX-License-Identifier: BSD-3-Clause
"""Capacity traces, read to see how long a reservation goes short.

Three formats, told apart by content: our CSV `t_s,capacity_bps[,...]`, a CSV with `t_s` and a column in Mbit/s, and
mahimahi's list of milliseconds, one per 1500 bytes (counted here per 100 ms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from linkweir import theory
from linkweir.plan.fault import Fault

MAHIMAHI_BIN_MS = 100


@dataclass(frozen=True)
class Trace:
    """Capacity in steps: `rates[i]` bit/s from ``starts_s[i]`` on."""

    starts_s: list[float]
    rates: list[float]
    end_s: float
    loops: bool

    def shortage_s(self, wanted_bps: float, taken_bps: float) -> float:
        """Longest time in which less than `wanted_bps` is left after `taken_bps`, seconds."""
        return theory.longest_shortage_s(self.starts_s, self._left(taken_bps), self.end_s, wanted_bps, loops=self.loops)

    def needed_s(self, wanted_bps: float, taken_bps: float) -> float:
        """Memory with which nothing of the reservation is lost, seconds."""
        return theory.memory_needed_s(self.starts_s, self._left(taken_bps), self.end_s, wanted_bps, loops=self.loops)

    def mean_bps(self) -> float:
        """Time mean of the capacity."""
        ends_s = [*self.starts_s[1:], self.end_s]
        area = sum(r * (e - s) for s, e, r in zip(self.starts_s, ends_s, self.rates, strict=True))
        return area / (self.end_s - self.starts_s[0])

    def _left(self, taken_bps: float) -> list[float]:
        return [max(rate - taken_bps, 0.0) for rate in self.rates]


def read(path: Path) -> Trace:
    """Reads a trace; a bad line is refused by its number."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Fault("--trace", path, f"cannot be read: {error}") from None
    end = next(
        (line.split("=", 1)[1].strip() for line in lines if line.startswith("#") and "end=" in line.replace(" ", "")),
        "",
    )
    rows = [(i, line.strip()) for i, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not rows:
        raise Fault("--trace", path, "holds no entries")
    if "," not in rows[0][1]:
        return _mahimahi(path, rows)
    return _table(path, rows, loops=end == "loop")


def _value(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Fault("--trace", f"{path}:{line}", f'"{text.strip()}" is not a number from 0 up')
    return value


def _mahimahi(path: Path, rows: list[tuple[int, str]]) -> Trace:
    last = 0.0
    counts: dict[int, int] = {}
    for line, text in rows:
        ms = _value(path, line, text)
        if ms < last:
            raise Fault("--trace", f"{path}:{line}", f"{text} ms comes after {last:g} ms; times may not go back")
        last = ms
        # the last millisecond belongs to the bin that ends with it
        counts[int(max(ms - 1, 0)) // MAHIMAHI_BIN_MS] = counts.get(int(max(ms - 1, 0)) // MAHIMAHI_BIN_MS, 0) + 1
    if last <= 0:
        raise Fault("--trace", path, "lasts 0 ms; the last entry is the period")
    bins = math.ceil(last / MAHIMAHI_BIN_MS)
    starts = [i * MAHIMAHI_BIN_MS / 1000 for i in range(bins)]
    ends = [*starts[1:], last / 1000]
    rates = [counts.get(i, 0) * 12000 / (ends[i] - starts[i]) for i in range(bins)]
    return Trace(starts, rates, last / 1000, loops=True)


def _table(path: Path, rows: list[tuple[int, str]], *, loops: bool) -> Trace:
    header_line, header = rows[0]
    names = [name.strip() for name in header.split(",")]
    scales = {"capacity_bps": 1.0} | {name: 1e6 for name in names if name.lower().endswith("mbit")}
    column = next((i for i, name in enumerate(names) if name in scales), None)
    if names[0] != "t_s" or column is None:
        raise Fault(
            "--trace", f"{path}:{header_line}", "the header must be t_s and capacity_bps or a column ending in mbit"
        )
    starts: list[float] = []
    rates: list[float] = []
    for line, text in rows[1:]:
        fields = text.split(",")
        if len(fields) != len(names):
            raise Fault("--trace", f"{path}:{line}", f"has {len(fields)} fields, the header has {len(names)}")
        t_s = _value(path, line, fields[0])
        if starts and t_s <= starts[-1]:
            raise Fault("--trace", f"{path}:{line}", f"time {t_s:g} s does not come after {starts[-1]:g} s")
        starts.append(t_s)
        rates.append(_value(path, line, fields[column]) * scales[names[column]])
    if len(starts) < 2:
        raise Fault("--trace", path, "needs at least two entries")
    return Trace(starts, rates, 2 * starts[-1] - starts[-2], loops)
