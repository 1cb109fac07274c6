# SPDX-License-Identifier: BSD-3-Clause
"""Draws README.md's picture of a fade, and two plots of the results: what PSS is for, and how long simulators take.

`make pictures` runs it. The first two are measured now. The third takes its times from docs/records/bench.md, which
says how they were measured.

    .venv/bin/python docs/pictures/readme.py
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.figure import Figure

import draw as drawing
import gallery
import linkweir
from linkweir.panels.plot import STYLE
from linkweir.reproduce.compact import compact
from linkweir.reproduce.papers import pss

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGES = REPOSITORY / "docs/images"
BENCH = REPOSITORY / "docs/records/bench.md"

COLOURS = {"pss": "#0072b2", "dwrr": "#d55e00"}
NAMES = {"pss": "PSS", "dwrr": "DWRR"}
K_AF = 0.5
EXPECTED_SHARE = 0.5
"""Of Figure 6: EF is expected to take half of the link, and AF gets half of the rest."""
LOADS_MBPS = tuple(range(1, 20))
OF_THE_FIGURE = tuple(share * pss.LINK_BPS / 1e6 for share in pss.SHARES)
RUN_S = 100.0
SIMULATORS = {"linkweir": "Linkweir", "ns-2": "ns-2", "ns-3": "ns-3"}
SIZE_INCHES = (4.6, 2.7)
FADE = "fade"
"""The gallery's scenario that README.md begins with."""
FADE_INCHES = (5.2, 4.4)


def main() -> None:
    """Writes all pictures."""
    drawing.write(IMAGES / f"{FADE}.svg", fade().panels, FADE_INCHES, stacked=True)
    draw("figure-6", protection, SIZE_INCHES)
    draw("speed", speed, SIZE_INCHES)


def draw(name: str, content: object, size: tuple[float, float]) -> None:
    """Writes one SVG with a white ground, readable on a dark page too."""
    with rc_context(STYLE | {"figure.facecolor": "white", "font.size": 9.5}):
        figure = Figure(figsize=size, layout="constrained")
        content(figure.add_subplot())  # type: ignore[operator]
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(compact(text[text.index("<svg") :]))


def fade() -> gallery.Seen:
    """The runs of a fade under three policies."""
    return gallery.look(next(entry for entry in gallery.entries() if entry.name == FADE))


# --- What PSS is for ------------------------------------------------------------------------------------------------


def af_rate_mbps(scheduler: str, ef_mbps: float) -> float:
    """What AF gets in Figure 6's scenario when EF sends so much."""
    memory_s = dict(pss.FIXED)[scheduler]
    point = pss.Point(scheduler, ef_mbps * 1e6 / pss.LINK_BPS, EXPECTED_SHARE, K_AF, memory_s, changing=False)
    scenario = pss.scenario(point, pss.PssOptions(traffic="backlogged"), RUN_S)
    rows = linkweir.run(scenario).classes.to_pylist()
    return next(row["rate_bps"] for row in rows if row["class"] == "af") / 1e6


def protection(axes: Axes) -> None:
    """AF's rate over EF's load, under both schedulers."""
    for scheduler, colour in COLOURS.items():
        rates = {load: af_rate_mbps(scheduler, load) for load in LOADS_MBPS}
        axes.plot(list(rates), list(rates.values()), color=colour, linewidth=2)
        marked = [af_rate_mbps(scheduler, load) for load in OF_THE_FIGURE]
        axes.plot(OF_THE_FIGURE, marked, "o", color=colour, markersize=5)
        axes.annotate(
            NAMES[scheduler],
            (3, rates[3]),
            (4, 5) if scheduler == "dwrr" else (0, -14),
            textcoords="offset points",
            color=colour,
            weight="bold",
        )
    axes.set(
        xlabel="EF sends (Mbit/s)",
        ylabel="AF gets (Mbit/s)",
        title="AF was promised 5 of 20 Mbit/s",
        xlim=(0, 20),
        ylim=(0, 10),
        xticks=range(0, 21, 5),
    )


# --- How long the simulators take -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timed:
    """One row of the comparison."""

    simulator: str
    wall_s: float
    times: float


def timed(case: str) -> Iterator[Timed]:
    """The rows of a case on the hop that is the same in all simulators."""
    text = BENCH.read_text()
    table = text[text.index(f"### {case}:") :]
    for line in table[: table.index("\n* ns-2")].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in SIMULATORS and cells[1] == "routers":
            yield Timed(cells[0], float(cells[2]), float(cells[11]))


def speed(axes: Axes) -> None:
    """A bar per simulator; time is proportional to its length."""
    rows = list(timed("many"))
    colours = ("#0072b2", "#999999", "#999999")
    axes.barh([SIMULATORS[row.simulator] for row in rows], [row.wall_s for row in rows], color=colours, height=0.6)
    longest = max(row.wall_s for row in rows)
    for at, row in enumerate(rows):
        text = f"{row.wall_s:.2f} s" + ("" if row.times == 1 else f", {row.times:.2g} times as long")
        inside = row.wall_s > longest / 2
        axes.annotate(
            text,
            (row.wall_s, at),
            (-5 if inside else 5, 0),
            textcoords="offset points",
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
        )
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(left=False, bottom=False, labelbottom=False)
    axes.set(title="Time for 100 s of 100 TCP flows at 50 Mbit/s")


if __name__ == "__main__":
    main()
