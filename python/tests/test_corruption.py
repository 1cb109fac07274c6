# SPDX-License-Identifier: BSD-3-Clause
"""Corrupted scenarios and traces end in a run or in a message, never in a panic or a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from command import SCENARIOS

from linkweir import Interrupted, Scenario, ScenarioError, run

ROUNDS = 200
_PIECES = (
    b"-1",
    b"nan",
    b"1e999",
    b"99999999999999999999",
    b'"',
    b"[",
    b"}",
    b"=",
    b"\n",
    b"\0",
    b"\xff",
    b"#",
    b"0",
    b",",
    b"p",
)


def corrupt(original: bytes, draw: random.Random) -> bytes:
    data = bytearray(original)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0 if at < len(data):
                data[at] = draw.randrange(256)
            case 1:
                del data[at : at + draw.randrange(30)]
            case 2:
                data[at:at] = draw.choice(_PIECES)
            case 3:
                start = draw.randrange(len(data) + 1)
                data[at:at] = data[start : start + draw.randrange(100)]
            case _:
                digits = [i for i in range(at, min(at + 400, len(data))) if chr(data[i]).isdigit()]
                if digits:
                    data[draw.choice(digits)] = ord(str(draw.randrange(10)))
    return bytes(data)


def stop(simulated_s: float) -> None:
    """Ends a run at its first safe point: corruption may have made it last for years."""
    raise KeyboardInterrupt


def survives(scenario: Scenario) -> None:
    try:
        run(scenario, progress=stop)
    except Interrupted as interrupted:
        assert interrupted.result.status == "interrupted"


def is_plain(fault: ScenarioError) -> bool:
    text = str(fault)
    return "\n" not in text and len(text) < 2000 and ": " in text and "internal error" not in text


SHIPPED = [  # every seventh is in make check, too
    pytest.param(path, marks=pytest.mark.slow if number % 7 else (), id=path.stem)
    for number, path in enumerate(sorted(SCENARIOS.glob("*.toml")))
]


@pytest.mark.parametrize("path", SHIPPED)
def test_corrupted_scenarios(path: Path) -> None:
    original = path.read_bytes()
    draw = random.Random(path.stem)
    sound = 0
    for _ in range(ROUNDS):
        text = corrupt(original, draw).decode("utf-8", errors="replace")
        try:
            scenario = Scenario.parse(text, path=path)
        except ScenarioError as fault:
            assert is_plain(fault)
            assert fault.file is not None
        else:
            sound += 1
            survives(scenario)
    assert 10 < sound < ROUNDS - 10, "the corruptions are too weak or too strong"


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("traces/*")), ids=lambda path: path.stem)
def test_corrupted_traces(path: Path, tmp_path: Path) -> None:
    original = b"\n".join(path.read_bytes().splitlines()[:120]) + b"\n"
    draw = random.Random(path.stem)
    sound = 0
    for number in range(ROUNDS):
        trace = tmp_path / f"{number}.csv"
        trace.write_bytes(corrupt(original, draw))
        try:
            scenario = Scenario.load(SCENARIOS / "lte-drive.toml", trace=trace)
        except ScenarioError as fault:
            assert is_plain(fault)
        else:
            sound += 1
            survives(scenario)
    assert 10 < sound < ROUNDS - 10, "the corruptions are too weak or too strong"
