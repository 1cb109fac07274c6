# SPDX-License-Identifier: BSD-3-Clause
"""The bounds of a scenario with several links: worst delays from end to end, and what waits at each link at most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from linkweir.bounds import capacity
from linkweir.bounds.answer import Bound, Calls, envelope, framing_of, plain, points, without_arrivals
from linkweir.bounds.arrivals import Envelope, Framing, exact, of_flow
from linkweir.bounds.convex import scaled
from linkweir.bounds.curve import Curve, add
from linkweir.bounds.paths import Analysis, At, Link, Stop, Stretch, Traffic, factor
from linkweir.fault import unfit
from linkweir.scenarios.flows import OverTcp, is_over_tcp
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Flow

SACK_BYTES = 44
"""Most bytes that blocks of received segments add to an acknowledgement."""
PLAIN = Framing(0, 0)
NAMES_SHOWN = 20


@dataclass(frozen=True)
class Hop:
    """A queue on a way and its bounds. Times in seconds, amounts in bits; None with the reason in `why_none`."""

    link: str
    queue: str
    at: At
    limit_pkts: int | None
    """Packets that the queue must hold so that none is lost."""
    model: Link
    passed: bool
    """Whether any flow joins the queue."""

    @property
    def bound(self) -> Bound:
        """The same as of a class of one link, named LINK: CLASS."""
        curves = self.at.service.curves
        return Bound(
            f"{self.link}: {self.queue}",
            self.at.arrivals,
            curves[0] if curves else None,
            self.at.delay_s,
            self.at.backlog_bits,
            self.limit_pkts,
            self.at.service.memory_s,
            self.at.why_none,
        )

    def alone_ns(self, size_bytes: int) -> int:
        """From the arrival of a packet at the idle link to that at its end, at the greatest capacity."""
        sent_s = self.model.framing.bits(size_bytes) / self.model.peak_bps if self.model.peak_bps else Fraction(0)
        return math.ceil(10**9 * (sent_s + self.model.delay_s[1]))


@dataclass(frozen=True)
class WayBound:
    """Of a flow, or of all copies of it that take one way. Times in seconds; None with the reason in `why_none`."""

    flow: str
    copies: int
    hops: tuple[Hop, ...]
    propagation_s: Fraction
    """The links' greatest delays together."""
    delay_s: Fraction | None
    """From the arrival at the first queue to the arrival at the receiver."""
    stretches: tuple[Stretch, ...]
    """The links whose delays were bounded together; `delay_s` is the sum of theirs and the propagation."""
    one_by_one_s: Fraction | None
    """The same with the sum of the links' own bounds."""
    why_none: str

    @property
    def method(self) -> str:
        """How the bound came about: links that were taken together are joined by +."""
        names, at = [], 0
        for stretch in self.stretches:
            size = len(stretch.stops)
            names.append(" + ".join(hop.link for hop in self.hops[at : at + size]))
            at += size
        return ", ".join(names)


@dataclass(frozen=True)
class NetworkBounds:
    """All bounds of a network."""

    ways: tuple[WayBound, ...]
    queues: tuple[Hop, ...]
    """Every class of every link."""
    rings: tuple[tuple[str, ...], ...]
    """Links that depend on each other, by name."""


def network_bounds(scenario: Scenario, *, envelopes: Sequence[str] = ()) -> NetworkBounds:
    """Worst delays of all flows from end to end, and worst delays and backlogs at all links.

    A delay lasts from the arrival at the first queue to the arrival at the receiver, with the propagation of all links.
    It holds while no packet is dropped.

    Args:
        scenario: one with [[link]].
        envelopes: as typed: FLOW=BURST:RATE is what each copy of a flow sends at most, without any link's overhead;
            LINK.CLASS=BURST:RATE what arrives at a class of a link at most, as this link counts it.

    Raises:
        OptionError: an envelope names neither, or is wrong.
    """
    refuse_constellation(scenario, "bounds")
    if "bond" in scenario.native.written():
        raise unfit("bond", "...", "bounds of a bond are those of its classes; call bounds_of_bonds")
    model = Model(scenario, envelopes)
    analysis = Analysis(model.links, [group.traffic for group in model.groups])
    hops = {
        Stop(number, index): _hop(model, analysis, Stop(number, index))
        for number, link in enumerate(model.links)
        for index in range(len(link.setting.queues))
    }
    ways = []
    for number, group in enumerate(model.groups):
        ways += [_way(model, analysis, number, name, copies, hops) for name, copies in group.members]
    rings = tuple(tuple(model.names[n] for n in ring) for ring in analysis.order if len(ring) > 1)
    return NetworkBounds(tuple(ways), tuple(hops.values()), rings)


def _hop(model: Model, analysis: Analysis, stop: Stop) -> Hop:
    link = model.links[stop.link]
    at = analysis.at[stop]
    least = analysis.least_bits(stop)
    limit = None if at.backlog_bits is None else int(-(-at.backlog_bits // least))
    return Hop(link.name, link.setting.queues[stop.queue].name, at, limit, link, analysis.passes(stop))


def _way(model: Model, analysis: Analysis, number: int, name: str, copies: int, hops: Mapping[Stop, Hop]) -> WayBound:
    way = model.groups[number].traffic.way
    passed = tuple(hops[stop] for stop in way)
    propagation_s = sum((model.links[stop.link].delay_s[1] for stop in way), Fraction(0))
    stretches = analysis.stretches(number)
    if stretches is None:
        why = next((hop.at.why_none for hop in passed if hop.at.delay_s is None), "no bound")
        return WayBound(name, copies, passed, propagation_s, None, (), None, why)
    each = [hop.at.delay_s for hop in passed]
    one_by_one_s = sum((s for s in each if s is not None), propagation_s) if None not in each else None
    return WayBound(name, copies, passed, propagation_s, analysis.delay_s(number), tuple(stretches), one_by_one_s, "")


def source_curves(scenario: Scenario, envelopes: Sequence[str]) -> dict[str, Envelope]:
    """What one copy of each flow sends at most, without any link's overhead."""
    model = Model(scenario, envelopes)
    flows = scenario.native.tables()["flows"]
    replayed = scenario.native.replayed
    return {flow["name"]: _source(flow, 1, replayed, model.sent.get(flow["name"]))(PLAIN) for flow in flows}


@dataclass
class _Group:
    """All flows with one way."""

    traffic: Traffic
    members: list[tuple[str, int]]


class Model:
    """A scenario as the analysis takes it."""

    def __init__(self, scenario: Scenario, envelopes: Sequence[str]) -> None:
        native = scenario.native
        self.names = scenario.links
        alone = [Scenario(link) for link in native.links]
        self.classes: list[dict[str, int]] = []
        bare = []
        for link in alone:
            setting, why = without_arrivals(link)
            self.classes.append({queue.name: index for index, queue in enumerate(setting.queues)})
            bare.append((setting, why, framing_of(link.native.tables()["link"])))
        self.flows = [flow["name"] for flow in native.tables()["flows"]]
        given, self.sent = self._given(envelopes, [framing for _, _, framing in bare])
        self.links = []
        for number, (link, (setting, why, framing)) in enumerate(zip(alone, bare, strict=True)):
            least_s, most_s = delays_s(link)
            held_s = exact(reorder["delay_s"]) if (reorder := reorder_of(link)) else Fraction(0)
            self.links.append(
                Link(
                    self.names[number],
                    setting,
                    framing,
                    (least_s, most_s + held_s),
                    not held_s,
                    None if why else peak_bps(link),
                    given.get(number, {}),
                    f"no bound: link {self.names[number]}: {why.removeprefix('no bound: ')}" if why else "",
                )
            )
        self.groups = self._groups(scenario, self.sent)

    def _given(
        self, texts: Sequence[str], framings: Sequence[Framing]
    ) -> tuple[dict[int, dict[int, Curve]], dict[str, Curve]]:
        """Envelopes of classes by link and queue, and of flows by name."""
        given: dict[int, dict[int, Curve]] = {}
        sent: dict[str, Curve] = {}
        known = set()
        queues = {
            f"{link}.{queue}": Stop(number, index)
            for number, link in enumerate(self.names)
            for queue, index in self.classes[number].items()
        }
        for text in texts:
            name = text.partition("=")[0]
            if name in known:
                raise OptionError("--envelope", text, f"{name} has an envelope already; put commas between its pairs")
            known.add(name)
            if name in self.flows:
                sent[name] = envelope(text, PLAIN)[1]
            elif name in queues:
                stop = queues[name]
                given.setdefault(stop.link, {})[stop.queue] = envelope(text, framings[stop.link])[1]
            else:
                raise OptionError(
                    "--envelope",
                    text,
                    f"{name} is neither a flow ({_some(self.flows)}) nor LINK.CLASS or BOND.CLASS ({_some(queues)})",
                )
        return given, sent

    def _groups(self, scenario: Scenario, sent: Mapping[str, Curve]) -> list[_Group]:
        native = scenario.native
        ways = iter(native.ways())
        parts: dict[tuple[Stop, ...], list[tuple[str, int, Callable[[Framing], Envelope]]]] = {}
        for flow in native.tables()["flows"]:
            taken: Counter[tuple[Stop, ...]] = Counter()
            back: Counter[tuple[Stop, ...]] = Counter()
            for _ in range(flow["count"]):
                _, there, home = next(ways)
                taken[self._stops(there)] += 1
                if home and is_over_tcp(flow):
                    back[self._stops(home)] += 1
            for way, copies in taken.items():
                source = _source(flow, copies, native.replayed, sent.get(flow["name"]))
                parts.setdefault(way, []).append((flow["name"], copies, source))
            for way, copies in back.items():
                if is_over_tcp(flow):
                    parts.setdefault(way, []).append(
                        (f"{flow['name']} (back)", copies, self._acknowledgements(flow, way[0]))
                    )
        return [
            _Group(
                Traffic(each[0][0], way, _all([source for _, _, source in each])),
                [(name, copies) for name, copies, _ in each],
            )
            for way, each in parts.items()
        ]

    def _acknowledgements(self, flow: OverTcp, first: Stop) -> Callable[[Framing], Envelope]:
        """What the receiver of TCP connections sends: acknowledgements, the SYN's answer, requests of applications."""
        largest = flow["ack_bytes"] + SACK_BYTES
        if flow["kind"] != "tcp":
            largest = max(largest, flow["mss_bytes"] + flow["header_bytes"])
        link = self.links[first.link]
        why = f"acknowledgements of flow {flow['name']} ({flow['kind']}) have no arrival curve; give --envelope "
        why += f"{link.name}.{link.setting.queues[first.queue].name}=BURST:RATE"

        def of(framing: Framing) -> Envelope:
            return Envelope(None, why, framing.bits(flow["ack_bytes"]), framing.bits(largest))

        return of

    def _stops(self, pairs: Sequence[tuple[str, str]]) -> tuple[Stop, ...]:
        numbers = [self.names.index(link) for link, _ in pairs]
        return tuple(Stop(n, self.classes[n][queue]) for n, (_, queue) in zip(numbers, pairs, strict=True))


def _some(names: Iterable[str]) -> str:
    """The first names of a list."""
    listed = list(names)
    return ", ".join(listed[:NAMES_SHOWN]) + (" and so on" if len(listed) > NAMES_SHOWN else "")


def _all(sources: Sequence[Callable[[Framing], Envelope]]) -> Callable[[Framing], Envelope]:
    def together(framing: Framing) -> Envelope:
        parts = [source(framing) for source in sources]
        least, most = min(p.least_bits for p in parts), max(p.most_bits for p in parts)
        why = next((p.why_none for p in parts if p.curve is None), "")
        curve = None if why else add([p.curve for p in parts if p.curve is not None])
        return Envelope(curve, why, least, most)

    return together


def _source(flow: Flow, copies: int, replayed: Any, given: Curve | None) -> Callable[[Framing], Envelope]:
    def of(framing: Framing) -> Envelope:
        own = of_flow(flow, copies, framing, replayed)
        if given is None and own.curve is None:
            return replace(own, why_none=f"{own.why_none}; give --envelope {flow['name']}=BURST:RATE")
        if given is None:
            return own
        sizes = of_flow(flow, copies, PLAIN, replayed)
        least, most = sizes.least_bits, sizes.most_bits
        if isinstance(given, Calls):
            least = most = given.packet_bits
        if given(0) < least:
            burst = f"a burst of {int(given(0) // 8)} B lets no packet of the flow pass"
            raise OptionError(
                "--envelope", flow["name"], f"{burst}: the smallest has {least // 8} B; give at least that"
            )
        times = copies * factor(PLAIN, framing, (least // 8, most // 8))
        return Envelope(scaled(given, times), "", framing.bits(least // 8), framing.bits(most // 8))

    return of


def delays_s(link: Scenario) -> tuple[Fraction, Fraction]:
    """The least and the greatest propagation delay."""
    value = link.native.tables()["link"]["delay_s"]
    if isinstance(value, float):
        delay_s = exact(value)
        return delay_s, delay_s
    if "mean" in value:
        mean_s = exact(value["mean"])
        swing_s = mean_s * Fraction(value["amplitude"])
        return max(mean_s - swing_s, Fraction(0)), mean_s + swing_s
    rows = value["steps"] if "steps" in value else value["lines"]
    each = [exact(delay) for _, delay in rows]
    return min(each), max(each)


def reorder_of(link: Scenario) -> Any:
    """Which packets are held back so that others overtake them; None if none are."""
    return link.native.tables()["link"]["reorder"]


def peak_bps(link: Scenario) -> Fraction | None:
    """The greatest capacity at any time."""
    native = link.native
    if native.opportunities()[0]:
        return None
    smooth = capacity.Smooth.of(native.tables()["link"]["rate_bps"])
    if smooth is not None:
        return Fraction(math.ceil(smooth.most()))
    _, rates = native.link_steps("rate", 1.0)
    return Fraction(math.ceil(max(rates)))


def network_json(found: NetworkBounds, scenario: Scenario) -> dict[str, Any]:
    """The bounds with names that stay the same; curves as lists of (start in s, bits, bit/s)."""
    return {
        "scenario": scenario.name,
        "flows": [
            {
                "name": way.flow,
                "copies": way.copies,
                "path": [[hop.link, hop.queue] for hop in way.hops],
                "delay_s": plain(way.delay_s),
                "propagation_s": plain(way.propagation_s),
                "one_by_one_s": plain(way.one_by_one_s),
                "stretches": [
                    {"links": len(stretch.stops), "delay_s": plain(stretch.delay_s)} for stretch in way.stretches
                ],
                "why_none": way.why_none or None,
            }
            for way in found.ways
        ],
        "queues": [
            {
                "link": hop.link,
                "class": hop.queue,
                "delay_s": plain(hop.at.delay_s),
                "backlog_bytes": None if hop.at.backlog_bits is None else math.ceil(hop.at.backlog_bits / 8),
                "limit_pkts": hop.limit_pkts,
                "memory_s": plain(hop.at.service.memory_s),
                "why_none": hop.at.why_none or None,
                "arrival_curve": points(hop.at.arrivals),
            }
            for hop in found.queues
        ],
    }
