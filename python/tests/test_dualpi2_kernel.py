# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts of dualpi2 compared with those of Linux's sch_dualpi2, where its sources are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command import REPOSITORY

SCRIPT = REPOSITORY / "lab/dualpi2/compare_dualpi2.py"


@pytest.mark.long
def test_every_verdict_is_that_of_linux() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--packets", "100000"], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    assert all(line.endswith("| the same |") for line in rows)
    assert "NOT NOTICED" not in done.stdout
