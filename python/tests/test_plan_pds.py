# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients of WTP: against strict priority and first come first served worked by hand, and against simulation."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from typer.testing import CliRunner

import linkweir
from linkweir.commands.plan import app
from linkweir.sizing import pds as sizing

runner = CliRunner()


def answer(*words: str, code: int = 0) -> dict[str, Any]:
    done = runner.invoke(app, ["pds", "--json", *words])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


FIVE = ("--link", "10Mbit", "--ratio", "1:2:4:8:16", "--packet", "500B")


@pytest.mark.parametrize("load", ["0.9", "0.95", "99%"])
def test_ratios_in_reach_get_coefficients(load: str) -> None:
    """WTP's usual inverse ratios would be 16:8:4:2:1; at any load below 1 it takes more."""
    found = answer(*FIVE, "--load", load)
    assert [c["expected_ratio"] for c in found["classes"]] == pytest.approx([1, 2, 4, 8, 16], rel=1e-3)
    assert found["classes"][0]["coefficient"] > 16


def test_what_is_out_of_reach_is_said() -> None:
    """Class 1 waits 5/31 of the first-come wait W0/(1 - 0.8), at least W0/(1 - 0.16); W0 = 0.8 * 0.4 ms / 2. Both are
    equal where 5/31 (1 - x/5) = 1 - x, that is x = 26/30.
    """
    found = answer(*FIVE, "--load", "0.8", code=1)
    beyond = found["out_of_reach"]
    assert beyond["classes"] == ["c1"]
    assert beyond["wanted_wait_s"] == pytest.approx(5 / 31 * 0.16e-3 / 0.2)
    assert beyond["least_wait_s"] == pytest.approx(0.16e-3 / 0.84)
    assert found["least_load"] == pytest.approx(26 / 30, abs=1e-4)
    shown = runner.invoke(app, ["pds", *FIVE, "--load", "0.8"])
    assert "out of reach: c1 would have to wait 0.129 ms" in shown.stdout
    assert "from a load of 0.867 on" in shown.stdout


def test_the_conservation_law_holds_for_any_coefficients() -> None:
    """The waits, weighted by loads, add up to rho W0 / (1 - rho), and lie between strict priority's and its reverse."""
    draw = random.Random(5)
    for _ in range(200):
        classes = [sizing.DelayClass(f"c{i}", draw.uniform(0.1e6, 2e6), draw.choice((64, 576, 1500))) for i in range(4)]
        coefficients = [draw.uniform(1, 60_000) for _ in classes]
        loads = [c.rate_bps / 10e6 for c in classes]
        rest_s = sum(load * 4 * c.packet_bytes / 10e6 for load, c in zip(loads, classes, strict=True))
        waits = sizing.waits_s(classes, 10e6, coefficients)
        total = sum(load * wait for load, wait in zip(loads, waits, strict=True))
        assert total == pytest.approx(sum(loads) * rest_s / (1 - sum(loads)))
        assert all(wait >= rest_s / (1 - load) * (1 - 1e-9) for load, wait in zip(loads, waits, strict=True))


def test_coefficients_are_found_for_the_waits_of_any_coefficients() -> None:
    """There and back: the ratios of random coefficients' waits give these coefficients again, ties included."""
    draw = random.Random(6)
    for case in range(100):
        classes = [sizing.DelayClass(f"c{i}", draw.uniform(0.5e6, 2.4e6), draw.choice((64, 1500))) for i in range(4)]
        given = [draw.uniform(1, 30) for _ in classes]
        if case % 4 == 0:
            given[1] = given[2]
        waits = sizing.waits_s(classes, 10e6, given)
        if case % 4 == 0:
            waits[1] = waits[2]
        found = sizing.coefficients(classes, 10e6, waits)
        assert found == pytest.approx([g / min(given) for g in given], rel=1e-3)


def measured_ratios(plan: dict[str, Any], duration_s: int, seed: int) -> list[float]:
    """Ratios of mean waits before transmission in a simulated run of what the plan writes."""
    link_bps = plan["link_bps"]
    flows = "".join(
        f'[[flow]]\nclass = "{c["name"]}"\nkind = "poisson"\n'
        f'rate = "{c["rate_bps"]:.0f}bit"\npacket = "{c["packet_bytes"]}B"\n'
        for c in plan["classes"]
    )
    text = f'duration = "{duration_s}s"\nwarmup = "1s"\nseed = {seed}\n[link]\nrate = "{link_bps:.0f}bit"\n'
    limits = plan["toml"].replace("delay = ", 'limit = "100000p"\ndelay = ')
    rows = linkweir.run(linkweir.Scenario.parse(text + limits + flows)).rows("classes")
    waits = [row["delay_mean_s"] for row in rows]
    return [wait / waits[0] * plan["classes"][0]["ratio"] for wait in waits]


@pytest.mark.parametrize(
    ("words", "tolerance"),
    [
        ((*FIVE, "--load", "0.9"), 0.04),
        (("--link", "10Mbit", "--ratio", "1:2:4", "--packet", "500B", "--load", "0.8"), 0.04),
        (("--link", "10Mbit", "--ratio", "1:3", "--packet", "200B:1500B", "--rate", "2Mbit", "--rate", "6Mbit"), 0.04),
    ],
)
def test_the_plan_s_ratios_are_measured(words: tuple[str, ...], tolerance: float) -> None:
    """Without the plan, coefficients in the inverse ratios give 16 as about 11 at a load of 0.9."""
    plan = answer(*words)
    wanted = [c["ratio"] for c in plan["classes"]]
    assert measured_ratios(plan, 300, 1) == pytest.approx(wanted, rel=tolerance)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--ratio", "1:2", "--load", "1.0"], "below 1"),
        (["--ratio", "1", "--load", "0.9"], "2 .. 64 numbers"),
        (["--ratio", "1:x", "--load", "0.9"], "with a colon between"),
        (["--ratio", "1:0", "--load", "0.9"], "0.001"),
        (["--ratio", "1:nan", "--load", "0.9"], "0.001"),
        (["--ratio", "1:2"], "exactly one of --load, --rate"),
        (["--ratio", "1:2", "--rate", "5Mbit"], "1 rates for 2 classes"),
        (["--ratio", "1:2", "--rate", "5Mbit", "--rate", "5Mbit"], "together below the link's 10Mbit"),
        (["--ratio", "1:2", "--load", "0.9", "--packet", "1B:2B:3B"], "for each of 2 classes"),
        (["--ratio", "1:2", "--load", "0.9", "--packet", "500"], "needs a unit"),
    ],
)
def test_refusals_say_what_is_allowed(words: list[str], part: str) -> None:
    done = runner.invoke(app, ["pds", "--link", "10Mbit", *words])
    assert done.exit_code == 2
    assert part in done.stderr
    assert "Traceback" not in done.output
