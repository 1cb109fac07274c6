# SPDX-License-Identifier: BSD-3-Clause
"""A naive model of a bond: which class a free path serves, copies, repetitions, and the receiver that restores order.
`python oracle/bonds.py` writes its lives to crates/linkweir-core/tests/bonds.

It is written from the rules that users read (docs/reference/scenarios.md, Bonds), under strict priority: every answer
is found by looking at all there is. Times are in whole nanoseconds, rounded down.

    bond ROOM BYTES MEMORY                      all lives of senders begin so; a path remembers BYTES, for MEMORY
    path COST BPS DELAY
    class best|all|spill|stripe|PATHS resend|once AGE|any     PATHS: numbers of paths, as in 0,2; longest wait
    at NS arrive CLASS BYTES
    at NS path P up|down BPS DELAY SINCE
    at NS pull P none | CLASS NUMBER first|copy|again

    receiver WAIT|none PKTS BYTES WINDOW                  all lives of receivers begin so
    at NS come NUMBER BYTES [NUMBER given|twice|late ...]
    at NS expire [NUMBER given ...]
"""

import random
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "crates" / "linkweir-core" / "tests" / "bonds"
MOST_COPIES = 64
MS = 1_000_000
SECOND = 1_000_000_000


class Sender:
    """Paths are [cost, bps, delay, up]; a packet is (class, number, bytes)."""

    def __init__(self, room, size, memory, paths, classes):
        self.room, self.size, self.memory, self.paths, self.classes = room, size, memory, paths, classes
        self.queues = [[] for _ in classes]  # (arrival, bytes)
        self.numbers = [0] * len(classes)
        self.copies = [[] for _ in paths]  # (arrival, time, packet)
        self.sent = [[] for _ in paths]  # (time, time of the first sending, packet), of classes that are sent again
        self.again = []  # (time of the first sending, packet)
        self.repeated = [False] * len(paths)

    def could(self, path, of_class):
        uses = self.classes[of_class][0]
        return self.paths[path][3] and (not isinstance(uses, tuple) or path in uses)

    def may(self, now, path, of_class):
        """Whether the head of a class may take a path."""
        uses, queue = self.classes[of_class][0], self.queues[of_class]
        if not queue or not self.could(path, of_class):
            return False
        if uses not in ("best", "spill"):
            return True
        key = {"best": lambda p: (self.paths[p][2], p), "spill": lambda p: (self.paths[p][0], p)}[uses]
        before = [p for p in range(len(self.paths)) if self.paths[p][3] and key(p) < key(path)]
        bps = sum(self.paths[p][1] for p in before)
        if bps == 0:
            return True
        waited = now - queue[0][0]
        drained = 8 * SECOND * sum(size for _, size in queue) // bps
        return waited + drained > self.room

    def remember(self, now, path, first, packet):
        self.sent[path].append((now, first, packet))
        while self.sent[path] and (
            self.sent[path][0][0] + self.memory < now or sum(p[2] for _, _, p in self.sent[path]) > self.size
        ):
            self.sent[path].pop(0)

    def repeat(self, now, path):
        for first, packet in self.again:
            if self.could(path, packet[0]) and now <= first + 2 * self.memory:
                self.again.remove((first, packet))
                self.repeated[path] = True
                self.remember(now, path, first, packet)
                return (*packet, "again")
        return None

    def drop_old(self, now):
        """What has waited too long in the queues or as a copy."""
        for (_, _, age), queue in zip(self.classes, self.queues, strict=True):
            queue[:] = [entry for entry in queue if age is None or entry[0] + age >= now]
        for copies in self.copies:
            ages = [self.classes[packet[0]][2] for _, _, packet in copies]
            copies[:] = [
                copy
                for copy, age in zip(copies, ages, strict=True)
                if copy[1] + self.memory >= now and (age is None or copy[0] + age >= now)
            ]

    def pull(self, now, path):
        self.drop_old(now)
        if not self.paths[path][3]:
            return None
        for of_class in range(len(self.classes)):
            copy = next((copy for copy in self.copies[path] if copy[2][0] == of_class), None)
            if copy:
                self.copies[path].remove(copy)
                return (*copy[2], "copy")
            if self.may(now, path, of_class):
                break
        if self.again and not self.repeated[path]:
            found = self.repeat(now, path)
            if found:
                return found
        else:
            self.repeated[path] = False
        for of_class in range(len(self.classes)):
            if self.may(now, path, of_class):
                arrival, size = self.queues[of_class].pop(0)
                packet = (of_class, self.numbers[of_class], size)
                self.numbers[of_class] += 1
                uses, resend, _ = self.classes[of_class]
                if uses == "all":
                    for other in range(len(self.paths)):
                        if other != path and self.paths[other][3]:
                            self.copies[other] = [*self.copies[other], (arrival, now, packet)][-MOST_COPIES:]
                elif resend:
                    self.remember(now, path, now, packet)
                return (*packet, "first")
        return self.repeat(now, path)

    def set(self, path, up, bps, delay, since):
        died = self.paths[path][3] and not up
        self.paths[path][1:] = [bps, delay, up]
        if died:
            self.copies[path] = []
            others = range(len(self.paths))
            self.again = [entry for entry in self.again if any(self.could(other, entry[1][0]) for other in others)]
            for at, first, packet in self.sent[path]:
                fits = sum(p[2] for _, p in self.again) + packet[2] <= self.size
                if at >= since and fits and any(self.could(other, packet[0]) for other in others):
                    self.again.append((first, packet))
            self.sent[path] = []


class Receiver:
    """All numbers that have come, and those that are held with their times and bytes."""

    def __init__(self, wait, pkts, size, window):
        self.wait, self.pkts, self.size, self.window = wait, pkts, size, window
        self.come_before, self.held, self.next, self.out = set(), {}, 0, []

    def give(self, number):
        """Hands out a number and all that are held without a gap behind it."""
        self.out.append((number, "given"))
        self.held.pop(number, None)
        self.next = number + 1
        while self.next in self.held:
            self.give(self.next)

    def give_up_to(self, number):
        """Hands out all that are held up to a number."""
        for other in sorted(self.held):
            if self.next <= other <= number:
                self.give(other)

    def expire(self, now):
        for number, (at, _) in sorted(self.held.items(), key=lambda entry: (entry[1][0], entry[0])):
            if number in self.held and at + self.wait <= now:
                self.give_up_to(number)

    def come(self, now, number, size):
        top = max(self.come_before, default=-1) + 1
        if self.wait is not None:
            self.expire(now)
        if number + self.window < top:
            return self.out.append((number, "late"))
        if number in self.come_before:
            return self.out.append((number, "twice"))
        if self.wait is None:
            self.come_before.add(number)
            return self.out.append((number, "given"))
        if number < self.next:
            return self.out.append((number, "late"))
        self.come_before.add(number)
        if number == self.next or self.wait == 0 or size > self.size:
            self.give_up_to(number)
            return self.give(number)
        if number - self.next >= self.window:
            self.give_up_to(number - self.window)
            self.next = max(self.next, number + 1 - self.window)
            while self.next in self.held:
                self.give(self.next)
        while self.held and (
            len(self.held) >= self.pkts or sum(other for _, other in self.held.values()) + size > self.size
        ):
            first = min(self.held)
            if number < first:
                return self.give(number)
            self.give(first)
        if number == self.next:
            return self.give(number)
        self.held[number] = (now, size)
        return None


def written(uses):
    return ",".join(map(str, uses)) if isinstance(uses, tuple) else uses


def sender_life(draw):
    room, size, memory = draw.choice([0, 3, 10]) * MS, 20_000, draw.choice([30, 60]) * MS
    paths = [[draw.randrange(3), draw.choice([2, 4, 8]) * MS, draw.randrange(4) * 10 * MS, True] for _ in range(3)]
    named = tuple(sorted(draw.sample(range(3), draw.choice([1, 2]))))
    uses = [draw.choice(["all", "best", named]), draw.choice(["best", "spill"]), "all"]
    uses.append(draw.choice(["stripe", "spill", named]))
    ages = [draw.choice([None, 20 * MS]) for _ in uses]
    classes = [(use, use != "all" and draw.random() < 0.5, age) for use, age in zip(uses, ages, strict=True)]
    lines = [f"bond {room} {size} {memory}"]
    lines += [f"path {cost} {bps} {delay}" for cost, bps, delay, _ in paths]
    for use, resend, age in classes:
        lines.append(f"class {written(use)} {'resend' if resend else 'once'} {'any' if age is None else age}")
    sender, now = Sender(room, size, memory, paths, classes), 0
    for _ in range(500):
        now += draw.choice([0, 0, draw.randrange(MS), draw.randrange(6 * MS)])
        step = draw.random()
        if step < 0.45:
            of_class, size = draw.randrange(4), draw.randrange(100, 1500)
            sender.queues[of_class].append((now, size))
            lines.append(f"at {now} arrive {of_class} {size}")
        elif step < 0.93:
            path = draw.randrange(3)
            found = sender.pull(now, path)
            answer = "none" if found is None else f"{found[0]} {found[1]} {found[3]}"
            lines.append(f"at {now} pull {path} {answer}")
        else:
            path, up = draw.randrange(3), draw.random() < 0.6
            bps, delay, since = draw.choice([2, 4, 8]) * MS, draw.randrange(4) * 10 * MS, max(0, now - 20 * MS)
            sender.set(path, up, bps, delay, since)
            lines.append(f"at {now} path {path} {'up' if up else 'down'} {bps} {delay} {since}")
    return lines


def receiver_life(draw):
    wait = draw.choice([None, 0, 5 * MS, 30 * MS])
    pkts, size, window = draw.choice([2, 8, 50]), draw.choice([3_000, 60_000]), draw.choice([20, 100])
    receiver, now, top = Receiver(wait, pkts, size, window), 0, 0
    lines = [f"receiver {'none' if wait is None else wait} {pkts} {size} {window}"]
    for _ in range(400):
        now += draw.choice([0, draw.randrange(MS), draw.randrange(8 * MS)])
        receiver.out = []
        if wait is not None and draw.random() < 0.1:
            receiver.expire(now)
            line = f"at {now} expire"
        else:
            ahead = draw.choice([0, 0, 0, draw.randrange(-6, 4), draw.randrange(-6, 4), draw.randrange(-120, 120)])
            number, length = max(0, top + ahead), draw.randrange(40, 1500)
            top = max(top, number + 1)
            receiver.come(now, number, length)
            line = f"at {now} come {number} {length}"
        lines.append(" ".join([line, *(f"{number} {word}" for number, word in receiver.out)]))
    return lines


def lives():
    """The files by name."""
    makers = {"sender": sender_life, "receiver": receiver_life}
    return {
        f"{name}-{seed}.life": "\n".join(make(random.Random(f"{name} {seed}"))) + "\n"
        for name, make in makers.items()
        for seed in range(1, 5)
    }


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(any((FOLDER / name).read_text() != text for name, text in lives().items()))
    for name, text in lives().items():
        (FOLDER / name).write_text(text)
