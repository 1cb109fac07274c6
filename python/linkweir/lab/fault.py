# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the laboratory."""

from __future__ import annotations

from linkweir import _native
from linkweir.fault import ExecutorError


class LaboratoryError(ExecutorError):
    """The laboratory cannot be built, or a run in it did not finish; the message says why and what to do."""


def unfit(key: str, value: object, message: str) -> _native.ScenarioError:
    """The error of a valid scenario that real kernels cannot run."""
    fault = _native.ScenarioError(f"{key} = {value}: {message}")
    fault.file, fault.line, fault.key, fault.value, fault.message = None, None, key, str(value), message
    return fault
