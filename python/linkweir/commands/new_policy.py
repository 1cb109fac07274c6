# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir policies --new`: a policy of one's own to begin with."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import typer


def new_policy(path: Path) -> str:
    """Writes a policy in C or Python; returns how a scenario names it."""
    name = path.stem
    if path.suffix not in (".c", ".py"):
        raise typer.BadParameter(f"{path}: must end in .c or .py", param_hint="--new")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        message = f"{path}: the file's name is the policy's: use lower-case letters, digits and _, as in my_policy.c"
        raise typer.BadParameter(message, param_hint="--new")
    called = name if path.suffix == ".c" else "".join(word.capitalize() for word in name.split("_"))
    text = (resources.files("linkweir") / "templates" / f"policy{path.suffix}").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("NAME", called))
    except FileExistsError as error:
        raise typer.BadParameter(f"{path} is there already; give another name", param_hint="--new") from error
    except OSError as error:
        raise typer.BadParameter(f"{path}: cannot be written: {error.strerror}", param_hint="--new") from error
    key = f'c = "{path.name}"' if path.suffix == ".c" else f'python = "{path.name}:{called}"'
    return (
        f"{path}: earliest deadline first, to begin with. A scenario in the same folder uses it with\n\n"
        f'[scheduler]\npolicy = {{ {key} }}\n\nand each [[class]] may have a deadline, such as deadline = "20ms".\n'
    )
