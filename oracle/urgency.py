# SPDX-License-Identifier: BSD-3-Clause
"""What mlwdf, exp_rule and exp_pf share: targets, tolerances, ages of head packets, means of the channels."""

import math

import pf
from dataplane import choose

PARAMS = {"tc": 10**9, "norm": "throughput", "expire": "no"}
QPARAMS = {"target": 100_000_000, "delta": 50_000}
RANGES = {"tc": (10**7, 10**11), "target": (0, 3600 * 10**9), "delta": (1, 500_000), "tick": (1000, 10**10)}

TOO_CLOSE = 1e-5


def check(view, params, qparams):
    return None


class Model(pf.Means):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.reported_bps = [queue.rate_bps for queue in view.queues]
        self.channel = [float(queue.rate_bps) for queue in view.queues]  # mean rate
        self.channel_ns = [view.now_ns] * len(view.queues)
        self.moved = [False] * len(view.queues)  # the mean has been computed since

    # Channels

    def follow_channel(self, q):
        self.moved[q] = True
        kept = math.exp(-(self.now_ns() - self.channel_ns[q]) / self.params["tc"])
        if self.reported_bps[q]:
            self.channel[q] = self.channel[q] * kept + self.reported_bps[q] * (1 - kept)
        self.channel_ns[q] = self.now_ns()

    def rated(self):
        for q, queue in enumerate(self.view.queues):
            if queue.rate_bps != self.reported_bps[q]:
                self.follow_channel(q)
                self.reported_bps[q] = queue.rate_bps
                self.channel[q] = self.channel[q] or float(queue.rate_bps)
        super().rated()

    def change(self, params, qparams):
        if params["tc"] != self.params["tc"]:
            for q in range(len(self.view.queues)):
                self.follow_channel(q)
        super().change(params, qparams)

    def log_key(self, q):
        """Logarithm of the mean that the channel is compared with, divided by the channel's rate."""
        if self.params["norm"] == "channel":
            return pf.log(self.channel[q]) - pf.log(self.means[q].rate_bps)
        return self.aged(self.means[q].key)

    # Ages

    def real_time(self, q):
        return self.qparams[q]["target"] > 0

    def urgency(self, q):
        """-ln(delta) / T, per ns"""
        return -math.log(self.qparams[q]["delta"] / 1e6) / self.qparams[q]["target"]

    def wait_ns(self, q):
        return max(1, self.now_ns() - self.view.queues[q].head_arrival_ns)

    def age(self, q):
        return self.urgency(q) * self.wait_ns(q)

    def waiting(self):
        """Eligible real-time queues."""
        return [q for q in self.eligible() if self.real_time(q)]

    def mean_age(self):
        ages = [self.age(q) for q in self.waiting()]
        return sum(ages) / len(ages) if ages else 0.0

    def factor(self, q):
        return math.log(self.urgency(q) * 1e9) if self.params["factor"] == "urgency" else 0.0

    # Questions

    def claim(self, q):
        """(1 if the queue was never served, which precedes all others; the logarithm of its claim)."""
        key = self.log_key(q)
        new = key == pf.NOTHING
        return (int(new), self.advantage(q) - (0.0 if new else key))

    def same(self, a, b):
        if self.params["norm"] == "channel":
            return self.channel[a] == self.channel[b] and not (self.moved[a] or self.moved[b])
        return super().same(a, b)

    def choose(self):
        self.now_ns()
        queues = {q: self.view.queues[q] for q in self.eligible()}
        return choose(queues, self.claim, TOO_CLOSE, self.same)

    def pick(self):
        return self.choose()[0]

    def ambiguous(self):
        return self.choose()[1]

    def expired(self, q):
        now_ns = max(self.clock.seen_ns, self.view.now_ns)
        waited_ns = now_ns - self.view.queues[q].head_arrival_ns
        return self.params["expire"] == "yes" and 0 < self.qparams[q]["target"] < waited_ns

    def leaving(self, q, ecn):
        return "drop" if self.expired(q) else "pass"
