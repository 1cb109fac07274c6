# SPDX-License-Identifier: BSD-3-Clause
"""What a file of a machine says of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Found:
    """Tables of a scenario.

    Attributes:
        link: `[link]`.
        scheduler: `[scheduler]`.
        classes: `[[class]]`.
        notes: what a scenario has no place for, or what the file does not say, a line each.
        bond: `[[bond]]` without scheduler and classes, which are those above, if there is one; then `link` has what all
            of its links have.
        members: `[[link]]` of the bond, in its order.
        places: where tc shows each class, such as `10:1`; empty for a configuration of the gateway.
    """

    link: Mapping[str, Any]
    scheduler: Mapping[str, Any]
    classes: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    bond: Mapping[str, Any] | None = None
    members: tuple[Mapping[str, Any], ...] = ()
