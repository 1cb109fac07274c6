#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures feedback between real gateways over links that nobody knows, in a Linux kernel in virtual time.

    cargo build --release -p linkweir-gateway
    python lab/feedback/measure.py [--only a|b|c] [--seeds N] [--seconds N] [--into docs/records/gateway.md]

links.py makes the links. Each is run with voice alone and with its load. Runs are stored by what they are made of, so
an interrupted measurement continues where it was. Exit code 0: each run holds its aims, or 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import links
import stored_runs

from linkweir import _native
from linkweir.lab import LaboratoryError, guest, kernel, namespaces
from linkweir.lab.guest import Guest

ROOT = Path(__file__).resolve().parents[2]
MARKS = ("<!-- feedback over gateways -->", "<!-- end of feedback over gateways -->")


@dataclass(frozen=True)
class Case:
    """A link and a seed."""

    kind: str
    seed: int


@dataclass(frozen=True)
class Figures:
    """What a case gives."""

    used: float
    later_ms: float
    dropped_pkts: int
    period_s: float | None

    def holds(self, kind: links.Kind) -> bool:
        """Whether the aims are reached."""
        return self.used >= kind.least_used and self.later_ms <= kind.most_later_ms


def measured(case: Case, made: Guest, seconds: int, store: Path) -> Figures:
    """The figures of a case."""
    kind = links.KINDS[case.kind]
    empty = stored_runs.run(made, links.without_load(kind), case.seed, seconds, store)
    loaded = stored_runs.run(made, kind, case.seed, seconds, store)
    period_ns = loaded.feedback["period_ns"]
    period_s = period_ns / 1e9 if isinstance(period_ns, int) else None
    return Figures(loaded.used, links.later_ms(loaded, empty), loaded.dropped_pkts, period_s)


def table(found: Sequence[tuple[Case, Figures]]) -> str:
    """A Markdown table; values that miss their aim are bold."""
    rows = [["link", "seed", "used", "voice later, ms", "dropped by the link", "period learned"], ["---"] * 6]
    for case, one in found:
        kind = links.KINDS[case.kind]
        used = f"{100 * one.used:.1f} %" if one.used >= kind.least_used else f"**{100 * one.used:.1f} %**"
        later = f"{one.later_ms:.1f}" if one.later_ms <= kind.most_later_ms else f"**{one.later_ms:.1f}**"
        period = "none" if one.period_s is None else f"{one.period_s:g} s"
        rows.append([case.kind, str(case.seed), used, later, str(one.dropped_pkts), period])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main() -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(links.KINDS), help="this kind of link; repeat")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="links of each kind; by default 2")
    parser.add_argument("--seconds", type=int, default=600, metavar="N", help="of each run; by default 600")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time; by default 1")
    parser.add_argument("--store", type=Path, default=stored_runs.STORE, metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked table of this page")
    options = parser.parse_args()
    if options.into and options.only:
        parser.error("--into replaces the whole table: it cannot be given with --only")
    if options.into and not all(mark in options.into.read_text() for mark in MARKS):
        parser.error(f"--into {options.into}: has no place for the table; write {' and '.join(MARKS)} there")
    gateway = namespaces.find_gateway()
    if gateway is None:
        print(f"missing here: {namespaces.NO_GATEWAY}", file=sys.stderr)
        return 2
    cases = [Case(kind, seed) for kind in options.only or links.KINDS for seed in range(1, options.seeds + 1)]
    try:
        made = guest.prepare(kernel.build("fast"), gateway)
        with ProcessPoolExecutor(options.jobs) as pool:
            work = partial(measured, made=made, seconds=options.seconds, store=options.store)
            found = list(zip(cases, pool.map(work, cases), strict=True))
    except LaboratoryError as error:
        print(error, file=sys.stderr)
        return 2
    made_table = table(found)
    print(made_table, end="")
    if options.into:
        before, rest = options.into.read_text().split(MARKS[0])
        _, after = rest.split(MARKS[1])
        today = time.strftime("%Y-%m-%d", time.gmtime())
        words = [f"--seeds {options.seeds}", f"--into {options.into}"]
        origin = f"`python lab/feedback/measure.py {' '.join(words)}`, {today}, commit {_native.commit}."
        options.into.write_text(f"{before}{MARKS[0]}\n\n{origin}\n\n{made_table}\n{MARKS[1]}{after}")
    return int(not all(one.holds(links.KINDS[case.kind]) for case, one in found))


if __name__ == "__main__":
    sys.exit(main())
