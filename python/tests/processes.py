# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], most_s: float = 60) -> None:
    """Waits until something holds; fails if that takes too long."""
    until = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
