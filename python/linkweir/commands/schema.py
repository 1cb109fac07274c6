# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir schema`: what editors need to complete and check scenarios and the gateway's files."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from linkweir.scenarios.schema import KINDS


def schema(kind: str, out: Path | None) -> str:
    """The JSON Schema of a kind of file; if it goes to a file, how that is used."""
    if kind not in KINDS:
        raise typer.BadParameter(f"there is no schema of {kind}; there are {' and '.join(KINDS)}", param_hint="KIND")
    text = json.dumps(KINDS[kind](), indent=1, ensure_ascii=False) + "\n"
    if out is None:
        return text
    out.write_text(text, encoding="utf-8")
    return f"{out}: written. Files in its folder name it in their first line:\n\n#:schema ./{out.name}\n"
