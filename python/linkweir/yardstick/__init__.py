# SPDX-License-Identifier: BSD-3-Clause
"""The yardstick: policies on a fixed set of links and loads, which this package brings along."""

from __future__ import annotations

from linkweir.yardstick.cases import CASES, LOADS, Case
from linkweir.yardstick.execute import measure
from linkweir.yardstick.outcome import Yardstick

__all__ = ["CASES", "LOADS", "Case", "Yardstick", "measure"]
