# SPDX-License-Identifier: BSD-3-Clause
"""What of a scenario has no place on a machine, or is otherwise there, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkweir.scenarios.declared import rows, told

OF_THE_PATH = tuple(
    key
    for key, row in rows("link").items()
    if row.of("tc").name == "left_out" and row.of("laboratory").name == "carried"
)
"""Keys of a link that belong to the path, which the laboratory has, and not to its scheduler."""

_MODELS = tuple(key for key, row in rows("link").items() if row.of("bounds").name == "refused")
"""Tables of a link that only the simulator models."""
VOICE_AGE = "200ms"
"""A gateway drops packets of EF that have waited for so long, unless the class says something else."""


def lacks_age_of_voice(entry: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a gateway gives a class with these rules a limit of age that its table does not name."""
    named = [rule["dscp"] for rule in rules if "dscp" in rule]
    points = [point for one in named for point in (one if isinstance(one, list) else [one])]
    return "max_age" not in entry and any(point in ("EF", "ef", 46) for point in points)


FIXED = (
    "the rate stays at {nominal} while the link changes: in a fade packets wait in the modem, where nothing orders "
    "them; write feedback = true in {where}, and report = true at the far end, or give the gateway a command that "
    "reports the capacity"
)
"""What a rate that stays as it is does to a link that fades, and what follows the link instead."""


def of_the_link(link: Mapping[str, Any], host: str, what: str, place: str = "link") -> Iterator[str]:
    """What a link has by nature, or what only the simulator models.

    Args:
        link: the table `[link]` of a resolved scenario.
        host: where it is put to use, gateway or tc.
        what: what gets a rate instead.
        place: the first words of its keys.
    """
    for treatment in ("left_out", "adapted"):
        for key, words in told("link", host, link, treatment):
            if key == "rate" and not isinstance(link["rate"], Mapping):
                continue  # it does not change
            yield words.format(key=f"{place}.{key}", value=link[key], nominal=link["nominal"], what=what)


def varies(link: Mapping[str, Any]) -> bool:
    """Whether the link of a resolved scenario changes its capacity."""
    return "trace" in link or isinstance(link.get("rate"), dict) or any(key in link for key in _MODELS)


def of_the_run(keys: Mapping[str, Any]) -> Iterator[str]:
    """What only a simulation has."""
    flows = sum(entry["count"] for entry in keys["flow"])
    yield f"flow: {flows} simulated source{'s' if flows != 1 else ''}; real traffic takes their place"
    yield f"duration = {keys['duration']}, seed = {keys['seed']}: of the simulation"
