# SPDX-License-Identifier: BSD-3-Clause
"""The naive data plane: lists of packets and the model of one policy, written for clarity only.

It follows the contract of core/include/linkweir/policy.h. On an arrival the packet is put at the tail and the policy
gets an event. Then, while the policy names a victim, 64 times at most, the tail packet of that queue is dropped (the
head packet if the answer is "h" and the queue) and the policy gets an event. On a departure the policy may judge the
head packet first; if it does not drop it, the packet is sent.
"""

import copy
import importlib
import pathlib
import re

LISTED = pathlib.Path(__file__).resolve().parent.parent / "core/include/linkweir/policies.def"
POLICIES = tuple(re.findall(r"^LW_POLICY\((\w+)\)$", LISTED.read_text(encoding="utf-8"), re.M))
MOST_DROPS = 64  # for one arrival
MOST_BPS = 10**12  # of a rate


def model_of(policy):
    """The module that models `policy`: PARAMS, QPARAMS (defaults), RANGES, check() and class Model."""
    return importlib.import_module(policy)


class Queue:
    def __init__(self, rate_bps):
        self.rate_bps = rate_bps
        self.packets = []  # (arrival_ns, bytes), head first

    @property
    def backlogged(self):
        return len(self.packets) > 0

    @property
    def eligible(self):
        return len(self.packets) > 0 and self.rate_bps > 0

    @property
    def head_arrival_ns(self):
        return self.packets[0][0]

    @property
    def head_bytes(self):
        return self.packets[0][1]


class View:
    def __init__(self, nqueues, link_bps):
        self.now_ns = 0
        self.link_bps = link_bps
        self.queues = [Queue(link_bps) for _ in range(nqueues)]


class DataPlane:
    def __init__(self, policy, nqueues, link_bps, params=None, qparams=None):
        """`params`: values by name; `qparams`: {queue: values by name}. Absent ones have their defaults."""
        self.source = model_of(policy)
        self.view = View(nqueues, link_bps)
        self.best_bps = link_bps  # the largest capacity reported: parameters are checked against it
        self.params = dict(self.source.PARAMS)
        self.qparams = [dict(self.source.QPARAMS) for _ in range(nqueues)]
        self.model = None
        self.last_pick = None
        self._assign(params or {}, qparams or {})

    def _assign(self, params, qparams):
        assert set(params) <= set(self.params), params
        self.params.update(params)
        for q, values in qparams.items():
            assert set(values) <= set(self.qparams[q]), values
            self.qparams[q].update(values)

    def fault(self):
        """(parameter, queue or None) if a value is out of its range or the policy refuses it, else None."""
        for q, values in [(None, self.params), *enumerate(self.qparams)]:
            for name, value in values.items():
                low, high = self.source.RANGES.get(name, (value, value))
                if value is not None and not low <= value <= high:
                    return (name, q)
        judged = copy.copy(self.view)
        judged.link_bps = self.best_bps
        return self.source.check(judged, self.params, self.qparams)

    def init(self, now_ns):
        self.view.now_ns = now_ns
        assert self.fault() is None, self.fault()
        self.model = self.source.Model(self.view, self.params, self.qparams)

    def enqueue(self, now_ns, q, size):
        """Returns the victims in order: a queue that lost its tail, or "h" and the queue that lost its head."""
        self.view.now_ns = now_ns
        self.view.queues[q].packets.append((now_ns, size))
        if self.model is None:
            return []
        self.model.enqueued(q, size)
        dropped = []
        while len(dropped) < MOST_DROPS and (victim := self.model.victim()) is not None:
            head = isinstance(victim, str)
            self.drop(now_ns, int(victim[1:]) if head else victim, head)
            dropped.append(victim)
        return dropped

    def pick(self, now_ns):
        """The queue to serve, or None."""
        self.view.now_ns = now_ns
        self.last_pick = self.model.pick()
        return self.last_pick

    def send(self, now_ns, q=None):
        """Sends the head packet of queue q, or of the queue picked last; returns its (arrival_ns, bytes)."""
        self.view.now_ns = now_ns
        q = self.last_pick if q is None else q
        packet = self.view.queues[q].packets.pop(0)
        self.model.sent(q, packet[1])
        return packet

    def verdict(self, now_ns, ecn):
        """The verdict on the head packet of the queue picked last: pass, mark or drop. On drop, it is dropped."""
        self.view.now_ns = now_ns
        verdict = self.model.leaving(self.last_pick, ecn)
        if verdict == "drop":
            self.drop(now_ns, self.last_pick, head=True)
        return verdict

    def expired(self, now_ns, q):
        """Whether the head packet of q has expired; if so, it is dropped."""
        self.view.now_ns = now_ns
        if not self.model.expired(q):
            return "no"
        self.drop(now_ns, q, head=True)
        return "yes"

    def drop(self, now_ns, q, head=False):
        self.view.now_ns = now_ns
        size = self.view.queues[q].packets.pop(0 if head else -1)[1]
        self.model.dropped(q, size)

    def rate(self, now_ns, rates_bps):
        """Sets new rates, by queue; the policy gets one event."""
        self.view.now_ns = now_ns
        assert max(rates_bps.values()) <= MOST_BPS
        for q, rate_bps in rates_bps.items():
            self.view.queues[q].rate_bps = rate_bps
        if self.model is not None:
            self.model.rated()

    def lead(self, now_ns, q, place):
        """The packet at this place of queue q becomes its head without an event."""
        self.view.now_ns = now_ns
        packets = self.view.queues[q].packets
        packets.insert(0, packets.pop(place))
        self.model.rated()

    def link(self, now_ns, link_bps):
        self.view.now_ns = now_ns
        assert link_bps <= MOST_BPS
        self.view.link_bps = link_bps
        self.best_bps = max(self.best_bps, link_bps)
        self.model.rated()

    def change(self, now_ns, params=None, qparams=None):
        self.view.now_ns = now_ns
        self._assign(params or {}, qparams or {})
        assert self.fault() is None, self.fault()
        self.model.change(self.params, self.qparams)

    def observe(self, now_ns, q):
        self.view.now_ns = now_ns
        return self.model.observe(q)


class Policy:
    """The defaults of a model for functions that its policy does not have."""

    def __init__(self, view, params, qparams):
        self.view = view
        self.params = dict(params)
        self.qparams = [dict(values) for values in qparams]

    def eligible(self):
        return [q for q, queue in enumerate(self.view.queues) if queue.eligible]

    def enqueued(self, q, size):
        pass

    def sent(self, q, size):
        pass

    def dropped(self, q, size):
        pass

    def rated(self):
        pass

    def victim(self):
        return None

    def leaving(self, q, ecn):
        return "pass"

    def expired(self, q):
        return False

    def ambiguous(self):
        """Whether the answer depends on how numbers are rounded."""
        return False

    def change(self, params, qparams):
        self.params = dict(params)
        self.qparams = [dict(values) for values in qparams]

    def observe(self, q):
        return {}


class Clock:
    """Time as a policy sees it: the largest value so far."""

    def __init__(self, now_ns):
        self.seen_ns = now_ns

    def read(self, now_ns):
        self.seen_ns = max(self.seen_ns, now_ns)
        return self.seen_ns


def choose(queues, claim, margin, same):
    """The queue with the largest claim(q), ties by earliest head, then lowest index; and whether rounding decides.

    `queues` maps indices to queues. A claim is a tuple of numbers. Two claims are equal if all their numbers are and
    same(q, other) confirms that they are the same number, not just rounded to it. They are too close to call if the
    first numbers that differ do so by less than `margin`.
    """
    claims = {q: claim(q) for q in queues}
    best = min(claims, key=lambda q: ([-part for part in claims[q]], queues[q].head_arrival_ns, q), default=None)
    close = False
    for q in claims:
        gaps = [abs(mine - its) for mine, its in zip(claims[best], claims[q], strict=True) if mine != its]
        close = close or (gaps[0] < margin if gaps else not same(best, q))
    return best, close


def first_equal_level(levels):
    """The later of two queues with the same level, or None."""
    for q, level in enumerate(levels):
        if level in levels[:q]:
            return q
    return None
