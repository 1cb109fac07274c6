# SPDX-License-Identifier: BSD-3-Clause
"""Exponential proportional fairness. Rhee, Holtzman and Kim 2003."""

import math

import urgency

PARAMS = urgency.PARAMS | {"factor": "none", "tick": 10**6}
QPARAMS = urgency.QPARAMS
RANGES = urgency.RANGES

MOST = 32 * math.log(2)
DOWN, UP, LEAST = 0.01, 0.001, 0.01

check = urgency.check


class Model(urgency.Model):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.steps = 1000  # the weight of elastic queues, in 0.001
        self.next_tick_ns = 0

    def advantage(self, q):
        waiting = self.waiting()
        if not self.real_time(q):
            packets = sum(len(self.view.queues[other].packets) for other in waiting)
            return math.log(self.steps / 1000) - (math.log(packets / len(waiting)) if waiting else 0.0)
        mean = self.mean_age()
        exponent = (self.age(q) - mean) / (1 + math.sqrt(mean))
        return max(-MOST, min(MOST, exponent)) + self.factor(q)

    def sent(self, q, size):
        super().sent(q, size)
        if self.now_ns() < self.next_tick_ns:
            return
        self.next_tick_ns = self.now_ns() + self.params["tick"]
        targets = [values["target"] for values in self.qparams if values["target"]]
        oldest_ns = max((self.wait_ns(other) for other in self.waiting()), default=0)
        late = bool(targets) and oldest_ns > min(targets)
        self.steps = max(10, min(1000, self.steps - 10 if late else self.steps + 1))
