# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one HTML file with figures, tables and how to repeat it."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linkweir import _native, delays, html_page, quality
from linkweir.plot import Chart, charts, delay_charts, svg
from linkweir.provenance import FIGURES, PROVENANCE, REPORT, read_provenance, write_whole
from linkweir.tables import RunTables

_MOST_ROWS = 200


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

_FLOW_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
    ("rate (Mbit/s)", "rate_bps", 1e-6, 3),
    ("goodput (Mbit/s)", "goodput_bps", 1e-6, 3),
    ("delay mean (ms)", "delay_mean_s", 1e3, 2),
    ("delay p99 (ms)", "delay_p99_s", 1e3, 2),
    ("jitter mean (ms)", "jitter_mad_s", 1e3, 2),
    ("jitter p99 (ms)", "jitter_p99_s", 1e3, 2),
    ("jitter of RFC 3550 (ms)", "jitter_rfc3550_s", 1e3, 2),
    ("dropped at limit", "dropped_limit_pkts", 1.0, 0),
    ("dropped by policy", "dropped_policy_pkts", 1.0, 0),
    ("lost on link", "lost_link_pkts", 1.0, 0),
    ("retransmitted", "retransmitted_pkts", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
    ("cwnd (packets)", "cwnd_mean_pkts", 1.0, 1),
)


_TERMINAL_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
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


_DELAY_COLUMNS: tuple[tuple[str, str, float, int], ...] = (
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


def _table(rows: list[dict[str, Any]], first: str, columns: tuple[tuple[str, str, float, int], ...]) -> str:
    present = [column for column in columns if rows and column[1] in rows[0]]
    lines = [
        [str(row[first]), *(number(row[key], scale, digits) for _, key, scale, digits in present)]
        for row in rows[:_MOST_ROWS]
    ]
    more = f"<p>and {len(rows) - _MOST_ROWS:,} more</p>" if len(rows) > _MOST_ROWS else ""
    return html_page.table([first, *(column[0] for column in present)], lines) + more


def _rows(run: RunTables, table: str) -> list[dict[str, Any]]:
    """Rows of a table, one more than are shown."""
    rows: list[dict[str, Any]] = run.table(table).slice(0, _MOST_ROWS + 1).to_pylist()
    return rows


def _delay_table(run: RunTables) -> str:
    """Quantiles of all distributions of delays."""
    rows = delays.quantiles(run.table("delays"))
    named = [row | {"delay": f"{row['flow'] or row['class']}, {row['kind']}"} for row in rows[: _MOST_ROWS + 1]]
    return _table(named, "delay", _DELAY_COLUMNS)


def voice_rows(run: RunTables, codec: str | None = None) -> list[dict[str, Any]]:
    """How the calls of a run sound, with a column ``call`` that names flow, play-out buffer and codec."""
    rows = quality.voice(run, codec).to_pylist()
    return [row | {"call": f"{row['flow']}, {row['buffer']}, {row['codec']}"} for row in rows]


def _voice_section(run: RunTables) -> str:
    if "voice" not in run.tables:
        return ""
    return f"""<h2>Calls</h2>{_table(voice_rows(run), "call", VOICE_COLUMNS)}
<p>MOS is the E-model's (ITU-T G.107) in intervals of 10 s, each with the play-out delay and the codec's, the loss on
the way and in the buffer, and BurstR of its gaps.</p>"""


def class_table(run: RunTables) -> str:
    """The table of classes as HTML."""
    return _table(_rows(run, "classes"), "class", CLASS_COLUMNS)


def _provenance(directory: Path) -> str:
    lines = []
    provenance = read_provenance(directory)
    for key in ("linkweir", "commit", "seed", "scenario_sha256", "platform", "python", "pyarrow", "inputs"):
        if provenance.get(key):
            value = provenance[key]
            lines.append([key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)])
    return html_page.table([], lines)


def _figures(shown: Sequence[Chart], directory: Path) -> str:
    """Writes pictures into the run directory; returns them as HTML."""
    figures = []
    for chart in shown:
        picture = svg(chart)
        write_whole(directory / FIGURES / f"{chart.name}.svg", picture)
        figures.append(html_page.figure(chart.name, chart.title, picture))
    return "".join(figures)


def write_report(run: RunTables, warnings: Sequence[object], directory: Path) -> Path:
    """Draws the figures of a run and writes them and `report.html` into its directory.

    Args:
        run: the run.
        warnings: what the reader is warned of, a sentence each.
        directory: the run directory.

    Returns:
        The path of the report.
    """
    (directory / FIGURES).mkdir(exist_ok=True)
    over_time, distributions = (_figures(found, directory) for found in (charts(run), delay_charts(run)))
    scenario = run.scenario
    interrupted = ""
    if run.status != "complete":
        interrupted = html_page.warning(
            f"The run was interrupted at {run.simulated_s:g} s of {scenario.duration_s:g} s. "
            "What follows covers the time until then."
        )
    notes = "".join(html_page.warning(str(text)) for text in (*run.notes, *warnings))
    resolved = html.escape(scenario.resolved)
    terminals = ""
    if "terminals" in run.tables:
        terminals = f"<h2>Terminals</h2>{_table(_rows(run, 'terminals'), 'class', _TERMINAL_COLUMNS)}"
    applications = ""
    if "completions" in run.tables:
        applications = f"<h2>Completion times</h2>{_table(_rows(run, 'completions'), 'flow', COMPLETION_COLUMNS)}"
    if "video" in run.tables:
        applications += f"<h2>Video</h2>{_table(_rows(run, 'video'), 'flow', VIDEO_COLUMNS)}"
    body = f"""{interrupted}
{notes}
<p>Policy {html.escape(scenario.policy)}, {scenario.duration_s:g} s simulated, seed {scenario.seed}. Totals and
percentiles cover {scenario.warmup_s:g} s to {run.simulated_s:g} s; delays of classes are queueing delays, those of
flows are from creation to delivery.</p>
<h2>Classes</h2>{class_table(run)}
{terminals}
{f"<h2>Delays</h2>{distributions}{_delay_table(run)}" if distributions else ""}
{_voice_section(run)}
{applications}
<h2>Over time</h2>{over_time}
<h2>Flows</h2>{_table(_rows(run, "flows"), "flow", _FLOW_COLUMNS)}
<h2>Scenario</h2><details><summary>with every default written out</summary><pre>{resolved}</pre></details>
<h2>How to repeat it</h2><p>In the run directory's parent, with version {html.escape(_native.__version__)}:</p>
<pre>linkweir rerun {html.escape(directory.name)}</pre>
<p>makes the run again and compares all results. What ran, from {PROVENANCE}:</p>
{_provenance(directory)}"""
    path = directory / REPORT
    write_whole(path, html_page.document(scenario.name, body))
    return path
