# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's scheduler as queueing disciplines of Linux, below a class that shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from linkweir import _native
from linkweir.fault import unfit

ETHERNET_BYTES = 14
"""Header that the kernel counts with each packet of an Ethernet device."""
SHAPED = "1:1"
"""The class that the queueing disciplines are put below."""
IN_MODULE = frozenset(("codes", "exp_pf", "exp_rule", "mlwdf", "pds", "pf", "pss"))
"""Policies that are queueing disciplines of linkweir's module."""
PREFIXED = frozenset(("codes", "pf"))
"""Those of them whose names would say too little among all queueing disciplines: theirs is `lw_` and the policy's."""

Table = Mapping[str, Any]
"""A table of a resolved scenario."""


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


def exact(text: str | float, unit: str) -> str:
    """A parameter as tc reads it, in the largest unit in which it is whole.

    >>> exact("8Mbit", "rate"), exact("1.5s", "time"), exact(0.25, "fraction"), exact("1kB", "size"), exact(3, "number")
    ('8mbit', '1500ms', '25.0000%', '1000', '3')
    """
    if unit in ("number", "choice"):
        return str(text)
    if unit == "fraction":
        amount = float(text) if not isinstance(text, str) else _native.quantity(text, "fraction")
        return f"{100 * amount:.4f}%"
    amount = _native.quantity(str(text), unit)
    if unit == "time":
        return _whole(round(1e9 * amount), {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1})
    if unit == "rate":
        return _whole(round(amount), {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1})
    return str(round(amount))


def _whole(amount: int, units: Mapping[str, int]) -> str:
    return next(f"{amount // size}{unit}" for unit, size in units.items() if amount % size == 0)


def settings(keys: Table, params: Sequence[Any]) -> list[str]:
    """Words for the parameters that differ from their defaults."""
    words = []
    for param in params:
        value = keys.get(param["name"])
        if value is not None and value != param["default"]:
            words += [param["name"], exact(value, param["unit"])]
    return words


def limit(entry: Table) -> list[str]:
    """Words for what a class may hold."""
    words = []
    if "limit" in entry:
        words += ["limit", str(round(_native.quantity(entry["limit"], "packets")))]
    if "limit_bytes" in entry:
        words += ["limit_bytes", str(round(_native.quantity(entry["limit_bytes"], "size")))]
    return words


def policy_lines(
    scheduler: Table,
    classes: Sequence[Table],
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
        return _own(add, scheduler, classes, ["link", exact(f"{round(nominal_bps)}bit", "rate")], sorter)
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
    add: str, scheduler: Table, classes: Sequence[Table], capacity: Sequence[str], sorter: Sorter
) -> tuple[list[str], tuple[str, ...]]:
    policy = next(policy for policy in _native.policies() if policy["name"] == scheduler["policy"])
    handles = tuple(f"10:{n:x}" for n in range(1, len(classes) + 1))
    sorted_by = sorter.words()
    words = ["classes", str(len(classes)), *capacity, *(sorted_by or [])]
    words += settings(scheduler, policy["params"])
    for n, entry in enumerate(classes, 1):
        words += ["class", str(n), *limit(entry), *settings(entry, policy["class_params"])]
    filters = [] if sorted_by is not None else sorter.lines("10:", dict(enumerate(handles)))
    return [f"{add} {kind_of(policy['name'])} {' '.join(words)}", *filters], handles


def _linux_fifo(entry: Table) -> str:
    if "limit_bytes" not in entry:
        return f"pfifo {' '.join(limit(entry))}"
    if "limit" in entry:
        raise unfit(
            "class.limit", entry["limit"], "Linux's FIFO counts packets or bytes: leave out limit or limit_bytes"
        )
    return f"bfifo limit {round(_native.quantity(entry['limit_bytes'], 'size'))}"


def _codel(scheduler: Table, classes: Sequence[Table]) -> str:
    """Linux's codel, which has one queue for all."""
    if len(classes) > 1:
        raise unfit("scheduler.policy", "codel", "must have one class here, as Linux's has one queue for all")
    (policy,) = (policy for policy in _native.policies() if policy["name"] == "codel")
    usual = {param["name"]: param["default"] for param in policy["params"]}
    values = {**usual, **{name: value for name, value in scheduler.items() if name in usual}}
    if _native.quantity(values["mtu"], "size") != _native.quantity(str(usual["mtu"]), "size"):
        raise unfit("scheduler.mtu", values["mtu"], f"must be {usual['mtu']} here, as in Linux")
    if "limit_bytes" in classes[0]:
        raise unfit("class.limit_bytes", classes[0]["limit_bytes"], "Linux's codel counts packets: give limit")
    times = [f"{name} {1e6 * _native.quantity(values[name], 'time'):.0f}us" for name in ("target", "interval")]
    return " ".join(["codel", *limit(classes[0]), *times, "ecn" if values["ecn"] == "yes" else "noecn"])


def _fq_codel(
    add: str, scheduler: Table, classes: Sequence[Table], sorter: Sorter, *, hashed: bool
) -> tuple[list[str], tuple[str, ...]]:
    """Linux's fq_codel: unless `hashed`, with a flow queue for each class, as the simulator's queues are classes."""
    policy = next(policy for policy in _native.policies() if policy["name"] == "fq_codel")
    usual = {param["name"]: param["default"] for param in policy["params"]}
    values = {**usual, **{name: value for name, value in scheduler.items() if name in usual}}
    for name in ("mtu", "memory"):
        if _native.quantity(values[name], "size") != _native.quantity(str(usual[name]), "size"):
            raise unfit(f"scheduler.{name}", values[name], f"must be {usual[name]} here, as in Linux")
    most = round(_native.quantity(values["limit"], "packets"))
    for entry in () if hashed else classes:
        if "limit_bytes" in entry or round(_native.quantity(entry["limit"], "packets")) < most:
            key = "limit_bytes" if "limit_bytes" in entry else "limit"
            least = f"{most}p, the scheduler's limit: Linux's fq_codel has no other"
            raise unfit(f"class.{key}", entry[key], f"give limit, at least {least}")
    times = [f"{name} {1e6 * _native.quantity(values[name], 'time'):.0f}us" for name in ("target", "interval")]
    quantum = round(_native.quantity(values["quantum"], "size"))
    ecn = "ecn" if values["ecn"] == "yes" else "noecn"
    flows = "" if hashed else f"flows {len(classes)} "
    words = f"fq_codel limit {most} {flows}quantum {quantum} {' '.join(times)} {ecn}"
    handles = tuple(f"10:{n:x}" for n in range(1, len(classes) + 1))
    filters = [] if hashed else sorter.lines("10:", dict(enumerate(handles)))
    return [f"{add} {words}", *filters], handles


def _in_tree(
    add: str, name: str, classes: Sequence[Table], device: str, sorter: Sorter
) -> tuple[list[str], tuple[str, ...]]:
    """Kernel's prio between the levels, its drr within each that has several classes, a FIFO for each class."""
    levels: dict[int, list[int]] = {}
    for n, entry in enumerate(classes):
        levels.setdefault(entry.get("level", n), []).append(n)
        if "limit_bytes" in entry:
            raise unfit(f"class[{n}].limit_bytes", entry["limit_bytes"], f"{name} counts packets here: give limit")
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
            quantum = round(_native.quantity(classes[n]["quantum"], "size"))
            below.append(f"class add dev {device} parent {parent} classid {handles[n]} drr quantum {quantum}")
            below.append(_fifo(device, handles[n], 0x100 + n, classes[n]))
        below += sorter.lines(parent, {n: handles[n] for n in mine})
    return [*lines, *sorter.lines("10:", places), *below], tuple(handles)


def _fifo(device: str, parent: str, handle: int, entry: Table) -> str:
    return f"qdisc add dev {device} parent {parent} handle {handle:x}: pfifo {' '.join(limit(entry))}"
