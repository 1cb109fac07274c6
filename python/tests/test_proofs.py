# SPDX-License-Identifier: BSD-3-Clause
"""What `make prove` plants in the core, checked without the provers, which `make test` does not have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORE = Path(__file__).resolve().parents[2] / "core"


@pytest.mark.parametrize("name", ["faults.toml", "guarantee_faults.toml"])
def test_each_planted_fault_fits_one_place_of_the_core(name: str) -> None:
    for fault in tomllib.loads((CORE / "proofs" / name).read_text())["fault"]:
        place = CORE / (fault.get("file") or f"src/{fault['policy']}.c")
        assert place.read_text().count(fault["was"]) == 1, f"{name}: {place.name}: {fault['was']!r}"
        assert fault["now"] != fault["was"]
