#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One flow of TCP Prague or DCTCP and one of CUBIC with ECN share `dualpi2`, for each round trip and rate.

    bench/l4s.py [--cc prague|dctcp] [--inside pss|drr [--burst N]] [--step-packets N] [--seeds N] [--seconds N]
                 [--factors] [--json | --markdown] [--out FILE]

For each cell: the ratio of the two rates, the 99th percentile of the delays in the L4S queue, and how busy the link is.
The ratio is to be 0.5 to 2 and the percentile at most 2 ms; exits with 1 if a cell misses one of them. Each seed gives
the policy other random numbers, and the flows other starts within 100 ms; a cell has the medians of its seeds, and the
percentile of the worst. With --step-packets the step of `dualpi2` is raised from 1 ms to the time that so many packets
of 1500 bytes take at the rate of the cell, where that is longer.

With --factors the table shows why a ratio is what it is. The rate of a flow is N packets per round trip R, and the part
p of its packets is marked. With x = N p for L4S packets and y = N sqrt(p) for CUBIC's, the ratio is
(x / y) (sqrt(p of CUBIC) / p of L4S) (R of CUBIC / R of L4S).

With --inside the two are in the class AF of that policy, which has `flows = "dualpi2"` and two thirds of a link. EF
goes first, with a twentieth of the link in packets of 200 bytes; a source that never lacks packets takes the rest. The
rate of the cell is AF's, and `busy` is how much of it AF gets. --burst is that of pss. A class has no seed, so that
only the starts differ. The results are on docs/records/l4s.md.
"""

import argparse
import math
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


def keys(options, round_trip_ms, rate_mbit, seed):
    """A cell's scenario; the first third is not counted."""
    seconds = options.seconds
    step_s = max(STEP_S, options.step_packets * PACKET_BITS / (rate_mbit * 1e6))
    # All delay behind the scheduler is that of acknowledgements with --inside: see `measured`.
    delay_ms = round_trip_ms / 2 if options.inside is None else 0
    of = of_policy if options.inside is None else of_class
    return {
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
        of_each = [{"level": 0}, reserved, {"level": 2}]
    else:
        # EF has more than it needs; the rest gets what AF leaves of the link less EF's twentieth.
        of_each = [{"level": 0}, {"level": 1, "quantum": "3000B"}, {"level": 1, "quantum": "1275B"}]
    af = {"flows": "dualpi2", "l4s_step": step}
    names = ({"name": "ef"}, {"name": "af", "limit": "10000p", **af}, {"name": "rest"})
    return {
        "scheduler": {"policy": options.inside},
        "class": [{**name, **key} for name, key in zip(names, of_each, strict=True)],
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


FACTORS = ("x", "y", "p L4S / sqrt(p CUBIC)", "R CUBIC / R L4S")
"""See above; the ratio is the first over the second and the third, times the last."""


def factors(options, round_trip_ms, rate_mbit, seed):
    """The ratio of the rates and its factors."""
    result = linkweir.run(linkweir.Scenario.from_dict(keys(options, round_trip_ms, rate_mbit, seed)))
    parts = {}
    for name in ("l4s", "classic"):
        of_class = next(row for row in result.rows("classes") if row["class"] == name)
        of_flow = next(row for row in result.rows("flows") if row["flow"] == name)
        marked = of_class["marked_pkts"] / of_class["sent_pkts"]
        if not marked:
            sys.exit(f"{round_trip_ms} ms, {rate_mbit} Mbit/s, seed {seed}: no packet was marked; run for longer")
        round_trip_s = of_flow["srtt_mean_s"]
        parts[name] = marked, of_class["rate_bps"], round_trip_s
    (l4s_p, l4s_bps, l4s_s), (classic_p, classic_bps, classic_s) = parts["l4s"], parts["classic"]
    x = l4s_bps * l4s_s / PACKET_BITS * l4s_p
    y = classic_bps * classic_s / PACKET_BITS * math.sqrt(classic_p)
    return l4s_bps / classic_bps, x, y, l4s_p / math.sqrt(classic_p), classic_s / l4s_s


def cell_of_factors(options, round_trip_ms, rate_mbit):
    """One cell: the geometric means of its seeds, of which the product is exact."""
    runs = [factors(options, round_trip_ms, rate_mbit, seed + 1) for seed in range(options.seeds)]
    ratio, *means = map(statistics.geometric_mean, zip(*runs, strict=True))
    return {
        "round_trip_ms": round_trip_ms,
        "rate_mbit": rate_mbit,
        "ratio": ratio,
        "factors": dict(zip(FACTORS, means, strict=True)),
    }


def line_of_factors(row):
    """A cell's line of the table of factors."""
    values = (row["ratio"], *row["factors"].values())
    return str(row["round_trip_ms"]), str(row["rate_mbit"]), *(f"{value:.2f}" for value in values)


def measured(options, round_trip_ms, rate_mbit, seed):
    """Ratio of the rates, 99th percentile of the L4S queue, mean of the classic one, s, and how busy the link is."""
    result = linkweir.run(linkweir.Scenario.from_dict(keys(options, round_trip_ms, rate_mbit, seed)))
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
    parser.add_argument("--factors", action="store_true", help="why the ratios are what they are")
    options = report.options_of(parser)
    if options.inside == "pss":
        options.burst = options.burst or 2
    elif options.burst is not None:
        parser.error("--burst is only for --inside pss")
    if options.factors and options.inside is not None:
        parser.error("--factors: the marks of two flows in one class are not counted apart; leave --inside out")
    of_each = cell_of_factors if options.factors else cell
    grid = [of_each(options, round_trip, rate) for round_trip in ROUND_TRIPS_MS for rate in RATES_MBIT]
    answer = {
        "cc": options.cc,
        "inside": options.inside,
        "burst": options.burst,
        "step_packets": options.step_packets,
        "seconds": options.seconds,
        "seeds": options.seeds,
        "cells": grid,
    }
    if options.factors:
        columns = (*COLUMNS[:3], *FACTORS)
        report.write(
            options, answer, lambda markdown: report.table(columns, map(line_of_factors, grid), markdown=markdown)
        )
        return 0
    report.write(
        options,
        answer,
        lambda markdown: report.table(COLUMNS, map(line, grid), sentences(options, grid), markdown=markdown),
    )
    return 0 if all(row["shares"] and row["is_short"] for row in grid) else 1


if __name__ == "__main__":
    sys.exit(main())
