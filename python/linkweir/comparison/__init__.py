# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons: one scenario under several policies, with intervals, promises and a report."""

from __future__ import annotations

from linkweir.comparison.execute import compare
from linkweir.comparison.outcome import Comparison
from linkweir.comparison.promises import Promise
from linkweir.comparison.results import Verdict

__all__ = ["Comparison", "Promise", "Verdict", "compare"]
