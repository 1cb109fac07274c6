# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import command
import pytest
from browser import MISSING, PROGRAM

LONGEST_FIRST = (
    "test_reproduce_runs",
    "test_deploy",
    "test_laboratory",
    "test_sweep",
    "test_wheel",
    "test_docs",
    "test_tutorials",
    "test_bounds_network",
    "test_crash",
    "test_compare",
)
"""The files that take longest. Begun last, one of them would keep a single process busy at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if PROGRAM is None and item.get_closest_marker("browser"):
        pytest.skip(f"NOT SEEN BY A BROWSER: {MISSING}")


@pytest.fixture(autouse=True)
def interrupts_arrive() -> Iterator[None]:
    """A shell that starts the tests in the background may have them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file that runs in milliseconds."""
    path = tmp_path / "small.toml"
    path.write_text(command.SMALL)
    return path


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are empty: those of a page take seconds to draw, and a test of runs and data looks at none."""
    for name in ("linkweir.panels.plot.document", "linkweir.comparison.plot.document"):
        monkeypatch.setattr(name, lambda draw, form="svg": b"<svg/>")
