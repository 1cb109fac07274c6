# SPDX-License-Identifier: BSD-3-Clause
"""What the charts of a run show, as numbers: the report and the figures for papers draw the same panels.

The crate `linkweir-panels` computes them, for pages in a browser too.
"""

from __future__ import annotations

from linkweir.panels.panel import Line, Panel
from linkweir.panels.panels import SHOWN, Panels

__all__ = ["SHOWN", "Line", "Panel", "Panels"]
