# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of pds."""

FILES = {"few": 3, "one": 1, "some": 3, "wide": 1, "restless": 4, "steady": 2, "slow": 1, "fast": 1}


def some_params(random):
    values = {
        "limit": random.choice([1, 5, 10, 20, 80, random.between(1, 60)]),
        "early": random.choice(["off", "peld", "peld"]),
        "tie": random.choice(["larger_delay", "lowest_index"]),
    }
    if values["early"] == "peld":
        values["qmin"] = random.choice([0, 2, 20, random.below(60)])
    return values


def some_queue(random):
    return {
        "delay": random.choice([1, 2, 4, random.between(1, 300), random.between(1, 65535)]),
        "loss": random.choice([1, 2, 4, random.between(1, 300), random.between(1, 65535)]),
    }


def values(random, profile):
    params = some_params(random)
    params["history"] = random.choice(["decayed", "decayed", "ring", "infinite"])
    params["k"] = random.choice([2, 3, 10, 30, random.between(2, 300), 1500])
    return params, {q: some_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def change(random, plane):
    if random.chance(50):
        return some_params(random), {}
    return {}, {random.below(len(plane.qparams)): some_queue(random)}
