# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of strict."""

from lives.levels import some_level

FILES = {"few": 1, "one": 1, "wide": 1, "restless": 1, "slow": 1}


def values(random, profile):
    levels = []
    while len(levels) < profile.nqueues:
        level = some_level(random)
        if level not in levels:
            levels.append(level)
    return {}, {q: {"level": level} for q, level in enumerate(levels) if not random.chance(10)}


def change(random, plane):
    return {}, {random.below(len(plane.qparams)): {"level": some_level(random)}}
