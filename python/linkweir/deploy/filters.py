# SPDX-License-Identifier: BSD-3-Clause
"""Rules of classes as tc has them: a map of code points, or filters of the classifier flower (tc-flower(8))."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkweir.deploy.matching import Rule, Sorting, in_order, number_of, values
from linkweir.fault import unfit

_WITH_PORTS = {"tcp": 6, "udp": 17, "sctp": 132}
_PROTOCOLS = {"icmp": (1, 58), "esp": (50,), "gre": (47,)}
_NAMES_OF_TC = {"DF": "CS0", "VOICE-ADMIT": "VA"}
"""Code points that the plugins of tc (kernel/tc/plugin.c) have other names for."""
MOST_FILTERS = 4096
"""Rules that would need more filters are refused: the kernel tries one after the other for each packet."""


@dataclass(frozen=True)
class Filters:
    """Puts packets into the classes of a queueing discipline of `device`."""

    device: str
    sorting: Sorting

    def words(self) -> list[str] | None:
        """Words for a queueing discipline of linkweir, if code points alone decide; otherwise None."""
        pairs: dict[int, str] = {}
        for rule, number in in_order(self.sorting.rules):
            if set(rule) - {"order"} != {"dscp"}:
                return None
            for point in values(rule, "dscp"):
                # the plugin takes the last of several; a rule that is tried earlier must win
                pairs.setdefault(number_of(point), f"{_NAMES_OF_TC.get(point, point)}={number + 1}")
        shown = ",".join(pairs.values())
        return (["dscp", shown] if pairs else []) + ["default", str(self.sorting.rest + 1)]

    def lines(self, parent: str, places: Mapping[int, str]) -> list[str]:
        """Commands of tc.

        Args:
            parent: handle of the queueing discipline, such as `10:`.
            places: where each class is, by its number; packets of other classes do not come here.
        """
        found = []
        head = f"filter add dev {self.device} parent {parent}"
        preference = 0
        for preference, (rule, number) in enumerate(in_order(self.sorting.rules), 1):
            if number in places:
                end = f"classid {places[number]}"
                # All filters of one preference must have the same protocol.
                for family, match in _matches(rule):
                    first = 2 * preference - (family == "ip")
                    found.append(f"{head} protocol {family} pref {first} flower {match} {end}")
        if len(found) > MOST_FILTERS:
            message = f"would need {len(found)} filters of tc, more than {MOST_FILTERS}; use fewer values"
            raise unfit("class.match", "...", message)
        if self.sorting.rest in places:
            last = 2 * preference + 1
            found.append(f"{head} protocol all pref {last} matchall classid {places[self.sorting.rest]}")
        return found


def _matches(rule: Rule) -> Iterator[tuple[str, str]]:
    """The flower filters of a rule, each with the protocol that it is for."""
    points = [f"ip_tos {number_of(point) << 2:#x}/0xfc" for point in values(rule, "dscp")] or [""]
    for family, version in (("ip", 4), ("ipv6", 6)):
        parts = itertools.product(points, _protocols(rule, version), _ports(rule), _addresses(rule, version))
        for words in parts:
            yield family, " ".join(word for word in words if word)


def _protocols(rule: Rule, version: int) -> list[str]:
    named = values(rule, "protocol")
    ported = any(key in rule for key in ("port", "source_port", "destination_port"))
    numbers: list[int] = []
    for protocol in named or (list(_WITH_PORTS) if ported else []):
        if isinstance(protocol, int):
            numbers.append(protocol)
        elif protocol in _WITH_PORTS:
            numbers.append(_WITH_PORTS[protocol])
        else:
            numbers += [n for n in _PROTOCOLS[protocol] if (n == 58) == (version == 6) or n not in (1, 58)]
    words = {6: "tcp", 17: "udp", 132: "sctp", 1: "icmp", 58: "icmpv6"}
    if ported:
        numbers = [number for number in numbers if number in _WITH_PORTS.values()]
    # tc reads other numbers as hexadecimal.
    return [f"ip_proto {words.get(number, format(number, '#x'))}" for number in numbers] or ([] if named else [""])


def _ports(rule: Rule) -> list[str]:
    def meet(one: str, other: str) -> str | None:
        ends = [[int(word) for word in (text.split("-") * 2)[:2]] for text in (one, other)]
        first, last = max(low for low, _ in ends), min(high for _, high in ends)
        return None if first > last else str(first) if first == last else f"{first}-{last}"

    def of(key: str) -> list[str]:
        return [str(port).replace(" ", "") for port in values(rule, key)]

    return _ends("port", meet, of("port"), of("source_port"), of("destination_port"))


def _addresses(rule: Rule, version: int) -> list[str]:
    def meet(one: str, other: str) -> str | None:
        wide, narrow = sorted((ipaddress.ip_network(net, strict=False) for net in (one, other)), key=_prefix)
        return str(narrow) if narrow.network_address in wide else None

    def of(key: str) -> list[str]:
        return [net for net in values(rule, key) if ipaddress.ip_interface(net).version == version]

    if any(key in rule and not of(key) for key in ("address", "source", "destination")):
        return []
    return _ends("ip", meet, of("address"), of("source"), of("destination"))


def _prefix(net: ipaddress.IPv4Network | ipaddress.IPv6Network) -> int:
    return net.prefixlen


def _ends(
    word: str,
    meet: Callable[[str, str], str | None],
    either: Sequence[str],
    sources: Sequence[str],
    destinations: Sequence[str],
) -> list[str]:
    """What flower must compare at the two ends of a packet, a text for each way in which the values can match.

    Args:
        word: what flower calls the values, behind `src_` or `dst_`.
        meet: what two values have in common, if anything.
        either: values of which one end or the other must have one.
        sources: values of which the source must have one.
        destinations: values of which the destination must have one.
    """
    found = []
    ways: list[tuple[str | None, str | None]] = [(value, None) for value in either]
    ways += [(None, value) for value in either]
    for (at_source, at_destination), source, destination in itertools.product(
        ways or [(None, None)], [*sources] or [""], [*destinations] or [""]
    ):
        wanted = {"src": _common(meet, at_source, source), "dst": _common(meet, at_destination, destination)}
        if None not in wanted.values():
            # The protocol says the version of IP; flower never matches an address whose mask is empty.
            compared = {end: value for end, value in wanted.items() if value and not value.endswith("/0")}
            found.append(" ".join(f"{end}_{word} {value}" for end, value in compared.items()))
    return found


def _common(meet: Callable[[str, str], str | None], one: str | None, other: str) -> str | None:
    """What two values have in common; empty where neither is wanted, None where they have nothing in common."""
    if one is None or not other:
        return one or other
    return meet(one, other)
