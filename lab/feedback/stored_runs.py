# SPDX-License-Identifier: BSD-3-Clause
"""Runs over the links of links.py, stored by what they are made of: kernel, gateway, link, and the text of links.py."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import links

from linkweir.lab.guest import Guest

STORE = Path(__file__).resolve().parents[2] / "runs/feedback"


def run(made: Guest, kind: links.Kind, seed: int, seconds: int, store: Path = STORE) -> links.Outcome:
    """A run, from the store if it is there."""
    text = f"{made.identity} {kind} {seed} {seconds} {Path(links.__file__).read_text(encoding='utf-8')}"
    path = store / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
    if not path.exists():
        outcome = links.run(made, kind, seed, seconds)
        store.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps({**asdict(outcome), "took_ms": list(outcome.took_ms.items())}))
        part.replace(path)
    found = json.loads(path.read_text())
    return links.Outcome(**{**found, "took_ms": dict(found["took_ms"])})
