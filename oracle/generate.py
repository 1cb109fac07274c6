# SPDX-License-Identifier: BSD-3-Clause
"""Writes the random vectors and lists their SHA-256: `python oracle/generate.py [FOLDER...]`.

A vector is one random life of a scheduler (random parameters and a random sequence of operations) with the model's
answers. Its first line is its recipe (policy, profile, seed). The generator of random numbers is written out here, so
that the same recipe gives the same bytes everywhere. lives/ draws the parameters of each policy. The folders
`queues` and `across` have the lives of queues.py and across.py.

Git has only the list of each folder, SHA256SUMS. vectors/make.sh makes the files where they are missing, and fails if
their bytes are not those listed.
"""

import argparse
import hashlib
import importlib
import os
import pathlib
import subprocess
import sys

from dataplane import POLICIES, DataPlane
from lives.waiting import DAY_NS

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "vectors"
FOLDERS = (*POLICIES, "across", "queues")
LARGEST_BYTES = 60_000
KBIT, MBIT, GBIT = 10**3, 10**6, 10**9


class Random:
    """SplitMix64: Steele, Lea and Flood 2014."""

    def __init__(self, text):
        self.state = 0
        for byte in text.encode():
            self.state = (self.state * 257 + byte) % 2**64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    def below(self, n):
        return self.next() % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def choice(self, values):
        return values[self.below(len(values))]

    def chance(self, percent):
        return self.below(100) < percent

    def magnitude(self, low, high):
        """A number between two bounds; all orders of magnitude are equally likely."""
        while True:
            value = self.below(2 ** self.between(low.bit_length(), high.bit_length()))
            if low <= value <= high:
                return value

    def weighted(self, weights):
        point = self.below(sum(weights.values()))
        for name, weight in weights.items():
            if point < weight:
                return name
            point -= weight
        raise AssertionError


# Packet lengths

SIZES = {
    "mixed": lambda random: random.choice([64, 1500, 1500, random.between(1, 1514)]),
    "equal": lambda random: 1500,
    "any": lambda random: random.choice([1, 2**20 - 1, 1500, random.between(1, 2**20 - 1), random.between(1, 3000)]),
    "small": lambda random: random.between(40, 400),
}

# How often each event happens

SERVED = {
    "enqueue": 40,
    "serve": 40,
    "burst": 4,
    "idle": 1,
    "back": 2,
    "pick": 3,
    "other": 3,
    "rate": 3,
    "link": 1,
    "change": 2,
    "observe": 4,
    "drop": 1,
}
STEADY = {"enqueue": 45, "serve": 55, "observe": 5}
SWITCHING = {"enqueue": 44, "serve": 40, "burst": 5, "observe": 12, "idle": 1, "change": 1, "drop": 1}
BURSTS = {"enqueue": 45, "burst": 25, "serve": 5, "observe": 4, "change": 1}
RESTLESS = {
    "enqueue": 40,
    "serve": 40,
    "rate": 12,
    "link": 6,
    "change": 12,
    "observe": 6,
    "idle": 2,
    "other": 4,
    "drop": 4,
}


class Profile:
    def __init__(self, nqueues, link_bps, sizes, events, steps=600, backlog=30, days=False):
        self.nqueues = nqueues
        self.link_bps = link_bps
        self.sizes = SIZES[sizes]
        self.events = events
        self.steps = steps
        self.backlog = backlog
        self.days = days


PROFILES = {
    "few": Profile(3, 20 * MBIT, "mixed", SERVED, 480),
    "steady": Profile(4, 100 * MBIT, "equal", STEADY, 330, backlog=60),
    "one": Profile(1, 10 * MBIT, "any", SERVED, 120),
    "some": Profile(8, 155 * MBIT, "any", SERVED, 480, backlog=60),
    "wide": Profile(64, 10 * GBIT, "mixed", SERVED, 520, backlog=200),
    "slow": Profile(5, 1 * KBIT, "any", SERVED, 330, days=True),
    "fast": Profile(6, 400 * GBIT, "small", BURSTS, 200, backlog=80, days=True),
    "switching": Profile(4, 20 * MBIT, "mixed", SWITCHING, 330, backlog=60),
    "restless": Profile(7, 50 * MBIT, "mixed", RESTLESS, 600),
}


def lives_of(policy):
    """The module of lives/ that draws the parameters of `policy`."""
    return importlib.import_module(f"lives.{policy}")


def words(values):
    return "".join(f" {name}={'unset' if value is None else value}" for name, value in values.items())


class Life:
    """Runs the model and records its operations and answers."""

    def __init__(self, policy, name, seed):
        self.policy = policy
        self.lives = lives_of(policy)
        self.profile = PROFILES[name]
        self.random = Random(f"{policy} {name} {seed}")
        self.lines = [f"# python oracle/generate.py: policy={policy} profile={name} seed={seed}"]
        self.now_ns = self.random.choice([0, 1, self.random.below(10**12)])
        self.link_bps = self.profile.link_bps
        params, qparams = self.values()
        self.plane = DataPlane(policy, self.profile.nqueues, self.link_bps, params, qparams)
        self.lines += [
            "linkweir-vectors 1",
            f"policy {policy}",
            f"queues {self.profile.nqueues}",
            f"link {self.link_bps}",
        ]
        if params:
            self.lines.append("set" + words(params))
        self.lines += [f"queue {q}{words(values)}" for q, values in qparams.items() if values]

    def values(self):
        """Draws until the policy accepts the parameters."""
        while True:
            params, qparams = self.lives.values(self.random, self.profile)
            if DataPlane(self.policy, self.profile.nqueues, self.link_bps, params, qparams).fault() is None:
                return params, qparams

    def queues(self):
        return self.plane.view.queues

    def backlogged(self):
        return [q for q, queue in enumerate(self.queues()) if queue.backlogged]

    def unit_ns(self):
        """The time of 1500 bytes on the link."""
        return max(1, 12_000 * 10**9 // self.profile.link_bps)

    def write(self, text):
        self.lines.append(f"at {self.now_ns} {text}")

    def live(self):
        if self.random.chance(40):
            for _ in range(self.random.between(1, 5)):
                self.enqueue()
        self.plane.init(self.now_ns)
        self.write("init")
        for _ in range(self.profile.steps):
            event = self.random.weighted(self.profile.events | getattr(self.lives, "EVENTS", {}))
            if event == "enqueue" and sum(len(queue.packets) for queue in self.queues()) >= self.profile.backlog:
                event = "serve"
            getattr(self, event)()
        return "\n".join(self.lines) + "\n"

    def enqueue(self):
        busy = self.random.chance(50)
        q = self.random.below((self.profile.nqueues + 1) // 2 if busy else self.profile.nqueues)
        for _ in range(self.random.choice([1, 1, 1, 2, 4])):
            size = self.profile.sizes(self.random)
            dropped = self.plane.enqueue(self.now_ns, q, size)
            drops = " drops " + " ".join(str(victim) for victim in dropped) if dropped else ""
            self.write(f"enqueue {q} {size}{drops}")
            if self.random.chance(50):
                self.now_ns += self.random.below(self.unit_ns() + 1)

    def too_close(self):
        """Whether rounding decides which queue is picked, in a policy that computes with real numbers."""
        self.plane.view.now_ns = self.now_ns
        return self.plane.model.ambiguous()

    def pick(self):
        if self.too_close():
            return None
        q = self.plane.pick(self.now_ns)
        self.write(f"pick {'none' if q is None else q}")
        if self.random.chance(10):
            again = self.plane.pick(self.now_ns)
            assert again == q
            self.write(f"pick {'none' if again is None else again}")
        return q

    def send(self):
        if self.too_close():
            q = self.plane.pick(self.now_ns)
            self.write(f"send {q}")
            return self.plane.send(self.now_ns, q)[1]
        if self.pick() is None:
            return 0
        if getattr(self.lives, "JUDGES", False):
            ecn = self.random.chance(20)
            verdict = self.plane.verdict(self.now_ns, ecn)
            self.write(f"verdict {verdict}{' ecn' if ecn else ''}")
            if verdict == "drop":
                return self.send()
        size = self.plane.send(self.now_ns)[1]
        self.write("send")
        return size

    def expire(self):
        if self.backlogged():
            q = self.random.choice(self.backlogged())
            self.write(f"expired {q} {self.plane.expired(self.now_ns, q)}")

    def serve(self):
        size = self.send()
        percent = self.random.choice([100, 100, 100, 50, 150, self.random.between(1, 400)])
        self.now_ns += size * 8 * 10**9 // self.profile.link_bps * percent // 100 or self.random.below(
            self.unit_ns() + 1
        )

    def burst(self):
        total = sum(self.send() for _ in range(self.random.between(2, 6)))
        self.now_ns += total * 8 * 10**9 // self.profile.link_bps

    def idle(self):
        longest = self.random.choice([10, 1000, 10**5]) * self.unit_ns()
        if self.profile.days or self.random.chance(10):
            longest = self.random.choice([longest, DAY_NS, 40 * DAY_NS])
        self.now_ns += self.random.below(longest)

    def back(self):
        """One operation at an earlier time; the following ones are at the present time again."""
        present = self.now_ns
        self.now_ns -= self.random.below(min(present, 3 * self.unit_ns()) + 1)
        self.random.choice([self.enqueue, self.send])()
        self.now_ns = max(present, self.now_ns)

    def other(self):
        open_queues = [q for q in self.backlogged() if self.queues()[q].rate_bps]
        if open_queues:
            q = self.random.choice(open_queues)
            self.plane.send(self.now_ns, q)
            self.write(f"send {q}")

    def drop(self):
        if self.backlogged():
            q = self.random.choice(self.backlogged())
            self.plane.drop(self.now_ns, q)
            self.write(f"drop {q}")

    def rate(self):
        q = self.random.below(self.profile.nqueues)
        blocked = self.queues()[q].rate_bps == 0
        rate_bps = (
            self.profile.link_bps if blocked else self.random.choice([0, 0, self.random.magnitude(KBIT, 400 * GBIT)])
        )
        self.plane.rate(self.now_ns, {q: rate_bps})
        self.write(f"rate {q} {rate_bps}")

    def link(self):
        link_bps = self.profile.link_bps * self.random.between(20, 200) // 100
        if self.random.chance(15):
            link_bps = self.random.choice([0, self.random.magnitude(KBIT, 400 * GBIT)])
        self.plane.link(self.now_ns, link_bps)
        self.write(f"link {link_bps}")

    def change(self):
        if not hasattr(self.lives, "change"):
            return
        params, qparams = self.lives.change(self.random, self.plane)
        trial = DataPlane(self.policy, self.profile.nqueues, self.plane.best_bps, dict(self.plane.params), {})
        trial._assign(params, dict(enumerate(dict(values) for values in self.plane.qparams)))
        trial._assign({}, qparams)
        if trial.fault() is not None:
            return
        self.plane.change(self.now_ns, params, qparams)
        groups = words(params) + "".join(f" queue {q}{words(values)}" for q, values in qparams.items())
        self.write("change" + groups)

    def observe(self):
        controlled = [q for q, values in enumerate(self.plane.qparams) if values.get("low_level") is not None]
        q = self.random.choice(controlled or list(range(self.profile.nqueues)))
        self.pick()
        values = self.plane.observe(self.now_ns, q)
        if values and not getattr(self.lives, "ROUNDED", False):
            self.write(f"observe {q}{words(values)}")


def files(folder):
    """The random vectors of a folder of vectors/: their texts by their names."""
    if folder in ("across", "queues"):
        return importlib.import_module(folder).files()
    return {
        f"random-{name}-{seed}.vec": Life(folder, name, seed).live()
        for name, count in lives_of(folder).FILES.items()
        for seed in range(1, count + 1)
    }


def sums(texts):
    """SHA256SUMS of these files, as sha256sum(1) writes it."""
    return "".join(f"{hashlib.sha256(texts[name].encode()).hexdigest()}  {name}\n" for name in sorted(texts))


def write(folder, texts):
    """Makes these the random files of a folder. Another process may do the same, or read them, at the same time."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        assert len(text) < LARGEST_BYTES, f"{folder / name} has {len(text)} bytes"
        unfinished = folder / f".{name}.{os.getpid()}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(folder / name)
    for path in folder.glob("random-*"):
        if path.name not in texts:
            path.unlink(missing_ok=True)


def made():
    """The folder of the vectors, in which all random ones are made."""
    subprocess.run(["sh", VECTORS / "make.sh"], check=True)
    return VECTORS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare with SHA256SUMS what would be written")
    parser.add_argument("--make", action="store_true", help="write the vectors, and leave SHA256SUMS as it is")
    parser.add_argument("folders", nargs="*", choices=[*FOLDERS, []], metavar="FOLDER", help="policy, queues or across")
    arguments = parser.parse_args()
    differ = []
    for folder in arguments.folders or FOLDERS:
        texts, listed = files(folder), VECTORS / folder / "SHA256SUMS"
        if arguments.check:
            if not listed.exists() or listed.read_text(encoding="utf-8") != sums(texts):
                differ.append(folder)
            continue
        write(VECTORS / folder, texts)
        if not arguments.make:
            listed.write_text(sums(texts), encoding="utf-8")
    for folder in differ:
        print(f"vectors/{folder}/SHA256SUMS lists others; run python oracle/generate.py {folder}", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
