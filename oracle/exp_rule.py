# SPDX-License-Identifier: BSD-3-Clause
"""The exponential rule. Shakkottai and Stolyar 2001 and 2002."""

import math

import urgency

PARAMS = urgency.PARAMS | {"factor": "none"}
QPARAMS = urgency.QPARAMS
RANGES = urgency.RANGES

MOST = 32 * math.log(2)

check = urgency.check


class Model(urgency.Model):
    def advantage(self, q):
        if not self.real_time(q):
            return 0.0
        return min(MOST, self.age(q) / (1 + math.sqrt(self.mean_age()))) + self.factor(q)
