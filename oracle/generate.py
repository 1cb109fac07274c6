# SPDX-License-Identifier: BSD-3-Clause
"""Writes the random vectors: `python oracle/generate.py`; with --check it only says whether the files are what it
writes.

A vector is one random life of a scheduler, and the model's answers. Its recipe (policy, profile, seed) is its first
line; the generator of random numbers is written out here, so that the same recipe gives the same bytes everywhere.
"""

import argparse
import pathlib
import sys

import exp_pf
import exp_rule
import mlwdf
from dataplane import DataPlane

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "vectors"
LARGEST_BYTES = 60_000
DAY_NS = 86_400 * 10**9
KBIT, MBIT, GBIT = 10**3, 10**6, 10**9


class Random:
    """SplitMix64: Steele, Lea and Flood 2014."""

    def __init__(self, text):
        self.state = 0
        for byte in text.encode():
            self.state = (self.state * 257 + byte) % 2**64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    def below(self, n):
        return self.next() % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def choice(self, values):
        return values[self.below(len(values))]

    def chance(self, percent):
        return self.below(100) < percent

    def magnitude(self, low, high):
        """Any order of magnitude between two bounds is as likely as any other."""
        while True:
            value = self.below(2 ** self.between(low.bit_length(), high.bit_length()))
            if low <= value <= high:
                return value

    def weighted(self, weights):
        point = self.below(sum(weights.values()))
        for name, weight in weights.items():
            if point < weight:
                return name
            point -= weight
        raise AssertionError


# Packet lengths

SIZES = {
    "mixed": lambda random: random.choice([64, 1500, 1500, random.between(1, 1514)]),
    "equal": lambda random: 1500,
    "any": lambda random: random.choice([1, 2**20 - 1, 1500, random.between(1, 2**20 - 1), random.between(1, 3000)]),
    "small": lambda random: random.between(40, 400),
}

# What happens how often

SERVED = {
    "enqueue": 40,
    "serve": 40,
    "burst": 4,
    "idle": 1,
    "back": 2,
    "pick": 3,
    "other": 3,
    "rate": 3,
    "link": 1,
    "change": 2,
    "observe": 4,
    "drop": 1,
}
STEADY = {"enqueue": 45, "serve": 55, "observe": 5}
SWITCHING = {"enqueue": 44, "serve": 40, "burst": 5, "observe": 12, "idle": 1, "change": 1, "drop": 1}
BURSTS = {"enqueue": 45, "burst": 25, "serve": 5, "observe": 4, "change": 1}
RESTLESS = {
    "enqueue": 40,
    "serve": 40,
    "rate": 12,
    "link": 6,
    "change": 12,
    "observe": 6,
    "idle": 2,
    "other": 4,
    "drop": 4,
}


class Profile:
    def __init__(self, nqueues, link_bps, sizes, events, steps=600, backlog=30, days=False):
        self.nqueues = nqueues
        self.link_bps = link_bps
        self.sizes = SIZES[sizes]
        self.events = events
        self.steps = steps
        self.backlog = backlog
        self.days = days


PROFILES = {
    "few": Profile(3, 20 * MBIT, "mixed", SERVED, 480),
    "steady": Profile(4, 100 * MBIT, "equal", STEADY, 330, backlog=60),
    "one": Profile(1, 10 * MBIT, "any", SERVED, 120),
    "some": Profile(8, 155 * MBIT, "any", SERVED, 480, backlog=60),
    "wide": Profile(64, 10 * GBIT, "mixed", SERVED, 520, backlog=200),
    "slow": Profile(5, 1 * KBIT, "any", SERVED, 330, days=True),
    "fast": Profile(6, 400 * GBIT, "small", BURSTS, 200, backlog=80, days=True),
    "switching": Profile(4, 20 * MBIT, "mixed", SWITCHING, 330, backlog=60),
    "restless": Profile(7, 50 * MBIT, "mixed", RESTLESS, 600),
}


# Values of parameters


def some_level(random):
    return random.choice([random.below(8), random.below(64), random.below(65536)])


def strict_values(random, profile):
    levels = []
    while len(levels) < profile.nqueues:
        level = some_level(random)
        if level not in levels:
            levels.append(level)
    return {}, {q: {"level": level} for q, level in enumerate(levels) if not random.chance(10)}


def strict_change(random, plane):
    return {}, {random.below(len(plane.qparams)): {"level": some_level(random)}}


def wrr_queue(random):
    values = {"weight": random.choice([1, 2, 3, random.between(1, 12), random.magnitude(1, 65535)])}
    if random.chance(40):
        values["level"] = random.choice([0, 1, 63, random.below(64)])
    return values


def wrr_values(random, profile):
    mode = random.choice(["burst", "smooth"])
    return {"mode": mode}, {q: wrr_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def wrr_change(random, plane):
    if random.chance(25):
        return {"mode": random.choice(["burst", "smooth"])}, {}
    return {}, {random.below(len(plane.qparams)): wrr_queue(random)}


def drr_queue(random):
    values = {
        "quantum": random.choice([300, 1000, 1514, 3000, random.between(200, 9000), random.magnitude(100, 2**20 - 1)])
    }
    if random.chance(40):
        values["level"] = random.choice([0, 1, 63, random.below(64)])
    return values


def drr_values(random, profile):
    return {}, {q: drr_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def drr_change(random, plane):
    return {}, {random.below(len(plane.qparams)): drr_queue(random)}


def pss_params(random):
    return {
        "sat": random.choice(["exact", "exact", "paper"]),
        "on_empty": random.choice(["keep", "keep", "reset"]),
        "early": random.choice(["charge", "charge", "ignore"]),
    }


def pss_controlled(random, link_bps, nqueues):
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
        packet_ns = 12_000 * 10**9 // max(link_bps, KBIT)
        values["memory"] = random.choice([0, packet_ns, 3 * packet_ns, 10**6, 10**9, random.magnitude(1, 7 * DAY_NS)])
    if random.chance(20):
        values["lr"] = random.choice([0, random.magnitude(1, 10**6), random.magnitude(1, 10**12)])
    if random.chance(10):
        values["lm"] = random.magnitude(1, 10**9)
    return values


def pss_values(random, profile):
    levels = list(range(2 * profile.nqueues + 2))
    qparams = {}
    for q in range(profile.nqueues):
        values = {"level": levels.pop(random.below(len(levels)))}
        if random.chance(75 if profile.nqueues < 10 else 25):
            values.update(pss_controlled(random, profile.link_bps, profile.nqueues))
            above = [level for level in levels if level > values["level"]]
            if above:
                values["low_level"] = random.choice(above)
                levels.remove(values["low_level"])
                if random.chance(15):
                    values["credit"] = random.choice([0, random.magnitude(1, 10**8)])
            else:
                values = {"level": values["level"]}
        qparams[q] = values
    return pss_params(random), qparams


def pss_change(random, plane):
    q = random.below(len(plane.qparams))
    kind = random.weighted({"params": 3, "plain": 1, "controlled": 3, "level": 2, "rate": 3})
    values = plane.qparams[q]
    if kind == "params":
        return pss_params(random), {}
    if kind == "plain":
        return {}, {q: {"low_level": None, "rate": 0, "share": 0}}
    if kind == "level":
        return {}, {q: {"level": random.below(3 * len(plane.qparams) + 4)}}
    if kind == "rate" and values["rate"]:
        return {}, {q: {"rate": max(10, values["rate"] * random.between(1, 300) // 100)}}
    return {}, {q: pss_controlled(random, plane.best_bps, len(plane.qparams))}


def pds_params(random):
    values = {
        "limit": random.choice([1, 5, 10, 20, 80, random.between(1, 60)]),
        "early": random.choice(["off", "peld", "peld"]),
        "tie": random.choice(["larger_delay", "lowest_index"]),
    }
    if values["early"] == "peld":
        values["qmin"] = random.choice([0, 2, 20, random.below(60)])
    return values


def pds_queue(random):
    return {
        "delay": random.choice([1, 2, 4, random.between(1, 300), random.between(1, 65535)]),
        "loss": random.choice([1, 2, 4, random.between(1, 300), random.between(1, 65535)]),
    }


def pds_values(random, profile):
    params = pds_params(random)
    params["history"] = random.choice(["decayed", "decayed", "ring", "infinite"])
    params["k"] = random.choice([2, 3, 10, 30, random.between(2, 300), 1500])
    return params, {q: pds_queue(random) for q in range(profile.nqueues) if random.chance(85)}


def pds_change(random, plane):
    if random.chance(50):
        return pds_params(random), {}
    return {}, {random.below(len(plane.qparams)): pds_queue(random)}


def pf_params(random):
    return {
        "tc": random.choice([10**7, 10**8, 10**9, 10**9, 10**11, random.magnitude(10**7, 10**11)]),
        "unit": random.choice(["bytes", "bytes", "airtime", "packets"]),
        "idle": random.choice(["decay", "freeze"]),
    }


def pf_queue(random):
    return {"weight": random.choice([1, 1, 2, random.between(1, 20), random.magnitude(1, 65535)])}


def pf_values(random, profile):
    return pf_params(random), {q: pf_queue(random) for q in range(profile.nqueues) if random.chance(50)}


def pf_change(random, plane):
    if random.chance(50):
        return pf_params(random), {}
    return {}, {random.below(len(plane.qparams)): pf_queue(random)}


def some_wait(random, link_bps):
    """Times that packets of this link wait."""
    return random.choice([1, 3, 10, 30, 100]) * max(1, 12_000 * 10**9 // max(link_bps, KBIT)) + random.below(3)


def codes_queue(random, link_bps):
    return pf_queue(random) | {"timeout": random.choice([0, some_wait(random, link_bps), some_wait(random, link_bps)])}


def codes_values(random, profile):
    params, _ = pf_values(random, profile)
    return params, {q: codes_queue(random, profile.link_bps) for q in range(profile.nqueues) if random.chance(85)}


def codes_change(random, plane):
    if random.chance(50):
        return pf_params(random), {}
    return {}, {random.below(len(plane.qparams)): codes_queue(random, plane.best_bps)}


def urgent_params(random, source):
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


def urgent_queue(random, link_bps):
    return {
        "target": random.choice([0, some_wait(random, link_bps), some_wait(random, link_bps), 10**8]),
        "delta": random.choice([50_000, 10_000, 500_000, 1, random.between(1, 500_000)]),
    }


def urgent_values(source):
    def values(random, profile):
        queues = {q: urgent_queue(random, profile.link_bps) for q in range(profile.nqueues) if random.chance(85)}
        return urgent_params(random, source), queues

    return values


def urgent_change(source):
    def change(random, plane):
        if random.chance(50):
            return urgent_params(random, source), {}
        return {}, {random.below(len(plane.qparams)): urgent_queue(random, plane.best_bps)}

    return change


def codel_params(random, link_bps):
    return {
        "target": max(1000, some_wait(random, link_bps) // 10),
        "interval": min(4 * 10**9, max(10**6, some_wait(random, link_bps))),
        "mtu": random.choice([0, 100, 1514, 3000]),
        "ecn": random.choice(["no", "yes"]),
    }


def codel_values(random, profile):
    return codel_params(random, profile.link_bps), {}


def codel_change(random, plane):
    return codel_params(random, plane.best_bps), {}


def fq_codel_params(random, link_bps):
    return codel_params(random, link_bps) | {
        "quantum": random.choice([1, 300, 1514, random.magnitude(1, 2**20 - 1)]),
        "limit": random.choice([1, 8, 20, 40, 10240]),
        "memory": random.choice([2**25, 2**25, 20_000, random.magnitude(1, 2**25)]),
    }


def fq_codel_values(random, profile):
    return fq_codel_params(random, profile.link_bps), {}


def fq_codel_change(random, plane):
    return fq_codel_params(random, plane.best_bps), {}


def no_values(random, profile):
    return {}, {}


URGENT = {"mlwdf": mlwdf, "exp_rule": exp_rule, "exp_pf": exp_pf}
VALUES = {
    "strict": strict_values,
    "wrr": wrr_values,
    "drr": drr_values,
    "pss": pss_values,
    "pds": pds_values,
    "pf": pf_values,
    "codes": codes_values,
    **{policy: urgent_values(source) for policy, source in URGENT.items()},
    "codel": codel_values,
    "fq_codel": fq_codel_values,
}
CHANGES = {
    "strict": strict_change,
    "wrr": wrr_change,
    "drr": drr_change,
    "pss": pss_change,
    "pds": pds_change,
    "pf": pf_change,
    "codes": codes_change,
    **{policy: urgent_change(source) for policy, source in URGENT.items()},
    "codel": codel_change,
    "fq_codel": fq_codel_change,
}
MORE_EVENTS = {
    "pf": {"rate": 20},
    "codes": {"rate": 20, "expire": 6},
    **{policy: {"rate": 20, "expire": 6} for policy in URGENT},
}
ROUNDED = ("pf", "codes", *URGENT)  # what they show is rounded from real numbers, so vectors by hand show it
JUDGING = ("codes", *URGENT, "codel", "fq_codel")


def words(values):
    return "".join(f" {name}={'unset' if value is None else value}" for name, value in values.items())


class Life:
    """Runs the model and writes down what it was told and what it answered."""

    def __init__(self, policy, name, seed):
        self.policy = policy
        self.profile = PROFILES[name]
        self.random = Random(f"{policy} {name} {seed}")
        self.lines = [f"# python oracle/generate.py: policy={policy} profile={name} seed={seed}"]
        self.now_ns = self.random.choice([0, 1, self.random.below(10**12)])
        self.link_bps = self.profile.link_bps
        params, qparams = self.values()
        self.plane = DataPlane(policy, self.profile.nqueues, self.link_bps, params, qparams)
        self.lines += [
            "linkweir-vectors 1",
            f"policy {policy}",
            f"queues {self.profile.nqueues}",
            f"link {self.link_bps}",
        ]
        if params:
            self.lines.append("set" + words(params))
        self.lines += [f"queue {q}{words(values)}" for q, values in qparams.items() if values]

    def values(self):
        """A configuration the policy accepts."""
        while True:
            params, qparams = VALUES.get(self.policy, no_values)(self.random, self.profile)
            if DataPlane(self.policy, self.profile.nqueues, self.link_bps, params, qparams).fault() is None:
                return params, qparams

    def queues(self):
        return self.plane.view.queues

    def backlogged(self):
        return [q for q, queue in enumerate(self.queues()) if queue.backlogged]

    def unit_ns(self):
        """What 1500 bytes take on the link."""
        return max(1, 12_000 * 10**9 // self.profile.link_bps)

    def write(self, text):
        self.lines.append(f"at {self.now_ns} {text}")

    def live(self):
        if self.random.chance(40):
            for _ in range(self.random.between(1, 5)):
                self.enqueue()
        self.plane.init(self.now_ns)
        self.write("init")
        for _ in range(self.profile.steps):
            event = self.random.weighted(self.profile.events | MORE_EVENTS.get(self.policy, {}))
            if event == "enqueue" and sum(len(queue.packets) for queue in self.queues()) >= self.profile.backlog:
                event = "serve"
            getattr(self, event)()
        return "\n".join(self.lines) + "\n"

    def enqueue(self):
        busy = self.random.chance(50)
        q = self.random.below((self.profile.nqueues + 1) // 2 if busy else self.profile.nqueues)
        for _ in range(self.random.choice([1, 1, 1, 2, 4])):
            size = self.profile.sizes(self.random)
            dropped = self.plane.enqueue(self.now_ns, q, size)
            drops = " drops " + " ".join(str(victim) for victim in dropped) if dropped else ""
            self.write(f"enqueue {q} {size}{drops}")
            if self.random.chance(50):
                self.now_ns += self.random.below(self.unit_ns() + 1)

    def too_close(self):
        """Whether rounding decides whom a policy of real numbers would pick."""
        self.plane.view.now_ns = self.now_ns
        return self.plane.model.ambiguous()

    def pick(self):
        if self.too_close():
            return None
        q = self.plane.pick(self.now_ns)
        self.write(f"pick {'none' if q is None else q}")
        if self.random.chance(10):
            again = self.plane.pick(self.now_ns)
            assert again == q
            self.write(f"pick {'none' if again is None else again}")
        return q

    def send(self):
        if self.too_close():
            q = self.plane.pick(self.now_ns)
            self.write(f"send {q}")
            return self.plane.send(self.now_ns, q)[1]
        if self.pick() is None:
            return 0
        if self.policy in JUDGING:
            ecn = self.random.chance(20)
            verdict = self.plane.verdict(self.now_ns, ecn)
            self.write(f"verdict {verdict}{' ecn' if ecn else ''}")
            if verdict == "drop":
                return self.send()
        size = self.plane.send(self.now_ns)[1]
        self.write("send")
        return size

    def expire(self):
        if self.backlogged():
            q = self.random.choice(self.backlogged())
            self.write(f"expired {q} {self.plane.expired(self.now_ns, q)}")

    def serve(self):
        size = self.send()
        percent = self.random.choice([100, 100, 100, 50, 150, self.random.between(1, 400)])
        self.now_ns += size * 8 * 10**9 // self.profile.link_bps * percent // 100 or self.random.below(
            self.unit_ns() + 1
        )

    def burst(self):
        total = sum(self.send() for _ in range(self.random.between(2, 6)))
        self.now_ns += total * 8 * 10**9 // self.profile.link_bps

    def idle(self):
        longest = self.random.choice([10, 1000, 10**5]) * self.unit_ns()
        if self.profile.days or self.random.chance(10):
            longest = self.random.choice([longest, DAY_NS, 40 * DAY_NS])
        self.now_ns += self.random.below(longest)

    def back(self):
        """One operation at an earlier time; the ones that follow go on from the present."""
        present = self.now_ns
        self.now_ns -= self.random.below(min(present, 3 * self.unit_ns()) + 1)
        self.random.choice([self.enqueue, self.send])()
        self.now_ns = max(present, self.now_ns)

    def other(self):
        open_queues = [q for q in self.backlogged() if self.queues()[q].rate_bps]
        if open_queues:
            q = self.random.choice(open_queues)
            self.plane.send(self.now_ns, q)
            self.write(f"send {q}")

    def drop(self):
        if self.backlogged():
            q = self.random.choice(self.backlogged())
            self.plane.drop(self.now_ns, q)
            self.write(f"drop {q}")

    def rate(self):
        q = self.random.below(self.profile.nqueues)
        blocked = self.queues()[q].rate_bps == 0
        rate_bps = (
            self.profile.link_bps if blocked else self.random.choice([0, 0, self.random.magnitude(KBIT, 400 * GBIT)])
        )
        self.plane.rate(self.now_ns, {q: rate_bps})
        self.write(f"rate {q} {rate_bps}")

    def link(self):
        link_bps = self.profile.link_bps * self.random.between(20, 200) // 100
        if self.random.chance(15):
            link_bps = self.random.choice([0, self.random.magnitude(KBIT, 400 * GBIT)])
        self.plane.link(self.now_ns, link_bps)
        self.write(f"link {link_bps}")

    def change(self):
        if self.policy not in CHANGES:
            return
        params, qparams = CHANGES[self.policy](self.random, self.plane)
        trial = DataPlane(self.policy, self.profile.nqueues, self.plane.best_bps, dict(self.plane.params), {})
        trial._assign(params, dict(enumerate(dict(values) for values in self.plane.qparams)))
        trial._assign({}, qparams)
        if trial.fault() is not None:
            return
        self.plane.change(self.now_ns, params, qparams)
        groups = words(params) + "".join(f" queue {q}{words(values)}" for q, values in qparams.items())
        self.write("change" + groups)

    def observe(self):
        controlled = [q for q, values in enumerate(self.plane.qparams) if values.get("low_level") is not None]
        q = self.random.choice(controlled or list(range(self.profile.nqueues)))
        self.pick()
        values = self.plane.observe(self.now_ns, q)
        if values and self.policy not in ROUNDED:
            self.write(f"observe {q}{words(values)}")


SEEDS = {  # profile: number of files
    "fifo": {"few": 1, "wide": 1, "restless": 1},
    "strict": {"few": 1, "one": 1, "wide": 1, "restless": 1, "slow": 1},
    "rr": {"few": 1, "one": 1, "some": 1, "wide": 1, "restless": 1},
    "wrr": {"few": 2, "one": 1, "some": 2, "wide": 1, "restless": 2, "steady": 1, "fast": 1},
    "drr": {"few": 1, "one": 1, "some": 1, "wide": 1, "restless": 2, "steady": 1, "slow": 1, "fast": 1},
    "pss": {"switching": 6, "few": 2, "one": 1, "some": 2, "wide": 1, "restless": 4, "steady": 2, "slow": 2, "fast": 2},
    "pf": {"few": 2, "one": 1, "some": 2, "wide": 1, "restless": 3, "steady": 2, "slow": 1, "fast": 1},
    "codes": {"few": 2, "one": 1, "some": 1, "restless": 2, "steady": 2, "slow": 1},
    "mlwdf": {"few": 2, "one": 1, "some": 1, "wide": 1, "restless": 3, "steady": 2, "slow": 1},
    "exp_rule": {"few": 2, "one": 1, "some": 1, "wide": 1, "restless": 3, "steady": 2, "slow": 1},
    "exp_pf": {"few": 2, "one": 1, "some": 1, "wide": 1, "restless": 3, "steady": 2, "slow": 1},
    "codel": {"few": 2, "one": 1, "some": 1, "restless": 2, "steady": 2, "slow": 1},
    "fq_codel": {"few": 3, "one": 1, "some": 2, "wide": 1, "restless": 3, "steady": 2, "slow": 1, "fast": 1},
    "pds": {"few": 3, "one": 1, "some": 3, "wide": 1, "restless": 4, "steady": 2, "slow": 1, "fast": 1},
}


def files():
    """(path, text) of every random vector."""
    for policy, profiles in SEEDS.items():
        for name, count in profiles.items():
            for seed in range(1, count + 1):
                yield VECTORS / policy / f"random-{name}-{seed}.vec", Life(policy, name, seed).live()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    arguments = parser.parse_args()
    written, failed = set(), False
    for path, text in files():
        assert len(text) < LARGEST_BYTES, f"{path} has {len(text)} bytes"
        written.add(path)
        if arguments.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path}: not what the recipe gives; run python oracle/generate.py", file=sys.stderr)
                failed = True
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in sorted(VECTORS.glob("*/random-*.vec")):
        if path not in written:
            print(f"{path}: no recipe for it", file=sys.stderr)
            failed = True
    print(f"{len(written)} random vectors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
