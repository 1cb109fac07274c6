# SPDX-License-Identifier: BSD-3-Clause
"""Quantities with units as people write them on a command line, under the rules of scenario files.

A unit is required: `20Mbit`, `250ms`, `1500B`, `20p`. Suffixes of rates are SI; `bps` is refused because it means bytes
to tc. Fractions are `0.25` or `25%`.
"""

from __future__ import annotations

import math
import re

from linkweir.plan.fault import Fault

RATES = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1048576.0}
PACKETS = {"p": 1.0}

NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z%]*)\s*\Z")


def _number(key: str, text: str, units: dict[str, float], example: str) -> float:
    match = NUMBER.match(text)
    if match is None:
        raise Fault(key, text, f"not a number with a unit; write it like {example}")
    unit = match[2]
    if unit.lower().endswith("bps"):
        raise Fault(key, text, f"the suffix bps means bytes per second to tc; write bits with bit, like {example}")
    if unit not in units:
        what = "needs a unit" if not unit else f'unknown unit "{unit}"'
        raise Fault(key, text, f"{what}: one of {' '.join(units)}; write it like {example}")
    value = float(match[1]) * units[unit]
    if not math.isfinite(value):
        raise Fault(key, text, "must be finite")
    return value


def _within(key: str, text: str, value: float, least: float, most: float, named: str) -> float:
    if not least <= value <= most:
        raise Fault(key, text, f"must be {named}")
    return value


def rate_bps(key: str, text: str) -> float:
    """A rate in bit/s.

    >>> rate_bps("--link", "20Mbit")
    20000000.0
    """
    return _within(key, text, _number(key, text, RATES, "20Mbit"), 10, 400e9, "10bit .. 400Gbit")


def time_s(key: str, text: str) -> float:
    """A time in seconds, 0 to 7 days."""
    return _within(key, text, _number(key, text, TIMES, "250ms"), 0, 7 * 86400, "0s .. 168h")


def size_bytes(key: str, text: str, least: int = 1) -> int:
    """A packet size in bytes."""
    value = _number(key, text, SIZES, "1500B")
    return int(_within(key, text, value, least, (1 << 20) - 1, f"{least}B .. 1048575B"))


def amount_bits(key: str, text: str) -> float:
    """An amount of bits, such as a level of PSS."""
    return _within(key, text, _number(key, text, RATES, "240kbit"), 0, 2.0**62, "0bit .. 2^62 bit")


def count_pkts(key: str, text: str, least: int) -> int:
    """A number of packets."""
    value = _number(key, text, PACKETS, "20p")
    if value != int(value):
        raise Fault(key, text, "must be a whole number of packets")
    return int(_within(key, text, value, least, 1 << 20, f"{least}p .. {1 << 20}p"))


def fraction(key: str, text: str) -> float:
    """A fraction, 0 to 1.

    >>> fraction("--share", "25%")
    0.25
    """
    value = _number(key, text, {"": 1.0, "%": 0.01}, "25%")
    return _within(key, text, value, 0, 1, "0 .. 1 or 0% .. 100%")


def rate_or_fraction_bps(key: str, text: str, link_bps: float) -> float:
    """A rate, or a fraction of the link, in bit/s; 0 is allowed."""
    match = NUMBER.match(text)
    if match is not None and match[2] in ("", "%") and (match[2] or float(match[1]) <= 1):
        return fraction(key, text) * link_bps
    return _within(key, text, _number(key, text, RATES, "5Mbit or 25%"), 0, 400e9, "0bit .. 400Gbit")


def _shortest(value: float, units: dict[str, float]) -> str:
    for unit, scale in sorted(units.items(), key=lambda item: -item[1]):
        if value >= scale:
            text = f"{value / scale:.9f}".rstrip("0").rstrip(".")
            if float(text) * scale == value or unit == min(units, key=lambda u: units[u]):
                return text + unit
    smallest = min(units, key=lambda u: units[u])
    return f"{value:g}{smallest}" if value == 0 else f"{value / units[smallest]:.0f}{smallest}"


def rate_text(value_bps: float) -> str:
    """A rate to the nearest bit/s, in the largest unit that writes it exactly.

    >>> rate_text(4.05e6), rate_text(1234567.0), rate_text(0)
    ('4.05Mbit', '1.234567Mbit', '0bit')
    """
    return _shortest(float(round(value_bps)), RATES)


def time_text(value_s: float) -> str:
    """A time to the nearest nanosecond.

    >>> time_text(15.0), time_text(0.1), time_text(0.0)
    ('15s', '100ms', '0ns')
    """
    ns = round(value_s * 1e9)
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns and ns % (scale // 1000) == 0 and ns >= scale:
            return f"{ns / scale:.3f}".rstrip("0").rstrip(".") + unit
    return f"{ns}ns"
