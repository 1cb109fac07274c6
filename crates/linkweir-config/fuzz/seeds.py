# SPDX-License-Identifier: BSD-3-Clause
"""Writes inputs of the fuzzers into the folders `read`, `files`, `link`, `tunnel` and `recording`.

Of `read`: the files of python/tests/data/dialects, a line with their keys in front of each. Of `files`: a small file
for each reader, with its number and keys in front. Of `link`: packets for each link. Of `tunnel`: a
probe of a path, and packets with numbers. Of `recording`: blocks of each kind, without and with entries about paths.
"""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[3] / "python" / "tests" / "data" / "dialects"


def dialects() -> dict[str, bytes]:
    """Each file of the dialects, behind its keys."""
    cases = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    keys = {name: case.get("keys", "").strip().replace("\n", ";") for name, case in cases.items()}
    return {name: text.encode() + b"\n" + (FOLDER / name).read_bytes() for name, text in keys.items()}


def others() -> dict[str, bytes]:
    """A file for each other reader and dialect, behind the reader's number and keys."""
    tables = {
        "delays": ("0", "t_s,to_satellite_s,to_ground_s\n0,0.1,0.01\n2,0.2,0.03\n"),
        "fading": ("1", "t_s,gain_db\n0,-1.5\n1,-2.5\n2,-9.5\n"),
        "attenuations": ("2", "t_s,a\n0,1.5\n3,8.5\n"),
        "packets": ("3", "t_s,bytes\n0.5,100\n1,200\n"),
        "flows": ('3only = "x"', "t_s,bytes,flow\n0.5,100,x\n1,200,y\n"),
        "sizes": ("4", "bytes,cumulative\n1000,0.25\n9000,1\n"),
        "pauses": ("5", "s,cumulative\n0.5,0.25\n1.5,1\n"),
    }
    found = {}
    for name, (head, text) in tables.items():
        semicolons = text.replace(",", ";").replace(".", ",")
        separator = ", " if name in ("sizes", "pauses") else ";"  # keys of an inline table, or lines
        comma = f'{head}{separator}decimal = ","'
        found[name] = f"{head}\n{text}".encode()
        found[f"{name}-semicolons"] = f"{comma}\n{semicolons}".encode()
        found[f"{name}-tabs"] = f"{head}\n{text}".replace(",", "\t").encode()
        found[f"{name}-zipped"] = f"{head}\n".encode() + gzip.compress(text.encode("utf-16"), mtime=0)
    elements = (FOLDER.parents[3] / "crates/linkweir-sim/tests/ways/iridium.tle").read_bytes().splitlines(keepends=True)
    found["elements"] = b"6\n" + b"".join(elements[:40])
    found["elements-named"] = b'6routes = { every = "1s" }\n' + b"0 NAME\n".join(
        [b"", *map(b"".join, zip(elements[2:40:2], elements[3:40:2], strict=True))]
    )
    for name, content in captures().items():
        found[name] = b"3\n" + content
        found[f"{name}-frames"] = b'3lengths = "frame";mtu = "1400B"\n' + content
    return found


def captures() -> dict[str, bytes]:
    """Captures with a SYN, a super-packet of 4 kB and a datagram, as pcap and pcapng in both orders of bytes."""

    def ethernet(protocol: int, inner: bytes) -> bytes:
        address = bytes([10, 0, 0, 1, 10, 0, 0, 2])
        return bytes(12) + b"\x08\0" + struct.pack(">BBHHHBBH", 0x45, 0, 0, 0, 0, 64, protocol, 0) + address + inner

    ports = struct.pack(">HH", 1000, 443)
    syn = ethernet(6, ports + bytes(8) + bytes([0x60, 2, 0, 0, 0, 0, 0, 0]) + struct.pack(">BBH", 2, 4, 1360))
    data = ethernet(6, ports + bytes(8) + bytes([0x50, 16, 0, 0, 0, 0, 0, 0]))
    datagram = ethernet(17, ports + bytes(4))
    frames = [(syn, 58), (data, 4054), (datagram, 142)]
    found = {}
    for name, order in (("big", ">"), ("little", "<")):
        pcap = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        for second, (frame, length) in enumerate(frames):
            pcap += struct.pack(order + "IIII", second, 0, len(frame), length) + frame
        found[f"pcap-{name}"] = pcap

        def block(kind: int, body: bytes, order: str = order) -> bytes:
            body += bytes(-len(body) % 4)
            length = struct.pack(order + "I", len(body) + 12)
            return struct.pack(order + "I", kind) + length + body + length

        pcapng = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
        pcapng += block(1, struct.pack(order + "HHI", 1, 0, 65535))
        for second, (frame, length) in enumerate(frames):
            stamp = second * 1_000_000
            pcapng += block(
                6, struct.pack(order + "IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), length) + frame
            )
            pcapng += block(2, struct.pack(order + "HHIIII", 0, 0, 0, stamp, len(frame), length) + frame)
        found[f"pcapng-{name}"] = pcapng
    return found


def links() -> dict[str, bytes]:
    """For each link a burst, then packets of both classes that come faster than it can send."""
    burst = bytes([1, 0, 0, 250]) * 40
    steady = bytes(value for at in range(200) for value in (1 + 24 * (at % 2), 60, at % 2, 20 + at % 200))
    return {str(which): bytes([which]) + burst + bytes([0, 200, 0, 0]) + steady for which in range(10)}


def tunnels() -> dict[str, bytes]:
    """Packets of a tunnel: a probe of a path, and numbered packets in disorder."""
    address = bytes([0xFE, 0x80, *bytes(13)])
    header = bytes([0x60, 0, 0, 0, 0, 40, 253, 1]) + address + b"\1" + address + b"\2" + b"Lwfb"
    probe = header + bytes([5, 0, 0, 0]) + struct.pack(">QIIQQ", 7, 1, 0, 0x6C7465 << 40, 0)
    numbered = [
        struct.pack(">BBHII", 0x40, 1, 32, epoch, number) + bytes([0x45, *bytes(19)])
        for epoch, number in ((0, 0), (0, 2), (0, 1), (0, 1), (1, 0), (0, 4), (1, 3))
    ]
    packets = [numbered[0], numbered[1], probe, *numbered[2:], header]
    return {"some": b"".join(bytes([9, len(packet)]) + packet for packet in packets)}


def recordings() -> dict[str, bytes]:
    """Settings, a peer with two paths, counts with each kind of entry, and a gap; of both versions of the format."""

    def blocks(version: int, *bodies: bytes) -> bytes:
        return bytes([version]) + b"".join(len(body).to_bytes(2, "little") + body for body in bodies)

    settings = b'\1origin_unix_ns = 5\npackets = false\n[[class]]\nname = "a"\n[[class]]\nname = "b"\n'
    peer = b'\2\7name = "ship"\npaths = ["x", "y"]\n'
    capacity = bytes([2, 7, 100]) + b"\x80\x89\x7a"
    cell = bytes([1 | 4, 3 | 4 | 1 << 3, 5, 3, 9, 3, 4, 0x90, 3, 1, 100])
    packet = bytes([3 | 4 | 1 << 3, 50, 0xB9, 0x17])
    path = bytes([2 | 4 | 2 << 3, 100]) + b"\x80\x89\x7a\x80\x9b\xee\2"
    carried = bytes([1 | 4 | 1 << 3, 31 << 3 | 1, 3, 0x90, 3])
    gap = bytes([4, 20, 2])
    entries = capacity + cell + b"\0\1" + packet
    one = [settings, peer, b"\3\14" + entries, gap]
    two = [settings, peer, b"\3\14" + capacity + path + cell + carried + b"\0\1" + carried + path, gap]
    return {"one": blocks(0, *one), "two": blocks(1, *two), "twice": blocks(1, *two, *two)}


def main(out: Path) -> None:
    """Writes one input for each file."""
    found = {"read": dialects(), "files": others(), "link": links(), "tunnel": tunnels(), "recording": recordings()}
    for target, inputs in found.items():
        (out / target).mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (out / target / name).write_bytes(content)


main(Path(sys.argv[1]))
