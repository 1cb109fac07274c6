# SPDX-License-Identifier: GPL-2.0-only
"""Records a million departures in the simulator and replays them in BPF on the running kernel, for three policies.

    python3 departures.py [--departures N] [POLICY...]

Needs root, the objects in build/replay and the Python package. Exit code 0: BPF decided the same at each departure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from linkweir import _native
from linkweir.scenarios.scenario import Scenario

BUILD = Path(__file__).resolve().parents[1] / "build"
LINK_BPS = 20_000_000
PACKET_BYTES = 1000
OWN_KEYS = {
    "pss": ({}, ({"level": 0}, {"level": 1, "low_level": 3, "rate": "6Mbit"}, {"level": 2})),
    "drr": ({}, ({"quantum": "1500B"}, {"quantum": "3000B"}, {"quantum": "2000B"})),
    "pds": ({"limit": "80p"}, ({"delay": 4, "loss": 1}, {"delay": 2, "loss": 2}, {"delay": 1, "loss": 4})),
}
"""Keys of the scheduler and of each class."""


def scenario(policy: str, departures: int) -> Scenario:
    """Three classes of Poisson traffic that offer 1.15 times the mean capacity of a link that fades."""
    scheduler, rows = OWN_KEYS[policy]
    rates = {"a": "5Mbit", "b": "10Mbit", "c": "8Mbit"}
    lasts_s = departures * 8 * PACKET_BYTES / LINK_BPS
    return Scenario.from_dict(
        {
            "duration": f"{lasts_s:.6f}s",
            "interval": f"{lasts_s / 100:.6f}s",
            "link": {"rate": {"mean": f"{LINK_BPS}bit", "amplitude": 0.3, "period": "20s"}},
            "scheduler": {"policy": policy, **scheduler},
            "class": [{"name": name, "limit": "50p", **row} for name, row in zip(rates, rows, strict=True)],
            "flow": [
                {"name": name, "class": name, "kind": "poisson", "rate": rate, "packet": f"{PACKET_BYTES}B"}
                for name, rate in rates.items()
            ],
        }
    )


def main() -> int:
    """Records, replays and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--departures", type=int, default=1_000_000, metavar="N")
    parser.add_argument("policies", nargs="*", default=list(OWN_KEYS))
    options = parser.parse_args()
    environment = {**os.environ, "LINKWEIR_BPF_OBJECTS": str(BUILD / "replay")}
    wrong = 0
    for policy in options.policies:
        with tempfile.TemporaryDirectory() as name:
            calls = Path(name) / f"{policy}.vec"
            whole = scenario(policy, options.departures)
            _native.run(whole.native, lambda _table, _columns: None, calls=calls)
            done = subprocess.run(
                [BUILD / "linkweir-bpf", "replay", calls], env=environment, capture_output=True, text=True
            )
            print(f"{policy}: {(done.stdout + done.stderr).strip()}", flush=True)
            wrong += done.returncode != 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
