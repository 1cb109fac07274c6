# SPDX-License-Identifier: BSD-3-Clause
"""Options that contradict each other are reported as they were typed, and one scenario is not taken for several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import SMALL
from typer.testing import CliRunner

import linkweir
from linkweir import Scenario
from linkweir.commands.plan import app

ONE: dict[str, Any] = {
    "duration": "1s",
    "link": {"rate": "1Mbit"},
    "scheduler": {"policy": "fifo"},
    "class": [{"name": "all"}],
    "flow": [{"class": "all", "kind": "greedy"}],
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--rate", "5Mbit", "--trace", "x.csv", "--longest-fade", "5s"],
            "--longest-fade 5s --trace x.csv: give only one of --longest-fade, --trace",
        ),
        (
            ["--rate", "5Mbit", "--memory", "2s", "--margin", "3", "--trace", "x.csv"],
            "--margin 3 --memory 2s: give only one of --margin, --memory",
        ),
        (
            ["--rate", "15Mbit", "--rate", "10Mbit"],
            "--rate 15Mbit --rate 10Mbit: are 25Mbit together, more than the link's 20Mbit: reserve less",
        ),
        (
            ["--share", "0.75", "--share", "50%"],
            "--share 0.75 --share 50%: are 25Mbit together, more than the link's 20Mbit: reserve less",
        ),
        (
            ["--rate", "5Mbit", "--rate", "1Mbit", "--share", "20%"],
            "--rate 5Mbit --rate 1Mbit --share 20%: give exactly one of --rate, --share, --weights",
        ),
        ([], "give exactly one of --rate, --share, --weights"),
        (
            ["--rate", "4Mbit", "--lr", "100kbit", "--lm", "50kbit"],
            '--lm = "50kbit": must be above lr, 100kbit: raise --lm or lower --lr',
        ),
        (
            ["--rate", "4Mbit", "--memory", "100ms", "--lm", "50kbit"],
            '--lm = "50kbit": must be above lr, 400kbit: raise --lm or lower --memory, which sets it',
        ),
    ],
)
def test_a_plan_s_refusal_shows_the_words_typed(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["pss", "--link", "20Mbit", *words])
    assert (done.exit_code, done.stderr) == (2, f"linkweir plan pss: {message}\n")


@pytest.mark.parametrize("one", [ONE, Scenario.parse(SMALL), "small.toml", Path("small.toml")])
def test_one_scenario_is_not_taken_for_several(one: Any) -> None:
    with pytest.raises(TypeError, match=r"scenarios: is one scenario, a \w+; run it with run\(...\), or give a list"):
        linkweir.run_many(one)
    many: Any = [ONE]
    with pytest.raises(TypeError, match="not a list; run_many takes several"):
        linkweir.run(many)
    assert len(linkweir.run_many([ONE])) == 1
