# SPDX-License-Identifier: BSD-3-Clause
"""Waiting times for random lives."""

DAY_NS = 86_400 * 10**9


def some_wait(random, link_bps):
    """A plausible waiting time on a link of this capacity, in ns."""
    return random.choice([1, 3, 10, 30, 100]) * max(1, 12_000 * 10**9 // max(link_bps, 1000)) + random.below(3)
