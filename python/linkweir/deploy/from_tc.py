# SPDX-License-Identifier: BSD-3-Clause
"""Link, scheduler and classes of a scenario from what tc shows.

The text is the output of these commands, one after the other; the last one for each queueing discipline with filters,
which are 10: and each drr. Since iproute2 6.2, tc shows classes as JSON with -j, but without the quanta of drr::

    tc -d -j qdisc show dev eth0
    tc -d class show dev eth0
    tc -j filter show dev eth0 parent 10:
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from linkweir import _native
from linkweir.deploy.found import Found
from linkweir.deploy.matching import CODE_POINTS
from linkweir.deploy.policy import ETHERNET_BYTES, IN_MODULE, kind_of, policy_of
from linkweir.fault import unfit

_KINDS = frozenset(kind_of(policy) for policy in IN_MODULE)
_SUFFIXES = {"rate": "_bps", "time": "_ns", "size": "_bytes", "packets": "_pkts", "fraction": "_ppm", "bits": "_bits"}
_UNITS = {"rate": "bit", "time": "ns", "size": "B", "packets": "p", "bits": "bit"}
_NAMES = {number: name for name, number in reversed(list(CODE_POINTS.items()))}
_PROTOCOLS = {"tcp": "tcp", "udp": "udp", "sctp": "sctp", "icmp": "icmp", "icmpv6": "icmp"}
_RATES = {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}

Object = Mapping[str, Any]


def from_tc(text: str) -> Found:
    """Reads what tc printed.

    Raises:
        ScenarioError: there is neither HTB with a policy below it nor a policy that shapes, or the text is cut off.
    """
    objects, lines = _parts(text)
    if any("class" in entry for entry in objects):
        raise unfit(
            "tc",
            "class",
            "is shown as JSON, which lacks the quanta of drr; show classes with tc -d class show, without -j",
        )
    qdiscs = [entry for entry in objects if "kind" in entry and "protocol" not in entry]
    filters = [entry for entry in objects if "options" in entry and "protocol" in entry]
    own = next((entry for entry in qdiscs if entry["kind"] in _KINDS and "bandwidth_bps" in entry["options"]), None)
    if own is not None:
        return _own(_link_of(own["options"]), own, _classes(lines), filters)
    shaper = next((entry for entry in qdiscs if entry["kind"] == "htb"), None)
    policy = next(
        (entry for entry in qdiscs if shaper is not None and entry.get("parent") == f"{shaper['handle']}1"), None
    )
    classes = _classes(lines)
    rate_bps = next((_rate(words) for kind, handle, words in classes if kind == "htb" and handle == "1:1"), None)
    if shaper is None or policy is None or rate_bps is None:
        raise unfit(
            "tc",
            "...",
            "must show HTB with class 1:1 and a policy below it, or a policy with bandwidth, as export tc makes",
        )
    stab = shaper.get("stab", {})
    link = {
        "rate": _shown(rate_bps, "rate"),
        "overhead": f"{stab.get('overhead', -ETHERNET_BYTES) + ETHERNET_BYTES}B",
    }
    if "mpu" in stab:
        link["mpu"] = f"{stab['mpu']}B"
    if policy["kind"] in _KINDS:
        return _own(link, policy, classes, filters)
    if policy["kind"] == "prio":
        return _in_tree(link, policy, qdiscs, classes, filters)
    if policy["kind"] in ("pfifo", "bfifo"):
        limit = {"limit" if policy["kind"] == "pfifo" else "limit_bytes": policy["options"]["limit"]}
        entry = {key: f"{value}{'p' if key == 'limit' else 'B'}" for key, value in limit.items()}
        return Found(link, {"policy": "fifo"}, [{"name": "class-1", **entry}])
    if policy["kind"] == "fq_codel":
        options = policy["options"]
        keys = {"limit": f"{options['limit']}p", "quantum": f"{options['quantum']}B"}
        keys |= {key: f"{options[key]}us" for key in ("target", "interval")}
        keys["ecn"] = "yes" if options.get("ecn") else "no"
        return Found(link, {"policy": "fq_codel", **keys}, [{"name": "class-1"}])
    raise unfit("tc", policy["kind"], "is a queueing discipline that the simulator does not have")


def _link_of(options: Object) -> dict[str, Any]:
    """The link of a queueing discipline that shapes itself."""
    if "cells" in options:
        raise unfit("tc", options["cells"], "counts cells, which the simulator's links do not have")
    link = {"rate": f"{options['bandwidth_bps']}bit", "overhead": f"{options.get('overhead_bytes', ETHERNET_BYTES)}B"}
    if "mpu_bytes" in options:
        link["mpu"] = f"{options['mpu_bytes']}B"
    return link


# --- Text -----------------------------------------------------------------------------------------------------------


def _parts(text: str) -> tuple[list[Object], list[str]]:
    """JSON objects of all lists in a text, and the lines between."""
    objects: list[Object] = []
    lines: list[str] = []
    decoder, at = json.JSONDecoder(), 0
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
        objects += [entry for entry in found if isinstance(entry, dict)]
    return objects, lines


def _classes(lines: Sequence[str]) -> list[tuple[str, str, dict[str, str]]]:
    """Kind, handle, and words with their values, of each class."""
    found = []
    for line in lines:
        words = line.split()
        if words[:1] == ["class"] and len(words) > 3:
            rest = words[4:] if words[3] == "root" else words[5:]
            if rest[:1] == ["leaf"]:
                rest = rest[2:]
            found.append((words[1], words[2], dict(zip(rest[::2], rest[1::2], strict=False))))
    return found


def _rate(words: Mapping[str, str]) -> int | None:
    """The rate that tc shows, bit/s."""
    match = re.fullmatch(r"([\d.]+)([KMGT]?bit)", words.get("rate", ""))
    return round(float(match[1]) * _RATES[match[2]]) if match else None


def _shown(value: int, unit: str) -> str | float | int:
    """A number of base units as a scenario has it."""
    if unit == "fraction":
        return f"{value / 10_000:g}%"
    return f"{value}{_UNITS[unit]}" if unit in _UNITS else value


# --- Policies -------------------------------------------------------------------------------------------------------


def _own(
    link: dict[str, Any], policy: Object, classes: Sequence[tuple[str, str, dict[str, str]]], filters: Sequence[Object]
) -> Found:
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
    found: list[dict[str, Any]] = []
    for number in range(1, options["classes"] + 1):
        words = next((words for _, handle, words in classes if handle == f"{major}{number:x}"), {})
        entry: dict[str, Any] = {"name": f"class-{number}"}
        for name, unit in units.items():
            if name in words:
                entry[name] = _word(words[name], unit)
        found.append(entry)
    rest = options.get("default", len(found)) - 1
    for code_point, number in options.get("dscp", {}).items():
        point = int(code_point) if code_point.isdigit() else code_point
        rules = found[number - 1].setdefault("match", [{"dscp": []}])
        rules[0]["dscp"].append(point)
    rules_of = _rules(filters, major)
    for number, entry in enumerate(found):
        entry.setdefault("match", []).extend(rules_of.get(f"{major}{number + 1:x}", []))
    return Found(link, scheduler, [_tidy(entry, rest=number == rest) for number, entry in enumerate(found)])


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


def _in_tree(
    link: dict[str, Any],
    policy: Object,
    qdiscs: Sequence[Object],
    classes: Sequence[tuple[str, str, dict[str, str]]],
    filters: Sequence[Object],
) -> Found:
    """Linux's prio, with its drr below."""
    found: list[tuple[str, dict[str, Any]]] = []
    shares = False
    matched = _rules(filters, policy["handle"])
    for band in range(1, policy["options"]["bands"] + 1):
        handle = f"{policy['handle']}{band:x}"
        below = next((entry for entry in qdiscs if entry.get("parent") == handle), None)
        if below is None:
            continue  # a band that nothing uses
        if below["kind"] != "drr":
            found.append((handle, {"level": band - 1, **_fifo(below)}))
            continue
        shares = True
        rules = _rules(filters, below["handle"])
        inside = [
            (place, words) for kind, place, words in classes if kind == "drr" and place.startswith(below["handle"])
        ]
        _check_filters(filters, below["handle"], len(inside))
        for place, words in inside:
            leaf = next((entry for entry in qdiscs if entry.get("parent") == place), None)
            entry = {"level": band - 1, "quantum": _word(words["quantum"], "size")}
            found.append((place, {**entry, **(_fifo(leaf) if leaf else {})}))
            if place in rules:
                matched[place] = rules[place]
    _check_filters(filters, policy["handle"], len({entry["level"] for _, entry in found}))
    rests = [place for place, _ in found if place not in matched]
    tables = []
    for number, (place, entry) in enumerate(found, 1):
        named = {"name": f"class-{number}", "match": matched.get(place, []), **entry}
        tables.append(_tidy(named, rest=place in rests[-1:]))
    return Found(link, {"policy": "drr" if shares else "strict"}, tables)


def _fifo(entry: Object) -> dict[str, str]:
    if entry["kind"] == "pfifo":
        return {"limit": f"{entry['options']['limit']}p"}
    if entry["kind"] == "bfifo":
        return {"limit_bytes": f"{entry['options']['limit']}B"}
    return {}


def _tidy(entry: dict[str, Any], *, rest: bool) -> dict[str, Any]:
    rules = [] if rest else [rule for rule in entry.get("match", []) if rule]
    tidied = {key: value for key, value in entry.items() if key != "match"}
    return {**tidied, "match": rules} if rules else tidied


# --- Filters --------------------------------------------------------------------------------------------------------


def _check_filters(filters: Sequence[Object], parent: str, classes: int) -> None:
    """Refuses a text that does not say how packets come into the classes of a queueing discipline."""
    if classes > 1 and not any(_place(entry["options"]).startswith(parent) for entry in filters):
        cure = f"add the output of tc -j filter show dev DEVICE parent {parent}"
        raise unfit("tc", parent, f"has {classes} classes, but no filters are shown that tell their packets; {cure}")


def _place(options: Object) -> str:
    return str(options.get("classid") or options.get("flowid") or "")


def _rules(filters: Sequence[Object], parent: str) -> dict[str, list[dict[str, Any]]]:
    """The rules of each place, of filters that `linkweir export tc` wrote."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for entry in filters:
        place = _place(entry["options"])
        if entry["kind"] == "flower" and place.startswith(parent):
            # Filters of a rule have two preferences, one for each version of IP.
            number = (entry["pref"] + 1) // 2
            found.setdefault(place, {}).setdefault(number, []).append(_conditions(entry["options"]["keys"]))
    return {place: [_merged(parts) for _, parts in sorted(rules.items())] for place, rules in found.items()}


def _conditions(keys: Object) -> dict[str, Any]:
    """What one filter compares."""
    rule: dict[str, Any] = {}
    if "ip_tos" in keys:
        number = int(keys["ip_tos"]) >> 2
        rule["dscp"] = _NAMES.get(number, number)
    if "ip_proto" in keys:
        text = str(keys["ip_proto"])
        rule["protocol"] = _PROTOCOLS.get(text) or int(text, 16)
    for end, key in (("src", "source"), ("dst", "destination")):
        if f"{end}_port" in keys:
            rule[f"{key}_port"] = _port(keys[f"{end}_port"])
        for name in (f"{end}_ip", f"{end}_ipv4", f"{end}_ipv6"):
            if name in keys:
                rule[key] = str(keys[name])
    return rule


def _port(value: Any) -> int | str:
    if isinstance(value, Mapping):
        return f"{value['start']}-{value['end']}"
    return value if isinstance(value, int) else int(value) if str(value).isdigit() else str(value)


def _merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rule of which these are the filters: every combination of its values."""
    rule: dict[str, Any] = {}
    for one, other, key in (
        ("source_port", "destination_port", "port"),
        ("source", "destination", "address"),
    ):
        if any(one in part and other not in part for part in parts) and any(
            other in part and one not in part for part in parts
        ):
            parts = [
                {**{k: v for k, v in part.items() if k not in (one, other)}, key: part.get(one, part.get(other))}
                for part in parts
            ]
    for part in parts:
        for key, value in part.items():
            values = rule.setdefault(key, [])
            if value not in values:
                values.append(value)
    if rule.get("protocol") == ["tcp", "udp", "sctp"] and any("port" in key for key in rule):
        del rule["protocol"]  # what ports imply
    order = ("dscp", "protocol", "port", "source_port", "destination_port", "address", "source", "destination")
    return {key: rule[key][0] if len(rule[key]) == 1 else rule[key] for key in order if key in rule}
