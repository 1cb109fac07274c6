# SPDX-License-Identifier: BSD-3-Clause
"""What a report carries so that its charts need no other file: the panels as JSON, styles and scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from linkweir.panels import SHOWN, Panels
from linkweir.tables.run_tables import RunTables

_POLICY = "default-src 'none'; script-src 'unsafe-inline'{more}; style-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses to fetch anything."""
_OF_KNOBS = " 'wasm-unsafe-eval'; worker-src blob:"
"""The simulator, and the worker that runs it, are made of what the page brings along."""


def head(*, knobs: bool = False) -> str:
    """What the head of a page with charts holds, as HTML.

    Args:
        knobs: whether the page runs the simulator.
    """
    policy = _POLICY.format(more=_OF_KNOBS if knobs else "")
    return (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{_file('uPlot.min.css')}\n{short(_file('report.css'))}</style>"
    )


@dataclass(frozen=True)
class Drawn:
    """The charts of a run over one link, or of one link of a network.

    Attributes:
        link: its name; empty for the one link of a run.
        panels: what is drawn of it.
        points: how many points a line over time has at most.
    """

    link: str
    panels: Panels
    points: int


def scripts(run: RunTables, drawn: Sequence[Drawn]) -> str:
    """The charts of a page, as HTML at its end.

    Args:
        run: the run.
        drawn: its charts, of each link that is drawn.
    """
    about = {"shown": SHOWN, "warmup": min(run.scenario.warmup_s, run.simulated_s)}
    parts = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in about.items()]
    if run.scenario.is_network:
        links = ",".join(f'{{"name":{_quoted(one.link)},{_charts(one.panels)}}}' for one in drawn)
        parts.append(f'"links":[{links}]')
    else:
        parts.append(_charts(drawn[0].panels))
    return (
        f'<script type="application/json" id="data">{{{",".join(parts)}}}</script>\n'
        f"<script>{_file('uPlot.notice.js')}{_file('uPlot.iife.min.js')}</script>\n<script>{short(_file('report.js'))}</script>"
    )


def short(script: str) -> str:
    """A script without indentation and comments on lines of their own; no text of ours has several lines."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and (not line.startswith("//") or "SPDX" in line))


def _charts(drawn: Panels) -> str:
    """The keys of what is drawn, in JSON."""
    classes = ",".join(map(_quoted, drawn.classes))
    panels = ",".join(panel.json for panel in (*drawn.over_time, *drawn.distributions))
    return f'"classes":[{classes}],"panels":[{panels}]'


def _file(name: str) -> str:
    return (resources.files("linkweir.report") / name).read_text(encoding="utf-8")


def _quoted(text: str) -> str:
    """A text as JSON that cannot end the element it is in: a class may be called ``</script>``."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
