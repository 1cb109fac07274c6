# SPDX-License-Identifier: BSD-3-Clause
"""Defaults of `pss`, as the core's table has them: as a scenario writes them, and in base units."""

from __future__ import annotations

from linkweir.scenarios import quantity
from linkweir.scenarios.policy import policies

_PARAMS = {
    param.name: param
    for policy in policies()
    if policy.name == "pss"
    for param in (*policy.params, *policy.class_params)
}


def _default(name: str) -> str:
    text = _PARAMS[name].default
    assert text is not None, name
    return text


BURST = _default("burst")
MTU = _default("mtu")
MEMORY = _default("memory")
SAT = _default("sat")

BURST_PKTS = quantity.count_pkts("burst", BURST, 1)
MTU_BYTES = quantity.size_bytes("mtu", MTU)
MEMORY_S = quantity.time_s("memory", MEMORY)
