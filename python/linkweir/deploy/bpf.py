# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as settings of a BPF queueing discipline, for `linkweir-bpf add`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkweir import _native
from linkweir.deploy import left_out
from linkweir.deploy.copies import classes_of
from linkweir.deploy.gateway import Configuration, one_word, toml_table, without_defaults
from linkweir.deploy.matching import Rule, sorting
from linkweir.fault import unfit
from linkweir.scenarios.networks import refuse_constellation
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Link

POLICIES = ("fifo", "strict", "rr", "wrr", "drr", "pss", "pds", "codel", "fq_codel", "pf", "codes")
"""Those that the kernel accepts, as in bpf/policies."""
_ADDRESSES = {"address", "source", "destination"}
_LIMITS = ("limit", "limit_bytes")
_OTHER_LIMITS = ("max_age", "full", "least")
_FIXED = (
    "the rate stays at {nominal} while the link changes: in a fade packets wait in the modem, where nothing orders "
    "them; report the capacity with linkweir-bpf link or linkweir-bpf follow"
)


def bpf_settings(scenario: Scenario) -> Configuration:
    """Makes the settings.

    Raises:
        ScenarioError: a BPF discipline has nothing like it.
    """
    refuse_constellation(scenario, "tc")
    if scenario.is_network:
        message = (
            f"is one of {len(scenario.links)} links, each with settings of its own; "
            "write it as a scenario with one [link] (in Python: scenario.of_link)"
        )
        raise unfit("link.name", scenario.links[0], message)
    keys = scenario.native.written()
    scheduler, classes = keys["scheduler"], classes_of(keys)
    if scheduler["policy"] not in POLICIES:
        raise unfit("scheduler.policy", scheduler["policy"], f"must be one of {', '.join(POLICIES)} in BPF")
    if "across" in scheduler:
        raise unfit(
            "scheduler.across", "...", "is not in BPF, where packets have no users; use linkweir export gateway"
        )
    sorted_by = sorting(classes, keys["class"])
    notes = [
        *sorted_by.notes,
        *_of_the_link(keys["link"], scenario.native.tables()["link"]),
        *left_out.of_the_run(keys),
    ]
    policy = next(policy for policy in _native.policies() if policy["name"] == scheduler["policy"])
    tables = [toml_table("[scheduler]", without_defaults(scheduler, policy["params"]))]
    for number, (entry, rules) in enumerate(zip(classes, sorted_by.rules, strict=True)):
        own, said = _class(number, entry, rules, {param["name"] for param in policy["class_params"]})
        if number == sorted_by.rest and rules is not None:
            own["match"].append({})
        tables.append(toml_table("[[class]]", without_defaults(own, policy["class_params"])))
        notes += said
    varies = left_out.varies(keys["link"])
    rate = keys["link"]["rate"] if "rate" in keys["link"] and not varies else keys["link"]["nominal"]
    warnings = [_FIXED.format(nominal=keys["link"]["nominal"])] if varies else []
    head = [f"The scheduler of {scenario.name!r}, written by linkweir export bpf.", "", "Not as in the scenario:"]
    head += [f"  {note}" for note in [*notes, *(f"warning: {warning}" for warning in warnings)]]
    text = "".join(f"# {''.join(c if c.isprintable() else '?' for c in line)}\n" for line in head)
    text += toml_table("[link]", {"rate": rate}) + "".join(tables)
    return Configuration(text.rstrip("\n") + "\n", tuple(notes), tuple(warnings))


def _of_the_link(link: Mapping[str, Any], numbers: Link) -> list[str]:
    found = list(left_out.of_the_link(link, "tc", "link.rate"))
    return found + [
        f"link.{key} = {link[key]}: a BPF discipline counts the bytes of a packet as the device does"
        for key, size in (("overhead", numbers["overhead_bytes"]), ("mpu", numbers["mpu_bytes"]))
        if size
    ]


def _class(
    number: int, entry: Mapping[str, Any], rules: Sequence[Rule] | None, params: set[str]
) -> tuple[dict[str, Any], list[str]]:
    """The table of a class, and what was left out of it."""
    for rule in rules or ():
        if found := set(rule) & _ADDRESSES:
            raise unfit(
                f"class[{number}].match",
                ", ".join(sorted(found)),
                "is not read in BPF; give code points, protocols or ports, or use linkweir export tc",
            )
    if "flows" in entry:
        raise unfit(f"class[{number}].flows", entry["flows"], "is not in BPF, where a class is one queue; leave it out")
    own: dict[str, Any] = {"name": one_word(entry["name"])}
    if rules is not None:
        own["match"] = list(rules)
    limits = {key: entry[key] for key in _LIMITS if key in entry}
    if not isinstance(limits.get("limit", ""), int) and not str(limits.get("limit", "1p")).endswith("p"):
        raise unfit(f"class[{number}].limit", limits["limit"], 'is no number of packets; BPF needs one, such as "100p"')
    own |= limits | {key: value for key, value in entry.items() if key in params}
    said = [
        f"class[{number}].{key} = {entry[key]}: left out, a BPF discipline limits packets and bytes"
        for key in _OTHER_LIMITS
        if key in entry
    ]
    return own, said
