# SPDX-License-Identifier: BSD-3-Clause
"""Voice over a low-orbit constellation: Tauran et al. 2018 and its journal version, as published and as corrected.

Conference paper: Figures 3 to 14 and Table II; journal version: Figures 4 to 14 and Table 2. Every user talks at 64
kbit/s in bursts of 500 ms with silences of 50 ms, both Pareto (shape 1.5), through the last satellite's link of 50
Mbit/s. Packets of 210 bytes (in the conference paper filled up to 1115) are coded and repeated at Es/N0 10 dB over a
land-mobile channel at 40 degrees of elevation; user k looks 51 k seconds ahead into the same ten minutes.

The papers' simulation did some things that the texts do not say. The published mode does the same: repetitions see the
channel of user 0; the first attempt carries the uncoded packet too; with one queue for all (DT_S, DT_H) there is one
channel for all; queues hold at least 10 packets and one more; users start 0.1 s apart; PF is linear in dB. Delays are
constant here: 100 ms to the last satellite and 7.6 ms, the mean of the trace they used, from there.

The corrected mode has none of that: every packet meets its own user's channel at each attempt, in shared queues too;
only coded bits are sent; queues are those of the paper's rule, rounded up; users start within a second; PF and CoDeS
are those of the core; every 10 ms they get the rate of each user's channel, delayed by the way to the satellite.

FQ-CoDel's quantum and mtu are the length of a packet in its queues, 210 bytes in both papers: in a round each user
sends one packet, and nothing is dropped while at most one packet waits behind the one judged.

Latency is a mean over the packets. Jitter is a mean over the users, each with the same weight: `jitter_ms` of the mean
absolute difference between the delays of packets delivered one after the other, `jitter_rfc3550_ms` of the estimate a
receiver of RTP has at the end (RFC 3550, section 6.4.1). The E-model is given the first. `coded_mbps` is what the code
adds, without the packet that goes uncoded with the first attempt; `useful_mbps` is the packets decoded, each in its own
length.

Ten channels are run; forty where the papers' tables print values, as published; five far from saturation, and for
policies beyond the papers at numbers of users that have no table. `--quick` runs two in place of ten, fourteen in place
of forty, and one in place of five; one channel has no interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from linkweir import quality
from linkweir.reproduce.figure import Figure, FigureCase, Grid, Panel, Row, Scenario, Tables
from linkweir.reproduce.papers import codes_printed
from linkweir.reproduce.papers.spread import half_width, means, with_spread
from linkweir.reproduce.printed import Printed
from linkweir.scenarios import quantity

DURATION_S = 100.0
LINK_BPS = 50e6
PACKET_BYTES = 210
BUFFER_BITS = 0.2 * LINK_BPS
"""Round trip times capacity, from which queues follow."""
LEAST_QUEUE_PKTS = 10
QUICK_CORRECTED_DURATION_S = 50.0
"""As published users start one by one for half a minute; corrected, all within a second."""
SEEDS = 10
TABLE_SEEDS = 40
FEWER_SEEDS = 5
QUICK_SEEDS = 2
QUICK_TABLE_SEEDS = 14
"""So many keep RR and PF within 2.5 points of the printed values; over two, PF is up to 3.2 points off."""
MODES = ("published", "corrected")
FLIGHT = "flight"
"""The age of channel knowledge by default: a packet meets its channel when it is received, later than the look."""
POLICIES = ("DT_S", "DT_H", "RR", "PF", "CoDeS 50 ms", "CoDeS 100 ms", "CoDeS 200 ms")
UNAWARE = ("DT_S", "DT_H", "RR", "FQ-CoDel")
"""They do not look at channels, so their runs are the same at every age."""
RIVALS: dict[str, Scenario] = {
    "FQ-CoDel": {"policy": "fq_codel"},
    "M-LWDF": {"policy": "mlwdf"},
    "EXP/PF": {"policy": "exp_pf"},
    "UBMT-like": {"policy": "ubmt_like"},
    "BBS-like": {"policy": "bbs_like"},
    "BPS-like": {"policy": "bps_like"},
}
"""Policies that the papers announce to compare with, and do not; the last three are reconstructed from abstracts."""
SPLIT = ("tx0", "tx1", "tx2", "tx3", "drop")
LINK_MEASURES = (
    *SPLIT,
    "loss",
    "loss_full",
    "loss_late",
    "throughput_mbps",
    "latency_ms",
    "jitter_ms",
    "jitter_rfc3550_ms",
    "coded_mbps",
    "useful_mbps",
)
"""Columns that voice and TCP have in common."""
MEASURES = (*LINK_MEASURES, "mos")


LONGEST_AGE_S = 3600.0


def age(text: str) -> str:
    """An age of the command line, always written in the same way.

    Raises:
        OptionError: it is no age.

    >>> age("0ms"), age("0.02s")
    ('0s', '20ms')
    """
    age_s = quantity.time_s("--csi-age", text)
    if not 0 <= age_s <= LONGEST_AGE_S:
        raise quantity.OptionError("--csi-age", text, f"must be 0s .. {LONGEST_AGE_S:g}s")
    return quantity.time_text(age_s)


@dataclass(frozen=True)
class CodesOptions:
    """The options of the command line that change the runs."""

    quick: bool = False
    duration_s: float | None = None
    seed: int = 1
    mode: str = "published"
    csi_age: str = FLIGHT

    @property
    def suffix(self) -> str:
        """Ends the names of figures."""
        mode = "" if self.mode == "published" else f"-{self.mode}"
        return mode if self.csi_age == FLIGHT else f"{mode}-age-{self.csi_age}"

    @property
    def title(self) -> str:
        """Says so in titles."""
        mode = "" if self.mode == "published" else f", as {self.mode}"
        return mode if self.csi_age == FLIGHT else f"{mode}, channels known at age {self.csi_age}"

    @property
    def seeds(self) -> range:
        """Seeds, each of a channel and a realisation of the traffic."""
        seeds = SEEDS if self.csi_age == FLIGHT else FEWER_SEEDS
        return range(self.seed, self.seed + (QUICK_SEEDS if self.quick else seeds))

    @property
    def table_seeds(self) -> range:
        """Seeds where our values are compared with printed ones, as single channels differ by several points."""
        if self.mode != "published":
            return self.seeds
        if self.csi_age != FLIGHT:
            return range(self.seed, self.seed + (QUICK_SEEDS if self.quick else SEEDS))
        return range(self.seed, self.seed + (QUICK_TABLE_SEEDS if self.quick else TABLE_SEEDS))

    @property
    def fewer_seeds(self) -> range:
        """Seeds where fewer channels show the difference."""
        return self.seeds[: 1 if self.quick else FEWER_SEEDS]

    @property
    def voice_s(self) -> float:
        """The duration of runs of voice."""
        shorter = self.quick and self.mode == "corrected"
        return self.duration_s or (QUICK_CORRECTED_DURATION_S if shorter else DURATION_S)


@dataclass(frozen=True, eq=False)
class Paper:
    """The differences between the two papers."""

    name: str
    coded_bytes: int
    """Length of the packets that are coded; the voice packets of 210 bytes are filled up to it."""
    users: dict[str, tuple[int, ...]]
    """Numbers of users by mode; without the uncoded bits the link holds more."""
    far_users: dict[str, tuple[int, ...]]
    """Numbers of users far from saturation, run over fewer channels."""
    quick_users: dict[str, tuple[int, ...]]
    """Numbers of users with --quick: before and at saturation, or at and beyond it."""
    table_users: dict[str, tuple[int, ...]]
    """Numbers of users in the table of attempts; the first is the paper's."""
    rival_users: dict[str, tuple[int, ...]]
    """Numbers of users of the policies beyond the paper's own."""
    of_decoded: bool
    """Whether the splits are parts of the packets decoded, not of all that were sent."""
    table: dict[str, tuple[float, ...]]
    """Per cent decoded after one to four attempts, and given up."""

    @property
    def printed_users(self) -> int:
        """Users of the paper's own table."""
        return self.table_users["published"][0]


JOURNAL = Paper(
    "journal",
    210,
    {"published": (50, 100, 150, 200, 250, 300, 350, 400), "corrected": (100, 300, 350, 400, 450, 500)},
    {"published": (50, 100, 150), "corrected": (100, 500)},
    {"published": (100, 300), "corrected": (300, 450)},
    {"published": (300,), "corrected": (300, 450)},
    {"published": (250, 300, 350), "corrected": (350, 400, 450)},
    False,
    codes_printed.JOURNAL_2,
)
CONFERENCE = Paper(
    "conference",
    1115,
    {"published": (10, 25, 50, 75, 100, 125, 150), "corrected": (25, 50, 75, 100, 125)},
    {"published": (10, 25), "corrected": (25,)},
    {"published": (50, 75), "corrected": (75, 100)},
    {"published": (75,), "corrected": (75, 100)},
    {"published": (50, 75, 100), "corrected": (75, 100, 125)},
    True,
    codes_printed.CONFERENCE_2,
)


def queue_pkts(paper: Paper, policy: str, users: int, mode: str) -> int:
    """Packets a queue holds: the bandwidth-delay product over the root of the users, for one queue of all (DT_H) or
    shared out over the users. As published it is rounded down, a share to 10 at least, and one packet more fits.

    >>> [queue_pkts(JOURNAL, policy, 300, "published") for policy in ("DT_H", "DT_S", "PF")]
    [344, 11, 11]
    >>> [queue_pkts(JOURNAL, policy, 300, "corrected") for policy in ("DT_H", "DT_S", "PF")]
    [344, 2, 2]
    """
    everything = BUFFER_BITS / math.sqrt(users) / (8 * paper.coded_bytes)
    if mode == "corrected":
        return math.ceil(everything if policy == "DT_H" else everything / users)
    return 1 + (int(everything) if policy == "DT_H" else max(LEAST_QUEUE_PKTS, int(everything / users)))


def _scheduler(policy: str, mode: str, packet_bytes: int) -> tuple[Scenario, Scenario]:
    """The scheduler's table, and what it adds to every class."""
    if policy == "FQ-CoDel":
        return {**RIVALS[policy], "quantum": f"{packet_bytes}B", "mtu": f"{packet_bytes}B"}, {}
    if policy in RIVALS:
        return RIVALS[policy], {}
    if policy in ("DT_S", "DT_H", "RR"):
        return {"policy": "rr" if policy == "RR" else "fifo"}, {}
    timeout = {"timeout": policy.removeprefix("CoDeS ").replace(" ", "")} if policy.startswith("CoDeS") else {}
    if mode == "corrected":
        return {"policy": "codes" if timeout else "pf"}, timeout
    return {"policy": "tauran_codes" if timeout else "tauran_pf", **timeout}, {}


QUIRKS = {
    "published": {"repeats_see": "first_user", "first_attempt": "coded_and_plain"},
    "corrected": {"users": "flows"},
}
"""Keys of the satellite by mode."""


def voice_starts_ms(users: int, mode: str) -> list[int]:
    """The start of each user."""
    return [500 + 100 * user if mode == "published" else 1000 * user // users for user in range(users)]


def scenario(
    paper: Paper,
    policy: str,
    users: int,
    seed: int,
    duration_s: float,
    mode: str = "published",
    packet_bytes: int = PACKET_BYTES,
    csi_age: str = FLIGHT,
) -> Scenario:
    """One run; `packet_bytes` is the length of the packets in the queues."""
    shared = policy in ("DT_S", "DT_H")
    scheduler, of_class = _scheduler(policy, mode, packet_bytes)
    limit = f"{queue_pkts(paper, policy, users, mode)}p"
    names = ["all"] if shared else [f"user{user}" for user in range(users)]
    starts_ms = voice_starts_ms(users, mode)
    return {
        "name": f"{paper.name} {policy} {users} users, channel {seed}, {mode}",
        "duration": f"{duration_s:g}s",
        "interval": f"{duration_s:g}s",
        "seed": seed,
        "link": {
            "rate": f"{LINK_BPS:.0f}bit",
            "delay": "7.6ms",
            "satellite": {
                "packet": f"{paper.coded_bytes}B",
                "esn0_db": 10,
                "user_offset": "51s",
                "ground_delay": "1ms",
                **QUIRKS[mode],
                **({"csi_age": csi_age} if csi_age != FLIGHT and policy not in UNAWARE else {}),
            },
        },
        "scheduler": scheduler,
        "class": [{"name": name, "limit": limit, **of_class} for name in names],
        "flow": [
            {
                "name": f"voice{user}",
                "class": names[0] if shared else names[user],
                "kind": "onoff",
                "rate": "64kbit",
                "packet": f"{packet_bytes}B",
                "on": "500ms",
                "off": "50ms",
                "lengths": "pareto",
                "shape": 1.5,
                "access_delay": "100ms",
                "start": f"{starts_ms[user]}ms",
            }
            for user in range(users)
        ],
    }


def least_duration_s(figures: Iterable[Figure]) -> int:
    """Whole seconds by which all users of these figures have started, the last one for a while."""
    return 1 + max(int(case.labels["last_start_ms"]) // 1000 for figure in figures for case in figure.cases)


# --- From results to rows -------------------------------------------------------------------------------------------


DECODED = ("decoded_first_pkts", "decoded_second_pkts", "decoded_third_pkts", "decoded_fourth_pkts")


def attempts_pkts(tables: Tables) -> list[int]:
    """Packets decoded after one to four attempts, and given up."""
    attempts = tables.rows("harq")
    return [sum(row[name] for row in attempts) for name in (*DECODED, "given_up_pkts")]


def coded_bits(tables: Tables) -> int:
    """Bits that the code added, over all attempts."""
    return sum(row["coded_bits"] for row in tables.rows("harq"))


def link_measured(tables: Tables, duration_s: float, packet_bytes: int, *, of_decoded: bool) -> dict[str, float]:
    """The columns of voice and TCP, parts in per cent; losses are parts of the packets that arrived at the queues."""
    *decoded, given_up = attempts_pkts(tables)
    everything = sum(decoded) + given_up
    flows = tables.rows("flows")
    delivered = [row for row in flows if row["delivered_pkts"]]
    packets = sum(row["delivered_pkts"] for row in delivered)
    arrived = sum(row["arrived_pkts"] for row in flows)
    full = sum(row["dropped_limit_pkts"] for row in flows)
    late = sum(row["dropped_policy_pkts"] for row in flows)

    def jitter_ms(column: str) -> float:
        return 1e3 * statistics.fmean(row[column] for row in delivered if row[column] is not None)

    split = [100 * count / (sum(decoded) if of_decoded else everything) for count in decoded]
    return {
        **dict(zip(SPLIT, [*split, 100 * given_up / everything], strict=True)),
        "loss": 100 * (full + late + given_up) / arrived,
        "loss_full": 100 * full / arrived,
        "loss_late": 100 * late / arrived,
        "throughput_mbps": sum(row["delivered_bytes"] for row in flows) * 8e-6 / duration_s,
        "latency_ms": 1e3 * sum(row["delay_mean_s"] * row["delivered_pkts"] for row in delivered) / packets,
        "jitter_ms": jitter_ms("jitter_mad_s"),
        "jitter_rfc3550_ms": jitter_ms("jitter_rfc3550_s"),
        "coded_mbps": coded_bits(tables) * 1e-6 / duration_s,
        "useful_mbps": sum(decoded) * packet_bytes * 8e-6 / duration_s,
    }


def measured(paper: Paper, tables: Tables, duration_s: float) -> dict[str, float]:
    """The results of a run of voice."""
    found = link_measured(tables, duration_s, PACKET_BYTES, of_decoded=paper.of_decoded)
    call = quality.e_model(
        quality.openbach_delay(found["latency_ms"] / 1e3, found["jitter_ms"] / 1e3),
        found["loss"] / 100,
        advantage=quality.SATELLITE_ADVANTAGE,
    )
    return {**found, "mos": call.mos}


def _runs(
    paper: Paper, duration_s: float, results: Sequence[tuple[FigureCase, Tables]]
) -> dict[tuple[str, int, str], dict[int, dict[str, float]]]:
    """The results of runs by policy, users and mode, and by channel."""
    groups: dict[tuple[str, int, str], dict[int, dict[str, float]]] = {}
    for case, tables in results:
        key = (case.labels["policy"], case.labels["users"], case.labels["mode"])
        groups.setdefault(key, {})[case.labels["seed"]] = measured(paper, tables, duration_s)
    return groups


def _row(key: tuple[str, int, str], runs: Mapping[int, Mapping[str, float]]) -> Row:
    policy, users, mode = key
    return {"policy": policy, "users": users, "mode": mode, "runs": len(runs), **means(list(runs.values()))}


def rows(paper: Paper, duration_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """One row for each policy and number of users: means over the channels, with their intervals."""
    return [_row(key, runs) for key, runs in _runs(paper, duration_s, results).items()]


RATIOS = ("latency_ms", "jitter_ms", "loss", "throughput_mbps", "coded_mbps")


def ratios(paper: Paper, duration_s: float, results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
    """The rows, each with the ratio of its policy's values to PF's over the same channel, a mean over the channels."""
    groups = _runs(paper, duration_s, results)
    made: list[Row] = []
    for key, runs in groups.items():
        row = _row(key, runs)
        of_pf = groups.get(("PF", *key[1:]), {})
        for name in RATIOS:
            found = [run[name] / of_pf[seed][name] for seed, run in runs.items() if of_pf.get(seed, {}).get(name)]
            row[f"{name}_ratio"] = statistics.fmean(found) if found else None
            row[f"{name}_ratio_ci95"] = half_width(found)
        made.append(row)
    return made


def _beside_the_paper(paper: Paper, made: list[Row]) -> Grid:
    lines = []
    for row in sorted(made, key=lambda row: row["users"]):
        known = paper.table.get(row["policy"]) if row["users"] == paper.printed_users else None
        cells = [with_spread(row, name, 2) for name in SPLIT]
        if known:
            cells = [beside(row, name, of, 2, 2) for name, of in zip(SPLIT, known, strict=True)]
        lines.append([str(row["users"]), row["policy"], str(row["runs"]), *cells, with_spread(row, "loss", 2)])
    titles = ["first", "second", "third", "fourth attempt", "given up"]
    return ["users", "policy", "channels", *(f"{title}, %" for title in titles), "loss, %"], lines


def beside(row: Row, name: str, printed: float, digits: int, printed_digits: int) -> str:
    """A mean with the paper's in brackets and, as published, the difference.

    >>> beside({"mode": "published", "loss": 1.604, "loss_ci95": 0.25}, "loss", 1.5, 2, 1)
    '1.60 ± 0.25 (1.5; +0.10)'
    """
    gap = f"; {round(row[name], digits) - printed:+.{digits}f}" if row["mode"] == "published" else ""
    return f"{with_spread(row, name, digits)} ({printed:.{printed_digits}f}{gap})"


# --- Figures --------------------------------------------------------------------------------------------------------


@cache
def _case(paper: Paper, policy: str, users: int, seed: int, duration_s: float, mode: str, csi_age: str) -> FigureCase:
    """A case; cached, as many figures share it."""
    labels = {
        "policy": policy,
        "users": users,
        "mode": mode,
        "seed": seed,
        "last_start_ms": voice_starts_ms(users, mode)[-1],
    }
    return FigureCase(labels, scenario(paper, policy, users, seed, duration_s, mode, csi_age=csi_age))


def _cases(
    paper: Paper,
    policies: Iterable[str],
    users: Sequence[int],
    options: CodesOptions,
    fewer: Sequence[int] = (),
    seeds: Sequence[int] | None = None,
) -> tuple[FigureCase, ...]:
    """The runs for all combinations over `seeds`: unless given the usual ones, fewer at the numbers `fewer`."""
    return tuple(
        _case(paper, policy, count, seed, options.voice_s, options.mode, options.csi_age)
        for policy in policies
        for count in users
        for seed in seeds or (options.fewer_seeds if count in fewer else options.seeds)
    )


def printed_of(paper: str, number: str, options: CodesOptions) -> Printed | None:
    """What the paper prints; it is compared with the default age only."""
    return codes_printed.of(paper, number, options.mode) if options.csi_age == FLIGHT else None


def _own(paper: Paper, policies: Sequence[str], options: CodesOptions) -> tuple[FigureCase, ...]:
    """Runs of the paper's policies."""
    users = paper.quick_users if options.quick else paper.users
    return _cases(paper, policies, users[options.mode], options, paper.far_users[options.mode])


def _rivals(paper: Paper, options: CodesOptions, among: Sequence[int] | None = None) -> tuple[FigureCase, ...]:
    """Runs of the policies beyond the paper's own, where there are some `among` these numbers of users.

    As published they get older knowledge than PF in any case, so there they are run at the default age only.
    """
    if options.csi_age != FLIGHT and options.mode == "published":
        return ()
    table_users = paper.table_users[options.mode]
    users = (paper.quick_users if options.quick else paper.rival_users)[options.mode]
    chosen = [count for count in users if among is None or count in among]
    fewer = users if options.quick else [count for count in users if count not in table_users]
    return _cases(paper, tuple(RIVALS), chosen, options, fewer)


def table_2(paper: Paper, options: CodesOptions) -> Figure:
    """Packets by the number of their attempts."""
    which = "Table 2" if paper is JOURNAL else "Table II"
    users = paper.table_users[options.mode]
    return Figure(
        f"{paper.name}-2{options.suffix}",
        f"{which} of the {paper.name} paper{options.title}: packets by attempts, "
        f"{' and '.join(str(count) for count in users)} users (the paper in brackets)",
        "PF decodes more packets at the first attempt than RR; one queue for all has one channel for all.",
        (
            *_cases(paper, paper.table, users, options, seeds=options.table_seeds),
            *_cases(paper, (CODES,), users, options),
            *_rivals(paper, options, users),
        ),
        partial(rows, paper, options.voice_s),
        (),
        ("policy", "users", *SPLIT, "loss"),
        titled=True,
        summary=partial(_beside_the_paper, paper),
        printed=printed_of(paper.name, "2", options),
    )


CODES = "CoDeS 100 ms"


def figure_ratios(paper: Paper, number: str, options: CodesOptions) -> Figure:
    """CoDeS as parts of PF."""
    return Figure(
        f"{paper.name}-{number}{options.suffix}",
        f"Figure {number} of the {paper.name} paper{options.title}: CoDeS with 100 ms, as parts of PF",
        "Latency and jitter fall, nothing else changes.",
        _own(paper, ("PF", CODES), options),
        partial(ratios, paper, options.voice_s),
        tuple(
            Panel(
                f"{name.split('_')[0].capitalize()}, CoDeS / PF",
                "users",
                f"{name}_ratio",
                "users",
                "ratio",
                ("policy",),
                where={"policy": CODES},
                lines=True,
            )
            for name in RATIOS
        ),
        ("policy", "users", *(f"{name}_ratio{end}" for name in RATIOS for end in ("", "_ci95"))),
        titled=True,
        summary=_ratio_grid,
        printed=printed_of(paper.name, number, options),
    )


def _ratio_grid(made: list[Row]) -> Grid:
    lines = [
        [str(row["users"]), *(with_spread(row, f"{name}_ratio", 3) for name in RATIOS)]
        for row in made
        if row["policy"] == CODES
    ]
    return ["users", *(name.split("_")[0] for name in RATIOS)], lines


def figure_causes(paper: Paper, number: str, options: CodesOptions) -> Figure:
    """Why packets are dropped."""
    return Figure(
        f"{paper.name}-{number}{options.suffix}",
        f"Figure {number} of the {paper.name} paper{options.title}: causes of drops under PF and CoDeS with 100 ms",
        "Under CoDeS most drops are late packets, which free room for those that PF finds no room for.",
        _own(paper, ("PF", CODES), options),
        partial(rows, paper, options.voice_s),
        tuple(
            Panel(title, "users", y, "users", "part of the arrivals (%)", ("policy",), lines=True)
            for title, y in (("No room", "loss_full"), ("Too late", "loss_late"))
        ),
        ("policy", "users", "loss_full", "loss_late"),
        titled=True,
        printed=printed_of(paper.name, number, options),
    )


@dataclass(frozen=True)
class Plot:
    """Curves over the number of users: what is plotted, of which policies, and the columns that distinguish curves."""

    title: str
    claim: str
    y: str
    y_label: str
    policies: tuple[str, ...]
    digits: int
    """Digits after the decimal point in tables."""
    by: tuple[str, ...] = ("policy",)


def by_users(plot: Plot, made: list[Row]) -> Grid:
    """A line for each number of users, a column for each curve."""
    shown = [row for row in made if row[plot.y] is not None]
    curves = list(dict.fromkeys(tuple(row[name] for name in plot.by) for row in shown))
    lines = []
    for users in sorted({row["users"] for row in shown}):
        of = {tuple(row[name] for name in plot.by): row for row in shown if row["users"] == users}
        lines.append([str(users), *(with_spread(of[c], plot.y, plot.digits) if c in of else "" for c in curves)])
    return ["users", *(", ".join(curve) for curve in curves)], lines


def by_load(made: list[Row]) -> Grid:
    """Coded bits, useful bits and their ratio."""
    lines = [
        [
            str(row["users"]),
            row["policy"],
            with_spread(row, "coded_mbps", 2),
            with_spread(row, "useful_mbps", 2),
            f"{row['coded_mbps'] / row['useful_mbps']:.3f}",
        ]
        for row in sorted(made, key=lambda row: row["users"])
    ]
    return ["users", "policy", "coded, Mbit/s", "useful, Mbit/s", "coded / useful"], lines


FOUR = ("DT_S", "DT_H", "RR", "PF")
TIMEOUTS = ("PF", "CoDeS 50 ms", "CoDeS 100 ms", "CoDeS 200 ms")
_PLOTS = {
    "throughput": Plot(
        "Throughput of all users", "PF carries most.", "throughput_mbps", "throughput (Mbit/s)", FOUR, 2
    ),
    "first": Plot("Packets decoded at the first attempt", "PF more than RR.", "tx0", "decoded at once (%)", FOUR, 2),
    "losses": Plot("Packets lost", "PF loses least.", "loss", "loss (%)", FOUR, 2),
    "efficiency": Plot(
        "Coded bits on the link", "PF needs fewest for the same load.", "coded_mbps", "coded bits (Mbit/s)", FOUR, 2
    ),
    "latency": Plot("Latency", "RR and DT_H wait longest at saturation.", "latency_ms", "latency (ms)", FOUR, 1),
    "jitter": Plot("Jitter", "PF has far more than the others.", "jitter_ms", "jitter (ms)", FOUR, 2),
    "mos": Plot(
        "Mean opinion score", "PF stays above 3 up to saturation, DT_S does not.", "mos", "MOS", ("DT_S", "PF"), 2
    ),
    "codes-jitter": Plot(
        "Jitter with a timeout", "The shorter the timeout, the less.", "jitter_ms", "jitter (ms)", TIMEOUTS, 2
    ),
    "codes-latency": Plot(
        "Latency with a timeout", "The shorter the timeout, the less.", "latency_ms", "latency (ms)", TIMEOUTS, 1
    ),
    "codes-losses": Plot(
        "Losses with a timeout", "Hardly more than PF, somewhat more at 50 ms.", "loss", "loss (%)", TIMEOUTS, 2
    ),
    "codes-mos": Plot(
        "Mean opinion score with a timeout",
        "CoDeS above PF above DT_S.",
        "mos",
        "MOS",
        ("DT_S", "PF", "CoDeS 100 ms"),
        2,
    ),
}
_NUMBERS = {
    "journal": {
        "4": "throughput",
        "5": "first",
        "6": "losses",
        "7": "efficiency",
        "8": "latency",
        "9": "jitter",
        "10": "mos",
        "12": "codes-jitter",
        "13": "codes-losses",
        "14": "codes-mos",
    },
    "conference": {
        "3": "throughput",
        "4": "first",
        "5": "losses",
        "6": "efficiency",
        "7": "latency",
        "8": "jitter",
        "10": "mos",
        "12": "codes-jitter",
        "13": "codes-losses",
        "14": "codes-mos",
    },
}


def _figure(paper: Paper, number: str, plot: Plot, options: CodesOptions) -> Figure:
    x, x_label = ("useful_mbps", "useful bits (Mbit/s)") if plot.y == "coded_mbps" else ("users", "users")
    further = {"coded_mbps": ("useful_mbps",), "jitter_ms": ("jitter_rfc3550_ms",)}.get(plot.y, ())
    return Figure(
        f"{paper.name}-{number}{options.suffix}",
        f"{'Beyond the figures' if number == 'timeouts' else f'Figure {number}'} of the {paper.name} paper"
        f"{options.title}: {plot.title.lower()}",
        plot.claim,
        (*_own(paper, plot.policies, options), *_rivals(paper, options)),
        partial(rows, paper, options.voice_s),
        (Panel(plot.title, x, plot.y, x_label, plot.y_label, ("policy",), lines=True),),
        ("policy", "users", *(f"{name}{end}" for name in (plot.y, *further) for end in ("", "_ci95"))),
        titled=True,
        summary=by_load if plot.y == "coded_mbps" else partial(by_users, plot),
        printed=printed_of(paper.name, number, options),
    )


PAPERS = {"journal": JOURNAL, "conference": CONFERENCE}
_plots: dict[str, Callable[[CodesOptions], Figure]] = {
    f"{name}-{number}": partial(_figure, PAPERS[name], number, _PLOTS[what])
    for name, numbers in _NUMBERS.items()
    for number, what in numbers.items()
}
_tables: dict[str, Callable[[CodesOptions], Figure]] = {
    f"{name}-2": partial(table_2, paper) for name, paper in PAPERS.items()
}
_timeouts: dict[str, Callable[[CodesOptions], Figure]] = {
    f"{name}-timeouts": partial(_figure, paper, "timeouts", _PLOTS["codes-latency"]) for name, paper in PAPERS.items()
}
FIGURES: dict[str, Callable[[CodesOptions], Figure]] = {
    **_plots,
    "journal-11": partial(figure_ratios, JOURNAL, "11"),
    "conference-9": partial(figure_ratios, CONFERENCE, "9"),
    "conference-11": partial(figure_causes, CONFERENCE, "11"),
}
TABLES: dict[str, Callable[[CodesOptions], Figure]] = {**_tables, **_timeouts}
