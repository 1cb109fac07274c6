# SPDX-License-Identifier: BSD-3-Clause
"""What of a scenario has no place on a machine, or is otherwise there, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

OF_THE_PATH = ("delay", "return_delay", "loss", "reorder")
"""Keys of a link that belong to the path, not to its scheduler."""
_MODELS = ("satellite", "beam")
_VARYING = "changes over time; {what} gets link.nominal, {nominal}"


VOICE_AGE = "200ms"
"""A gateway drops packets of EF that have waited for so long, unless the class says something else."""


def lacks_age_of_voice(entry: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a gateway gives a class with these rules a limit of age that its table does not name."""
    named = [rule["dscp"] for rule in rules if "dscp" in rule]
    points = [point for one in named for point in (one if isinstance(one, list) else [one])]
    return "max_age" not in entry and any(point in ("EF", "ef", 46) for point in points)


def of_the_link(link: Mapping[str, Any], what: str) -> Iterator[str]:
    """What a link has by nature, or what only the simulator models.

    Args:
        link: the table `[link]` of a resolved scenario.
        what: what gets a rate instead.
    """
    for key in OF_THE_PATH:
        if link.get(key) not in (None, "0s", 0.0):
            yield f"link.{key}: the real link has its own"
    for key in _MODELS:
        if key in link:
            yield f"link.{key}: the real link fades by itself; {what} gets nominal = {link['nominal']}"
    if isinstance(link.get("rate"), dict):
        yield "link.rate " + _VARYING.format(what=what, nominal=link["nominal"])
    if "trace" in link:
        yield "link.trace " + _VARYING.format(what=what, nominal=link["nominal"])
    if link["ring"] != 1:
        yield f"link.ring = {link['ring']}: the packets in a device's ring are those of its driver"


def varies(link: Mapping[str, Any]) -> bool:
    """Whether the link of a resolved scenario changes its capacity."""
    return "trace" in link or isinstance(link.get("rate"), dict) or any(key in link for key in _MODELS)


def of_the_run(keys: Mapping[str, Any]) -> Iterator[str]:
    """What only a simulation has."""
    flows = sum(entry["count"] for entry in keys["flow"])
    yield f"flow: {flows} simulated source{'s' if flows != 1 else ''}; real traffic takes their place"
    yield f"duration = {keys['duration']}, seed = {keys['seed']}: of the simulation"
