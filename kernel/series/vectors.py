# SPDX-License-Identifier: GPL-2.0-only
"""The vectors that sch_pss.c must pass: those of vectors/pss without left out settings, and more of the same model.

Left out are vectors that set `sat`, `early` or `on_empty` to something else than their defaults, and those that give a
class a channel of its own. As most random vectors do, `oracle/` draws more lives without these, from fixed seeds.
"""

from __future__ import annotations

import copy
import importlib
import re
import subprocess
import sys
from typing import Any
from unittest import mock

from transform import ROOT

DEFAULTS = {"sat=exact", "on_empty=keep", "early=charge"}
MORE = {"few": 1, "one": 1, "restless": 1}
"""Profiles of oracle/generate.py of which more lives are drawn, and how many."""


def fitting(text: str) -> str | None:
    """A vector without comments and without parameters at their defaults; None if sch_pss.c lacks something in it."""
    lines = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        kept = [word for word in words if word not in DEFAULTS]
        if any(re.match(r"(sat|on_empty|early)=", word) for word in kept) or kept[2:3] == ["rate"]:
            return None
        if kept and kept != ["set"]:
            lines.append(" ".join(kept))
    return "\n".join(lines) + "\n"


class _Lives:
    """Draws the parameters of a life of pss, without the left out ones."""

    @staticmethod
    def values(random: Any, profile: Any) -> tuple[dict[str, Any], Any]:
        return {}, importlib.import_module("lives.pss").values(random, profile)[1]

    @staticmethod
    def change(random: Any, plane: Any) -> tuple[dict[str, Any], Any]:
        return {}, importlib.import_module("lives.pss").change(random, plane)[1]


def _drawn() -> dict[str, str]:
    sys.path.append(str(ROOT / "oracle"))
    generate = importlib.import_module("generate")
    found = {}
    for name, count in MORE.items():
        profile = copy.copy(generate.PROFILES[name])
        profile.events = {event: weight for event, weight in profile.events.items() if event != "rate"}
        with (
            mock.patch.dict(generate.PROFILES, {f"plain-{name}": profile}),
            mock.patch.object(generate, "lives_of", return_value=_Lives),
        ):
            for seed in range(1, count + 1):
                text = fitting(generate.Life("pss", f"plain-{name}", seed).live())
                assert text is not None, "a life with a left out setting was drawn"
                found[f"plain-{name}-{seed}"] = text
    return found


def vectors() -> dict[str, str]:
    """All of them, by name."""
    found = {}
    subprocess.run(["sh", ROOT / "vectors/make.sh"], check=True)
    for path in sorted((ROOT / "vectors/pss").glob("*.vec")):
        text = fitting(path.read_text())
        if text is not None:
            found[path.stem] = text
    return {**found, **_drawn()}
