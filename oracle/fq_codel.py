# SPDX-License-Identifier: BSD-3-Clause
"""Flow queues under controlled delay. RFC 8290, section 4. Every queue is a flow.

As in Linux: the batch drop, and the backlog that permits drops, which is what all flows hold and not only the
packet's own.
"""

import codel
from dataplane import Clock, Policy

PARAMS = codel.PARAMS | {"ecn": "yes", "quantum": 1514, "limit": 10240, "memory": 32 * 2**20}
QPARAMS = {}
RANGES = codel.RANGES | {"quantum": (1, 2**20 - 1), "limit": (1, 2**20), "memory": (1, 2**40)}

BATCH_PKTS = 64


def check(view, params, qparams):
    return None


class Flow:
    def __init__(self, model, q):
        self.model = model
        self.q = q
        self.credit = 0
        self.codel = codel.Codel(self.head, model.now_ns, model.params)

    @property
    def queue(self):
        return self.model.view.queues[self.q]

    def head(self):
        """The head packet has left its queue when Linux looks at what all flows still hold."""
        left = [
            packet
            for flow in self.model.flows
            for packet in (flow.queue.packets[1:] if flow is self else flow.queue.packets)
        ]
        return max(0, self.model.now_ns() - self.queue.head_arrival_ns), sum(size for _, size in left)


class Model(Policy):
    def __init__(self, view, params, qparams):
        super().__init__(view, params, qparams)
        self.clock = Clock(view.now_ns)
        self.flows = [Flow(self, q) for q in range(len(view.queues))]
        self.new, self.old = [], []
        self.batch = None  # (flow, bytes still to drop, packets at most)
        self.rated()

    def now_ns(self):
        return self.clock.read(self.view.now_ns)

    def join(self, flow):
        if flow.queue.eligible and flow not in self.new and flow not in self.old:
            flow.credit = self.params["quantum"]
            self.new.append(flow)

    def enqueued(self, q, size):
        self.batch = None
        self.join(self.flows[q])

    def rated(self):
        for flow in self.flows:
            self.join(flow)

    def pick(self):
        self.now_ns()
        while self.new or self.old:
            flows = self.new or self.old
            flow = flows[0]
            if flow.credit <= 0:
                flow.credit += self.params["quantum"]
                self.old.append(flows.pop(0))
            elif not flow.queue.eligible:
                if not flow.queue.backlogged:
                    flow.codel.empty()
                flows.pop(0)
                if flows is self.new and self.old:
                    self.old.append(flow)
            else:
                return flow.q
        return None

    def leaving(self, q, ecn):
        return self.flows[q].codel.judge(ecn)

    def sent(self, q, size):
        self.flows[q].credit = max(-(2**20), self.flows[q].credit - size)

    def held(self, flow):
        return sum(size for _, size in flow.queue.packets)

    def victim(self):
        if self.batch is None:
            pkts = sum(len(flow.queue.packets) for flow in self.flows)
            if pkts <= self.params["limit"] and sum(map(self.held, self.flows)) <= self.params["memory"]:
                return None
            waiting = [flow for flow in self.flows if flow.queue.backlogged]
            fattest = max(waiting, key=lambda flow: (self.held(flow), -flow.queue.head_arrival_ns, -flow.q))
            self.batch = (fattest, self.held(fattest) // 2, BATCH_PKTS)
        return f"h{self.batch[0].q}"

    def dropped(self, q, size):
        if not self.flows[q].queue.backlogged:
            self.flows[q].codel.empty()
        if self.batch is not None and self.batch[0].q == q:
            flow, left_bytes, left_pkts = self.batch
            self.batch = (flow, left_bytes - size, left_pkts - 1)
            if left_bytes <= size or left_pkts == 1 or not flow.queue.backlogged:
                self.batch = None

    def change(self, params, qparams):
        super().change(params, qparams)
        for flow in self.flows:
            flow.codel.params = self.params

    def observe(self, q):
        return {"dropping": int(self.flows[q].codel.dropping), "count": self.flows[q].codel.count}
