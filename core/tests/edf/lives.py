# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of edf."""

from lives.waiting import some_wait

FILES = {"few": 2, "one": 1, "some": 1, "wide": 1, "restless": 2, "slow": 1}


def some_queue(random, link_bps):
    return {"deadline": random.choice([0, 10**6, some_wait(random, link_bps)])}


def values(random, profile):
    return {}, {q: some_queue(random, profile.link_bps) for q in range(profile.nqueues) if random.chance(85)}


def change(random, plane):
    return {}, {random.below(len(plane.qparams)): some_queue(random, plane.best_bps)}
