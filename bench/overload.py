#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A gateway offered five times the capacity of its link: EF 10, AF 30 and the rest 60 Mbit/s into 20, for a minute.

Twice: over a link that is never full, and over one that is 3 % faster than the gateway's pace and has a queue of 20
packets. Delays are one-way queueing delays, without the link's delay and the packet's time on the link. With
`--virtual` the same programs run in the laboratory's virtual time, in which nothing stalls. Needs the package of this
tree, and root unless time is virtual.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

import report
from linkweir import _native
from linkweir.lab import LaboratoryError
from linkweir.lab.gateways import Gateways, VirtualGateways
from linkweir.lab.tunnel import LINK_BELOW, OUTER_BYTES

OFFERED_MBIT = {"ef": 10, "af": 30, "rest": 60}
PACKET_BYTES = 1500
LINK_MBIT, RESERVED_MBIT = 20, 5
BELOW = {
    "never full": LINK_BELOW,
    # 20 Mbit/s of 1500-byte packets are 20.37 with the tunnel's 28 bytes. 20 packets are 12 ms: bursts wait here, and
    # drain slowly, as the link is only 3 % faster. So do packets that arrive while the emulator itself is stalled.
    "drops": {"rate": "21Mbit", "limit": "20p"},
}
WARMUP_S = 10
MB = 1e6
ALLOWED_MEMORY_MB, ALLOWED_DELAY_MS, ALLOWED_AF_PERCENT = 64.0, 2.0, 0.5


def scenario(lasts_s: int) -> dict[str, object]:
    """The scenario: link, classes and flows."""
    classes = [
        {"name": "ef", "level": 0, "limit": "200p"},
        {"name": "af", "level": 1, "low_level": 3, "rate": f"{RESERVED_MBIT}Mbit", "memory": "100ms", "limit": "500p"},
        {"name": "rest", "level": 2, "limit": "1000p"},
    ]
    return {
        "name": "overload",
        "duration": f"{lasts_s}s",
        "warmup": f"{WARMUP_S}s",
        "interval": "1s",
        "link": {"rate": f"{LINK_MBIT}Mbit", "delay": "10ms"},
        "scheduler": {"policy": "pss"},
        "class": classes,
        "flow": [
            {"name": name, "class": name, "kind": "cbr", "rate": f"{mbit}Mbit", "packet": f"{PACKET_BYTES}B"}
            for name, mbit in OFFERED_MBIT.items()
        ],
    }


def measure(
    name: str, gateway: Path | None, lasts_s: int, out: Path, kind: type[Gateways | VirtualGateways]
) -> dict[str, object]:
    """One run, as a row."""
    below = BELOW[name]
    result = kind(gateway, below=below).run(scenario(lasts_s), out=out)
    own_ms = 1e3 * 8 * (PACKET_BYTES + OUTER_BYTES) / _native.quantity(below["rate"], "rate")
    classes = {row["class"]: row for row in result.rows("classes")}
    flow = next(row for row in result.rows("flows") if row["flow"] == "ef")
    with (out / "memory.csv").open() as file:
        memory_mb = [int(row["sender_bytes"]) / MB for row in csv.DictReader(file)]
    emulator = json.loads((out / "emulator.json").read_text())["directions"][0]
    ef = classes["ef"]
    af_off = 100 * (classes["af"]["rate_bps"] / (RESERVED_MBIT * 1e6) - 1)
    dropped = ef["dropped_limit_pkts"] + ef["dropped_policy_pkts"]
    p50_ms, p99_ms, max_ms = (1e3 * ef[f"delay_{which}_s"] - own_ms for which in ("p50", "p99", "max"))
    kept = (
        max(memory_mb) <= ALLOWED_MEMORY_MB
        and dropped == 0
        and flow["arrived_pkts"] - flow["delivered_pkts"] <= 1
        and p99_ms <= ALLOWED_DELAY_MS
        and abs(af_off) <= ALLOWED_AF_PERCENT
    )
    return {
        "below": name,
        "ef_sent_pkts": flow["arrived_pkts"],
        "ef_came_pkts": flow["delivered_pkts"],
        "ef_dropped_pkts": dropped,
        "ef_p50_ms": p50_ms,
        "ef_p99_ms": p99_ms,
        "ef_max_ms": max_ms,
        "af_mbps": classes["af"]["rate_bps"] / 1e6,
        "af_off_percent": af_off,
        "rest_mbps": classes["rest"]["rate_bps"] / 1e6,
        "dropped_below_pkts": emulator["dropped_limit_pkts"],
        "emulator_late_p99_ms": emulator["late_p99_ns"] / 1e6,
        "emulator_late_max_ms": emulator["late_max_ns"] / 1e6,
        "memory_first_mb": memory_mb[0],
        f"memory_{WARMUP_S}s_mb": memory_mb[WARMUP_S],
        "memory_last_mb": memory_mb[-1],
        "kept": kept,
    }


def render(rows: list[dict[str, object]], *, markdown: bool) -> str:
    """A line for each figure, a column for each run."""
    columns, *lines = [[key, *(report.cell(row[key]) for row in rows)] for key in rows[0]]
    return report.table(columns, lines, markdown=markdown)


def main() -> int:
    """The command; returns 1 if a bound was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateway", type=Path, help="linkweir-gateway (default: the one that cargo built)")
    parser.add_argument(
        "--seconds", type=report.within(int, WARMUP_S + 1, 3600), default=60, help="how long (default 60)"
    )
    parser.add_argument(
        "--virtual", action="store_true", help="in the laboratory's virtual time, in which nothing stalls"
    )
    arguments = report.options_of(parser)
    kind = VirtualGateways if arguments.virtual else Gateways
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name in BELOW:
                out = Path(folder) / name.replace(" ", "-")
                rows.append(measure(name, arguments.gateway, arguments.seconds, out, kind))
        except LaboratoryError as error:
            print(f"bench/overload.py: {error}", file=sys.stderr)
            return 1
    report.write(arguments, rows, lambda markdown: render(rows, markdown=markdown))
    return 0 if all(row["kept"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
