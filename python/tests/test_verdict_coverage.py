# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts where the truth is known: a small part of `make coverage`, and the rule that it replaced."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
import verdict_coverage as coverage

from linkweir.comparison.promises import KEPT, MISSED, UNCLEAR, Promise
from linkweir.sweeps.confidence import estimate, exceeds, limits, runs_to_decide

RUNS = 1500
BLOCKS = 300


@pytest.fixture(scope="module")
def rare_losses() -> dict[tuple[str, str], list[float]]:
    return coverage.pool(coverage.SCENARIOS["rare losses"], RUNS, first_seed=1)


def by_student(promise: Promise, values: Sequence[float], highest: float) -> str:
    """The rule that was used before: Student's interval of the mean."""
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    kept = promise.holds(found.low), promise.holds(found.high)
    return KEPT if all(kept) else UNCLEAR if any(kept) else MISSED


def differs_by_student(greater: Sequence[float], less: Sequence[float], grain: float) -> bool:
    found = estimate([a - b for a, b in zip(greater, less, strict=True)])
    return found.low is not None and found.low > 0.0


@pytest.mark.slow
def test_no_verdict_is_wrong_more_often_than_chance_allows(rare_losses: dict[tuple[str, str], list[float]]) -> None:
    found = list(coverage.coverages("rare losses", rare_losses, BLOCKS, sizes=(5, 10)))
    assert len(found) == 2 * 6  # rate, loss and four figures of the delay
    assert [one for one in found if not one.sound] == []
    assert max(one.right[-1] for one in found if one.measure == "delay_p95") > 0.9  # it does find what is clear


def test_student_s_interval_is_wrong_too_often_for_rare_losses(
    rare_losses: dict[tuple[str, str], list[float]],
) -> None:
    losses = {place: values for place, values in rare_losses.items() if place[1] == "loss"}
    for one in coverage.coverages("rare losses", losses, BLOCKS, (5, 10), by_student, differs_by_student):
        assert not one.sound
        assert one.kept.share > 0.2


@pytest.mark.parametrize("count", [3, 5, 10, 30])
def test_limits_hold_for_very_skewed_values(count: int) -> None:
    # Of Student's limits 30, 32, 28 and 21 % are passed.
    draw = random.Random(count)
    blocks, mean = 3000, math.exp(1.5**2 / 2)
    passed = sum(limits([draw.lognormvariate(0.0, 1.5) for _ in range(count)]).high < mean for _ in range(blocks))
    assert passed / blocks <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / blocks)


def test_equal_values_have_limits_by_the_range_of_the_measure() -> None:
    # Ten runs without loss: with a probability of 2.5 %, 30.85 % of all runs lose something, perhaps everything.
    assert limits([0.0] * 10, lowest=0.0, highest=1.0).high == pytest.approx(1 - 0.025**0.1)
    assert limits([1.0] * 10, lowest=0.0, highest=1.0).low == pytest.approx(0.025**0.1)
    assert limits([0.0] * 10).high == math.inf
    loss = Promise("ef", "loss", 0.01)
    assert [loss.verdict([0.0] * seeds, 1.0) for seeds in (10, 367, 368)] == [UNCLEAR, UNCLEAR, KEPT]
    assert runs_to_decide([0.0] * 10, 0.01, highest=1.0, most=100_000) == 368  # ln 0.025 / ln 0.99
    assert runs_to_decide([0.0] * 10, 1e-9, highest=1.0, most=100_000) is None


def test_one_lossy_run_among_many_does_not_make_the_others_certain() -> None:
    loss = Promise("ef", "loss", 0.01)
    assert loss.verdict([0.0] * 9 + [0.02], 1.0) == UNCLEAR
    needed = loss.seeds_needed([0.0] * 9 + [0.02], 1.0)
    assert needed is not None
    assert loss.verdict(([0.0] * 9 + [0.02]) * (needed // 10 + 1), 1.0) == KEPT


def test_the_number_of_seeds_that_decide_is_the_least() -> None:
    values = [1.0, 1.2, 0.9, 1.1, 1.05]
    needed = runs_to_decide(values, 1.15, most=100_000)
    assert needed is not None
    mean = sum(values) / 5

    def reach(runs: int) -> float:
        # The spread of the values, in as many runs: a sample whose deviation is that of `values`.
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 4)
        half = runs // 2
        step = deviation * math.sqrt((runs - 1) / (2 * half))
        sample = [mean - step] + [mean - step] * (half - 1) + [mean + step] * half + [mean] * (runs % 2)
        jittered = [value + 1e-9 * n for n, value in enumerate(sample)]
        return limits(jittered).high - mean

    assert reach(needed) == pytest.approx(0.1, rel=0.02)


def test_a_policy_is_better_only_if_its_runs_say_so() -> None:
    assert not exceeds([0.0] * 10, [0.0] * 10)
    assert not exceeds([0.1] + [0.0] * 9, [0.0] * 10)
    assert exceeds([0.1 + 0.001 * n for n in range(10)], [0.0] * 10)
