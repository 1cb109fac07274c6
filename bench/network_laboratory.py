# SPDX-License-Identifier: BSD-3-Clause
"""The networks of bench/network.py in Linkweir, ns-3 and the laboratory's kernel: which of the two does Linux confirm?

All three get the same packets of open sources and the same starts of transfers. The kernel is Linux 6.12 in virtual
time with its own TCP, set as the scenario says: an acknowledgement per segment (`quickack`), no HyStart. Linkweir
counts in the kernel's tick of 10 ms.
"""

from __future__ import annotations

import csv
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import network_scenarios
import ns3_network
import report

if TYPE_CHECKING:
    from linkweir.lab.experiment import Laboratory

TICK = "10ms"
SYSCTLS = {"rack": "tcp_recovery", "tlp": "tcp_early_retrans"}
PARAMETERS = {"hystart": "hystart", "friendly": "tcp_friendliness"}
SWITCHES = (*SYSCTLS, "friendly")
"""What of the kernel's TCP can be turned off: RACK, tail loss probes, CUBIC's Reno-friendly region."""
KEPT = ("name", "class", "path", "back", "kind", "cc", "start", "rate", "packet", "jitter")
COLUMNS = ["flow", "Linkweir, Mbit/s", "ns-3", "kernel", "Linkweir %", "error %", "ns-3 %", "error %"]
TIMEOUT_COLUMNS = ["timeouts", "Linkweir", "ns-3", "kernel"]


def for_kernel(scenario: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario without the keys that the kernel has no setting for.

    Args:
        scenario: the network, its open sources as they are written.
        drawn: the same with their packets in lists, each copy of a flow by itself.
    """
    flows = []
    for written, one in zip(ns3_network.copies(scenario), drawn["flow"], strict=True):
        kept = {key: written[key] for key in KEPT if key in written}
        flows.append({**kept, "start": one.get("start", "0s")})
    return {**scenario, "flow": flows}


def packets_of(drawn: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Time in ns, place of the flow and bytes of all packets of open sources, in order of time."""
    found = []
    for place, flow in enumerate(drawn["flow"]):
        if flow["kind"] == "replay":
            with Path(flow["file"]).open(newline="", encoding="utf-8") as file:
                found += [(round(float(row["t_s"]) * 1e9), place, int(row["bytes"])) for row in csv.DictReader(file)]
    return sorted(found)


def settings(script: str, off: Sequence[str]) -> str:
    """A job's script with an acknowledgement per segment, no HyStart, and this turned off."""
    lines = []
    for line in script.splitlines():
        is_route_back = line.startswith("ip -n receiver route add")
        lines.append(f"{line} quickack 1" if is_route_back else line)
        if line.startswith("windows "):
            lines += [f"in_ sender sh -c 'echo 0 >/proc/sys/net/ipv4/{SYSCTLS[one]}'" for one in off if one in SYSCTLS]
    parameters = [PARAMETERS[one] for one in ("hystart", *off) if one in PARAMETERS]
    return "\n".join([*(f"echo 0 >/sys/module/tcp_cubic/parameters/{name}" for name in parameters), *lines, ""])


def run_kernel(
    laboratory: Laboratory, scenario: Mapping[str, Any], drawn: Mapping[str, Any], off: Sequence[str]
) -> dict[str, Any]:
    """Goodput and timeouts by flow in the kernel."""
    import numpy as np

    from linkweir.lab import host
    from linkweir.lab.collect import tables
    from linkweir.lab.network import network
    from linkweir.lab.world import DUE
    from linkweir.scenarios.scenario import Scenario

    whole = Scenario.from_dict(for_kernel(scenario, drawn))
    packets = np.array(packets_of(drawn), DUE)
    made = network(whole, laboratory.guest.kinds, stagger_s=0.0, packets=packets)
    job = {**made.job, "run": settings(made.job["run"].decode(), off).encode()}
    rows = tables(made, host.start(laboratory.guest, job, whole.seed))["flows"].to_pylist()
    return {row["flow"]: {"goodput_bps": row["goodput_bps"], "timeouts": row["timeouts"] or 0} for row in rows}


def with_tick(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with the kernel's tick."""
    flows = [{**flow, "tick": TICK} if flow["kind"] == "tcp" else flow for flow in drawn["flow"]]
    return {**drawn, "flow": flows}


def compare(
    case: str, form: str, seeds: int, run_linkweir: Any, run_ns3: Any, group_of: Any, off: Sequence[str]
) -> dict[str, Any]:
    """Goodput and timeouts of groups of flows in all three: means over the seeds, and errors of the differences."""
    from linkweir.lab.experiment import Laboratory

    laboratory = Laboratory(say=lambda text: print(text, file=sys.stderr))
    runs = []
    for seed in range(1, seeds + 1):
        print(f"{case}, {form}, kernel: seed {seed} of {seeds}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            scenario = network_scenarios.scenario_of(case, form, seed)
            drawn = network_scenarios.recorded(scenario, scratch)
            theirs = run_kernel(laboratory, scenario, drawn, off)
            runs.append([run_linkweir(with_tick(drawn), scratch)[0], run_ns3(drawn, scratch)[0], theirs])
    groups: dict[str, list[str]] = {}
    for flow in runs[0][2]:
        groups.setdefault(group_of(flow), []).append(flow)
    rows = [row_of(group, names, runs) for group, names in groups.items()]
    return {"case": case, "form": form, "seeds": seeds, "off": list(off), "flows": rows}


def row_of(group: str, names: Sequence[str], runs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """One group of flows: sums over its flows, in the order Linkweir, ns-3, kernel."""
    sums = [[sum(side[name]["goodput_bps"] for name in names) for side in run] for run in runs]
    means = [statistics.fmean(values) for values in zip(*sums, strict=True)]
    errors = [None, None]
    if len(runs) > 1:
        errors = [
            statistics.stdev(one[side] - one[2] for one in sums) / len(runs) ** 0.5 / means[2] * 100 for side in (0, 1)
        ]
    timeouts = [
        statistics.fmean(sum(run[side][name].get("timeouts") or 0 for name in names) for run in runs)
        for side in range(3)
    ]
    differs = [(means[side] / means[2] - 1) * 100 for side in (0, 1)]
    return {"flow": group, "goodput_bps": means, "differs": differs, "errors": errors, "timeouts": timeouts}


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """A line of the table."""
    (ours, theirs), (our_error, their_error) = row["differs"], row["errors"]
    goodput = [f"{bps / 1e6:.3f}" for bps in row["goodput_bps"]]
    return [
        row["flow"],
        *goodput,
        f"{ours:+.2f}",
        report.cell(our_error, 2),
        f"{theirs:+.2f}",
        report.cell(their_error, 2),
    ]


def render(answer: Mapping[str, Any], markdown: bool) -> str:
    """Tables of all networks."""
    parts = []
    for found in answer["laboratory"]:
        off = f"; without {', '.join(found['off'])} in the kernel" if found["off"] else ""
        title = f"{found['case']}, {found['form']}: {found['seeds']} seeds{off}"
        timeouts = [
            [row["flow"], *(f"{mean:.1f}" for mean in row["timeouts"])]
            for row in found["flows"]
            if any(row["timeouts"])
        ]
        tables = report.table(COLUMNS, map(cells_of, found["flows"]), markdown=markdown)
        tables += "\n" + report.table(TIMEOUT_COLUMNS, timeouts, markdown=markdown)
        parts.append((f"### {title}\n\n" if markdown else f"{title}\n") + tables)
    return "\n".join(parts)
