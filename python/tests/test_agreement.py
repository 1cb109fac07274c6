# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of places: what it runs, and that planted differences are found. No kernel and no ns-3 runs here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import REPOSITORY

from linkweir.deploy.bpf import POLICIES, bpf_settings
from linkweir.deploy.ns3 import ns3_program
from linkweir.lab import LaboratoryError
from linkweir.lab.tunnel import tunnel
from linkweir.lab.world import due, flows_of, staggered, world
from linkweir.reproduce.orders import Agreement
from linkweir.scenarios.scenario import Scenario

sys.path[:0] = [str(REPOSITORY / "lab/agreement"), str(REPOSITORY / "lab")]
import agreement  # noqa: E402
import bpf_guest  # noqa: E402
import decisions  # noqa: E402
import figures as points  # noqa: E402
import page  # noqa: E402
from places import available  # noqa: E402

KINDS = frozenset({"pss", "pds", "codes", "pf"})
GROUPS = {group.name: group for group in points.groups()}


def test_every_figure_of_the_agreement_is_there() -> None:
    assert list(GROUPS) == ["PSS 5", "PSS 6", "PSS 7", "PSS 12", "PDS 4", "PDS 6", "LTE", "outage"]
    sizes = {name: (len(group.points), sum(point.real for point in group.points)) for name, group in GROUPS.items()}
    assert sizes["PSS 6"] == (54, 6)
    assert sizes["PSS 7"] == (60, 6)
    assert sizes["PDS 6"] == (9, 9)


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_every_place_accepts_the_scenarios(group: points.Group) -> None:
    point = group.points[-1]
    scenario = Scenario.from_dict(point.scenario(1, group.duration_of("")))
    Scenario.from_dict(staggered(scenario))
    world(scenario, KINDS)
    tunnel(scenario)
    if point.program is None:
        left_out = [note for note in ns3_program(scenario).notes if "left out" in note]
        assert left_out == []


def results(group: points.Group, point: points.Point) -> dict[agreement.Key, points.Reduced]:
    """Over gateways what the simulator has in the same time, ns-3 1 % more CS0."""
    long_s, short_s, tcp_s = (group.duration_of(place) for place in (page.QDISC, page.VIRTUAL, page.NS3_TCP))
    of_simulator = {"ef": 5.0, "af": 4.0, "cs0": 11.0}
    found: dict[agreement.Key, points.Reduced] = {
        (page.SIMULATOR, group.name, point.name, 1, long_s): of_simulator,
        (page.SIMULATOR, group.name, point.name, 1, short_s): {**of_simulator, "cs0": 10.0},
        (page.VIRTUAL, group.name, point.name, 1, short_s): {**of_simulator, "cs0": 10.0},
        (page.BACKLOGGED, group.name, point.name, 1, long_s): {**of_simulator, "cs0": 12.0},
        (page.NS3, group.name, point.name, 1, long_s): {**of_simulator, "cs0": 12.12},
        (page.SIMULATOR, group.name, point.name, 1, tcp_s): of_simulator,
        (page.NS3_TCP, group.name, point.name, 1, tcp_s): {**of_simulator, "cs0": 11.22},
        (page.QDISC, group.name, point.name, 1, long_s): {**of_simulator, "cs0": 9.9, "af": 5.1},
    }
    return found


def table_of(name: str = "PSS 6") -> page.Table:
    group = GROUPS[name]
    point = next(point for point in group.points if point.real)
    (table,) = agreement.compared(results(group, point), [group])
    return table


def test_a_shorter_run_is_compared_with_a_simulation_as_long() -> None:
    (line,) = [line for line in table_of().lines if line.cells]
    assert line.cells[page.VIRTUAL].off == 0
    assert line.cells[page.NS3].off == pytest.approx(0.01)  # without TCP it is compared with a simulation without TCP
    assert line.cells[page.NS3].kept
    assert line.cells[page.NS3_TCP].off == pytest.approx(0.02)
    assert line.cells[page.QDISC].off == pytest.approx(1.1 / 4)
    assert not line.cells[page.QDISC].kept
    # equations (7) and (8) of the paper
    assert line.cells[page.THEORY].values == pytest.approx((5, 4, 11))


def test_the_simulator_runs_as_long_as_each_place() -> None:
    changing, lte = GROUPS["PSS 7"], GROUPS["LTE"]
    real = next(point for point in changing.points if point.real)
    other = next(point for point in changing.points if not point.real)
    # 10 s are left out; then come four periods of 15 s, or one; in real time 30 s are the most
    assert agreement.durations(changing, real, page.QDISC) == [70.0]
    assert agreement.durations(changing, real, page.VIRTUAL) == [25.0]
    assert agreement.durations(changing, real, page.REAL) == [30.0]
    assert agreement.durations(changing, real, page.SIMULATOR) == [70.0, 30.0, 25.0]
    assert agreement.durations(changing, other, page.REAL) == []
    assert agreement.durations(changing, other, page.SIMULATOR) == [70.0, 25.0]
    assert agreement.durations(lte, lte.points[0], page.SIMULATOR) == [60.0, 30.0]
    assert all(group.duration_of(page.REAL) <= points.REAL_S for group in GROUPS.values())


def test_points_in_real_time_run_together_unless_their_packets_are_many() -> None:
    real = agreement.Place(page.REAL, lambda *_: {}, "")
    parts = [
        (at_once, [group.name for group in part])
        for at_once, part in agreement.parts_of(real, list(GROUPS.values()), 2)
    ]
    assert parts == [(4, ["PSS 5", "PSS 6", "PSS 7", "PSS 12", "LTE", "outage"]), (1, ["PDS 4", "PDS 6"])]


def test_a_rate_below_two_megabits_is_compared_with_two() -> None:
    group = GROUPS["PSS 6"]
    point = next(point for point in group.points if point.real)
    key = (group.name, point.name, 1, group.duration_of(page.QDISC))
    found = {
        (page.SIMULATOR, *key): {"ef": 15.0, "af": 5.0, "cs0": 0.01},
        (page.QDISC, *key): {"ef": 15.0, "af": 4.99, "cs0": 0.05},
    }
    (table,) = agreement.compared(found, [group])
    (line,) = [line for line in table.lines if line.cells]
    assert line.cells[page.QDISC].off == pytest.approx(0.04 / 2)


def test_a_missing_seed_leaves_the_cell_empty() -> None:
    group = GROUPS["LTE"]
    (point,) = group.points
    run = {"ef": 0.6, "af": 2.0, "cs0": 2.0}
    found = {(place, "LTE", "LTE", seed, 60.0): run for place, seed in ((page.SIMULATOR, 1), (page.SIMULATOR, 2))}
    assert agreement.values(found, page.SIMULATOR, group, point, 60.0) == []
    found[page.SIMULATOR, "LTE", "LTE", 3, 60.0] = {**run, "af": 5.0}
    assert agreement.values(found, page.SIMULATOR, group, point, 60.0) == pytest.approx([0.6, 3.0, 2.0])


def test_delays_of_seeds_are_added_up_before_they_are_divided() -> None:
    group = GROUPS["PDS 4"]
    runs = [
        {"8": [[10, 1.0], *[[10, 2.0]] * 7]},
        {"8": [[30, 1.0], *[[30, 2.0]] * 7]},
    ]
    # class 1: 2 s of 40 packets; the others 4 s of 40
    late = next(point for point in group.points if point.name.endswith("8 to 9 s"))
    assert late.values(runs) == pytest.approx([2.0] * 7)


def test_a_page_shows_what_is_above_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "agreement.md"
    path.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write_into(path, [table_of()], "Measured.")
    text = path.read_text()
    assert text.startswith(f"before\n{page.BEGIN}\n\nMeasured.")
    assert text.endswith(f"{page.END}\nafter\n")
    assert "| PSS 6 | 0.00 %, 1 of 54 points | **27.5 %**, 1 of 54 points | 0.00 %, 1 of 54 points | not run |" in text
    assert "* PSS 6, PSS, memory 0.01 s, EF 0.25, K_AF 0.4, qdisc: 27.5 % from the simulator, above 5.0 %" in text
    assert "**5.00, 5.10, 9.90 (27.5 %)**" in text
    assert "old" not in text
    picture = (tmp_path / "images/agreement.svg").read_text()
    assert picture.count("<svg") == 1


def test_many_points_above_the_bound_are_counted() -> None:
    table = table_of()
    (line,) = [line for line in table.lines if line.cells]
    many = page.Table(table.group, [line] * (page.MANY + 1))
    (sentence,) = page.outside(many)
    assert sentence == (
        "PSS 6, qdisc: 4 of 4 points, at most 27.5 % from the simulator "
        "(PSS, memory 0.01 s, EF 0.25, K_AF 0.4), above 5.0 %"
    )


def test_places_that_cannot_be_had_are_named() -> None:
    def broken() -> int | None:
        raise LaboratoryError("flex missing")

    said: list[str] = []
    makers: dict[str, Callable[[], int | None]] = {"qdisc": broken, "ns-3": lambda: None, "simulator": lambda: 7}
    assert list(available(makers, said.append)) == [7]
    assert said == ["qdisc: NOT RUN: flex missing", "ns-3: NOT RUN: it is not here"]


def test_the_jobs_of_a_place_are_runs_by_everything_they_depend_on() -> None:
    group = GROUPS["PDS 6"]
    place = agreement.Place(page.QDISC, lambda *_: {}, "kernel")
    jobs = agreement.jobs_of(place, [group])
    assert len(jobs) == 9 * 3  # spans share runs: three histories and seeds
    assert len({str(job.depends) for job in jobs.values()}) == 3 * 3
    other = agreement.jobs_of(agreement.Place(page.QDISC, lambda *_: {}, "another kernel"), [group])
    assert not {str(job.depends) for job in other.values()} & {str(job.depends) for job in jobs.values()}


@pytest.mark.parametrize("name", [page.NS3, page.NS3_TCP])
def test_ns3_runs_a_point_of_two_figures_once(name: str) -> None:
    place = agreement.Place(name, lambda *_: {}, "ns-3", {"linkweir-pss-figures": "program"})
    figures = [GROUPS["PSS 5"], GROUPS["PSS 6"]]
    jobs = agreement.jobs_of(place, figures)
    assert len(jobs) == 2 * 54
    # Figure 6 differs from 5 only under PSS, where EF does not send the expected half of the link: 2 shares of EF, 9 of
    # AF. AF's rate is K_AF (1 - 0.5) C in Figure 6 and K_AF (1 - EF) C in Figure 5. So with EF 0.25, K_AF 0.3, 0.6 and
    # 0.9 in Figure 6 are 0.2, 0.4 and 0.6 in Figure 5; with EF 0.75, 0.1 to 0.4 in Figure 6 are 0.2 to 0.8 in Figure 5.
    assert len({str(job.depends) for job in jobs.values()}) == 54 + 2 * 9 - 3 - 4
    other = agreement.Place(name, lambda *_: {}, "ns-3", {"linkweir-pss-figures": "another program"})
    others = {str(job.depends) for job in agreement.jobs_of(other, figures).values()}
    assert not others & {str(job.depends) for job in jobs.values()}


def test_ns3_runs_again_with_its_tcp_and_with_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def depends(place: str, figure: str) -> set[str]:
        made = agreement.Place(place, lambda *_: {}, "ns-3")
        return {str(job.depends) for job in agreement.jobs_of(made, [GROUPS[figure]]).values()}

    assert not depends(page.NS3, "PSS 6") & depends(page.NS3_TCP, "PSS 6")
    before = depends(page.NS3, "PDS 6")
    monkeypatch.setattr(points.pds, "SEEDS", points.pds.SEEDS + 1)
    assert not before & depends(page.NS3, "PDS 6")


# --- Decisions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", decisions.POLICIES)
def test_no_packet_arrives_when_another_leaves(policy: str) -> None:
    scenario = decisions.scenario(policy, 5000)
    flows = flows_of(scenario)
    packets = due(flows, scenario)
    at_ns = packets["at_ns"].astype(np.int64)
    service_ns = 8 * decisions.PACKET_BYTES * 10**9 // decisions.LINK_BPS
    assert at_ns[0] == 0
    phase_ns = at_ns[1:] % service_ns
    assert min(phase_ns.min(), (service_ns - phase_ns).min()) >= 29_000
    assert len(packets) == pytest.approx(1.15 * 5000, rel=0.01)
    world(scenario, frozenset(decisions.POLICIES))
    tunnel(scenario, calls=True)
    assert 'disc->SetAttribute("Record", StringValue(record));' in ns3_program(scenario).text
    in_bpf = bpf_settings(bpf_guest.matched(scenario)).text
    points = [line for line in in_bpf.splitlines() if line.startswith("match")]
    assert points == ['match = [{ dscp = "LE" }]', "match = [{ dscp = 2 }]", "match = [{ dscp = 3 }, {}]"]
    assert set(decisions.POLICIES) <= set(POLICIES)


def test_a_place_that_decides_otherwise_is_marked() -> None:
    orders = Agreement(1000, (0, 0))
    orders.differing["equal times"] = 2
    found = [
        decisions.Found(page.SIMULATOR, "pss", 1000, True, 0, None),
        decisions.Found(page.NS3, "pss", 1000, True, 0, Agreement(1000, (0, 0))),
        decisions.Found(page.VIRTUAL, "pss", 1000, False, -42_000, orders),
    ]
    assert [one.kept for one in found] == [True, True, False]
    lines = decisions.table(found).splitlines()
    assert lines[3] == "| pss | ns-3 | 1,000 | at all | 0.000 µs | 1,000 | 100.0000 % | none |"
    assert lines[4] == "| pss | gateway | 1,000 | **no** | -42.000 µs | 1,000 | **99.8000 %** | equal times 2 |"
