# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one HTML file with charts, tables and how to repeat it."""

from __future__ import annotations

from linkweir.report.columns import (
    CLASS_COLUMNS,
    COMPLETION_COLUMNS,
    LINK_COLUMNS,
    VIDEO_COLUMNS,
    VOICE_COLUMNS,
    class_rows,
    link_rows,
    number,
    voice_rows,
)
from linkweir.report.figures import write_figures
from linkweir.report.page import class_table, write_report, write_report_with_knobs

__all__ = [
    "CLASS_COLUMNS",
    "COMPLETION_COLUMNS",
    "LINK_COLUMNS",
    "VIDEO_COLUMNS",
    "VOICE_COLUMNS",
    "class_rows",
    "class_table",
    "link_rows",
    "number",
    "voice_rows",
    "write_figures",
    "write_report",
    "write_report_with_knobs",
]
