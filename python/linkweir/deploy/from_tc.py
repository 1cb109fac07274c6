# SPDX-License-Identifier: BSD-3-Clause
"""Link, scheduler and classes of a scenario from what tc shows.

The text is the output of these commands, one after the other; the last one for each queueing discipline below the root
that has filters, such as 10: and each drr. Since iproute2 6.2, tc shows classes as JSON with -j, but without the quanta
of drr::

    tc -d -j qdisc show dev eth0
    tc -d class show dev eth0
    tc -j filter show dev eth0
    tc -j filter show dev eth0 parent 10:
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from linkweir import _native
from linkweir.deploy.conditions import Conditions, both, covers, in_order
from linkweir.deploy.found import Found
from linkweir.deploy.from_filters import Filter, filters_of, target_of
from linkweir.deploy.matching import CODE_POINTS
from linkweir.deploy.policy import ETHERNET_BYTES, IN_MODULE, kind_of, policy_of
from linkweir.fault import ScenarioError, unfit

_KINDS = frozenset(kind_of(policy) for policy in IN_MODULE)
_SUFFIXES = {"rate": "_bps", "time": "_ns", "size": "_bytes", "packets": "_pkts", "fraction": "_ppm", "bits": "_bits"}
_UNITS = {"rate": "bit", "time": "ns", "size": "B", "packets": "p", "bits": "bit"}
_RATES = {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
_NAMES = {**CODE_POINTS, "CS0": 0, "BE": 0, "VA": 44}
_BANDS = frozenset(("prio", "ets"))
_CLASSFUL = _BANDS | {"drr"}
_PRIORITIES = (0, 2, 6, 4)
"""skb->priority for the four values of bits 3 and 4 of an IPv4 packet's TOS (ip_tos2prio of net/ipv4/route.c)."""
_DROPPED = ""
"""The place of packets that a queueing discipline drops."""
_FQ_CODEL = {"flows": 1024, "quantum": 1514, "target": 5000, "interval": 100_000, "memory_limit": 32 << 20, "ecn": True}
"""Parameters of FQ-CoDel inside a class: Linux's defaults, and what `flows = "fq_codel"` has."""

_DUALPI2 = {
    "target": 15_000,
    "tupdate": 16_000,
    "alpha": 41 / 256,
    "beta": 819 / 256,
    "min-qlen-step": 0,
    "coupling": 2,
    "drop-overload": "drop",
    "drop-early": "drop-dequeue",
    "c-protection": 10,
    "ecn-mask": "l4s-ect",
}
"""The same of DualPI2, without its step, and what `flows = "dualpi2"` has."""
_L4S_STEP_US = 1000
_PACKET_BYTES = 1514
"""Linux sets DualPI2's memory limit with its limit: to twice as many packets of an MTU of 1500 bytes."""
_TIME_US, _GAIN = 1.0, 1 / 128
"""Differences up to this are rounding: times of CoDel have units of 1.024 us, gains 1/256."""

Object = Mapping[str, Any]


@dataclass(frozen=True)
class _Class:
    """A class as tc shows it: what it belongs to, and words with their values."""

    kind: str
    handle: str
    parent: str
    words: Mapping[str, str]


@dataclass
class _Shown:
    """What tc showed, and what of it was left out."""

    qdiscs: Sequence[Object]
    classes: Sequence[_Class]
    filters: Mapping[str, Sequence[Object]]
    some_without_filters: bool
    notes: list[str] = field(default_factory=list)

    def below(self, place: str) -> Object | None:
        """The queueing discipline at a class."""
        return next((entry for entry in self.qdiscs if entry.get("parent") == place), None)

    def classes_of(self, kind: str, major: str) -> list[_Class]:
        return [entry for entry in self.classes if entry.kind == kind and entry.handle.startswith(major)]

    def filters_of(self, parent: str) -> list[Filter]:
        return filters_of(self.filters.get(parent, []), parent)


def from_tc(text: str) -> Found:
    """Reads what tc printed.

    Raises:
        ScenarioError: there is neither a shaper with a policy below it nor a policy that shapes, or the text is cut.
    """
    shown = _read(text)
    shapes = (entry for entry in shown.qdiscs if entry["kind"] in _KINDS and "bandwidth_bps" in entry["options"])
    own = next(shapes, None)
    if own is not None:
        return _own(shown, _link_of(own["options"]), own)
    root = next((entry for entry in shown.qdiscs if "parent" not in entry and not entry.get("ingress")), None)
    if root is not None and root["kind"] == "cake":
        return _cake(shown, root)
    if root is not None and root["kind"] == "htb":
        link, place = _htb(shown, root)
    elif root is not None and root["kind"] == "tbf":
        rate = _shown(8 * root["options"]["rate"], "rate")
        link, place = _counted(shown, root, {"rate": rate}, {}), f"{root['handle']}1"
    else:
        raise _no_shaper(shown, root)
    policy = shown.below(place)
    if policy is None:
        shown.notes.append(
            f"class {place}: shows no queue, which is Linux's FIFO of txqueuelen packets: taken as 1000p"
        )
        return _found(shown, link, {"policy": "fifo"}, [{"name": "class-1"}], [place])
    if policy["kind"] in _KINDS:
        return _own(shown, link, policy)
    if policy["kind"] in _CLASSFUL:
        return _in_tree(shown, link, policy)
    shown.notes += [
        f"{one.name}: {policy['kind']} is the only class of the scenario: left out"
        for one in shown.filters_of(policy["handle"])
    ]
    if policy["kind"] in ("pfifo", "bfifo"):
        return _found(shown, link, {"policy": "fifo"}, [{"name": "class-1", **_queue(shown, policy)}], [place])
    if policy["kind"] == "fq_codel":
        return _fq_codel(shown, link, policy, place)
    if policy["kind"] == "dualpi2":
        return _found(shown, link, {"policy": "fifo"}, [{"name": "class-1", **_queue(shown, policy)}], [place])
    raise unfit("tc", policy["kind"], f"is a queueing discipline that the simulator does not have, at {place}")


def _found(
    shown: _Shown,
    link: Mapping[str, Any],
    scheduler: Mapping[str, Any],
    classes: Sequence[Mapping[str, Any]],
    places: Sequence[str],
) -> Found:
    return Found(link, scheduler, classes, tuple(dict.fromkeys(shown.notes)), tuple(places))


# --- Text -----------------------------------------------------------------------------------------------------------


_FW = re.compile(r'"options":\{([^{}":]*handle [^{}"]*)\}')
_EMATCHES = re.compile(r'("options":\{[^{}]*?"),?\s*\n((?:[ \t]+[^\n{}"]*\n)+)\}')


def _mended(text: str) -> str:
    """The text with JSON where tc of iproute2 up to 6.1 prints words between: filters of fw, and ematches of basic."""
    text = _FW.sub(lambda match: f'"options":{json.dumps(_words(match[1].split()))}', text)
    return _EMATCHES.sub(lambda match: f'{match[1]},"ematch":{json.dumps(" ".join(match[2].split()))}}}', text)


def _words(words: Sequence[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=False))


def _read(text: str) -> _Shown:
    lists, lines = _parts(_mended(text))
    objects = [entry for group in lists for entry in group]
    if any("class" in entry for entry in objects):
        raise unfit(
            "tc",
            "class",
            "is shown as JSON, which lacks the quanta of drr; show classes with tc -d class show, without -j",
        )
    qdiscs = [entry for entry in objects if "kind" in entry and "protocol" not in entry]
    filters: dict[str, list[Object]] = {}
    for group in lists:
        for parent, entry in _with_parents(group, [str(qdisc.get("handle")) for qdisc in qdiscs if "parent" in qdisc]):
            filters.setdefault(parent, []).append(entry)
    without = any(not group for group in lists)
    return _Shown(qdiscs, _classes(lines), filters, without)


def _with_parents(group: Sequence[Object], handles: Sequence[str]) -> Iterator[tuple[str, Object]]:
    """The filters of a list, each with its parent: tc shows that only if it was not asked for one."""
    own = [entry for entry in group if "options" in entry and "protocol" in entry]
    majors = [f"{target_of(entry['options']).partition(':')[0]}:" for entry in own]
    usual = Counter(majors).most_common(1)[0][0] if majors else ""
    for entry, major in zip(own, majors, strict=True):
        yield entry.get("parent", major if major in handles else usual), entry


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a key that is there several times, as `match` of u32, has a list."""
    found: dict[str, Any] = {}
    several = {key for key, number in Counter(key for key, _ in pairs).items() if number > 1}
    for key, value in pairs:
        if key in several:
            found.setdefault(key, []).append(value)
        else:
            found[key] = value
    return found


def _parts(text: str) -> tuple[list[list[Object]], list[str]]:
    """The JSON objects of each list in a text, and the lines between."""
    lists: list[list[Object]] = []
    lines: list[str] = []
    decoder, at = json.JSONDecoder(object_pairs_hook=_pairs), 0
    while at < len(text):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if not line.lstrip().startswith("["):
            lines.append(line)
            at += len(line) + 1
            continue
        try:
            found, at = decoder.raw_decode(text, at + len(line) - len(line.lstrip()))
        except json.JSONDecodeError as error:
            raise unfit(
                "tc", line[:40], f"is no JSON: {error.msg}; the text may be cut off, or has classes shown with -j"
            ) from None
        lists.append([entry for entry in found if isinstance(entry, dict)])
    return lists, lines


def _classes(lines: Sequence[str]) -> list[_Class]:
    found = []
    for line in lines:
        words = line.split()
        if words[:1] == ["class"] and len(words) > 3:
            parent, rest = ("", words[4:]) if words[3] == "root" else (words[4] if len(words) > 4 else "", words[5:])
            if rest[:1] == ["leaf"]:
                rest = rest[2:]
            found.append(_Class(words[1], words[2], parent, _words(rest)))
    return found


def _rate(text: str) -> int | None:
    """A rate that tc shows, bit/s."""
    match = re.fullmatch(r"([\d.]+)([KMGT]?bit)", text)
    return round(float(match[1]) * _RATES[match[2]]) if match else None


def _shown(value: int, unit: str) -> str | float | int:
    """A number of base units as a scenario has it."""
    if unit == "fraction":
        return f"{value / 10_000:g}%"
    return f"{value}{_UNITS[unit]}" if unit in _UNITS else value


# --- Shapers --------------------------------------------------------------------------------------------------------


def _link_of(options: Object) -> dict[str, Any]:
    """The link of a queueing discipline that shapes itself."""
    if "cells" in options:
        raise unfit("tc", options["cells"], "counts cells, which the simulator's links do not have")
    link = {"rate": f"{options['bandwidth_bps']}bit", "overhead": f"{options.get('overhead_bytes', ETHERNET_BYTES)}B"}
    if "mpu_bytes" in options:
        link["mpu"] = f"{options['mpu_bytes']}B"
    return link


def _no_shaper(shown: _Shown, root: Object | None) -> ScenarioError:
    there = "nothing" if root is None else f"{root['kind']} {root.get('handle', '')}"
    cakes = [entry for entry in shown.qdiscs if entry["kind"] == "cake"]
    if root is not None and root["kind"] in ("mq", "mqprio") and cakes:
        why = f"has {len(cakes)} cake, each a link of its own; show a device whose root is one cake"
        return unfit("tc", there, why)
    must = "must show HTB with class 1:1 and a policy below it, or a policy with bandwidth, as export tc makes"
    return unfit("tc", "...", f"{must}; its root is {there}, which has no rate")


def _htb(shown: _Shown, root: Object) -> tuple[dict[str, Any], str]:
    """The link of HTB, and the only class below which a policy is; what else it has is left out."""
    classes = {entry.handle: entry for entry in shown.classes_of("htb", root["handle"])}
    parents = {entry.parent for entry in classes.values()}
    leaves = [handle for handle in classes if handle not in parents]
    with_policy = [handle for handle in leaves if shown.below(handle) is not None]
    if not leaves:
        raise _no_shaper(shown, root)
    if len(leaves) > 1 and len(with_policy) != 1:
        shares = ", ".join(f"{handle} ({_htb_words(classes[handle])})" for handle in leaves)
        why = f"shares the link by rate, ceil and prio among {shares}: the simulator has no such policy"
        raise unfit("tc", f"htb {root['handle']}", f"{why}; it takes HTB with a policy below one of its classes")
    place = (with_policy or leaves)[0]
    path = [place]
    while classes[path[-1]].parent in classes:
        path.append(classes[path[-1]].parent)
    # a class may borrow up to its ceil, but the uppermost has no class to borrow from
    rates = [_rate(classes[handle].words.get("ceil", "")) for handle in path[:-1]]
    rates.append(_rate(classes[path[-1]].words.get("rate", "")))
    if None in rates:
        raise unfit("tc", f"class htb {place}", "shows no rate")
    for handle in leaves:
        if handle != place:
            shown.notes.append(f"class htb {handle} ({_htb_words(classes[handle])}): left out, with its packets")
    usual = int(str(root["options"].get("default", "0")), 16)
    if f"{root['handle']}{usual:x}" != place:
        where = f"{root['handle']}{usual:x}" if f"{root['handle']}{usual:x}" in leaves else "no class, without a limit"
        shown.notes.append(
            f"qdisc htb {root['handle']} default {usual:x}: packets without a filter come to {where}; in the scenario "
            f"they come to {place}: left out"
        )
    for parent in (root["handle"], *classes):
        for one in shown.filters_of(parent):
            if one.acts:
                shown.notes += one.notes
            elif one.target not in path:
                where = one.target or "no class"
                shown.notes.append(f"{one.name}: leads to {where}, and a scenario has {place} only: left out")
    link = {"rate": _shown(min(rate for rate in rates if rate is not None), "rate")}
    return _counted(shown, root, link, classes[place].words), place


def _htb_words(entry: _Class) -> str:
    return ", ".join(f"{key} {entry.words[key]}" for key in ("rate", "ceil", "prio") if key in entry.words)


def _counted(shown: _Shown, root: Object, link: dict[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """A link with what its shaper adds to each packet: stab of the root, and words of a class of HTB."""
    stab = root.get("stab", {})
    overhead = int(stab.get("overhead", 0)) + int(words.get("overhead", 0)) + ETHERNET_BYTES
    mpu = max(int(stab.get("mpu", 0)), int(words.get("mpu", "0b").rstrip("b")))
    found = {**link, "overhead": f"{overhead}B", **({"mpu": f"{mpu}B"} if mpu else {})}
    layer = {"stab of": stab.get("linklayer"), "class below": words.get("linklayer")}
    for where, name in layer.items():
        if name not in (None, "ethernet"):
            shown.notes.append(
                f"{where} {root['kind']} {root['handle']} linklayer {name}: the simulator's links have no cells: "
                "left out"
            )
    return found


def _cake(shown: _Shown, root: Object) -> Found:
    """Linux's cake, as the policy that is nearest to it."""
    options, name = root["options"], f"qdisc cake {root['handle']}"
    if not isinstance(options.get("bandwidth"), int):
        raise unfit("tc", name, "has no bandwidth, so nothing says the link's rate")
    link = {"rate": _shown(8 * options["bandwidth"], "rate")}
    link["overhead"] = f"{ETHERNET_BYTES if options.get('raw') else options.get('overhead', 0)}B"
    if options.get("mpu"):
        link["mpu"] = f"{options['mpu']}B"
    round_trip_us = options.get("rtt", 100_000)
    scheduler = {"policy": "fq_codel", "target": f"{round_trip_us // 20}us", "interval": f"{round_trip_us}us"}
    shown.notes.append(f"{name}: became fq_codel, the nearest policy; it has no COBALT, and queues are classes")
    usual = {"diffserv": "besteffort", "nat": False, "wash": False, "ingress": False, "ack-filter": "disabled"}
    usual |= {"atm": "noatm", "fwmark": "0", "autorate": False, "memlimit": 0}
    for key, value in usual.items():
        if options.get(key, value) != value:
            shown.notes.append(f"{name} {key} {options[key]}: left out")
    if options.get("flowmode", "flows") != "flows":
        shown.notes.append(f"{name} {options['flowmode']}: hosts are not told apart: left out")
    shown.notes += [f"{one.name}: left out" for one in shown.filters_of(root["handle"])]
    return _found(shown, link, scheduler, [{"name": "class-1"}], [root["handle"]])


# --- Policies -------------------------------------------------------------------------------------------------------


def _own(shown: _Shown, link: dict[str, Any], policy: Object) -> Found:
    """A queueing discipline of linkweir."""
    options = policy["options"]
    name = policy_of(policy["kind"])
    known = next(found for found in _native.policies() if found["name"] == name)
    link = {**link, "nominal": f"{options['link_bps']}bit"}
    scheduler: dict[str, Any] = {"policy": name}
    for param in known["params"]:
        value = options.get(param["name"] + _SUFFIXES.get(param["unit"], ""))
        if value is not None:
            scheduler[param["name"]] = _shown(value, param["unit"]) if not isinstance(value, str) else value
    major = policy["handle"]
    units = {param["name"]: param["unit"] for param in known["class_params"]} | {
        "limit": "packets",
        "limit_bytes": "size",
    }
    places = [f"{major}{number:x}" for number in range(1, options["classes"] + 1)]
    classes: list[dict[str, Any]] = []
    for number, place in enumerate(places, 1):
        words = next((entry.words for entry in shown.classes if entry.handle == place), {})
        entry: dict[str, Any] = {"name": f"class-{number}"}
        for name, unit in units.items():
            if name in words:
                entry[name] = _word(words[name], unit)
        classes.append(entry)
    return _found(shown, link, scheduler, _matched(shown, policy, classes, places), places)


def _word(text: str, unit: str) -> str | int:
    """A value as linkweir's plugins show it, in units of scenarios."""
    if unit in ("number", "choice"):
        return int(text) if text.isdigit() else text
    if unit == "fraction":
        return text
    match = re.fullmatch(r"([\d.]+)([a-zA-Z]*)", text)
    if match is None:
        return text
    amount, word = match.groups()
    if unit in ("rate", "bits"):
        word = {"K": "k"}.get(word[:1], word[:1]) + word[1:]
    if unit == "size":
        times = {"k": 1024, "m": 1024**2, "g": 1024**3}.get(word[:1].lower(), 1)
        return f"{round(float(amount) * times)}B"
    return f"{amount}{word}"


def _fq_codel(shown: _Shown, link: dict[str, Any], policy: Object, place: str) -> Found:
    options, name = policy["options"], f"qdisc fq_codel {policy['handle']}"
    keys: dict[str, Any] = {"limit": f"{options['limit']}p", "quantum": f"{options['quantum']}B"}
    keys |= {key: f"{options[key]}us" for key in ("target", "interval")}
    keys["ecn"] = "yes" if options.get("ecn") else "no"
    shown.notes.append(f"{name}: tells flows by addresses and ports, and the policy by class: give each flow a class")
    _note_settings(shown, name, options, _FQ_CODEL, ("flows", "memory_limit", "ce_threshold"), _TIME_US)
    return _found(shown, link, {"policy": "fq_codel", **keys}, [{"name": "class-1"}], [place])


def _note_settings(
    shown: _Shown, name: str, options: Object, defaults: Object, keys: Sequence[str], least: float
) -> None:
    """Names the settings that differ by more than `least` from the defaults, which the simulator has."""
    for key in keys:
        usual = defaults.get(key)
        value = options.get(key, usual)
        near = _is_number(value) and _is_number(usual) and abs(value - usual) <= least
        if value != usual and not near:
            said = ("off", "on")[value] if isinstance(value, bool) else value
            shown.notes.append(f"{name} {key} {said}: left out")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Leaf:
    """A class that holds packets: its path of bands, the smaller ones first, and its quantum, if it has one."""

    place: str
    path: tuple[int, ...]
    quantum: str | None


def _in_tree(shown: _Shown, link: dict[str, Any], policy: Object) -> Found:
    """Linux's prio, ets and drr, one below the other."""
    leaves = _leaves(shown, policy, ())
    reached = {place for _, place in _sorted(shown, policy)}
    leaves = [leaf for leaf in leaves if leaf.place in reached or shown.below(leaf.place) or leaf.quantum]
    of_level = Counter(leaf.path for leaf in leaves)
    levels = sorted(of_level)
    # a class that has its level to itself shares nothing
    leaves = [leaf if of_level[leaf.path] > 1 else replace(leaf, quantum=None) for leaf in leaves]
    shares = any(leaf.quantum for leaf in leaves)
    classes = []
    for number, leaf in enumerate(leaves, 1):
        entry: dict[str, Any] = {"name": f"class-{number}", "level": levels.index(leaf.path)}
        if leaf.quantum:
            entry["quantum"] = leaf.quantum
        below = shown.below(leaf.place)
        if below is None:
            shown.notes.append(
                f"class {leaf.place}: shows no queue, which is Linux's FIFO of txqueuelen packets: taken as 1000p"
            )
        classes.append({**entry, **(_queue(shown, below) if below is not None else {})})
    places = [leaf.place for leaf in leaves]
    shown.notes = list(dict.fromkeys(shown.notes))
    matched = _matched(shown, policy, classes, places)
    return _found(shown, link, {"policy": "drr" if shares else "strict"}, matched, places)


def _leaves(shown: _Shown, qdisc: Object, path: tuple[int, ...]) -> list[_Leaf]:
    found: list[_Leaf] = []
    major = qdisc["handle"]
    if qdisc["kind"] == "drr":
        if not shown.classes_of("drr", major):
            cure = "add the output of tc -d class show dev DEVICE; below a netem, Linux may not show all"
            raise unfit("tc", f"drr {major}", f"shows no classes; {cure}")
        for entry in shown.classes_of("drr", major):
            found.append(_Leaf(entry.handle, path, str(_word(entry.words["quantum"], "size"))))
            _note_nested(shown, entry.handle)
        return found
    quanta = qdisc["options"].get("quanta", [])
    strict = qdisc["options"]["bands"] - len(quanta)
    for band in range(qdisc["options"]["bands"]):
        place = f"{major}{band + 1:x}"
        if band >= strict:
            found.append(_Leaf(place, (*path, strict), f"{quanta[band - strict]}B"))
            _note_nested(shown, place)
            continue
        below = shown.below(place)
        nested = below is not None and below["kind"] in _CLASSFUL
        found += _leaves(shown, below, (*path, band)) if nested and below else [_Leaf(place, (*path, band), None)]
    return found


def _note_nested(shown: _Shown, place: str) -> None:
    below = shown.below(place)
    if below is not None and below["kind"] in _CLASSFUL:
        shown.notes.append(
            f"qdisc {below['kind']} {below['handle']} at {place}: divides a share, which no policy does: left out"
        )


def _queue(shown: _Shown, entry: Object) -> dict[str, Any]:
    """What a class holds, of the queueing discipline at its end."""
    kind, options = entry["kind"], entry["options"]
    name = f"qdisc {kind} {entry['handle']} at {entry.get('parent', 'root')}"
    held = {"limit": f"{options['limit']}p"} if isinstance(options.get("limit"), int) else {}
    if kind == "pfifo":
        return held
    if kind in ("bfifo", "red"):
        held = {"limit_bytes": f"{options['limit']}B"} if held else {}
    if kind == "fq_codel":
        # tc shows "ecn" only where it is on.
        options = {"ecn": False, **options} if options else options
        _note_settings(shown, name, options, _FQ_CODEL, (*_FQ_CODEL, "ce_threshold"), _TIME_US)
        return {**held, "flows": "fq_codel"}
    if kind == "dualpi2":
        defaults = {**_DUALPI2, "memory-limit": 2 * options.get("limit", 0) * _PACKET_BYTES}
        _note_settings(shown, name, options, defaults, (*defaults, "step-thresh-pkts"), _GAIN)
        step_us = options.get("step-thresh-us", _L4S_STEP_US)
        step = {"l4s_step": f"{step_us}us"} if step_us != _L4S_STEP_US else {}
        return {**held, "flows": "dualpi2", **step}
    if kind not in ("bfifo", *_CLASSFUL):
        shown.notes.append(f"{name}: became a FIFO, as no class has a {kind}: left out")
    return {} if kind in _CLASSFUL else held


# --- Filters --------------------------------------------------------------------------------------------------------


def _matched(
    shown: _Shown, policy: Object, classes: Sequence[dict[str, Any]], places: Sequence[str]
) -> list[dict[str, Any]]:
    """The classes, with the packets that come to each place."""
    rules: list[tuple[Conditions, int]] = []
    rest = len(places) - 1
    for conditions, place in _sorted(shown, policy):
        if place == _DROPPED:
            if not any(covers(before, conditions) for before, _ in rules):
                shown.notes.append(
                    f"qdisc {policy['kind']} {policy['handle']}: drops packets that no filter of drr takes; "
                    "no class of a scenario does, so they come to the last one: left out"
                )
            continue
        if not conditions:
            rest = places.index(place)
            break
        rules.append((conditions, places.index(place)))
    matches = in_order(rules, len(places), rest)
    return [_with_match(entry, rules) for entry, rules in zip(classes, matches, strict=True)]


def _with_match(entry: dict[str, Any], rules: list[dict[str, Any]] | None) -> dict[str, Any]:
    return entry if rules is None else {**entry, "match": rules}


def _sorted(shown: _Shown, qdisc: Object) -> list[tuple[Conditions, str]]:
    """The place of packets that meet conditions, which are tried in order; the last ones are met by all packets."""
    found: list[tuple[Conditions, str]] = []
    filters = shown.filters_of(qdisc["handle"])
    for one in filters:
        place = _place(shown, qdisc, one.target)
        if place is None:
            shown.notes.append(f"{one.name}: leads to {one.target or 'no class'}, which is not there: left out")
            continue
        shown.notes += one.notes
        if one.conditions is not None:
            found += _into(shown, one.conditions, place)
    _check_filters(shown, qdisc, filters)
    if not any(not conditions for conditions, _ in found):
        for conditions, place in _others(shown, qdisc):
            found += _into(shown, conditions, place)
    return found


def _into(shown: _Shown, conditions: Conditions, place: str) -> list[tuple[Conditions, str]]:
    """Where packets go that come to a class: on, by the filters of the queueing discipline there."""
    below = shown.below(place) if place else None
    if below is None or below["kind"] not in _CLASSFUL or _shares(shown, place):
        return [(conditions, place)]
    found = []
    for more, leaf in _sorted(shown, below):
        shared = both(conditions, more)
        if shared is not None:
            found.append((shared, leaf))
        if covers(more, conditions):
            break
    return found


def _shares(shown: _Shown, place: str) -> bool:
    """Whether a class has a quantum, so that what is below it is left out."""
    above = next((entry for entry in shown.qdiscs if place.startswith(entry.get("handle", "-"))), None)
    if above is None or above["kind"] == "drr":
        return above is not None
    quanta = above["options"].get("quanta", [])
    return bool(above["kind"] == "ets") and int(place.partition(":")[2], 16) > above["options"]["bands"] - len(quanta)


def _check_filters(shown: _Shown, qdisc: Object, filters: Sequence[Filter]) -> None:
    """Refuses a text that does not say how packets come into the classes of a queueing discipline."""
    if filters or shown.some_without_filters or qdisc["kind"] in _KINDS:
        return
    major = qdisc["handle"]
    if qdisc["kind"] == "drr":
        classes = len(shown.classes_of("drr", major))
    else:
        classes = sum(str(entry.get("parent", "")).startswith(major) for entry in shown.qdiscs)
    if classes > 1:
        cure = f"add the output of tc -j filter show dev DEVICE parent {major}"
        raise unfit("tc", major, f"has {classes} classes, but no filters are shown that tell their packets; {cure}")


def _place(shown: _Shown, qdisc: Object, target: str) -> str | None:
    """The class of a queueing discipline that a filter's target stands for, as the kernel reads it."""
    major, kind = qdisc["handle"], qdisc["kind"]
    minor = int(target.partition(":")[2] or "0", 16)
    if kind == "drr":
        return target if any(entry.handle == target for entry in shown.classes_of("drr", major)) else None
    # the others read the number of the class only, whatever the number of the queueing discipline
    if 1 <= minor <= qdisc["options"]["classes" if kind in _KINDS else "bands"]:
        return f"{major}{minor:x}"
    return f"{major}{qdisc['options']['priomap'][0] + 1:x}" if kind in _BANDS else None


def _others(shown: _Shown, qdisc: Object) -> list[tuple[Conditions, str]]:
    """Where packets go that no filter takes."""
    major, kind, options = qdisc["handle"], qdisc["kind"], qdisc["options"]
    if kind == "drr":
        return [({}, _DROPPED)]
    if kind in _KINDS:
        points: dict[int, set[int]] = {}
        for name, number in options.get("dscp", {}).items():
            points.setdefault(number, set()).add(int(name) if name.isdigit() else _NAMES[name])
        found: list[tuple[Conditions, str]] = [
            ({"dscp": frozenset(own)}, f"{major}{number:x}") for number, own in sorted(points.items())
        ]
        return [*found, ({}, f"{major}{options.get('default', options['classes']):x}")]
    bands = [options["priomap"][priority] for priority in _PRIORITIES]
    if len(set(bands)) == 1:
        return [({}, f"{major}{bands[0] + 1:x}")]
    shown.notes.append(
        f"qdisc {kind} {major} priomap: taken for the code points that give IPv4 packets their priority; "
        "programs that set SO_PRIORITY are left out"
    )
    found = []
    for group, band in enumerate(bands):
        points_of = frozenset(point for point in range(64) if point >> 1 & 3 == group)
        found.append(({"dscp": points_of, "version": frozenset((4,))}, f"{major}{band + 1:x}"))
    return [*found, ({}, f"{major}{bands[0] + 1:x}")]
