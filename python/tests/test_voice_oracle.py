# SPDX-License-Identifier: BSD-3-Clause
"""MOS of the simulator's receivers against the naive reading of the packet log in bench/voice.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from command import REPOSITORY, SCENARIOS

import linkweir
from linkweir import Result, Scenario

sys.path.append(str(REPOSITORY / "bench"))
_spec = importlib.util.spec_from_file_location("bench_voice", REPOSITORY / "bench" / "voice.py")
assert _spec is not None
assert _spec.loader is not None
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)


def drive(trace: str, out: Path) -> Result:
    text = oracle.with_log((SCENARIOS / "lte-drive.toml").read_text(), "65s").replace('limit = "50p"', 'limit = "20p"')
    path = SCENARIOS / "lte-drive.toml"
    return linkweir.run(Scenario.parse(text, path=path, trace=SCENARIOS / "traces" / trace), out=out)


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["lte-drive.csv", "starlink.csv"])
def test_calls_are_rated_as_the_log_says(trace: str, tmp_path: Path) -> None:
    result = drive(trace, tmp_path / "run")
    pairs = oracle.compared(result)
    assert [len(scores) for scores in pairs.values()] == [50] * 4
    for scores in pairs.values():
        assert max(abs(ours - naive) for ours, naive in scores) < 0.001
    if trace == "lte-drive.csv":
        # The drive is eventful: some intervals are good and some are not.
        assert min(pairs["g711", 60])[0] < 3.0 < 4.0 < max(pairs["g711", 60])[0]
        # Another buffer gives another score, so the agreement means something.
        log = tmp_path / "run" / "results" / "packets.parquet"
        other = oracle.rated(oracle.packets_of(log, "call-1"), 10, 10_000_000_000, 65_000_000_000, "g711")
        scores = [ours for ours, _ in pairs["g711", 60][:5]]
        assert max(abs(a - b) for a, b in zip(scores, other.values(), strict=True)) > 0.05
