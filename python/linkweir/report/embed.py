# SPDX-License-Identifier: BSD-3-Clause
"""What a report carries so that its charts need no other file: the panels as JSON, styles and scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from linkweir.panels import Panel, Selection
from linkweir.tables.run_tables import RunTables

if TYPE_CHECKING:
    from linkweir.tables.outline import Values

_DIGITS = 4
"""Significant digits of values, more than a chart can show."""
_TIME_DIGITS = 7
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses to fetch anything."""


def head() -> str:
    """What the head of a page with charts holds, as HTML."""
    return (
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_file('uPlot.min.css')}\n{_file('report.css')}</style>"
    )


@dataclass(frozen=True)
class Drawn:
    """The charts of a run over one link, or of one link of a network.

    Attributes:
        link: its name; empty for the one link of a run.
        selection: which classes are drawn.
        over_time: the panels over the time of the run.
        distributions: those of delays.
    """

    link: str
    selection: Selection
    over_time: Sequence[Panel]
    distributions: Sequence[Panel]


def scripts(run: RunTables, drawn: Sequence[Drawn], shown: int) -> str:
    """The charts of a page, as HTML at its end.

    Args:
        run: the run.
        drawn: its charts, of each link that is drawn.
        shown: how many classes of a link are visible at first.
    """
    about = {"shown": shown, "warmup": min(run.scenario.warmup_s, run.simulated_s)}
    if run.scenario.is_network:
        embedded = about | {"links": [{"name": one.link} | _charts(one) for one in drawn]}
    else:
        embedded = about | _charts(drawn[0])
    data = json.dumps(embedded, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (
        f'<script type="application/json" id="data">{_safe(data)}</script>\n'
        f"<script>{_file('uPlot.notice.js')}{_file('uPlot.iife.min.js')}</script>\n<script>{_file('report.js')}</script>"
    )


def _charts(drawn: Drawn) -> dict[str, Any]:
    panels = (*drawn.over_time, *drawn.distributions)
    return {
        "classes": list(drawn.selection.classes),
        "panels": [_panel(panel, drawn.selection) for panel in panels],
    }


def _file(name: str) -> str:
    return (resources.files("linkweir.report") / name).read_text(encoding="utf-8")


def _safe(data: str) -> str:
    """JSON that cannot end the element it is in: a class may be called ``</script>``."""
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _panel(panel: Panel, selection: Selection) -> dict[str, Any]:
    places = {name: place for place, name in enumerate(selection.classes)}
    return {
        "name": panel.name,
        "title": panel.title,
        "note": panel.note,
        "xLabel": panel.x_label,
        "yLabel": panel.y_label,
        "overTime": panel.over_time,
        "steps": panel.steps,
        "logX": panel.log_x,
        "logY": panel.log_y,
        "yRange": panel.y_range,
        "fromZero": panel.from_zero,
        "x": list(_numbers(panel.x, _TIME_DIGITS)),
        "lines": [
            {
                "label": line.label,
                "of": places.get(line.of or ""),
                "look": line.look,
                "off": line.off,
                "turn": line.turn,
                "y": _values(line.y),
            }
            for line in panel.lines
        ],
    }


def _values(values: Values) -> float | list[float | None] | None:
    """The values of a line; of one that never changes its value alone."""
    found = list(_numbers(values, _DIGITS))
    return found[0] if len(set(found)) == 1 else found


def _numbers(values: Iterable[float], digits: int) -> Iterable[float | None]:
    """Numbers with few digits; none where there is no value."""
    for value in values:
        if not math.isfinite(value):
            yield None
            continue
        short = float(f"{value:.{digits}g}")
        yield int(short) if short.is_integer() else short
