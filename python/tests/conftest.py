# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from pathlib import Path

import command
import pytest


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file that runs in milliseconds."""
    path = tmp_path / "small.toml"
    path.write_text(command.SMALL)
    return path
