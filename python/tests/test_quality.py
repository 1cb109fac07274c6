# SPDX-License-Identifier: BSD-3-Clause
"""The E-model against ratings computed by an independent program."""

from __future__ import annotations

import doctest
import itertools

import pytest

from linkweir import quality
from linkweir.quality import SATELLITE_ADVANTAGE, e_model, mos


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(quality).failed == 0


def test_defaults() -> None:
    assert e_model().rating == pytest.approx(93.206, abs=0.001)


@pytest.mark.parametrize(
    ("delay_ms", "rating"), [(100, 90.7), (150, 89.5), (200, 85.8), (300, 72.7), (400, 62.3), (500, 54.8)]
)
def test_delay(delay_ms: float, rating: float) -> None:
    assert e_model(delay_ms / 1e3).rating == pytest.approx(rating, abs=0.06)


@pytest.mark.parametrize(
    ("loss", "codec", "rating", "score"),
    [
        (0.005, "g711", 100.7, 4.5),
        (0.02, "g711", 80.4, 4.04),
        (0.05, "g711", 59.5, 3.07),
        (0.15, "g711", 36.7, 1.91),
        (0.20, "g711", 32.4, 1.71),
        (0.02, "g711-plc", None, 4.50),
        (0.15, "g711-plc", None, 3.82),
    ],
)
def test_loss_over_a_satellite(loss: float, codec: str, rating: float | None, score: float) -> None:
    found = e_model(0.105, loss, codec, advantage=SATELLITE_ADVANTAGE)
    assert found.mos == pytest.approx(score, abs=0.011)
    if rating is not None:
        assert found.rating == pytest.approx(rating, abs=0.06)


def test_jitter_counts_as_twice_as_much_delay() -> None:
    assert e_model(0.2, jitter_s=0.05).rating == pytest.approx(e_model(0.3).rating)
    assert e_model(0.2, jitter_s=0.05, jitter="none") == e_model(0.2)


def test_score_ends_and_grows() -> None:
    scores = [mos(rating / 10) for rating in range(-100, 1100)]
    assert scores[0] == 1.0
    assert scores[-1] == 4.5
    # Between 0 and 6.5 the recommendation's polynomial is a little below 1.
    assert all(a <= b for a, b in itertools.pairwise(scores[170:]))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"loss": 1.5}, "loss = 1.5: must be 0 .. 1"),
        ({"delay_s": -1.0}, "delay_s = -1.0: must be 0 .. 60"),
        ({"codec": "mp3"}, "codec = 'mp3': must be one of g711"),
        ({"jitter": "thrice"}, "must be twice or none"),
        ({"advantage": 21.0}, "must be 0 .. 20"),
    ],
)
def test_refusals(arguments: dict[str, object], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        e_model(**arguments)  # type: ignore[arg-type]
