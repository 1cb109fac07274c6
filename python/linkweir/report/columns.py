# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a report: which columns of a run they have, and how people read the numbers in them."""

from __future__ import annotations

from typing import Any

from linkweir import delays, quality
from linkweir.report import html_page
from linkweir.tables.links import busiest, links
from linkweir.tables.run_tables import THERE, RunTables

MOST_ROWS = 200
"""Rows of a table that are shown."""


def number(value: float | int | None, scale: float = 1.0, digits: int = 3) -> str:
    """A number as people read it; a dash for what is undefined."""
    return "-" if value is None else f"{value * scale:,.{digits}f}"


CLASS_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("rate (Mbit/s)", "rate_bps", 1e-6, 3),
    ("sent (packets)", "sent_pkts", 1.0, 0),
    ("loss (%)", "loss", 100.0, 2),
    ("delay mean (ms)", "delay_mean_s", 1e3, 2),
    ("delay p50 (ms)", "delay_p50_s", 1e3, 2),
    ("delay p95 (ms)", "delay_p95_s", 1e3, 2),
    ("delay p99 (ms)", "delay_p99_s", 1e3, 2),
    ("delay max (ms)", "delay_max_s", 1e3, 2),
    ("jitter mean (ms)", "jitter_mad_s", 1e3, 2),
    ("jitter p99 (ms)", "jitter_p99_s", 1e3, 2),
    ("backlog (packets)", "backlog_mean_pkts", 1.0, 1),
)
"""Columns of the table of classes: heading, key, scale, digits."""

LINK_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("capacity (Mbit/s)", "capacity_bps", 1e-6, 3),
    ("used (Mbit/s)", "used_bps", 1e-6, 3),
    ("used (%)", "used", 100.0, 1),
    ("sent (packets)", "sent_pkts", 1.0, 0),
    ("dropped and lost", "gone_pkts", 1.0, 0),
)
"""Columns of the table of a network's links."""

HOP_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("arrived (packets)", "arrived_pkts", 1.0, 0),
    ("sent (packets)", "sent_pkts", 1.0, 0),
    ("dropped", "dropped_pkts", 1.0, 0),
    ("lost on link", "lost_pkts", 1.0, 0),
    ("lost while absent", "absent_pkts", 1.0, 0),
    ("queueing delay mean (ms)", "delay_mean_s", 1e3, 2),
    ("p95 (ms)", "delay_p95_s", 1e3, 2),
    ("max (ms)", "delay_max_s", 1e3, 2),
)
"""Columns of the table of flows on each link of a network."""

FLOW_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("rate (Mbit/s)", "rate_bps", 1e-6, 3),
    ("goodput (Mbit/s)", "goodput_bps", 1e-6, 3),
    ("delay mean (ms)", "delay_mean_s", 1e3, 2),
    ("delay p99 (ms)", "delay_p99_s", 1e3, 2),
    ("jitter mean (ms)", "jitter_mad_s", 1e3, 2),
    ("jitter p99 (ms)", "jitter_p99_s", 1e3, 2),
    ("jitter of RFC 3550 (ms)", "jitter_rfc3550_s", 1e3, 2),
    ("dropped at limit", "dropped_limit_pkts", 1.0, 0),
    ("dropped by policy", "dropped_policy_pkts", 1.0, 0),
    ("dropped for age", "dropped_age_pkts", 1.0, 0),
    ("lost on link", "lost_link_pkts", 1.0, 0),
    ("lost while absent", "absent_pkts", 1.0, 0),
    ("retransmitted", "retransmitted_pkts", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
    ("cwnd (packets)", "cwnd_mean_pkts", 1.0, 1),
)


_RARE = ("dropped_age_pkts", "absent_pkts")
"""Columns that are shown only where they count something: few runs have a max_age or links that go."""

TERMINAL_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("Es/N0 in clear sky (dB)", "clear_sky_esn0_db", 1.0, 2),
    ("Es/N0 mean (dB)", "esn0_mean_db", 1.0, 2),
    ("attenuation mean (dB)", "attenuation_mean_db", 1.0, 2),
    ("attenuation max (dB)", "attenuation_max_db", 1.0, 2),
    ("rate of its channel (Mbit/s)", "channel_rate_bps", 1e-6, 3),
    ("outage (%)", "outage", 100.0, 2),
    ("changes of modulation and code", "modcod_changes", 1.0, 0),
    ("time on air (%)", "airtime", 100.0, 2),
)

COMPLETION_COLUMNS = (
    ("begun", "begun", 1.0, 0),
    ("complete", "finished", 1.0, 0),
    ("refused", "refused", 1.0, 0),
    ("mean size (kB)", "mean_bytes", 1e-3, 1),
    ("completion time mean (s)", "completion_mean_s", 1.0, 3),
    ("p50 (s)", "completion_p50_s", 1.0, 3),
    ("p95 (s)", "completion_p95_s", 1.0, 3),
    ("p99 (s)", "completion_p99_s", 1.0, 3),
    ("max (s)", "completion_max_s", 1.0, 3),
)

VIDEO_COLUMNS = (
    ("segments", "segments", 1.0, 0),
    ("mean bit rate (Mbit/s)", "bitrate_mean_bps", 1e-6, 3),
    ("switches", "switches", 1.0, 0),
    ("start-up delay (s)", "startup_s", 1.0, 2),
    ("stalls", "stalls", 1.0, 0),
    ("stalled (s)", "stalled_s", 1.0, 2),
    ("played (s)", "played_s", 1.0, 1),
)


DELAY_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("packets", "count_pkts", 1.0, 0),
    *((f"p{100 * q:g} (ms)", f"p{100 * q:g}_s", 1e3, 2) for q in delays.QUANTILES),
)


VOICE_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("delay mean (ms)", "delay_s", 1e3, 1),
    ("loss mean (%)", "loss", 100.0, 2),
    ("MOS mean", "mos", 1.0, 2),
    ("MOS worst", "worst_mos", 1.0, 2),
    ("worst at (s)", "worst_t_s", 1.0, 0),
    ("delay there (ms)", "worst_delay_s", 1e3, 1),
    ("loss there (%)", "worst_loss", 100.0, 2),
    ("BurstR there", "worst_burst_r", 1.0, 2),
)
"""Columns of the table of calls: heading, key, scale, digits."""


Columns = tuple[tuple[str, str, float, int], ...]
"""Columns of a table: heading, key, scale, digits."""


def table_of(rows: list[dict[str, Any]], first: str, columns: Columns) -> str:
    """Rows as an HTML table, folded if it is long.

    Args:
        rows: at most 200 are shown.
        first: the key of the first column, and its heading.
        columns: the others, of which those are shown that the rows have.
    """
    present = [column for column in columns if rows and column[1] in rows[0]]
    present = [column for column in present if column[1] not in _RARE or any(row[column[1]] for row in rows)]
    lines = [
        [str(row[first]), *(number(row[key], scale, digits) for _, key, scale, digits in present)]
        for row in rows[:MOST_ROWS]
    ]
    more = f'<p class="below">The run directory has more rows; these are the first {MOST_ROWS}.</p>'
    shown = html_page.folded([first, *(column[0] for column in present)], lines)
    return shown + (more if len(rows) > MOST_ROWS else "")


def rows_of(run: RunTables, name: str) -> list[dict[str, Any]]:
    """Rows of a table, one more than are shown."""
    rows: list[dict[str, Any]] = run.table(name).slice(0, MOST_ROWS + 1).to_pylist()
    return rows


def class_rows(run: RunTables, most: int) -> list[dict[str, Any]]:
    """The classes; of a network with the link in front of the name, those of the busiest links."""
    if not run.scenario.is_network:
        rows: list[dict[str, Any]] = run.table("classes").slice(0, most).to_pylist()
        return rows
    shown = busiest(run, most)
    of_links = (row for row in run.table("classes").to_pylist() if row["link"] in shown)
    return [row | {"class": f"{row['link']}: {row['class']}"} for row in of_links][:most]


def link_rows(run: RunTables, most: int) -> list[dict[str, Any]]:
    """The links of a network with the part of their capacity that was used, the busiest if there are many."""
    shown = busiest(run, most)
    rows = [row | {"used": _part(row["used_bps"], row["capacity_bps"])} for row in links(run) if row["link"] in shown]
    return [row | {"link": f"{row['link']} ({row['policy']})"} for row in rows]


def hop_rows(run: RunTables) -> list[dict[str, Any]]:
    """What flows met at each link that they passed, one row more than are shown."""
    rows = run.table("hops").slice(0, MOST_ROWS + 1).to_pylist()
    return [
        row | {"hop": f"{row['flow']} on {row['link']}{'' if row['direction'] == THERE else ', on the way back'}"}
        for row in rows
    ]


def _part(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None


def delay_table(run: RunTables) -> str:
    """Quantiles of all distributions of delays."""
    rows = delays.quantiles(run.table("delays"))
    named = [row | {"delay": f"{row['flow'] or row['class']}, {row['kind']}"} for row in rows[: MOST_ROWS + 1]]
    return table_of(named, "delay", DELAY_COLUMNS)


def voice_rows(run: RunTables, codec: str | None = None) -> list[dict[str, Any]]:
    """How the calls of a run sound, with a column ``call`` that names flow, play-out buffer and codec."""
    rows = quality.voice(run, codec).to_pylist()
    return [row | {"call": f"{row['flow']}, {row['buffer']}, {row['codec']}"} for row in rows]
