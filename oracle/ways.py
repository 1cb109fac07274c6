# SPDX-License-Identifier: BSD-3-Clause
"""A naive model of ways over a constellation: which links there are at an instant, how long each is, and which way is
best.

It is written from Walker (1984, "Satellite constellations"), spherical geometry and Dijkstra (1959). Satellites move on
circles around a point mass, the earth is a sphere that turns. Positions are turned by matrices, an elevation is an
angle between two directions, and two satellites see each other if no point of the line between them is in the earth.
`python oracle/ways.py` writes the vectors in crates/linkweir-sim/tests/ways.

    shell PATTERN PLANES PER_PLANE PHASING ALTITUDE_KM INCLINATION_DEG MASK_DEG NEIGHBOURS METRIC
    station NAME LATITUDE LONGITUDE
    at NS way FROM TO none
    at NS way FROM TO MM NODE...      the nodes of the best way, and its length in mm
"""

import heapq
import itertools
import math
import random
import sys
from pathlib import Path

EARTH_M = 6_371_000.0
GRAVITY_M3_S2 = 3.986004418e14
TURN_RAD_S = 7.2921159e-5
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
PLACES = {
    "paris": (48.9, 2.4),
    "new-york": (40.7, -74.0),
    "sydney": (-33.9, 151.2),
    "tokyo": (35.7, 139.7),
    "nairobi": (-1.3, 36.8),
    "pole": (89.5, 0.0),
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


def main():
    """Writes the vectors, or with --check says whether they are as they would be written."""
    stale = 0
    for name, shell, stations in CASES:
        text = "# SPDX-License-Identifier: BSD-3-Clause\n# python oracle/ways.py\n" + "".join(
            line + "\n" for line in lines(name, shell, stations)
        )
        path = FOLDER / f"{name}.ways"
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text() != text:
                print(f"{path} is not what oracle/ways.py writes")
                stale = 1
            continue
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return stale


if __name__ == "__main__":
    sys.exit(main())
