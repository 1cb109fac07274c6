# SPDX-License-Identifier: BSD-3-Clause
"""Takes the picture of the gateway's live page in README.md, as root: docs/images/live.png.

Two gateways and an emulated link run in network namespaces for two minutes, as `linkweir lab run --on gateway` runs
them. Next to them the page is served and opened in Chromium. It shows what real gateways did while the capacity of the
link fell.

    cargo build --release -p linkweir-gateway
    sudo .venv/bin/python docs/pictures/live_page.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from linkweir.lab import namespaces
from linkweir.lab.tunnel import tunnel
from linkweir.scenarios.scenario import as_scenario

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs/images/live.png"
SIZE = (960, 700)
WATCHED_S = 100
"""How long the page is open; it draws what it has seen itself."""
SCENARIO = {
    "name": "a link that fades",
    "duration": "110s",
    "interval": "1s",
    "link": {
        "rate": {"steps": [["0s", "20Mbit"], ["55s", "9Mbit"], ["80s", "16Mbit"]]},
        "delay": "15ms",
    },
    "scheduler": {"policy": "pss"},
    "class": [
        {"name": "ef", "level": 0, "limit": "100p"},
        {"name": "af", "level": 1, "low_level": 3, "rate": "5Mbit", "memory": "5s", "limit": "100p"},
        {"name": "cs0", "level": 2, "limit": "100p"},
    ],
    "flow": [
        {"class": "ef", "kind": "cbr", "rate": "3Mbit", "packet": "1000B"},
        {"class": "af", "kind": "tcp", "cc": "cubic", "count": 4},
        {"class": "cs0", "kind": "tcp", "cc": "cubic", "count": 4},
    ],
}
BEFORE = "workload say asks | now & asking=$!"
SERVE_AND_LOOK = f"""\
ip link set lo up
linkweir-gateway page --control sender.sock & page=$!
{sys.executable} {Path(__file__).resolve()} inside $OUT/live.png & looking=$!
"""
END = "for job in $jobs; do wait $job; done\n"


def main() -> None:
    """Runs the gateways and keeps the picture."""
    with tempfile.TemporaryDirectory(prefix="linkweir-") as folder:
        tools = namespaces.prepare(namespaces.find_gateway(), Path(folder))
        scenario = as_scenario(SCENARIO)
        job = dict(tunnel(scenario).job)
        script = job["run"].decode()
        assert BEFORE in script
        assert END in script
        script = script.replace(BEFORE, SERVE_AND_LOOK + BEFORE)
        script = script.replace(END, f"{END}wait $looking\nkill $page\n")
        files = namespaces.start(tools, job | {"run": script.encode()}, scenario.duration_s)
    PICTURE.write_bytes(files["live.png"])


def look(into: Path) -> None:
    """Opens the page, waits, and takes the picture; runs inside the job's namespaces."""
    sys.path.insert(0, str(REPOSITORY / "python/tests"))
    from browser import Browser

    with Browser(size=SIZE) as page:
        page.open("http://127.0.0.1:9706/")
        page.value("(() => { span.value = '60'; span.dispatchEvent(new Event('change', {bubbles: true})); })()")
        time.sleep(WATCHED_S)
        into.write_bytes(page.screenshot())


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        look(Path(sys.argv[2]))
    else:
        main()
