# SPDX-License-Identifier: BSD-3-Clause
"""The package's own documentation names all that is public, and names of functions hide no module."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import linkweir
from linkweir import sweeps


def documented() -> list[str]:
    """The names that the docstring lists, each on a line with what it is."""
    return re.findall(r"^- `(\w+)`: \S.*[.)]$", inspect.getdoc(linkweir) or "", re.MULTILINE)


def test_the_docstring_has_a_line_for_every_public_name() -> None:
    assert sorted(documented()) == sorted(set(linkweir.__all__) - {"__version__"})
    assert "`__version__`" in (linkweir.__doc__ or "")


def test_no_function_hides_a_module() -> None:
    for module in pkgutil.iter_modules(linkweir.__path__):
        found = getattr(linkweir, module.name, None)
        assert found is None or inspect.ismodule(found), module.name


def test_the_parts_of_a_sweep_are_also_found_under_their_earlier_name() -> None:
    """A process of its own, in which nothing was imported before."""
    words = (
        "from linkweir.sweep import LocalProcesses, Plan, run_plan; import linkweir; assert callable(linkweir.sweep)"
    )
    subprocess.run([sys.executable, "-c", words], check=True)
    assert importlib.import_module("linkweir.sweep") is sweeps
    assert callable(linkweir.sweep)


def test_no_class_of_a_sweep_is_another_one_under_its_earlier_name() -> None:
    """Else `except` and `isinstance` would miss what the other name made."""
    words = """
import importlib, pkgutil
for module in pkgutil.iter_modules(importlib.import_module("linkweir.sweep").__path__):
    earlier, present = (importlib.import_module(f"linkweir.{name}.{module.name}") for name in ("sweep", "sweeps"))
    classes = {name: value for name, value in vars(present).items() if isinstance(value, type)}
    print(module.name, [name for name, value in classes.items() if vars(earlier)[name] is not value])
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "plan []" in lines
    assert [line for line in lines if not line.endswith("[]")] == []
