# SPDX-License-Identifier: BSD-3-Clause
"""The errors of the package. Exceptions that carry a result are defined with it, in result.py and sweeps/outcome.py."""

from __future__ import annotations


class Error(Exception):
    """Base class of all errors. Ctrl-C (`Interrupted`, `SweepInterrupted`) is no error but a `KeyboardInterrupt`."""

    __module__ = "linkweir"


class ScenarioError(Error, ValueError):
    """A scenario, or a file it names, is wrong; the message names file, line, key and value, and says what to do.

    Attributes:
        file: the file; None when it came from none.
        line: its line, from 1; None when the error concerns the whole file.
        key: the wrong key, such as ``class[1].rate``; empty when the error is not about a key.
        value: the value as written; empty when there is none.
        message: what is wrong, what is allowed and what to do.
    """

    __module__ = "linkweir"

    file: str | None = None
    line: int | None = None
    key: str = ""
    value: str = ""
    message: str = ""


def unfit(key: str, value: object, message: str) -> ScenarioError:
    """The error of a valid scenario that cannot be used for something."""
    shown = f" = {value}" if value != "" else ""
    error = ScenarioError(f"{key}{shown}: {message}")
    error.key, error.value, error.message = key, str(value), message
    return error


class RunError(Error, RuntimeError):
    """A run failed although its scenario is valid."""

    __module__ = "linkweir"


class TableError(Error, KeyError):
    """There is no table of this name; the message says which there are."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show it in quotes


class DirectoryError(Error):
    """A directory cannot be created, read or written, or has the wrong content; the message says why and what to do."""


class PlanError(Error, ValueError):
    """A plan of a sweep is wrong; the message names file, key and value, and says why and what to do."""


class ExecutorError(Error):
    """The sweep's executor has no workers, or lost them; the message says why and what to do."""
