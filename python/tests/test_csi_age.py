# SPDX-License-Identifier: BSD-3-Clause
"""Proportional fairness over a fading series, with channel knowledge of several ages, against a naive model.

The model shares no code with the simulator: it knows the rules of the published PF and of the retransmissions from the
documentation, and the coding table's row for 210 bytes at 10 dB.
"""

from __future__ import annotations

import heapq
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkweir

MS = 1_000_000
USERS = 12
DURATION_NS = 3000 * MS
INTERVAL_NS = 42 * MS  # 210 bytes at 40 kbit/s
DELAY_NS = 7_600_000
OFFSET_NS = 251 * MS
SYMBOLS = (1145, 540, 979, 2373)
CODEWORD_SYMBOLS = 6 * 1680 // 2
BYTE_NS = 8_000  # at 1 Mbit/s


POINTS, WEIGHTS = np.polynomial.hermite.hermgauss(64)


def information(esn0_db: float) -> float:
    """Bits per QPSK symbol over a Gaussian channel, by 64-point quadrature."""
    snr = 10 ** (esn0_db / 10) / 2
    noise = np.sqrt(2) * POINTS
    inside = np.log2(1 + np.exp(-4 * snr * (1 + noise / math.sqrt(2 * snr))))
    return float(2 * (1 - np.sum(WEIGHTS * inside) / math.sqrt(math.pi)))


ENOUGH = information(-4.8612)


def series() -> list[float]:
    """A fading that wanders, in steps of 1 ms."""
    draw = random.Random(5)
    level, made = 0.0, []
    for _ in range(4000):
        level = 0.9 * level + draw.gauss(0, 2.5)
        made.append(round(level - 4, 3))
    return made


def starts_ns() -> list[int]:
    return [1_000_003 + 2_345_679 * user for user in range(USERS)]


class Naive:
    """The link: one event list, one queue for each user."""

    def __init__(self, fading_db: list[float], age_ns: int | None) -> None:
        self.fading_db = fading_db
        self.age_ns = age_ns
        self.queues = [0] * USERS
        self.means = [1.0] * USERS
        self.served: int | None = None
        self.repeats: list[tuple[int, int, float]] = []
        self.busy = False
        self.decoded = [[0, 0, 0, 0, 0] for _ in range(USERS)]
        self.events: list[tuple[int, int, str, Any]] = []
        self.number = 0

    def level_db(self, at_ns: int, user: int) -> float:
        return self.fading_db[(at_ns + user * OFFSET_NS) // MS % len(self.fading_db)]

    def at(self, at_ns: int, what: str, about: Any = None) -> None:
        self.number += 1
        heapq.heappush(self.events, (at_ns, self.number, what, about))

    def choose(self, now_ns: int) -> int | None:
        seen_ns = now_ns
        if self.age_ns is not None:
            received_ns = now_ns + (210 + 2 * SYMBOLS[0] // 8) * BYTE_NS + DELAY_NS
            seen_ns = min(max(received_ns - self.age_ns, 0), DURATION_NS)
        rates = [max(self.level_db(seen_ns, user) + 11, 0.0) for user in range(USERS)]
        for part in (1, 0):
            for user in range(USERS):
                reward = rates[user] if part and user == self.served else 0.0
                self.means[user] = max(1.0, 0.95 * self.means[user] + 0.05 * reward)
        waiting = [user for user in range(USERS) if self.queues[user]]
        return max(waiting, key=lambda user: rates[user] / self.means[user], default=None)

    def start(self, now_ns: int) -> None:
        if self.busy:
            return
        if self.repeats:
            user, attempt, gathered = self.repeats.pop(0)
            sent = 2 * SYMBOLS[attempt] // 8
        else:
            chosen = self.choose(now_ns)
            if chosen is None:
                return
            user, attempt, gathered = chosen, 0, 0.0
            self.served = chosen
            self.queues[user] -= 1
            sent = 210 + 2 * SYMBOLS[0] // 8
        self.busy = True
        self.at(now_ns + sent * BYTE_NS, "sent", (user, attempt, gathered))

    def run(self) -> list[list[int]]:
        for user, start_ns in enumerate(starts_ns()):
            for created_ns in range(start_ns, DURATION_NS, INTERVAL_NS):
                self.at(created_ns, "arrives", user)
        while self.events:
            now_ns, _, what, about = heapq.heappop(self.events)
            if now_ns >= DURATION_NS:
                break
            if what == "arrives":
                self.queues[about] += 1
            elif what == "sent":
                self.busy = False
                self.at(now_ns + DELAY_NS, "received", about)
            elif what == "received":
                user, attempt, gathered = about
                level_db = self.level_db(now_ns, 0 if attempt else user)
                gathered += information(10 + level_db) * SYMBOLS[attempt] / CODEWORD_SYMBOLS
                if gathered >= ENOUGH:
                    self.decoded[user][attempt] += 1
                elif attempt == 3:
                    self.decoded[user][4] += 1
                else:
                    self.at(now_ns + DELAY_NS, "asked", (user, attempt + 1, gathered))
            else:
                self.repeats.append(about)
            self.start(now_ns)
        return self.decoded


def simulated(folder: Path, fading_db: list[float], policy: str, faster: int, **satellite: str) -> list[list[int]]:
    lines = [f"{i / 1000:.3f} {level}" for i, level in enumerate(fading_db)]
    (folder / "fading.txt").write_text("\n".join(lines) + "\n")
    text = f"""
duration = "{DURATION_NS // MS}ms"
[link]
rate = "{faster}Mbit"
delay = "{DELAY_NS}ns"
[link.satellite]
packet = "210B"
fading = "fading.txt"
user_offset = "{OFFSET_NS // MS}ms"
repeats_see = "first_user"
first_attempt = "coded_and_plain"
{"".join(f'{key} = "{value}"' for key, value in satellite.items())}
[scheduler]
policy = "{policy}"
"""
    for user, start_ns in enumerate(starts_ns()):
        text += f'[[class]]\nname = "u{user}"\nlimit = "100000p"\n[[flow]]\nclass = "u{user}"\nkind = "cbr"\n'
        text += f'rate = "{40 * faster}kbit"\npacket = "210B"\nstart = "{start_ns}ns"\n'
    (folder / "x.toml").write_text(text)
    rows = linkweir.run(linkweir.Scenario.load(folder / "x.toml")).tables["harq"].to_pylist()
    names = ("decoded_first", "decoded_second", "decoded_third", "decoded_fourth", "given_up")
    return [[row[f"{name}_pkts"] for name in names] for row in rows]


@pytest.mark.parametrize(("csi_age", "age_ns"), [("flight", None), ("0s", 0), ("3ms", 3 * MS), ("40ms", 40 * MS)])
def test_published_pf_is_that_of_a_naive_model(tmp_path: Path, csi_age: str, age_ns: int | None) -> None:
    fading_db = series()
    found = simulated(tmp_path, fading_db, "tauran_pf", 1, csi_age=csi_age)
    assert found == Naive(fading_db, age_ns).run()
    assert sum(map(sum, found)) > 300


CHANNEL_AWARE = (
    "pf",
    "codes",
    "mlwdf",
    "exp_pf",
    "exp_rule",
    "tauran_pf",
    "tauran_codes",
    "ubmt_like",
    "bbs_like",
    "bps_like",
)


@pytest.mark.parametrize("policy", CHANNEL_AWARE)
def test_every_policy_that_looks_at_channels_knows_them_at_the_age(tmp_path: Path, policy: str) -> None:
    """The younger the knowledge, the more packets are decoded at the first attempt; of 100 ms nothing is left."""
    fading_db = series()
    firsts = []
    for age in ("0s", "4ms", "100ms"):
        found = simulated(tmp_path, fading_db, policy, 10, csi_age=age)
        firsts.append(sum(row[0] for row in found) / sum(map(sum, found)))
    assert firsts[0] > firsts[1] + 0.05 > firsts[2] + 0.1, firsts
