# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a run whose flows' ways pass many links, while packets wait on each for few or for many different times.

python bench/way_memory.py --count COPIES --packets PER_S prints the rows of table hops, packets sent per row and the
largest memory of the process. A program of its own for each run, as memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import resource
from itertools import combinations
from typing import Any

import pyarrow.compute as pc

import linkweir as lw

PLACES = {"paris": (48.9, 2.4), "new-york": (40.7, -74.0), "tokyo": (35.7, 139.7), "sydney": (-33.9, 151.2)}
PACKET_BITS = 800
TO_EACH = 3  # each station sends to, or receives from, all three others
ABOVE_LOAD, ISL_PART = 1.05, 0.3  # stations' links are almost full, so queues change all the time


def scenario(copies: int, per_s: float, duration: str) -> dict[str, Any]:
    """Poisson sources between each two of four stations, over 480 satellites."""
    queue = {"scheduler": {"policy": "fifo"}, "class": [{"name": "all", "limit": "10000p"}]}
    ground_bps = int(copies * per_s * PACKET_BITS * TO_EACH * ABOVE_LOAD)
    source = {
        "kind": "poisson",
        "rate": f"{per_s * PACKET_BITS:g}bit",
        "packet": "100B",
        "class": "all",
        "count": copies,
    }
    return {
        "duration": duration,
        "interval": duration,
        "constellation": {
            "pattern": "delta",
            "planes": 24,
            "per_plane": 20,
            "phasing": 5,
            "altitude_km": 550,
            "inclination_deg": 53,
            "stations": [{"name": name, "latitude": at[0], "longitude": at[1]} for name, at in PLACES.items()],
            "routes": {"every": "2s"},
            "ground": {"rate": f"{ground_bps}bit", "mask": 15.0, **queue},
            "isl": {"rate": f"{int(ground_bps * ISL_PART)}bit", **queue},
        },
        "flow": [{"name": f"{a}:{b}", **source, "from": a, "to": b} for a, b in combinations(PLACES, 2)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--packets", type=float, required=True)
    parser.add_argument("--duration", default="100s")
    given = parser.parse_args()
    hops = lw.run(scenario(given.count, given.packets, given.duration)).table("hops")
    largest_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(hops)} rows, {pc.mean(hops['sent_pkts']).as_py():.0f} packets per row, {largest_mb:.0f} MiB")


if __name__ == "__main__":
    main()
