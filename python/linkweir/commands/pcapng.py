# SPDX-License-Identifier: BSD-3-Clause
"""The log of packets as a pcapng file, which Wireshark reads.

Simulated packets have no bytes, so headers are made up: IPv4 with UDP, or with TCP. Only the headers are in the file;
the length is the packet's. A flow has an address, and each connection of it a port. A place of the simulation is an
interface: the queue (``enqueued``), the link (``sent``), the receiver (``delivered``), and ``dropped``. Every packet
has a comment with its flow and number, and the reason of a drop. Times have nanoseconds, from 0.

The format is that of the IETF's draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

INTERFACES = ("enqueued", "sent", "delivered", "dropped")
"""Events that are written, each as an interface; `created` is left out, as its rows are not in order of time."""
DSCP = {
    "ef": 46,
    "voice-admit": 44,
    "le": 1,
    **{f"cs{i}": 8 * i for i in range(8)},
    **{f"af{i}{j}": 8 * i + 2 * j for i in (1, 2, 3, 4) for j in (1, 2, 3)},
}
"""DSCPs of classes with the name of one; others get their place in the scenario."""
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_RAW_IP = 101
_COMMENT, _NAME, _RESOLUTION = 1, 2, 9
_IP_BYTES, _UDP_BYTES, _TCP_BYTES = 20, 8, 20
_UDP, _TCP = 17, 6
_SYN, _ACK = 0x02, 0x10
_MOST_IP_BYTES = 65_535
_TO = 198 << 24 | 18 << 16 | 1
"""198.18.0.1, of the addresses for benchmarks (RFC 2544)."""


@dataclass(frozen=True)
class Stream:
    """The headers of a flow.

    Attributes:
        address: number of the flow, which becomes 10.x.y.z.
        dscp: the class.
        mss_bytes: of TCP the payload of a whole segment; 0 for UDP.
        header_bytes: of TCP what a segment has besides its payload.
        bare_bytes: length of the acknowledgement of a SYN's answer, which has the SYN's number; 0: there is none.
        short: of TCP the segments of each connection whose payload is shorter, with what all up to them lack.
    """

    address: int
    dscp: int
    mss_bytes: int
    header_bytes: int = 0
    bare_bytes: int = 0
    short: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def sequence(self, connection: int, number: int, size_bytes: int) -> int:
        """The TCP sequence number of a segment, from 0. The SYN, which has number 0, counts as one byte.

        Shorter segments of a connection must come in order when they come first.
        """
        if number == 0:
            return 1 if size_bytes == self.bare_bytes else 0
        short = self.short.setdefault(connection, [])
        at = bisect.bisect_left(short, (number, 0))
        lacking = short[at - 1][1] if at else 0
        payload = size_bytes - self.header_bytes
        if 0 < payload < self.mss_bytes and at == len(short):
            short.append((number, lacking + self.mss_bytes - payload))
        return 1 + (number - 1) * self.mss_bytes - lacking & 0xFFFF_FFFF

    def headers(self, connection: int, number: int, size_bytes: int) -> bytes:
        """The headers of a packet with this number and length."""
        total = min(max(size_bytes, _IP_BYTES + (_TCP_BYTES if self.mss_bytes else _UDP_BYTES)), _MOST_IP_BYTES)
        if self.mss_bytes:
            sequence = self.sequence(connection, number, size_bytes)
            flags = _ACK if sequence else _SYN
            inner = struct.pack(">HHIIBBHHH", self._port(connection), 443, sequence, 0, 5 << 4, flags, 0xFFFF, 0, 0)
        else:
            inner = struct.pack(">HHHH", self._port(connection), 5004, total - _IP_BYTES, 0)
        return self._ip(number, total, _TCP if self.mss_bytes else _UDP) + inner

    def _port(self, connection: int) -> int:
        return 49_152 + (self.address + max(connection - 1, 0)) % 16_384

    def _ip(self, number: int, total: int, protocol: int) -> bytes:
        words = (
            0x4500 | self.dscp << 2,
            total,
            number & 0xFFFF,
            0x4000,
            64 << 8 | protocol,
            0,
            10 << 8 | self.address >> 16 & 0xFF,
            self.address & 0xFFFF,
            _TO >> 16,
            _TO & 0xFFFF,
        )
        return struct.pack(">10H", *words[:5], _checksum(words), *words[6:])


def _checksum(words: Sequence[int]) -> int:
    """That of the Internet, RFC 1071."""
    total = sum(words)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def streams(
    flows: Sequence[Mapping[str, Any]], classes: Sequence[str], segments: Mapping[str, tuple[int, int, int]]
) -> dict[str, Stream]:
    """Headers for the flows of a run.

    Args:
        flows: rows of the table `flows`.
        classes: all classes.
        segments: of the flows over TCP, by name, `mss_bytes`, `header_bytes` and `bare_bytes`.
    """
    dscps = {name: DSCP.get(name.lower(), place % 64) for place, name in enumerate(classes)}
    return {
        flow["flow"]: Stream(address + 1, dscps[flow["class"]], *segments.get(flow["flow"], (0, 0, 0)))
        for address, flow in enumerate(flows)
    }


def write(file: IO[bytes], rows: Iterable[Mapping[str, Any]], streams: Mapping[str, Stream]) -> int:
    """Writes the rows of a log.

    Args:
        file: where to.
        rows: rows of the table `packets`, in order.
        streams: the headers, by flow.

    Returns:
        Packets written.
    """
    file.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _options((4, b"linkweir"))))
    for name in INTERFACES:
        options = _options((_NAME, name.encode()), (_RESOLUTION, b"\x09"))
        file.write(_block(_INTERFACE, struct.pack("<HHI", _RAW_IP, 0, 0) + options))
    places = {name: place for place, name in enumerate(INTERFACES)}
    count = 0
    for row in rows:
        place = places.get(row["event"])
        if place is None:
            continue
        connection = row.get("connection", 0)
        headers = streams[row["flow"]].headers(connection, row["number"], row["size_bytes"])
        length = max(row["size_bytes"], len(headers))
        comment = f"{row['flow']}{f' connection {connection}:' if connection else ''} {row['number']}"
        if row["retransmission"]:
            comment += ", sent before"
        if row["reason"]:
            comment += f", dropped: {row['reason']}"
        t_ns = row["t_ns"]
        fixed = struct.pack("<IIIII", place, t_ns >> 32, t_ns & 0xFFFF_FFFF, len(headers), length)
        file.write(_block(_PACKET, fixed + _padded(headers) + _options((_COMMENT, comment.encode()))))
        count += 1
    return count


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _options(*options: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options) + bytes(4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length
