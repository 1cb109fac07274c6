# SPDX-License-Identifier: BSD-3-Clause
"""The naive data plane with limits of classes, and its random lives: `python oracle/queues.py`; --check compares only.

A class may limit packets, bytes, and bytes by the time in which the link carries them; it may bound how long a packet
waits; and where it is full it drops the packet that comes or its oldest ones. A class may also be sure of a least share
of what leaves: every byte that leaves while it waits gives it that part of a byte of credit, what it sends costs
credit, never below zero, and with credit for its head it goes before the policy is asked. Every packet has a number,
from 0 in order of arrival. The files vectors/queues/*.life say which packets were dropped, why, and which one left.

    limit Q pkts=N bytes=N time=NS floor=BYTES age=NS full=head least=PPM    what is left out is no limit
    at NS init                                                     the policy starts
    at NS arrive Q BYTES [REASON Q NUMBER]...                      what is dropped because of it, in order
    at NS depart [REASON Q NUMBER]... leaves Q NUMBER NS | none    what is dropped before, what leaves, its wait
    at NS look [REASON Q NUMBER]...                                what has become too old
    at NS link BPS, rate Q BPS, limit ...                          as in vectors/README.md; a new limit

Reasons: age (waited too long), expired (the policy drops it for one that comes), head (the oldest of a full class),
limit (refused), victim (named by the policy), late (judged by the policy when it was to leave).
"""

import argparse
import sys

import generate
from dataplane import MOST_DROPS, DataPlane

POLICIES = {"strict": 3, "fifo": 2, "drr": 3, "pss": 3, "codel": 1, "fq_codel": 3, "codes": 3, "pds": 3}
SEEDS = 3
STEPS = 260
MS = 10**6
MILLION = 10**6
MOST_CREDIT = 2**20 * MILLION  # a packet is shorter


class Queues(DataPlane):
    """The data plane whose classes have limits."""

    def __init__(self, policy, nqueues, link_bps, params, qparams, limits):
        super().__init__(policy, nqueues, link_bps, params, qparams)
        self.limits = limits
        self.channels = False  # whether a class has a channel of its own
        self.numbers = [[] for _ in range(nqueues)]
        self.count = 0
        self.credit = [0] * nqueues  # of the least shares, millionths of a byte
        self.gone = []  # (reason, class, number) of this operation
        self.reason = None

    def drop(self, now_ns, q, head=False):
        self.gone.append((self.reason, q, self.numbers[q].pop(0 if head else -1)))
        super().drop(now_ns, q, head)

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
            while bound_ns is not None and queue.packets and now_ns - queue.head_arrival_ns > bound_ns:
                if most is not None and len(self.gone) == most:
                    return
                self.drop(now_ns, q, head=True)

    def look(self, now_ns):
        self.gone = []
        self.drop_aged(now_ns, None)
        return self.gone

    def arrive(self, now_ns, q, size):
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
        if self.limits[q].get("full") == "head" and self.fits(q, [], size):
            for _ in range(MOST_DROPS):
                if self.fits(q, queue.packets, size):
                    break
                self.drop(now_ns, q, head=True)
        if not self.fits(q, queue.packets, size):
            self.gone.append(("limit", q, number))
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
            q = self.assured()
            judged = q is None  # the policy did not pick the other one, so it does not judge it either
            if judged:
                q = self.pick(now_ns)
            if q is None:
                return self.gone, None
            self.reason = "late"
            if not judged or self.verdict(now_ns, ecn=False) != "drop":
                arrival_ns, size = self.send(now_ns, q)
                self.earn(q, size)
                return self.gone, (q, self.numbers[q].pop(0), now_ns - arrival_ns)


class Life:
    """One random life."""

    def __init__(self, policy, seed):
        self.random = generate.Random(f"queues {policy} {seed}")
        self.nqueues = POLICIES[policy]
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
            f"# python oracle/queues.py: policy={policy} seed={seed}",
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
        self.write(f"look{dropped(self.plane.look(self.now_ns))}")

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


def dropped(gone):
    return "".join(f" {reason} {q} {number}" for reason, q, number in gone)


def files():
    """(path, text) of every life."""
    for policy in POLICIES:
        for seed in range(1, SEEDS + 1):
            yield generate.VECTORS / "queues" / f"random-{policy}-{seed}.life", Life(policy, seed).live()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    arguments = parser.parse_args()
    written, failed = set(), False
    for path, text in files():
        written.add(path)
        if not arguments.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path}: differs from what its recipe gives; run python oracle/queues.py", file=sys.stderr)
            failed = True
    for path in sorted((generate.VECTORS / "queues").glob("random-*.life")):
        if path not in written:
            print(f"{path}: no recipe for it", file=sys.stderr)
            failed = True
    print(f"{len(written)} lives of queues")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
