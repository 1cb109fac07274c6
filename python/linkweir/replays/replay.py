# SPDX-License-Identifier: BSD-3-Clause
"""Replays recordings of gateways: the same packets under another policy or over another link.

Where several paths led to the peer, they are the links of a bond. The replay is open-loop: the packets come when they
came, whatever happens to them now. TCP would react. With `closed`, classes of TCP get connections that transfer what
was sent in the recording, and react.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.comparison import fitting
from linkweir.deploy.paths import OF_A_CLASS
from linkweir.fault import PlanError
from linkweir.replays import paths as bonds
from linkweir.replays.recording import NOMINAL, Part, Sums, nominal_of
from linkweir.runs.result import Result
from linkweir.scenarios.scenario import Scenario
from linkweir.sweeps import keys
from linkweir.sweeps.keys import Key, KeyPathError

RECORDING = "recording.lwrec"
CAPACITY = "capacity.csv"
SCENARIO = "replay.toml"
_AGE_MARGIN_S = 0.005
"""The gateway drops a packet so long before `max_age`, but at most a tenth of that."""
_MOST_INTERVALS = 86_400
_TCP_SHARE = 0.5
"""From this share of its packets on, a class counts as one of TCP."""
_BULK_BYTES = 200
"""Shorter packets on average are acknowledgements."""
_MOST_TRANSFERS = 100
_MSS_BYTES = 1388
_HEADERS_BYTES = 112
"""Headers of a segment: TCP and IP with timestamps, 52, and a tunnel's, 60; with the payload they are 1500 bytes."""


@dataclass(frozen=True)
class Replay:
    """A scenario made of a recording.

    Attributes:
        part: what is replayed.
        keys: the scenario as written; the files it names are in its folder.
        scenario: the same, checked.
        bond: name of the bond, if there are several paths; empty for one link.
        closed: names of the classes whose packets are sent by TCP.
        notes: what was changed and what the result does not show, a sentence each.
    """

    part: Part
    keys: dict[str, Any]
    scenario: Scenario
    bond: str
    closed: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """A class as it was recorded and as it was replayed.

    Attributes:
        name: the class.
        recorded_bps: rate at which it was sent.
        replayed_bps: rate at which it is sent now.
        recorded_loss: part of the packets that was dropped; None where none came.
        replayed_loss: part of the packets that is dropped now.
        intervals: intervals in which something was sent in the recording.
        within: how many of them have a rate now that differs by 1 % at most.
        worst: greatest difference in an interval, as part of the recorded rate.
    """

    name: str
    recorded_bps: float
    replayed_bps: float
    recorded_loss: float | None
    replayed_loss: float | None
    intervals: int
    within: int
    worst: float


def prepare(
    part: Part,
    folder: Path,
    *,
    policy: str | None = None,
    changes: Mapping[Key, Any] | None = None,
    rate: str | None = None,
    trace: Path | None = None,
    trace_keys: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    closed: bool = False,
    rtt: str = "50ms",
) -> Replay:
    """Makes a scenario of a part of a recording, and writes the files that it names.

    Args:
        part: what is replayed.
        folder: where the files are written; it exists.
        policy: another policy; parameters it does not have are left out, as in a comparison.
        changes: keys of the scenario with other values, None to leave one out.
        rate: another capacity, such as "10Mbit".
        trace: a file with another capacity over time.
        trace_keys: keys of ``[link]`` that describe it.
        without: paths to leave out, where there were several and no other capacity is given.
        closed: whether classes of TCP are sent by TCP connections that react.
        rtt: round-trip time of these connections without queues, over one link.

    Raises:
        PlanError: there is no such policy or path, a key leads nowhere, or the recording only names several paths and
            no other capacity is given.
        ScenarioError: a value is not allowed.
    """
    over_one = rate is not None or trace is not None
    if without and over_one:
        raise PlanError("--without leaves out a path, and --rate and --trace replay over one link; give one of them")
    paths = [] if over_one else bonds.chosen(part, without)
    if part.paths and not paths and not over_one:
        from_s = part.paths_known_from_s
        later = "" if from_s is None else f", or --from {from_s:g}s, from when on it has each of them"
        raise PlanError(
            f"{part.recording.name}: {part.peer} had several paths, {', '.join(part.paths)}, of which this recording "
            f"has the sum; give --rate or --trace to replay it over one link{later}"
        )
    interval_s = float(math.ceil(part.duration_s / _MOST_INTERVALS)) if part.duration_s >= 1 else part.duration_s
    sums = part.sums(interval_s)
    totals = {name: _total([row[at] for row in sums]) for at, name in enumerate(part.classes)}
    with_tcp = tuple(name for name, total in totals.items() if _is_bulk(total)) if closed else ()
    link: dict[str, Any] | None = None
    if rate is not None:
        link = {"rate": rate, "nominal": rate}
    elif trace is not None:
        link = {"trace": str(trace.resolve()), **(trace_keys or {})}
    elif paths:
        link = {"nominal": f"{bonds.nominal_bps(paths):.0f}bit"}
    written = _written(part, totals, sums, interval_s, with_tcp, rtt, folder, link)
    notes = [*part.notes(), *(bonds.notes(part, paths) if paths else ())]
    if not paths and rate is None and "nominal" not in part.link:
        notes.append(f"the recording has no nominal rate of the link to {part.peer}; {NOMINAL} is assumed")
    if part.paths and over_one:
        notes.append(f"{part.peer} had several paths, {', '.join(part.paths)}; here it has one link")
    if policy is not None:
        written, said = _fitted(written, policy)
        notes.extend(f"{policy}: {one}" for one in said)
    changes = dict(changes or {})
    if paths:
        written = bonds.bonded(part, written, paths, folder)
        changes = {bonds.own_key(part, key): value for key, value in changes.items()}
    there = {
        key: value for key, value in changes.items() if value is not None or keys.look_up(written, key) is not None
    }
    try:
        written = keys.put(written, there)
    except KeyPathError as fault:
        raise PlanError(f"{keys.show(fault.key)}: {fault}") from fault
    notes.extend(_about_flows(part))
    round_trip = "as recorded of each path" if paths else f"{rtt} without queues, as recordings have none"
    notes.extend(_about_tcp(totals, with_tcp, closed, round_trip))
    scenario = _checked(written, folder, part.recording.name, policy, rate, trace)
    return Replay(part, written, scenario, bonds.bond_name(part) if paths else "", with_tcp, tuple(notes))


def compare(replay: Replay, result: Result) -> list[Agreement]:
    """What was recorded, next to what the replay gave."""
    interval_s = result.scenario.interval_s
    sums = replay.part.sums(interval_s)
    sent_bytes: dict[str, list[int]] = {name: [] for name in replay.part.classes}
    for name, count in zip(*(result.series[key].to_pylist() for key in ("class", "sent_bytes")), strict=True):
        sent_bytes[name].append(count)  # of the bond, if there is one: its links have no classes
    rows = {str(row["class"]): row for row in result.classes.to_pylist()}
    # The last interval may be shorter, and what is in it depends on where the packets in it happen to be.
    whole = max(int(replay.part.duration_s / interval_s), 1)
    found = []
    for at, name in enumerate(replay.part.classes):
        column = [row[at] for row in sums]
        total = _total(column)
        row = rows[name]
        pairs = list(zip((one.sent_bytes for one in column), sent_bytes[name], strict=False))[:whole]
        pairs = [(before, now) for before, now in pairs if before > 0]
        differences = [abs(now - before) / before for before, now in pairs]
        arrived = row["arrived_pkts"]
        dropped = row["dropped_limit_pkts"] + row["dropped_policy_pkts"] + row.get("dropped_age_pkts", 0)
        found.append(
            Agreement(
                name,
                8 * total.sent_bytes / replay.part.duration_s,
                row["rate_bps"],
                total.dropped_pkts / total.arrived_pkts if total.arrived_pkts else None,
                dropped / arrived if arrived else None,
                len(differences),
                sum(one <= 0.01 for one in differences),
                max(differences, default=0.0),
            )
        )
    return found


def _total(sums: Sequence[Sums]) -> Sums:
    names = Sums.__dataclass_fields__
    return Sums(**{name: sum(getattr(one, name) for one in sums) for name in names})


def _is_bulk(total: Sums) -> bool:
    tcp = total.tcp_pkts > _TCP_SHARE * total.arrived_pkts
    return tcp and total.arrived_bytes > _BULK_BYTES * total.arrived_pkts


def _checked(
    written: Mapping[str, Any], folder: Path, name: str, policy: str | None, rate: str | None, trace: Path | None
) -> Scenario:
    """The scenario; its faults name the recording and not a file that nobody wrote."""
    try:
        return Scenario.from_dict(written, path=folder / SCENARIO)
    except _native.ScenarioError as fault:
        if not fault.key:
            raise
        if fault.key.endswith("scheduler.policy") and fault.value == f'"{policy}"':
            raise PlanError(f"--policy {policy}: {fault.message}") from fault
        if fault.key == "link.trace" and trace is not None:
            raise PlanError(f"--trace {trace}: {fault.message}") from fault
        if fault.key in ("link.rate", "link.nominal") and rate is not None and rate in fault.value:
            raise PlanError(f"--rate {rate}: {fault.message}") from fault
        given = f" = {fault.value}" if fault.value else ""
        raise PlanError(f"replay of {name}: {fault.key}{given}: {fault.message}; --set changes this") from fault


# --- The scenario --------------------------------------------------------------------------------------------------


def _written(
    part: Part,
    totals: Mapping[str, Sums],
    sums: Sequence[Sequence[Sums]],
    interval_s: float,
    with_tcp: Sequence[str],
    rtt: str,
    folder: Path,
    other: dict[str, Any] | None,
) -> dict[str, Any]:
    """The scenario as it was recorded, over the `other` link if there is one; writes its files."""
    settings = part.settings
    (folder / RECORDING).write_bytes(part.content())
    flows: list[dict[str, Any]] = []
    for at, (name, total) in enumerate(totals.items()):
        if name in with_tcp:
            flows.extend(_transfers(name, [row[at] for row in sums], interval_s))
        elif total.arrived_pkts:
            flows.append({"name": name, "class": name, "kind": "replay", "file": RECORDING, "only": name})
    if not flows:
        raise PlanError(f"{part.recording.name}: no packets came in this time")
    link = _capacity(part, folder) if other is None else dict(other)
    link["follow"] = bool(part.link.get("follow", True))
    if "nominal" not in link:
        link["nominal"] = nominal_of(part.link)
    if with_tcp:
        link["delay"] = _native.show(_native.quantity(rtt, "time") / 2, "time")
    return {
        "name": f"{part.peer}, {part.began:%Y-%m-%d %H:%M:%S} UTC",
        "duration": f"{(part.span_ns[1] - part.span_ns[0]) / 1e9:.9f}s",
        "interval": f"{interval_s:.9f}s",
        "link": link,
        "scheduler": dict(settings["scheduler"]),
        "class": [_class(entry) for entry in settings["class"]],
        "flow": flows,
    }


def _capacity(part: Part, folder: Path) -> dict[str, Any]:
    """The capacity as it was recorded."""
    changes = part.capacity
    if not changes:
        raise PlanError(f"{part.recording.name}: does not say what the link to {part.peer} carried; give --rate")
    if len(changes) == 1:
        return {"rate": f"{changes[0][1]}bit"}
    if changes[-1][0] < part.duration_s:
        changes.append((part.duration_s, changes[-1][1]))  # so that the trace is as long as the run
    lines = "".join(f"{at_s:.9f},{bps}\n" for at_s, bps in changes)
    (folder / CAPACITY).write_text(f"# end=hold\nt_s,capacity_bps\n{lines}", encoding="utf-8")
    return {"trace": CAPACITY}


def _class(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A class of one link as the simulator has it: the gateway drops a little before `max_age`."""
    found = {key: value for key, value in entry.items() if key not in ("flows", "l4s_step", *OF_A_CLASS)}
    if "max_age" in found:
        with contextlib.suppress(ValueError, TypeError):  # of a stranger's file; the parser of scenarios refuses it
            age_s = _native.quantity(found["max_age"], "time")
            found["max_age"] = _native.show(age_s - min(_AGE_MARGIN_S, age_s / 10), "time")
    return found


def _transfers(name: str, sums: Sequence[Sums], interval_s: float) -> Iterator[dict[str, Any]]:
    """TCP connections: one for each of at most 100 equal times, with the payload that was sent in it."""
    each = math.ceil(len(sums) / _MOST_TRANSFERS)
    for first in range(0, len(sums), each):
        sent_bytes = sum(one.sent_bytes for one in sums[first : first + each])
        payload = sent_bytes * _MSS_BYTES // (_MSS_BYTES + _HEADERS_BYTES)
        if payload:
            yield {
                "name": f"{name}-{first // each + 1}",
                "class": name,
                "kind": "tcp",
                "start": f"{first * interval_s:.9f}s",
                "bytes": f"{payload}B",
                "mss": f"{_MSS_BYTES}B",
                "header": f"{_HEADERS_BYTES}B",
            }


def _fitted(written: dict[str, Any], policy: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    known = fitting.known_policies()
    if policy not in known:
        listed = ", ".join(fitting.listed_policies())
        raise PlanError(f"no policy is called {policy}; there are {listed}{keys.nearest(policy, known)}")
    nominal_bps = _native.quantity(written["link"]["nominal"], "rate")
    found = fitting.fit(written, policy, nominal_bps)
    there = {
        key: value
        for key, value in found.changes.items()
        if value is not None or keys.look_up(written, key) is not None
    }
    return keys.put(written, there), found.notes


def _about_flows(part: Part) -> Iterator[str]:
    """Which classes kept flows apart that a recording does not tell apart."""
    for entry in part.settings["class"]:
        if "flows" in entry:
            yield (
                f"{entry['name']}: the gateway kept its flows apart ({entry['flows']}); a recording does not tell them "
                "apart, so here they share one queue"
            )


def _about_tcp(totals: Mapping[str, Sums], with_tcp: Sequence[str], closed: bool, round_trip: str) -> Iterator[str]:
    """What the replay says nothing about: how senders would have reacted."""
    reacting = [name for name, total in totals.items() if total.tcp_pkts > 0.01 * total.arrived_pkts]
    open_loop = [name for name in reacting if name not in with_tcp]
    if with_tcp:
        count = "one connection for each of at most 100 equal parts of the time, which transfers what was sent in it"
        yield f"{', '.join(with_tcp)}: sent by TCP, {count}; round trip {round_trip}"
    elif closed:
        yield "no class is sent by TCP: in none are most packets TCP's and longer than acknowledgements"
    if open_loop:
        cure = "" if closed else "; --closed puts TCP sources of the recorded volume in their place"
        yield (
            f"open-loop: the packets come when they came, but {', '.join(open_loop)} had TCP, whose senders would "
            f"react to another policy or link{cure}"
        )
