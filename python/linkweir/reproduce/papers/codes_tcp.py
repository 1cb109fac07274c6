# SPDX-License-Identifier: BSD-3-Clause
"""TCP over a low-orbit constellation: the journal version of Tauran et al. 2018, Figures 15 to 28 and Tables 3 to 5.

Link, queues and policies are those of `codes.py`, with packets of 1115 bytes coded. Every user has one endless transfer
of ns-2.35's TCP/Linux, NewReno or CUBIC, in segments of 1000 + 40 bytes; transfer i starts at 0.5 + 0.5 i s. The
receiver hands packets on as they are decoded, or puts them in order first, with one buffer of 125 packets for all.

The paper says 100 s and gives no delays. Its program ends transfers after 600 s, and its delay trace stays at 75 ms to
the last satellite and 6 ms from there for the longest of its stretches. With these, Tables 3 and 4 come out nearly as
printed, spreads and RR's peak at 20 users included; so they are used here, and `--table assumptions` shows what other
values do.

The corrected mode has Linux's TCP, Reno or CUBIC, in segments of the same bytes. It runs fewer numbers of users, in
Table 5 40 of CUBIC and 450 of voice, and runs Reno over five channels, as the published one does NewReno among 100
users. Policies that the paper lacks are in Tables 3 and 4 and in the figures of goodput, retransmissions and first
attempts, over three channels.

Goodput is payload acknowledged over the time from a transfer's own start to the end. Loss, latency, jitter and the bits
on the link are those of `codes.py`, over all segments, those sent again included.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from linkweir import quality
from linkweir.reproduce.figure import Figure, FigureCase, Grid, Measure, Panel, Row, Scenario, Tables
from linkweir.reproduce.papers import codes, codes_printed
from linkweir.reproduce.papers.codes import CODES, JOURNAL, LINK_MEASURES, RIVALS, CodesOptions, Plot, by_users
from linkweir.reproduce.papers.spread import half_width, means, with_spread

DURATION_S = 600.0
QUICK_DURATION_S = 100.0
ACCESS_MS = 75.0
LAST_HOP_MS = 6.0
SEGMENT_BYTES = 1040
"""Bytes of a segment in a queue."""
GROUND_MS = 1.0
USERS = {"cubic": (10, 20, 40, 60, 80, 100), "newreno": (10, 20, 40, 100)}
QUICK_USERS = (20, 40)
CORRECTED_USERS = (20, 40, 100)
BEYOND_USERS = (10, 20, 40, 100)
BEYOND_SEEDS = 3
"""Channels of the tables and policies beyond the paper."""
FAR_USERS = {"cubic": (), "newreno": (100,)}
"""Numbers of users at which the published figures hardly differ, with fewer channels."""
RIVAL_USERS = {"published": (20, 40, 100), "corrected": (40,)}
CDF_USERS = 40
POLICIES = ("DT_S", "DT_H", "RR", "PF", CODES)
FAIRNESS = ("DT_S", "RR", "PF")
SHARES = ("retx_share", "fast_share", "rto_share", "spurious_share")
MEASURES = (
    "goodput_mbps_min",
    "goodput_mbps_mean",
    "goodput_mbps_max",
    "goodput_mbps_sd",
    "jain",
    "total_mbps",
    *SHARES,
    *LINK_MEASURES,
    "coded_bits_per_pkt",
)

TABLE_3, TABLE_4 = codes_printed.JOURNAL_3, codes_printed.JOURNAL_4
"""The paper's goodput of the users, without and with reordering."""


@dataclass(frozen=True)
class Setup:
    """The settings of a figure: congestion control, the receiver's order, and what the paper leaves open.

    Attributes:
        cc: cubic, or newreno, for which the corrected mode runs Linux's reno.
        reordering: none, shared or per_flow.
        access_ms: one-way delay to the last satellite.
        last_hop_ms: from there to the receiver.
        satellite: keys of the link that differ from those of the mode.
        mode: published or corrected.
        csi_age: how old the scheduler's knowledge of channels is.
    """

    cc: str = "cubic"
    reordering: str = "none"
    access_ms: float = ACCESS_MS
    last_hop_ms: float = LAST_HOP_MS
    satellite: tuple[tuple[str, str], ...] = ()
    mode: str = "published"
    csi_age: str = codes.FLIGHT

    def corrected(self) -> Setup:
        """The corrected mode of this setup: order, where it is kept, is kept for each flow."""
        return replace(self, mode="corrected", reordering=self.reordering.replace("shared", "per_flow"))


def duration_s(options: CodesOptions) -> float:
    """The duration of every run."""
    return options.duration_s or (QUICK_DURATION_S if options.quick else DURATION_S)


def start_ms(user: int) -> int:
    """The start of a transfer."""
    return 500 + 500 * user


def tcp_keys(setup: Setup) -> Scenario:
    """Whose TCP: ns-2.35's as published, Linux's as corrected, in segments and acknowledgements of the same bytes."""
    if setup.mode == "published":
        return {"profile": "ns2", "cc": setup.cc}
    cc = {"newreno": "reno"}.get(setup.cc, setup.cc)
    return {"profile": "linux", "cc": cc, "mss": "1kB", "header": "40B", "ack": "40B"}


def scenario(setup: Setup, policy: str, users: int, seed: int, lasts_s: float) -> Scenario:
    """One run. As published, queues are those of voice: the authors' program counts 210 bytes a packet for TCP too."""
    packets = JOURNAL if setup.mode == "published" else codes.CONFERENCE
    made = codes.scenario(packets, policy, users, seed, lasts_s, setup.mode, SEGMENT_BYTES, setup.csi_age)
    names = [entry["name"] for entry in made["class"]]
    satellite = {**made["link"]["satellite"], "packet": "1115B", "reorder": setup.reordering, **dict(setup.satellite)}
    delays = {"delay": f"{setup.last_hop_ms:g}ms", "return_delay": f"{setup.last_hop_ms + GROUND_MS:g}ms"}
    return {
        **made,
        "name": f"{setup.cc} {policy} {users} users, order {setup.reordering}, channel {seed}, {setup.mode}",
        "link": {**made["link"], **delays, "satellite": satellite},
        "flow": [
            {
                "name": f"transfer{user}",
                "class": names[user % len(names)],
                "kind": "tcp",
                **tcp_keys(setup),
                "access_delay": f"{setup.access_ms:g}ms",
                "start": f"{start_ms(user)}ms",
            }
            for user in range(users)
        ],
    }


# --- From results to rows -------------------------------------------------------------------------------------------


def goodputs_mbps(tables: Tables, lasts_s: float) -> list[float]:
    """Each transfer's goodput from its start to the end of the run."""
    flows = tables.rows("flows")
    return [1e-6 * flow["goodput_bps"] * lasts_s / (lasts_s - start_ms(user) / 1000) for user, flow in enumerate(flows)]


def measured(tables: Tables, lasts_s: float) -> dict[str, float]:
    """The results of a run; shares are means over the flows, in per cent of the segments they sent."""
    flows = tables.rows("flows")
    goodputs = goodputs_mbps(tables, lasts_s)

    def share(column: str) -> float:
        return statistics.fmean(100 * flow[column] / flow["transmitted_pkts"] for flow in flows)

    return {
        "goodput_mbps_min": min(goodputs),
        "goodput_mbps_mean": statistics.fmean(goodputs),
        "goodput_mbps_max": max(goodputs),
        "goodput_mbps_sd": statistics.pstdev(goodputs),
        "jain": quality.jain(goodputs),
        "total_mbps": sum(goodputs),
        "retx_share": share("retransmitted_pkts"),
        "fast_share": share("retransmitted_fast_pkts"),
        "rto_share": share("retransmitted_rto_pkts"),
        "spurious_share": share("spurious_pkts"),
        **codes.link_measured(tables, lasts_s, SEGMENT_BYTES, of_decoded=False),
        "coded_bits_per_pkt": codes.coded_bits(tables) / sum(codes.attempts_pkts(tables)),
    }


LABELS = ("policy", "users", "cc", "reordering", "assumption", "mode")


def _groups(results: Sequence[tuple[FigureCase, Tables]]) -> dict[tuple[object, ...], list[tuple[FigureCase, Tables]]]:
    groups: dict[tuple[object, ...], list[tuple[FigureCase, Tables]]] = {}
    for case, tables in results:
        key = tuple(case.labels[name] for name in LABELS if name in case.labels)
        groups.setdefault(key, []).append((case, tables))
    return groups


def _row(labels: Mapping[str, object], runs: Sequence[Mapping[str, float]]) -> Row:
    known = {name: labels[name] for name in LABELS if name in labels}
    return {"mode": "published", **known, "runs": len(runs), **means(runs)}


def rows(lasts_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """One row for each policy, number of users and setup: means over the channels, with their intervals."""
    made = []
    for pairs in _groups(results).values():
        own = pairs[0][0].labels.get("lasts_s", lasts_s)
        made.append(_row(pairs[0][0].labels, [measured(tables, own) for _, tables in pairs]))
    return made


def gains(lasts_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """The rows, each with how many per cent its policy's mean goodput is above that of DT_H over the same channel."""
    made = rows(lasts_s, results)
    means: dict[tuple[str, int, int], float] = {}
    for case, tables in results:
        key = (case.labels["policy"], case.labels["users"], case.labels["seed"])
        means[key] = statistics.fmean(goodputs_mbps(tables, lasts_s))
    seeds = sorted({seed for _, _, seed in means})
    for row in made:
        pairs = [(means.get((row["policy"], row["users"], s)), means.get(("DT_H", row["users"], s))) for s in seeds]
        found = [100 * (mean / base - 1) for mean, base in pairs if mean is not None and base]
        row["gain"] = statistics.fmean(found) if found else None
        row["gain_ci95"] = half_width(found)
    return made


def distribution(lasts_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """The users' goodput by rank: `goodput_mbps`, each rank a mean over the channels, of a `cdf` of the users at or
    below it, together with the totals of the policy.
    """
    made = []
    for pairs in _groups(results).values():
        (row,) = rows(lasts_s, pairs)
        ranks = zip(*(sorted(goodputs_mbps(tables, lasts_s)) for _, tables in pairs), strict=True)
        for rank, values in enumerate(ranks, 1):
            made.append({**row, **means([{"goodput_mbps": value} for value in values]), "cdf": rank / row["users"]})
    return made


# --- Figures --------------------------------------------------------------------------------------------------------


@cache
def _case(setup: Setup, policy: str, users: int, seed: int, lasts_s: float) -> FigureCase:
    """A case; cached, as many figures share it."""
    labels = {
        "policy": policy,
        "users": users,
        "cc": setup.cc,
        "reordering": setup.reordering,
        "seed": seed,
        "mode": setup.mode,
        "last_start_ms": start_ms(users - 1),
    }
    return FigureCase(labels, scenario(setup, policy, users, seed, lasts_s))


def cases(
    options: CodesOptions,
    setups: Sequence[Setup],
    policies: Sequence[str],
    users: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
) -> tuple[FigureCase, ...]:
    """The runs for all combinations."""
    lasts_s = duration_s(options)
    corrected = options.mode == "corrected"
    of_mode = [setup.corrected() if corrected else setup for setup in setups]
    chosen = [replace(setup, csi_age=options.csi_age) for setup in of_mode]
    other_age = options.csi_age != codes.FLIGHT
    counts = QUICK_USERS if options.quick else CORRECTED_USERS if corrected or other_age else None

    def channels(cc: str, count: int) -> Sequence[int]:
        if other_age:
            return options.seeds[:BEYOND_SEEDS]
        few = cc == "newreno" if corrected else count in FAR_USERS[cc]
        return options.fewer_seeds if few else options.seeds

    return tuple(
        _case(setup, policy, count, seed, lasts_s)
        for setup in chosen
        for policy in policies
        for count in users or counts or USERS[setup.cc]
        for seed in seeds or channels(setup.cc, count)
    )


def rivals(options: CodesOptions, setups: Sequence[Setup]) -> tuple[FigureCase, ...]:
    """Runs of the policies beyond the paper's own."""
    if options.csi_age != codes.FLIGHT:
        return ()
    users = [count for count in RIVAL_USERS[options.mode] if not options.quick or count in QUICK_USERS]
    return cases(options, setups, tuple(RIVALS), users, options.seeds[:BEYOND_SEEDS])


@dataclass(frozen=True)
class _Curves(Plot):
    """Curves for one or several setups."""

    setups: tuple[Setup, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """A column plotted over the number of users: label of the axis, curves, and digits in tables."""

    column: str
    label: str
    policies: tuple[str, ...]
    digits: int


def _curves(
    title: str, claim: str, of: Quantity, setups: tuple[Setup, ...], by: tuple[str, ...] = ("policy",)
) -> _Curves:
    return _Curves(title, claim, of.column, of.label, of.policies, of.digits, by, setups)


NONE, SHARED = Setup(), Setup(reordering="shared")
RENO, RENO_SHARED = Setup("newreno"), Setup("newreno", "shared")
GAIN = Quantity("gain", "goodput above that of DT_H (%)", ("DT_S", "RR", "PF", CODES), 1)
TOTAL = Quantity("total_mbps", "goodput (Mbit/s)", POLICIES, 2)
RETX = Quantity("retx_share", "retransmitted (% of the segments)", POLICIES, 2)
FIRST = Quantity("tx0", "decoded at once (%)", POLICIES, 2)
MEAN_OF_RR = Quantity("goodput_mbps_mean", "goodput (Mbit/s)", ("RR",), 3)
MEAN_OF_PF = Quantity("goodput_mbps_mean", "goodput (Mbit/s)", ("PF",), 3)
TIMEOUTS_OF_PF = Quantity("rto_share", "after timeouts (% of the segments)", ("PF",), 2)
ORDERS = ("reordering",)
_PLOTS = {
    "15": _curves(
        "goodput gain over DT_H, NewReno", "PF and RR gain most, RR more than PF at few users.", GAIN, (RENO,)
    ),
    "16": _curves("goodput gain over DT_H, CUBIC", "PF and RR gain most, RR up to 20 users and more.", GAIN, (NONE,)),
    "17": _curves("goodput of all, CUBIC", "PF most, up to 20 Mbit/s.", TOTAL, (NONE,)),
    "18": _curves("retransmissions, CUBIC", "Fewest with PF, RR and DT_H, most with DT_S.", RETX, (NONE,)),
    "19": _curves("packets decoded at the first attempt, CUBIC", "Only PF and CoDeS choose.", FIRST, (NONE,)),
    "20": _curves(
        "RR with and without reordering, CUBIC", "The same from 20 users on.", MEAN_OF_RR, (NONE, SHARED), ORDERS
    ),
    "21": _curves(
        "goodput gain over DT_H with reordering, NewReno", "PF gains most, RR nothing.", GAIN, (RENO_SHARED,)
    ),
    "22": _curves("goodput gain over DT_H with reordering, CUBIC", "PF gains most, RR nothing.", GAIN, (SHARED,)),
    "23": _curves("goodput of all with reordering, CUBIC", "PF most; DT_H like RR.", TOTAL, (SHARED,)),
    "24": _curves("retransmissions with reordering, CUBIC", "More than without.", RETX, (SHARED,)),
    "25": _curves(
        "retransmissions after timeouts under PF, CUBIC",
        "More with reordering at few users.",
        TIMEOUTS_OF_PF,
        (NONE, SHARED),
        ORDERS,
    ),
    "26": _curves(
        "goodput under PF by congestion control and reordering",
        "Equal at saturation; below it CUBIC and reordering gain.",
        MEAN_OF_PF,
        (RENO, RENO_SHARED, NONE, SHARED),
        ("cc", "reordering"),
    ),
}


def _figure(number: str, plot: _Curves, options: CodesOptions) -> Figure:
    measure: Measure = partial(gains if plot.y == "gain" else rows, duration_s(options))
    # Gains are measured against it; its own are a line at 0.
    policies = ("DT_H", *plot.policies) if plot.y == "gain" else plot.policies
    title = plot.title.replace("NewReno", "Linux's Reno") if options.mode == "corrected" else plot.title
    return Figure(
        f"journal-{number}{options.suffix}",
        f"Figure {number} of the journal paper{options.title}: {title}",
        plot.claim,
        (*cases(options, plot.setups, policies), *(rivals(options, plot.setups) if policies == POLICIES else ())),
        measure,
        (Panel(_sentence(title), "users", plot.y, "users", plot.y_label, plot.by, lines=True),),
        ("policy", "users", "cc", "reordering", plot.y, f"{plot.y}_ci95"),
        titled=True,
        summary=partial(_by_users, plot),
        printed=codes.printed_of("journal", number, options),
    )


def _by_users(plot: _Curves, made: list[Row]) -> Grid:
    """Gains without DT_H, which they are over."""
    return by_users(plot, [row for row in made if plot.y != "gain" or row["policy"] in plot.policies])


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def figure_cdf(number: str, setup: Setup, options: CodesOptions) -> Figure:
    """The distribution of goodput over the users."""
    order = "with" if setup.reordering != "none" else "without"
    return Figure(
        f"journal-{number}{options.suffix}",
        f"Figure {number} of the journal paper{options.title}: goodput over {CDF_USERS} users, CUBIC {order} "
        "reordering",
        "RR is fairest; all users have more with PF than with the others.",
        cases(options, (setup,), POLICIES, (CDF_USERS,)),
        partial(distribution, duration_s(options)),
        (
            Panel(
                f"CUBIC {order} reordering",
                "goodput_mbps",
                "cdf",
                "goodput (Mbit/s)",
                "part of the users",
                ("policy",),
                lines=True,
            ),
        ),
        ("policy", "users", "cc", "reordering", "cdf", "goodput_mbps", "goodput_mbps_ci95"),
        titled=True,
        summary=_quantiles,
        printed=codes.printed_of("journal", number, options),
    )


def _quantiles(made: list[Row]) -> Grid:
    lines = []
    for policy in dict.fromkeys(row["policy"] for row in made):
        ranks = [row for row in made if row["policy"] == policy]
        shown = (next(row for row in ranks if row["cdf"] >= part) for part in (0.0, 0.25, 0.5, 0.75, 1.0))
        lines.append([policy, *(with_spread(row, "goodput_mbps", 3) for row in shown)])
    return ["policy", "least, Mbit/s", "a quarter at most", "half at most", "three quarters at most", "most"], lines


def table_fairness(
    number: str, setup: Setup, paper: Mapping[int, Mapping[str, Sequence[float]]], options: CodesOptions
) -> Figure:
    """Least, most, mean and standard deviation of the users' goodput."""
    order = "with" if setup.reordering != "none" else "without"
    return Figure(
        f"journal-table-{number}{options.suffix}",
        f"Table {number} of the journal paper{options.title}: goodput of the users {order} reordering, Mbit/s "
        "(the paper in brackets)",
        "RR spreads least; PF's worst flow has almost always more than the best flow with DT_S or RR. With reordering "
        "it still has more than any of theirs.",
        (*cases(options, (setup,), FAIRNESS), *rivals(options, (setup,))),
        partial(rows, duration_s(options)),
        (),
        ("policy", "users", "cc", "reordering", *MEASURES[:5]),
        titled=True,
        summary=partial(_fairness, paper),
        printed=codes.printed_of("journal", f"table-{number}", options),
    )


def _fairness(paper: Mapping[int, Mapping[str, Sequence[float]]], made: list[Row]) -> Grid:
    names = {"goodput_mbps_min": 2, "goodput_mbps_max": 2, "goodput_mbps_mean": 2, "goodput_mbps_sd": 3}
    order = ("PF", "DT_S", "RR", *RIVALS)
    lines = []
    for row in sorted(made, key=lambda row: (row["users"], order.index(row["policy"]))):
        known = paper.get(row["users"], {}).get(row["policy"])
        cells = [with_spread(row, name, 3) for name in names]
        if known:
            cells = [codes.beside(row, n, of, 3, d) for (n, d), of in zip(names.items(), known, strict=True)]
        lines.append([str(row["users"]), row["policy"], *cells, with_spread(row, "jain", 4)])
    return ["users", "policy", "min", "max", "mean", "SD", "Jain's index"], lines


# --- Table 5 --------------------------------------------------------------------------------------------------------

TABLE_5 = {
    "DT_S": ("--", "--", "-", "--"),
    "DT_H": ("--", "-", "--", "-"),
    "RR": ("--", "-", "++", "-"),
    "PF": ("+", "++", "+", "++"),
    CODES: ("++", "+", "+", "++"),
}
"""The paper's marks, crosses as minus and ticks as plus: voice, TCP goodput, fairness, overall efficiency."""
RANKED_USERS = {"published": 60, "corrected": 40}


def table_5(options: CodesOptions) -> Figure:
    """The numbers behind the paper's marks."""
    voice_users = JOURNAL.table_users[options.mode][-1]
    users = QUICK_USERS[-1] if options.quick else RANKED_USERS[options.mode]
    last_start_ms = codes.voice_starts_ms(voice_users, options.mode)[-1]
    voice = [
        FigureCase(
            {"policy": policy, "voice_users": voice_users, "last_start_ms": last_start_ms},
            codes.scenario(JOURNAL, policy, voice_users, seed, options.voice_s, options.mode, csi_age=options.csi_age),
        )
        for policy in POLICIES
        for seed in options.seeds
    ]
    return Figure(
        f"journal-table-5{options.suffix}",
        f"Table 5 of the journal paper in numbers{options.title}: voice at {voice_users} users, CUBIC at {users} "
        "without reordering (the paper's marks in brackets)",
        "CoDeS for voice, PF for TCP; RR is fairest.",
        (*voice, *cases(options, (NONE,), POLICIES, (users,))),
        partial(_ranks, options.voice_s, duration_s(options)),
        (),
        ("policy", "users", "mos", "goodput_mbps_mean", "spread", "link_bits_per_bit"),
        titled=True,
        summary=_ranking,
        printed=codes.printed_of("journal", "table-5", options),
    )


def _ranks(voice_s: float, lasts_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    runs: dict[str, list[dict[str, float]]] = {}
    calls: dict[str, list[dict[str, float]]] = {}
    labels: dict[str, dict[str, object]] = {}
    for case, tables in results:
        policy = case.labels["policy"]
        if "voice_users" in case.labels:
            calls.setdefault(policy, []).append({"mos": codes.measured(JOURNAL, tables, voice_s)["mos"]})
            labels.setdefault(policy, {})["voice_users"] = case.labels["voice_users"]
            continue
        labels.setdefault(policy, {}).update(case.labels)
        run = measured(tables, lasts_s)
        good_bits = sum(flow["goodput_bps"] for flow in tables.rows("flows")) * lasts_s
        run["spread"] = run["goodput_mbps_sd"] / run["goodput_mbps_mean"]
        run["link_bits_per_bit"] = codes.coded_bits(tables) / good_bits
        runs.setdefault(policy, []).append(run)
    both = [policy for policy in runs if policy in calls]
    return [
        {**_row(labels[policy], runs[policy]), "voice_users": labels[policy]["voice_users"], **means(calls[policy])}
        for policy in both
    ]


def _ranking(made: list[Row]) -> Grid:
    names = (("mos", 2), ("goodput_mbps_mean", 3), ("spread", 3), ("link_bits_per_bit", 2))
    lines = [
        [
            row["policy"],
            *(
                f"{with_spread(row, name, digits)} ({mark})"
                for (name, digits), mark in zip(names, TABLE_5[row["policy"]], strict=True)
            ),
        ]
        for row in made
    ]
    return ["policy", "MOS", "TCP goodput, Mbit/s", "SD / mean of the users", "coded bits per useful bit"], lines


# --- Beyond the paper -----------------------------------------------------------------------------------------------

PER_FLOW = Setup(reordering="per_flow")


def table_reordering(options: CodesOptions) -> Figure:
    """One buffer for all against one for each flow."""
    users = QUICK_USERS if options.quick else BEYOND_USERS
    return Figure(
        "journal-reordering",
        "Beyond the journal paper: order by one buffer for all, and by one for each flow, CUBIC",
        "One buffer for all holds a flow back for what others lost; a buffer for each flow does not.",
        cases(options, (NONE, SHARED, PER_FLOW), ("RR", "PF"), users, options.seeds[:BEYOND_SEEDS]),
        partial(rows, duration_s(options)),
        (
            Panel(
                "Goodput by order",
                "users",
                "goodput_mbps_mean",
                "users",
                "goodput (Mbit/s)",
                ("policy", "reordering"),
                lines=True,
            ),
        ),
        ("policy", "users", "reordering", "goodput_mbps_mean", *SHARES),
        titled=True,
        claimed=False,
        summary=_causes,
    )


def _causes(made: list[Row]) -> Grid:
    lines = [
        [
            row["policy"],
            str(row["users"]),
            row["reordering"],
            with_spread(row, "goodput_mbps_mean", 3),
            *(f"{row[name]:.2f}" for name in SHARES),
        ]
        for row in sorted(made, key=lambda row: (row["policy"], row["users"]))
    ]
    titles = ["sent again, %", "in fast recovery", "after timeouts", "received twice"]
    return ["policy", "users", "order", "goodput, Mbit/s", *titles], lines


ASSUMPTIONS: dict[str, tuple[Setup, float | None]] = {
    "75 ms, 6 ms": (NONE, None),
    "shorter": (NONE, 100.0),
    "75 ms, 7.3 ms": (Setup(last_hop_ms=7.3), None),
    "100 ms, 7.6 ms": (Setup(access_ms=100.0, last_hop_ms=7.6), None),
    "coded only": (Setup(satellite=(("first_attempt", "coded"),)), None),
    "repetitions see own": (Setup(satellite=(("repeats_see", "own"),)), None),
}
"""What is assumed in addition to the paper, and one change at a time: delays to the last satellite and from there, how
long runs last, the first attempt without the uncoded packet, and repetitions over the channel of their own user."""
ASSUMPTION_USERS = (20, 40)


def table_assumptions(options: CodesOptions) -> Figure:
    """Goodput when one assumption is another."""
    made = []
    for name, (setup, other_s) in ASSUMPTIONS.items():
        lasts_s = other_s or duration_s(options)
        if other_s is not None:
            if other_s >= duration_s(options):
                continue
            name = f"{other_s:g} s"
        elif setup == NONE:
            name = f"{name}, {lasts_s:g} s"
        for policy in ("RR", "PF"):
            for users in ASSUMPTION_USERS:
                for seed in options.seeds[:BEYOND_SEEDS]:
                    labels = {
                        "policy": policy,
                        "users": users,
                        "cc": setup.cc,
                        "reordering": "none",
                        "assumption": name,
                    }
                    made.append(
                        FigureCase(
                            {**labels, "seed": seed, "lasts_s": lasts_s, "last_start_ms": start_ms(users - 1)},
                            scenario(setup, policy, users, seed, lasts_s),
                        )
                    )
    return Figure(
        "journal-assumptions",
        "Beyond the journal paper: goodput without reordering, CUBIC, when one assumption is another, Mbit/s",
        "What the paper leaves open, one change at a time.",
        tuple(made),
        partial(rows, duration_s(options)),
        (),
        ("policy", "users", "assumption", "goodput_mbps_mean", "goodput_mbps_sd"),
        titled=True,
        claimed=False,
        summary=_assumed,
    )


def _assumed(made: list[Row]) -> Grid:
    of = {(row["assumption"], row["policy"], row["users"]): row for row in made}
    columns = [(policy, users) for users in ASSUMPTION_USERS for policy in ("RR", "PF")]
    lines = []
    for name in dict.fromkeys(row["assumption"] for row in made):
        found = [of.get((name, *column)) for column in columns]
        cells = (f"{r['goodput_mbps_mean']:.3f}, SD {r['goodput_mbps_sd']:.3f}" if r else "" for r in found)
        lines.append([name, *cells])
    printed = (TABLE_3[users][policy] for policy, users in columns)
    lines.append(["the paper", *(f"{known[2]:.2f}, SD {known[3]:.3f}" for known in printed)])
    return ["assumption", *(f"{policy}, {users} users" for policy, users in columns)], lines


_plots: dict[str, Callable[[CodesOptions], Figure]] = {
    f"journal-{number}": partial(_figure, number, plot) for number, plot in _PLOTS.items()
}
FIGURES: dict[str, Callable[[CodesOptions], Figure]] = {
    **_plots,
    "journal-27": partial(figure_cdf, "27", NONE),
    "journal-28": partial(figure_cdf, "28", SHARED),
}
TABLES: dict[str, Callable[[CodesOptions], Figure]] = {
    "journal-3": partial(table_fairness, "3", NONE, TABLE_3),
    "journal-4": partial(table_fairness, "4", SHARED, TABLE_4),
    "journal-5": table_5,
    "journal-reordering": table_reordering,
    "journal-assumptions": table_assumptions,
}
PUBLISHED_ONLY = ("journal-reordering", "journal-assumptions")
"""They compare what was published with what else it might have been."""
