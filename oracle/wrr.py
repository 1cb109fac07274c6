# SPDX-License-Identifier: BSD-3-Clause
"""Weighted round robin: Katevenis, Sidiropoulos and Courcoubetis 1991; weights count packets.

Levels are served strictly, queues of one level by weight. mode=burst: `weight` packets in a row at each visit.
mode=smooth: a cycle is made of rounds, and round r serves one packet of each queue with weight >= r.
A visit interrupted by a more urgent level resumes where it stopped.
"""

from dataplane import Policy

PARAMS = {"mode": "burst"}
QPARAMS = {"weight": 1, "level": 0}
RANGES = {"weight": (1, 65535), "level": (0, 63)}


def check(view, params, qparams):
    return None


class Level:
    """Queues in the order they will be served; burst needs only `now`."""

    def __init__(self):
        self.now = []
        self.next = []
        self.parked = []

    def lists(self):
        return (self.now, self.next, self.parked)

    def __contains__(self, q):
        return any(q in some for some in self.lists())

    def remove(self, q):
        for some in self.lists():
            if q in some:
                some.remove(q)


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.start_over()

    def start_over(self):
        self.levels = {}
        self.left = {}  # burst: packets left of a visit that has begun
        self.used = {}  # smooth: packets served in this cycle
        self.refresh()

    def level_of(self, q):
        return self.levels.setdefault(self.qparams[q]["level"], Level())

    def leave(self, q):
        for level in self.levels.values():
            level.remove(q)
        self.left.pop(q, None)
        self.used.pop(q, None)

    def refresh(self):
        for q, queue in enumerate(self.view.queues):
            if not queue.eligible:
                self.leave(q)
            elif q not in self.level_of(q):
                self.leave(q)
                level = self.level_of(q)
                (level.now if self.params["mode"] == "burst" else level.parked).append(q)

    def pick(self):
        for number in sorted(self.levels):
            level = self.levels[number]
            if not level.now and level.next:
                level.now, level.next = level.next, []
            elif not level.now:
                level.now, level.parked = level.parked, []
            if level.now:
                return level.now[0]
        return None

    def enqueued(self, q, size):
        self.refresh()

    def dropped(self, q, size):
        self.refresh()

    def rated(self):
        self.refresh()

    def sent(self, q, size):
        self.refresh()
        if not self.view.queues[q].eligible:
            return
        weight = self.qparams[q]["weight"]
        level = self.level_of(q)
        if self.params["mode"] == "burst":
            self.left[q] = self.left.get(q, weight) - 1
            if self.left[q] == 0:
                del self.left[q]
                level.remove(q)
                level.now.append(q)
        else:
            self.used[q] = self.used.get(q, 0) + 1
            level.remove(q)
            if self.used[q] < weight:
                level.next.append(q)
            else:
                del self.used[q]
                level.parked.append(q)

    def change(self, params, qparams):
        new_mode = params["mode"] != self.params["mode"]
        super().change(params, qparams)
        if new_mode:
            self.start_over()
        self.refresh()
