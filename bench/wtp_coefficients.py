# SPDX-License-Identifier: BSD-3-Clause
"""Delay ratios under WTP with inverse coefficients and with those of `linkweir plan pds`, over loads.

    .venv/bin/python bench/wtp_coefficients.py

Poisson arrivals of 500 bytes, 10 Mbit/s, classes of equal rates; means over three seeds of 300 s. The results are on
docs/records/pds-coefficients.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import linkweir
from linkweir.commands.plan_pds import answer

SEEDS = (1, 2, 3)
LOADS = (0.7, 0.8, 0.85, 0.87, 0.9, 0.95)
WANTED = ("1:2:4", "1:2:4:8:16")


def ratios(load: float, delays: Sequence[int], duration_s: int = 300, seeds: Sequence[int] = SEEDS) -> list[float]:
    """Mean waits of the classes as multiples of the first one's."""
    limit = "10000p"
    classes = "".join(f'[[class]]\nname = "c{i}"\ndelay = {d}\nlimit = "{limit}"\n' for i, d in enumerate(delays))
    rate = f"{load * 10e6 / len(delays):.0f}bit"
    flows = "".join(
        f'[[flow]]\nclass = "c{i}"\nkind = "poisson"\nrate = "{rate}"\npacket = "500B"\n' for i in range(len(delays))
    )
    link = f'[link]\nrate = "10Mbit"\n[scheduler]\npolicy = "pds"\nlimit = "{limit}"\n'
    sums = [0.0] * len(delays)
    for seed in seeds:
        text = f'duration = "{duration_s}s"\nwarmup = "1s"\nseed = {seed}\n{link}{classes}{flows}'
        for i, row in enumerate(linkweir.run(linkweir.Scenario.parse(text)).rows("classes")):
            sums[i] += row["delay_mean_s"]
    return [total / sums[0] for total in sums]


def main() -> None:
    """Prints the table of the page."""
    print("| wanted | load | measured, inverse coefficients | planned coefficients | measured with them |")
    print("|---|---|---|---|---|")
    for wanted in WANTED:
        inverse = [round(16000 / float(part)) for part in wanted.split(":")]
        for load in LOADS:
            plan = answer("10Mbit", wanted, str(load), [], "500B")
            planned = "out of reach | -"
            if plan["possible"]:
                delays = [c["delay"] for c in plan["classes"]]
                planned = f"{':'.join(map(str, delays))} | {_shown(ratios(load, delays))}"
            print(f"| {wanted} | {load} | {_shown(ratios(load, inverse))} | {planned} |", flush=True)


def _shown(values: Sequence[float]) -> str:
    return ":".join(f"{value:.3g}" for value in values)


if __name__ == "__main__":
    main()
