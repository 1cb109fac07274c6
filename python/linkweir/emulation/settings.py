# SPDX-License-Identifier: BSD-3-Clause
"""What is emulated: a scenario's link, or a trace with a queue in front of it, for packets that a program sends."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.deploy.copies import classes_of
from linkweir.deploy.matching import Rule, Sorting, sorting
from linkweir.fault import ScenarioError, unfit
from linkweir.scenarios.scenario import Scenario, driven_link

LASTS_H = 24
"""How long an emulated link exists, hours."""
OPEN: Mapping[str, Any] = {
    "link": {"rate": "400Gbit"},
    "scheduler": {"policy": "fifo"},
    "class": [{"name": "all", "limit": "100000p"}],
}
"""A direction in which packets never wait; only its delay is set."""
USUAL_QUEUE = "1000p"
"""Room in front of a trace."""
_MOST_NAMES = 20


@dataclass(frozen=True)
class Way:
    """One direction of the link.

    Attributes:
        native: the link with its policy, for `linkweir.Link`.
        sorting: which packets belong to which class.
        l4s: number of the class of packets with ECT(1) or CE; None if the policy does not sort by ECN.
        readings: what its trace was taken for, a line each.
        notes: what was chosen here, a sentence each.
        cure: what to do if the link ends too early.
    """

    native: _native.Scenario
    sorting: Sorting
    l4s: int | None = None
    readings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cure: str = f"emulate for {LASTS_H} h at most"

    @property
    def return_delay_s(self) -> float | None:
        """Delay of acknowledgements, s; None where the link's medium changes it over time."""
        link = self.native.tables()["link"]
        satellite = link["satellite"]
        if satellite is not None and (satellite["delays"] is not None or satellite["constellation"] is not None):
            return None
        return link["return_delay_s"]


@dataclass(frozen=True)
class Front:
    """What a trace needs to be a link, each None unless it was given.

    Attributes:
        delay: one-way delay.
        loss: probability of loss.
        queue: packets that may wait.
        policy: policy of the queue.
    """

    delay: str | None = None
    loss: str | None = None
    queue: str | None = None
    policy: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """Those that were given, by the names of their options."""
        every = {"delay": self.delay, "loss": self.loss, "queue": self.queue, "policy": self.policy}
        return {f"--{name}": value for name, value in every.items() if value is not None}


def is_scenario(file: Path) -> bool:
    """Whether a file is read as a scenario, by its name."""
    return file.suffix == ".toml"


def way_of(
    file: Path,
    front: Front,
    *,
    link: str | None = None,
    seed: int | None = None,
    trace_keys: Mapping[str, Any] | None = None,
    class_name: str | None = None,
    with_flows: bool = False,
) -> Way:
    """One direction.

    Args:
        file: a scenario if its name ends in ``.toml``, otherwise a trace of any format that ``link.trace`` reads.
        front: what a trace needs to be a link.
        link: name of the link, of a scenario that has several.
        seed: takes the place of the scenario's.
        trace_keys: keys of ``[link]`` that describe the trace.
        class_name: the class of all packets; None: the one that their headers choose, as `match` says.
        with_flows: the scenario's flows are other traffic on the link.

    Raises:
        ScenarioError: the file is wrong, or has what cannot be emulated.
    """
    if not is_scenario(file):
        for option, value in (("--link", link), ("--class", class_name), ("--flows", "given" if with_flows else None)):
            if value is not None:
                raise unfit(option, value, f"is for a scenario; {file} is read as a trace, so leave it out")
        return _of_trace(file, front, seed=seed, trace_keys=trace_keys)
    for option, value in front.given.items():
        raise unfit(option, value, f"is for a trace; write it in {file}, which is a scenario, or leave it out")
    if trace_keys:
        raise unfit("--trace-key", next(iter(trace_keys)), f"is for a trace; write it in [link] of {file}")
    native = _scenario(file, link, seed)
    way = _way(native, class_name, with_flows=with_flows)
    if "constellation" in (native.written()["link"].get("satellite") or {}):
        return dataclasses.replace(way, cure=f"raise duration in {file}")
    return way


def links_of(file: Path) -> list[str]:
    """Names of the links of a network; none of other files.

    Raises:
        ScenarioError: the scenario is wrong.
    """
    return Scenario.load(file).links if is_scenario(file) else []


def _scenario(file: Path, link: str | None, seed: int | None) -> _native.Scenario:
    try:
        native = _native.load(os.fspath(file), seed=seed, driven=True)
    except ScenarioError as fault:
        if "must be one link" not in fault.message:
            raise
        network = Scenario.load(file, seed=seed)
        if "constellation" in network.native.written():
            message = "its links come and go with the satellites; emulate a [link] with [link.satellite.constellation]"
            raise unfit("constellation", "", message) from None
        if "bond" in network.native.written():
            message = "several links behind one scheduler cannot be emulated; write one of them as a scenario's [link]"
            raise unfit("bond", "", message) from None
        if link is None:
            names = ", ".join(network.links[:_MOST_NAMES])
            message = f"a network cannot be emulated as a whole; choose one of its links with --link: {names}"
            raise unfit("link", "", message) from None
        return network.of_link(link).native
    if link is not None:
        raise unfit("--link", link, f"names a link of a network; {file} has one [link], so leave it out")
    return native


def _of_trace(file: Path, front: Front, *, seed: int | None, trace_keys: Mapping[str, Any] | None) -> Way:
    keys: dict[str, Any] = {"trace": str(file.absolute()), **(trace_keys or {})}
    keys |= {name: value for name, value in (("delay", front.delay), ("loss", front.loss)) if value is not None}
    policy = front.policy or "fifo"
    one: dict[str, Any] = {"name": "all", "limit": front.queue or USUAL_QUEUE}
    by_ecn = any(known["name"] == policy and known["sorted_by_ecn"] for known in _native.policies())
    classes = [{**one, "name": "l4s", "l4s": "yes"}, {**one, "name": "classic"}] if by_ecn else [one]
    return _way(driven_link({"link": keys, "scheduler": {"policy": policy}, "class": classes}, {}, seed=seed))


def back(of: Way, seed: int | None = None) -> Way:
    """The direction of acknowledgements as scenarios have it: their delay, and no queue that fills.

    Raises:
        ScenarioError: the medium changes this delay over time.
    """
    delay_s = of.return_delay_s
    if delay_s is None:
        message = "changes the delay of the other direction, too, which has none of its own here; give it with --uplink"
        raise unfit("link.satellite", "", message)
    keys = {**OPEN, "link": {**OPEN["link"], "delay": f"{round(delay_s * 1e9)}ns"}}
    return _way(driven_link(keys, {}, seed=seed))


def again(of: Way) -> Way:
    """The same link for the other direction, with random numbers of its own."""
    return dataclasses.replace(other_numbers(of), readings=(), notes=())


def other_numbers(of: Way) -> Way:
    """The same with the next seed, or both directions of one file would lose the same packets."""
    inputs = {name: content for name, _, content in of.native.inputs}
    keys = {key: value for key, value in of.native.written().items() if value != []}
    native = driven_link(keys, inputs, seed=(of.native.seed + 1) % 2**63)
    return dataclasses.replace(of, native=native)


def _way(native: _native.Scenario, class_name: str | None = None, *, with_flows: bool = False) -> Way:
    found = native.written()
    classes = classes_of(found)
    names = [entry["name"] for entry in classes]
    l4s = None
    if class_name is not None:
        if class_name not in names:
            raise unfit("--class", class_name, f"is no class of the scenario; there are {', '.join(names)}")
        sorted_by = Sorting(tuple(() for _ in names), names.index(class_name))
    else:
        l4s, sorted_by = _sorted(found, classes)
    lasting = _lasting(native, with_flows=with_flows)
    return Way(lasting, sorted_by, l4s, tuple(native.readings), (*sorted_by.notes, *native.notes))


def _sorted(keys: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]) -> tuple[int | None, Sorting]:
    """The class of L4S, and which packets belong to the others."""
    of_l4s = [number for number, entry in enumerate(classes) if entry.get("l4s") == "yes"]
    if len(of_l4s) > 1:
        message = (
            f"is in {len(of_l4s)} classes, between which packets cannot be sorted; leave it in one, or choose --class"
        )
        raise unfit("class.l4s", "yes", message)
    others = [number for number in range(len(classes)) if number not in of_l4s]
    if not others:
        return None, Sorting(((),), of_l4s[0])
    try:
        found = sorting(
            [classes[number] for number in others],
            [entry for entry in keys["class"] if entry.get("l4s") != "yes"],
        )
    except ScenarioError as fault:
        raise unfit(
            fault.key, fault.value, f"{fault.message}; or choose a class for all packets with --class"
        ) from None
    rules: list[tuple[Rule, ...] | None] = [()] * len(classes)
    for number, own in zip(others, found.rules, strict=True):
        rules[number] = own
    return next(iter(of_l4s), None), Sorting(tuple(rules), others[found.rest], found.notes)


def _lasting(native: _native.Scenario, *, with_flows: bool) -> _native.Scenario:
    """The same link without flows, for as long as it is emulated; one through a constellation ends as the scenario."""
    keys = native.written()
    satellite = keys["link"].get("satellite") or {}
    changes: dict[str, Any] = {"log": "none"}
    if "constellation" not in satellite:
        changes |= {"duration": f"{LASTS_H}h", "warmup": "0s", "interval": "1h"}
    if not with_flows:
        keys.pop("flow", None)
    inputs = {name: content for name, _, content in native.inputs}
    return driven_link({**keys, **changes}, inputs, seed=native.seed)
