# SPDX-License-Identifier: BSD-3-Clause
"""Modified largest weighted delay first. Andrews et al. 2001; Shakkottai and Stolyar 2001."""

import math

import pf
import urgency
from urgency import PARAMS, QPARAMS, RANGES, check

__all__ = ["PARAMS", "QPARAMS", "RANGES", "Model", "check"]


class Model(urgency.Model):
    def claim(self, q):
        if self.log_key(q) == pf.NOTHING:
            return (1, 0.0)
        return super().claim(q)

    def advantage(self, q):
        return math.log(self.age(q)) if self.real_time(q) else 0.0
