# SPDX-License-Identifier: BSD-3-Clause
"""Levels of urgency for random lives."""


def some_level(random):
    return random.choice([random.below(8), random.below(64), random.below(65536)])
