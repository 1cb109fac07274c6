# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir view`."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from linkweir.commands.present import emit, say
from linkweir.directories.provenance import REPORT, kind_of, read_provenance
from linkweir.fault import DirectoryError

app = typer.Typer(add_completion=False)


@app.command()
def view(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of a run, a sweep, a comparison or a reproduction.")
    ],
) -> None:
    """Open the report of a run, a sweep or a comparison in the browser."""
    report = _report(directory).resolve()
    emit(f"report: {report}\n")
    if not _has_screen():
        say(
            "linkweir: there is no screen here for a browser. The report is one file that needs no other; "
            + _ways(report)
        )
    elif not webbrowser.open(report.as_uri()):
        say("linkweir: no browser was found. The report is one file that needs no other; " + _ways(report))


def _report(directory: Path) -> Path:
    """The report in a directory of results.

    Raises:
        DirectoryError: it is no such directory, or has no report.
    """
    provenance = read_provenance(directory, kind_of(directory))
    report = directory / REPORT
    if report.is_file():
        return report
    if provenance["status"] == "running":
        raise DirectoryError(f"{directory}: has no report yet: its run is still running or was killed")
    again = shlex.join(["linkweir", "report", str(directory)])
    raise DirectoryError(f"{directory}: has no {REPORT}; {again} writes it")


def _has_screen() -> bool:
    """Whether a browser can open a window; browsers of terminals draw no charts."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _ways(report: Path) -> str:
    """How a reader on another machine gets the report."""
    host = socket.gethostname()
    folder, port = shlex.quote(str(report.parent)), 8000
    return (
        f"on the machine that has a screen, copy it\n"
        f"  scp {shlex.quote(f'{host}:{report}')} .\n"
        f"or serve it here, with {port} forwarded by ssh -L {port}:127.0.0.1:{port} {host}, "
        f"and open http://127.0.0.1:{port}/{report.name}\n"
        f"  python3 -m http.server --bind 127.0.0.1 --directory {folder} {port}"
    )
