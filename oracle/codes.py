# SPDX-License-Identifier: BSD-3-Clause
"""CoDeS: proportional fairness that drops packets which waited longer than a timeout. Tauran et al. 2018."""

import pf

PARAMS = pf.PARAMS
QPARAMS = pf.QPARAMS | {"timeout": 100_000_000}
RANGES = pf.RANGES | {"timeout": (0, 3600 * 10**9)}

check = pf.check


class Model(pf.Model):
    def expired(self, q):
        timeout_ns = self.qparams[q]["timeout"]
        # expired() only reads the state, so the policy's clock does not advance.
        now_ns = max(self.clock.seen_ns, self.view.now_ns)
        return timeout_ns > 0 and now_ns - self.view.queues[q].head_arrival_ns > timeout_ns

    def leaving(self, q, ecn):
        return "drop" if self.expired(q) else "pass"
