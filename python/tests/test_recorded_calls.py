# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a simulated policy, recorded and given to the core: it decides the same at every departure."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command import REPOSITORY

from linkweir import Scenario, _native
from linkweir.reproduce.orders import Departure, read_departures

CORE = REPOSITORY / "core"
POLICIES = ("pss", "pds", "drr", "pf")


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("replay") / "replay"
    sources = [CORE / "tests" / "replay.c", *sorted((CORE / "src").glob("*.c"))]
    subprocess.run(["cc", "-std=gnu11", "-O2", f"-I{CORE / 'include'}", *sources, "-o", program], check=True)
    return program


def record(policy: str, file: Path, duration: str = "4s") -> list[Departure]:
    """Three classes of constant rate, which offer 1.2 times the capacity; the recorded departures."""
    classes = [{"name": name, "limit": "50p"} for name in "abc"]
    flows = [
        {"name": name, "class": name, "kind": "cbr", "rate": rate, "packet": "1000B"}
        for name, rate in zip("abc", ("7Mbit", "9Mbit", "8Mbit"), strict=True)
    ]
    scenario = Scenario.from_dict(
        {
            "name": policy,
            "duration": duration,
            "link": {"rate": "20Mbit"},
            "scheduler": {"policy": policy},
            "class": classes,
            "flow": flows,
        }
    )
    _native.run(scenario.native, lambda _table, _columns: None, calls=file)
    return read_departures(file)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_the_core_decides_as_the_simulator_did(policy: str, replay: Path, tmp_path: Path) -> None:
    file = tmp_path / "calls.vec"
    found = record(policy, file)
    assert len(found) > 9_000
    assert file.read_text().endswith("\n# end\n")
    done = subprocess.run([replay, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
