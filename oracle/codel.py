# SPDX-License-Identifier: BSD-3-Clause
"""Controlled delay, first come, first served over all queues. RFC 8289, section 5.

The RFC's loop is kept as a generator: it looks at the head packet, yields a verdict, and continues when the next head
packet is to be judged. A mark counts as a drop after which the packet is sent, as in Linux.
"""

import math

from dataplane import Clock, Policy

PARAMS = {"target": 5_000_000, "interval": 100_000_000, "mtu": 1514, "ecn": "no"}
QPARAMS = {}
RANGES = {"target": (1000, 10**10), "interval": (10**6, 4 * 10**9), "mtu": (0, 2**20 - 1)}


def check(view, params, qparams):
    return None


class Codel:
    """The control law for one stream. `head()` returns (sojourn of the head packet in ns, bytes behind it)."""

    def __init__(self, head, now_ns, params):
        self.head = head
        self.now_ns = now_ns
        self.params = params
        self.first_above_ns = 0
        self.drop_next_ns = 0
        self.count = 0
        self.lastcount = 0
        self.dropping = False
        self.running = None

    def gap_ns(self):
        return self.params["interval"] * math.isqrt(2**64 // self.count) // 2**32

    def ok_to_drop(self):
        sojourn_ns, behind = self.head()
        if sojourn_ns < self.params["target"] or behind <= self.params["mtu"]:
            self.first_above_ns = 0
            return False
        if self.first_above_ns == 0:
            self.first_above_ns = self.now_ns() + self.params["interval"]
            return False
        return self.now_ns() >= self.first_above_ns

    def empty(self):
        """The queue is empty: the first lines of the RFC's functions."""
        self.first_above_ns = 0
        self.dropping = False
        self.running = None

    def dequeue(self):
        ok = self.ok_to_drop()
        if self.dropping:
            if not ok:
                self.dropping = False
            while self.dropping and self.now_ns() >= self.drop_next_ns:
                self.count += 1
                if self.markable:
                    self.drop_next_ns += self.gap_ns()
                    yield "mark"
                    return
                yield "drop"
                if self.ok_to_drop():
                    self.drop_next_ns += self.gap_ns()
                else:
                    self.dropping = False
        elif ok:
            mark = self.markable
            self.dropping = True
            delta = self.count - self.lastcount
            recent = self.now_ns() - self.drop_next_ns < 16 * self.params["interval"]
            self.count = delta if delta > 1 and recent else 1
            self.drop_next_ns = self.now_ns() + self.gap_ns()
            self.lastcount = self.count
            if mark:
                yield "mark"
                return
            yield "drop"
            self.ok_to_drop()
        yield "pass"

    def judge(self, ecn):
        self.markable = ecn and self.params["ecn"] == "yes"
        if self.running is None:
            self.running = self.dequeue()
        verdict = next(self.running)
        if verdict != "drop":
            self.running = None
        return verdict


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.clock = Clock(view.now_ns)
        self.judged = None
        self.codel = Codel(self.head, self.now_ns, self.params)

    def now_ns(self):
        return self.clock.read(self.view.now_ns)

    def head(self):
        queue = self.view.queues[self.judged]
        everything = sum(size for other in self.view.queues for _, size in other.packets)
        return max(0, self.now_ns() - queue.head_arrival_ns), everything - queue.head_bytes

    def pick(self):
        self.now_ns()
        heads = [(self.view.queues[q].head_arrival_ns, q) for q in self.eligible()]
        return min(heads)[1] if heads else None

    def leaving(self, q, ecn):
        self.judged = q
        return self.codel.judge(ecn)

    def change(self, params, qparams):
        super().change(params, qparams)
        self.codel.params = self.params

    def observe(self, q):
        return {"dropping": int(self.codel.dropping), "count": self.codel.count}
