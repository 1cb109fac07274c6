#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the simulator's TCP with the kernel's, in the laboratory, over the scenarios of cases.py.

    python lab/transport/transport.py [--only TEXT] [--seeds N] [--into docs/records/transport.md]

Each scenario runs with several seeds on both sides; means over the seeds are compared, for the flows of each class.
Runs are stored, by scenario and by what ran them, so an interrupted comparison continues where it was. Exit code 0:
every value is within its bound, or 3.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import stored as stored_runs
from cases import Case, cases
from stored import OUTSIDE, Store

import linkweir
from linkweir import _native
from linkweir.lab import LaboratoryError
from linkweir.lab.experiment import Laboratory

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("simulator", "laboratory")
SEEDS = 10
MEDIAN_GOODPUT = 0.02

NOISE = "at most two standard errors"
"""What the column of reasons says of a difference that may be chance."""

Values = dict[str, float]


@dataclass(frozen=True)
class Quantity:
    """What is compared: a column of the table `flows`, over the flows of a class.

    Attributes:
        title: in tables.
        column: of the table.
        share: of the laboratory's value by which the simulator's may differ.
        least: a difference that is always allowed.
        digits: after the point, in tables.
        unit: by which values are divided in tables.
    """

    title: str
    column: str
    share: float
    least: float = 0.0
    digits: int = 1
    unit: float = 1.0
    mean: bool = False
    """Over flows, not their sum."""

    def of(self, rows: Sequence[Mapping[str, Any]]) -> float:
        """Its value for some flows."""
        values = [float(row[self.column]) for row in rows if row.get(self.column) is not None]
        whole = sum(values)
        return whole / max(len(values), 1) if self.mean else whole

    def within(self, ours: float, kernels: float) -> bool:
        """Whether a simulated mean is close enough to the kernel's."""
        return abs(ours - kernels) <= max(self.share * kernels, self.least)


QUANTITIES = (
    Quantity("goodput, Mbit/s", "goodput_bps", 0.05, digits=3, unit=1e6),
    Quantity("retransmitted", "retransmitted_pkts", 0.15, 5),
    Quantity("timeouts", "timeouts", 0.15, 5),
    Quantity("received twice", "spurious_pkts", 0.15, 5),
    Quantity("marked", "marked_pkts", 0.15, 5),
    Quantity("mean window", "cwnd_mean_pkts", 0.1, mean=True),
)


def measured(result: linkweir.Result) -> dict[str, Values]:
    """The quantities of each class with TCP flows; classes named NAME-1, NAME-2, ... are taken together."""
    by_class: dict[str, list[Mapping[str, Any]]] = {}
    for row in (*result.rows("flows"), *result.rows("classes")):
        if row.get("kind", "tcp") == "tcp":
            by_class.setdefault(row["class"].split("-")[0], []).append(row)
    tcp = {name: rows for name, rows in by_class.items() if any("kind" in row for row in rows)}
    return {name: {q.column: q.of(rows) for q in QUANTITIES} for name, rows in tcp.items()}


# --- Running --------------------------------------------------------------------------------------------------------


def depends(scenario: Mapping[str, Any], identity: str) -> list[Any]:
    """What the result of a run depends on: all of the scenario but its name, its trace, and what runs it."""
    keys = {key: value for key, value in scenario.items() if key != "name"}
    trace = scenario["link"].get("trace")
    inputs = hashlib.sha256((ROOT / trace).read_bytes()).hexdigest() if trace is not None else ""
    return [keys, identity, inputs]


def ready(scenario: Mapping[str, Any]) -> linkweir.Scenario:
    """A scenario, whose trace is relative to the source tree."""
    return linkweir.Scenario.from_dict(scenario, path=ROOT / "transport.toml")


Job = tuple[str, Case, int]
Answers = dict[Job, dict[str, Values]]


def run_all(
    wanted: Iterable[Job], laboratory: Laboratory, store: Store, jobs: int, say: Callable[[str], None]
) -> Answers:
    """Runs what is not stored; the simulator first, as it is faster."""
    identities = {"simulator": f"simulator {_native.sources}", "laboratory": f"laboratory {laboratory.identity}"}

    def stored(side: str, case: Case, seed: int) -> stored_runs.Job:
        scenario = case.scenario(seed)

        def run(processor: int) -> dict[str, Values]:
            whole = ready(scenario)
            if side == "simulator":
                return measured(linkweir.run(whole))
            return measured(laboratory.run(whole, processor=processor))

        name = f"{case.name}, seed {seed}" if side == "laboratory" else ""
        return stored_runs.Job(name, depends(scenario, identities[side]), run)

    ordered = sorted(wanted, key=lambda job: SIDES.index(job[0]))
    return stored_runs.run_all({job: stored(*job) for job in ordered}, store, jobs, say)


# --- Comparing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A scenario and class, with the means over the seeds and their standard errors on both sides."""

    name: str
    means: dict[str, dict[str, float]]
    errors: dict[str, dict[str, float]]

    @property
    def outside(self) -> list[Quantity]:
        """Quantities that are not within their bounds."""
        return [q for q in QUANTITIES if not q.within(*(self.means[side][q.column] for side in SIDES))]

    @property
    def noise(self) -> str:
        """Says so if all that is outside its bound differs by no more than two standard errors of the means."""
        small = (
            abs(self.means[SIDES[0]][q.column] - self.means[SIDES[1]][q.column])
            <= 2 * sum(self.errors[side][q.column] ** 2 for side in SIDES) ** 0.5
            for q in self.outside
        )
        return NOISE if self.outside and all(small) else ""

    @property
    def goodput_ratio(self) -> float:
        """The simulator's goodput in the kernel's."""
        ours, kernels = (self.means[side]["goodput_bps"] for side in SIDES)
        return ours / kernels if kernels else float("inf")


def compared(chosen: Sequence[Case], seeds: Sequence[int], answers: Answers) -> list[Line]:
    """The lines of all scenarios."""
    lines = []
    for case in chosen:
        groups = list(answers[SIDES[0], case, seeds[0]])
        for group in groups:
            values = {
                side: {q.column: [answers[side, case, seed][group][q.column] for seed in seeds] for q in QUANTITIES}
                for side in SIDES
            }
            means = {side: {key: statistics.fmean(all_) for key, all_ in of.items()} for side, of in values.items()}
            errors = {
                side: {
                    key: statistics.stdev(all_) / len(all_) ** 0.5 if len(all_) > 1 else 0.0 for key, all_ in of.items()
                }
                for side, of in values.items()
            }
            lines.append(Line(case.name + (f": {group}" if len(groups) > 1 else ""), means, errors))
    return lines


def table(lines: Sequence[Line], reasons: Mapping[str, str], *, markdown: bool) -> str:
    """Lines with simulator / laboratory, those outside their bound marked, and the summary."""
    head = ["scenario", *(q.title for q in QUANTITIES), "outside", *(["reason"] if markdown else [])]
    rows = []
    for line in lines:
        cells = []
        for q in QUANTITIES:
            ours, kernels = (f"{line.means[side][q.column] / q.unit:.{q.digits}f}" for side in SIDES)
            mark = ("**", "**") if markdown and q in line.outside else ("", "")
            cells.append(f"{mark[0]}{ours} / {kernels}{mark[1]}")
        outside = ", ".join(q.title.split(",")[0] for q in line.outside)
        rows.append([line.name, *cells, outside, *([_reason(line, reasons)] if markdown else [])])
    if markdown:
        text = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
        text.insert(1, "|" + "---|" * len(head))
    else:
        widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
        text = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return "\n".join([*text, "", *summary(lines)]) + "\n"


def _reason(line: Line, reasons: Mapping[str, str]) -> str:
    return reasons.get(line.name, "") or line.noise if line.outside else ""


def summary(lines: Sequence[Line]) -> list[str]:
    """How many are within their bounds, in sentences."""
    sentences = []
    for q in QUANTITIES:
        inside = sum(q not in line.outside for line in lines)
        bound = f"{q.share:.0%}" + (f" or {q.least:g}" if q.least else "")
        sentences.append(f"{q.title.split(',')[0]} within {bound}: {inside} of {len(lines)}")
    middle = statistics.median(abs(line.goodput_ratio - 1) for line in lines)
    sentences.append(f"median difference in goodput: {middle:.1%} (at most {MEDIAN_GOODPUT:.0%})")
    return ["; ".join(sentences) + "."]


def reasons_of(page: str) -> dict[str, str]:
    """The reasons that a page gives for scenarios outside their bounds, so that they survive a new record."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == len(QUANTITIES) + 3:
            found[cells[0]] = "" if cells[-1] == NOISE else cells[-1]
    return found


MARKS = ("<!-- agreement -->", "<!-- end of agreement -->")


def write_into(path: Path, lines: Sequence[Line], origin: str) -> None:
    """Replaces the marked table of a page."""
    page = path.read_text()
    before, rest = page.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    made = table(lines, reasons_of(page), markdown=True)
    path.write_text(f"{before}{MARKS[0]}\n\n{origin}\n\n{made}\n{MARKS[1]}{after}")


def main() -> int:
    """Runs, compares and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="scenarios whose names contain it; may be repeated"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"1 .. N; by default {SEEDS}")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="runs at a time")
    parser.add_argument("--store", type=Path, default=ROOT / "runs/transport", metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked table of this page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes means and standard errors")
    parser.add_argument("--list", action="store_true", help="prints the scenarios' names and ends")
    options = parser.parse_args()
    if options.into and options.only:
        parser.error("--into replaces the whole table: it cannot be given with --only")
    chosen = [case for case in cases() if not options.only or any(text in case.name for text in options.only)]
    if options.list or not chosen:
        print("\n".join(case.name for case in chosen or cases()))
        return 0 if options.list else 2
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    seeds = range(1, options.seeds + 1)
    try:
        laboratory = Laboratory(say=say, stagger_s=0.0)
        wanted = [(side, case, seed) for case in chosen for seed in seeds for side in SIDES]
        answers = run_all(wanted, laboratory, Store(options.store), options.jobs, say)
    except LaboratoryError as error:
        say(str(error))
        return 2
    lines = compared(chosen, seeds, answers)
    print(table(lines, {}, markdown=False), end="")
    if options.json:
        made = [{"name": line.name, "means": line.means, "errors": line.errors} for line in lines]
        options.json.write_text(json.dumps(made, indent=1) + "\n")
    if options.into:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        what = f"{len(chosen)} scenarios, {len(seeds)} seeds"
        origin = f"Measured on {today} by `make transport`: commit {_native.commit}, {what}."
        write_into(options.into, lines, origin)
    return OUTSIDE if any(line.outside for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
