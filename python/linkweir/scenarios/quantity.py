# SPDX-License-Identifier: BSD-3-Clause
"""Quantities with units as people write them on a command line: the notation of scenario files, with a range each."""

from __future__ import annotations

from linkweir import _native
from linkweir.fault import Error


class OptionError(Error, ValueError):
    """An input that cannot be used: which one, what was given, what is allowed."""

    def __init__(self, key: str, value: object, message: str) -> None:
        given = f' = "{value}"' if value != "" else ""
        super().__init__(f"{key}{given}: {message}" if key else message)
        self.key = key
        self.value = value
        self.message = message


def _number(key: str, text: str, kind: str) -> float:
    try:
        return _native.quantity(text, kind)
    except ValueError as error:
        raise OptionError(key, text, str(error)) from None


def _within(key: str, text: str, value: float, least: float, most: float, named: str) -> float:
    if not least <= value <= most:
        raise OptionError(key, text, f"must be {named}")
    return value


def rate_bps(key: str, text: str) -> float:
    """A rate in bit/s.

    >>> rate_bps("--link", "20Mbit")
    20000000.0
    """
    return _within(key, text, _number(key, text, "rate"), 10, 400e9, "10bit .. 400Gbit")


def time_s(key: str, text: str) -> float:
    """A time in seconds, 0 to 7 days."""
    return _within(key, text, _number(key, text, "time"), 0, 7 * 86400, "0s .. 168h")


def size_bytes(key: str, text: str, least: int = 1) -> int:
    """A packet size in bytes."""
    value = _number(key, text, "size")
    return int(_within(key, text, value, least, (1 << 20) - 1, f"{least}B .. 1048575B"))


def amount_bits(key: str, text: str) -> float:
    """An amount of bits, such as a level of PSS."""
    return _within(key, text, _number(key, text, "bits"), 0, 2.0**60, "0bit .. 2^60 bit")


def count_pkts(key: str, text: str, least: int) -> int:
    """A number of packets."""
    value = _number(key, text, "packets")
    if value != int(value):
        raise OptionError(key, text, "must be a whole number of packets")
    return int(_within(key, text, value, least, 1 << 20, f"{least}p .. {1 << 20}p"))


def fraction(key: str, text: str) -> float:
    """A fraction, 0 to 1.

    >>> fraction("--share", "25%")
    0.25
    """
    return _within(key, text, _number(key, text, "fraction"), 0, 1, "0 .. 1 or 0% .. 100%")


def rate_or_fraction_bps(key: str, text: str, link_bps: float) -> float:
    """A rate, or a fraction of the link, in bit/s; 0 is allowed."""
    try:
        part = _native.quantity(text, "fraction")
    except ValueError:
        return _within(key, text, _number(key, text, "rate"), 0, 400e9, "0bit .. 400Gbit")
    if part > 1 and "%" not in text:
        raise OptionError(key, text, "needs a unit, like 5Mbit; a fraction of the link is 0 .. 1 or 0% .. 100%")
    return fraction(key, text) * link_bps


def rate_text(value_bps: float) -> str:
    """A rate (or an amount of bits) to the nearest bit, in the largest unit that fits.

    >>> rate_text(4.05e6), rate_text(1234567.0), rate_text(0)
    ('4.05Mbit', '1.234567Mbit', '0bit')
    """
    return _native.show(float(round(value_bps)), "rate")


def time_text(value_s: float) -> str:
    """A time to the nearest nanosecond.

    >>> time_text(15.0), time_text(0.1), time_text(0.0)
    ('15s', '100ms', '0s')
    """
    return _native.show(round(value_s, 9), "time")
