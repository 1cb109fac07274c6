# SPDX-License-Identifier: BSD-3-Clause
"""The end of a command of linkweir that passes on the exit code of another one."""

from __future__ import annotations


class CommandEnded(SystemExit):
    """The command that was run has ended.

    Args:
        code: its exit code, 0 .. 255.
    """

    code: int

    def __init__(self, code: int) -> None:
        super().__init__(code)
