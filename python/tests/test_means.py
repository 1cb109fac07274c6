# SPDX-License-Identifier: BSD-3-Clause
"""Means over a run's bins, of which the last may be shorter and the warm-up may cut one."""

from __future__ import annotations

from typing import Any

import pytest

import linkweir
from linkweir.sweeps import Job, work
from linkweir.sweeps.job import read_run


def scenario(duration: str, rate: Any = "10Mbit", **keys: Any) -> dict[str, Any]:
    """A packet of 12 kbit every 3 ms, 4 Mbit/s."""
    return {
        "duration": duration,
        "link": {"rate": rate},
        "scheduler": {"policy": "fifo"},
        "class": [{"name": "all"}],
        "flow": [{"class": "all", "kind": "cbr", "rate": "4Mbit"}],
        **keys,
    }


def means(keys: dict[str, Any]) -> dict[str, float]:
    """Those of the link, as a run says and as a sweep keeps."""
    result = linkweir.run(keys)
    found: dict[str, float] = result.summary["link"]
    content = work(Job(number=1, identity="", text=result.scenario.resolved, seed=1, inputs=())).rows
    assert content is not None
    kept = read_run(content).rows.to_pylist()[0]
    assert {key: kept[key] for key in found} == found
    return found


def test_the_links_means_weigh_a_short_last_bin_by_its_length() -> None:
    # 667 packets begin and end in 2.001 s, none of them in the last millisecond, which is a bin of its own.
    found = means(scenario("2001ms"))
    assert found["used_bps"] == pytest.approx(667 * 12e3 / 2.001, rel=1e-12) == pytest.approx(4e6, rel=1e-12)
    assert found["capacity_bps"] == 10e6


def test_the_links_means_begin_inside_the_bin_that_the_warm_up_cuts() -> None:
    # 9 s of the first bin and 10 s of the second.
    rate = {"steps": [["0s", "4Mbit"], ["10s", "8Mbit"]]}
    found = means(scenario("20s", rate, interval="10s", warmup="1s"))
    assert found["capacity_bps"] == pytest.approx((9 * 4e6 + 10 * 8e6) / 19, rel=1e-12)


def test_one_bin_that_the_warm_up_cuts_has_a_mean() -> None:
    found = means(scenario("10s", interval="10s", warmup="1s"))
    assert found["capacity_bps"] == 10e6
    assert found["used_bps"] == pytest.approx(4e6, rel=1e-3)


def test_the_links_means_leave_the_warm_up_out() -> None:
    rate = {"steps": [["0s", "4Mbit"], ["2s", "8Mbit"]]}
    assert means(scenario("10s", rate, warmup="2s"))["capacity_bps"] == pytest.approx(8e6, rel=1e-12)


def test_a_beams_means_weigh_bins_as_the_links_do() -> None:
    # One terminal that is sent to for 10 s of 10.5 s, of which the last half second is a bin of its own.
    beam = scenario("10500ms", warmup="500ms")
    beam["link"] = {"beam": {"symbol_rate": "1MBd", "clear_sky_esn0_db": 10}}
    beam["flow"] = [{"class": "all", "kind": "greedy", "stop": "10s"}]
    found = linkweir.run(beam).summary["carrier"]
    # 20 packets that still wait at 10 s take at most 0.2 s more at 1.2 Mbit/s and above.
    assert 9.5 / 10 <= found["occupancy"] <= 9.7 / 10
    assert found["outage"] == 0.0
