# SPDX-License-Identifier: BSD-3-Clause
"""What random lives of mlwdf, exp_rule and exp_pf share."""

from lives.waiting import some_wait

EVENTS = {"rate": 20, "expire": 6}


def some_params(random, source):
    values = {
        "tc": random.choice([10**7, 10**8, 10**9, random.magnitude(10**7, 10**11)]),
        "norm": random.choice(["throughput", "throughput", "channel"]),
        "expire": random.choice(["no", "yes"]),
    }
    if "factor" in source.PARAMS:
        values["factor"] = random.choice(["none", "urgency"])
    if "tick" in source.PARAMS:
        values["tick"] = random.choice([1000, 10**6, 10**8])
    return values


def some_queue(random, link_bps):
    return {
        "target": random.choice([0, some_wait(random, link_bps), some_wait(random, link_bps), 10**8]),
        "delta": random.choice([50_000, 10_000, 500_000, 1, random.between(1, 500_000)]),
    }


def values_of(source):
    def values(random, profile):
        queues = {q: some_queue(random, profile.link_bps) for q in range(profile.nqueues) if random.chance(85)}
        return some_params(random, source), queues

    return values


def change_of(source):
    def change(random, plane):
        if random.chance(50):
            return some_params(random, source), {}
        return {}, {random.below(len(plane.qparams)): some_queue(random, plane.best_bps)}

    return change
