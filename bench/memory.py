#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is the memory that loses nothing enough on recorded capacity, and is less of it too little?

    bench/memory.py ATT-LTE-driving-2016.down starlink-autobahn.csv --reservations 20

For each trace, random reservations: EF at a constant rate and AF's rate, together below 80 % of the mean capacity, with
at least 100 packets owed to AF at the worst instant (D). Every trace repeats, whatever it says about its end. AF and
CS0 always have packets. LR is set to D and one packet, then to 2 % less. Each run ends in the second round of the
trace, at an instant at which nothing is owed. The shortfall is what AF was sent less than its rate; with LR = D it may
be one packet, with 2 % less it is at least 1 % of D.

Exit code 1 if one does not hold.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, replace
from pathlib import Path

from linkweir.runs.simulate import run
from linkweir.scenarios.quantity import rate_text
from linkweir.scenarios.scenario import Scenario
from linkweir.sizing import theory
from linkweir.sizing.shortage import CapacitySteps, read

PACKET_BITS = 12_000
LEAST_PKTS = 100


@dataclass(frozen=True)
class Case:
    """A reservation on a trace, D in bits, and the end of the run in seconds."""

    ef_bps: int
    af_bps: int
    owed_bits: float
    end_s: float


def draw(rng: random.Random, steps: CapacitySteps) -> Case:
    """A reservation that is owed at least 100 packets at some time."""
    mean_bps = steps.mean_bps()
    while True:
        ef_bps = round(rng.uniform(0.02, 0.3) * mean_bps)
        af_bps = round(rng.uniform(0.1, 0.8) * mean_bps) - ef_bps
        if af_bps < 0.05 * mean_bps:
            continue
        needed_s = steps.needed_s(af_bps, ef_bps)
        owed_bits = needed_s * af_bps
        if LEAST_PKTS * PACKET_BITS <= owed_bits < float("inf"):
            return Case(ef_bps, af_bps, owed_bits, steps.end_s + calm_s(steps.exact or steps, af_bps, ef_bps))


def calm_s(steps: CapacitySteps, af_bps: float, ef_bps: float) -> float:
    """An instant of a later round, from its start: the middle of the longest time in which AF is owed nothing."""
    owed, calm_from, best, middle = 0.0, None, 0.0, 0.0
    for turn in range(2):
        starts_s, left = theory.left_after(steps.starts_s, steps.rates, steps.end_s, ef_bps, loops=steps.loops)
        for start, end, rate in zip(starts_s, [*starts_s[1:], steps.end_s], left, strict=True):
            before = owed
            owed = max(owed + (af_bps - rate) * (end - start), 0.0)
            if owed > 0 or before > 0:
                calm_from = None
            elif calm_from is None:
                calm_from = start
            if turn == 1 and calm_from is not None and end - calm_from > best:
                best, middle = end - calm_from, (calm_from + end) / 2
    return middle


def shortfall_bits(trace: Path, end: str | None, link_bps: float, case: Case, resume_bits: float) -> float:
    """What AF was sent less than its rate, bits; `end` replaces what the trace says about its end."""
    keys = {
        "duration": f"{case.end_s:.6f}s",
        "interval": "1s",
        "log": "none",
        "link": {"trace": str(trace), "nominal": rate_text(link_bps), **({"end": end} if end else {})},
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "ef", "level": 0, "limit": "1000000p"},
            {
                "name": "af",
                "level": 1,
                "low_level": 3,
                "rate": rate_text(case.af_bps),
                "mtu": "1500B",
                "lr": rate_text(resume_bits),
                "lm": rate_text(resume_bits + PACKET_BITS),
            },
            {"name": "cs0", "level": 2},
        ],
        "flow": [
            {"class": "ef", "kind": "cbr", "rate": rate_text(case.ef_bps), "packet": "1500B"},
            {"class": "af", "kind": "greedy", "packet": "1500B"},
            {"class": "cs0", "kind": "greedy", "packet": "1500B"},
        ],
    }
    rows = run(Scenario.from_dict(keys)).rows("classes")
    sent_bits = next(row["rate_bps"] for row in rows if row["class"] == "af") * case.end_s
    return case.af_bps * case.end_s - sent_bits


def main() -> int:
    """Prints a line for each reservation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--reservations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    headings = ("trace", "EF Mbit/s", "AF Mbit/s", "D packets", "short of packets", "with 2 % less, of D")
    print("{:30}{:>11}{:>11}{:>11}{:>18}{:>21}".format(*headings))
    for trace in options.traces:
        steps = read(trace)
        end = None if steps.loops else "loop"
        steps = replace(steps, loops=True)
        rng = random.Random(options.seed)
        link_bps = max(steps.rates) if steps.exact is None else max(steps.exact.rates)
        for _ in range(options.reservations):
            case = draw(rng, steps)
            resume_bits = case.owed_bits + PACKET_BITS
            enough = shortfall_bits(trace, end, link_bps, case, resume_bits) / PACKET_BITS
            less = shortfall_bits(trace, end, link_bps, case, 0.98 * resume_bits) / case.owed_bits
            good = enough <= 1 and less >= 0.01
            failed += not good
            owed_pkts = case.owed_bits / PACKET_BITS
            line = f"{trace.name:30}{case.ef_bps / 1e6:11.3f}{case.af_bps / 1e6:11.3f}{owed_pkts:11.0f}"
            print(f"{line}{enough:18.2f}{less:21.2%}{'' if good else '  FAILS'}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
