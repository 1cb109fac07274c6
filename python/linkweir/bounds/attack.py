# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the worst delay of a class in the simulator, within the arrivals and capacities that its bound assumes.

Hill climbing: the first candidates are worst cases made by hand (`first_cases`), where the link carries least: at the
emptiest stretch of a record, or when the longest outage begins that the capacity's worst case allows. Each further
candidate moves a start, all starts, or the outage, changes a packet size, inserts a silence before which a class sends
little, or removes one. Candidates that find a longer delay are kept.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from linkweir import traces
from linkweir.bounds import capacity
from linkweir.bounds.answer import Bound
from linkweir.bounds.arrivals import exact
from linkweir.bounds.curve import Curve
from linkweir.runs.simulate import run
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

BEGIN_NS = 10_000_000
MOST_PKTS = 200
"""Packets of a sender, unless more may arrive within the longest bound."""
MOST_PKTS_LONG = 20_000


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
class Case:
    """What each class does, and when an outage begins, ns, where the capacity's worst case has outages."""

    senders: Mapping[str, Sender]
    outage_ns: int = BEGIN_NS

    def later(self, by_ns: int) -> Case:
        """The same later, or earlier, but not before 0."""
        by_ns = max(by_ns, -min(s.start_ns for s in self.senders.values()))
        moved = {name: replace(s, start_ns=s.start_ns + by_ns) for name, s in self.senders.items()}
        return Case(moved, max(self.outage_ns + by_ns, 0))


@dataclass(frozen=True)
class Attack:
    """The worst delay found for a class, and the case that shows it."""

    name: str
    found_s: float
    bound_s: float
    case: Case

    @property
    def tightness(self) -> float:
        """Found over bound."""
        return self.found_s / self.bound_s


def packets(
    curve: Curve, sender: Sender, end_ns: int, overhead_bytes: int = 0, most: int = MOST_PKTS
) -> list[tuple[int, int]]:
    """As many packets as early as the curve allows, but at most `most`: instants in ns and bytes.

    The link counts `overhead_bytes` more of each; the curve is the minimum of its segments' lines, so it is concave.
    """
    lines = [(value - slope * start, slope) for start, value, slope in curve.segments]
    scale = math.lcm(*(x.denominator for line in lines for x in line))
    # whole numbers: bits times 10^9 times the scale, so that a nanosecond drains rate times the scale
    buckets = [(int(burst * scale) * 10**9, int(rate * scale)) for burst, rate in lines]
    fill = [0] * len(buckets)
    sent: list[tuple[int, int]] = []
    at = last = sender.start_ns
    while at < end_ns and len(sent) < most:
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


def candidate(scenario: Scenario, found: list[Bound], case: Case, folder: Path, worst: str | None) -> dict[str, Any]:
    """The scenario with these senders in place of its flows; lists of packets are written into the folder."""
    keys = scenario.native.written()
    place_traces([keys["link"]], scenario, folder)
    keys["warmup"] = "0s"
    keys["link"]["delay"] = "0s"
    keys["link"]["return_delay"] = "0s"
    flows: list[dict[str, Any]] = []
    end_ns = round(scenario.duration_s * 1e9)
    longest_s = max((b.delay_s for b in found if b.delay_s is not None), default=Fraction(0))
    if worst is not None:
        end_ns = max(end_ns, case.outage_ns + 2 * math.ceil(longest_s * 10**9))
        keys["duration"] = f"{end_ns}ns"
        keys["link"]["rate"] = _outages(worst, keys["link"]["nominal"], case.outage_ns)
        for key in traces.WITH_TRACE:
            keys["link"].pop(key, None)
    overhead = scenario.native.tables()["link"]["overhead_bytes"]
    for bound in found:
        sender = case.senders[bound.name]
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
        needed = math.ceil(bound.arrivals(longest_s) / (8 * (sender.size_bytes + overhead)))
        rows = packets(bound.arrivals, sender, end_ns, overhead, min(max(needed, MOST_PKTS), MOST_PKTS_LONG))
        if not rows:
            continue
        path = folder / f"{bound.name}.csv"
        path.write_text("t_s,bytes\n" + "".join(f"{t / 1e9:.9f},{size}\n" for t, size in rows))
        flows.append({**common, "kind": "replay", "file": str(path)})
    for entry in keys["class"]:
        entry["limit"] = "100000p"
        entry.pop("limit_bytes", None)
    return {**keys, "flow": flows, "log": "none"}


def place_traces(links: Iterable[dict[str, Any]], scenario: Scenario, folder: Path) -> None:
    """Writes the traces of links into a folder, and names them there."""
    contents = {name: content for name, _, content in scenario.inputs}
    for link in links:
        if link.get("trace") is not None:
            path = folder / f"trace-{Path(link['trace']).name}"
            path.write_bytes(contents[link["trace"]])
            link["trace"] = str(path)


def _outages(worst: str, nominal: str, first_ns: int) -> dict[str, Any]:
    """The least capacity that a worst case allows: in each window an outage, then the whole rate."""
    part, window_s = capacity.part_and_window(worst)
    window_ns = math.floor(window_s * 10**9)
    off_ns = math.floor((1 - part) * window_ns)
    begin_ns = first_ns % window_ns
    ends = [(begin_ns, "0bit"), ((begin_ns + off_ns) % window_ns, nominal)]
    steps = sorted(ends) if off_ns else [(0, nominal)]
    if steps[0][0]:
        steps.insert(0, (0, steps[-1][1]))
    return {"steps": [[f"{at}ns", rate] for at, rate in steps], "end": "loop", "period": f"{window_ns}ns"}


def _emptiest_ns(scenario: Scenario, span_s: Fraction) -> int:
    """Where a recorded capacity carries least in this span, ns from its start."""
    native = scenario.native
    span_ns, end_ns = math.ceil(span_s * 10**9), round(scenario.duration_s * 1e9)
    at_ns, bytes_each = native.opportunities()
    if at_ns:
        edges, sums = np.array([0, *at_ns, end_ns]), np.arange(len(at_ns) + 2) * 8.0 * bytes_each
        sums[-1] = sums[-2]
    else:
        starts, rates = native.link_steps("rate", 0.01)
        edges = np.array([*starts, end_ns])
        sums = np.concatenate([[0.0], np.cumsum(np.array(rates) * np.diff(edges) / 1e9)])
    begins = edges[edges + span_ns <= end_ns]
    if not len(begins):
        return 0
    carried = np.interp(begins + span_ns, edges, sums) - np.interp(begins, edges, sums)
    return int(begins[carried.argmin()])


def write(scenario: Scenario, found: list[Bound], attack: Attack, folder: Path, worst: str | None = None) -> Path:
    """Writes a worst case as a scenario with its lists of packets, in a folder named after the class."""
    inside = folder / attack.name
    lists = inside / "inputs"
    lists.mkdir(parents=True, exist_ok=True)
    keys = candidate(scenario, found, attack.case, lists, worst)
    keys["name"] = f"Worst case found for {attack.name}"
    path = inside / "scenario.toml"
    path.write_text(Scenario.from_dict(keys).resolved)  # names the lists inputs/NAME.csv
    Scenario.load(path)
    return path


def measure(scenario: Scenario, found: list[Bound], case: Case, worst: str | None = None) -> dict[str, float]:
    """The longest delay of each class, s, from the arrival at the queue to the end of the transmission."""
    with scratch() as folder:
        result = run(Scenario.from_dict(candidate(scenario, found, case, folder, worst)))
        rows = result.flows.to_pydict()
        return {c: d or 0.0 for c, d in zip(rows["class"], rows["delay_max_s"], strict=True)}


def first_senders(found: list[Bound], sizes: Mapping[str, tuple[int, int]]) -> dict[str, Sender]:
    """Every class sends its burst at once; `sizes` are the smallest and the largest packet of each, bytes."""
    return {b.name: Sender(BEGIN_NS, sizes[b.name][1]) for b in found}


def first_cases(
    scenario: Scenario, together: Mapping[str, Sender], target: str, sizes: Mapping[str, tuple[int, int]]
) -> list[Case]:
    """Worst cases made by hand, for the search to begin with; `together` lets every class begin at `BEGIN_NS`.

    * All begin at once; or one or all of the others begin a nanosecond earlier, so that a packet of theirs is in the
      device.
    * Another class begins, and sends its first packet alone. The others follow, and the target comes just after that
      packet has left: then the device has filled its ring with their packets, and in a round robin each rival has yet
      to use a whole visit, with what it has kept of earlier ones.
    * The same with the smallest packets of the target, because wrr and rr count packets.
    """
    rivals = [name for name in together if name != target]
    early = {name: replace(together[name], start_ns=BEGIN_NS - 1) for name in rivals}
    cases = [Case(together), *(Case({**together, name: sender}) for name, sender in early.items())]
    cases.append(Case({**together, **early}))
    for opener in rivals:
        after_ns = BEGIN_NS + _alone_ns(scenario, together[opener].size_bytes)
        following = {name: replace(together[name], start_ns=BEGIN_NS + 1) for name in rivals if name != opener}
        cases.append(Case({**together, **following, target: replace(together[target], start_ns=after_ns + 1)}))
    least, most = sizes[target]
    if least < most:
        for case in cases[len(rivals) + 1 :]:
            small = replace(case.senders[target], size_bytes=least)
            cases.append(Case({**case.senders, target: small}))
    return cases


def _alone_ns(scenario: Scenario, size_bytes: int) -> int:
    """How long a packet takes at a constant or else at the nominal rate."""
    link = scenario.native.tables()["link"]
    rate_bps = link["rate_bps"] if isinstance(link["rate_bps"], float) else link["nominal_bps"]
    return math.ceil(8 * 10**9 * (size_bytes + link["overhead_bytes"]) / exact(rate_bps))


def climb(
    scenario: Scenario,
    found: list[Bound],
    target: str,
    runs: int,
    seed: int,
    sizes: Mapping[str, tuple[int, int]],
    worst: str | None = None,
) -> tuple[Attack, list[str]]:
    """The worst case of one class after so many runs, and sentences about bounds that were exceeded."""
    rng = random.Random(seed)
    bound = {b.name: b.delay_s for b in found}
    limit = bound[target]
    assert limit is not None
    broken: list[str] = []

    def score(case: Case) -> float:
        delays = measure(scenario, found, case, worst)
        for name, delay in delays.items():
            most = bound[name]
            if most is not None and delay > float(most) + 2e-9:
                broken.append(f"{name}: {delay} s exceeds {float(most)} s: {case}")
        return delays.get(target, 0.0)

    names = [b.name for b in found]
    starts = first_cases(scenario, first_senders(found, sizes), target, sizes)
    if worst is None and (emptiest_ns := _emptiest_ns(scenario, limit)) > 0:
        starts = [*(case.later(emptiest_ns - BEGIN_NS) for case in starts), *starts]
    best, longest = starts[0], -1.0
    for number in range(max(runs, 1)):
        tried = starts[number] if number < len(starts) else _mutate(rng, best, names, scenario, sizes, worst)
        delay = score(tried)
        if delay >= longest:
            best, longest = tried, delay
    return Attack(target, longest, float(limit), best), broken


def _mutate(
    rng: random.Random,
    case: Case,
    names: list[str],
    scenario: Scenario,
    sizes: Mapping[str, tuple[int, int]],
    worst: str | None,
) -> Case:
    senders = case.senders
    name = rng.choice(names)
    s = senders[name]
    span_ns = round(scenario.duration_s * 0.5e9)
    kind = rng.randrange(7 if worst is not None or scenario.capacity_length_s else 6)
    if kind == 0:
        s = replace(s, start_ns=max(s.start_ns + step(rng), 0))
    elif kind == 1:
        s = replace(s, start_ns=senders[rng.choice(names)].start_ns + rng.choice((-1, 0, 1)))
    elif kind == 2:
        s = replace(s, light_ns=rng.choice((0, rng.randrange(1, span_ns))), gap_ns=round(10 ** rng.uniform(5, 8)))
    elif kind == 3:
        s = replace(s, start_ns=rng.randrange(span_ns))
    elif kind == 4:
        s = replace(s, first_bytes=rng.choice((None, rng.randint(*sizes[name]))))
    elif kind == 5:
        least, most = sizes[name]
        s = replace(s, size_bytes=rng.choice((least, most, rng.randint(least, most))))
    elif worst is not None:
        return replace(case, outage_ns=max(case.outage_ns + step(rng), 0))
    else:
        return case.later(step(rng))
    return replace(case, senders={**senders, name: replace(s, start_ns=max(s.start_ns, 0))})


def step(rng: random.Random) -> int:
    """From a nanosecond to some 10 ms, either way."""
    return round(rng.gauss(0, 1) * 10 ** rng.uniform(0, 7))


def attack(
    scenario: Scenario, found: list[Bound], runs: int, *, seed: int = 1, worst: str | None = None
) -> tuple[list[Attack], list[str]]:
    """The worst case of each class that has a bound, searched in processes in parallel.

    Args:
        scenario: the scenario.
        found: its bounds.
        runs: simulations for each class.
        seed: of the search.
        worst: the capacity's worst case, as the bounds were asked for.
    """
    overhead = scenario.native.tables()["link"]["overhead_bytes"]
    sizes = {b.name: (max(b.sizes_bits[0] // 8 - overhead, 1), b.sizes_bits[1] // 8 - overhead) for b in found}
    targets = [b.name for b in found if b.delay_s]
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(climb, scenario, found, target, runs, seed + number, dict(sizes), worst)
            for number, target in enumerate(targets)
        ]
        pairs = [job.result() for job in jobs]
    return [a for a, _ in pairs], [sentence for _, broken in pairs for sentence in broken]
