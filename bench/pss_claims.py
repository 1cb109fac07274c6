# SPDX-License-Identifier: BSD-3-Clause
"""PSS where its paper says something and measures nothing: WFQ, the memory from the capacity's deviation, NGSO.

    .venv/bin/python bench/pss_claims.py                               # scenarios/traces/starlink.csv
    .venv/bin/python bench/pss_claims.py --trace autobahn.csv --rate 15 --rate 30 --rate 45 --ef 5

Finzi, Perrier, Frances and Lochin 2023, sections 1, 2.4, 4.2 and 5. EF is one constant-rate flow, strictly first; AF
and CS0 always have packets. The results are on docs/records/claims.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import linkweir
from linkweir.sizing import shortage
from linkweir.sizing.shortage import CapacitySteps

HERE = Path(__file__).parent
STARLINK = HERE.parent / "scenarios/traces/starlink.csv"
WFQ = HERE / "wfq.py"
PACKET_BYTES = 1500
NGSO_PACKET_BYTES = 9000
"""Six times as fast; only ten packets in a row matter, which are 5 ms of 150 Mbit/s."""


def deviation_memory_s(steps: CapacitySteps) -> float:
    """The longest time for which the capacity stays below its mean less one standard deviation, seconds."""
    ends_s = [*steps.starts_s[1:], steps.end_s]
    mean = steps.mean_bps()
    squares = [(e - s) * (r - mean) ** 2 for s, e, r in zip(steps.starts_s, ends_s, steps.rates, strict=True)]
    return steps.shortage_s(mean - math.sqrt(sum(squares) / (steps.end_s - steps.starts_s[0])), 0.0)


def classes(policy: str, af_bps: float, memory_s: float, share: float, packet_bytes: int = PACKET_BYTES) -> str:
    """The tables scheduler and class: AF with a reservation under pss, with a share of EF's rest otherwise."""
    if policy == "pss":
        af = f'level = 1\nlow_level = 3\nrate = "{af_bps:.0f}bit"\nmemory = "{memory_s:.3f}s"\nmtu = "{packet_bytes}B"'
        keys = ["level = 0", af, "level = 2"]
    elif policy == "drr":
        parts = [f'level = 1\nquantum = "{10 * packet_bytes * part:.0f}B"' for part in (share, 1 - share)]
        keys = ["level = 0", *parts]
    else:
        keys = ["weight = 0", *(f"weight = {1000 * part:.0f}" for part in (share, 1 - share))]
    name = f'"{policy}"' if policy != "wfq" else f'{{ python = "{WFQ}:SelfClockedFairQueueing" }}'
    limits = ('limit = "30000p"\n', "", "")
    tables = zip(("ef", "af", "cs0"), limits, keys, strict=True)
    return f"[scheduler]\npolicy = {name}\n" + "".join(f'[[class]]\nname = "{n}"\n{li}{k}\n' for n, li, k in tables)


def rates(link: str, duration_s: float, ef_bps: float, scheduler: str, packet_bytes: int = PACKET_BYTES) -> list[float]:
    """Rates of EF, AF and CS0 in a run, bit/s."""
    flows = f'[[flow]]\nclass = "ef"\nkind = "cbr"\nrate = "{ef_bps:.0f}bit"\npacket = "{packet_bytes}B"\n' + "".join(
        f'[[flow]]\nclass = "{name}"\nkind = "greedy"\npacket = "{packet_bytes}B"\n' for name in ("af", "cs0")
    )
    text = f'duration = "{duration_s:g}s"\ninterval = "{duration_s:g}s"\n[link]\n{link}\n{scheduler}{flows}'
    return [row["rate_bps"] for row in linkweir.run(linkweir.Scenario.parse(text)).rows("classes")]


def fair_queueing(duration_s: float = 20) -> None:
    """AF under the three schedulers on 20 Mbit/s, EF expected at 5 Mbit/s: Figure 6 with WFQ."""
    print("| EF, Mbit/s | AF under pss, Mbit/s | AF under drr, Mbit/s | AF under wfq, Mbit/s |\n|---|---|---|---|")
    for ef_bps in (2e6, 5e6, 10e6, 15e6):
        got = [
            rates('rate = "20Mbit"', duration_s, ef_bps, classes(policy, 5e6, 0.1, 1 / 3))[1] / 1e6
            for policy in ("pss", "drr", "wfq")
        ]
        print(f"| {ef_bps / 1e6:g} | {got[0]:.2f} | {got[1]:.2f} | {got[2]:.2f} |", flush=True)


def ngso(trace: Path, columns: str, wanted: list[float], ef_bps: float) -> None:
    """Fractions of AF's rate over two rounds of a trace, in the second round, by memory; and AF under other EF."""
    steps = shortage.read(trace)
    mean_bps, end_s = steps.mean_bps(), steps.end_s
    link = f'trace = "{trace}"\nnominal = "{mean_bps:.0f}bit"{columns}'

    def second_round(ef: float, scheduler: str) -> list[float]:
        one, two = (rates(link, n * end_s, ef, scheduler, NGSO_PACKET_BYTES) for n in (1, 2))
        return [2 * b - a for a, b in zip(one, two, strict=True)]

    print(f"\nmean {mean_bps / 1e6:.2f} Mbit/s\n\n| AF, Mbit/s | memory from | memory, s | part of AF's rate |")
    print("|---|---|---|---|")
    for af_bps in wanted:
        for what, memory_s in (
            ("none", 0.0),
            ("mean less deviation", deviation_memory_s(steps)),
            ("longest shortage", steps.shortage_s(af_bps, ef_bps)),
            ("half the need", steps.needed_s(af_bps, ef_bps) / 2),
            ("linkweir plan", steps.needed_s(af_bps, ef_bps)),
        ):
            af = second_round(ef_bps, classes("pss", af_bps, memory_s, 0.5, NGSO_PACKET_BYTES))[1]
            print(f"| {af_bps / 1e6:g} | {what} | {memory_s:.3f} | {af / af_bps:.4f} |", flush=True)
    af_bps = wanted[len(wanted) // 2]
    memory_s = steps.needed_s(af_bps, 2 * ef_bps)
    share = af_bps / (mean_bps - ef_bps)
    print("\n| EF, Mbit/s | AF under pss, Mbit/s | AF under drr, Mbit/s |\n|---|---|---|")
    for ef in (ef_bps / 4, ef_bps, 2 * ef_bps):
        pss, drr = (
            second_round(ef, classes(policy, af_bps, memory_s, share, NGSO_PACKET_BYTES))[1]
            for policy in ("pss", "drr")
        )
        print(f"| {ef / 1e6:g} | {pss / 1e6:.2f} | {drr / 1e6:.2f} |", flush=True)


def main() -> None:
    """Prints the tables of the page."""
    parser = argparse.ArgumentParser(description="Print the tables of docs/records/claims.md.")
    parser.add_argument("--trace", type=Path, default=STARLINK)
    parser.add_argument("--columns", default="", help="a line of [link] for the trace, such as columns = {...}")
    parser.add_argument("--rate", type=float, action="append", help="of AF, Mbit/s")
    parser.add_argument("--ef", type=float, default=20.0, help="Mbit/s")
    options = parser.parse_args()
    fair_queueing()
    columns = f"\n{options.columns}" if options.columns else ""
    ngso(options.trace.resolve(), columns, [1e6 * r for r in options.rate or [30, 60, 90]], 1e6 * options.ef)


if __name__ == "__main__":
    main()
