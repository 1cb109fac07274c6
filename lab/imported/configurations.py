# SPDX-License-Identifier: BSD-3-Clause
"""Random configurations of tc, and a naive reading of them: which class each packet comes to.

The reading knows nothing of linkweir. It follows net/sched of Linux: filters by preference, masks of flower in the
order in which they came, keys of u32 one after the other, and what HTB, prio, ets, drr and pss do with packets that no
filter takes.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

DEVICE = "d0"
ADDRESSES = {
    4: ("10.1.2.3", "10.2.0.1", "192.0.2.1", "198.51.100.7"),
    6: ("fd00:1::1", "fd00:2::1", "2001:db8::1", "2001:db8:1::9"),
}
NETS = {
    4: ("10.0.0.0/8", "10.1.0.0/16", "192.0.2.1/32", "198.51.100.0/24", "0.0.0.0/0"),
    6: ("fd00::/8", "fd00:1::/32", "2001:db8::1/128", "2001:db8::/48", "::/0"),
}
PORTS = (22, 53, 80, 443, 5060, 5061, 16384, 16400, 40000)
PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "icmpv6": 58, "esp": 50}
POINTS = (0, 1, 8, 10, 12, 14, 16, 18, 24, 26, 32, 34, 40, 41, 44, 46, 47, 48, 56, 63)
_DEFAULT_PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)


@dataclass(frozen=True)
class Packet:
    """A packet that is sent to the device, as a router would."""

    version: int
    tos: int
    protocol: int
    source_port: int
    destination_port: int
    source: str
    destination: str

    @property
    def priority(self) -> int:
        """skb->priority of a forwarded packet: ip_forward reads it off the TOS, ip6_forward leaves it."""
        return (0, 2, 6, 4)[self.tos >> 3 & 3] if self.version == 4 else 0

    @property
    def ports(self) -> tuple[int, int] | None:
        """Its ports, if the protocol has some."""
        return (self.source_port, self.destination_port) if self.protocol in (6, 17, 132) else None

    def frame(self) -> bytes:
        """The packet as an Ethernet frame."""
        if self.ports is None:
            above = bytes(20)
        else:
            above = b"".join(port.to_bytes(2, "big") for port in self.ports) + bytes(8) + b"\x50\x10" + bytes(6)
        ends = ipaddress.ip_address(self.source).packed + ipaddress.ip_address(self.destination).packed
        if self.version == 4:
            head = (
                bytes((0x45, self.tos))
                + (20 + len(above)).to_bytes(2, "big")
                + bytes(4)
                + bytes((64, self.protocol, 0, 0))
            )
            kind = b"\x08\x00"
        else:
            head = (
                (6 << 28 | self.tos << 20).to_bytes(4, "big")
                + len(above).to_bytes(2, "big")
                + bytes((self.protocol, 64))
            )
            kind = b"\x86\xdd"
        return b"\x02\0\0\0\0\2\x02\0\0\0\0\1" + kind + head + ends + above


@dataclass
class Filter:
    """A filter, and what it compares.

    Attributes:
        mask: what must be the same of filters of one preference of flower that are looked up together.
        checks: of a packet, by name; all must hold.
        tos: value and mask of the byte with code point and ECN bits.
        bare: whether it compares ports without a protocol.
        drops: has an action that drops.
        never: takes none of the packets that are sent, which have no mark and came from no device.
        index: number among the filters of its preference.
    """

    parent: str
    pref: int
    protocol: str
    kind: str
    words: str
    target: str
    mask: str = ""
    checks: dict[str, Callable[[Packet], bool]] = field(default_factory=dict)
    tos: tuple[int, int] | None = None
    bare: bool = False
    drops: bool = False
    never: bool = False
    index: int = 0

    def line(self) -> str:
        """The command of tc."""
        end = f" classid {self.target}" + (" action drop" if self.drops else "")
        words = self.words if self.kind != "fw" else ""
        handle = f"{self.words} " if self.kind == "fw" else ""
        return (
            f"filter add dev {DEVICE} parent {self.parent} protocol {self.protocol} pref {self.pref} "
            f"{handle}{self.kind} {words}{end}"
        )

    def takes(self, packet: Packet, changes: frozenset[str] = frozenset()) -> bool:
        """Whether it matches; `changes` are what an import said it left out of it: `ecn`, `ports`."""
        if self.never or self.protocol not in ("all", "ip" if packet.version == 4 else "ipv6"):
            return False
        if "ports" in changes and packet.ports is None:
            return False
        if self.tos is not None:
            value, mask = self.tos
            mask &= 0xFC if "ecn" in changes else 0xFF
            if (packet.tos ^ value) & mask:
                return False
        return all(check(packet) for check in self.checks.values())


@dataclass
class Node:
    """A queueing discipline: at a class, with bands or classes of its own."""

    kind: str
    handle: str
    at: str
    words: str = ""
    classes: list[tuple[str, str]] = field(default_factory=list)
    bands: int = 0
    priomap: tuple[int, ...] = ()
    default: int = 0
    points: dict[int, int] = field(default_factory=dict)


@dataclass
class Configuration:
    """Queueing disciplines, the root first, and filters."""

    shape: str
    nodes: list[Node]
    filters: list[Filter]
    stab: str = ""

    def lines(self) -> list[str]:
        """Commands of tc."""
        found = []
        for node in self.nodes:
            where = "root" if node.at == "root" else f"parent {node.at}"
            size = self.stab if node.at == "root" else ""
            found.append(f"qdisc add dev {DEVICE} {where} handle {node.handle} {size}{node.kind} {node.words}".rstrip())
            for handle, words in node.classes:
                parent, _, rest = words.partition(" ")
                found.append(f"class add dev {DEVICE} parent {parent} classid {handle} {node.kind} {rest}")
        return found + [one.line() for one in self.filters]

    def shows(self) -> list[str]:
        """Commands that show it, as docs/howto/deploy.md has them."""
        found = [f"-d -j qdisc show dev {DEVICE}", f"-d class show dev {DEVICE}", f"-j filter show dev {DEVICE}"]
        nested = [
            node.handle
            for node in self.nodes
            if node.at != "root" and node.kind in ("prio", "ets", "drr", "pss", "fq_codel")
        ]
        return found + [f"-j filter show dev {DEVICE} parent {handle}" for handle in nested]

    def tried(self, parent: str) -> Iterator[Filter]:
        """Filters of a parent in the kernel's order."""
        own = [one for one in self.filters if one.parent == parent]
        for pref in sorted({one.pref for one in own}):
            group = [one for one in own if one.pref == pref]
            masks = list(dict.fromkeys(one.mask for one in group))
            yield from sorted(group, key=lambda one: (masks.index(one.mask), one.index))

    def place(
        self,
        packet: Packet,
        removed: frozenset[int] = frozenset(),
        changes: dict[int, frozenset[str]] | None = None,
        main: str | None = None,
    ) -> str:
        """The class at whose end a packet waits; `direct` if it passes HTB, `dropped` if it is dropped.

        Args:
            removed: numbers of filters that do not count.
            changes: what else does not count, by number of filter.
            main: the class of HTB to which packets without a filter come, if an import chose another.
        """
        node, place = self.nodes[0], ""
        while True:
            taken = None
            for one in self.tried(node.handle):
                number = self.filters.index(one)
                if number not in removed and one.takes(packet, (changes or {}).get(number, frozenset())):
                    taken = one
                    break
            if taken is not None and taken.drops:
                return "dropped"
            place = self._chosen(node, taken.target if taken else None, packet, main)
            below = next((one for one in self.nodes if one.at == place), None)
            if below is None or below.kind not in ("htb", "prio", "ets", "drr", "pss"):
                return place
            node = below

    @staticmethod
    def _chosen(node: Node, target: str | None, packet: Packet, main: str | None) -> str:
        minor = int(target.partition(":")[2], 16) if target else 0
        handles = [handle for handle, _ in node.classes]
        if node.kind == "htb":
            inner = {words.split()[0] for _, words in node.classes}
            if target in handles and target not in inner:
                return str(target)
            usual = main or f"{node.handle}{node.default:x}"
            return usual if usual in handles and usual not in inner else "direct"
        if node.kind == "drr":
            return str(target) if target in handles else "dropped"
        if node.kind == "pss":
            if 1 <= minor <= node.bands:
                return f"{node.handle}{minor:x}"
            return f"{node.handle}{node.points.get(packet.tos >> 2, node.default):x}"
        if target and not 1 <= minor <= node.bands:
            return f"{node.handle}{node.priomap[0] + 1:x}"
        return f"{node.handle}{minor if target else node.priomap[packet.priority] + 1:x}"


def probes(draw: random.Random, number: int) -> list[Packet]:
    """Packets with all code points that filters name, and others."""
    found = []
    for at in range(number):
        version = draw.choice((4, 6))
        point = POINTS[at % len(POINTS)] if at < 2 * len(POINTS) else draw.randrange(64)
        protocol = draw.choice((6, 17, 17, 132, 1 if version == 4 else 58, 50))
        ends = draw.choice(ADDRESSES[version]), draw.choice(ADDRESSES[version])
        tos = point << 2 | draw.choice((0, 0, 1, 2))
        found.append(Packet(version, tos, protocol, draw.choice(PORTS), draw.choice(PORTS), *ends))
    return found


# --- Filters ----------------------------------------------------------------------------------------------------------


def _tos(draw: random.Random) -> tuple[int, int]:
    mask = draw.choice((0xFC, 0xFC, 0xFC, 0xE0, 0xFF, 0xFF, 0x1C, 0x03))
    return draw.choice(POINTS) << 2 & mask, mask


def _net(draw: random.Random, version: int) -> str:
    return draw.choice(NETS[version])


def _in_net(net: str, end: str) -> Callable[[Packet], bool]:
    wanted = ipaddress.ip_network(net)
    return lambda packet: ipaddress.ip_address(getattr(packet, end)) in wanted


def _flower(draw: random.Random, one: Filter, odd: bool) -> None:
    words, masks = [], []
    version = 4 if one.protocol == "ip" else 6
    if draw.random() < 0.6:
        one.tos = value, mask = _tos(draw)
        words.append(f"ip_tos {value:#x}" + ("" if mask == 0xFF else f"/{mask:#x}"))
        masks.append(f"tos{mask}")
    ported = draw.random() < 0.5
    if ported or draw.random() < 0.2:
        names = ("tcp", "udp", "sctp") if ported else ("tcp", "udp", "icmp" if version == 4 else "icmpv6", "esp")
        name = draw.choice(names)
        number = PROTOCOLS[name]
        words.append(f"ip_proto {name if name != 'esp' else '0x32'}")
        masks.append("proto")
        one.checks["protocol"] = lambda packet: packet.protocol == number
    for end, key in (("src", 0), ("dst", 1)):
        if ported and draw.random() < 0.5:
            first = draw.choice(PORTS)
            last = first + draw.choice((0, 0, 1, 20, 1000))
            words.append(f"{end}_port {first}" + ("" if first == last else f"-{last}"))
            masks.append(f"{end}port{'range' if first != last else ''}")
            one.checks[f"{end}_port"] = lambda packet, key=key, first=first, last=last: (
                packet.ports is not None and first <= packet.ports[key] <= last
            )
        if draw.random() < 0.15:
            # with an empty mask flower matches nothing, and tc does not show the key
            net = draw.choice(NETS[version][:-1])
            words.append(f"{end}_ip {net}")
            masks.append(f"{end}ip{net.partition('/')[2]}")
            one.checks[f"{end}_ip"] = _in_net(net, "source" if end == "src" else "destination")
    if odd:
        what = draw.choice(("ip_ttl", "indev", "mac", "tcp_flags"))
        if what == "ip_ttl":
            words.append("ip_ttl 64")
            masks.append("ttl")
        elif what == "indev":
            words.append(f"indev {DEVICE}")
            one.never = True
        elif what == "mac":
            words.append("dst_mac 02:00:00:00:00:02")
            masks.append("mac")
        else:
            words = ["ip_proto tcp", "tcp_flags 0x10/0x12"]
            masks, one.tos = ["proto", "flags"], None
            one.checks = {"protocol": lambda packet: packet.protocol == 6}
    one.words, one.mask = " ".join(words), "+".join(masks)


def _bytes_after(packet: Packet, at: int) -> int:
    head = 34 if packet.version == 4 else 54
    return int.from_bytes(packet.frame()[head + at : head + at + 2], "big")


def _u32(draw: random.Random, one: Filter, odd: bool, extras: bool) -> None:
    family, version = ("ip", 4) if one.protocol == "ip" else ("ip6", 6)
    words = []
    if draw.random() < 0.6:
        one.tos = value, mask = _tos(draw)
        words.append(f"match {family} {'dsfield' if version == 4 else 'priority'} {value:#x} {mask:#x}")
    protocol = draw.choice((6, 17)) if draw.random() < 0.4 else None
    if protocol:
        words.append(f"match {family} protocol {protocol} 0xff")
        one.checks["protocol"] = lambda packet: packet.protocol == protocol
    for key, name in enumerate(("sport", "dport")):
        if draw.random() < 0.35:
            mask = draw.choice((0xFFFF, 0xFFFF, 0xFFF0))
            value = draw.choice(PORTS) & mask
            words.append(f"match {family} {name} {value} {mask:#x}")
            one.bare = protocol is None
            one.checks[name] = lambda packet, key=key, value=value, mask=mask: (
                _bytes_after(packet, 2 * key) & mask == value
            )
    for name, end in (("src", "source"), ("dst", "destination")):
        if draw.random() < 0.15:
            net = _net(draw, version)
            words.append(f"match {family} {name} {net}")
            one.checks[name] = _in_net(net, end)
    # A kernel without CONFIG_CLS_U32_MARK takes the filter without a word, and the mark does not count.
    if odd and draw.random() < 0.5 and extras:
        words.append("match mark 5 0xff")
        one.never = True
    elif odd:
        words.append("match u8 64 0xff at " + ("8" if version == 4 else "7"))
    one.words = " ".join(words) or "match u32 0 0"


def filters(draw: random.Random, parent: str, targets: list[str], extras: bool) -> list[Filter]:
    """Random filters of a parent, some of which no rule can be."""
    found: list[Filter] = []
    pref = 0
    for _ in range(draw.choice((0, 1, 2, 3, 4, 6, 8))):
        pref += draw.choice((1, 1, 2, 5))
        kind = draw.choice(
            ("flower", "flower", "flower", "u32", "u32", "matchall", "basic", *(("fw",) if extras else ()))
        )
        protocol = draw.choice(("ip", "ip", "ipv6"))
        if kind in ("matchall", "basic"):
            protocol = draw.choice(("ip", "ipv6", "ip", "ipv6", "all"))
            if draw.random() < 0.5:
                continue
        for at in range(draw.choice((1, 1, 1, 2, 3)) if kind in ("flower", "u32") else 1):
            odd = draw.random() < 0.12
            one = Filter(parent, pref, protocol, kind, "", draw.choice(targets), index=at)
            if kind == "flower":
                _flower(draw, one, odd)
                one.drops = draw.random() < 0.05
            elif kind == "u32":
                _u32(draw, one, odd, extras)
            elif kind == "fw":
                one.words, one.never = f"handle {draw.randint(1, 9)}", True
            if kind == "flower" and any(
                other.pref == pref and other.mask == one.mask and other.words == one.words for other in found
            ):
                continue
            one.index = sum(other.pref == pref for other in found)
            found.append(one)
            if kind == "flower" and draw.random() < 0.3 and protocol == "ip" and not one.checks and one.tos:
                pref += 1  # the same for the other version
                twin = Filter(parent, pref, "ipv6", kind, one.words, one.target, one.mask, {}, one.tos)
                twin.drops, twin.never = one.drops, one.never
                found.append(twin)
                break
    if draw.random() < 0.6:
        found.append(Filter(parent, pref + 1, "all", "matchall", "", draw.choice(targets)))
    return found


# --- Queueing disciplines ---------------------------------------------------------------------------------------------


def _priomap(draw: random.Random, bands: int) -> tuple[int, ...]:
    if draw.random() < 0.5:
        return (draw.randrange(bands),) * 16
    if bands >= 3 and draw.random() < 0.5:
        return _DEFAULT_PRIOMAP
    return tuple(draw.randrange(bands) for _ in range(16))


def _leaf(draw: random.Random, place: str, number: int, extras: bool) -> list[Node]:
    kinds = [("pfifo", "limit 100"), ("pfifo", "limit 100"), ("fq_codel", ""), ("bfifo", "limit 90000")]
    # No netem: Linux 6.12 ends the list of classes at that of a netem without a queueing discipline below it.
    if extras:
        kinds += [("sfq", ""), ("red", "limit 60000 avpkt 1000 bandwidth 10mbit"), ("codel", "")]
    if draw.random() < 0.2:
        return []
    kind, words = draw.choice(kinds)
    return [Node(kind, f"{number:x}:", place, words)]


def _policy(draw: random.Random, at: str, extras: bool) -> tuple[list[Node], list[Filter]]:
    kind = draw.choice(("prio", "prio", "ets", "drr", "pss"))
    if kind == "pss":
        classes = draw.randint(2, 4)
        points = {draw.choice(POINTS): draw.randint(1, classes) for _ in range(draw.randint(0, 4))}
        shown = ",".join(f"{point}={number}" for point, number in points.items())
        default = draw.randint(1, classes)
        words = f"classes {classes} link 8mbit " + (f"dscp {shown} " if points else "") + f"default {default}"
        node = Node("pss", "10:", at, words, bands=classes, default=default, points=points)
        return [node], filters(draw, "10:", [f"10:{n:x}" for n in range(1, classes + 1)], extras)
    if kind == "drr":
        nodes = _drr(draw, "10:", at)
        own = [handle for handle, _ in nodes[0].classes]
        below = [leaf for n, handle in enumerate(own) for leaf in _leaf(draw, handle, 0x100 + n, extras)]
        return nodes + below, filters(draw, "10:", own, extras)
    bands = draw.randint(2, 5)
    node = Node(kind, "10:", at, bands=bands, priomap=_priomap(draw, bands))
    shown = " ".join(map(str, node.priomap))
    strict = bands
    if kind == "ets":
        strict = draw.randint(0, bands - 1)
        quanta = " ".join(str(draw.choice((1514, 3000))) for _ in range(bands - strict))
        node.words = f"bands {bands} strict {strict} quanta {quanta} priomap {shown}"
    else:
        node.words = f"bands {bands} priomap {shown}"
    nodes, found = [node], []
    targets = [f"10:{n:x}" for n in range(1, bands + 1)]
    for band in range(1, bands + 1):
        if band <= strict and draw.random() < 0.3:
            handle = f"{0x20 + band:x}:"
            drr = _drr(draw, handle, f"10:{band:x}")[0]
            nodes.append(drr)
            own = [one for one, _ in drr.classes]
            found += filters(draw, handle, own, extras)
            for n, one in enumerate(own):
                nodes += _leaf(draw, one, 0x200 + 16 * band + n, extras)
        else:
            nodes += _leaf(draw, f"10:{band:x}", 0x100 + band, extras)
    if draw.random() < 0.1:
        targets.append(draw.choice(("10:9", "7:1")))
    return nodes, found + filters(draw, "10:", targets, extras)


def _drr(draw: random.Random, handle: str, at: str) -> list[Node]:
    classes = [
        (f"{handle}{n:x}", f"{handle} quantum {draw.choice((1500, 3000))}") for n in range(1, draw.randint(2, 4))
    ]
    return [Node("drr", handle, at, "", classes)]


def configuration(seed: int, extras: bool) -> Configuration:
    """One of them.

    Args:
        seed: of what is drawn.
        extras: with classifiers and queueing disciplines that the laboratory's usual kernel lacks: fw, sfq, red, codel.
    """
    draw = random.Random(seed)
    shape = draw.choices(("usual", "inner", "second", "leaf", "sqm", "cake", "mq"), (60, 10, 14, 8, 3, 3, 2))[0]
    if shape == "cake":
        words = draw.choice(("besteffort overhead 18 mpu 64", "diffserv4 atm overhead 40", "besteffort raw flows"))
        return Configuration(shape, [Node("cake", "1:", "root", f"bandwidth 20mbit {words}")], [])
    if shape == "mq":
        # the device has one queue
        return Configuration(shape, [Node(draw.choice(("fq_codel", "fq", "prio")), "1:", "root")], [])
    top = (
        "1:1",
        f"1: rate {draw.choice((8, 20))}mbit ceil 20mbit"
        + draw.choice(("", " overhead 10", " linklayer atm overhead 9")),
    )
    stab = draw.choice(
        (
            "",
            "stab overhead 24 linklayer ethernet ",
            "stab mpu 64 overhead 0 linklayer ethernet ",
            "stab overhead 8 linklayer atm ",
        )
    )
    root = Node("htb", "1:", "root", "", [top], default=1)
    found: list[Filter] = []
    at = "1:1"
    if shape in ("inner", "sqm"):
        root.classes.append(("1:10", "1:1 rate 2mbit ceil 7mbit prio 1"))
        root.default, at = 0x10, "1:10"
    if shape == "sqm":
        root.classes.append(("1:11", "1:1 rate 1mbit ceil 8mbit prio 2"))
    if shape == "second":
        root.classes.append(("1:2", "1: rate 1mbit ceil 1mbit"))
        root.default = draw.choice((0, 1, 1, 2))
        found = filters(draw, "1:", ["1:1", "1:2"], extras)
    if shape == "leaf":
        kind = draw.choice((("pfifo", "limit 100"), ("fq_codel", "limit 1000 target 5ms"), ("bfifo", "limit 90000")))
        nodes, more = [Node(kind[0], "10:", at, kind[1])], []
    elif shape == "sqm":
        nodes, more = [Node("fq_codel", "10:", "1:10"), Node("fq_codel", "11:", "1:11")], []
    else:
        nodes, more = _policy(draw, at, extras)
    root.words = f"default {root.default:x}"
    return Configuration(shape, [root, *nodes], found + more, stab)
