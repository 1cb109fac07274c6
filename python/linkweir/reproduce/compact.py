# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of documents in fewer bytes: what matplotlib writes, without digits and words that no reader can see."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d+\.\d+")


def compact(svg: str) -> str:
    """The same picture in about half of the bytes.

    Positions are rounded to a tenth of a point, which no screen shows. What has no effect goes: metadata, names of
    groups, indentation, and a style that repeats the one of the mark it belongs to. Scales are left alone, as they
    multiply everything inside.

    >>> compact('<path d="M 1.234567 2 L 3.96 4.04 " style="fill: none"/>')
    '<path d="M1.2 2L4 4" style="fill: none"/>'
    """
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_path(path[1])}"', svg)
    svg = re.sub(r' ([xy])="([^"]*)"', lambda place: f' {place[1]}="{_rounded(place[2], 1)}"', svg)
    glyph = r'(<use xlink:href="#[^"]*") transform="translate\(([\d.]+) 0\)"/>'
    svg = re.sub(glyph, lambda use: f'{use[1]} x="{_rounded(use[2], 1)}"/>', svg)
    styles = dict(re.findall(r'<path id="(\w+)" d="[^"]*" style="([^"]*)"/>', svg))
    mark = r'(<use xlink:href="#(\w+)"[^>]*?) style="([^"]*)"/>'
    svg = re.sub(mark, lambda use: f"{use[1]}/>" if styles.get(use[2]) == use[3] else use[0], svg)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = svg.replace(" stroke-dashoffset: 0;", "").replace("DejaVuSans-", "g")
    return re.sub(r"^ +", "", svg, flags=re.MULTILINE)


def _rounded(text: str, digits: int) -> str:
    return _NUMBER.sub(lambda number: f"{float(number[0]):.{digits}f}".rstrip("0").rstrip("."), text)


def _path(text: str) -> str:
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", _rounded(text, 1)).strip()
