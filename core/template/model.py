# SPDX-License-Identifier: BSD-3-Clause
"""NAME. FILL IN: what the source says. This model is written from the source, not from core/src/NAME.c."""

from dataplane import Policy

PARAMS = {}
"""Defaults of the policy's parameters, by name."""
QPARAMS = {}
"""Defaults of the parameters of a queue."""
RANGES = {}
"""(least, most) of each parameter that is a number."""


def check(view, params, qparams):
    """(parameter, queue) at fault, or None; the queue is None for a parameter of the policy."""


class Model(Policy):
    def pick(self):
        heads = [(self.view.queues[q].head_arrival_ns, q) for q in self.eligible()]
        return min(heads)[1] if heads else None
