# SPDX-License-Identifier: BSD-3-Clause
"""Reference pages of the site that are made from the sources: Python, the command line, policies, the C contract."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import headers
import typer

import linkweir
from linkweir.commands import cli
from linkweir.scenarios.policy import Policy

MODULES = ("delays", "own", "quality", "sweeps", "traces")
"""Modules that the page of the Python package shows with all that is public in them."""
POLICY_PAGES = "docs/reference/policies"


def write(into: Path) -> None:
    """Writes all pages into a folder."""
    into.mkdir(parents=True)
    pages = {"python": python(), "command-line": command_line(), "policies": policies()}
    for name, text in pages.items():
        (into / f"{name}.md").write_text(text, encoding="utf-8")
    (into / "contract.rst").write_text(headers.page(), encoding="utf-8")


def write_policies(folder: Path) -> None:
    """Adds to the pages of the policies the tables of their parameters, and a page that lists them.

    Args:
        folder: has a copy of the repository's page of each policy.
    """
    known = {policy.name for policy in linkweir.policies()}
    pages = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")) if path.stem != "index"
    }
    others = {name: _first_sentence(text) for name, text in pages.items() if name not in known}
    (folder / "index.md").write_text(policy_index(others), encoding="utf-8")
    for policy in linkweir.policies():
        page = folder / f"{policy.name}.md"
        tables = "\n".join(parameters(policy))
        page.write_text(f"{page.read_text(encoding='utf-8').rstrip()}\n\n## Parameters\n\n{tables}", encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table in Markdown.

    >>> print(table(["a", "b"], [["1|2", "3"]]))
    | a | b |
    |---|---|
    | 1\|2 | 3 |
    """
    lines = [head, *rows]
    shown = ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines]
    return "\n".join([shown[0], "|" + "---|" * len(head), *shown[1:]])


# --- Python ---------------------------------------------------------------------------------------------------------


def python() -> str:
    """The public names of the package, from their docstrings."""
    names = [name for name in linkweir.__all__ if name != "__version__" and name not in MODULES]
    functions = [name for name in names if inspect.isroutine(getattr(linkweir, name))]
    errors = [name for name in names if name not in functions and issubclass(getattr(linkweir, name), BaseException)]
    classes = [name for name in names if name not in (*functions, *errors)]
    parts = [
        "# Python package\n",
        "`import linkweir` gives all of this. Tables are `pyarrow.Table`; times are in seconds and rates in bit/s, as "
        "the names of columns say. Examples run as tests.\n",
        _directives("Functions", functions, "autofunction"),
        _directives("Classes", classes, "autoclass", ":members:"),
        _directives("Errors", errors, "autoexception", ":members:", ":show-inheritance:"),
        "## Modules\n",
    ]
    for name in MODULES:
        above = ", ".join(sorted(set(names) & set(getattr(importlib.import_module(f"linkweir.{name}"), "__all__", ()))))
        lines = [
            f".. automodule:: linkweir.{name}",
            "   :members:",
            *([f"   :exclude-members: {above}"] if above else []),
        ]
        parts.append(f"### linkweir.{name}\n\n```{{eval-rst}}\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def _directives(title: str, names: Iterable[str], directive: str, *options: str) -> str:
    lines = [f"## {title}\n", "```{eval-rst}"]
    for name in names:
        lines += [f".. {directive}:: linkweir.{name}", *(f"   {option}" for option in options), ""]
    return "\n".join([*lines, "```", ""])


# --- Command line ---------------------------------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments and options, from the declarations that `--help` shows."""
    top: Any = typer.main.get_command(cli.app)
    context = typer.Context(top, info_name="linkweir")
    parts = [
        "# Command line\n",
        "`linkweir COMMAND --help` shows the same in a terminal. Exit codes: 0 done, 1 failed or interrupted, 2 bad "
        "input.\n",
    ]
    for name in sorted(top.list_commands(context)):
        command = _loaded(name) or top.get_command(context, name)
        parts += _commands(f"linkweir {name}", command)
    return "\n".join(parts)


def _loaded(name: str) -> Any:
    if name not in cli._PACKAGES:
        return None
    return typer.main.get_command(importlib.import_module(cli._PACKAGES[name][0]).app)


def _commands(words: str, command: Any) -> Iterator[str]:
    """A command, and those below it."""
    if command.hidden:
        return
    yield f"## {words}\n"
    yield _plain(inspect.cleandoc(command.help or command.short_help or "")) + "\n"
    rows = [_parameter_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [row for row in rows if row[0] != "`--help`, `-h`"]
    if rows:
        yield table(["argument or option", "value", "default", "meaning"], rows) + "\n"
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(f"{words} {name}", below)


def _parameter_row(parameter: Any) -> list[str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    is_option = parameter.param_type_name == "option"
    if not is_option:
        names = [(parameter.metavar or parameter.name).strip("{}").upper()]
    shown = ", ".join(f"`{name}`" for name in names)
    switch = getattr(parameter, "is_flag", False)
    value = "" if switch else f"`{parameter.metavar or parameter.name.upper()}`" if is_option else ""
    default = parameter.default
    written = "" if default in (None, False, (), []) or callable(default) or switch else f"`{default}`"
    if parameter.required:
        written = "required"
    return [shown, value, written, _plain(parameter.help or "")]


def _plain(text: str) -> str:
    """Help texts are for terminals: blanks and line ends there mean nothing here, and `<` is no tag."""
    return text.replace("\b\n", "").replace("<", "&lt;").replace("[bold]", "**").replace("[/bold]", "**")


# --- Policies -------------------------------------------------------------------------------------------------------


def policies() -> str:
    """Every policy's parameters, from the tables of the core."""
    parts = [
        "# Parameters of the policies\n",
        "The core declares each parameter once, and these tables show it. `linkweir policies NAME` does, too.\n",
    ]
    for policy in linkweir.policies():
        page = f"[Its page](../{POLICY_PAGES}/{policy.name}.md) says what it is for."
        parts += [f"## {policy.name}\n", f"{_does(policy)} {page}\n", *parameters(policy)]
    return "\n".join(parts)


def policy_index(others: Mapping[str, str]) -> str:
    """What each policy does, in a line; the pages are below it in the list of pages.

    Args:
        others: policies that only the simulator has, and what they do.
    """
    found = linkweir.policies()
    names = "\n".join([*(policy.name for policy in found), *others])
    parts = [
        "# Policies\n",
        "A page each: what it is for, what it guarantees, what it costs, an example.\n",
        table(["policy", "what it does"], [[f"[{p.name}]({p.name}.md)", _does(p)] for p in found]) + "\n",
    ]
    if others:
        parts.append("The simulator has these, too, to reproduce papers or to compare with them:\n")
        parts.append(
            table(["policy", "what it does"], [[f"[{name}]({name}.md)", does] for name, does in others.items()])
        )
    return "\n".join([*parts, f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"])


def parameters(policy: Policy) -> list[str]:
    """The tables of one policy."""
    parts = []
    for where, params in (("[scheduler]", policy.params), ("[[class]]", policy.class_params)):
        if params:
            rows = [[f"`{p.name}`", p.default or "none", p.range, p.help] for p in params]
            parts += [f"Keys of `{where}`:\n", table(["key", "default", "allowed", "meaning"], rows) + "\n"]
    if policy.stats:
        rows = [[f"`{stat.column}`", stat.help] for stat in policy.stats]
        parts += ["What it shows of each class over time:\n", table(["column", "meaning"], rows) + "\n"]
    return parts or ["It has no parameters.\n"]


def _first_sentence(page: str) -> str:
    r"""The first sentence below a page's heading.

    >>> _first_sentence("# rr\n\nOne packet of each\nqueue in turn. It needs no rates.\n")
    'One packet of each queue in turn.'
    """
    paragraph = " ".join(page.split("\n\n")[1].split())
    return re.sub(r"(?<=[a-z)]\.) .*", "", paragraph)


def _does(policy: Policy) -> str:
    return f"{policy.help[:1].upper()}{policy.help[1:]}."
