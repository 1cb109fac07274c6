# SPDX-License-Identifier: BSD-3-Clause
"""Weighted fair queueing by self-clocked tags (Golestani 1994), behind a strict queue; for pss_claims.py."""

from linkweir.own import parameter


class SelfClockedFairQueueing:
    """Weight 0: strict priority. Of the others the packet with the smallest finishing tag goes next."""

    class_params = {  # noqa: RUF012
        "weight": parameter(
            "number", default="1", min="0", max="1000000", help="share of the rest; 0: before all others"
        ),
    }

    def __init__(self, view, params, classes):
        self.weights = [one["weight"] for one in classes]
        self.finish = [0.0] * len(classes)
        self.clock = 0.0

    def pick(self, view):
        ready = [q for q, queue in enumerate(view.queues) if queue.ready]
        strict = [q for q in ready if self.weights[q] == 0]
        if strict:
            return strict[0]
        return min(ready, key=lambda q: self.finish[q], default=None)

    def enqueued(self, view, q, size):
        if view.queues[q].backlog_pkts == 1 and self.weights[q]:
            self.finish[q] = max(self.finish[q], self.clock) + size / self.weights[q]

    def sent(self, view, q, size):
        if not self.weights[q]:
            return
        self.clock = self.finish[q]
        if view.queues[q].backlog_pkts:
            self.finish[q] += view.queues[q].head_bytes / self.weights[q]
