#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One flow of TCP Prague or DCTCP and one of CUBIC with ECN share `dualpi2`, for each round trip and rate.

    bench/l4s.py [--cc prague|dctcp] [--inside pss|drr [--burst N]] [--step-packets N] [--seeds N] [--seconds N]
                 [--json | --markdown] [--out FILE]

For each cell: the ratio of the two rates, the 99th percentile of the delays in the L4S queue, and how busy the link is.
The ratio is to be 0.5 to 2 and the percentile at most 2 ms; exits with 1 if a cell misses one of them. Each seed gives
the policy other random numbers, and the flows other starts within 100 ms; a cell has the medians of its seeds, and the
percentile of the worst. With --step-packets the step of `dualpi2` is raised from 1 ms to the time that so many packets
of 1500 bytes take at the rate of the cell, where that is longer.

With --inside the two are in the class AF of that policy, which has `flows = "dualpi2"` and two thirds of a link. EF
goes first, with a twentieth of the link in packets of 200 bytes; a source that never lacks packets takes the rest. The
rate of the cell is AF's, and `busy` is how much of it AF gets. --burst is that of pss. A class has no seed, so that
only the starts differ. The results are on docs/records/l4s.md.
"""

import argparse
import statistics
import sys

import linkweir
import report

ROUND_TRIPS_MS = (5, 10, 20, 50, 100)
RATES_MBIT = (4, 12, 40, 120, 200)
RATIOS = (0.5, 2.0)
MOST_DELAY_S = 0.002
STEP_S = 0.001
PACKET_BITS = 8 * 1500
LINK_OVER_AF = 1.5
COLUMNS = ("RTT, ms", "Mbit/s", "L4S / CUBIC", "of all seeds", "L4S p99, ms", "CUBIC mean, ms", "busy", "ratio", "p99")


def link_mbit(options, rate_mbit):
    """The rate of a cell's link."""
    return rate_mbit if options.inside is None else LINK_OVER_AF * rate_mbit


def scenario(options, round_trip_ms, rate_mbit, seed):
    """A cell's scenario; the first third is not counted."""
    seconds = options.seconds
    step_s = max(STEP_S, options.step_packets * PACKET_BITS / (rate_mbit * 1e6))
    # All delay behind the scheduler is that of acknowledgements with --inside: see `measured`.
    delay_ms = round_trip_ms / 2 if options.inside is None else 0
    of = of_policy if options.inside is None else of_class
    return linkweir.Scenario.from_dict(
        {
            "duration": f"{seconds}s",
            "warmup": f"{seconds / 3:.3f}s",
            "interval": f"{seconds}s",
            "seed": seed,
            "link": {
                "rate": f"{link_mbit(options, rate_mbit)}Mbit",
                "delay": f"{delay_ms}ms",
                "return_delay": f"{round_trip_ms - delay_ms}ms",
            },
            **of(options, rate_mbit, seed, f"{1e6 * step_s:.0f}us"),
        }
    )


def downloads(options, seed, l4s, classic):
    """The two flows, in classes of these names."""
    return [
        {"name": "l4s", "class": l4s, "kind": "tcp", "cc": options.cc, "start": f"{37 * seed % 100}ms"},
        {"name": "classic", "class": classic, "kind": "tcp", "ecn": True, "start": f"{61 * seed % 100}ms"},
    ]


def of_policy(options, _, seed, step):
    """Scheduler, classes and flows of `dualpi2` alone."""
    return {
        "scheduler": {"policy": "dualpi2", "seed": seed, "step": step},
        "class": [{"name": "l4s", "l4s": "yes", "limit": "10000p"}, {"name": "classic", "limit": "10000p"}],
        "flow": downloads(options, seed, "l4s", "classic"),
    }


def of_class(options, rate_mbit, seed, step):
    """Scheduler, classes and flows of a class that sorts packets."""
    if options.inside == "pss":
        reserved = {"level": 1, "low_level": 3, "rate": f"{rate_mbit}Mbit", "burst": f"{options.burst}p"}
        keys = [{"level": 0}, reserved, {"level": 2}]
    else:
        # EF has more than it needs; the rest gets what AF leaves of the link less EF's twentieth.
        keys = [{"level": 0}, {"level": 1, "quantum": "3000B"}, {"level": 1, "quantum": "1275B"}]
    af = {"flows": "dualpi2", "l4s_step": step}
    names = ({"name": "ef"}, {"name": "af", "limit": "10000p", **af}, {"name": "rest"})
    return {
        "scheduler": {"policy": options.inside},
        "class": [{**name, **key} for name, key in zip(names, keys, strict=True)],
        "flow": [
            *downloads(options, seed, "af", "af"),
            {
                "name": "ef",
                "class": "ef",
                "kind": "cbr",
                "rate": f"{LINK_OVER_AF * rate_mbit / 20}Mbit",
                "packet": "200B",
            },
            {"name": "rest", "class": "rest", "kind": "greedy"},
        ],
    }


def measured(options, round_trip_ms, rate_mbit, seed):
    """Ratio of the rates, 99th percentile of the L4S queue, mean of the classic one, s, and how busy the link is."""
    result = linkweir.run(scenario(options, round_trip_ms, rate_mbit, seed))
    rows = result.rows("classes" if options.inside is None else "flows")
    name_of = "class" if options.inside is None else "flow"
    # Both flows wait in one class, but delays of flows last until the receiver has the packet. Percentiles are those of
    # a histogram with buckets of 1/128: a delay of the link would make them coarse, so it has none.
    beyond_s = 0 if options.inside is None else PACKET_BITS / (link_mbit(options, rate_mbit) * 1e6)
    l4s, classic = (next(row for row in rows if row[name_of] == name) for name in ("l4s", "classic"))
    busy = (l4s["rate_bps"] + classic["rate_bps"]) / (rate_mbit * 1e6)
    delays_s = l4s["delay_p99_s"] - beyond_s, classic["delay_mean_s"] - beyond_s
    return l4s["rate_bps"] / classic["rate_bps"], *delays_s, busy


def cell(options, round_trip_ms, rate_mbit):
    """One cell of the grid."""
    runs = [measured(options, round_trip_ms, rate_mbit, seed + 1) for seed in range(options.seeds)]
    ratios, delays_s, classic_s, busy = zip(*runs, strict=True)
    ratio, delay_s = statistics.median(ratios), max(delays_s)
    return {
        "round_trip_ms": round_trip_ms,
        "rate_mbit": rate_mbit,
        "ratio": ratio,
        "ratios": sorted(ratios),
        "l4s_p99_s": delay_s,
        "classic_mean_s": statistics.median(classic_s),
        "busy": statistics.median(busy),
        "shares": RATIOS[0] <= ratio <= RATIOS[1],
        "is_short": delay_s <= MOST_DELAY_S,
    }


def line(row):
    """A cell's line of the table."""
    return (
        str(row["round_trip_ms"]),
        str(row["rate_mbit"]),
        f"{row['ratio']:.2f}",
        f"{row['ratios'][0]:.2f} .. {row['ratios'][-1]:.2f}",
        f"{1e3 * row['l4s_p99_s']:.2f}",
        f"{1e3 * row['classic_mean_s']:.1f}",
        f"{row['busy']:.3f}",
        report.cell(row["shares"]),
        report.cell(row["is_short"]),
    )


def sentences(options, grid):
    """What holds in how many cells."""
    for key, wanted in (
        ("shares", f"ratio {RATIOS[0]:g} .. {RATIOS[1]:g}"),
        ("is_short", f"p99 <= {1e3 * MOST_DELAY_S:g} ms"),
    ):
        held = sum(row[key] for row in grid)
        yield f"{wanted}: {held} of {len(grid)} cells, {report.verdict(held == len(grid))}"
    leave_s = {row["rate_mbit"]: PACKET_BITS / (link_mbit(options, row["rate_mbit"]) * 1e6) for row in grid}
    slow = {row["rate_mbit"] for row in grid if not row["is_short"] and leave_s[row["rate_mbit"]] > MOST_DELAY_S / 2}
    if slow:
        listed = ", ".join(map(str, sorted(slow)))
        yield f"at {listed} Mbit/s one packet takes up to {1e3 * leave_s[min(slow)]:g} ms to leave"


def main():
    """Measures the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", choices=("prague", "dctcp"), default="prague")
    parser.add_argument("--inside", choices=("pss", "drr"), help="in a class of this policy")
    parser.add_argument("--burst", type=report.within(int, 2, 1000), help="of pss, 2 if not given")
    parser.add_argument("--step-packets", type=report.within(int, 0, 100), default=0)
    parser.add_argument("--seeds", type=report.within(int, 1, 100), default=3)
    parser.add_argument("--seconds", type=report.within(int, 10, 10_000), default=180, help="length of each run")
    options = report.options_of(parser)
    if options.inside == "pss":
        options.burst = options.burst or 2
    elif options.burst is not None:
        parser.error("--burst is only for --inside pss")
    grid = [cell(options, round_trip, rate) for round_trip in ROUND_TRIPS_MS for rate in RATES_MBIT]
    answer = {
        "cc": options.cc,
        "inside": options.inside,
        "burst": options.burst,
        "step_packets": options.step_packets,
        "seconds": options.seconds,
        "seeds": options.seeds,
        "cells": grid,
    }
    report.write(
        options,
        answer,
        lambda markdown: report.table(COLUMNS, map(line, grid), sentences(options, grid), markdown=markdown),
    )
    return 0 if all(row["shares"] and row["is_short"] for row in grid) else 1


if __name__ == "__main__":
    sys.exit(main())
