# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of codes."""

from lives import pf
from lives.waiting import some_wait

FILES = {"few": 2, "one": 1, "some": 1, "restless": 2, "steady": 2, "slow": 1}
EVENTS = {"rate": 20, "expire": 6}
ROUNDED = True
JUDGES = True


def some_queue(random, link_bps):
    return pf.some_queue(random) | {
        "timeout": random.choice([0, some_wait(random, link_bps), some_wait(random, link_bps)])
    }


def values(random, profile):
    params, _ = pf.values(random, profile)
    return params, {q: some_queue(random, profile.link_bps) for q in range(profile.nqueues) if random.chance(85)}


def change(random, plane):
    if random.chance(50):
        return pf.some_params(random), {}
    return {}, {random.below(len(plane.qparams)): some_queue(random, plane.best_bps)}
