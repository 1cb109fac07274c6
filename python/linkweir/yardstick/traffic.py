# SPDX-License-Identifier: BSD-3-Clause
"""Makes the scenario of a case: three classes, the flows of the load, and a probe that sends after fades.

Every scenario is written for `pss`, whose reservation states what the reserved class is promised. The fitting of
comparisons makes those of other policies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkweir import _native
from linkweir.yardstick.cases import AS_WRITTEN, FILM, LOADS, Case, Load

URGENT, RESERVED, REST = "calls", "media", "rest"
RATED, CALL, PROBE = "call", "other-call", "after-fade"
CODEC = "g711-plc"
AFTER_S = 2.0
"""For so long after a fade its delay is measured."""
_QUEUES = {URGENT: "50p", RESERVED: "2000p", REST: "200p"}
_PROBE_RATE = "80kbit"
_SHARE_OF_A_FADE = 0.5


def scenario_of(case: Case, load: str) -> dict[str, Any]:
    """The scenario of a case, without its trace.

    Args:
        case: the case.
        load: one of `Case.loads`.
    """
    level = LOADS.get(load)
    fades = list(fade_ends(case))
    return {
        "name": case.title if load == AS_WRITTEN else f"{case.title}, {load}",
        "duration": f"{case.duration_s}s",
        "warmup": f"{case.warmup_s}s",
        "link": dict(case.link),
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": URGENT, "level": 0, "limit": _QUEUES[URGENT]},
            {
                "name": RESERVED,
                "level": 1,
                "low_level": 3,
                "rate": case.promised,
                "memory": case.memory,
                "limit": _QUEUES[RESERVED],
            },
            {"name": REST, "level": 2, "limit": _QUEUES[REST]},
        ],
        "flow": [
            *_calls(case.calls if level is None else level.calls),
            *_probe(fades),
            *({**flow, "class": RESERVED} for flow in _media(case, level)),
            *({**flow, "class": REST} for flow in _rest(case, level)),
        ],
    }


def _calls(count: int) -> Iterator[dict[str, Any]]:
    """The calls; the first is rated, so the distribution of its delays is kept."""
    call = {"class": URGENT, "kind": "voice", "codec": CODEC, "jitter": 0.1}
    yield {**call, "name": RATED, "delays": True}
    if count > 1:
        yield {**call, "name": CALL, "count": count - 1}


def _media(case: Case, level: Load | None) -> Sequence[Mapping[str, Any]]:
    if case.media is not None:
        return case.media
    part = 0.9 if level is None else level.camera
    rate = f"{round(part * _bps(case.promised))}bit"
    return ({"name": "camera", "kind": "cbr", "rate": rate, "packet": "1200B", "jitter": 0.1},)


def _rest(case: Case, level: Load | None) -> Sequence[Mapping[str, Any]]:
    if level is None:
        return case.flows
    downloads = {"name": "download", "kind": "tcp", "cc": "cubic", "count": level.downloads, "stagger": "100ms"}
    return (downloads, FILM)


def lasting(case: Case, load: str) -> frozenset[str]:
    """The TCP flows of the class without a promise that send in all of the time that is counted.

    Only these can be compared by their goodputs: a flow that starts later, or ends earlier, has less time.

    >>> from linkweir.yardstick.cases import CASES
    >>> sorted(lasting(CASES["phases"], AS_WRITTEN))
    ['mild-1', 'mild-2', 'mild-3', 'mild-4']
    """
    return frozenset(
        name
        for flow in _rest(case, LOADS.get(load))
        if flow["kind"] == "tcp" and "stop" not in flow and _start_s(flow) <= case.warmup_s
        for name in _names(flow)
    )


def _start_s(flow: Mapping[str, Any]) -> float:
    """When the last of the copies of a flow starts."""
    start_s, stagger_s = (_native.quantity(flow.get(key, "0s"), "time") for key in ("start", "stagger"))
    return float(start_s + (flow.get("count", 1) - 1) * stagger_s)


def _names(flow: Mapping[str, Any]) -> list[str]:
    """The names of the copies of a flow in results."""
    count = flow.get("count", 1)
    return [flow["name"]] if count == 1 else [f"{flow['name']}-{number}" for number in range(1, count + 1)]


def _bps(rate: str) -> float:
    return float(_native.quantity(rate, "rate"))


def promised_bps(case: Case) -> float:
    """What the reserved class is promised, bit/s."""
    return _bps(case.promised)


def _probe(fades: Sequence[float]) -> Iterator[dict[str, Any]]:
    """A flow of the urgent class that sends in the 2 s after each fade only."""
    if not fades:
        return
    steps = [["0s", "0bit"]]
    for start_s, end_s in _windows(fades):
        steps += [[f"{start_s:.9g}s", _PROBE_RATE], [f"{end_s:.9g}s", "0bit"]]
    yield {
        "name": PROBE,
        "class": URGENT,
        "kind": "cbr",
        "rate": {"steps": steps},
        "packet": "200B",
        "jitter": 0.1,
        "delays": True,
    }


def _windows(fades: Sequence[float]) -> list[tuple[float, float]]:
    """The times after fades, s, those that overlap as one.

    >>> _windows([4.0, 5.0, 9.0])
    [(4.0, 7.0), (9.0, 11.0)]
    """
    found: list[tuple[float, float]] = []
    for end_s in fades:
        start_s = end_s
        if found and end_s <= found[-1][1]:
            start_s = found.pop()[0]
        found.append((start_s, end_s + AFTER_S))
    return found


# --- Fades ----------------------------------------------------------------------------------------------------------


def fade_ends(case: Case) -> Iterator[float]:
    """When fades end: the capacity is back at half of its mean, after less than that for `Case.fade_least_s`.

    Of a beam they are not known before the run.
    """
    steps = _capacities(case)
    if not steps:
        return
    ends = [*(at_s for at_s, _ in steps[1:]), float(case.duration_s)]
    spans = [(at_s, end_s, bps) for (at_s, bps), end_s in zip(steps, ends, strict=True)]
    mean_bps = sum(bps * (end_s - at_s) for at_s, end_s, bps in spans) / case.duration_s
    for faded, group in itertools.groupby(spans, key=lambda span: span[2] < _SHARE_OF_A_FADE * mean_bps):
        found = list(group)
        start_s, end_s = found[0][0], found[-1][1]
        # The tolerance is for times that are no binary fractions.
        if faded and end_s - start_s > case.fade_least_s - 1e-6 and case.warmup_s <= end_s < case.duration_s:
            yield end_s


def _capacities(case: Case) -> list[tuple[float, float]]:
    """The steps of the capacity during a run: time, s, and rate, bit/s."""
    if case.trace is not None:
        trace = case.trace()
        steps = list(zip(trace.times_s, map(float, trace.capacity_bps), strict=True))
        period_s = trace.period_s
    else:
        rate = case.link.get("rate")
        if not isinstance(rate, Mapping):
            return []
        steps = [(_native.quantity(at, "time"), _bps(value)) for at, value in rate["steps"]]
        period_s = _native.quantity(rate["period"], "time") if "period" in rate else float(case.duration_s)
    rounds = range(int(case.duration_s / period_s) + 1)
    every = [(number * period_s + at_s, bps) for number in rounds for at_s, bps in steps]
    return [(at_s, bps) for at_s, bps in every if at_s < case.duration_s]
