# SPDX-License-Identifier: BSD-3-Clause
"""The bounds of a scenario: each class' curves, worst delay and backlog, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from linkweir import _native
from linkweir.bounds import capacity
from linkweir.bounds.arrivals import Envelope, Framing, Replayed, exact, of_flow
from linkweir.bounds.curve import Curve, add, horizontal, minimum, token_bucket, vertical
from linkweir.bounds.policies import Queue, Service, Setting, services
from linkweir.fault import unfit
from linkweir.scenarios.declared import told
from linkweir.scenarios.quantity import OptionError
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Flow, Link

SIZES_WITHOUT_FLOWS_BYTES = (20, 1500)
"""The smallest and the largest packet of a class with an envelope and no flow: an IPv4 header, and Ethernet's MTU."""
PLAIN = Framing(0, 0)
"""A link that adds nothing to packets."""
VOICE_HEADER_BYTES = 40
"""IPv4, UDP and RTP (RFC 3550), as flows of kind voice have by default."""


@dataclass(frozen=True)
class Bound:
    """Of one class. Times in seconds, amounts in bits; None with the reason in `why_none`."""

    name: str
    arrivals: Curve | None
    service: Curve | None
    delay_s: Fraction | None
    backlog_bits: Fraction | None
    limit_pkts: int | None
    """Packets that the queue must hold so that none is lost."""
    memory_s: Fraction | None
    """Memory of PSS with which nothing owed is lost."""
    why_none: str
    sizes_bits: tuple[int, int] = (8, 8)
    """The smallest and the largest packet on the link."""


def bounds(
    scenario: Scenario, *, envelopes: Mapping[str, Curve] | None = None, worst: str | None = None
) -> list[Bound]:
    """Worst delays and backlogs of all classes.

    A delay lasts from the arrival at the queue to the end of the transmission. It holds while no packet is dropped
    and, for a recorded capacity, from whatever instant of the record the run begins.

    Args:
        scenario: the scenario.
        envelopes: arrival curves of classes, in place of what their flows' keys say.
        worst: PART/WINDOW: the link carries at least this part of its nominal rate in any such window.

    Raises:
        OptionError: an envelope names no class, or `worst` is wrong.
        ScenarioError: the scenario has several links; `network_bounds` computes their bounds.
    """
    setting, why = setting_of(scenario, envelopes or {}, worst)
    if why:
        return [Bound(name, None, None, None, None, None, None, why) for name in scenario.classes]
    assert setting is not None
    return [_bound(queue, service) for queue, service in zip(setting.queues, services(setting), strict=True)]


def _bound(queue: Queue, service: Service) -> Bound:
    arrivals, curves = queue.envelope.curve, service.curves
    sizes = (queue.envelope.least_bits, queue.envelope.most_bits)

    def none(reason: str) -> Bound:
        shown = curves[0] if curves else None
        return Bound(queue.name, arrivals, shown, None, None, None, service.memory_s, reason, sizes)

    if arrivals is None:
        return none(f"no bound: {queue.envelope.why_none}")
    if not curves:
        return none(service.why_none)
    together = service.fifo or arrivals
    delay = service.delay_s(arrivals, sizes)
    backlogs = [b for b in (vertical(together, curve) for curve in curves) if b is not None]
    if delay is None or not backlogs:
        rate = float(together.rate / 10**6)
        left = float(max(curve.rate for curve in curves) / 10**6)
        return none(f"no bound: up to {rate:g} Mbit/s arrive, and {left:g} Mbit/s are certain")
    return Bound(
        queue.name,
        arrivals,
        curves[0] if len(curves) == 1 else min(curves, key=lambda c: horizontal(together, c) or Fraction(10**30)),
        delay,
        min(backlogs),
        -(-min(backlogs) // queue.envelope.least_bits),
        service.memory_s,
        "",
        sizes,
    )


def setting_of(scenario: Scenario, envelopes: Mapping[str, Curve], worst: str | None) -> tuple[Setting | None, str]:
    """Scheduler, link and arrivals of a scenario, or why no bound is known."""
    for name in scenario.links:
        raise unfit("link.name", name, "bounds of a network are those of its flows' ways; call network_bounds")
    tables = scenario.native.tables()
    setting, why = without_arrivals(scenario, worst)
    for name in envelopes:
        if name not in [queue.name for queue in setting.queues]:
            raise OptionError(
                "--envelope", name, f"is no class of the scenario: {', '.join(q.name for q in setting.queues)}"
            )
    if why:
        return None, why
    framing, replayed = framing_of(tables["link"]), scenario.native.replayed
    queues = [
        replace(queue, envelope=_envelope(queue, tables["flows"], framing, replayed, envelopes))
        for queue in setting.queues
    ]
    return replace(setting, queues=queues), ""


def without_arrivals(scenario: Scenario, worst: str | None = None) -> tuple[Setting, str]:
    """Scheduler, link and classes of a scenario with one link, and why no bound is known; if so, the capacity is 0."""
    keys, tables = scenario.native.written(), scenario.native.tables()
    link, scheduler = tables["link"], tables["scheduler"]
    entries = [entry for entry in tables["classes"] for _ in range(entry["count"])]
    queues = [
        Queue(name, entry["params"], Envelope(token_bucket(0, 0), "", 8, 8), entry["name"], entry["count"])
        for name, entry in zip(scenario.classes, entries, strict=True)
    ]
    nominal = exact(link["nominal_bps"])
    why = _refused(keys["link"], keys["scheduler"], keys["class"])
    curve, reported = (token_bucket(0, 0), (nominal, nominal)) if why else _capacity(scenario, link, nominal, worst)
    return Setting(scenario.policy, scheduler["params"], curve, link["ring"], nominal, reported, queues), why


def _refused(link: Mapping[str, Any], scheduler: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]) -> str:
    """The first key with which no bound is known, in a sentence."""
    for key, words in told("link", "bounds", link, "refused"):
        return words.format(key=f"link.{key}")
    for key, words in told("scheduler", "bounds", scheduler, "refused"):
        return f"scheduler.{key}: {words}"
    for c in classes:
        for key, words in told("class", "bounds", c, "refused"):
            first = c["name"] if c["count"] == 1 else f"{c['name']}-1"
            return f"{words.format(key=key)} (class {first})"
    return ""


def framing_of(link: Link) -> Framing:
    """What the link of a scenario adds to packets."""
    return Framing(link["overhead_bytes"], link["mpu_bytes"])


def _envelope(
    queue: Queue,
    flows: Sequence[Flow],
    framing: Framing,
    replayed: Replayed,
    envelopes: Mapping[str, Curve],
) -> Envelope:
    parts = []
    for flow in flows:
        if flow["class"] == queue.name:
            parts.append(of_flow(flow, flow["count"], framing, replayed))
        elif flow["class"] == queue.entry:  # copies go to the classes in turn
            parts.append(of_flow(flow, math.ceil(flow["count"] / queue.copies), framing, replayed))
    least = min((p.least_bits for p in parts), default=8)
    most = max((p.most_bits for p in parts), default=8)
    if queue.name in envelopes:
        given = envelopes[queue.name]
        if isinstance(given, Calls):
            least = most = given.packet_bits
        elif not parts:
            least, most = (framing.bits(size) for size in SIZES_WITHOUT_FLOWS_BYTES)
        if given(0) < least:
            burst = f"a burst of {int(given(0) // 8)} B lets no packet of the class pass"
            raise OptionError("--envelope", queue.name, f"{burst}: the smallest has {least // 8} B; give at least that")
        return Envelope(given, "", least, most)
    for part in parts:
        if part.curve is None:
            return part if len(parts) == 1 else Envelope(None, part.why_none, least, most)
    return Envelope(add([token_bucket(0, 0), *(p.curve for p in parts if p.curve is not None)]), "", least, most)


def _capacity(
    scenario: Scenario, link: Link, nominal: Fraction, worst: str | None
) -> tuple[Curve, tuple[Fraction, Fraction]]:
    if worst is not None:
        return capacity.worst_case(worst, nominal), (nominal, nominal)
    native = scenario.native
    end_ns = round(scenario.duration_s * 1e9)
    at_ns, bytes_each = native.opportunities()
    if at_ns:
        curve = capacity.of_opportunities(at_ns, bytes_each, end_ns)
        reports = capacity.reports_of_opportunities(at_ns, bytes_each, end_ns) if link["follow"] else []
    elif (smooth := capacity.Smooth.of(link["rate_bps"])) is not None:
        curve = capacity.of_steps(*smooth.least_steps(end_ns), end_ns)
        reports = smooth.reports(end_ns) if link["follow"] else []
    else:
        starts, reports = native.link_steps("rate", 1.0)
        curve = capacity.of_steps(starts, reports, end_ns)
    return curve, _reported(nominal, reports if link["follow"] else [])


def _reported(nominal: Fraction, reports: Sequence[float]) -> tuple[Fraction, Fraction]:
    """The smallest and the largest capacity that the scheduler is told, in whole bit/s; reports of 0 change nothing."""
    rates = [bps for bps in reports if bps >= 1]
    if not rates:
        return nominal, nominal
    return min(nominal, Fraction(math.floor(min(rates)))), max(nominal, Fraction(math.ceil(max(rates))))


@dataclass(frozen=True)
class Calls(Curve):
    """What calls send: all packets have this length on the link."""

    packet_bits: int = 0


def envelope(text: str, framing: Framing = PLAIN) -> tuple[str, Curve]:
    """An arrival curve as typed: CLASS=BURST:RATE, or several pairs with commas, of which the lowest counts.

    In place of a pair, COUNTxCODEC stands for so many calls, each packet of which grows by `framing` on the link.

    >>> envelope("ef=15000B:2Mbit")[1](0)
    Fraction(120000, 1)
    >>> envelope("ef=20xg711")[1](0)
    Fraction(32000, 1)
    """
    name, _, rest = text.partition("=")
    curve: Curve | None = None
    try:
        for part in rest.split(","):
            one = _calls(part, framing) if ":" not in part else _pair(part)
            curve = one if curve is None else minimum(curve, one)
    except ValueError as error:
        raise OptionError(
            "--envelope",
            text,
            f"write it as CLASS=BURST:RATE or CLASS=COUNTxCODEC, such as ef=15kB:2Mbit or ef=20xg711 ({error})",
        ) from None
    assert curve is not None
    return name, curve


def _pair(text: str) -> Curve:
    burst_text, _, rate_text = text.partition(":")
    burst, rate = (Fraction(_native.quantity(burst_text, "size")), Fraction(_native.quantity(rate_text, "rate")))
    if burst < 0 or rate < 0:
        raise ValueError(f'"{text}" is below 0')
    return token_bucket(8 * burst, rate)


def _calls(text: str, framing: Framing) -> Curve:
    count, _, name = text.partition("x")
    codecs = {codec["name"]: codec for codec in _native.codecs()}
    if not count.isdigit() or int(count) < 1:
        raise ValueError(f'"{count}" is no number of calls')
    if name not in codecs:
        raise ValueError(f'"{name}" is no codec: {", ".join(codecs)}')
    bits = framing.bits(codecs[name]["payload_bytes"] + VOICE_HEADER_BYTES)
    rate = int(count) * bits / exact(codecs[name]["interval_s"])
    return Calls(token_bucket(int(count) * bits, rate).segments, bits)


def as_json(found: list[Bound], scenario: Scenario) -> dict[str, Any]:
    """The bounds with names that stay the same; curves as lists of (start in s, bits, bit/s)."""
    return {
        "scenario": scenario.name,
        "policy": scenario.policy,
        "classes": [
            {
                "name": b.name,
                "delay_s": plain(b.delay_s),
                "backlog_bytes": None if b.backlog_bits is None else math.ceil(b.backlog_bits / 8),
                "limit_pkts": b.limit_pkts,
                "memory_s": None if b.memory_s is None else plain(b.memory_s),
                "why_none": b.why_none or None,
                "arrival_curve": points(b.arrivals),
                "service_curve": points(b.service),
            }
            for b in found
        ],
    }


def plain(value: Fraction | None) -> float | None:
    """A float that is not below the bound."""
    if value is None:
        return None
    return float(value) if Fraction(float(value)) >= value else math.nextafter(float(value), math.inf)


def points(curve: Curve | None) -> list[list[float]] | None:
    """A curve as lists of (start in s, bits, bit/s)."""
    return None if curve is None else [[float(x) for x in segment] for segment in curve.segments]
