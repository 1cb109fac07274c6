# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one HTML file with figures, tables and how to repeat it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.directory import FIGURES, PROVENANCE, REPORT, read_provenance, write_whole
from linkweir.plot import Panel, panels, svg
from linkweir.result import Result

_MOST_ROWS = 200

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
.warning { background: #fff3cd; border-left: 4px solid #d39e00; padding: .5rem 1rem; }
pre { background: #f5f5f5; padding: .7rem 1rem; overflow-x: auto; }
"""


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


def _table(rows: list[dict[str, Any]], first: str, columns: tuple[tuple[str, str, float, int], ...]) -> str:
    present = [column for column in columns if rows and column[1] in rows[0]]
    head = "".join(f"<th>{html.escape(title)}</th>" for title in (first, *(column[0] for column in present)))
    body = []
    for row in rows[:_MOST_ROWS]:
        cells = [html.escape(str(row[first])), *(number(row[key], scale, digits) for _, key, scale, digits in present)]
        body.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    more = f"<p>and {len(rows) - _MOST_ROWS:,} more</p>" if len(rows) > _MOST_ROWS else ""
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(body)}</table></div>{more}'


def _warnings(result: Result) -> str:
    lines = [*result.scenario.notes, *map(str, result.warnings)]
    return "".join(f'<p class="warning">{html.escape(line)}</p>' for line in lines)


def class_table(result: Result) -> str:
    """The table of classes as HTML."""
    return _table(result.classes.slice(0, _MOST_ROWS + 1).to_pylist(), "class", CLASS_COLUMNS)


def _inline(document: str, prefix: str) -> str:
    """An SVG document inside an HTML one: no prologue, and identifiers of its own."""
    body = document[document.index("<svg") :]
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}-\2"', body)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)


def _figure(panel: Panel, document: str) -> str:
    title = html.escape(panel.title, quote=True)  # drawn in the picture, here for those who listen
    return f'<figure role="img" aria-label="{title}">{_inline(document, panel.name)}</figure>'


def _provenance(directory: Path) -> str:
    lines = []
    provenance = read_provenance(directory)
    for key in ("linkweir", "commit", "seed", "scenario_sha256", "platform", "python", "pyarrow", "inputs"):
        if provenance.get(key):
            value = provenance[key]
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"<tr><td>{html.escape(key)}</td><td>{html.escape(shown)}</td></tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def write_report(result: Result, directory: Path) -> Path:
    """Draws the figures of a run and writes them and `report.html` into its directory.

    Returns:
        The path of the report.
    """
    figures: list[str] = []
    (directory / FIGURES).mkdir(exist_ok=True)
    for panel in panels(result):
        document = svg(panel)
        write_whole(directory / FIGURES / f"{panel.name}.svg", document)
        figures.append(_figure(panel, document))
    scenario = result.scenario
    warning = ""
    if result.status != "complete":
        warning = (
            f'<p class="warning">The run was interrupted at {result.simulated_s:g} s of {scenario.duration_s:g} s. '
            "What follows covers the time until then.</p>"
        )
    title = html.escape(scenario.name)
    flows = result.flows.slice(0, _MOST_ROWS + 1).to_pylist()
    classes = class_table(result)
    pictures = "".join(figures)
    flow_table = _table(flows, "flow", _FLOW_COLUMNS)
    terminals = ""
    if "terminals" in result.tables:
        rows = result.terminals.slice(0, _MOST_ROWS + 1).to_pylist()
        terminals = f"<h2>Terminals</h2>{_table(rows, 'class', _TERMINAL_COLUMNS)}"
    resolved = html.escape(scenario.resolved)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head><body>
<h1>{title}</h1>
{warning}
{_warnings(result)}
<p>Policy {html.escape(scenario.policy)}, {scenario.duration_s:g} s simulated, seed {scenario.seed}. Totals and
percentiles cover {scenario.warmup_s:g} s to {result.simulated_s:g} s; delays of classes are queueing delays, those of
flows are from creation to delivery.</p>
<h2>Classes</h2>{classes}
{terminals}
<h2>Over time</h2>{pictures}
<h2>Flows</h2>{flow_table}
<h2>Scenario</h2><details><summary>with every default written out</summary><pre>{resolved}</pre></details>
<h2>How to repeat it</h2><p>In the run directory's parent, with version {html.escape(_native.__version__)}:</p>
<pre>linkweir rerun {html.escape(directory.name)}</pre>
<p>makes the run again and compares all result files byte by byte. What ran, from {PROVENANCE}:</p>
{_provenance(directory)}
</body></html>
"""
    path = directory / REPORT
    write_whole(path, page)
    return path
