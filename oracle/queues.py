# SPDX-License-Identifier: BSD-3-Clause
"""The naive data plane with limits of classes, and its random lives, which `python oracle/generate.py queues` writes.

A class may limit packets, bytes, and bytes by the time in which the link carries them; it may bound how long a packet
waits; and where it is full it drops the packet that comes or its oldest ones. A class may also be sure of a least share
of what leaves: every byte that leaves while it waits gives it that part of a byte of credit, what it sends costs
credit, never below zero, and with credit for its head it goes before the policy is asked. Every packet has a number,
from 0 in order of arrival. The files vectors/queues/*.life say which packets were dropped, why, and which one left.

The flows of a class may be isolated. Its packets then wait in FLOW_QUEUES queues, by the remainder of the flow's
number, which a policy of their own schedules. The policy of the classes sees one queue: its head is the packet that
the flows' policy picks, which is asked when a packet is to leave. If the head is gone before that, the oldest packet
is the head. The policy of the flows judges each packet of the class that is about to leave. Where the class is full,
the flow that would have most bytes loses a packet: its oldest (full=head) or its newest. Below dualpi2 there are two
queues, for classic packets (flow 0) and for L4S packets (flow 1), a full class is one queue, and class Q has the seed
1 + Q.

    limit Q pkts=N bytes=N time=NS floor=BYTES age=NS full=head least=PPM    what is left out is no limit
    flows Q POLICY                                                 the flows of the class are isolated
    at NS init                                                     the policy starts
    at NS arrive Q[.FLOW] BYTES [REASON Q NUMBER]...               what is dropped because of it, in order
    at NS depart [REASON Q NUMBER]... leaves Q NUMBER NS | none    what is dropped before, what leaves, its wait
    at NS look [REASON Q NUMBER]...                                what has become too old
    at NS link BPS, rate Q BPS, limit ...                          as in vectors/README.md; a new limit

Reasons: age (waited too long), expired (the policy drops it for one that comes), head (the oldest of a full class, or
one that makes room for another flow), limit (refused), victim (named by the policy), late (judged by the policy when
it was to leave).
"""

import generate
from dataplane import MOST_DROPS, DataPlane

POLICIES = {"strict": 3, "fifo": 2, "drr": 3, "pss": 3, "codel": 1, "fq_codel": 3, "codes": 3, "pds": 3}
NESTING = {"strict": 3, "fifo": 2, "drr": 2, "pss": 3, "codes": 3}  # policies of classes that may isolate flows
FLOW_QUEUES = 1024
SEEDS = 3
STEPS = 260
MS = 10**6
MILLION = 10**6
MOST_CREDIT = 2**20 * MILLION  # a packet is shorter


class Flows:
    """The packets of a class whose flows are isolated, and the policy of its flows."""

    def __init__(self, policy, now_ns, q):
        params = {} if policy == "drr" else {"limit": 2**20, "memory": 2**40}
        self.by_ecn = policy == "dualpi2"
        if self.by_ecn:
            params["seed"] = 1 + q
        self.count = 2 if self.by_ecn else FLOW_QUEUES
        self.plane = DataPlane(policy, self.count, 1, params, {1: {"l4s": "yes"}} if self.by_ecn else None)
        self.plane.init(now_ns)
        self.waiting = []  # (number, queue) in order of arrival
        self.head = None  # its number

    def queue(self, flow):
        return self.plane.view.queues[flow % self.count]

    def held(self, flow):
        return sum(size for _, size in self.queue(flow).packets)

    def push(self, now_ns, number, flow, size):
        self.waiting.append((number, flow % self.count))
        self.queue(flow).packets.append((now_ns, size))
        self.plane.view.now_ns = now_ns
        self.plane.model.enqueued(flow % self.count, size)
        if self.head is None:
            self.head = number

    def pull(self, now_ns, number, sent):
        """Takes out a packet."""
        self.plane.view.now_ns = now_ns
        flow = dict(self.waiting)[number]
        size = self.queue(flow).packets.pop(self.numbers(flow).index(number))[1]
        self.waiting.remove((number, flow))
        (self.plane.model.sent if sent else self.plane.model.dropped)(flow, size)
        if number == self.head:
            self.head = self.waiting[0][0] if self.waiting else None

    def look(self, now_ns):
        picked = self.plane.pick(now_ns)
        self.head = None if picked is None else self.numbers(picked)[0]

    def numbers(self, flow):
        return [number for number, of in self.waiting if of == flow % self.count]

    def in_turn(self):
        """(number, (arrival_ns, bytes)) of all packets: the head, then the others in order of arrival."""
        rows, seen = [], {}
        for number, flow in self.waiting:
            place = seen[flow] = seen.get(flow, -1) + 1
            row = (number, self.queue(flow).packets[place])
            rows.insert(0 if number == self.head else len(rows), row)
        return rows

    def gives_way(self, flow, size, head):
        """The number of the packet that makes room for one of this flow and size; None: that one is refused."""
        if self.by_ecn:
            return self.waiting[0][0] if head else None
        flow %= self.count
        held = {of: self.held(of) for _, of in self.waiting}
        held[flow] = held.get(flow, 0) + size
        longest = max(held, key=lambda of: (held[of], of == flow, -of))
        numbers = self.numbers(longest)
        if head:
            return numbers[0] if numbers else None
        return None if longest == flow else numbers[-1]


class Queues(DataPlane):
    """The data plane whose classes have limits."""

    def __init__(self, policy, nqueues, link_bps, params, qparams, limits, isolated=None):
        super().__init__(policy, nqueues, link_bps, params, qparams)
        self.limits = limits
        self.isolated = isolated or {}  # policies of flows, by class
        self.flows = {}
        self.channels = False  # whether a class has a channel of its own
        self.numbers = [[] for _ in range(nqueues)]
        self.count = 0
        self.credit = [0] * nqueues  # of the least shares, millionths of a byte
        self.gone = []  # (reason, class, number) of this operation
        self.reason = None

    def init(self, now_ns):
        super().init(now_ns)
        self.flows = {q: Flows(policy, now_ns, q) for q, policy in self.isolated.items()}

    def show(self, q):
        """Puts the packets of a class with flows in their order."""
        rows = self.flows[q].in_turn()
        self.numbers[q] = [number for number, _ in rows]
        self.view.queues[q].packets = [packet for _, packet in rows]

    def look(self, now_ns):
        """Asks the policies of flows for their next packets."""
        self.view.now_ns = now_ns
        before = [queue.packets[:1] for queue in self.view.queues]
        for q, flows in self.flows.items():
            flows.look(now_ns)
            self.show(q)
        if before != [queue.packets[:1] for queue in self.view.queues]:
            self.model.rated()

    def drop(self, now_ns, q, head=False, number=None):
        """Drops the head, the tail, or the packet of this number."""
        if number is None:
            number = self.numbers[q][0 if head else -1]
        self.gone.append((self.reason, q, number))
        place = self.numbers[q].index(number)
        del self.numbers[q][place]
        self.view.now_ns = now_ns
        _, size = self.view.queues[q].packets.pop(place)
        if q in self.flows:
            self.flows[q].pull(now_ns, number, sent=False)
            self.show(q)
        self.model.dropped(q, size)

    def rate(self, now_ns, rates_bps):
        self.channels = True
        super().rate(now_ns, rates_bps)

    def most_bytes(self, q):
        limit = self.limits[q]
        most = [limit["bytes"]] if "bytes" in limit else []
        if "time" in limit:
            rate_bps = self.view.queues[q].rate_bps if self.channels else self.view.link_bps
            most.append(max(rate_bps * limit["time"] // (8 * 10**9), limit["floor"]))
        return min(most, default=None)

    def fits(self, q, packets, size):
        """Whether a class that holds these packets takes one more of this size."""
        pkts, most = self.limits[q].get("pkts"), self.most_bytes(q)
        held = sum(waiting[1] for waiting in packets)
        return (pkts is None or len(packets) + 1 <= pkts) and (most is None or held + size <= most)

    def drop_aged(self, now_ns, most):
        self.view.now_ns = now_ns
        self.reason = "age"
        for q, queue in enumerate(self.view.queues):
            bound_ns = self.limits[q].get("age")
            while bound_ns is not None and queue.packets:
                oldest = min(self.numbers[q])  # they count arrivals
                if now_ns - queue.packets[self.numbers[q].index(oldest)][0] <= bound_ns:
                    break
                if most is not None and len(self.gone) == most:
                    return
                self.drop(now_ns, q, number=oldest)

    def expire(self, now_ns):
        self.gone = []
        self.drop_aged(now_ns, None)
        return self.gone

    def arrive(self, now_ns, q, size, flow=0):
        """Returns what was dropped because of it."""
        self.gone = []
        number = self.count
        self.count += 1
        self.drop_aged(now_ns, MOST_DROPS)
        queue = self.view.queues[q]
        self.reason = "expired"
        for _ in range(MOST_DROPS):
            if self.fits(q, queue.packets, size) or not queue.packets or not self.model.expired(q):
                break
            self.drop(now_ns, q, head=True)
        self.reason = "head"
        head = self.limits[q].get("full") == "head"
        if (head or q in self.flows) and self.fits(q, [], size):
            for _ in range(MOST_DROPS):
                if self.fits(q, queue.packets, size):
                    break
                other = self.flows[q].gives_way(flow, size, head) if q in self.flows else self.numbers[q][0]
                if other is None:
                    break
                self.drop(now_ns, q, number=other)
        if not self.fits(q, queue.packets, size):
            self.gone.append(("limit", q, number))
            return self.gone
        if q in self.flows:
            # No policy that nests names a victim.
            self.flows[q].push(now_ns, number, flow, size)
            self.show(q)
            self.model.enqueued(q, size)
            return self.gone
        self.numbers[q].append(number)
        self.reason = "victim"
        self.enqueue(now_ns, q, size)
        return self.gone

    def assured(self):
        """The class with credit for its head; of several the one with most, then the first."""
        due = [
            q
            for q, queue in enumerate(self.view.queues)
            if "least" in self.limits[q] and queue.eligible and self.credit[q] >= queue.head_bytes * MILLION
        ]
        return max(due, key=lambda q: (self.credit[q], -q), default=None)

    def earn(self, sent, size):
        """A packet has left: classes that wait gain credit, one that sent pays, and one that has nothing loses it."""
        for q, queue in enumerate(self.view.queues):
            if "least" not in self.limits[q]:
                continue
            credit = self.credit[q] + size * self.limits[q]["least"]
            if q == sent:
                credit = max(0, credit - size * MILLION)
            self.credit[q] = min(credit, MOST_CREDIT) if queue.packets else 0

    def depart(self, now_ns):
        """Returns what was dropped before, and (class, number, waited ns) of the packet that leaves, or None."""
        self.gone = []
        while True:
            self.drop_aged(now_ns, None)
            self.look(now_ns)
            q = self.assured()
            judged = q is None  # the policy did not pick the other one, so it does not judge it either
            if judged:
                q = self.pick(now_ns)
            if q is None:
                return self.gone, None
            self.reason = "late"
            if judged and self.verdict(now_ns, ecn=False) == "drop":
                continue
            if q in self.flows:
                number, packet = self.flows[q].in_turn()[0]
                plane = self.flows[q].plane
                if plane.model.leaving(plane.last_pick, False) == "drop":
                    self.drop(now_ns, q, number=number)
                    continue
                self.flows[q].pull(now_ns, number, sent=True)
                self.show(q)
                self.earn(q, packet[1])
                self.model.sent(q, packet[1])
                return self.gone, (q, number, now_ns - packet[0])
            arrival_ns, size = self.send(now_ns, q)
            self.earn(q, size)
            return self.gone, (q, self.numbers[q].pop(0), now_ns - arrival_ns)


class Life:
    """One random life."""

    def __init__(self, policy, seed, nqueues=None, kind=""):
        self.random = generate.Random(f"queues {kind}{policy} {seed}")
        self.nqueues = nqueues or POLICIES[policy]
        self.link_bps = self.random.choice([10**6, 5 * 10**6, 20 * 10**6])
        drawn = generate.Profile(self.nqueues, self.link_bps, "mixed", generate.SERVED)
        lives = generate.lives_of(policy)
        while True:
            params, qparams = lives.values(self.random, drawn)
            if DataPlane(policy, self.nqueues, self.link_bps, params, qparams).fault() is None:
                break
        limits = [self.limit() for _ in range(self.nqueues)]
        self.plane = Queues(policy, self.nqueues, self.link_bps, params, qparams, limits)
        self.now_ns = self.random.below(10**9)
        self.lines = [
            f"# python oracle/queues.py: {kind}policy={policy} seed={seed}",
            f"policy {policy}",
            f"queues {self.nqueues}",
            f"link {self.link_bps}",
        ]
        if params:
            self.lines.append("set" + generate.words(params))
        self.lines += [f"queue {q}{generate.words(values)}" for q, values in qparams.items() if values]
        self.lines += [f"limit {q}{generate.words(limit)}" for q, limit in enumerate(limits)]

    def limit(self):
        random = self.random
        limit = {}
        if random.chance(50):
            limit["pkts"] = random.between(1, 100)
        if random.chance(30):
            limit["bytes"] = random.between(1000, 100_000)
        if random.chance(40):
            limit |= {"time": random.between(1, 200) * MS, "floor": random.choice([0, 3000])}
        if random.chance(60):
            limit["age"] = random.choice([0, random.between(1, 300) * MS, random.between(1, 20) * MS])
        if random.chance(30):
            limit["least"] = random.choice([50_000, random.between(1, 500_000)])
        if random.chance(60):
            limit["full"] = random.choice(["head", "tail"])
        return limit

    def write(self, text):
        self.lines.append(f"at {self.now_ns} {text}")

    def live(self):
        self.plane.init(self.now_ns)
        self.write("init")
        events = {"arrive": 50, "depart": 40, "idle": 6, "look": 4, "link": 2, "rate": 1, "change": 2}
        for _ in range(STEPS):
            getattr(self, self.random.weighted(events))()
        return "\n".join(self.lines) + "\n"

    def arrive(self):
        q = self.random.below(self.nqueues)
        for _ in range(self.random.choice([1, 1, 2, 5, 20])):
            size = self.random.choice([64, 1500, self.random.between(1, 3200)])
            self.write(f"arrive {q} {size}{dropped(self.plane.arrive(self.now_ns, q, size))}")
            if self.random.chance(40):
                self.now_ns += self.random.below(2 * MS)

    def depart(self):
        gone, left = self.plane.depart(self.now_ns)
        self.write(f"depart{dropped(gone)} " + ("none" if left is None else "leaves {} {} {}".format(*left)))
        self.now_ns += self.random.below(3 * MS)

    def idle(self):
        self.now_ns += self.random.choice([1, self.random.below(50 * MS), self.random.below(500 * MS)])

    def look(self):
        self.write(f"look{dropped(self.plane.expire(self.now_ns))}")

    def link(self):
        bps = self.random.choice([0, 1000, self.link_bps, self.random.between(1, 2 * self.link_bps)])
        self.plane.link(self.now_ns, bps)
        self.write(f"link {bps}")

    def rate(self):
        q = self.random.below(self.nqueues)
        bps = self.random.choice([0, self.link_bps, self.random.between(1, self.link_bps)])
        self.plane.rate(self.now_ns, {q: bps})
        self.write(f"rate {q} {bps}")

    def change(self):
        q = self.random.below(self.nqueues)
        self.plane.limits[q] = self.limit()
        self.plane.credit[q] = 0
        self.write(f"limit {q}{generate.words(self.plane.limits[q])}")


class LifeOfFlows(Life):
    """A random life of classes whose flows may be isolated."""

    kind = "flows"
    isolated = ("fq_codel", "drr", None)
    # Two of these flows share a queue.
    flows = (1, 1, 1, 2, 7, 7 + FLOW_QUEUES, None)

    def __init__(self, policy, seed):
        super().__init__(policy, seed, NESTING[policy], f"{self.kind} ")
        # Classes that drop little by themselves: then the policy of the flows does.
        self.plane.limits = [limit if self.random.chance(50) else {} for limit in self.plane.limits]
        for q, policy_of_flows in enumerate(self.isolated[: self.nqueues]):
            if policy_of_flows is not None:
                self.plane.isolated[q] = policy_of_flows
        self.lines = [line for line in self.lines if not line.startswith("limit")]
        self.lines += [f"limit {q}{generate.words(limit)}" for q, limit in enumerate(self.plane.limits)]
        self.lines += [f"flows {q} {policy_of_flows}" for q, policy_of_flows in self.plane.isolated.items()]

    def arrive(self):
        q = self.random.below(self.nqueues)
        for _ in range(self.random.choice([1, 1, 2, 5, 20])):
            size = self.random.choice([64, 1500, self.random.between(1, 3200)])
            drawn = self.random.below(2**32) if None in self.flows else 0
            flow = self.random.choice([drawn if flow is None else flow for flow in self.flows])
            gone = self.plane.arrive(self.now_ns, q, size, flow)
            self.write(f"arrive {q}.{flow} {size}{dropped(gone)}")
            if self.random.chance(40):
                self.now_ns += self.random.below(2 * MS)

    def change(self):
        if self.random.chance(20):
            super().change()


class LifeOfKinds(LifeOfFlows):
    """A random life of classes that tell L4S packets from classic ones."""

    kind = "kinds"
    isolated = ("dualpi2", "dualpi2", "drr")
    flows = (0, 1)


def dropped(gone):
    return "".join(f" {reason} {q} {number}" for reason, q, number in gone)


def files():
    """The texts of all lives by their names."""
    seeds = range(1, SEEDS + 1)
    lives = {f"random-{policy}-{seed}.life": Life(policy, seed) for policy in POLICIES for seed in seeds}
    lives |= {f"random-flows-{policy}-{seed}.life": LifeOfFlows(policy, seed) for policy in NESTING for seed in seeds}
    lives |= {f"random-kinds-{policy}-{seed}.life": LifeOfKinds(policy, seed) for policy in NESTING for seed in seeds}
    return {name: life.live() for name, life in lives.items()}
