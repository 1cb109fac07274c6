# SPDX-License-Identifier: BSD-3-Clause
"""The report of a sweep: means of every case with their intervals, and figures, in one HTML file."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linkweir.panels.plot import svg
from linkweir.report import html_page
from linkweir.sweeps import plot
from linkweir.sweeps.means import INTERVAL, means, seeds_are_equal
from linkweir.sweeps.measures import MEASURES, Measure

if TYPE_CHECKING:
    import pyarrow as pa

OF_CLASSES = ("rate", "loss", "delay_p50", "delay_p99")
OF_FLOWS = ("goodput", "delay_p50", "delay_p99")
SEEDS_ARE_EQUAL = "All seeds gave the same results: nothing in the scenario is random, so one seed is enough"
BUILD = {"linkweir": "Linkweir", "commit": "commit", "sources_sha256": "SHA-256 of the sources"}
"""How reports call the facts about the build."""
_MOST_ROWS = 500


def _named(row: Mapping[str, Any], scope: str) -> str:
    """A class or flow; a class of a network with its link."""
    link = row.get("link")
    return str(row[scope]) if link is None else f"{link}: {row[scope]}"


def table_of(found: pa.Table, scope: str, measures: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the means of all classes, or of all flows.

    Args:
        found: the means of a sweep.
        scope: ``class`` or ``flow``.
        measures: keys of `MEASURES`.
    """
    shown: list[Measure] = [MEASURES[key] for key in measures if MEASURES[key].column in found.column_names]
    names = found.column_names
    keys = plan_keys(names)
    rows = [row for row in found.to_pylist() if row["scope"] == scope]
    # Of a flow any goodput is shown, of a class that of its TCP flows.
    shown_as = [measure.heading.removeprefix("TCP ") if scope == "flow" else measure.heading for measure in shown]
    headings = ["case", *keys, scope, "runs", *shown_as]
    return headings, [
        [
            str(row["case"]),
            *("" if row[key] is None else str(row[key]) for key in keys),
            _named(row, scope),
            str(row["runs"]),
            *(measure.shown(row[measure.column], row[f"{measure.column}{INTERVAL}"]) for measure in shown),
        ]
        for row in rows
    ]


def remarks(data: pa.Table) -> list[str]:
    """What a reader of the means of a data set should know, a sentence each."""
    return [SEEDS_ARE_EQUAL] if seeds_are_equal(data) else []


def plan_keys(names: Sequence[str]) -> list[str]:
    """The columns of the plan that are shown: the label, and keys as they were written."""
    own = list(names[names.index("case") + 1 : names.index("scope")]) if "scope" in names else []
    return [name for name in own if not any(name.startswith(f"{other}_") for other in own)]


def unfinished(done: int, planned: int) -> str:
    """The warning that runs are missing, as HTML; nothing if none is."""
    if done == planned:
        return ""
    return html_page.warning(f"Only {done} of {planned} runs are done. What follows covers these.")


def page(name: str, done: int, planned: int, data: pa.Table, distributions: pa.Table, about: Mapping[str, Any]) -> str:
    """The whole page.

    Args:
        name: of the sweep.
        done: runs in the data set.
        planned: runs of the plan.
        data: the data set.
        distributions: those of the delays.
        about: provenance.
    """
    found = means(data)
    parts = [unfinished(done, planned)]
    parts.append(
        f"<p>{done} runs. Figures are means over the seeds of a case, ± half of the 95 % confidence "
        "interval (Student's t). Delays of classes are queueing delays, those of flows are from creation to delivery."
        f"</p>{''.join(f'<p>{html.escape(remark)}.</p>' for remark in remarks(data))}"
    )
    parts.append(f"<h2>Classes</h2>{_table(found, 'class', OF_CLASSES)}")
    charts = [*plot.charts(found), *plot.distributions(distributions, plan_keys(found.column_names))]
    figures = [html_page.figure(chart.name, chart.title, svg(chart)) for chart in charts]
    if figures:
        parts.append(f"<h2>Figures</h2>{''.join(figures)}")
    parts.append(f"<h2>Flows</h2>{_table(found, 'flow', OF_FLOWS)}")
    lines = html_page.facts(about, {**BUILD, "plan_sha256": "SHA-256 of the plan", "platform": "platform"})
    parts.append(f"<h2>How this was made</h2>{html_page.table([], lines)}")
    return html_page.document(name, "".join(parts))


def _table(found: pa.Table, scope: str, measures: Sequence[str]) -> str:
    headings, rows = table_of(found, scope, measures)
    more = f"<p>{html.escape(f'and {len(rows) - _MOST_ROWS:,} more rows')}</p>" if len(rows) > _MOST_ROWS else ""
    return html_page.folded(headings, rows[:_MOST_ROWS]) + more
