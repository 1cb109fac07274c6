# SPDX-License-Identifier: GPL-2.0-only
"""The parameters of pss as netlink attributes: names, types, ranges and defaults from the policy's table."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from transform import ROOT

UNSET = 2**64 - 1
WIDE = ("bps", "ns", "bits")
"""Units whose values need 64 bits."""


@dataclass(frozen=True)
class Attribute:
    name: str
    unit: str
    bits: int
    low: int
    high: int
    default: int
    help: str

    @property
    def symbol(self) -> str:
        return self.name.upper()


FIXED = (
    Attribute("classes", "number", 32, 1, 4096, UNSET, "number of classes, fixed when the qdisc is made"),
    Attribute("link", "bps", 64, 1, 10**12, UNSET, "capacity in bit/s as reported to the scheduler"),
    Attribute("bandwidth", "bps", 64, 0, 10**12, 0, "rate in bit/s at which packets leave; 0: not shaped"),
    Attribute("default", "number", 32, 1, 4096, UNSET, "class of packets that nothing else classifies"),
)
"""Attributes of the qdisc."""

OF_CLASS = (
    Attribute("number", "number", 32, 1, 4096, UNSET, "number of the class, from 1"),
    Attribute("reset", "flag", 0, 0, 0, 0, "begins with the defaults; otherwise what is not given stays"),
    Attribute("limit", "packets", 32, 1, 100_000_000, 1000, "packets that the class holds"),
)
"""Attributes of a class that do not reach the scheduler."""


def parameters() -> list[Attribute]:
    """The scheduler's parameters of a class."""
    sources = [ROOT / "kernel/series/facts.c", ROOT / "core/src/pss.c"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "facts"
        subprocess.run(["gcc", "-std=gnu11", f"-I{ROOT}/core/include", "-o", program, *sources], check=True)
        shown = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = []
    for line in shown.splitlines():
        name, unit, low, high, default, text = line.split("\t")
        found.append(Attribute(name, unit, 64 if unit in WIDE else 32, int(low), int(high), int(default), text))
    return found
