# SPDX-License-Identifier: BSD-3-Clause
"""Priority Switching Scheduler: Finzi, Perrier, Frances and Lochin 2023, algorithm 1, in whole nanoseconds.

A controlled queue has a level that falls with time at its reserved rate and rises with its own packets. At or below
LR the queue has its urgent priority; from LM on it has its other one until it is back at LR. The level is kept as
the instant `tat` at which it will be 0, so V = tat - now is the level in time. With early=ignore, the older
algorithm, the level does not fall until `mark`, the nominal end of the queue's last packet, even if the packet ended
earlier. Deviations from the paper: the switch back is at LR itself, the level starts at LR, and an idle interval is
evaluated when a packet arrives, not when one is sent. pss_bits.py is the same scheduler with levels in bits and exact
fractions.
"""

from dataplane import Clock, Policy, first_equal_level

PARAMS = {"sat": "exact", "on_empty": "keep", "early": "charge"}
QPARAMS = {
    "level": None,
    "low_level": None,
    "rate": 0,
    "share": 0,
    "burst": 20,
    "mtu": 1514,
    "memory": 100_000_000,
    "lr": None,
    "lm": None,
    "credit": None,
}
RANGES = {
    "level": (0, 65535),
    "low_level": (0, 65535),
    "rate": (0, 400 * 10**9),
    "share": (0, 999_999),
    "burst": (2, 2**20),
    "mtu": (64, 2**20 - 1),
    "memory": (0, 7 * 86_400 * 10**9),
    "lr": (0, 2**60),
    "lm": (0, 2**60),
    "credit": (0, 2**60),
}

NS = 10**9
LONGEST_NS = 2**62
LARGEST_PACKET = 2**20 - 1
MOST_LEVELS = 4096


def controlled(values):
    return values["low_level"] is not None


def level_of(q, values):
    return q if values["level"] is None else values["level"]


def rho_of(values, link_bps):
    if values["rate"]:
        return values["rate"]
    return link_bps * values["share"] // 10**6


def thresholds(values, rho, link_bps):
    """LR and LM in bits."""
    lr, lm = values["lr"], values["lm"]
    if lr is None:
        lr = max(rho * values["memory"] // NS, rho * 2 * 8 * values["mtu"] // link_bps)
    if lm is None:
        lm = lr + (values["burst"] - 1) * 8 * values["mtu"] * (link_bps - rho) // link_bps
    return lr, lm


def check(view, params, qparams):
    link_bps = view.link_bps
    total = 0
    for q, values in enumerate(qparams):
        if q + 1 + sum(1 for before in qparams[: q + 1] if controlled(before)) > MOST_LEVELS:
            return ("low_level", q)
        if not controlled(values):
            for name in ("rate", "share"):
                if values[name]:
                    return (name, q)
            continue
        if values["rate"] and values["share"]:
            return ("share", q)
        if not values["rate"] and not values["share"]:
            return ("rate", q)
        given = "rate" if values["rate"] else "share"
        if values["low_level"] <= level_of(q, values):
            return ("low_level", q)
        rho = rho_of(values, link_bps)
        if rho < 10 or rho >= link_bps:
            return (given, q)
        total += rho
        if total > link_bps:
            return (given, q)
        lr, lm = thresholds(values, rho, link_bps)
        if lm <= lr:
            return (given if values["lm"] is None else "lm", q)
    names, owners, levels = [], [], []
    for q, values in enumerate(qparams):
        names.append("level")
        owners.append(q)
        levels.append(level_of(q, values))
        if controlled(values):
            names.append("low_level")
            owners.append(q)
            levels.append(values["low_level"])
    twice = first_equal_level(levels)
    if twice is not None:
        return (names[twice], owners[twice])
    return None


class Pace:
    """Converts lengths to nanoseconds by one product and one shift."""

    def __init__(self, rate_bps):
        for shift in range(63, -1, -1):
            mult = (2 * 8 * NS * 2**shift + rate_bps) // (2 * rate_bps)
            if mult < 2**32:
                break
        self.mult, self.shift = mult, shift

    def ns(self, size):
        return size * self.mult >> self.shift

    def ns_with_fraction(self, size, fraction):
        product = size * self.mult + fraction
        return product >> self.shift, product % 2**self.shift


class Bucket:
    """The state of a controlled queue."""

    def __init__(self, values, rho, link_bps, now_ns, credit_bits):
        self.configure(values, rho, link_bps)
        level = self.tr if credit_bits is None else min(credit_bits * NS // rho, LONGEST_NS)
        self.tat = now_ns + level
        self.fraction = 0
        self.low = False
        self.floor = min(level, self.tr)
        self.mark = now_ns

    def configure(self, values, rho, link_bps):
        self.rho = rho
        self.cost = Pace(rho)
        lr, lm = thresholds(values, rho, link_bps)
        self.tr = min(lr * NS // rho, LONGEST_NS)
        self.tm = min(lm * NS // rho, LONGEST_NS)

    def level(self, now_ns, empty):
        """V: never below 0, and not below the floor while the queue is empty."""
        level = self.tat - max(now_ns, self.mark)
        return max(level, self.floor if empty else 0)


def between(low, value, high):
    return max(low, min(value, high))


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.clock = Clock(view.now_ns)
        self.reported = []  # every capacity, in order
        self.follow(view.link_bps)
        self.buckets = {}
        for q, values in enumerate(qparams):
            if controlled(values):
                bucket = self.new_bucket(values, view.now_ns, values["credit"])
                if params["on_empty"] == "reset":
                    bucket.floor = bucket.tr
                self.buckets[q] = bucket

    def follow(self, link_bps):
        self.reported.append(link_bps)
        self.link_bps = link_bps
        self.tx = Pace(link_bps)

    def measure(self, values):
        """The capacity that gives LR and LM: for a rate the largest reported, for a share the present one."""
        return self.link_bps if values["share"] else max(self.reported)

    def new_bucket(self, values, now_ns, credit_bits):
        link_bps = self.measure(values)
        return Bucket(values, max(10, rho_of(values, link_bps)), link_bps, now_ns, credit_bits)

    def empty(self, q):
        return not self.view.queues[q].backlogged

    def settle(self, now_ns):
        """Queues whose level has fallen to LR return to their urgent priority."""
        for q, bucket in self.buckets.items():
            if bucket.low and bucket.level(now_ns, self.empty(q)) <= bucket.tr:
                bucket.low = False

    def current_level(self, q):
        if q in self.buckets and self.buckets[q].low:
            return self.qparams[q]["low_level"]
        return level_of(q, self.qparams[q])

    def pick(self):
        self.settle(self.clock.read(self.view.now_ns))
        return min(self.eligible(), key=self.current_level, default=None)

    def enqueued(self, q, size):
        now_ns = self.clock.read(self.view.now_ns)
        if q in self.buckets and len(self.view.queues[q].packets) == 1:
            bucket = self.buckets[q]
            start = max(now_ns, bucket.mark)
            if bucket.tat < start + bucket.floor:
                bucket.tat = start + bucket.floor
                bucket.fraction = 0

    def sent(self, q, size):
        now_ns = self.clock.read(self.view.now_ns)
        self.settle(now_ns)
        if self.params["sat"] == "paper":
            for bucket in self.buckets.values():
                bucket.tat = min(bucket.tat, max(now_ns, bucket.mark) + bucket.tm)
        if q not in self.buckets:
            return
        bucket = self.buckets[q]
        if bucket.mark > now_ns:  # only with early=ignore: the level at `mark` is used unchanged
            bucket.tat -= bucket.mark - now_ns
            bucket.mark = now_ns
        tx_ns = self.tx.ns(size)
        if bucket.tat < now_ns:
            bucket.tat = now_ns
            bucket.fraction = 0
        rise, fraction = bucket.cost.ns_with_fraction(size, bucket.fraction)
        cap = now_ns + bucket.tm + tx_ns
        if not bucket.low:
            bucket.tat += rise
            bucket.fraction = fraction
            if self.params["sat"] == "paper":
                bucket.tat = min(bucket.tat, cap)
            if bucket.tat >= cap:
                bucket.low = True
        elif bucket.tat + rise <= cap:
            bucket.tat += rise
            bucket.fraction = fraction
        elif bucket.tat < cap:
            bucket.tat = cap
            bucket.fraction = 0
        if self.params["early"] == "ignore":
            bucket.mark = now_ns + tx_ns
        if self.empty(q):
            self.set_floor(bucket, bucket.tat - now_ns - tx_ns)

    def set_floor(self, bucket, level):
        bucket.floor = bucket.tr if self.params["on_empty"] == "reset" else between(0, level, bucket.tr)

    def dropped(self, q, size):
        now_ns = self.clock.read(self.view.now_ns)
        if q in self.buckets and self.empty(q):
            bucket = self.buckets[q]
            self.set_floor(bucket, bucket.tat - max(now_ns, bucket.mark))

    def convert(self, q, now_ns, asked=False):
        """New constants for queue q, because of a new capacity or new parameters (`asked`).

        The level's distance from LR keeps its number of bits: below LR this is what the queue is owed, above LR what it
        has received in advance. It is owed LR at most, and ahead by LM and the largest packet at most. If neither
        constants nor parameters have changed, the state stays as it is.
        """
        bucket, values = self.buckets[q], self.qparams[q]
        link_bps = self.measure(values)
        level, rho, tr, tm = bucket.level(now_ns, self.empty(q)), bucket.rho, bucket.tr, bucket.tm
        bucket.configure(values, max(10, rho_of(values, link_bps)), link_bps)
        if not asked and (bucket.rho, bucket.tr, bucket.tm) == (rho, tr, tm):
            return
        if level < tr:
            level = bucket.tr - (tr - level) * rho // bucket.rho
        else:
            level = bucket.tr + (level - tr) * rho // bucket.rho
        level = between(0, level, bucket.tm + bucket.cost.ns(LARGEST_PACKET))
        if self.params["early"] == "charge":
            bucket.mark = now_ns
        bucket.tat = max(now_ns, bucket.mark) + level
        bucket.fraction = 0
        bucket.low = bucket.low and level > bucket.tr
        self.set_floor(bucket, level)

    def rated(self):
        now_ns = self.clock.read(self.view.now_ns)
        if self.view.link_bps in (0, self.link_bps):
            return
        self.follow(self.view.link_bps)
        for q in self.buckets:
            self.convert(q, now_ns)

    def change(self, params, qparams):
        now_ns = self.clock.read(self.view.now_ns)
        before, rows = self.params, self.qparams
        super().change(params, qparams)
        other_rules = any(before[name] != params[name] for name in ("on_empty", "early"))
        if self.view.link_bps:
            self.follow(self.view.link_bps)
        for q, values in enumerate(qparams):
            if not controlled(values):
                self.buckets.pop(q, None)
            elif q in self.buckets:
                self.convert(q, now_ns, asked=other_rules or values != rows[q])
            else:
                self.buckets[q] = self.new_bucket(values, now_ns, None)

    def observe(self, q):
        now_ns = max(self.view.now_ns, self.clock.seen_ns)
        if q not in self.buckets:
            return {"credit": 0, "low": 0}
        bucket = self.buckets[q]
        return {"credit": bucket.level(now_ns, self.empty(q)) * bucket.rho // NS, "low": int(bucket.low)}
