# SPDX-License-Identifier: BSD-3-Clause
"""Claims of the papers without a figure of their own, as the programs in bench/ measure them, at small size."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from command import REPOSITORY

from linkweir.sizing import shortage


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / f"bench/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("ef_mbps", [2, 5, 15])
def test_wfq_shares_what_ef_leaves_as_drr_does_and_pss_keeps_the_rate(ef_mbps: int) -> None:
    """AF of weight one third, or 5 Mbit/s reserved, on 20 Mbit/s: equations (1) and (7)."""
    claims = program("pss_claims")
    af = {
        policy: claims.rates('rate = "20Mbit"', 10, ef_mbps * 1e6, claims.classes(policy, 5e6, 0.1, 1 / 3))[1]
        for policy in ("pss", "drr", "wfq")
    }
    assert af["pss"] == pytest.approx(5e6, rel=0.01)
    assert af["drr"] == pytest.approx((20 - ef_mbps) * 1e6 / 3, rel=0.01)
    assert af["wfq"] == pytest.approx(af["drr"], rel=0.01)


def test_a_memory_from_the_deviation_ignores_the_rate(tmp_path: Path) -> None:
    """15 Mbit/s for 6 s, 3 for 2 s: mean 12, deviation sqrt(27), so the capacity is below 6.8 for 2 s.
    AF of 2 Mbit/s needs nothing of it, AF of 9 Mbit/s misses 12 Mbit.
    """
    trace = tmp_path / "t.csv"
    trace.write_text("# end=loop\n# period_s=8\nt_s,capacity_bps\n0,15e6\n6,3e6\n")
    steps = shortage.read(trace)
    assert program("pss_claims").deviation_memory_s(steps) == pytest.approx(2)
    assert steps.needed_s(2e6, 0.0) == 0
    assert steps.needed_s(9e6, 0.0) == pytest.approx(12 / 9)


def test_the_worst_case_admits_few() -> None:
    """50 Mbit/s; 6 * 8 * 1115 = 53,520 bits a packet, 64,000 / 1,680 = 38.1 packets/s: 24.5 users, 27.0 with pauses."""
    worst = program("worst_case")
    assert worst.users(1115, talking=True) == 24
    assert worst.users(1115, talking=False) == int(50e6 / 53_520 / (64_000 / 1_680) * 1.1)
    assert worst.users(210, talking=True) == 130


def test_planned_coefficients_give_the_wanted_ratio_and_inverse_ones_do_not() -> None:
    coefficients = program("wtp_coefficients")
    assert coefficients.ratios(0.8, [4000, 2000, 1000], 100, (1,))[2] == pytest.approx(2.61, rel=0.05)
    assert coefficients.ratios(0.8, [9937, 2969, 1000], 100, (1,))[2] == pytest.approx(4, rel=0.05)
