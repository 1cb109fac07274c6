# SPDX-License-Identifier: BSD-3-Clause
"""Orders of departures compared across places: planted faults must be found, counted and put down to their cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkweir.reproduce.orders import (
    CallsError,
    Departure,
    Timing,
    cell,
    compare_orders,
    departures,
    later_ns,
    read_departures,
)

STEP_NS = 600_000
EXACT = Timing()


def turns(count: int, wait_ns: int = 10 * STEP_NS) -> list[Departure]:
    """Two classes in turn; every packet has waited for long when it leaves."""
    return [Departure(i % 2, i // 2, i * STEP_NS - wait_ns, i * STEP_NS) for i in range(count)]


def swapped(order: list[Departure], at: int) -> list[Departure]:
    """The packets at two positions change places; the times of departures stay."""
    first, second = order[at], order[at + 1]
    changed = [*order]
    changed[at] = second._replace(left_ns=first.left_ns)
    changed[at + 1] = first._replace(left_ns=second.left_ns)
    return changed


def test_equal_orders_agree_at_every_position() -> None:
    found = compare_orders(turns(1000), turns(1000), EXACT)
    assert (found.positions, found.part, found.skipped) == (1000, 1.0, (0, 0))


def test_a_planted_swap_is_another_decision() -> None:
    found = compare_orders(turns(1000), swapped(turns(1000), 500), EXACT)
    assert found.differing == {"unexplained": 2}
    assert found.part == pytest.approx(0.998)


def test_a_policy_that_remembers_when_packets_left_may_swap_those_that_waited() -> None:
    found = compare_orders(turns(1000), swapped(turns(1000), 500), EXACT, remembers=True)
    assert found.differing == {"times": 2}
    other = [one._replace(queue=5) for one in turns(10)]  # not what another time could cause
    found = compare_orders(turns(1000), [*turns(500), *other, *turns(1000)[510:]], EXACT, remembers=True)
    assert found.differing == {"only in one": 10}


def test_a_swap_at_the_first_position_is_no_start_offset() -> None:
    found = compare_orders(turns(1000), swapped(turns(1000), 0), EXACT)
    assert (found.skipped, found.differing) == ((0, 0), {"unexplained": 2})


@pytest.mark.parametrize("missing", [1, 2, 7])
def test_a_late_start_is_skipped(missing: int) -> None:
    found = compare_orders(turns(1000), turns(1000)[missing:], EXACT)
    assert (found.skipped, found.positions, found.part) == ((missing, 0), 1000 - missing, 1.0)


def test_a_shifted_order_is_found() -> None:
    order = turns(1000)
    found = compare_orders(order, [*order[:400], *order[401:]], EXACT)
    assert found.differing == {"only in one": 599}


def test_other_packets_cannot_be_compared() -> None:
    other = [one._replace(queue=5) for one in turns(10)]
    assert compare_orders(turns(10), other, EXACT).positions == 0
    assert compare_orders(turns(10), other, EXACT).part == 0.0


@pytest.mark.parametrize(
    ("lead_ns", "timing", "cause"),
    [
        (0, EXACT, "equal times"),
        (-STEP_NS, Timing(ring_ns=STEP_NS), "ring"),
        (-STEP_NS, Timing(tick_ns=4_000_000), "jiffies"),
        (-STEP_NS, EXACT, "unexplained"),
        (-5 * STEP_NS, Timing(ring_ns=STEP_NS, tick_ns=4_000_000), "jiffies"),
    ],
)
def test_the_cause_of_a_difference(lead_ns: int, timing: Timing, cause: str) -> None:
    """The packet that ought to go first arrives `lead_ns` before the decision in the place; below 0: after it."""
    if lead_ns == -5 * STEP_NS:
        lead_ns = -4_000_000
    order = swapped(turns(1000), 500)
    order[501] = order[501]._replace(arrived_ns=order[500].left_ns - lead_ns)
    found = compare_orders(turns(1000), order, timing)
    assert found.differing == {cause: 2}


def test_another_decision_because_of_other_waits_is_told_from_a_wrong_one() -> None:
    """Two packets swap places. In the place class 1 waited longer, so that it is more urgent there."""
    order = swapped(turns(1000), 500)
    longer = {at: order[at]._replace(arrived_ns=order[at].arrived_ns - STEP_NS) for at in (500, 501)}
    late = [longer.get(at, one) for at, one in enumerate(order)]

    def urgency(queue: int, wait_ns: int) -> float:
        return wait_ns + (wait_ns - 9.5 * STEP_NS) * 5 * queue

    assert compare_orders(turns(1000), late, EXACT, urgency).differing == {"waits": 2}
    assert compare_orders(turns(1000), late, EXACT).differing == {"unexplained": 2}
    assert compare_orders(turns(1000), order, EXACT, lambda queue, _wait_ns: -queue).differing == {"unexplained": 2}


def test_how_much_later_packets_arrive_is_counted_from_departures() -> None:
    """The place begins 1 s later. All packets but one arrive 42 us earlier before departures; one is never sent."""
    place = [one._replace(arrived_ns=one.arrived_ns + 10**9 - 42_000, left_ns=one.left_ns + 10**9) for one in turns(99)]
    place[7] = place[7]._replace(arrived_ns=place[7].arrived_ns + 300_000)
    del place[50]
    assert later_ns(turns(100), place) == -42_000
    assert later_ns(turns(100), []) == 0


def test_departures_of_a_recording() -> None:
    text = """linkweir-vectors 1
policy fifo
queues 3
link 1000
at 0 init
at 1 enqueue 0 100
at 2 enqueue 1 100
at 3 enqueue 1 100
at 4 enqueue 2 100 drops 1 h0
at 5 pick 1
at 5 verdict pass
at 5 send
at 6 enqueue 1 100
at 7 pick 2
at 7 verdict drop
at 8 send 1
"""
    assert departures(text.splitlines()) == [Departure(1, 0, 2, 5), Departure(1, 2, 6, 8)]


def test_a_recording_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "calls.vec"
    file.write_text("linkweir-vectors 1\nat 5 send 2\n")
    with pytest.raises(CallsError, match=r'calls\.vec: "at 5 send 2": queue 2 is empty'):
        read_departures(file)
    file.write_text("something else\n")
    with pytest.raises(CallsError, match="the first line is not"):
        read_departures(file)


def test_a_planted_wrong_rate_is_found() -> None:
    assert cell([5.0, 9.0, 6.0], [5.0, 9.0, 6.0], 0.002).kept
    assert not cell([5.0, 9.1, 5.9], [5.0, 9.0, 6.0], 0.002).kept
    assert cell([0.004, 9.0], [0.0, 9.0], 0.002, floor=2.0).kept
    assert not cell([0.4, 9.0], [0.0, 9.0], 0.002, floor=2.0).kept
    with pytest.raises(ValueError, match="compare the same classes"):
        cell([1.0], [1.0, 2.0], 0.1)
