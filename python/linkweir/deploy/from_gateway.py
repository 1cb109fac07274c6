# SPDX-License-Identifier: BSD-3-Clause
"""Link, scheduler and classes of a scenario from a configuration of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkweir import _native, traces
from linkweir.deploy.found import Found
from linkweir.deploy.gateway import MODES
from linkweir.deploy.left_out import VOICE_AGE, lacks_age_of_voice
from linkweir.deploy.paths import NUMBER_BYTES, bond_from, class_from, is_numbered, links_of
from linkweir.deploy.users import users_of
from linkweir.fault import unfit
from linkweir.scenarios.declared import rows

_OF_A_LINK = tuple(key for key in rows("link", file="gateway") if key in rows("link"))
"""Keys of a link that scenarios have, too."""
_LEARNED = tuple(key for key in rows("link", file="gateway") if key not in (*_OF_A_LINK, "across"))
"""How the gateway learns the rate."""
_OF_A_PEER = (*_OF_A_LINK, *_LEARNED, "across")
"""Keys of a link that a peer may have, too."""
_READ = ("gateway", "link", "scheduler", "class", "peer")
"""Tables of which something is read."""


def from_gateway(
    keys: Mapping[str, Any], *, tunnel_counted: bool = False, folder: Path | None = None, rate_elsewhere: bool = False
) -> Found:
    """Reads the tables of a configuration.

    Args:
        keys: the configuration, as TOML has it.
        tunnel_counted: add the bytes of the tunnel's headers to the link's overhead.
        folder: where the configuration is, because a trace is looked for there; this folder if none is given.
        rate_elsewhere: a configuration without a rate gives a link without one; otherwise it is an error.

    Raises:
        ScenarioError: it is no configuration of a gateway, or says no rate.
    """
    for table in ("gateway", "scheduler", "class"):
        if table not in keys:
            raise unfit(table, "", "is missing: this is no configuration of the gateway, nor what tc -j prints")
    peers = keys.get("peer", [])
    for number, peer in enumerate(peers):
        if "path" in peer and len(peers) > 1:
            cure = "a scenario has the paths of one; leave the other peers out"
            message = f"the peer has several paths at once, and there are other peers: {cure}"
            raise unfit(f"peer[{number}].path", "", message)
    # A peer's own link counts where there is no other.
    of_peer = {key: value for key, value in peers[0].items() if key in _OF_A_PEER} if len(peers) == 1 else {}
    given = {**_without_rates(keys.get("link", {}), of_peer), **of_peer}
    bonded = bool(peers) and "path" in peers[0]
    if bonded:
        # The paths have the capacities, and the rest is that of all.
        given = {key: value for key, value in given.items() if key in ("overhead", "mpu")}
    link, notes = _link(given, rate_elsewhere or bonded)
    notes += [f"{table}: concerns the gateway, not its scheduler" for table in keys if table not in _READ]
    notes += [f"link.{key}: a scenario has no such key" for key in keys.get("link", {}) if key not in _OF_A_PEER]
    if tunnel_counted:
        bytes_more = MODES.get(keys["gateway"].get("mode", "wireguard"), MODES["wireguard"])
        if bonded and all(map(is_numbered, keys["class"])):
            bytes_more += NUMBER_BYTES
        overhead = round(_native.quantity(link.get("overhead", "0B"), "size")) + bytes_more
        link["overhead"] = f"{overhead}B"
    members, bond = [], None
    if bonded:
        bond, noted = bond_from(peers[0])
        notes += noted
        for name, capacity, own in links_of(peers[0]):
            member, noted = _link(capacity, rate_elsewhere)
            notes += [note.replace("link.", f"link.{name}.", 1) for note in noted]
            members.append({"name": name, **member, **link, **own})
    for one in (link, *members):
        if "trace" in one:
            one["trace"] = str((folder or Path()).resolve() / one["trace"])
    for number, entry in enumerate(keys["class"]):
        if lacks_age_of_voice(entry, entry.get("match", [])):
            notes.append(
                f"class[{number}].max_age: the gateway drops EF after {VOICE_AGE}; write max_age to have it here"
            )
    across = keys.get("link", {}).get("across")
    shared = across is not None and len(peers) > 1
    if len(peers) > 1:
        kept = ("across",) if shared else ()
        notes += [f"peer[{number}].{key}: is of this peer only" for number, key in _of_peers(peers) if key not in kept]
    scheduler, classes = dict(keys["scheduler"]), [dict(entry) for entry in keys["class"]]
    if shared:
        scheduler["across"] = dict(across)
        classes, lost = users_of(classes, peers)
        notes += lost
    elif across is not None:
        notes.append("link.across: the policy among peers; there is one")
    if bonded:
        classes = [class_from(entry) for entry in classes]
    return Found(link, scheduler, classes, tuple(notes), bond=bond, members=tuple(members))


def _link(given: Mapping[str, Any], rate_elsewhere: bool) -> tuple[dict[str, Any], list[str]]:
    link = {key: given[key] for key in _OF_A_LINK if key in given}
    notes = [f"link.{key}: how the gateway learns the rate" for key in _LEARNED if key in given]
    if not any(key in link for key in ("rate", "trace")):
        feedback = given.get("feedback")
        known = [given.get("nominal"), feedback.get("ceiling") if isinstance(feedback, Mapping) else None]
        rates = [rate for rate in (*known, given.get("floor")) if rate is not None]
        if not rates and rate_elsewhere:
            return link, notes
        if not rates:
            cure = "give --with SCENARIO, whose link has one, or write nominal in [link]"
            raise unfit("link.rate", "", f"is missing, and nominal, too: {cure}")
        link["rate"] = rates[0]
        notes.append(f"link.rate = {rates[0]}: the file has none, so this is its nominal rate, ceiling or floor")
    if isinstance(link.get("rate"), str):
        link.setdefault("follow", True)
        if not any(key in given for key in _LEARNED):
            del link["follow"]  # nothing changes
    return link, notes


def _without_rates(link: Mapping[str, Any], of_peer: Mapping[str, Any]) -> dict[str, Any]:
    """The table `[link]` without its rate or trace where the peer has one."""
    replaced = ("rate", *traces.WITH_TRACE) if any(key in of_peer for key in ("rate", "trace")) else ()
    return {key: value for key, value in link.items() if key not in replaced}


def _of_peers(peers: list[Mapping[str, Any]]) -> list[tuple[int, str]]:
    return [(number, key) for number, peer in enumerate(peers) for key in peer if key in _OF_A_PEER]
