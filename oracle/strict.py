# SPDX-License-Identifier: BSD-3-Clause
"""Strict priority: the backlogged queue with the smallest level; level 0 is the most urgent, and no two are equal."""

from dataplane import Policy, first_equal_level

PARAMS = {}
QPARAMS = {"level": None}
RANGES = {"level": (0, 65535)}


def levels_of(qparams):
    return [q if values["level"] is None else values["level"] for q, values in enumerate(qparams)]


def check(view, params, qparams):
    q = first_equal_level(levels_of(qparams))
    return None if q is None else ("level", q)


class Model(Policy):
    def pick(self):
        levels = levels_of(self.qparams)
        return min(self.eligible(), key=lambda q: levels[q], default=None)
