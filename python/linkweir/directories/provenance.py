# SPDX-License-Identifier: BSD-3-Clause
"""The common part of all directories of results: names of files, files written whole, and provenance.json.

``status`` of provenance.json is ``running`` until everything is written, then ``complete``, ``interrupted`` or
``failed``, and ``removing`` while it is overwritten; it changes by renaming a whole file. A run that was killed says
``running`` for ever and is never read as a result.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from linkweir.directories.build import build
from linkweir.fault import DirectoryError

PROVENANCE = "provenance.json"
SCENARIO = "scenario.toml"
SUMMARY = "summary.json"
REPORT = "report.html"
RESULTS = "results"
FIGURES = "figures"
INPUTS = "inputs"
REMOVING = "removing"
"""Status of an earlier result that is being overwritten; treated as absent."""
_FORMAT = 1


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces a file as a whole: a killed process leaves the old one or the new one."""
    part = path.with_name(f".{path.name}.part")
    try:
        opened = part.open("wb")
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, str(path)) from fault  # the user does not know the other name
    with opened as file:
        # A file name that is not UTF-8 has surrogates, which JSON may hold as escapes.
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())  # before the renaming, or a power cut may leave the new name with no content
    try:
        part.replace(path)
    except OSError as fault:
        part.unlink()
        raise OSError(fault.errno, fault.strerror, str(path)) from fault


def dump(value: object) -> str:
    """JSON as people read it; never NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def utc_now() -> str:
    """The present time, UTC, ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def input_facts(source: str, content: bytes) -> dict[str, Any]:
    """What provenance.json says of an input file: where it came from, and its content's SHA-256 and size."""
    return {"source": source, "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}


def free_directory(name: str) -> Path:
    """`runs/NAME`, or with a number behind it the first that is not there."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    number, path = 1, Path("runs") / stem
    while path.exists():
        number += 1
        path = Path("runs") / f"{stem}-{number}"
    return path


def _cut_off(entry: Path) -> bool:
    """Whether a file is what a killed process of ours had only partly written."""
    return entry.name.startswith(".") and entry.name.endswith(".part")


def read_provenance(directory: Path, kind: str = "run") -> dict[str, Any]:
    """The provenance of the run (or the reproduction, or the sweep) in a directory.

    Raises:
        DirectoryError: it is no such directory.
    """
    try:
        provenance = json.loads((directory / PROVENANCE).read_text(encoding="utf-8"))
    except OSError as error:
        raise DirectoryError(f"{directory}: is not a run directory ({PROVENANCE}: {error.strerror})") from error
    except ValueError as error:
        raise DirectoryError(f"{directory}: {PROVENANCE} is damaged ({error})") from error
    if not isinstance(provenance, dict) or "linkweir" not in provenance or "status" not in provenance:
        raise DirectoryError(f"{directory}: {PROVENANCE} was not written by linkweir")
    if provenance.get("kind", "run") != kind:
        raise DirectoryError(f"{directory}: holds a {provenance['kind']}, not a {kind}")
    return provenance


def kind_of(directory: Path) -> str:
    """Kind of the results in a directory; ``run`` if none is noted."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return str(json.loads((directory / PROVENANCE).read_text(encoding="utf-8")).get("kind", "run"))
    return "run"


@contextlib.contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turns an error of the operating system while writing into a `DirectoryError`."""
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        why = error.strerror or error
        raise DirectoryError(
            f"{where}: cannot be written: {why}; choose another directory or repair this one"
        ) from error


class OwnDirectory:
    """A directory of results being written: made before the work, so that one that cannot be is refused before any.

    Args:
        path: where; it may exist if it is empty.
        force: an earlier directory of the same kind is overwritten.
        facts: what its provenance says in addition to version, time and machine.

    Raises:
        DirectoryError: the directory cannot be made or written, or holds something.
    """

    KIND = ""
    OURS: tuple[str, ...] = ()
    """Patterns of the names of all that is written into it."""

    def __init__(self, path: Path, facts: dict[str, Any], *, force: bool) -> None:
        self.path = path
        self._began = time.monotonic()
        with writing(path):
            if path.exists() and (not path.is_dir() or not all(map(_cut_off, path.iterdir()))):
                self._clear(force=force)
            path.mkdir(parents=True, exist_ok=True)
            self._provenance = self._known() | facts
            self._note()  # before anything else, so that leftovers are recognised as ours

    def _known(self) -> dict[str, Any]:
        return {
            **build(),
            "kind": self.KIND,
            "format": _FORMAT,
            "status": "running",
            "started_utc": utc_now(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "pyarrow": _version("pyarrow"),
            "matplotlib": _version("matplotlib"),
            "command": sys.argv,
        }

    def _clear(self, *, force: bool) -> None:
        if not self.path.is_dir():
            raise DirectoryError(f"{self.path}: is not a directory; choose another --out")
        try:
            provenance = read_provenance(self.path, self.KIND)
        except DirectoryError as fault:
            message = f"{self.path}: is not empty and is not an earlier {self.KIND}; choose another --out"
            raise DirectoryError(message) from fault
        if not force and provenance["status"] != REMOVING:
            raise DirectoryError(
                f"{self.path}: holds an earlier {self.KIND}; choose another --out or overwrite it with --force"
            )
        ours = [found for name in self.OURS for found in self.path.glob(name)]
        known = {PROVENANCE, *(found.name for found in ours)}
        rest = sorted(entry.name for entry in self.path.iterdir() if entry.name not in known and not _cut_off(entry))
        if rest:
            raise DirectoryError(
                f"{self.path}: also holds {rest[0]}, which linkweir did not write; choose another --out"
            )
        # Written before anything is removed: if this stops half-way, the rest is no result but is recognised as ours.
        write_whole(self.path / PROVENANCE, dump(provenance | {"status": REMOVING}))
        for target in ours:
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _note(self, **changes: Any) -> None:
        write_whole(self.path / PROVENANCE, dump(self._provenance | changes))
        self._provenance.update(changes)  # after it is written: a disk that is full leaves the status as it was

    def fail(self, error: BaseException) -> None:
        """Records that the work ended without a result, unless it is complete already."""
        if self._provenance["status"] == "complete":
            return
        with contextlib.suppress(OSError):
            self._note(status="failed", error=str(error) or type(error).__name__, wall_s=self._wall_s())

    def _wall_s(self) -> float:
        return round(time.monotonic() - self._began, 3)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
