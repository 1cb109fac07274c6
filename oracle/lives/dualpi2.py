# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of dualpi2."""

from lives.waiting import some_wait

FILES = {"few": 3, "one": 1, "some": 2, "wide": 1, "restless": 3, "steady": 3, "slow": 1, "fast": 1}
JUDGES = True


def some_params(random, link_bps):
    target = min(10**10, max(1000, some_wait(random, link_bps) // 10))
    return {
        "target": target,
        "tupdate": min(10**9, max(1000, target * random.choice([1, 1, 2, 10]) // random.choice([1, 4]))),
        # the shorter the delays, the greater the gains that move the probability
        "alpha": min(65536, max(1, random.choice([1, 10, 100]) * 10**9 // target)),
        "beta": min(65536, max(1, random.choice([1, 10, 100]) * 10**9 // target)),
        "coupling": random.choice([1, 2, 2, 4, 255]),
        "step": min(4 * 10**9, random.choice([0, target // 2, some_wait(random, link_bps)])),
        "classic_share": random.choice([0, 100_000, 100_000, 500_000, 900_000, 10**6, random.below(10**6)]),
        "overload": random.choice(["drop", "mark"]),
        "mtu": random.choice([0, 100, 1514]),
        "limit": random.choice([1, 20, 40, 10_000, 10_000, 10_000]),
        "memory": random.choice([2**25, 2**25, 2**25, 20_000, random.magnitude(1, 2**25)]),
        "seed": random.choice([0, 1, 2, 2**32 - 1]),
    }


def values(random, profile):
    kinds = {q: {"l4s": "yes" if random.chance(50) else "no"} for q in range(profile.nqueues)}
    return some_params(random, profile.link_bps), kinds


def change(random, plane):
    q = random.below(len(plane.view.queues))
    params = some_params(random, plane.best_bps)
    names = list(params) if random.chance(30) else [random.choice(list(params))]
    return {name: params[name] for name in names}, {q: {"l4s": random.choice(["no", "yes"])}}
