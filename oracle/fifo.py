# SPDX-License-Identifier: BSD-3-Clause
"""First in, first out over all queues: the earliest head packet of the eligible queues; ties go to the lowest index."""

from dataplane import Policy

PARAMS = {}
QPARAMS = {}
RANGES = {}


def check(view, params, qparams):
    return None


class Model(Policy):
    def pick(self):
        heads = [(self.view.queues[q].head_arrival_ns, q) for q in self.eligible()]
        return min(heads)[1] if heads else None
