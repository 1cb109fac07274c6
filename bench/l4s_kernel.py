#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One flow of DCTCP and one of CUBIC with ECN over `dualpi2`: the simulator and Linux's own, side by side.

    bench/l4s_kernel.py [--round-trips MS,MS] [--rates MBIT,MBIT] [--seeds N] [--simulated N] [--seconds N] [--jobs N]
                        [--store DIR] [--json | --markdown] [--out FILE]

The cells are those of l4s.py. The kernel is the newest of Debian's backports in the laboratory's virtual time, with its
TCP and its sch_dualpi2. For each cell and quantity: the mean over the seeds in the simulator / in the kernel. From
three seeds on the ratios have their 95 % intervals (Student's t). A seed gives both sides the same starts of flows, and
each its own random numbers, so a difference counts only if its 95 % interval is without 0 (Welch's t). Exits with 1 if
one that counts is beyond its bound. With --simulated the simulator has more seeds than the kernel, whose runs take
longer. Runs are stored, so an interrupted comparison continues where it was. The results are on docs/records/l4s.md.

Links carry 0.1 % less than the cell says. At exactly 12 and 120 Mbit/s the step of `dualpi2`, 1 ms, is a whole number
of packets' times. Packets that acknowledgements clock then wait for exactly the step in the simulator, which does not
mark them, and for some ns longer in a kernel, which does.
"""

import argparse
import math
import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import l4s
import linkweir
import report
from linkweir import _native
from linkweir.lab.experiment import Laboratory
from linkweir.reproduce.papers.spread import student

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("simulator", "kernel")
REGIMES = ("starves", "shares", "dominates")
KERNEL_TICK = "10ms"
"""The laboratory's kernel counts 100 Hz; CUBIC counts in ticks."""
OF_THE_RATE = 0.999
"""What links carry, see above."""


@dataclass(frozen=True)
class Quantity:
    """What is compared, and by how much the simulator's mean may differ: a share of the kernel's, or `least`."""

    title: str
    share: float
    least: float
    digits: int
    unit: float = 1.0

    def is_within(self, ours, kernels):
        """Whether two means are as near as they have to be."""
        return abs(ours - kernels) <= max(self.share * kernels, self.least)

    def shown(self, value):
        """A value in a table."""
        return f"{value / self.unit:.{self.digits}f}"


QUANTITIES = {
    "ratio": Quantity("DCTCP / CUBIC", 0.1, 0.0, 2),
    "l4s_p99_s": Quantity("L4S p99, ms", 0.1, 0.0001, 2, 1e-3),
    "classic_mean_s": Quantity("CUBIC mean, ms", 0.1, 0.0005, 1, 1e-3),
    "busy": Quantity("busy", 0.01, 0.0, 3),
    "l4s_marked": Quantity("DCTCP marked, %", 0.1, 0.001, 2, 0.01),
    "classic_marked": Quantity("CUBIC marked, %", 0.1, 0.0002, 3, 0.01),
}
COLUMNS = ("RTT, ms", "Mbit/s", *(quantity.title for quantity in QUANTITIES.values()), "beyond its bound")


def scenario(options, round_trip_ms, rate_mbit, seed):
    """A cell's scenario, for both sides."""
    of_cell = argparse.Namespace(cc="dctcp", inside=None, step_packets=0, seconds=options.seconds)
    keys = l4s.keys(of_cell, round_trip_ms, rate_mbit, seed)
    flows = [{**flow, "tick": KERNEL_TICK} for flow in keys["flow"]]
    # The counters of the kernel are read at the ends of intervals.
    link = {**keys["link"], "rate": f"{OF_THE_RATE * rate_mbit:.3f}Mbit"}
    return {**keys, "link": link, "flow": flows, "interval": keys["warmup"]}


def measured(result):
    """The quantities of a run."""
    of_class = {row["class"]: row for row in result.rows("classes")}
    marked, classic = of_class["l4s"], of_class["classic"]
    capacity_bps = result.rows("link")[0]["capacity_bps"]
    return {
        "ratio": marked["rate_bps"] / classic["rate_bps"],
        "l4s_p99_s": marked["delay_p99_s"],
        "classic_mean_s": classic["delay_mean_s"],
        "busy": (marked["rate_bps"] + classic["rate_bps"]) / capacity_bps,
        "l4s_marked": marked["marked_pkts"] / marked["sent_pkts"],
        "classic_marked": classic["marked_pkts"] / classic["sent_pkts"],
    }


def run_all(options, cells):
    """The quantities of each side, cell and seed."""
    sys.path.append(str(ROOT / "lab"))
    import stored

    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    laboratory = Laboratory("newest", stagger_s=0.0, every_packet=True, say=say).under("dualpi2")
    identities = {"simulator": _native.sources, "kernel": laboratory.identity}

    def job(side, cell, seed):
        keys = scenario(options, *cell, seed)

        def run(processor):
            made = linkweir.Scenario.from_dict(keys)
            if side == "simulator":
                return measured(linkweir.run(made))
            return measured(laboratory.run(made, processor=processor))

        name = f"{cell[0]} ms, {cell[1]} Mbit/s, seed {seed}" if side == "kernel" else ""
        return stored.Job(name, [side, identities[side], keys], run)

    seeds = seeds_of(options)
    wanted = [
        (side, cell, seed + 1)
        for seed in range(max(seeds.values()))
        for cell in cells
        for side in SIDES
        if seed < seeds[side]
    ]
    jobs = {key: job(*key) for key in wanted}
    return stored.run_all(jobs, stored.Store(options.store), options.jobs, say)


def seeds_of(options):
    """How many seeds each side has."""
    return {"simulator": options.simulated or options.seeds, "kernel": options.seeds}


class Estimate(NamedTuple):
    """Mean of some runs and its standard error, which is infinite for one run."""

    mean: float
    error: float
    runs: int

    @classmethod
    def of(cls, values):
        """That of the runs with these values."""
        error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
        return cls(statistics.fmean(values), error, len(values))


def regime(ratio):
    """What a ratio means for DCTCP."""
    least, most = l4s.RATIOS
    return REGIMES[(ratio >= least) + (ratio > most)]


def half_of_difference(ours, kernels):
    """Half of the 95 % interval of the difference of two means; the degrees of freedom are Welch's, rounded down."""
    if min(ours.runs, kernels.runs) == 1:
        return math.inf
    variances = [each.error**2 for each in (ours, kernels)]
    if not sum(variances):
        return 0.0
    parts = [variance**2 / (each.runs - 1) for variance, each in zip(variances, (ours, kernels), strict=True)]
    return student(math.floor(sum(variances) ** 2 / sum(parts))) * math.sqrt(sum(variances))


def compared(cell, found, seeds):
    """A cell: means and standard errors of both sides, and the quantities beyond their bounds."""
    sides = {
        side: {
            name: Estimate.of([found[side, cell, seed + 1][name] for seed in range(seeds[side])]) for name in QUANTITIES
        }
        for side in SIDES
    }
    beyond = []
    for name, quantity in QUANTITIES.items():
        ours, kernels = (sides[side][name] for side in SIDES)
        is_noise = seeds["kernel"] > 1 and abs(ours.mean - kernels.mean) <= half_of_difference(ours, kernels)
        if not quantity.is_within(ours.mean, kernels.mean) and not is_noise:
            beyond.append(name)
    return {"round_trip_ms": cell[0], "rate_mbit": cell[1], **sides, "beyond": beyond}


def shown(name, estimate):
    """A mean in a table, a ratio with half of its interval."""
    quantity = QUANTITIES[name]
    if name != "ratio" or estimate.runs < 3:
        return quantity.shown(estimate.mean)
    return f"{quantity.shown(estimate.mean)} ± {quantity.shown(student(estimate.runs - 1) * estimate.error)}"


def line(row):
    """A cell's line of the table."""
    both = [" / ".join(shown(name, row[side][name]) for side in SIDES) for name in QUANTITIES]
    beyond = ", ".join(QUANTITIES[name].title.split(",")[0] for name in row["beyond"])
    return str(row["round_trip_ms"]), str(row["rate_mbit"]), *both, beyond


def sentences(grid):
    """How many cells are within each bound."""
    for name, quantity in QUANTITIES.items():
        held = sum(name not in row["beyond"] for row in grid)
        least = f" or {quantity.shown(quantity.least)}" if quantity.least else ""
        yield f"{quantity.title}: within {quantity.share:.0%}{least} in {held} of {len(grid)} cells"
    regimes = [tuple(regime(row[side]["ratio"].mean) for side in SIDES) for row in grid]
    held = sum(ours == kernels for ours, kernels in regimes)
    counted = ", ".join(f"{each} in {regimes.count((each, each))}" for each in REGIMES)
    yield f"DCTCP's regime: the same in {held} of {len(grid)} cells; it {counted}"


def chosen(of_all):
    """The type of an option that lists some of these numbers."""

    def parse(text):
        found = tuple(int(word) for word in text.split(",") if word.isdecimal())
        if not found or not set(found) <= set(of_all):
            raise argparse.ArgumentTypeError(f"{text}: must list some of {','.join(map(str, of_all))}")
        return found

    return parse


def main():
    """Compares the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round-trips", type=chosen(l4s.ROUND_TRIPS_MS), default=l4s.ROUND_TRIPS_MS)
    parser.add_argument("--rates", type=chosen(l4s.RATES_MBIT), default=l4s.RATES_MBIT)
    parser.add_argument("--seeds", type=report.within(int, 1, 100), default=3)
    parser.add_argument("--simulated", type=report.within(int, 2, 100), help="seeds of the simulator, if more")
    parser.add_argument("--seconds", type=report.within(int, 15, 600), default=60, help="length of each run")
    parser.add_argument("--jobs", type=report.within(int, 1, 64), default=len(os.sched_getaffinity(0)))
    parser.add_argument("--store", type=Path, default=ROOT / "runs/l4s", metavar="DIR", help="results of runs")
    options = report.options_of(parser)
    if options.seeds == 1 and options.json:
        parser.error("--json: needs two seeds, for standard errors")
    if options.simulated is not None and options.simulated < options.seeds:
        parser.error(f"--simulated: must be at least the {options.seeds} of --seeds")
    cells = [(round_trip, rate) for round_trip in options.round_trips for rate in options.rates]
    found = run_all(options, cells)
    seeds = seeds_of(options)
    grid = [compared(cell, found, seeds) for cell in cells]
    answer = {"seconds": options.seconds, "seeds": seeds, "cells": grid}
    report.write(
        options, answer, lambda markdown: report.table(COLUMNS, map(line, grid), sentences(grid), markdown=markdown)
    )
    return 1 if any(row["beyond"] for row in grid) else 0


if __name__ == "__main__":
    sys.exit(main())
