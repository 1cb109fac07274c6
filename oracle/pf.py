# SPDX-License-Identifier: BSD-3-Clause
"""Proportional fairness by looking at every queue, with means that decay as time passes.

Kelly, Maulloo and Tan 1998; Viswanath, Tse and Laroia 2002. Means and keys are kept as natural logarithms, so that none
becomes 0 in a long silence. A key is a mean divided by weight times rate. Each is a pair: a value and its time.
"""

import math

from dataplane import Clock, Policy, choose

PARAMS = {"tc": 10**9, "unit": "bytes", "idle": "decay"}
QPARAMS = {"weight": 1}
RANGES = {"tc": (10**7, 10**11), "weight": (1, 65535)}

NOTHING = -math.inf
TOO_CLOSE = 1e-6


def check(view, params, qparams):
    return None


def log(value):
    return math.log(value) if value > 0 else NOTHING


def log_sum(a, b):
    """log(exp(a) + exp(b))"""
    more, less = max(a, b), min(a, b)
    return more if less == NOTHING else more + math.log1p(math.exp(less - more))


class Mean:
    """The service that one queue received."""

    def __init__(self):
        self.sum = (NOTHING, 0)  # logarithm, and the time at which it was that
        self.key = (NOTHING, 0)
        self.rate_bps = None  # the last one that was not 0
        self.weight = 1
        self.away = True


class Means(Policy):
    """Means of the service of each queue, for PF and for policies that compare a channel with them."""

    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.clock = Clock(view.now_ns)
        self.means = [Mean() for _ in view.queues]
        self.floor = (NOTHING, 0)  # the key of the last queue served, before it was
        self.take_rates()
        self.follow()

    def now_ns(self):
        return self.clock.read(self.view.now_ns)

    def frozen(self, mean):
        return mean.away and self.params.get("idle") == "freeze"

    def aged(self, pair):
        """A pair's value as of now."""
        value, at_ns = pair
        return value - (self.now_ns() - at_ns) / self.params["tc"]

    def sum_now(self, mean):
        return mean.sum[0] if self.frozen(mean) else self.aged(mean.sum)

    def set_sum(self, mean, value):
        mean.sum = (value, self.now_ns())
        self.set_key(mean)

    def set_key(self, mean):
        value, at_ns = mean.sum
        mean.key = (value - log(mean.weight * mean.rate_bps) if mean.rate_bps else NOTHING, at_ns)

    def take_rates(self):
        for q, queue in enumerate(self.view.queues):
            mean, weight = self.means[q], self.qparams[q].get("weight", 1)
            if (queue.rate_bps and queue.rate_bps != mean.rate_bps) or weight != mean.weight:
                mean.rate_bps = queue.rate_bps or mean.rate_bps
                mean.weight = weight
                self.set_key(mean)

    def claimants(self):
        return [q for q in self.eligible() if not self.means[q].away]

    def follow(self):
        """Queues that have become empty go away; eligible ones return."""
        for q, queue in enumerate(self.view.queues):
            mean = self.means[q]
            if not queue.backlogged and not mean.away:
                value = self.aged(mean.sum)
                mean.away = True
                if self.frozen(mean):
                    mean.sum = (value, self.now_ns())
        for q in self.eligible():
            if self.means[q].away:
                self.come_back(q)

    def come_back(self, q):
        mean = self.means[q]
        known = mean.sum[0] > NOTHING
        others = [self.means[other].key for other in self.claimants()]
        frozen = self.frozen(mean)
        value = self.sum_now(mean)
        mean.away = False
        if frozen or known:
            mean.sum = (value, self.now_ns()) if frozen else mean.sum
        self.set_key(mean)
        if known and self.params.get("idle") == "freeze":
            return
        if not others:
            if self.floor[0] == NOTHING:
                return
            others = [self.floor]
        best = min(others, key=self.aged)
        if any(key is not best and abs(self.aged(key) - self.aged(best)) < TOO_CLOSE for key in [*others, mean.key]):
            best = (best[0], best[1])  # rounding decides whose key is taken: a copy, equal to none
        if self.aged(mean.key) < self.aged(best):
            mean.sum = (self.aged(best) + log(mean.weight * mean.rate_bps), self.now_ns())
            mean.key = best

    def serve(self, q, size):
        mean = self.means[q]
        if not mean.away:
            self.floor = mean.key
        unit = self.params.get("unit", "bytes")
        counted = {"bytes": log(size), "packets": 0.0}.get(unit)
        if unit == "airtime":
            counted = log(size) - log(mean.rate_bps) if mean.rate_bps else NOTHING
        self.set_sum(mean, log_sum(self.sum_now(mean), counted))

    def same(self, a, b):
        """Whether two keys are the same: one queue took it from the other when it returned, or neither has one yet."""
        mine, its = self.means[a].key, self.means[b].key
        return mine is its or mine[0] == its[0] == NOTHING

    def enqueued(self, q, size):
        self.now_ns()
        self.follow()

    def dropped(self, q, size):
        self.now_ns()
        self.follow()

    def sent(self, q, size):
        self.serve(q, size)
        self.follow()

    def rated(self):
        self.now_ns()
        self.take_rates()
        self.follow()

    def observe(self, q):
        """The mean in the units that observe() shows."""
        scale = {"bytes": 8e9, "airtime": 8e15, "packets": 1e12}[self.params.get("unit", "bytes")]
        shown = math.exp(self.sum_now(self.means[q])) * scale / self.params["tc"]
        return {"mean": round(shown)}

    def change(self, params, qparams):
        if any(params.get(name) != self.params.get(name) for name in ("tc", "unit", "idle")):
            same = params.get("unit") == self.params.get("unit")
            scale = log(params["tc"]) - log(self.params["tc"])
            for mean in self.means:
                mean.sum = (self.sum_now(mean) + scale if same else NOTHING, self.now_ns())
                self.set_key(mean)
            self.floor = (self.aged(self.floor) + scale if same else NOTHING, self.now_ns())
        super().change(params, qparams)
        self.take_rates()
        self.follow()


class Model(Means):
    def choose(self):
        self.now_ns()
        queues = {q: self.view.queues[q] for q in self.eligible()}
        return choose(queues, lambda q: (-self.aged(self.means[q].key),), TOO_CLOSE, self.same)

    def pick(self):
        return self.choose()[0]

    def ambiguous(self):
        return self.choose()[1]
