# SPDX-License-Identifier: BSD-3-Clause
"""Runs the notebooks and compares what they print with what is kept in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from command import REPOSITORY
from test_docs import anchors

FOLDER = REPOSITORY / "docs/notebooks"
PROGRAM = FOLDER / "execute.py"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000
ALONE = {"own-scheduler"}
"""Fit to be copied next to a user: they link to no page of the repository."""

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def check(name: str, folder: Path, *, program: Path = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Runs a notebook; files that stay behind if it is killed are in the folder."""
    words = [sys.executable, str(program), "--check", name]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, env=environment)


def links(notebook: nbformat.NotebookNode) -> list[str]:
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return [link for text in texts for link in re.findall(r"\]\(([^)\s]+)\)", text)]


@pytest.mark.slow
@notebooks
def test_a_notebook_shows_what_it_shows_when_it_runs(path: Path, tmp_path: Path) -> None:
    done = check(path.stem, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_fault_and_another_output_are_found(tmp_path: Path) -> None:
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text())
    cell = nbformat.v4.new_code_cell("print(6 * 7)", id="one")
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="42\n")]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "same.ipynb")
    cell.outputs[0].text = "41\n"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "other.ipynb")
    cell.source = "1 / 0"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "fault.ipynb")
    assert check("same", tmp_path, program=program).returncode == 0
    other = check("other", tmp_path, program=program)
    assert other.returncode == 1
    assert {"-stdout: 41", "+stdout: 42"} <= set(other.stderr.splitlines())
    fault = check("fault", tmp_path, program=program)
    assert fault.returncode == 1
    assert "ZeroDivisionError" in fault.stderr


@notebooks
def test_a_notebook_is_kept_small_with_its_figures_and_without_traces_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < MOST_BYTES
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.get("name") for output in outputs} <= {"stdout", None}
    pictured = [cell for cell in code if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    assert len(pictured) >= 2
    for cell in pictured:
        assert cell.metadata["mystnb"]["image"]["alt"], cell.id
    shown = re.sub(r'"image/png": "[^"]*"', "", text)
    for trace in (str(REPOSITORY), str(Path.home()), "/tmp/", "\\u001b"):
        assert trace not in shown


@notebooks
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    found = links(nbformat.read(path, as_version=4))
    assert bool(found) == (path.stem not in ALONE)
    for link in found:
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve()
        assert page.suffix == ".md", link
        assert page.exists(), link
        assert not anchor or anchor in anchors(page), link
