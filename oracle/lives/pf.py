# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of pf."""

FILES = {"few": 2, "one": 1, "some": 2, "wide": 1, "restless": 3, "steady": 2, "slow": 1, "fast": 1}
EVENTS = {"rate": 20}
ROUNDED = True


def some_params(random):
    return {
        "tc": random.choice([10**7, 10**8, 10**9, 10**9, 10**11, random.magnitude(10**7, 10**11)]),
        "unit": random.choice(["bytes", "bytes", "airtime", "packets"]),
        "idle": random.choice(["decay", "freeze"]),
    }


def some_queue(random):
    return {"weight": random.choice([1, 1, 2, random.between(1, 20), random.magnitude(1, 65535)])}


def values(random, profile):
    return some_params(random), {q: some_queue(random) for q in range(profile.nqueues) if random.chance(50)}


def change(random, plane):
    if random.chance(50):
        return some_params(random), {}
    return {}, {random.below(len(plane.qparams)): some_queue(random)}
