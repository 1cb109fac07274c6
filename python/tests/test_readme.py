# SPDX-License-Identifier: BSD-3-Clause
"""README.md shows what a command prints; pictures and the words for them are of the present values on every page."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from types import ModuleType

import pytest
from command import REPOSITORY, SCENARIOS, on_a_terminal
from test_pictures import same_curves
from test_pictures import words as texts

sys.path.insert(0, str(REPOSITORY / "docs/pictures"))

import core
import draw as drawing

README = (REPOSITORY / "README.md").read_text()
RESULTS = (REPOSITORY / "docs/results.md").read_text()
COLUMNS = 80
"""Width of the terminal whose output it shows."""
MOST_WORDS = 700
ROLE = re.compile(r"^\* \*\*.*$", re.MULTILINE)


def words(text: str) -> list[str]:
    return text.split()


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return importlib.import_module("readme")


def described(picture: str, page: str = RESULTS) -> str:
    """What a picture shows, for those who cannot see it."""
    found = re.search(rf"!\[([^]]*)\]\([\w/.]*images/{picture}\)", page)
    assert found is not None, picture
    return found[1]


def figures(text: str) -> list[float]:
    """The numbers that stand alone, so not the one of ns-3.

    >>> figures("ns-3 takes 6.03 s and 5 Mbit/s")
    [6.03, 5.0]
    """
    return [float(number) for number in re.findall(r"(?<![-\w.])\d+(?:\.\d+)?(?![\w.]\d)", text)]


@pytest.mark.slow
def test_the_output_shown_is_what_a_terminal_shows(tmp_path: Path) -> None:
    """Word by word, as a terminal breaks the lines where it likes."""
    (tmp_path / "scenarios").symlink_to(SCENARIOS)
    (command,) = re.findall(r"^\.venv/bin/linkweir (compare .*)$", README, re.MULTILINE)
    printed = on_a_terminal(COLUMNS, *command.split(), cwd=tmp_path)
    shown = README.split("```text\n")[1].split("```")[0]
    assert len(words(shown)) > 100
    assert f" {' '.join(words(shown))} " in f" {' '.join(words(printed))} "


def test_it_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_readers_times_and_order_are_the_same_in_the_list_of_pages() -> None:
    readers = ROLE.findall(README)
    assert len(readers) == 5
    listed = (REPOSITORY / "docs/README.md").read_text()
    assert [line.replace("](docs/", "](") for line in readers] == ROLE.findall(listed)


def test_the_picture_of_a_fade_shows_what_is_said(pictures: ModuleType) -> None:
    seen = pictures.fade()
    start, end = seen.panels[0].shaded[0]
    fade = {
        panel.title: {
            curve.label: [y for x, y in zip(curve.x, curve.y, strict=True) if start + 5 <= x < end]
            for curve in panel.curves
        }
        for panel in seen.panels
    }
    from_, to, seconds, kept, fell, short_ms, long_s = figures(described("fade.svg", README))
    assert (from_, to, seconds) == (20, 4, end - start)
    rates, delays = fade.values()
    assert mean(rates["Linkweir's PSS"]) == pytest.approx(kept, abs=0.05)
    assert mean(rates["fq_codel"]) == pytest.approx(fell, abs=0.05)
    assert mean(rates["fifo"]) == pytest.approx(fell, abs=0.05)
    assert mean(delays["Linkweir's PSS"]) == pytest.approx(short_ms, abs=0.15)
    assert mean(delays["fq_codel"]) == pytest.approx(short_ms, abs=0.15)
    assert mean(delays["fifo"]) == pytest.approx(long_s * 1e3, abs=50)


def test_the_plot_of_a_guaranteed_rate_shows_what_is_said(pictures: ModuleType) -> None:
    reserved, link, least, most, under_pss, from_, to = figures(described("figure-6.svg"))
    assert (reserved, link) == (pictures.K_AF * (1 - pictures.EXPECTED_SHARE) * 20, 20)
    for load in (pictures.LOADS_MBPS[0], least, 10, most):
        assert pictures.af_rate_mbps("pss", load) == pytest.approx(under_pss, abs=0.01)
    assert pictures.af_rate_mbps("pss", most + 1) < under_pss - 0.5
    assert pictures.af_rate_mbps("dwrr", least) == pytest.approx(from_, abs=0.01)
    assert pictures.af_rate_mbps("dwrr", most) == pytest.approx(to, abs=0.01)


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


def test_the_picture_of_a_fade_is_that_of_the_present_values(
    pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = (pictures.IMAGES / "fade.svg").read_text()
    drawn = drawing.svg(pictures.fade().panels, pictures.FADE_INCHES, stacked=True)
    assert same_curves(committed, drawn), "run: make pictures"
    assert texts(committed) == texts(drawn), "run: make pictures"


def test_the_picture_of_the_core_has_every_host_on_every_page() -> None:
    assert core.PICTURE.read_text() == core.svg(), "run: make pictures"
    for host in core.HOSTS:
        assert f">{host.name}<" in core.svg()
        assert host.phrase in core.description()
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    shown = {}
    for name in listed.stdout.splitlines():
        text = (REPOSITORY / name).read_text()
        for words_for_it in re.findall(r"!\[([^]]*)\]\([^)]*core\.svg\)|<img[^>]*core\.svg[^>]*alt=\"([^\"]*)\"", text):
            shown[name] = "".join(words_for_it)
    assert len(shown) >= 2
    assert set(shown.values()) == {core.description()}, shown
