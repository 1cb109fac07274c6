# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of wrr."""

FILES = {"few": 2, "one": 1, "some": 2, "wide": 1, "restless": 2, "steady": 1, "fast": 1}


def some_queue(random):
    values = {"weight": random.choice([1, 2, 3, random.between(1, 12), random.magnitude(1, 65535)])}
    if random.chance(40):
        values["level"] = random.choice([0, 1, 63, random.below(64)])
    return values


def values(random, profile):
    mode = random.choice(["burst", "smooth"])
    return {"mode": mode}, {q: some_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def change(random, plane):
    if random.chance(25):
        return {"mode": random.choice(["burst", "smooth"])}, {}
    return {}, {random.below(len(plane.qparams)): some_queue(random)}
