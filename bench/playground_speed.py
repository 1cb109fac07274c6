#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long the playground and reports with knobs take in Chromium: to the first picture, and from slider to picture.

Needs `make playground`, which makes the site and puts the simulator into the package, and chromium. The site comes from
a server on this machine, without the browser's cache. A picture counts when the frame with it has been drawn.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python/tests"), str(ROOT / "docs/site")]

import check  # noqa: E402
from browser import MISSING, PROGRAM, Browser  # noqa: E402

PAGE = "docs/playground.html"
PIECES = {
    "memory": "piece=memory&memory=2s",
    "voice, PSS": "piece=voice&policy=pss&voice=10Mbit",
    "voice, DWRR": "piece=voice&policy=drr&voice=10Mbit",
    "voice, strict": "piece=voice&policy=strict&voice=10Mbit",
    "overload": "piece=overload&load=13.5Mbit",
    "timeout": "piece=timeout&timeout=100ms&vehicles=84",
    "trace": "piece=trace&memory=10s",
}
REPORTS = ("pss-fade", "geo")
FIRST_SLIDER, MEMORY = "#knobs input[type=range]", "#knobs [data-key='class.af.memory'] input"
FIRST_MS, SLIDER_MS = 2000, 150
DRAWN = "/simulated in/.test(document.querySelector('#knobs .state')?.textContent)"
# from the beginning of the load to the frame after the one that was drawn with the charts
FIRST = f"""window.firstPicture = new Promise((resolve) => {{
  const look = () => requestAnimationFrame({DRAWN} ? () => resolve(performance.now()) : look);
  look();
  setTimeout(resolve, 60000, null);
}});"""
# the slider goes to a place that it was not at, by the same event as a finger's
SLIDER = f"""(async () => {{
  const slider = document.querySelector(SELECTOR);
  const places = Number(slider.max) + 1;
  document.querySelector("#knobs .state").textContent = "";
  const begun = performance.now();
  slider.value = (Number(slider.value) + 1 + Math.floor(places * 0.382)) % places;
  slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  while (!{DRAWN} && document.querySelector("#knobs .fault").hidden) await frame();
  await frame();
  return {DRAWN} ? performance.now() - begun : null;
}})()"""
IDLE = "new Promise((resolve) => setTimeout(resolve, 100))"


@dataclass(frozen=True)
class Row:
    """What was measured of a page, ms; `refused` counts places of the slider that are faults, which have no picture."""

    page: str
    first_ms: list[float]
    slider_ms: list[float]
    refused: int

    @property
    def cells(self) -> list[str]:
        shown = [self.page]
        for values in (self.first_ms, self.slider_ms):
            shown += [report.cell(statistics.median(values), 0), f"{min(values):.0f} to {max(values):.0f}"]
        return [*shown, str(self.refused)]

    @property
    def verdicts(self) -> list[str]:
        both = (("first picture", self.first_ms, FIRST_MS), ("slider to picture", self.slider_ms, SLIDER_MS))
        return [
            f"{self.page}: {what} within {most} ms: {report.verdict(statistics.median(values) <= most)}"
            for what, values, most in both
        ]


def measured(browser: Browser, page: str, address: str, selector: str, times: int) -> Row:
    """Loads a page so many times, then moves a slider until it gave so many pictures."""
    first: list[float] = []
    for _ in range(times):
        browser.open("about:blank")
        browser.value(IDLE)
        browser.open(address)
        first.append(
            browser.value("window.firstPicture") or sys.exit(f"playground_speed.py: {page}: no picture in a minute")
        )
    slider: list[float] = []
    refused = 0
    while len(slider) < times and refused <= times:
        browser.value(IDLE)
        took = browser.value(SLIDER.replace("SELECTOR", json.dumps(selector)))
        if took is None:
            refused += 1
        else:
            slider.append(took)
    if len(slider) < times:
        sys.exit(f"playground_speed.py: {page}: the simulator refuses {refused} places of the slider")
    return Row(page, first, slider, refused)


def reports(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Reports with knobs, their addresses, and the slider to move."""
    for name in REPORTS:
        out = folder / name
        for words in (["run", ROOT / f"scenarios/{name}.toml", "--out", out], ["report", out, "--knobs"]):
            command = [sys.executable, "-m", "linkweir", *map(str, words)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"playground_speed.py: {done.stderr.strip()}")
        yield f"report of {name}", (out / "report.html").as_uri(), MEMORY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "build/site", help="default: build/site")
    parser.add_argument("--times", type=report.within(int, 1, 1000), default=20, help="default: 20")
    options = report.options_of(parser)
    if PROGRAM is None:
        sys.exit(f"playground_speed.py: {MISSING}")
    data = next(options.site.rglob("playground-data.js"), None)
    if not (options.site / PAGE).is_file() or data is None or re.search(r'"module": null', data.read_text()):
        sys.exit(f"playground_speed.py: {options.site} has no playground with a simulator: make playground")
    rows = []
    with tempfile.TemporaryDirectory() as folder, check.served(options.site) as root, Browser() as browser:
        browser.ask("Network.setCacheDisabled", cacheDisabled=True)
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=FIRST)
        pieces = [(name, f"{root}{PAGE}#{knobs}", FIRST_SLIDER) for name, knobs in PIECES.items()]
        for page in (*pieces, *reports(Path(folder))):
            rows.append(measured(browser, *page, options.times))
            print(json.dumps([rows[-1].page, *rows[-1].cells[1:]]), file=sys.stderr, flush=True)
    columns = ["page", "first picture, ms", "range", "slider to picture, ms", "range", "refused"]
    answer = [vars(row) for row in rows]
    report.write(
        options,
        answer,
        lambda markdown: report.table(
            columns,
            [row.cells for row in rows],
            [sentence for row in rows for sentence in row.verdicts],
            markdown=markdown,
        ),
    )


if __name__ == "__main__":
    main()
