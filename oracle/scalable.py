# SPDX-License-Identifier: BSD-3-Clause
"""A naive model of senders that count congestion marks: DCTCP and TCP Prague.

It is written from RFC 8257 (section 3.3) and from draft-briscoe-iccrg-prague-congestion-control-04
(section 2), Prague in decimal numbers of 60 digits. It keeps the list of all acknowledgements of a round and looks at
each of them when the round ends. In three things it follows Linux instead of the RFC: it counts segments, not bytes; a
round begins with the next segment to send and ends when all before it is acknowledged (the RFC begins with the first
unacknowledged byte, and waits for an acknowledgement beyond the last); and DCTCP's average is a whole number of
1024ths. A sixteenth is taken off it, rounded down, but all of it where that is less than one 1024th. What the round
adds is rounded down, too: less than 1 mark in 64 segments adds nothing.

`python oracle/scalable.py` writes the lists in crates/linkweir-sim/tests/marks.

    begin NS NEXT WINDOW          the connection is established; NEXT is the first segment that was not sent
    ack NS UNA NEXT RTT_NS ACKED MARKED EVENT ALPHA WINDOW
                                  an acknowledgement up to UNA reports so many segments; EVENT is what the sender
                                  answers in it: marks, loss, undo or none; then the average and the window, segments

DCTCP's window is the threshold that a mark would give it; the sender has the rest in common with Reno. Here its window
becomes that with each acknowledgement that has a mark, and grows by what any other acknowledges.
"""

import random
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from math import floor
from pathlib import Path

import lists

getcontext().prec = 60
FOLDER = Path(__file__).resolve().parent.parent / "crates" / "linkweir-sim" / "tests" / "marks"
GAIN = Fraction(1, 16)
TARGET_NS = 25_000_000
MSS_BYTES = 1448
LEAST_BIT_S = 100_000


class Round:
    """The acknowledgements since a round began."""

    def __init__(self, next_segment):
        self.ends_at = next_segment
        self.reports = []

    def fraction(self):
        """Of the segments of this round that had marks."""
        acked = sum(acked for acked, _ in self.reports)
        marked = sum(marked for _, marked in self.reports)
        return min(Decimal(1), Decimal(marked) / max(1, acked))


def averaged(alpha, fraction):
    """RFC 8257, section 3.3: alpha = alpha (1 - g) + g M."""
    gain = Decimal(GAIN.numerator) / GAIN.denominator
    return alpha * (1 - gain) + gain * fraction


class Dctcp:
    """RFC 8257 with Linux's whole numbers."""

    def begin(self, now_ns, next_segment, window):
        self.parts, self.window = 1024, window
        self.round = Round(next_segment)

    @property
    def alpha(self):
        return Fraction(self.parts, 1024)

    def ack(self, now_ns, una, next_segment, rtt_ns, acked, marked, event):
        self.round.reports.append((acked, marked))
        if una >= self.round.ends_at:
            less = floor(self.parts * GAIN)
            self.parts -= less if less >= 1 else self.parts
            acked_segments = max(1, sum(acked for acked, _ in self.round.reports))
            marked_segments = sum(marked for _, marked in self.round.reports)
            self.parts = min(1024, self.parts + floor(1024 * GAIN * Fraction(marked_segments, acked_segments)))
            self.round = Round(next_segment)
        self.threshold = self.reduced()
        self.window = self.threshold if event == "marks" else self.window + acked

    def reduced(self):
        """cwnd (1 - alpha / 2), section 3.3, with whole segments taken off and at least two left."""
        return max(2, self.window - floor(self.window * self.alpha / 2))

    def shown(self):
        return self.threshold


class Prague:
    """The draft, section 2."""

    def begin(self, now_ns, next_segment, window):
        self.alpha, self.window = Decimal(0), Decimal(window)
        self.round, self.slow_start = Round(next_segment), True
        self.rounds_after_slow_start, self.marks_seen = 0, False
        self.last_update_ns, self.last_reduction_ns, self.answered_up_to = now_ns, 0, 0
        self.before_loss = None

    def is_virtual(self):
        """Short round trips count as 25 ms (section 2.4.4)."""
        return self.rounds_after_slow_start >= 4

    def least(self, rtt_ns):
        return Decimal(LEAST_BIT_S) / 8 * rtt_ns / 10**9 / MSS_BYTES

    def ack(self, now_ns, una, next_segment, rtt_ns, acked, marked, event):
        self.round.reports.append((acked, marked))
        is_long_enough = not self.is_virtual() or now_ns - self.last_update_ns >= TARGET_NS
        if una >= self.round.ends_at and is_long_enough:
            self.alpha = averaged(self.alpha, self.round.fraction())
            self.round, self.last_update_ns = Round(next_segment), now_ns
            self.rounds_after_slow_start += not self.slow_start
        if marked and not self.marks_seen:
            self.alpha, self.marks_seen = Decimal(1), True
        if event == "marks":
            self.slow_start = False
            is_long_enough = not self.is_virtual() or now_ns - self.last_reduction_ns >= TARGET_NS
            if una > self.answered_up_to and is_long_enough:
                self.last_reduction_ns, self.answered_up_to = now_ns, next_segment
                self.window = max(self.window * (1 - self.alpha / 2), self.least(rtt_ns))
        elif event == "loss":
            self.before_loss = self.window, self.slow_start
            self.slow_start = False
            self.window = max(self.window / 2, self.least(rtt_ns))
        elif event == "undo":
            self.window, self.slow_start = max(self.window, self.before_loss[0]), self.before_loss[1]
        unmarked = max(0, acked - marked)
        if event == "loss" or not unmarked:
            return
        if self.slow_start:
            self.window += unmarked
            return
        # 1 / M squared of a segment per window, M being the virtual round trip over the real one.
        m = Decimal(max(rtt_ns, TARGET_NS)) / rtt_ns if self.is_virtual() else Decimal(1)
        self.window += unmarked / (m * m) / self.window

    def shown(self):
        return self.window


def life(model, seed, *, with_losses):
    """Lines of a random connection."""
    draw = random.Random(seed)
    now_ns, una, window = draw.randrange(10**9), 1, 10
    next_segment = una + window
    rtt_ns = draw.choice([200_000, 3_000_000, 7_000_000, 24_999_999, 25_000_000, 80_000_000])
    model.begin(now_ns, 1, window)
    yield f"begin {now_ns} 1 {window}"
    likely, lost = Decimal(0), False
    for step in range(200):
        if step % 40 == 10:
            likely = draw.choice([Decimal(0), Decimal("0.02"), Decimal("0.3"), Decimal(1)])
        now_ns += draw.randrange(rtt_ns // 4) + 1
        acked = min(draw.choice([0, 1, 2, 2, 2, 5]), next_segment - una)
        marked = sum(draw.random() < likely for _ in range(acked))
        una += acked
        event = "none"
        if with_losses and lost and draw.random() < 0.3:
            event, lost = "undo", False
        elif with_losses and draw.random() < 0.02:
            event, lost = "loss", True
        elif marked:
            event, lost = "marks", False
        model.ack(now_ns, una, next_segment, rtt_ns, acked, marked, event)
        alpha, shown = float(model.alpha), float(model.shown())
        yield f"ack {now_ns} {una} {next_segment} {rtt_ns} {acked} {marked} {event} {alpha} {shown}"
        next_segment = max(next_segment, una + max(1, min(int(model.window), 200)))
        rtt_ns = max(100_000, rtt_ns + draw.randrange(-rtt_ns // 20 - 1, rtt_ns // 20 + 1))


def files():
    """The names of all files and their lines."""
    for seed in range(2):
        yield f"dctcp-{seed}.txt", life(Dctcp(), f"dctcp {seed}", with_losses=False)
    for seed in range(6):
        yield f"prague-{seed}.txt", life(Prague(), f"prague {seed}", with_losses=seed % 2 == 1)


if __name__ == "__main__":
    sys.exit(lists.main("oracle/scalable.py", FOLDER, files()))
