# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the worst delay of a class in the simulator, within the arrival curves that its bound assumes.

Hill climbing: the first candidate lets every class send its whole burst at once, just after a packet of a less urgent
class began, which is the worst case of strict priority. Each further candidate moves a start, changes a packet size,
inserts a silence before which a class sends little, or removes one. Candidates that find a longer delay are kept.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from linkweir.bounds.answer import Bound
from linkweir.bounds.curve import Curve
from linkweir.scenario import Scenario
from linkweir.simulate import run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BEGIN_NS = 10_000_000
MOST_PKTS = 200


@dataclass(frozen=True)
class Sender:
    """How a class sends: from when on, packets of what size, and up to when only one packet each so many ns.

    The first packet may have a size of its own: it sets the deficit that drr keeps for the others.
    """

    start_ns: int
    size_bytes: int
    light_ns: int = 0
    gap_ns: int = 10_000_000
    first_bytes: int | None = None


@dataclass(frozen=True)
class Attack:
    """The worst delay found for a class, with what the senders do."""

    name: str
    found_s: float
    bound_s: float
    senders: Mapping[str, Sender] = field(default_factory=dict)

    @property
    def tightness(self) -> float:
        """Found over bound."""
        return self.found_s / self.bound_s


def packets(curve: Curve, sender: Sender, end_ns: int, overhead_bytes: int = 0) -> list[tuple[int, int]]:
    """As many packets as early as the curve allows: instants in ns and bytes.

    The link counts `overhead_bytes` more of each; the curve is the minimum of its segments' lines, so it is concave.
    """
    lines = [(value - slope * start, slope) for start, value, slope in curve.segments]
    scale = math.lcm(*(x.denominator for line in lines for x in line))
    # whole numbers: bits times 10^9 times the scale, so that a nanosecond drains rate times the scale
    buckets = [(int(burst * scale) * 10**9, int(rate * scale)) for burst, rate in lines]
    fill = [0] * len(buckets)
    sent: list[tuple[int, int]] = []
    at = last = sender.start_ns
    while at < end_ns and len(sent) < MOST_PKTS:
        fill = [max(f - rate * (at - last), 0) for f, (_, rate) in zip(fill, buckets, strict=True)]
        last = at
        size_bytes = sender.size_bytes if sent or sender.first_bytes is None else sender.first_bytes
        cost = 8 * (size_bytes + overhead_bytes) * scale * 10**9
        wait = 0
        for f, (burst, rate) in zip(fill, buckets, strict=True):
            excess = f + cost - burst
            if excess > 0:
                wait = max(wait, -(-excess // rate) if rate else end_ns)
        if wait > 0:
            at += wait
            continue
        sent.append((at, size_bytes))
        fill = [f + cost for f in fill]
        if at < sender.start_ns + sender.light_ns:
            at += sender.gap_ns
    return sent


def candidate(scenario: Scenario, found: list[Bound], senders: Mapping[str, Sender], folder: Path) -> dict[str, Any]:
    """The scenario with these senders in place of its flows; lists of packets are written into the folder."""
    keys = tomllib.loads(scenario.resolved)
    keys["link"]["delay"] = "0s"
    keys["link"]["return_delay"] = "0s"
    flows: list[dict[str, Any]] = []
    end_ns = round(scenario.duration_s * 1e9)
    overhead = int(keys["link"]["overhead"].removesuffix("B"))
    for bound in found:
        sender = senders[bound.name]
        common = {"class": bound.name, "name": f"to-{bound.name}"}
        if bound.arrivals is None:
            flows.append(
                {
                    **common,
                    "kind": "greedy",
                    "packet": f"{sender.size_bytes}B",
                    "start": f"{sender.start_ns}ns",
                    "backlog": "5p",
                }
            )
            continue
        rows = packets(bound.arrivals, sender, end_ns, overhead)
        if not rows:
            continue
        path = folder / f"{bound.name}.csv"
        path.write_text("t_s,bytes\n" + "".join(f"{t / 1e9:.9f},{size}\n" for t, size in rows))
        flows.append({**common, "kind": "replay", "file": str(path)})
    for entry in keys["class"]:
        entry["limit"] = "100000p"
        entry.pop("limit_bytes", None)
    return {**keys, "flow": flows, "log": "none"}


def write(scenario: Scenario, found: list[Bound], worst: Attack, folder: Path) -> Path:
    """Writes a worst case as a scenario with its lists of packets, in a folder named after the class."""
    inside = folder / worst.name
    lists = inside / "inputs"
    lists.mkdir(parents=True, exist_ok=True)
    keys = candidate(scenario, found, worst.senders, lists)
    keys["name"] = f"Worst case found for {worst.name}"
    path = inside / "scenario.toml"
    path.write_text(Scenario.from_dict(keys).resolved)  # names the lists inputs/NAME.csv
    Scenario.load(path)
    return path


def measure(scenario: Scenario, found: list[Bound], senders: Mapping[str, Sender]) -> dict[str, float]:
    """The longest delay of each class, s, from the arrival at the queue to the end of the transmission."""
    with TemporaryDirectory() as folder:
        result = run(Scenario.from_dict(candidate(scenario, found, senders, Path(folder))))
        rows = result.flows.to_pydict()
        return {c: d or 0.0 for c, d in zip(rows["class"], rows["delay_max_s"], strict=True)}


def first_senders(found: list[Bound], sizes: Mapping[str, tuple[int, int]]) -> dict[str, Sender]:
    """Every class sends its burst at once; `sizes` are the smallest and the largest packet of each, bytes."""
    return {b.name: Sender(BEGIN_NS, sizes[b.name][1]) for b in found}


def climb(
    scenario: Scenario, found: list[Bound], target: str, runs: int, seed: int, sizes: Mapping[str, tuple[int, int]]
) -> tuple[Attack, list[str]]:
    """The worst case of one class after so many runs, and sentences about bounds that were exceeded."""
    rng = random.Random(seed)
    bound = {b.name: b.delay_s for b in found}
    broken: list[str] = []

    def score(senders: Mapping[str, Sender]) -> float:
        delays = measure(scenario, found, senders)
        for name, delay in delays.items():
            limit = bound[name]
            if limit is not None and delay > float(limit) + 2e-9:
                broken.append(f"{name}: {delay} s exceeds {float(limit)} s: {dict(senders)}")
        return delays.get(target, 0.0)

    names = [b.name for b in found]
    starts = [first_senders(found, sizes)]
    for early in names:
        if early != target:  # a packet of this class is in the device when the bursts come
            starts.append({**starts[0], early: replace(starts[0][early], start_ns=BEGIN_NS - 1)})
    starts.append({n: s if n == target else replace(s, start_ns=BEGIN_NS - 1) for n, s in starts[0].items()})
    best, longest = starts[0], -1.0
    for number in range(max(runs, 1)):
        tried = starts[number] if number < len(starts) else _mutate(rng, best, names, scenario, sizes)
        delay = score(tried)
        if delay >= longest:
            best, longest = tried, delay
    limit = bound[target]
    assert limit is not None
    return Attack(target, longest, float(limit), best), broken


def _mutate(
    rng: random.Random,
    senders: Mapping[str, Sender],
    names: list[str],
    scenario: Scenario,
    sizes: Mapping[str, tuple[int, int]],
) -> dict[str, Sender]:
    name = rng.choice(names)
    s = senders[name]
    span_ns = round(scenario.duration_s * 0.5e9)
    kind = rng.randrange(6)
    if kind == 0:
        s = replace(s, start_ns=max(s.start_ns + round(rng.gauss(0, 1) * 10 ** rng.uniform(0, 7)), 0))
    elif kind == 1:
        s = replace(s, start_ns=senders[rng.choice(names)].start_ns + rng.choice((-1, 0, 1)))
    elif kind == 2:
        s = replace(s, light_ns=rng.choice((0, rng.randrange(1, span_ns))), gap_ns=round(10 ** rng.uniform(5, 8)))
    elif kind == 3:
        s = replace(s, start_ns=rng.randrange(span_ns))
    elif kind == 4:
        s = replace(s, first_bytes=rng.choice((None, rng.randint(*sizes[name]))))
    else:
        least, most = sizes[name]
        s = replace(s, size_bytes=rng.choice((least, most, rng.randint(least, most))))
    return {**senders, name: replace(s, start_ns=max(s.start_ns, 0))}


def attack(scenario: Scenario, found: list[Bound], runs: int, *, seed: int = 1) -> tuple[list[Attack], list[str]]:
    """The worst case of each class that has a bound, searched in processes in parallel.

    Only for links of constant rate: the search does not move the phase of a recorded capacity.
    """
    overhead = int(tomllib.loads(scenario.resolved)["link"]["overhead"].removesuffix("B"))
    sizes = {b.name: (max(b.sizes_bits[0] // 8 - overhead, 1), b.sizes_bits[1] // 8 - overhead) for b in found}
    targets = [b.name for b in found if b.delay_s]
    with ProcessPoolExecutor() as pool:
        path = scenario.resolved
        jobs = [pool.submit(_climb_text, path, found, t, runs, seed + i, dict(sizes)) for i, t in enumerate(targets)]
        pairs = [job.result() for job in jobs]
    return [a for a, _ in pairs], [sentence for _, broken in pairs for sentence in broken]


def _climb_text(
    text: str, found: list[Bound], target: str, runs: int, seed: int, sizes: dict[str, tuple[int, int]]
) -> tuple[Attack, list[str]]:
    return climb(Scenario.parse(text), found, target, runs, seed, sizes)
