# SPDX-License-Identifier: BSD-3-Clause
"""Policies compared on a beam to terminals in rain: a table of means over storms, and two pictures.

::

    python scenarios/geo_beam_policies.py                          geo-beam-rain.toml under rr, drr and pf, ten storms
    python scenarios/geo_beam_policies.py my.toml --policies rr codes --storms 2 --out runs/mine

The table goes to the terminal as Markdown. docs/records/geo-beam.md says what to make of it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import linkweir
from linkweir.panels.plot import STYLE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SMOOTH_S = 5
"""Mean over time of what one terminal gets, s."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs everything, prints the table and writes the pictures."""
    parser = argparse.ArgumentParser(description="Compare policies on a beam to terminals in rain.")
    parser.add_argument("scenario", nargs="?", type=Path, default=Path(__file__).with_name("geo-beam-rain.toml"))
    parser.add_argument("--policies", nargs="+", default=["rr", "drr", "pf"], metavar="POLICY")
    parser.add_argument("--storms", type=int, default=10, help="seeds 1, 2, ...; pictures are of the first")
    parser.add_argument("--out", type=Path, default=Path("runs/geo-beam-policies"), help="directory of the pictures")
    options = parser.parse_args(arguments)
    if options.storms < 1:
        parser.error(f"--storms = {options.storms}: must be at least 1")
    try:
        storms = _scenarios(options.scenario, options.policies, options.storms)
    except linkweir.ScenarioError as error:
        parser.error(str(error))

    found: dict[str, list[dict[str, float]]] = {policy: [] for policy in options.policies}
    for number, scenarios in enumerate(storms):
        runs = linkweir.run_many(scenarios)
        for policy, run in zip(options.policies, runs, strict=True):
            found[policy].append(measured(run))
        if number == 0:
            options.out.mkdir(parents=True, exist_ok=True)
            with rc_context(STYLE):
                for name, draw in (("goodput", goodput_of_terminals), ("fade", one_terminal)):
                    figure = draw(dict(zip(options.policies, runs, strict=True)))
                    figure.savefig(options.out / f"geo-beam-{name}.svg", metadata={"Date": None, "Creator": None})
    print("\n".join(table(found)))
    print(f"pictures: {options.out}", file=sys.stderr)


def _scenarios(path: Path, policies: Sequence[str], storms: int) -> list[list[linkweir.Scenario]]:
    """The scenario in each storm under each policy, all valid."""
    linkweir.Scenario.load(path)
    keys = tomllib.loads(path.read_text(encoding="utf-8"))
    if "beam" not in keys["link"]:
        raise linkweir.ScenarioError(f"{path}: link.beam: is missing; without it there are no terminals to compare")
    return [
        [
            linkweir.Scenario.from_dict(keys | {"scheduler": {"policy": policy}}, path=path, seed=seed)
            for policy in policies
        ]
        for seed in range(1, storms + 1)
    ]


# --- One run --------------------------------------------------------------------------------------------------------


def goodput_mbps(run: linkweir.Result) -> np.ndarray[Any, Any]:
    """What the applications of each terminal got."""
    of = dict.fromkeys(run.scenario.classes, 0.0)
    for flow in run.rows("flows"):
        of[flow["class"]] += flow["goodput_bps"] / 1e6
    return np.array(list(of.values()))


def measured(run: linkweir.Result) -> dict[str, float]:
    """The rows of the table. All but the first are of the terminals never in outage; voice is on/off, video cbr."""
    terminals, classes = run.rows("terminals"), run.rows("classes")
    goodput = goodput_mbps(run)
    airtime = np.array([row["airtime"] for row in terminals])
    served = [i for i, row in enumerate(terminals) if row["outage"] == 0]
    if not served:
        sys.exit(f"{run.scenario.name}, seed {run.scenario.seed}: every terminal is in outage at some time")
    served.sort(key=lambda i: terminals[i]["channel_rate_bps"])
    tenth = max(1, len(served) // 10)
    groups = {"together": served, "slowest tenth": served[:tenth], "quickest tenth": served[-tenth:]}

    def delay_ms(of: Iterable[int]) -> float:
        sent: dict[int, int] = {i: classes[i]["sent_pkts"] for i in of if classes[i]["sent_pkts"]}
        waited_s: float = sum(classes[i]["delay_mean_s"] * pkts for i, pkts in sent.items())
        return 1e3 * waited_s / sum(sent.values()) if sent else math.nan

    def loss(of: Iterable[int], kind: str) -> float:
        names = {classes[i]["class"] for i in of}
        rows = [row for row in run.rows("flows") if row["kind"] == kind and row["class"] in names]
        lost: int = sum(row["dropped_limit_pkts"] + row["dropped_policy_pkts"] for row in rows)
        known = lost + sum(row["delivered_pkts"] for row in rows)
        return 100 * lost / known if known else math.nan

    rows: dict[str, float] = {
        "goodput of all terminals (Mbit/s)": goodput.sum(),
        "terminals never in outage": len(served),
        "their least goodput (Mbit/s)": goodput[served].min(),
        "mean": goodput[served].mean(),
        "greatest": goodput[served].max(),
        "Jain's index of goodputs": linkweir.quality.jain(list(goodput[served])),
    }
    for name, of in groups.items():
        if name != "together":
            rows[f"{name}: mean goodput (Mbit/s)"] = goodput[of].mean()
            rows[f"{name}: part of the carrier's time (%)"] = 100 * airtime[of].sum()
        rows[f"{name}: queueing delay (ms)"] = delay_ms(of)
        rows[f"{name}: voice lost (%)"] = loss(of, "onoff")
    rows["together: video lost (%)"] = loss(served, "cbr")
    return rows


def table(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """Means over the storms, a column for each policy; and in how many storms the last has more than the first."""
    policies = list(found)
    first, last = found[policies[0]], found[policies[-1]]
    lines = [
        f"| | {' | '.join(f'`{policy}`' for policy in policies)} | `{policies[-1]}` has more than `{policies[0]}` in |"
    ]
    lines.append("|---" * (len(policies) + 2) + "|")
    for name in first[0]:
        means = " | ".join(_digits(sum(run[name] for run in runs) / len(runs)) for runs in found.values())
        more = sum(b[name] > a[name] for a, b in zip(first, last, strict=True))
        lines.append(f"| {name} | {means} | {more} of {len(first)} |")
    return lines


def _digits(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


# --- Pictures -------------------------------------------------------------------------------------------------------


def goodput_of_terminals(runs: dict[str, linkweir.Result]) -> Figure:
    """The part of the terminals that get no more than so much."""
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for policy, run in runs.items():
        goodput = np.sort(goodput_mbps(run))
        axes.step([0, *goodput], 100 * np.arange(len(goodput) + 1) / len(goodput), where="post", label=policy)
    axes.set(xlabel="goodput of a terminal (Mbit/s)", ylabel="terminals with no more (%)", ylim=(0, 100))
    axes.set_xlim(left=0)
    axes.legend()
    return figure


def one_terminal(runs: dict[str, linkweir.Result]) -> Figure:
    """The terminal whose channel changes most without an outage: its channel's rate, and what it gets."""
    some = next(iter(runs.values()))
    channel: dict[str, list[float]] = {name: [] for name in some.scenario.classes}
    for row in some.rows("channel"):
        channel[row["class"]].append(row["rate_bps"] / 1e6)
    name = max(channel, key=lambda of: max(channel[of]) / min(channel[of]) if min(channel[of]) else 0.0)

    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.step(_times(some, len(channel[name])), channel[name], where="post", color="0.4")
    above.set(title=f"{name}, the channel's rate alone", ylabel="rate (Mbit/s)")
    bins = max(1, round(SMOOTH_S / some.scenario.interval_s))
    for policy, run in runs.items():
        of: dict[float, float] = {}
        for row in run.rows("flow_series"):
            if row["class"] == name:
                of[row["t_s"]] = of.get(row["t_s"], 0.0) + row["goodput_bps"] / 1e6
        smooth = np.convolve(list(of.values()), np.ones(bins) / bins, mode="valid")
        below.plot(_times(run, len(of))[bins - 1 :], smooth, label=policy)
    below.set(title=f"its goodput, mean over {SMOOTH_S} s", xlabel="time (s)", ylabel="goodput (Mbit/s)")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
    above.set_xlim(0, some.simulated_s)
    below.legend()
    return figure


def _times(run: linkweir.Result, count: int) -> np.ndarray[Any, Any]:
    return np.arange(count) * run.scenario.interval_s


if __name__ == "__main__":
    main()
