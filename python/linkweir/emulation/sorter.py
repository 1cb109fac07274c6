# SPDX-License-Identifier: BSD-3-Clause
"""Puts IP packets into a scenario's classes by their headers, and marks them (RFC 3168)."""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from linkweir.deploy.matching import Rule, Sorting, in_order, number_of, values

_MOST_KNOWN = 65_536
"""Headers whose class is kept; beyond that all are forgotten."""
_WITH_PORTS = frozenset((6, 17, 132))
_PROTOCOLS = {"tcp": (6,), "udp": (17,), "sctp": (132,), "icmp": (1, 58), "esp": (50,), "gre": (47,)}
# RFC 8200, section 4: hop-by-hop options, routing header, destination options.
_EXTENSIONS = frozenset((0, 43, 60))
_FRAGMENT = 44

Place = tuple[int, int]
"""The number of a packet's class and of its flow, which is a hash of addresses, protocol and ports."""


class Header(NamedTuple):
    """What rules see of a packet. Ports are None where the packet has none, as in a fragment but the first."""

    version: int
    dscp: int
    protocol: int
    source: int
    destination: int
    source_port: int | None
    destination_port: int | None


class Sorter:
    """Finds the class of packets.

    Args:
        sorting: which packets belong to which class.
        l4s: number of the class of packets with ECT(1) or CE (RFC 9332, section 2.5.1), whatever the rules say.
    """

    def __init__(self, sorting: Sorting, l4s: int | None = None) -> None:
        self._l4s = l4s
        self._rules = [(_Rule(rule), number) for rule, number in in_order(sorting.rules)]
        self._rest = sorting.rest
        self._known: dict[bytes, Place] = {}

    def place(self, packet: bytes) -> Place:
        """The class and flow of an IP packet; one that is too short to be read belongs to the class of the rest."""
        if packet[:1] == b"\x45" and not (packet[6] & 0x3F or packet[7]):
            # IPv4 without options, whole: code point, protocol, addresses and ports decide.
            key = bytes((packet[1] & 0xFC, packet[9])) + packet[12:24]
        elif packet[0] >> 4 == 6 and packet[6] in _WITH_PORTS:
            key = packet[:2] + packet[6:7] + packet[8:44]
        else:
            key = packet[:64]
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._place(packet)
        if self._l4s is not None and ecn(packet) & 1:
            return self._l4s, found[1]
        return found

    def _place(self, packet: bytes) -> Place:
        header = header_of(packet)
        if header is None:
            return self._rest, 0
        flow = zlib.crc32(repr(header[2:]).encode())
        for rule, number in self._rules:
            if rule.takes(header):
                return number, flow
        return self._rest, flow


class _Rule:
    """A rule of `match` as sets of numbers."""

    def __init__(self, rule: Rule) -> None:
        self._dscp = frozenset(map(number_of, values(rule, "dscp")))
        named = values(rule, "protocol")
        numbers = [(one,) if isinstance(one, int) else _PROTOCOLS[one] for one in named]
        self._protocols = frozenset(number for several in numbers for number in several)
        keys = ("port", "source_port", "destination_port")
        self._port, self._source_port, self._destination_port = (_ranges(values(rule, key)) for key in keys)
        nets = ("address", "source", "destination")
        self._address, self._source, self._destination = (_nets(values(rule, key)) for key in nets)

    def takes(self, header: Header) -> bool:
        """Whether a packet with this header meets all conditions."""
        ports, ends = (header.source_port, header.destination_port), (header.source, header.destination)
        return (
            (not self._dscp or header.dscp in self._dscp)
            and (not self._protocols or header.protocol in self._protocols)
            and (not self._port or any(_within(port, self._port) for port in ports))
            and (not self._source_port or _within(ports[0], self._source_port))
            and (not self._destination_port or _within(ports[1], self._destination_port))
            and (not self._address or any(_inside(header.version, end, self._address) for end in ends))
            and (not self._source or _inside(header.version, ends[0], self._source))
            and (not self._destination or _inside(header.version, ends[1], self._destination))
        )


def _ranges(ports: Sequence[int | str]) -> list[tuple[int, int]]:
    pairs = [[int(word) for word in (str(port).split("-") * 2)[:2]] for port in ports]
    return [(first, last) for first, last in pairs]


def _within(port: int | None, ranges: Sequence[tuple[int, int]]) -> bool:
    return port is not None and any(first <= port <= last for first, last in ranges)


_Net = tuple[int, int, int]
"""Version, first address, and how many bits of an address are those of the host."""


def _nets(texts: Sequence[str]) -> list[_Net]:
    nets = [ipaddress.ip_network(text, strict=False) for text in texts]
    return [(net.version, int(net.network_address), net.max_prefixlen - net.prefixlen) for net in nets]


def _inside(version: int, address: int, nets: Sequence[_Net]) -> bool:
    return any(version == of and address >> host == first >> host for of, first, host in nets)


def header_of(packet: bytes) -> Header | None:
    """The header of an IPv4 (RFC 791) or IPv6 packet (RFC 8200); None if it is neither, or not whole."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        protocol, at = packet[9], 4 * (packet[0] & 0xF)
        later = int.from_bytes(packet[6:8], "big") & 0x1FFF != 0
        source, destination, traffic = packet[12:16], packet[16:20], packet[1]
    elif version == 6 and len(packet) >= 40:
        protocol, at, later = _behind_extensions(packet)
        source, destination = packet[8:24], packet[24:40]
        traffic = int.from_bytes(packet[:2], "big") >> 4 & 0xFF
    else:
        return None
    ports: tuple[int | None, int | None] = (None, None)
    if protocol in _WITH_PORTS and not later and len(packet) >= at + 4:
        ports = int.from_bytes(packet[at : at + 2], "big"), int.from_bytes(packet[at + 2 : at + 4], "big")
    ends = int.from_bytes(source, "big"), int.from_bytes(destination, "big")
    return Header(version, traffic >> 2, protocol, *ends, *ports)


def _behind_extensions(packet: bytes) -> tuple[int, int, bool]:
    """The upper protocol of an IPv6 packet, where it begins, and whether this is a fragment but the first."""
    protocol, at, later = packet[6], 40, False
    while len(packet) >= at + 8:
        if protocol in _EXTENSIONS:
            protocol, at = packet[at], at + 8 * (packet[at + 1] + 1)
        elif protocol == _FRAGMENT:
            later = later or int.from_bytes(packet[at + 2 : at + 4], "big") >> 3 != 0
            protocol, at = packet[at], at + 8
        else:
            break
    return protocol, at, later


def ecn(packet: bytes) -> int:
    """The field ECN (RFC 3168, section 5): 0 where the packet's ends do not understand it, 1 ECT(1), 2 ECT(0), 3 CE."""
    if len(packet) < 2:
        return 0
    return packet[1] & 3 if packet[0] >> 4 == 4 else packet[1] >> 4 & 3


def marked(packet: bytes) -> bytes:
    """The packet with the code point CE, and the checksum of its IPv4 header as it then is (RFC 1624, equation 3)."""
    new = bytearray(packet)
    if packet[0] >> 4 == 6:
        new[1] |= 0x30
        return bytes(new)
    new[1] |= 3
    before, checksum = int.from_bytes(packet[:2], "big"), int.from_bytes(packet[10:12], "big")
    total = (~checksum & 0xFFFF) + (~before & 0xFFFF) + int.from_bytes(new[:2], "big")
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    new[10:12] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(new)
