# SPDX-License-Identifier: BSD-3-Clause
"""Earliest deadline first: of all head packets the one that is due first; ties go to the lowest index."""

from dataplane import Policy

PARAMS = {}
QPARAMS = {"deadline": 100_000_000}
RANGES = {"deadline": (0, 3600 * 10**9)}


def check(view, params, qparams):
    return None


class Model(Policy):
    def pick(self):
        due = [(self.view.queues[q].head_arrival_ns + self.qparams[q]["deadline"], q) for q in self.eligible()]
        return min(due)[1] if due else None
