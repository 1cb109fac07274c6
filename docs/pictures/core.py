# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/images/core.svg: the core and the hosts it runs in. `make pictures` runs it.

A new host is one line of HOSTS; a test compares the committed picture, and the words under it on every page.

    .venv/bin/python docs/pictures/core.py
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[2] / "docs/images/core.svg"


@dataclass(frozen=True)
class Host:
    """What runs the core: its name in the picture, what it is, and how a sentence names it."""

    name: str
    what: str
    phrase: str


HOSTS = (
    Host("Simulator", "Python, command line", "in the simulator"),
    Host("Tunnel gateway", "WireGuard protocol", "in the tunnel gateway"),
    Host("Linux qdiscs", "a kernel module, tc", "as Linux qdiscs"),
    Host("ns-3", "queue discs", "in ns-3"),
    Host("Laboratory", "a kernel in virtual time", "in the laboratory"),
)
CORE = ("one scheduler core", "C, integers, no I/O")
WIDTH, MARGIN, GAP = 460, 12, 24
HEIGHT, SPACE = 58, 14
"""Of a box, and between boxes; pixels."""
STYLE = """\
<style>
  text { fill: #1c2733; text-anchor: middle }
  .small { fill: #5a6875; font-size: 12.5px }
  .name { font-weight: bold; font-size: 15px }
  .host { fill: #ffffff; stroke: #5a6875 }
  .core { fill: #dbe9f6; stroke: #2b6cb0; stroke-width: 1.5 }
  .way { stroke: #2b6cb0; stroke-width: 1.5; fill: none }
</style>"""


def description() -> str:
    """What the picture shows, for those who cannot see it."""
    *others, last = (host.phrase for host in HOSTS)
    return f"One scheduler core in C runs {', '.join(others)} and {last}"


def box(kind: str, x: float, y: float, width: float, words: tuple[str, str]) -> str:
    """A rectangle with a name and a line below it."""
    middle = x + width / 2
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" rx="6"/>\n'
        f'<text class="name" x="{middle:g}" y="{y + 25:g}">{escape(words[0])}</text>\n'
        f'<text class="small" x="{middle:g}" y="{y + 45:g}">{escape(words[1])}</text>'
    )


def svg() -> str:
    """The picture: the core on top, two hosts a row below it, and a line from the core to each."""
    whole, half = WIDTH - 2 * MARGIN, (WIDTH - 2 * MARGIN - GAP) / 2
    boxes, ways = [box("core", MARGIN, MARGIN, whole, CORE)], []
    for number, host in enumerate(HOSTS):
        row, column = divmod(number, 2)
        y = MARGIN + (HEIGHT + SPACE) * (row + 1)
        alone = number == len(HOSTS) - 1 and column == 0
        x = MARGIN + (half / 2 + GAP / 2 if alone else column * (half + GAP))
        if alone:
            ways.append(f"M{WIDTH // 2} {MARGIN + HEIGHT} V{y}")
        else:
            ways.append(f"M{WIDTH // 2} {MARGIN + HEIGHT} V{y + HEIGHT // 2} H{x if column else x + half:g}")
        boxes.append(box("host", x, y, half, (host.name, host.what)))
    height = 2 * MARGIN + HEIGHT + -(-len(HOSTS) // 2) * (HEIGHT + SPACE)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'font-family="sans-serif" role="img">',
            f"<title>{escape(description())}</title>",
            STYLE,
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            f'<path class="way" d="{" ".join(ways)}"/>',
            *boxes,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(svg())
