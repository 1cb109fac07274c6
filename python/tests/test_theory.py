# SPDX-License-Identifier: BSD-3-Clause
"""Theory against values worked out elsewhere: the papers' own numbers and independent prototypes."""

from __future__ import annotations

import math

import pytest

from linkweir.sizing import theory

LINK_BPS = 20e6
CAPACITY = theory.Cosine(20e6, 0.3, 15.0)
USUAL = [157, 78, 52, 39, 31, 26, 22, 19]
STEEP = [255, 63, 36, 25, 19, 16, 13, 11]
PACKET_S = 8 * 1538 / 100e6


def ef_wave(share: float) -> theory.Cosine:
    return theory.Cosine(share * LINK_BPS, 0.6, 6.1)


@pytest.mark.parametrize("k", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("ef", [0.25, 0.5, 0.75])
def test_pss_equals_drr_when_ef_is_as_expected(ef: float, k: float) -> None:
    reserved = theory.reserved_bps(LINK_BPS, ef * LINK_BPS, k)
    assert theory.pss_rates(LINK_BPS, ef * LINK_BPS, reserved) == pytest.approx(
        theory.drr_rates(LINK_BPS, ef * LINK_BPS, k)
    )


def test_equation_8_has_the_form_printed_last() -> None:
    """max(R_WRR_CS0 + K (R_exp - R_EF), 0), the last line of equation (8)."""
    for ef_bps in (5e6, 10e6, 15e6):
        for tenth in range(1, 10):
            k = tenth / 10
            expected = max(theory.drr_rates(LINK_BPS, ef_bps, k).cs0_bps + k * (10e6 - ef_bps), 0.0)
            reserved = theory.reserved_bps(LINK_BPS, 10e6, k)
            assert theory.pss_rates(LINK_BPS, ef_bps, reserved).cs0_bps == pytest.approx(expected, abs=1e-6)


def test_rates_never_negative_when_ef_exceeds_the_link() -> None:
    assert theory.pss_rates(10e6, 12e6, 3e6) == (0.0, 0.0)
    assert theory.drr_rates(10e6, 12e6, 0.5) == (0.0, 0.0)
    assert math.isinf(theory.catch_up_s(1e6, 10e6, 6e6, 5e6))


# AF's shortfall without memory and residual, from a packet-level prototype; a fluid has no packets, hence 1 point of
# slack
@pytest.mark.parametrize(
    ("ef", "k", "shortfall_percent"),
    [(0.25, 0.81, 7.0), (0.25, 0.9, 10.1), (0.5, 0.5, 14.6), (0.5, 0.9, 22.0), (0.75, 0.81, 46.0), (0.75, 0.9, 47.0)],
)
def test_without_memory_the_mean_is_that_of_the_minimum(ef: float, k: float, shortfall_percent: float) -> None:
    rho = theory.reserved_bps(LINK_BPS, ef * LINK_BPS, k)
    run = theory.fluid(CAPACITY, ef_wave(ef), 915.0, reserved_rate_bps=rho, step_s=0.05)
    assert 100 * (1 - run.mean_bps()[1] / rho) == pytest.approx(shortfall_percent, abs=1.0)


@pytest.mark.parametrize(
    ("memory_s", "error_percent"),
    [(0.1, -44), (1, -31), (2, -22), (3, -15), (4, -8.4), (5, -3.9), (6.1, -1.0), (7.5, 0.0)],
)
def test_memory_needed_for_the_target(memory_s: float, error_percent: float) -> None:
    rho = 0.81 * 5e6
    run = theory.fluid(CAPACITY, ef_wave(0.75), 915.0, reserved_rate_bps=rho, memory_s=memory_s, step_s=0.05)
    assert 100 * (run.mean_bps()[1] / rho - 1) == pytest.approx(error_percent, abs=0.6)


def test_series_with_memory() -> None:
    """One-second rates of AF and CS0, K 0.81, EF 0.75: starvation, catching up, then the target."""
    run = theory.fluid(CAPACITY, ef_wave(0.75), 30.0, reserved_rate_bps=4.05e6, memory_s=15.0)
    seen = {t: tuple(round(x / 1e6, 1) for x in run.mean_bps(t, t + 1)[1:]) for t in (5, 6, 9, 14, 27)}
    assert seen == {5: (0.0, 0.0), 6: (0.0, 0.0), 9: (9.1, 0.0), 14: (17.0, 0.0), 27: (16.6, 0.0)}


def test_drr_shares_the_residual() -> None:
    run = theory.fluid(CAPACITY, ef_wave(0.5), 915.0, share=0.3, step_s=0.05)
    assert [x / 1e6 for x in run.mean_bps()] == pytest.approx([10.0, 3.0, 7.0], rel=2e-3)


def test_fluid_wants_one_scheduler() -> None:
    with pytest.raises(ValueError, match="either"):
        theory.fluid(CAPACITY, ef_wave(0.5), 1.0)


def test_shortage_lasts_over_the_end_of_a_loop() -> None:
    assert theory.longest_shortage_s([0, 2, 5], [1, 9, 1], 7, 5) == 2
    assert theory.longest_shortage_s([0, 2, 5], [1, 9, 1], 7, 5, loops=True) == 4
    assert theory.longest_shortage_s([0, 2], [1, 2], 3, 5) == 3
    assert math.isinf(theory.longest_shortage_s([0, 2], [1, 2], 3, 5, loops=True))
    assert theory.longest_shortage_s([0, 2], [7, 8], 3, 5, loops=True) == 0


def test_what_queued_up_is_sent_first() -> None:
    """1 s without capacity leaves 1 Mbit of 1 Mbit/s; at 4 Mbit/s it takes 1/3 s, in a loop of the next round."""
    once = theory.left_after([0, 1, 3], [2, 0, 4], 5, 1)
    assert once == ([0, 1, 3, pytest.approx(3 + 2 / 3)], [1, 0, 0, 3])
    assert theory.left_after([0, 4], [4, 0], 5, 1) == ([0, 4], [3, 0])
    assert theory.left_after([0, 4], [4, 0], 5, 1, loops=True) == ([0, pytest.approx(1 / 3), 4], [0, 3, 0])
    assert theory.left_after([0, 1], [2, 0], 2, 1.5, loops=True) == ([0, 1], [0, 0])
    assert theory.left_after([0, 1], [2, 4], 2, 0) == ([0, 1], [2, 4])
    assert theory.left_after([0, 1, 2, 3], [0, 1, 2, 1], 4, 1) == ([0, 1, 2, 3], [0, 0, 0, 0])
    # Steps of 0.1 s, which no double is: the queue of the first empties with the third, without a sliver of time left.
    tenths = [number * 0.1 for number in range(5)]
    assert theory.left_after(tenths, [0, 1.5, 1.5, 2, 2], 0.5, 1)[1] == [0, 0, 0, 1, 1]


def test_plr_losses_of_the_loaded_phase() -> None:
    """Class 1 loses most; per cent, 8 x 1500 packets/s on 8127."""
    losses = theory.plr_losses(1 - 8127 / 12000, USUAL[::-1])
    assert [100 * x for x in losses] == pytest.approx([58.2, 50.3, 42.6, 35.7, 28.4, 21.3, 14.2, 7.05], rel=0.02)
    assert sum(losses) / 8 == pytest.approx(1 - 8127 / 12000)


def test_plr_losses_are_capped_at_one() -> None:
    """With coefficient 5 class 1 ought to lose 134 %: it loses all, and the others keep their proportions."""
    coefficients = [5, 22, 26, 31, 39, 52, 78, 157]
    losses = theory.plr_losses(1 - 8127 / 12000, coefficients)
    assert losses[0] == 1.0
    assert sum(losses) == pytest.approx(8 * (1 - 8127 / 12000))
    assert losses[1] / losses[7] == pytest.approx(157 / 22)


def test_proportional_delays_add_up_to_the_limit() -> None:
    delays = theory.proportional_delays_s(80, USUAL, [8127 / 8] * 8)
    assert [1e3 * x for x in delays] == pytest.approx([2.16, 4.29, 6.40, 8.51, 10.7, 12.7, 15.0, 17.4], rel=0.03)


@pytest.mark.parametrize(
    ("ring", "limit", "ratio"),
    [(1, 40, 20.0), (1, 80, 21.5), (1, 160, 22.3), (1, 320, 22.7), (2, 80, 20.2), (16, 80, 10.3), (16, 320, 18.2)],
)
def test_wtp_resolution(ring: int, limit: int, ratio: float) -> None:
    """Ratio reached for a nominal 23.18; the half-a-round form is an approximation, good to 3 %."""
    delays = theory.wtp_delays_s(limit, STEEP, [8127 / 8] * 8, PACKET_S, ring)
    assert delays[7] / delays[0] == pytest.approx(ratio, rel=0.03)
