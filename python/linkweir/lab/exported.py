# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a job in which the script of `linkweir export tc` sets up the scheduler, with HTB as the link.

The hosts are those of `world`. The router schedules what it sends, or with `ingress` the relay what it receives. Behind
them the relay's netem has the link's delay. Packets carry a code point for
their class as there, so the classes' `match` must be these: `marked` writes them.
"""

from __future__ import annotations

from typing import Any

from linkweir.deploy.copies import classes_of, each_copy
from linkweir.deploy.filters import Filters
from linkweir.deploy.matching import sorting
from linkweir.deploy.policy import policy_lines
from linkweir.deploy.script import ifb_of, tc_scripts
from linkweir.fault import unfit
from linkweir.lab.signal import Signal
from linkweir.lab.world import (
    NETEM,
    RECEIVER,
    STAGGER_S,
    ZERO_NS,
    World,
    bins_of,
    check_flows,
    check_link,
    due,
    flows_of,
    netem_delay,
    workloads,
)
from linkweir.scenarios.scenario import Scenario

_PARENTS = "10: 21: 22: 23: 24: 25:"
"""Handles of queueing disciplines that may have filters."""


def _refuse_network(scenario: Scenario) -> None:
    for name in scenario.links:
        raise unfit(f"link.{name}", "...", "--exported runs one [link]; leave --exported out for [[link]]")


def marked(scenario: Scenario) -> dict[str, Any]:
    """The same scenario with the code points in `match` that the laboratory's packets carry: n for class n, from 1."""
    _refuse_network(scenario)
    keys = scenario.native.written()
    entries = classes_of(keys)
    for number, entry in enumerate(entries, 1):
        entry["match"] = [{"dscp": number}]
    del entries[-1]["match"]
    return {**keys, "class": entries}


def exported(scenario: Scenario, *, ingress: bool = False, stagger_s: float = STAGGER_S) -> World:
    """Makes a scenario ready.

    Args:
        scenario: what is run.
        ingress: the script is that of `--ingress`.
        stagger_s: TCP connections start at random within this after their time.

    Raises:
        ScenarioError: something in it cannot run on a real kernel, or changes over time.
    """
    _refuse_network(scenario)
    keys = scenario.native.written()
    link = keys["link"]
    check_link(link)
    for key in ("rate", "delay", "loss"):
        if key not in link or isinstance(link[key], dict) or (key == "loss" and link[key]):
            raise unfit(f"link.{key}", link.get(key, "..."), "must be constant, and loss 0.0, where HTB is the link")
    flows = flows_of(scenario)
    check_flows(keys, flows)
    classes = classes_of(keys)
    tables = scenario.native.tables()
    numbers = tables["link"]
    nominal_bps = numbers["nominal_bps"]
    host, device = ("relay", "y0") if ingress else ("router", "r1")
    at = ifb_of(device) if ingress else device
    sorter = Filters(at, sorting(classes))
    _, handles = policy_lines(tables["scheduler"], each_copy(tables["classes"]), nominal_bps, at, sorter)
    bins = bins_of(scenario)
    run = workloads(flows, scenario, RECEIVER, "/job", "/out", stagger_s=stagger_s)
    delay_s, back_s = numbers["delay_s"], numbers["return_delay_s"]
    assert isinstance(delay_s, float)
    run.insert(2, f'workload say /job/changes | tc -n {host} -s -batch - >/out/counters & jobs="$jobs $!"')
    lines = [
        ". /guest/hosts.sh",
        f"tc -n relay qdisc add dev y1 root {NETEM} {netem_delay(delay_s)}",
        f"tc -n receiver qdisc add dev d0 root {NETEM} {netem_delay(back_s)}",
        f"all() {{ ip -n {host} -o link | sed 's/@.*//'; tc -n {host} qdisc show; }}",
        "all >/out/before 2>&1",
        f"in_ {host} sh /job/up.sh",
        f"{{ tc -n {host} -d -j qdisc show dev {at}; tc -n {host} -d class show dev {at}; }} >/out/tc",
        f"for parent in {_PARENTS}; do tc -n {host} -j filter show dev {at} parent $parent; done >>/out/tc 2>&1",
        f"export ZERO_NS={ZERO_NS}",
        *run,
        "for job in $jobs; do wait $job; done",
        f"in_ {host} sh /job/down.sh",
        "all >/out/after 2>&1",
        "",
    ]
    scripts = tc_scripts(scenario, device, ingress=ingress)
    job = {
        "run": "\n".join(lines).encode(),
        "up.sh": scripts.up.encode(),
        "down.sh": scripts.down.encode(),
        "due": due(flows, scenario).tobytes(),
        "changes": "".join(f"{round(1e9 * t_s)} class show dev {at}\n" for t_s in bins).encode(),
    }
    names = tuple(entry["name"] for entry in classes)
    rate_bps = numbers["rate_bps"]
    assert isinstance(rate_bps, float)
    capacity = Signal(rate_bps, scenario.duration_s)
    return World(scenario, names, flows, handles, capacity, numbers["overhead_bytes"], delay_s, bins, job)
