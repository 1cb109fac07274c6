# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report: charts first, then tables, then how to repeat the run."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from linkweir import _native
from linkweir.directories.provenance import PROVENANCE, REPORT, read_provenance, write_whole
from linkweir.panels import SHOWN, Panels
from linkweir.report import embed, html_page, knobs
from linkweir.report.columns import (
    CLASS_COLUMNS,
    COMPLETION_COLUMNS,
    FLOW_COLUMNS,
    HOP_COLUMNS,
    LINK_COLUMNS,
    MOST_ROWS,
    TERMINAL_COLUMNS,
    VIDEO_COLUMNS,
    VOICE_COLUMNS,
    class_rows,
    delay_table,
    hop_rows,
    link_rows,
    rows_of,
    table_of,
    voice_rows,
)
from linkweir.report.embed import Drawn
from linkweir.tables.links import busiest
from linkweir.tables.run_tables import RunTables

_MOST_CLASSES = 120
_MOST_LINKS = 50
"""Links of a network that are drawn."""
_MOST_POINTS = 4_000
_MOST_VALUES = 240_000
"""Values of all charts, which keep a report below 3 MB."""
_MOST_VALUES_WITH_KNOBS = 24_000
"""The same with the simulator, which is most of such a page."""
_LINES_OF_A_CLASS = 6
"""Lines over time that a class has: rate, delay, drops, and what its policy shows."""
_LEAST_POINTS = 200
_MOST_WARNINGS = 4
"""Further ones are folded."""


def class_table(run: RunTables) -> str:
    """The table of classes as HTML."""
    return table_of(class_rows(run, MOST_ROWS + 1), "class", CLASS_COLUMNS)


def write_report(run: RunTables, warnings: Sequence[object], directory: Path) -> Path:
    """Writes `report.html` into the directory of a run.

    Args:
        run: the run.
        warnings: what the reader is warned of, a sentence each.
        directory: the run directory.

    Returns:
        The path of the report.
    """
    drawn = _drawn(run, _MOST_VALUES)
    body = _body(run, warnings, directory, drawn, "")
    return _write(run, directory, body + embed.scripts(run, drawn), embed.head())


def write_report_with_knobs(run: RunTables, warnings: Sequence[object], directory: Path) -> Path:
    """As `write_report`, with knobs that compute the run again in the reader's browser.

    Args:
        run: the run.
        warnings: what the reader is warned of, a sentence each.
        directory: the run directory.

    Returns:
        The path of the report.

    Raises:
        ScenarioError: a browser cannot run the scenario.
        DirectoryError: the run was measured or interrupted, or this package has no simulator for browsers.
    """
    knobs.refuse(run, directory)
    drawn = _drawn(run, _MOST_VALUES_WITH_KNOBS)
    body = _body(run, warnings, directory, drawn, knobs.PLACE)
    scripts = f"{embed.scripts(run, drawn)}\n{knobs.scripts(run, directory, min(one.points for one in drawn))}"
    return _write(run, directory, body + scripts, embed.head(knobs=True) + knobs.head())


def _write(run: RunTables, directory: Path, body: str, head: str) -> Path:
    path = directory / REPORT
    write_whole(path, html_page.document(run.scenario.name, body, head))
    return path


def _body(run: RunTables, warnings: Sequence[object], directory: Path, drawn: Sequence[Drawn], knobs_html: str) -> str:
    """All but the scripts, as HTML; `knobs_html` is where the knobs are."""
    return f"""{_first_words(run, warnings)}
{knobs_html}
{_charts(run, drawn)}
{_tables(run)}
<h2>Scenario</h2><details><summary>with every default written out</summary>
<pre>{html.escape(run.scenario.resolved)}</pre></details>
<h2>How to repeat it</h2><p>In the run directory's parent, with version {html.escape(_native.__version__)}:</p>
<pre>linkweir rerun {html.escape(directory.resolve().name)}</pre>
<p>makes the run again and compares all results. What ran, from {PROVENANCE}:</p>
{_provenance(directory)}
"""


def _drawn(run: RunTables, most_values: int) -> list[Drawn]:
    """What is drawn: the run, or the links of a network one by one, those that lost and sent most."""
    if not run.scenario.is_network:
        return [_panels(run, "", most_values)]
    shown = busiest(run, _MOST_LINKS)
    return [_panels(run.of_link(link), link, most_values // len(shown)) for link in shown]


def _panels(run: RunTables, link: str, most_values: int) -> Drawn:
    """The charts of a run or link; few points of each class where there are many classes."""
    lines = _LINES_OF_A_CLASS * max(1, min(len(run.scenario.classes), _MOST_CLASSES))
    points = min(_MOST_POINTS, max(_LEAST_POINTS, most_values // lines))
    return Drawn(link, Panels(run, _MOST_CLASSES, points), points)


def _first_words(run: RunTables, warnings: Sequence[object]) -> str:
    scenario = run.scenario
    interrupted = ""
    if run.status != "complete":
        interrupted = html_page.warning(
            f"The run was interrupted at {run.simulated_s:g} s of {scenario.duration_s:g} s. "
            "What follows covers the time until then."
        )
    notes = [html_page.warning(str(text)) for text in (*run.notes, *warnings)]
    first, rest = notes[:_MOST_WARNINGS], notes[_MOST_WARNINGS:]
    more = f"<details><summary>{len(rest):,} more warnings</summary>{''.join(rest)}</details>" if rest else ""
    return f"""{interrupted}
{"".join(first)}{more}
<p>Policy {html.escape(scenario.policy)}, {scenario.duration_s:g} s simulated, seed {scenario.seed}. Totals and
percentiles cover {scenario.warmup_s:g} s to {run.simulated_s:g} s; delays of classes are queueing delays, those of
flows are from creation to delivery.</p>"""


def _charts(run: RunTables, drawn: Sequence[Drawn]) -> str:
    """Where the script draws, and what a reader should know of the charts."""
    drawn = [one for one in drawn if one.panels.over_time or one.panels.distributions]
    if not drawn:
        return ""
    links = ""
    if run.scenario.is_network:
        more = len(run.scenario.links) - len(drawn)
        left_out = f" {more:,} more links, which lost and sent less, are not drawn." if more else ""
        links = f"""<h2>Links</h2>{table_of(link_rows(run, MOST_ROWS + 1), "link", LINK_COLUMNS)}
<p class="below">The charts show one link, which you choose above them.{left_out}</p>"""
    return f"""<noscript><p class="warning">The charts need JavaScript, which is off. The tables below need none, and
the command <code>linkweir report DIR --figures svg</code> draws the charts as files.</p></noscript>
{links}<div id="legend" class="legend"></div>
<h2>Over time</h2><p class="below">{_hints(run, [one.panels for one in drawn])}</p>
<div id="over-time"></div>
<section hidden><h2>Distributions of delay</h2><div id="distributions"></div></section>"""


def _hints(run: RunTables, drawn: Sequence[Panels]) -> str:
    scenario = run.scenario
    step = max(panels.step for panels in drawn)
    classes = max(len(panels.classes) + panels.left_out for panels in drawn)
    left_out = sum(panels.left_out for panels in drawn)
    hints = ["Drag over a chart to zoom all charts over time; double-click to see the whole run."]
    if 0 < scenario.warmup_s < run.simulated_s:
        hints.append(f"Shaded: the warm-up, 0 to {scenario.warmup_s:g} s, which totals leave out.")
    if step > 1:
        intervals = f"{step:,} intervals of {scenario.interval_s:g} s"
        hints.append(f"To keep this page small, each point is the mean of {intervals}; results/ has them all.")
    else:
        hints.append(f"Each point is the mean of an interval of {scenario.interval_s:g} s.")
    if classes > SHOWN:
        hints.append(f"The legend begins with the classes that sent most; the first {SHOWN} are shown.")
    if left_out:
        hints.append(f"{left_out:,} more classes, which sent least, are not drawn.")
    return html.escape(" ".join(hints))


def _tables(run: RunTables) -> str:
    parts = [f"<h2>Classes</h2>{class_table(run)}"]
    if run.table("delays").num_rows:
        parts.append(f"<h2>Delays</h2>{delay_table(run)}")
    if "terminals" in run.tables:
        parts.append(f"<h2>Terminals</h2>{table_of(rows_of(run, 'terminals'), 'class', TERMINAL_COLUMNS)}")
    if "voice" in run.tables:
        parts.append(f"""<h2>Calls</h2>{table_of(voice_rows(run), "call", VOICE_COLUMNS)}
<p class="below">MOS is the E-model's (ITU-T G.107) in intervals of 10 s, each with the play-out delay and the codec's,
the loss on the way and in the buffer, and BurstR of its gaps.</p>""")
    if "completions" in run.tables:
        parts.append(f"<h2>Completion times</h2>{table_of(rows_of(run, 'completions'), 'flow', COMPLETION_COLUMNS)}")
    if "video" in run.tables:
        parts.append(f"<h2>Video</h2>{table_of(rows_of(run, 'video'), 'flow', VIDEO_COLUMNS)}")
    parts.append(f"<h2>Flows</h2>{table_of(rows_of(run, 'flows'), 'flow', FLOW_COLUMNS)}")
    if "hops" in run.tables:
        parts.append(f"<h2>Flows on each link</h2>{table_of(hop_rows(run), 'hop', HOP_COLUMNS)}")
    return "\n".join(parts)


def _provenance(directory: Path) -> str:
    keys = ("linkweir", "commit", "seed", "scenario_sha256", "platform", "python", "pyarrow", "inputs")
    return html_page.table([], html_page.facts(read_provenance(directory), {key: key for key in keys}))
