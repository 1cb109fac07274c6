# SPDX-License-Identifier: BSD-3-Clause
"""Proportional delay and loss: waiting-time priority and loss-rate dropping over one shared limit.

Delay: Kleinrock 1964; Dovrolis, Stiliadis and Ramanathan 1999. Loss: Dovrolis and Ramanathan 2000; Gaidioz,
Goutelle and Primet 2002 (RR-4511). The ring is a list of the last K arrivals that is counted again for every
question. The decayed history and early=peld (early loss with debts) are this project's own; the decayed counters are
rounded down to 1/256 of a packet when they are halved.
"""

import math
from fractions import Fraction

from dataplane import Clock, Policy

PARAMS = {"limit": 80, "history": "decayed", "k": 1500, "early": "off", "qmin": 20, "tie": "larger_delay"}
QPARAMS = {"delay": 1, "loss": 1}
RANGES = {"limit": (1, 2**20), "k": (2, 2**22), "qmin": (0, 2**20), "delay": (1, 65535), "loss": (1, 65535)}

LONGEST_WAIT_NS = 2**47
FINEST = 256


def check(view, params, qparams):
    if params["early"] == "peld" and params["history"] != "decayed":
        return ("early", None)
    if params["early"] == "peld" and params["qmin"] >= params["limit"]:
        return ("qmin", None)
    return None


def half(count):
    return Fraction(math.floor(count / 2 * FINEST), FINEST)


class Arrival:
    def __init__(self, q):
        self.q = q
        self.dropped = False


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        nqueues = len(view.queues)
        self.clock = Clock(view.now_ns)
        self.history = params["history"]
        self.k = params["k"]
        self.last_arrivals = []  # ring: the last k of them
        self.arrivals_of = [[None] * len(queue.packets) for queue in view.queues]  # of each queued packet
        self.arrived = 0
        self.rcv = [Fraction(0)] * nqueues  # decayed, infinite
        self.loss = [Fraction(0)] * nqueues
        self.debt = [0] * nqueues
        self.acc = 0
        self.pending = None
        self.drops_of_arrival = 2  # nothing has arrived yet

    def total(self):
        return sum(len(queue.packets) for queue in self.view.queues)

    def backlogged(self):
        return [q for q, queue in enumerate(self.view.queues) if queue.backlogged]

    def counters(self):
        """Received and lost packets of each queue within the history."""
        if self.history != "ring":
            return self.rcv, self.loss
        received, lost = [0] * len(self.rcv), [0] * len(self.rcv)
        for arrival in self.last_arrivals:
            received[arrival.q] += 1
            lost[arrival.q] += arrival.dropped
        return received, lost

    # Delay

    def pick(self):
        now_ns = self.clock.read(self.view.now_ns)

        def order(q):
            delay = self.qparams[q]["delay"]
            wait = min(now_ns - self.view.queues[q].head_arrival_ns, LONGEST_WAIT_NS)
            preferred = delay if self.params["tie"] == "larger_delay" else 0
            return (delay * wait, preferred, -q)

        return max(self.eligible(), key=order, default=None)

    # Loss

    def least_loss(self, queues, with_debt):
        """The queue with the smallest normalised loss; ties: the smaller coefficient, then the lower index."""
        received, lost = self.counters()

        def order(q):
            loss = lost[q] + (self.debt[q] if with_debt else 0)
            coefficient = self.qparams[q]["loss"]
            normalised = Fraction(coefficient * loss) / received[q] if received[q] else Fraction(0)
            return (normalised, coefficient, q)

        return min(queues, key=order, default=None)

    def chargeable(self, queues):
        return [q for q in queues if self.loss[q] + self.debt[q] + 1 <= self.rcv[q]]

    def record(self, q):
        arrival = Arrival(q)
        self.arrivals_of[q].append(arrival)
        self.last_arrivals.append(arrival)
        self.last_arrivals = self.last_arrivals[-self.k :] if self.history == "ring" else []
        self.arrived += 1
        self.rcv[q] += 1
        if self.history == "decayed" and self.arrived % self.k == 0:
            self.rcv = [half(count) for count in self.rcv]
            self.loss = [half(count) for count in self.loss]
            self.debt = [debt if rcv >= 1 else 0 for debt, rcv in zip(self.debt, self.rcv, strict=False)]

    def enqueued(self, q, size):
        self.clock.read(self.view.now_ns)
        self.record(q)
        self.drops_of_arrival = 0
        self.pending = None
        if self.params["early"] == "off":
            return
        if self.debt[q] > 0:
            self.debt[q] -= 1
            self.pending = q
            return
        limit, qmin, total = self.params["limit"], self.params["qmin"], self.total()
        if total > qmin:
            self.acc += min(65536, ((total - qmin) * (2**32 // (limit - qmin))) >> 16)
            if self.acc >= 65536:
                self.acc -= 65536
                self.token()
        if self.pending is None and total > limit:
            self.overflow()

    def token(self):
        b = self.least_loss(self.chargeable(range(len(self.rcv))), with_debt=True)
        if b is None:
            return
        if self.view.queues[b].backlogged:
            self.pending = b
        else:
            self.debt[b] += 1

    def overflow(self):
        b = self.least_loss(self.chargeable(range(len(self.rcv))), with_debt=True)
        if b is not None and not self.view.queues[b].backlogged:
            self.debt[b] += 1
            b = self.least_loss(self.chargeable(self.backlogged()), with_debt=True)
        if b is None:
            b = self.least_loss(self.backlogged(), with_debt=False)
        self.pending = b

    def victim(self):
        if self.drops_of_arrival == 2:
            return None
        if self.pending is not None:
            return self.pending
        if self.total() > self.params["limit"]:
            return self.least_loss(self.backlogged(), with_debt=False)
        return None

    # Departures and drops

    def sent(self, q, size):
        self.clock.read(self.view.now_ns)
        self.arrivals_of[q].pop(0)

    def dropped(self, q, size):
        self.clock.read(self.view.now_ns)
        arrival = self.arrivals_of[q].pop()
        if arrival is not None:
            arrival.dropped = True  # counts as long as it is one of the last k
        self.drops_of_arrival = min(2, self.drops_of_arrival + 1)
        self.loss[q] += 1
        if self.pending == q:
            self.pending = None

    def rated(self):
        self.clock.read(self.view.now_ns)

    def change(self, params, qparams):
        self.clock.read(self.view.now_ns)
        super().change(params, qparams)
        if params["early"] == "off":
            self.debt = [0] * len(self.debt)
            self.acc = 0

    def observe(self, q):
        received, lost = self.counters()
        return {"received": math.floor(received[q]), "lost": math.floor(lost[q]), "debt": self.debt[q]}
