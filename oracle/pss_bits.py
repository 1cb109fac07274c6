# SPDX-License-Identifier: BSD-3-Clause
"""Priority Switching Scheduler with levels in bits and exact fractions: the form of the paper's algorithm 1.

Finzi, Perrier, Frances and Lochin 2023, section 2.3, with the deviations named in pss.py. A credit is valid as of
`mark`, which may lie in the future while a packet is nominally on the link. It takes the same parameters as pss.py,
but implements only sat=exact and on_empty=keep, without changes or shares. Tests compare the two.
"""

from fractions import Fraction

from dataplane import Policy
from pss import NS, PARAMS, QPARAMS, RANGES, check, controlled, level_of, thresholds

__all__ = ["PARAMS", "QPARAMS", "RANGES", "Model", "check"]


class Credit:
    def __init__(self, values, link_bps, now_ns):
        self.rho = Fraction(values["rate"], NS)  # bit per ns
        self.share = Fraction(values["rate"], link_bps)
        self.lr, self.lm = thresholds(values, values["rate"], link_bps)
        self.credit = Fraction(self.lr if values["credit"] is None else values["credit"])
        self.mark = Fraction(now_ns)
        self.low = False


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        assert params["sat"] == "exact"
        assert params["on_empty"] == "keep"
        self.link = Fraction(view.link_bps, NS)
        self.credits = {
            q: Credit(values, view.link_bps, view.now_ns) for q, values in enumerate(qparams) if controlled(values)
        }

    def settle(self, q, backlogged):
        """Brings the credit from `mark` to now."""
        state = self.credits[q]
        elapsed = self.view.now_ns - state.mark
        if elapsed > 0:
            floor = 0 if backlogged else min(state.credit, state.lr)
            state.credit = max(floor, state.credit - state.rho * elapsed)
            state.mark = Fraction(self.view.now_ns)
        elif elapsed < 0 and self.params["early"] == "charge":
            state.credit += state.rho * -elapsed
            state.mark = Fraction(self.view.now_ns)
        if state.low and state.credit <= state.lr:
            state.low = False

    def settle_all(self, leaving=None):
        for q in self.credits:
            self.settle(q, self.view.queues[q].backlogged or q == leaving)

    def enqueued(self, q, size):
        if q in self.credits and len(self.view.queues[q].packets) == 1:
            self.settle(q, backlogged=False)

    def pick(self):
        self.settle_all()
        return min(self.eligible(), key=self.current_level, default=None)

    def current_level(self, q):
        if q in self.credits and self.credits[q].low:
            return self.qparams[q]["low_level"]
        return level_of(q, self.qparams[q])

    def sent(self, q, size):
        self.settle_all(leaving=q)
        if q not in self.credits:
            return
        state = self.credits[q]
        gain = 8 * size * (1 - state.share)
        if not state.low:
            state.credit += gain
        else:
            state.credit = max(state.credit, min(Fraction(state.lm), state.credit + gain))
        state.mark = self.view.now_ns + 8 * size / self.link
        if not state.low and state.credit >= state.lm:
            state.low = True
