# SPDX-License-Identifier: BSD-3-Clause
"""How often the verdicts of `linkweir compare` are wrong, measured where the truth is known: `make coverage`.

For each scenario a pool of independent runs (one seed each) gives the truth: the mean of a measure over the whole
pool. The pool is then cut into blocks of 5, 10 and 30 runs, and each block is judged as a comparison judges its
seeds. No run is in two blocks of the same size, so the blocks are independent. The mean of a pool of 60,000 runs is
known to 0.4 % of the standard deviation of a run. A limit is at least 1.7 such deviations away from the mean of its
block, so the error of the truth does not matter.

A promise is set at the truth, and on either side of it by a tenth of a standard deviation. Kept is wrong if the truth
is on the wrong side, missed if it is on the right side; at the truth both are counted. Promises that are 0.5 to 8
standard deviations away from the truth show the power: how often the right verdict is found. For the comparison of a
policy with itself two blocks of different seeds are compared.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import linkweir
from linkweir.comparison.promises import KEPT, MISSED, Promise
from linkweir.sweeps.confidence import ERROR, exceeds
from linkweir.sweeps.measures import MEASURES

_COMMON = {"duration": "4s", "warmup": "500ms", "link": {"rate": "1Mbit", "delay": "10ms"}}
_BURSTS = {"kind": "onoff", "rate": "1.6Mbit", "on": "100ms", "off": "500ms", "packet": "500B"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "skewed losses": {
        **_COMMON,
        "scheduler": {"policy": "drr"},
        "class": [{"name": "calls"}, {"name": "bursts", "limit": "60p"}],
        "flow": [
            {"class": "calls", "kind": "poisson", "rate": "300kbit", "packet": "500B"},
            {"class": "bursts", **_BURSTS},
        ],
    },
    "rare losses": {
        **_COMMON,
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "bursts", "limit": "60p"}],
        "flow": [{"class": "bursts", **_BURSTS}],
    },
    "heavy-tailed delays": {
        **_COMMON,
        "scheduler": {"policy": "strict"},
        "class": [{"name": "voice", "level": 0}, {"name": "web", "level": 1, "limit": "1000p"}],
        "flow": [
            {"class": "voice", "kind": "poisson", "rate": "200kbit", "packet": "500B"},
            {
                "class": "web",
                **_BURSTS,
                "rate": "2Mbit",
                "on": "60ms",
                "off": "600ms",
                "lengths": "pareto",
                "shape": 1.3,
            },
        ],
    },
    "near-normal rates": {
        **_COMMON,
        "scheduler": {"policy": "drr"},
        "class": [{"name": "calls"}, {"name": "bulk"}],
        "flow": [
            {"class": "calls", "kind": "poisson", "rate": "400kbit", "packet": "500B"},
            {"class": "bulk", "kind": "greedy", "packet": "500B"},
        ],
    },
}
SIZES = (5, 10, 30)
POWERS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Distances of a promise from the truth, in standard deviations of a run."""
Judge = Callable[[Promise, Sequence[float], float], str]
Differs = Callable[[Sequence[float], Sequence[float], float], bool]
_HIGHEST = {"loss": 1.0, "rate": 1e6}  # the link's rate; of delays the duration
_DURATION_S = 4.0


def by_product(promise: Promise, values: Sequence[float], highest: float) -> str:
    """The verdict of a comparison."""
    return promise.verdict(values, highest)


def differs_by_product(greater: Sequence[float], less: Sequence[float], grain: float) -> bool:
    """Whether a comparison calls a policy better."""
    return exceeds(greater, less, grain=grain)


@dataclass
class Count:
    """Wrong verdicts, and how many could have been wrong."""

    wrong: int = 0
    tried: int = 0

    @property
    def share(self) -> float:
        """The part that was wrong."""
        return self.wrong / self.tried if self.tried else math.nan

    @property
    def allowed(self) -> float:
        """What chance leaves of `ERROR`: three standard deviations above."""
        return ERROR + 3.0 * math.sqrt(ERROR * (1.0 - ERROR) / self.tried)


@dataclass(frozen=True)
class Coverage:
    """Verdicts on one measure of one class by blocks of one size."""

    scenario: str
    of: str
    measure: str
    size: int
    kept: Count
    missed: Count
    different: Count
    right: tuple[float, ...]

    @property
    def sound(self) -> bool:
        """Whether no kind of verdict is wrong more often than `ERROR` and chance."""
        return all(one.share <= one.allowed for one in (self.kept, self.missed, self.different) if one.tried)


def pool(scenario: Mapping[str, Any], runs: int, first_seed: int = 1_000_001) -> dict[tuple[str, str], list[float]]:
    """Each measure of each class, in `runs` runs with seeds of their own; runs without a value are left out."""
    found: dict[tuple[str, str], list[float]] = {}

    def take(_: int, result: linkweir.Result) -> None:
        for row in result.rows("classes"):
            for name, measure in MEASURES.items():
                value = row.get(measure.column)
                if value is not None:
                    found.setdefault((row["class"], name), []).append(value)

    for first in range(first_seed, first_seed + runs, 1000):
        seeds = range(first, min(first + 1000, first_seed + runs))
        linkweir.run_many([{**scenario, "seed": seed} for seed in seeds], jobs=1, on_result=take)
    return found


def coverages(
    name: str,
    values: Mapping[tuple[str, str], Sequence[float]],
    blocks: int,
    sizes: Sequence[int] = SIZES,
    judge: Judge = by_product,
    differs: Differs = differs_by_product,
) -> Iterator[Coverage]:
    """The verdicts on each measure that varies, by up to `blocks` blocks of each size."""
    for (of, measure), all_of in values.items():
        truth = math.fsum(all_of) / len(all_of)
        deviation = math.sqrt(math.fsum((value - truth) ** 2 for value in all_of) / len(all_of))
        if deviation > 1e-9 * abs(truth):
            for size in sizes:
                cut = [all_of[n * size : (n + 1) * size] for n in range(min(blocks, len(all_of) // size))]
                yield _coverage((name, of, measure, size), cut, truth, deviation, judge, differs)


def _coverage(
    about: tuple[str, str, str, int],
    blocks: Sequence[Sequence[float]],
    truth: float,
    deviation: float,
    judge: Judge,
    differs: Differs,
) -> Coverage:
    _, of, measure, _ = about
    more = MEASURES[measure].more_is_better
    highest = _HIGHEST.get(measure, _DURATION_S)
    slack = 0.99 if more else 1.0  # of a rate, documented

    def promised(distance: float) -> Promise:
        """A promise this far outside of the truth, in standard deviations; if negative, inside."""
        return Promise(of, measure, (truth + (distance if more else -distance) * deviation) / slack)

    kept, missed, different = Count(), Count(), Count()
    for distance, wrong in ((0.0, (KEPT, MISSED)), (0.1, (KEPT,)), (-0.1, (MISSED,))):
        promise = promised(distance)
        if promise.bound <= 0.0:
            continue
        verdicts = [judge(promise, block, highest) for block in blocks]
        for verdict, count in ((KEPT, kept), (MISSED, missed)):
            if verdict in wrong:
                count.wrong, count.tried = max(count.wrong, verdicts.count(verdict)), len(verdicts)
    for one, other in zip(blocks[::2], blocks[1::2], strict=False):
        grain = MEASURES[measure].resolution * truth
        different.tried += 1
        different.wrong += differs(one, other, grain) or differs(other, one, grain)
    some = blocks[: max(len(blocks) // 4, 1)]
    right = tuple(
        sum(judge(promised(-distance), block, highest) == KEPT for block in some) / len(some) for distance in POWERS
    )
    return Coverage(*about, kept, missed, different, right)


def page(found: Sequence[Coverage], runs: int, blocks: int) -> str:
    """The record, as the page of results that is kept."""
    lines = [
        "# How often verdicts of a comparison are wrong",
        "",
        f"`make coverage`, {datetime.date.today():%Y-%m-%d}: {runs} runs of each of four scenarios, {blocks} blocks of",
        "each size. No run is in two blocks of one size. The head of",
        "[verdict_coverage.py](../../python/tests/verdict_coverage.py) describes the method;",
        "[Compare policies](../howto/compare.md#promises) describes the rule for verdicts.",
        "",
        f"The rule allows a wrong verdict in 2.5 % of blocks. Of {blocks} blocks, chance can make this",
        f"{100 * Count(0, blocks).allowed:.1f} % (three standard deviations). Where a promise is exactly the truth,",
        'both "kept" and "missed" count as wrong. "Wrong kept" is the worse share of two promises, one at the truth',
        'and one that the truth misses by a tenth of a standard deviation. "Wrong missed" is the same on the other',
        'side. "Different" is how often a policy, compared with itself with other seeds, is called better, in half as',
        "many pairs of blocks.",
        "",
        f"The worst of {len(found)} combinations of scenario, class, measure and size: "
        f'wrong "kept" {_worst(found, "kept")}, wrong "missed" {_worst(found, "missed")}, '
        f'"different" {_worst(found, "different")}.',
        f"{sum(not one.sound for one in found)} combinations are above what chance allows.",
        "",
        'The columns on the right are the power: how often the verdict is "kept" if the truth keeps a promise by so',
        "many standard deviations of a single run.",
        "",
        "| scenario | class | measure | seeds | wrong kept | wrong missed | different | "
        + " | ".join(f"{one:g} sd" for one in POWERS)
        + " |",
        "|---|---|---|--:|--:|--:|--:|" + "--:|" * len(POWERS),
    ]
    for one in found:
        shares = [f"{100 * count.share:.2f} %" for count in (one.kept, one.missed, one.different)]
        powers = [f"{100 * power:.0f} %" for power in one.right]
        measure = MEASURES[one.measure].words
        lines.append("| " + " | ".join([one.scenario, one.of, measure, str(one.size), *shares, *powers]) + " |")
    return "\n".join(lines) + "\n"


def _worst(found: Sequence[Coverage], which: str) -> str:
    worst = max((one for one in found if getattr(one, which).tried), key=lambda one: getattr(one, which).share)
    return (
        f"{100 * getattr(worst, which).share:.2f} % ({worst.scenario}, {worst.of}, {worst.measure}, {worst.size} seeds)"
    )


def main() -> None:
    """Runs the measurement and writes its page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--blocks", type=int, default=2000)
    options = parser.parse_args()
    runs = options.blocks * max(SIZES)
    found: list[Coverage] = []
    for name, scenario in SCENARIOS.items():
        values = pool(scenario, runs)
        found += coverages(name, values, options.blocks)
        print(f"{name}: {runs} runs", flush=True)
    options.page.write_text(page(found, runs, options.blocks), encoding="utf-8")
    wrong = [one for one in found if not one.sound]
    for one in wrong:
        print(f"wrong too often: {one.scenario}, {one.of}.{one.measure}, {one.size} seeds", file=sys.stderr)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
