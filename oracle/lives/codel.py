# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of codel."""

from lives.waiting import some_wait

FILES = {"few": 2, "one": 1, "some": 1, "restless": 2, "steady": 2, "slow": 1}
JUDGES = True


def some_params(random, link_bps):
    return {
        "target": max(1000, some_wait(random, link_bps) // 10),
        "interval": min(4 * 10**9, max(10**6, some_wait(random, link_bps))),
        "mtu": random.choice([0, 100, 1514, 3000]),
        "ecn": random.choice(["no", "yes"]),
    }


def values(random, profile):
    return some_params(random, profile.link_bps), {}


def change(random, plane):
    return some_params(random, plane.best_bps), {}
