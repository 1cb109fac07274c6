#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Capacity by feedback over an emulated link whose capacity changes, compared with a fixed capacity.

A gateway carries voice (100 packets of 200 bytes a second, the urgent class) and 40 Mbit/s of everything else over a
link of 20 Mbit/s that falls to 5 and rises to 20 again. Packets carry the time they were sent; both ends read one
clock. The extra delay of voice, compared with the empty link, is the link's own queue, which no policy controls. Needs
root, and the package of this tree.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import report
from linkweir.lab import LaboratoryError, namespaces
from linkweir.lab.world import DUE

STEPS = ((0, 20), (25, 5), (55, 20))
"""The capacity of the link: pairs of a second from which on it holds and Mbit/s."""
END_S = 85
SETTLE_S = 5
"""The time after a change that has a row of its own."""
DELAYS_MS = (25, 250)
VOICE, REST = 0, 1
VOICE_BYTES, REST_BYTES, REST_BPS = 200, 1400, 40e6
INNER_MTU, OUTER_BYTES = 1440, 60
SOURCES = {
    "feedback": 'rate = "19Mbit"\nstale = "5s"\nfloor = "1Mbit"\nfeedback = { ceiling = "40Mbit" }',
    "a constant rate": 'rate = "19Mbit"',
}
CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])

SCRIPT = """\
set -e
cd "$JOB"
echo $ZERO_NS >$OUT/zero_ns
for host in sender receiver; do ip netns add $host; ip -n $host link set lo up; done
sender_key=$(linkweir-gateway keygen sender.key)
receiver_key=$(linkweir-gateway keygen receiver.key)
sed -i "s|KEY|$receiver_key|" sender.toml
sed -i "s|KEY|$sender_key|" receiver.toml
linkweir-gateway emulate link.toml --json >$OUT/report & emulator=$!
for host in sender receiver; do
	until ip -n $host link show up dev sat 2>/dev/null | grep -q sat; do kill -0 $emulator; sleep 0.02; done
	ip -n $host link set sat txqueuelen 10000
done
for host in receiver sender; do
	ip netns exec $host linkweir-gateway up $host.toml & gateways="$gateways $!"
	until linkweir-gateway show --control $host.sock >/dev/null 2>&1; do kill -0 $gateways; sleep 0.02; done
	ip -n $host link set lw0 txqueuelen 10000
done
ip netns exec receiver workload receive 1000000000 {end_ns} $OUT/datagrams $OUT/streams & jobs=$!
ip netns exec sender workload datagrams 10.77.0.2 due 46 0 & jobs="$jobs $!"
for job in $jobs; do wait $job; done
linkweir-gateway show --json --control sender.sock >$OUT/show
kill -TERM $gateways $emulator
wait $gateways
wait $emulator || :
"""


def gateway(host: str, link: str, peer: str) -> str:
    """The configuration of one gateway."""
    last, other = (1, 2) if host == "sender" else (2, 1)
    return f"""[gateway]
device = "lw0"
address = "10.77.0.{last}/24"
listen = "192.0.2.{last}:51820"
mode = "wireguard"
private_key_file = "{host}.key"
user = "root"
control = "{host}.sock"
[link]
{link}
[scheduler]
policy = "strict"
[[class]]
name = "voice"
match = [{{ dscp = "EF" }}]
level = 0
[[class]]
name = "rest"
level = 1
limit = "200p"
[[peer]]
name = "other"
public_key = "KEY"
endpoint = "192.0.2.{other}:51820"
allowed_ips = "10.77.0.{other}/32"
{peer}
"""


def due() -> bytes:
    """The sending times and lengths of all packets."""
    parts = []
    for flow, size, apart_s in ((VOICE, VOICE_BYTES, 0.01), (REST, REST_BYTES, 8 * REST_BYTES / REST_BPS)):
        at_s = np.arange(0.0, END_S, apart_s)
        part = np.zeros(len(at_s), DUE)
        part["at_ns"], part["flow"], part["bytes"] = np.round(1e9 * at_s).astype(np.uint64), flow, size
        parts.append(part)
    whole = np.concatenate(parts)
    return whole[np.argsort(whole["at_ns"], kind="stable")].tobytes()


def measure(tools: namespaces.Tools, delay_ms: int, source: str) -> list[dict[str, object]]:
    """One run: for each change a row for the time just after it, and one for the time until the next."""
    steps = json.dumps([[f"{at_s}s", f"{mbit}Mbit"] for at_s, mbit in STEPS])
    ends = "".join(
        f'[{end}]\ndevice = "sat"\nnetns = "{host}"\naddress = "192.0.2.{last}/24"\n'
        for end, host, last in (("a", "sender", 1), ("b", "receiver", 2))
    )
    there = f'rate = {{ steps = {steps} }}\ndelay = "{delay_ms}ms"\nlimit = "1000p"\n'
    back = f'rate = "100Mbit"\ndelay = "{delay_ms}ms"\n'
    job = {
        "run": SCRIPT.format(end_ns=round(1e9 * (END_S + 3))).encode(),
        "link.toml": f"{ends}[a_to_b]\n{there}[b_to_a]\n{back}".encode(),
        "sender.toml": gateway("sender", SOURCES[source], "").encode(),
        "receiver.toml": gateway("receiver", 'rate = "100Mbit"', "report = true").encode(),
        "due": due(),
    }
    files = namespaces.start(tools, job, END_S + 4.0)
    packets = np.frombuffer(files["datagrams"], CAME)
    report = json.loads(files["report"])
    # when the link sent it, on the link's clock
    offset_s = (int(files["zero_ns"]) - report["began_ns"]) / 1e9
    came_s = packets["came_ns"] / 1e9 + offset_s - delay_ms / 1e3
    took_ms = (packets["came_ns"] - packets["sent_ns"].astype(np.int64)) / 1e6 - delay_ms
    wire_bits = 8.0 * (packets["bytes"] + OUTER_BYTES)
    rows: list[dict[str, object]] = []
    for number, (at_s, mbit) in enumerate(STEPS):
        to_s = STEPS[number + 1][0] if number + 1 < len(STEPS) else END_S + offset_s - 1
        # The experiment begins some seconds after the link, so the first interval is shorter.
        from_s = max(at_s, offset_s)
        for what, since_s, until_s in (
            ("begins", from_s, from_s + SETTLE_S),
            ("continues", from_s + SETTLE_S, to_s),
        ):
            inside = (came_s >= since_s) & (came_s < until_s)
            voice_ms = took_ms[inside & (packets["flow"] == VOICE)]
            carried_mbit = float(wire_bits[inside].sum() / (until_s - since_s) / 1e6)
            rows.append(
                {
                    "way": f"{delay_ms} ms",
                    "capacity by": source,
                    "link": f"{mbit} Mbit/s {what}",
                    "carried_percent": 100 * carried_mbit / mbit,
                    "voice_pkts": len(voice_ms),
                    "voice_late_p50_ms": float(np.quantile(voice_ms, 0.5)),
                    "voice_late_p99_ms": float(np.quantile(voice_ms, 0.99)),
                    "voice_late_max_ms": float(voice_ms.max()),
                }
            )
    lost = report["directions"][0]["dropped_limit_pkts"]
    print(json.dumps({"way": delay_ms, "capacity by": source, "dropped_below_pkts": lost}), file=sys.stderr)
    return rows


def render(rows: list[dict[str, object]], *, markdown: bool) -> str:
    """A line for each row."""
    lines = [[report.cell(value, 1) for value in row.values()] for row in rows]
    return report.table(list(rows[0]), lines, markdown=markdown)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateway", type=Path, help="linkweir-gateway (default: the one that cargo built)")
    arguments = report.options_of(parser)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            tools = namespaces.prepare(arguments.gateway or namespaces.find_gateway(), Path(folder))
            for delay_ms in DELAYS_MS:
                for source in SOURCES:
                    rows += measure(tools, delay_ms, source)
        except LaboratoryError as error:
            print(f"bench/feedback.py: {error}", file=sys.stderr)
            return 1
    report.write(arguments, rows, lambda markdown: render(rows, markdown=markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
