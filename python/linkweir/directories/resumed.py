# SPDX-License-Identifier: BSD-3-Clause
"""A directory of many runs, such as a sweep: one process at a time writes it, and an unfinished one is resumed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from linkweir.directories.parts import Parts
from linkweir.directories.provenance import REMOVING, OwnDirectory, read_provenance, writing
from linkweir.fault import DirectoryError


class ResumedDirectory(OwnDirectory, ABC):
    """A directory of many runs, locked until `release`.

    Args:
        path: where; one of the same runs that is there is resumed.
        facts: what its provenance says in addition to version, time and machine.
        force: an earlier directory of the same kind is overwritten instead.

    Raises:
        DirectoryError: it cannot be made or written, holds something else, or another process is writing it.
    """

    def __init__(self, path: Path, facts: dict[str, Any], *, force: bool) -> None:
        self.parts = Parts(path)
        self._lock: int | None = None
        with writing(path):
            if not path.exists() or path.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(path, self.KIND)
        try:
            earlier = None if force else _earlier(path, self.KIND)
            if earlier is None or not self._resumes(path, earlier, facts):
                super().__init__(path, facts, force=force)
            else:
                self.path, self._provenance, self._began = path, earlier, time.monotonic()
            with writing(path):
                self._prepare()
        except BaseException:
            self.release()
            raise

    @abstractmethod
    def _resumes(self, path: Path, earlier: dict[str, Any], facts: dict[str, Any]) -> bool:
        """Whether the directory is resumed, given the provenance that is there."""

    @abstractmethod
    def _prepare(self) -> None:
        """Writes what must be there before the first run."""

    def release(self) -> None:
        """Unlocks the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _earlier(path: Path, kind: str) -> dict[str, Any] | None:
    """The provenance of what is there, unless it is of another kind or being overwritten."""
    with contextlib.suppress(DirectoryError):
        provenance = read_provenance(path, kind)
        if provenance["status"] != REMOVING:
            return provenance
    return None


def _lock(path: Path, kind: str) -> int | None:
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
