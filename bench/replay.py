#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How closely replays of a gateway's recordings follow what was recorded, over random cases.

    cargo build --release -p linkweir-gateway --example recording
    bench/replay.py [--cases N] [--seconds N] [--packets] [--into docs/records/replay.md]

A case is a policy, a kind of traffic and a load; link, classes, sizes and rates are drawn from its number. The
gateway's queues and its flight recorder run in virtual time; `linkweir replay` simulates what they wrote, with the
recorded policy and capacity; the bytes of each class are compared second by second.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import linkweir
from linkweir import _native
from linkweir.deploy.gateway import toml_table
from linkweir.replays.recording import Recording
from linkweir.replays.replay import prepare

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "target/release/examples/recording"
POLICIES = ("pss", "pds", "drr", "strict")
KINDS = ("constant", "poisson", "bursty")
LOADS = ("overloaded", "not overloaded")
BOUND = 0.01
LISTED_PKTS = 25_000
"""So many packets in a second have their times in a recording."""
MARKS = ("<!-- replays -->", "<!-- end of replays -->")


@dataclass(frozen=True)
class Case:
    """What is recorded and replayed."""

    policy: str
    kind: str
    load: str
    number: int

    def draw(self) -> random.Random:
        """Its random numbers."""
        return random.Random(f"{self.policy}-{self.kind}-{self.load}-{self.number}")


@dataclass(frozen=True)
class Class:
    """Bytes of a class in each second, as recorded and as replayed, and the sizes of its packets."""

    name: str
    recorded: list[int]
    replayed: list[int]
    largest_bytes: int

    @property
    def differences(self) -> list[float]:
        """Of the seconds in which something was sent, as part of what was recorded."""
        pairs = zip(self.recorded, self.replayed, strict=True)
        return [abs(now - before) / before for before, now in pairs if before]

    @property
    def beyond_a_packet(self) -> int:
        """Seconds outside the bound by more than the bytes of one packet, which may leave a moment sooner or later."""
        pairs = zip(self.recorded, self.replayed, strict=True)
        return sum(abs(now - before) > max(BOUND * before, self.largest_bytes) for before, now in pairs if before)


def configuration(case: Case, seconds: int) -> tuple[str, list[dict[str, Any]]]:
    """A gateway's file, and the sources of its classes."""
    draw = case.draw()
    rate_kbit = round(10 ** draw.uniform(3.3, 4.6) / 100) * 100
    steps = [["0s", f"{rate_kbit}kbit"]]
    if draw.random() < 0.5:
        steps.append([f"{draw.uniform(3, seconds - 3):.3f}s", f"{round(rate_kbit * draw.uniform(0.5, 1.5))}kbit"])
    least_kbit = min(int(rate.removesuffix("kbit")) for _, rate in steps)
    count = draw.randint(3, 4)
    overloaded = case.load == "overloaded"
    shares = [draw.uniform(0.05, 0.2), *(draw.uniform(0.3, 0.6) for _ in range(count - 1))]
    scale = draw.uniform(1.1, 1.6) if overloaded else draw.uniform(0.5, 0.9)
    of_kbit = rate_kbit if overloaded else least_kbit
    sources, classes = [], []
    for at, share in enumerate(shares):
        sizes = draw.choice([[200], [1500], [1500, 1500, 700], [1500, 1500, 1500, 576, 64], [draw.randint(100, 1500)]])
        bps = 1000 * of_kbit * scale * share / sum(shares)
        sources.append({"class": at, "sizes": sizes, "bps": bps, "tcp": at == count - 1})
        entry: dict[str, Any] = {"name": f"c{at}", "limit": f"{draw.randint(30, 300)}p"}
        entry |= _parameters(case.policy, at, least_kbit, draw)
        if at < count - 1:
            entry["match"] = [{"dscp": at + 1}]
        classes.append(entry)
    own = {"device": "lw0", "listen": "192.0.2.1:51820", "mode": "cleartext"}
    text = toml_table("[gateway]", own)
    text += toml_table("[link]", {"rate": {"steps": steps}, "nominal": f"{rate_kbit}kbit"})
    text += toml_table("[scheduler]", {"policy": case.policy})
    text += "".join(toml_table("[[class]]", entry) for entry in classes)
    peer = {"name": "ship", "endpoint": "192.0.2.2:51820", "allowed_ips": "10.77.0.2/32"}
    return text + toml_table("[[peer]]", peer), sources


def _parameters(policy: str, at: int, least_kbit: int, draw: random.Random) -> dict[str, Any]:
    if policy == "pss" and at == 1:
        reserved = {"rate": f"{round(least_kbit * draw.uniform(0.1, 0.4))}kbit", "memory": f"{draw.randint(1, 15)}s"}
        return {"level": 10, "low_level": 95, **reserved}
    if policy == "pss":
        return {"level": 10 * at + 5 * (at == 0)}
    if policy == "pds":
        return {"delay": draw.randint(1, 8), "loss": draw.randint(1, 8)}
    if policy == "drr":
        return {"level": min(at, 1), **({"quantum": f"{draw.randrange(1500, 6000, 100)}B"} if at else {})}
    return {"level": at}


def arrivals(case: Case, sources: Sequence[dict[str, Any]], seconds: int) -> str:
    """The packets of all sources, a line each, in order of time."""
    made = np.random.default_rng(case.draw().randrange(2**32))
    parts = []
    for source in sources:
        mean_bytes = np.mean(source["sizes"])
        gap_s = 8 * mean_bytes / source["bps"]
        count = int(1.5 * seconds / gap_s) + 100
        sizes = made.choice(source["sizes"], count)
        if case.kind == "constant":
            gaps = np.full(count, gap_s)
        elif case.kind == "poisson":
            gaps = made.exponential(gap_s, count)
        else:  # bursts of 20 packets on average, sent at 100 Mbit/s
            pauses = made.random(count) < 1 / 20
            within_s = 8 * sizes / 100e6
            gaps = within_s + pauses * made.exponential(max(20 * (gap_s - within_s.mean()), 0.0), count)
        at_ns = ((np.cumsum(gaps) - gaps[0] * made.random()) * 1e9).astype(np.int64)
        of = np.full(count, source["class"])
        rows = np.column_stack([at_ns, of, sizes, np.full(count, int(source["tcp"]))])
        parts.append(rows[(at_ns >= 0) & (at_ns < seconds * 10**9)])
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return "".join(f"{at},{of},{size},{tcp}\n" for at, of, size, tcp in rows)


def replayed(case: Case, seconds: int, what: str) -> tuple[Case, list[Class], int, int]:
    """The classes of a case, the bytes of its recording, and its packets."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, sources = configuration(case, seconds)
        (folder / "ground.toml").write_text(text)
        packets = arrivals(case, sources, seconds)
        (folder / "arrivals.csv").write_text(packets)
        file = folder / "case.lwrec"
        command = [PROGRAM, what, str(seconds), folder / "ground.toml", folder / "arrivals.csv", file]
        subprocess.run(command, check=True)
        part = Recording.load([file]).part()
        made = prepare(part, folder)
        rows = linkweir.run(made.scenario).series.to_pylist()
        sums = part.sums(1.0)
        classes = []
        for at, of in enumerate(part.classes):
            now = [row["sent_bytes"] for row in rows if row["class"] == of]
            before = [row[at].sent_bytes for row in sums]
            classes.append(Class(of, before[: seconds - 1], now[: seconds - 1], max(sources[at]["sizes"]) + 28))
        return case, classes, file.stat().st_size, packets.count("\n")


def table(found: Sequence[tuple[Case, list[Class], int, int]], seconds: int) -> str:
    """A Markdown table with a line per policy, kind of traffic and load."""
    head = ["policy", "traffic", "load", "cases", "seconds within 1 %", "outside by more than a packet", "worst"]
    rows = [head, ["---"] * len(head)]
    for policy, kind, load in product(POLICIES, KINDS, LOADS):
        mine = [classes for case, classes, *_ in found if (case.policy, case.kind, case.load) == (policy, kind, load)]
        if mine:
            rows.append([policy, kind, load, str(len(mine)), *_summed([one for classes in mine for one in classes])])
    rows.append(["all", "", "", str(len(found)), *_summed([one for _, classes, *_ in found for one in classes])])
    listed = [classes for _, classes, _, pkts in found if pkts <= LISTED_PKTS * seconds]
    within, beyond, worst = _summed([one for classes in listed for one in classes])
    recorded = sum(size for *_, size, _ in found)
    pkts = sum(pkts for *_, pkts in found)
    text = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return (
        f"{text}\nOf {len(found)} cases {len(listed)} have at most {LISTED_PKTS} packets a second: {within} seconds "
        f"are within 1 %, {beyond} are outside by more than a packet, the worst differs by {worst}. The recordings "
        f"have {recorded / pkts:.2f} bytes a packet.\n"
    )


def _summed(classes: Sequence[Class]) -> list[str]:
    differences = [difference for one in classes for difference in one.differences]
    within = sum(difference <= BOUND for difference in differences)
    beyond = sum(one.beyond_a_packet for one in classes)
    return [f"{within} of {len(differences)}", str(beyond), f"{100 * max(differences, default=0):.2f} %"]


def main() -> int:
    """Runs and shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=3, metavar="N", help="of each policy, kind and load; by default 3")
    parser.add_argument("--seconds", type=int, default=20, metavar="N", help="of each case; by default 20")
    parser.add_argument("--packets", action="store_true", help="record each packet, not counts")
    parser.add_argument("--only", action="append", default=[], metavar="POLICY", help="only cases of this policy")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cases at a time; by default 2")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked table of this page")
    options = parser.parse_args()
    every = product(options.only or POLICIES, KINDS, LOADS, range(options.cases))
    work = partial(replayed, seconds=options.seconds, what="packets" if options.packets else "counts")
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(work, [Case(*one) for one in every]))
    made = table(found, options.seconds)
    print(made, end="")
    for case, classes, *_ in found:
        for one in classes:
            if one.beyond_a_packet:
                print(case, one.name, f"{100 * max(one.differences):.2f} %", file=sys.stderr)
    if options.into:
        before, rest = options.into.read_text().split(MARKS[0])
        _, after = rest.split(MARKS[1])
        today = time.strftime("%Y-%m-%d", time.gmtime())
        origin = f"Measured on {today} by `bench/replay.py --into {options.into}`: commit {_native.commit}."
        options.into.write_text(f"{before}{MARKS[0]}\n\n{origin}\n\n{made}\n{MARKS[1]}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
