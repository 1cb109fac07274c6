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
        mean = self.mean_age()
        exponent = ((self.age(q) if self.real_time(q) else 0.0) - mean) / (1 + math.sqrt(mean))
        return max(-MOST, min(MOST, exponent)) + (self.factor(q) if self.real_time(q) else 0.0)
