# SPDX-License-Identifier: BSD-3-Clause
"""Takes the picture of a report in docs/reference/report.md: docs/images/report.png.

The cursor is at an instant at which the link is nearly down.

    .venv/bin/python docs/pictures/report.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import linkweir

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs/images/report.png"
SIZE = (960, 920)
CURSOR = (0.44, 0.5)
"""Where the cursor is in the chart of rates, as parts of its width and height."""


def main() -> None:
    """Runs the scenario and keeps the picture."""
    sys.path.insert(0, str(REPOSITORY / "python/tests"))
    from browser import MISSING, PROGRAM, Browser

    if PROGRAM is None:
        sys.exit(f"pictures: docs/images/report.png is left as it is: {MISSING}")
    with tempfile.TemporaryDirectory(prefix="linkweir-") as folder, Browser(size=SIZE) as page:
        out = Path(folder) / "run"
        linkweir.run(REPOSITORY / "scenarios/lte-drive.toml", out=out)
        page.open((out / "report.html").as_uri())
        box = page.value(
            """(() => {
              document.getElementById("legend").scrollIntoView();
              const chart = document.querySelector('[data-panel="rates"] .u-over');
              const { x, y, width, height } = chart.getBoundingClientRect();
              return [x, y, width, height];
            })()"""
        )
        x, y = (box[at] + box[at + 2] * CURSOR[at] for at in (0, 1))
        for place in (x - 1, x):
            page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=place, y=y)
        PICTURE.write_bytes(page.screenshot())


if __name__ == "__main__":
    main()
