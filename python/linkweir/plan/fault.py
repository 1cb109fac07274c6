# SPDX-License-Identifier: BSD-3-Clause
"""How the planner refuses an input."""

from __future__ import annotations

from linkweir.fault import Error


class Fault(Error, ValueError):  # noqa: N818 - named as the scenario parser names it
    """An input that cannot be used: which one, what was given, what is allowed."""

    def __init__(self, key: str, value: object, message: str) -> None:
        given = f' = "{value}"' if value != "" else ""
        super().__init__(f"{key}{given}: {message}" if key else message)
        self.key = key
        self.value = value
        self.message = message
