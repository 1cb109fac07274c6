# SPDX-License-Identifier: BSD-3-Clause
"""Deficit round robin: Shreedhar and Varghese 1996; Lenzini, Mingozzi and Stea 2004.

Levels are served strictly, queues of one level by deficit. Rounds are made one by one, however small the quantum is.
`pick` keeps the rotation it makes, so that it answers the same when asked again; `sent` charges the deficit.
"""

from dataplane import Policy

PARAMS = {}
QPARAMS = {"quantum": 1514, "level": 0}
RANGES = {"quantum": (1, 2**20 - 1), "level": (0, 63)}


def check(view, params, qparams):
    return None


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.turn = {}  # level: queues, the one being visited first
        self.deficit = {}
        self.fresh = {}
        self.refresh()

    def leave(self, q):
        for queues in self.turn.values():
            if q in queues:
                queues.remove(q)

    def refresh(self):
        for q, queue in enumerate(self.view.queues):
            queues = self.turn.setdefault(self.qparams[q]["level"], [])
            if not queue.eligible:
                self.leave(q)
            elif q not in queues:
                self.leave(q)
                queues.append(q)
                self.deficit[q] = 0
                self.fresh[q] = True

    def bound(self, q):
        """The largest deficit there can be."""
        return self.qparams[q]["quantum"] + 2**20

    def pick(self):
        for level in sorted(self.turn):
            queues = self.turn[level]
            while queues:
                q = queues[0]
                if self.fresh[q]:
                    self.deficit[q] = min(self.deficit[q] + self.qparams[q]["quantum"], self.bound(q))
                    self.fresh[q] = False
                if self.view.queues[q].head_bytes <= self.deficit[q]:
                    return q
                queues.append(queues.pop(0))
                self.fresh[q] = True
        return None

    def enqueued(self, q, size):
        self.refresh()

    def dropped(self, q, size):
        self.refresh()

    def rated(self):
        self.refresh()

    def sent(self, q, size):
        self.refresh()
        if self.view.queues[q].eligible:
            self.deficit[q] = max(0, self.deficit[q] - size)

    def change(self, params, qparams):
        super().change(params, qparams)
        self.refresh()
        for queues in self.turn.values():
            for q in queues:
                self.deficit[q] = min(self.deficit[q], self.bound(q))
