# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's scheduler as a shell script that sets it up with tc, and one that undoes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir.deploy import left_out
from linkweir.deploy.copies import classes_of, each_copy
from linkweir.deploy.filters import Filters
from linkweir.deploy.matching import Sorting, sorting
from linkweir.deploy.policy import ETHERNET_BYTES, IN_MODULE, SHAPED, exact, kind_of, policy_lines
from linkweir.fault import unfit
from linkweir.scenarios.declared import refuse_scheduler, rows, told
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Class, Link

_DEVICE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}")
_LONGEST = 15
_MOST_BYTES = 256
"""Greatest overhead and least length that a queueing discipline takes, as cake does."""
_QUANTUM_BYTES = 60_000
"""What HTB lends at a time; with a single class it changes nothing, but the default is logged as too large."""


@dataclass(frozen=True)
class Scripts:
    """What sets up a scenario's scheduler, and what undoes it.

    Attributes:
        up: shell script that sets it up.
        down: shell script that undoes it.
        notes: what was chosen or could not be carried over, a line each.
        warnings: why it may not do what the simulation did, a sentence each.
    """

    up: str
    down: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def tc_scripts(scenario: Scenario, device: str, *, ingress: bool = False, shaper: str = "htb") -> Scripts:
    """Makes the scripts.

    Args:
        scenario: what to set up: its link, its scheduler and its classes.
        device: the network device where packets wait.
        ingress: schedule what the device receives, with an intermediate functional block (IFB), not what it sends.
        shaper: `htb`, or `module` if a queueing discipline of linkweir shapes itself.

    Raises:
        ScenarioError: Linux has nothing like it, or the device's name is none.
    """
    if shaper not in ("htb", "module"):
        raise unfit("--shaper", shaper, "must be htb or module")
    if not _DEVICE.fullmatch(device):
        raise unfit("--device", device, "must be the name of a network device: 1 .. 15 letters, digits, _, - or .")
    refuse_constellation(scenario, "tc")
    if scenario.is_network:
        message = (
            f"is one of {len(scenario.links)} links, each with a script of its own; "
            "name its device as --device LINK=NAME (in Python: scenario.of_link)"
        )
        raise unfit("link.name", scenario.links[0], message)
    keys, tables = scenario.native.written(), scenario.native.tables()
    link, scheduler, numbers = keys["link"], tables["scheduler"], tables["link"]
    refuse_scheduler("tc", keys["scheduler"])
    shown = classes_of(keys)
    classes, changed = _carried(shown, each_copy(tables["classes"]), numbers)
    hashed = scheduler["policy"] == "fq_codel"
    sorted_by = Sorting((None,) * len(classes), 0) if hashed else sorting(shown, keys["class"])
    at = ifb_of(device) if ingress else device
    own = _bandwidth(link, numbers) if shaper == "module" else None
    _check_times(scheduler["policy"], shown)
    filters = Filters(at, sorted_by)
    lines, _ = policy_lines(scheduler, classes, numbers["nominal_bps"], at, filters, hashed=hashed, shaper=own)
    shapes = "HTB" if own is None else "the shaper"
    notes = [*sorted_by.notes, *changed, *left_out.of_the_link(link, "tc", shapes), *left_out.of_the_run(keys)]
    if hashed:
        notes.append("class: Linux's fq_codel tells flows by their addresses and ports, so classes have no part in it")
    if any("flower" in line and "_port" in line for line in lines):
        notes.append("class.match: later fragments of a datagram carry no ports, and filters do not see their first")
    name = scenario.policy
    size = _size(device, numbers) if own is None else []
    add = [f"tc {line}" for line in (*(_shaper(at, numbers) if own is None else []), *lines)]
    undo = _undo(device, at)
    warnings = [_fixed(at, link, own is not None)] if left_out.varies(link) else []
    said = [*notes, *(f"warning: {warning}" for warning in warnings)]
    head = _head(scenario.name, name, at, said, _changes(name, at, link, own is not None))
    return Scripts(
        "".join(f"{line}\n" for line in [*head, *size, *_up(device, at, add, undo)]),
        "".join(f"{line}\n" for line in ["#!/bin/sh", f"# Undoes what was set up on {device}.", *undo]),
        tuple(notes),
        tuple(warnings),
    )


def _fixed(device: str, link: Mapping[str, Any], by_itself: bool) -> str:
    """What a rate that stays as it is does to a link that fades, and what follows the link instead."""
    text = (
        f"the rate stays at {link['nominal']} while the link changes: in a fade packets wait in the modem, where "
        "nothing orders them; "
    )
    tunnel = "with a gateway at the far end use linkweir export gateway and feedback"
    if by_itself:
        return (
            f"{text}use --shaper htb and linkweir-gateway rate --device {device}, which follows the link, or {tunnel}"
        )
    return f"{text}linkweir-gateway rate --device {device} --reflector ADDRESS follows the link, or {tunnel}"


def ifb_of(device: str) -> str:
    """The name of the IFB behind a device, whose last letters tell devices with long names apart.

    >>> ifb_of("eth0"), ifb_of("enx00112233445a")
    ('ifb-eth0', 'ifb-0112233445a')
    """
    return f"ifb-{device[-(_LONGEST - len('ifb-')) :]}"


def _carried(
    written: Sequence[Mapping[str, Any]], classes: Sequence[Class], link: Link
) -> tuple[list[Class], list[str]]:
    """The classes with limits that a queueing discipline has, and what became of other keys."""
    found, notes = [], []
    in_time = rows("class")["limit"].of("tc").words
    for number, (shown, entry) in enumerate(zip(written, classes, strict=True)):
        others = told("class", "tc", shown, "left_out")
        notes += [f"class[{number}].{key} = {shown[key]}: {why}" for key, why in others]
        own = entry.copy()
        if own["limit_s"] is not None:
            bits = own["limit_s"] * link["nominal_bps"]
            notes.append(f"class[{number}].limit = {shown['limit']}: {in_time}")
            own["limit_bytes"], own["limit_s"] = max(round(bits / 8), 3000), None
        found.append(own)
    return found, notes


def _check_times(policy: object, classes: Sequence[Mapping[str, Any]]) -> None:
    """Refuses limits that are times where Linux counts packets: they could only become bytes."""
    if policy in ("drr", "strict"):
        for number, entry in enumerate(classes):
            if "limit" in entry and not entry["limit"].endswith("p"):
                message = f"must be packets here, such as 100p, because {policy} of Linux counts packets"
                raise unfit(f"class[{number}].limit", entry["limit"], message)


def _rate(link: Link) -> str:
    rate_bps = link["rate_bps"]
    return exact(rate_bps if isinstance(rate_bps, float) else link["nominal_bps"], "rate")


def _bandwidth(link: Mapping[str, Any], numbers: Link) -> list[str]:
    """Words that make a queueing discipline of linkweir its own shaper."""
    words = ["bandwidth", _rate(numbers)]
    for key, size in (("overhead", numbers["overhead_bytes"]), ("mpu", numbers["mpu_bytes"])):
        if size > _MOST_BYTES:
            raise unfit(f"link.{key}", link[key], f"must be at most {_MOST_BYTES}B here; --shaper htb takes more")
        if size or key == "overhead":
            words += [key, str(size)]
    return words


def _shaper(device: str, link: Link) -> list[str]:
    rate = _rate(link)
    return [
        f"qdisc add dev {device} root handle 1: $size htb default 1",
        f"class add dev {device} parent 1: classid {SHAPED} htb rate {rate} ceil {rate} quantum {_QUANTUM_BYTES}",
    ]


def _undo(device: str, at: str) -> list[str]:
    if at == device:
        return [f"tc qdisc del dev {device} root"]
    return [f"tc qdisc del dev {device} ingress", f"ip link del {at}"]


def _changes(policy: str, device: str, link: Mapping[str, Any], by_itself: bool) -> list[str]:
    if "trace" not in link and not isinstance(link.get("rate"), dict):
        return []
    if by_itself:
        change = f"tc qdisc change dev {device} root handle 10: {kind_of(policy)} bandwidth RATE"
        return ["", "When the link's rate changes:", f"  {change}"]
    lines = [f"tc class change dev {device} parent 1: classid {SHAPED} htb rate RATE ceil RATE"]
    if policy in IN_MODULE:
        lines.append(f"tc qdisc change dev {device} parent {SHAPED} handle 10: {kind_of(policy)} link RATE")
    return ["", "When the link's rate changes:", *(f"  {line}" for line in lines)]


def _head(name: str, policy: str, device: str, notes: Sequence[str], changes: Sequence[str]) -> list[str]:
    text = [f"The scheduler of {shlex.quote(name)} for {device}, written by linkweir export tc. Run it as root."]
    if policy in IN_MODULE:
        kind = kind_of(policy)
        text.append(f"It needs linkweir's kernel module and tc's plugin for {kind}: linkweir-dkms, iproute2-linkweir.")
    text += ["", "Not as in the scenario:", *(f"  {note}" for note in notes), *changes]
    printable = ("".join(c if c.isprintable() else "?" for c in line) for line in text)
    return ["#!/bin/sh", *(f"# {line}".rstrip() for line in printable), "set -eu"]


def _size(device: str, link: Link) -> list[str]:
    """Sets `size`: words that make the kernel count the bytes that a packet takes on the link."""
    overhead = link["overhead_bytes"]
    least = f"mpu {link['mpu_bytes']} " if link["mpu_bytes"] else ""
    return [
        f"# An Ethernet device counts its header, {ETHERNET_BYTES} bytes; the link adds {overhead} to a packet.",
        f'[ "$(cat /sys/class/net/{device}/type)" = 1 ] && header={ETHERNET_BYTES} || header=0',
        f'size="stab {least}overhead $(({overhead} - header)) linklayer ethernet"',
    ]


def _up(device: str, at: str, add: Sequence[str], undo: Sequence[str]) -> list[str]:
    if at != device:
        return [
            f"ip link add name {at} type ifb",
            f"trap '[ $? = 0 ] || ip link del {at}' EXIT",
            f"ip link set dev {at} up",
            f"tc qdisc add dev {device} handle ffff: ingress",
            f"trap '[ $? = 0 ] || {{ {'; '.join(undo)}; }}' EXIT",
            f"tc filter add dev {device} parent ffff: protocol all pref 1 matchall "
            f"action mirred egress redirect dev {at}",
            *add,
        ]
    return [add[0], f"trap '[ $? = 0 ] || {{ {'; '.join(undo)}; }}' EXIT", *add[1:]]
