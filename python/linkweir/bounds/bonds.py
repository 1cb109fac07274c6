# SPDX-License-Identifier: BSD-3-Clause
"""The bounds of a scenario's bonds: those of each class with all links, and without each one."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from linkweir import _native
from linkweir.bounds import capacity
from linkweir.bounds.answer import plain, points, without_arrivals
from linkweir.bounds.arrivals import Envelope, exact
from linkweir.bounds.bond import Bond, BondBound, Bonded, Member, bond_bounds
from linkweir.bounds.curve import ZERO, Curve, add
from linkweir.bounds.network import Model, delays_s, peak_bps, reorder_of
from linkweir.bounds.paths import Stop
from linkweir.bounds.policies import Queue
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch


@dataclass(frozen=True)
class Promise:
    """What the scheduler reserves for a class, and how much of it the links can carry, bit/s."""

    name: str
    promised_bps: int
    kept_bps: int


@dataclass(frozen=True)
class Without:
    """What is left of a bond while one link is gone."""

    link: str
    cost: int
    classes: tuple[BondBound, ...]
    promises: tuple[Promise, ...]


@dataclass(frozen=True)
class BoundsOfBond:
    """The bounds of a bond: of the classes that flows join, in order."""

    name: str
    policy: str
    classes: tuple[BondBound, ...]
    promises: tuple[Promise, ...]
    """Of pss's reserved classes, at nominal rates."""
    without: tuple[Without, ...]
    """For each link in order; none if there is only one."""


def bounds_of_bonds(scenario: Scenario, *, envelopes: Sequence[str] = ()) -> list[BoundsOfBond]:
    """The bounds of all bonds of a scenario.

    Args:
        scenario: one with [[bond]].
        envelopes: as of `network_bounds`; BOND.CLASS is what arrives at a class of a bond.

    Raises:
        OptionError: an envelope names nothing, or is wrong.
    """
    refuse_constellation(scenario, "bounds")
    model = Model(scenario, envelopes)
    return [_of_bond(scenario, model, keys) for keys in scenario.native.written()["bond"]]


def _of_bond(scenario: Scenario, model: Model, keys: Mapping[str, Any]) -> BoundsOfBond:
    number = model.names.index(keys["name"])
    queues = model.links[number].setting.queues
    joined = [index for index in range(len(queues)) if _is_joined(model, Stop(number, index))]
    promises = _promises(scenario, model, number)
    made = _bond(scenario, model, keys)
    policy = model.links[number].setting.policy
    if isinstance(made, str):
        none = tuple(_none(queues[index].name, made) for index in joined)
        return BoundsOfBond(keys["name"], policy, none, promises[0], ())
    everything = bond_bounds(made)
    without = []
    if len(made.members) > 1:
        for gone, member in enumerate(made.members):
            found = bond_bounds(made.without(gone))
            bounds = tuple(found[index] for index in joined)
            without.append(Without(member.name, member.cost, bounds, promises[1 + gone]))
    return BoundsOfBond(keys["name"], policy, tuple(everything[i] for i in joined), promises[0], tuple(without))


def _promises(scenario: Scenario, model: Model, number: int) -> list[tuple[Promise, ...]]:
    """What is reserved and can be carried: with all links, then without each one."""
    setting = model.links[number].setting
    promised = [0 for _ in setting.queues]
    if setting.policy == "pss":
        promised = [
            math.floor(max(exact(q.params["rate"]), exact(q.params["share"]) * setting.nominal_bps))
            for q in setting.queues
        ]
    return [
        tuple(Promise(setting.queues[index].name, promised[index], kept_bps) for index, kept_bps in kept)
        for kept in scenario.of_link(model.names[number]).native.kept(promised)
    ]


def _none(name: str, why: str) -> BondBound:
    return BondBound(name, None, None, None, None, None, None, None, why_none=f"no bound: {why}")


def _bond(scenario: Scenario, model: Model, keys: Mapping[str, Any]) -> Bond | str:
    """A bond as it is analysed, or why no bound is known for it."""
    number = model.names.index(keys["name"])
    link = model.links[number]
    if link.why_none:
        return link.why_none.removeprefix("no bound: ")
    detect_s, room_s = (exact(_native.quantity(keys[key], "time")) for key in ("detect", "room"))
    members = []
    for name in keys["links"]:
        (written,) = (one for one in scenario.native.written()["link"] if one["name"] == name)
        made = _member(scenario, written, detect_s)
        if isinstance(made, str):
            return f"link {name}: {made}"
        members.append(made)
    names = [member.name for member in members]
    classes = [
        _bonded(replace(queue, envelope=_arrivals(model, Stop(number, index))), names)
        for index, queue in enumerate(link.setting.queues)
    ]
    for one in classes:
        if one.queue.params["resend"] and any(member.dies for member in members):
            again = "sends again what a dead link held, for which no bound is known; write resend = false"
            return f"class {one.queue.name} {again}"
    copies_s = detect_s + 2 * max(member.delay_s[1] - member.held_s for member in members)
    return Bond(link.setting.policy, members, classes, room_s, copies_s)


def _is_joined(model: Model, stop: Stop) -> bool:
    """Whether any flow joins a queue."""
    return any(stop in group.traffic.way for group in model.groups)


def _arrivals(model: Model, stop: Stop) -> Envelope:
    """What arrives at a class of a bond."""
    link = model.links[stop.link]
    groups = [group for group in model.groups if stop in group.traffic.way]
    each = [group.traffic.envelope(link.framing) for group in groups]
    least = min((one.least_bits for one in each), default=8)
    most = max((one.most_bits for one in each), default=8)
    if stop.queue in link.given:
        return Envelope(link.given[stop.queue], "", least, most)
    for group, one in zip(groups, each, strict=True):
        if group.traffic.way[0] != stop:
            name = f"{link.name}.{link.setting.queues[stop.queue].name}"
            why = f"flow {group.traffic.name} comes from another link; give --envelope {name}=BURST:RATE"
            return Envelope(None, why, least, most)
        if one.curve is None:
            return Envelope(None, one.why_none, least, most)
    return Envelope(add([ZERO, *(one.curve for one in each if one.curve is not None)]), "", least, most)


def _bonded(queue: Queue, names: Sequence[str]) -> Bonded:
    paths, reorder = queue.params["paths"], queue.params["reorder"]
    every = frozenset(range(len(names)))
    links = every if isinstance(paths, str) else frozenset(names.index(name) for name in paths)
    reorder_s = None if reorder == "none" else exact(reorder)
    return Bonded(queue, paths if isinstance(paths, str) else "stripe", links, reorder_s)


# --- links ------------------------------------------------------------------------------------------------------------


def _member(scenario: Scenario, written: Mapping[str, Any], detect_s: Fraction) -> Member | str:
    """A link of a bond, or why no bound is known for it."""
    alone = _alone(scenario, written)
    setting, why = without_arrivals(alone)
    if why:
        return why.removeprefix("no bound: ")
    native = alone.native
    link = native.tables()["link"]
    loss = link["loss"]
    losses = [loss] if isinstance(loss, float) else _values(loss)
    _, rates = native.link_steps("rate", 1.0)
    smooth = capacity.Smooth.of(link["rate_bps"])
    if smooth is not None and min(smooth.least_steps(round(alone.duration_s * 1e9))[1]) <= 0:
        return "its rate changes smoothly and reaches 0; write it in steps"
    slowest = _least_bps(alone)
    dies = max(losses) >= 1 or (slowest is not None and min(rates, default=1.0) <= 0)
    curve = setting.capacity
    if max(losses) >= 1:
        dead = _dead(alone, detect_s)
        if dead is None:
            return "its loss changes smoothly and reaches 1; write it in steps"
        curve = _alive(alone, dead)
    reorder = reorder_of(alone)
    held_s = exact(reorder["delay_s"]) if reorder else Fraction(0)
    least_s, most_s = delays_s(alone)
    return Member(
        written["name"],
        curve,
        slowest,
        peak_bps(alone),
        setting.reported_bps[1],
        (least_s, most_s + held_s),
        max(losses) > 0 or dies,
        dies,
        held_s,
        written["cost"],
    )


def _alone(scenario: Scenario, written: Mapping[str, Any]) -> Scenario:
    """A link of a bond as a scenario of its own."""
    native = scenario.native
    keys = {
        "duration": f"{round(scenario.duration_s * 1e9)}ns",
        "link": {key: value for key, value in written.items() if key not in ("name", "cost")},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all"}],
        "flow": [{"class": "all", "kind": "cbr", "rate": "1kbit", "packet": "100B"}],
    }
    with scratch() as folder:
        for name, _, content in native.inputs:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return Scenario.from_dict(keys, path=folder / "link.toml")


def _values(signal: Mapping[str, Any]) -> list[float]:
    """Values that bound a signal over time."""
    if "mean" in signal:
        return [signal["mean"] * (1 + part * abs(signal["amplitude"])) for part in (-1, 1)]
    return [value for _, value in signal["steps" if "steps" in signal else "lines"]]


def _least_bps(link: Scenario) -> Fraction | None:
    """The least rate above 0; None if bits leave at opportunities."""
    native = link.native
    if native.opportunities()[0]:
        return None
    smooth = capacity.Smooth.of(native.tables()["link"]["rate_bps"])
    end_ns = round(link.duration_s * 1e9)
    rates = native.link_steps("rate", 1.0)[1] if smooth is None else smooth.least_steps(end_ns)[1]
    return Fraction(max(math.floor(min((bps for bps in rates if bps > 0), default=1.0)), 1))


def _dead(link: Scenario, detect_s: Fraction) -> list[tuple[int, int]] | None:
    """When a link carries nothing that counts, ns: while it loses all, and until it is known that it no longer does."""
    loss = link.native.tables()["link"]["loss"]
    if isinstance(loss, float):
        return [(0, round(link.duration_s * 1e9))]
    if "steps" not in loss:
        return None
    starts, values = link.native.link_steps("loss", 1.0)
    ends = [*starts[1:], round(link.duration_s * 1e9)]
    detect_ns = math.ceil(detect_s * 10**9)
    return [(at, end + detect_ns) for at, end, value in zip(starts, ends, values, strict=True) if value >= 1]


def _alive(link: Scenario, dead: Sequence[tuple[int, int]]) -> Curve:
    """What a link carries at least in any window, where it carries nothing while it is dead."""
    native, end_ns = link.native, round(link.duration_s * 1e9)
    is_dead = [(begin, min(end, end_ns)) for begin, end in dead]
    at_ns, bytes_each = native.opportunities()
    if at_ns:
        kept = [at for at in at_ns if not any(begin <= at < end for begin, end in is_dead)]
        return capacity.of_opportunities(kept, bytes_each, end_ns) if kept else ZERO
    smooth = capacity.Smooth.of(native.tables()["link"]["rate_bps"])
    starts, rates = native.link_steps("rate", 1.0) if smooth is None else smooth.least_steps(end_ns)
    changes = sorted({*starts, *(at for pair in is_dead for at in pair if at < end_ns)})
    values = []
    for at in changes:
        bps = rates[bisect_right(starts, at) - 1]
        values.append(0.0 if any(begin <= at < end for begin, end in is_dead) else bps)
    return capacity.of_steps(changes, values, end_ns)


# --- output -----------------------------------------------------------------------------------------------------------


def bonds_json(found: Sequence[BoundsOfBond], scenario: Scenario) -> dict[str, Any]:
    """The bounds with names that stay the same; curves as lists of (start in s, bits, bit/s)."""
    return {
        "scenario": scenario.name,
        "bonds": [
            {
                "name": bond.name,
                "policy": bond.policy,
                "classes": [_class_json(bound) for bound in bond.classes],
                "promises": [asdict(promise) for promise in bond.promises],
                "without": [
                    {
                        "link": one.link,
                        "cost": one.cost,
                        "classes": [_class_json(bound) for bound in one.classes],
                        "promises": [asdict(promise) for promise in one.promises],
                    }
                    for one in bond.without
                ],
            }
            for bond in found
        ],
    }


def _class_json(bound: BondBound) -> dict[str, Any]:
    return {
        "name": bound.name,
        "delay_s": plain(bound.delay_s),
        "received_s": plain(bound.received_s),
        "backlog_bytes": None if bound.backlog_bits is None else math.ceil(bound.backlog_bits / 8),
        "limit_pkts": bound.limit_pkts,
        "reorder_s": plain(bound.reorder_s),
        "sure": bound.sure,
        "why_none": bound.why_none or None,
        "arrival_curve": points(bound.arrivals),
        "service_curve": points(bound.service),
    }
