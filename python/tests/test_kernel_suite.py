# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the kernel suite: parts that need no guest."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from command import REPOSITORY


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(REPOSITORY / "kernel/tests")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("suite", ["kernels", "router"], indirect=True)
def test_a_program_of_parts_runs_without_words(suite: ModuleType) -> None:
    assert vars(suite.arguments([]))["parts" if suite.__name__ == "kernels" else "systems"] == []
