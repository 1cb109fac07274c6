# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a job for real gateways: a tunnel between two hosts, over an emulated link without a bottleneck.

::

    sender                                          receiver
      lw0 -- gateway -- sat ==== emulator ==== sat -- gateway -- lw0
             policy         delay each way
             and pace

The bottleneck is the pace of the sender's gateway; the emulated link is faster (`LINK_BELOW`) and has the delays. Both
gateways count the scenario's bytes: 28 bytes of the tunnel's headers are taken off again. A changing capacity is
reported to the gateway by its `command`, in steps of 50 ms, each with the mean of its span.

Instead of the emulator the kernel can delay what is between the gateways (netem on a pair of veth devices). In virtual
time a run then takes less real time, because packets pass two programs and not three.

The job is one for any host that has `workload`, `linkweir-gateway` and iproute2: namespaces in real time, or a kernel
in virtual time. TCP is the kernel's; acknowledgements return over a link on which they never wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkweir import _native
from linkweir.deploy.copies import classes_of
from linkweir.deploy.gateway import gateway_configuration, toml_table
from linkweir.fault import unfit
from linkweir.lab.signal import Signal
from linkweir.lab.world import (
    CHANGE_S,
    NETEM,
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
from linkweir.scenarios.networks import refuse_network
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Flow as FlowNumbers

LINK_BELOW: Mapping[str, Any] = {"rate": "10Gbit"}
"""The emulated link, but for its delay."""
INNER_BYTES = 1500
OUTER_BYTES = 28
"""Headers of IP and UDP around a packet in the tunnel."""
_EF = 46
"""The code point for which a gateway has a limit of age by default."""
ENDS = {"sender": 1, "receiver": 2}
RECEIVER = f"10.77.0.{ENDS['receiver']}"


def tunnel(
    scenario: Scenario,
    below: Mapping[str, Any] | None = LINK_BELOW,
    *,
    exported: bool = False,
    calls: bool = False,
) -> World:
    """Makes a scenario ready.

    Args:
        scenario: what is run.
        below: keys of the emulated link towards the receiver, but for its delay; None: netem delays, no emulator.
        exported: the sender has the configuration that `linkweir export gateway` writes.
        calls: the sender records the calls of its policy.

    Raises:
        ScenarioError: something in it cannot be had from real gateways.
    """
    refuse_network(scenario, "gateway")
    keys = scenario.native.written()
    link = keys["link"]
    check_link(link)
    classes = classes_of(keys)
    flows = flows_of(scenario)
    check_flows(keys, flows)
    _check_tunnel(keys, scenario.native.tables()["flows"])
    policy = keys["scheduler"]["policy"]
    own = [known["name"] for known in _native.policies()]
    if policy not in own:
        raise unfit("scheduler.policy", policy, f"must be one of {', '.join(own)}")
    numbers = scenario.native.tables()["link"]
    rate_bps, overhead, delay_s = numbers["rate_bps"], numbers["overhead_bytes"], numbers["delay_s"]
    assert rate_bps is not None
    assert isinstance(delay_s, float)
    capacity = Signal(rate_bps, scenario.duration_s)
    bins = bins_of(scenario)
    files = {
        "run": _script(
            _EMULATED if below is not None else _delayed(delay_s, numbers["return_delay_s"]),
            workloads(flows, scenario, RECEIVER, "$JOB", "$OUT"),
            calls=calls,
        ),
        "sender.toml": _exported(scenario)
        if exported
        else _gateway("sender", _link(link, capacity, overhead), keys["scheduler"], classes),
        "receiver.toml": _gateway(
            "receiver", {"rate": "10Gbit"}, {"policy": "fifo"}, [{"name": "all", "limit": "100000p"}]
        ),
        "asks": "".join(f"{round(1e9 * t_s)} now\n" for t_s in bins),
        "capacity": _capacity_schedule(capacity, scenario.duration_s),
    }
    if below is not None:
        there, back = {**below, "delay": link["delay"]}, {**LINK_BELOW, "delay": link["return_delay"]}
        files["link.toml"] = _emulated(scenario, there, back)
    job = {name: text.encode() for name, text in files.items()} | {"due": due(flows, scenario).tobytes()}
    names = tuple(entry["name"] for entry in classes)
    return World(scenario, names, flows, names, capacity, overhead, delay_s, bins, job)


def _check_tunnel(keys: Mapping[str, Any], numbers: Sequence[FlowNumbers]) -> None:
    """Refuses what only queueing disciplines are tested with."""
    link = keys["link"]
    if "trace" in link:
        raise unfit("link.trace", link["trace"], "is not there over gateways: give a rate")
    if not isinstance(link["delay"], str):
        raise unfit("link.delay", link["delay"], "must not change over gateways")
    if link["loss"] != 0.0:
        raise unfit("link.loss", link["loss"], "must be 0.0 over gateways")
    if "reorder" in link:
        raise unfit("link.reorder", link["reorder"], "is not there over gateways")
    for number, (flow, written) in enumerate(zip(numbers, keys["flow"], strict=True)):
        if flow["access_delay_s"]:
            raise unfit(f"flow[{number}].access_delay", written["access_delay"], "must be 0s over gateways")
        if flow["kind"] == "tcp" and flow["ecn"]:
            raise unfit(f"flow[{number}].ecn", "true", "must be false over gateways")


# --- Configurations -------------------------------------------------------------------------------------------------


def _emulated(scenario: Scenario, there: Mapping[str, Any], back: Mapping[str, Any]) -> str:
    ends = [
        toml_table(f"[{end}]", {"device": "sat", "netns": host, "address": f"192.0.2.{ENDS[host]}/24"})
        for end, host in (("a", "sender"), ("b", "receiver"))
    ]
    top = f'mtu = "{INNER_BYTES + OUTER_BYTES}B"\nseed = {scenario.seed}\n'
    return top + "".join(ends) + toml_table("[a_to_b]", there) + toml_table("[b_to_a]", back)


def _link(link: Mapping[str, Any], capacity: Signal, overhead: int) -> dict[str, Any]:
    keys = {"nominal": link["nominal"], "follow": link["follow"], "overhead": f"{overhead - OUTER_BYTES}B"}
    if capacity.constant:
        return {"rate": link["rate"], **keys}
    first_bps = capacity.mean(0.0, CHANGE_S)
    return {"rate": f"{round(first_bps)}bit", "command": ["workload", "say", "capacity"], **keys}


def _capacity_schedule(capacity: Signal, duration_s: float) -> str:
    """Capacities at their times; one long after the end keeps the program that reports them running."""
    if capacity.constant:
        return ""
    jumps = capacity.jumps_s
    times = [n * CHANGE_S for n in range(int(duration_s / CHANGE_S + 1e-9))] if jumps is None else jumps
    lines = []
    for n, t_s in enumerate(times):
        to_s = times[n + 1] if n + 1 < len(times) else max(duration_s, t_s + CHANGE_S)
        if t_s < duration_s:
            lines.append((t_s, capacity.mean(t_s, to_s)))
    lines.append((duration_s + 3600, lines[-1][1]))
    return "".join(f"{round(1e9 * t_s)} {round(bps)}bit\n" for t_s, bps in lines)


def _gateway(
    host: str, link: Mapping[str, Any], scheduler: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]
) -> str:
    text = toml_table("[gateway]", {**_own(host), "mode": "cleartext"}) + toml_table("[link]", link)
    text += toml_table("[scheduler]", scheduler)
    for number, entry in enumerate(classes, 1):
        keys = {**entry, "name": "-".join(entry["name"].split())}  # the gateway's names are words
        if number < len(classes):
            keys["match"] = [{"dscp": number}]
        if number == _EF:  # as in the simulator, whatever the code point means elsewhere
            keys |= {"max_age": "3600s", "full": "tail"}
        text += toml_table("[[class]]", keys)
    return text + toml_table("[[peer]]", _peer(host))


def _exported(scenario: Scenario) -> str:
    return gateway_configuration(
        scenario, [_peer("sender")], mode="cleartext", tunnel_counted=True, own=_own("sender")
    ).text


def _own(host: str) -> dict[str, str]:
    """Keys of `[gateway]`."""
    return {
        "device": "lw0",
        "address": f"10.77.0.{ENDS[host]}/24",
        "listen": f"192.0.2.{ENDS[host]}:51820",
        "underlay_mtu": f"{INNER_BYTES + OUTER_BYTES}B",
        "user": "root",
        "control": f"{host}.sock",
    }


def _peer(host: str) -> dict[str, str]:
    other = 3 - ENDS[host]
    return {"name": "other", "endpoint": f"192.0.2.{other}:51820", "allowed_ips": f"10.77.0.{other}/32"}


# --- The job --------------------------------------------------------------------------------------------------------

_SCRIPT = f"""\
set -e
: "${{ZERO_NS:={ZERO_NS}}}" "${{JOB:=/job}}" "${{OUT:=/out}}"
export ZERO_NS
cd "$JOB"
environment="env ${{CLOCK:+LD_PRELOAD=$CLOCK}}" # for gateways and emulator: lab/guest/clock.c, in virtual time
in_() {{ host=$1; shift; ip netns exec $host "$@"; }}
for host in sender receiver; do
	ip netns add $host
	ip -n $host link set lo up
	for key in tcp_rmem tcp_wmem; do in_ $host sh -c "echo 4096 131072 67108864 >/proc/sys/net/ipv4/$key"; done
done
between
record
ip netns exec sender $environment $calls linkweir-gateway up sender.toml --cleartext & sender=$!
ip netns exec receiver $environment linkweir-gateway up receiver.toml --cleartext & receiver=$!
for host in sender receiver; do
	until linkweir-gateway show --control $host.sock >$OUT/ready 2>&1; do kill -0 $sender $receiver; sleep 0.02; done
	ip -n $host link set lw0 txqueuelen 10000
	ip -n $host link set sat txqueuelen 10000
done
now() {{ # now: what the gateway shows, and memory of the sender's, the receiver's and the emulator, if there is one, kB
	while read -r _; do
		linkweir-gateway show --json --control sender.sock >>$OUT/counters
		for process in $sender $receiver $emulator; do
			sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$process/status
		done >>$OUT/memory
	done
}}
workload say asks | now & asking=$!
"""
_END = """\
for job in $jobs; do wait $job; done
wait $asking
kill -TERM $sender $receiver $emulator
wait $sender $receiver
if [ "$emulator" ]; then wait $emulator || :; fi # it has reported what it could not keep
if [ "$recording" ]; then wait $recording; fi
"""


_RECORD = """\
record() { # the sender records the calls of its policy towards its peer
	mkdir calls
	mkfifo calls/other.vec
	gzip -1 <calls/other.vec >$OUT/calls.gz & recording=$!
	calls=LINKWEIR_CALLS=$PWD/calls
}
"""


_EMULATED = """\
between() { # devices `sat` at both ends of an emulated link
	$environment linkweir-gateway emulate link.toml --json >$OUT/emulator & emulator=$!
	for host in sender receiver; do
		until ip -n $host link show up dev sat 2>/dev/null | grep -q sat; do kill -0 $emulator; sleep 0.02; done
	done
}
"""


def _delayed(there_s: float, back_s: float) -> str:
    """The same as `_EMULATED` with netem; the emulator needs no Ethernet and so no neighbours."""
    mtu = f"mtu {INNER_BYTES + OUTER_BYTES}"
    lines = [f"ip -n sender link add sat {mtu} type veth peer name sat {mtu} netns receiver"]
    for (host, number), wait_s in zip(ENDS.items(), (there_s, back_s), strict=True):
        lines += [
            f"ip -n {host} link set sat address 02:00:00:00:00:0{number} up",
            f"ip -n {host} address add 192.0.2.{number}/24 dev sat",
            f"tc -n {host} qdisc add dev sat root {NETEM} {netem_delay(wait_s)}",
        ]
    for host, number in ENDS.items():
        other = 3 - number
        lines.append(f"ip -n {host} neigh replace 192.0.2.{other} lladdr 02:00:00:00:00:0{other} dev sat nud permanent")
    return "\n\t".join(["between() { # devices `sat` at both ends of a pair that delays", *lines]) + "\n}\n"


def _script(between: str, run: Sequence[str], *, calls: bool) -> str:
    return between + (_RECORD if calls else "record() { :; }\n") + _SCRIPT + "\n".join(run) + "\n" + _END
