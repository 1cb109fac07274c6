# SPDX-License-Identifier: BSD-3-Clause
"""Two gateways with two paths over emulated links, in the laboratory's kernel and its virtual time.

The programs and configurations are those that bond.py and bond_traces.py run in two namespaces of this machine. In
virtual time a processor is infinitely fast, so no load disturbs a run, and a run repeats byte for byte.

::

    sender                                                receiver
      lw0 -- gateway -- sat ======== emulator ======== sat -- gateway -- lw0
                     -- lte ======== emulator ======== lte --

Times are seconds after the flows begin. A run needs no root, but a kernel (linkweir lab build-kernel).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkweir.lab import LaboratoryError, guest, host, kernel
from linkweir.lab.world import DUE

HOSTS = ("receiver", "sender")
"""Namespaces of the first and the second end. Packets go from the second to the first."""
ADDRESS = "10.77.0.1"
"""Of the first end's tunnel."""
KEY = "KEY"
"""In a gateway's configuration, the place of the other end's public key, which the run makes."""
ZERO_NS = 20_000_000_000
"""Uptime at which the flows begin. Until then both gateways have agreed on their paths."""
BEGIN_S = -10
"""When the emulators start."""
MEMORY = "768M"
"""Of the kernel, for the list of packets to send and the note of each that comes."""
MOST_S = 4 * 3600.0
"""Real time after which a run is ended."""
HEADER_BYTES = 28
CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])
"""A datagram that came, as workload.c writes it."""


@dataclass(frozen=True)
class Sent:
    """A flow of datagrams of one size at a constant rate; number 0 is sent when the flows begin.

    Attributes:
        burst_ns: packets are sent together so often, ns, which takes less real time; 0: each when it is due.
    """

    name: str
    dscp: int
    payload_bytes: int
    pkts_per_s: float
    burst_ns: int = 0


@dataclass(frozen=True)
class Run:
    """What is run.

    Attributes:
        links: configurations of the emulators, by the name of the link, which is its device's, too.
        traces: files that these name, as text.
        gateways: configurations of both ends.
        flows: what is sent.
        seconds: for how long.
        after_s: for how much longer packets are received.
        capacities: of each link, what the sender's gateway is told: times, s, and bit/s.
        commands: times, s, ends, and commands for `ip` in the namespace of that end.
        seed: of everything random.
    """

    links: Mapping[str, str]
    gateways: tuple[str, str]
    flows: Sequence[Sent]
    seconds: int
    after_s: int = 0
    traces: Mapping[str, str] = field(default_factory=dict)
    capacities: Mapping[str, Sequence[tuple[float, int]]] = field(default_factory=dict)
    commands: Sequence[tuple[float, int, str]] = ()
    seed: int = 1


@dataclass(frozen=True)
class Found:
    """What a run left.

    Attributes:
        came: of each flow, when packets came and when they were sent, ns, in the order in which they came.
        shown: what the gateway of each end shows at the end.
        emulators: what each emulator reports.
        device_dropped_pkts: what the sender's tunnel device dropped.
        began_s: when the time of each emulator began.
        files: all files of the run.
    """

    came: Mapping[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    shown: tuple[dict[str, Any], dict[str, Any]]
    emulators: Mapping[str, dict[str, Any]]
    device_dropped_pkts: int
    began_s: Mapping[str, float]
    files: Mapping[str, bytes]


def why_not() -> str | None:
    """Why nothing can be run here, with the cure; None if it can."""
    return guest.why_not() or (None if kernel.built() else kernel.why_not())


def prepare(program: Path) -> guest.Guest:
    """The kernel and its programs, of which the gateway is one; the kernel is built once, which takes minutes.

    Raises:
        LaboratoryError: it cannot be built.
    """
    return guest.prepare(kernel.build("fast"), program, sent_when_due=True)


def capacity_command(link: str) -> list[str]:
    """What tells a gateway the capacity of a link."""
    return ["workload", "say", f"capacity-{link}"]


def run(made: guest.Guest, what: Run) -> Found:
    """Runs it.

    Raises:
        LaboratoryError: it failed, or the gateways did not agree before the flows began.
    """
    files = host.start(made, job(what), what.seed, most_s=MOST_S, memory=MEMORY)
    shown = [_answers(files[f"shown-{own}"]) for own in (1, 2)]
    for end, answers in zip(HOSTS, shown, strict=True):
        peer = answers[0]["peers"][0]
        if not (peer["paths_agreed"] and all(path["in_use"] for path in peer["paths"])):
            raise LaboratoryError(f"the {end}'s gateway has not agreed on its paths in time: {peer}")
    emulators = {name: json.loads(files[f"emulator-{name}"]) for name in what.links}
    return Found(
        came=_came(files["datagrams"], what.flows),
        shown=(shown[0][-1], shown[1][-1]),
        emulators=emulators,
        device_dropped_pkts=int(files["dropped"]),
        began_s={name: (report["began_ns"] - ZERO_NS) / 1e9 for name, report in emulators.items()},
        files=files,
    )


def _answers(text: bytes) -> list[dict[str, Any]]:
    """JSON objects, one after the other."""
    words, decoder, found = text.decode().strip(), json.JSONDecoder(), []
    while words:
        answer, at = decoder.raw_decode(words)
        found.append(answer)
        words = words[at:].lstrip()
    return found


def _came(text: bytes, flows: Sequence[Sent]) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    packets = np.frombuffer(text, CAME)
    found = {}
    for number, flow in enumerate(flows):
        mine = packets[packets["flow"] == number]
        found[flow.name] = (mine["came_ns"].astype(np.int64), mine["sent_ns"].astype(np.int64))
    return found


def numbers_of(flow: Sent, sent_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numbers of packets that were sent at these times, of a flow without bursts."""
    return np.round(sent_ns * (flow.pkts_per_s / 1e9)).astype(np.int64)


def due(flows: Sequence[Sent], seconds: int) -> np.ndarray[Any, Any]:
    """The packets to send, in order of time."""
    parts = []
    for number, flow in enumerate(flows):
        part = np.zeros(int(flow.pkts_per_s * seconds), DUE)
        at_ns = np.round(np.arange(len(part)) * (1e9 / flow.pkts_per_s)).astype(np.int64)
        part["at_ns"] = at_ns - at_ns % flow.burst_ns if flow.burst_ns else at_ns
        part["flow"], part["bytes"] = number, flow.payload_bytes + HEADER_BYTES
        parts.append(part)
    whole = np.concatenate(parts)
    return whole[np.argsort(whole["at_ns"], kind="stable")]


def job(what: Run) -> dict[str, bytes]:
    """The files of a run."""
    texts = {f"{name}.toml": text for name, text in what.links.items()} | dict(what.traces)
    for end, text in zip(HOSTS, what.gateways, strict=True):
        texts[f"{end}.in"] = text
    for name, steps in what.capacities.items():
        # The last one is long after the end: the program that tells them must not end before the run.
        last = f"{round(1e9 * (what.seconds + 3600))} {steps[-1][1]}bit\n"
        texts[f"capacity-{name}"] = "".join(f"{_ns(at)} {bps}bit\n" for at, bps in steps) + last
    for number, end in enumerate(HOSTS):
        texts[f"commands-{end}"] = "".join(f"{_ns(at)} {text}\n" for at, of, text in what.commands if of == number)
    texts["begin"] = f"{BEGIN_S * 10**9} begin\n"
    end_ns = (what.seconds + what.after_s) * 10**9
    texts["asks"] = f"-1 now\n{end_ns} now\n"
    texts["run"] = _SCRIPT.format(
        zero_ns=ZERO_NS,
        links=" ".join(what.links),
        end_ns=end_ns,
        address=ADDRESS,
        marks=" ".join(f"{flow.dscp}:0" for flow in what.flows),
    )
    return {name: text.encode() for name, text in texts.items()} | {"due": due(what.flows, what.seconds).tobytes()}


def _ns(at_s: float) -> int:
    return round(1e9 * at_s)


_SCRIPT = """\
set -e
export ZERO_NS={zero_ns}
cd /job
environment="env LD_PRELOAD=$CLOCK" # for gateways and emulators: lab/guest/clock.c
in_() {{ host=$1; shift; ip netns exec $host "$@"; }}
for host in receiver sender; do
	ip netns add $host
	ip -n $host link set lo up
done
for own in 1 2; do linkweir-gateway keygen key$own >public$own; done
emulators=
emulate() {{ # emulate LINK: at a known time, from which its trace counts
	workload say begin | {{ read -r _; exec $environment linkweir-gateway emulate $1.toml --json; }} >/out/emulator-$1 &
	emulators="$emulators $!"
}}
for link in {links}; do emulate $link; done
for link in {links}; do
	for host in receiver sender; do
		until ip -n $host link show up dev $link 2>/dev/null | grep -q $link; do sleep 0.02; done
	done
done
gateways= jobs=
now() {{ while read -r _; do linkweir-gateway show --json --control control$1 >>/out/shown-$1; done; }}
end() {{ # end HOST OWN OTHER
	sed "s|KEY|$(cat public$3)|" $1.in >$1.toml
	ip netns exec $1 $environment linkweir-gateway up $1.toml & gateways="$gateways $!"
	workload say asks | now $2 & jobs="$jobs $!"
	workload say commands-$1 | ip -n $1 -batch - & jobs="$jobs $!"
}}
end receiver 1 2
end sender 2 1
for own in 1 2; do
	until linkweir-gateway show --control control$own >/out/ready 2>&1; do kill -0 $gateways; sleep 0.02; done
done
in_ receiver workload receive 1000000000 {end_ns} /out/datagrams /out/streams & jobs="$jobs $!"
in_ sender workload datagrams {address} due {marks} & jobs="$jobs $!"
for job in $jobs; do wait $job; done
in_ sender cat /sys/class/net/lw0/statistics/tx_dropped >/out/dropped
kill -TERM $gateways $emulators
wait $gateways
for emulator in $emulators; do wait $emulator || :; done # it has reported what it could not keep
"""
