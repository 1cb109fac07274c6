# SPDX-License-Identifier: BSD-3-Clause
"""Voice over a low-orbit constellation: Tauran et al. 2018 and its journal version, as published and as corrected.

Conference paper: Figures 3 to 14 and Table II; journal version: Figures 4 to 14 and Table 2. Every user talks at 64
kbit/s in bursts of 500 ms with silences of 50 ms, both Pareto (shape 1.5), through the last satellite's link of 50
Mbit/s. Packets of 210 bytes (in the conference paper filled up to 1115) are coded and repeated at Es/N0 10 dB over a
land-mobile channel at 40 degrees of elevation; user k looks 51 k seconds ahead into the same ten minutes.

What the papers leave out, their simulation did, and is kept in the published mode: repetitions see the channel of user
0; the first attempt carries the uncoded packet too; with one queue for all (DT_S, DT_H) there is one channel for all;
queues hold at least 10 packets and one more; users start 0.1 s apart; PF is linear in dB. Delays are constant here: 100
ms to the last satellite and 7.6 ms, the mean of the trace they used, from there.

The corrected mode has none of that: every packet meets its own user's channel at each attempt, whatever queue it
shares; only coded bits are sent; queues are those of the paper's rule, rounded up; users start within a second; PF and
CoDeS are those of the core, told every 10 ms what the channel gives each user, as old as reports take to the satellite.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from linkweir import quality
from linkweir.reproduce.figure import Case, Figure, Grid, Panel, Row, Scenario, Tables

DURATION_S = 100.0
LINK_BPS = 50e6
PACKET_BYTES = 210
BUFFER_BITS = 0.2 * LINK_BPS
"""Round trip times capacity, from which queues follow."""
LEAST_QUEUE_PKTS = 10
SEEDS = 10
QUICK_SEEDS = 2
MODES = ("published", "corrected")
POLICIES = ("DT_S", "DT_H", "RR", "PF", "CoDeS 50 ms", "CoDeS 100 ms", "CoDeS 200 ms")
RIVALS: dict[str, Scenario] = {
    "FQ-CoDel": {"policy": "fq_codel"},
    "M-LWDF": {"policy": "mlwdf"},
    "EXP/PF": {"policy": "exp_pf"},
    "UBMT-like": {"policy": "ubmt_like"},
    "BBS-like": {"policy": "bbs_like"},
    "BPS-like": {"policy": "bps_like"},
}
"""Those the papers announce to compare with, and do not; the last three are reconstructions from abstracts."""
SPLIT = ("tx0", "tx1", "tx2", "tx3", "drop")
MEASURES = (
    *SPLIT,
    "loss",
    "loss_full",
    "loss_late",
    "throughput_mbps",
    "latency_ms",
    "jitter_ms",
    "mos",
    "coded_mbps",
    "useful_mbps",
)


@dataclass(frozen=True)
class Settings:
    """What the command line decides."""

    quick: bool = False
    duration_s: float | None = None
    seed: int = 1
    mode: str = "published"

    @property
    def suffix(self) -> str:
        """Ends the names of figures."""
        return "" if self.mode == "published" else f"-{self.mode}"

    @property
    def title(self) -> str:
        """Says so in titles."""
        return "" if self.mode == "published" else f", as {self.mode}"

    @property
    def seeds(self) -> range:
        """One channel and one realisation of the traffic each."""
        return range(self.seed, self.seed + (QUICK_SEEDS if self.quick else SEEDS))


@dataclass(frozen=True)
class Paper:
    """What differs between the two papers."""

    name: str
    coded_bytes: int
    """Length of the packets that are coded; the voice packets of 210 bytes are filled up to it."""
    users: dict[str, tuple[int, ...]]
    """Numbers of users by mode; without the uncoded bits the link holds more."""
    quick_users: tuple[int, ...]
    table_users: int
    rival_users: dict[str, tuple[int, ...]]
    """Those of the policies beyond the paper's own."""
    of_decoded: bool
    """Whether the splits are parts of the packets decoded, not of all that were sent."""
    table: dict[str, tuple[float, ...]]
    """Per cent decoded after one to four attempts, and given up."""


JOURNAL = Paper(
    "journal",
    210,
    {"published": (50, 100, 150, 200, 250, 300, 350, 400), "corrected": (100, 300, 350, 400, 450, 500)},
    (100, 300),
    300,
    {"published": (300,), "corrected": (300, 450)},
    False,
    {
        "DT_S": (58.83, 18.85, 14.88, 7.06, 0.38),
        "DT_H": (58.49, 18.93, 14.74, 6.98, 0.86),
        "RR": (50.96, 25.73, 19.07, 3.82, 0.42),
        "PF": (54.84, 26.75, 15.49, 2.63, 0.29),
    },
)
"""Table 2 prints a drop of 2.34 for RR; the other four leave 0.42."""
CONFERENCE = Paper(
    "conference",
    1115,
    {"published": (10, 25, 50, 75, 100, 125, 150), "corrected": (25, 50, 75, 100, 125)},
    (50, 75),
    75,
    {"published": (75,), "corrected": (75, 100)},
    True,
    {
        "DT_S": (50.11, 23.16, 14.65, 12.07, 1.21),
        "DT_H": (51.87, 22.93, 13.97, 11.23, 1.10),
        "RR": (42.36, 24.28, 24.71, 8.65, 0.61),
        "PF": (44.89, 26.26, 22.57, 6.27, 0.39),
    },
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


def _scheduler(policy: str, mode: str) -> tuple[Scenario, Scenario]:
    """The scheduler's table, and what it adds to every class."""
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


def scenario(paper: Paper, policy: str, users: int, seed: int, duration_s: float, mode: str = "published") -> Scenario:
    """One run."""
    shared = policy in ("DT_S", "DT_H")
    scheduler, of_class = _scheduler(policy, mode)
    limit = f"{queue_pkts(paper, policy, users, mode)}p"
    names = ["all"] if shared else [f"user{user}" for user in range(users)]
    starts_ms = [500 + 100 * user if mode == "published" else 1000 * user // users for user in range(users)]
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
                "packet": f"{PACKET_BYTES}B",
                "on": "500ms",
                "off": "50ms",
                "lengths": "pareto",
                "shape": 1.5,
                "access_delay": "100ms",
                "start": f"{starts_ms[user]}ms",
            }
            for user in range(users)
            if starts_ms[user] < 1000 * duration_s
        ],
    }


# --- From results to rows -------------------------------------------------------------------------------------------


def measured(paper: Paper, tables: Tables, duration_s: float) -> dict[str, float]:
    """What one run gave, per cent where it is a part."""
    attempts = tables.rows("harq")
    counts = [
        sum(row[f"{name}_pkts"] for row in attempts)
        for name in ("decoded_first", "decoded_second", "decoded_third", "decoded_fourth", "given_up")
    ]
    decoded, everything = sum(counts[:4]), sum(counts)
    flows = tables.rows("flows")
    delivered = [row for row in flows if row["delivered_pkts"]]
    packets = sum(row["delivered_pkts"] for row in delivered)
    arrived = sum(row["arrived_pkts"] for row in flows)
    full = sum(row["dropped_limit_pkts"] for row in flows)
    late = sum(row["dropped_policy_pkts"] for row in flows)
    loss = (full + late + counts[4]) / arrived
    latency_s = sum(row["delay_mean_s"] * row["delivered_pkts"] for row in delivered) / packets
    jitters_s = [row["jitter_mad_s"] for row in delivered if row["jitter_mad_s"] is not None]
    jitter_s = statistics.fmean(jitters_s)
    heard = quality.e_model(latency_s, loss, jitter_s=jitter_s, advantage=quality.SATELLITE_ADVANTAGE)
    split = [100 * count / (decoded if paper.of_decoded else everything) for count in counts[:4]]
    return {
        **dict(zip(SPLIT, [*split, 100 * counts[4] / everything], strict=True)),
        "loss": 100 * loss,
        "loss_full": 100 * full / arrived,
        "loss_late": 100 * late / arrived,
        "throughput_mbps": sum(row["delivered_bytes"] for row in flows) * 8e-6 / duration_s,
        "latency_ms": 1e3 * latency_s,
        "jitter_ms": 1e3 * jitter_s,
        "mos": heard.mos,
        "coded_mbps": sum(row["coded_bits"] for row in attempts) * 1e-6 / duration_s,
        "useful_mbps": decoded * PACKET_BYTES * 8e-6 / duration_s,
    }


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's distribution for 1, 2, ... degrees of freedom."""


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean, or None from one value.

    >>> round(half_width([1.0, 2.0, 3.0]), 2)
    2.48
    """
    if len(values) < 2:
        return None
    quantile = STUDENT[len(values) - 2] if len(values) - 2 < len(STUDENT) else 1.96
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def rows(paper: Paper, duration_s: float, results: Sequence[tuple[Case, Tables]]) -> list[Row]:
    """One row for each policy and number of users: means over the channels, with their intervals."""
    groups: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    for case, tables in results:
        key = (case.labels["policy"], case.labels["users"], case.labels["mode"])
        groups.setdefault(key, []).append(measured(paper, tables, duration_s))
    made: list[Row] = []
    for (policy, users, mode), runs in groups.items():
        row: Row = {"policy": policy, "users": users, "mode": mode, "runs": len(runs)}
        for name in MEASURES:
            values = [run[name] for run in runs]
            row[name] = statistics.fmean(values)
            row[f"{name}_ci95"] = half_width(values)
        made.append(row)
    return made


RATIOS = ("latency_ms", "jitter_ms", "loss", "throughput_mbps", "coded_mbps")


def ratios(paper: Paper, duration_s: float, results: Sequence[tuple[Case, Tables]]) -> list[Row]:
    """The rows, each with what its policy has of PF's value."""
    made = rows(paper, duration_s, results)
    pf = {row["users"]: row for row in made if row["policy"] == "PF"}
    for row in made:
        beside = pf.get(row["users"])
        for name in RATIOS:
            row[f"{name}_ratio"] = row[name] / beside[name] if beside and beside[name] else None
    return made


def _beside_the_paper(paper: Paper, made: list[Row]) -> Grid:
    lines = []
    for row in made:
        if row["users"] != paper.table_users:
            continue
        known = paper.table.get(row["policy"])
        cells = [row["policy"]]
        for number, name in enumerate(SPLIT):
            spread = row[f"{name}_ci95"]
            ours = f"{row[name]:.2f}" + (f" ± {spread:.2f}" if spread is not None else "")
            cells.append(f"{ours} ({known[number]:.2f})" if known else ours)
        lines.append([*cells, f"{row['loss']:.2f}"])
    titles = ["first", "second", "third", "fourth attempt", "given up"]
    return ["policy", *(f"{title}, %" for title in titles), "loss, %"], lines


# --- Figures --------------------------------------------------------------------------------------------------------


def _cases(paper: Paper, policies: Sequence[str], users: Sequence[int], settings: Settings) -> tuple[Case, ...]:
    duration_s = settings.duration_s or DURATION_S
    return tuple(
        Case(
            {"policy": policy, "users": count, "mode": settings.mode},
            scenario(paper, policy, count, seed, duration_s, settings.mode),
        )
        for policy in policies
        for count in users
        for seed in settings.seeds
    )


def _users(paper: Paper, settings: Settings) -> tuple[int, ...]:
    return paper.quick_users if settings.quick else paper.users[settings.mode]


def _rivals(paper: Paper, settings: Settings) -> tuple[Case, ...]:
    """Runs of the policies beyond the paper's own."""
    users = (paper.table_users,) if settings.quick else paper.rival_users[settings.mode]
    return _cases(paper, tuple(RIVALS), users, settings)


def table_2(paper: Paper, settings: Settings) -> Figure:
    """How many attempts packets take."""
    which = "Table 2" if paper is JOURNAL else "Table II"
    return Figure(
        f"{paper.name}-2{settings.suffix}",
        f"{which} of the {paper.name} paper{settings.title}: packets by attempts, {paper.table_users} users "
        "(the paper in brackets)",
        "PF decodes more packets at the first attempt than RR; one queue for all has one channel for all.",
        (*_cases(paper, (*paper.table, CODES), (paper.table_users,), settings), *_rivals(paper, settings)),
        partial(rows, paper, settings.duration_s or DURATION_S),
        (),
        ("policy", "users", *SPLIT, "loss"),
        summary=partial(_beside_the_paper, paper),
    )


CODES = "CoDeS 100 ms"


def figure_ratios(paper: Paper, number: str, settings: Settings) -> Figure:
    """CoDeS as parts of PF."""
    return Figure(
        f"{paper.name}-{number}{settings.suffix}",
        f"Figure {number} of the {paper.name} paper{settings.title}: CoDeS with 100 ms, as parts of PF",
        "Latency and jitter fall, nothing else changes.",
        _cases(paper, ("PF", CODES), _users(paper, settings), settings),
        partial(ratios, paper, settings.duration_s or DURATION_S),
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
        ("policy", "users", *(f"{name}_ratio" for name in RATIOS)),
        summary=_ratio_grid,
    )


def _ratio_grid(made: list[Row]) -> Grid:
    lines = [
        [str(row["users"]), *("-" if (r := row[f"{name}_ratio"]) is None else f"{r:.3f}" for name in RATIOS)]
        for row in made
        if row["policy"] == CODES
    ]
    return ["users", *(name.split("_")[0] for name in RATIOS)], lines


def figure_causes(paper: Paper, number: str, settings: Settings) -> Figure:
    """Why packets are dropped."""
    return Figure(
        f"{paper.name}-{number}{settings.suffix}",
        f"Figure {number} of the {paper.name} paper{settings.title}: causes of drops under PF and CoDeS with 100 ms",
        "Under CoDeS most drops are late packets, which free room for those that PF finds no room for.",
        _cases(paper, ("PF", CODES), _users(paper, settings), settings),
        partial(rows, paper, settings.duration_s or DURATION_S),
        tuple(
            Panel(title, "users", y, "users", "part of the arrivals (%)", ("policy",), lines=True)
            for title, y in (("No room", "loss_full"), ("Too late", "loss_late"))
        ),
        ("policy", "users", "loss_full", "loss_late"),
    )


@dataclass(frozen=True)
class _Plot:
    title: str
    claim: str
    y: str
    y_label: str
    policies: tuple[str, ...]


FOUR = ("DT_S", "DT_H", "RR", "PF")
TIMEOUTS = ("PF", "CoDeS 50 ms", "CoDeS 100 ms", "CoDeS 200 ms")
_PLOTS = {
    "throughput": _Plot("Throughput of all users", "PF carries most.", "throughput_mbps", "throughput (Mbit/s)", FOUR),
    "first": _Plot("Packets decoded at the first attempt", "PF more than RR.", "tx0", "decoded at once (%)", FOUR),
    "losses": _Plot("Packets lost", "PF loses least.", "loss", "loss (%)", FOUR),
    "efficiency": _Plot(
        "Coded bits on the link", "PF needs fewest for the same load.", "coded_mbps", "coded bits (Mbit/s)", FOUR
    ),
    "latency": _Plot("Latency", "RR and DT_H wait longest at saturation.", "latency_ms", "latency (ms)", FOUR),
    "jitter": _Plot("Jitter", "PF has far more than the others.", "jitter_ms", "jitter (ms)", FOUR),
    "mos": _Plot(
        "Mean opinion score", "PF stays above 3 up to saturation, DT_S does not.", "mos", "MOS", ("DT_S", "PF")
    ),
    "codes-jitter": _Plot(
        "Jitter with a timeout", "The shorter the timeout, the less.", "jitter_ms", "jitter (ms)", TIMEOUTS
    ),
    "codes-latency": _Plot(
        "Latency with a timeout", "The shorter the timeout, the less.", "latency_ms", "latency (ms)", TIMEOUTS
    ),
    "codes-losses": _Plot(
        "Losses with a timeout", "Hardly more than PF, somewhat more at 50 ms.", "loss", "loss (%)", TIMEOUTS
    ),
    "codes-mos": _Plot(
        "Mean opinion score with a timeout", "CoDeS above PF above DT_S.", "mos", "MOS", ("DT_S", "PF", "CoDeS 100 ms")
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


def _figure(paper: Paper, number: str, plot: _Plot, settings: Settings) -> Figure:
    x, x_label = ("useful_mbps", "useful bits (Mbit/s)") if plot.y == "coded_mbps" else ("users", "users")
    return Figure(
        f"{paper.name}-{number}{settings.suffix}",
        f"{'Beyond the figures' if number == 'timeouts' else f'Figure {number}'} of the {paper.name} paper"
        f"{settings.title}: {plot.title.lower()}",
        plot.claim,
        (*_cases(paper, plot.policies, _users(paper, settings), settings), *_rivals(paper, settings)),
        partial(rows, paper, settings.duration_s or DURATION_S),
        (Panel(plot.title, x, plot.y, x_label, plot.y_label, ("policy",), lines=True),),
        ("policy", "users", plot.y, f"{plot.y}_ci95"),
        summary=partial(_by_users, plot.y),
    )


def _by_users(y: str, made: list[Row]) -> Grid:
    """A line for each number of users, a column for each policy."""
    policies = list(dict.fromkeys(row["policy"] for row in made))
    lines = []
    for users in sorted({row["users"] for row in made}):
        of = {row["policy"]: row for row in made if row["users"] == users}
        cells = [f"{of[policy][y]:.4g}" if policy in of else "" for policy in policies]
        lines.append([str(users), *cells])
    return ["users", *policies], lines


PAPERS = {"journal": JOURNAL, "conference": CONFERENCE}
_plots: dict[str, Callable[[Settings], Figure]] = {
    f"{name}-{number}": partial(_figure, PAPERS[name], number, _PLOTS[what])
    for name, numbers in _NUMBERS.items()
    for number, what in numbers.items()
}
_tables: dict[str, Callable[[Settings], Figure]] = {
    f"{name}-2": partial(table_2, paper) for name, paper in PAPERS.items()
}
_timeouts: dict[str, Callable[[Settings], Figure]] = {
    f"{name}-timeouts": partial(_figure, paper, "timeouts", _PLOTS["codes-latency"]) for name, paper in PAPERS.items()
}
FIGURES: dict[str, Callable[[Settings], Figure]] = {
    **_plots,
    "journal-11": partial(figure_ratios, JOURNAL, "11"),
    "conference-9": partial(figure_ratios, CONFERENCE, "9"),
    "conference-11": partial(figure_causes, CONFERENCE, "11"),
}
TABLES: dict[str, Callable[[Settings], Figure]] = {**_tables, **_timeouts}
