#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Networks of several links in Linkweir and in ns-3, with the same packets from every open source.

Three networks: `parking` (three bottlenecks), `geo` (acknowledgements wait in a return link), `tree` (a feeder, eight
beams); bench/scenarios/network-*.toml. Each is run in three forms. `open`: a Poisson source takes the place of each
transfer, so both simulators get the same packets, and every count must be the same. `reno` and `cubic`: with the
transfers; means over the seeds must agree within 2 % in goodput and 5 % in the 95th percentile of the one-way delay.

    bench/network.py [--case geo] [--form reno] [--seeds 10] [--json | --markdown] [--out FILE]
    bench/network.py --speed parking --speed shell [--rounds 3]
    bench/network.py --kernel [--rounds 3]
    bench/network.py --laboratory [--without friendly] [--case parking] [--form cubic] [--seeds 10]
    bench/network.py --shifts 25 [--case parking] [--form cubic] [--seeds 4]

With --speed, seconds per packet and hop of both simulators on the parking lot and on a shell of 1,584 satellites
(shell.py). With --kernel, shares of CUBIC transfers on a parking lot without delays, which the kernel also runs,
in network namespaces and real time (as root; needs iperf3). With --laboratory, goodput of the same networks in
Linkweir, ns-3 and the laboratory's kernel in virtual time (`make lab`; start it with .venv/bin/python). With --shifts,
the spread of Linkweir's goodput over runs whose transfers start a little later (also with .venv/bin/python).
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

import instructions
import network_kernel
import network_laboratory
import network_speed
import ns3_network
import peers
import report
from network_scenarios import CASES, FORMS, recorded, scenario_of, written
from ns3_network import started
from peers import UnavailableError

# Bounds in percent of ns-3's mean.
GOODPUT_BOUND, DELAY_BOUND = 2.0, 5.0
# Linkweir's percentiles are from histograms whose buckets are 1/128 wide.
OPEN_DELAY_BOUND = 100 / 128
COLUMNS = ["flow", "Mbit/s", "ns-3", "differs %", "error %", "p95 ms", "ns-3", "differs %", "outside"]
LINK_COLUMNS = ["link", "class", "packets", "ns-3", "dropped", "ns-3", "wait p95 ms", "ns-3"]


def run_scenario(scenario, scratch):
    """What Linkweir prints of a scenario."""
    file = scratch / "scenario.toml"
    file.write_text(written(scenario), encoding="utf-8")
    return json.loads(started([str(instructions.BINARY), str(file)]))


def run_linkweir(scenario, scratch):
    """Goodput and 95th percentile of the delay by flow; packets, drops and waits by link and class."""
    found = run_scenario(scenario, scratch)
    flows = {
        row["flow"]: {
            "goodput_bps": row["goodput_bps"],
            "packets": row["delivered_pkts"],
            "p95_s": row["delay_p95_s"],
            "timeouts": row["timeouts"],
        }
        for row in found["flows"]
    }
    links = {
        (row["link"], row["class"]): {
            "packets": row["sent_pkts"],
            "dropped": row["dropped_limit_pkts"],
            "p95_s": row["delay_p95_s"],
        }
        for row in found["classes"]
    }
    return flows, links


def run_ns3(scenario, scratch):
    """The same of ns-3."""
    found = ns3_network.run(scenario, scratch)
    flows = {
        name: {
            "goodput_bps": flow["goodput_bps"],
            "packets": flow["delay"]["packets"],
            "p95_s": flow["delay"].get("p95_s"),
            "timeouts": flow["timeouts"],
        }
        for name, flow in found["flows"].items()
    }
    links = {
        (link["name"], cls["name"]): {
            "packets": numbers["sent"],
            "dropped": numbers["dropped"],
            "p95_s": numbers["wait"].get("p95_s"),
        }
        for link in ns3_network.whole_links(scenario)
        for cls, numbers in zip(link["class"], found["links"][link["name"]], strict=True)
    }
    return flows, links


def pair_of(case, form, seed):
    """What both simulators found in one scenario with one seed."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scenario = recorded(scenario_of(case, form, seed), scratch)
        return run_linkweir(scenario, scratch), run_ns3(scenario, scratch)


def differs(ours, theirs):
    """Percent of ns-3's value."""
    return (ours - theirs) / theirs * 100


def group_of(name):
    """Flows whose names differ in their numbers only are compared together."""
    return re.sub(r"(-\d+)+$", "", name)


def mean_over(pairs, side, names, key):
    """Mean of a value over flows and seeds."""
    return statistics.fmean(pair[side][0][name][key] for pair in pairs for name in names)


def error_of(pairs, names):
    """Standard error of the difference in goodput, in percent of ns-3's; none for one seed."""
    if len(pairs) < 2:
        return None
    sums = [[sum(pair[side][0][name]["goodput_bps"] for name in names) for side in (0, 1)] for pair in pairs]
    differences = [ours - theirs for ours, theirs in sums]
    return statistics.stdev(differences) / len(pairs) ** 0.5 / statistics.fmean(theirs for _, theirs in sums) * 100


def outside_of(row, form):
    """Which values are outside their bounds; open sources must deliver the same packets."""
    if form == "open":
        ours, theirs = row["packets"]
        outside = {"packets": ours != theirs, "p95": abs(row["p95_differs"]) > OPEN_DELAY_BOUND}
    else:
        outside = {
            "goodput": abs(row["goodput_differs"]) > GOODPUT_BOUND,
            "p95": abs(row["p95_differs"]) > DELAY_BOUND,
        }
    return [key for key, far in outside.items() if far]


def flow_rows(pairs, form):
    """Means over the seeds for each group of flows, with what is outside its bound."""
    groups = {}
    for name in pairs[0][0][0]:
        groups.setdefault(group_of(name), []).append(name)
    rows = []
    for group, names in groups.items():
        goodput = [mean_over(pairs, side, names, "goodput_bps") * len(names) for side in (0, 1)]
        delay = [mean_over(pairs, side, names, "p95_s") for side in (0, 1)]
        row = {
            "flow": group,
            "packets": [sum(pair[side][0][name]["packets"] for pair in pairs for name in names) for side in (0, 1)],
            "goodput_bps": goodput,
            "goodput_differs": differs(*goodput),
            "error": error_of(pairs, names),
            "p95_s": delay,
            "p95_differs": differs(*delay),
        }
        rows.append({**row, "outside": outside_of(row, form)})
    return rows


def link_rows(pairs):
    """Sums of packets and means of waits over the seeds by link and class."""
    rows = []
    for link, cls in pairs[0][0][1]:
        row = {"link": link, "class": cls}
        for key in ("packets", "dropped"):
            row[key] = [sum(pair[side][1][link, cls][key] for pair in pairs) for side in (0, 1)]
        row["p95_s"] = [statistics.fmean(pair[side][1][link, cls]["p95_s"] or 0.0 for pair in pairs) for side in (0, 1)]
        rows.append(row)
    return rows


def compare(case, form, seeds):
    pairs = []
    for seed in range(1, seeds + 1):
        print(f"{case}, {form}: seed {seed} of {seeds}", file=sys.stderr)
        pairs.append(pair_of(case, form, seed))
    return {"case": case, "form": form, "seeds": seeds, "flows": flow_rows(pairs, form), "links": link_rows(pairs)}


def flow_cells(row):
    (ours, theirs), (ours_s, theirs_s) = row["goodput_bps"], row["p95_s"]
    return [
        row["flow"],
        f"{ours / 1e6:.3f}",
        f"{theirs / 1e6:.3f}",
        f"{row['goodput_differs']:+.2f}",
        report.cell(row["error"], 2),
        f"{ours_s * 1e3:.2f}",
        f"{theirs_s * 1e3:.2f}",
        f"{row['p95_differs']:+.2f}",
        ", ".join(row["outside"]) or "-",
    ]


def link_cells(row):
    packets, dropped, waits = row["packets"], row["dropped"], [f"{p95_s * 1e3:.2f}" for p95_s in row["p95_s"]]
    return [row["link"], row["class"], *map(str, packets), *map(str, dropped), *waits]


def render(answer, markdown):
    parts = []
    for found in answer["networks"]:
        title = f"{found['case']}, {found['form']}: {CASES[found['case']]}; {found['seeds']} seeds"
        outside = sum(len(row["outside"]) for row in found["flows"])
        verdict = (
            f"{found['case']}, {found['form']}: {outside} of {2 * len(found['flows'])} values outside their bounds"
        )
        tables = report.table(COLUMNS, map(flow_cells, found["flows"]), [verdict], markdown=markdown)
        tables += "\n" + report.table(LINK_COLUMNS, map(link_cells, found["links"]), markdown=markdown)
        parts.append((f"### {title}\n\n" if markdown else f"{title}\n") + tables)
    return "\n".join(parts)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=list(CASES), action="append", help="default: all")
    parser.add_argument("--form", choices=FORMS, action="append", help="default: all")
    parser.add_argument("--seeds", type=report.within(int, 1, 1000), default=10, help="runs of each (default 10)")
    parser.add_argument("--speed", choices=network_speed.CASES, action="append", help="measure speed on these instead")
    parser.add_argument(
        "--rounds", type=report.within(int, 1, 1000), default=3, help="rounds of --speed and --kernel (default 3)"
    )
    parser.add_argument("--kernel", action="store_true", help="compare shares of transfers with the kernel's (as root)")
    parser.add_argument("--laboratory", action="store_true", help="compare with the laboratory's kernel")
    parser.add_argument(
        "--without", choices=network_laboratory.SWITCHES, action="append", help="with --laboratory: off in the kernel"
    )
    parser.add_argument(
        "--shifts",
        type=report.within(int, 2, 1000),
        help="Linkweir's spread over so many shifts of the transfers' starts",
    )
    parser.add_argument("--no-build", action="store_true", help="run programs that are already built")
    return report.options_of(parser)


def main():
    options = parse_arguments()
    if not options.no_build and not options.shifts:
        ns3_network.build()
    peers.Linkweir().prepare(not options.no_build)
    if options.speed:
        rows = [row for case in options.speed for row in network_speed.measure(case, options.rounds)]
        report.write(options, {"speed": rows}, lambda markdown: network_speed.render(rows, markdown))
        return 0
    if options.kernel:
        rows = network_kernel.compare(options.rounds, run_linkweir, run_ns3)
        report.write(options, {"kernel": rows}, lambda markdown: network_kernel.render(rows, markdown))
        return 0
    if options.laboratory:
        found = [
            network_laboratory.compare(
                case, form, options.seeds, run_linkweir, run_ns3, group_of, options.without or []
            )
            for case in options.case or CASES
            for form in options.form or FORMS
        ]
        answer = {"laboratory": found}
        report.write(options, answer, lambda markdown: network_laboratory.render(answer, markdown))
        return 0
    if options.shifts:
        import network_spread

        rows = [
            row
            for case in options.case or CASES
            for form in options.form or FORMS
            for row in network_spread.measure(case, form, options.seeds, options.shifts, run_linkweir, group_of)
        ]
        report.write(options, {"shifts": rows}, lambda markdown: network_spread.render(rows, markdown))
        return 0
    networks = [compare(case, form, options.seeds) for case in options.case or CASES for form in options.form or FORMS]
    report.write(options, {"networks": networks}, lambda markdown: render({"networks": networks}, markdown))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (UnavailableError, RuntimeError) as fault:
        print(f"network.py: {fault}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
