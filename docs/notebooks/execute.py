# SPDX-License-Identifier: BSD-3-Clause
"""Runs the notebooks of this folder from top to bottom and keeps what they show. `make notebooks` runs it.

    .venv/bin/python docs/notebooks/execute.py                    # all of them, and writes them
    .venv/bin/python docs/notebooks/execute.py --check pss-memory # compares the text; writes nothing

Each runs in an empty folder, with the settings of no user.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
MOST_S = 180
"""Of real time, for a notebook."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def main() -> int:
    """Exit code 1: a notebook shows something else than what is kept."""
    parser = argparse.ArgumentParser(description="Run the notebooks.")
    parser.add_argument("names", nargs="*", help="notebooks, without .ipynb; all unless given")
    parser.add_argument("--check", action="store_true", help="compare the text with what is kept, and write nothing")
    options = parser.parse_args()
    paths = [FOLDER / f"{name}.ipynb" for name in options.names] or sorted(FOLDER.glob("*.ipynb"))
    differences = []
    for path in paths:
        kept = nbformat.read(path, as_version=4)
        run = executed(kept)
        if options.check:
            differences += difflib.unified_diff(shown(kept), shown(run), f"{path.name}, kept", f"{path.name}, run", "")
        else:
            nbformat.write(run, path)
            print(f"{path.name}: {path.stat().st_size // 1000} kB")
    print(*differences, sep="\n", end="\n" if differences else "", file=sys.stderr)
    return 1 if differences else 0


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy of a notebook with what its cells show now.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    copy = nbformat.from_dict(notebook)
    copy.metadata = nbformat.from_dict(METADATA)
    with tempfile.TemporaryDirectory() as scratch:
        settings = {name: f"{scratch}/{name}" for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ.update(settings, PATH=path, JUPYTER_RUNTIME_DIR=f"{scratch}/runtime", COLUMNS="100")
        os.environ.pop("MPLBACKEND", None)
        work = Path(scratch, "work")
        work.mkdir()
        client = NotebookClient(
            copy,
            timeout=MOST_S,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(work)}},
        )
        client.execute()
    return copy


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """The lines that the cells of a notebook print, and which of them show a picture."""
    lines = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        lines.append(f"cell {cell.id}:")
        for output in cell.outputs:
            if output.output_type == "stream":
                lines += [f"{output.name}: {line}" for line in output.text.splitlines()]
            else:
                lines += sorted(f"a picture: {kind}" for kind in output.data if kind.startswith("image/"))
                lines += output.data.get("text/plain", "").splitlines()
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
