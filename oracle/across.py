# SPDX-License-Identifier: BSD-3-Clause
"""A naive model of a policy across users and one inside each. `python oracle/generate.py across` writes its lives.

Each user has a few classes and one channel, whose rate all of them share. The policy inside a user is a scheduler of
these classes alone. The policy across users is a scheduler that has one queue for each user: all packets of the user,
the one that the policy inside would send next in front. After each event, and whenever a packet is to leave, it is
found out anew which packet that is. A packet leaves if neither policy drops it. The packet that the policy across users
drops is the user's next one. A channel of rate 0 blocks its user; inside the user, the rate stays as it was.

The files vectors/across/*.life say which packet leaves, and which ones were dropped. Packets have numbers, from 0 in
order of arrival.

    across POLICY, inside POLICY, users N, classes N, link BPS     classes of each user; class Q is of user Q % users
    set across|inside NAME=VALUE..., row across|inside N NAME=VALUE...     parameters; N is a user or a place in each
    at NS init
    at NS arrive Q BYTES [drops Q NUMBER...]
    at NS depart [drops Q NUMBER...] leaves Q NUMBER | none
    at NS channel USER BPS, link BPS
"""

import generate
from dataplane import MOST_DROPS, DataPlane

ACROSS = ("rr", "drr", "wrr", "strict", "fifo", "pss", "pf", "codes", "mlwdf", "exp_rule", "exp_pf")
INSIDE = ("strict", "drr", "fifo", "pss", "wrr", "codel", "fq_codel", "pds")
USERS = 3
STEPS = 240
SEEDS = 1


class Across:
    """All users of a link."""

    def __init__(self, policies, classes, link_bps, across, inside):
        """`across` and `inside` are (params, qparams); all users have the same inside."""
        self.inside = [DataPlane(policies[1], classes, link_bps, *inside) for _ in range(USERS)]
        self.top = DataPlane(policies[0], USERS, link_bps, *across)
        self.numbers = [[[] for _ in range(classes)] for _ in range(USERS)]
        self.next = [None] * USERS  # the class of each user's next packet
        self.count = 0
        self.gone = []

    def init(self, now_ns):
        for plane in (self.top, *self.inside):
            plane.init(now_ns)

    def find_next(self, now_ns, user):
        """Finds out which packet of a user goes next, and puts it in front."""
        plane = self.inside[user]
        self.next[user] = plane.pick(now_ns)
        queues = [list(queue.packets) for queue in plane.view.queues]
        front = [] if self.next[user] is None else [queues[self.next[user]].pop(0)]
        rest = sorted(packet for queue in queues for packet in queue)
        self.top.view.now_ns = now_ns
        self.top.view.queues[user].packets = front + rest

    def arrive(self, now_ns, q, size):
        """Returns what was dropped because of it."""
        self.gone = []
        user, place = q % USERS, q // USERS
        plane, numbers = self.inside[user], self.numbers[user]
        plane.view.now_ns = now_ns
        plane.view.queues[place].packets.append((now_ns, size))
        numbers[place].append(self.count)
        self.count += 1
        plane.model.enqueued(place, size)
        self.find_next(now_ns, user)
        self.top.model.enqueued(user, size)
        for _ in range(MOST_DROPS):
            victim = plane.model.victim()
            if victim is None:
                break
            head = isinstance(victim, str)
            self.drop(now_ns, user, int(victim[1:]) if head else victim, 0 if head else -1)
        return self.gone

    def drop(self, now_ns, user, place, end):
        """Drops the head (0) or the tail (-1) of a class."""
        plane = self.inside[user]
        plane.view.now_ns = now_ns
        _, size = plane.view.queues[place].packets.pop(end)
        self.gone.append((place * USERS + user, self.numbers[user][place].pop(end)))
        plane.model.dropped(place, size)
        self.find_next(now_ns, user)
        self.top.model.dropped(user, size)

    def look(self, now_ns):
        """Finds out every user's next packet; tells the policy across users if one is another."""
        before = [queue.packets[:1] for queue in self.top.view.queues]
        for user in range(USERS):
            self.find_next(now_ns, user)
        if before != [queue.packets[:1] for queue in self.top.view.queues]:
            self.top.model.rated()

    def close(self, now_ns):
        """Whether rounding decides which user is served."""
        self.look(now_ns)
        return self.top.model.ambiguous()

    def depart(self, now_ns):
        """Returns what was dropped before, and (class, number) of the packet that leaves, None, or where to stop."""
        self.gone = []
        while True:
            self.look(now_ns)
            if self.gone and self.top.model.ambiguous():
                return self.gone, "close"
            user = self.top.pick(now_ns)
            if user is None:
                return self.gone, None
            plane, place = self.inside[user], self.next[user]
            plane.view.now_ns = now_ns
            if self.top.model.leaving(user, False) == "drop" or plane.model.leaving(place, False) == "drop":
                self.drop(now_ns, user, place, 0)
                continue
            _, size = plane.view.queues[place].packets.pop(0)
            number = self.numbers[user][place].pop(0)
            plane.model.sent(place, size)
            self.find_next(now_ns, user)
            self.top.model.sent(user, size)
            return self.gone, (place * USERS + user, number)

    def channel(self, now_ns, user, rate_bps):
        plane = self.inside[user]
        if rate_bps > 0:
            plane.rate(now_ns, dict.fromkeys(range(len(plane.view.queues)), rate_bps))
        self.look(now_ns)
        self.top.rate(now_ns, {user: rate_bps})

    def link(self, now_ns, link_bps):
        for plane in self.inside:
            plane.link(now_ns, link_bps)
        self.look(now_ns)
        self.top.link(now_ns, link_bps)


class Life:
    """One random life."""

    def __init__(self, across, inside, seed):
        self.random = generate.Random(f"across {across} {inside} {seed}")
        self.classes = self.random.between(1, 3) if inside != "codel" else 1
        self.link_bps = self.random.choice([10**6, 5 * 10**6, 20 * 10**6])
        top, own = self.values(across, USERS), self.values(inside, self.classes)
        self.plane = Across((across, inside), self.classes, self.link_bps, top, own)
        self.now_ns = self.random.below(10**9)
        self.lines = [
            f"# python oracle/across.py: across={across} inside={inside} seed={seed}",
            f"across {across}",
            f"inside {inside}",
            f"users {USERS}",
            f"classes {self.classes}",
            f"link {self.link_bps}",
        ]
        for of, (params, rows) in (("across", top), ("inside", own)):
            self.lines += [f"set {of}{generate.words(params)}"] if params else []
            self.lines += [f"row {of} {n}{generate.words(values)}" for n, values in rows.items() if values]

    def values(self, policy, nqueues):
        drawn = generate.Profile(nqueues, self.link_bps, "mixed", generate.SERVED)
        while True:
            params, rows = generate.lives_of(policy).values(self.random, drawn)
            if DataPlane(policy, nqueues, self.link_bps, params, rows).fault() is None:
                return params, rows

    def write(self, text):
        self.lines.append(f"at {self.now_ns} {text}")

    def live(self):
        self.plane.init(self.now_ns)
        self.write("init")
        events = {"arrive": 45, "depart": 50, "idle": 4, "channel": 6, "link": 1}
        for _ in range(STEPS):
            getattr(self, self.random.weighted(events))()
        return "\n".join(self.lines) + "\n"

    def unit_ns(self):
        """The time of 1500 bytes on the link."""
        return 12_000 * 10**9 // self.link_bps

    def arrive(self):
        q = self.random.below(USERS * self.classes)
        size = self.random.choice([64, 1500, 1500, self.random.between(1, 1514)])
        self.write(f"arrive {q} {size}{drops(self.plane.arrive(self.now_ns, q, size))}")
        if self.random.chance(50):
            self.now_ns += self.random.below(self.unit_ns() + 1)

    def depart(self):
        if self.plane.close(self.now_ns):
            self.now_ns += self.random.below(self.unit_ns()) + 1
            return
        gone, left = self.plane.depart(self.now_ns)
        assert left != "close", "draw another seed: a drop leaves a choice to rounding"
        self.write(f"depart{drops(gone)} " + ("none" if left is None else f"leaves {left[0]} {left[1]}"))
        self.now_ns += self.random.below(self.unit_ns() + 1)

    def idle(self):
        self.now_ns += self.random.below(self.random.choice([10, 100, 1000]) * self.unit_ns())

    def channel(self):
        user = self.random.below(USERS)
        blocked = self.plane.top.view.queues[user].rate_bps == 0
        rate_bps = self.random.between(self.link_bps // 10, self.link_bps)
        rate_bps = 0 if not blocked and self.random.chance(20) else rate_bps
        self.plane.channel(self.now_ns, user, rate_bps)
        self.write(f"channel {user} {rate_bps}")

    def link(self):
        link_bps = self.link_bps * self.random.between(50, 100) // 100
        self.plane.link(self.now_ns, link_bps)
        self.write(f"link {link_bps}")


def drops(gone):
    return " drops" + "".join(f" {q} {number}" for q, number in gone) if gone else ""


def files():
    """The lives by their names."""
    return {
        f"random-{across}-{inside}-{seed}.life": Life(across, inside, seed).live()
        for across in ACROSS
        for inside in INSIDE
        for seed in range(1, SEEDS + 1)
    }
