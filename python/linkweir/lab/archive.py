# SPDX-License-Identifier: BSD-3-Clause
"""Archives a kernel unpacks when it starts (cpio, "newc"): files from bytes, owned by root, without times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_FOLDER, _FILE, _LINK = 0o040000, 0o100000, 0o120000


@dataclass(frozen=True)
class Entry:
    """A file, a folder (content None) or a symbolic link."""

    path: str
    content: bytes | None = None
    mode: int = 0o755
    link: bool = False


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive; several, one after the other, are unpacked like one."""
    out = bytearray()
    folders: set[str] = set()
    number = 0
    for entry in entries:
        parts = entry.path.strip("/").split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + (entry.content is None))]
        for folder in above:
            if folder not in folders:
                folders.add(folder)
                number += 1
                _add(out, number, folder, _FOLDER | 0o755, b"")
        if entry.content is not None:
            number += 1
            kind = _LINK if entry.link else _FILE
            _add(out, number, "/".join(parts), kind | entry.mode, entry.content)
    _add(out, 0, "TRAILER!!!", 0, b"")
    return bytes(out) + b"\0" * (-len(out) % 512)


def _add(out: bytearray, number: int, path: str, mode: int, content: bytes) -> None:
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
    out += b"\0" * (-len(out) % 4)
    out += content
    out += b"\0" * (-len(out) % 4)
