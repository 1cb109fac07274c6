# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the laboratory."""

from __future__ import annotations

from linkweir.fault import ExecutorError


class LaboratoryError(ExecutorError):
    """The laboratory cannot be built, or a run in it did not finish; the message says why and what to do."""
