# SPDX-License-Identifier: BSD-3-Clause
"""A naive model of ways over a constellation: which links there are at an instant, how long each is, and which way is
best.

It is written from Walker (1984, "Satellite constellations"), spherical geometry and Dijkstra (1959). Satellites move on
circles around a point mass, the earth is a sphere that turns. Positions are turned by matrices, an elevation is an
angle between two directions, and two satellites see each other if no point of the line between them is in the earth.
`python oracle/ways.py` writes the vectors in crates/linkweir-sim/tests/ways.

Satellites may be listed in a file of two-line elements instead. The package `sgp4`, which has the program of Vallado
and others (2006), then says where they are; sidereal time is that of Meeus (1998), and places are on the ellipsoid of
WGS 84. The lists are of patterns, in an order drawn from a seed, and each satellite keeps links to those that are its
neighbours in the pattern.

    shell PATTERN PLANES PER_PLANE PHASING ALTITUDE_KM INCLINATION_DEG MASK_DEG NEIGHBOURS METRIC
    station NAME LATITUDE LONGITUDE
    at NS way FROM TO none
    at NS way FROM TO MM NODE...      the nodes of the best way, and its length in mm

Files NAME.listed have a line `list MASK_DEG NEIGHBOURS METRIC` in place of the shell's; the elements are in NAME.tle.
"""

import heapq
import itertools
import math
import random
import sys
from pathlib import Path

import lists

EARTH_M = 6_371_000.0
GRAVITY_M3_S2 = 3.986004418e14
TURN_RAD_S = 7.2921159e-5
LONG_M, FLAT = 6_378_137.0, 1 / 298.257223563
"""Of the ellipsoid."""
NOON_OF_2000 = 2451545.0
DAY_OF_2000 = 2451544.5
FOLDER = Path(__file__).resolve().parent.parent / "crates" / "linkweir-sim" / "tests" / "ways"


def product(matrix, vector):
    """A matrix times a vector."""
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def about_x(angle):
    """Turns around the x axis, which leads to the ascending node."""
    return [[1, 0, 0], [0, math.cos(angle), -math.sin(angle)], [0, math.sin(angle), math.cos(angle)]]


def about_z(angle):
    """Turns around the axis of the earth."""
    return [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]]


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


class Shell:
    """Satellites and stations."""

    def __init__(self, pattern, planes, per_plane, phasing, altitude_m, inclination, mask, neighbours, stations):
        """Angles are in degrees; `stations` are latitudes and longitudes by name."""
        self.pattern, self.planes, self.per_plane, self.phasing = pattern, planes, per_plane, phasing
        self.radius, self.tilt, self.mask = EARTH_M + altitude_m, math.radians(inclination), mask
        self.neighbours, self.stations = neighbours, stations

    def satellite(self, number, t):
        """Where a satellite is at a time in s."""
        plane, slot = divmod(number, self.per_plane)
        spread = 360 if self.pattern == "delta" else 180
        node = math.radians(spread * plane / self.planes)
        ahead = 360 * slot / self.per_plane + 360 * self.phasing * plane / (self.planes * self.per_plane)
        angle = math.radians(ahead) + t * math.sqrt(GRAVITY_M3_S2 / self.radius**3)
        in_plane = product(about_z(angle), [self.radius, 0, 0])
        return product(about_z(node), product(about_x(self.tilt), in_plane))

    def station(self, name, t):
        """Where a station is, in the same axes: at time 0 Greenwich is on the x axis."""
        latitude, longitude = (math.radians(angle) for angle in self.stations[name])
        level = EARTH_M * math.cos(latitude)
        place = [level * math.cos(longitude), level * math.sin(longitude), EARTH_M * math.sin(latitude)]
        return product(about_z(TURN_RAD_S * t), place)

    def kept(self):
        """The pairs of satellites that keep a link if they see each other."""
        pairs = set()
        for plane, slot in itertools.product(range(self.planes), range(self.per_plane)):
            number = plane * self.per_plane + slot
            others = [plane * self.per_plane + (slot + 1) % self.per_plane]
            if self.neighbours == 4 and self.planes > 1:
                if plane + 1 < self.planes:
                    others.append(number + self.per_plane)
                elif self.pattern == "delta":  # once round the earth, the planes are ahead by `phasing` places
                    others.append((slot + self.phasing) % self.per_plane)
            pairs |= {frozenset((number, other)) for other in others if other != number}
        return [tuple(pair) for pair in pairs]

    def links(self, t):
        """The links that there are at a time: a length in m for each pair of names."""
        satellites = {f"s{number}": self.satellite(number, t) for number in range(self.planes * self.per_plane)}
        found = {}
        for a, b in self.kept():
            a, b = f"s{a}", f"s{b}"
            if clear(satellites[a], satellites[b]):
                found[a, b] = math.dist(satellites[a], satellites[b])
        for name in self.stations:
            here = self.station(name, t)
            for other, there in satellites.items():
                if elevation(here, there) >= self.mask:
                    found[name, other] = math.dist(here, there)
        return found


class Listed(Shell):
    """Satellites of a list, made of a pattern; they are numbered in the order of the list."""

    def __init__(self, shell, stations, draw, first=10_000):
        """The satellites have numbers from `first` on in the catalogue."""
        pattern, planes, per_plane, phasing, altitude_km, inclination, mask, neighbours, _ = shell
        super().__init__(
            pattern, planes, per_plane, phasing, altitude_km * 1e3, inclination, mask, neighbours, stations
        )
        self.first = first
        self.order = list(range(planes * per_plane))
        draw.shuffle(self.order)
        self.elements = [self.two_lines(number, draw) for number in self.order]
        self.begin = max(epoch(first) for first, _ in self.elements)
        from sgp4.api import WGS72, Satrec

        self.orbits = [Satrec.twoline2rv(first, second, WGS72) for first, second in self.elements]

    def two_lines(self, number, draw):
        """Elements of a satellite of the pattern, a little aside of its place, with an epoch within an hour."""
        plane, slot = divmod(number, self.per_plane)
        spread = 360 if self.pattern == "delta" else 180
        minutes = round(draw.uniform(0, 60), 2)
        a_day = 86_400 / (math.tau * math.sqrt(self.radius**3 / GRAVITY_M3_S2))
        # The plane turns by less than 0.3 degrees in an hour.
        node = (spread * plane / self.planes + draw.uniform(-0.1, 0.1)) % 360
        ahead = 360 * slot / self.per_plane + 360 * self.phasing * plane / (self.planes * self.per_plane)
        along = ahead + 360 * a_day * minutes / 1440 + draw.uniform(-0.3, 0.3)
        perigee = draw.uniform(0, 360)
        anomaly = (along - perigee) % 360
        digits = f"{draw.randrange(1_000, 20_000):07d}"
        day, drag = round(minutes / 1440 * 1e8), draw.randrange(10_000, 99_999)
        first = f"1 {self.first + number}U 20001A   26333.{day:08d}  .00000100  00000-0  {drag}-4 0  999"
        tilt = self.tilt * 360 / math.tau + draw.uniform(-0.02, 0.02)
        second = (
            f"2 {self.first + number} {tilt:8.4f} {node:8.4f} {digits} {perigee:8.4f} {anomaly:8.4f} {a_day:11.8f}    1"
        )
        return with_sum(first), with_sum(second)

    def satellite(self, number, t):
        orbit = self.orbits[number]
        days = t / 86_400 + self.begin
        wrong, place, _ = orbit.sgp4(DAY_OF_2000, days - DAY_OF_2000)
        assert wrong == 0
        return [1e3 * km for km in place]

    def station(self, name, t):
        latitude, longitude = (math.radians(angle) for angle in self.stations[name])
        short = LONG_M * (1 - FLAT)
        # Of the ellipse of a meridian, the point whose normal has this latitude.
        scale = math.hypot(LONG_M * math.cos(latitude), short * math.sin(latitude))
        level, high = LONG_M**2 * math.cos(latitude) / scale, short**2 * math.sin(latitude) / scale
        return self.turned([level * math.cos(longitude), level * math.sin(longitude), high], t)

    def up(self, name, t):
        """Away from the ground at a station."""
        latitude, longitude = (math.radians(angle) for angle in self.stations[name])
        level = math.cos(latitude)
        return self.turned([level * math.cos(longitude), level * math.sin(longitude), math.sin(latitude)], t)

    def turned(self, point, t):
        """A point that the earth carries along."""
        days = self.begin + t / 86_400 - NOON_OF_2000
        degrees = 280.46061837 + 360.98564736629 * days + 0.000387933 * (days / 36_525) ** 2
        return product(about_z(math.radians(degrees % 360)), point)

    def links(self, t):
        place = {number: at for at, number in enumerate(self.order)}
        satellites = [self.satellite(number, t) for number in range(len(self.order))]
        found = {}
        for a, b in self.kept():
            a, b = place[a], place[b]
            if clear(satellites[a], satellites[b]):
                found[f"s{a}", f"s{b}"] = math.dist(satellites[a], satellites[b])
        for name in self.stations:
            here, up = self.station(name, t), self.up(name, t)
            for other, there in enumerate(satellites):
                to = minus(there, here)
                if 90 - math.degrees(math.acos(dot(up, to) / math.sqrt(dot(to, to)))) >= self.mask:
                    found[name, f"s{other}"] = math.dist(here, there)
        return found


class Together:
    """Several shells in one list, the satellites of each behind those of the one before; no links join two shells."""

    def __init__(self, shells, stations, draw):
        self.parts = [Listed(shell, stations, draw, 10_000 * (1 + at)) for at, shell in enumerate(shells)]
        self.elements = [two for part in self.parts for two in part.elements]
        for part in self.parts:
            part.begin = max(epoch(first) for first, _ in self.elements)

    def links(self, t):
        found, before = {}, 0
        for part in self.parts:
            for ends, length in part.links(t).items():
                found[tuple(f"s{int(end[1:]) + before}" if end[1:].isdigit() else end for end in ends)] = length
            before += len(part.order)
        return found


def epoch(first):
    """The epoch of elements of 2026, as a Julian day."""
    return 2461041.5 - 1 + float(first[20:32])


def with_sum(line):
    """A line of elements with its last digit: the sum of all others, a minus counts as 1."""
    line = line.ljust(68)
    assert len(line) == 68, line
    return line + str(sum(int(c) if c.isdigit() else c == "-" for c in line) % 10)


def clear(a, b):
    """Whether the line from one point to another stays above the ground."""
    along = minus(b, a)
    nearest = min(max(-dot(a, along) / dot(along, along), 0), 1)
    point = [x + nearest * d for x, d in zip(a, along, strict=True)]
    return math.sqrt(dot(point, point)) >= EARTH_M


def elevation(here, there):
    """How many degrees a satellite is above the horizon of a place."""
    to = minus(there, here)
    return 90 - math.degrees(math.acos(dot(here, to) / math.sqrt(dot(here, here) * dot(to, to))))


def best(links, begin, end, metric):
    """The least cost of a way, its length in m and its nodes; None if there is no way. Stations pass nothing on."""
    near = {}
    for (a, b), length in links.items():
        near.setdefault(a, []).append((b, length))
        near.setdefault(b, []).append((a, length))
    heap = [(0, 0, [begin])]
    seen = set()
    while heap:
        first, second, way = heapq.heappop(heap)
        if way[-1] == end:
            return (first, second), first if metric == "delay" else second, way
        if way[-1] in seen or (len(way) > 1 and not way[-1][1:].isdigit()):
            continue
        seen.add(way[-1])
        for other, length in near.get(way[-1], []):
            more = (length, 1) if metric == "delay" else (1, length)
            heapq.heappush(heap, (first + more[0], second + more[1], [*way, other]))
    return None


CASES = [
    ("dense", ("delta", 72, 22, 39, 550, 53, 25, 4, "delay"), ["paris", "new-york", "sydney"]),
    ("hops", ("delta", 36, 20, 5, 630, 51.9, 10, 4, "hops"), ["paris", "tokyo", "nairobi"]),
    ("polar", ("star", 6, 11, 2, 780, 86.4, 8, 4, "delay"), ["paris", "new-york", "sydney", "pole"]),
    ("planes-apart", ("delta", 24, 30, 7, 1200, 60, 5, 2, "delay"), ["paris", "new-york", "nairobi"]),
    ("holes", ("delta", 8, 6, 1, 700, 45, 20, 4, "delay"), ["nairobi", "tokyo", "new-york"]),
]
LISTS = [
    ("iridium", ("star", 6, 11, 2, 780, 86.4, 8, 4, "delay"), ["paris", "new-york", "sydney"]),
    ("delta", ("delta", 24, 18, 5, 560, 53, 20, 4, "delay"), ["paris", "tokyo", "nairobi"]),
]
"""Patterns whose satellites are listed, for ways at whole multiples of 10 minutes."""
TOGETHER = [
    (
        "shells",
        [
            ("delta", 16, 12, 3, 1100, 53, 15, 4, "delay"),
            ("delta", 1, 14, 0, 1400, 0.05, 15, 4, "delay"),
            ("delta", 6, 8, 1, 1100, 75, 15, 4, "delay"),
        ],
        ["paris", "nairobi", "singapore"],
    ),
]
"""Shells of one list, one of them a ring above the equator."""
PLACES = {
    "paris": (48.9, 2.4),
    "new-york": (40.7, -74.0),
    "sydney": (-33.9, 151.2),
    "tokyo": (35.7, 139.7),
    "nairobi": (-1.3, 36.8),
    "pole": (89.5, 0.0),
    "singapore": (1.4, 103.8),
}
INSTANTS = 12
"""Of each case; drawn from a seed within a day, in whole s."""


def lines(name, shell, stations):
    """The vectors of a case."""
    pattern, planes, per_plane, phasing, altitude_km, inclination, mask, neighbours, metric = shell
    places = {station: PLACES[station] for station in stations}
    model = Shell(pattern, planes, per_plane, phasing, altitude_km * 1e3, inclination, mask, neighbours, places)
    yield "shell " + " ".join(str(part) for part in shell)
    for station in stations:
        yield f"station {station} {PLACES[station][0]} {PLACES[station][1]}"
    draw = random.Random(name)
    for t in sorted(draw.sample(range(86_400), INSTANTS)):
        links = model.links(t)
        for a, b in itertools.combinations(stations, 2):
            found = best(links, a, b, metric)
            rest = "none" if found is None else f"{round(found[1] * 1e3)} {' '.join(found[2])}"
            yield f"at {t * 10**9} way {a} {b} {rest}"


def listed_lines(shell, stations, model):
    """The vectors of a list."""
    mask, neighbours, metric = shell[6:]
    yield f"list {mask} {neighbours} {metric}"
    for station in stations:
        yield f"station {station} {PLACES[station][0]} {PLACES[station][1]}"
    for step in range(INSTANTS):
        t = 600 * step
        links = model.links(t)
        for a, b in itertools.combinations(stations, 2):
            found = best(links, a, b, metric)
            rest = "none" if found is None else f"{round(found[1] * 1e3)} {' '.join(found[2])}"
            yield f"at {t * 10**9} way {a} {b} {rest}"


def files():
    """The names of all files and their lines."""
    for name, shell, stations in CASES:
        yield f"{name}.ways", lines(name, shell, stations)
    alone = [(name, shell, stations, Listed, shell) for name, shell, stations in LISTS]
    several = [(name, shells, stations, Together, shells[0]) for name, shells, stations in TOGETHER]
    for name, of, stations, kind, shell in alone + several:
        model = kind(of, {station: PLACES[station] for station in stations}, random.Random(name))
        yield f"{name}.tle", itertools.chain.from_iterable(model.elements)
        yield f"{name}.listed", listed_lines(shell, stations, model)


if __name__ == "__main__":
    sys.exit(lists.main("oracle/ways.py", FOLDER, files()))
