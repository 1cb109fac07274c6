# SPDX-License-Identifier: BSD-3-Clause
"""A warning, and how the warnings of many copies of a class become one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

Advice = dict[str, Any]
"""Keys of the resolved scenario, written as plans of sweeps write them, and the values to give them."""


@dataclass(frozen=True)
class Finding:
    """One warning.

    Attributes:
        kind: the rule that found it, such as ``reservation_starved``; docs/reference/diagnosis.md lists them.
        where: the class, flow or key it is about, such as ``class af`` or ``link.trace``.
        what: what happened, with figures.
        cure: what to change.
        figures: the figures by name, with units in the names.
        advice: changes of the scenario, each of which alone removes the warning: keys and values, like
            ``{"class.af.limit": "75p"}``. Empty if no single change does.
    """

    kind: str
    where: str
    what: str
    cure: str
    figures: dict[str, float]
    advice: tuple[Advice, ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{self.where}: {self.what}. {self.cure}".split())  # names may hold line breaks

    def on_link(self, link: str, key: tuple[str, str]) -> Finding:
        """The finding of a link that was looked at alone, as one of its network.

        Args:
            link: its name.
            key: the first words of its keys, see `linkweir.scenarios.networks.key_of_link`.
        """
        of_link = key_of(*key)
        first, _, rest = self.where.partition(".")
        where = f"link {link}, {self.where}"
        if first == "link":
            where = f"{of_link}.{rest}" if rest else key_of("link", link)
        advice = tuple({_on_link(of_link, key): value for key, value in one.items()} for one in self.advice)
        return replace(self, where=where, advice=advice)

    def to_dict(self) -> dict[str, Any]:
        """The finding for JSON; figures have 6 significant digits."""
        figures = {key: float(f"{value:.6g}") for key, value in self.figures.items()}
        return {**asdict(self), "figures": figures, "advice": [dict(advice) for advice in self.advice]}


def merged(found: Sequence[Finding], worst: str, others: str = "of its copies") -> list[Finding]:
    """One finding for each kind: the one with the largest figure `worst`, with the number of `others`."""
    kept = []
    for kind in dict.fromkeys(finding.kind for finding in found):
        same = [finding for finding in found if finding.kind == kind]
        first = max(same, key=lambda finding: finding.figures[worst])
        if len(same) > 1:
            first = replace(first, what=f"{first.what} (and {len(same) - 1} more {others})")
        kept.append(first)
    return kept


def _on_link(of_link: str, key: str) -> str:
    """A key of a link's scenario in that of its network."""
    first, _, rest = key.partition(".")
    return f"{of_link}.{rest}" if first == "link" else f"{of_link}.{key}" if first in ("class", "scheduler") else key


def key_of(*words: str) -> str:
    """A key as plans write it; a name with a dot is quoted.

    >>> key_of("class", "a.b", "limit")
    'class."a.b".limit'
    """
    return ".".join(
        word if re.fullmatch(r"[^.\"'\s]+", word) else json.dumps(word, ensure_ascii=False) for word in words
    )


def megabits(bps: float) -> str:
    """A rate as people read it.

    >>> megabits(4_997_733.3)
    '4.998 Mbit/s'
    """
    return f"{bps / 1e6:.4g} Mbit/s"
