# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's scheduler as queueing disciplines of Linux, below a class that shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from linkweir import _native
from linkweir.fault import unfit
from linkweir.scenarios.resolved import size_text
from linkweir.scenarios.typed import Class, Scheduler

ETHERNET_BYTES = 14
"""Header that the kernel counts with each packet of an Ethernet device."""
SHAPED = "1:1"
"""The class that the queueing disciplines are put below."""
IN_MODULE = frozenset(("codes", "exp_pf", "exp_rule", "mlwdf", "pds", "pf", "pss"))
"""Policies that are queueing disciplines of linkweir's module."""
PREFIXED = frozenset(("codes", "pf"))
"""Those of them whose names would say too little among all queueing disciplines: theirs is `lw_` and the policy's."""


def kind_of(policy: str) -> str:
    """The name of a policy's queueing discipline.

    >>> kind_of("pss"), kind_of("pf")
    ('pss', 'lw_pf')
    """
    return f"lw_{policy}" if policy in PREFIXED else policy


def policy_of(kind: str) -> str:
    """The policy of one of linkweir's queueing disciplines.

    >>> policy_of("pss"), policy_of("lw_pf")
    ('pss', 'pf')
    """
    return kind.removeprefix("lw_")


class Sorter(Protocol):
    """Says how packets come into the classes of a queueing discipline."""

    def words(self) -> list[str] | None:
        """Words for a queueing discipline of linkweir; None if it needs `lines`."""

    def lines(self, parent: str, places: Mapping[int, str]) -> list[str]:
        """Commands of tc for the classes that are at these places, by their numbers."""


def exact(amount: Any, unit: str) -> str:
    """A parameter in its base unit as tc reads it, in the largest unit in which it is whole.

    >>> exact(8e6, "rate"), exact(1.5, "time"), exact(0.25, "fraction"), exact(1000, "size"), exact(3, "number")
    ('8mbit', '1500ms', '25.0000%', '1000', '3')
    """
    if unit in ("number", "choice"):
        return str(amount)
    if unit == "fraction":
        return f"{100 * amount:.4f}%"
    if unit == "time":
        return _whole(round(1e9 * amount), {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1})
    if unit == "rate":
        return _whole(round(amount), {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1})
    return str(round(amount))


def _whole(amount: int, units: Mapping[str, int]) -> str:
    return next(f"{amount // size}{unit}" for unit, size in units.items() if amount % size == 0)


def settings(values: Mapping[str, Any], params: Sequence[_native._Param]) -> list[str]:
    """Words for the parameters that differ from their defaults, and for all plain numbers, such as levels."""
    words = []
    for param in params:
        value = values.get(param["name"])
        if value is not None and (value != param["usual"] or param["unit"] == "number"):
            words += [param["name"], exact(value, param["unit"])]
    return words


def limit(entry: Class) -> list[str]:
    """Words for what a class may hold."""
    words = []
    if entry["limit_pkts"] is not None:
        words += ["limit", str(entry["limit_pkts"])]
    if entry["limit_bytes"] is not None:
        words += ["limit_bytes", str(entry["limit_bytes"])]
    return words


def policy_lines(
    scheduler: Scheduler,
    classes: Sequence[Class],
    nominal_bps: float,
    device: str,
    sorter: Sorter,
    *,
    kinds: frozenset[str] = IN_MODULE,
    hashed: bool = False,
    shaper: Sequence[str] | None = None,
) -> tuple[list[str], tuple[str, ...]]:
    """Commands of tc that put the policy below `SHAPED`, and the handles of the classes.

    Args:
        scheduler: the table of that name.
        classes: the tables `[[class]]`, copies counted.
        nominal_bps: the rate that the policy is told.
        device: where they go.
        sorter: says how packets come into the classes.
        kinds: policies that are queueing disciplines of linkweir.
        hashed: Linux's fq_codel tells flows by their addresses and ports, and not by class.
        shaper: words that make one of linkweir's disciplines its own shaper; it is then the root.

    Raises:
        ScenarioError: Linux has nothing like it.
    """
    name = scheduler["policy"]
    if not isinstance(name, str):
        raise unfit("scheduler.policy", next(iter(name.values())), "runs in the simulator only; name a policy of Linux")
    add = f"qdisc add dev {device} parent {SHAPED} handle 10:"
    if name in kinds:
        if shaper is not None:
            return _own(f"qdisc add dev {device} root handle 10:", scheduler, classes, shaper, sorter)
        return _own(add, scheduler, classes, ["link", exact(nominal_bps, "rate")], sorter)
    if shaper is not None:
        raise unfit("--shaper", "module", f"{name} is not of linkweir's module and cannot shape; leave it out")
    if name in ("drr", "strict"):
        return _in_tree(add, name, classes, device, sorter)
    if name == "fifo":
        if len(classes) > 1:
            raise unfit("scheduler.policy", name, "must have one class here, as Linux's has one queue for all")
        return [f"{add} {_linux_fifo(classes[0])}"], (SHAPED,)
    if name == "codel":
        return [f"{add} {_codel(scheduler, classes)}"], (SHAPED,)
    if name == "fq_codel":
        return _fq_codel(add, scheduler, classes, sorter, hashed=hashed)
    known = ", ".join(sorted([*kinds, "drr", "strict", "fifo", "codel", "fq_codel"]))
    raise unfit("scheduler.policy", name, f"must be one of {known} on Linux")


def _own(
    add: str, scheduler: Scheduler, classes: Sequence[Class], capacity: Sequence[str], sorter: Sorter
) -> tuple[list[str], tuple[str, ...]]:
    policy = next(policy for policy in _native.policies() if policy["name"] == scheduler["policy"])
    handles = tuple(f"10:{n:x}" for n in range(1, len(classes) + 1))
    sorted_by = sorter.words()
    words = ["classes", str(len(classes)), *capacity, *(sorted_by or [])]
    words += settings(scheduler["params"], policy["params"])
    for n, entry in enumerate(classes, 1):
        words += ["class", str(n), *limit(entry), *settings(entry["params"], policy["class_params"])]
    filters = [] if sorted_by is not None else sorter.lines("10:", dict(enumerate(handles)))
    return [f"{add} {kind_of(policy['name'])} {' '.join(words)}", *filters], handles


def _linux_fifo(entry: Class) -> str:
    if entry["limit_bytes"] is None:
        return f"pfifo {' '.join(limit(entry))}"
    if entry["limit_pkts"] is not None:
        given = f"{entry['limit_pkts']}p"
        raise unfit("class.limit", given, "Linux's FIFO counts packets or bytes: leave out limit or limit_bytes")
    return f"bfifo limit {entry['limit_bytes']}"


def _values(scheduler: Scheduler, name: str, of_linux: Sequence[str]) -> Mapping[str, Any]:
    """The parameters of a policy; those in `of_linux` must have the policy's defaults, as Linux has no others."""
    policy = next(policy for policy in _native.policies() if policy["name"] == name)
    values = {param["name"]: scheduler["params"].get(param["name"], param["usual"]) for param in policy["params"]}
    for param in policy["params"]:
        value = values[param["name"]]
        if param["name"] in of_linux and value != param["usual"]:
            message = f"must be {param['default']} here, as in Linux"
            raise unfit(f"scheduler.{param['name']}", size_text(value), message)
    return values


def _codel(scheduler: Scheduler, classes: Sequence[Class]) -> str:
    """Linux's codel, which has one queue for all."""
    if len(classes) > 1:
        raise unfit("scheduler.policy", "codel", "must have one class here, as Linux's has one queue for all")
    values = _values(scheduler, "codel", ("mtu",))
    if (size := classes[0]["limit_bytes"]) is not None:
        raise unfit("class.limit_bytes", size_text(size), "Linux's codel counts packets: give limit")
    times = [f"{name} {1e6 * values[name]:.0f}us" for name in ("target", "interval")]
    return " ".join(["codel", *limit(classes[0]), *times, "ecn" if values["ecn"] == "yes" else "noecn"])


def _fq_codel(
    add: str, scheduler: Scheduler, classes: Sequence[Class], sorter: Sorter, *, hashed: bool
) -> tuple[list[str], tuple[str, ...]]:
    """Linux's fq_codel: unless `hashed`, with a flow queue for each class, as the simulator's queues are classes."""
    values = _values(scheduler, "fq_codel", ("mtu", "memory"))
    most = values["limit"]
    for entry in () if hashed else classes:
        size, pkts = entry["limit_bytes"], entry["limit_pkts"]
        if size is not None or pkts is None or pkts < most:
            key, given = ("limit_bytes", size_text(size)) if size is not None else ("limit", f"{pkts}p")
            least = f"{most}p, the scheduler's limit: Linux's fq_codel has no other"
            raise unfit(f"class.{key}", given, f"give limit, at least {least}")
    times = [f"{name} {1e6 * values[name]:.0f}us" for name in ("target", "interval")]
    quantum = values["quantum"]
    ecn = "ecn" if values["ecn"] == "yes" else "noecn"
    flows = "" if hashed else f"flows {len(classes)} "
    words = f"fq_codel limit {most} {flows}quantum {quantum} {' '.join(times)} {ecn}"
    handles = tuple(f"10:{n:x}" for n in range(1, len(classes) + 1))
    filters = [] if hashed else sorter.lines("10:", dict(enumerate(handles)))
    return [f"{add} {words}", *filters], handles


def _in_tree(
    add: str, name: str, classes: Sequence[Class], device: str, sorter: Sorter
) -> tuple[list[str], tuple[str, ...]]:
    """Kernel's prio between the levels, its drr within each that has several classes, a FIFO for each class."""
    levels: dict[int, list[int]] = {}
    for n, entry in enumerate(classes):
        levels.setdefault(entry["params"].get("level", n), []).append(n)
        if (size := entry["limit_bytes"]) is not None:
            raise unfit(f"class[{n}].limit_bytes", size_text(size), f"{name} counts packets here: give limit")
    if len(levels) > 16:
        raise unfit("class.level", len(levels), "must be at most 16 levels: the kernel's prio has 16 bands")
    bands = max(2, len(levels))
    others = " ".join([str(bands - 1)] * 16)  # the band of packets that no filter matches
    lines = [f"{add} prio bands {bands} priomap {others}"]
    places: dict[int, str] = {}
    handles = [""] * len(classes)
    below = []
    for band, (_, mine) in enumerate(sorted(levels.items()), 1):
        places |= dict.fromkeys(mine, f"10:{band:x}")
        if len(mine) == 1:
            handles[mine[0]] = f"10:{band:x}"
            below.append(_fifo(device, f"10:{band:x}", 0x100 + mine[0], classes[mine[0]]))
            continue
        parent = f"{0x20 + band:x}:"
        below.append(f"qdisc add dev {device} parent 10:{band:x} handle {parent} drr")
        for at, n in enumerate(mine, 1):
            handles[n] = f"{parent}{at:x}"
            quantum = classes[n]["params"]["quantum"]
            below.append(f"class add dev {device} parent {parent} classid {handles[n]} drr quantum {quantum}")
            below.append(_fifo(device, handles[n], 0x100 + n, classes[n]))
        below += sorter.lines(parent, {n: handles[n] for n in mine})
    return [*lines, *sorter.lines("10:", places), *below], tuple(handles)


def _fifo(device: str, parent: str, handle: int, entry: Class) -> str:
    return f"qdisc add dev {device} parent {parent} handle {handle:x}: pfifo {' '.join(limit(entry))}"
