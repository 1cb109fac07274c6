# SPDX-License-Identifier: BSD-3-Clause
"""All exceptions of the package have one base; each also derives from the built-in exception that it replaced."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil

import pytest
from command import SMALL
from command import linkweir as command

import linkweir
from linkweir import _native
from linkweir.commands import cli

BUILT_IN = {
    "CallsError": ValueError,
    "CommandEnded": SystemExit,
    "DirectoryError": Exception,
    "EndsError": Exception,
    "Error": Exception,
    "ExecutorError": Exception,
    "OptionError": ValueError,
    "Interrupted": KeyboardInterrupt,
    "KeyPathError": ValueError,
    "LaboratoryError": Exception,
    "PlanError": ValueError,
    "RunError": RuntimeError,
    "ScenarioError": ValueError,
    "SweepInterrupted": KeyboardInterrupt,
    "TableError": KeyError,
}


def exceptions() -> dict[str, type[BaseException]]:
    """Those that modules of the package define, but for private ones, which do not leave their module."""
    modules = (module.name for module in pkgutil.walk_packages(linkweir.__path__, "linkweir."))
    return {
        name: value
        for module in modules
        if not module.endswith("__main__")
        for name, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__.startswith("linkweir")
        if not name.startswith("_")
    }


def test_every_error_is_one_of_the_package_and_a_built_in_one() -> None:
    found = exceptions()
    assert sorted(found) == sorted(BUILT_IN)
    for name, kind in found.items():
        assert issubclass(kind, linkweir.Error) == issubclass(kind, Exception), name
        assert issubclass(kind, BUILT_IN[name]), name


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"CommandEnded", "Interrupted", "SweepInterrupted"}))
def test_every_error_becomes_an_exit_code_and_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = exceptions()[name]

    def fail(**_: object) -> None:
        raise kind(*("made up",) * (3 if name == "OptionError" else 1))

    monkeypatch.setattr(cli, "app", fail)
    done = command("policies")
    assert done.returncode in (1, 2)
    assert "made up" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_scenario_error_made_in_python_has_its_attributes() -> None:
    error = linkweir.ScenarioError("duration is missing")
    assert (error.file, error.line, error.key, error.value, error.message) == (None, None, "", "", "")


def test_ctrl_c_is_no_error() -> None:
    for kind in (linkweir.Interrupted, linkweir.SweepInterrupted):
        assert not issubclass(kind, Exception)


def test_what_the_native_module_raises_is_the_package_s() -> None:
    assert _native.ScenarioError is linkweir.ScenarioError
    assert _native.RunError is linkweir.RunError
    with pytest.raises(linkweir.Error) as caught:
        linkweir.Scenario.parse(SMALL.replace('"2Mbit"', "2"), path="mine.toml")
    assert isinstance(caught.value, ValueError)
    assert type(caught.value).__module__ == "linkweir"
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, linkweir.ScenarioError)
    assert (again.line, again.key, again.value) == (4, "link.rate", "2")
