# SPDX-License-Identifier: BSD-3-Clause
"""Student's intervals, compared with published tables and with random samples."""

from __future__ import annotations

import math
import random

import pytest

from linkweir.sweeps import confidence
from linkweir.sweeps.confidence import estimate, student_t


@pytest.mark.parametrize(
    ("degrees", "level", "t"),
    # NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2: upper critical values of Student's t.
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.95, 2.776),
        (5, 0.95, 2.571),
        (9, 0.95, 2.262),
        (10, 0.95, 2.228),
        (30, 0.95, 2.042),
        (100, 0.95, 1.984),
        (1, 0.80, 3.078),
        (2, 0.99, 9.925),
        (7, 0.99, 3.499),
        (100, 0.99, 2.626),
    ],
)
def test_quantiles_are_those_of_the_tables(degrees: int, level: float, t: float) -> None:
    assert student_t(level, degrees) == pytest.approx(t, abs=5.1e-4)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert student_t(0.95, 100_000) == pytest.approx(1.959964, abs=5e-5)


def test_intervals_hold_the_true_mean_as_often_as_they_say() -> None:
    random_numbers = random.Random(1)
    held = 0
    for _ in range(4000):
        found = estimate([random_numbers.gauss(7.0, 3.0) for _ in range(5)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 7.0 <= found.high
    assert held / 4000 == pytest.approx(0.95, abs=0.012)  # 3.5 standard deviations


def test_runs_without_a_value_are_left_out() -> None:
    assert estimate([None, math.nan]) == confidence.Estimate(None, None, 0)
    assert estimate([3.0, None]) == confidence.Estimate(3.0, None, 1)
    assert estimate([2.0, 2.0]) == confidence.Estimate(2.0, 0.0, 2)
    one = estimate([3.0])
    assert (one.low, one.high) == (3.0, 3.0)


@pytest.mark.parametrize(("level", "degrees"), [(0.0, 3), (1.0, 3), (0.95, 0)])
def test_arguments_outside_their_range_are_refused(level: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="needs 0 < level < 1"):
        student_t(level, degrees)
