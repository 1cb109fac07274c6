# SPDX-License-Identifier: BSD-3-Clause
"""Makes files of measured rates in the dialects of many programs, and knows what each holds.

It shares no code with the reader. A file is either clear, with the keys that a user would write for it, or it lacks
what only its user can know; then the reader must refuse it and name a key.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

UNITS = {"bit": 1, "kbit": 1000, "Mbit": 1_000_000, "B": 8, "kB": 8000, "MB": 8_000_000}
NAMES = {
    "bit": ["rate_bps", "bits_per_second", "Throughput (bit/s)"],
    "kbit": ["dl_kbit", "rate_kbps", "Rate (kbit/s)", "downloadKbps"],
    "Mbit": ["dl_mbit", "dl_mbps", "Rate [Mbit/s]", "rxMbps"],
    "B": ["rate_Bps", "bytes_per_second"],
    "kB": ["rate_kBps", "Rate (kB/s)"],
    "MB": ["rate_MBps", "Rate (MB/s)"],
}
DECOYS = ["RSRP", "cell_id", "state", "submbit_id", "rx_mbit_peak", "total_mbit"]


@dataclass
class Made:
    """A file, the keys that its user would write, and its steps in s and bit/s, or None if it must be refused."""

    name: str
    content: bytes
    keys: dict[str, object] = field(default_factory=dict)
    steps: list[tuple[float, float]] | None = None


def make(seed: int) -> Made:
    """The file of a seed."""
    draw = random.Random(seed)
    if draw.random() < 0.12:
        return _list(draw)
    return _table(draw)


def _list(draw: random.Random) -> Made:
    """One number per line, of which nothing says what it is unless the user does."""
    unit = draw.choice(["kbit", "Mbit"])
    numbers = [draw.randint(1, 90) for _ in range(draw.randint(2, 40))]
    if draw.random() < 0.5:
        numbers.sort()
    content = "".join(f"{number}\n" for number in numbers).encode()
    if draw.random() < 0.4:
        return Made("list.txt", content)
    interval = draw.choice([0.1, 0.5, 1, 5])
    keys = {"trace_unit": unit, "trace_interval": f"{interval}s"}
    return Made("list.txt", content, keys, [(i * interval, n * UNITS[unit]) for i, n in enumerate(numbers)])


def _table(draw: random.Random) -> Made:
    separator = draw.choice([",", ";", "\t", "|", " "])
    unit = draw.choice(list(UNITS))
    comma = separator != "," and draw.random() < 0.3
    step = draw.choice([0.5, 1.0, 2.0])
    count = draw.randint(4, 30)
    rates = [draw.randint(110, 4000) / 100 for _ in range(count)]
    keys: dict[str, object] = {}
    time_name, times = _times(draw, step, count, separator, keys)
    if separator == " ":
        rate_name = draw.choice([name for name in NAMES[unit] if " " not in name])
        decoys = []
    else:
        rate_name = draw.choice(NAMES[unit])
        decoys = draw.sample(DECOYS, draw.randint(0, 2))
    columns = [(time_name, times), (rate_name, [_number(rate, comma) for rate in rates])]
    columns += [(decoy, [str(draw.randint(1, 99)) for _ in range(count)]) for decoy in decoys]
    has_header = draw.random() < 0.8
    first, second = 0, 1
    if not has_header:
        place: dict[str, object] = {"column": second + 1, "unit": unit}
        time: object = first + 1
        if time_name.endswith("_ms"):
            time = {"column": first + 1, "unit": "ms"}
        keys["columns"] = {"t": time, "capacity": place}
    quoted = separator != " " and draw.random() < 0.2
    rows = list(zip(*(values for _, values in columns), strict=True))
    lines = [separator.join(_quoted(cell, quoted) for cell in row) for row in rows]
    if has_header:
        lines.insert(0, separator.join(_quoted(name, quoted) for name, _ in columns))
    if draw.random() < 0.3:
        lines.insert(draw.randint(0, len(lines)), draw.choice(["# a remark", "", "% a remark", "// a remark"]))
    text = draw.choice(["\n", "\r\n"]).join([*lines, ""])
    steps: list[tuple[float, float]] | None = [(i * step, rate * UNITS[unit]) for i, rate in enumerate(rates)]
    fate = draw.random()
    if fate < 0.1 and has_header:
        text = text.replace(rate_name, "DL_bitrate", 1)
        steps = None
    elif fate < 0.2 and not has_header:
        del keys["columns"]
        steps = None
    if any(key not in keys for key in _needed(time_name)):
        steps = None
    return Made("table.txt", _encoded(draw, text), keys, steps)


def _needed(time_name: str) -> list[str]:
    return ["dates"] if time_name == "date" else []


def _times(
    draw: random.Random, step: float, count: int, separator: str, keys: dict[str, object]
) -> tuple[str, list[str]]:
    """Name of the column of times, and its values."""
    begin = datetime(2019, 12, 1, 12, 11, 21, tzinfo=timezone.utc) + timedelta(seconds=draw.randint(0, 40_000))
    moments = [begin + timedelta(seconds=i * step) for i in range(count)]
    kind = draw.choice(["s", "ms", "unix", "iso", "dots", "slashes", "day", "date", "clock", "comma"])
    if step < 1 and kind in ("date",):
        kind = "iso"
    if separator == " " and kind in ("date", "day", "slashes", "comma"):
        kind = "iso"
    first = draw.choice([0, 7, 1200])
    if kind == "s":
        return draw.choice(["t_s", "time_s", "Time (s)"] if separator != " " else ["t_s"]), [
            f"{first + i * step:g}" for i in range(count)
        ]
    if kind == "ms":
        return "time_ms", [str(round(1000 * (first + i * step))) for i in range(count)]
    if kind == "unix":
        return "timestamp", [f"{moment.timestamp():.1f}" for moment in moments]
    if kind == "iso":
        return "when", [moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z" for moment in moments]
    if kind == "dots":
        return "Timestamp", [
            moment.strftime("%Y.%m.%d_%H.%M.%S") + f".{moment.microsecond // 1000:03}" for moment in moments
        ]
    if kind == "slashes":
        return "when", [moment.strftime("%Y/%m/%d %H:%M:%S.%f") for moment in moments]
    if kind == "date":
        return "when", [moment.strftime("%a %b %d %H:%M:%S UTC %Y") for moment in moments]
    if kind == "clock":
        return "time", [moment.strftime("%H:%M:%S.%f") for moment in moments]
    if kind == "comma":
        return "when", [
            moment.strftime("%Y-%m-%d %H:%M:%S") + f",{moment.microsecond // 1000:03}" for moment in moments
        ]
    if draw.random() < 0.7:
        keys["dates"] = draw.choice(["day_first", "month_first"])
    order = "%m/%d/%Y" if keys.get("dates") == "month_first" else "%d/%m/%Y"
    return "date", [moment.strftime(f"{order} %H:%M:%S.%f") for moment in moments]


def _number(value: float, comma: bool) -> str:
    text = f"{value:.2f}"
    return text.replace(".", ",") if comma else text


def _quoted(cell: str, quoted: bool) -> str:
    return f'"{cell}"' if quoted else cell


def _encoded(draw: random.Random, text: str) -> bytes:
    encoding = draw.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    content = text.encode(encoding)
    return gzip.compress(content, mtime=0) if draw.random() < 0.15 else content
