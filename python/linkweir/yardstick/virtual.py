# SPDX-License-Identifier: BSD-3-Clause
"""Cases as the laboratory runs them: a real kernel in virtual time, which sends datagrams and TCP, no calls or films.

A call becomes its packets, of the same length and rate, and a film is left out. Everything else that the laboratory
cannot do refuses the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.fault import PlanError, ScenarioError
from linkweir.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from linkweir.comparison.virtual import VirtualTime
    from linkweir.lab.world import World

_HEADERS_BYTES = 40
"""IPv4, UDP and RTP, which every packet of a call has."""


def for_a_kernel(written: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The scenario of a case for the laboratory, and what is not as in the simulator, a sentence each."""
    flows = [_call(flow) if flow["kind"] == "voice" else flow for flow in written["flow"] if flow["kind"] != "video"]
    notes = ["calls are packets without a codec, so they have no MOS"]
    if len(flows) < len(written["flow"]):
        notes.append("the film is left out")
    return {**written, "flow": flows}, tuple(notes)


def _call(flow: Mapping[str, Any]) -> dict[str, Any]:
    codec = next(one for one in _native.codecs() if one["name"] == flow["codec"])
    size = codec["payload_bytes"] + _HEADERS_BYTES
    rate = f"{round(8 * size / codec['interval_s'])}bit"
    kept = {key: value for key, value in flow.items() if key != "codec"}
    return {**kept, "kind": "cbr", "rate": rate, "packet": f"{size}B"}


def job(laboratory: VirtualTime, scenario: Scenario, peer: str, place: str) -> World:
    """The job of a run; `place` says in a message which it is.

    Raises:
        PlanError: the laboratory cannot run this.
        LaboratoryError: the kernel cannot be built, or lacks the peer.
    """
    try:
        return laboratory.job(scenario, peer)
    except ScenarioError as fault:
        given = f" = {fault.value}" if fault.value else ""
        raise PlanError(f"{place}: {fault.key}{given}: {fault.message}; leave the policy or the case out") from fault
