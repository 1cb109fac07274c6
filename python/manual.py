# SPDX-License-Identifier: BSD-3-Clause
"""Writes the manual page linkweir(1), made of the help of all commands; `make manuals` runs it.

The folder `wheel` beside this file is copied into a wheel as it is, so `man linkweir` works after `pip install`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from linkweir.commands import cli

PAGE = Path(__file__).parent / "wheel/data/share/man/man1/linkweir.1"

_HEAD = r""".\" SPDX-License-Identifier: BSD-3-Clause
.\" Made of the help of linkweir by make manuals; do not edit by hand.
.TH LINKWEIR 1 2026-11-23 Linkweir
.SH NAME
linkweir \- simulate packet schedulers on links whose capacity changes
.SH SYNOPSIS
.B linkweir
.I COMMAND
[\fIARGUMENTS\fR] [\fIOPTIONS\fR]
.SH DESCRIPTION
.B linkweir
simulates packet schedulers on links whose capacity changes, compares them, reproduces published results, and runs the
same scenarios on real kernels. A scenario is a file in TOML;
.B linkweir init
writes some to begin with.
.SH COMMANDS
"""
_TAIL = r""".SH FILES
.TP
.I runs/NAME
results of a run: tables in Parquet, figures, and report.html, which any browser opens
.SH "EXIT STATUS"
0 done, 1 failed (also interrupted runs and reruns that differ), 2 bad input.
.SH "SEE ALSO"
.BR linkweir\-gateway (8),
.BR tc\-pss (8)
"""


def page() -> str:
    """The page."""
    return _HEAD + "".join(_command(path, command) for path, command in commands()) + _TAIL


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that start it."""
    top: Any = typer.main.get_command(cli.app)
    context = typer.Context(top, info_name="linkweir")
    for name in top.list_commands(context):
        package = cli._PACKAGES.get(name)
        if package is None:
            yield name, top.get_command(context, name)
        else:
            yield from _below(typer.main.get_command(importlib.import_module(package[0]).app), name)


def _below(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group."""
    if not hasattr(command, "list_commands"):
        yield words, command
        return
    if command.invoke_without_command:
        yield words, command
    context = typer.Context(command, info_name=words)
    for name in command.list_commands(context):
        yield from _below(command.get_command(context, name), f"{words} {name}")


def _command(words: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [
        param for param in command.params if param.param_type_name == "option" and not param.hidden and param.help
    ]
    line = "".join(f"\n.I {_value(param)}" if param.required else f"\n[\\fI{_value(param)}\\fR]" for param in arguments)
    line += "\n[\\fIOPTIONS\\fR]" if options else ""
    text = f".SS {_escaped(words)}\n.B linkweir {_escaped(words)}{line}\n"
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        text += f".PP\n{_escaped(paragraph)}\n"
    for param in arguments:
        text += f".TP\n.I {_value(param)}\n{_escaped(param.help or '')}\n"
    for param in options:
        value = "" if param.is_flag else f" \\fI{_value(param)}\\fR"
        names = _escaped(", ".join(sorted(param.opts, key=len)))
        text += f".TP\n\\fB{names}\\fR{value}\n{_escaped(param.help)}{_default(param)}\n"
    return text


def _value(param: Any) -> str:
    return _escaped(param.metavar or (param.name or "").upper())


def _default(param: Any) -> str:
    shown = param.show_default and param.default not in (None, False, "") and not callable(param.default)
    return f" (default {_escaped(str(param.default))})" if shown else ""


def _escaped(text: str) -> str:
    """As roff shows it letter by letter, in one line."""
    plain = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
