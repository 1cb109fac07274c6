# SPDX-License-Identifier: BSD-3-Clause
"""Results of single runs, kept until all are there, so that an interrupted sweep does not repeat them.

A part gets its name, which is the SHA-256 of all that its run depends on, when it is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from linkweir.directories.provenance import write_whole

PARTS = "parts"
Content = TypeVar("Content")


class Parts:
    """The folder `parts` of a directory.

    Args:
        directory: where it is, or will be.
    """

    def __init__(self, directory: Path) -> None:
        self._folder = directory / PARTS

    def make(self) -> None:
        """Makes the folder, if it is not there."""
        self._folder.mkdir(exist_ok=True)

    def add(self, identity: str, content: bytes) -> None:
        """Keeps the result of a run."""
        write_whole(self._path(identity), content)

    def read(self, identity: str, decode: Callable[[bytes], Content]) -> Content | None:
        """The result of a run, if it is there and `decode` does not refuse it with a ValueError."""
        try:
            return decode(self._path(identity).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def tidy(self) -> None:
        """Removes files that were only partly written."""
        for cut_off in self._folder.glob(".*.part"):
            cut_off.unlink()

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, identity: str) -> Path:
        return self._folder / f"{identity}.arrow"
