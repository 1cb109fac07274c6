# SPDX-License-Identifier: BSD-3-Clause
"""Two queues with coupled queue management. RFC 9332, section 2 and appendix A; numbers of 32 bits as in Linux.

A classic queue and an L4S queue share one base probability, which a controller moves at every tick of a timer. The
model keeps what waited after the last event, so that a tick that was due before the present event sees the queues
of its own instant.
"""

from dataplane import Clock, Policy

PARAMS = {
    "target": 15_000_000,
    "tupdate": 16_000_000,
    "alpha": 41,
    "beta": 819,
    "coupling": 2,
    "step": 1_000_000,
    "classic_share": 100_000,
    "overload": "drop",
    "mtu": 1514,
    "limit": 10_000,
    "memory": 30_280_000,
    "seed": 1,
}
QPARAMS = {"l4s": "no"}
RANGES = {
    "target": (1000, 10**10),
    "tupdate": (1000, 10**9),
    "alpha": (1, 65536),
    "beta": (1, 65536),
    "coupling": (1, 255),
    "step": (0, 4 * 10**9),
    "classic_share": (0, 10**6),
    "mtu": (0, 2**20 - 1),
    "limit": (1, 2**20),
    "memory": (1, 2**40),
    "seed": (0, 2**32 - 1),
}

ONE = 2**32 - 1  # probability 1
LATE_TICKS = 64  # made up for one by one while packets wait
LONGEST_NS = 2**40  # a delay counts as no longer than this
CREDIT = 2**40  # the credit of either kind is at most this


def check(view, params, qparams):
    return None


class Dice:
    """SplitMix64: Steele, Lea and Flood 2014. The upper 32 bits of each number are used."""

    def __init__(self, seed):
        self.state = seed

    def roll(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return (z ^ z >> 31) // 2**32

    def hits(self, probability):
        return self.roll() <= probability


class Controller:
    def __init__(self, params, now_ns):
        self.params = params
        self.base = 0  # probability
        self.last_delay_ns = 0
        self.tick_ns = now_ns + params["tupdate"]

    def gain(self, name):
        """From 1/256 per second to units of the probability per 64 ns."""
        return self.params[name] * ONE // 4 // 10**9

    def most(self):
        return ONE // self.params["coupling"] if self.params["overload"] == "mark" else ONE

    def tick(self, delay_ns):
        error = self.gain("alpha") * (delay_ns - self.params["target"])
        trend = self.gain("beta") * (delay_ns - self.last_delay_ns)
        self.last_delay_ns = delay_ns
        change = error + trend
        change = change // 64 if change > 0 else -(-change // 64)  # towards 0
        self.base = min(self.most(), max(0, self.base + change))

    def run(self, now_ns, arrivals):
        """Makes the ticks up to now. `arrivals`: of the packets at the heads of both queues, where there is one."""

        def delay(at_ns):
            return min(LONGEST_NS, max((at_ns - arrival for arrival in arrivals), default=0))

        ticks = 0
        while self.tick_ns <= now_ns:
            if not arrivals and self.last_delay_ns == 0:
                # every further tick is like this one: the same for all at once
                many = (now_ns - self.tick_ns) // self.params["tupdate"] + 1
                fall = self.gain("alpha") * self.params["target"] // 64
                self.base = max(0, self.base - many * fall)
                self.tick_ns += many * self.params["tupdate"]
            elif ticks < LATE_TICKS:
                self.tick(max(0, delay(self.tick_ns)))
                self.tick_ns += self.params["tupdate"]
            else:
                self.tick(max(0, delay(now_ns)))
                self.tick_ns = now_ns + self.params["tupdate"]
            ticks += 1


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.clock = Clock(view.now_ns)
        self.dice = Dice(self.params["seed"])
        self.controller = Controller(self.params, view.now_ns)
        self.credit = 0  # of the L4S queue at 0 and below, of the classic queue above
        self.restart()
        self.look()

    def l4s(self, q):
        return self.qparams[q]["l4s"] == "yes"

    def waiting(self, l4s):
        """(arrival, queue) of the packets at the heads of the queues of a kind."""
        return [(self.view.queues[q].head_arrival_ns, q) for q in self.eligible() if self.l4s(q) == l4s]

    def held(self):
        return [size for queue in self.view.queues for _, size in queue.packets]

    def restart(self):
        classic = self.params["classic_share"]
        self.credit = self.params["mtu"] * (classic - (10**6 - classic))

    def look(self):
        self.heads = {l4s: min(self.waiting(l4s), default=None) for l4s in (False, True)}
        if not self.held():
            self.restart()

    def catch_up(self):
        now_ns = self.clock.read(self.view.now_ns)
        self.controller.run(now_ns, [head[0] for head in self.heads.values() if head])
        return now_ns

    def event(self):
        self.catch_up()
        self.look()

    def pick(self):
        self.clock.read(self.view.now_ns)
        classic, l4s = min(self.waiting(False), default=None), min(self.waiting(True), default=None)
        if classic and l4s:
            return (classic if self.credit > 0 else l4s)[1]
        return (classic or l4s or (None, None))[1]

    def leaving(self, q, ecn):
        now_ns = self.catch_up()
        base, coupled = self.controller.base, self.controller.base * self.params["coupling"]
        overload = coupled > ONE
        mark = drop = False
        if sum(self.held()) - self.view.queues[q].head_bytes >= 2 * self.params["mtu"]:
            if overload:
                drop = self.dice.hits(base) and self.dice.hits(base)
                mark = self.l4s(q) and ecn
            elif self.l4s(q):
                mark = self.dice.hits(coupled)
            else:
                mark = self.dice.hits(base) and self.dice.hits(base)
        if self.l4s(q) and now_ns - self.view.queues[q].head_arrival_ns > self.params["step"]:
            mark = True
        if drop or (mark and not ecn):
            return "drop"
        return "mark" if mark else "pass"

    def enqueued(self, q, size):
        self.newest = q
        self.event()

    def sent(self, q, size):
        classic = self.params["classic_share"]
        if self.heads[not self.l4s(q)]:
            self.credit += size * classic if self.l4s(q) else -size * (10**6 - classic)
            self.credit = max(-CREDIT, min(CREDIT, self.credit))
        self.event()

    def dropped(self, q, size):
        self.event()

    def rated(self):
        self.event()

    def victim(self):
        sizes = self.held()
        if len(sizes) <= self.params["limit"] and sum(sizes) <= self.params["memory"]:
            return None
        if self.view.queues[self.newest].backlogged:
            return self.newest
        return next(q for q, queue in enumerate(self.view.queues) if queue.backlogged)

    def change(self, params, qparams):
        self.catch_up()
        if params["seed"] != self.params["seed"]:
            self.dice = Dice(params["seed"])
        super().change(params, qparams)
        self.controller.params = self.params
        self.controller.base = min(self.controller.base, self.controller.most())
        self.look()

    def observe(self, q):
        base = self.controller.base
        own = min(ONE, base * self.params["coupling"]) * 2**32 if self.l4s(q) else base * base
        return {"base_probability": base * 10**6 // 2**32, "probability": own * 10**6 // 2**64}
