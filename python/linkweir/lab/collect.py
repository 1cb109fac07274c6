# SPDX-License-Identifier: BSD-3-Clause
"""Makes the tables of a run from the files that a job left.

Counters of classes are tc's, read at the ends of the bins; delays are measured packet by packet, until the
receiver's kernel has it, where all of a class's flows are datagrams; otherwise their mean is that of the time in the
queue. If the link noted each packet, they are the times in the queue, and there is a table of their distributions. What
real kernels do not report is null: quantiles of a TCP class's delays, drops by flow, and losses behind the
queue where there are any.
Columns mean what they mean in a simulation, except:

* a packet of a class counts as lost to a limit where the kernel's own schedulers do not say why they dropped it;
* bytes that arrived count dropped packets with the mean size of those sent;
* `backlog_mean_pkts` is the mean over the ends of the bins;
* TCP's `cwnd_pkts` and `srtt_s` are what its sender had at the ends of the bins; means are over 10 samples a second;
* `spurious_pkts` is the number of segments that the receiver reported by DSACK.

In a network the delays of all classes are mean times in the queue, and `hops` has the packets that came to each queue
and left it, and their mean time there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkweir import _native
from linkweir.lab.fault import LaboratoryError
from linkweir.lab.line import DEPARTURE
from linkweir.lab.world import ZERO_NS, World

if TYPE_CHECKING:
    import pyarrow as pa

_CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])
_SEGMENT_BYTES = 1500

Row = dict[str, Any]
Ns = NDArray[np.int64]


@dataclass(frozen=True)
class Counters:
    """Counters of a class at an instant."""

    sent_pkts: int = 0
    sent_bytes: int = 0
    dropped_pkts: int = 0
    dropped_policy_pkts: int = 0
    backlog_pkts: int = 0
    backlog_bytes: int = 0
    sojourn_ns: int | None = None
    marked_pkts: int = 0

    @property
    def arrived_pkts(self) -> int:
        """Packets that were sent, were dropped, or wait."""
        return self.sent_pkts + self.dropped_pkts + self.backlog_pkts

    def own_bytes(self, overhead: int) -> int:
        """Bytes sent without the link's overhead."""
        return self.sent_bytes - overhead * self.sent_pkts

    def arrived_bytes(self, overhead: int) -> int:
        """Bytes that arrived, without overhead."""
        mean = self.own_bytes(overhead) / self.sent_pkts if self.sent_pkts else 0.0
        waiting = self.backlog_bytes - overhead * self.backlog_pkts
        return self.own_bytes(overhead) + waiting + round(mean * self.dropped_pkts)


@dataclass(frozen=True)
class Stream:
    """Counters of a TCP connection at an instant."""

    cwnd_pkts: int | None = None
    srtt_us: int = 0
    sent_pkts: int = 0
    repeated_pkts: int = 0
    timeouts: int = 0
    twice_pkts: int = 0
    samples: int = 0
    cwnds_pkts: int = 0
    rtt_samples: int = 0
    rtts_us: int = 0
    received_bytes: int = 0
    received_pkts: int = 0


class Record:
    """The files of a job, parsed."""

    def __init__(self, world: World, files: Mapping[str, bytes], read: ReadCounters) -> None:
        self.world = world
        self.link, self.classes, self.stats = read(world, files["counters"])
        packets = np.frombuffer(files["datagrams"], _CAME)
        self.packets = packets[np.argsort(packets["came_ns"], kind="stable")]
        self.streams = _streams(world, files.get("senders", b""), files["received"])
        self.noted = np.frombuffer(files.get("departures", b""), DEPARTURE)
        if world.noted and len(self.noted) >= world.noted:
            raise LaboratoryError(
                f"more than {world.noted:,} packets passed the link, so not all were noted: TCP sends packets of less "
                "than 600 bytes in the mean; use fewer flows that send more"
            )

    @classmethod
    def of_ends(cls, world: World, files: Mapping[str, bytes]) -> Record:
        """What senders and receivers of a network left."""
        return cls(world, {**files, "counters": b""}, lambda _world, _text: ([], [], []))

    @classmethod
    def of_link(cls, world: World, counters: bytes) -> Record:
        """What the queue of a link in a network left."""
        return cls(world, {"counters": counters, "datagrams": b"", "received": b""}, tc_counters)


_SENT = re.compile(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+)")
_BACKLOG = re.compile(r"backlog (\S+)b (\d+)p")
_TIMES = {"b": 1, "bit": 1, "p": 1, "ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_TIMES |= {
    f"{prefix}{unit}": times for unit in ("bit", "b") for prefix, times in (("K", 1000), ("M", 10**6), ("G", 10**9))
}


def _number(word: str) -> int:
    """A value with its unit as linkweir's plugins write it, exactly: packets, bits, ns.

    >>> _number("1526441.762us"), _number("-12.5Kbit"), _number("893p"), _number("1")
    (1526441762, -12500, 893, 1)
    """
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyzGKM")
    return round(Decimal(digits) * _TIMES.get(word[len(digits) :], 1))


def _size(word: str) -> int:
    """A size as tc shows it, with prefixes of 1024."""
    times = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(word[-1:], 1)
    return int(word.rstrip("KMG")) * times


Shown = Mapping[str, int]
"""The values that tc shows of a class."""
Counted = tuple[list[Counters], list[list[Counters]], list[list[Shown]]]
"""Counters of the link and of the classes at the ends of the bins, and all that tc showed of the classes."""
ReadCounters = Callable[[World, bytes], Counted]


def shown(text: str) -> list[dict[str, Shown]]:
    """The output of each `tc -s class show` in a text, by handle, without that of `tc -s qdisc show` behind them."""
    answers: list[dict[str, Shown]] = []
    text = text.partition("\nqdisc ")[0]
    for part in re.split(r"^class ", text, flags=re.MULTILINE)[1:]:
        kind, handle, *_ = part.split(maxsplit=2)
        if kind in ("labline", "htb") and handle == "1:1":
            answers.append({})
        _, *rest = part.splitlines()
        lines = [line.strip() for line in rest if line.strip()]
        found: dict[str, int] = {}
        for line in lines:
            if sent := _SENT.match(line):
                found |= dict(zip(("bytes", "packets", "drops"), map(int, sent.groups()), strict=True))
            elif backlog := _BACKLOG.match(line):
                found |= {"backlog": _size(backlog[1]), "qlen": int(backlog[2])}
            elif line.startswith("dropped_limit"):
                words = line.split()
                found |= {name: _number(value) for name, value in zip(words[::2], words[1::2], strict=True)}
        answers[-1][handle] = found
    return answers


def shown_at_bins(world: World, text: bytes) -> list[dict[str, Shown]]:
    """The output of tc at the ends of the bins.

    Raises:
        LaboratoryError: it has more or fewer answers.
    """
    answers = shown(text.decode())
    if len(answers) != len(world.bins):
        raise LaboratoryError(f"tc answered {len(answers)} times, not {len(world.bins)}: {text[-300:].decode()}")
    return answers


def tc_counters(world: World, text: bytes) -> Counted:
    """Counters from the output of tc."""
    answers = shown_at_bins(world, text)
    link = [_one(answer["1:1"], {}) for answer in answers]
    marks = world.marks or tuple((at + 1,) for at in range(len(world.classes)))
    handles = list(zip(world.handles, marks, strict=True))
    counted = [[_class_of(answer, handle, mine) for handle, mine in handles] for answer in answers]
    stats = [[answer.get(handle, {}) for handle in world.handles] for answer in answers]
    return link, counted, stats


_ARRIVED, _TAKEN, _NOTED, _DROPPED = 0x100, 0x200, 0x300, 0x400
"""Minor numbers of the link's counters, less a DSCP; as in lab/line/sch_labline.c."""


def _marked(answer: Mapping[str, Shown], base: int, marks: Sequence[int]) -> Shown:
    """One of the link's counters, summed over packets with these code points."""
    found = [answer.get(f"1:{base + mark:x}", {}) for mark in marks]
    return {key: sum(one.get(key, 0) for one in found) for key in ("bytes", "packets")}


def _class_of(answer: Mapping[str, Shown], handle: str, marks: Sequence[int]) -> Counters:
    """Counters of a class, whose packets have code points of their own."""
    arrived, taken, noted, dropped = (_marked(answer, base, marks) for base in (_ARRIVED, _TAKEN, _NOTED, _DROPPED))
    if not handle:
        waits = {key: arrived[key] - taken[key] - dropped[key] for key in arrived}
        counts = {**taken, "drops": dropped["packets"], "qlen": waits["packets"], "backlog": waits["bytes"]}
        return _one(counts, noted)
    entry = answer.get(handle, {})
    if handle != "1:1" and "packets" in entry:
        return _one(entry, noted)
    # The policy counts nothing of its own by class: what came and neither left nor waits was dropped.
    backlog, waiting = entry.get("qlen", 0), entry.get("backlog", 0)
    sent = {**taken, "qlen": backlog, "backlog": waiting}
    sent["drops"] = arrived.get("packets", 0) - taken.get("packets", 0) - backlog
    return _one(sent, noted)


def _one(entry: Shown, noted: Shown) -> Counters:
    policy = sum(entry.get(f"dropped_{reason}", 0) for reason in ("victim", "expired", "leaving"))
    return Counters(
        entry.get("packets", 0),
        entry.get("bytes", 0),
        entry["drops"],
        policy,
        entry["qlen"],
        entry["backlog"],
        noted.get("bytes", 0),
        noted.get("packets", 0),
    )


def _streams(world: World, senders: bytes, received: bytes) -> dict[int, list[Stream]]:
    """Counters of each flow's connection at the ends of the bins."""
    sent: dict[tuple[int, int], list[int]] = {}
    got: dict[tuple[int, int], list[int]] = {}
    for text, where in ((senders, sent), (received, got)):
        for line in text.decode().splitlines():
            at_ns, sender, *counts = (int(word) for word in line.split())
            where.setdefault((sender, _bin_of(world, at_ns / 1e9)), counts)
    made: dict[int, list[Stream]] = {}
    for number, flow in enumerate(world.flows):
        if flow.kind != "tcp":
            continue
        made[number] = []
        for n in range(len(world.bins)):
            values = sent.get((number, n))
            window = (None, *[0] * 9) if values is None else values
            made[number].append(Stream(*window, *got.get((number, n), (0, 0))))
    return made


def _bin_of(world: World, t_s: float) -> int:
    """The nearest end of a bin; reading the clock takes 256 ns in virtual time."""
    return min(round(t_s / world.scenario.interval_s), len(world.bins) - 1)


# --- Delays ---------------------------------------------------------------------------------------------------------


def _quantiles(values: Ns) -> list[float | None]:
    if not len(values):
        return [None] * 3
    ordered = np.sort(values)
    return [float(ordered[math.ceil(q * len(ordered)) - 1]) / 1e9 for q in (0.5, 0.95, 0.99)]


def _mean(values: Ns) -> float | None:
    return float(values.mean()) / 1e9 if len(values) else None


def _largest(values: Ns) -> float | None:
    return float(np.max(values)) / 1e9 if len(values) else None


def _rfc3550(differences: Ns) -> float | None:
    """The last running estimate of RFC 3550, section 6.4.1."""
    if not len(differences):
        return None
    jitter = 0.0
    for difference in differences.tolist():
        jitter += (difference - jitter) / 16
    return jitter / 1e9


class Delays:
    """One-way delays of the datagrams of a class or flow, in the order they came."""

    def __init__(self, record: Record, flows: Sequence[int], *, queueing: bool) -> None:
        world = record.world
        mine = record.packets[np.isin(record.packets["flow"], flows)]
        came = mine["came_ns"].astype(np.int64)
        one_way: Ns = came - mine["sent_ns"].astype(np.int64)
        access = np.array([flow.access_delay_ns for flow in world.flows], np.int64)[mine["flow"]]
        if world.line is None:
            self.left_ns: Ns = came - round(1e9 * world.delay_s)
            began: Ns = self.left_ns
        else:
            self.left_ns = world.line.left(came)
            began = world.line.began(self.left_ns, 8.0 * (mine["bytes"] + float(world.overhead_bytes)))
        # In the queue a packet has waited until the link begins to send it.
        self.waits_ns: Ns = one_way - (came - began) - access if queueing else one_way
        inside = (self.left_ns if queueing else came) >= round(1e9 * world.scenario.warmup_s)
        self.came_ns: Ns = came
        self.of: NDArray[np.uint32] = mine["flow"]
        self.bytes: NDArray[np.uint32] = mine["bytes"]
        self.total_ns: Ns = self.waits_ns[inside]
        differences = [np.abs(np.diff(one_way[inside & (self.of == flow)])) for flow in flows]
        self.jitter_ns: Ns = np.concatenate([np.zeros(0, np.int64), *differences])

    def within(self, from_s: float, to_s: float) -> Ns:
        """Delays of the packets that left the queue within a bin."""
        ends = (round(1e9 * from_s), round(1e9 * to_s))
        return self.waits_ns[(self.left_ns >= ends[0]) & (self.left_ns < ends[1])]


class Waits:
    """How long the packets of a class waited in the queue, in the order they left it, as the link noted it."""

    def __init__(self, record: Record, at: int) -> None:
        world = record.world
        assert world.marks is not None
        mine = record.noted[np.isin(record.noted["mark"], world.marks[at])]
        self.left_ns: Ns = mine["at_ns"].astype(np.int64) - ZERO_NS
        self.waits_ns: Ns = mine["waited_ns"].astype(np.int64)
        inside = (self.left_ns >= round(1e9 * world.scenario.warmup_s)) & (self.left_ns < round(1e9 * world.bins[-1]))
        self.total_ns: Ns = self.waits_ns[inside]

    def within(self, from_s: float, to_s: float) -> Ns:
        """Waits of the packets that left the queue within a bin."""
        ends = (round(1e9 * from_s), round(1e9 * to_s))
        return self.waits_ns[(self.left_ns >= ends[0]) & (self.left_ns < ends[1])]


def _queueing(record: Record) -> Mapping[int, Waits | Delays]:
    """The queueing delays of the classes of which they are known packet by packet."""
    if record.world.noted:
        return {at: Waits(record, at) for at in range(len(record.world.classes))}
    return {at: Delays(record, flows, queueing=True) for at, flows in _datagrams_only(record.world).items()}


_FINE_BITS = 7
"""A bucket of a distribution is at most 2^-7 of its lower bound wide, as in the simulator."""


def buckets(values: Ns) -> tuple[Ns, Ns, Ns]:
    """Lower bounds, upper bounds and counts of the buckets of a distribution.

    >>> [bounds.tolist() for bounds in buckets(np.array([3, 300, 301, 1_000_000]))]
    [[3, 300, 999424], [4, 302, 1003520], [1, 2, 1]]
    """
    shift = np.maximum(np.frexp(values.astype(float))[1] - 1 - _FINE_BITS, 0)
    lower, at, counts = np.unique((values >> shift) << shift, return_index=True, return_counts=True)
    return lower, lower + (1 << shift[at].astype(np.int64)), counts


# --- Tables ---------------------------------------------------------------------------------------------------------


def tables(world: World, files: Mapping[str, bytes], read: ReadCounters = tc_counters) -> dict[str, pa.Table]:
    """The tables of a run, with the columns of a simulation's; `read` understands the job's counters.

    Raises:
        LaboratoryError: the job left something else than it should.
    """
    if world.links:
        return _network_tables(world, files)
    record = Record(world, files, read)
    made = {
        "series": _series(record),
        "link": _link(record),
        "flow_series": _flow_series(record),
        "levels": _levels(record),
        "classes": _classes(record),
        "flows": _flows(record),
        "delays": _distributions(record),
    }
    return {name: _table(name, rows) for name, rows in made.items() if rows}


def _network_tables(world: World, files: Mapping[str, bytes]) -> dict[str, pa.Table]:
    """Those of a network: a column with the link's name in front of what is counted at a link."""
    ends = Record.of_ends(world, files)
    made: dict[str, list[Row]] = {"flow_series": _flow_series(ends), "flows": _flows(ends), "hops": []}
    for number, (name, of_link) in enumerate(world.links.items(), 1):
        counters = files[f"counters-{number}"]
        record = Record.of_link(of_link, counters)
        for table, rows_of in (("series", _series), ("link", _link), ("levels", _levels), ("classes", _classes)):
            made.setdefault(table, []).extend({"link": name, **row} for row in rows_of(record))
        made["hops"] += _hops(name, of_link, shown_at_bins(of_link, counters))
    order = {flow.name: number for number, flow in enumerate(world.flows)}
    made["hops"].sort(key=lambda row: (order[row["flow"]], row["direction"] == "back", row["hop"]))
    return {name: _table(name, rows, network=True) for name, rows in made.items() if rows}


def _hops(link: str, world: World, answers: Sequence[Mapping[str, Shown]]) -> list[Row]:
    """The flows that cross a link."""
    rows = []
    for crossing in world.crossings:
        arrived, taken, noted = (
            {key: now[key] - then[key] for key in now}
            for base in (_ARRIVED, _TAKEN, _NOTED)
            for then, now in [[_marked(answers[n], base, [crossing.mark]) for n in (_first(world), -1)]]
        )
        rows.append(
            {
                "flow": crossing.flow,
                "link": link,
                "hop": crossing.hop,
                "direction": "back" if crossing.back else "there",
                "arrived_pkts": arrived["packets"],
                "sent_pkts": taken["packets"],
                "lost_pkts": 0,
                "delay_mean_s": noted["bytes"] / taken["packets"] / 1e9 if taken["packets"] else None,
            }
        )
    return rows


def _table(name: str, rows: list[Row], *, network: bool = False) -> pa.Table:
    """Rows in the columns that the simulator declares for this table; what was not measured is null."""
    import pyarrow as pa

    from linkweir.tables import arrow

    if name == "levels" and network:
        words = ("link", "class")
        names = dict.fromkeys(column for row in rows for column in row)
        schema = pa.schema([(column, pa.string() if column in words else pa.float64()) for column in names])
        rows = [{key: value if key in words else float(value) for key, value in row.items()} for row in rows]
        return pa.Table.from_pylist(rows, schema)
    if name == "levels":
        other = {"t_s": pa.float64(), "class": pa.string()}
        schema = pa.schema([(column, other.get(column, pa.int64())) for column in rows[0]])
    else:
        schema = arrow.table(_native.empty_tables(network=network)[name]).schema
    unknown = rows[0].keys() - set(schema.names)
    if unknown:
        raise LaboratoryError(f"the table {name} of a simulation has no column {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(rows, schema)


def _spans(world: World) -> list[tuple[int, float, float]]:
    return [(n, world.bins[n], world.bins[n + 1]) for n in range(len(world.bins) - 1)]


def _datagrams_only(world: World) -> dict[int, list[int]]:
    """Classes all of whose flows are datagrams, and these flows."""
    by_class: dict[int, list[int]] = {}
    for number, flow in enumerate(world.flows):
        by_class.setdefault(flow.of_class, []).append(number)
    return {at: mine for at, mine in by_class.items() if all(world.flows[n].kind != "tcp" for n in mine)}


def _counts(now: Counters, then: Counters, overhead: int) -> Row:
    policy = now.dropped_policy_pkts - then.dropped_policy_pkts
    return {
        "arrived_pkts": now.arrived_pkts - then.arrived_pkts,
        "arrived_bytes": max(now.arrived_bytes(overhead) - then.arrived_bytes(overhead), 0),
        "sent_pkts": now.sent_pkts - then.sent_pkts,
        "sent_bytes": now.own_bytes(overhead) - then.own_bytes(overhead),
        "dropped_limit_pkts": now.dropped_pkts - then.dropped_pkts - policy,
        "dropped_policy_pkts": policy,
        "dropped_age_pkts": 0,  # no class has a max_age here
    }


def _lost(world: World) -> int | None:
    """Packets lost behind the queue, which are counted where there are none."""
    return None if world.lossy else 0


def _sojourn(now: Counters, then: Counters) -> float | None:
    sent = now.sent_pkts - then.sent_pkts
    if not sent or now.sojourn_ns is None or then.sojourn_ns is None:
        return None
    return (now.sojourn_ns - then.sojourn_ns) / sent / 1e9


def _series(record: Record) -> list[Row]:
    world = record.world
    delays = _queueing(record)
    rows = []
    for n, from_s, to_s in _spans(world):
        for at, name in enumerate(world.classes):
            now, then = record.classes[n + 1][at], record.classes[n][at]
            counts = _counts(now, then, world.overhead_bytes)
            waits = delays[at].within(from_s, to_s) if at in delays else np.zeros(0, np.int64)
            rows.append(
                {
                    "t_s": from_s,
                    "class": name,
                    **counts,
                    "lost_link_pkts": _lost(world),
                    "sent_bps": 8.0 * counts["sent_bytes"] / (to_s - from_s),
                    "delay_mean_s": _mean(waits) if at in delays else _sojourn(now, then),
                    "delay_max_s": _largest(waits),
                    "backlog_pkts": now.backlog_pkts,
                    "backlog_bytes": max(now.backlog_bytes - world.overhead_bytes * now.backlog_pkts, 0),
                    "marked_pkts": now.marked_pkts - then.marked_pkts,
                }
            )
    return rows


def _link(record: Record) -> list[Row]:
    capacity = record.world.capacity
    assert capacity is not None
    return [
        {
            "t_s": from_s,
            "capacity_bps": capacity.mean(from_s, to_s),
            "used_bps": 8.0 * (record.link[n + 1].sent_bytes - record.link[n].sent_bytes) / (to_s - from_s),
        }
        for n, from_s, to_s in _spans(record.world)
    ]


def _levels(record: Record) -> list[Row]:
    world = record.world
    policy = world.scenario.policy
    if "sojourn_max" not in record.stats[0][0]:
        return []  # the kernel's own schedulers show no state
    stats = next(p["stats"] for p in _native.policies() if p["name"] == policy)
    return [
        {"t_s": t_s, "class": name, **{stat["column"]: record.stats[n][at].get(stat["name"], 0) for stat in stats}}
        for n, t_s in enumerate(world.bins)
        for at, name in enumerate(world.classes)
    ]


def _first(world: World) -> int:
    """The end of a bin at which totals begin."""
    return _bin_of(world, world.scenario.warmup_s)


def _classes(record: Record) -> list[Row]:
    world = record.world
    only = _datagrams_only(world)
    queueing = _queueing(record)
    first = _first(world)
    span_s = world.bins[-1] - world.bins[first]
    rows = []
    for at, name in enumerate(world.classes):
        now, then = record.classes[-1][at], record.classes[first][at]
        counts = _counts(now, then, world.overhead_bytes)
        dropped = counts["dropped_limit_pkts"] + counts["dropped_policy_pkts"]
        waits = queueing[at].total_ns if at in queueing else np.zeros(0, np.int64)
        jitter = Delays(record, only[at], queueing=True).jitter_ns if at in only else np.zeros(0, np.int64)
        backlogs = [record.classes[n][at].backlog_pkts for n in range(first, len(world.bins))]
        rows.append(
            {
                "class": name,
                **counts,
                "lost_link_pkts": _lost(world),
                "rate_bps": 8.0 * counts["sent_bytes"] / span_s,
                # Some of the drops may be of packets that arrived during the warm-up, which no counter tells.
                "loss": min(dropped / counts["arrived_pkts"], 1.0) if counts["arrived_pkts"] else None,
                "delay_mean_s": _mean(waits) if at in queueing else _sojourn(now, then),
                **dict(zip(("delay_p50_s", "delay_p95_s", "delay_p99_s"), _quantiles(waits), strict=True)),
                "delay_max_s": _largest(waits),
                "jitter_mad_s": _mean(jitter),
                **dict(zip(("jitter_p50_s", "jitter_p95_s", "jitter_p99_s"), _quantiles(jitter), strict=True)),
                "backlog_mean_pkts": sum(backlogs) / len(backlogs),
                "marked_pkts": now.marked_pkts - then.marked_pkts,
            }
        )
    return rows


def _distributions(record: Record) -> list[Row]:
    """The distributions of the queueing delays, where the link noted each packet."""
    rows = []
    for at, name in enumerate(record.world.classes if record.world.noted else ()):
        for lower, upper, count in zip(*buckets(Waits(record, at).total_ns), strict=True):
            own = {"class": name, "flow": "", "kind": "queueing", "count_pkts": int(count)}
            rows.append({**own, "lower_s": float(lower) / 1e9, "upper_s": float(upper) / 1e9})
    return rows


def _flow_series(record: Record) -> list[Row]:
    world = record.world
    rows = []
    delays = {n: Delays(record, [n], queueing=False) for n, flow in enumerate(world.flows) if flow.kind != "tcp"}
    for n, from_s, to_s in _spans(world):
        for number, flow in enumerate(world.flows):
            if flow.kind == "tcp":
                now, then = record.streams[number][n + 1], record.streams[number][n]
                packets, size = _delivered(now, then)
                good = now.received_bytes - then.received_bytes
                cwnd = None if now.cwnd_pkts is None else float(now.cwnd_pkts)
                srtt_s = now.srtt_us / 1e6 if now.cwnd_pkts is not None else None
            else:
                came = delays[number].came_ns
                inside = (came >= round(1e9 * from_s)) & (came < round(1e9 * to_s))
                packets, size = int(inside.sum()), int(delays[number].bytes[inside].sum())
                good, cwnd, srtt_s = size, None, None
            rows.append(
                {
                    "t_s": from_s,
                    "flow": flow.name,
                    "class": world.classes[flow.of_class],
                    "delivered_pkts": packets,
                    "delivered_bytes": size,
                    "goodput_bps": 8.0 * good / (to_s - from_s),
                    "cwnd_pkts": cwnd,
                    "srtt_s": srtt_s,
                }
            )
    return rows


def _delivered(now: Stream, then: Stream) -> tuple[int, int]:
    """Segments that came, and their bytes on the wire if all were full."""
    packets = now.received_pkts - then.received_pkts
    return packets, packets * _SEGMENT_BYTES


def _flows(record: Record) -> list[Row]:
    made = (_tcp_row if flow.kind == "tcp" else _datagram_row for flow in record.world.flows)
    return [row(record, number) for number, row in enumerate(made)]


def _flow_row(record: Record, number: int, arrived: int, packets: int, size: int, good: int) -> Row:
    world = record.world
    flow = world.flows[number]
    span_s = world.bins[-1] - world.bins[_first(world)]
    return {
        "flow": flow.name,
        "class": world.classes[flow.of_class],
        "kind": flow.kind,
        "arrived_pkts": arrived,
        "delivered_pkts": packets,
        "delivered_bytes": size,
        "rate_bps": 8.0 * size / span_s,
        "goodput_bps": 8.0 * good / span_s,
        "lost_link_pkts": _lost(world),
    }


_DELAY = ("delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s")
_JITTER = ("jitter_rfc3550_s", "jitter_mad_s", "jitter_p50_s", "jitter_p95_s", "jitter_p99_s")


def _datagram_row(record: Record, number: int) -> Row:
    world = record.world
    delays = Delays(record, [number], queueing=False)
    due = np.frombuffer(world.job["due"], np.dtype([("at_ns", "<u8"), ("flow", "<u4"), ("bytes", "<u4")]))
    mine = (due["flow"] == number) & (due["at_ns"] >= round(1e9 * world.scenario.warmup_s))
    came = delays.came_ns
    size = int(delays.bytes[came >= round(1e9 * world.scenario.warmup_s)].sum())
    row = _flow_row(record, number, int(mine.sum()), len(delays.total_ns), size, size)
    waits, jitter = delays.total_ns, delays.jitter_ns
    row |= dict(zip(_DELAY, [_mean(waits), *_quantiles(waits), _largest(waits)], strict=True))
    return row | dict(zip(_JITTER, [_rfc3550(jitter), _mean(jitter), *_quantiles(jitter)], strict=True))


def _tcp_row(record: Record, number: int) -> Row:
    world = record.world
    first = _first(world)
    now, then = record.streams[number][-1], record.streams[number][first]
    packets, size = _delivered(now, then)
    good = now.received_bytes - then.received_bytes
    row = _flow_row(record, number, now.sent_pkts - then.sent_pkts, packets, size, good)
    samples, rtt_samples = now.samples - then.samples, now.rtt_samples - then.rtt_samples
    return row | {
        "transmitted_pkts": float(now.sent_pkts - then.sent_pkts),
        "retransmitted_pkts": float(now.repeated_pkts - then.repeated_pkts),
        "spurious_pkts": float(now.twice_pkts - then.twice_pkts),
        "timeouts": float(now.timeouts - then.timeouts),
        "cwnd_mean_pkts": (now.cwnds_pkts - then.cwnds_pkts) / samples if samples else None,
        "srtt_mean_s": (now.rtts_us - then.rtts_us) / rtt_samples / 1e6 if rtt_samples else None,
    }
