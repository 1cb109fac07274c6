# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir init`: scenarios and a notebook to begin with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from importlib.abc import Traversable

_FIRST = "geo.toml"
_README = "README.md"


def init(folder: Path) -> str:
    """Writes the files of templates/start into a folder; returns what it wrote and the next command.

    In a checkout the templates are links to the repository's scenarios and notebooks, so that each file is kept once;
    a wheel has copies.
    """
    files = {folder / name: source for name, source in _files(resources.files("linkweir") / "templates" / "start")}
    if folder.exists() and not folder.is_dir():
        raise _refused(f"{folder} is a file, not a folder")
    for path in files:
        if path.exists() or path.is_symlink():
            raise _refused(f"{path} is there already, and nothing was written")
    for path, source in files.items():
        content = source.read_bytes()
        if path.name == _README:
            content = _with_paths(content.decode(), folder).encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(content)
        except OSError as error:
            raise _refused(f"{path}: cannot be written: {error.strerror}") from error
    written = "".join(f"{path}\n" for path in files)
    begin = f"linkweir run DIR/{_FIRST} --out runs/{Path(_FIRST).stem}\n"
    return f"{written}\n{folder / _README} says what to do with them. To begin with:\n\n{_with_paths(begin, folder)}"


def _refused(why: str) -> typer.BadParameter:
    return typer.BadParameter(f"{why}; name another folder, as in: linkweir init start", param_hint="DIR")


def _with_paths(text: str, folder: Path) -> str:
    """With the folder in place of DIR, as a shell takes it."""
    return re.sub(r"\bDIR/(\S+)", lambda found: shlex.quote(str(folder / found[1])), text)


def _files(folder: Traversable, within: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files of a folder and its folders, the page that explains them first."""
    for item in sorted(folder.iterdir(), key=lambda item: (item.name != _README, item.is_dir(), item.name)):
        name = f"{within}{item.name}"
        if item.is_dir():
            yield from _files(item, f"{name}/")
        else:
            yield name, item
