# SPDX-License-Identifier: BSD-3-Clause
"""What a plan becomes on a machine: commands of tc, and tables of a gateway's configuration."""

from __future__ import annotations

from linkweir.deploy.gateway import gateway_configuration
from linkweir.deploy.script import tc_scripts
from linkweir.scenario import Scenario

_FLOW = '[[flow]]\nclass = "cs0"\nkind = "cbr"\nrate = "1kbit"\npacket = "100B"\n'
"""A scenario needs one, and neither export uses it."""


def commands_and_tables(tables: str, link: str) -> tuple[list[str], str]:
    """Commands of tc for a device eth0, and the tables link, scheduler and class of a gateway.

    Args:
        tables: `[scheduler]` and `[[class]]` of a scenario, with a class cs0.
        link: the link's rate.
    """
    scenario = Scenario.parse(f'duration = "1s"\n[link]\nrate = "{link}"\n{tables}\n{_FLOW}')
    commands = [line.replace("$size ", "") for line in tc_scripts(scenario, "eth0").up.splitlines()]
    text = gateway_configuration(scenario).text
    return (
        [line for line in commands if line.startswith("tc ")],
        text[text.index("[link]\n") : text.index("[[peer]]\n")].rstrip("\n") + "\n",
    )
