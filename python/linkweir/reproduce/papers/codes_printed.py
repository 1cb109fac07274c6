# SPDX-License-Identifier: BSD-3-Clause
"""What the texts of Tauran et al. 2018 and of its journal version print of their figures and tables.

Points of the curves of Figures 4, 5, 17, 20, 23 and 26 to 28 follow from the tables: those at the number of users that
a table is about. Totals are a printed mean times the users. These numbers count once, as those of their table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from linkweir.reproduce.figure import Row
from linkweir.reproduce.printed import Number, Printed

# --- Tables ---------------------------------------------------------------------------------------------------------

JOURNAL_2: dict[str, tuple[float, ...]] = {
    "DT_S": (58.83, 18.85, 14.88, 7.06, 0.38),
    "DT_H": (58.49, 18.93, 14.74, 6.98, 0.86),
    "RR": (50.96, 25.73, 19.07, 3.82, 0.42),
    "PF": (54.84, 26.75, 15.49, 2.63, 0.29),
}
"""Per cent decoded after one to four attempts and given up, 300 users. It prints a drop of 2.34 for RR; the other four
leave 0.42."""
CONFERENCE_2: dict[str, tuple[float, ...]] = {
    "DT_S": (50.11, 23.16, 14.65, 12.07, 1.21),
    "DT_H": (51.87, 22.93, 13.97, 11.23, 1.10),
    "RR": (42.36, 24.28, 24.71, 8.65, 0.61),
    "PF": (44.89, 26.26, 22.57, 6.27, 0.39),
}
"""The same of Table II, 75 users."""
JOURNAL_3 = {
    10: {"PF": (0.44, 0.58, 0.54, 0.035), "DT_S": (0.43, 0.51, 0.45, 0.014), "RR": (0.46, 0.61, 0.55, 0.033)},
    20: {"PF": (0.45, 0.60, 0.55, 0.028), "DT_S": (0.41, 0.47, 0.44, 0.012), "RR": (0.56, 0.72, 0.68, 0.027)},
    40: {"PF": (0.38, 0.45, 0.42, 0.016), "DT_S": (0.24, 0.32, 0.28, 0.016), "RR": (0.37, 0.41, 0.38, 0.004)},
    60: {"PF": (0.27, 0.35, 0.31, 0.017), "DT_S": (0.15, 0.21, 0.19, 0.014), "RR": (0.25, 0.27, 0.26, 0.003)},
    80: {"PF": (0.21, 0.27, 0.24, 0.015), "DT_S": (0.10, 0.17, 0.14, 0.014), "RR": (0.19, 0.21, 0.19, 0.004)},
    100: {"PF": (0.16, 0.23, 0.19, 0.017), "DT_S": (0.07, 0.14, 0.11, 0.012), "RR": (0.15, 0.17, 0.16, 0.004)},
}
"""Goodput without reordering, Mbit/s: least, most, mean and standard deviation over the users."""
JOURNAL_4 = {
    10: {"PF": (0.85, 1.62, 1.35, 0.143), "DT_S": (0.60, 0.84, 0.73, 0.056), "RR": (0.77, 1.45, 1.20, 0.162)},
    20: {"PF": (0.75, 1.01, 0.91, 0.054), "DT_S": (0.25, 0.53, 0.46, 0.041), "RR": (0.61, 0.78, 0.74, 0.032)},
    40: {"PF": (0.41, 0.54, 0.47, 0.026), "DT_S": (0.18, 0.28, 0.24, 0.020), "RR": (0.36, 0.40, 0.38, 0.004)},
    60: {"PF": (0.27, 0.35, 0.31, 0.020), "DT_S": (0.07, 0.20, 0.15, 0.020), "RR": (0.25, 0.27, 0.26, 0.005)},
    80: {"PF": (0.20, 0.28, 0.24, 0.018), "DT_S": (0.12, 0.16, 0.11, 0.020), "RR": (0.19, 0.21, 0.19, 0.004)},
    100: {"PF": (0.16, 0.22, 0.19, 0.013), "DT_S": (0.03, 0.12, 0.08, 0.015), "RR": (0.15, 0.17, 0.16, 0.004)},
}
"""The same with reordering. The mean of DT_S at 80 users is below its least; one of them is a misprint."""
SPLIT = {"tx0": "first attempt", "tx1": "second", "tx2": "third", "tx3": "fourth", "drop": "given up"}
SPREAD = {
    "goodput_mbps_min": ("least", 2),
    "goodput_mbps_max": ("most", 2),
    "goodput_mbps_mean": ("mean", 2),
    "goodput_mbps_sd": ("standard deviation", 3),
}
"""Columns of Tables 3 and 4, each with its name and the digits that are printed."""


def rows_ahead(table: Mapping[int, Mapping[str, Sequence[float]]], policy: str) -> int:
    """Numbers of users at which PF's worst user has more than the best under another policy (section 6.3.3).

    >>> [(rows_ahead(table, "RR"), rows_ahead(table, "DT_S")) for table in (JOURNAL_3, JOURNAL_4)]
    [(0, 4), (1, 6)]
    """
    return sum(row["PF"][0] > row[policy][1] for row in table.values())


MISPRINTS = {
    ("Table 2", "RR", "drop"): "printed as 2.34, for which the other four leave no room",
    ("Table 4", "DT_S", "goodput_mbps_mean", 80): "below the printed least, so one of the two is a misprint",
    ("Table 4", "DT_S", "goodput_mbps_min", 80): "above the printed mean, so one of the two is a misprint",
}


def _split(table: Mapping[str, Sequence[float]], users: int, source: str) -> tuple[Number, ...]:
    return tuple(
        Number(
            f"{policy}, {name}",
            f"{value:.2f}",
            "%",
            source,
            column,
            {"policy": policy, "users": users},
            remark=MISPRINTS.get((source, policy, column), ""),
        )
        for policy, values in table.items()
        for (column, name), value in zip(SPLIT.items(), values, strict=True)
    )


def _spread(table: Mapping[int, Mapping[str, Sequence[float]]], reordering: str, source: str) -> tuple[Number, ...]:
    return tuple(
        Number(
            f"{policy}, {users} users, {name}",
            f"{value:.{digits}f}",
            "Mbit/s",
            source,
            column,
            {"policy": policy, "users": users, "reordering": reordering},
            shown=".3f",
            remark=MISPRINTS.get((source, policy, column, users), ""),
        )
        for users, row in table.items()
        for policy, values in row.items()
        for (column, (name, digits)), value in zip(SPREAD.items(), values, strict=True)
    )


CONFERENCE_SPLIT = _split(CONFERENCE_2, 75, "Table II")
JOURNAL_SPLIT = _split(JOURNAL_2, 300, "Table 2")
UNORDERED = _spread(JOURNAL_3, "none", "Table 3")
ORDERED = _spread(JOURNAL_4, "shared", "Table 4")


def _again(numbers: Iterable[Number], column: str, **where: object) -> tuple[Number, ...]:
    """Numbers of a table that are points of a figure, too."""
    return tuple(
        replace(number, again=True)
        for number in numbers
        if number.column == column and all(number.where.get(key) == wanted for key, wanted in where.items())
    )


def _firsts(numbers: Iterable[Number]) -> tuple[Number, ...]:
    return tuple(
        replace(number, what=f"{number.where['policy']}, {number.where['users']} users")
        for number in _again(numbers, "tx0")
    )


def _totals(numbers: Iterable[Number]) -> tuple[Number, ...]:
    return tuple(
        replace(
            number,
            what=f"{number.where['policy']}, {number.where['users']} users, mean times users",
            printed=f"{number.value * number.where['users']:.1f}",
            column="total_mbps",
            shown=".2f",
        )
        for number in _again(numbers, "goodput_mbps_mean")
    )


def _ends(numbers: Iterable[Number], users: int) -> tuple[Number, ...]:
    """The ends of a distribution over the users."""
    ends = {"goodput_mbps_min": 1 / users, "goodput_mbps_max": 1.0}
    return tuple(
        replace(number, column="goodput_mbps", where={**number.where, "cdf": part})
        for column, part in ends.items()
        for number in _again(numbers, column, users=users)
    )


# --- Values of ours that no single row has --------------------------------------------------------------------------

FULL = 0.02
"""Curves that differ by less than this part are taken as one."""


def _curve(rows: Sequence[Row], column: str, **where: object) -> dict[int, float]:
    """A column by users."""
    return {
        row["users"]: row[column]
        for row in rows
        if row.get(column) is not None and all(row.get(key) == wanted for key, wanted in where.items())
    }


def saturation(rows: Sequence[Row]) -> float | None:
    """The least number of users among which RR carries all that it ever does."""
    carried = _curve(rows, "throughput_mbps", policy="RR")
    return min((n for n, value in carried.items() if value >= (1 - FULL) * max(carried.values())), default=None)


def _most(ratio_of: Callable[[Sequence[Row]], Iterable[float]]) -> Callable[[Sequence[Row]], float | None]:
    return lambda rows: max(ratio_of(rows), default=None)


def _ratios(rows: Sequence[Row], column: str, above: str, below: str) -> list[float]:
    """A policy's values over those of another, at the same numbers of users."""
    over, under = _curve(rows, column, policy=above), _curve(rows, column, policy=below)
    return [over[n] / under[n] for n in over if under.get(n)]


def _flow_gaps(rows: Sequence[Row]) -> list[float]:
    """How far PF's worst user is below its best, per cent, for each number of users."""
    least = _curve(rows, "goodput_mbps_min", policy="PF", reordering="none")
    most = _curve(rows, "goodput_mbps_max", policy="PF", reordering="none")
    return [100 * (1 - least[n] / most[n]) for n in least if n in most]


def _rr_peak(rows: Sequence[Row]) -> float | None:
    gains = _curve(rows, "gain", policy="RR")
    return max(gains, key=lambda n: gains[n], default=None)


def _rr_ahead(rows: Sequence[Row]) -> float | None:
    rr, pf = _curve(rows, "gain", policy="RR"), _curve(rows, "gain", policy="PF")
    return max((n for n in rr if n in pf and rr[n] >= pf[n]), default=None)


def _order_matters(rows: Sequence[Row]) -> float | None:
    plain, ordered = (_curve(rows, "goodput_mbps_mean", reordering=order) for order in ("none", "shared"))
    return max((n for n in plain if n in ordered and abs(plain[n] / ordered[n] - 1) > FULL), default=None)


LINK_BPS = 50e6
PLAIN_BITS = 8 * 1040
"""Bits of a segment, which the first attempt carries uncoded in addition to its coded bits."""
LATE_S = 0.02
"""The longest that a repetition takes longer than the packets after it, of the paper's 15 to 20 ms."""


def _packet_bits(rows: Sequence[Row]) -> float | None:
    """Bits that a packet takes of the link, over all attempts."""
    coded_bits = _curve(rows, "coded_bits_per_pkt", policy="RR", reordering="none").get(100)
    return None if coded_bits is None else coded_bits + PLAIN_BITS


def _packet_ms(rows: Sequence[Row]) -> float | None:
    bits = _packet_bits(rows)
    return None if bits is None else 1e3 * bits / LINK_BPS


def _spaced_users(rows: Sequence[Row]) -> float | None:
    """Equation (8): users among which three packets of one take as long as a repetition."""
    bits = _packet_bits(rows)
    return None if bits is None else LATE_S / (3 * bits / LINK_BPS)


def _retransmitted(rows: Sequence[Row]) -> float | None:
    own = ("DT_S", "DT_H", "RR", "PF", "CoDeS 100 ms")
    return max((row["retx_share"] for row in rows if row.get("policy") in own and "retx_share" in row), default=None)


# --- Numbers in the text --------------------------------------------------------------------------------------------


def _at(
    what: str, printed: str, unit: str, source: str, column: str, policy: str, users: int, how: str = "exactly"
) -> Number:
    where = {"policy": policy, "users": users}
    return Number(f"{what} under {policy}, {users} users", printed, unit, source, column, where, how)  # type: ignore[arg-type]


def _saturation(printed: str, upper: str, source: str) -> Number:
    return Number(
        "users among which the link is full",
        printed,
        "users",
        source,
        how="between",
        upper=upper,
        shown=".0f",
        measure=saturation,
    )


def _gain(source: str) -> Number:
    return Number(
        "more throughput by choosing channels; ours: PF over DT_H",
        "60",
        "%",
        source,
        how="up to",
        shown=".1f",
        measure=_most(lambda rows: [100 * (x - 1) for x in _ratios(rows, "throughput_mbps", "PF", "DT_H")]),
        remark="of a first analysis, not of the figure",
    )


WAITS = "The text compares the curves in words only."
CONFERENCE = {
    "2": Printed(CONFERENCE_SPLIT, table=True, in_brackets=True),
    "3": Printed((_saturation("75", "100", "Section V"), _gain("Section III"))),
    "4": Printed(_firsts(CONFERENCE_SPLIT)),
    "5": Printed(
        (
            _at("loss", "20", "%", "Section V", "loss", "DT_S", 75, "at least"),
            _at("loss", "3", "%", "Section V", "loss", "PF", 75),
        )
    ),
    "6": Printed(
        (
            Number(
                "useful bits on the link, most of all policies",
                "9.4",
                "Mbit/s",
                "Section II-C",
                how="at most",
                measure=_most(lambda rows: [row["useful_mbps"] for row in rows]),
            ),
        )
    ),
    "7": Printed(remark=WAITS),
    "8": Printed(remark=WAITS),
    "9": Printed(remark=WAITS),
    "10": Printed(
        (
            replace(_at("MOS", "3", "MOS", "Section V", "mos", "PF", 75, "at least"), again=True),
            _at("MOS", "3", "MOS", "Section V", "mos", "PF", 100, "at least"),
        ),
        remark='The text says "up to saturation", which it puts between 75 and 100 users and estimates at 100.',
    ),
    "11": Printed(remark=WAITS),
    "12": Printed(remark=WAITS),
    "13": Printed(
        (_at("loss", "3", "%", "Sections II-C and VI", "loss", "CoDeS 100 ms", 100, "at most"),),
        remark="Losses are acceptable up to 100 users, section VI says; section II-C takes at most 3 % as acceptable.",
    ),
    "14": Printed(
        (
            Number(
                "quality of voice, most that CoDeS gains; ours: MOS over that of DT_S",
                "2",
                "ratio",
                "Abstract",
                how="about",
                measure=_most(lambda rows: _ratios(rows, "mos", "CoDeS 100 ms", "DT_S")),
                remark="it does not say over what",
            ),
        )
    ),
}
"""By figure and table of the conference paper."""

JOURNAL = {
    "2": Printed(JOURNAL_SPLIT, table=True, in_brackets=True),
    "4": Printed((_saturation("250", "300", "Section 5"), _gain("Section 4"))),
    "5": Printed(_firsts(JOURNAL_SPLIT)),
    "6": Printed(
        (
            _at("loss", "15", "%", "Section 5", "loss", "DT_S", 300, "at least"),
            _at("loss", "2", "%", "Section 5", "loss", "PF", 300),
        )
    ),
    "7": Printed(remark=WAITS),
    "8": Printed(remark=WAITS),
    "9": Printed(remark=WAITS),
    "10": Printed(
        (
            replace(_at("MOS", "3", "MOS", "Section 5", "mos", "PF", 250, "at least"), again=True),
            _at("MOS", "3", "MOS", "Section 5", "mos", "PF", 300, "at least"),
        ),
        remark='The text says "up to saturation", which it puts between 250 and 300 users and estimates at 300.',
    ),
    "11": Printed(remark=WAITS),
    "12": Printed(remark=WAITS),
    "13": Printed(
        (_at("loss", "3", "%", "Sections 2.3 and 6.2", "loss", "CoDeS 100 ms", 300, "at most"),),
        remark="Losses are acceptable up to 300 users, section 6.2 says; section 2.3 takes at most 3 % as acceptable.",
    ),
    "14": Printed(remark=WAITS),
    "table-3": Printed(
        (
            *UNORDERED,
            Number(
                "PF, best and worst user apart, least",
                "10",
                "%",
                "Section 6.3.3",
                how="between",
                upper="40",
                shown=".1f",
                measure=lambda rows: min(_flow_gaps(rows), default=None),
            ),
            Number(
                "PF, best and worst user apart, most",
                "10",
                "%",
                "Section 6.3.3",
                how="between",
                upper="40",
                shown=".1f",
                measure=lambda rows: max(_flow_gaps(rows), default=None),
                again=True,
            ),
        ),
        table=True,
        in_brackets=True,
    ),
    "table-4": Printed(ORDERED, table=True, in_brackets=True),
    "table-5": Printed(table=True, remark="The published table has marks, no numbers."),
    "15": Printed(remark=WAITS),
    "16": Printed(
        (
            Number(
                "users at which RR gains most",
                "20",
                "users",
                "Section 6.3.1",
                how="about",
                shown=".0f",
                measure=_rr_peak,
            ),
            Number(
                "users up to which RR gains as much as PF",
                "60",
                "users",
                "Section 6.3.1",
                how="at most",
                shown=".0f",
                measure=_rr_ahead,
            ),
        )
    ),
    "17": Printed(
        (
            *_totals(UNORDERED),
            Number(
                "PF, most of all numbers of users",
                "20",
                "Mbit/s",
                "Section 6.3.1",
                how="up to",
                measure=lambda rows: max(_curve(rows, "total_mbps", policy="PF").values(), default=None),
            ),
        )
    ),
    "18": Printed(remark=WAITS),
    "19": Printed(
        (
            Number(
                "bits per packet on the link, RR",
                "16890",
                "bit",
                "Equation (5)",
                shown=".0f",
                measure=_packet_bits,
                remark="it leaves out the uncoded packet, 8320 bits",
            ),
            Number("time of a packet on the link, RR", "0.34", "ms", "Equation (6)", measure=_packet_ms),
            Number(
                "users whose packets are spaced enough",
                "19",
                "users",
                "Equation (8)",
                how="about",
                shown=".0f",
                measure=_spaced_users,
            ),
        ),
        remark="The equations follow from the share of packets decoded at each attempt.",
    ),
    "20": Printed(
        (
            *_again(UNORDERED, "goodput_mbps_mean", policy="RR"),
            *_again(ORDERED, "goodput_mbps_mean", policy="RR"),
            Number(
                "users up to which order matters to RR",
                "20",
                "users",
                "Section 6.3.1",
                how="about",
                shown=".0f",
                measure=_order_matters,
            ),
        )
    ),
    "21": Printed(remark=WAITS),
    "22": Printed(remark=WAITS),
    "23": Printed(_totals(ORDERED)),
    "24": Printed(
        (
            Number(
                "retransmissions, most of all policies of the paper",
                "5",
                "%",
                "axis of Figure 24",
                how="at most",
                measure=_retransmitted,
            ),
        )
    ),
    "25": Printed(remark=WAITS),
    "26": Printed(
        tuple(
            replace(number, where={**number.where, "cc": "cubic"})
            for numbers in (UNORDERED, ORDERED)
            for number in _again(numbers, "goodput_mbps_mean", policy="PF")
        )
    ),
    "27": Printed(_ends(UNORDERED, 40)),
    "28": Printed(_ends(ORDERED, 40)),
}
"""By figure and table of the journal version."""


def of(paper: str, name: str, mode: str) -> Printed | None:
    """What a paper prints of a figure or table; None as corrected, which is not what the papers ran."""
    return {"journal": JOURNAL, "conference": CONFERENCE}[paper].get(name) if mode == "published" else None
