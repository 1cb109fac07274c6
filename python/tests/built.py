# SPDX-License-Identifier: BSD-3-Clause
"""Programs of these sources, as Rust's tests build them: where those ran, nothing is compiled again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from command import REPOSITORY

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def program(name: str, test: str) -> Path:
    """A program. With a package alone, or as a program alone, its crates would be compiled with other options.

    Args:
        name: of the program.
        test: of its crate; cargo builds the program with it.
    """
    words = ("cargo", "test", "--locked", "--quiet", "--workspace", "--test", test, "--no-run")
    subprocess.run(words, cwd=REPOSITORY, check=True)
    return TARGET / "debug" / name
