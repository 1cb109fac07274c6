# SPDX-License-Identifier: BSD-3-Clause
"""Fits a scenario to another policy: parameters that this policy does not have are left out, and each is reported.

A parameter stays if the other policy has one of the same name, unit and place. Two rules derive what would otherwise be
missing, so that a comparison is fair:

* The reservations of `pss` become shares of `drr` and `wrr`. A reserved class and the plain classes between its two
  levels share one level; the weights are those of the reservation and of the rest of what more urgent classes are
  expected to leave (Finzi et al. 2023, equation 2).
* Shares of one level become reservations of `pss` by the same equation; the last class of the level is the plain one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from linkweir import _native
from linkweir.scenarios.declared import rows
from linkweir.scenarios.kinds import OPEN_LOOP
from linkweir.scenarios.policy import IN_SIMULATOR, Parameter, policies
from linkweir.sweeps.keys import Key

Scenario = Mapping[str, Any]
"""A scenario as written."""

_RESERVING = "pss"
_SHARING = {"drr": "quantum", "wrr": "weight"}
"""Policies that share a level, and the parameter that says in what proportion."""
_CODECS = {codec["name"]: codec for codec in _native.codecs()}
_TALKS = 1004 / (1004 + 1587)
"""Part of the time in which one side of a call talks, by the means of ITU-T P.59."""
_LEAST_REST = 0.01
_MOST_WEIGHT = 20


@dataclass(frozen=True)
class Fitted:
    """What is changed in a scenario for a policy.

    Attributes:
        changes: the keys that get a value, or None if they are left out.
        notes: what is said about it, a sentence each.
    """

    changes: dict[Key, Any]
    notes: tuple[str, ...]


@lru_cache(maxsize=1)
def _parameters() -> dict[str, tuple[dict[str, Parameter], dict[str, Parameter]]]:
    """The parameters of each policy by name: of ``[scheduler]`` and of classes."""
    found = {
        policy.name: (
            {param.name: param for param in policy.params},
            {param.name: param for param in policy.class_params},
        )
        for policy in policies()
    }
    return found | {name: ({}, {}) for name in IN_SIMULATOR}


@lru_cache(maxsize=1)
def _isolating() -> frozenset[str]:
    """Policies below which the flows of a class may be isolated."""
    return frozenset(policy.name for policy in policies() if policy.isolates_flows)


def _class_keys(policy: str) -> list[str]:
    """The keys of a class that are no parameters of the policy."""
    lacks = (
        *(() if policy in _isolating() else ("flows", "l4s_step")),
        *(() if policy not in IN_SIMULATOR else ("across",)),
    )
    return [key for key in rows("class") if key not in lacks]


def _scheduler_keys(policy: str) -> list[str]:
    """The keys of the scheduler that are no parameters of the policy."""
    return [key for key in rows("scheduler") if key != "across" or policy not in IN_SIMULATOR]


def known_policies() -> list[str]:
    """Names of the policies that a scenario may have."""
    return list(_parameters())


def listed_policies() -> list[str]:
    """Those of them that messages list: without the policies that only reproduce papers."""
    return [name for name in _parameters() if name not in IN_SIMULATOR]


def keys_of(policy: str) -> dict[str, list[str]]:
    """The keys that ``scheduler`` and each ``class`` of a scenario of this policy, a built-in one, may have."""
    of_scheduler, of_classes = _parameters()[policy]
    return {"scheduler": [*_scheduler_keys(policy), *of_scheduler], "class": [*_class_keys(policy), *of_classes]}


def fit(scenario: Scenario, policy: str, nominal_bps: float, brought: str | None = None) -> Fitted:
    """The changes that make a scenario one of another policy; none if it has this policy.

    Args:
        scenario: as written.
        policy: name of a policy.
        nominal_bps: capacity that the scheduler believes.
        brought: name of the scenario's policy if it comes from a file.
    """
    own = brought or str(_scheduler(scenario).get("policy", ""))
    if own == policy:
        return Fitted({}, ())
    changes: dict[Key, Any] = {("scheduler", "policy"): policy}
    notes = []
    before, after = (_parameters().get(name, ({}, {})) for name in (own, policy))
    keys = _scheduler_keys(policy)
    dropped = [key for key in _scheduler(scenario) if key not in keys and not _same(key, before[0], after[0])]
    changes |= {("scheduler", key): None for key in dropped}
    if dropped:
        notes.append(f"left out: {_listed(dropped)} of the scheduler")
    by_class = {}
    kept = _class_keys(policy)
    for entry in _classes(scenario):
        keys = [key for key in entry if key not in kept and not _same(key, before[1], after[1])]
        changes |= {("class", str(entry["name"]), key): None for key in keys}
        if keys:
            by_class[str(entry["name"])] = keys
    if by_class:
        notes.append(f"left out: {'; '.join(_by_keys(by_class))}")
    if own == _RESERVING and policy in _SHARING:
        derived = _shares(scenario, policy, nominal_bps)
    elif own in _SHARING and policy == _RESERVING:
        derived = _reservations(scenario, own, nominal_bps)
    else:
        derived = Fitted(dict(_scalable(scenario, after[1])), tuple(_remarks(scenario, policy, after[1])))
    return Fitted(changes | derived.changes, (*notes, *derived.notes))


def _same(key: str, before: Mapping[str, Parameter], after: Mapping[str, Parameter]) -> bool:
    """Whether a key has the same meaning, as far as its declaration tells."""
    old, new = before.get(key), after.get(key)
    if new is None:
        return False
    return old is None or (old.unit, old.choices) == (new.unit, new.choices)


def _scheduler(scenario: Scenario) -> Mapping[str, Any]:
    found = scenario.get("scheduler", {})
    return found if isinstance(found, Mapping) else {}


def _classes(scenario: Scenario) -> list[Mapping[str, Any]]:
    return [entry for entry in scenario.get("class", []) if isinstance(entry, Mapping) and "name" in entry]


def _by_keys(keys: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Keys with the classes that have them, classes with the same keys together.

    >>> list(_by_keys({"a": ["level"], "b": ["level", "rate"], "c": ["level"]}))
    ['level of classes a and c', 'level and rate of class b']
    """
    for same in dict.fromkeys(map(tuple, keys.values())):
        names = [name for name, own in keys.items() if tuple(own) == same]
        yield f"{_listed(same)} of {'class' if len(names) == 1 else 'classes'} {_listed(names)}"


def _listed(words: Sequence[str]) -> str:
    """Words as a sentence has them.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _remarks(scenario: Scenario, policy: str, params: Mapping[str, Parameter]) -> Iterator[str]:
    """What a reader could misunderstand about the policy with the keys that stay."""
    levels = [entry.get("level") for entry in _classes(scenario)]
    if policy == "fq_codel":
        yield "each class is one of its flow queues; Linux's fq_codel has a queue for each flow"
    l4s = [name for (_, name, _), _ in _scalable(scenario, params)]
    if l4s:
        yield f'classes with L4S packets, because their flows have cc = "prague" or "dctcp": {_listed(l4s)}'
        yield from taken_for_l4s(scenario)
    elif "l4s" in params and not any(entry.get("l4s") == "yes" for entry in _classes(scenario)):
        yield f"no class has L4S packets, so all classes are one queue; {_cure(policy, 'l4s')}"
    if policy == _RESERVING:
        yield f"no class has a reservation, so it serves by level alone, as strict does; {_cure(policy, 'rate')}"
    elif policy in _SHARING and "level" in params and None not in levels and len(set(levels)) == len(levels) > 1:
        note = "each class keeps a level of its own, so it serves by level alone, as strict does"
        yield f"{note}; {_cure(policy, 'level')}"


def _scalable(scenario: Scenario, params: Mapping[str, Parameter]) -> Iterator[tuple[Key, str]]:
    """Classes with flows that answer each mark a little become L4S classes of a policy that has them."""
    if "l4s" in params:
        for name in _classes_of(scenario, counting=True):
            yield ("class", name, "l4s"), "yes"


def _classes_of(scenario: Scenario, *, counting: bool) -> list[str]:
    """The classes of flows whose senders count marks, or of all others."""
    flows = [flow for flow in scenario.get("flow", []) if (flow.get("cc") in ("prague", "dctcp")) == counting]
    return list(dict.fromkeys(str(flow.get("class")) for flow in flows))


def taken_for_l4s(scenario: Scenario) -> Iterator[str]:
    """What is said of flows that are in an L4S class only because another flow of their class counts marks."""
    others = _classes_of(scenario, counting=False)
    for name in _classes_of(scenario, counting=True):
        if name in others:
            yield f"other flows of class {name} are taken for L4S, too; give them a class of their own"


def _cure(policy: str, key: str) -> str:
    return f"--set {policy}.class.NAME.{key}=VALUE changes this"


# --- Reservations and shares ---------------------------------------------------------------------------------------


def _level(entry: Mapping[str, Any], index: int) -> int:
    level = entry.get("level", index)
    return level if isinstance(level, int) else index


def _quantity(value: object, kind: str) -> float:
    """A quantity in base units; 0 where it is none."""
    try:
        return float(_native.quantity(value, kind)) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0


def _reserved_bps(entry: Mapping[str, Any], nominal_bps: float) -> float:
    return _quantity(entry.get("rate", 0), "rate") or _quantity(entry.get("share", 0), "fraction") * nominal_bps


def expected_bps(scenario: Scenario, names: Sequence[str]) -> float:
    """Mean load that flows of fixed rates bring to these classes; recorded packets are not counted."""
    total = 0.0
    for flow in scenario.get("flow", []):
        if flow.get("class") not in names or flow.get("kind") not in OPEN_LOOP:
            continue
        if flow["kind"] == "voice":
            total += _voice_bps(flow) * flow.get("count", 1)
            continue
        part = 1.0
        if flow["kind"] == "onoff":
            on_s, off_s = (_quantity(flow.get(key, 0), "time") for key in ("on", "off"))
            part = on_s / (on_s + off_s) if on_s + off_s else 0.0
        total += _quantity(flow.get("rate", 0), "rate") * part * flow.get("count", 1)
    return total


def _voice_bps(flow: Mapping[str, Any]) -> float:
    codec = _CODECS.get(str(flow.get("codec")))
    if codec is None:
        return 0.0
    packet_bytes = codec["payload_bytes"] + _quantity(flow.get("header", "40B"), "size")
    return float(8 * packet_bytes / codec["interval_s"]) * (_TALKS if flow.get("talkspurts") else 1.0)


def _shares(scenario: Scenario, policy: str, nominal_bps: float) -> Fitted:
    """The level and the proportion of each class for a policy that shares levels."""
    entries = _classes(scenario)
    levels = {str(entry["name"]): _level(entry, n) for n, entry in enumerate(entries)}
    reserved = {str(e["name"]): e for e in entries if "low_level" in e and _reserved_bps(e, nominal_bps) > 0}
    plain = [
        name
        for name, level in levels.items()
        if name not in reserved
        and any(levels[other] < level < int(entry["low_level"]) for other, entry in reserved.items())
    ]
    if not reserved or not plain:
        note = "no reserved class has a plain one between its levels, so it serves by level alone, as strict does"
        return Fitted({}, (f"{note}; {_cure(policy, _SHARING[policy])}",))
    top = min(levels[name] for name in (*reserved, *plain))
    ahead = [name for name in levels if levels[name] < top]
    left_bps = nominal_bps - expected_bps(scenario, ahead)
    parts = {
        name: _reserved_bps(entry, nominal_bps) / left_bps if left_bps > 0 else 1.0 for name, entry in reserved.items()
    }
    rest = max(1.0 - sum(parts.values()), _LEAST_REST)
    parts |= dict.fromkeys(plain, rest / len(plain))
    places = {name: top if name in parts else level for name, level in levels.items()}
    ranks = {level: rank for rank, level in enumerate(sorted(set(places.values())))}
    changes: dict[Key, Any] = {("class", name, "level"): ranks[level] for name, level in places.items()}
    mtu_bytes = max(int(_quantity(entry.get("mtu", "1514B"), "size")) for entry in reserved.values())
    shared = _quanta(parts, mtu_bytes) if policy == "drr" else _weights(parts)
    changes |= {("class", name, _SHARING[policy]): value for name, value in shared.items()}
    members = [name for name in levels if name in parts]
    values = ", ".join(f"{name} {shared[name]}" for name in members)
    note = (
        f"{_listed(members)} share level {ranks[top]}; {_SHARING[policy]} from the reservations and the "
        f"{left_bps / 1e6:.3g} Mbit/s that more urgent classes leave: {values}"
    )
    return Fitted(changes, (note,))


def _quanta(parts: Mapping[str, float], mtu_bytes: int) -> dict[str, str]:
    """Quanta in proportion to the parts; the smallest is the largest packet, so that every visit sends one.

    >>> _quanta({"af": 0.75, "cs0": 0.25}, 1514)
    {'af': '4542B', 'cs0': '1514B'}
    """
    least = min(parts.values())
    return {name: f"{round(part / least * mtu_bytes)}B" for name, part in parts.items()}


def _weights(parts: Mapping[str, float]) -> dict[str, str]:
    """Weights in packets nearest to the proportions, at most about `_MOST_WEIGHT` for the smallest.

    >>> _weights({"af": 0.6, "cs0": 0.4})
    {'af': '3p', 'cs0': '2p'}
    """
    least = min(parts.values())
    ratios = {name: part / least for name, part in parts.items()}

    def error(scale: int) -> float:
        return max(abs(round(ratio * scale) / (ratio * scale) - 1) for ratio in ratios.values())

    scale = min(range(1, _MOST_WEIGHT + 1), key=lambda scale: (round(error(scale), 3), scale))
    return {name: f"{min(round(ratio * scale), 65535)}p" for name, ratio in ratios.items()}


def _reservations(scenario: Scenario, own: str, nominal_bps: float) -> Fitted:
    """Levels and reservations of `pss` for classes that share levels."""
    key = _SHARING[own]
    default = _parameters()[own][1][key].default
    unit = {"quantum": "size", "weight": "packets"}[key]
    entries = _classes(scenario)
    groups: dict[int, list[str]] = {}
    weight = {}
    for entry in entries:
        name = str(entry["name"])
        groups.setdefault(int(entry.get("level", 0)), []).append(name)
        weight[name] = _quantity(entry.get(key, default), unit)
    changes: dict[Key, Any] = {}
    said = []
    level = 0
    ahead: list[str] = []
    left_bps = nominal_bps
    for _, members in sorted(groups.items()):
        left_bps = max(left_bps - expected_bps(scenario, ahead), 0.0)
        ahead = members
        total = sum(weight[name] for name in members)
        for offset, name in enumerate(members):
            changes["class", name, "level"] = level + offset
            if offset + 1 < len(members):
                rate_bps = math.floor(left_bps * weight[name] / total)
                changes["class", name, "rate"] = f"{rate_bps}bit"
                changes["class", name, "low_level"] = level + len(members) + offset
                said.append(f"{name} {rate_bps / 1e6:.3g} Mbit/s")
        level += 2 * len(members)
    if not said:
        return Fitted(changes, ("no classes share a level, so no class has a reservation",))
    note = f"reservations from {key} and what more urgent classes leave of {nominal_bps / 1e6:.3g} Mbit/s"
    return Fitted(changes, (f"{note}: {', '.join(said)}",))
