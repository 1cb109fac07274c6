# SPDX-License-Identifier: BSD-3-Clause
"""README.md shows what a run prints and what its plots show."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from command import REPOSITORY, SCENARIOS, on_a_terminal
from test_pictures import same_curves
from test_pictures import words as texts

README = (REPOSITORY / "README.md").read_text()
COLUMNS = 108
"""Width of the terminal whose output it shows."""


def words(text: str) -> list[str]:
    return text.split()


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    sys.path.insert(0, str(REPOSITORY / "docs/pictures"))
    try:
        return importlib.import_module("readme")
    finally:
        sys.path.pop(0)


def described(picture: str) -> str:
    """What a picture shows, for those who cannot see it."""
    found = re.search(rf'<img src="docs/images/{picture}" width="\d+" alt="([^"]*)">', README)
    assert found is not None, picture
    return found[1]


def figures(text: str) -> list[float]:
    """The numbers that stand alone, so not the one of ns-3.

    >>> figures("ns-3 takes 6.03 s and 5 Mbit/s")
    [6.03, 5.0]
    """
    return [float(number) for number in re.findall(r"(?<![-\w.])\d+(?:\.\d+)?(?![\w.]\d)", text)]


def test_the_run_shown_is_what_a_terminal_shows(tmp_path: Path) -> None:
    """Word by word, as a terminal breaks the lines where it likes; the bar of progress comes before the table."""
    (tmp_path / "scenarios").symlink_to(SCENARIOS)
    printed = on_a_terminal(COLUMNS, "run", "scenarios/lte-drive.toml", cwd=tmp_path, errors=True)
    shown = README.split("```text\n")[1].split("```")[0]
    assert words(shown) == words(printed)[-len(words(shown)) :]


def test_the_plot_of_a_guaranteed_rate_shows_what_is_said(pictures: ModuleType) -> None:
    reserved, link, under_pss, up_to, from_, to = figures(described("figure-6.svg"))
    assert (reserved, link) == (pictures.K_AF * (1 - pictures.EXPECTED_SHARE) * 20, 20)
    first, last = pictures.LOADS_MBPS[0], pictures.LOADS_MBPS[-1]
    for load in (first, 10, up_to):
        assert pictures.af_rate_mbps("pss", load) == pytest.approx(under_pss, abs=0.01)
    assert pictures.af_rate_mbps("pss", up_to + 1) < under_pss - 0.5
    assert pictures.af_rate_mbps("dwrr", first) == pytest.approx(from_, abs=0.01)
    assert pictures.af_rate_mbps("dwrr", last) == pytest.approx(to, abs=0.01)


def test_the_plot_of_speed_shows_what_was_measured(pictures: ModuleType) -> None:
    times = [round(row.wall_s, 2) for row in pictures.timed("many")]
    assert len(times) == 3
    assert figures(described("speed.svg")) == [100, 100, *times]


@pytest.mark.parametrize(("name", "content"), [("figure-6", "protection"), ("speed", "speed")])
def test_the_plots_are_those_of_the_present_values(
    name: str, content: str, pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = (pictures.IMAGES / f"{name}.svg").read_text()
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    pictures.draw(name, getattr(pictures, content), pictures.SIZE_INCHES)
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert same_curves(committed, drawn), "run: make pictures"
    assert texts(committed) == texts(drawn), "run: make pictures"
