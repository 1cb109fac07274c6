# SPDX-License-Identifier: BSD-3-Clause
"""A link for a program's own packets: no clock, no socket, the same result every time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from linkweir import _native
from linkweir.scenarios.scenario import AnyTrace, Scenario, link_of

_Found = TypeVar("_Found")


class Received(NamedTuple):
    """A packet that has arrived."""

    payload: Any
    """What it carries."""
    class_name: str
    """Its class."""
    length: int
    """Its length in bytes, as it was sent."""
    sent_ns: int
    """When it was sent, ns."""
    left_ns: int
    """When the policy let it go from its queue, ns."""
    arrived_ns: int
    """When it arrived, ns."""
    marked: bool
    """Whether the policy marked it (ECN)."""


class Dropped(NamedTuple):
    """A packet that was dropped or lost."""

    payload: Any
    """What it carried."""
    class_name: str
    """Its class."""
    length: int
    """Its length in bytes, as it was sent."""
    sent_ns: int
    """When it was sent, ns."""
    dropped_ns: int
    """When it was dropped or lost, ns."""
    reason: str
    """Why: limit, policy, age, link, decoder or order, as in table `packets`."""


class Link:
    """A link that a program drives: it passes in the time, sends packets and receives those that have arrived.

    Times are integers in ns since the start, and never go back. The link is that of `linkweir.run`: the same packets at
    the same times give the same. Every method raises `RunError` after a policy of the scenario has failed, and
    `RuntimeError` while another thread uses the link or if the link's own policy calls it.

    Args:
        scenario: a dict, the path of a TOML file, or a `Scenario`, of one ``[link]``. It may lack flows; those that it
            has are other traffic on the link. Without ``duration`` the link exists for an hour.
        seed: takes the place of the scenario's seed.
        trace: as for `linkweir.run`.
        trace_keys: as for `linkweir.run`.

    Raises:
        ScenarioError: something in the scenario is wrong, or it has several links.
        RunError: its values contradict each other, or the policy fails.

    >>> link = Link({
    ...     "link": {"rate": "12Mbit", "delay": "20ms"},
    ...     "scheduler": {"policy": "strict"},
    ...     "class": [{"name": "voice"}, {"name": "rest"}],
    ... })
    >>> for class_name, payload in ("rest", "a"), ("rest", "b"), ("voice", "c"):
    ...     link.send(0, class_name, 1500, payload)
    >>> while (now_ns := link.next_ns()) is not None:
    ...     while packet := link.receive(now_ns):
    ...         print(packet.payload, packet.arrived_ns / 1e6)
    a 21.0
    c 22.0
    b 23.0
    """

    def __init__(
        self,
        scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
        *,
        seed: int | None = None,
        trace: AnyTrace | None = None,
        trace_keys: Mapping[str, Any] | None = None,
    ) -> None:
        self._native = _native.Link(link_of(scenario, seed=seed, trace=trace, trace_keys=trace_keys))
        self._names = self._native.classes
        self._places = {name: place for place, name in enumerate(self._names)}

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return list(self._names)

    @property
    def end_ns(self) -> int:
        """The time at which the link ends, ns."""
        return self._native.end_ns

    def send(
        self,
        now_ns: int,
        class_name: str,
        length: int,
        payload: Any = None,
        *,
        flow: int = 0,
        ecn: bool = False,
        l4s: bool = False,
    ) -> None:
        """Sends a packet.

        Args:
            now_ns: the time, ns; an earlier one than before counts as that.
            class_name: its class.
            length: its bytes, without the link's overhead.
            payload: what it carries: any object, which comes out at the other end.
            flow: tells it apart from those of other flows, where the class isolates flows.
            ecn: whether a policy may mark it instead of dropping it.
            l4s: whether it is an L4S packet, ECT(1) or CE, where the class sorts them (`flows = "dualpi2"`).
                A policy may mark it, too.

        Raises:
            ValueError: there is no such class, no link carries such a length, a number is negative or too large, or the
                link's time is over. The link and its clock stay as they were.
            TypeError: a number is no integer.
            RunError: the policy failed.
        """
        place = self._place(class_name)
        try:
            self._native.send(now_ns, place, length, flow, (ecn, l4s), payload)
        except OverflowError:
            raise ValueError("now_ns must be 0 .. 2**64 - 1, length and flow 0 .. 2**32 - 1") from None

    def next_ns(self) -> int | None:
        """When to ask again, ns: nothing arrives or is dropped earlier unless another packet is sent.

        None: nothing will. Packets may still be inside, if the capacity stays 0 or the link's time is over. Dropped
        packets that were not taken out do not count: after each time, take them out with `dropped`.
        """
        return self._native.next_ns()

    def receive(self, now_ns: int) -> Received | None:
        """The next packet that has arrived by this time, ns, if there is one.

        Raises:
            ValueError: the time is negative or too large.
            RunError: the policy failed.
        """
        found = self._at(self._native.receive, now_ns)
        return found and Received(found[0], self._names[found[1]], *found[2:])

    def dropped(self, now_ns: int) -> Dropped | None:
        """The next packet that was dropped or lost by this time, ns, if there is one.

        The link keeps them in memory until they are taken out, unless `forget_dropped` was called.

        Raises:
            ValueError: the time is negative or too large.
            RunError: the policy failed.
        """
        found = self._at(self._native.dropped, now_ns)
        return found and Dropped(found[0], self._names[found[1]], *found[2:])

    def forget_dropped(self) -> None:
        """Does not keep packets that are dropped or lost, from now on; they are still counted."""
        self._native.forget_dropped()

    def counts(self, class_name: str) -> dict[str, int]:
        """Packets of a class so far: sent, arrived, of these marked, and dropped."""
        names = ("sent_pkts", "arrived_pkts", "marked_pkts", "dropped_pkts")
        return dict(zip(names, self._native.counts(self._place(class_name)) or (), strict=True))

    @staticmethod
    def _at(call: Callable[[int], _Found | None], now_ns: int) -> _Found | None:
        try:
            return call(now_ns)
        except OverflowError:
            raise ValueError("now_ns must be 0 .. 2**64 - 1") from None

    def _place(self, class_name: str) -> int:
        if class_name not in self._places:
            raise ValueError(f"no class has the name {class_name!r}; there are {', '.join(self._names)}")
        return self._places[class_name]
