# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a configuration of the gateway, `linkweir-gateway up`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkweir import _native
from linkweir.deploy import left_out, paths
from linkweir.deploy.copies import classes_of
from linkweir.deploy.matching import sorting
from linkweir.deploy.users import peers_of
from linkweir.fault import ScenarioError, unfit
from linkweir.scenarios.networks import refuse_network
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Link

MODES = {"wireguard": 60, "cleartext": 28}
"""How packets travel between gateways, and the bytes of the headers around each, over IPv4."""
PEER_KEYS = ("name", "endpoint", "public_key", "allowed_ips", "keepalive")
"""What can be said of a peer."""
_PLACEHOLDERS = {
    "address": "<address of this end in the tunnel, such as 10.77.0.1/24>",
    "private_key_file": "<file of this end's private key, which linkweir-gateway keygen writes>",
    "public_key": "<public key of the peer>",
    "endpoint": "<address and port of the peer; leave it out where the peer calls first>",
    "allowed_ips": "<addresses behind the peer, such as 10.77.0.2/32>",
    "device": "<device over which this path leads, such as wwan0>",
}

_ALONE = "; without a gateway at the far end use linkweir export tc and linkweir-gateway rate"


@dataclass(frozen=True)
class Configuration:
    """A configuration of the gateway.

    Attributes:
        text: the file.
        notes: what was chosen or could not be carried over, a line each.
        warnings: why it may not do what the simulation did, a sentence each.
    """

    text: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def toml_value(value: Any) -> str:
    """A value of a resolved scenario as TOML.

    >>> toml_value({"mean": "20Mbit", "amplitude": 0.3}), toml_value([["0s", "1Mbit"]]), toml_value(True)
    ('{ mean = "20Mbit", amplitude = 0.3 }', '[["0s", "1Mbit"]]', 'true')
    """
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        return "{ " + ", ".join(f"{key} = {toml_value(member)}" for key, member in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(member) for member in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def toml_table(header: str, keys: Mapping[str, Any]) -> str:
    """A table of TOML.

    >>> print(toml_table("[link]", {"rate": "1Mbit"}), end="")
    [link]
    rate = "1Mbit"
    <BLANKLINE>
    """
    return f"{header}\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items()) + "\n"


def gateway_configuration(
    scenario: Scenario,
    peers: Sequence[Mapping[str, str]] = (),
    *,
    mode: str = "wireguard",
    tunnel_counted: bool = False,
    own: Mapping[str, Any] | None = None,
) -> Configuration:
    """Makes a configuration.

    Args:
        scenario: its link, or the links of its one bond, its scheduler and its classes.
        peers: tables `[[peer]]`, see `PEER_KEYS`; what they lack becomes a placeholder, which `check` names.
        mode: wireguard or cleartext.
        tunnel_counted: link.overhead counts the headers of the tunnel, too.
        own: keys of `[gateway]` beside `mode`; what is needed and missing becomes a placeholder.

    Raises:
        ScenarioError: the gateway has nothing like it.
    """
    if mode not in MODES:
        raise unfit("--mode", mode, f"must be one of {', '.join(MODES)}")
    bond = paths.bond_of(scenario)
    if bond is None:
        refuse_network(scenario, "gateway")
    elif mode != "wireguard":
        raise unfit("--mode", mode, "must be wireguard for a bond: both ends agree on its paths inside the tunnel")
    members = [] if bond is None else paths.members_of(scenario, bond)
    alone = scenario if bond is None else scenario.of_link(bond["name"])
    keys = alone.native.written()
    scheduler = dict(keys["scheduler"])
    across = scheduler.pop("across", None)
    users: list[dict[str, Any]] = []
    if across is not None:
        keys["class"], users = peers_of(keys["class"])
        if peers and len(peers) != len(users):
            raise unfit("--peer", len(peers), f"must be {len(users)} peers, one for each user, or none")
    classes = classes_of(keys)
    known = [policy["name"] for policy in _native.policies() if not policy["sorted_by_ecn"]]
    if scheduler["policy"] not in known:
        raise unfit("scheduler.policy", scheduler["policy"], f"must be one of {', '.join(known)} in the gateway")
    try:
        sorted_by = sorting(classes, keys["class"])
    except ScenarioError as fault:
        if bond is None:
            raise
        raise unfit(f"bond[0].{fault.key}", fault.value, fault.message) from None
    around_bytes = MODES[mode]
    numbered = []
    if bond is not None:
        written = {entry["name"]: paths.class_of(number, entry) for number, entry in enumerate(classes)}
        numbered = [name for name, entry in written.items() if paths.is_numbered(entry)]
        if len(numbered) == len(written):
            around_bytes += paths.NUMBER_BYTES
    link, chosen = _link(keys["link"], alone.native.tables()["link"], around_bytes, tunnel_counted=tunnel_counted)
    if numbered and around_bytes == MODES[mode]:
        of = ", ".join(numbered)
        chosen.append(
            f"link: packets of {of} are {paths.NUMBER_BYTES} bytes longer in the tunnel than others: their numbers"
        )
    chosen += [
        f"class[{number}].max_age: the gateway drops EF after {left_out.VOICE_AGE}, and from the head when it is full; "
        'write max_age = "3600s" and full = "tail" for none of this'
        for number, (entry, rules) in enumerate(zip(classes, sorted_by.rules, strict=True))
        if left_out.lacks_age_of_voice(entry, rules or ())
    ]
    notes = [
        *sorted_by.notes,
        *chosen,
        *(left_out.of_the_link(keys["link"], "gateway", "link.rate") if bond is None else ()),
        *left_out.of_the_run(keys),
    ]
    warnings = []
    if left_out.varies(keys["link"]):
        warnings.append(left_out.FIXED.format(nominal=keys["link"]["nominal"], where="[[peer]]") + _ALONE)
    bonded: dict[str, Any] = {}
    if bond is not None:
        # The paths have the capacities.
        link = {key: value for key, value in link.items() if key in ("overhead", "mpu")}
        bonded, noted = paths.of_the_bond(bond)
        notes += noted
    endpoint = _PLACEHOLDERS["endpoint"]
    ends = [peer.get("endpoint") for peer in peers] or [endpoint]
    tables = []
    for number, end in enumerate(ends if bond is not None else []):
        of_peer, noted, warned = paths.paths_of(members, end, _PLACEHOLDERS["device"])
        tables.append(of_peer)
        if number == 0:
            notes += noted
            warnings += warned
    said = [*notes, *(f"warning: {warning}" for warning in warnings)]
    text = "".join(f"# {line}\n" for line in _head(scenario.name, said))
    text += toml_table("[gateway]", _own(mode, own or {}))
    policy = _policy(scheduler["policy"])
    if across is not None:
        among = _policy(across["policy"])
        link["across"] = without_defaults(across, [*among["params"], *among["class_params"]])
    text += toml_table("[link]", link) + toml_table("[scheduler]", without_defaults(scheduler, policy["params"]))
    for number, (entry, rules) in enumerate(zip(classes, sorted_by.rules, strict=True)):
        rest: list[Any] = [{}] if number == sorted_by.rest else []
        matched = {} if rules is None else {"match": [*rules, *rest]}
        others = {key: value for key, value in entry.items() if key not in ("name", "match", "user", "coded")}
        if bond is not None:
            others = {key: value for key, value in others.items() if key not in paths.OF_A_CLASS}
            others |= paths.class_of(number, entry)
        others = without_defaults(others, policy["class_params"])
        text += toml_table("[[class]]", {"name": one_word(entry["name"]), **matched, **others})
    for number, peer in enumerate(peers or [{} for _ in users] or [{}], 1):
        user = users[number - 1] if users else {"name": "other" if number == 1 else f"other-{number}"}
        own_row = {"across": user["across"]} if "across" in user else {}
        own_keys = _peer(peer, mode, one_word(user["name"])) | own_row | bonded
        if bond is not None:
            del own_keys["endpoint"]
        text += toml_table("[[peer]]", own_keys)
        for path in tables[number - 1] if bond is not None else []:
            text += toml_table("[[peer.path]]", path)
    return Configuration(text.rstrip("\n") + "\n", tuple(notes), tuple(warnings))


def _policy(name: str) -> Mapping[str, Any]:
    return next(policy for policy in _native.policies() if policy["name"] == name)


def _head(name: str, notes: Sequence[str]) -> list[str]:
    lines = [f"The scheduler of {name!r}, written by linkweir export gateway.", "", "Not as in the scenario:"]
    return ["".join(c if c.isprintable() else "?" for c in line) for line in [*lines, *(f"  {note}" for note in notes)]]


def without_defaults(keys: Mapping[str, Any], params: Sequence[Any]) -> dict[str, Any]:
    """A table without the parameters that have their defaults."""
    usual = {param["name"]: param["default"] for param in params}
    return {key: value for key, value in keys.items() if key not in usual or value != usual[key]}


def one_word(name: str) -> str:
    """A class's name without spaces, as the gateway wants it."""
    return "-".join(name.split()) or "class"


def _own(mode: str, own: Mapping[str, Any]) -> dict[str, Any]:
    needed = {"device": "lw0", "address": _PLACEHOLDERS["address"], "listen": "[::]:51820", "mode": mode}
    if mode == "wireguard":
        needed["private_key_file"] = _PLACEHOLDERS["private_key_file"]
    return {**needed, **own}


def _link(
    link: Mapping[str, Any], numbers: Link, tunnel_bytes: int, *, tunnel_counted: bool
) -> tuple[dict[str, Any], list[str]]:
    """The table `[link]`, and what was chosen for it."""
    fixed = "rate" in link and not left_out.varies(link)
    keys = {"rate": link["rate"] if fixed else link["nominal"], "nominal": link["nominal"], "follow": True}
    notes = []
    if fixed and not link["follow"]:
        keys["follow"] = False
    overhead = numbers["overhead_bytes"]
    if tunnel_counted:
        overhead -= tunnel_bytes
    else:
        more = f"a packet is {tunnel_bytes} bytes longer in the tunnel; with link.overhead = {overhead + tunnel_bytes}B"
        notes.append(f"link: {more} and --tunnel-counted, the simulation counts them, too")
    keys["overhead"] = f"{overhead}B"
    if numbers["mpu_bytes"]:
        keys["mpu"] = link["mpu"]
    return keys, notes


def _peer(peer: Mapping[str, str], mode: str, name: str) -> dict[str, Any]:
    for key in peer:
        if key not in PEER_KEYS:
            raise unfit("--peer", key, f"must be one of {', '.join(PEER_KEYS)}")
    needed = {"name": name}
    if mode == "wireguard":
        needed["public_key"] = _PLACEHOLDERS["public_key"]
    elif "public_key" in peer:
        raise unfit("--peer", "public_key", "is only for --mode wireguard")
    needed["endpoint"] = _PLACEHOLDERS["endpoint"]
    needed["allowed_ips"] = _PLACEHOLDERS["allowed_ips"]
    found: dict[str, Any] = {**needed, **peer}
    if peer and "endpoint" not in peer and mode == "wireguard":
        del found["endpoint"]  # the peer calls first, and its key tells it
    if "allowed_ips" in peer:
        found["allowed_ips"] = peer["allowed_ips"].split("+")
    return found
