# SPDX-License-Identifier: BSD-3-Clause
"""What a notebook shows of a result, asked of IPython itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import SMALL
from IPython.core.interactiveshell import InteractiveShell

import linkweir
from linkweir import Result, Scenario

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def result() -> Result:
    return linkweir.run(Scenario.parse(SMALL))


@pytest.mark.slow
def test_a_plot_is_shown_as_a_picture(result: Result) -> None:
    formatter = InteractiveShell.instance().display_formatter
    shown, _ = formatter.format(result.plot())
    assert shown["image/png"].startswith(PNG)
    table, _ = formatter.format(result)
    assert "<table>" in table["text/html"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["", "%matplotlib inline"])
def test_a_cell_that_ends_with_a_plot_displays_it_once(backend: str, tmp_path: Path) -> None:
    """In a process of its own, as a notebook's kernel is: the backend is for good."""
    (tmp_path / "small.toml").write_text(SMALL)
    cells = f"""
from IPython.core.interactiveshell import InteractiveShell

class Shell(InteractiveShell):
    def enable_gui(self, gui=None):
        pass  # there is no window, as in a kernel

shell = Shell.instance()
shell.run_cell({backend!r})
shell.run_cell("import linkweir; result = linkweir.run('small.toml')").raise_error()
shell.run_cell("%%capture shown\\nresult.plot()").raise_error()
print("pictures:", sum("image/png" in output.data for output in shell.user_ns["shown"].outputs))
"""
    done = subprocess.run([sys.executable, "-c", cells], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "pictures: 1", done
