# SPDX-License-Identifier: BSD-3-Clause
"""Finds flows in step: equal intervals, so that a full queue drops packets of the same flows in each round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.diagnose.finding import Advice, Finding, key_of, merged
from linkweir.scenarios.resolved import ResolvedScenario, packet_bytes
from linkweir.scenarios.typed import Flow as FlowKeys

if TYPE_CHECKING:
    from linkweir.tables.run_tables import RunTables

_WHOLE = 10
"""Intervals are in step if their ratio is one of whole numbers up to this."""
_UNEVEN = 1.5
"""The worst flow must lose so many times the part that all lose together."""
_DIFFERENCE = 0.02
"""And at least so much more."""
_DEVIATIONS = 8.0
"""And more than so many standard deviations of independent losses."""
_ROUNDS = 3.0
"""Jitter is proposed that moves a flow by so many intervals (one standard deviation) during the run."""
_LEAST_JITTER = 0.1


@dataclass(frozen=True)
class _Flow:
    """A flow with regular packets and what it lost in its queue."""

    keys: FlowKeys
    row: dict[str, Any]
    period_s: float

    @property
    def lost(self) -> int:
        row = self.row
        if "dropped_pkts" in row:  # at one link of a network
            return int(row["dropped_pkts"])
        return int(row["dropped_limit_pkts"] + row["dropped_policy_pkts"] + row["dropped_age_pkts"])

    @property
    def arrived(self) -> int:
        return int(self.row["arrived_pkts"])

    @property
    def part(self) -> float:
        return min(self.lost / max(self.arrived, 1), 1.0)


def flows_in_step(run: RunTables, resolved: ResolvedScenario) -> list[Finding]:
    """Flows with equal intervals of which some lose much more than others."""
    if "flows" not in run.tables or not any(_period_s(flow) for flow in resolved.flows):
        return []
    keys = [flow for flow in resolved.flows for _ in range(flow["count"])]
    window_s = run.simulated_s - run.scenario.warmup_s
    by_class: dict[str, list[_Flow]] = {}
    for flow, row in zip(keys, run.rows("flows"), strict=True):
        period_s = _period_s(flow)
        # The others were there for a part of the time only, in which losses may have been others.
        if period_s and row["arrived_pkts"] >= 0.9 * window_s / period_s - 1:
            by_class.setdefault(row["class"], []).append(_Flow(flow, row, period_s))
    found: list[Finding] = []
    for entry in resolved.entries:
        groups = [(name, group) for name in entry.names for group in _groups(by_class.get(name, []), window_s)]
        mine = [finding for name, group in groups for finding in _uneven(name, group)]
        both: Advice = {key: value for finding in mine for advice in finding.advice for key, value in advice.items()}
        found += [
            replace(finding, advice=(both,)) for finding in (merged(mine, "loss_worst") if len(mine) > 1 else mine)
        ]
    return found


def _period_s(flow: FlowKeys) -> float | None:
    """The interval between the packets of a flow that keeps it throughout; None for others."""
    if flow["kind"] == "voice" and not flow["talkspurts"] and not flow["jitter"]:
        (interval_s,) = (codec["interval_s"] for codec in _native.codecs() if codec["name"] == flow["codec"])
        return float(interval_s)
    if (
        flow["kind"] != "cbr"
        or flow["jitter"]
        or not isinstance(flow["rate_bps"], float)
        or not isinstance(flow["packet_bytes"], int)
    ):
        return None
    rate_bps = flow["rate_bps"]
    return 8 * packet_bytes(flow)[0] / rate_bps if rate_bps else None


def _groups(flows: Sequence[_Flow], window_s: float) -> list[list[_Flow]]:
    """Flows whose intervals have ratios of small whole numbers, so exactly that they keep in step for the run."""
    groups: list[list[_Flow]] = []
    for flow in flows:
        for group in groups:
            ratio = flow.period_s / group[0].period_s
            near = Fraction(ratio).limit_denominator(_WHOLE)
            if 1 <= near.numerator <= _WHOLE and abs(ratio / near - 1) * window_s < 0.5 * flow.period_s:
                group.append(flow)
                break
        else:
            groups.append([flow])
    return [group for group in groups if len(group) > 1]


def _uneven(name: str, group: list[_Flow]) -> list[Finding]:
    """A warning if the losses of a group are uneven."""
    arrived = sum(flow.arrived for flow in group)
    mean = min(sum(flow.lost for flow in group) / max(arrived, 1), 1.0)
    worst = max(group, key=lambda flow: flow.part)
    chance = _DEVIATIONS * math.sqrt(mean * (1 - mean) / max(worst.arrived, 1))
    if worst.part <= _UNEVEN * mean or worst.part - mean <= max(_DIFFERENCE, chance):
        return []
    spared = sum(flow.part < mean / 2 for flow in group)
    figures = {
        "flows": float(len(group)),
        "loss_worst": worst.part,
        "loss_mean": mean,
        "period_s": worst.period_s,
    }
    what = (
        f"{len(group)} flows with intervals in step lose {mean:.1%} of their packets, but {worst.row['flow']} "
        f"{worst.part:.1%}, and {spared} of them less than half of the mean"
    )
    sent = min(flow.arrived for flow in group)
    # After n intervals the sum of uniform deviations has the standard deviation jitter * sqrt(n / 3).
    jitter = math.ceil(100 * min(1.0, max(_LEAST_JITTER, _ROUNDS * math.sqrt(3 / max(sent, 1))))) / 100
    names = list(dict.fromkeys(str(flow.keys["name"]) for flow in group))
    advice: Advice = {key_of("flow", flow, "jitter"): jitter for flow in names}
    cure = f"Set jitter = {jitter:g} in {', '.join(names)}: then all lose alike; another start only changes which lose"
    return [Finding("in_step", f"class {name}", what, cure, figures, (advice,))]
