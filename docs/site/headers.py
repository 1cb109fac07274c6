# SPDX-License-Identifier: BSD-3-Clause
"""Writes a page from the headers of the core: each constant, structure, call and function with its comment.

The headers have one form: a comment stands before what it explains, or at the end of its line. What the page shows is
only what it finds in that form; a declaration that is missed makes `page` fail.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "core" / "include" / "linkweir"
TITLES = {
    "policy.h": "Between a policy and its data plane",
    "math.h": "Arithmetic",
    "port.h": "Where the core runs",
}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PROOF = re.compile(r"/\*@.*?\*/[ \t]*\n?", re.DOTALL)
_PART = re.compile(
    r"(?P<comments>(?:^[ \t]*/\*(?:(?!\*/).)*?\*/[ \t]*\n)*)"
    r"(?:^\#define[ ](?P<macro>LW_\w+(?:\([^)]*\))?)(?P<value>(?:[ \t](?:(?!/\*)[^\n])*)?)"
    r"(?:/\*(?P<end>[^\n]*?)\*/)?[ \t]*$"
    r"|^(?P<kind>struct|enum)[ ](?P<name>\w+)[ ]\{(?P<first>[^\n]*)\n(?P<body>.*?)^\};"
    r"|^static[ ]inline[ ](?P<function>[^{;]*?\))\s*\{"
    r"|^extern[ ](?P<variable>[^;\#]*);)",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


def page() -> str:
    """The page in reStructuredText."""
    parts = [
        "The contract in C\n=================",
        "A policy is a file in C that fills a structure :c:struct:`lw_policy`. "
        ":doc:`Write a policy of your own </docs/howto/own-policy>` shows one, and :doc:`/ARCHITECTURE` gives the "
        "reasons for the form of the contract. This page is made from the headers in `core/include/linkweir`, such as "
        ":doc:`policy.h </core/include/linkweir/policy.h>`.",
    ]
    for name, title in TITLES.items():
        parts.append(f"{name}: {title[0].lower()}{title[1:]}\n{'-' * (len(name) + len(title) + 2)}")
        parts.extend(_header((FOLDER / name).read_text(encoding="utf-8")))
    return "\n\n".join(parts).replace("\t", "    ") + "\n"


def _header(text: str) -> Iterator[str]:
    text = re.sub(r"^#ifdef __KERNEL__.*?^#else$", "", _PROOF.sub("", text), flags=re.DOTALL | re.MULTILINE)
    introduction = _COMMENT.findall(text)[1] if text.count("/*", 0, 200) > 1 else _COMMENT.findall(text)[0]
    yield from _prose(re.sub(r"^\w+\.h - (\w)", lambda first: first[1].upper(), _without_stars(introduction)))
    for part in _PART.finditer(text, text.index(introduction) + len(introduction)):
        about = [_without_stars(comment) for comment in _COMMENT.findall(part["comments"])]
        if part["macro"]:
            value = part["value"].strip()
            if value.endswith(";"):  # the list of policies is read with it
                continue
            lines = [*about, *([part["end"].strip()] if part["end"] else [])]
            yield _described("c:macro", part["macro"], [f"``{value}``" if value else "", *map(_marked, lines)])
        elif part["name"]:
            yield _structure(part, about)
        else:
            yield _described(
                "c:function" if part["function"] else "c:var",
                part["function"] or part["variable"],
                list(map(_marked, about)),
            )


def _structure(part: re.Match[str], about: list[str]) -> str:
    end = _COMMENT.search(part["first"])
    heads = [*about, *([_without_stars(end[0])] if end else [])]
    lines = [_described(f"c:{part['kind']}", part["name"], list(map(_marked, heads)))]
    for names, comment in _members(part["body"], ";" if part["kind"] == "struct" else ","):
        for name in _apart(names):
            directive = "c:member" if part["kind"] == "struct" else "c:enumerator"
            lines.append(textwrap.indent(_described(directive, name, [_marked(comment)] if comment else []), "   "))
    return "\n\n".join(lines)


def _members(body: str, end: str) -> Iterator[tuple[str, str]]:
    """Each declaration with its comments: those before it, and those behind it in its line.

    A comment that speaks of events, in the plural, is of all declarations up to the next empty line.
    """
    found: list[tuple[str, list[str]]] = []
    waiting: list[str] = []
    group: list[str] = []
    fresh_line = True
    for token in re.finditer(
        rf"(?P<comment>/\*.*?\*/)|(?P<line>\n)|(?P<code>[^{end}/\n][^{end}/]*{end}?)", body, re.DOTALL
    ):
        if token["line"]:
            group = [] if fresh_line and not waiting else group
            fresh_line = True
        elif token["comment"]:
            (waiting if fresh_line else found[-1][1]).append(_without_stars(token["comment"]))
        elif token["code"].strip():
            group = waiting if waiting == ["optional events"] else group
            found.append((" ".join(token["code"].rstrip(end).split()), [*(waiting or [f"{of}:" for of in group])]))
            waiting, fresh_line = [], False
    return ((declaration, " ".join(comments).rstrip(":").replace("events", "event")) for declaration, comments in found)


def _apart(declaration: str) -> list[str]:
    """Each name of a declaration, with its type.

    >>> _apart("const struct lw_param *params, *qparams")
    ['const struct lw_param *params', 'const struct lw_param *qparams']
    """
    if "(" in declaration or "," not in declaration:
        return [declaration]
    first, *others = re.split(r",\s*", declaration)
    kind = re.sub(r"\*?\w+$", "", first)
    return [first, *(f"{kind}{other}" for other in others)]


def _without_stars(comment: str) -> str:
    """The text of a comment, with its indentation."""
    lines = [re.sub(r"^[ \t]*\*(?: |$)", "", line) for line in comment[2:-2].split("\n")]
    return "\n".join([lines[0].strip(), *lines[1:]]).strip()


def _prose(text: str) -> Iterator[str]:
    """Paragraphs, terms with their explanation, and numbered steps of a comment."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        plain = [line for line in lines if not line.startswith("  ")]
        entries = re.split(r"\n  (?=\S)", "\n" + "\n".join(line for line in lines if line.startswith("  ")))[1:]
        begun, closing = (plain[:1], plain[1:]) if entries else (plain, [])
        yield _marked(" ".join(begun))
        shown = []
        for entry in entries:
            head, _, rest = re.sub(r"\s*\n\s*", " ", entry).partition("  " if re.match(r"[A-Z]\w+  ", entry) else " ")
            step = re.fullmatch(r"\d+\.", head)
            shown.append(f"{head} {_marked(rest.strip())}" if step else f"{_marked(head)}\n   {_marked(rest.strip())}")
        if shown:
            yield "\n".join(shown)
        if closing:
            yield _marked(" ".join(closing))


def _described(directive: str, signature: str, paragraphs: list[str]) -> str:
    lines = [f".. {directive}:: {' '.join(signature.split())}"]
    for paragraph in paragraphs:
        if paragraph:
            lines += ["", textwrap.indent(paragraph, "   ")]
    return "\n".join(lines)


def _marked(words: str) -> str:
    """A comment in which names of the contract are code, and nothing else is a mark.

    >>> print(_marked("asks expired(q) in view->now_ns, at most LW_MAX_* times *fault"))
    asks ``expired(q)`` in ``view->now_ns``, at most ``LW_MAX_*`` times ``*fault``
    """
    parts = _NAME.split(words)
    return "".join(
        f"``{part.strip('`')}``" if number % 2 else re.sub(r"([\\*|`_])", r"\\\1", part)
        for number, part in enumerate(parts)
    )


_NAME = re.compile(
    r"((?<![\w`])(?:`\w+`|LW_[A-Z0-9_]+\*?|lw_\w+|\w+\(\w*\)|(?:\w+->|\*)?\w+_(?:ns|bps|bytes|pkts|queues)|\*\w+)(?![\w`]))"
)
