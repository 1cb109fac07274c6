# SPDX-License-Identifier: BSD-3-Clause
"""A shell of satellites that move, as a scenario with [constellation], and at one instant as links for ns-3: a Walker
delta pattern, and pairs of stations.

1,584 satellites in 72 planes of 22 at 550 km and 53 degrees. Each has links of 20 Mbit/s to the satellites before and
after it and to its neighbours in the two adjacent planes. Stations have links of 10 Mbit/s to satellites that are at
least 25 degrees high; at the one instant, to the nearest. Each pair has a CUBIC transfer; packets and acknowledgements
take the path with the least delay.
"""

from __future__ import annotations

import heapq
import math
import random
from itertools import pairwise
from typing import Any

PLANES, PER_PLANE, PHASING = 72, 22, 1
ALTITUDE_M, INCLINATION_DEG, MASK_DEG = 550e3, 53.0, 25.0
EARTH_M, LIGHT_M_PER_S = 6371e3, 299_792_458.0
LATITUDE_DEG = 50.0  # stations are at most so far from the equator, where each sees a satellite
PAIRS = 100
ISL_RATE, GROUND_RATE, LIMIT = "20Mbit", "10Mbit", "100p"
STAGGER_MS = 10
Point = tuple[float, float, float]
Ends = list[tuple[int, int]]


def satellite(plane: int, place: int) -> Point:
    """Where a satellite is, m."""
    node = 2 * math.pi * plane / PLANES
    along = 2 * math.pi * (place / PER_PLANE + PHASING * plane / (PLANES * PER_PLANE))
    tilt = math.radians(INCLINATION_DEG)
    x, y, z = math.cos(along), math.sin(along) * math.cos(tilt), math.sin(along) * math.sin(tilt)
    radius = EARTH_M + ALTITUDE_M
    turned = (x * math.cos(node) - y * math.sin(node), x * math.sin(node) + y * math.cos(node), z)
    return tuple(radius * part for part in turned)  # type: ignore[return-value]


def station(draw: random.Random) -> Point:
    """A place on the ground, spread evenly over the zone of the stations, m."""
    height = math.sin(math.radians(LATITUDE_DEG)) * draw.uniform(-1, 1)
    longitude = draw.uniform(-math.pi, math.pi)
    level = math.sqrt(1 - height**2)
    return (EARTH_M * level * math.cos(longitude), EARTH_M * level * math.sin(longitude), EARTH_M * height)


def highest(place: Point, satellites: list[Point]) -> int:
    """The nearest satellite, which must be above the mask."""
    near = min(range(len(satellites)), key=lambda i: math.dist(place, satellites[i]))
    away = math.dist(place, satellites[near])
    sine = ((EARTH_M + ALTITUDE_M) ** 2 - EARTH_M**2 - away**2) / (2 * EARTH_M * away)
    if math.degrees(math.asin(sine)) < MASK_DEG:
        raise RuntimeError("a station sees no satellite")
    return near


def neighbours(i: int) -> list[int]:
    """The satellites to which a satellite has links; between the last plane and the first the phasing adds up."""
    plane, place = divmod(i, PER_PLANE)
    near = [(plane, place + 1), (plane, place - 1)]
    for step in (1, -1):
        crossed = PHASING if plane + step == PLANES else -PHASING if plane + step < 0 else 0
        near.append((plane + step, place + crossed))
    return [p % PLANES * PER_PLANE + at % PER_PLANE for p, at in near]


def delay_ns(a: Point, b: Point) -> int:
    return round(math.dist(a, b) / LIGHT_M_PER_S * 1e9)


def shortest(begin: int, end: int, satellites: list[Point]) -> list[int]:
    """The satellites of the path with the least delay."""
    best, before, heap = {begin: 0}, {begin: begin}, [(0, begin)]
    while heap[0][1] != end:
        so_far, at = heapq.heappop(heap)
        if so_far > best[at]:
            continue
        for other in neighbours(at):
            there = so_far + delay_ns(satellites[at], satellites[other])
            if there < best.get(other, there + 1):
                best[other], before[other] = there, at
                heapq.heappush(heap, (there, other))
    path = [end]
    while path[-1] != begin:
        path.append(before[path[-1]])
    return path[::-1]


def link(name: str, rate: str, delay: int) -> dict[str, Any]:
    return {
        "name": name,
        "rate": rate,
        "delay": f"{delay}ns",
        "overhead": "2B",
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all", "limit": LIMIT}],
    }


def constellation(duration_s: float, tcp: dict[str, Any], seed: int = 1) -> dict[str, Any]:
    """The scenario whose satellites move: links and paths are computed each second."""
    draw = random.Random(seed)
    stations, flows = [], []
    for pair in range(PAIRS):
        for name in (f"a{pair}", f"b{pair}"):
            x, y, z = station(draw)
            latitude, longitude = math.degrees(math.asin(z / EARTH_M)), math.degrees(math.atan2(y, x))
            stations.append({"name": name, "latitude": latitude, "longitude": longitude})
        ends = {"from": f"a{pair}", "to": f"b{pair}"}
        flows.append(
            {"name": f"pair{pair}", "class": "all", **ends, "kind": "tcp", **tcp, "start": f"{STAGGER_MS * pair}ms"}
        )

    def of_kind(rate: str, **keys: float) -> dict[str, Any]:
        queue = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all", "limit": LIMIT}]}
        return {"rate": rate, "overhead": "2B", **keys, **queue}

    shell = {
        "pattern": "delta",
        "planes": PLANES,
        "per_plane": PER_PLANE,
        "phasing": PHASING,
        "altitude_km": ALTITUDE_M / 1e3,
        "inclination_deg": INCLINATION_DEG,
        "stations": stations,
        "routes": {"every": "1s"},
        "ground": of_kind(GROUND_RATE, mask=MASK_DEG),
        "isl": of_kind(ISL_RATE),
    }
    run = {"name": "a shell of satellites", "duration": f"{duration_s:g}s", "warmup": "0s", "seed": seed}
    return {**run, "constellation": shell, "flow": flows}


def scenario(duration_s: float, tcp: dict[str, Any], seed: int = 1) -> tuple[dict[str, Any], tuple[Ends, int]]:
    """The scenario at one instant; the nodes between which each link is, and how many nodes there are."""
    draw = random.Random(seed)
    satellites = [satellite(plane, place) for plane in range(PLANES) for place in range(PER_PLANE)]
    links, ends, flows = [], [], []

    def add(name: str, rate: str, delay: int, nodes: tuple[int, int]) -> None:
        links.append(link(name, rate, delay))
        ends.append(nodes)

    for i, place in enumerate(satellites):
        for other in neighbours(i):
            add(f"s{i}-s{other}", ISL_RATE, delay_ns(place, satellites[other]), (i, other))
    for pair in range(PAIRS):
        places = [station(draw), station(draw)]
        near = [highest(place, satellites) for place in places]
        for side, name in enumerate((f"a{pair}", f"b{pair}")):
            node, delay = len(satellites) + 2 * pair + side, delay_ns(places[side], satellites[near[side]])
            add(f"{name}-s{near[side]}", GROUND_RATE, delay, (node, near[side]))
            add(f"s{near[side]}-{name}", GROUND_RATE, delay, (near[side], node))
        path = shortest(near[0], near[1], satellites)
        names = [f"a{pair}", *(f"s{i}" for i in path), f"b{pair}"]
        there = [f"{a}-{b}" for a, b in pairwise(names)]
        back = [f"{b}-{a}" for a, b in pairwise(names)][::-1]
        flow = {"name": f"pair{pair}", "class": "all", "path": there, "back": back, "kind": "tcp", **tcp}
        flows.append({**flow, "start": f"{STAGGER_MS * pair}ms"})
    run = {"name": "a shell of satellites", "duration": f"{duration_s:g}s", "warmup": "0s", "seed": seed}
    return {**run, "link": links, "flow": flows}, (ends, len(satellites) + 2 * PAIRS)
