# SPDX-License-Identifier: BSD-3-Clause
"""Picks the laboratory's way to run a scenario: queueing disciplines or gateways, real or virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from linkweir.lab.experiment import Experiments, Laboratory
from linkweir.lab.gateways import Gateways, OverGateways, VirtualGateways


def experiments(
    on: str, where: str, gateway: Path | None = None, *, exported: bool = False, say: Callable[[str], None]
) -> Experiments:
    """Something that runs scenarios.

    Args:
        on: qdisc or gateway.
        where: real or virtual; queueing disciplines run in virtual time only.
        gateway: the program `linkweir-gateway`; as cargo built it, or as it is installed, when None.
        exported: run what `linkweir export` writes.
        say: called with what is built now.

    Raises:
        LaboratoryError: it is not possible here; it names everything that is missing.
    """
    if on == "qdisc":
        return Laboratory(exported_script=exported, say=say)
    return gateways(where, gateway, exported=exported, say=say)


def gateways(
    where: str, gateway: Path | None = None, *, exported: bool = False, say: Callable[[str], None]
) -> OverGateways:
    """Runs scenarios over gateways; arguments and errors are those of `experiments`."""
    if where == "real":
        return Gateways(gateway, exported=exported)
    return VirtualGateways(gateway, exported=exported, say=say)
