# SPDX-License-Identifier: BSD-3-Clause
"""Result tables written by hand, in place of a run's."""

from __future__ import annotations

from linkweir.reproduce.figure import Row


class Fake:
    """Tables by name."""

    def __init__(self, **tables: list[Row]) -> None:
        self.tables = tables

    def rows(self, table: str) -> list[Row]:
        return self.tables[table]
