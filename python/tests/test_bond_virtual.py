# SPDX-License-Identifier: BSD-3-Clause
"""Several paths at once between real gateways, in virtual time: short runs of bench/bond.py and bench/bond_traces.py.

The aims are those that docs/records/paths.md states. Without a kernel the runs are skipped and name what it lacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command import REPOSITORY
from test_tunnel import program

from linkweir.lab import namespaces
from linkweir.lab.guest import Guest

sys.path.append(str(REPOSITORY / "bench"))
import bond
import bond_traces
import bond_virtual

CUT_S, BACK_S, END_S = TIMES_S = (2, 5, 8)
LEAST_SHARE = 0.99
RATES_APART, DELAYS_APART_S = 0.02, 0.005
TRACE_S = 20


def traces(every_s: int, outage_s: float) -> list[bond_traces.Steps]:
    """Capacities of both links, bit/s, from these times on, s. The first has outages, as LTE has in a drive."""
    outages = [step for at in range(2, 18, every_s) for step in ((float(at), 0), (at + outage_s, 8_000_000))]
    return [[(0.0, 8_000_000), *outages], [(0.0, 3_000_000), (6.0, 2_500_000), (9.0, 6_000_000)]]


# --- Without a kernel -------------------------------------------------------------------------------------------------


def numbered(lost: frozenset[int] = frozenset(), twice: frozenset[int] = frozenset()) -> bond.Flows:
    """All flows of a cut, of which AF lacks some packets and has others twice."""
    flows: bond.Flows = {}
    for name, _, rate, _ in bond.CUT_FLOWS:
        numbers = list(range(rate * END_S))
        if name == "af":
            numbers = sorted([number for number in numbers if number not in lost] + list(twice))
        flows[name] = (0.0, [(number / rate, number) for number in numbers])
    return flows


def test_a_second_that_lacks_more_than_one_of_a_hundred_misses_the_aim() -> None:
    rate = {name: pps for name, _, pps, _ in bond.CUT_FLOWS}["af"]
    most = int(0.01 * rate)
    first = 6 * rate
    for count, missed in ((most, 0), (most + 1, 1)):
        lost = frozenset(range(first, first + count))
        assert bond.judged(numbered(lost), CUT_S, 0.3, END_S)[1] == missed
    # Nothing is asked of what was to be sent just after the cut.
    spared = frozenset(range(int((CUT_S + 0.05) * rate), int((CUT_S + 0.25) * rate)))
    assert bond.judged(numbered(spared), CUT_S, 0.3, END_S)[1] == 0
    assert bond.judged(numbered(twice=frozenset([7])), CUT_S, 0.3, END_S)[1] == 1


def test_a_packet_is_known_by_when_it_was_to_be_sent() -> None:
    flows = [bond_virtual.Sent("a", 46, 160, 50), bond_virtual.Sent("b", 0, 1200, 36_458.3)]
    due = bond_virtual.due(flows, 3)
    for number, (flow, count) in enumerate(zip(flows, (150, 109_374), strict=True)):
        sent_ns = due["at_ns"][due["flow"] == number]
        assert bond_virtual.numbers_of(flow, sent_ns).tolist() == list(range(count))


def test_packets_of_a_burst_are_due_together() -> None:
    flow = bond_virtual.Sent("flood", 0, 1200, 2500, 1_000_000)
    due = bond_virtual.due([flow], 1)["at_ns"].tolist()
    assert due[:8] == [0, 0, 0, 1_000_000, 1_000_000, 2_000_000, 2_000_000, 2_000_000]


# --- In virtual time --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> Guest:
    if why := bond_virtual.why_not():
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {why}")
    gateway: Path | None = program()
    if gateway is None:
        pytest.skip(namespaces.NO_GATEWAY)
    return bond_virtual.prepare(gateway)


@pytest.mark.long
@pytest.mark.parametrize(("how", "end", "gap_s"), [("silent", 0, 0.3), ("carrier", 1, 0.1)])
@pytest.mark.parametrize("link", [0, 1])
def test_a_cut_costs_copies_nothing_and_a_reserved_rate_one_of_a_hundred(
    made: Guest, link: int, how: str, end: int, gap_s: float
) -> None:
    found = bond_virtual.run(made, bond.virtual_cut(link, end, TIMES_S))
    said, missed = bond.judged(bond.flows_of(found), CUT_S, gap_s, END_S)
    assert missed == 0, (how, said, bond.lost_text(found.device_dropped_pkts, found.shown))


# One is shorter than the time after which probes without an answer show that a path is dead, and one is longer.
@pytest.mark.long
@pytest.mark.parametrize(("every_s", "outage_s"), [(1, 0.15), (2, 0.6)])
def test_the_simulator_says_what_gateways_do_over_links_that_change(
    made: Guest, tmp_path: Path, every_s: int, outage_s: float
) -> None:
    steps = traces(every_s, outage_s)
    flows = bond_traces.flows_for(sum(bond_traces.mean_bps(link, TRACE_S) for link in steps))
    wanted = bond_traces.simulated(steps, flows, TRACE_S, tmp_path)
    ran = bond_virtual.run(made, bond_traces.virtual(steps, flows, TRACE_S))
    found = bond_traces.figures_of(ran, flows, TRACE_S)
    for flow in flows:
        (simulated_bps, simulated_s), (gateway_bps, gateway_s) = wanted[flow.name], found[flow.name]
        assert gateway_bps == pytest.approx(simulated_bps, rel=RATES_APART), flow.name
        assert gateway_s == pytest.approx(simulated_s, abs=DELAYS_APART_S), flow.name
