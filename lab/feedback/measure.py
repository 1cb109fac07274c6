#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures feedback between real gateways over links that nobody knows, in a Linux kernel in virtual time.

    cargo build --release -p linkweir-gateway
    python lab/feedback/measure.py [--only a|b|c|slots] [--seeds N] [--seconds N] [--into docs/records/gateway.md]

links.py makes the links. Each is run with voice alone and with its load. Runs are stored by what they are made of, so
an interrupted measurement continues where it was. Exit code 0: each run holds its aims, or 1. Links with slots, which
are run only if they are named, are also compared with a model of cake-autorate's rule.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import links
import stored_runs

from linkweir import _native
from linkweir.lab import LaboratoryError, guest, kernel, namespaces
from linkweir.lab.guest import Guest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
SLOTS = "slots"
MARKS = {
    name: (f"<!-- feedback over {name} -->", f"<!-- end of feedback over {name} -->") for name in ("gateways", SLOTS)
}
"""Of the table of links with slots, and of that of all others."""


@dataclass(frozen=True)
class Case:
    """A link and a seed."""

    kind: str
    seed: int


@dataclass(frozen=True)
class Figures:
    """What a case gives; `autorate_ms` is how much later voice comes after changes under cake-autorate's rule."""

    used: float
    later_ms: links.Later
    dropped_pkts: int
    period_s: float | None
    autorate_ms: float | None = None

    @property
    def most_after_ms(self) -> float:
        """The aim after changes."""
        return float("inf") if self.autorate_ms is None else self.autorate_ms / 2

    def holds(self, kind: links.Kind) -> bool:
        """Whether the aims are reached."""
        later = self.later_ms
        short = later.all <= kind.most_later_ms and later.other <= kind.most_other_ms
        return self.used >= kind.least_used and short and later.after <= self.most_after_ms


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

    def bold(text: str, holds: bool) -> str:
        return text if holds else f"**{text}**"

    heads = ["link", "seed", "used", "voice later, ms", "after changes", "at other times", "dropped by the link"]
    heads += ["period learned", *(["after, autorate"] if found[0][0].kind == SLOTS else [])]
    rows = [heads, ["---"] * len(heads)]
    for case, one in found:
        kind, later = links.KINDS[case.kind], one.later_ms
        period = "none" if one.period_s is None else f"{one.period_s:g} s"
        autorate = [] if one.autorate_ms is None else [f"{one.autorate_ms:.1f}"]
        rows.append(
            [
                case.kind,
                str(case.seed),
                bold(f"{100 * one.used:.1f} %", one.used >= kind.least_used),
                bold(f"{later.all:.1f}", later.all <= kind.most_later_ms),
                bold(f"{later.after:.1f}", later.after <= one.most_after_ms),
                bold(f"{later.other:.1f}", later.other <= kind.most_other_ms),
                str(one.dropped_pkts),
                period,
                *autorate,
            ]
        )
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main() -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=list(links.KINDS), help="this kind of link; by default a, b and c")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="links of each kind; by default 2")
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="N", help="of each run; by default 600")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time; by default 1")
    parser.add_argument("--store", type=Path, default=stored_runs.STORE, metavar="DIR", help="results of runs")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked table of this page")
    options = parser.parse_args()
    if options.into and options.only not in (None, SLOTS):
        parser.error(f"--into replaces a whole table: it cannot be given with --only {options.only}")
    marks = MARKS[SLOTS if options.only == SLOTS else "gateways"]
    if options.into and not all(mark in options.into.read_text() for mark in marks):
        parser.error(f"--into {options.into}: has no place for the table; write {' and '.join(marks)} there")
    gateway = namespaces.find_gateway()
    if gateway is None:
        print(f"missing here: {namespaces.NO_GATEWAY}", file=sys.stderr)
        return 2
    kinds = [options.only] if options.only else [name for name in links.KINDS if name != SLOTS]
    cases = [Case(kind, seed) for kind in kinds for seed in range(1, options.seeds + 1)]
    try:
        model = links.of_autorate(options.seeds) if options.only == SLOTS else None
        made = guest.prepare(kernel.build("fast"), gateway)
        with ProcessPoolExecutor(options.jobs) as pool:
            work = partial(measured, made=made, seconds=options.seconds, store=options.store)
            found = list(zip(cases, pool.map(work, cases), strict=True))
        if model is not None:
            found = [(case, replace(one, autorate_ms=ms)) for (case, one), ms in zip(found, model, strict=True)]
    except LaboratoryError as error:
        print(error, file=sys.stderr)
        return 2
    made_table = table(found)
    print(made_table, end="")
    if options.into:
        before, rest = options.into.read_text().split(marks[0])
        _, after = rest.split(marks[1])
        today = time.strftime("%Y-%m-%d", time.gmtime())
        words = [*(["--only slots"] if options.only else []), f"--seeds {options.seeds}"]
        words += [*([f"--seconds {options.seconds}"] if options.seconds != SECONDS else []), f"--into {options.into}"]
        origin = f"`python lab/feedback/measure.py {' '.join(words)}`, {today}, commit {_native.commit}."
        options.into.write_text(f"{before}{marks[0]}\n\n{origin}\n\n{made_table}\n{marks[1]}{after}")
    return int(not all(one.holds(links.KINDS[case.kind]) for case, one in found))


if __name__ == "__main__":
    sys.exit(main())
