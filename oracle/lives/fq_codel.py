# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of fq_codel."""

from lives import codel

FILES = {"few": 3, "one": 1, "some": 2, "wide": 1, "restless": 3, "steady": 2, "slow": 1, "fast": 1}
JUDGES = True


def some_params(random, link_bps):
    return codel.some_params(random, link_bps) | {
        "quantum": random.choice([1, 300, 1514, random.magnitude(1, 2**20 - 1)]),
        "limit": random.choice([1, 8, 20, 40, 10240]),
        "memory": random.choice([2**25, 2**25, 20_000, random.magnitude(1, 2**25)]),
    }


def values(random, profile):
    return some_params(random, profile.link_bps), {}


def change(random, plane):
    return some_params(random, plane.best_bps), {}
