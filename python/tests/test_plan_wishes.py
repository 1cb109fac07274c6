# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir plan` in the worst case: bounds worked by hand, and what stands against a wish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from linkweir.commands.plan import app

runner = CliRunner()
LINK = ["--link", "20Mbit", "--rate", "5Mbit"]
CALLS = ["--envelope", "ef=20xg711", "--within", "ef=20ms"]
PACKET = 8 * 1514


def planned(*args: str, code: int = 0) -> dict[str, Any]:
    result = runner.invoke(app, ["pss", "--json", *args])
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*args: str) -> str:
    result = runner.invoke(app, ["pss", *args])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_delay_and_rate_beside_the_formulas() -> None:
    """EF (sigma + L) / C; AF late by (M - LR + D) / rho with D = rho (sigma + L) / (C - r), M = LM + L + rho L / C."""
    found = planned(*LINK, *CALLS)
    af, ef = sorted(found["wishes"], key=lambda wish: wish["name"])
    sigma, rho = 20 * 8 * 200, 5e6
    assert ef["delay_s"] == pytest.approx((sigma + PACKET) / 20e6)
    owed = rho * (sigma + PACKET) / (20e6 - sigma / 0.02)
    queue = found["queues"][0]
    most = queue["lm_bits"] + PACKET + rho * PACKET / 20e6
    assert af["latency_s"] == pytest.approx((most - queue["lr_bits"] + owed) / rho, rel=1e-6)
    assert af["memory_needed_s"] == pytest.approx(owed / rho)
    assert af["kept"]
    assert ef["kept"]


def test_the_envelope_of_ef_is_its_expected_load() -> None:
    assert planned(*LINK, *CALLS)["ef_expected_bps"] == 1.6e6
    assert planned(*LINK, *CALLS, "--ef-expected", "1Mbit")["ef_expected_bps"] == 1e6


def test_memory_is_raised_to_what_loses_nothing() -> None:
    """After 0.4 s without capacity, sigma + L + 2 Mbit/s go first: t with 20 (t - 0.4) - 2 t Mbit = 92,112 bit."""
    found = planned(*LINK, "--envelope", "ef=10kB:2Mbit", "--worst", "60%/1s")
    (wish,) = found["wishes"]
    needed = (20e6 * 0.4 + 80_000 + PACKET) / 18e6
    assert wish["memory_needed_s"] == pytest.approx(needed)
    assert found["queues"][0]["memory_s"] == 0.45  # whole milliseconds above it
    assert 'memory = "450ms"' in found["toml"]
    assert wish["kept"]


def test_a_memory_that_was_asked_for_stays_and_is_judged() -> None:
    found = planned(*LINK, "--envelope", "ef=10kB:2Mbit", "--worst", "60%/1s", "--memory", "0.4s", code=1)
    assert found["queues"][0]["memory_s"] == 0.4
    assert "more than a memory of 0.4 s holds" in found["wishes"][0]["why"]


def test_fades_of_a_trace_count(tmp_path: Path) -> None:
    """1 s of 10 Mbit/s, 1 s of nothing: AF waits 1 s, and until EF's 1 Mbit and its burst are sent."""
    trace = tmp_path / "blocked.csv"
    trace.write_text("# end=loop\n# period_s=2\nt_s,capacity_bps\n0,10000000\n1,0\n")
    options = ["--link", "10Mbit", "--rate", "2Mbit", "--envelope", "ef=1514B:1Mbit", "--trace", str(trace)]
    (rate,) = planned(*options)["wishes"]
    assert rate["memory_needed_s"] == pytest.approx((10e6 + 2 * PACKET) / 9e6, rel=1e-3)
    refusal = planned(*options, "--within", "ef=500ms", code=1)["wishes"]
    (missed,) = [wish for wish in refusal if wish["name"] == "ef"]
    assert missed["why"].startswith("the trace blocked.csv alone takes longer")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--worst", "60%/1s"], "ef may take everything: give --envelope ef=BURST:RATE"),
        (
            ["--envelope", "ef=10kB:8Mbit", "--worst", "60%/1s"],
            "carries 12Mbit, and what goes first may take 8Mbit: 4Mbit are left",
        ),
        (
            ["--envelope", "ef=100kB:1Mbit", "--within", "ef=20ms"],
            "its own burst: with the link of 20Mbit for itself alone it waits up to 40.000 ms; 50000 B at once would",
        ),
        (
            ["--envelope", "ef=50kB:1Mbit", "--within", "ef=20ms"],
            "one packet of a less urgent class: alone it would wait up to 20.000 ms",
        ),
        (["--envelope", "ef=1514B:1Mbit", "--within", "ef=500us"], "the link of 20Mbit alone takes longer, 0.606 ms"),
        (["--envelope", "ef=9kB:1Mbit", "--rate", "1Mbit"], "with several reservations (af1, af2) no bound is known"),
    ],
)
def test_what_stands_against_a_wish_is_named(options: list[str], why: str) -> None:
    missed = [wish for wish in planned(*LINK, *options, code=1)["wishes"] if not wish["kept"]]
    assert missed
    assert why in missed[0]["why"]


def test_the_table_names_each_wish_and_the_exit_code_tells() -> None:
    kept = runner.invoke(app, ["pss", *LINK, *CALLS])
    assert kept.exit_code == 0
    assert "ef within 20ms  within 2.206ms" in kept.output
    missed = runner.invoke(app, ["pss", *LINK, "--envelope", "ef=100kB:1Mbit", "--within", "ef=20ms"])
    assert missed.exit_code == 1
    assert "not kept: ef within 20ms: its own burst" in missed.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--within", "ef=20ms"], "needs the most that ef sends: give --envelope ef=BURST:RATE"),
        (["--within", "20ms"], "write it as CLASS=TIME, such as ef=20ms"),
        (["--within", "voice=20ms"], "is no class of the plan: ef, af, cs0"),
        (["--envelope", "ef=20xmp3"], '"mp3" is no codec: g711'),
        (["--envelope", "ef=20"], '"" is no codec'),
        (["--envelope", "ef=0xg711"], '"0" is no number of calls'),
        (["--envelope", "ef=10kB:30Mbit"], 'ef = "30Mbit": must leave something of the link'),
        (["--worst", "60%"], "write it as PART/WINDOW"),
    ],
)
def test_wrong_wishes_are_refused(options: list[str], message: str) -> None:
    assert message in refused(*LINK, *options)
