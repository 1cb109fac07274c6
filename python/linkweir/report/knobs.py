# SPDX-License-Identifier: BSD-3-Clause
"""What a report with knobs brings along: the simulator as WebAssembly, and the run's scenario with its files."""

from __future__ import annotations

import base64
import gzip
import json
from importlib import resources
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.directories.provenance import PROVENANCE, SCENARIO, read_provenance
from linkweir.fault import DirectoryError, unfit
from linkweir.report import embed
from linkweir.tables.run_tables import RunTables

MODULE = "simulator.wasm.gz"
"""The compiled crate `linkweir-web`, which is not in git; docs/site/playground.py makes it."""
SOURCES = "simulator.wasm.sources"
"""Beside it, the hash of the sources that it was compiled from."""
MOST_INPUT_BYTES = 2_000_000
"""Of all files of a scenario together, in base85 of gzip, as the page has them."""
_SCRIPTS = ("simulator.js", "shown.js", "knobs.js")
PLACE = """<h2>Knobs</h2><p class="below">Each runs the scenario again in this page; nothing leaves your computer.
The charts follow, but not of more than 50 links; the tables below them do not.</p><div id="knobs"></div>"""
"""Where the script puts the knobs, as HTML."""


def refuse(run: RunTables, directory: Path) -> None:
    """Refuses a run that a browser cannot repeat.

    Args:
        run: the run.
        directory: its directory.

    Raises:
        ScenarioError: it has a policy of the user's own.
        DirectoryError: it was measured or interrupted, its files are too large for a page, or this package has no
            simulator for browsers, or one of other sources.
    """
    host = read_provenance(directory).get("on")
    if host is not None:
        raise DirectoryError(
            f"{directory}: was measured in the laboratory ({PROVENANCE}: on = {host}), and a page only has the "
            "simulator; write its report without --knobs, or simulate its scenario with linkweir run"
        )
    if run.status != "complete":
        raise DirectoryError(
            f"{directory}: the run was interrupted at {run.simulated_s:g} s of {run.scenario.duration_s:g} s, and a "
            "page would repeat all of it; run its scenario to the end, or write its report without --knobs"
        )
    written = run.scenario.native.written()
    links = _tables(written.get("link"))
    for before, above in [("", written), *((f"link.{link['name']}.", link) for link in links)]:
        policy = above.get("scheduler", {}).get("policy")
        if isinstance(policy, dict):
            raise unfit(
                f"{before}scheduler.policy",
                json.dumps(policy),
                "is a policy of your own, and a browser has neither a compiler nor Python; "
                "write the report without --knobs, or run the scenario with a policy that linkweir policies lists",
            )
    sizes = {name: len(_packed(content)) for name, _, content in run.scenario.inputs}
    if sum(sizes.values()) > MOST_INPUT_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise DirectoryError(
            f"{directory}: the scenario's files have {sum(sizes.values()) / 1e6:.1f} MB as a page brings them along, "
            f"of which {largest} has {sizes[largest] / 1e6:.1f} MB; a report with knobs takes at most "
            f"{MOST_INPUT_BYTES / 1e6:.0f} MB; write it without --knobs, or shorten the files"
        )
    if not _module().is_file():
        raise DirectoryError(
            f"{_module()}: is missing, as this package was built without the simulator for browsers, which --knobs "
            "needs; install the wheel of a release, which has it, or build this package after `make playground` in "
            "Linkweir's sources, which compiles it"
        )
    noted = _module().with_name(SOURCES)
    sources = noted.read_text(encoding="utf-8").strip() if noted.is_file() else "unknown"
    if sources != _native.sources:
        raise DirectoryError(
            f"{_module()}: was compiled from other sources ({sources}) than this package ({_native.sources}); in "
            "Linkweir's sources compile it again with `make playground`, then build the package"
        )


def as_text(content: bytes) -> str:
    """Bytes as simulator.js reads them: base85, with a comma for the one digit that means something in HTML."""
    return base64.b85encode(content).decode().replace("<", ",")


def head() -> str:
    """The style of knobs, as HTML."""
    return f"<style>{_file('knobs.css')}</style>"


def scripts(run: RunTables, directory: Path, points: int) -> str:
    """What the knobs take, as HTML at the end of the page.

    Args:
        run: a run that `refuse` accepts.
        directory: its directory.
        points: how many points a line over time has at most.
    """
    rows = run.table("classes").to_pylist()
    brought: dict[str, Any] = {
        "module": as_text(_module().read_bytes()),
        "file": f"{directory.resolve().name}/{SCENARIO}",
        "text": (directory / SCENARIO).read_text(encoding="utf-8"),
        "files": {name: _packed(content) for name, _, content in run.scenario.inputs},
        "classes": {_name(row): {key: row[key] for key in ("sent_bytes", "rate_bps")} for row in rows},
        "points": points,
        "events": read_provenance(directory)["events"],
    }
    data = json.dumps(brought, ensure_ascii=False).replace("<", "\\u003c")
    loaded = "\n".join(f"<script>{embed.short(_file(name))}</script>" for name in _SCRIPTS)
    return f'<script type="application/json" id="brought">{data}</script>\n{loaded}'


def _name(row: dict[str, Any]) -> str:
    return f"{row['link']}: {row['class']}" if "link" in row else str(row["class"])


def _tables(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else []


def _packed(content: bytes) -> str:
    return as_text(gzip.compress(content, 9, mtime=0))


def _module() -> Path:
    return Path(str(resources.files("linkweir.report") / MODULE))


def _file(name: str) -> str:
    return (resources.files("linkweir.report") / name).read_text(encoding="utf-8")
