# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of pss."""

from lives.waiting import DAY_NS

FILES = {"switching": 6, "few": 2, "one": 1, "some": 2, "wide": 1, "restless": 4, "steady": 2, "slow": 2, "fast": 2}


def some_params(random):
    return {
        "sat": random.choice(["exact", "exact", "paper"]),
        "on_empty": random.choice(["keep", "keep", "reset"]),
        "early": random.choice(["charge", "charge", "ignore"]),
    }


def controlled(random, link_bps, nqueues):
    values = {"low_level": random.choice([random.below(4 * nqueues + 8), random.below(65536)])}
    part = random.choice([random.between(1, 999_999), 10**6 // (nqueues + 1), 10**6 // (2 * nqueues), 30_000])
    if random.chance(60):
        values["rate"] = max(10, link_bps * part // 10**6)
        values["share"] = 0
    else:
        values["share"] = part
        values["rate"] = 0
    if random.chance(90):
        values["burst"] = random.choice([2, 2, 3, 3, 4, 5, 8, 20, random.magnitude(2, 2**10)])
    if random.chance(40):
        values["mtu"] = random.choice([64, 576, 1500, random.magnitude(64, 2**20 - 1)])
    if random.chance(60):
        packet_ns = 12_000 * 10**9 // max(link_bps, 1000)
        values["memory"] = random.choice([0, packet_ns, 3 * packet_ns, 10**6, 10**9, random.magnitude(1, 7 * DAY_NS)])
    if random.chance(20):
        values["lr"] = random.choice([0, random.magnitude(1, 10**6), random.magnitude(1, 10**12)])
    if random.chance(10):
        values["lm"] = random.magnitude(1, 10**9)
    return values


def values(random, profile):
    levels = list(range(2 * profile.nqueues + 2))
    qparams = {}
    for q in range(profile.nqueues):
        values = {"level": levels.pop(random.below(len(levels)))}
        if random.chance(75 if profile.nqueues < 10 else 25):
            values.update(controlled(random, profile.link_bps, profile.nqueues))
            above = [level for level in levels if level > values["level"]]
            if above:
                values["low_level"] = random.choice(above)
                levels.remove(values["low_level"])
                if random.chance(15):
                    values["credit"] = random.choice([0, random.magnitude(1, 10**8)])
            else:
                values = {"level": values["level"]}
        qparams[q] = values
    return some_params(random), qparams


def bound(random):
    """A setting that moves LR or LM and leaves the reserved rate as it is."""
    name = random.choice(["memory", "memory", "burst", "mtu", "lr", "lm"])
    if name == "memory":
        return {name: random.choice([0, 10**6, 10**9, 5 * 10**9, random.magnitude(1, 7 * DAY_NS)])}
    if name in ("burst", "mtu"):
        return {name: random.choice([64, random.magnitude(64, 2**11)])}
    return {name: random.choice([None, random.magnitude(1, 10**6), random.magnitude(1, 10**12)])}


def change(random, plane):
    q = random.below(len(plane.qparams))
    kind = random.weighted({"params": 3, "plain": 1, "controlled": 3, "level": 2, "rate": 3, "bound": 5})
    values = plane.qparams[q]
    if kind == "params":
        return some_params(random), {}
    if kind == "plain":
        return {}, {q: {"low_level": None, "rate": 0, "share": 0}}
    if kind == "level":
        return {}, {q: {"level": random.below(3 * len(plane.qparams) + 4)}}
    if kind == "bound" and values["low_level"] is not None:
        return {}, {q: bound(random)}
    if kind == "rate" and values["rate"]:
        return {}, {q: {"rate": max(10, values["rate"] * random.between(1, 300) // 100)}}
    return {}, {q: controlled(random, plane.best_bps, len(plane.qparams))}
