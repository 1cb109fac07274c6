# SPDX-License-Identifier: BSD-3-Clause
"""The examples in the docstrings of the package. Those of `own` run in test_own_policies.py, with what they need."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import linkweir

MODULES = sorted(found.name for found in pkgutil.walk_packages(linkweir.__path__, "linkweir."))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith(("templates", "__main__", "own"))])
def test_the_examples_in_docstrings_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
