# SPDX-License-Identifier: BSD-3-Clause
"""Voice at the Es/N0 that the papers on CoDeS name and their figures do not: 7 to 13 dB, over many channels.

    .venv/bin/python bench/esn0.py

75 users on the link of the conference paper, as published, in runs of 20 s, with channel knowledge as old as a flight
and with knowledge of age 0. All policies of a channel see the same fading and the same packets. CoDeS is compared with
PF by the sum of the losses over all channels, because PF loses nearly nothing in some of them. The results are on
docs/records/claims.md.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from linkweir.reproduce import native
from linkweir.reproduce.execute import execute
from linkweir.reproduce.figure import Row, identity
from linkweir.reproduce.papers import codes
from linkweir.reproduce.papers.spread import half_width, means, with_spread

ESN0_DB = (7, 10, 13)
POLICIES = ("DT_S", "DT_H", "RR", "PF", codes.CODES)
USERS = 75
AGES = (codes.FLIGHT, "0s")
DURATION_S = 20.0
COLUMNS = (("loss", 1), ("tx0", 1), ("latency_ms", 0), ("jitter_ms", 1), ("mos", 2))


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, float | None]:
    """The ratio of two sums over the same channels, and half the width of its 95 % confidence interval.

    The interval is that of a ratio estimator (Cochran, Sampling Techniques, section 6.4): that of the mean of what the
    ratio leaves of each numerator, divided by the mean denominator.

    >>> ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    (2.0, 0.0)
    """
    mean = statistics.fmean(denominators)
    found = statistics.fmean(numerators) / mean
    return found, half_width([(n - found * d) / mean for n, d in zip(numerators, denominators, strict=True)])


def measured(
    esn0_db: int,
    csi_age: str,
    policies: Sequence[str],
    channels: int = 40,
    duration_s: float = DURATION_S,
    jobs: int | None = None,
) -> dict[str, list[Row]]:
    """The results of each policy, a row for each channel."""
    wanted = {}
    for policy in policies:
        for seed in range(1, channels + 1):
            scenario = codes.scenario(codes.CONFERENCE, policy, USERS, seed, duration_s, csi_age=csi_age)
            scenario["link"]["satellite"]["esn0_db"] = esn0_db
            wanted[policy, seed] = scenario
    found = execute(list(wanted.values()), native.runner(jobs), lambda: None).results
    rows: dict[str, list[Row]] = {policy: [] for policy in policies}
    for (policy, _), scenario in wanted.items():
        rows[policy].append(codes.measured(codes.CONFERENCE, found[identity(scenario)], duration_s))
    return rows


def main() -> None:
    """Prints the tables of the page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--channels", type=int, default=40)
    options.add_argument("--duration", type=float, default=DURATION_S, help="simulated seconds of every run")
    options.add_argument("--jobs", type=int)
    given = options.parse_args()
    heads = "lost, % | decoded at the first attempt, % | latency, ms | jitter, ms | MOS"
    print(f"| policy | age | Es/N0, dB | {heads} |\n|---|---|---|---|---|---|---|---|")
    lines = []
    for age in AGES:
        policies = [policy for policy in POLICIES if age == codes.FLIGHT or policy not in codes.UNAWARE]
        found = {db: measured(db, age, policies, given.channels, given.duration, given.jobs) for db in ESN0_DB}
        for policy in policies:
            for db in ESN0_DB:
                row = means(found[db][policy])
                cells = " | ".join(with_spread(row, name, digits) for name, digits in COLUMNS)
                shown = "any" if policy in codes.UNAWARE else age
                print(f"| {policy} | {shown} | {db} | {cells} |", flush=True)
        for db in ESN0_DB:
            pf, timeout = found[db]["PF"], found[db][codes.CODES]
            times, spread = ratio([row["loss"] for row in timeout], [row["loss"] for row in pf])
            gap = means([{"mos": c["mos"] - p["mos"]} for c, p in zip(timeout, pf, strict=True)])
            lines.append(f"| {age} | {db} | {times:.2f} ± {spread or 0:.2f} | {with_spread(gap, 'mos', 2)} |")
    print("\n| age | Es/N0, dB | loss of CoDeS / loss of PF | MOS of CoDeS less that of PF |\n|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
