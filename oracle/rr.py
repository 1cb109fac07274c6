# SPDX-License-Identifier: BSD-3-Clause
"""Round robin: one packet of each queue in turn, kept as the list of eligible queues."""

from dataplane import Policy

PARAMS = {}
QPARAMS = {}
RANGES = {}


def check(view, params, qparams):
    return None


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.turn = []
        self.refresh()

    def refresh(self):
        """Queues that are no longer eligible leave; newly eligible ones join at the tail."""
        self.turn = [q for q in self.turn if self.view.queues[q].eligible]
        self.turn += [q for q in self.eligible() if q not in self.turn]

    def pick(self):
        return self.turn[0] if self.turn else None

    def enqueued(self, q, size):
        self.refresh()

    def dropped(self, q, size):
        self.refresh()

    def rated(self):
        self.refresh()

    def sent(self, q, size):
        self.refresh()
        if q in self.turn:
            self.turn.remove(q)
            self.turn.append(q)
