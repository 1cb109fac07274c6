# SPDX-License-Identifier: BSD-3-Clause
"""What the filters of tc compare, as conditions on packets, in the order in which the kernel tries them.

The kernel tries filters by preference. Within one, flower looks up its masks in the order in which they came
(fl_classify in net/sched/cls_flower.c), and u32 tries its keys in the order of their handles. A filter that compares
something that a rule cannot is left out; one that compares a little more or less than its rule is kept, and a note says
the difference.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir.deploy.conditions import WITH_PORTS, Conditions, both

Object = Mapping[str, Any]

_VERSIONS = {"ip": 4, "ipv6": 6}
_PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "icmpv6": 58}
"""Names that tc shows; it shows other protocols as hexadecimal numbers."""
_HARMLESS = frozenset(("eth_type", "not_in_hw", "in_hw", "in_hw_count"))
_ROOT_TABLE = 0x800
"""Hash tables of u32 from this number on are made by the kernel, one for each preference; users make the others."""
_DESCRIBES = frozenset(("handle", "fh", "order", "key_ht", "bkt", "flowid", "classid", "terminal", "match", "actions"))
_ECN = 3
"""The bits of ip_tos that are not of the code point."""


@dataclass(frozen=True)
class Filter:
    """A filter.

    Attributes:
        name: parent, preference, kind and handle.
        target: the class that it chooses, such as `10:1`.
        conditions: what it compares; None if a rule cannot.
        notes: what was left out, a line each.
        acts: whether it has an action besides choosing the class, such as dropping the packet.
    """

    name: str
    target: str
    conditions: Conditions | None
    notes: tuple[str, ...] = ()
    acts: bool = False


class _UnfitError(Exception):
    """A filter cannot be a rule; the text says why."""


def target_of(options: Object) -> str:
    """The class that a filter chooses; empty if none."""
    return str(options.get("classid") or options.get("flowid") or "")


def filters_of(shown: Iterable[Object], parent: str) -> list[Filter]:
    """Filters of one queueing discipline or class, in the kernel's order.

    Args:
        shown: as tc shows them.
        parent: of all of them, such as `10:`.
    """
    found: list[Filter] = []
    for pref, entries in _by_preference(shown):
        kind = str(entries[0]["kind"])
        if kind == "flower":
            entries = _by_mask(entries)
        elif kind == "u32":
            entries = sorted(entries, key=lambda entry: _handle(entry["options"].get("fh")))
        for entry in entries:
            options = entry["options"]
            handle = options.get("fh", options.get("handle"))
            name = f"filter parent {parent} pref {pref} {kind}" + ("" if handle is None else f" handle {handle}")
            found += _filter(name, entry)
    return found


def _by_preference(shown: Iterable[Object]) -> Iterator[tuple[int, list[Object]]]:
    groups: dict[tuple[int, int], list[Object]] = {}
    for entry in shown:
        groups.setdefault((int(entry.get("chain", 0)), int(entry["pref"])), []).append(entry)
    for (_, pref), entries in sorted(groups.items()):
        yield pref, entries


def _by_mask(entries: Sequence[Object]) -> list[Object]:
    """Filters of flower in the order in which the kernel looks: by mask, each with the place of its first filter."""
    masks: dict[object, list[Object]] = {}
    for entry in sorted(entries, key=lambda entry: int(entry["options"].get("handle", 0))):
        masks.setdefault(frozenset(_mask(entry["options"].get("keys", {}))), []).append(entry)
    return [entry for group in masks.values() for entry in group]


def _mask(keys: Object) -> Iterator[tuple[str, str]]:
    for key, value in keys.items():
        if key.endswith("_mask"):
            yield key, str(value)
        elif key in ("src_ip", "dst_ip"):
            yield key, str(value).partition("/")[2]
        else:
            yield key, "range" if isinstance(value, Mapping) else str(value).partition("/")[2]


def _handle(text: object) -> tuple[int, ...]:
    return tuple(int(part or "0", 16) for part in str(text).split(":"))


def _filter(name: str, entry: Object) -> Iterator[Filter]:
    options = entry["options"]
    kind, target = entry["kind"], target_of(options)
    if kind == "u32" and "ht_divisor" in options:
        return  # a hash table; what is in it follows
    actions = [action.get("kind") for action in options.get("actions", []) if not _passes(action)]
    try:
        if entry.get("chain", 0):
            raise _UnfitError(f"is in chain {entry['chain']}, which only an action reaches")
        if actions:
            raise _UnfitError(f"has the action {actions[0]}")
        if "skip_sw" in options:
            raise _UnfitError("is for hardware only")
        if not target:
            raise _UnfitError("names no class")
        read = {"flower": _flower, "u32": _u32, "matchall": _everything, "basic": _everything}.get(kind)
        if read is None:
            raise _UnfitError(f"{kind} does not compare headers of packets")
        conditions, notes = read(entry)
    except _UnfitError as why:
        yield Filter(name, target, None, (f"{name}: {why}: left out",), bool(actions))
        return
    yield Filter(name, target, conditions, tuple(f"{name}: {note}" for note in notes))


def _passes(action: Object) -> bool:
    return bool(action.get("kind") == "gact" and action.get("control_action", {}).get("type") == "pass")


def _version(entry: Object) -> dict[str, frozenset[Any]]:
    protocol = entry["protocol"]
    if protocol == "all":
        return {}
    if protocol not in _VERSIONS:
        raise _UnfitError(f"is for packets of protocol {protocol}, and a rule only for IP")
    return {"version": frozenset((_VERSIONS[protocol],))}


def _everything(entry: Object) -> tuple[Conditions, list[str]]:
    others = sorted(set(entry["options"]) - _DESCRIBES - _HARMLESS)
    if others:
        raise _UnfitError(f"compares {', '.join(others)}")
    return _version(entry), []


def _possible(*parts: Conditions) -> Conditions:
    found: Conditions | None = {}
    for part in parts:
        found = both(found, part) if found is not None else None
    if found is None:
        raise _UnfitError("matches no packet")
    return found


def _points(value: int, mask: int) -> tuple[Conditions, list[str]]:
    """Code points whose bits are these, and what a rule cannot say of them."""
    if mask and not mask & ~_ECN:
        raise _UnfitError("compares the ECN bits only")
    points = frozenset(point for point in range(64) if not ((point << 2) ^ value) & mask & ~_ECN)
    notes = ["compares the ECN bits, too: its rule takes packets with any"] if mask & _ECN else []
    return ({"dscp": points} if len(points) < 64 else {}), notes


# --- flower ---------------------------------------------------------------------------------------------------------


def _flower(entry: Object) -> tuple[Conditions, list[str]]:
    options = entry["options"]
    keys = dict(options.get("keys", {}))
    if "indev" in options:
        raise _UnfitError("compares indev")
    parts: list[Conditions] = [_version(entry)]
    notes: list[str] = []
    for key in _HARMLESS:
        keys.pop(key, None)
    if "ip_tos" in keys:
        value, _, mask = str(keys.pop("ip_tos")).partition("/")
        own, notes = _points(int(value, 0), int(str(keys.pop("ip_tos_mask", mask or "ff")), 16))
        parts.append(own)
    if "ip_proto" in keys:
        parts.append({"protocol": frozenset((_protocol(str(keys.pop("ip_proto"))),))})
    for end, key in (("src", "source"), ("dst", "destination")):
        if f"{end}_port" in keys:
            parts.append({f"{key}_port": _port(keys.pop(f"{end}_port"), keys.pop(f"{end}_port_mask", None))})
        names = [name for name in (f"{end}_ip", f"{end}_ipv4", f"{end}_ipv6") if name in keys]
        parts += [{key: frozenset((_net(str(keys.pop(name))),))} for name in names]
    if keys:
        raise _UnfitError(f"compares {', '.join(keys)}")
    return _possible(*parts), notes


def _protocol(text: str) -> int:
    try:
        return _PROTOCOLS[text] if text in _PROTOCOLS else int(text, 16)
    except ValueError:
        raise _UnfitError(f"compares ip_proto {text}, whose number is not known here") from None


def _port(value: Any, mask: Any) -> frozenset[tuple[int, int]]:
    if mask is not None:
        return _masked_port(int(value), int(str(mask), 16))
    if isinstance(value, Mapping):
        return _ports(int(value["start"]), int(value["end"]))
    first, _, last = str(value).partition("-")
    return _ports(int(first), int(last or first))


def _ports(first: int, last: int) -> frozenset[tuple[int, int]]:
    if not first:
        raise _UnfitError("compares port 0")
    return frozenset(((first, last),))


def _masked_port(value: int, mask: int) -> frozenset[tuple[int, int]]:
    free = ~mask & 0xFFFF
    if free & (free + 1):
        raise _UnfitError(f"compares ports with the mask {mask:#x}, which is not a range")
    return _ports(value, value | free)


def _net(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise _UnfitError(f"compares the address {text}, whose mask is not a prefix") from None


# --- u32 ------------------------------------------------------------------------------------------------------------


def _u32(entry: Object) -> tuple[Conditions, list[str]]:
    options = entry["options"]
    others = sorted(set(options) - _DESCRIBES - _HARMLESS)
    if others:
        raise _UnfitError(f"has {', '.join(others)}")
    if _handle(options["key_ht"])[0] < _ROOT_TABLE:
        raise _UnfitError("is in a hash table, which only another filter reaches")
    matches = options.get("match", [])
    matches = matches if isinstance(matches, list) else [matches]
    words = [_Word(match) for match in matches if int(match["mask"], 16)]
    version = _version(entry)
    if words and not version:
        raise _UnfitError("compares bytes of packets of every protocol")
    reader = _IP[min(version["version"])] if version else _IP4
    compared: dict[str, tuple[int, int]] = {}
    for word in words:
        reader.add(word, compared)
    parts: list[Conditions] = [version]
    notes: list[str] = []
    if "dscp" in compared:
        own, notes = _points(*compared.pop("dscp"))
        parts.append(own)
    if "protocol" in compared:
        value, mask = compared.pop("protocol")
        parts.append({"protocol": frozenset(n for n in range(256) if n & mask == value)})
    for key in ("source", "destination"):
        if key in compared:
            parts.append({key: frozenset((_masked_net(reader.bits, *compared.pop(key)),))})
        if f"{key}_port" in compared:
            parts.append({f"{key}_port": _masked_port(*compared.pop(f"{key}_port"))})
    conditions = _possible(*parts)
    ported = any("port" in key for key in conditions)
    protocols = [part["protocol"] for part in parts if "protocol" in part]
    if ported and not (protocols and protocols[0] <= WITH_PORTS):
        notes = [*notes, "compares ports in packets of every protocol: its rule only those of tcp, udp and sctp"]
    return conditions, notes


class _Word:
    """Four bytes that u32 compares."""

    def __init__(self, match: Object) -> None:
        if match.get("offmask") or str(match["off"]).startswith("nexthdr"):
            raise _UnfitError("compares bytes at an offset that it computes")
        self.offset = int(match["off"])
        self.mask = int(match["mask"], 16)
        self.value = int(match["value"], 16) & self.mask


@dataclass(frozen=True)
class _Fields:
    """Where the fields of a header are: name, first byte, first bit in the four bytes there (from the left), bits."""

    bits: int
    fields: tuple[tuple[str, int, int, int], ...]

    def add(self, word: _Word, compared: dict[str, tuple[int, int]]) -> None:
        """Adds the bits of a word to the fields that they belong to: values and masks."""
        left = word.mask
        for name, offset, first, width in self.fields:
            if word.offset != offset:
                continue
            shift = 32 - first - min(width, 32)
            mask = word.mask >> shift & ((1 << min(width, 32)) - 1)
            if mask:
                before = compared.get(name, (0, 0))
                # a field of more than 32 bits continues in the next words
                up = _up(self, name, offset)
                value = (word.value >> shift & mask) << up
                if before[1] & mask << up and (before[0] ^ value) & before[1] & mask << up:
                    raise _UnfitError("matches no packet")
                compared[name] = (before[0] | value, before[1] | mask << up)
                left &= ~(mask << shift)
        if left:
            raise _UnfitError(f"compares the bits {left:08x} at {word.offset}")


def _up(fields: _Fields, name: str, offset: int) -> int:
    last = max(at for key, at, _, _ in fields.fields if key == name)
    return 8 * (last - offset)


def _header(bits: int, *, dscp: tuple[int, int], protocol: tuple[int, int], source: int) -> _Fields:
    """The fields of a header that ends with its addresses, and of the ports behind it.

    Args:
        bits: of an address.
        dscp: first byte and first bit of the byte that begins with the code point.
        protocol: the same of the protocol's number.
        source: first byte of the source's address.
    """
    size = bits // 8
    destination, ports = source + size, source + 2 * size
    return _Fields(
        bits,
        (
            ("dscp", *dscp, 8),
            ("protocol", *protocol, 8),
            *(("source", offset, 0, 32) for offset in range(source, destination, 4)),
            *(("destination", offset, 0, 32) for offset in range(destination, ports, 4)),
            ("source_port", ports, 0, 16),
            ("destination_port", ports, 16, 16),
        ),
    )


_IP4 = _header(32, dscp=(0, 8), protocol=(8, 8), source=12)
_IP6 = _header(128, dscp=(0, 4), protocol=(4, 16), source=8)
_IP = {4: _IP4, 6: _IP6}


def _masked_net(bits: int, value: int, mask: int) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    free = ~mask & ((1 << bits) - 1)
    if free & (free + 1):
        raise _UnfitError(f"compares an address with the mask {mask:#x}, which is not a prefix")
    kind = ipaddress.IPv4Network if bits == 32 else ipaddress.IPv6Network
    return kind((value, bits - free.bit_length()))
