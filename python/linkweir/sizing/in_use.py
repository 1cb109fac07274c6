# SPDX-License-Identifier: BSD-3-Clause
"""What a plan becomes on a machine: commands of tc, and tables of a gateway's configuration."""

from __future__ import annotations

import re

from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.matching import CODE_POINTS, code_points_of
from linkweir.deploy.script import tc_scripts
from linkweir.scenarios.scenario import Scenario

_FLOW = '[[flow]]\nclass = "cs0"\nkind = "cbr"\nrate = "1kbit"\npacket = "100B"\n'
"""A scenario needs one, and neither export uses it."""


_FREE = [point for point in range(1, 64) if point not in CODE_POINTS.values()]
"""Code points without a name, for queues whose names do not say which they have."""


def _unusual(tables: str) -> list[str]:
    """Names of classes that do not say which packets belong to them."""
    names = re.findall(r'^name = "(.*)"$', tables, flags=re.MULTILINE)
    return [name for name in names if code_points_of(name) is None]


def commands_and_tables(tables: str, link: str) -> tuple[list[str], str]:
    """Commands of tc for a device eth0, and the tables link, scheduler and class of a gateway.

    Args:
        tables: `[scheduler]` and `[[class]]` of a scenario, with a class cs0.
        link: the link's rate.
    """
    text = tables
    for at, name in enumerate(_unusual(tables)):
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nmatch = [{{ dscp = {_FREE[at % len(_FREE)]} }}]\n')
    scenario = Scenario.parse(f'duration = "1s"\n[link]\nrate = "{link}"\n{text}\n{_FLOW}')
    commands = [line.replace("$size ", "") for line in tc_scripts(scenario, "eth0").up.splitlines()]
    text = gateway_configuration(scenario).text
    return (
        [line for line in commands if line.startswith("tc ")],
        text[text.index("[link]\n") : text.index("[[peer]]\n")].rstrip("\n") + "\n",
    )
