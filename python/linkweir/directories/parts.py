# SPDX-License-Identifier: BSD-3-Clause
"""Results of single runs, kept until all are there, so that an interrupted sweep does not repeat them.

A part gets its name, which is the SHA-256 of all that its run depends on, when it is whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from linkweir.fault import DirectoryError

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
        write_bytes(self._path(identity), content)

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


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file so that it is either missing or whole, even if the process is killed."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def lock(path: Path, kind: str) -> int | None:
    """Locks a directory until the descriptor is closed or this process ends, even by a kill.

    On file systems without locks nothing is locked, and None is returned.

    Raises:
        DirectoryError: another process has locked it.
    """
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN):
            raise DirectoryError(
                f"{path}: another process is writing this {kind}; wait for it or choose another --out"
            ) from error
        return None
    return held
