# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of drr."""

FILES = {"few": 1, "one": 1, "some": 1, "wide": 1, "restless": 2, "steady": 1, "slow": 1, "fast": 1}


def some_queue(random):
    values = {
        "quantum": random.choice([300, 1000, 1514, 3000, random.between(200, 9000), random.magnitude(100, 2**20 - 1)])
    }
    if random.chance(40):
        values["level"] = random.choice([0, 1, 63, random.below(64)])
    return values


def values(random, profile):
    return {}, {q: some_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def change(random, plane):
    return {}, {random.below(len(plane.qparams)): some_queue(random)}
