# SPDX-License-Identifier: BSD-3-Clause
"""Temporary folders that go with their process, even if it is killed.

A folder is locked as long as it is used, and the kernel drops the lock when the process ends, however it ends. Each
process removes what earlier ones left before it makes its first folder: folders of its user with a name that only this
module gives, and without a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "linkweir-scratch-"
_NAME = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A new folder in the temporary directory, removed at the end."""
    _remove_abandoned(tempfile.gettempdir())
    path, held = _make()
    try:
        yield path
    finally:
        # Locked until it is gone, so that no other process removes it at the same time.
        try:
            shutil.rmtree(path)
        finally:
            os.close(held)


def _make() -> tuple[Path, int]:
    """A locked folder, and the descriptor that holds the lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks: then nobody removes it either
            fcntl.flock(held, fcntl.LOCK_EX)
        # Another process may have found it before it was locked.
        if path.exists():
            return path, held
        os.close(held)


@functools.cache
def _remove_abandoned(folder: str) -> None:
    """Removes what killed processes left there, once."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                _remove_unless_used(Path(entry.path))


def _remove_unless_used(path: Path) -> None:
    with contextlib.suppress(OSError):
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(held)
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
        finally:
            os.close(held)
