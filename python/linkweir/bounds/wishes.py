# SPDX-License-Identifier: BSD-3-Clause
"""Which wishes of `linkweir plan` the planned parameters keep in the worst case, and what stands against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from linkweir.bounds.answer import setting_of
from linkweir.bounds.arrivals import exact
from linkweir.bounds.curve import Curve, horizontal, token_bucket
from linkweir.bounds.policies import Queue, Service, Setting, levels, missed, services
from linkweir.scenarios.quantity import OptionError, rate_text
from linkweir.scenarios.scenario import Scenario

SMALLEST_BYTES = 20
"""An IPv4 header."""


@dataclass(frozen=True)
class Wish:
    """One wish about a class, what is certain in its place, and why it is not kept. Rates in bit/s, times in s."""

    name: str
    rate_bps: Fraction | None = None
    """Wished: this rate whenever the class has packets, through every fade."""
    within_s: Fraction | None = None
    """Wished: the worst delay."""
    latency_s: Fraction | None = None
    """Certain, of a rate: in t seconds with packets the class is sent at least rate x (t - latency)."""
    memory_s: Fraction | None = None
    """Of a rate: the memory of PSS with which nothing owed is lost."""
    delay_s: Fraction | None = None
    """Certain, of a delay: the worst one."""
    why: str = ""
    """What stands against it; empty if the wish is kept."""

    @property
    def kept(self) -> bool:
        """Whether it is certain."""
        return not self.why


@dataclass(frozen=True)
class Link:
    """The link of a plan: its nominal rate, and its worst case if it is not constant."""

    rate_bps: float
    trace: Path | None = None
    worst: str | None = None
    trace_keys: Mapping[str, Any] | None = None
    """Keys of ``[link]`` that describe the trace."""

    @property
    def named(self) -> str:
        """Such as: the trace drive.csv."""
        if self.worst is not None:
            return f"a link of at least {self.worst}"
        return f"the link of {rate_text(self.rate_bps)}" if self.trace is None else f"the trace {self.trace.name}"


def wishes(
    tables: str,
    link: Link,
    *,
    envelopes: Mapping[str, Curve],
    within_s: Mapping[str, Fraction],
    sizes_bytes: Mapping[str, int],
) -> list[Wish]:
    """Every reserved rate and every wished delay of a plan, with what is certain.

    Args:
        tables: scheduler and classes, as a scenario has them.
        link: its capacity.
        envelopes: the most that classes send; a class without one may send without end.
        within_s: wished worst delays by class.
        sizes_bytes: the largest packet of each class.

    Raises:
        OptionError: a name is no class, or a delay is wished of a class without an envelope.
    """
    scenario = _scenario(tables, link, sizes_bytes)
    for option, names in (("--envelope", envelopes), ("--within", within_s)):
        for name in names:
            if name not in scenario.classes:
                raise OptionError(option, name, f"is no class of the plan: {', '.join(scenario.classes)}")
    for name in within_s:
        if name not in envelopes:
            raise OptionError("--within", name, f"needs the most that {name} sends: give --envelope {name}=BURST:RATE")
    setting, why = setting_of(scenario, envelopes, link.worst)
    assert setting is not None, why
    found = []
    for queue, service in zip(setting.queues, services(setting), strict=True):
        if "low_level" in queue.params:
            found.append(_rate(queue, service, setting, link))
        if queue.name in within_s:
            found.append(_delay(queue, service, setting, link, envelopes[queue.name], within_s[queue.name]))
    return found


def _scenario(tables: str, link: Link, sizes_bytes: Mapping[str, int]) -> Scenario:
    rate = rate_text(link.rate_bps)
    flows = (
        "".join(  # greedy: without an envelope a class may send without end; and packets of any size up to the largest
            f'[[flow]]\nname = "{name}-{size}"\nclass = "{name}"\nkind = "greedy"\npacket = "{size}B"\n'
            for name, largest in sizes_bytes.items()
            for size in {SMALLEST_BYTES, max(largest, SMALLEST_BYTES)}
        )
    )
    text = f'duration = "{{duration}}"\n[link]\nnominal = "{rate}"\nrate = "{rate}"\n{tables}\n{flows}'
    scenario = Scenario.parse(text.format(duration="1s"), trace=link.trace, trace_keys=link.trace_keys)
    length_s = scenario.capacity_length_s if link.trace is not None else None
    if length_s is None:
        return scenario
    return Scenario.parse(text.format(duration=f"{length_s:.9f}s"), trace=link.trace, trace_keys=link.trace_keys)


def _rate(queue: Queue, service: Service, setting: Setting, link: Link) -> Wish:
    rho, _, _ = levels(queue.params, max(setting.reported_bps[1], setting.nominal_bps))
    behind = [bits for bits in (missed(rho, curve) for curve in service.curves) if bits is not None]
    if behind:
        return Wish(queue.name, rate_bps=rho, latency_s=min(behind) / rho, memory_s=service.memory_s)
    ahead = [q for q in setting.queues if int(q.params["level"]) < int(queue.params["level"])]
    unbounded = [q.name for q in ahead if q.envelope.curve is None]
    controlled = [q.name for q in setting.queues if "low_level" in q.params]
    if len(controlled) > 1:
        why = f"with several reservations ({', '.join(controlled)}) no bound is known"
    elif unbounded:
        why = f"{' and '.join(unbounded)} may take everything: give --envelope {unbounded[0]}=BURST:RATE"
    elif service.memory_s is not None:
        shown = exact(queue.params["memory"]) if "lr" not in queue.params else None
        given = "its lr" if shown is None else f"a memory of {float(shown):g} s"
        why = f"up to {float(service.memory_s):.6g} s of its rate may be owed on {link.named}, more than {given} holds"
    else:
        taken = sum((q.envelope.curve.rate for q in ahead if q.envelope.curve is not None), Fraction(0))
        left = max(setting.capacity.rate - taken, Fraction(0))
        carries, takes = rate_text(float(setting.capacity.rate)), rate_text(float(taken))
        why = f"in the long run {link.named} carries {carries}, and what goes first may take {takes}"
        why += f": {rate_text(float(left))} are left"
    return Wish(queue.name, rate_bps=rho, memory_s=service.memory_s, why=why)


def _delay(queue: Queue, service: Service, setting: Setting, link: Link, sent: Curve, within_s: Fraction) -> Wish:
    delay_s = service.delay_s(sent, (queue.envelope.least_bits, queue.envelope.most_bits))
    kept = delay_s is not None and delay_s <= within_s
    why = "" if kept else _against(queue, service, setting, link, sent, within_s)
    return Wish(queue.name, within_s=within_s, delay_s=delay_s, why=why)


def _against(queue: Queue, service: Service, setting: Setting, link: Link, sent: Curve, within_s: Fraction) -> str:
    """What must change before the wish can be kept: the link, the class's own traffic, or what goes before it."""
    packet = token_bucket(min(Fraction(queue.envelope.most_bits), sent(0)), 0)
    single = horizontal(packet, setting.capacity)
    if single is None or single > within_s:
        waits = "" if single is None else f", {_ms(single)} for a single packet"
        return f"{link.named} alone takes longer{waits}; no scheduler mends that"
    if not service.curves:
        return service.why_none.removeprefix("no bound: ")
    if sent.rate > max(curve.rate for curve in service.curves):
        certain = rate_text(float(max(curve.rate for curve in service.curves)))
        return f"up to {rate_text(float(sent.rate))} arrive, and {certain} are certain"
    alone = horizontal(sent, setting.capacity)
    assert alone is not None
    if alone > within_s:
        why = f"its own burst: with {link.named} for itself alone it waits up to {_ms(alone)}"
        burst = largest_burst(setting.capacity, sent.rate, within_s)
        fits = burst is not None and burst >= queue.envelope.most_bits and len(sent.segments) == 1
        return why + (f"; {int(burst // 8)} B at once would fit" if fits and burst is not None else "")
    level = int(queue.params["level"])
    before = [q.name for q in setting.queues if int(q.params["level"]) < level]
    first = " and ".join([*before, "one packet of a less urgent class"])
    return f"what goes before it, {first}: alone it would wait up to {_ms(alone)}"


def largest_burst(service: Curve, rate_bps: Fraction, within_s: Fraction) -> Fraction | None:
    """The largest token bucket of this rate, bits, that a service delays by at most so long; None if there is none.

    >>> from linkweir.bounds.curve import rate_latency
    >>> largest_burst(rate_latency(10**6, Fraction(1, 100)), Fraction(10**5), Fraction(3, 100))
    Fraction(20000, 1)
    """
    if rate_bps > service.rate:
        return None
    instants = [Fraction(0), *(start - within_s for start in service.starts if start > within_s)]
    burst = min(service.before(t + within_s) - rate_bps * t for t in instants)
    return burst if burst > 0 else None


def _ms(time_s: Fraction) -> str:
    return f"{float(time_s) * 1e3:.3f} ms"
